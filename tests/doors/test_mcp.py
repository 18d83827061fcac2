"""``ikigai mcp`` within this process: its tools by the official client, lost answers, bad arguments, fences."""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from threading import Event
from typing import Any

import pytest
from mcp_types import PROTOCOL_VERSION_META_KEY as VERSION_KEY
from mcp_types import CallToolResult, DiscoverResult, InitializeResult, ListToolsResult
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION, MODERN_PROTOCOL_VERSIONS

from ikigai_actors import ActorSystem, OfflineProvider, Reply, ScriptedProvider, ToolCall, tool
from ikigai_actors.doors.mcp import INSTRUCTIONS, McpDoor
from ikigai_actors.doors.mcp import OFFERED as TOOLS
from ikigai_actors.reach.access import QUICK, Access
from ikigai_actors.tools import ToolError
from ikigai_actors.verbs.tools import tools_for_models
from tests.kit.blocking_provider import DEADLINE, Gate
from tests.kit.databases import eventually
from tests.kit.doors import HELLO, STATELESS_META, McpClient, mcp_server, official, opened, unhosted

Scene = Callable[[ActorSystem, McpClient], Awaitable[None]]


def play(database: str, scene: Scene, provider: Any = None, under: str | None = None, **options: Any) -> None:
    """Play a scene with a client of the door."""
    with opened(database, provider or OfflineProvider(), under, **options) as (host, access):

        async def run() -> None:
            await scene(host, McpClient(mcp_server(access)))

        asyncio.run(run())


def test_the_official_client_lists_the_tools_and_takes_their_answers(durable: str) -> None:
    async def scene(server: McpDoor) -> None:
        async with official(server) as session:
            begun = await session.initialize()
            assert (begun.server_info.name, begun.instructions) == ("ikigai", INSTRUCTIONS)
            listed = (await session.list_tools()).tools
            assert [tool.name for tool in listed] == [*TOOLS, *tools_for_models()]
            assert all(tool.title and tool.annotations for tool in listed)
            assert all(tool.output_schema for tool in listed[: len(TOOLS)])
            arguments_by_name: dict[str, dict[str, Any]] = {
                "fork": {"prompt": "tea", "name": "kid"},
                "prompt": {"agent": "kid", "text": "more"},
                "send": {"agent": "kid", "text": "a mail"},
                "read_mail": {"agent": "kid"},
                "agents": {},
                "history": {"agent": "kid", "last": 3},
                "documents": {"do": "write", "path": "a.md", "text": "# A"},
                "decide": {"agent": "kid", "call": "none", "allow": True},
                "grant": {"agent": "kid", "usd": 1},
                "signal": {"agent": "kid", "signal": "STOP"},
                "kill": {"agent": "kid"},
            }
            # checked by the client
            kept = {name: (await session.call_tool(name, of)) for name, of in arguments_by_name.items()}
            assert [name for name, result in kept.items() if result.is_error] == []
            turn = kept["fork"].structured_content
            assert turn is not None
            again = await session.call_tool("wait", {"handles": [turn["handle"]]})
            assert again.structured_content == {
                "result": [{**turn, "spent": again.structured_content["result"][0]["spent"]}]
            }

    with opened(durable, OfflineProvider(), budget={"usd": 5}) as (_, access):
        asyncio.run(with_server(access, scene))


async def with_server(access: Access, scene: Callable[[McpDoor], Awaitable[None]]) -> None:
    await scene(mcp_server(access))


@pytest.mark.sample(2, "versions")
@pytest.mark.parametrize("version", [*HANDSHAKE_PROTOCOL_VERSIONS, "1999-01-01"])
def test_a_client_that_shakes_hands_gets_its_version_or_the_latest(new_sqlite: Callable[[], str], version: str) -> None:
    async def scene(host: ActorSystem, client: McpClient) -> None:
        result = await client.ask("initialize", **(HELLO | {"protocolVersion": version}))
        InitializeResult.model_validate(result)
        known = version in HANDSHAKE_PROTOCOL_VERSIONS
        assert result["protocolVersion"] == (version if known else LATEST_HANDSHAKE_VERSION)
        assert (await client.ask("ping"), len(INSTRUCTIONS) <= 1_200) == ({}, True)
        assert (await client.ask("resources/list"))["error"]["code"] == -32601

    play(new_sqlite(), scene)


