"""Skills that are used with their tools: rules of a person, for the skill exactly as it was shown."""

from dataclasses import replace
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, AgentRef, BadInput, Reply, ScriptedProvider, ToolCall
from ikigai_actors.records.agents.rules import SetSkillRules
from ikigai_actors.records.fsck.check import check
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.system.skills import rules_of_skills
from ikigai_actors.tools import Policy
from ikigai_actors.tools.function import FunctionTool, tool
from ikigai_actors.tools.policy import Compared, Subject
from tests.kit.blocking_provider import DEADLINE
from tests.kit.sessions import Session

DENIED = "This call was denied: nobody"


def write_skill(place: Path, tools: str = "Bash(git add:*), Bash, Bash(env:*)", name: str = "git") -> Path:
    folder = place / name
    folder.mkdir(parents=True, exist_ok=True)
    head = f"---\nname: {name}\ndescription: Commits.\nallowed-tools: {tools}\n---\n"
    (folder / "SKILL.md").write_text(f"{head}Do it.", encoding="utf-8")
    return place


class Shell:
    """A tool ``bash`` that notes what ran, for models that run what they are told, and a person who says no."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.asked: list[str] = []

        @tool(policy=Policy.ASK)
        def bash(command: str) -> str:
            self.ran.append(command)
            return "done"

        commands = Subject(Compared.COMMAND, lambda _, arguments: str(arguments.get("command", "")))
        self.tool: FunctionTool = replace(bash, traits=replace(bash.traits, subject=commands))

    def open(self, database: str) -> ActorSystem:
        return ActorSystem.open(database, ScriptedProvider(self.answer), tools=[self.tool], approvals=self.decide)

    def answer(self, request: "object") -> Reply:
        last = request.messages[-1]["content"][-1]  # type: ignore[attr-defined]
        if last["type"] == "text":
            return Reply(tool_calls=(ToolCall("bash", {"command": last["text"]}, "call"),))
        return Reply("ok")

    def decide(self, call: "object") -> bool:
        self.asked.append(call.input["command"])  # type: ignore[attr-defined]
        return False

    def runs(self, agent: AgentRef, command: str = "git add x") -> bool:
        """Have an agent call it; whether the call ran, and otherwise the person was asked."""
        ran, asked = len(self.ran), len(self.asked)
        agent.prompt(command).get(timeout=DEADLINE)
        assert len(self.ran) + len(self.asked) == ran + asked + 1
        return len(self.ran) > ran


def digest_of(system: ActorSystem, place: Path) -> str:
    [skill] = system.skills.find(place).skills
    return skill.sha256


def test_the_rules_of_a_skill_hold_where_it_is_in_use_as_it_was_shown_and_end_with_another_answer(
    database: str, tmp_path: Path
) -> None:
    place, shell = write_skill(tmp_path / "skills"), Shell()
    with shell.open(database) as system:
        agent = system.root.fork(name="clerk")
        before = agent.fork(name="before")
        agent.use_skills(place)
        assert not shell.runs(agent)  # the field of the file alone allows nothing
        agent.use_skills(place, tools_of=[digest_of(system, place)])
        first = digest_of(system, place)
        assert [(str(rule), rule.skill) for rule in agent.rules()] == [
            (f"allow bash git add * (with skill {first[:12]})", first)
        ]
        assert shell.runs(agent)
        child = agent.fork(name="child")
        assert shell.runs(child)
        assert not shell.runs(before)  # which has no such skill
        write_skill(tmp_path / "skills", "Bash(git add:*), Bash(rm:*)")
        assert shell.runs(agent)
        child.use_skills(place)
        assert not shell.runs(child)  # it has the changed one
        with pytest.raises(BadInput, match=rf"No skill has the digest {first} now; these are git [0-9a-f]{{64}}\."):
            agent.use_skills(place, tools_of=[first])
        agent.use_skills(place, tools_of=[digest_of(system, place)])
        assert shell.runs(agent, "rm x")
        assert shell.runs(child, "rm x")
        agent.use_skills(place)
        assert not shell.runs(agent)
        assert agent.rules() == []
        agent.use_skills(place, tools_of=[digest_of(system, place)])
        agent.mark("here")
        assert shell.runs(agent)
        agent.rewind("here")
        assert shell.runs(agent)  # as settings and rules stay
        agent.configure(skills=None)
        assert not shell.runs(agent)
        agent.use_skills(place, off=True)
        assert agent.rules() == []
        assert check(system._store) == []


MORE = ("$(rm x)", "x; rm y", "x\nrm y", "x && rm y", "`rm x`")


def test_what_is_more_than_a_skill_s_command_is_asked_about_as_before(tmp_path: Path) -> None:
    place, shell = write_skill(tmp_path / "skills"), Shell()
    with shell.open(":memory:") as system:
        system.root.use_skills(place, tools_of=[digest_of(system, place)])
        assert shell.runs(system.root)
        for command in (*(f"git add {more}" for more in MORE), "A=1 git add x", "env git add x", "git rm x"):
            assert not shell.runs(system.root, command)


def test_a_rule_that_denies_or_asks_wins_over_that_of_a_skill(tmp_path: Path) -> None:
    place, shell = write_skill(tmp_path / "skills"), Shell()
    with shell.open(":memory:") as system:
        kid = system.root.fork(name="kid")
        kid.use_skills(place, tools_of=[digest_of(system, place)])
        assert shell.runs(kid)
        ask = system.root.set_rule("ask", "bash", "git add secret")
        assert not shell.runs(kid, "git add secret")
        system.root.remove_rule(ask.id)
        system.root.set_rule("deny", "bash", "git *")
        kid.prompt("git add x").get(timeout=DEADLINE)
        assert (len(shell.ran), len(shell.asked)) == (1, 1)  # neither ran nor asked about


def test_a_kill_between_the_rules_and_the_skill_leaves_rules_that_hold_nowhere(durable: str, tmp_path: Path) -> None:
    place, shell = write_skill(tmp_path / "skills"), Shell()
    with shell.open(durable) as system:
        skills, digest = system.skills.find(place).skills, digest_of(system, place)
        unit = SetSkillRules(system.root.uuid, {digest}, rules_of_skills(skills, [digest]), 1)
        system._writer.perform(unit, None)
    with shell.open(durable) as system:
        assert [rule.skill for rule in system.root.rules()] == [digest]
        assert not shell.runs(system.root)
        system.root.use_skills(place, tools_of=[digest])
        assert shell.runs(system.root)
        assert len(system.root.rules()) == 1
        with AttachedSystem.open(durable) as other:
            [rule] = other.root.rules()
            other.root.remove_rule(rule.id)
        assert not shell.runs(system.root)


def test_an_export_has_no_rule_of_a_skill(tmp_path: Path) -> None:
    place, shell = write_skill(tmp_path / "skills"), Shell()
    with shell.open(":memory:") as system:
        agent = system.root.fork(name="clerk")
        agent.use_skills(place, tools_of=[digest_of(system, place)])
        agent.set_rule("deny", "bash", "git push")
        system.export(agent, tmp_path / "clerk.jsonl")
    with shell.open(":memory:") as system:
        assert [str(rule) for rule in system.import_(tmp_path / "clerk.jsonl").rules()] == ["deny bash git push"]


def test_a_person_sees_what_is_allowed_and_answers_for_the_digest_that_was_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, session: Session
) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path / "work")
    place = write_skill(tmp_path / "work" / ".claude" / "skills")
    [skill] = session.system.skills.find().skills
    short = skill.sha256[:12]
    line = (
        f"use --tools {short} git allows bash git add *; not allowed by it, and decided at each call: Bash, Bash(env:*)"
    )
    assert any(line in each for each in session("/skills"))
    write_skill(place, "Bash(rm:*)")
    assert any(
        f"git does not have the digest {short}, but is " in each for each in session(f"/skills use --tools {short} git")
    )
    assert session.system.root.rules() == []
    write_skill(place)
    assert any("git does not have the digest 12, but is " in each for each in session("/skills use --tools 12 git"))
    assert any("Say which: use --tools" in each for each in session(f"/skills off --tools {short} git"))
    session(f"/skills use --tools {short} git")
    assert any(f"allow bash git add * (with skill {short})" in each for each in session("/rules"))
