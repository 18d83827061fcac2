"""Secrets by reference, ``env:NAME`` or ``file:PATH``, which the process looks up that needs one.

The database has references alone.
"""

import os
from pathlib import Path


def referred_secret(reference: str) -> str:
    """The secret that a reference names; empty where this process does not find it."""
    kind, _, place = reference.partition(":")
    if kind == "env":
        return os.environ.get(place, "")
    try:
        return Path(place).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""
