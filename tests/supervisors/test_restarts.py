"""The tables that a supervisor decides by: ends, strategies, intensity, backoff, poison."""

from functools import cache
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisors.causes import Cause
from supervisors.children import RestartType, SupervisedChild, is_restarted
from supervisors.intensity import DEFAULT_INTENSITY, DEFAULT_PERIOD, LONGEST_WAIT, add_restart, backoff, is_poison
from supervisors.strategies import Strategy, plan

CHILDREN = tuple(SupervisedChild(name) for name in "abcd")
TIMES = st.lists(st.integers(0, 100)).map(sorted)


def names(children: tuple[SupervisedChild, ...]) -> str:
    return "".join(child.agent for child in children)


def test_restart_types_and_ends_decide_who_is_restarted() -> None:
    restarted = {pair for pair in product(RestartType, Cause) if is_restarted(*pair)}
    assert restarted == {
        (RestartType.PERMANENT, Cause.CRASHED),
        (RestartType.PERMANENT, Cause.EXITED),
        (RestartType.TRANSIENT, Cause.CRASHED),
    }


@pytest.mark.parametrize(
    ("strategy", "failed", "stop", "start"),
    [
        (Strategy.ONE_FOR_ONE, "a", "", "a"),
        (Strategy.ONE_FOR_ONE, "b", "", "b"),
        (Strategy.ONE_FOR_ONE, "d", "", "d"),
        (Strategy.REST_FOR_ONE, "a", "dcb", "abcd"),
        (Strategy.REST_FOR_ONE, "b", "dc", "bcd"),
        (Strategy.REST_FOR_ONE, "d", "", "d"),
        (Strategy.ONE_FOR_ALL, "a", "dcb", "abcd"),
        (Strategy.ONE_FOR_ALL, "b", "dca", "abcd"),
        (Strategy.ONE_FOR_ALL, "d", "cba", "abcd"),
    ],
)
def test_a_strategy_stops_in_reverse_order_and_starts_in_order(
    strategy: Strategy, failed: str, stop: str, start: str
) -> None:
    planned = plan(strategy, CHILDREN, SupervisedChild(failed))
    assert (names(planned.stop), names(planned.start)) == (stop, start)


@pytest.mark.parametrize("strategy", [Strategy.REST_FOR_ONE, Strategy.ONE_FOR_ALL])
def test_a_temporary_sibling_is_taken_along_but_not_started_again(strategy: Strategy) -> None:
    children = (
        SupervisedChild("a"),
        SupervisedChild("b", RestartType.TEMPORARY),
        SupervisedChild("c", RestartType.PERMANENT),
    )
    planned = plan(strategy, children, children[0])
    assert (names(planned.stop), names(planned.start)) == ("cb", "ac")


@cache
def twenty_thousand() -> tuple[SupervisedChild, ...]:
    return tuple(SupervisedChild(str(number)) for number in range(20_000))


@pytest.mark.parametrize("strategy", Strategy)
def test_a_restart_among_twenty_thousand_children_is_planned_in_one_pass(strategy: Strategy) -> None:
    children = twenty_thousand()
    planned = plan(strategy, children, children[10_000])
    assert len(planned.start) - len(planned.stop) == 1


def test_as_many_restarts_as_the_intensity_are_allowed_within_a_period() -> None:
    restarts: tuple[int, ...] | None = ()
    for now in (0, 1, 2):
        restarts = add_restart(restarts or (), now, DEFAULT_INTENSITY, DEFAULT_PERIOD)
    assert restarts == (0, 1, 2)
    assert add_restart(restarts, DEFAULT_PERIOD, DEFAULT_INTENSITY, DEFAULT_PERIOD) is None, (
        "exactly one period ago still counts"
    )
    assert add_restart(restarts, DEFAULT_PERIOD + 1, DEFAULT_INTENSITY, DEFAULT_PERIOD) == (1, 2, DEFAULT_PERIOD + 1)


def test_a_restart_that_lies_further_ahead_than_a_period_does_not_count() -> None:
    assert add_restart((5, 20, 21), 10, intensity=3, period=10) == (5, 20, 10)


def test_with_an_intensity_of_0_no_restart_is_allowed() -> None:
    assert add_restart((), 5, intensity=0, period=10) is None


@given(TIMES, st.integers(1, 5), st.integers(1, 30))
def test_no_period_ever_holds_more_restarts_than_the_intensity(times: list[int], intensity: int, period: int) -> None:
    kept: tuple[int, ...] = ()
    allowed: list[int] = []
    for now in times:
        counted = add_restart(kept, now, intensity, period)
        room = sum(now - then <= period for then in allowed) < intensity
        assert (counted is not None) == room
        if counted is not None:
            kept = counted
            allowed.append(now)
            assert kept == tuple(then for then in allowed if now - then <= period)


def test_the_wait_after_a_failed_restart_doubles_up_to_a_minute() -> None:
    assert [backoff(attempt) for attempt in range(1, 9)] == [1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000]
    assert backoff(10**9) == LONGEST_WAIT
    assert backoff(0) == backoff(1)


def test_a_turn_that_crashed_its_agent_twice_is_poison() -> None:
    assert [is_poison(crashes) for crashes in range(4)] == [False, False, True, True]
