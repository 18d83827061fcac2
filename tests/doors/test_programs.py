"""Doors as programs: the official client drives them; they and their hosts are killed, and nothing is lost or twice."""

import asyncio
import json
import os
import random
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import acp
import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from ikigai_actors.doors.lines import LONGEST_MESSAGE
from ikigai_actors.reach.views import scrollback_of
from ikigai_actors.records.agents import registry
from ikigai_actors.system.remote.client import Client
from tests.kit.databases import eventually
from tests.kit.doors import HELLO
from tests.kit.program import COMMAND, PATIENCE, environment
from tests.kit.zygote import popen

pytestmark = pytest.mark.slow("starts programs, and kills them")


class Home:
    """A user with a database, in a directory of a test."""

    def __init__(self, directory: Path) -> None:
        self.database = str(directory / "team.db")
        self.environ = {**environment(), "IKIGAI_HOME": str(directory / "home")}

    def words(self, *words: str) -> list[str]:
        return ["--database", self.database, "--provider", "offline", *words]

    def host(self) -> int:
        """The pid of the host that runs the agents."""
        with suppress(Exception), Client.open(self.database) as client:
            return 0 if (host := client.host()) is None else host.pid
        return 0

    def awaited_host(self) -> int:
        eventually(self.host, "a host")
        return self.host()

    def kill_host(self) -> None:
        """Kill the host, and wait for the next one."""
        os.kill(killed := self.awaited_host(), signal.SIGKILL)
        eventually(lambda: self.host() not in (0, killed), "the next host")

    def prompts(self) -> list[str]:
        """What agents were prompted with, in order."""
        with Client.open(self.database) as client:
            every = [
                message
                for agent in client.read(registry.every)
                for message in scrollback_of(client, agent.uuid).latest(10_000)
            ]
        own = {(message.agent_uuid, message.id): message.content for message in every if message.kind == "user"}
        return sorted(own.values())


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path)
    yield made
    if pid := made.host():
        os.kill(pid, signal.SIGKILL)


def words_of(home: Home, words: tuple[str, ...]) -> list[str]:
    """A command line: with --app, which decides, no provider is named."""
    return home.words(*words) if "--app" not in words else ["--database", home.database, *words]


