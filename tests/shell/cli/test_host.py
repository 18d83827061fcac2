"""Hosts without a shell, as processes: they run the agents, share them on a server, and end as they are told to."""

import json
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ikigai_actors.shell.agent_lists import read_list
from ikigai_actors.system.remote.client import Client
from tests.conftest import NewDatabase
from tests.kit.databases import eventually
from tests.kit.fullscreen import FullScreen
from tests.kit.program import Program, run


def host(url: str, *arguments: str, model: str | None = "offline") -> Program:
    """Start a host."""
    chosen = [] if model is None else ["--model", model]
    return Program.by_pipe("--database", url, *chosen, "host", *arguments, notices=True)


@contextmanager
def running(url: str, name: str, *arguments: str, model: str | None = "offline") -> Iterator[Program]:
    """Start a host, and wait until it runs the agents."""
    with host(url, "--name", name, *arguments, model=model) as program:
        program.expect("runs postgresql")
        yield program


def listed(url: str) -> list[dict[str, Any]]:
    """What ``ikigai hosts --json`` tells."""
    done = run("--database", url, "hosts", "--json")
    assert done.returncode == 0, done.stderr
    hosts: list[dict[str, Any]] = json.loads(done.stdout)
    return hosts


def root(url: str) -> str:
    """The uuid of agent 0."""
    agents = json.loads(run("--database", url, "agents", "--json").stdout)
    return str(agents[0]["uuid"])


def turn(url: str, uuid: str) -> int:
    """The turn in progress of an agent."""
    with Client.open(url) as client:
        return client.get(uuid).turn


def shares(url: str) -> dict[str | None, int]:
    """How many shards each living host has, by its name."""
    with Client.open(url) as client:
        return {host.name: host.shards for host in client.hosts() if host.ended_at is None}


def test_when_a_host_is_killed_another_one_goes_on_and_who_waits_gets_the_answer(new_postgres: NewDatabase) -> None:
    url = new_postgres()
    with running(url, "a", model="offline:0.05") as first, running(url, "b") as second:
        eventually(lambda: all(shares(url).values()), "shards for both")
        hosts = {host["name"]: (host["pid"], host["state"], host["agents"]) for host in listed(url)}
        assert hosts == {"a": (first.process.pid, "runs", 1), "b": (second.process.pid, "runs", 0)}
        asked = root(url)
        with Program.by_pipe("--database", url, "prompt", "--wait", asked, "Our shop sells tea.") as asking:
            eventually(lambda: turn(url, asked), "the turn")
            first.kill()
            asking.expect("You said “Our shop sells tea.”")
            assert asking.ends() == 0
        ended, goes_on = listed(url)
        assert (ended["name"], ended["state"], goes_on["name"], goes_on["shards"]) == ("a", "ended", "b", 1024)
        lines = run("--database", url, "hosts").stdout.splitlines()
        assert [line.split()[0] for line in lines] == ["a", "b"]
        assert re.search(r"runs 1 agent, 1,?024 shards, build [0-9a-f]{16}, seen \d s ago$", lines[1])


def test_a_host_that_is_told_to_end_gives_its_agents_away_first(new_postgres: NewDatabase) -> None:
    url = new_postgres()
    with running(url, "a") as first, running(url, "b") as second:
        assert first.ends(by=signal.SIGTERM) == 0  # a second one would not let it give them away
        assert shares(url) == {"b": 1024}
        assert run("--database", url, "prompt", "--wait", root(url), "tea").returncode == 0
        assert second.end(signal.SIGINT) == 0
    assert {host["state"] for host in listed(url)} == {"ended"}
    assert "no process runs these agents" in run("--database", url, "hosts").stdout


STILL = '''
from ikigai_actors import tool

@tool(policy="ask")
def launch() -> str:
    """Launch."""
    return "launched"

def app():
    return {"provider": "offline", "balance": None, "tools": [launch], "approvals": "ask", "lease": 4}
'''


@contextmanager
def two_that_keep_their_agents(url: str, directory: Path) -> Iterator[tuple[Program, Program]]:
    """Two hosts. The first, a, runs the agents; none moves by itself."""
    (directory / "still.py").write_text(STILL, encoding="utf-8")
    with (
        running(url, "a", "--app", "still:app", model=None) as first,
        running(url, "b", "--app", "still:app", model=None) as second,
    ):
        eventually(lambda: {*shares(url).values()} == {512}, "half of the shards for each")
        yield first, second


