"""Mutants of keys for effects, of labels, and of what was spent by them.

nice python -m tests.mutants --spending --seconds 60
"""

from tests.mutants import Edit, Mutant

_KEYS, _CALLS, _CRASH = (
    "tests/tools/test_effect_keys.py",
    "tests/agent/turn/test_calls.py",
    "tests/agent/test_tool_crash.py",
)
_LABELS = "tests/system/test_labels.py"

SPENDING_MUTANTS = (
    Mutant(
        "a key of its own for each attempt",
        "agent/effects.py",
        "effect_key(self._uuid, call.reply, call.id)",
        'effect_key(self._uuid, call.reply, f"{call.id} {call.attempt}")',
        test=_CRASH,
    ),
    Mutant(
        "one key for calls with the same id in two replies",
        "tools/effect_keys.py",
        'f"{agent}\\n{reply}\\n{call}"',
        'f"{agent}\\n{call}"',
        test=_KEYS,
    ),
    Mutant(
        "attempts before a start are not counted",
        "agent/turn/calls.py",
        "                if message.data.get(STARTED_ELSEWHERE):\n",
        "                calls = tuple(replace(one, attempt=0) for one in calls)\n"
        "                if message.data.get(STARTED_ELSEWHERE):\n",
        test=_CALLS,
    ),
    Mutant(
        "the labels of the agent for those of the turn",
        "agent/turn/state.py",
        "        return self.turn_labels if self.turn and self.turn_labels else self.own_labels",
        "        return self.own_labels",
    ),
    Mutant(
        "the labels of a turn outlive it",
        "agent/turn/state.py",
        "        return self.turn_labels if self.turn and self.turn_labels else self.own_labels",
        "        return self.turn_labels or self.own_labels",
        test=_LABELS,
    ),
    Mutant(
        "the labels of a turn are forgotten at a boot",
        "agent/agent_log.py",
        '            opened[0].data.get("labels", {}) if opened else {},',
        "            {},",
        test=_LABELS,
    ),
    Mutant(
        "a child does not inherit labels",
        "agent/turn/fork.py",
        "        labels=maker.labels if bed.labels is None else bed.labels,",
        '        labels="" if bed.labels is None else bed.labels,',
    ),
    Mutant(
        "labels of a fork in place of those in force",
        "agent/turn/fork.py",
        "    labels = joined(state.labels, event.labels)",
        '    labels = joined(state.labels if not event.labels else "", event.labels)',
    ),
    Mutant(
        "a reply that broke off costs nothing",
        "agent/costs.py",
        'if message.kind in SPENDING and message.data.get("usage") is not None',
        'if message.kind == "assistant" and message.data.get("usage") is not None',
        test=_LABELS,
    ),
    Mutant(
        "a cost is written outside of the unit of its message",
        "records/log/append.py",
        '        if unit.spent:\n            tx.append(unit.spent, "spendings")\n',
        "        pass\n",
        (
            Edit(
                "agent/actor.py",
                "            self._log.grow(step.unit.messages)\n",
                "            self._log.grow(step.unit.messages)\n"
                "            if spent := step.unit.spent:\n"
                "                self.runtime.journal._store.write(lambda tx: tx.append(spent, 'spendings'))\n",
            ),
        ),
    ),
    Mutant(
        "what has no such label is left out of the sums",
        "store/queries.sql",
        "  LEFT JOIN label_values v ON v.labels = known.labels AND v.key = :key",
        "  JOIN label_values v ON v.labels = known.labels AND v.key = :key",
        test=_LABELS,
    ),
    Mutant(
        "a prune deletes costs",
        "records/log/pruning.py",
        '        tx.run("mark_pruned", uuids=uuids, now=now)\n',
        '        tx.run("mark_pruned", uuids=uuids, now=now)\n        tx.schema.execute("DELETE FROM spendings")\n',
        test=_LABELS,
    ),
)
