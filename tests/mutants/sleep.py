"""Mutants of agents that sleep: the tests that each names find it, or the machines, whose fsck knows the marks.

nice python -m tests.mutants --sleep
"""

from tests.mutants import Mutant

_BOOT = "tests/agent/test_boot.py"
_SLEEPERS = "tests/system/test_sleepers.py"

SLEEP_MUTANTS = (
    Mutant(
        "a birth with a turn has no mark",
        "store/queries.sql",
        "        CASE WHEN CAST(:turn AS BIGINT) > 0 THEN 1 ELSE 0 END)\n",
        "        0)\n",
    ),
    Mutant(
        "marks are cleared of open turns",
        "records/agents/registry.py",
        " and not (row.turn or row.held_at)]",
        "]",
    ),
    Mutant(
        "marks are cleared of other hosts' agents",
        "records/agents/registry.py",
        "row.owner == self._host and not",
        "not",
        test=_BOOT,
    ),
    Mutant(
        "a boot looks at open turns alone",
        "store/queries.sql",
        "UNION SELECT a.uuid FROM agents a\n WHERE a.status = 'terminating'\n",
        "UNION SELECT a.uuid FROM agents a\n WHERE 0 = 1\n",
        test=_BOOT,
    ),
    Mutant(
        "a row is not read again after a commit",
        "system/host/processes.py",
        "            look.is_late = True\n",
        "            pass\n",
        test=_SLEEPERS,
    ),
    Mutant(
        "agents of shards that leave are woken",
        "system/host/processes.py",
        "                for uuid in self._looks:\n                    self._has_changed(uuid)\n",
        "",
        test=_SLEEPERS,
    ),
    Mutant(
        "a prompt by mail wakes nobody",
        "system/host/processes.py",
        "        if (actor := self.wake(uuid)) is not None:\n            actor.actor_inbox.put_urgent(on.Prompt(",
        "        if (actor := self.get(uuid)) is not None:\n            actor.actor_inbox.put_urgent(on.Prompt(",
        test=_SLEEPERS,
    ),
    Mutant(
        "what comes as an agent falls asleep is lost",
        "system/host/processes.py",
        "        self._hand_on(self._uuid, message)\n",
        "        pass\n",
        test=_SLEEPERS,
    ),
    Mutant(
        "an agent falls asleep with a prompt that waits",
        "agent/actor.py",
        " or self.wants_news or not self.backlog.is_empty\n",
        " or self.wants_news\n",
    ),
    Mutant(
        "a sleeper that has changed is still passed over",
        "system/host/whereabouts.py",
        "            self._shards.pop(uuid, None)\n",
        "",
        test="tests/system/test_whereabouts.py",
    ),
    Mutant(
        "a sleeping supervisor is taken for another host's",
        "system/host/supervision.py",
        "        if self._wake(supervisor) is not None:\n",
        "        if self._processes.get(supervisor) is not None:\n",
        test=_SLEEPERS,
    ),
)