@pytest.mark.sample(2, "lines")
@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"no json", -32700),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', -32600),
        (b'{"id": 1, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": 7}', -32600),
    ],
)
def test_a_line_that_is_no_message_has_an_error_and_the_next_one_an_answer(
    new_sqlite: Callable[[], str], line: bytes, code: int
) -> None:
    async def scene(host: ActorSystem, client: McpClient) -> None:
        client.say(line)
        refused = await client.heard.get()
        assert (refused["id"], refused["error"]["code"]) == (None, code)
        assert await client.ask("ping") == {}

    play(new_sqlite(), scene)


def test_a_call_that_is_given_up_has_no_answer_and_its_turn_goes_on(new_sqlite: Callable[[], str]) -> None:
    gate = Gate("tea")

    async def scene(host: ActorSystem, client: McpClient) -> None:
        turn = await client.call("fork", prompt="work", name="kid", key="k1")
        waiting = asyncio.get_running_loop().create_task(client.call("wait", handles=[turn["handle"]]))
        await asyncio.to_thread(gate.wait_until_asked)
        given_up = {"requestId": client.latest, "reason": "no time"}
        client.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": given_up})
        gate.open()
        assert (await client.call("wait", handles=[turn["handle"]]))[0]["text"] == "tea"
        assert (waiting.done(), client.heard.empty()) == (False, True)
        waiting.cancel()

    play(new_sqlite(), scene, gate.provider, quick=QUICK)


def test_a_client_of_the_stateless_era_says_its_version_with_each_request(new_sqlite: Callable[[], str]) -> None:
    async def scene(host: ActorSystem, client: McpClient) -> None:
        meta = {"_meta": STATELESS_META}
        DiscoverResult.model_validate(discovered := await client.ask("server/discover", **meta))
        assert discovered["supportedVersions"] == [*MODERN_PROTOCOL_VERSIONS]
        ListToolsResult.model_validate(listed := await client.ask("tools/list", **meta))
        CallToolResult.model_validate(called := await client.ask("tools/call", name="agents", arguments={}, **meta))
        assert [result["resultType"] for result in (discovered, listed, called)] == ["complete"] * 3
        refused = await client.ask("tools/list", _meta={**STATELESS_META, VERSION_KEY: "2031-01-01"})
        supported = refused["error"]["data"]["supported"]
        assert (refused["error"]["code"], supported) == (-32022, [*MODERN_PROTOCOL_VERSIONS])

    play(new_sqlite(), scene)


def test_a_turn_is_waited_for_by_its_handle_and_reports_its_progress(durable: str) -> None:
    gate = Gate("tea")

    async def scene(host: ActorSystem, client: McpClient) -> None:
        turn = await client.call("fork", prompt="work", name="kid", key="k1")
        assert (turn["status"], turn["name"]) == ("working", "kid")
        assert await client.call("fork", prompt="work", name="kid", key="k1") == turn
        assert (await client.call("wait", handles=[turn["handle"]], seconds=0))[0]["status"] == "working"
        waiting = asyncio.get_running_loop().create_task(client.call("wait", handles=[turn["handle"]]))
        gate.open()
        assert (await waiting)[0]["text"] == "tea"
        both = await client.call("wait", handles=[turn["handle"]] * 2, any=True)
        assert [view["status"] for view in both] == ["done", "done"]

    play(durable, scene, gate.provider, quick=QUICK)


def test_children_of_one_call_have_a_handle_each_and_a_refused_fork_is_an_error(durable: str) -> None:
    async def scene(host: ActorSystem, client: McpClient) -> None:
        turns = await client.call("fork", prompt="tea", count=3, key="k1")
        assert len({turn["agent"] for turn in turns}) == 3
        again = await client.call("fork", prompt="tea", count=3, key="k1")
        assert [turn["handle"] for turn in again] == [turn["handle"] for turn in turns]
        first = await client.call("fork", prompt="tea", name="kid")
        there = await client.call("fork", prompt="tea", name="kid")
        assert (there["handle"], there["existed"]) == (first["handle"], True)
        assert "choose another name" in await client.call("fork", prompt="another", name="kid")
        assert len(host.agents()) == 5

    play(durable, scene)


