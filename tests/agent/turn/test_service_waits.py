"""How long a turn waits for a service that refuses it, and what ends the wait: the pure decisions."""

import math
from dataclasses import replace
from typing import Any

import pytest

from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.machine import accepts, step
from ikigai_actors.agent.turn.service_waits import LONGEST_SERVICE_WAIT, SHORT_SERVICE_WAIT, seconds_to_wait
from ikigai_actors.agent.turn.state import (
    AwaitService,
    Compaction,
    LifecycleState,
    Phase,
    RequestModel,
    State,
    Step,
    Summarise,
)
from ikigai_actors.errors import ProviderError, TurnInterrupted
from ikigai_actors.providers.base import Reply
from ikigai_actors.records.budgets.amounts import Held
from ikigai_actors.records.log.history import EMPTY
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.records.messages.settings import SERVICE_RETRIES
from supervisors.signals import Status
from tests.agent.turn.test_machine import BUSY, answers, fork, written

NOW = 1_000


def refusal(after: float | None, **facts: Any) -> ProviderError:
    return ProviderError("overloaded", **{"unavailable": True, "free": True, "retry_after": after, **facts})


def waiting(after: float = 20, state: State = BUSY) -> State:
    return step(state, on.ReplyFailed(state.request, refusal(after), service="anthropic"), NOW).state


def seconds(
    after: float | None,
    waits: int = 0,
    *,
    has_next: bool = False,
    strict: bool = False,
    free: bool = True,
    **settings: Any,
) -> float | None:
    error = refusal(after, free=free)
    return seconds_to_wait(error, waits, settings, has_next=has_next, strict=strict, who="agent 7")


def test_waits_of_which_nothing_is_said_grow_and_those_of_two_agents_differ() -> None:
    grown = [seconds(0, waits) for waits in range(SERVICE_RETRIES)]
    assert all(0.75 * 0.5 * 2**place < (each or 0) <= 0.5 * 2**place for place, each in enumerate(grown))
    others = {seconds_to_wait(refusal(0), 0, {}, has_next=False, strict=False, who=f"agent {n}") for n in range(50)}
    assert len(others) == 50


@pytest.mark.parametrize(
    ("after", "has_next", "waited"),
    [
        (20, False, 20), (20, True, None), (SHORT_SERVICE_WAIT, True, SHORT_SERVICE_WAIT),
        (LONGEST_SERVICE_WAIT, False, LONGEST_SERVICE_WAIT), (LONGEST_SERVICE_WAIT + 1, False, None),
        (math.inf, False, None), (math.inf, True, None), (None, False, None),
    ],
)  # fmt: skip
def test_what_a_service_asks_for_is_waited_if_no_other_model_is_there_and_it_takes_no_longer_than_a_day(
    after: float | None, has_next: bool, waited: float | None
) -> None:
    assert seconds(after, has_next=has_next) == waited


def test_there_are_as_many_waits_as_the_setting_says_and_two_at_most_where_another_model_is_there() -> None:
    assert [seconds(1, waits) for waits in range(SERVICE_RETRIES + 1)] == [1] * SERVICE_RETRIES + [None]
    assert [seconds(1, waits, has_next=True) for waits in range(3)] == [1, 1, None]
    assert [seconds(1, waits, service_retries=7) for waits in (6, 7)] == [1, None]
    assert seconds(1, service_retries=0) is None


def test_what_may_have_cost_something_is_not_sent_again_under_a_strict_budget() -> None:
    assert seconds(1, strict=True, free=True) == 1
    assert seconds(1, strict=True, free=False) is None
    assert seconds(1, free=False) == 1


def test_a_refused_request_waits_until_a_time_that_the_log_and_the_state_tell_and_holds_no_budget() -> None:
    held = replace(BUSY, hold=Held(4, 9, 0, 9))
    done = step(held, on.ReplyFailed(3, refusal(20), service="anthropic"), NOW)
    assert written(done) == [(5, "retry", "overloaded")]
    assert isinstance(done.unit, LogUnit)
    assert (done.unit.messages[0].data, done.unit.asks) == ({"until": 21_000, "service": "anthropic"}, False)
    assert done.effects == (AwaitService(4, 21_000),)
    assert (done.state.phase, done.state.turn, done.state.hold) == (Phase.WAITING_FOR_SERVICE, 4, None)
    assert done.state.service_wait is not None
    assert done.state.service_wait.state == "waits for anthropic until 1970-01-01 00:00:21 UTC"
    assert done.state.goes_on


def test_the_request_leaves_when_its_time_has_come_and_not_before_nor_for_an_older_one() -> None:
    waits = waiting()
    assert step(waits, on.ServiceDue(waits.request), 20_999) == Step(waits)
    assert step(waits, on.ServiceDue(waits.request - 1), 21_000) == Step(waits)
    done = step(waits, on.ServiceDue(waits.request), 21_000)
    assert isinstance(done.unit, LogUnit)
    assert (done.unit.messages, done.unit.asks) == ((), True)
    assert done.effects == (RequestModel(waits.request + 1),)
    assert (done.state.phase, done.state.service_wait, done.state.service_waits) == (Phase.WAITING_FOR_MODEL, None, 1)
    replied = step(done.state, on.ReplyReceived(done.state.request, Reply("ok"), "anthropic:m"), 21_001).state
    assert (replied.phase, replied.service_waits) == (Phase.IDLE, 0)


