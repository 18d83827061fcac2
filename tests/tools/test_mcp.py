"""MCP servers: their tools are called, and whatever becomes of a server harms nobody else. With a real server."""

import asyncio
import json
import logging
import os
import sys
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from mcp import Client
from mcp.server import Server
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCNotification, ListToolsResult, PaginatedRequestParams
from mcp.types import Tool as Listed

from ikigai_actors import ActorSystem, BadInput, McpServer, ScriptedProvider
from ikigai_actors.agent.toolbox import Toolbox
from ikigai_actors.records.messages.replies import reply_of
from ikigai_actors.tools.effect_keys import effect_key
from ikigai_actors.tools.function import LIMIT, Result
from ikigai_actors.tools.mcp.connection import McpTool, list_tools
from ikigai_actors.tools.mcp.lines import Heard
from ikigai_actors.tools.mcp.process import ServerProcess
from ikigai_actors.tools.mcp.server import PAUSES, WINDOW
from tests.kit.blocking_provider import DEADLINE
from tests.kit.mcp_rendezvous import SERVER, Bench, Meeting
from tests.kit.mcp_server import CHILD
from tests.kit.tool_scripts import calling, results

pytestmark = pytest.mark.slow("starts MCP servers")


@pytest.fixture
def meeting(tmp_path: Path) -> Iterator[Meeting]:
    made = Meeting(tmp_path / "meeting")
    yield made
    made.close()


@pytest.fixture(scope="module")
def shared() -> Iterator[Bench]:
    """A server that no test harms."""
    made = Bench()
    made.start(env={"GIVEN": "by the test"})
    yield made
    made.close()


def test_the_tools_of_a_server_have_legal_names_and_its_descriptions(shared: Bench) -> None:
    assert set(shared.tools) >= {"t__add", "t__in_the_wild"}
    described = shared.tools["t__add"].describe()
    assert (described["name"], described["description"]) == ("t__add", "Add two numbers.")
    assert described["input_schema"]["required"] == ["a", "b"]


def test_a_listed_tool_that_breaks_the_protocol_costs_that_tool_alone(bench: Bench) -> None:
    tools = [
        {"name": "none", "inputSchema": {}},
        {"name": "union", "inputSchema": {"anyOf": [{"type": "object"}]}},
        {"name": "add", "inputSchema": {"type": "object"}},
        {"inputSchema": {"type": "object"}},
    ]
    listing = json.dumps({"jsonrpc": "2.0", "id": "$ID", "result": {"tools": tools}})
    bench.open(McpServer([*SERVER, b64encode(f"{listing}\n".encode()).decode()], name="t"))
    assert bench.call("add", a=2, b=3) == Result("5")
    whys = Toolbox([]).add(bench.tools.values())
    assert whys == {
        "t__none": "the server lists it against the protocol (inputSchema.type: Field required)",
        "t__union": "the server lists it against the protocol (inputSchema.type: Field required)",
        "t__tool_4": "the server lists it against the protocol (name: Field required)",
    }


def test_a_schema_of_many_levels_costs_its_tool_alone(bench: Bench) -> None:
    deep: dict[str, object] = {"type": "string"}
    for _ in range(400):
        deep = {"type": "object", "properties": {"a": deep}}
    tools = [{"name": "deep", "inputSchema": deep}, {"name": "add", "inputSchema": {"type": "object"}}]
    listing = json.dumps({"jsonrpc": "2.0", "id": "$ID", "result": {"tools": tools}})
    bench.open(McpServer([*SERVER, b64encode(f"{listing}\n".encode()).decode()], name="t"))
    assert bench.call("add", a=2, b=3) == Result("5")
    assert set(Toolbox([]).add(bench.tools.values())) == {"t__deep"}


