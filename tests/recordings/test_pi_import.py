"""Sessions of pi as agents: each shape of their files."""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem
from tests.kit.imported import imported, importing, said
from tests.kit.pictures import PNG
from tests.kit.recordings import Pi, text


@pytest.fixture
def system() -> Iterator[ActorSystem]:
    with importing() as opened:
        yield opened


def test_a_session_with_calls_pictures_and_costs(system: ActorSystem, tmp_path: Path) -> None:
    session = Pi()
    session.user([text("Look."), {"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "image/png"}])
    thought = {"type": "thinking", "thinking": "Hm.", "thinkingSignature": "xyz"}
    session.reply(thought, "I look.", session.call("c1", command="ls"))
    session.result("c1", "no such ship", is_error=True)
    session.reply("No ship.")
    session.message("bashExecution", command="make ship", output="made", exitCode=0)
    session.turn("And now?", "A ship.")
    [top] = imported(system, tmp_path, session.data)
    assert said(top) == [
        ("user", "Look."),
        ("assistant", "I look."),
        ("tool_result", "no such ship"),
        ("assistant", "No ship."),
        ("user", "Ran `make ship`:\nmade\n\nAnd now?"),
        ("assistant", "A ship."),
    ]
    prompt, reply, result = top.history()[2:5]
    assert (len(prompt.data["attached"]), result.data["is_error"]) == (1, True)
    assert reply.data["blocks"][0] == {"type": "thinking", "thinking": "Hm.", "signature": "xyz"}
    assert (top.record.spent_tokens, top.record.spent_usd) == (3 * 115, 750_000)


@pytest.mark.parametrize("version", [1, 3])
def test_errors_and_replies_that_were_cut_off(system: ActorSystem, tmp_path: Path, version: int) -> None:
    session = Pi(version=version)
    session.user("One.")
    session.reply("Tw", stopReason="aborted")
    session.user("Again.")
    session.reply(stopReason="error", errorMessage="overloaded")
    session.turn("Once more.", "Two.")
    [top] = imported(system, tmp_path, session.data)
    assert [kind for kind, _ in said(top)] == ["user", "assistant", "user", "error", "user", "assistant"]
    assert top.history()[3].data["stop_reason"] == "interrupted"


def test_another_path_is_a_fork_and_its_summary_is_said_to_the_other(system: ActorSystem, tmp_path: Path) -> None:
    session = Pi()
    end = session.turn("We build a ship.", "Yes.")
    session.turn("Of wood.", "Oak.", end)
    session.line("branch_summary", end, fromId=end, summary="Wood was tried.")
    session.turn("Of steel.", "Riveted.")
    session.line("label", targetId=end, label="here")
    top, branch = imported(system, tmp_path, session.data)
    assert [text for _, text in said(branch)][2:] == ["Of wood.", "Oak."]
    assert said(top)[2][1].endswith("Wood was tried.\n\nOf steel.")
    assert branch.diff(top).common == 4


def test_a_summary_keeps_what_it_says(system: ActorSystem, tmp_path: Path) -> None:
    session = Pi()
    session.turn("Build it.", "Built.")
    kept = session.user("Paint it.")
    session.reply("Blue.")
    session.line("compaction", summary="It is built.", firstKeptEntryId=kept, tokensBefore=9)
    session.turn("And then?", "Launched.")
    session.line("compaction", summary="It is launched.", firstKeptEntryId="gone", tokensBefore=9)
    [top] = imported(system, tmp_path, session.data)
    assert [message.data["keep_from"] for message in top.history(all=True) if message.kind == "summary"] == [5, 10]
    shown = top.prompt("repeat").get(timeout=30).text
    assert "It is launched." in shown
    assert "Launched." not in shown


def test_the_models_are_settings_if_they_are_kept(system: ActorSystem, tmp_path: Path) -> None:
    session = Pi()
    session.line("model_change", provider="openai", modelId="gpt-5")
    session.turn("One.", "Two.")
    [top] = imported(system, tmp_path, session.data, keep_model=True)
    assert top.context().settings["model"] == "openai:gpt-5"
