"""The command line, as real processes: what it loads, what it refuses and how, and who may use a database at once."""

import json
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from ikigai_actors import ActorSystem, OfflineProvider
from ikigai_actors.shell.cli.main import cli
from ikigai_actors.shell.slash import commands
from ikigai_actors.verbs.rights import Callers
from ikigai_actors.verbs.table import TABLE, names
from tests.kit.messages_server.server import MessagesServer
from tests.kit.program import COMMAND, PATIENCE, Program, completed, run, unmeasured
from tests.kit.zygote import PYTHON

HEAVY = {
    "aiohttp", "anthropic", "asyncio", "filelock", "httpx2", "hypothesis", "platformdirs", "prompt_toolkit", "psycopg",
    "pydantic", "pykka", "readline", "ssl",
}  # fmt: skip
"""Modules that take their time to load."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A database with a tree: agent 0, and dba below it."""
    path = tmp_path / "notes.db"
    with ActorSystem.open(path, OfflineProvider()) as system:
        system.root.prompt("tea").get(timeout=PATIENCE)
        system.root.fork("coffee", name="dba").reply(timeout=PATIENCE)
    return path


def loaded_by(*arguments: str) -> set[str]:
    """The modules that are loaded after a command."""
    script = (
        "import sys; from ikigai_actors.shell.cli.main import cli\n"
        f"try: cli.main({list(arguments)!r}, standalone_mode=False)\n"
        "finally: print('LOADED', *sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        capture_output=True,
        text=True,
        env=unmeasured(),
        timeout=PATIENCE,
        check=True,
    )
    return set(done.stdout.partition("LOADED")[2].split())


@pytest.mark.sample(1, "an interpreter for each")
@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["help", "all"],
        *([name, "--help"] for name in ("agents", "fsck", "send", "log", "tail", "prompt", "stats", "demo", "finish")),
    ],
)
def test_help_loads_only_click(arguments: list[str]) -> None:
    loaded = loaded_by(*arguments)
    assert not loaded & (HEAVY | {"sqlite3", "ikigai_actors.system.system", "ikigai_actors.store"})
    assert "click" in loaded
    verbs = {f"ikigai_actors.{entry.module}" for entry in TABLE.values()}
    assert len(loaded & verbs) == (arguments[0] in {*names(Callers.SCRIPTS)} - {*cli.commands})


@pytest.mark.sample(1, "a program each")
@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        (("log", "dba"), "ikigai_actors.system.remote.follower"),
        (("stats", "--tokens"), "ikigai_actors.records.agents.registry"),
    ],
)
def test_process_tools_load_nothing_that_runs_agents(file: Path, arguments: tuple[str, ...], needed: str) -> None:
    loaded = loaded_by("--database", str(file), *arguments)
    assert not loaded & (
        HEAVY | {"ikigai_actors.system.system", "ikigai_actors.agent.actor", "ikigai_actors.store.journal"}
    )
    assert needed in loaded


@pytest.mark.thorough("a fresh interpreter; every run has that of the process tools")
@pytest.mark.sample(1, "an interpreter for each")
@pytest.mark.parametrize(
    "words", [("orphans", "dba"), ("send", "dba", "tea"), ("prompt", "dba", "tea"), ("doc", "list")]
)
def test_an_attached_system_loads_nothing_that_runs_agents(file: Path, words: tuple[str, ...]) -> None:
    loaded = loaded_by("--database", str(file), *words)
    assert "ikigai_actors.system.attached" in loaded
    runs = {"agent.actor", "agent.executor", "agent.toolbox", "agent.turn.machine", "store.journal", "system.system",
            "records.transfer.graft", "providers.selection"}  # fmt: skip
    assert not loaded & (HEAVY - {"asyncio", "pykka", "ssl"} | {f"ikigai_actors.{name}" for name in runs})


