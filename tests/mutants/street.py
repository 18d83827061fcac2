"""Mutants of the network API, and of what holds below the verbs.

nice python -m tests.mutants --street
"""

from tests.mutants import Mutant

_API, _REACH, _TOKENS = "tests/doors/test_api.py", "tests/verbs/test_reach.py", "tests/verbs/test_tokens.py"

STREET_MUTANTS = (
    Mutant(
        "a request claims no key",
        "reach/asked.py",
        "        if self.call is None or self.did is not None:",
        "        if True:",
        test=_API,
    ),
    Mutant(
        "a key without its principal",
        "reach/keys.py",
        'f"{principal}\\0{key}"',
        'f"{key}"',
        test=_API,
    ),
    Mutant(
        "a key is not looked up before the verb",
        "reach/keys.py",
        "    if call is None:\n        return None\n\n    def read",
        "    if call is None or call:\n        return None\n\n    def read",
        test=_API,
    ),
    Mutant(
        "the key of a refused request stays",
        "reach/keys.py",
        "    if client.read(lambda tx: _was_refused(tx, did)):",
        "    if not client.read(lambda tx: _was_refused(tx, did)):",
        test=_API,
    ),
    Mutant(
        "a posted command forgets who asks",
        "system/remote/agents.py",
        "self._posted.append(for_asker(task))",
        "self._posted.append(task)",
        test=_REACH,
    ),
    Mutant(
        "the gate is left off the clients",
        "store/unit.py",
        "    asker, act = current_asker(), unit\n",
        "    asker, act = None, unit\n",
        test=_REACH,
    ),
    Mutant(
        "an argument names an agent out of reach",
        "verbs/tools.py",
        "not (name == ACTED_ON or isinstance(param.type, OfferingAgents))",
        "name != ACTED_ON",
        test=_REACH,
    ),
    Mutant(
        "a revoked token lets in",
        "records/tokens.py",
        "        if self.revoked_at is not None:",
        "        if self.revoked_at is None and self.revoked_at is not None:",
        test=_TOKENS,
    ),
)
