"""Checks of arguments. Each returns the value, or raises `BadInput`, which says what was expected and what came.

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
"""The longest time in seconds: thirty years, which every clock and every database can hold."""

FARTHEST = 10**15
"""The most seconds that a clock can count, also in milliseconds, without losing one."""

_LARGEST_INTEGER = 2**63 - 1
"""The largest whole number that every database can hold."""

_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = 80


def shown(value: object) -> str:
    """The value as an error shows it: shortened if it is long, and with its type."""
    return f"{_repr.repr(value)} ({type(value).__name__})"


def a_value(value: object) -> str:
    """The kind of a value with its article: ``an int``, ``a dict``."""
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def check_type(value: object, kind: type[T], what: str, expected: str) -> T:
    """Check for a value of the type ``kind``, which ``expected`` says in words."""
    if not isinstance(value, kind):
        raise BadInput(f"Expected {what} to be {expected}; got {shown(value)}.")
    return value


def check_flag(value: object, what: str) -> bool:
    """Check for True or False; no other value will do, since ``cascade="no"`` would count as True."""
    return check_type(value, bool, what, "True or False")


def check_count(value: object, what: str, least: int = 0, most: int = _LARGEST_INTEGER) -> int:
    """Check for a whole number from ``least`` to ``most``, both included."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        bounds = f"from {least} on" if most == _LARGEST_INTEGER else f"from {least} to {most:,}"
        raise BadInput(f"Expected {what} to be a whole number {bounds}; got {shown(value)}.")
    return value


def check_seconds(value: object, what: str, *, zero: bool = True, most: int = LONGEST_TIME) -> float:
    """Check for a time in seconds: not negative, at most ``most``, and above 0 unless ``zero`` is allowed."""
    seconds = _seconds(value)
    if seconds is None or seconds > most or not (seconds or zero):
        bounds = "0 or more" if zero else "above 0"
        raise BadInput(f"Expected {what} in seconds, {bounds}, at most {most:,}; got {shown(value)}.")
    return seconds


_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 7 * 86_400}
_SPAN = re.compile(r"([0-9]{1,9}) ?([smhdw])")


def is_span(text: str) -> bool:
    """Whether a text is a length of time, as ``36h``."""
    return _SPAN.fullmatch(text.strip()) is not None


def parse_span(text: str) -> int:
    """A length of time as a person writes it, as ``30d`` or ``12h``, in milliseconds."""
    found = _SPAN.fullmatch(text.strip())
    if found is None:
        raise BadInput(f"Expected a length of time such as 30d, 12h or 90m; got {text!r}.")
    return int(found[1]) * _SECONDS[found[2]] * 1_000


def check_since(value: object, now: int) -> int:
    """A time in the past, in milliseconds since 1970; 0 for None.

    Args:
        value: a `datetime` with its zone, seconds since 1970, or a text: a time as ISO 8601 writes it, with its zone,
            or a length of time until now, as ``36h``.
        now: milliseconds since 1970.
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
    """Check for seconds to wait: None waits forever, 0 looks once.

    No database stores them, so they may be more than `LONGEST_TIME`.
    """
    if value is None:
        return None
    seconds = _seconds(value)
    if seconds is None:
        raise BadInput(f"Expected timeout in seconds, 0 or more, or None to wait forever; got {shown(value)}.")
    return seconds


def _seconds(value: object) -> float | None:
    """The value if it is a finite time, and not negative; else None, for NaN too."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= FARTHEST:
        return None
    return value


def check_choice(value: object, what: str, choices: Collection[str]) -> str:
    """Check for one of a few words."""
    if not isinstance(value, str) or value not in choices:
        raise BadInput(f"Expected {what} to be one of {', '.join(choices)}; got {shown(value)}.")
    return str(value)


def check_optional(value: object, kind: type[T], what: str, expected: str) -> T | None:
    """Check for a value of the type ``kind``, or None."""
    return None if value is None else check_type(value, kind, what, f"{expected}, or None")


def check_mapping(value: object, what: str, expected: str) -> Mapping[Any, Any]:
    """Check for a dict, which ``expected`` says in words."""
    if not isinstance(value, Mapping):
        raise BadInput(f"Expected {what} to be {expected}; got {shown(value)}.")
    return value


def check_variables(value: object, what: str) -> dict[str, str]:
    """Check for environment variables, or None for none of them."""
    variables = check_mapping({} if value is None else value, what, "a dict from names to texts, or None")
    for name, text in variables.items():
        check_type(name, str, f"each name in {what}", "text")
        check_type(text, str, f"{what}[{name!r}]", "text")
    return {**variables}


def check_plain_function(value: T, what: str, expected: str) -> T:
    """Check for a callable that returns its value, where an ``async def`` would return a coroutine."""
    check_callable(value, what, expected)
    called = getattr(value, "__call__", None)  # noqa: B004 - an instance may have an async method of this name
    if inspect.iscoroutinefunction(value) or inspect.iscoroutinefunction(called):
        raise BadInput(
            f"Expected {what} to be {expected}, and no async def; got {shown(value)}. Have a function call it by "
            "asyncio.run."
        )
    return value


def check_callable(value: T, what: str, expected: str) -> T:
    """Check for a callable; ``expected`` says its arguments and its purpose in words."""
    if not callable(value):
        raise BadInput(f"Expected {what} to be {expected}; got {shown(value)}.")
    return value


def as_path(file: Any) -> Path:
    """The place of a file. Raises `BadInput` for what is none."""
    try:
        path = Path(file)
        bytes(path)  # raises for what no file can be called
    except (TypeError, UnicodeEncodeError):
        raise BadInput(f"Expected file to be a path; got {shown(file)}.") from None
    if not str(file).strip() or "\0" in str(file):
        raise BadInput(f"Expected file to be a path; got {shown(file)}.")
    return path.expanduser()
