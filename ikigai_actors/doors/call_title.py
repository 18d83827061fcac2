"""Makes the title of a call: one line for a question to a client, or for a list."""

from collections.abc import Mapping
from typing import Any

LONGEST_TITLE = 200
"""The most characters in the title of a call."""


def call_title(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return a tool call on one line, for people."""
    words = ", ".join(str(value) for value in arguments.values() if isinstance(value, str | int | float))
    return " ".join(f"{tool} {words}".split())[:LONGEST_TITLE]
