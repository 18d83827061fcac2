"""Mutants of decisions of which every case of a small world is gone through, and of the transaction on PostgreSQL.

nice python -m tests.mutants --decisions
"""

from tests.mutants import Edit, Mutant

_TURN, _TREE = "tests/agent/turn/test_every_turn.py", "tests/supervisors/test_every_tree.py"
_EXIT, _LOOK = "tests/supervisors/test_every_exit.py", "tests/store/test_every_look.py"
_TRIPS = "tests/store/test_trips.py"
_WAYS = "tests/agent/turn/test_every_way.py"

DECISION_MUTANTS = (
    Mutant(
        "words part a call from its result",
        "agent/turn/machine.py",
        "    if not (isinstance(unit, LogUnit) and unit.asks and unit.may_wait):",
        "    if not (isinstance(unit, LogUnit) and unit.may_wait):",
        test=_WAYS,
    ),
    Mutant(
        "a request that is held leaves without the words",
        "agent/turn/tool_steps.py",
        "    if has_words and isinstance(state.hold, Held):",
        "    if not has_words and isinstance(state.hold, Held):",
        test=_WAYS,
    ),
    Mutant(
        "a word that cuts off ends the wait alone",
        "agent/turn/calls.py",
        " if call.progress is not Progress.DONE) if at_once else waits(calls)",
        " if call.progress is Progress.RUNNING) if at_once else waits(calls)",
        test=_WAYS,
    ),
    Mutant(
        "a built-in call begins beside a tool",
        "agent/turn/tool_steps.py",
        "    if running(state.calls) or waits(state.calls):\n        return Step(state)\n",
        "    if waits(state.calls):\n        return Step(state)\n",
        test=_WAYS,
    ),
    Mutant(
        "a wait is forgotten by who goes on with the turn",
        "agent/turn/machine.py",
        "    effects: tuple[Effect, ...] = (Answer(event.caller, True), *questions, *waiting)",
        "    effects: tuple[Effect, ...] = (Answer(event.caller, True), *questions)",
        test=_WAYS,
    ),
    Mutant(
        "nobody hears of an exit between two turns",
        "agent/turn/machine.py",
        "effects=(*step.effects, Answer(event.caller, None)), caller=event.caller)",
        "effects=step.effects, caller=event.caller)",
        test=_WAYS,
    ),
    Mutant(
        "a call begins without a look at the rules",
        "agent/turn/tool_steps.py",
        "    if not isinstance(unit, LogUnit | CallUnit):\n        return step\n",
        "    if not isinstance(unit, CallUnit):\n        return step\n",
        test=_WAYS,
    ),
    Mutant(
        "who has an approval needs no rule",
        "agent/turn/calls.py",
        "call.progress is Progress.APPROVED and call.rule is not None and call.rule.decision is Policy.DENY",
        "call.progress is Progress.APPROVED and call.rule is not None and call.rule.decision is None",
        test=_WAYS,
    ),
    Mutant(
        "a decision holds for a call of another reply",
        "agent/turn/machine.py",
        "if (call.reply, call.id) == (event.reply, event.call)]",
        "if call.id == event.call]",
        test=_TURN,
    ),
    Mutant(
        "a decision holds for other arguments",
        "agent/turn/machine.py",
        "    if event.call_sha256 and event.call_sha256 != digest_of(asked[0].name, asked[0].input):",
        "    if event.call_sha256 and not asked[0].name:",
        test=_TURN,
    ),
    Mutant(
        "a value that does not fit ends a typed turn",
        "agent/turn/typed.py",
        "    if not wrong:\n        return _accept(state, value, event.spent, now, *drafts,",
        "    if value is not None:\n        return _accept(state, value, event.spent, now, *drafts,",
        test=_WAYS,
    ),
    Mutant(
        "repairs are forgotten in a crash",
        "agent/turn/typed.py",
        '        elif isinstance(message.data.get("repair"), int):',
        '        elif isinstance(message.data.get("repaired"), int):',
        test=_WAYS,
    ),
    Mutant(
        "nobody hears of a summary that failed",
        "agent/turn/compaction.py",
        "    effects = answers_of_compaction(state, error)\n",
        "    effects = ()\n",
        test=_WAYS,
    ),
    Mutant(
        "a request that was put off for a summary never leaves",
        "agent/turn/compaction.py",
        "    return Step(replace(state, squeezed=left, left_at=tokens), effects=(RequestModel(state.request),))",
        "    return Step(replace(state, squeezed=left, left_at=tokens))",
        test=_WAYS,
    ),
    Mutant(
        "INT ends the turn and not its summary",
        "agent/turn/machine.py",
        '        state, event = compaction.state_behind(state), replace(event, partial="")',
        '        event = replace(event, partial="")',
        test=_WAYS,
    ),
    Mutant(
        "a summary costs nothing",
        "agent/turn/compaction.py",
        "    return Step(after, holding(after), (Summarise(request),))",
        "    return Step(after, LogUnit(state.uuid, ()), (Summarise(request),))",
        test=_WAYS,
    ),
    Mutant(
        "a merge that failed leaves its call open",
        "agent/turn/merging.py",
        "        return refuse(after, merging.call.id, str(error), now)",
        "        return Step(after)",
        test=_WAYS,
    ),
    Mutant(
        "a merge asks for nothing that is held",
        "agent/turn/merging.py",
        "    going = replace(merging, part=next_part, usage=usage, talk=(), attempts=1)\n"
        "    after = replace(state, request=request, merging=going, hold=None)\n"
        "    return Step(after, holding(state), (Summarise(request),), merging.caller)",
        "    going = replace(merging, part=next_part, usage=usage, talk=(), attempts=1)\n"
        "    after = replace(state, request=request, merging=going, hold=None)\n"
        "    return Step(after, None, (Summarise(request),), merging.caller)",
        test=_WAYS,
    ),
    Mutant(
        "a call that a crash cut off is begun again, whatever its tool",
        "agent/turn/calls.py",
        'own is not None and own.idempotent and not call.elsewhere and call.definition in ("", own.definition)',
        "own is not None",
        test=_TURN,
    ),
    Mutant(
        "what runs alone does not wait for those before it",
        "agent/turn/calls.py",
        "            return tuple(chosen) if busy or chosen else (call,)",
        "            return tuple(chosen) if chosen else (call,)",
        test=_TURN,
    ),
    Mutant(
        "a reply that broke off is asked for without end",
        "agent/turn/machine.py",
        "    retries, passed = (state.retries + 1, state.passed) if again else (0, state.passed + 1)",
        "    retries, passed = (state.retries, state.passed) if again else (0, state.passed + 1)",
        test=_TURN,
    ),
    Mutant(
        "the dead are passed over in a cascade",
        "../supervisors/orphans.py",
        "        if doomed or (agent in dying and member.policy is OrphanPolicy.CASCADE):",
        "        if (doomed and agent not in gone) or (agent in dying and member.policy is OrphanPolicy.CASCADE):",
        test=_TREE,
        tier="standard",
    ),
    Mutant(
        "the deaths of a branch end at the children",
        "../supervisors/orphans.py",
        "        if doomed or (agent in dying and member.policy is OrphanPolicy.CASCADE):",
        "        if agent in dying and member.policy is OrphanPolicy.CASCADE:",
        test=_TREE,
        tier="standard",
    ),
    Mutant(
        "orphans go to their dead grandparent",
        "../supervisors/orphans.py",
        "            survivors[agent] = survivors.get(supervisor, root)",
        "            survivors[agent] = supervisor",
        test=_TREE,
        tier="standard",
    ),
    Mutant(
        "agent 0 gives up as any other",
        "../supervisors/supervisor.py",
        "        return _bury(supervisor, child, Cause.GAVE_UP) if supervisor.protected else _give_up(supervisor)",
        "        return _give_up(supervisor)",
        test=_EXIT,
    ),
    Mutant(
        "siblings that are not restarted stay children",
        "../supervisors/supervisor.py",
        "    lost = {member.agent for member in stop} - {member.agent for member in start}",
        "    lost = {member.agent for member in stop} - {member.agent for member in stop}",
        test=_EXIT,
    ),
    Mutant(
        "a host is ended at the first look that finds its lock free",
        "store/hosts/membership.py",
        "(seen.unheld_since is not None and now - seen.unheld_since >= UNHELD)",
        "(seen.unheld_since is not None)",
        test=_LOOK,
    ),
    Mutant(
        "a transaction commits without its fence",
        "store/postgres/transaction.py",
        "        self._trips.gather(Gathered(met.encode(), as_arrays(statement, parameters)))\n",
        "",
        test=_TRIPS,
        tier="standard",
    ),
    Mutant(  # that COMMIT was skipped is seen, too
        "an error that comes with COMMIT is taken for success",
        "store/postgres/trips.py",
        "    if failure is not None:\n        raise failure\n",
        "    if connection.closed and failure is not None:\n        raise failure\n",
        (
            Edit(
                "store/postgres/transaction.py",
                '        if commit.tag() != "COMMIT":',
                '        if commit.tag() == "ROLLBACK":',
            ),
        ),
        test=_TRIPS,
        tier="standard",
    ),
)
"""All of them."""
