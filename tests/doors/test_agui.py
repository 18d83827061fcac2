"""AG-UI: a run is a turn, as events, which a browser that was cut off hears again."""

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiohttp
import pytest

from ikigai_actors import ActorSystem, OfflineProvider, Reply, ScriptedProvider, Signal, ToolCall, tool
from ikigai_actors.doors.agui.transcript import CUT_NOTICE
from ikigai_actors.doors.protocols import DoorApplication
from ikigai_actors.http_server.acceptor import ConnectionLimits, listen
from ikigai_actors.http_server.guard import Guard
from ikigai_actors.http_server.server import serving
from tests.kit.agui import Shown, Verifier
from tests.kit.blocking_provider import DEADLINE, Hanging, Speaker
from tests.kit.databases import eventually
from tests.kit.doors import mcp_server, opened

Heard = list[tuple[str, dict[str, Any]]]
"""Events, each with its id."""


class Browser:
    """A client of the door: it refuses what the official one refuses, and shows what that shows."""

    def __init__(self, client: aiohttp.ClientSession, url: str) -> None:
        self._client, self.url = client, url
        self.shown = Shown()
        self.runs: list[dict[str, Any]] = []
        """Each run, of others of its kind too: the messages before it, and its events."""

    def another(self) -> "Browser":
        """One that has heard nothing yet."""
        other = Browser(self._client, self.url)
        other.runs = self.runs
        return other

    async def run(self, agent: str, text: str = "", run: str = "r1", **more: Any) -> Heard:
        """The events of a run."""
        heard: Heard = []
        async for event in self.events(agent, text, run, **more):
            heard.append(event)
        return heard

    async def events(
        self, agent: str, text: str = "", run: str = "r1", **more: Any
    ) -> AsyncGenerator[tuple[str, dict[str, Any]], None]:
        """The events of a run, as they come."""
        if text:
            self.shown.messages.append({"id": f"said in {run}", "role": "user", "content": text})
        asked = {"threadId": "t", "runId": run, "messages": self.shown.messages, **more}
        async with self._client.post(f"{self.url}/agui/{agent}", json=asked) as response:
            if response.status != 200:
                yield "", {"refused": response.status, **await response.json()}
                return
            verifier = Verifier()
            record: dict[str, Any] = {"messages": json.loads(json.dumps(self.shown.messages)), "events": []}
            self.runs.append(record)
            async for number, event in events(response):
                record["events"].append(event)
                verifier.take(event)
                self.shown.take(event)
                yield number, event

    async def decide(self, agent: str, run: str, payload: Any) -> Heard:
        """The run that decides on all that waits."""
        answers = [
            {"interruptId": interrupt["id"], "status": "resolved", "payload": payload}
            for interrupt in self.shown.interrupts
        ]
        return await self.run(agent, run=run, resume=answers)

    @asynccontextmanager
    async def following(self, agent: str, after: int = 0) -> AsyncIterator[AsyncIterator[tuple[str, dict[str, Any]]]]:
        async with self._client.get(f"{self.url}/agui/{agent}", params={"after": str(after)}) as response:
            yield events(response)

    @property
    def texts(self) -> list[str]:
        """What the agent says, as it is shown."""
        return [message.get("content", "") for message in self.shown.messages if message["role"] == "assistant"]


async def events(response: aiohttp.ClientResponse) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    number = ""
    async for line in response.content:
        if line.startswith(b"id: "):
            number = line[4:].decode().strip()
        elif line.startswith(b"data: "):
            yield number, json.loads(line[6:])
            number = ""


Scene = Callable[[ActorSystem, Browser], Awaitable[None]]

TOKEN = "t" * 43


def play(database: str, scene: Scene, provider: Any = None, **more: Any) -> None:
    with opened(database, provider or OfflineProvider(), **more) as (host, access):

        async def run() -> None:
            listening = listen("127.0.0.1", 0)
            application = DoorApplication(mcp_server(access).server, access)
            place = f"127.0.0.1:{listening.getsockname()[1]}"
            guard = Guard(place, token=TOKEN)
            headers = {"Authorization": f"Bearer {TOKEN}"}
            async with (
                serving(application, guard, listening, ConnectionLimits(), DEADLINE),
                aiohttp.ClientSession(headers=headers) as client,
            ):
                await scene(host, Browser(client, f"http://{place}"))

        asyncio.run(run())


