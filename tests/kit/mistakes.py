"""Mistakes in the code of whoever uses the library: what it raises, and what it gives instead of an answer."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from functools import partial
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import strategies as st

from ikigai_actors import Exit, ProviderError, Reply, Request
from ikigai_actors.providers.base import Delta, OnDelta
from ikigai_actors.providers.scripted import Stream
from ikigai_actors.tools.function import Result
from ikigai_actors.tools.policy import ToolTraits
from tests.kit.blocking_provider import DEADLINE


class Unshowable(Exception):
    """Has no text, and breaks whoever wants one."""

    def __str__(self) -> str:
        raise LookupError("planted in __str__")


class Bare(ProviderError):
    """Has nothing of what its base class gives."""

    def __init__(self) -> None:
        pass


class BareExit(Exit):
    """Likewise."""

    def __init__(self) -> None:
        pass


ENDINGS: list[Callable[[], BaseException]] = [
    lambda: SystemExit("planted"),
    KeyboardInterrupt,
    GeneratorExit,
    lambda: pytest.fail.Exception("planted"),
    lambda: pytest.skip.Exception("planted"),
    asyncio.CancelledError,
    StopIteration,
    StopAsyncIteration,
    Unshowable,
    Bare,
    lambda: ValueError("half a \ud800 and a \0"),
    lambda: BaseExceptionGroup("planted", [SystemExit(1), ValueError(2)]),
    lambda: ProviderError("planted", partial=5),  # type: ignore[arg-type]  # the mistake
]
"""What other people's code may raise."""


class Remote:
    """A provider that somebody wrote, and that does as it is told."""

    name = "remote"

    def __init__(self, act: Callable[[OnDelta], Any]) -> None:
        self._act = act

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        """Do it."""
        answer: Reply = self._act(on_delta)
        return answer

    async def close(self) -> None:
        """Holds nothing."""


def raising(make: Callable[[], BaseException]) -> Callable[..., Any]:
    """Code that raises it."""

    def act(*_: Any) -> Any:
        raise make()

    return act


class OddTool:
    """A tool that somebody wrote without our decorator."""

    name = "odd"
    timeout = DEADLINE

    def __init__(self, act: Callable[[], Any], is_async: bool) -> None:
        self._act, self.is_async, self.traits = act, is_async, ToolTraits()

    def describe(self) -> dict[str, Any]:
        """See `Tool.describe`."""
        return {"name": "odd", "description": "Odd.", "input_schema": {"type": "object", "properties": {}}}

    def call(self, arguments: Any) -> Any:
        """See `Tool.call`."""
        return self._act()

    async def call_async(self, arguments: Any) -> Any:
        """See `Tool.call_async`."""
        return self._act()


class Unprintable:
    """Cannot be printed, compared or counted."""

    def __repr__(self) -> str:
        raise LookupError("planted in __repr__")

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        raise LookupError("planted in __eq__")

    __hash__ = None  # type: ignore[assignment]  # what has no hash has None

    def __bool__(self) -> bool:
        raise LookupError("planted in __bool__")


def anything() -> st.SearchStrategy[Any]:
    """Values of every type."""
    plain = (
        st.none()
        | st.booleans()
        | st.integers()
        | st.sampled_from([-(2**70), float("nan"), float("inf"), 0.5, 1j])
        | st.text(max_size=5)
        | st.sampled_from(["\0", "\ud800", "end_turn", "tool_use", "text", "odd"])
        | st.binary(max_size=3)
        | st.builds(object)
        | st.builds(Unprintable)
        | st.sampled_from([Reply, len, ..., range(3), frozenset({1}), bytearray(b"a"), Exit("not raised")])
        | st.builds(pow, st.just(10), st.just(5000))
        | st.builds(deep, st.just(2000))
    )
    return st.recursive(
        plain,
        lambda parts: (
            st.lists(parts, max_size=3)
            | st.lists(parts, max_size=3).map(tuple)
            | st.dictionaries(st.text(max_size=3) | st.integers() | st.none(), parts, max_size=3)
            | block(parts)
        ),
        max_leaves=6,
    )


def deep(levels: int) -> list[Any]:
    """Lists in lists."""
    nested: list[Any] = []
    for _ in range(levels):
        nested = [nested]
    return nested