def test_a_fork_of_a_busy_agent_has_a_handle_before_the_child_is_born(durable: str) -> None:
    opened_ = Event()

    @tool
    def look() -> str:
        """Look."""
        assert opened_.wait(DEADLINE)
        return "tea"

    def answer(request: Any) -> Reply | str:
        return "done" if len(request.messages) > 1 else Reply(tool_calls=(ToolCall("look", {}),))

    async def scene(host: ActorSystem, client: McpClient) -> None:
        await client.call("prompt", agent=host.root.uuid, text="look")
        turn = await client.call("fork", prompt="later", key="k1")
        assert (turn["status"], turn["agent"]) == ("working", host.root.uuid)
        opened_.set()
        [done] = await client.call("wait", handles=[turn["handle"]])
        assert (done["status"], done["handle"], done["agent"] != host.root.uuid) == ("done", turn["handle"], True)
        again = await client.call("fork", prompt="later", key="k1")
        assert (again["agent"], len(host.agents())) == (done["agent"], 2)

    play(durable, scene, ScriptedProvider(answer), tools=[look], quick=QUICK)


def test_what_needs_a_host_is_not_asked_without_one(durable: str) -> None:
    async def scene(server: McpDoor) -> None:
        client = McpClient(server)
        for name, arguments in (("fork", {"prompt": "tea"}), ("merge", {"agent": "kid", "child": "kid"})):
            assert "nothing was done" in await client.call(name, **arguments, key="k1")

    with opened(durable, OfflineProvider()) as (host, access):
        host.root.fork(name="kid")
        asyncio.run(with_server(unhosted(access), scene))
        assert len(host.agents()) == 2


def test_a_decision_that_comes_again_decides_on_no_other_call_of_the_same_id(durable: str) -> None:
    ran = []

    @tool(policy="ask")
    def shell(command: str) -> str:
        """Run."""
        ran.append(command)
        return "ok"

    replies = [Reply(tool_calls=(ToolCall("shell", {"command": text}, "call_0"),)) for text in ("ls", "rm -rf /")]

    async def scene(host: ActorSystem, client: McpClient) -> None:
        turn = await client.call("prompt", agent=host.root.uuid, text="go")
        decided = {"agent": host.root.uuid, "call": turn["asks"][0]["call"], "allow": True}
        assert await client.call("decide", **decided) is True
        eventually(
            lambda: [call.input["command"] for call in host.approvals.pending()] == ["rm -rf /"], "the next call"
        )
        assert await client.call("decide", **decided) is False
        assert await client.call("decide", **(decided | {"call": "call_0"})) is False
        assert ran == ["ls"]
        [asks] = (await client.call("wait", handles=[turn["handle"]], seconds=0))[0]["asks"]
        assert await client.call("decide", **(decided | {"call": asks["call"], "allow": False})) is True
        assert (await client.call("wait", handles=[turn["handle"]]))[0]["text"] == "done"

    play(durable, scene, ScriptedProvider([*replies, "done"]), tools=[shell], approvals="ask")


def test_a_call_that_waits_for_a_decision_is_shown_and_decided(durable: str) -> None:
    @tool(policy="ask")
    def launch(what: str) -> str:
        """Launch."""
        return f"launched {what}"

    def answer(request: Any) -> Reply | str:
        return "done" if len(request.messages) > 1 else Reply(tool_calls=(ToolCall("launch", {"what": "tea"}),))

    async def scene(host: ActorSystem, client: McpClient) -> None:
        turn = await client.call("prompt", agent=host.root.uuid, text="go")
        [asks] = turn["asks"]
        assert (turn["status"], asks["tool"], asks["arguments"]) == ("asks", "launch", {"what": "tea"})
        decided = {"agent": host.root.uuid, "call": asks["call"], "allow": True}
        assert [await client.call("decide", **decided) for _ in range(2)] == [True, False]
        assert (await client.call("wait", handles=[turn["handle"]]))[0]["text"] == "done"
        said = await client.call("history", agent=host.root.uuid)
        [call] = [message["calls"] for message in said if "calls" in message]
        assert call == [{"id": asks["call"].split("/")[1], "tool": "launch", "arguments": '{"what": "tea"}'}]
        [result] = [message for message in said if message["kind"] == "tool_result"]
        assert (result["id"], result["tool"], result["text"]) == (call[0]["id"], "launch", "launched tea")

    play(durable, scene, ScriptedProvider(answer), tools=[launch], approvals="ask")