class Door:
    """A door that is spoken to by lines."""

    def __init__(self, home: Home, *words: str) -> None:
        self.process = popen(
            [*COMMAND, *words_of(home, words or ("mcp",))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=home.environ,
        )
        self._number = 0

    def ask(self, method: str, **params: Any) -> Any:
        self._number += 1
        self.say({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        while (heard := json.loads(self._pipe(self.process.stdout).readline())).get("id") != self._number:
            pass
        return heard.get("result", heard)

    def awaits(self, method: str) -> Any:
        """The next message of a method."""
        while (heard := json.loads(self._pipe(self.process.stdout).readline())).get("method") != method:
            pass
        return heard

    def say(self, message: dict[str, Any]) -> None:
        pipe = self._pipe(self.process.stdin)
        pipe.write(json.dumps(message).encode() + b"\n")
        pipe.flush()

    def call(self, tool: str, /, **arguments: Any) -> Any:
        if not self._number:
            self.ask("initialize", **HELLO)
        answer = self.ask("tools/call", name=tool, arguments=arguments)
        assert not answer.get("isError"), answer
        content = answer["structuredContent"]
        return content["result"] if set(content) == {"result"} else content

    def end(self) -> int:
        """Close its input; return its exit status."""
        self._pipe(self.process.stdin).close()
        return self.process.wait(PATIENCE)

    @staticmethod
    def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
        assert pipe is not None
        return pipe


@contextmanager
def door(home: Home, *words: str) -> Iterator[Door]:
    opened = Door(home, *words)
    with opened.process:  # closes its pipes
        try:
            yield opened
        finally:
            opened.process.kill()


@asynccontextmanager
async def session(home: Home) -> AsyncIterator[ClientSession]:
    """A session of the official client with a door that it has started."""
    command, *words = [*COMMAND, *home.words("mcp")]
    with Path(os.devnull).open("w", encoding="utf-8") as nothing:
        parameters = StdioServerParameters(command=command, args=words, env=home.environ)
        async with stdio_client(parameters, nothing) as (reads, writes), ClientSession(reads, writes) as opened:
            await opened.initialize()
            yield opened


@pytest.mark.thorough("a second program with the official client; every run has one by HTTP")
def test_the_official_client_forks_and_the_tree_is_there_for_the_next_one(home: Home) -> None:
    async def first() -> str:
        async with session(home) as client:
            answer = await client.call_tool("fork", {"prompt": "Our shop sells tea.", "name": "shop", "key": "k"})
            assert answer.structured_content is not None, answer
            return str(answer.structured_content["handle"])

    async def second(handle: str) -> str:
        async with session(home) as client:
            answer = await client.call_tool("wait", {"handles": [handle]})
            assert answer.structured_content is not None, answer
            return str(answer.structured_content["result"][0]["text"])

    assert asyncio.run(second(asyncio.run(first()))).startswith("You said “Our shop sells tea.”")


@pytest.mark.thorough("a second kill; every run has a call whose door is killed")
def test_a_door_whose_host_is_killed_starts_another_one_and_turns_go_on(home: Home) -> None:
    with door(home) as client:
        done = client.call("fork", prompt="tea", name="a", key="k1")
        left = client.call("fork", prompt='@wait {"timeout": 2}', name="b", key="k2")
        assert left["status"] == "working"
        os.kill(first := home.awaited_host(), signal.SIGKILL)
        again = client.call("wait", handles=[done["handle"], left["handle"]], seconds=45)
        assert [turn["status"] for turn in again] == ["done", "done"]
        assert home.host() not in (0, first)
        assert client.call("fork", prompt="tea", name="a", key="k1")["handle"] == done["handle"]
        assert client.end() == 0
    assert home.host()  # it goes on for a while


def test_a_call_whose_door_is_killed_is_done_once(home: Home) -> None:
    with door(home) as client:
        client.call("fork", prompt="tea", name="kid", key="k")
    for number in range(3):
        for place in range(2):  # killed in the middle of a call, and begun again
            with door(home) as client:
                client.ask("initialize", **HELLO)
                asked = {"agent": "kid", "text": f"p{number}", "key": f"k{number}"}
                client.say(
                    {
                        "jsonrpc": "2.0",
                        "id": 0,
                        "method": "tools/call",
                        "params": {"name": "prompt", "arguments": asked},
                    }
                )
                if place:
                    assert client.call("prompt", **asked)["handle"].endswith(f"/m{number + 1}")
    assert home.prompts() == ["p0", "p1", "p2", "tea"]


@pytest.mark.thorough("programs that start at once; test_hosting.py starts hosts in every run")
def test_two_doors_that_start_at_once_have_one_host(home: Home) -> None:
    with door(home) as first, door(home) as other:
        for each in (first, other):
            each.say({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": HELLO})
            each.say({"jsonrpc": "2.0", "id": 0, "method": "tools/call", "params": {"name": "agents", "arguments": {}}})
        roots = [each.call("agents")["result"][0]["agent"] for each in (first, other)]
        assert roots[0] == roots[1]
        with Client.open(home.database) as client:
            assert [host.state for host in client.hosts()] == ["runs"]


def test_by_http_the_official_client_comes_in_with_the_token(home: Home) -> None:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    async def scene(url: str, token: str) -> None:
        for sent, status in (({}, 401), ({"Authorization": f"Bearer {token}x"}, 401)):
            async with httpx2.AsyncClient(timeout=PATIENCE) as stranger:
                assert (await stranger.post(url, json={}, headers=sent)).status_code == status
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE) as http,
            streamable_http_client(url, http_client=http) as streams,
            ClientSession(*streams[:2]) as client,
        ):
            await client.initialize()
            answer = await client.call_tool("fork", {"prompt": "tea"})
            assert answer.structured_content is not None, answer
            waited = await client.call_tool("wait", {"handles": [answer.structured_content["handle"]]})
            assert waited.structured_content is not None, waited
            assert waited.structured_content["result"][0]["status"] == "done"

    with door(home, "mcp", "--http") as opened:
        assert opened.process.stdout is not None
        line = opened.process.stdout.readline().decode().split()
        asyncio.run(scene(line[6], line[-1].strip('"')))
        opened.process.terminate()
        assert opened.process.wait(PATIENCE) == 0


class Silent:
    """An editor of the official package that keeps the texts that it is shown."""

    def __init__(self) -> None:
        self.text = ""

    async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
        if update.session_update == "agent_message_chunk":
            self.text += update.content.text


@pytest.mark.thorough("the official editor's client, three programs")
def test_the_official_editor_prompts_a_session_and_the_next_one_loads_it(home: Home) -> None:
    async def edit(session: str | None, text: str) -> tuple[str, str]:
        editor: Any = Silent()  # of the methods of a client it has one
        command, *words = [*COMMAND, *home.words("acp")]
        spawned = acp.spawn_agent_process(editor, command, *words, env=home.environ)
        async with spawned as (connection, _):
            await connection.initialize(protocol_version=1)
            if session is None:
                session = (await connection.new_session(cwd="/")).session_id
            else:
                await connection.load_session(cwd="/", session_id=session)
            if text:
                done = await connection.prompt(session_id=session, prompt=[acp.text_block(text)])
                assert done.stop_reason == "end_turn"
        return session, editor.text

    session, shown = asyncio.run(edit(None, "tea"))
    assert shown.startswith("You said “tea”")
    assert asyncio.run(edit(session, "")) == (session, shown)


APP = '''
from ikigai_actors import Reply, ScriptedProvider, ToolCall, tool

@tool(policy="ask")
def launch() -> str:
    """Launch."""
    return "launched tea"

def answer(request):
    return "done" if len(request.messages) > 1 else Reply(tool_calls=(ToolCall("launch", {}),))

def app():
    return {"provider": ScriptedProvider(answer), "tools": [launch], "approvals": "ask"}
'''


@pytest.mark.thorough("a second kill; every run has a call whose door is killed")
def test_a_question_outlives_the_editor_that_was_killed_over_it(home: Home, tmp_path: Path) -> None:
    (tmp_path / "launching.py").write_text(APP, encoding="utf-8")
    words = ("--app", "launching:app", "acp")
    home.environ["PYTHONPATH"] = str(tmp_path)
    place = {"cwd": "/", "mcpServers": []}
    with door(home, *words) as editor:
        session = editor.ask("session/new", **place)["sessionId"]
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}
        editor.say({"jsonrpc": "2.0", "id": 0, "method": "session/prompt", "params": prompt})
        editor.awaits("session/request_permission")
        editor.process.kill()
    with door(home, *words) as editor:
        editor.say({"jsonrpc": "2.0", "id": 0, "method": "session/load", "params": {"sessionId": session, **place}})
        asked = editor.awaits("session/request_permission")
        outcome = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}
        editor.say({"jsonrpc": "2.0", "id": asked["id"], "result": outcome})
        while "launched tea" not in str(editor.awaits("session/update")):
            pass


def test_whatever_a_client_sends_a_door_goes_on(home: Home) -> None:
    chance = random.Random(3)
    pieces = [
        b"{",
        b"}",
        b"[",
        b'"id":',
        b'"method":',
        b'"tools/call"',
        b"1",
        b"null",
        b",",
        b"\xff",
        b'"params":',
        b" ",
    ]
    with door(home) as client:
        sent = client.process.stdin
        assert sent is not None
        for _ in range(2_000):
            sent.write(b"".join(chance.choices(pieces, k=chance.randint(1, 12))) + b"\n")
        sent.write(b"x" * (LONGEST_MESSAGE + 1) + b"\n")
        assert client.ask("ping") == {}
        assert client.end() == 0


@pytest.mark.thorough("ten hosts are killed")
def test_three_doors_outlive_ten_hosts(home: Home) -> None:
    with door(home) as first, door(home) as two, door(home) as three:
        doors = (first, two, three)
        for number in range(10):
            home.kill_host()
            for place, each in enumerate(doors):
                key = f"{number}.{place}"
                handle = each.call("prompt", agent=each.call("agents")["result"][0]["agent"], text=key, key=key)[
                    "handle"
                ]
                assert each.call("wait", handles=[handle], seconds=45)[0]["status"] == "done"
        with Client.open(home.database) as client:
            assert [host.state for host in client.hosts()].count("runs") == 1
    assert len(home.prompts()) == 30
