"""Forks at an earlier position: one row, whatever came later; where a step is in the midst there is none."""

from contextlib import closing
from typing import Any

import pytest

from ikigai_actors import ActorSystem, AgentRef, BadInput, Reply, Request, ScriptedProvider, ToolCall, tool
from ikigai_actors.errors import NotABoundary
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.log.log_cache import LogCache
from ikigai_actors.store import open_store
from ikigai_actors.system.attached import AttachedSystem
from tests.kit.blocking_provider import DEADLINE, Gate


def echo(request: Request) -> str:
    """The last prompt."""
    return f"echo: {request.messages[-1]['content'][-1]['text']}"


def texts(agent: AgentRef) -> list[str]:
    """What was said, as its history has it."""
    return [message.content for message in agent.history() if message.kind in ("user", "assistant")]


def origin_of(agent: AgentRef) -> dict[str, Any]:
    """What the first message of a child says."""
    return dict(next(message for message in agent.history(all=True) if message.agent_uuid == agent.uuid).data)


def sound(system: ActorSystem) -> bool:
    """Whether every history is the same when it is read anew, and nothing is wrong with the database."""
    assert check(system._store) == []
    fresh = LogCache(system._store)
    return all(
        list(fresh.load(record.uuid).visible()) == system.handle(record.uuid).history() for record in system.agents()
    )


def test_a_child_inherits_what_was_said_up_to_the_position_and_nothing_later(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(echo)) as system:
        for text in ("one", "two", "three"):
            system.root.prompt(text).get(timeout=DEADLINE)
        child = system.root.fork("four", at=2)
        child.reply(timeout=DEADLINE)
        assert texts(child) == ["one", "echo: one", "four", "echo: four"]
        assert (child.record.fork_message_id, child.record.born) == (2, 7)
        assert origin_of(child) == {"parent": system.root.uuid, "at": 2}
        assert texts(system.root.fork(at=0)) == []
        assert sound(system)


@pytest.mark.slow("takes a tenth of a second")
def test_a_child_may_begin_before_its_parents_own_fork_point_and_before_a_clear(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(echo)) as system:
        system.root.prompt("one").get(timeout=DEADLINE)
        system.root.prompt("two").get(timeout=DEADLINE)
        middle = system.root.fork("three")
        middle.reply(timeout=DEADLINE)
        middle.clear()
        early, late = middle.fork(at=2), middle.fork(at=7)
        leaf = early.fork("five")
        leaf.reply(timeout=DEADLINE)
        assert texts(early) == ["one", "echo: one"]
        assert texts(leaf) == ["one", "echo: one", "five", "echo: five"]
        assert texts(late) == ["one", "echo: one", "two", "echo: two", "three", "echo: three"]
        assert [span.agent_uuid for span in early.ranges()] == [system.root.uuid, early.uuid]
        assert len(early.history(all=True)) == 4
        assert sound(system)
    with ActorSystem.open(database, ScriptedProvider(echo)) as system:
        assert sound(system)


def test_where_a_step_is_in_the_midst_the_error_names_the_nearest_positions(database: str) -> None:
    @tool
    def look() -> str:
        """Look."""
        return "seen"

    script = ScriptedProvider([Reply("", (ToolCall("look"),)), "done"])
    with ActorSystem.open(database, script, tools=[look]) as system:
        system.root.prompt("go").get(timeout=DEADLINE)
        with pytest.raises(NotABoundary, match=r"cannot be forked at 3, .* 1 and 4\.") as refused:
            system.root.fork(at=3)
        assert (refused.value.at, refused.value.before, refused.value.after) == (3, 1, 4)
        with pytest.raises(NotABoundary, match=r"none of its positions, 0 to 5\. .*: 5\.") as refused:
            system.root.fork(at=40)
        assert (refused.value.before, refused.value.after) == (5, None)
        with pytest.raises(BadInput, match="Expected at to be a whole number"):
            system.root.fork(at=-1)
        assert [len(system.root.fork(at=at).history()) for at in (1, 4, 5)] == [2, 5, 6]
        assert sound(system)


def test_a_child_has_the_settings_of_now_and_those_that_were_asked_for(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(echo)) as system:
        system.root.configure(system="Be brief.", max_tokens=100, options={"top_k": 1})
        system.root.prompt("one").get(timeout=DEADLINE)
        system.root.configure(system="Be kind.", max_tokens=None, options={"top_k": 2}, notify=False)
        child = system.root.fork(at=3, model="scripted:other")
        wanted = {**system.root.context().settings, "model": "scripted:other"}
        assert child.context().settings == wanted
        assert child.history()[-1].data == {
            "system": "Be kind.",
            "max_tokens": None,
            "options": {"top_k": 2},
            "notify": False,
            "model": "scripted:other",
        }
        same = system.root.fork(at=system.root.history()[-1].id)
        assert [message.kind for message in same.history() if message.agent_uuid == same.uuid] == ["fork"]


def test_a_busy_agent_forks_at_an_earlier_position_at_once() -> None:
    gate = Gate()
    with ActorSystem.open(":memory:", gate.provider) as system:
        try:
            future = system.root.prompt("one")
            gate.wait_until_asked()
            child = system.root.fork(at=0, timeout=DEADLINE)
            assert texts(child) == []
        finally:
            gate.open()
        assert future.get(timeout=DEADLINE).text == "done"
        assert texts(system.root) == ["one", "done"]
        assert sound(system)


def test_children_stand_in_order_of_birth_wherever_they_begin(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(echo)) as system:
        system.root.prompt("one").get(timeout=DEADLINE)
        made = [system.root.fork(at=at) for at in (2, 0, 1)]
        assert [child.uuid for child in system.root.children()] == [child.uuid for child in made]


@pytest.mark.thorough("a fork from elsewhere, as in test_remote_commands, with a position")
def test_an_attached_process_has_an_agent_forked_at_an_earlier_position(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as system, AttachedSystem.open(durable) as attached:
        system.root.prompt("one").get(timeout=DEADLINE)
        child = attached.handle(system.root.uuid).fork("two", at=0, timeout=DEADLINE)
        assert child.reply(timeout=DEADLINE).text == "echo: two"
        assert texts(system.handle(child.uuid)) == ["two", "echo: two"]
        with pytest.raises(NotABoundary, match="none of its positions") as refused:
            attached.handle(system.root.uuid).fork(at=99, timeout=DEADLINE)
        assert refused.value.after is None
    with closing(open_store(durable)) as store:
        assert check(store) == []
