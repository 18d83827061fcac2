"""Acts of programs in logs: calls that a later run recognises by their contents. Pure.

9659cb51e87f8808-0      the digest of an act's kind and arguments, and how many of the same came before in the turn
lead@9bc8d2c40911       what has made a reply: the name of the program, and the hash of its syntax tree
"""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from ikigai_actors.records.messages.messages import Message

_MAKER = re.compile(r"(?P<name>.+)@[0-9a-f]{12}")


def digest_of_act(kind: str, arguments: Mapping[str, Any]) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of an act.

    Raises `ValueError` and `TypeError`, as JSON does.
    """
    text = json.dumps([kind, arguments], sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def program_of(reply: Message) -> str:
    """Return the name of the program that has made a reply in place of a model; empty if a model has made the reply."""
    made = _MAKER.fullmatch(str(reply.data.get("made_by")))
    return made["name"] if made is not None and reply.data.get("model") == f"{made['name']}:" else ""


def is_of_program(reply: Message) -> bool:
    """Return whether a program, not a model, has made a reply."""
    return bool(program_of(reply))
