"""STOP, CONT and TERM through the real system: what waits, what goes on, and what survives a restart."""

import threading

import pytest

from ikigai_actors import ActorSystem, AgentDead, AgentRef, AgentStopped, ScriptedProvider, Signal, tool
from ikigai_actors.actors.futures import Future
from ikigai_actors.providers.base import Reply
from ikigai_actors.store import open_store
from tests.kit.blocking_provider import DEADLINE, Gate
from tests.kit.databases import eventually
from tests.kit.open_on import Withholding, open_on
from tests.kit.tool_scripts import calling, requests_of, results, scripted


def asked_unheard(child: AgentRef, signal: Signal, dispatcher: Withholding) -> Future[Reply]:
    """The reply of an agent that was asked for it, and then got a signal, but has looked at neither."""
    actor = child.system._here(child.uuid)
    assert actor is not None
    eventually(lambda: not (actor.actor_inbox.scheduled or actor.actor_inbox.held), "the end of its slice")
    dispatcher.withhold(actor)
    reply = child.aio.reply()
    assert child.signal(signal)
    assert len(actor.actor_inbox) == 2
    return reply


@pytest.mark.thorough("mail and a prompt that wait for CONT, as in test_stopped_prompts over a restart")
def test_mail_to_a_stopped_agent_waits_also_over_a_restart(durable: str) -> None:
    script = scripted(child=[calling("read_mail"), "read"])
    with ActorSystem.open(durable, provider=script) as system:
        child = system.root.fork(name="child")
        child.signal(Signal.STOP)
        system.root.send(child, "one")
        later = child.prompt("read your mail")
        eventually(
            lambda: system._store.read(lambda tx: tx.run("new_prompts", host=None)), "the prompt in the database"
        )
        assert (child.check_mail().unread, later.done()) == (1, False)
    with ActorSystem.open(durable, provider=script) as system:
        child = system.agent("child")
        system.root.send(child, "two")
        assert (child.check_mail().unread, child.state) == (2, "stopped")
        child.signal(Signal.CONT)
        eventually(lambda: child.history()[-1].content == "read", "the answer")
        assert child.check_mail().unread == 0


@pytest.mark.slow("takes a tenth of a second")
def test_a_stopped_agent_finishes_its_step_and_goes_on_when_it_may(durable: str) -> None:
    gate = Gate()
    with ActorSystem.open(durable, provider=gate.provider) as system:
        child = system.root.fork("one", name="child")
        gate.wait_until_asked()
        assert child.signal(Signal.STOP)
        assert not child.signal(Signal.STOP)
        later = child.prompt("two")
        gate.open()
        assert child.reply(timeout=DEADLINE).text == "done"
        assert child.state == "stopped"
        assert not later.done()
        assert child.signal(Signal.CONT)
        assert later.get(timeout=DEADLINE).text == "done"
        assert child.signal(Signal.STOP)
    with ActorSystem.open(durable, provider=gate.provider) as system:
        child = system.agent("child")
        waiting = child.prompt("three")
        assert (child.state, waiting.done()) == ("stopped", False)
        child.signal(Signal.CONT)
        assert waiting.get(timeout=DEADLINE).text == "done"


def test_a_stopped_agent_sends_nothing_to_its_model_between_two_steps(database: str) -> None:
    entered, leave = threading.Event(), threading.Event()

    @tool
    def slow() -> str:
        entered.set()
        assert leave.wait(DEADLINE)
        return "slow is done"

    script = scripted(child=[calling("slow", ("fork", {"name": "grandchild"})), "done"])
    with ActorSystem.open(database, provider=script, tools=[slow]) as system:
        child = system.root.fork("go", name="child")
        assert entered.wait(DEADLINE)
        child.signal(Signal.STOP)
        leave.set()
        eventually(lambda: child.history()[-1].kind == "tool_result", "the result")
        assert len(requests_of(script, "child")) == 1
        assert [record.name for record in system.agents()] == [None, "child"]
        child.signal(Signal.CONT)
        assert child.reply(timeout=DEADLINE).text == "done"
        assert len(results(requests_of(script, "child")[1])) == 2
        assert system.agent("grandchild").parent == child


