"""Text that can be stored and shown: checked where it comes from a caller, mended where it comes from elsewhere."""

import re

from ikigai_actors.arguments import shown
from ikigai_actors.errors import BadInput

_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")


def check_text(text: str, what: str) -> str:
    """Return text that every database can hold, or raise `BadInput` (NUL and lone surrogates cannot be stored)."""
    if not isinstance(text, str):
        raise BadInput(f"Expected {what} to be text; got {shown(text)}.")
    if "\0" in text:
        raise BadInput(f"The {what} holds a NUL character at {text.index(chr(0))}, which cannot be stored; remove it.")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadInput(
            f"The {what} holds half of a character (a lone surrogate) at {error.start}; remove it."
        ) from error
    return text


def storable(text: str) -> str:
    """Text from outside (a model, a tool) as it can be stored: NUL and lone surrogates become U+FFFD."""
    return _UNSTORABLE.sub("\ufffd", text)


def described(error: BaseException) -> str:
    """An error of other people's code as it can be stored and shown: its type and its text, if that can be had."""
    try:
        text = f"{error}"
    except BaseException:  # their code too
        text = "(it cannot be shown)"
    return storable(f"{type(error).__name__}: {text}")
