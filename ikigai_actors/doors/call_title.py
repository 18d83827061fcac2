"""The title of a call: one line for a question or a list of a client."""

from collections.abc import Mapping
from typing import Any

LONGEST_TITLE = 200
"""Characters of the title of a call."""


def call_title(tool: str, given: Mapping[str, Any]) -> str:
    """A call as a person reads it on a line."""
    words = ", ".join(str(value) for value in given.values() if isinstance(value, str | int | float))
    return " ".join(f"{tool} {words}".split())[:LONGEST_TITLE]