def test_a_history_and_a_difference_show_what_was_called_and_how_it_ended(durable: str) -> None:
    @tool
    def weigh(what: str) -> str:
        """Weigh."""
        raise ToolError(f"no scales for {what[:3]}")

    def answer(request: Any) -> Reply | str:
        asked = request.messages[-1]["content"][-1]["type"] == "text"
        return Reply(tool_calls=(ToolCall("weigh", {"what": "tea" * 2_000}),)) if asked else "done"

    async def scene(host: ActorSystem, client: McpClient) -> None:
        kid = await client.call("fork", prompt="go", name="kid")
        await client.call("wait", handles=[kid["handle"]])
        diff = await client.call("diff", a=host.root.uuid, b="kid")
        for messages in (await client.call("history", agent="kid"), diff["b"]["messages"]):
            [reply] = [message for message in messages if "calls" in message]
            assert reply["calls"][0]["arguments"].startswith('{"what": "tea')
            assert (len(reply["calls"][0]["arguments"]), reply["cut"], reply["text"]) == (4_000, True, "")
            [result] = [message for message in messages if message["kind"] == "tool_result"]
            assert (result["tool"], result["is_error"], result["text"]) == ("weigh", True, "no scales for tea")
            assert "cut" not in result

    play(durable, scene, ScriptedProvider(answer), tools=[weigh])


def test_a_turn_that_a_budget_holds_goes_on_with_a_grant(durable: str) -> None:
    async def scene(host: ActorSystem, client: McpClient) -> None:
        turn = await client.call("fork", prompt="tea", budget={"tokens": 0})
        assert turn["status"] == "waiting_for_budget"
        for _ in range(2):
            granted = await client.call("grant", agent=turn["agent"], tokens=9_999, key="k")
            assert granted["granted"] == {"tokens": 9_999}
        while (turns := await client.call("wait", handles=[turn["handle"]]))[0]["status"] == "waiting_for_budget":
            await asyncio.sleep(0.01)  # until the host has heard of the grant
        assert turns[0]["status"] == "done"

    play(durable, scene)


def test_what_is_said_is_merged_once_under_a_key(durable: str) -> None:
    async def scene(host: ActorSystem, client: McpClient) -> None:
        kid = await client.call("fork", prompt="tea", name="kid")
        merge = {"agent": host.root.uuid, "child": "kid", "key": "k1"}
        assert [await client.call("merge", **merge) for _ in range(2)] == [await client.call("merge", **merge)] * 2
        assert [message.kind for message in host.root.history()].count("merge") == 1
        diff = await client.call("diff", a=host.root.uuid, b=kid["agent"])
        assert [diff["a"]["messages"][-1]["kind"], diff["b"]["messages"][0]["kind"]] == ["merge", "fork"]

    play(durable, scene)


def test_only_agents_below_can_be_reached_and_others_are_as_strangers(durable: str) -> None:
    async def scene(host: ActorSystem, client: McpClient) -> None:
        listed = (await client.call("agents"))["result"]
        assert [(row["name"], row["parent"]) for row in listed] == [("team", None), ("kid", host.agent("team").uuid)]
        turn = await client.call("fork", prompt="tea")
        assert host.agent(turn["agent"]).parent == host.agent("team")
        boss = host.agent("boss").uuid
        calls: tuple[tuple[str, dict[str, Any]], ...] = (
            ("prompt", {"agent": "boss", "text": "x"}),
            ("kill", {"agent": host.root.uuid}),
            ("diff", {"a": "kid", "b": "boss"}),
            ("fork", {"prompt": "x", "of": "boss"}),
            ("wait", {"handles": [f"{boss}/t2"]}),
            ("history", {"agent": boss[:6]}),
        )
        for name, arguments in calls:
            answer = await client.call(name, **arguments)
            assert any(words in answer for words in ("nobody is called", "There is no agent", "No agent is named")), (
                answer
            )
        assert (await client.call("prompt", agent="nobody-here", text="x")).replace("nobody-here", "boss") == (
            await client.call("prompt", agent="boss", text="x")
        )

    with opened(durable, OfflineProvider(), "team") as (host, access):
        host.root.fork("run", name="boss").reply()
        host.root.fork(name="team").fork(name="kid")

        async def run(server: McpDoor) -> None:
            await scene(host, McpClient(server))

        asyncio.run(with_server(access, run))