def test_words_enter_with_the_request_that_has_waited() -> None:
    waits = waiting()
    word = on.Prompt("be short", None, mail=7, data={"steer": True})
    assert written(step(waits, on.ServiceDue(waits.request), 21_000, words=[word])) == [(6, "steer", "be short")]


def test_a_stopped_agent_asks_when_it_goes_on_and_a_terminating_one_in_time() -> None:
    stopped = step(waiting(), on.StatusChanged(Status.STOPPED), 5_000).state
    assert step(stopped, on.ServiceDue(stopped.request), 21_000) == Step(stopped)
    early = step(stopped, on.StatusChanged(Status.RUNNING), 6_000)
    assert (early.state.phase, early.effects) == (Phase.WAITING_FOR_SERVICE, ())
    late = step(stopped, on.StatusChanged(Status.RUNNING), 22_000)
    assert late.effects == (RequestModel(stopped.request + 1),)
    ends = replace(stopped, lifecycle=LifecycleState(Status.TERMINATING))
    assert step(ends, on.ServiceDue(ends.request), 21_000).state.phase is Phase.WAITING_FOR_MODEL


def test_an_interrupt_ends_the_turn_that_waits() -> None:
    done = step(waiting(), on.Interrupt("person"), NOW)
    assert (done.state.phase, done.state.turn, done.state.service_wait) == (Phase.IDLE, 0, None)
    assert isinstance(answers(done)["asker"], TurnInterrupted)
    assert answers(done)["person"] is True


@pytest.mark.parametrize("event", [on.Resume("person"), on.Configure({"model": "other:m"}, "person")])
def test_who_resumes_the_agent_or_gives_it_another_model_asks_at_once(event: on.Deferrable) -> None:
    waits = replace(waiting(), passed=2)
    assert accepts(waits, event)
    done = step(waits, event, NOW)
    assert isinstance(done.unit, LogUnit)
    assert (done.unit.asks, done.unit.unpaused) == (True, False)
    assert RequestModel(waits.request + 1) in done.effects
    assert (done.state.phase, done.state.service_wait, done.state.passed) == (Phase.WAITING_FOR_MODEL, None, 0)


def test_what_does_not_concern_the_request_is_done_while_it_waits() -> None:
    waits = waiting()
    marked = step(waits, on.SetMark("m", "person"), NOW)
    assert (marked.state.phase, marked.state.service_wait) == (Phase.WAITING_FOR_SERVICE, waits.service_wait)
    assert accepts(waits, fork())
    assert step(waits, fork(), NOW).state.service_wait == waits.service_wait
    assert not accepts(waits, on.Prompt("next", "person"))
    cleared = step(waits, on.Clear("person"), NOW)
    assert "taken back while it waited for its service" in str(answers(cleared)["asker"])
    assert (cleared.state.turn, cleared.state.service_wait) == (0, None)


def test_a_merge_comes_before_the_request_that_waits() -> None:
    merging = step(waiting(), on.Merge("kid", "result", (), "person"), NOW).state
    assert (merging.phase, merging.service_wait) == (Phase.MERGING, None)
    refused = step(merging, on.ChildRead(merging.request, error=ProviderError("gone")), NOW).state
    asked = step(refused, on.Continue([]), NOW)
    assert asked.effects == (RequestModel(refused.request + 1),)


def test_the_next_model_is_asked_at_once_instead_of_a_long_wait() -> None:
    done = step(BUSY, on.ReplyFailed(3, refusal(3_600), next="right:b", service="left"), NOW)
    assert isinstance(done.unit, LogUnit)
    assert done.unit.messages[0].data == {"next": "right:b"}
    assert (done.effects, done.state.passed) == ((RequestModel(4),), 1)


def test_a_blip_in_the_middle_of_a_stream_is_waited_for_as_one_before_it() -> None:
    blip = refusal(0, free=False, broke_off=True, partial="so f")
    state = BUSY
    for waits in range(SERVICE_RETRIES):
        done = step(state, on.ReplyFailed(state.request, blip), NOW)
        assert isinstance(done.unit, LogUnit)
        assert done.unit.messages[0].data["partial"] == "so f"
        assert done.state.phase is Phase.WAITING_FOR_SERVICE
        assert done.state.service_waits == waits + 1
        state = step(done.state, on.ServiceDue(done.state.request), NOW + 100_000).state
    assert step(state, on.ReplyFailed(state.request, blip), NOW).state.phase is Phase.IDLE


def test_a_summary_waits_for_its_service_too_and_an_interrupt_ends_that() -> None:
    compacting = replace(
        BUSY,
        phase=Phase.COMPACTING,
        view=EMPTY,
        compaction=Compaction(None, "", "person", Phase.IDLE),  # type: ignore[arg-type]
    )
    waits = step(compacting, on.SummaryFailed(3, refusal(20), service="p"), NOW)
    assert (waits.state.phase, waits.state.shown) == (Phase.COMPACTING, Phase.WAITING_FOR_SERVICE)
    assert waits.effects == (AwaitService(4, 21_000),)
    again = step(waits.state, on.ServiceDue(4), 21_000)
    assert (again.effects, again.state.shown) == ((Summarise(5),), Phase.COMPACTING)
    other = step(compacting, on.SummaryFailed(3, refusal(3_600), next="right:b"), NOW)
    assert (other.effects, other.state.passed) == ((Summarise(4),), 1)
    ended = step(replace(waits.state, turn=0), on.Interrupt("me"), NOW)
    assert (ended.state.service_wait, ended.state.phase) == (None, Phase.IDLE)
