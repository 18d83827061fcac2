"""What a system and its agents say about themselves. On every database."""

import pytest

from ikigai_actors import ActorSystem, ProviderError, Reply, Request, ScriptedProvider, Usage
from ikigai_actors.agent.statistics import Tally
from ikigai_actors.agent.turn.state import Phase, State
from ikigai_actors.providers.base import Spent
from ikigai_actors.testing import ManualClock
from ikigai_actors.types import AgentStatistics
from tests.kit.blocking_provider import DEADLINE, Gate

USAGE = Usage(input_tokens=10, output_tokens=3, cache_creation_input_tokens=2, cache_read_input_tokens=1)


def answer(request: Request) -> Reply:
    """Says how many tokens it took; fails when it is asked to."""
    text = request.messages[-1]["content"][-1]["text"]
    if text == "fail":
        raise ProviderError("planted")
    return Reply("ok", usage=USAGE if text == "count" else None)


def test_an_agent_that_has_done_nothing_has_counted_nothing(database: str) -> None:
    with ActorSystem.open(database, provider=ScriptedProvider(answer)) as system:
        opened = system.root.statistics()
        assert opened == AgentStatistics("idle", opened.since, 0, 0, 0, Usage(), 0.0, 0.0, 0.0)
        system.root.mark()
        assert system.root.statistics().since == opened.since


def test_turns_steps_and_tokens_are_counted_and_add_up_in_the_system(database: str) -> None:
    with ActorSystem.open(database, provider=ScriptedProvider(answer)) as system:
        child = system.root.fork("count")
        child.reply(timeout=DEADLINE)
        for text in ("count", "do not"):
            child.prompt(text).get(timeout=DEADLINE)
        with pytest.raises(ProviderError):
            system.root.prompt("fail").get(timeout=DEADLINE)
        own, other, all_of_them = child.statistics(), system.root.statistics(), system.statistics()
        assert (own.turns, own.steps, own.tokens) == (3, 3, Usage(20, 6, 4, 2))
        assert (other.turns, other.steps, other.tokens) == (1, 1, Usage())
        assert (all_of_them.turns, all_of_them.steps, all_of_them.tokens) == (4, 4, own.tokens)
        assert (all_of_them.agents, all_of_them.working, all_of_them.ready, all_of_them.inbox) == (2, 0, 0, 0)
        assert own.waiting_for_commit > 0


def test_a_turn_in_progress_shows_its_state_its_time_and_who_waits(database: str) -> None:
    gate = Gate()
    with ActorSystem.open(database, provider=gate.provider) as system:
        root = system.root
        before = root.statistics()
        first = root.prompt("one")
        gate.wait_until_asked()
        second = root.prompt("two")
        assert not root.resume(timeout=DEADLINE)  # answered after the prompt was taken in
        busy = root.statistics()
        assert (busy.state, busy.turns, busy.steps, busy.inbox) == ("waiting for the model", 0, 1, 1)
        assert busy.since >= before.since
        assert system.statistics().inbox == 1
        assert busy.waiting_for_model < root.statistics().waiting_for_model
        gate.open()
        for prompt in (first, second):
            prompt.get(timeout=DEADLINE)
        after = root.statistics()
        assert (after.state, after.turns, after.steps, after.inbox) == ("idle", 2, 2, 0)
        assert after.waiting_for_model == root.statistics().waiting_for_model > busy.waiting_for_model


def test_counting_begins_anew_on_the_next_host(durable: str) -> None:
    with ActorSystem.open(durable, provider=ScriptedProvider(answer)) as system:
        system.root.prompt("count").get(timeout=DEADLINE)
    with ActorSystem.open(durable, provider=ScriptedProvider(answer)) as system:
        assert system.root.statistics().turns == 0


def test_waits_are_measured_from_their_beginning_to_their_end_and_until_now() -> None:
    clock = ManualClock()
    tally = Tally("a", clock)

    def waits() -> tuple[float, float]:
        report = tally.report("idle", 0)
        return report.waiting_for_model, report.waiting_for_commit

    tally.asked()
    clock.advance(2)
    tally.submitted()
    clock.advance(1)
    assert waits() == (3, 1)
    tally.answered(Spent(USAGE))
    clock.advance(5)
    tally.settled()
    clock.advance(7)
    assert waits() == (3, 6)
    tally.asked()
    clock.advance(1)
    tally.answered()
    assert waits() == (4, 6)
    assert tally.tokens == USAGE


def test_a_state_begins_when_it_is_first_seen_and_reading_the_log_changes_nothing() -> None:
    clock = ManualClock()
    tally = Tally("a", clock)
    started = tally.since
    clock.advance(1)
    tally.became(State("a", 0).shown, 0)  # unloaded
    assert tally.since == started
    tally.became(Phase.WAITING_FOR_MODEL, 1)
    assert tally.since == clock.now_ms() != started
    clock.advance(1)
    tally.became(State("a", 1, turn=1).shown, 1)  # unloaded, since a commit failed
    assert (tally.since, tally.turns) == (clock.now_ms(), 0)
    tally.became(Phase.IDLE, 0)
    assert tally.turns == 1


def test_the_time_of_tools_is_that_of_the_phase() -> None:
    clock = ManualClock()
    tally = Tally("a", clock)
    tally.became(Phase.RUNNING_TOOLS, 1)
    clock.advance(2.0)
    assert tally.report("running tools", 0).waiting_for_tools == 2.0
    tally.became(Phase.WAITING_FOR_MODEL, 1)
    clock.advance(5.0)
    assert tally.report("waiting for the model", 0).waiting_for_tools == 2.0
