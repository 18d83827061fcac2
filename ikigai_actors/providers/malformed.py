"""Errors for data of a service that is not in the form of its protocol. Pure."""

import reprlib
from typing import TypeVar

T = TypeVar("T")


class MalformedStreamError(Exception):
    """The service sent something that cannot be read."""


def expect(kind: type[T], value: object, what: str) -> T:
    """The value; raises `MalformedStreamError` when it is of another type."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise MalformedStreamError(f"the {what} is {reprlib.repr(value)}")
    return value