def text_of(heard: Heard) -> str:
    """What the agent says."""
    own = {event["messageId"] for _, event in heard if event.get("role") == "assistant"}
    return "".join(
        event["delta"] for _, event in heard if event["type"] == "TEXT_MESSAGE_CONTENT" and event["messageId"] in own
    )


def kinds(heard: Heard) -> list[str]:
    """The types of events, each once where it repeats."""
    names = [event["type"] for _, event in heard]
    return [name for place, name in enumerate(names) if names[place - 1 : place] != [name]]


async def until_text(heard: AsyncIterator[tuple[str, dict[str, Any]]], text: str) -> Heard:
    """The events up to the one with which this was said."""
    got: Heard = []
    while text_of(got) != text:
        got.append(await asyncio.wait_for(anext(heard), DEADLINE))
    return got


def test_a_run_is_a_turn_and_the_same_run_again_is_the_same_turn(durable: str) -> None:
    async def scene(host: ActorSystem, browser: Browser) -> None:
        kid = host.root.fork(name="kid")
        for client in (browser, browser.another()):
            heard = await client.run("kid", "tea")
            assert kinds(heard) == [
                "RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED"
            ]  # fmt: skip
            assert text_of(heard) == kid.history()[-1].content
            assert (heard[0][1]["runId"], heard[-1][1]["outcome"]) == ("r1", {"type": "success"})
        assert [message.content for message in kid.history() if message.kind == "user"] == ["tea"]
        assert (await browser.run("kid", "coffee"))[0][1]["refused"] == 400  # the key of another call

    play(durable, scene)


def test_who_was_cut_off_hears_the_rest_and_what_comes(durable: str) -> None:
    async def scene(host: ActorSystem, browser: Browser) -> None:
        kid = host.root.fork(name="kid")
        texts = [kid.prompt(f"tea {number}").get(timeout=DEADLINE).text for number in range(3)]
        first = next(message.id for message in kid.history() if message.kind == "assistant")
        async with browser.following("kid", first) as heard:
            got = await until_text(heard, "".join(texts[1:]))
            said = await asyncio.to_thread(kid.prompt, "more")
            got += await until_text(heard, said.get(timeout=DEADLINE).text)
            got.append(await anext(heard))
        shown = Shown()
        for _, event in got:
            shown.take(event)
        assert [(message["role"], message["content"]) for message in shown.messages] == [
            (message.kind, message.content)
            for message in kid.history()
            if message.kind in ("user", "assistant") and message.id > first
        ]
        assert [int(number) for number, _ in got if number] == [
            message.id for message in kid.history() if message.kind in ("user", "assistant") and message.id > first
        ]

    play(durable, scene)


async def two_streamed_turns(host: ActorSystem, browser: Browser, speaker: Speaker) -> None:
    """Each reply comes in pieces; a second client hears the end of it."""
    host.root.fork(name="kid")
    for number in (1, 2, 3):
        heard = browser.events("kid", "tea", f"r{number}")
        await anext(heard)
        await asyncio.to_thread(speaker.say, f"number {number}, ")
        await until_text(heard, f"number {number}, ")
        speaker.say("in several pieces.", None)
        assert [event["type"] async for _, event in heard][-1] == "RUN_FINISHED"
    assert browser.texts == [f"number {number}, in several pieces." for number in (1, 2, 3)]


async def a_join(host: ActorSystem, browser: Browser, speaker: Speaker) -> None:
    """A client joins a run in the middle of a reply; one more after the reply, which is cut off and comes again."""
    host.root.fork(name="kid")
    heard = browser.events("kid", "tea")
    await anext(heard)
    await asyncio.to_thread(speaker.say, "one two ")
    await until_text(heard, "one two ")
    other = browser.another()
    joined = other.events("kid", "tea")
    await until_text(joined, "one two ")
    speaker.say("three", None)
    for client, events_of in ((browser, heard), (other, joined)):
        assert [event["outcome"] async for _, event in events_of if event["type"] == "RUN_FINISHED"]
        assert client.texts == ["one two three"]
    assert [message["id"] for message in browser.shown.messages[1:]] == [
        message["id"] for message in other.shown.messages[1:]
    ]
    late = browser.another()
    await late.run("kid", "tea")
    assert late.shown.messages == other.shown.messages


