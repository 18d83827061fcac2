"""Mistakes in the code of whoever uses the library: what it raises, and what it gives instead of an answer."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import strategies as st

from ikigai_actors import Exit, ProviderError, Reply, Request, ToolCall, Usage
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
        {}, optional={"type": kind, "text": parts, "name": odd_or(parts), "input": parts, "id": parts}
    )


def odd_or(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """The name of a tool that there is, or something else."""
    return st.sampled_from(["odd", "agents", "exit"]) | parts


def usages() -> st.SearchStrategy[Any]:
    """What is nearly a usage."""
    return st.none() | anything() | st.builds(Usage, anything(), anything()) | st.builds(Usage, st.integers())


def replies() -> st.SearchStrategy[Any]:
    """What is nearly a reply: each of its fields may be anything."""
    calls = st.builds(ToolCall, odd_or(anything()), anything() | st.just({}), anything() | st.just("id"))
    return st.builds(
        Reply,
        text=st.just("said") | anything(),
        tool_calls=st.just(()) | st.lists(calls | anything(), max_size=2).map(tuple) | anything(),
        stop_reason=st.just("end_turn") | anything(),
        usage=usages(),
        blocks=st.just(()) | st.lists(block(anything()), max_size=2).map(tuple) | anything(),
        model=st.just("") | anything(),
    )


def deltas() -> st.SearchStrategy[Any]:
    """What is nearly a delta."""
    return anything() | st.builds(Delta, anything(), st.just("text") | anything())


def answers() -> st.SearchStrategy[Any]:
    """What somebody may give in the place of an answer."""
    streams = st.builds(Stream, st.lists(deltas(), max_size=2).map(tuple) | anything(), anything() | replies())
    results = st.builds(Result, anything(), anything())
    return anything() | replies() | deltas() | streams | results | st.lists(replies(), max_size=2)


def errors() -> st.SearchStrategy[Callable[[], BaseException]]:
    """What somebody may raise, made anew each time: one that is raised again and again has an endless traceback."""
    kinds: list[Callable[..., BaseException]] = [ValueError, SystemExit, pytest.fail.Exception, ProviderError, OSError]
    failed = st.builds(lambda kind, told: partial(kind, told), st.sampled_from(kinds), anything())
    broken = st.builds(lambda *told: partial(ProviderError, *told), anything(), anything())
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
