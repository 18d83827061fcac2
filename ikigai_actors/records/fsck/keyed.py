"""The part of fsck that looks at the calls that clients have made under keys."""

import json
import re
from collections.abc import Iterator

from ikigai_actors.errors import BadInput
from ikigai_actors.records.fsck.invariants import Invariant, Violation
from ikigai_actors.records.mail.words import check_word_key
from ikigai_actors.store.base import Transaction

_DIGEST = re.compile(r"[0-9a-f]{64}")


def check_keyed_calls(tx: Transaction) -> Iterator[Violation]:
    """The faults of keyed calls."""
    for key, asked, gave in tx.run("calls"):
        if (wrong := _wrong_with(key, asked, gave)) is not None:
            yield Violation(Invariant.KEYED_CALL, None, f"expected keyed call {key!r} to have {wrong}")


def _wrong_with(key: str, asked: str, gave: str) -> str | None:
    try:
        check_word_key(key)
    except BadInput:
        return "a key of 1 to 200 printable characters"
    if not _DIGEST.fullmatch(asked):
        return "a SHA-256 of what was asked"
    try:
        is_object = isinstance(json.loads(gave), dict)
    except (ValueError, RecursionError):
        is_object = False
    return None if is_object else "a JSON object as its answer"
