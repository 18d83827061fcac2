"""``ikigai acp`` within this process: each message is of the official schema, and an editor's sessions are agents."""

import asyncio
import base64
from collections.abc import Awaitable, Callable, Mapping
from threading import Event
from typing import Any

import pytest
from acp import schema

from ikigai_actors import (
    ActorSystem,
    FunctionProvider,
    OfflineProvider,
    Reply,
    Request,
    ScriptedProvider,
    ToolCall,
    tool,
)
from ikigai_actors.doors.acp.door import AcpDoor
from ikigai_actors.doors.acp.view import MOST_WAITING
from ikigai_actors.doors.json_rpc import RpcConnection
from ikigai_actors.providers.base import Delta, OnDelta, Usage
from ikigai_actors.reach.access import Access
from ikigai_actors.records.agents.lists import age_of
from tests.kit.blocking_provider import DEADLINE, Hanging
from tests.kit.databases import eventually
from tests.kit.doors import RawClient, opened
from tests.kit.pictures import PNG

ANSWERS = {
    "initialize": "InitializeResponse",
    "session/new": "NewSessionResponse",
    "session/load": "LoadSessionResponse",
    "session/resume": "ResumeSessionResponse",
    "session/fork": "ForkSessionResponse",
    "session/list": "ListSessionsResponse",
    "session/prompt": "PromptResponse",
    "session/close": "CloseSessionResponse",
    "session/set_config_option": "SetSessionConfigOptionResponse",
}
"""The model of each answer in the official schema."""


NEWER = ("subagent_update", "compaction_update", "session_message")
"""The updates that the package's schema does not have yet."""


class Editor(RawClient):
    """An ACP client: what it hears is checked by the official schema, but for what that lacks."""

    def __init__(self, door: AcpDoor) -> None:
        self.updates: list[tuple[str, Mapping[str, Any]]] = []
        self.asked: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        self.loop = asyncio.get_running_loop()
        super().__init__(lambda hear: RpcConnection(door, lambda line: self.loop.call_soon_threadsafe(hear, line)))
        assert isinstance(self.connected, RpcConnection)
        door.begin(self.connected)

    def hear(self, message: Mapping[str, Any]) -> None:
        match message.get("method"):
            case "session/update":
                update = message["params"]["update"]
                if update["sessionUpdate"] not in NEWER:
                    schema.SessionNotification.model_validate(message["params"])
                self.updates.append((message["params"]["sessionId"], update))
            case "session/request_permission":
                schema.RequestPermissionRequest.model_validate(message["params"])
                self.asked.put_nowait(message)
            case "$/cancel_request":
                self.asked.put_nowait(message)
            case _:
                super().hear(message)

    async def ask(self, method: str, **params: Any) -> Any:
        answer = await super().ask(method, **params)
        if "error" not in answer and method in ANSWERS:
            getattr(schema, ANSWERS[method]).model_validate(answer)
        return answer

    async def begin(self, **capabilities: Any) -> Any:
        return await self.ask("initialize", protocolVersion=1, clientCapabilities=capabilities)

    async def new(self) -> str:
        return str((await self.ask("session/new", cwd="/", mcpServers=[]))["sessionId"])

    async def prompt(self, session: str, text: str) -> Any:
        return await self.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    def text(self, session: str, kind: str = "agent_message_chunk") -> str:
        """What was shown in a session so far."""
        return "".join(
            update["content"]["text"]
            for of, update in self.updates
            if of == session and update["sessionUpdate"] == kind
        )

    def answer(self, asked: Mapping[str, Any], option: str | None) -> None:
        outcome = {"outcome": "cancelled"} if option is None else {"outcome": "selected", "optionId": option}
        self.say({"jsonrpc": "2.0", "id": asked["id"], "result": {"outcome": outcome}})


Scene = Callable[[ActorSystem, Callable[[], Editor]], Awaitable[None]]


def play(
    database: str, scene: Scene, provider: Any = None, workspace: str | None = None, unread: int = 0, **options: Any
) -> None:
    """Play a scene with editors that come one after another."""
    with opened(database, provider or OfflineProvider(), None, **options) as (host, access):

        async def run() -> None:
            await scene(host, lambda: Editor(AcpDoor(access, workspace, lambda: unread)))

        asyncio.run(run())


