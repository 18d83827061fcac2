"""Turns as tasks of MCP, for clients that know the extension."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from ikigai_actors import ActorSystem, Reply, ScriptedProvider, ToolCall, tool
from ikigai_actors.doors.mcp import CAPABILITIES_KEY, TASKS
from tests.kit.blocking_provider import Gate
from tests.kit.doors import STATELESS_META, McpClient, mcp_server, opened

META = {**STATELESS_META, CAPABILITIES_KEY: {"extensions": {TASKS: {}}}}
Scene = Callable[[ActorSystem, McpClient], Awaitable[None]]


@tool(policy="ask")
def saw() -> str:
    """Saw."""
    return "sawn"


def play(database: str, scene: Scene, provider: Any, *, tasks: bool = True) -> None:
    """Play a scene with a client of the door."""
    with opened(database, provider, tools=[saw], approvals="ask") as (host, access):

        async def run() -> None:
            await scene(host, McpClient(mcp_server(access, tasks=tasks)))

        asyncio.run(run())


async def fork(client: McpClient, prompt: str, **meta: Any) -> Any:
    """The result of a call that forks."""
    return await client.ask("tools/call", name="fork", arguments={"prompt": prompt}, _meta=meta or META)


async def over(client: McpClient, task: str) -> Any:
    """A task once it is no more at work."""
    while (state := await client.ask("tasks/get", taskId=task, _meta=META))["status"] == "working":
        await asyncio.sleep(0.01)
    return state


def test_the_id_of_a_task_is_the_handle_of_its_turn(new_sqlite: Callable[[], str]) -> None:
    gate = Gate("built")

    async def scene(host: ActorSystem, client: McpClient) -> None:
        discovered = await client.ask("server/discover", _meta=META)
        assert discovered["capabilities"]["extensions"] == {TASKS: {}}
        task = await fork(client, "Build.")
        assert (task["resultType"], task["status"], task["ttlMs"]) == ("task", "working", None)
        gate.open()
        done = await over(client, task["taskId"])
        assert (done["status"], done["resultType"]) == ("completed", "complete")
        turn = done["result"]["structuredContent"]
        assert (turn["status"], turn["text"]) == ("done", "built")
        waited = await client.ask("tools/call", name="wait", arguments={"handles": [task["taskId"]]}, _meta=META)
        assert waited["structuredContent"]["result"][0]["text"] == "built"
        wrong = await client.ask("tasks/get", taskId="none", _meta=META)
        assert "Expected a handle" in wrong["error"]["message"]

    play(new_sqlite(), scene, gate.provider)


def test_a_call_that_asks_is_a_question_which_the_client_may_answer(new_sqlite: Callable[[], str]) -> None:
    def answer(request: Any) -> Reply | str:
        is_done = "tool_result" in str(request.messages[-1])
        return "done" if is_done else Reply("", (ToolCall("saw", {}, "c1"),))

    async def scene(host: ActorSystem, client: McpClient) -> None:
        task = (await fork(client, "Saw."))["taskId"]
        asks = await over(client, task)
        [(call, question)] = asks["inputRequests"].items()
        assert (asks["status"], question["method"]) == ("input_required", "elicitation/create")
        declined: dict[str, Any] = {call: {"action": "decline"}}
        await client.ask("tasks/update", taskId=task, inputResponses=declined, _meta=META)
        assert (await over(client, task))["status"] == "input_required"
        allowed = {call: {"action": "accept", "content": {"allow": True}}}
        assert "error" not in await client.ask("tasks/update", taskId=task, inputResponses=allowed, _meta=META)
        while (finished := await over(client, task))["status"] == "input_required":
            await asyncio.sleep(0.01)
        assert finished["result"]["structuredContent"]["text"] == "done"

    play(new_sqlite(), scene, ScriptedProvider(answer))


def test_a_task_that_is_cancelled_interrupts_its_turn(new_sqlite: Callable[[], str]) -> None:
    gate = Gate()

    async def scene(host: ActorSystem, client: McpClient) -> None:
        task = (await fork(client, "Build."))["taskId"]
        await asyncio.to_thread(gate.wait_until_asked)
        cancelled = await client.ask("tasks/cancel", taskId=task, _meta=META)
        assert "error" not in cancelled
        assert (await over(client, task))["status"] == "cancelled"
        gate.open()

    play(new_sqlite(), scene, gate.provider)


def test_a_client_that_does_not_say_so_gets_a_turn_and_so_does_each_without_the_flag(
    new_sqlite: Callable[[], str],
) -> None:
    async def scene(host: ActorSystem, client: McpClient) -> None:
        result = await fork(client, "Build.", **STATELESS_META)
        assert result["structuredContent"]["status"] == "done"

    async def without(host: ActorSystem, client: McpClient) -> None:
        assert "structuredContent" in await fork(client, "Build.")
        assert "error" in await client.ask("tasks/get", taskId="x", _meta=META)

    play(new_sqlite(), scene, ScriptedProvider(lambda request: "built"))
    play(new_sqlite(), without, ScriptedProvider(lambda request: "built"), tasks=False)