def test_a_door_that_only_reads_offers_nothing_else(new_sqlite: Callable[[], str]) -> None:
    with opened(new_sqlite(), OfflineProvider()) as (_, access):

        async def run() -> None:
            client = McpClient(mcp_server(access, read_only=True))
            names = {tool["name"] for tool in (await client.ask("tools/list"))["tools"]}
            assert names == {"wait", "agents", "history", "diff", "find"}
            assert "Unknown tool" in (await client.ask("tools/call", name="kill", arguments={}))["error"]["message"]

        asyncio.run(run())


WRONG: tuple[tuple[str, Any], ...] = (
    ("fork", {}),
    ("fork", {"prompt": " "}),
    ("fork", {"prompt": "x", "name": "a b\n"}),
    ("fork", {"prompt": "x", "budget": {"euros": 1}}),
    ("prompt", {"agent": "nobody", "text": "x"}),
    ("prompt", {"agent": 7, "text": "x"}),
    ("prompt", {"agent": "kid", "text": "x", "key": "\n"}),
    ("wait", {"handles": ["x"]}),
    ("wait", {"handles": [], "seconds": 1}),
    ("wait", {"handles": ["x"], "seconds": 1e9}),
    ("history", {"agent": "kid", "last": 10_000}),
    ("signal", {"agent": "kid", "signal": "HUP"}),
    ("documents", {"do": "read"}),
    ("documents", {"do": "write", "path": "../x", "text": "x"}),
    ("grant", {"agent": "kid"}),
    ("agents", {"of": 1}),
)


def test_wrong_arguments_are_errors_that_change_nothing(new_sqlite: Callable[[], str]) -> None:
    async def scene(host: ActorSystem, client: McpClient) -> None:
        host.root.fork(name="kid")
        for name, arguments in WRONG:
            answer = await client.ask("tools/call", name=name, arguments=arguments)
            assert answer["isError"], (name, arguments, answer)
            assert "Internal error" not in answer["content"][0]["text"], (name, arguments)
        assert (await client.call("agents", under=None))["more"] == 0  # models give null for what they leave out
        assert (len(host.agents()), host.agent("kid").mails()) == (2, [])

    play(new_sqlite(), scene)


def test_lists_numbers_and_flags_that_a_client_gives_as_texts_are_what_they_say(new_sqlite: Callable[[], str]) -> None:
    async def scene(host: ActorSystem, client: McpClient) -> None:
        turn = await client.call("fork", prompt="2", name="7", key="[1]")  # a text stays one
        assert turn["name"] == "7"
        [waited] = await client.call("wait", handles=json.dumps([turn["handle"]]), seconds="40", any="true")
        assert (waited["status"], host.agent("7").history()[-2].content) == ("done", "2")
        refused = await client.call("wait", handles='"x"')
        assert refused == "wait: handles: '\"x\"' is not of type 'array'."

    play(new_sqlite(), scene)


def test_of_calls_whose_answers_are_lost_each_is_done_once(durable: str) -> None:
    """Half of the answers are lost, and some of the doors with them."""
    chance = random.Random(5)

    async def scene(host: ActorSystem, access: Access) -> None:
        client, lost, heard = McpClient(mcp_server(access)), 0, dict[int, Any]()
        for number in range(12):
            name, arguments = ("prompt", {"agent": "kid", "text": f"p{number}"})
            if number % 3 == 0:
                name, arguments = ("fork", {"prompt": f"f{number}", "name": f"n{number}"})
            while number not in heard:
                answer = await client.call(name, **arguments, key=f"k{number}")
                if chance.random() < 0.5:
                    heard[number] = answer["handle"]
                    continue
                lost += 1
                if chance.random() < 0.2:
                    client = McpClient(mcp_server(access))
        assert (lost > 4, len(set(heard.values()))) == (True, 12)
        waiting = [each["status"] for each in await client.call("wait", handles=list(heard.values()))]
        assert waiting == ["done"] * 12
        said = [message.content for message in host.agent("kid").history() if message.kind == "user"]
        assert sorted(said) == sorted(f"p{number}" for number in range(12) if number % 3)
        assert sorted(record.name or "" for record in host.agents()) == sorted(
            ["", "kid", *(f"n{n}" for n in range(0, 12, 3))]
        )

    with opened(durable, OfflineProvider()) as (host, access):
        host.root.fork(name="kid")
        asyncio.run(scene(host, access))
