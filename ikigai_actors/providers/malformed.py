"""Errors for data of a service that does not follow its protocol. Pure."""

import reprlib
from typing import TypeVar

T = TypeVar("T")


class MalformedStreamError(Exception):
    """The service sent something unreadable."""


def expect(kind: type[T], value: object, what: str) -> T:
    """Return the value; raises `MalformedStreamError`, naming ``what``, if it has another type."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise MalformedStreamError(f"the {what} is {reprlib.repr(value)}")
    return value
