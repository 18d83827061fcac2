"""Mutants of keys for effects.

nice python -m tests.mutants --spending --seconds 60
"""

from tests.mutants import Mutant

_KEYS, _CALLS, _CRASH = (
    "tests/tools/test_effect_keys.py",
    "tests/agent/turn/test_calls.py",
    "tests/agent/test_tool_crash.py",
)

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
)