def test_a_terminating_agent_finishes_its_turn_and_dies(database: str) -> None:
    gate = Gate()
    with ActorSystem.open(database, provider=gate.provider) as system:
        child = system.root.fork("work", name="child")
        gate.wait_until_asked()
        reply = child.aio.reply()
        assert child.signal(Signal.TERM, reason="that will do")
        assert child.state == "terminating"
        with pytest.raises(AgentStopped, match="KILL ends it at once"):
            child.signal(Signal.STOP)
        late = child.prompt("more")
        gate.open()
        assert reply.get(timeout=DEADLINE).text == "done"
        with pytest.raises(AgentDead):
            late.get(timeout=DEADLINE)
        eventually(lambda: child.state == "dead", "the death")
        assert (child.record.exit_cause, child.record.exit_reason) == ("terminated", "that will do")


def test_a_reply_asked_for_before_a_death_by_term_is_that_of_the_turn_that_ends_before(durable: str) -> None:
    """The end of the turn and the death overtake the question."""
    gate, dispatcher = Gate(), Withholding()
    with open_on(open_store(durable), gate.provider, lambda _: dispatcher) as system:
        child = system.root.fork("work")
        gate.wait_until_asked()
        reply = asked_unheard(child, Signal.TERM, dispatcher)
        gate.open()
        eventually(lambda: len(system._actor(child.uuid).actor_inbox) == 3, "the model's answer")
        dispatcher.let_go()
        assert reply.get(timeout=DEADLINE).text == "done"


def test_a_reply_asked_for_before_a_death_by_kill_is_that_of_the_latest_turn_that_has_one(durable: str) -> None:
    gate, dispatcher = Gate(), Withholding()
    with open_on(open_store(durable), gate.provider, lambda _: dispatcher) as system:
        at_work, done, unprompted = system.root.fork("work"), system.root.fork(), system.root.fork()
        gate.wait_until_asked()
        cut_off = asked_unheard(at_work, Signal.KILL, dispatcher)
        dispatcher.let_go()
        with pytest.raises(AgentDead, match="killed"):
            cut_off.get(timeout=DEADLINE)
        gate.open()
        assert done.prompt("work").get(timeout=DEADLINE).text == "done"
        reply = asked_unheard(done, Signal.KILL, dispatcher)
        dispatcher.let_go()
        assert reply.get(timeout=DEADLINE).text == "done"
        never = asked_unheard(unprompted, Signal.KILL, dispatcher)
        dispatcher.let_go()
        with pytest.raises(AgentDead, match="killed"):
            never.get(timeout=DEADLINE)


def test_an_idle_agent_dies_of_term_at_once(database: str) -> None:
    with ActorSystem.open(database, provider=ScriptedProvider([])) as system:
        child = system.root.fork()
        child.signal(Signal.TERM)
        eventually(lambda: child.state == "dead", "the death")


@pytest.mark.thorough("the grace of a TERM over a restart, which test_life_faults has behind a kill -9")
def test_term_becomes_kill_when_its_time_is_over_also_after_a_restart(durable: str) -> None:
    gate = Gate()
    with ActorSystem.open(durable, provider=gate.provider) as system:
        child = system.root.fork("work", name="child")
        gate.wait_until_asked()
        child.signal(Signal.TERM, grace=0.05)
        eventually(lambda: child.state == "dead", "the death")
        assert child.record.exit_cause == "killed"
        assert "did not end in time" in str(child.record.exit_reason)
        other = system.root.fork("work", name="other")
        gate.wait_until_asked()
        other.signal(Signal.TERM, grace=0.2)
    with ActorSystem.open(durable, provider=gate.provider) as system:
        other = system.agent(other.uuid)
        eventually(lambda: other.state == "dead", "the death after a restart")