def block(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """What is nearly a content block."""
    kind: st.SearchStrategy[Any] = st.sampled_from(["text", "tool_use", "thinking"]) | parts
    return st.fixed_dictionaries(
        {}, optional={"type": kind, "text": parts, "name": st.just("odd") | parts, "input": parts, "id": parts}
    )


def parts_of(hint: Any) -> tuple[Any, ...]:
    """The alternatives of a type."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def is_record(hint: Any) -> bool:
    """Whether it is a dataclass."""
    return is_dataclass(hint)


def fields_of(record: type[Any]) -> dict[str, Any]:
    """The fields of a record, with their types."""
    hints = get_type_hints(record)
    return {each.name: hints[each.name] for each in fields(record)}


def nearly(hint: Any) -> st.SearchStrategy[Any]:
    """What is nearly of this type: in a record each field may be anything, as deep as there are records."""
    strategies: list[st.SearchStrategy[Any]] = [anything()]
    for part in parts_of(hint):
        if is_record(part):
            strategies.append(st.builds(part, **{name: nearly(each) for name, each in fields_of(part).items()}))
        elif get_origin(part) is tuple:
            strategies.append(st.lists(nearly(get_args(part)[0]), max_size=2).map(tuple))
        elif get_origin(part) is Mapping:
            strategies.append(block(anything()) | st.just({}))
        elif part is str:
            strategies.append(st.sampled_from(["said", "odd", "agents", "exit", "end_turn", "thinking"]))
        elif part is float:  # seconds: more of them would be waited for
            return st.just(0.0) | anything().filter(lambda value: not isinstance(value, int | float))
    return st.one_of(strategies)


VALUES = (None, True, -1, 2**70, 0, 0.5, float("nan"), "text", b"", ("a",), [5], {"a": object()}, object(), Reply)
"""Values, each of which is right in few places."""


def fits(value: Any, hint: Any) -> bool:
    """Whether a value that is no record is right for a type."""
    if hint is Any:
        return True
    if isinstance(hint, TypeVar):  # the value of a typed turn, which may be any; or a handle
        return hint.__covariant__
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if kind is Literal:
        return value in inner
    if isinstance(value, bool):
        return kind is bool
    if kind is int:
        return isinstance(value, int) and 0 <= value <= 10**15  # of tokens
    if kind is float:
        return isinstance(value, int | float) and 0 <= value < 10**9
    if getattr(kind, "_is_protocol", False) or (isinstance(value, str) and kind is not str):
        return False
    if isinstance(kind, type) and issubclass(kind, Mapping) and isinstance(value, Mapping):
        return not inner or all(any(fits(each, part) for part in parts_of(inner[1])) for each in value.values())
    if inner and issubclass(kind, Iterable):
        return isinstance(value, Iterable) and all(
            any(fits(each, part) for part in parts_of(inner[0])) for each in value
        )
    return isinstance(value, kind)


def wrong(hint: Any) -> Iterator[Any]:
    """Values that are wrong for a type in exactly one place, whatever records it is made of."""
    parts = parts_of(hint)
    yield from (value for value in VALUES if not any(fits(value, part) for part in parts))
    for part in parts:
        if get_origin(part) is tuple:
            yield from ((each,) for each in wrong(get_args(part)[0]))
        elif is_record(part):
            for name, each in fields_of(part).items():
                yield from (replace(right(part), **{name: value}) for value in wrong(each))


def right(hint: Any) -> Any:
    """A value that is right for a type."""
    if is_record(hint):
        required = [each.name for each in fields(hint) if MISSING is each.default and MISSING is each.default_factory]
        return hint(**{name: right(each) for name, each in fields_of(hint).items() if name in required})
    return hint()


def answers() -> st.SearchStrategy[Any]:
    """What somebody may give in the place of an answer."""
    records = [nearly(record) for record in (Reply, Delta, Stream, Result)]
    return st.one_of(anything(), *records, st.lists(nearly(Reply), max_size=2))


def errors() -> st.SearchStrategy[Callable[[], BaseException]]:
    """What somebody may raise, made anew each time: one that is raised again and again has an endless traceback."""
    kinds: list[Callable[..., BaseException]] = [ValueError, SystemExit, pytest.fail.Exception, ProviderError, OSError]
    failed = st.builds(lambda kind, text: partial(kind, text), st.sampled_from(kinds), anything())
    broken = st.builds(lambda *text: partial(ProviderError, *text), anything(), anything())
    exits = anything().map(lambda result: partial(_exit, result))
    return st.sampled_from(ENDINGS) | failed | broken | exits


def _exit(result: Any) -> Exit:
    end = Exit("text")
    end.result = result
    return end


def acts() -> st.SearchStrategy[Callable[..., Any]]:
    """Code that gives, or raises, anything."""

    def giving(value: Any) -> Callable[..., Any]:
        return lambda *_: value

    return answers().map(giving) | errors().map(raising)
