"""All formats of other programs: nothing of a file that is damaged, and nothing lost of one that is not."""

import json
import os
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from ikigai_actors import ActorSystem, OfflineProvider
from ikigai_actors.errors import ImportRefused
from ikigai_actors.recordings import FORMATS, read_sessions
from ikigai_actors.recordings.formats import importable, recorder_of
from ikigai_actors.recordings.recording import LARGEST_FILE, Recording
from ikigai_actors.recordings.records import records_of
from ikigai_actors.recordings.session_files import WRITERS
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.transfer.manifest import Manifest
from ikigai_actors.shell.cli.main import cli
from ikigai_actors.shell.verbs.arguments import RECORDER, SESSIONS
from tests.kit.recordings import SAMPLES

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


def test_the_commands_know_the_formats_and_the_formats_are_recognised() -> None:
    assert [*RECORDER.choices] == ["auto", *FORMATS]
    assert [*SESSIONS.choices] == [*WRITERS]
    assert {name: recorder_of(Recording("a.jsonl", data)) for name, data in SAMPLES.items()} == {
        name: name for name in SAMPLES
    }


def test_the_command_finds_out_what_has_written_a_file(tmp_path: Path) -> None:
    (tmp_path / "other.jsonl").write_bytes(b'{"a": 1}\n')
    database = f"sqlite:///{tmp_path}/ship.db"

    def command(*words: str) -> Result:
        return CliRunner().invoke(cli, ["--database", database, *words])

    for name, data in SAMPLES.items():
        (tmp_path / f"{name}.jsonl").write_bytes(data)
        assert "Imported " in command("import", str(tmp_path / f"{name}.jsonl")).output
    listed = json.loads(command("agents", "--json").stdout)
    named = sorted(one["name"] for one in listed if one["name"])
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


def test_every_format_comes_into_each_database(durable: str, tmp_path: Path) -> None:
    odd = SAMPLES["claude-code"].replace(b"We build", b"We \\u0000\\ud800 build")
    with ActorSystem.open(durable, OfflineProvider()) as system:
        for name, data in {**SAMPLES, "odd": odd}.items():
            (tmp_path / f"{name}.jsonl").write_bytes(data)
            top = system.import_(read_sessions(tmp_path / f"{name}.jsonl"))
            assert top.prompt("And?").get(timeout=30).text
        assert "We \ufffd\ufffd build" in top.history(all=True)[2].content
        assert check(system._store) == []
