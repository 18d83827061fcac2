"""Code of others that would stop, close or hold the event loop: it is the system's, and everybody's."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from ikigai_actors import ActorSystem, FunctionProvider, Reply, Request, ScriptedProvider, ToolCall
from ikigai_actors.actors.futures import TimedOut
from ikigai_actors.actors.loop_watchdog import HOLD, CodeLine, culprit
from ikigai_actors.actors.threads import SystemThreads
from ikigai_actors.agent.executor import Executor
from ikigai_actors.providers.base import OnDelta
from ikigai_actors.system.platform import SYSTEM_PLATFORM
from ikigai_actors.testing.simulation.clock import ManualClock
from ikigai_actors.tools.function import tool
from tests.kit.blocking_provider import DEADLINE

CLOSERS: list[Callable[[asyncio.AbstractEventLoop], Any]] = [
    lambda loop: loop.stop(),
    lambda loop: loop.close(),
    lambda loop: loop.shutdown_asyncgens(),
    lambda loop: loop.shutdown_default_executor(),
]
"""What other people's code does to a loop that it takes for its own."""


def asks_for_tool(request: Request) -> Any:
    """A model: a child says pong, agent 0 calls the tool once."""
    if request.name:
        return "pong"
    return "done" if request.messages[-1]["content"][0]["type"] == "tool_result" else [ToolCall("ends")]


@pytest.mark.sample(3, "ways to end a loop")
@pytest.mark.parametrize("act", CLOSERS)
@pytest.mark.parametrize("from_thread", [False, True])
def test_a_tool_that_would_end_the_event_loop_is_told_so_and_hurts_nobody_else(
    act: Callable[[asyncio.AbstractEventLoop], Any], from_thread: bool
) -> None:
    @tool(policy="allow", name="ends")
    async def on_loop() -> str:
        await asyncio.sleep(0)
        answer = act(asyncio.get_running_loop())
        if asyncio.iscoroutine(answer):
            await answer
        return "ended"

    loops: list[asyncio.AbstractEventLoop] = []

    class Remembering(ScriptedProvider):
        async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
            loops.append(asyncio.get_running_loop())
            return await super().respond(request, on_delta)

    @tool(policy="allow", name="ends")
    def in_thread() -> str:
        answer = act(loops[0])
        if asyncio.iscoroutine(answer):
            asyncio.run_coroutine_threadsafe(answer, loops[0]).result(DEADLINE)
        return "ended"

    with ActorSystem.open(":memory:", Remembering(asks_for_tool), tools=[in_thread if from_thread else on_loop]) as s:
        lead = s.root.fork(name="lead")
        children = [lead.fork(name=f"k{number}") for number in range(2)]
        assert s.root.prompt("x").get(timeout=DEADLINE).text == "done"
        assert [child.prompt("x").get(timeout=DEADLINE).text for child in (*children, *children)] == ["pong"] * 4
        [result] = [message for message in s.root.history() if message.kind == "tool_result"]
        assert "The event loop is the system's" in result.content
        assert {record.status for record in s.agents()} == {"running"}


def test_a_callback_that_stops_the_event_loop_is_logged_and_the_loop_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    @tool(policy="allow")
    async def ends() -> str:
        loop = asyncio.get_running_loop()
        loop.call_soon(loop.stop)
        await asyncio.sleep(0)
        return "left"

    with ActorSystem.open(":memory:", ScriptedProvider(asks_for_tool), tools=[ends]) as system:
        child = system.root.fork(name="child")
        assert system.root.prompt("x").get(timeout=DEADLINE).text == "done"
        assert child.prompt("x").get(timeout=DEADLINE).text == "pong"
    assert any("The event loop is the system's" in str(record.exc_info) for record in caplog.records)


class Stepped(SystemThreads):
    """The machine's threads; what they would repeat, the test does."""

    def __init__(self) -> None:
        self.repeated: list[Callable[[], object]] = []

    def repeat(self, seconds: float, call: Callable[[], object], name: str) -> Callable[[], None]:
        self.repeated.append(call)
        return lambda: None


