"""Skills in the documents that all agents share: found beside those of folders, and foreign like them."""

from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, BadInput
from ikigai_actors.records.fsck.check import check
from ikigai_actors.shell.cli.notices import skill_notices
from ikigai_actors.tools.workspace import Workspace
from tests.kit.sessions import Session
from tests.system.test_skills import STEP, Reader, results, say, write_skill

HEAD = "---\ndescription: Fills forms.\n---\n"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory without skills, below a home without any."""
    (tmp_path / "work").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def test_a_skill_in_documents_is_pinned_by_name_loaded_forked_and_undone_by_a_rewind(database: str, work: Path) -> None:
    model = Reader()
    with ActorSystem.open(database, model.provider) as system:
        agent = system.root.fork(name="clerk")
        system.documents.write("skills/pdf/SKILL.md", f"{HEAD}{STEP}", author=agent)
        system.documents.write("skills/pdf/forms/a.md", "name, date")
        system.documents.write("skills/README.md", "No skill.")
        say(agent, "hi")
        assert model.requests[-1].system == ""  # written by anybody, it is before nobody
        agent.use_skills(only=["pdf"])
        agent.mark("before")
        [skill] = system.skills.find().skills
        [entry] = agent.context().settings["skills"]
        assert (entry["sha256"], entry["from"]) == (skill.sha256, "documents skills/pdf")
        system.documents.write("skills/pdf/SKILL.md", f"{HEAD}OTHER")
        say(agent, "load pdf", "load pdf forms/a.md")
        assert (model.sees(), model.sees("OTHER")) == (1, 0)
        assert results(agent)[-1] == "name, date"
        child = agent.fork("hi")
        child.reply()
        agent.rewind("before")
        say(agent, "hi")
        assert model.sees() == 0
        say(child, "hi")
        assert model.sees() == 1
        assert model.requests[-1].system.endswith("\n- pdf: Fills forms.\n</skills>")
        assert check(system._store) == []


def test_a_document_takes_no_name_of_a_skill_on_the_disk(work: Path) -> None:
    write_skill(work / ".claude" / "skills")
    model = Reader()
    with ActorSystem.open(":memory:", model.provider, tools=[Workspace(work, fence="none")]) as system:
        system.documents.write("skills/forms/SKILL.md", "---\nname: pdf\ndescription: Evil.\n---\nEVIL")
        listing = system.skills.find()
        assert [skill.description for skill in listing.skills] == ["Fills forms: use it when a form is to be filled."]
        assert listing.troubles == (
            f"Skill pdf of documents skills/forms is shadowed by that of {work / '.claude' / 'skills' / 'pdf'}.",
        )
        system.root.use_skills(only=["pdf"])
        say(system.root, "load pdf")
        assert (model.sees(), model.sees("EVIL")) == (1, 0)


def test_a_person_is_told_of_a_skill_in_documents_and_again_when_it_changes_and_may_look(
    work: Path, session: Session
) -> None:
    documents = session.system.documents
    documents.write("skills/pdf/SKILL.md", f"{HEAD}{STEP}")
    documents.write("skills/mute/SKILL.md", "---\nname: mute\n---\n")
    assert skill_notices(session.system)[0].startswith("Not in use here: pdf. ")
    shown = session("/skills", "/skills look pdf")
    assert any(line.startswith("pdf   new   1 files, ") for line in shown)
    assert "The skill in documents skills/mute is left out: its SKILL.md has no description." in shown
    assert any(STEP in line for line in shown)
    session("/skills use pdf")
    assert skill_notices(session.system) == []
    documents.write("skills/pdf/SKILL.md", f"{HEAD}OTHER")
    assert skill_notices(session.system)[0].startswith("Not in use here: pdf. ")
    session("/skills off pdf")
    assert skill_notices(session.system) == []
    documents.delete("skills/pdf/SKILL.md")
    with pytest.raises(BadInput, match=r"There is no skill pdf in the usual places\."):
        session.system.root.use_skills(only=["pdf"])
