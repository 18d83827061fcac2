"""Remote MCP servers, by headers: what a call hears of a server that fails. With a real server on loopback."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp.server import MCPServer

from ikigai_actors import ActorSystem, BadInput, McpServer, ScriptedProvider
from ikigai_actors.records.mcp_listings import mcp_listing
from ikigai_actors.tools.function import Result
from tests.kit.blocking_provider import DEADLINE
from tests.kit.mcp_rendezvous import Bench
from tests.kit.remote_mcp import READS, RemoteMcp
from tests.kit.tool_scripts import calling, results

pytestmark = pytest.mark.slow("starts servers on loopback")
SECRET = "canary-5f2b9c"
ADDS = calling(("t__add", {"a": 2, "b": 3}))


@pytest.fixture
def server() -> Iterator[RemoteMcp]:
    made = RemoteMcp().start()
    yield made
    made.stop()


def test_the_tools_of_a_remote_server_are_called(bench: Bench, server: RemoteMcp) -> None:
    bench.open(McpServer(server.url, name="t"))
    assert set(bench.tools) == {"t__add", "t__fail"}
    assert bench.call("add", a=2, b=3) == Result("5")
    assert bench.call("fail", text="no such thing").is_error
    assert server.connections == 1


@pytest.mark.sample(1, "refusals")
@pytest.mark.parametrize(
    ("status", "meaning"), [(401, "wants a credential"), (403, "forbids this"), (429, "is too busy")]
)
def test_a_call_that_a_server_refuses_did_not_run(bench: Bench, server: RemoteMcp, status: int, meaning: str) -> None:
    bench.open(McpServer(server.url, name="t"))
    server.refuses.append(status)
    said = bench.call("add", a=2, b=3)
    assert said.is_error
    assert said.content == f"The MCP server t answered {status}: it {meaning}. This call did not run."
    assert bench.call("add", a=2, b=3) == Result("5")


def test_a_call_that_is_cut_off_may_have_run_and_harms_no_later_one(bench: Bench, server: RemoteMcp) -> None:
    bench.open(McpServer(server.url, name="t"))
    server.refuses.append("cut")
    said = bench.call("add", a=2, b=3)
    assert said.is_error
    assert "may or may not have run" in said.content
    assert "did not run" not in said.content
    server.refuses.append(502)
    assert "answered 502. The call may or may not have run" in bench.call("add", a=2, b=3).content
    assert bench.call("add", a=2, b=3) == Result("5")
    assert len(server.calls) == 3  # nothing was sent twice


def test_a_server_that_cannot_be_reached_did_not_run_the_call_and_is_found_again(
    bench: Bench, server: RemoteMcp
) -> None:
    bench.open(McpServer(server.url, name="t"))
    server.stop()
    said = bench.call("add", a=2, b=3)
    assert said.is_error
    assert "cannot be reached" in said.content
    assert said.content.endswith("This call did not run.")
    server.start()
    assert bench.call("add", a=2, b=3) == Result("5")


def test_a_session_that_is_over_is_begun_again_and_the_call_runs_once(bench: Bench, server: RemoteMcp) -> None:
    server.is_old = True
    bench.open(McpServer(server.url, name="t"))
    assert server.connections == 1
    server.refuses.append(404)
    assert bench.call("add", a=2, b=3) == Result("5")
    assert server.connections == 2


def test_a_secret_of_a_header_is_looked_up_with_each_connection_and_is_in_no_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = RemoteMcp(token=SECRET).start()
    script = ScriptedProvider(
        lambda asked: seen[0].content if (seen := results(asked)) else calling(("t__add", {"a": 2, "b": 3}))
    )
    path, tool = tmp_path / "a.db", McpServer(server.url, name="t", headers={"Authorization": "Bearer env:REMOTE_T"})
    try:
        with pytest.raises(BadInput, match="there is no secret env:REMOTE_T here"):
            ActorSystem.open(path, provider=script, tools=[tool])
        monkeypatch.setenv("REMOTE_T", "wrong-" + SECRET)
        with pytest.raises(BadInput, match="401") as refused:
            ActorSystem.open(path, provider=script, tools=[tool])
        assert SECRET not in str(refused.value)
        monkeypatch.setenv("REMOTE_T", SECRET)
        with ActorSystem.open(path, provider=script, tools=[tool]) as system:
            assert system.root.prompt("go").get(timeout=DEADLINE).text == "5"
    finally:
        server.stop()
    assert all(SECRET.encode() not in file.read_bytes() for file in tmp_path.iterdir() if file.is_file())


def test_a_host_starts_while_a_server_is_away_and_a_changed_tool_replaces_the_former(
    tmp_path: Path, server: RemoteMcp
) -> None:
    script = ScriptedProvider([ADDS, "done"])
    path = tmp_path / "a.db"
    with ActorSystem.open(path, provider=script, tools=[McpServer(server.url, name="t")]):
        pass
    server.stop()
    with ActorSystem.open(path, provider=script, tools=[McpServer(server.url, name="t")]) as system:
        kept = system._store.read(lambda tx: mcp_listing(tx, server.url))
        former = {tool.name: tool.digest for tool in system._toolbox.definitions}["t__add"]
        server._make = _other_server
        server.start()
        system.root.prompt("go").get(timeout=DEADLINE)
        now = {tool.name: tool.digest for tool in system._toolbox.definitions}
        assert now["t__add"] != former
        assert "t__more" in now
    with ActorSystem.open(path, provider=script, tools=[]) as system:
        assert system._store.read(lambda tx: mcp_listing(tx, server.url)) != kept


@pytest.mark.parametrize(
    ("url", "options", "why"),
    [
        ("https://user:pw@a.example/mcp", {}, "takes no user and password"),
        ("https://", {}, "Expected the URL"),
        ("https://a.example:x/mcp", {}, "Expected the URL"),
        ("https://a.example/mcp", {"env": {"A": "b"}}, "takes no env"),
        ("https://a.example/mcp", {"headers": {"Host": "b"}}, "cannot be a header"),
        ("https://a.example/mcp", {"headers": {"X": "a\nb"}}, "line break"),
        ("uvx server", {"headers": {"X": "a"}}, "takes no headers"),
    ],
)
def test_what_cannot_be_a_remote_server_is_refused(url: str, options: dict[str, object], why: str) -> None:
    with pytest.raises(BadInput, match=why):
        McpServer(url, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://mcp.example.com/mcp", "example"),
        ("https://api.githubcopilot.com/mcp/", "githubcopilot"),
        ("http://127.0.0.1:9/mcp", "127_0_0_1"),
    ],
)
def test_a_remote_server_is_named_by_its_host(url: str, name: str) -> None:
    assert McpServer(url).name == name


def _other_server() -> MCPServer:
    server = MCPServer("remote-for-tests")

    @server.tool(annotations=READS)
    def add(a: int, b: int) -> int:
        """Add two numbers, in another way."""
        return b + a

    @server.tool(annotations=READS)
    def more() -> str:
        """There is more now."""
        return "more"

    return server
