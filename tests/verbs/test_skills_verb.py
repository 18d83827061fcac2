"""Skills and instructions on a disk: a person decides once about each, and is told of those that are left."""

from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, BadInput, Message, OfflineProvider
from ikigai_actors.shell.cli.notices import skill_notices
from ikigai_actors.tools.workspace import Workspace
from tests.kit.databases import eventually
from tests.kit.sessions import Session
from tests.system.test_skills import write_skill


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with two skills and instructions, below a home with others."""
    home, work = tmp_path / "home", tmp_path / "work"
    (home / ".claude").mkdir(parents=True)
    (home / ".claude" / "CLAUDE.md").write_text("Call me Ann.", encoding="utf-8")
    write_skill(home / ".claude" / "skills", "pdf")
    write_skill(work / ".agents" / "skills", "csv")
    (work / "AGENTS.md").write_text("Use tabs.", encoding="utf-8")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(work)
    return work


@pytest.mark.slow("takes a tenth of a second")
def test_a_person_is_told_of_each_skill_until_it_is_taken_or_refused_and_again_when_it_changes(
    disk: Path, session: Session
) -> None:
    root = session.system.root
    assert skill_notices(session.system) == [
        "Not in use here: instructions, csv, pdf. /skills shows them, /skills use NAME or off NAME decides."
    ]
    assert root.context().settings == {}
    shown = session("/skills")
    assert "instructions   new   of the directory" in shown
    assert any(line.startswith("csv   new   1 files, ") for line in shown)
    assert not any(line.startswith("error") for line in shown)
    session("/skills use csv instructions", "/skills off pdf")
    settings = root.context().settings
    assert [(skill["name"], skill.get("off", False)) for skill in settings["skills"]] == [("csv", False), ("pdf", True)]
    assert [instruction["text"] for instruction in settings["instructions"]] == ["Call me Ann.", "Use tabs."]
    assert skill_notices(session.system) == []
    write_skill(disk / ".agents" / "skills", "csv", "Another step.")
    assert skill_notices(session.system)[0].startswith("Not in use here: csv. ")
    assert any(line.startswith("csv   changed") for line in session("/skills"))
    assert "Another step." in "\n".join(session("/skills look csv"))
    session("/skills use csv")
    assert skill_notices(session.system) == []
    assert any(line.startswith("pdf   refused") for line in session("/skills"))
    (disk / ".agents" / "skills" / "csv" / "run.sh").write_text("rm -rf /", encoding="utf-8")
    assert skill_notices(session.system)[0].startswith("Not in use here: csv. ")
    session("/skills use csv")
    assert skill_notices(session.system) == []


def test_what_was_refused_is_before_no_model(disk: Path) -> None:
    with ActorSystem.open(":memory:", OfflineProvider(), tools=[Workspace(disk, fence="none")]) as system:
        root = system.root
        root.use_skills(only=["pdf"], off=True)
        root.use_instructions(user=True, off=True)
        assert "load_skill" not in [tool["name"] for tool in root.tools()]
        with pytest.raises(BadInput, match=r"The agent has no skill pdf\. Skills: none\."):
            root.prompt("Go.", skills=["pdf"])
        with pytest.raises(BadInput, match=r"There is no skill doc in the usual places\. Skills: csv, pdf\."):
            root.use_skills(only=["doc"])
        with pytest.raises(BadInput, match="got neither"):
            root.use_skills()
        with pytest.raises(BadInput, match="got neither"):
            root.use_instructions()


def test_a_person_prompts_with_the_text_of_a_skill(disk: Path, session: Session) -> None:
    assert any("The agent has no skill pdf" in line for line in session("/skill pdf Fill it in."))
    session("/skills use pdf")
    session("/skill pdf Fill it in.", "/skill pdf")
    root = session.system.root

    def prompts() -> list[Message]:
        return [message for message in root.history() if message.kind == "user"]

    texts = ["Fill it in.", "Do what the skill pdf says."]
    eventually(lambda: [prompt.content for prompt in prompts()] == texts, "both are prompts")
    assert [[each["name"] for each in prompt.data.get("skills", ())] for prompt in prompts()] == [["pdf"], []]
