"""Secrets by reference, ``env:NAME`` or ``file:PATH``, which the process looks up that needs one.

The database has references alone.
"""

import os
from pathlib import Path

from ikigai_actors.arguments import shown
from ikigai_actors.errors import BadInput
from ikigai_actors.records.questions.links import operator_key


def referred_secret(reference: str) -> str:
    """The secret that a reference names; empty where this process does not find it."""
    kind, _, place = reference.partition(":")
    if kind == "env":
        return os.environ.get(place, "")
    try:
        return Path(place).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""


def referred_key(reference: str) -> bytes:
    """The operator's key that a reference names. Raises `BadInput` where it is not there, or is none."""
    if not isinstance(reference, str) or reference.partition(":")[0] not in ("env", "file"):
        raise BadInput(f"Expected the operator's key as env:NAME or file:PATH; got {shown(reference)}.")
    if not (text := referred_secret(reference)):
        raise BadInput(f"The operator's key is not there: {reference}.")
    return operator_key(text)