async def a_return(host: ActorSystem, browser: Browser, speaker: Speaker) -> None:
    """A client goes away in the middle of a reply, and asks for the same run with what it has."""
    host.root.fork(name="kid")
    heard = browser.events("kid", "tea")
    await anext(heard)
    await asyncio.to_thread(speaker.say, "one two ")
    await until_text(heard, "one two ")
    await heard.aclose()
    speaker.say("three", None)
    asked = browser.events("kid")
    assert [event["outcome"]["type"] async for _, event in asked if event["type"] == "RUN_FINISHED"] == ["success"]
    assert browser.texts == ["one two three"]


@tool(policy="ask")
def launch(what: str) -> str:
    """Launch."""
    return f"launched {what}"


async def an_approval(host: ActorSystem, browser: Browser, speaker: Speaker) -> None:
    """A reply says something and asks; approved, its turn goes on, and asks by a call of the same id."""
    host.root.fork(name="kid")
    running = asyncio.ensure_future(browser.run("kid", "go"))
    for number in (1, 2):
        call = ToolCall("launch", {"what": f"tea {number}"}, "call_0")
        await asyncio.to_thread(speaker.say, f"I look {number}. ", Reply(tool_calls=(call,)))
        assert (await running)[-1][1]["outcome"]["type"] == "interrupt"
        running = asyncio.ensure_future(browser.decide("kid", f"d{number}", {"approved": True}))
    speaker.say("done", None)
    assert (await running)[-1][1]["outcome"] == {"type": "success"}
    assert browser.texts == ["I look 1. ", "I look 2. ", "done"]
    calls = [call["function"] for message in browser.shown.messages for call in message.get("toolCalls", ())]
    assert [json.loads(asked["arguments"]) for asked in calls] == [{"what": "tea 1"}, {"what": "tea 2"}]
    assert [message["content"] for message in browser.shown.messages if message["role"] == "tool"] == [
        "launched tea 1",
        "launched tea 2",
    ]


SCENES = (two_streamed_turns, a_join, a_return, an_approval)


@pytest.mark.sample(2, "runs of the client")
@pytest.mark.parametrize("scene", SCENES)
def test_the_official_client_shows_what_was_said_once(scene: Any, new_sqlite: Callable[[], str]) -> None:
    speaker = Speaker()
    play(new_sqlite(), lambda *arguments: scene(*arguments, speaker), speaker, tools=[launch], approvals="ask")


def play_a_lost_host(database: str, judge: Callable[[Browser], None]) -> None:
    """A host ends in the middle of a reply, and the next one has the model say it from its beginning."""
    first, second = Speaker(), Speaker()

    async def scene(host: ActorSystem, browser: Browser) -> None:
        host.root.fork(name="kid")
        heard = browser.events("kid", "tea")
        await anext(heard)
        await asyncio.to_thread(first.say, "one two ")
        await until_text(heard, "one two ")
        await asyncio.to_thread(host.close)
        with ActorSystem.open(database, provider=second, resume=True):
            await asyncio.to_thread(second.say, "three ")
            while browser.texts[-1] != "three ":
                await asyncio.wait_for(anext(heard), DEADLINE)
            second.say("four", None)
            assert [event["outcome"] async for _, event in heard if event["type"] == "RUN_FINISHED"]
        judge(browser)

    play(database, scene, first)


def test_a_reply_that_is_cut_off_with_its_host_says_so_and_comes_again(new_sqlite: Callable[[], str]) -> None:
    def judge(browser: Browser) -> None:
        assert browser.texts == ["one two " + CUT_NOTICE, "three four"]

    play_a_lost_host(new_sqlite(), judge)


def test_a_client_that_goes_away_ends_its_stream_alone(
    new_sqlite: Callable[[], str], caplog: pytest.LogCaptureFixture
) -> None:
    speaker = Speaker()

    async def scene(host: ActorSystem, browser: Browser) -> None:
        kid = host.root.fork(name="kid")
        heard = browser.events("kid", "tea")
        await anext(heard)
        async with browser.following("kid", kid.history()[-1].id) as followed:
            await asyncio.to_thread(speaker.say, "one ")
            await until_text(heard, "one ")
            await until_text(followed, "one ")
        await heard.aclose()
        other = browser.another()
        joined = other.events("kid", "tea")
        await until_text(joined, "one ")
        for text in ("two ", "three "):  # the first write after the end of a connection may not know of it
            speaker.say(text)
            while not other.texts[-1].endswith(text):
                await asyncio.wait_for(anext(joined), DEADLINE)
        speaker.say(None)
        assert [event["type"] async for _, event in joined][-1] == "RUN_FINISHED"
        assert other.texts == ["one two three "]

    play(new_sqlite(), scene, speaker)
    assert caplog.records == []