def test_a_session_is_an_agent_whose_answer_comes_after_its_last_text(durable: str) -> None:
    async def scene(host: ActorSystem, editor: Callable[[], Editor]) -> None:
        client = editor()
        begun = await client.begin()
        assert (begun["protocolVersion"], begun["agentCapabilities"]["loadSession"]) == (1, True)
        session = await client.new()
        for number in range(5):
            assert (await client.prompt(session, f"tea {number}"))["stopReason"] == "end_turn"
            assert client.text(session).endswith(host.agent(session).history()[-1].content)
        other = editor()
        await other.begin()
        assert [each["sessionId"] for each in (await other.ask("session/list"))["sessions"]] == [session]
        await other.ask("session/load", sessionId=session, cwd="/", mcpServers=[])
        assert other.text(session) == client.text(session)
        assert other.text(session, "user_message_chunk") == "".join(f"tea {number}" for number in range(5))
        await other.prompt(session, "more")
        assert other.text(session).startswith(client.text(session))  # by two editors, each once

    play(durable, scene)


def test_an_agent_goes_on_from_an_earlier_position_in_a_new_session(durable: str) -> None:
    async def scene(host: ActorSystem, editor: Callable[[], Editor]) -> None:
        client = editor()
        session = await client.new()
        await client.prompt(session, "tea")
        at = host.agent(session).history()[-1].id
        await client.prompt(session, "coffee")
        ours = {"_meta": {"ikigai": {"at": at}}, "cwd": "/", "mcpServers": []}
        forked = (await client.ask("session/fork", sessionId=session, **ours))["sessionId"]
        assert "coffee" not in str(host.agent(forked).history())
        assert (await client.ask("session/delete", sessionId=forked)) == {}
        assert not host.agent(forked).record.living
        assert (await client.ask("session/close", sessionId=session)) == {}
        shown = len(client.updates)
        host.agent(session).prompt("unseen").get(timeout=DEADLINE)
        await client.ask("session/list")
        assert len(client.updates) == shown

    play(durable, scene)


def test_a_turn_is_cancelled_and_so_are_prompts_that_wait(durable: str) -> None:
    provider = Hanging("tea")

    async def scene(host: ActorSystem, editor: Callable[[], Editor]) -> None:
        client = editor()
        session = await client.new()
        loop = asyncio.get_running_loop()
        first = loop.create_task(client.prompt(session, "long"))
        await asyncio.to_thread(provider.wait_until_asked)
        client.say({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}})
        assert (await first)["stopReason"] == "cancelled"

    play(durable, scene, provider)


def test_a_cancel_that_comes_right_behind_a_prompt_ends_it_and_no_later_one(durable: str) -> None:
    provider = Hanging("tea")

    async def scene(host: ActorSystem, editor: Callable[[], Editor]) -> None:
        client = editor()
        await client.begin()
        session = await client.new()
        for _ in range(20):  # each in one write, before anything of the prompt is awaited
            prompt = asyncio.ensure_future(client.prompt(session, "go"))
            await asyncio.sleep(0)
            client.say({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}})
            assert (await prompt)["stopReason"] == "cancelled"
        assert host.statistics().steps == 0  # no request has left
        later = asyncio.ensure_future(client.prompt(session, "go on"))
        agent = host.agent(session)
        await asyncio.to_thread(lambda: eventually(lambda: agent.history()[-1].content == "go on", "the later turn"))
        assert not later.done()
        client.say({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}})
        assert (await later)["stopReason"] == "cancelled"

    play(durable, scene, provider)


