"""The checks of fsck for calls with keys."""

import json
import re
from collections.abc import Container, Iterator

from ikigai_actors.errors import BadInput
from ikigai_actors.records.fsck.invariants import Invariant, Violation
from ikigai_actors.records.once import check_call_key
from ikigai_actors.store.base import Transaction

_DIGEST = re.compile(r"[0-9a-f]{64}")


def check_keyed_calls(tx: Transaction, agents: Container[str]) -> Iterator[Violation]:
    """Return the faults of keyed calls; ``agents`` are the uuids of all agents."""
    for scope, key, agent, verb, asked, gave in tx.run("calls"):
        wrong = _wrong_with(key, asked, gave)
        if scope and scope not in agents:
            wrong = f"an agent as its scope, got {scope!r}"
        elif agent is not None and agent not in agents:
            wrong = f"an agent whose method was called, got {agent!r}"
        elif not verb:
            wrong = "a verb"
        if wrong is not None:
            yield Violation(Invariant.KEYED_CALL, agent, f"expected keyed call {key!r} to have {wrong}")


def _wrong_with(key: str, asked: str, gave: str) -> str | None:
    try:
        check_call_key(key)
    except BadInput:
        return "a key of 1 to 200 printable characters"
    if not _DIGEST.fullmatch(asked):
        return "a SHA-256 of what was asked"
    try:
        is_object = isinstance(json.loads(gave), dict)
    except (ValueError, RecursionError):
        is_object = False
    return None if is_object else "a JSON object as its answer"
