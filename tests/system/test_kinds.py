"""Kinds of agents: pinned by what their files say, forked by programs and models, and never wider than the parent."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from ikigai_actors import ActorSystem, AgentRef, BadInput, Budget, Reply, Request, ScriptedProvider, ToolCall, tool
from ikigai_actors.records.fsck.check import check
from ikigai_actors.testing.simulation.messages_api import violations
from tests.agent.turn.test_assembly import wire
from tests.kit.blocking_provider import DEADLINE
from tests.system.test_skills import write_skill

REVIEWER = """---
name: reviewer
description: Reviews code.
tools: Read, send
model: sonnet
maxTurns: 500
color: red
---
You review code.
"""


@tool
def read(path: str) -> str:
    """Read a file."""
    return f"the text of {path}"


@tool
def delete(path: str) -> str:
    """Delete a file."""
    return f"{path} is gone"


def write_kind(place: Path, text: str = REVIEWER, name: str = "reviewer") -> Path:
    place.mkdir(parents=True, exist_ok=True)
    file = place / f"{name}.md"
    file.write_text(text, encoding="utf-8")
    return file


class Lead:
    """A model that forks what it is told to fork, as JSON."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.provider = ScriptedProvider(self.answer)

    def answer(self, request: Request) -> Reply:
        self.requests.append(request)
        assert violations({**wire(request), "model": "any", "tools": list(request.tools)}) == []
        if "give_result" in tools_of(request):
            return Reply(tool_calls=(ToolCall("give_result", {"result": {"worst": "none"}}, "g"),))
        last = request.messages[-1]["content"][-1]
        text = str(last.get("text", "")) if last["type"] == "text" else ""
        if text.startswith("fork "):
            removeprefix = json.loads(text.removeprefix("fork "))
            calls = [ToolCall("fork", arguments, f"f{n}") for n, arguments in enumerate(removeprefix)]
            return Reply(tool_calls=tuple(calls))
        return Reply("ok")

    def asked_by(self, name: str) -> list[Request]:
        return [request for request in self.requests if request.name == name]


def say(agent: AgentRef, *prompts: str) -> None:
    for prompt in prompts:
        agent.prompt(prompt).get(timeout=DEADLINE)


def tools_of(request: Request) -> list[str]:
    return [str(tool["name"]) for tool in request.tools]


def results(agent: AgentRef) -> list[str]:
    return [message.content for message in agent.history() if message.kind == "tool_result"]


@pytest.mark.slow("takes a tenth of a second")
def test_a_child_of_a_kind_begins_with_its_text_alone_and_has_no_tool_that_its_parent_lacks(
    database: str, tmp_path: Path
) -> None:
    write_kind(tmp_path)
    model = Lead()
    with ActorSystem.open(database, model.provider, tools=[read, delete]) as system:
        lead = system.root.fork(name="lead")
        say(lead, "SECRET of the lead")
        assert "kind" not in _fork_in(model.requests[-1])["properties"]
        lead.use_kinds(tmp_path)
        lead.configure(tools=["fork", "read", "exit"], max_steps=7, stop_sequences=["###"])
        child = lead.fork("Look at door.py.", name="first", kind="reviewer")
        child.reply(timeout=DEADLINE)
        [asked] = model.asked_by("first")
        assert asked.system == "You review code."
        assert tools_of(asked) == ["read"]
        assert "SECRET" not in json.dumps(list(asked.messages))
        assert asked.settings["stop_sequences"] == ["###"]
        assert child.context().settings["max_steps"] == 7
        log = child.history(all=True)
        [begin] = [place for place, message in enumerate(log) if message.kind == "clear"]
        assert [message.kind for message in log[begin - 1 : begin + 3]] == ["fork", "clear", "configure", "user"]
        assert log[begin].data == {"kind": {"name": "reviewer", "sha256": _pinned(lead)["sha256"]}}
        say(lead, 'fork [{"kind": "reviewer", "name": "second", "prompt": "Look at x."}, {"name": "third"}]')
        system.agent("second").reply(timeout=DEADLINE)
        assert "kind" in _fork_in(model.asked_by("lead")[-1])["properties"]
        assert "<kinds>" in model.asked_by("lead")[-1].system
        [asked] = model.asked_by("second")
        assert tools_of(asked) == ["exit", "read"]
        assert "SECRET" not in json.dumps(list(asked.messages))
        assert asked.messages[0]["content"][0]["text"].startswith("Look at x.\n\n[You are ")
        assert "call exit with your result" in asked.messages[0]["content"][0]["text"]
        say(
            lead,
            'fork [{"kind": "nobody", "prompt": "x"}, {"kind": "reviewer"}, {"name": "fourth", "prompt": "go on"}]',
        )
        assert results(lead)[-3:-1] == [
            "There is no kind 'nobody'. Kinds: reviewer.",
            "Expected a prompt for a child of kind reviewer; got none.",
        ]
        assert results(lead)[-1].startswith("Forked: the child is ")
        with pytest.raises(BadInput, match=r"There is no kind 'nobody'\. Kinds: reviewer\."):
            lead.fork("x", kind="nobody")
        waiting = lead.fork(name="waiting", kind="reviewer")
        say(waiting, "Look at y.")
        assert tools_of(model.asked_by("waiting")[-1]) == ["read"]
        assert check(system._store) == []


