"""Mutants of budgets, for `BudgetMachine`.

nice python -m tests.mutants --budgets --shrink --seconds 60
"""

from tests.mutants import Edit, Mutant

_GIVES_BACK = (
    Edit(
        "records/budgets/holds.py",
        "def _spend(tx: Transaction, ledger: BudgetLedger, rows: Iterable[Locked]) -> None:",
        "def _spend(tx: Transaction, ledger: BudgetLedger, rows: Iterable[Locked], free: bool = False) -> None:",
    ),
    Edit(
        "records/budgets/holds.py",
        "            charge = whole_hold(row)\n",
        "            charge = Charge() if free else whole_hold(row)\n",
    ),
)

BUDGET_MUTANTS = (
    Mutant(
        "a hold is not kept in its agent's row",
        "records/log/append.py",
        "        if charge is not None or isinstance(answer, Held):",
        "        if charge is not None:",
    ),
    Mutant(
        "a hold that is settled stays",
        "records/budgets/holds.py",
        "        at=0 if held is None else held.at,",
        "        at=row.held_at if held is None else held.at,",
    ),
    Mutant(
        "an interrupt gives back what has left",
        "agent/costs.py",
        "        if not asked:\n            return NO_CHARGE",
        "        if not asked or isinstance(event, on.Interrupt):\n            return NO_CHARGE",
    ),
    Mutant(
        "a death gives back what is held",
        "records/budgets/holds.py",
        "    _spend(tx, ledger, rows)\n",
        "    _spend(tx, ledger, rows, free=True)\n",
        _GIVES_BACK,
    ),
    Mutant(
        "a boot gives back what is held",
        "records/budgets/holds.py",
        "    _spend(tx, ledger, locked.values())\n",
        "    _spend(tx, ledger, locked.values(), free=True)\n",
        _GIVES_BACK,
    ),
    Mutant(
        "a boot forgets what is held",
        "records/budgets/holds.py",
        "    _spend(tx, ledger, locked.values())\n",
        "",
    ),
    Mutant(
        "the holds of other hosts are taken back",
        "records/budgets/ceilings.py",
        "portion.allotted > portion.taken:\n                portion.allotted, portion.changed = portion.taken, True",
        "portion.allotted > portion.spent:\n                portion.allotted, portion.changed = portion.spent, True",
        test="tests/records/test_ceilings.py",
    ),
    Mutant(
        "usage above the hold is not charged",
        "agent/costs.py",
        "                return self._told(usage, made_by or name, event.model, batched)\n",
        "                told = self._told(usage, made_by or name, event.model, batched)\n"
        "                return replace(told, tokens=min(told.tokens, held.tokens))\n",
    ),
    Mutant(
        "strict replies are not cut",
        "agent/effects.py",
        '            sent = settings if most is None else {**settings, "max_tokens": most}\n',
        "            sent = settings\n",
        test="tests/system/test_budgets.py",
    ),
    Mutant(
        "budgets above the nearest one are not asked",
        "records/budgets/ceilings.py",
        "    for level in chain:\n        if (unit := _short(",
        "    for level in chain[-1:]:\n        if (unit := _short(",
    ),
    Mutant(
        "the portion of another host is settled",
        "records/budgets/ledger.py",
        "level.portion(unit, row.held_host).book(-held",
        "level.portion(unit, row.owner or row.held_host).book(-held",
    ),
    Mutant(
        "waiting requests are served by name",
        "store/queries.sql",
        "a.status = 'running' ORDER BY p.number LIMIT",
        "a.status = 'running' ORDER BY p.agent_uuid LIMIT",
    ),
    Mutant(
        "a served request goes on waiting",
        "records/budgets/grants.py",
        '            tx.run("end_pauses", agents=[agent])\n',
        "",
    ),
    Mutant(
        "0 is read as no limit",
        "records/budgets/purse.py",
        "        if unit is not None:\n",
        "        if unit is not None and granted:\n",
        (
            Edit(
                "records/budgets/ledger.py",
                '        for budget, unit, granted, used, risk, word in tx.run("lock_limits", budgets=owners):\n',
                '        for budget, unit, granted, used, risk, word in tx.run("lock_limits", budgets=owners):\n'
                "            if not granted:\n                continue\n",
            ),
        ),
    ),
    Mutant(
        "after a grant the owner gets no more mail",
        "records/budgets/grants.py",
        "            limit.granted, limit.notified, limit.changed = granted, 0, True",
        "            limit.granted, limit.changed = granted, True",
    ),
    Mutant(
        "the owner gets a mail for each agent that waits",
        "records/budgets/ledger.py",
        "        if limit.notified < NOTIFIED_PAUSE and due is None:",
        "        if due is None:",
    ),
    Mutant(
        "tokens that a cache has served are not counted",
        "providers/base.py",
        "        return self.input_tokens + self.output_tokens + self.cache_creation_input_tokens"
        " + self.cache_read_input_tokens\n",
        "        return self.input_tokens + self.output_tokens + self.cache_creation_input_tokens\n",
    ),
    Mutant(
        "a request is allowed again after 59 seconds",
        "records/budgets/ceilings.py",
        "SLOT_TIME = 60_000",
        "SLOT_TIME = 59_000",
    ),
    Mutant(
        "nothing looks at tokens that were freed",
        "records/budgets/ledger.py",
        "            owner for owner, level in self.levels.items() if any(portion.wanted for portion in"
        " level.portions.values())\n",
        "            owner for owner, level in self.levels.items() if not level\n",
        (
            Edit(
                "records/budgets/purse.py",
                "if charge is not None and each.portion.wanted}",
                "if charge is None and each.portion.wanted}",
            ),
        ),
    ),
    Mutant(
        "new tools are not held",
        "agent/costs.py",
        "                return spent.usage, size + grown, blocks",
        "                return spent.usage, size + 0 * grown, blocks",
    ),
    Mutant(
        "a waiting request that changes leaves without a hold",
        "agent/turn/steps.py",
        "LogUnit(state.uuid, messages, asks=True, unpaused=isinstance(state.hold, Paused))",
        "LogUnit(state.uuid, messages, unpaused=isinstance(state.hold, Paused))",
    ),
)
"""All of them."""
