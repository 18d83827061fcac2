"""Tools that run: on a thread or the event loop, to their end or past their time."""

import asyncio
import gc
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from ikigai_actors.agent.executor import Executor
from ikigai_actors.programs.tools import StepTool
from ikigai_actors.tools.function import Result, Tool, tool
from ikigai_actors.tools.policy import ToolTraits
from tests.kit.blocking_provider import DEADLINE
from tests.tools.test_tools import add, count_async


@pytest.fixture
def executor() -> Iterator[Executor]:
    opened = Executor()
    yield opened
    opened.close([])


def run(executor: Executor, which: Tool, arguments: Mapping[str, Any]) -> Result:
    """Run a tool as an agent does, and wait for its result."""
    results: list[Result] = []
    there = threading.Event()

    def take(result: Result) -> None:
        results.append(result)
        there.set()

    executor.run_tool(which, arguments, None, take)
    assert there.wait(DEADLINE)
    [result] = results
    return result


@pytest.mark.parametrize("error", [ValueError("bad"), SystemExit(2), KeyboardInterrupt(), StopIteration(1), OSError()])
def test_whatever_a_function_raises_is_an_error_result(executor: Executor, error: BaseException) -> None:
    @tool
    def plain() -> str:
        raise error

    @tool
    async def waits() -> str:
        raise error

    for either in (plain, waits):
        result = run(executor, either, {})
        assert result.is_error
        assert type(error).__name__ in result.content or isinstance(error, StopIteration)
    assert run(executor, add, {"a": 1}) == Result("3")


def test_an_async_tool_that_cancels_itself_is_an_error_result(executor: Executor) -> None:
    @tool
    async def gives_up() -> str:
        raise asyncio.CancelledError

    assert run(executor, gives_up, {}) == Result("The tool was cancelled.", True)


def test_a_tool_that_takes_too_long_is_an_error_result(executor: Executor) -> None:
    never = threading.Event()
    stopped = threading.Event()

    @tool(timeout=0.01)
    def plain() -> str:
        never.wait(DEADLINE)
        return "late"

    @tool(timeout=0.01)
    async def waits() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return "late"

    for either in (plain, waits):
        result = run(executor, either, {})
        assert result == Result(f"{either.name} did not finish within 0.01 s. Its effects so far may remain.", True)
    assert stopped.wait(DEADLINE)
    never.set()


def test_a_time_out_holds_for_an_async_tool_that_does_not_heed_it(executor: Executor) -> None:
    heard, leave = threading.Event(), asyncio.Event()

    @tool(timeout=0.01)
    async def deaf() -> str:
        while not leave.is_set():
            try:
                await leave.wait()
            except asyncio.CancelledError:
                heard.set()
        return "late"

    @tool
    async def let_go() -> str:
        leave.set()
        return ""

    assert "did not finish" in run(executor, deaf, {}).content
    assert heard.wait(DEADLINE)
    run(executor, let_go, {})


def test_a_time_out_of_the_tool_itself_is_its_own_error(executor: Executor) -> None:
    @tool
    async def asks() -> str:
        raise TimeoutError("the server is silent")

    assert run(executor, asks, {}) == Result("TimeoutError: the server is silent", True)


def test_a_run_that_is_cancelled_at_the_last_moment_does_not_begin(executor: Executor) -> None:
    loops: list[asyncio.AbstractEventLoop] = []
    held, release = threading.Event(), threading.Event()
    began: list[str] = []

    @tool
    async def hold() -> str:
        loops.append(asyncio.get_running_loop())
        held.set()
        assert release.wait(DEADLINE)
        return "held"

    @tool
    async def act() -> str:
        began.append("act")
        return "acted"

    executor.run_tool(hold, {}, None, lambda result: None)
    assert held.wait(DEADLINE)
    cancelled = executor.run_tool(act, {}, None, lambda result: began.append(result.content))
    loops[0].call_soon_threadsafe(cancelled.cancel)  # it has its task by then, which has not run
    release.set()
    assert run(executor, count_async, {"text": "x"}) == Result("1")
    assert began == []


def test_no_more_plain_tools_run_at_once_than_there_are_threads() -> None:
    few = Executor(tool_threads=2)
    try:
        entered, leave, over = threading.Semaphore(0), threading.Event(), threading.Semaphore(0)

        @tool
        def hold() -> str:
            entered.release()
            assert leave.wait(DEADLINE)
            return ""

        for _ in range(3):
            few.run_tool(hold, {}, None, lambda _: over.release())
        assert run(few, count_async, {"text": "x"}) == Result("1")  # async tools need no thread
        assert entered.acquire(timeout=DEADLINE)
        assert entered.acquire(timeout=DEADLINE)
        assert not entered.acquire(blocking=False)
        leave.set()
        for _ in range(3):
            assert over.acquire(timeout=DEADLINE)
    finally:
        few.close([])


def test_a_step_of_a_program_takes_no_place_of_a_tool() -> None:
    few, met = Executor(tool_threads=1), threading.Barrier(3)

    def meets(arguments: Mapping[str, Any]) -> str:
        return str(met.wait(DEADLINE) >= 0)

    try:
        over = threading.Semaphore(0)
        for _ in range(2):
            few.run_tool(StepTool("step", ToolTraits(), meets), {}, None, lambda result: over.release())
        assert run(few, add, {"a": 1}) == Result("3")
        met.wait(DEADLINE)
        assert over.acquire(timeout=DEADLINE)
        assert over.acquire(timeout=DEADLINE)
    finally:
        few.close([])


@pytest.mark.slow("takes a tenth of a second")
def test_closing_does_not_wait_for_ever_for_an_async_tool_that_heeds_no_cancellation(
    caplog: pytest.LogCaptureFixture,
) -> None:
    executor, begun = Executor(unwind=0.01), threading.Event()

    @tool
    async def deaf() -> str:
        while True:
            try:
                begun.set()
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue

    executor.run_tool(deaf, {}, None, lambda result: None)
    assert begun.wait(DEADLINE)
    executor.close([])
    del executor
    gc.collect()  # asyncio complains of the tool when it is freed: here, and not in a later test
    assert "was destroyed but it is pending" in caplog.text


def test_a_plain_function_that_returns_a_coroutine_is_an_error_result(executor: Executor) -> None:
    async def hidden() -> str:
        return "never"

    @tool
    def plain() -> Any:
        return hidden()

    result = run(executor, plain, {})
    assert result.is_error
    assert "async def" in result.content