@pytest.mark.slow("takes a tenth of a second")
def test_a_fork_inherits_kinds_an_undo_leaves_them_and_a_changed_file_changes_nothing(
    durable: str, tmp_path: Path
) -> None:
    file = write_kind(tmp_path)
    model = Lead()
    with ActorSystem.open(durable, model.provider, tools=[read]) as system:
        lead = system.root.fork(name="lead")
        lead.use_kinds(tmp_path)
        file.write_text(REVIEWER.replace("You review code.", "EVIL"), encoding="utf-8")
        other = lead.fork(name="other")
        child = other.fork("Look.", name="child", kind="reviewer")
        child.reply(timeout=DEADLINE)
        child.undo()
    file.unlink()
    with ActorSystem.open(durable, model.provider, tools=[read]) as system:
        child = system.agent("child")
        say(child, "Again.")
        grandchild = child.fork("And you.", name="grandchild")
        grandchild.reply(timeout=DEADLINE)
        for name in ("child", "grandchild"):
            asked = model.asked_by(name)[-1]
            assert (asked.system, tools_of(asked)) == ("You review code.", ["read", "send"])
            assert "Look." not in json.dumps(list(asked.messages))
        assert check(system._store) == []


@pytest.mark.slow("takes a tenth of a second")
def test_a_kind_that_was_edited_in_the_database_is_refused(tmp_path: Path) -> None:
    write_kind(tmp_path / "kinds")
    database = tmp_path / "a.db"
    with ActorSystem.open(database, Lead().provider) as system:
        system.root.use_kinds(tmp_path / "kinds")
        with pytest.raises(BadInput, match="setting kinds"):
            system.root.configure(kinds=[{**_pinned(system.root), "system": "EVIL"}])
    store = sqlite3.connect(database)
    store.execute("UPDATE messages SET data = replace(data, 'You review code.', 'EVIL')")
    store.commit()
    store.close()
    with ActorSystem.open(database, Lead().provider) as system, pytest.raises(BadInput, match="There is no kind"):
        system.root.fork("x", kind="reviewer")


@pytest.mark.slow("takes a tenth of a second")
def test_a_kind_brings_skills_a_budget_a_type_and_may_keep_the_history(tmp_path: Path) -> None:
    write_skill(tmp_path / "skills")
    schema = '{"type": "object", "properties": {"worst": {"type": "string"}}, "required": ["worst"]}'
    keys = f"skills: pdf\nbudget: tokens=50k\nrestart: permanent\noutput: {schema}\ndisallowedTools: Bash(rm *), delete"
    write_kind(tmp_path, f"---\nname: full\ndescription: All of it.\n{keys}\n---\nYou judge.", "full")
    write_kind(tmp_path, "---\ndescription: Remembers.\nhistory: inherit\n---\nYou go on.", "heir")
    model = Lead()
    with ActorSystem.open(":memory:", model.provider, tools=[read, delete]) as system:
        lead = system.root.fork(name="lead", budget=Budget(tokens=100_000))
        with pytest.raises(BadInput, match=r"The agent has no skill pdf\. Skills: none\."):
            lead.use_kinds(tmp_path)
        lead.use_skills(tmp_path / "skills")
        lead.use_kinds(tmp_path, only=["full", "heir"])
        for name in ("full", "heir"):
            with pytest.raises(BadInput, match=f"Expected a prompt for a child of kind {name}"):
                lead.fork(kind=name)
        say(lead, "SECRET of the lead")
        full = lead.fork("Go.", name="full", kind="full", budget=Budget(tokens=90_000, agents=3))
        assert full.reply(timeout=DEADLINE).output == {"worst": "none"}
        assert full.record.restart == "permanent"
        assert (limits := full.budget) is not None
        assert (limits.owner, dict(limits.granted)) == (full.uuid, {"tokens": 50_000, "agents": 3})
        asked = model.asked_by("full")[0]
        assert "SECRET-STEP" in json.dumps(list(asked.messages))
        assert "delete" not in tools_of(asked)
        assert "read" in tools_of(asked)
        lead.fork("Take over.", name="heir", kind="heir").reply(timeout=DEADLINE)
        [asked] = model.asked_by("heir")
        before = model.asked_by("lead")[-1]
        assert asked.system == before.system
        assert asked.tools == before.tools
        assert list(asked.messages[: len(before.messages) - 1]) == list(before.messages[:-1])
        assert asked.messages[-1]["content"][-1]["text"] == "You go on.\n\nTake over."
        assert check(system._store) == []


