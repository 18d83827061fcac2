"""Errors for data of a service that does not follow its protocol. Pure."""

import reprlib
from typing import TypeVar

T = TypeVar("T")


class MalformedStreamError(Exception):
    """Raised if the data of a service do not follow its protocol."""


def expect(kind: type[T], value: object, what: str) -> T:
    """Return the value if it has this type; else raise `MalformedStreamError`, which names ``what``."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise MalformedStreamError(f"the {what} is {reprlib.repr(value)}")
    return value
