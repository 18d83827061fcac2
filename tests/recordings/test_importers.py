"""All formats of other programs: nothing of a file that is damaged, and nothing lost of one that is not."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from ikigai_actors import ActorSystem, OfflineProvider
from ikigai_actors.behaviour.turns import own_messages
from ikigai_actors.errors import ImportRefused
from ikigai_actors.recordings import FORMATS, read_sessions
from ikigai_actors.recordings.formats import importable, recorder_of
from ikigai_actors.recordings.recording import LARGEST_FILE, Recording
from ikigai_actors.recordings.session_files import WRITERS
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.transfer.manifest import Manifest
from ikigai_actors.shell.cli.main import cli
from ikigai_actors.verbs.arguments import RECORDER, SESSIONS
from ikigai_actors.verbs.upkeep.draft_records import records_of
from tests.kit.imported import imported, importing, said
from tests.kit.recordings import SAMPLES, ClaudeCode, Codex, Pi

Session = ClaudeCode | Codex | Pi

_VALUES = st.sampled_from(
    [None, True, -1, 2**70, "", "x", "\0\ud800", [], [7], {}, {"type": "text"}, [{"type": "image"}]]
)


@pytest.mark.parametrize("name", SAMPLES)
@given(data=st.data())
@settings(max_examples=40)
def test_a_mutilated_file_is_refused_with_a_line_or_gives_sound_agents(name: str, data: st.DataObject) -> None:
    lines = SAMPLES[name].splitlines(keepends=True)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(lines) - 1))
        match data.draw(st.sampled_from(["drop", "twice", "swap", "cut", "value"])):
            case "drop":
                lines[place : place + 1] = [] if len(lines) > 1 else lines[:1]
            case "twice":
                lines.insert(place, lines[-1])
            case "swap":
                lines[place], lines[0] = lines[0], lines[place]
            case "cut":
                lines[place] = lines[place][: data.draw(st.integers(1, len(lines[place])))]
            case _:
                with suppress(ValueError):
                    lines[place] = changed(data, json.loads(lines[place]))
    with suppress(ImportRefused):
        drafts = FORMATS[name].drafts_of([Recording("ship.jsonl", b"".join(lines))], {}, True)
        assert not drafts or Manifest(records_of(drafts, "test")).agents


def changed(data: st.DataObject, row: object) -> bytes:
    """A line in which one value, somewhere, is another one."""
    within = row
    while isinstance(within, dict) and within:
        key = data.draw(st.sampled_from(sorted(within)))
        if not isinstance(within[key], dict) or data.draw(st.booleans()):
            within[key] = data.draw(_VALUES)
            break
        within = within[key]
    return json.dumps(row).encode() + b"\n"


def deep(levels: int) -> dict[str, Any]:
    return {"a": deep(levels - 1)} if levels else {}


@pytest.mark.slow("takes a tenth of a second")
def test_a_call_that_no_live_reply_could_make_is_refused_in_the_same_words(tmp_path: Path) -> None:
    for levels in (97, 200, 900):
        claude, codex, pi = ClaudeCode(), Codex(), Pi()
        sessions: Sequence[Session] = (claude, codex, pi)
        for session in sessions:
            session.user("Look.")
        claude.reply("m1", claude.call("c1", of=deep(levels)))
        codex.reply(calls={"c1": {"of": deep(levels)}})
        pi.reply(pi.call("c1", of=deep(levels)))
        for session in sessions:
            (tmp_path / "ship.jsonl").write_bytes(session.data)
            if levels < 100:
                assert read_sessions(tmp_path / "ship.jsonl").records
                continue
            with pytest.raises(ImportRefused, match=r"line \d: Expected .* of a Reply to be nested 100 deep at most"):
                read_sessions(tmp_path / "ship.jsonl")


def test_the_commands_know_the_formats_and_the_formats_are_recognised() -> None:
    assert [*RECORDER.choices] == ["auto", *FORMATS]
    assert [*SESSIONS.choices] == [*WRITERS]
    assert {name: recorder_of(Recording("a.jsonl", data)) for name, data in SAMPLES.items()} == {
        name: name for name in SAMPLES
    }


@pytest.mark.slow("takes a tenth of a second")
def test_the_command_finds_out_what_has_written_a_file(tmp_path: Path) -> None:
    (tmp_path / "other.jsonl").write_bytes(b'{"a": 1}\n')
    database = f"sqlite:///{tmp_path}/ship.db"

    def command(*words: str) -> Result:
        return CliRunner().invoke(cli, ["--database", database, *words])

    for name, data in SAMPLES.items():
        (tmp_path / f"{name}.jsonl").write_bytes(data)
        assert "Imported " in command("import", str(tmp_path / f"{name}.jsonl")).output
    listed = json.loads(command("agents", "--json").stdout)
    named = sorted(row["name"] for row in listed if row["name"])
    assert named == [
        "claude-code", "claude-code-branch", "codex", "openai", "openai-branch", "otel", "pi", "pi-branch", "shipyard",
    ]  # fmt: skip
    refused = command("import", str(tmp_path / "other.jsonl"))
    assert "expected the header of a file that ikigai export has made" in str(refused.exception)
    assert command("export", "pi", str(tmp_path / "ours.jsonl")).exit_code == 0
    assert "Imported 2 agents" in command("import", str(tmp_path / "ours.jsonl")).output
    assert command("fsck").exit_code == 0


def test_a_file_of_our_own_may_be_larger_than_any_session(tmp_path: Path) -> None:
    file = tmp_path / "ours.jsonl"
    file.write_bytes(b'{"record":"header"')
    os.truncate(file, LARGEST_FILE + 1)
    assert importable(file) == file
    os.truncate(file, 0)
    os.truncate(file, LARGEST_FILE + 1)
    with pytest.raises(ImportRefused, match="expected 1 GiB at most"):
        read_sessions(file)


@pytest.mark.slow("takes a tenth of a second")
def test_every_format_comes_into_each_database(durable: str, tmp_path: Path) -> None:
    odd = SAMPLES["claude-code"].replace(b"We build", b"We \\u0000\\ud800 build")
    with ActorSystem.open(durable, OfflineProvider()) as system:
        for name, data in {**SAMPLES, "odd": odd}.items():
            (tmp_path / f"{name}.jsonl").write_bytes(data)
            top = system.import_(read_sessions(tmp_path / f"{name}.jsonl"))
            assert top.prompt("And?").get(timeout=30).text
        assert "We \ufffd\ufffd build" in top.history(all=True)[2].content
        assert check(system._store) == []


def _forked_codex() -> tuple[bytes, bytes]:
    first = Codex("a")
    first.turn("We build a ship.", "Yes.")
    first.turn("Of wood.", "Oak.")
    second = Codex("b", forked_from_id="a")
    second.rows += [{**row, "timestamp": "2026-02-01T00:00:00Z"} for row in first.rows[2:7]]
    second.turn("Of steel.", "Riveted.")
    return first.data, second.data


def _forked_pi() -> tuple[bytes, bytes]:
    first = Pi("a")
    first.turn("We build a ship.", "Yes.")
    first.turn("Of wood.", "Oak.")
    second = Pi("b", parentSession="/home/me/ship.jsonl", timestamp="2026-02-01T00:00:00Z")
    second.rows += first.rows[1:3]
    second.turn("Of steel.", "Riveted.")
    return first.data, second.data


@pytest.mark.parametrize("forked", [_forked_codex, _forked_pi])
def test_a_forked_session_is_a_fork_of_the_other_agent(
    tmp_path: Path, forked: Callable[[], tuple[bytes, bytes]]
) -> None:
    with importing() as system:
        top, fork = imported(system, tmp_path, *forked())
        assert [text for _, text in said(top)] == ["We build a ship.", "Yes.", "Of wood.", "Oak."]
        assert [text for _, text in said(fork)] == ["We build a ship.", "Yes.", "Of steel.", "Riveted."]
        assert (fork.parent, len(own_messages(fork))) == (top, 4)


DAMAGE: Mapping[Callable[[], Session], Sequence[tuple[Callable[[Any], object], str]]] = {
    ClaudeCode: [
        (lambda rows: rows[1].update(parentUuid="gone"), "line 2: its parent gone is on no line"),
        (lambda rows: rows[0].update(parentUuid=rows[1]["uuid"]), "line [12]: its parents lead back to itself"),
        (lambda rows: rows[1].update(parentUuid=7), "line 2: expected the id of its parent to be a text"),
        (
            lambda rows: rows[1].update(type="speech"),
            "line 2: a message of the unknown type speech; made by Claude Code 2",
        ),
        (lambda rows: rows[1].update(type=None), "line 2: expected a type"),
        (
            lambda rows: rows[1].pop("message"),
            "line 2: expected a line of the type assistant to have a uuid and a message",
        ),
        (
            lambda rows: rows[1].update(uuid=rows[0]["uuid"]),
            "line 2: the id .* is that of line 1, which says something",
        ),
        (
            lambda rows: rows[1]["message"].update(content=[{"type": "tool_use", "id": "a"}]),
            "line 2: expected a tool_use",
        ),
        (
            lambda rows: rows[1]["message"].update(content=[{"type": []}]),
            r"line 2: Expected blocks\[0\] of a Reply to be a content block",
        ),
        (
            lambda rows: rows[0]["message"].update(content=7),
            "line 1: expected the content of a message to be a text",
        ),
        (lambda rows: rows[0]["message"].update(content=[7]), "line 1: expected the content of a message to be a text"),
        (
            lambda rows: rows[0]["message"].update(content=[{"type": "text", "text": 7}]),
            "line 1: expected the text of a block to be a text",
        ),
        (lambda rows: rows.insert(1, 7), "line 2: expected a JSON object"),
    ],
    Codex: [
        (
            lambda rows: rows[2]["payload"].update(role="oracle"),
            "line 3: a message of the unknown role 'oracle'; made by",
        ),
        (
            lambda rows: rows[2].update(type="speech"),
            "line 3: a message of the unknown type speech; made by Codex 0.142",
        ),
        (lambda rows: rows[2]["payload"].update(content=7), "line 3: expected the content of a message to be a text"),
        (lambda rows: rows[2].update(payload=7), "line 3: expected a type and a payload"),
        (lambda rows: rows[4]["payload"].update(type="function_call"), "line 5: expected a call to have a call_id"),
    ],
    Pi: [
        (lambda rows: rows[1].update(parentId="gone"), "line 2: its parent gone is on no line"),
        (
            lambda rows: rows[1]["message"].update(role="oracle"),
            "line 2: a message of the unknown role 'oracle'; of version 3",
        ),
        (lambda rows: rows[1]["message"].update(content={}), "line 2: expected the content of a message to be a text"),
        (lambda rows: rows[1].update(type="speech"), "line 2: a message of the unknown type speech"),
        (lambda rows: rows[2]["message"].update(content=[{"type": "toolCall"}]), "line 3: expected a toolCall to have"),
    ],
}
"""What is done to the rows of a session of one turn, and what is said of it."""


@pytest.mark.parametrize(
    ("begun", "change", "problem"), [(begun, *each) for begun, damage in DAMAGE.items() for each in damage]
)
def test_a_damaged_file_is_refused_with_the_line(
    tmp_path: Path, begun: Callable[[], Session], change: Callable[[Any], object], problem: str
) -> None:
    session = begun()
    session.turn("One.", "Two.")
    change(session.rows)
    (tmp_path / "ship.jsonl").write_bytes(session.data)
    with pytest.raises(ImportRefused, match=f"Nothing was imported. ship.jsonl, {problem}"):
        read_sessions(tmp_path / "ship.jsonl")
