"""Agents and the real program with the tools of an MCP server."""

import json
import queue
import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, BadInput, McpServer, OfflineProvider, ScriptedProvider, attachment
from ikigai_actors.agent.subscriptions import Event, ToolTrouble
from ikigai_actors.records.fsck.check import check
from ikigai_actors.tools.mcp.server import mcp_servers
from tests.kit.blocking_provider import DEADLINE
from tests.kit.mcp_rendezvous import COMMAND, SERVER, Meeting
from tests.kit.pictures import PDF, PNG
from tests.kit.program import Program, run
from tests.kit.tool_scripts import calling, requests_of, results

pytestmark = pytest.mark.slow("starts programs and MCP servers")

ROOT = Path(__file__).parents[2]

CHILD_OF_DEAF = """
import os, socket
test = socket.socket(socket.AF_UNIX)
test.connect(sys.argv[1])
test.send(b"%d\\n" % os.getpid())
"""
"""Has the server itself meet the test, which sees it leave when its process ends."""


@pytest.fixture
def meeting(tmp_path: Path) -> Iterator[Meeting]:
    made = Meeting(tmp_path / "meeting")
    yield made
    made.close()


def test_two_servers_of_one_name_are_refused_in_a_system_and_numbered_on_the_command_line(meeting: Meeting) -> None:
    with pytest.raises(BadInput, match="Two tools are named 'mcp_server__"):
        ActorSystem.open(":memory:", OfflineProvider(), tools=[McpServer(COMMAND), McpServer(COMMAND)])
    assert [server.name for server in mcp_servers([COMMAND, "uvx other", COMMAND])] == [
        "mcp_server",
        "other",
        "mcp_server-2",
    ]


def test_pictures_and_documents_of_a_server_are_attached_to_the_result_for_the_model_to_see() -> None:
    picture = {"type": "image", "data": b64encode(PNG).decode(), "mimeType": "image/jpeg"}  # the bytes decide
    plan = {"uri": "file:///home/plan.pdf", "blob": b64encode(PDF).decode()}
    content = [{"type": "text", "text": "Two:"}, picture, {"type": "resource", "resource": plan}]
    answered = json.dumps({"jsonrpc": "2.0", "id": "$ID", "result": {"content": content}}) + "\n"
    script = ScriptedProvider([calling(("t__say", {"lines": b64encode(answered.encode()).decode()})), "nice"])
    with ActorSystem.open(":memory:", script, tools=[McpServer(SERVER, name="t", policy="allow")]) as system:
        assert system.root.prompt("Show me.").get(timeout=DEADLINE).text == "nice"
        [result] = [message for message in system.root.history() if message.kind == "tool_result"]
        stored = [attachment(PNG), attachment(PDF, "plan.pdf")]
        assert result.data["attached"] == [attachment.stored() for attachment in stored]
        assert not result.data.get("is_error")
        [block] = requests_of(script, None)[1].messages[-1]["content"]
        assert [part["type"] for part in block["content"]] == ["image", "document", "text"]
        assert b64encode(PNG).decode() in str(block["content"][0])
        assert str(block["content"][2]["text"]).startswith(f"Two:\n[image/png, {len(PNG)} bytes]\n[plan.pdf, ")
        assert check(system._store) == []


def test_a_server_that_ends_is_named_to_subscribers(meeting: Meeting) -> None:
    script = ScriptedProvider([calling(("t__meet", {"path": meeting.path})), "sorry"])
    heard: queue.Queue[Event] = queue.Queue()
    server = McpServer(SERVER, name="t", policy="allow")
    with ActorSystem.open(":memory:", script, tools=[server]) as system:
        system.subscribe(lambda event: heard.put(event) if isinstance(event, ToolTrouble) else None)
        asked = system.root.aio.prompt("go")
        meeting.visit().kill()
        assert asked.get(timeout=DEADLINE).text == "sorry"
        trouble = heard.get(timeout=DEADLINE)
        assert isinstance(trouble, ToolTrouble)
        assert (trouble.toolset, "starts it again" in trouble.text) == ("t", True)
        [result] = results(requests_of(script, None)[1])
        assert result.is_error


@pytest.mark.thorough("a program with a server; every run has the same calls in one process")
def test_the_program_calls_the_tools_of_a_server_and_tells_when_it_ends(meeting: Meeting) -> None:
    command = f"{sys.executable} -m tests.kit.mcp_sdk_server"
    with Program.at_terminal("--database", ":memory:", "--mcp", command) as program:
        program.expect("> ")
        program.say('@tests_kit_mcp_sdk_server__add {"a": 20, "b": 22}')
        program.expect("tests_kit_mcp_sdk_server__add gave: 42\n.*> ")
        program.say(f'@tests_kit_mcp_sdk_server__meet {{"path": "{meeting.path}"}}')
        meeting.visit().kill()
        program.expect(r"Find out before you repeat it\.\n(.*\n)?.*> ")
        program.say('@tests_kit_mcp_sdk_server__add {"a": 1, "b": 2}')
        program.expect("tests_kit_mcp_sdk_server__add gave: 3\n(.*\n)?.*> ")
        assert "tests_kit_mcp_sdk_server: The MCP server ended; a call to its tools starts it again." in program.said
        assert "\nready" not in program.said


def test_the_program_says_once_which_tool_it_leaves_out_and_why() -> None:
    tools = [{"name": "none", "inputSchema": {}}, {"name": "add", "inputSchema": {"type": "object"}}]
    listing = json.dumps({"jsonrpc": "2.0", "id": "$ID", "result": {"tools": tools}}) + "\n"
    command = f"{COMMAND} {b64encode(listing.encode()).decode()}"
    done = run(
        "--database", ":memory:", "--provider", "offline", "--mcp", command, lines='@mcp_server__add {"a":1,"b":2}\n'
    )
    assert done.stderr.count("mcp_server__none, because the server lists it against the protocol") == 1
    assert "mcp_server__add" in done.stdout


def test_kill_9_of_the_program_ends_also_a_server_that_is_deaf_to_the_end_of_its_input(
    meeting: Meeting, tmp_path: Path
) -> None:
    deaf = tmp_path / "deaf.py"
    deaf.write_text(
        "import signal, sys\n"
        "for number in (signal.SIGTERM, signal.SIGHUP): signal.signal(number, signal.SIG_IGN)\n"
        "from tests.kit import mcp_server\n"
        f"{CHILD_OF_DEAF}"
        "try: mcp_server.serve()\n"
        "finally:\n"
        "    while True: signal.pause()\n"
    )
    server = f"{sys.executable} {deaf} {meeting.path}"
    with Program.by_pipe("--database", ":memory:", "--mcp", f"env PYTHONPATH={ROOT} {server}") as program:
        visit = meeting.visit()
        program.kill()
        visit.wait_until_it_leaves()
