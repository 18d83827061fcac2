"""A team as a file: each agent once, whatever is killed between, and nothing changed of those that are there."""

from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, BadInput, NameTaken
from ikigai_actors.records.fsck.check import check
from tests.kit.blocking_provider import DEADLINE
from tests.kit.sessions import Session
from tests.system.test_kinds import Lead, write_kind

TEAM = """
kinds = "agents"

[agents.reviewer]
under = "lead"
kind = "reviewer"
restart = "permanent"

[agents.lead]
prompt = "Plan the ship."
budget = "tokens=50k"
labels = { team = "sea" }
"""


def write_team(place: Path, text: str = TEAM) -> Path:
    write_kind(place / "agents")
    file = place / "team.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_team_is_made_once_and_a_second_run_says_where_it_differs(durable: str, tmp_path: Path) -> None:
    file = write_team(tmp_path)
    model = Lead()
    with ActorSystem.open(durable, model.provider) as system:
        assert [line.state for line in system.up(file, plan=True)] == ["new", "new"]
        assert system.root.children() == []
        assert [(line.name, line.state) for line in system.up(file)] == [("lead", "new"), ("reviewer", "new")]
        lead, reviewer = system.agent("lead"), system.agent("reviewer")
        assert lead.reply(timeout=DEADLINE).text == "ok"
        assert (reviewer.parent, reviewer.record.restart) == (lead, "permanent")
        assert reviewer.record.labels == {"team": "sea"}
        reviewer.prompt("Look.").get(timeout=DEADLINE)
        assert model.asked_by("reviewer")[-1].system == "You review code."
    with ActorSystem.open(durable, model.provider) as system:
        assert [(line.state, line.differs) for line in system.up(file)] == [("there", ())] * 2
        file.write_text(TEAM.replace("tokens=50k", "tokens=9k").replace("the ship", "the mast"), encoding="utf-8")
        [lead_line, _] = system.up(file)
        assert lead_line.state == "differs"
        assert lead_line.differs == (
            "prompt is Plan the ship., and the file says Plan the mast.",
            "budget is {'tokens': 50000}, and the file says {'tokens': 9000}",
        )
        system.agent("reviewer").kill(timeout=DEADLINE)
        assert [line.state for line in system.up(file)] == ["differs", "dead"]
        assert len(model.asked_by("lead")) == 1
        assert check(system._store) == []


def test_a_run_that_was_cut_off_is_finished_by_the_next_one(tmp_path: Path) -> None:
    file = write_team(tmp_path)
    with ActorSystem.open(":memory:", Lead().provider) as system:
        taken = system.root.fork(name="reviewer")
        with pytest.raises(NameTaken, match="reviewer"):
            system.up(file)
        assert system.agent("lead").reply(timeout=DEADLINE).text == "ok"
        taken.kill(timeout=DEADLINE)
        assert [line.state for line in system.up(file)] == ["there", "new"]
        assert system.agent("reviewer").parent == system.agent("lead")


@pytest.mark.sample(4, "files")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("agents = 3", "Expected agents in"),
        ("[agents]", "Expected agents in"),
        ("[agents.lead]\nwage = 3", r"There is no wage in \[agents\.lead\]"),
        ("[agents.lead]\nprompt = 3", "Expected prompt in"),
        ("[agents.lead]\nunder = 'nobody'", "which the file does not have"),
        ("[agents.a]\nunder = 'b'\n[agents.b]\nunder = 'a'", "a, b are under one another"),
        ("[agents.lead]\nkind = 'captain'", 'Agent 0 has no kind captain: name their directory'),
        ("kinds = 'agents'\n[agents.lead]\nkind = 'captain'", r"There is no kind captain in .*\. Kinds: reviewer\."),
        ("[agents.lead]\nkind = 'x'\nsystem = 'y'", "Expected kind or system"),
        ("[agents.lead", "cannot be read"),
    ],
)  # fmt: skip
def test_a_file_that_says_what_cannot_be_is_refused_and_makes_nobody(tmp_path: Path, text: str, why: str) -> None:
    file = write_team(tmp_path, text)
    with ActorSystem.open(":memory:", Lead().provider) as system:
        with pytest.raises(BadInput, match=why):
            system.up(file)
        assert system.root.children() == []


def test_a_person_makes_a_team_at_a_shell(session: Session, tmp_path: Path) -> None:
    file = write_team(tmp_path)
    assert session(f"/up {file} --plan") == ["lead   would be made", "reviewer   would be made"]
    assert session(f"/up {file}") == ["lead   made", "reviewer   made"]
    assert session(f"/up {file}") == ["lead   as in the file", "reviewer   as in the file"]
    shown = session("/kinds")
    assert shown[0].startswith("reviewer   in use")
    assert not any(line.startswith("error") for line in shown)
    session("/fork --kind reviewer --name second Look at it.")
    assert session.system.agent("second").context().settings["system"] == "You review code."