def placed(url: str) -> dict[str | None, int]:
    """How many agents each living host has, by its name."""
    with Client.open(url) as client:
        return {host.name: host.agents for host in client.hosts() if host.ended_at is None}


@pytest.mark.thorough("several programs; a host is killed and one drained in each run")
def test_an_agent_is_moved_from_any_terminal(
    new_postgres: NewDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = new_postgres()
    monkeypatch.chdir(tmp_path)
    with two_that_keep_their_agents(url, tmp_path), Program.at_terminal("--database", url, "--plain") as shell:
        shell.say("/fork --name kid")
        shell.expect("inherits")
        assert placed(url) == {"a": 2, "b": 0}
        done = run("--database", url, "move", "kid", "b")
        assert (done.stdout, done.stderr) == ("kid is run by b from now on\n", "")
        assert placed(url) == {"a": 1, "b": 1}
        host_by_name = {
            entry["name"]: entry["host"] for entry in json.loads(run("--database", url, "agents", "--json").stdout)
        }
        assert host_by_name == {None: "a", "kid": "b"}
        assert re.search(r"kid +idle  b  +\d inherited", run("--database", url, "agents").stdout)
        shell.say("/agents")
        shell.expect(r"kid +idle  b  +\d inherited")
        shell.say("hello")
        shell.expect("You said")
        shell.say("/hosts")
        shell.expect(r"a  .*runs 1 agent, 512 shards, seen \d s ago\s+b  .*runs 1 agent, 512 shards")
        shell.say("/move kid a")
        shell.expect("kid .* is run by a from now on")
        assert placed(url) == {"a": 2, "b": 0}
        shell.say("/move kid nowhere")
        shell.expect("No living host is called 'nowhere'; those that live: a, b.")
        for reason, agent in (("Agent 0 cannot be moved", root(url)), ("is named 'nobody'", "nobody")):
            refused = run("--database", url, "move", agent, "b")
            assert (refused.returncode, refused.stdout, reason in refused.stderr) == (1, "", True)


def waits(shell: Program) -> bool:
    """Whether a shell knows by now of a call that waits, whoever has asked for it."""
    shell.say("/approvals")
    return "/approve N" in shell.expect(r"No call waits|/approve N lets one run")[0]


@pytest.mark.thorough("several programs; a host is killed and one drained in each run")
def test_calls_of_agents_of_any_host_are_decided_on_from_every_shell(
    new_postgres: NewDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = new_postgres()
    monkeypatch.chdir(tmp_path)
    with (
        two_that_keep_their_agents(url, tmp_path),
        Program.at_terminal("--database", url, "--plain") as lines,
        FullScreen("--database", url, size=(100, 30)) as screen,
    ):
        lines.say("/fork --name kid")
        lines.expect("inherits")
        lines.say("/move kid b")
        lines.expect("is run by b")
        lines.say("@launch")
        lines.expect(r"\[1\] .*kid.* asks to run launch")
        lines.say("/approve 1")
        lines.expect("launched")
        screen.say("/switch kid")
        screen.expect(r"[─▸] kid ─")
        screen.say("@launch")
        screen.expect("wants to run launch")
        eventually(lambda: waits(lines), "the call in the other shell")
        lines.say("/deny 2 not today")  # by another than who has asked for it
        screen.expect("not today")
        screen.say("/switch " + root(url))
        screen.expect(r"╭─ [\w-]+ ─")
        screen.say("@launch")
        screen.expect("wants to run launch")
        screen.say("/approve")
        screen.expect("launched")


@pytest.mark.thorough("several programs; a host is killed and one drained in each run")
def test_shells_hosts_and_who_follows_are_told_when_a_host_is_gone(
    new_postgres: NewDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = new_postgres()
    monkeypatch.chdir(tmp_path)
    with (
        two_that_keep_their_agents(url, tmp_path) as (first, second),
        FullScreen("--database", url, size=(100, 30)) as screen,
        Program.by_pipe("--database", url, "tail", notices=True) as tail,
    ):
        screen.expect("attached to 2 hosts")
        tail.expect("These agents are run by host a on .* and host b on .*")
        assert run("--database", url, "--plain", lines="/fork --name kid\n/move kid b\n").returncode == 0
        eventually(lambda: counted(url) == {"a": 1, "b": 1}, "the counts")
        second.kill()
        notice = "Host b is gone: its agent goes on at a"
        screen.expect(notice)
        tail.expect(notice)
        first.expect(notice)
        first.kill()
        screen.expect(r"The process that ran these agents is gone \(host a on")
        screen.say("/mark here")
        screen.expect(r"Start\s+ikigai\s+host\s+--name\s+a,\s+which\s+then\s+runs")


def counted(url: str) -> dict[str, int]:
    """How many agents each living host tells that it runs, by its name."""
    with Client.open(url) as client:
        return {host.name or "": host.agents for host in read_list(client).facts.hosts}


@pytest.mark.thorough("a second host; every run has one killed and one drained")
def test_an_agent_that_nobody_runs_is_not_moved_later_either(new_postgres: NewDatabase) -> None:
    url = new_postgres()
    with running(url, "a"):
        assert run("--database", url, "--plain", lines="/fork --name kid\n").returncode == 0
    refused = run("--database", url, "move", "kid", "a")
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert "will not be done later" in refused.stderr


@pytest.mark.thorough("a second host; every run has one killed and one drained")
def test_a_file_has_one_host_and_no_names(tmp_path: Path) -> None:
    file = str(tmp_path / "team.db")
    with host(file) as first:
        first.expect("runs .*team.db: 1 running")
        assert run("--database", file, "--provider", "offline", "prompt", "--wait", root(file), "tea").returncode == 0
        refused = run("--database", file, "--provider", "offline", "host")
        assert refused.returncode == 75
        assert "is in use by host" in refused.stderr
        [listed_host] = listed(file)
        assert (listed_host["state"], listed_host["name"]) == ("runs", None)
    refused = run("--database", file, "host", "--name", "a")
    assert refused.returncode == 1
    assert "a file has one host" in refused.stderr
    [listed_host] = listed(file)
    assert listed_host["state"] == "ended"


APP = '''
from ikigai_actors import FunctionProvider, tool

@tool
def stock() -> str:
    """What is in stock."""
    return "tea"

def app():
    return {"provider": FunctionProvider(lambda request: "the app answers", "code"), "tools": [stock]}

def nothing():
    return None

def unknown():
    return {"database": "elsewhere.db"}

def misspelt():
    return {"tool": [stock]}

def numbered():
    return {1: 2}

def wrong():
    return {"workers": "many"}

def leaves():
    raise SystemExit("not here")

def greets(name):
    return {}

async def later():
    return {}

settings = {"provider": "offline"}

def broken():
    raise LookupError("no such shop")
'''


@pytest.mark.thorough("a second host; every run has one killed and one drained")
def test_an_app_says_which_provider_and_tools_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop.py").write_text(APP, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with Program.by_pipe("--database", "team.db", "host", "--app", "shop:app", notices=True) as program:
        program.expect("runs ")
        done = run("--database", "team.db", "prompt", "--wait", root("team.db"), "tea")
        assert done.stdout == "the app answers\n"


@pytest.mark.sample(4, "mistakes of an app")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--app", "shop"], "Expected --app MODULE:FUNCTION, got 'shop'"),
        (["--app", "nowhere:app"], "ModuleNotFoundError: No module named 'nowhere'"),
        (["--app", "shop:missing"], "AttributeError"),
        (["--app", "shop:broken"], "LookupError: no such shop"),
        (["--app", "shop:nothing"], "to return a dict of arguments; got None"),
        (["--app", "shop:unknown"], "returns an argument 'database' that it cannot set"),
        (["--app", "shop:misspelt"], "returns an argument 'tool' that it cannot set. Those of ActorSystem.open: allow"),
        (["--app", "shop:numbered"], "returns an argument '1' that it cannot set"),
        (["--app", "shop:wrong"], "Expected workers to be a whole number"),
        (["--app", "shop:leaves"], "SystemExit: not here"),
        (["--app", "shop:greets"], "missing 1 required positional argument: 'name'"),
        (["--app", "shop:later"], "is an async function"),
        (["--app", "shop:settings"], "is a dict and no function"),
        (["--app", "torn:app"], "SyntaxError"),
        (["--app", "leaving:app"], "SystemExit: 3"),
    ],
)
def test_an_app_that_cannot_be_used_is_named_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], message: str
) -> None:
    for module, text in (("shop", APP), ("torn", "def app(:\n"), ("leaving", "import sys; sys.exit(3)")):
        (tmp_path / f"{module}.py").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    done = run("--database", "team.db", "host", *options)
    assert done.returncode == 1
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "team.db").exists()