def test_what_a_file_says_that_means_nothing_is_named_and_what_cannot_be_is_left_out(tmp_path: Path) -> None:
    write_kind(tmp_path, REVIEWER.replace("tools: Read, send", "tools: Read, Bash(git *)"))
    write_kind(tmp_path, "---\nname: mute\n---\nx", "mute")
    write_kind(tmp_path, "---\ndescription: x\nmaxTurns: many\n---\nx", "many")
    write_kind(tmp_path, "# No front matter", "README")
    with ActorSystem.open(":memory:", Lead().provider) as system:
        find = system.kinds.find(tmp_path)
        [kind] = find.kinds
        assert kind.says["tools"] == ["read"]
        text = "\n".join(find.troubles)
        assert "Kind reviewer: color, Bash(git *), model sonnet means nothing here." in text
        for name, why in (("mute", "no description"), ("many", "whole number"), ("README", "begin with a line ---")):
            assert f"{name}.md is left out: " in text
            assert why in text
        with pytest.raises(BadInput, match=r"There is no kind writer in .*\. Kinds: reviewer\."):
            system.root.use_kinds(tmp_path, only=["writer"])
        with pytest.raises(BadInput, match="there is no"):
            system.root.use_kinds(tmp_path / "nowhere")
        with pytest.raises(BadInput, match="got neither"):
            system.root.use_kinds()


def _fork_in(request: Request) -> dict[str, dict[str, Any]]:
    schema: dict[str, dict[str, Any]] = next(tool for tool in request.tools if tool["name"] == "fork")["input_schema"]
    return schema


def _pinned(agent: AgentRef) -> dict[str, object]:
    entry: dict[str, object] = agent.context().settings["kinds"][0]
    return entry


@pytest.mark.slow("takes a tenth of a second")
def test_a_model_names_for_a_child_only_a_model_that_its_settings_list(database: str) -> None:
    model = Lead()
    with ActorSystem.open(database, model.provider) as system:
        lead = system.root.fork(name="lead")
        say(lead, 'fork [{"name": "early", "model": "scripted:small"}]')
        assert results(lead)[-1] == (
            "You cannot name model 'scripted:small' for a child. Models: none, so it has yours."
        )
        assert "model" not in _fork_in(model.requests[-1])["properties"]
        lead.configure(fork_models=["scripted:small", "scripted:big"])
        say(
            lead,
            'fork [{"name": "second", "model": "scripted:small", "prompt": "x"}, {"name": "third", "prompt": "y"}]',
        )
        for name in ("second", "third"):
            system.agent(name).reply(timeout=DEADLINE)
        named = _fork_in(model.asked_by("lead")[-1])["properties"]["model"]
        assert named["enum"] == ["scripted:small", "scripted:big"]
        assert {request.model for request in model.asked_by("second")} == {"small"}
        assert {request.model for request in model.asked_by("third")} == {
            request.model for request in model.asked_by("lead")
        }
        say(lead, 'fork [{"name": "huge", "model": "scripted:huge", "prompt": "x"}]')
        assert results(lead)[-1] == (
            "You cannot name model 'scripted:huge' for a child. Models: scripted:small, scripted:big."
        )
        say(system.agent("second"), 'fork [{"name": "fourth", "model": "scripted:big", "prompt": "z"}]')
        system.agent("fourth").reply(timeout=DEADLINE)
        assert {request.model for request in model.asked_by("fourth")} == {"big"}
        assert check(system._store) == []
