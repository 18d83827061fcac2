"""Fingerprints of judges and checks: whether a verdict in a book comes from the present judge or check. Pure.

    @known_as("calls", match, ignore)
    def check(recorded, again): …

A function that makes checks marks each of them with its arguments. Any other function is identified by its name and its
code, so a corrected function has another fingerprint. Values outside of the function, such as a constant of its module,
do not count, nor does the docstring.
"""

import dis
import hashlib
import json
from collections.abc import Callable
from types import CodeType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def known_as(*parts: Any) -> Callable[[F], F]:
    """Mark a function with the values it was made of, for its fingerprint; they must be JSON."""

    def marked(function: F) -> F:
        function.known_as = json.dumps(parts, sort_keys=True)  # type: ignore[attr-defined]  # functions have attributes
        return function

    return marked


def fingerprint(function: Callable[..., Any]) -> str:
    """Return eight letters that differ between functions with different code or parts. The same in each process."""
    identity = getattr(function, "known_as", None)
    if identity is None:
        method = function if hasattr(function, "__qualname__") else type(function).__call__
        plain = getattr(method, "__func__", method)
        code = getattr(plain, "__code__", None)
        named = [getattr(plain, "__module__", ""), getattr(plain, "__qualname__", type(function).__qualname__)]
        identity = json.dumps([*named, [] if code is None else _told(code)])
    return hashlib.sha256(identity.encode()).hexdigest()[:8]


def _told(code: CodeType) -> list[Any]:
    # Those that are loaded: beside them the compiler leaves constants that it has folded, in the order of the source.
    loaded = [instruction.argval for instruction in dis.get_instructions(code) if instruction.opcode in dis.hasconst]
    constants = [_told(constant) if isinstance(constant, CodeType) else _constant(constant) for constant in loaded]
    return [code.co_code.hex(), constants, list(code.co_names)]


def _constant(value: object) -> str:
    return repr(sorted(value, key=repr)) if isinstance(value, frozenset) else repr(value)
