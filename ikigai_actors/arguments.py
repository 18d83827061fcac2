"""Checks of arguments.

Each function returns the value, or raises `BadInput`, whose message has the expected and the given value.

``what`` is the name of the argument in that error. A public method checks all of its arguments before it does anything,
so a refused call changes nothing.
"""

import inspect
import re
import reprlib
from collections.abc import Collection, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from ikigai_actors.errors import BadInput

T = TypeVar("T")

LONGEST_TIME = 1_000_000_000
"""The longest time that an argument may have, in seconds: about thirty years. Every clock and every database can hold
it.
"""

FARTHEST = 10**15
"""The largest count of seconds at which a clock still counts single seconds exactly, also after conversion to
milliseconds.
"""

_LARGEST_INTEGER = 2**63 - 1
"""The largest whole number that every database can hold."""

_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = 80


def shown(value: object) -> str:
    """Format a value for an error message: its repr, shortened if it is long, and its type."""
    return f"{_repr.repr(value)} ({type(value).__name__})"


def a_value(value: object) -> str:
    """Return the name of a value's type with its article: ``an int``, ``a dict``."""
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def check_type(value: object, kind: type[T], what: str, expected: str) -> T:
    """Check that a value has the type ``kind``. The error describes the expected type with the text ``expected``."""
    if not isinstance(value, kind):
        raise BadInput(f"Expected {what} to be {expected}; got {shown(value)}.")
    return value


def check_flag(value: object, what: str) -> bool:
    """Check that a value is True or False. Other values are refused, since ``cascade="no"`` would count as True."""
    return check_type(value, bool, what, "True or False")


def check_count(value: object, what: str, least: int = 0, most: int = _LARGEST_INTEGER) -> int:
    """Check that a value is a whole number from ``least`` to ``most``, both included."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        bounds = f"from {least} on" if most == _LARGEST_INTEGER else f"from {least} to {most:,}"
        raise BadInput(f"Expected {what} to be a whole number {bounds}; got {shown(value)}.")
    return value


def check_seconds(value: object, what: str, *, zero: bool = True, most: int = LONGEST_TIME) -> float:
    """Check that a value is a time in seconds from 0 to ``most``. Without ``zero``, it must be above 0."""
    seconds = _seconds(value)
    if seconds is None or seconds > most or not (seconds or zero):
        bounds = "0 or more" if zero else "above 0"
        raise BadInput(f"Expected {what} in seconds, {bounds}, at most {most:,}; got {shown(value)}.")
    return seconds


_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 7 * 86_400}
_SPAN = re.compile(r"([0-9]{1,9}) ?([smhdw])")


def is_span(text: str) -> bool:
    """Return whether a text is a length of time, such as ``36h``."""
    return _SPAN.fullmatch(text.strip()) is not None


def parse_span(text: str) -> int:
    """Read a length of time as a person writes it, such as ``30d`` or ``12h``. Return it in milliseconds."""
    match = _SPAN.fullmatch(text.strip())
    if match is None:
        raise BadInput(f"Expected a length of time such as 30d, 12h or 90m; got {text!r}.")
    return int(match[1]) * _SECONDS[match[2]] * 1_000


def check_since(value: object, now: int) -> int:
    """Read a time in the past. Return it in milliseconds since 1970; 0 for None.

    Args:
        value: a `datetime` with its zone, seconds since 1970, or a text: a time as ISO 8601 writes it, with its zone,
            or a length of time until now, as ``36h``.
        now: the current time, in milliseconds since 1970.
    """
    try:
        if isinstance(value, str) and is_span(value):
            return max(0, now - parse_span(value))
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        seconds = moment.timestamp() if isinstance(moment, datetime) and moment.tzinfo is not None else moment
    except (ValueError, OverflowError):
        seconds = value
    if value is not None and (number := _seconds(seconds)) is not None:
        return int(number * 1_000)
    if value is None:
        return 0
    raise BadInput(
        f"Expected since to be a datetime with a zone, seconds since 1970, or a text as '2026-11-26T08:00+00:00' or "
        f"'36h'; got {shown(value)}."
    )


def check_timeout(value: object) -> float | None:
    """Check a time-out in seconds: None waits forever, and 0 returns at once.

    Time-outs are not stored in a database, so they may be longer than `LONGEST_TIME`.
    """
    if value is None:
        return None
    seconds = _seconds(value)
    if seconds is None:
        raise BadInput(f"Expected timeout in seconds, 0 or more, or None to wait forever; got {shown(value)}.")
    return seconds


def _seconds(value: object) -> float | None:
    """Return the value if it is a finite time of at least 0; None for any other value, NaN included."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= FARTHEST:
        return None
    return value


def check_choice(value: object, what: str, choices: Collection[str]) -> str:
    """Check that a value is one of some strings."""
    if not isinstance(value, str) or value not in choices:
        raise BadInput(f"Expected {what} to be one of {', '.join(choices)}; got {shown(value)}.")
    return str(value)


def check_optional(value: object, kind: type[T], what: str, expected: str) -> T | None:
    """Check that a value has the type ``kind`` or is None."""
    return None if value is None else check_type(value, kind, what, f"{expected}, or None")


def check_mapping(value: object, what: str, expected: str) -> Mapping[Any, Any]:
    """Check that a value is a dict. The error describes the expected contents with the text ``expected``."""
    if not isinstance(value, Mapping):
        raise BadInput(f"Expected {what} to be {expected}; got {shown(value)}.")
    return value


def check_variables(value: object, what: str) -> dict[str, str]:
    """Check that a value is a dict of environment variables; None counts as an empty dict."""
    variables = check_mapping({} if value is None else value, what, "a dict from names to texts, or None")
    for name, text in variables.items():
        check_type(name, str, f"each name in {what}", "text")
        check_type(text, str, f"{what}[{name!r}]", "text")
    return {**variables}


def check_plain_function(value: T, what: str, expected: str) -> T:
    """Check that a value is a function and no ``async def``, because a call of that would return a coroutine."""
    check_callable(value, what, expected)
    called = getattr(value, "__call__", None)  # noqa: B004 - an instance may have an async method of this name
    if inspect.iscoroutinefunction(value) or inspect.iscoroutinefunction(called):
        raise BadInput(
            f"Expected {what} to be {expected}, and no async def; got {shown(value)}. Have a function call it by "
            "asyncio.run."
        )
    return value


def check_callable(value: T, what: str, expected: str) -> T:
    """Check that a value is a callable. The text ``expected`` describes its arguments and purpose in the error."""
    if not callable(value):
        raise BadInput(f"Expected {what} to be {expected}; got {shown(value)}.")
    return value


def as_path(file: Any) -> Path:
    """Return a file argument as a `Path`. Raises `BadInput` when it is no path."""
    try:
        path = Path(file)
        bytes(path)  # raises for what no file can be called
    except (TypeError, UnicodeEncodeError):
        raise BadInput(f"Expected file to be a path; got {shown(file)}.") from None
    if not str(file).strip() or "\0" in str(file):
        raise BadInput(f"Expected file to be a path; got {shown(file)}.")
    return path.expanduser()
