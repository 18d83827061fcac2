"""Mutants of the kill of a whole branch by one statement: the test that each names finds it, or the machine.

nice python -m tests.mutants --killing
"""

from tests.mutants import Mutant

_BRANCH = "tests/records/test_branch_deaths.py"
_DEATHS = "records/lives/deaths.py"
_QUERIES = "store/queries.sql"

KILLING_MUTANTS = (
    Mutant(
        "what a killed agent held is kept",
        _DEATHS,
        "locked.lock_dying(tx, dead, list(dict.fromkeys((*hearers, top, *asking))), doomed.counting)",
        "locked.lock_dying(tx, dead, list(dict.fromkeys((*hearers, top, *asking))), ())",
        test=_BRANCH,
    ),
    Mutant(
        "who counts is looked for among the dead",
        _QUERIES,
        "FILTER (WHERE lives AND counts)",
        "FILTER (WHERE NOT lives AND counts)",
        test=_BRANCH,
    ),
    Mutant(
        "budgets that a kill frees are not looked at again",
        _DEATHS,
        "    return LifecycleChange(dead, notified=notified, freed=freed)\n",
        "    return LifecycleChange(dead, notified=notified)\n",
        test=_BRANCH,
    ),
    Mutant(
        "who monitors a killed agent does not hear of it",
        _DEATHS,
        "    watched = watchers_of(tx, tied)\n",
        "    watched = watchers_of(tx, ())\n",
        test=_BRANCH,
    ),
    Mutant(
        "what killed agents are tied to stays",
        _DEATHS,
        "    tied = _tied(tx, dead)\n    nearest",
        "    tied = _tied(tx, dead)[1:]\n    nearest",
        test=_BRANCH,
    ),
    Mutant(
        "a kill ends at those that are dead",
        _QUERIES,
        "SELECT {doomed} FROM agents a JOIN sub ON a.supervisor_uuid || '' = sub.uuid || ''"
        " WHERE a.status <> 'dead' OR a.way = 1)",
        "SELECT {doomed} FROM agents a JOIN sub ON a.supervisor_uuid || '' = sub.uuid || '' WHERE a.status <> 'dead')",
        test=_BRANCH,
    ),
    Mutant(
        "the dead die again in a kill",
        _QUERIES,
        "json_agg(key) FILTER (WHERE lives)",
        "json_agg(key)",
        test=_BRANCH,
    ),
    Mutant(
        "a kill reports the dead again",
        _DEATHS,
        "cascade(top, doomed.supervisors, doomed.dead)",
        "cascade(top, doomed.supervisors)",
        test=_BRANCH,
    ),
    Mutant(
        "a kill reports siblings in any order",
        _QUERIES,
        "(SELECT * FROM sub ORDER BY created_at, born) s",
        "(SELECT * FROM sub ORDER BY uuid) s",
        test=_BRANCH,
    ),
    Mutant(
        "a mail about a kill leaves out names",
        _DEATHS,
        "        return called(uuid, self.names.get(uuid))\n",
        "        return called(uuid, None)\n",
        test=_BRANCH,
    ),
    Mutant(
        "a circle of supervisors outlives its kill",
        _DEATHS,
        "        return None\n    [row]",
        "        return Doomed({}, {}, set(), [], [])\n    [row]",
        test=_BRANCH,
    ),
    Mutant(
        "a kill takes no lock of the tree",
        "records/lives/signals.py",
        "    tree = TreeLock.WHOLE\n    concerns_others = True\n\n    def __init__(",
        "    tree = TreeLock.NONE\n    concerns_others = True\n\n    def __init__(",
    ),
    Mutant(
        "TERM of a branch is taken for KILL",
        "records/lives/signals.py",
        "if self._spread and self._signal is Signal.KILL and",
        "if self._spread and self._signal in (Signal.KILL, Signal.TERM) and",
    ),
    Mutant(
        "KILL of one agent is taken for that of its branch",
        "records/lives/signals.py",
        "if self._spread and self._signal is Signal.KILL and",
        "if self._signal is Signal.KILL and",
    ),
    Mutant(
        "agent 0 can be killed with its branch",
        "records/lives/signals.py",
        "            raise refusal_of(top, delivered.refusal)\n        why = End(Cause.KILLED",
        "            pass\n        why = End(Cause.KILLED",
    ),
    Mutant(
        "the actors of killed agents go on, but for the topmost",
        "system/host/processes.py",
        "        self._end_actors(change.dead)\n",
        "        self._end_actors(dict([*change.dead.items()][-1:]))\n",
    ),
    Mutant(
        "a killed agent may begin a request until its actor hears of its death",
        "system/host/processes.py",
        "            actor.revoke()\n",
        "            pass\n",
        test="tests/system/test_life_races.py",
    ),
    Mutant(
        "a killed agent may begin a tool that was on its way",
        "agent/executor.py",
        "    if is_over():\n        return _UNWANTED\n",
        "",
        test="tests/system/test_life_races.py",
    ),
)
"""All of them."""