def test_a_prompt_that_is_given_up_is_cancelled_alone_and_answered(durable: str) -> None:
    provider = Hanging("tea")

    async def scene(host: ActorSystem, editor: Callable[[], Editor]) -> None:
        client = editor()
        await client.begin()
        session = await client.new()
        first = asyncio.ensure_future(client.prompt(session, "first"))
        await asyncio.to_thread(provider.wait_until_asked)
        number = client.latest
        second = asyncio.ensure_future(client.prompt(session, "second"))
        await asyncio.sleep(0)
        for given_up, answer in ((client.latest, second), (number, first)):
            client.say({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": given_up}})
            assert (await answer)["stopReason"] == "cancelled"
        assert [message.content for message in host.agent(session).history() if message.kind == "user"] == ["first"]

    play(durable, scene, provider)


def test_another_request_that_is_given_up_is_answered_with_an_error(durable: str) -> None:
    async def scene(host: ActorSystem, editor: Callable[[], Editor]) -> None:
        client = editor()
        await client.begin()
        asked = asyncio.ensure_future(client.ask("session/list"))
        await asyncio.sleep(0)
        client.say({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": client.latest}})
        assert (await asked)["error"]["code"] == -32800
        assert "sessions" in await client.ask("session/list")

    play(durable, scene)


def test_a_picture_goes_with_a_prompt(durable: str) -> None:
    async def scene(host: ActorSystem, editor: Callable[[], Editor]) -> None:
        client = editor()
        session = await client.new()
        image = {"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "image/png"}
        await client.ask("session/prompt", sessionId=session, prompt=[image])
        [said] = [each for each in host.agent(session).history() if each.kind == "user"]
        assert [each["media"] for each in said.data["attached"]] == ["image/png"]

    play(durable, scene)


@tool(policy="ask")
def launch(what: str) -> str:
    """Launch."""
    return f"launched {what}"


def asks_once(request: Any) -> Reply | str:
    return "done" if len(request.messages) > 1 else Reply(tool_calls=(ToolCall("launch", {"what": "tea"}),))


def test_a_question_stays_open_when_its_editor_is_gone_and_the_next_one_answers(durable: str) -> None:
    async def scene(host: ActorSystem, editor: Callable[[], Editor]) -> None:
        client = editor()
        session = await client.new()
        loop = asyncio.get_running_loop()
        waits = loop.create_task(client.prompt(session, "go"))
        asked = await client.asked.get()
        assert (asked["params"]["sessionId"], asked["params"]["toolCall"]["title"]) == (session, "launch tea")
        waits.cancel()
        other = editor()
        await other.ask("session/load", sessionId=session, cwd="/", mcpServers=[])
        other.answer(await other.asked.get(), "allow_once")
        assert (await client.asked.get())["method"] == "$/cancel_request"  # decided elsewhere
        assert (await other.prompt(session, "and?"))["stopReason"] == "end_turn"
        assert "launched tea" in str(other.updates)
        assert other.asked.empty()

    play(durable, scene, ScriptedProvider(asks_once), tools=[launch], approvals="ask")


@pytest.mark.parametrize(("option", "message"), [("reject_once", "denied"), ("allow_always", "launched tea")])
def test_a_call_is_decided_by_the_editor(new_sqlite: Callable[[], str], option: str, message: str) -> None:
    async def scene(host: ActorSystem, editor: Callable[[], Editor]) -> None:
        client = editor()
        session = await client.new()
        waits = asyncio.get_running_loop().create_task(client.prompt(session, "go"))
        client.answer(await client.asked.get(), option)
        assert (await waits)["stopReason"] == "end_turn"
        result = next(each for each in host.agent(session).history() if each.kind == "tool_result")
        assert message in result.content or option == "reject_once"
        assert bool(host.agent(session).rules()) is (option == "allow_always")

    play(new_sqlite(), scene, ScriptedProvider(asks_once), tools=[launch], approvals="ask")


@pytest.mark.sample(1, "answers that decide nothing")
@pytest.mark.parametrize(
    "outcome", ["cancelled", {"error": {"code": -32601, "message": "Method not found"}}, {"result": {}}, "maybe"]
)
def test_a_question_that_a_client_does_not_decide_is_said_to_wait(new_sqlite: Callable[[], str], outcome: Any) -> None:
    async def scene(host: ActorSystem, editor: Callable[[], Editor]) -> None:
        client = editor()
        session = await client.new()
        waits = asyncio.get_running_loop().create_task(client.prompt(session, "go"))
        asked = await client.asked.get()
        if isinstance(outcome, str):
            client.answer(asked, None if outcome == "cancelled" else outcome)
        else:
            client.say({"jsonrpc": "2.0", "id": asked["id"], **outcome})
        while not client.text(session, "agent_thought_chunk"):
            await asyncio.sleep(0.01)
        assert "a decision that did not come from here: launch tea." in client.text(session, "agent_thought_chunk")
        [call] = host.approvals.pending()
        host.approvals.approve(call)
        assert (await waits)["stopReason"] == "end_turn"

    play(new_sqlite(), scene, ScriptedProvider(asks_once), tools=[launch], approvals="ask")


def test_a_client_that_cancels_the_turn_with_its_question_hears_of_no_decision_that_is_missing(
    new_sqlite: Callable[[], str],
) -> None:
    async def scene(host: ActorSystem, editor: Callable[[], Editor]) -> None:
        client = editor()
        session = await client.new()
        waits = asyncio.get_running_loop().create_task(client.prompt(session, "go"))
        client.answer(await client.asked.get(), None)
        client.say({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}})
        assert (await waits)["stopReason"] == "cancelled"
        await client.ask("session/list")
        assert client.text(session, "agent_thought_chunk") == ""

    play(new_sqlite(), scene, ScriptedProvider(asks_once), tools=[launch], approvals="ask")


def test_a_session_that_is_closed_ends_its_turn_and_answers_its_prompt(durable: str) -> None:
    provider = Hanging("tea")

    async def scene(host: ActorSystem, editor: Callable[[], Editor]) -> None:
        client = editor()
        session = await client.new()
        waits = asyncio.get_running_loop().create_task(client.prompt(session, "go"))
        await asyncio.to_thread(provider.wait_until_asked)
        assert (await client.ask("session/close", sessionId=session)) == {}
        assert (await waits)["stopReason"] == "cancelled"

    play(durable, scene, provider)


def forks(request: Any) -> Reply | str:
    """A model that forks three levels deep; the lowest one calls a tool that asks."""
    text = str(request.messages[-1])
    for level, below in (("one", "two"), ("two", "three")):
        if f"level {level}" in text:
            return Reply(tool_calls=(ToolCall("fork", {"prompt": f"level {below}"}),))
    if "level three" in text:
        return Reply(tool_calls=(ToolCall("launch", {"what": "tea"}),))
    return "done"


@pytest.mark.sample(1, "orders")
@pytest.mark.parametrize("subagents", [True, False])
def test_children_are_announced_before_they_act_or_never_named(durable: str, subagents: bool) -> None:
    async def scene(host: ActorSystem, editor: Callable[[], Editor]) -> None:
        client = editor()
        await client.begin(**({"subagents": {}} if subagents else {}))
        session = await client.new()
        waits = asyncio.get_running_loop().create_task(client.prompt(session, "level one"))
        asked = await client.asked.get()
        client.answer(asked, "allow_once")
        await waits
        for _ in range(200):
            if "launched tea" in str(client.updates):
                break
            await client.ask("session/list")
        known = {session}
        for of, update in client.updates:
            assert of in known
            if update["sessionUpdate"] == "subagent_update":
                known.add(update["sessionId"])
        children = [record.uuid for record in host.agents() if record.parent_uuid is not None]
        assert known == (set(children) if subagents else {session})
        assert asked["params"]["sessionId"] in known
        assert asked["params"]["toolCall"]["title"].endswith("launch tea")
        assert (asked["params"]["sessionId"] == session) is not subagents

    play(durable, scene, ScriptedProvider(forks), tools=[launch], approvals="ask")


def test_settings_are_changed_by_the_editor(durable: str) -> None:
    async def scene(host: ActorSystem, editor: Callable[[], Editor]) -> None:
        client = editor()
        session = await client.new()
        chosen = await client.ask("session/set_config_option", sessionId=session, configId="model", value="offline")
        assert chosen["configOptions"][0]["currentValue"] == "offline"
        assert host.agent(session).record.living
        refused = await client.ask("session/set_config_option", sessionId=session, configId="mood", value="good")
        assert refused["error"]["code"] == -32602

    play(durable, scene)


def test_sessions_are_listed_a_page_at_a_time(new_sqlite: Callable[[], str]) -> None:
    with opened(new_sqlite(), OfflineProvider(), None) as (host, access):
        born = [child.uuid for child in host.root.fork(count=203)]
        born.append(host.handle(born[7]).fork(name="kid").uuid)
        host.handle(born.pop(9)).kill()

        async def listed() -> list[str]:
            client, uuids, cursor = Editor(AcpDoor(access, None, lambda: 0)), list[str](), None
            while True:
                page = await client.ask("session/list", cursor=cursor)
                uuids += [each["sessionId"] for each in page["sessions"]]
                if (cursor := page.get("nextCursor")) is None:
                    return uuids

        assert sorted(asyncio.run(listed())) == sorted(born)
        part = Access(lambda seconds: access.system, lambda seconds: None, born[7])
        assert [record.uuid for record in part.living((-1, 0, ""), 9)] == [born[7], born[-1]]
        assert [record.uuid for record in part.living(age_of(part.find(None)), 9)] == [born[-1]]


def test_what_a_door_cannot_do_is_refused_with_a_sentence(new_sqlite: Callable[[], str]) -> None:
    async def scene(host: ActorSystem, editor: Callable[[], Editor]) -> None:
        client = editor()
        server = {"name": "x", "command": "x", "args": [], "env": []}
        for method, params, message in (
            ("session/new", {"cwd": "/", "mcpServers": [server]}, "The agents have the tools of their host"),
            ("session/new", {"cwd": "/elsewhere", "mcpServers": []}, "workspace is /work-here"),
            ("session/new", {"cwd": "here", "mcpServers": []}, "absolute path"),
            ("session/load", {"sessionId": "nobody", "cwd": "/work-here", "mcpServers": []}, "No agent is named"),
            ("session/prompt", {"sessionId": host.root.uuid, "prompt": []}, "blank"),
            ("session/prompt", {"sessionId": 7, "prompt": []}, "Expected a PromptRequest. sessionId: Input"),
            ("session/prompt", {"sessionId": host.root.uuid, "prompt": [{"type": "film"}]}, "prompt.0: Input tag"),
            ("session/load", {"sessionId": "nobody", "mcpServers": []}, "cwd: Field required"),
            ("session/list", {"cursor": "x"}, "cursor"),
            ("terminal/create", {}, "Method not found"),
        ):
            assert message in (await client.ask(method, **params))["error"]["message"], method
        assert len(host.agents()) == 1

    play(new_sqlite(), scene, workspace="/work-here")


def test_how_full_the_window_is_and_what_it_costs_are_shown_where_they_are_known(durable: str) -> None:
    def answer(request: Request) -> Reply:
        return Reply("tea", usage=Usage(input_tokens=10, output_tokens=5))

    async def scene(host: ActorSystem, editor: Callable[[], Editor]) -> None:
        client = editor()
        session = await client.new()
        done = await client.prompt(session, "tea?")
        assert done["usage"] == {"totalTokens": 15, "inputTokens": 10, "outputTokens": 5}
        assert not any(update["sessionUpdate"] == "usage_update" for _, update in client.updates)
        host.agent(session).configure(model="anthropic:claude-sonnet-5")
        await client.prompt(session, "more?")
        [shown] = [update for _, update in client.updates if update["sessionUpdate"] == "usage_update"]
        assert (shown["used"], shown["size"], shown["cost"]["currency"]) == (15, 1_000_000, "USD")

    play(durable, scene, FunctionProvider(answer, name="anthropic"))


class Speaks:
    """A provider whose replies come in two pieces, the second one when the test has heard the first."""

    name = "speaks"

    def __init__(self) -> None:
        self.first, self.go_on = Event(), Event()

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        on_delta(Delta("tea "))
        self.first.set()
        await asyncio.to_thread(self.go_on.wait, DEADLINE)
        on_delta(Delta("is green"))
        return Reply("tea is green")

    async def close(self) -> None:
        """Holds nothing."""


@pytest.mark.sample(1, "editors")
@pytest.mark.parametrize("unread", [0, MOST_WAITING + 1])
def test_pieces_come_as_they_are_received_and_a_slow_editor_gets_them_with_the_message(
    durable: str, unread: int
) -> None:
    provider = Speaks()

    async def scene(host: ActorSystem, editor: Callable[[], Editor]) -> None:
        client = editor()
        session = await client.new()
        waits = asyncio.get_running_loop().create_task(client.prompt(session, "tea?"))
        await asyncio.to_thread(provider.first.wait, DEADLINE)
        while not unread and client.text(session) != "tea ":
            await client.ask("session/list")
        assert client.text(session) == ("" if unread else "tea ")
        provider.go_on.set()
        await waits
        assert client.text(session) == "tea is green"

    play(durable, scene, provider, unread=unread)


@pytest.mark.sample(1, "clients")
@pytest.mark.parametrize("knows", [True, False])
def test_a_summary_is_shown_as_one_to_a_client_that_knows_summaries(new_sqlite: Callable[[], str], knows: bool) -> None:
    async def scene(host: ActorSystem, editor: Callable[[], Editor]) -> None:
        first, two = editor(), editor()
        for client in (first, two):
            await client.begin(**({"session": {"compaction": {}}} if knows else {}))
        session = await first.new()
        for text in ("tea", "more", "long " * 9_000, "and more"):
            await first.prompt(session, text)
        await asyncio.to_thread(lambda: host.agent(session).compact(text="We sell tea."))
        await first.prompt(session, "and?")
        await two.ask("session/load", sessionId=session, cwd="/", mcpServers=[])
        for client in (first, two):
            shown = [update for _, update in client.updates if update["sessionUpdate"] == "compaction_update"]
            assert [(each["status"], each["summary"]) for each in shown] == (
                [("completed", [{"type": "text", "text": "We sell tea."}])] if knows else []
            )
            assert ("summarised" in client.text(session, "agent_thought_chunk")) is not knows

    play(new_sqlite(), scene)


def test_a_turn_that_takes_too_many_requests_says_so(new_sqlite: Callable[[], str]) -> None:
    @tool
    def look() -> str:
        """Look."""
        return "a mast"

    async def scene(host: ActorSystem, editor: Callable[[], Editor]) -> None:
        client = editor()
        await client.begin()
        session = await client.new()
        await asyncio.to_thread(lambda: host.agent(session).configure(max_steps=2))
        assert (await client.prompt(session, "Look on."))["stopReason"] == "max_turn_requests"

    asks = ScriptedProvider(lambda request: Reply("", (ToolCall("look", {}),)))
    play(new_sqlite(), scene, asks, tools=[look])


def test_a_request_that_is_sent_again_is_the_same_prompt(new_sqlite: Callable[[], str]) -> None:
    async def scene(host: ActorSystem, editor: Callable[[], Editor]) -> None:
        sender, other = editor(), editor()
        await sender.begin()
        session = await sender.new()
        said = {"sessionId": session, "prompt": [{"type": "text", "text": "tea"}]}
        for client in (sender, sender, other):
            client.say({"jsonrpc": "2.0", "id": "p1", "method": "session/prompt", "params": said})
            assert (await client.heard.get())["result"]["stopReason"] == "end_turn"
        assert [message.kind for message in host.agent(session).history()].count("user") == 2  # one of each client

    play(new_sqlite(), scene)


@pytest.mark.sample(1, "clients")
@pytest.mark.parametrize("subagents", [True, False])
def test_a_mail_to_another_agent_is_shown_to_a_client_that_knows_subagents(
    new_sqlite: Callable[[], str], subagents: bool
) -> None:
    async def scene(host: ActorSystem, editor: Callable[[], Editor]) -> None:
        first, two = editor(), editor()
        for client in (first, two):
            await client.begin(**({"subagents": {}} if subagents else {}))
        session = await first.new()
        kid = await asyncio.to_thread(lambda: host.agent(session).fork(name="kid"))
        await first.prompt(session, '@send {"to": "kid", "body": "Build."}')
        await first.prompt(session, '@send {"to": "nobody", "body": "Lost."}')
        await two.ask("session/load", sessionId=session, cwd="/", mcpServers=[])
        for client in (first, two):
            kinds = [update["sessionUpdate"] for _, update in client.updates]
            mails = [(of, update) for of, update in client.updates if update["sessionUpdate"] == "session_message"]
            assert len(mails) == int(subagents)
            for of, mail in mails:
                assert (of, mail["senderSessionId"], mail["recipientSessionId"]) == (session, session, kid.uuid)
                assert mail["content"] == [{"type": "text", "text": "Build."}]
                assert kinds.index("subagent_update") < kinds.index("session_message")

    play(new_sqlite(), scene)
