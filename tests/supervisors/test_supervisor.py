"""What a supervisor does about each event of its children, where it is more than the model test shows."""

from dataclasses import replace
from itertools import product

import pytest

from supervisors.causes import Cause
from supervisors.children import RestartType, SupervisedChild
from supervisors.strategies import Strategy
from supervisors.supervisor import (
    Bury,
    GiveUp,
    Retry,
    Start,
    Stop,
    Supervisor,
    exited,
    unstarted,
)

MINUTE = 60_000
CHILDREN = (SupervisedChild("a"), SupervisedChild("b"), SupervisedChild("c"))
ONE, ALL, REST = (
    Supervisor(CHILDREN, strategy) for strategy in (Strategy.ONE_FOR_ONE, Strategy.ONE_FOR_ALL, Strategy.REST_FOR_ONE)
)
FINAL = [end for end in Cause if end not in (Cause.CRASHED, Cause.EXITED)]


def crash(supervisor: Supervisor, agent: str, times: int, now: int = 0) -> Supervisor:
    """The supervisor after so many crashes of a child, each followed by a start that succeeds."""
    for _ in range(times):
        supervisor, _ = exited(supervisor, agent, Cause.CRASHED, now)
    return supervisor


@pytest.mark.parametrize(("restart", "end"), list(product(RestartType, FINAL)))
def test_what_ends_an_agent_for_good_buries_it_whatever_its_restart_type(restart: RestartType, end: Cause) -> None:
    child = SupervisedChild("b", restart)
    after, decisions = exited(replace(ALL, children=(CHILDREN[0], child)), "b", end, 0)
    assert decisions == (Bury("b", end),)
    assert after == replace(ALL, children=(CHILDREN[0],))


def test_a_permanent_agent_that_exits_is_restarted() -> None:
    permanent = Supervisor((SupervisedChild("a", RestartType.PERMANENT),))
    after, decisions = exited(permanent, "a", Cause.EXITED, 7)
    assert decisions == (Start(("a",)),)
    assert after == replace(permanent, restarts=(7,))


def test_siblings_are_stopped_in_reverse_order_before_all_are_started_in_order() -> None:
    assert exited(ALL, "b", Cause.CRASHED, 0)[1] == (Stop("c"), Stop("a"), Start(("a", "b", "c")))
    assert exited(REST, "b", Cause.CRASHED, 0)[1] == (Stop("c"), Start(("b", "c")))
    assert exited(ONE, "b", Cause.CRASHED, 0)[1] == (Start(("b",)),)


def test_a_temporary_sibling_is_buried_with_the_stops() -> None:
    mixed = replace(
        ALL, children=(SupervisedChild("a"), SupervisedChild("t", RestartType.TEMPORARY), SupervisedChild("c"))
    )
    after, decisions = exited(mixed, "a", Cause.CRASHED, 0)
    assert decisions == (Stop("c"), Bury("t", Cause.TERMINATED), Start(("a", "c")))
    assert after.children == (SupervisedChild("a"), SupervisedChild("c"))


def test_who_is_not_a_child_changes_nothing() -> None:
    assert exited(ALL, "x", Cause.CRASHED, 0) == (ALL, ())
    assert unstarted(ALL, "x") == (ALL, ())


def test_past_the_intensity_all_children_are_stopped_in_reverse_order() -> None:
    tired = crash(ONE, "b", 3)
    after, decisions = exited(tired, "b", Cause.CRASHED, 10 * MINUTE)
    assert decisions == (GiveUp(("c", "b", "a")),)
    assert after == replace(ONE, restarts=()), "restarted itself, it counts anew"


def test_restarts_longer_ago_than_the_period_are_forgotten() -> None:
    after, decisions = exited(crash(ONE, "b", 3), "b", Cause.CRASHED, 10 * MINUTE + 1)
    assert decisions == (Start(("b",)),)
    assert after.restarts == (10 * MINUTE + 1,)


def test_trouble_climbs_from_supervisor_to_supervisor_and_ends_at_agent_0() -> None:
    inner, outer = replace(ONE, intensity=0), Supervisor((SupervisedChild("inner"),), intensity=0)
    root = Supervisor((SupervisedChild("outer"), SupervisedChild("other")), intensity=0, protected=True)
    assert exited(inner, "a", Cause.CRASHED, 0)[1] == (GiveUp(("c", "b", "a")),)
    assert exited(outer, "inner", Cause.CRASHED, 0)[1] == (GiveUp(("inner",)),)
    after, decisions = exited(root, "outer", Cause.CRASHED, 0)
    assert decisions == (Bury("outer", Cause.GAVE_UP),)
    assert after == replace(root, children=(SupervisedChild("other"),))


@pytest.mark.parametrize("supervisor", [ONE, ALL, REST])
def test_at_agent_0_the_failing_child_alone_is_buried_and_takes_no_restart(supervisor: Supervisor) -> None:
    tired = crash(replace(supervisor, protected=True), "c", 3)
    after, decisions = exited(tired, "b", Cause.CRASHED, 1)
    assert decisions == (Bury("b", Cause.GAVE_UP),)
    assert after == replace(tired, children=(SupervisedChild("a"), SupervisedChild("c")))


def test_a_failed_restart_is_retried_later_and_later_and_counted() -> None:
    supervisor, _ = exited(ONE, "b", Cause.CRASHED, 0)
    for now, wait in ((0, 1000), (1000, 2000), (3000, 4000)):
        supervisor, decisions = unstarted(supervisor, "b")
        assert decisions == (Retry("b", wait),)
        supervisor, decisions = exited(supervisor, "b", Cause.CRASHED, now + wait)
        if now < 3000:
            assert decisions == (Start(("b",)),)
    assert decisions == (GiveUp(("c", "b", "a")),)


def test_a_temporary_child_whose_start_fails_is_buried() -> None:
    mixed = replace(REST, children=(SupervisedChild("t", RestartType.TEMPORARY), SupervisedChild("b")))
    after, decisions = unstarted(mixed, "t")
    assert decisions == (Bury("t", Cause.CRASHED),)
    assert after.children == (SupervisedChild("b"),)


@pytest.mark.parametrize(
    ("setting", "message"),
    [({"intensity": -1}, "intensity of 0 restarts or more, got: -1"), ({"period": 0}, "1 millisecond or more, got: 0")],
)
def test_settings_that_make_no_sense_are_refused(setting: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(ONE, **setting)  # type: ignore[arg-type]
