"""Counts of tokens as services report them. Numbers are read; a value that is no number is reported once.

A reply that was paid is never thrown away because of its counts. Gateways write ``25.0`` and ``"25"``; budgets count
what these mean, and nothing for ``-25`` and ``null``.
"""

import logging
import math
import reprlib
from collections.abc import Mapping
from typing import Any

logger = logging.getLogger(__name__)

MOST_TOKENS = 10**15
"""The most tokens of one kind in a reply; more would overflow sums of 63 bits."""

_told = set[str]()
"""The unreadable counts that have already been reported."""


def counted_tokens(value: object) -> int | None:
    """Return a reported number of tokens as an integer, rounded up; None for a value that is no such number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        count = value if isinstance(value, int) else math.ceil(float(value))
    except (ValueError, OverflowError):  # no number, nan, inf
        return None
    return count if 0 <= count <= MOST_TOKENS else None


def count_in(usage: Mapping[str, Any], *path: str) -> int:
    """Return a number of tokens in a usage; 0 if it is missing."""
    value: Any = usage
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    if value is None:
        return 0
    count, name = counted_tokens(value), ".".join(path)
    if count is None and name not in _told:
        _told.add(name)
        logger.warning(
            "A service reports %s as %s, which is no number of tokens: nothing is counted for it, neither now nor "
            "later where it does so again.",
            name,
            reprlib.repr(value),
        )
    return count or 0