def test_what_breaks_the_protocol_beside_an_answer_that_does_too_is_heard_of_by_nobody(
    shared: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    progress = {"method": "notifications/progress", "params": {"progressToken": 1, "progress": "5", "total": "9"}}
    other = {"method": "notifications/message", "params": {"level": "loud", "data": 1}}
    answered = {"id": "$ID", "result": {"content": [{"type": "hologram"}, {"type": "text", "text": "t"}]}}
    lines = "".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in (progress, other, answered))
    with caplog.at_level(logging.DEBUG):
        assert shared.call("say", lines=b64encode(lines.encode()).decode()) == Result('{"type": "hologram"}\nt')
    assert not [record for record in caplog.records if record.exc_info]


def test_a_result_that_does_not_fit_the_server_s_own_schema_is_the_result(bench: Bench) -> None:
    schema = {"type": "object", "properties": {"rows": {"type": "integer"}}, "required": ["rows"]}
    tools = [{"name": "say", "inputSchema": {"type": "object"}, "outputSchema": schema}]
    listing = json.dumps({"jsonrpc": "2.0", "id": "$ID", "result": {"tools": tools}})
    bench.open(McpServer([*SERVER, b64encode(f"{listing}\n".encode()).decode()], name="t"))
    answered = {"jsonrpc": "2.0", "id": "$ID", "result": {"structuredContent": {"rows": "three"}}}
    lines = f"{json.dumps(answered)}\n"
    assert bench.call("say", lines=b64encode(lines.encode()).decode()) == Result('{"rows": "three"}')


def test_calls_give_what_the_server_answers(shared: Bench) -> None:
    assert shared.call("add", a=2, b=3) == Result("5")
    assert shared.call("in_the_wild") == Result("tamed")


def test_a_server_is_sent_the_key_of_a_call_and_how_often_it_was_started() -> None:
    script = ScriptedProvider(lambda asked: seen[0].content if (seen := results(asked)) else calling("t__meta"))
    with ActorSystem.open(":memory:", provider=script, tools=[McpServer(SERVER, name="t")]) as system:
        sent = json.loads(system.root.prompt("go").get(timeout=DEADLINE).text)
        asked, _ = (message for message in system.root.history() if message.kind == "assistant")
        key = effect_key(system.root.uuid, asked.id, reply_of(asked).tool_calls[0].id)
    assert sent == {"ikigai-actors/key": key, "ikigai-actors/attempt": 1}


def test_a_cancelled_call_ends_in_the_server_and_harms_no_other(shared: Bench, meeting: Meeting) -> None:
    _, cancelled = shared.begin("meet", path=meeting.path)
    ending = meeting.visit()
    staying_result, _ = shared.begin("meet", path=meeting.path)
    staying = meeting.visit()
    cancelled.cancel()
    ending.wait_until_it_leaves()
    staying.say("still here")
    assert staying_result.result(DEADLINE) == Result("still here")


def test_what_a_tool_gets_wrong_is_an_error_result(shared: Bench) -> None:
    assert shared.call("fail", text="no such thing") == Result("It failed: no such thing", True)
    assert shared.call("add", a="two", b=3).is_error


def test_blocks_that_are_no_text_become_text(shared: Bench) -> None:
    assert shared.call("blocks").content.splitlines() == [
        "words",
        "[image: image/png, 6 bytes, which cannot be shown as text]",
        "[audio: audio/wav, 6 bytes, which cannot be shown as text]",
        "[file:///a.json]",
        "{}",
        "[file:///b: of unknown type, 6 bytes, which cannot be shown as text]",
        "[file:///c: c the third]",
    ]


def test_a_long_result_is_cut(shared: Bench) -> None:
    text = shared.call("long", length=LIMIT + 7).content
    assert text.startswith("x" * LIMIT)
    assert "7 more characters" in text


