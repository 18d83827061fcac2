"""Pictures in the shell: mentioned by a prompt, shown as a line, left by a command."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from ikigai_actors import ActorSystem, BadInput, OfflineProvider
from ikigai_actors.shell.cli.main import cli
from tests.kit.databases import eventually
from tests.kit.pictures import PNG
from tests.kit.sessions import Session

LINE = f"[attached: plan.png, image/png, {len(PNG)} bytes]"


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "plan.png"
    path.write_bytes(PNG)
    return path


def attached(session: Session) -> list[str]:
    lists = [message.data.get("attached", []) for message in session.system.root.history() if message.kind == "user"]
    return [attachment["name"] for listed in lists for attachment in listed]


def test_a_prompt_attaches_what_it_mentions_and_the_history_has_a_line_of_it(session: Session, picture: Path) -> None:
    printed = session(f"What is in @{picture}?", "/history")
    assert LINE in printed
    assert any(line.strip() == LINE for line in printed[printed.index(LINE) + 1 :])
    assert attached(session) == ["plan.png"]


def test_a_path_alone_is_a_prompt_and_no_command(session: Session, picture: Path) -> None:
    assert LINE in session(str(picture), f'/fork "look at @{picture}"')
    assert attached(session) == ["plan.png"]
    [child] = session.system.root.children()
    [prompt] = [message for message in child.history() if message.agent_uuid == child.uuid and message.kind == "user"]
    assert prompt.data["attached"][0]["name"] == "plan.png"


def test_a_picture_that_is_not_there_prompts_nobody(session: Session) -> None:
    [line] = session("What is in @nowhere.png?")
    assert line == "error: There is no file 'nowhere.png?' to attach."
    assert session.system.root.history() == []


@pytest.mark.slow("takes a tenth of a second")
def test_a_command_leaves_a_prompt_with_a_picture(tmp_path: Path, picture: Path) -> None:
    database = str(tmp_path / "a.db")
    with ActorSystem.open(database, OfflineProvider()) as system:
        uuid = system.root.uuid
    left = CliRunner().invoke(cli, ["--database", database, "prompt", "--attach", str(picture), uuid, "Look."])
    assert left.exit_code == 0
    wrong = CliRunner().invoke(cli, ["--database", database, "prompt", "--attach", "no.png", uuid, "Look."])
    assert (wrong.exit_code, isinstance(wrong.exception, BadInput)) == (1, True)
    with ActorSystem.open(database, OfflineProvider()) as system:
        eventually(lambda: len(system.root.history()) == 2, "the prompt and its answer")
        assert [attachment["name"] for attachment in system.root.history()[0].data["attached"]] == ["plan.png"]
