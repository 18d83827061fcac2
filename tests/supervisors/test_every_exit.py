"""Every way in which a child of a small family can end: the rule of restarts is written anew here, in words of its own.

Three children of all types, all strategies and causes, intensities of 0 to 2, and restarts before it at the edge of the
period: the last millisecond that counts, the first that does not, and a clock that was set back.
"""

from collections.abc import Iterator
from itertools import combinations_with_replacement, product

import pytest

from supervisors.causes import Cause
from supervisors.children import RestartType, SupervisedChild
from supervisors.strategies import Strategy
from supervisors.supervisor import Bury, Decision, GiveUp, Start, Stop, Supervisor, exited

PERIOD, NOW = 10, 100
TIMES = (NOW - PERIOD - 1, NOW - PERIOD, NOW, NOW + PERIOD, NOW + PERIOD + 1)
"""When there were restarts before."""

COUNT = {NOW - PERIOD, NOW, NOW + PERIOD}
"""Those of them that lie within the period."""

ANSWERED = {
    (RestartType.PERMANENT, Cause.CRASHED),
    (RestartType.PERMANENT, Cause.EXITED),
    (RestartType.TRANSIENT, Cause.CRASHED),
}
"""The ends that a restart answers."""

TAKEN = {Strategy.ONE_FOR_ONE: ("{}", "{}", "{}"), Strategy.REST_FOR_ONE: ("{}bc", "{}c", "{}"),
         Strategy.ONE_FOR_ALL: ("{}bc", "a{}c", "ab{}")}  # fmt: skip
"""Who is taken along when the first, second or third child ends."""


def families(sizes: tuple[int, ...]) -> Iterator[Supervisor]:
    """Every supervisor of three children."""
    for types, strategy, intensity, protected in product(
        product(RestartType, repeat=3), Strategy, (0, 1, 2), (False, True)
    ):
        children = tuple(map(SupervisedChild, "abc", types))
        for size in sizes:
            for restarts in combinations_with_replacement(TIMES, size):
                yield Supervisor(children, strategy, intensity, PERIOD, restarts, protected)


def expected(family: Supervisor, place: int, cause: Cause) -> tuple[str, tuple[int, ...], tuple[Decision, ...]]:
    """Who is a child afterwards, which restarts count, and what is done."""
    names, types = "abc", {child.agent: child.restart for child in family.children}
    agent = names[place]
    others = names.replace(agent, "")
    if (types[agent], cause) not in ANSWERED:
        return others, family.restarts, (Bury(agent, cause),)
    recent = tuple(restart for restart in family.restarts if restart in COUNT)
    if len(recent) >= family.intensity:
        if family.protected:
            return others, family.restarts, (Bury(agent, Cause.GAVE_UP),)
        return names, (), (GiveUp(("c", "b", "a")),)
    along = TAKEN[family.strategy][place].format(agent)
    ends = [member for member in along[::-1] if member != agent]
    left = {end for end in ends if types[end] is RestartType.TEMPORARY}
    stops = tuple(Bury(end, Cause.TERMINATED) if end in left else Stop(end) for end in ends)
    starts = Start(tuple(member for member in along if member not in left))
    return "".join(name for name in names if name not in left), (*recent, NOW), (*stops, starts)


def check(*sizes: int) -> int:
    """Compare each case of so many restarts before; return how many there were."""
    cases = 0
    for family in families(sizes):
        for place, cause in product(range(3), Cause):
            cases += 1
            after, done = exited(family, "abc"[place], cause, NOW)
            names = "".join(child.agent for child in after.children)
            assert (names, after.restarts, done) == expected(family, place, cause), (family, place, cause)
        assert exited(family, "x", Cause.CRASHED, NOW) == (family, ())
    return cases


def test_each_end_of_a_child_has_the_consequences_of_its_type_and_of_the_strategy() -> None:
    assert check(0) == 10_206


@pytest.mark.thorough("half a million cases")
def test_each_end_has_the_same_consequences_whatever_restarts_there_were_at_the_edge_of_the_period() -> None:
    assert check(0, 1, 2, 3) == 10_206 * (1 + 5 + 15 + 35)