def test_a_server_gets_no_secret_of_ours_but_what_it_is_given(
    bench: Bench, shared: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    bench.start()
    assert bench.call("variable", name="SOME_API_KEY") == Result("not set")
    assert shared.call("variable", name="GIVEN") == Result("by the test")


def test_a_call_that_takes_too_long_is_an_error_and_the_server_goes_on(bench: Bench, meeting: Meeting) -> None:
    bench.start(timeout=2)
    add = bench.tools["t__add"]
    assert isinstance(add, McpTool)
    bench.tools["t__add"] = replace(add, timeout=DEADLINE)
    late, _ = bench.begin("meet", path=meeting.path)
    visit = meeting.visit()
    assert "did not finish within 2 s" in late.result(DEADLINE).content
    visit.wait_until_it_leaves()
    assert bench.call("add", a=1, b=1) == Result("2")


def test_a_server_killed_during_a_call_gives_an_error_is_told_and_restarted(bench: Bench, meeting: Meeting) -> None:
    bench.start()
    cut_off, _ = bench.begin("meet", path=meeting.path)
    visit = meeting.visit()
    visit.kill()
    result = cut_off.result(DEADLINE)
    assert result.is_error
    assert "t ended during this call: it may or may not have run" in result.content
    assert bench.hear() == "The MCP server ended; a call to its tools starts it again. Its last words: “ready”."
    again, _ = bench.begin("meet", path=meeting.path)
    successor = meeting.visit()
    assert successor.pid != visit.pid
    successor.say("back")
    assert again.result(DEADLINE) == Result("back")


def test_a_server_killed_between_calls_is_told_and_many_calls_start_it_once(bench: Bench, meeting: Meeting) -> None:
    bench.start()
    bench.end(meeting)
    both = [bench.begin("meet", path=meeting.path)[0] for _ in range(2)]
    visits = [meeting.visit(), meeting.visit()]
    assert visits[0].pid == visits[1].pid
    for visit in visits:
        visit.say("here")
    assert [future.result(DEADLINE) for future in both] == [Result("here")] * 2


def test_a_call_that_is_cancelled_while_the_server_starts_again_harms_no_other(bench: Bench, meeting: Meeting) -> None:
    bench.start()
    bench.end(meeting)
    _, impatient = bench.begin("add", a=1, b=1)
    patient, _ = bench.begin("add", a=2, b=2)
    impatient.cancel()
    assert patient.result(DEADLINE) == Result("4")


def test_a_server_that_ends_again_and_again_is_given_up(bench: Bench, meeting: Meeting) -> None:
    bench.start()
    for pause in PAUSES:
        assert "a call to its tools starts it again" in bench.end(meeting)
        if pause:
            early = bench.call("add", a=1, b=1)
            assert early.is_error
            assert f"Call again in {pause:.0f} s or later" in early.content
            assert "This call did not run." in early.content
        bench.clock.advance(pause)
        assert bench.call("add", a=1, b=1) == Result("2")
    assert "it is given up" in bench.end(meeting)
    bench.clock.advance(10 * WINDOW)
    late = bench.call("add", a=1, b=1)
    assert late.is_error
    assert f"ended {len(PAUSES) + 1} times, and is given up" in late.content


def test_a_server_that_cannot_be_started_again_says_why(bench: Bench, meeting: Meeting, tmp_path: Path) -> None:
    program = tmp_path / "server.py"
    program.write_text(Path(SERVER[-1]).read_text())
    bench.open(McpServer([sys.executable, str(program)], name="t", clock=bench.clock))
    bench.end(meeting)
    program.write_text("raise SystemExit('the disk is full')")
    failed = bench.call("add", a=1, b=1)
    assert failed.is_error
    assert (
        "could not be started again: it ended before it answered. Its last words: “the disk is full”" in failed.content
    )
    assert "the disk is full" in bench.hear()


def test_closing_ends_the_server_and_what_it_started_also_during_a_call(bench: Bench, meeting: Meeting) -> None:
    bench.start()
    _, _ = bench.begin("meet", path=meeting.path)
    server = meeting.visit()
    assert not bench.call("start_child", path=meeting.path).is_error
    child = meeting.visit()
    bench.close()
    server.wait_until_it_leaves()
    child.wait_until_it_leaves()
    with pytest.raises(ProcessLookupError):
        os.kill(server.pid, 0)


def test_what_a_dead_server_leaves_behind_is_ended_too(bench: Bench, meeting: Meeting) -> None:
    bench.start()
    assert not bench.call("start_child", path=meeting.path).is_error
    child = meeting.visit()
    bench.end(meeting)
    child.wait_until_it_leaves()


def test_a_server_whose_child_holds_its_output_has_ended_when_its_process_has(bench: Bench, meeting: Meeting) -> None:
    bench.start()
    assert not bench.call("start_child", path=meeting.path, holds_output=True).is_error
    child = meeting.visit()
    cut_off, _ = bench.begin("meet", path=meeting.path)
    meeting.visit().kill()
    assert "t ended during this call" in cut_off.result(DEADLINE).content
    assert "The MCP server ended; a call to its tools starts it again." in bench.hear()
    assert bench.call("add", a=1, b=1) == Result("2")
    child.kill()


def test_what_a_server_has_written_before_its_end_is_read_whoever_holds_its_output(meeting: Meeting) -> None:
    lines = b"".join(
        b'{"jsonrpc":"2.0","method":"%d"}\n' % number for number in range(2_000)
    )  # as much as a pipe holds
    program = f"""
import subprocess, sys
subprocess.Popen([sys.executable, "-c", {CHILD!r}, {meeting.path!r}], start_new_session=True)
sys.stdout.buffer.write({lines!r})
"""

    def method_of(heard: Heard) -> str:
        assert isinstance(heard, SessionMessage)
        assert isinstance(heard.message, JSONRPCNotification)
        return heard.message.method

    async def heard() -> list[str]:
        read_end, write_end = os.pipe()
        process = await ServerProcess.start([sys.executable, "-c", program], {}, write_end, 1_000)
        await process.ended(DEADLINE)
        async with process.serving(lambda: None, lambda heard: heard) as (received, _):
            methods = [method_of(line) async for line in received]
        os.close(read_end)
        os.close(write_end)
        return methods

    assert asyncio.run(heard()) == [str(number) for number in range(2_000)]
    meeting.visit().kill()


@pytest.mark.thorough("waits two seconds; every run has a server that ends again and again")
def test_a_server_that_reads_no_more_is_started_again(bench: Bench) -> None:
    bench.start()
    assert bench.call("close_input") == Result("closed")
    assert bench.call("add", a=1, b=1).is_error
    assert "a call to its tools starts it again" in bench.hear()
    assert bench.call("add", a=1, b=1) == Result("2")


def test_a_server_hears_half_of_a_character_as_a_whole_one(shared: Bench) -> None:
    assert shared.call("fail", text="a\ud83d") == Result("It failed: a\ufffd", True)
    assert shared.call("add", a=2, b=3) == Result("5")


def test_what_a_server_writes_to_its_standard_error_is_logged_and_not_printed(
    bench: Bench, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "ikigai_actors"):
        bench.start()
        assert bench.call("add", a=1, b=1) == Result("2")
    assert "t: ready" in caplog.messages
    assert capfd.readouterr().err == ""


REFUSED = {
    "a command that does not exist": (["no-such-command", "x"], "there is no command 'no-such-command'. Install it"),
    "a program that ends": (
        [sys.executable, "-m", "no_such"],
        "it ended before it answered. Its last words: .*no_such",
    ),
    "a program that repeats": (["cat"], "does not serve MCP: it answers"),
    "a program that says something else": (["echo", "hello"], "does not serve MCP: it ended before it answered"),
    "a program that never answers": (["tail", "-f", "/dev/null"], "does not serve MCP: it did not answer within 0.3 s"),
}


@pytest.mark.sample(2, "commands")
@pytest.mark.parametrize(("command", "text"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_server_is_bad_input_and_names_the_command(
    command: list[str], text: str, bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(BadInput, match=text) as refused:
        bench.open(McpServer(command, start_timeout=DEADLINE if "tail" not in command else 0.3))
    assert " ".join(command) in str(refused.value)
    assert bench.told.empty()


def test_a_line_up_to_the_limit_is_read_and_a_longer_one_ends_the_server_which_is_told(
    bench: Bench, meeting: Meeting
) -> None:
    bench.start(line_limit=200_000)
    assert "more characters" in bench.call("long", length=90_000).content  # it stands in the line twice
    held, _ = bench.begin("meet", path=meeting.path)
    meeting.visit()
    long = bench.call("long", length=300_000)
    fault = "it wrote a line of more than 200,000 bytes (McpServer's line_limit)"
    for cut_off in (long, held.result(DEADLINE)):
        assert cut_off.is_error
        assert f"t was ended during this call, since {fault}: it may or may not have run" in cut_off.content
    assert f"The MCP server was ended, since {fault}; a call to its tools starts it again." in bench.hear()
    assert bench.call("add", a=1, b=1) == Result("2")


def test_a_line_without_an_end_before_it_serves_is_bad_input_that_says_so(bench: Bench) -> None:
    endless = [sys.executable, "-c", "import sys\nwhile True: sys.stdout.write('x' * 10_000)"]
    with pytest.raises(BadInput, match="it wrote a line of more than 100,000 bytes"):
        bench.open(McpServer(endless, line_limit=100_000, start_timeout=DEADLINE))


def test_opening_that_is_cancelled_leaves_no_process_and_no_task(meeting: Meeting) -> None:
    async def open_and_cancel() -> None:
        opening = asyncio.create_task(McpServer([sys.executable, "-c", CHILD, meeting.path]).open(print))
        visit = await asyncio.to_thread(meeting.visit)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        assert asyncio.all_tasks() == {asyncio.current_task()}
        await asyncio.to_thread(visit.wait_until_it_leaves)

    asyncio.run(open_and_cancel())


def test_all_pages_of_a_listing_are_read() -> None:
    async def answer(_: object, params: PaginatedRequestParams | None) -> ListToolsResult:
        page = int(params.cursor) if params is not None and params.cursor else 0
        tool = Listed(name=f"tool{page}", input_schema={"type": "object"})
        return ListToolsResult(tools=[tool], next_cursor=str(page + 1) if page < 2 else None)

    async def names() -> list[str]:
        async with Client(Server("paged", on_list_tools=answer)) as client:
            return [tool.name for tool in await list_tools(client)]

    assert asyncio.run(names()) == ["tool0", "tool1", "tool2"]


def test_a_listing_whose_cursor_comes_twice_has_ended() -> None:
    async def answer(_: object, params: PaginatedRequestParams | None) -> ListToolsResult:
        tool = Listed(
            name="first" if params is None or params.cursor is None else "next", input_schema={"type": "object"}
        )
        return ListToolsResult(tools=[tool], next_cursor="again")

    async def names() -> list[str]:
        async with Client(Server("turning", on_list_tools=answer)) as client:
            return [tool.name for tool in await list_tools(client)]

    assert asyncio.run(names()) == ["first", "next"]


def test_a_listing_of_the_same_page_with_new_cursors_has_ended() -> None:
    async def answer(_: object, params: PaginatedRequestParams | None) -> ListToolsResult:
        cursor = int(params.cursor) if params is not None and params.cursor else 0
        tools = [Listed(name=name, input_schema={"type": "object"}) for name in "ab"]
        return ListToolsResult(tools=tools, next_cursor=str(cursor + 1))

    async def names() -> list[str]:
        async with Client(Server("endless", on_list_tools=answer)) as client:
            return [tool.name for tool in await list_tools(client)]

    assert asyncio.run(names()) == ["a", "b"]


def test_a_server_that_is_open_is_not_opened_twice(bench: Bench) -> None:
    server = McpServer(SERVER)
    bench.open(server)
    with pytest.raises(BadInput, match="open already"):
        bench.open(server)


def test_a_server_that_was_closed_runs_no_call_and_one_that_was_never_open_is_closed_at_once() -> None:
    async def play() -> Result:
        server = McpServer(SERVER, name="t")
        await server.close()
        [add] = [tool for tool in await server.open(print) if tool.name == "t__add"]
        await server.close()
        return await add.call_async({"a": 1, "b": 1})

    result = asyncio.run(play())
    assert result.is_error
    assert result.content.endswith("is closed. This call did not run.")
