"""Signals that another process sends, and what they lead to: the host that runs the agents follows."""

import pytest

from ikigai_actors import ActorSystem, AgentDead, ScriptedProvider, Signal, TurnInterrupted
from supervisors.signals import Status
from tests.kit import outside
from tests.kit.blocking_provider import DEADLINE, Gate
from tests.kit.databases import eventually


def kill_remotely(database: str, agent: str, *, cascade: bool = False, reason: str = "") -> None:
    """Kill an agent as another process does."""
    outside.signal(database, agent, Signal.KILL, cascade=cascade, reason=reason, grace=30)


def test_the_reason_of_a_term_from_elsewhere_is_the_reason_of_the_death(durable: str) -> None:
    gate = Gate()
    with ActorSystem.open(durable, provider=gate.provider) as system:
        child = system.root.fork("work", name="child")
        gate.wait_until_asked()
        outside.signal(durable, "child", Signal.TERM, cascade=False, reason="enough", grace=3600)
        eventually(lambda: system._actor(child.uuid).state.status is Status.TERMINATING, "the signal")
        gate.open()
        eventually(lambda: child.state == "dead", "the death")
        assert (child.record.exit_cause, child.record.exit_reason) == ("terminated", "enough")


def test_who_dies_with_an_agent_that_was_killed_elsewhere_does_no_more(durable: str) -> None:
    gate = Gate()
    with ActorSystem.open(durable, provider=gate.provider) as system:
        top = system.root.fork(name="top", on_orphan="cascade")
        kid = top.fork("work")
        gate.wait_until_asked()
        waiting = kid.aio.reply()
        kill_remotely(durable, "top")
        with pytest.raises(AgentDead, match="orphaned"):
            waiting.get(timeout=DEADLINE)


def test_who_is_paused_by_a_death_elsewhere_pauses(durable: str) -> None:
    gate = Gate()
    with ActorSystem.open(durable, provider=gate.provider) as system:
        top = system.root.fork(name="top", on_orphan="stop")
        kid = top.fork("work")
        gate.wait_until_asked()
        kill_remotely(durable, "top")
        eventually(lambda: system._actor(kid.uuid).state.status is Status.STOPPED, "the pause")
        later = kid.prompt("more")
        gate.open()
        assert kid.reply(timeout=DEADLINE).text == "done"
        assert not later.done()
        kid.signal(Signal.CONT)
        assert later.get(timeout=DEADLINE).text == "done"


def test_a_term_from_elsewhere_reaches_those_whom_it_leaves_behind(durable: str) -> None:
    with ActorSystem.open(durable, provider=ScriptedProvider([])) as system:
        top = system.root.fork(name="top")
        kid = top.fork(name="kid")
        top.signal(Signal.STOP)
        outside.signal(durable, "top", Signal.TERM, cascade=True, reason="", grace=3600)
        eventually(lambda: kid.state == "dead", "the death")
        assert (top.record.exit_cause, kid.record.exit_cause) == ("terminated", "terminated")


def test_an_interrupt_from_elsewhere_ends_the_turns_of_a_whole_branch_and_of_nobody_else(durable: str) -> None:
    gate = Gate()
    with ActorSystem.open(durable, provider=gate.provider) as system:
        top = system.root.fork(name="top")  # it is idle
        kids, other = [top.fork("work"), top.fork("work")], system.root.fork("work")
        paused = system.root.fork()
        paused.signal(Signal.STOP)
        turns = [kid.aio.reply() for kid in kids]
        outside.signal(durable, "top", Signal.INT, cascade=True, reason="", grace=0)
        for turn in turns:
            with pytest.raises(TurnInterrupted):
                turn.get(timeout=DEADLINE)
        assert (paused.state, other.record.turn > 0) == ("stopped", True)
        gate.open()
        assert other.reply(timeout=DEADLINE).text == "done"