def every(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    """A command and all below it, by how they are called."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from every(below, f"{path} {name}")


@pytest.mark.parametrize("group", [cli, commands], ids=["ikigai", "the shell"])
def test_every_command_and_option_has_help(group: click.Group) -> None:
    known = dict(every(group, ""))
    assert {" doc write", " /doc write"} & set(known)
    for path, command in known.items():
        assert command.help, path
        for option in command.params:
            assert not isinstance(option, click.Option) or option.help, f"{path} {option.name}"


def test_the_version_is_told() -> None:
    assert re.fullmatch(r"ikigai \d+\.\d+\.\d+\n", run("--version").stdout)


def test_agents_are_listed_as_a_tree_and_as_json(file: Path) -> None:
    done = run("--database", str(file), "agents")
    assert done.stdout.splitlines()[1].split()[1:] == ["dba", "idle", "2", "inherited", "+", "3", "own"]
    assert done.stdout.splitlines()[-1] == "2 running, 0 dead"
    assert (done.stderr, done.returncode) == ("", 0)
    rows = json.loads(run("--database", str(file), "agents", "--json").stdout)
    assert [row["name"] for row in rows] == [None, "dba"]
    assert rows[1]["parent_uuid"] == rows[0]["uuid"]
    assert (rows[1]["messages"], rows[1]["fork_message_id"], rows[1]["state"]) == (3, 2, "idle")


def test_listing_agents_makes_no_database(tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    done = run("--database", str(tmp_path / "none.db"), "agents")
    assert done.returncode == 1
    assert done.stderr.startswith(f"ikigai: There is no database {tmp_path / 'none.db'}.")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("command", "place", "message"),
    [
        ([], "mysql://me:secret@host/name", "there is no 'mysql'"),
        ([], "host=x password=secret", "write postgresql://user@host/name"),
        ([], "postgresql://me:secret@127.0.0.1:1/name", "127.0.0.1"),
        ([], "postgresql://me@127.0.0.1:1/name?password=secret", "127.0.0.1"),
        ([], "postgresql://me:sec@ret@127.0.0.1:1/name", "write @ as %40"),
        (["agents"], "postgresql://me:secret@127.0.0.1:1/name", "127.0.0.1"),
    ],
)
def test_a_place_that_cannot_be_used_is_one_line_without_its_password(
    command: list[str], place: str, message: str
) -> None:
    done = run("--database", place, *command)
    assert done.returncode == 1
    assert re.fullmatch(r"ikigai: [^\n]*\n", done.stderr)
    assert message in done.stderr
    assert "secret" not in done.stderr
    assert "ret@" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("command", [[], ["agents"]])
def test_a_file_that_is_no_database_is_refused_on_one_line_and_kept(command: list[str], tmp_path: Path) -> None:
    text = tmp_path / "letter.txt"
    text.write_text("Dear Sir or Madam, this is no database. " * 200)
    before = text.read_bytes()
    done = run("--database", str(text), *command)
    assert done.returncode == 1
    assert re.fullmatch(r"ikigai: [^\n]*no SQLite database[^\n]*\n", done.stderr)
    assert text.read_bytes() == before


@pytest.mark.parametrize("command", [[], ["agents"]])
def test_a_database_of_somebody_else_is_refused_on_one_line(command: list[str], tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
    connection.close()
    done = run("--database", str(path), *command)
    assert done.returncode == 1
    assert re.fullmatch(r"ikigai: [^\n]*not ikigai's[^\n]*\n", done.stderr)


def test_a_provider_that_does_not_exist_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    done = run("--database", str(tmp_path / "new.db"), "--model", "nobody:x")
    assert done.returncode == 1
    assert re.fullmatch(r"ikigai: [^\n]*'nobody'[^\n]*\n", done.stderr)
    assert not (tmp_path / "new.db").exists()


def test_wrong_usage_has_exit_status_two() -> None:
    done = run("--nonsense")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_the_offline_stand_in_is_announced_once_and_not_on_standard_output(tmp_path: Path) -> None:
    done = run("--database", str(tmp_path / "new.db"), lines="tea\ncoffee\n")
    assert done.stderr.count("ANTHROPIC_API_KEY") == 1
    assert len(done.stdout.splitlines()) == 2


def test_a_reader_that_goes_away_ends_the_session_quietly(tmp_path: Path) -> None:
    with Program.by_pipe("--database", str(tmp_path / "new.db")) as shell:
        shell.say("tea")
        shell.expect("You said")
        shell.close_output()
        shell.say("coffee\nmilk")  # at once: nobody may be left to take a second line
        assert shell.process.wait(PATIENCE) == 1
    assert run("--database", str(tmp_path / "new.db"), "agents").returncode == 0


@pytest.mark.thorough("a second program whose output fails")
def test_output_that_cannot_be_written_is_one_line(file: Path) -> None:
    for command in ([], ["agents"], ["fsck"]):
        with Path("/dev/full").open("wb") as full:
            whole = [*COMMAND, "--database", str(file), "--provider", "offline", *command]
            done = completed(whole, lines="tea\n", stdout=full)
        assert done.returncode == 1
        assert done.stderr == "ikigai: the output cannot be written: No space left on device\n"


@pytest.mark.slow("starts a program that is not forked")
def test_output_that_is_closed_is_one_line(file: Path) -> None:
    whole = [*COMMAND, "--database", str(file), "agents"]
    done = completed(["sh", "-c", 'exec "$@" >&-', "sh", *whole])
    assert (done.returncode, done.stderr) == (1, "ikigai: the output cannot be written: Bad file descriptor\n")


@pytest.mark.sample(1, "signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_end_closes_the_database(file: Path, number: signal.Signals) -> None:
    with Program.by_pipe("--database", str(file)) as shell:
        shell.say("/agents")
        shell.expect("running")
        assert shell.end(number) == 128 + number
    connection = sqlite3.connect(file)
    assert connection.execute("SELECT COUNT(*) FROM hosts WHERE ended_at IS NULL").fetchone() == (0,)
    connection.close()


def test_what_the_shell_writes_only_its_user_may_read(tmp_path: Path) -> None:
    home = tmp_path / "home"
    run(lines="tea\n")
    assert (home.stat().st_mode & 0o777) == 0o700
    assert {path.name: oct(path.stat().st_mode & 0o777) for path in home.iterdir()} == {
        "ikigai.db": "0o600",
        "ikigai.db.lock": "0o600",
    }


@pytest.mark.thorough("a program without a library; another extra is missed in each run")
def test_what_serve_needs_is_named_when_it_is_missing(file: Path) -> None:
    script = (
        "import sys; sys.modules['textual_serve'] = None  # as if it were not installed\n"
        "from ikigai_actors.shell.cli.main import main; sys.exit(main())"
    )
    done = completed([*PYTHON, "-c", script, "--database", str(file), "serve"], fresh=True)
    assert (done.stdout, done.returncode) == ("", 1)
    assert done.stderr == "ikigai: ikigai serve needs textual-serve: pip install 'ikigai-actors[serve]'.\n"


def test_a_server_that_is_named_by_its_address_answers(tmp_path: Path) -> None:
    with MessagesServer() as server:
        place = ("--database", str(tmp_path / "new.db"), "--provider-url", f"local={server.url}")
        assert run(*place, "--model", "local:m", lines="Hi\n/context\n").stdout.startswith("ok\n")
        assert server.requests[0]["model"] == "m"
    done = run("--database", str(tmp_path / "new.db"), "--provider-url", "local", lines="Hi\n")
    assert "Expected --provider-url NAME=URL, got 'local'." in done.stderr


@pytest.mark.thorough("a second program with a file of providers")
def test_the_shell_reads_a_file_of_providers_and_tells_what_is_wrong_with_it(tmp_path: Path) -> None:
    file = tmp_path / "ikigai.toml"
    with MessagesServer() as server:
        file.write_text(f'model = "local:m"\n[providers.local]\nbase_url = "{server.url}"\n[windows]\n"local:m" = 4096')
        place = ("--database", str(tmp_path / "new.db"), "--config", str(file))
        done = run(*place, lines="Hi\n/context\n")
        assert done.stdout.startswith("ok\n")
        assert "window    4,096 tokens" in done.stdout
        assert "offline" not in done.stderr
    file.write_text("[prices.llama3.2:3b]")
    done = run(*place, lines="Hi\n")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"ikigai: Expected {file} to be TOML: ")
    assert done.stderr.count("\n") == 1
