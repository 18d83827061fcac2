"""AG-UI: a run is a turn, as events of the official schema, which a browser that was cut off hears again."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from pydantic import TypeAdapter

from ikigai_actors import ActorSystem, OfflineProvider, Reply, ScriptedProvider, Signal, ToolCall, tool
from ikigai_actors.doors.agui import WebRuns
from tests.kit.blocking_provider import DEADLINE, Hanging
from tests.kit.doors import opened

core = pytest.importorskip("ag_ui.core", reason="ag-ui-protocol, whose schema is the oracle, is not installed")
EVENT: TypeAdapter[Any] = TypeAdapter(core.Event)

Heard = list[tuple[str, dict[str, Any]]]
"""Events, each with its id."""


class Browser:
    """A client of the door."""

    def __init__(self, client: aiohttp.ClientSession, url: str) -> None:
        self._client, self._url = client, url

    async def run(self, agent: str, text: str, run: str = "r1", **more: Any) -> Heard:
        """The events of a run."""
        asked = {"threadId": "t", "runId": run, "messages": [{"id": "1", "role": "user", "content": text}], **more}
        async with self._client.post(f"{self._url}/agui/{agent}", json=asked) as response:
            if response.status != 200:
                return [("", {"refused": response.status, **await response.json()})]
            return [one async for one in events(response)]

    @asynccontextmanager
    async def following(self, agent: str, after: int = 0) -> AsyncIterator[AsyncIterator[tuple[str, dict[str, Any]]]]:
        async with self._client.get(f"{self._url}/agui/{agent}", params={"after": str(after)}) as response:
            yield events(response)


async def events(response: aiohttp.ClientResponse) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    number = ""
    async for line in response.content:
        if line.startswith(b"id: "):
            number = line[4:].decode().strip()
        elif line.startswith(b"data: "):
            event = json.loads(line[6:])
            EVENT.validate_python(event)
            yield number, event
            number = ""


def play(
    database: str, scene: Callable[[ActorSystem, Browser], Awaitable[None]], provider: Any = None, **more: Any
) -> None:
    with opened(database, provider or OfflineProvider(), **more) as (host, access):

        async def run() -> None:
            runs = WebRuns(access)
            application = web.Application()
            application.router.add_post("/agui/{agent}", runs.post)
            application.router.add_get("/agui/{agent}", runs.get)
            async with TestServer(application) as server, aiohttp.ClientSession() as client:
                await scene(host, Browser(client, f"http://127.0.0.1:{server.port}"))

        asyncio.run(run())


def text_of(heard: Heard) -> str:
    return "".join(event["delta"] for _, event in heard if event["type"] == "TEXT_MESSAGE_CONTENT")


def kinds(heard: Heard) -> list[str]:
    """The types of events, each once where it repeats."""
    names = [event["type"] for _, event in heard]
    return [name for place, name in enumerate(names) if names[place - 1 : place] != [name]]


def test_a_run_is_a_turn_and_the_same_run_again_is_the_same_turn(durable: str) -> None:
    async def scene(host: ActorSystem, browser: Browser) -> None:
        kid = host.root.fork(name="kid")
        for _ in range(2):
            heard = await browser.run("kid", "tea")
            assert kinds(heard) == [
                "RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED"
            ]  # fmt: skip
            assert text_of(heard) == kid.history()[-1].content
            assert (heard[0][1]["runId"], heard[-1][1]["outcome"]) == ("r1", {"type": "success"})
        assert [one.content for one in kid.history() if one.kind == "user"] == ["tea"]
        assert (await browser.run("kid", "coffee"))[0][1]["refused"] == 400  # the key of another call

    play(durable, scene)


def test_who_was_cut_off_hears_the_rest_and_what_comes(durable: str) -> None:
    async def scene(host: ActorSystem, browser: Browser) -> None:
        kid = host.root.fork(name="kid")
        texts = [kid.prompt(f"tea {number}").get(timeout=DEADLINE).text for number in range(3)]
        first = next(one.id for one in kid.history() if one.kind == "assistant")
        async with browser.following("kid", first) as heard:
            got: Heard = []
            while text_of(got) != "".join(texts[1:]):
                got.append(await anext(heard))
            said = await asyncio.to_thread(kid.prompt, "more")
            while kinds(got)[-1] != "TEXT_MESSAGE_END" or len(text_of(got)) <= len("".join(texts[1:])):
                got.append(await anext(heard))
        assert text_of(got) == "".join([*texts[1:], said.get(timeout=DEADLINE).text])
        assert [int(number) for number, _ in got if number] == [
            one.id for one in kid.history() if one.kind == "assistant" and one.id > first
        ]

    play(durable, scene)


@tool(policy="ask")
def launch(what: str) -> str:
    """Launch."""
    return f"launched {what}"


def asks_once(request: Any) -> Reply | str:
    return "done" if len(request.messages) > 1 else Reply(tool_calls=(ToolCall("launch", {"what": "tea"}),))


@pytest.mark.parametrize(("payload", "told"), [({"approved": True}, "launched tea"), ({"approved": False}, "")])
def test_a_call_that_waits_interrupts_the_run_and_is_decided_by_the_next(
    new_sqlite: Callable[[], str], payload: Any, told: str
) -> None:
    async def scene(host: ActorSystem, browser: Browser) -> None:
        host.root.fork(name="kid")
        heard = await browser.run("kid", "go")
        [asked] = heard[-1][1]["outcome"]["interrupts"]
        assert (asked["message"], "TOOL_CALL_ARGS" in kinds(heard)) == ("launch tea", True)
        answer = {"interruptId": asked["id"], "status": "resolved", "payload": payload}
        rest = await browser.run("kid", "", "r2", resume=[answer])
        assert (rest[-1][1]["outcome"], text_of(rest)) == ({"type": "success"}, "done")
        assert told in next(event["content"] for _, event in rest if event["type"] == "TOOL_CALL_RESULT")

    play(new_sqlite(), scene, ScriptedProvider(asks_once), tools=[launch], approvals="ask")


def test_a_turn_that_is_interrupted_or_fails_ends_its_run(new_sqlite: Callable[[], str]) -> None:
    provider = Hanging("tea")

    async def scene(host: ActorSystem, browser: Browser) -> None:
        kid = host.root.fork(name="kid")
        running = asyncio.get_running_loop().create_task(browser.run("kid", "go"))
        await asyncio.to_thread(provider.wait_until_asked)
        await asyncio.to_thread(kid.signal, Signal.INT)
        assert (await running)[-1][1]["outcome"] == {"type": "cancelled"}

    play(new_sqlite(), scene, provider)


@pytest.mark.parametrize(
    "asked", [[], {}, {"runId": "r"}, {"runId": "r", "messages": [{"role": "assistant", "content": "x"}]}]
)
def test_what_is_no_run_is_refused(new_sqlite: Callable[[], str], asked: Any) -> None:
    async def scene(host: ActorSystem, browser: Browser) -> None:
        async with browser._client.post(f"{browser._url}/agui/{host.root.uuid}", json=asked) as response:
            assert response.status == 400
        assert (await browser.run("nobody", "x"))[0][1]["refused"] == 400

    play(new_sqlite(), scene)
