"""Mutants of the network API, of what holds below the verbs, and of deliveries from outside.

nice python -m tests.mutants --street
"""

from tests.mutants import Mutant

_ARRIVALS, _SIGNATURES = "tests/system/test_endpoints.py", "tests/records/test_signatures.py"
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
    Mutant(
        "a delivery that has arrived is not known",
        "records/arrivals/arrivals.py",
        "        if (known := self._known(tx)) is not None:",
        "        if (known := self._known(tx)) is None and known:",
        test=_ARRIVALS,
    ),
    Mutant(
        "a paused endpoint takes what comes",
        "records/arrivals/arrivals.py",
        "        waits = endpoint.paused_at is not None or bool(",
        "        waits = bool(",
        test=_ARRIVALS,
    ),
    Mutant(
        "children that are asked for do not count",
        "records/arrivals/arrivals.py",
        "int(living) + int(coming) >= act.most",
        "int(living) >= act.most",
        test=_ARRIVALS,
    ),
    Mutant(
        "the proofs of a sender are kept",
        "system/endpoints.py",
        "if key not in SECRET_HEADERS",
        "if key",
        test=_ARRIVALS,
    ),
    Mutant(
        "the body is signed as it is parsed",
        "records/arrivals/signatures.py",
        "lambda secret: _signed(secret.encode(), raw))",
        "lambda secret: _signed(secret.encode(), raw.strip()))",
        test=_SIGNATURES,
    ),
    Mutant(
        "a signature holds for a day",
        "records/arrivals/signatures.py",
        "TOLERANCE = 300.0",
        "TOLERANCE = 86_400.0",
        test=_SIGNATURES,
    ),
    Mutant(
        "a signature without its time is taken",
        "records/arrivals/signatures.py",
        '_signed(secret.encode(), time, b".", raw)',
        "_signed(secret.encode(), raw)",
        test=_SIGNATURES,
    ),
    Mutant(
        "a delivery passes those that are held",
        "records/arrivals/arrivals.py",
        "or bool(arrivals_with(tx, arrival.endpoint, HELD, 1))",
        "or bool(())",
        test=_ARRIVALS,
    ),
)
