"""Text that can be stored and shown: a caller's text is checked, a text from elsewhere is repaired."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ikigai_actors.arguments import shown
from ikigai_actors.errors import BadInput

if TYPE_CHECKING:
    from pydantic import ValidationError

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
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
    subject = f"The {what.removeprefix('the ')}"
    if "\0" in text:
        raise BadInput(f"{subject} holds a NUL character at {text.index(chr(0))}, which cannot be stored; remove it.")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadInput(
            f"{subject} holds half of a character (a lone surrogate) at {error.start}; remove it."
        ) from error
    return text


def storable(text: str) -> str:
    """Make a text from outside (a model, a tool) fit to be stored: NUL and lone surrogates become U+FFFD."""
    return _UNSTORABLE.sub("\ufffd", text)


def in_catalogue(text: str, tag: str) -> str:
    """Return a text as one line between the tags of a catalogue for a model.

    The line can neither end the catalogue nor steer a terminal.
    """
    return re.sub(rf"<(?=\s*/?\s*{tag}\b)", "&lt;", _CONTROL.sub(" ", text), flags=re.IGNORECASE)


def utc_time(at: int) -> datetime:
    """Return a time in milliseconds since 1970 as an aware `datetime` in UTC."""
    return datetime.fromtimestamp(at / 1000, UTC)


def iso_time(at: int) -> str:
    """Return a time in milliseconds since 1970 in ISO 8601, in UTC: ``2026-11-26T09:28:33.120Z``."""
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def binary_size(count: int) -> str:
    """Return a number of bytes in the largest unit that leaves it whole: ``64 KiB`` for 65,536."""
    for unit, size in (("MiB", 1024 * 1024), ("KiB", 1024)):
        if count and count % size == 0:
            return f"{count // size:,} {unit}"
    return f"{count:,} bytes"


def unambiguous(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object as a dict, for ``object_pairs_hook``. Raises `ValueError` for a repeated key."""
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key is twice in an object")
    return made


def unused(name: str, used: set[str], longest: int) -> str:
    """Return the name, cut to ``longest`` characters, with a number if the name is in ``used``."""
    candidate, number = name[:longest], 1
    while candidate in used:
        number += 1
        candidate = f"{name[: longest - len(str(number)) - 1]}-{number}"
    return candidate


def unfit_fields(error: "ValidationError") -> str:
    """Return, as text, the fields that do not fit their model, each with the reason."""
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}".removeprefix(": ") for fault in faults)


MOST_CAUSES = 5
"""The most errors of a group that are described."""


def causes(error: BaseException) -> list[BaseException]:
    """Return the errors of a group, and of the groups in it; for any other error, that error alone."""
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [cause for each in error.exceptions for cause in causes(each)]


def described(error: BaseException, words: Callable[[BaseException], str | None] = lambda error: None) -> str:
    """Return an error of foreign code as text that can be stored and shown: its type, its message and its notes.

    Of a group, at most `MOST_CAUSES` errors are described, and the group itself is not.

    Args:
        words: gives the text of an error in place of its type and message; None for those.
    """
    chain = causes(error)
    described_alones = [_described_alone(each, words) for each in chain[:MOST_CAUSES]]
    if len(described_alones) > 1:
        left = len(chain) - len(described_alones)
        described_alones = [
            f"{len(chain)} errors:",
            *(f"- {each}" for each in described_alones),
            *([f"- and {left} more"] if left else []),
        ]
    return storable("\n".join([*described_alones, *(_notes(error) if chain != [error] else [])]))


def _described_alone(error: BaseException, words: Callable[[BaseException], str | None]) -> str:
    try:
        text = words(error)
        if text is None:
            text = f"{type(error).__name__}: {error}"
    except BaseException:  # ``__str__`` is foreign code too
        text = f"{type(error).__name__}: (it cannot be shown)"
    return "\n".join([text, *_notes(error)])


def _notes(error: BaseException) -> list[str]:
    notes = getattr(error, "__notes__", None)
    return [note for note in notes if isinstance(note, str)] if isinstance(notes, list) else []
