"""Text that can be stored and shown: a caller's text is checked, a text from elsewhere is repaired."""

import re
from datetime import UTC, datetime

from ikigai_actors.arguments import shown
from ikigai_actors.errors import BadInput

_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")


def check_text(text: str, what: str) -> str:
    """Return a text unchanged if every database can hold it.

    Args:
        text: the text to check.
        what: its name in the error.

    Raises:
        BadInput: it is no text, or it has a NUL or a lone surrogate.
    """
    if not isinstance(text, str):
        raise BadInput(f"Expected {what} to be text; got {shown(text)}.")
    told = f"The {what.removeprefix('the ')}"
    if "\0" in text:
        raise BadInput(f"{told} holds a NUL character at {text.index(chr(0))}, which cannot be stored; remove it.")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadInput(f"{told} holds half of a character (a lone surrogate) at {error.start}; remove it.") from error
    return text


def storable(text: str) -> str:
    """Make a text from outside (a model, a tool) fit to be stored: NUL and lone surrogates become U+FFFD."""
    return _UNSTORABLE.sub("\ufffd", text)


def utc_time(at: int) -> datetime:
    """A time in milliseconds since 1970, as an aware datetime."""
    return datetime.fromtimestamp(at / 1000, UTC)


def iso_time(at: int) -> str:
    """A time in milliseconds since 1970 as ISO 8601 writes it, in UTC: ``2026-11-26T09:28:33.120Z``."""
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def binary_size(count: int) -> str:
    """A number of bytes in the largest unit that leaves it whole: ``64 KiB`` for 65,536."""
    for unit, size in (("MiB", 1024 * 1024), ("KiB", 1024)):
        if count and count % size == 0:
            return f"{count // size:,} {unit}"
    return f"{count:,} bytes"


def unused(name: str, used: set[str], longest: int) -> str:
    """The name, cut to a length, with a number if it is used already."""
    candidate, number = name[:longest], 1
    while candidate in used:
        number += 1
        candidate = f"{name[: longest - len(str(number)) - 1]}-{number}"
    return candidate


def described(error: BaseException) -> str:
    """An error of foreign code as text that can be stored and shown: its type, and its message if that can be had."""
    try:
        text = f"{error}"
    except BaseException:  # ``__str__`` is foreign code too
        text = "(it cannot be shown)"
    return storable(f"{type(error).__name__}: {text}")
