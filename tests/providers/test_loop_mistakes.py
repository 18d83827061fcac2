"""Code of others that would stop, close or hold the event loop: it is the system's, and everybody's."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ikigai_actors import ActorSystem, Reply, Request, ScriptedProvider, ToolCall
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
        async def respond(self, request: Request, on_delta: Any) -> Reply:
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