def test_many_streams_have_one_subscription(new_sqlite: Callable[[], str]) -> None:
    def subscriptions() -> int:
        return sum(thread.name == "ikigai-subscriber" for thread in threading.enumerate())

    async def scene(host: ActorSystem, browser: Browser) -> None:
        kid, before = host.root.fork(name="kid"), subscriptions()
        async with AsyncExitStack() as streams:
            heard = [await streams.enter_async_context(browser.following("kid")) for _ in range(5)]
            assert subscriptions() == before + 1
            said = await asyncio.to_thread(kid.prompt, "tea")
            text = said.get(timeout=DEADLINE).text
            for stream in heard:
                await until_text(stream, text)
        await asyncio.to_thread(eventually, lambda: subscriptions() == before, "the end of the subscription")

    play(new_sqlite(), scene)


@pytest.mark.sample(1, "places")
@pytest.mark.parametrize("after", ["x", "-1", "1" * 20, "²"])
def test_a_place_that_is_none_is_refused(new_sqlite: Callable[[], str], after: str) -> None:
    async def scene(host: ActorSystem, browser: Browser) -> None:
        async with browser._client.get(f"{browser.url}/agui/{host.root.uuid}", params={"after": after}) as response:
            assert (response.status, await response.json()) == (
                400,
                {"error": f"Expected after to be the position of a message; got {after!r}."},
            )

    play(new_sqlite(), scene)


def asks_once(request: Any) -> Reply | str:
    return "done" if len(request.messages) > 1 else Reply(tool_calls=(ToolCall("launch", {"what": "tea"}),))


@pytest.mark.sample(1, "decisions")
@pytest.mark.parametrize(("payload", "result"), [({"approved": True}, "launched tea"), ({"approved": False}, "")])
def test_a_call_that_waits_interrupts_the_run_and_is_decided_by_the_next(
    new_sqlite: Callable[[], str], payload: Any, result: str
) -> None:
    async def scene(host: ActorSystem, browser: Browser) -> None:
        host.root.fork(name="kid")
        heard = await browser.run("kid", "go")
        [asked] = heard[-1][1]["outcome"]["interrupts"]
        assert (asked["message"], "TOOL_CALL_ARGS" in kinds(heard)) == ("launch tea", True)
        assert asked["toolCallId"] == heard[-2][1]["toolCallId"]
        rest = await browser.decide("kid", "r2", payload)
        again = await browser.another().run(
            "kid", run="r3", resume=[{"interruptId": asked["id"], "status": "cancelled"}]
        )
        assert [event["type"] for _, event in again] == [event["type"] for _, event in rest]  # decided is decided
        refused = await browser.run(
            "kid", run="r4", resume=[{"interruptId": "3/call_0/00000000", "status": "resolved"}]
        )
        assert refused[0][1]["refused"] == 400
        assert (rest[-1][1]["outcome"], text_of(rest)) == ({"type": "success"}, "done")
        assert result in next(event["content"] for _, event in rest if event["type"] == "TOOL_CALL_RESULT")

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


RUN = {"threadId": "t", "runId": "r"}


@pytest.mark.sample(1, "bodies")
@pytest.mark.parametrize(
    ("asked", "wrong"),
    [
        ([], "Input should be an object"),
        ({}, "threadId: Field required; runId: Field required; messages: Field required"),
        ({**RUN, "messages": [{"id": "m", "role": "user"}]}, "messages.0.user.content: Field required"),
        ({**RUN, "messages": [{"id": "m", "role": "assistant", "content": "x"}]}, "one that the user says"),
        ({**RUN, "messages": [], "resume": [{"interruptId": "3/c", "status": "maybe"}]}, "resume.0.status: Input"),
    ],
)
def test_what_is_no_run_is_refused_with_what_is_wrong_with_it(
    new_sqlite: Callable[[], str], asked: Any, wrong: str
) -> None:
    async def scene(host: ActorSystem, browser: Browser) -> None:
        async with browser._client.post(f"{browser.url}/agui/{host.root.uuid}", json=asked) as response:
            assert (response.status, wrong in (await response.json())["error"]) == (400, True)
        assert (await browser.run("nobody", "x"))[0][1]["refused"] == 400

    play(new_sqlite(), scene)