class Held:
    """A function that blocks the event loop until it is let go."""

    def __init__(self) -> None:
        self.entered, self.leave = threading.Event(), threading.Event()

    async def __call__(self, request: Request) -> str:
        self.entered.set()
        assert self.leave.wait(DEADLINE)  # the mistake
        return "late"


def named(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "held the event loop" in record.getMessage()]


def test_whoever_holds_the_event_loop_for_more_than_a_second_is_named_once_with_the_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    threads, clock, held = Stepped(), ManualClock(), Held()

    async def answer(request: Request) -> str:
        return await held(request) if request.name == "culprit" else "well"

    parts = replace(SYSTEM_PLATFORM, threads=threads, clock=clock)
    with ActorSystem.open(":memory:", FunctionProvider(answer), parts=parts) as system:
        [look] = threads.repeated
        child = system.root.fork(name="culprit")
        for again in range(2):
            held.entered.clear()
            held.leave.clear()
            late = child.prompt("x")
            assert held.entered.wait(DEADLINE)
            innocent = system.root.prompt("y")
            look()
            assert len(named(caplog)) == again
            for _ in range(3):
                clock.advance(HOLD)
                look()
            assert len(named(caplog)) == 1
            held.leave.set()
            assert innocent.get(timeout=DEADLINE).text == "well"
            assert late.get(timeout=DEADLINE).text == "late"
    [line] = named(caplog)
    assert "Provider function, asked by agent culprit, has held" in line
    assert f"{__file__}:" in line
    assert "in __call__: assert self.leave.wait(DEADLINE)  # the mistake" in line


def test_a_loop_that_is_busy_with_many_short_callbacks_is_not_held(caplog: pytest.LogCaptureFixture) -> None:
    threads, clock = Stepped(), ManualClock()
    executor = Executor(threads=threads, clock=clock)
    [look] = threads.repeated
    for _ in range(3):
        entered, leave = threading.Event(), threading.Event()

        def short(entered: threading.Event = entered, leave: threading.Event = leave) -> None:
            entered.set()
            assert leave.wait(DEADLINE)

        executor._loop.call_soon_threadsafe(short)
        assert entered.wait(DEADLINE)
        look()
        leave.set()
        clock.advance(HOLD)
    executor.close([])
    assert named(caplog) == []


def test_closing_beside_a_coroutine_that_never_lets_go_of_the_loop_names_it() -> None:
    held, executor = Held(), Executor(held=0.01)
    executor.ask_model(FunctionProvider(held), Request("a", None, "m", "", ()), None, print, print)
    assert held.entered.wait(DEADLINE)
    with pytest.raises(TimedOut, match=r"Provider function, asked by agent a, at .* in __call__: .*let it return"):
        executor.close([])
    held.leave.set()
    while True:
        with suppress(TimedOut):
            executor.close([])
            return


HERE = CodeLine("/home/me/app.py", 7, "respond")
LIBRARY = CodeLine("/venv/lib/python3.11/site-packages/requests/api.py", 59, "get")
STANDARD = CodeLine(threading.__file__, 1, "wait")
OURS = CodeLine(FunctionProvider.respond.__code__.co_filename, 1, "respond")


@pytest.mark.parametrize(
    ("lines", "blamed"),
    [
        ([STANDARD, LIBRARY, HERE, OURS, STANDARD], HERE),
        ([STANDARD, HERE, LIBRARY, HERE._replace(number=9), OURS], HERE),
        ([STANDARD, LIBRARY, OURS, STANDARD], LIBRARY),
        ([OURS, STANDARD], OURS),
        ([CodeLine("<stdin>", 1, "f"), STANDARD], CodeLine("<stdin>", 1, "f")),
    ],
)
def test_the_line_to_blame_is_the_innermost_of_the_user_then_of_a_library(
    lines: list[CodeLine], blamed: CodeLine
) -> None:
    assert culprit(lines) == blamed
