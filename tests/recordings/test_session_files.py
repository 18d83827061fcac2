"""The way back: an agent as a session of another program, unchanged to the byte, or with what it has said since."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from ikigai_actors import ActorSystem, AgentRef
from ikigai_actors.reach.sessions import read_session
from ikigai_actors.recordings.session_files import WRITERS, write_session
from ikigai_actors.shell.cli.main import cli
from tests.kit.imported import imported, importing, said
from tests.kit.pictures import PNG
from tests.kit.real_sessions import REAL_SESSIONS
from tests.kit.recordings import SAMPLES, ClaudeCode

FORMATS = sorted(WRITERS)


@pytest.fixture
def system() -> Iterator[ActorSystem]:
    with importing() as opened:
        yield opened


def exported(system: ActorSystem, agent: AgentRef, to: str, folder: Path) -> bytes:
    """An agent as a session."""
    file = folder / f"out-{agent.uuid[:6]}.jsonl"
    file.unlink(missing_ok=True)
    session = read_session(system._store, agent.uuid, to, has_paths=WRITERS[to].has_paths)
    write_session(session, str(file), to)
    return file.read_bytes()


@pytest.mark.sample(1, "programs")
@pytest.mark.parametrize("name", FORMATS)
def test_an_unchanged_agent_and_its_other_paths_give_the_same_bytes(
    system: ActorSystem, tmp_path: Path, name: str
) -> None:
    odd = b"\xef\xbb\xbf" + SAMPLES[name].replace(b"\n", b"\r\n") + b'\n{"type": "cut o'
    for data in (SAMPLES[name], odd):
        for agent in imported(system, tmp_path, data):
            assert exported(system, agent, name, tmp_path) == data


@pytest.mark.sample(1, "programs")
@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.parametrize("name", FORMATS)
def test_what_was_said_since_comes_after_the_lines_and_comes_back(
    system: ActorSystem, tmp_path: Path, name: str
) -> None:
    [top, *_] = imported(system, tmp_path, SAMPLES[name] + b'{"type": "cut o')
    top.configure(effects=None)
    for prompt in ("And the keel?", "call"):
        top.prompt(prompt, attach=[PNG]).get(timeout=30)
    fork = top.fork("Of what?")
    fork.reply(timeout=30)
    for agent in (top, fork):
        data = exported(system, agent, name, tmp_path)
        assert data.startswith(SAMPLES[name])
        [again, *_] = imported(system, tmp_path, data)
        assert said(again, every=True) == said(agent, every=True)
        assert [message.data["attached"] for message in again.history() if message.content == "And the keel?"] == [
            [attachment | {"name": ""} for attachment in message.data["attached"]]
            for message in agent.history()
            if message.content == "And the keel?"
        ]


@pytest.mark.sample(1, "programs")
@pytest.mark.parametrize("name", FORMATS)
def test_a_turn_that_was_undone_is_gone_after_the_way_back(system: ActorSystem, tmp_path: Path, name: str) -> None:
    [top, *_] = imported(system, tmp_path, SAMPLES[name])
    top.undo()
    top.prompt("Another way.").get(timeout=30)
    [again, *_] = imported(system, tmp_path, exported(system, top, name, tmp_path))
    assert [line for line in said(again) if line[0] != "rewind"] == [line for line in said(top) if line[0] != "rewind"]


@pytest.mark.sample(1, "programs")
@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.parametrize("name", FORMATS)
def test_any_agent_becomes_a_session(system: ActorSystem, tmp_path: Path, name: str) -> None:
    agent = system.root.fork(name="builder", system="Build.")
    agent.prompt("We build a ship.").get(timeout=30)
    agent.prompt("call", attach=[PNG]).get(timeout=30)
    other = agent.fork("Of wood.")
    other.reply(timeout=30)
    agent.prompt("long " * 2_000).get(timeout=30)
    agent.prompt("Of steel.").get(timeout=30)
    agent.compact(text="We build a ship.")
    agent.prompt("And then?").get(timeout=30)
    again, *others = imported(system, tmp_path, exported(system, agent, name, tmp_path))
    assert said(again) == [("summary", "We build a ship."), *[line for line in said(agent) if line[0] != "summary"]]
    assert [said(branch)[-2:] for branch in others] == ([said(other)[-2:]] if name != "codex" else [])


@pytest.mark.parametrize("name", FORMATS)
def test_a_session_belongs_to_the_directory_where_it_is_written(
    system: ActorSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)  # programs list the sessions of the directory in which they start
    system.root.prompt("We build a ship.").get(timeout=30)
    rows = [json.loads(line) for line in exported(system, system.root, name, tmp_path).splitlines()]
    named = {row.get("cwd") or row.get("payload", {}).get("cwd") for row in rows} - {None}
    assert named == {str(tmp_path)}


@pytest.mark.sample(4, "a pair of programs each")
@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("name", [*SAMPLES])
def test_a_session_of_one_program_becomes_one_of_another(
    system: ActorSystem, tmp_path: Path, name: str, to: str
) -> None:
    [top, *_] = imported(system, tmp_path, SAMPLES[name])
    [again, *_] = imported(system, tmp_path, exported(system, top, to, tmp_path))
    assert [line for line in said(again) if line[0] != "rewind"] == [line for line in said(top) if line[0] != "rewind"]


def test_the_command_writes_a_new_file(tmp_path: Path) -> None:
    session = ClaudeCode()
    session.turn("One.", "Two.")
    (tmp_path / "ship.jsonl").write_bytes(session.data)
    database = f"sqlite:///{tmp_path}/ship.db"

    def command(*words: str) -> str:
        return CliRunner().invoke(cli, ["--database", database, *words]).output

    command("import", str(tmp_path / "ship.jsonl"))
    assert "2 lines" in command("export", "ship", str(tmp_path / "out.jsonl"), "--to", "claude-code")
    assert (tmp_path / "out.jsonl").read_bytes() == session.data
    assert "--to goes" in command("export", "ship", str(tmp_path / "two.jsonl"), "--to", "pi", "--markdown")


def test_lines_that_are_new_go_on_with_the_numbers_of_a_session_of_codex(system: ActorSystem, tmp_path: Path) -> None:
    data = REAL_SESSIONS["codex, prompts kept"].data
    [top] = imported(system, tmp_path, data)
    top.undo()
    top.prompt("And the keel?").get(timeout=30)
    rows = [json.loads(line) for line in exported(system, top, "codex", tmp_path).splitlines()]
    assert [row["ordinal"] for row in rows] == list(range(len(rows)))
    assert len(rows) > data.count(b"\n") + 2
    [plain] = imported(system, tmp_path, SAMPLES["codex"])
    plain.prompt("And the keel?").get(timeout=30)
    assert b"ordinal" not in exported(system, plain, "codex", tmp_path)


def test_a_session_for_codex_names_no_provider_that_codex_has_not(system: ActorSystem, tmp_path: Path) -> None:
    for model, named in (("anthropic:claude-sonnet-5-5", None), ("openai:gpt-5", "openai"), ("", "openai")):
        agent = system.root.fork(model=model or None)
        meta = json.loads(exported(system, agent, "codex", tmp_path).splitlines()[0])["payload"]
        assert meta.get("model_provider") == named
