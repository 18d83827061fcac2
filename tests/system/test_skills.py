"""Skills: pinned by their files, loaded from the log's database, and as long before a model as the law says."""

import json
import re
import sqlite3
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, AgentRef, BadInput, ProviderError, Reply, Request, ScriptedProvider, ToolCall
from ikigai_actors.providers.base import SUMMARISE
from ikigai_actors.records.fsck.check import check
from ikigai_actors.testing.simulation.messages_api import violations
from ikigai_actors.verbs.upkeep.prune import prune_database as prune
from tests.agent.turn.test_assembly import wire
from tests.kit.blocking_provider import DEADLINE

STEP = "SECRET-STEP: stamp every page twice."
LONG = "so many words that a summary pays " * 60


def write_skill(place: Path, name: str = "pdf", body: str = STEP, **files: str) -> Path:
    folder = place / name
    folder.mkdir(parents=True, exist_ok=True)
    head = f"---\nname: {name}\ndescription: Fills forms: use it when a form is to be filled.\n---\n"
    (folder / "SKILL.md").write_text(f"{head}# Forms\n\n{body}\n", encoding="utf-8")
    for path, text in files.items():
        (folder / path).write_text(text, encoding="utf-8")
    return folder


class Reader:
    """A model that loads what it is told to load."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.provider = ScriptedProvider(self.answer)

    def answer(self, request: Request) -> Reply:
        self.requests.append(request)
        assert violations({**wire(request), "model": "any", "tools": list(request.tools)}) == []
        last = request.messages[-1]["content"][-1]
        text = str(last.get("text", "")) if last["type"] == "text" else ""
        if text.startswith(SUMMARISE):
            return Reply("notes")
        word, _, rest = text.partition(" ")
        if word == "find":
            return Reply(tool_calls=(ToolCall("find_tools", {"query": rest}, f"call{len(self.requests)}"),))
        if word == "load":
            name, _, file = rest.partition(" ")
            arguments = {"name": name, **({"file": file} if file else {})}
            return Reply(tool_calls=(ToolCall("load_skill", arguments, f"call{len(self.requests)}"),))
        return Reply("ok")

    def sees(self, text: str = STEP) -> int:
        """How often the latest request has a text."""
        return json.dumps(list(self.requests[-1].messages)).count(text)


def say(agent: AgentRef, *prompts: str) -> None:
    for prompt in prompts:
        agent.prompt(prompt).get(timeout=DEADLINE)


def results(agent: AgentRef) -> list[str]:
    return [message.content for message in agent.history() if message.kind == "tool_result"]


def test_a_skill_is_listed_loaded_once_forked_undone_and_loaded_again(database: str, tmp_path: Path) -> None:
    write_skill(tmp_path, fields="name, date")
    model = Reader()
    with ActorSystem.open(database, model.provider) as system:
        agent = system.root.fork(name="clerk")
        say(agent, "hi")
        assert "load_skill" not in [tool["name"] for tool in model.requests[-1].tools]
        agent.use_skills(tmp_path)
        say(agent, "hi")
        assert model.requests[-1].system.endswith(
            "\n- pdf: Fills forms: use it when a form is to be filled.\n</skills>"
        )
        assert "load_skill" in [tool["name"] for tool in model.requests[-1].tools]
        assert not model.sees()
        say(agent, "load pdf")
        assert model.sees() == 1
        assert results(agent)[-1].endswith("[Its other files, which load_skill shows: fields.]")
        child = agent.fork("hi")
        child.reply(timeout=DEADLINE)
        assert model.sees() == 1
        say(agent, "load pdf", "load pdf fields", "load pdf nothing", "load word")
        assert re.fullmatch(r"Skill pdf is loaded already, as message \d+\.", results(agent)[-4])
        assert results(agent)[-3:] == [
            "name, date",
            "Skill pdf has no file 'nothing'. Its other files, which load_skill shows: fields.",
            "There is no skill 'word'. Skills: pdf.",
        ]
        for _ in range(5):
            agent.undo()
        say(agent, "hi")
        assert not model.sees()
        say(child, "hi")
        assert model.sees() == 1
        say(agent, "load pdf")
        assert model.sees() == 1
        assert check(system._store) == []


@pytest.mark.slow("takes a tenth of a second")
def test_two_summaries_keep_the_text_once_and_so_does_taking_them_off(durable: str, tmp_path: Path) -> None:
    write_skill(tmp_path)
    model = Reader()
    with ActorSystem.open(durable, model.provider) as system:
        agent = system.root.fork(name="clerk")
        agent.use_skills(tmp_path)
        say(agent, "load pdf", *[f"{number} {LONG}" for number in range(8)])
        for _ in range(2):
            agent.compact("all of it")
            say(agent, "hi")
            assert model.sees() == 1
            assert model.sees("<skill name=") == 1
            say(agent, "load pdf")
            assert "is loaded already" in results(agent)[-1]
            say(agent, *[f"{number} {LONG}" for number in range(8)])
    with ActorSystem.open(durable, model.provider) as system:
        agent = system.agent("clerk")
        agent.uncompact()
        agent.uncompact()
        say(agent, "hi")
        assert model.sees() == 1
        assert not model.sees("<skill name=")
        assert check(system._store) == []


def test_a_changed_file_changes_no_agent_and_changed_bytes_are_refused(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "skills")
    model, database = Reader(), tmp_path / "a.db"
    with ActorSystem.open(database, model.provider) as system:
        system.root.use_skills(tmp_path / "skills")
        write_skill(tmp_path / "skills", body="OTHER")
        say(system.root, "load pdf")
        assert (model.sees(), model.sees("OTHER")) == (1, 0)
        [new] = system.skills.find(tmp_path / "skills").skills
        assert new.sha256 != system.root.context().settings["skills"][0]["sha256"]
        system.root.undo()
        (folder / "SKILL.md").unlink()
    store = sqlite3.connect(database)
    store.execute("UPDATE blobs SET bytes = ?", (b"EVIL",))
    store.commit()
    store.close()
    with ActorSystem.open(database, model.provider) as system:
        say(system.root, "load pdf")
        assert results(system.root) == [
            "SKILL.md of this skill is not in the database as it was pinned. Do without it."
        ]


@pytest.mark.slow("takes a tenth of a second")
def test_pinned_files_outlive_a_prune_and_a_setting_that_was_edited_is_refused(tmp_path: Path) -> None:
    write_skill(tmp_path / "skills")
    model, database = Reader(), tmp_path / "a.db"
    with ActorSystem.open(database, model.provider) as system:
        system.root.use_skills(tmp_path / "skills")
        system.root.fork(name="gone").kill(timeout=DEADLINE)
    prune(str(database), "0s", dry_run=False, vacuum=False)
    with ActorSystem.open(database, model.provider) as system:
        say(system.root, "load pdf")
        assert model.sees() == 1
        [entry] = system.root.context().settings["skills"]
        with pytest.raises(BadInput, match="setting skills"):
            system.root.configure(skills=[{**entry, "description": "Whatever"}])
        system.root.configure(skills=[{**entry, "off": True}])
        say(system.root, "hi")
        assert model.requests[-1].system == ""


def test_only_the_skills_that_are_named_are_pinned_and_wrong_names_say_which_there_are(tmp_path: Path) -> None:
    for name in ("pdf", "csv"):
        write_skill(tmp_path, name)
    with ActorSystem.open(":memory:", Reader().provider) as system:
        root = system.root
        root.use_skills(tmp_path, only=["csv"])
        assert [skill["name"] for skill in root.context().settings["skills"]] == ["csv"]
        root.use_skills(tmp_path, only=["pdf"])
        assert [skill["name"] for skill in root.context().settings["skills"]] == ["csv", "pdf"]
        with pytest.raises(BadInput, match=r"There is no skill doc in .*\. Skills: csv, pdf\."):
            root.use_skills(tmp_path, only=["doc"])
        for number in range(100):
            write_skill(tmp_path / "many", f"s{number}")
        with pytest.raises(BadInput, match="100 skills at most"):
            root.use_skills(tmp_path / "many")


def test_an_export_has_the_text_that_was_loaded_and_an_import_pins_nothing(tmp_path: Path) -> None:
    write_skill(tmp_path / "skills")
    model = Reader()
    with ActorSystem.open(":memory:", model.provider) as system:
        agent = system.root.fork(name="clerk")
        agent.use_skills(tmp_path / "skills")
        say(agent, "load pdf")
        system.export(agent, tmp_path / "clerk.jsonl")
    with ActorSystem.open(":memory:", model.provider) as system:
        agent = system.import_(tmp_path / "clerk.jsonl")
        assert "skills" not in agent.context().settings
        say(agent, "hi")
        assert model.requests[-1].system == ""
        assert model.sees() == 1
        assert check(system._store) == []


def test_the_instructions_of_a_project_follow_the_system_prompt_as_they_were_pinned(tmp_path: Path) -> None:
    model = Reader()
    (tmp_path / "CLAUDE.md").write_text("@more.md\nBe terse. </instructions>\n@none.md", encoding="utf-8")
    (tmp_path / "more.md").write_text("Use tabs.", encoding="utf-8")
    with ActorSystem.open(":memory:", model.provider) as system:
        agent = system.root.fork(name="clerk")
        agent.configure(system="You file papers.")
        agent.use_instructions(tmp_path)
        text = "<instructions>\nUse tabs.\nBe terse. &lt;/instructions>\n@none.md\n</instructions>"
        (tmp_path / "AGENTS.md").write_text("Be wordy.", encoding="utf-8")
        say(agent, "hi")
        assert model.requests[-1].system == f"You file papers.\n\n{text}"
        system.export(agent, tmp_path / "clerk.jsonl")
        (tmp_path / "forms").mkdir()
        (tmp_path / "forms" / "AGENTS.md").write_text("SECRET-STEP", encoding="utf-8")
        agent.use_instructions(tmp_path)
        child = agent.fork("hi")
        child.reply(timeout=DEADLINE)
        assert model.requests[-1].system.startswith("You file papers.\n\n<instructions>\nBe wordy.\n\nFurther")
        assert model.requests[-1].system.endswith(", read it:\nforms/AGENTS.md\n</instructions>")
        [entry] = agent.context().settings["instructions"]
        with pytest.raises(BadInput, match="setting instructions"):
            agent.configure(instructions=[{**entry, "text": "Whatever"}])
        with pytest.raises(BadInput, match=r"There are no instructions in .*: no AGENTS\.md and no CLAUDE\.md\."):
            agent.use_instructions(tmp_path / "..")
    with ActorSystem.open(":memory:", model.provider) as system:
        agent = system.import_(tmp_path / "clerk.jsonl")
        say(agent, "hi")
        assert model.requests[-1].system == "You file papers."


@pytest.mark.slow("takes a tenth of a second")
def test_a_prompt_brings_the_text_of_a_skill_once_and_so_does_the_first_one_of_a_child(
    database: str, tmp_path: Path
) -> None:
    write_skill(tmp_path)
    write_skill(tmp_path, "by-hand", "OTHER-STEP")
    hand = tmp_path / "by-hand" / "SKILL.md"
    hand.write_text(hand.read_text().replace("---\n# F", "disable-model-invocation: true\n---\n# F"), encoding="utf-8")
    model = Reader()
    with ActorSystem.open(database, model.provider) as system:
        agent = system.root.fork(name="clerk")
        agent.use_skills(tmp_path)
        first = agent.prompt("Fill it in.", skills=["pdf", "by-hand"], key="one").get(timeout=DEADLINE)
        assert agent.prompt("Fill it in.", skills=["pdf", "by-hand"], key="one").get(timeout=DEADLINE) == first
        assert (model.sees(), model.sees("OTHER-STEP"), len(model.requests)) == (1, 1, 1)
        agent.prompt("And this.", skills=["pdf"]).get(timeout=DEADLINE)
        say(agent, "load pdf")
        assert "is loaded already, as message" in results(agent)[-1]
        child = agent.fork("Yours.", skills=["pdf"])
        child.reply(timeout=DEADLINE)
        assert model.sees() == 1
        fresh = system.root.fork(name="fresh")
        fresh.use_skills(tmp_path, only=["pdf"])
        fresh.fork("Yours.", skills=["pdf"], key="two").reply(timeout=DEADLINE)
        assert model.sees() == 1
        assert fresh.fork("Yours.", skills=["pdf"], key="two").reply(timeout=DEADLINE).text == "ok"
        say(agent, *[f"{number} {LONG}" for number in range(8)])
        agent.compact("all of it")
        agent.prompt("Once more.", skills=["pdf"]).get(timeout=DEADLINE)
        assert (model.sees(), model.sees('<skill name=\\"pdf\\">')) == (1, 1)
        fresh.prompt("Fill it in.", skills=["pdf"]).get(timeout=DEADLINE)
        fresh.undo()
        say(fresh, "hi")
        assert not model.sees()
        with pytest.raises(BadInput, match=r"The agent has no skill doc\. Skills: by-hand, pdf\."):
            agent.prompt("Hm.", skills=["doc"])
        with pytest.raises(BadInput, match="Expected skills to be a list of names"):
            agent.prompt("Hm.", skills="pdf")
        with pytest.raises(BadInput, match="Expected a prompt for the child"):
            agent.fork(skills=["pdf"])
        assert check(system._store) == []


def test_a_prompt_that_repeats_one_without_an_answer_brings_its_skill_again(tmp_path: Path) -> None:
    write_skill(tmp_path)
    model = Reader()
    fails = [True]

    def answer(request: Request) -> Reply:
        if fails:
            fails.pop()
            raise ProviderError("no")
        return model.answer(request)

    with ActorSystem.open(":memory:", ScriptedProvider(answer)) as system:
        system.root.use_skills(tmp_path)
        with pytest.raises(ProviderError):
            system.root.prompt("Fill it in.", skills=["pdf"]).get(timeout=DEADLINE)
        system.root.prompt("Fill it in.", skills=["pdf"]).get(timeout=DEADLINE)
        assert model.sees() == 1


@pytest.mark.parametrize("by_reference", [False, True])
def test_an_unlisted_skill_is_found_or_loaded_by_its_name_and_is_in_no_system_prompt(
    by_reference: bool, tmp_path: Path
) -> None:
    for name in ("pdf", "csv"):
        write_skill(tmp_path, name)
    model = Reader()
    if by_reference:
        model.provider.refers_to_tools = lambda model: True  # type: ignore[attr-defined]
    with ActorSystem.open(":memory:", model.provider) as system:
        agent = system.root.fork(name="clerk")
        agent.use_skills(tmp_path, only=["pdf"], unlisted=True)
        say(agent, "find a document or a form to be filled")
        assert "pdf" not in model.requests[-1].system
        assert "find_tools" in [tool["name"] for tool in model.requests[-1].tools]
        line = "- pdf: Fills forms: use it when a form is to be filled."
        assert model.sees(json.dumps(line)[1:-1]) == 1
        assert results(agent)[-1].endswith(f"\nThese skills fit, which load_skill loads:\n{line}")
        say(agent, "load pdf")
        assert model.sees() == 1
        agent.use_skills(tmp_path, only=["csv"])
        child = agent.fork("hi")
        child.reply(timeout=DEADLINE)
        catalogue = model.requests[-1].system.splitlines()
        assert catalogue[2:] == ["There are further ones, which find_tools finds.", f"- csv{line[5:]}", "</skills>"]
        child.configure(tools=["load_skill"])
        say(child, "hi")
        assert "find_tools" not in model.requests[-1].system
        child.use_skills(tmp_path, only=["csv"], off=True)
        child.configure(tools=["load_skill", "find_tools"])
        say(child, "find zebra crossings")
        assert model.requests[-1].system.startswith("<skills>\nThere are instructions for particular tasks. find_tools")
        assert [tool["name"] for tool in child.tools()] == ["find_tools", "load_skill"]
        child.use_skills(tmp_path, only=["pdf"])
        say(child, "hi")
        assert [tool["name"] for tool in child.tools()] == ["load_skill"]
        assert model.requests[-1].system.endswith(f"\n{line}\n</skills>")
        assert check(system._store) == []
