"""What each signal does to each status, and whom a cascade hits."""

from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisors.signals import (
    TRANSITIONS,
    Delivered,
    Ignored,
    Outcome,
    Refusal,
    Rejected,
    Signal,
    Status,
    cascade,
    deliver,
)
from supervisors.tree import everybody, top_down

MATRIX = """
                INT          STOP     CONT     TERM         KILL
    running     running      stopped  -        terminating  dead
    stopped     stopped      -        running  dead         dead
    terminating terminating  refused  -        -            dead
    dead        refused      refused  refused  refused      refused
"""

PARENTS = st.lists(st.integers(0, 1000), max_size=40)
"""Of each agent but the first: a number that tells its supervisor."""


def grown(parents: list[int]) -> dict[str, str | None]:
    """A random tree: agent n is below one that is older."""
    tree: dict[str, str | None] = {"0": None}
    for agent, parent in enumerate(parents, 1):
        tree[str(agent)] = str(parent % agent)
    return tree


def ancestors(agent: str, tree: dict[str, str | None]) -> set[str]:
    """The agent and everybody above it."""
    above = {agent}
    supervisor = tree[agent]
    while supervisor is not None:
        above.add(supervisor)
        supervisor = tree[supervisor]
    return above


def word(outcome: Outcome) -> str:
    match outcome:
        case Delivered(status):
            return status
        case Ignored():
            return "-"
        case Rejected():
            return "refused"


def test_each_signal_does_to_each_status_what_the_matrix_says() -> None:
    header, *rows = [line.split() for line in MATRIX.strip().splitlines()]
    outcomes = {
        (Status(row[0]), Signal(name)): what for row in rows for name, what in zip(header, row[1:], strict=True)
    }
    assert {key: word(outcome) for key, outcome in TRANSITIONS.items()} == outcomes
    assert set(outcomes) == set(product(Status, Signal))


def test_a_refusal_tells_the_dead_from_the_terminating() -> None:
    assert {deliver(Status.DEAD, signal) for signal in Signal} == {Rejected(Refusal.DEAD)}
    assert deliver(Status.TERMINATING, Signal.STOP) == Rejected(Refusal.TERMINATING)


def test_what_is_ignored_says_why() -> None:
    assert deliver(Status.RUNNING, Signal.CONT) == Ignored("it runs")
    assert deliver(Status.STOPPED, Signal.STOP) == Ignored("it is stopped already")
    assert deliver(Status.TERMINATING, Signal.TERM) == Ignored("it is terminating already")


@pytest.mark.parametrize("status", [Status.RUNNING, Status.STOPPED])
def test_agent_0_can_be_paused_and_interrupted_but_not_ended(status: Status) -> None:
    for signal in (Signal.TERM, Signal.KILL):
        assert deliver(status, signal, protected=True) == Rejected(Refusal.PROTECTED)
    for signal in (Signal.INT, Signal.STOP, Signal.CONT):
        assert deliver(status, signal, protected=True) == deliver(status, signal)


@given(st.lists(st.sampled_from(Signal)), st.sampled_from(Status))
def test_nobody_comes_back_from_the_dead_and_a_terminating_agent_only_dies(
    signals: list[Signal], status: Status
) -> None:
    for signal in signals:
        outcome = deliver(status, signal)
        after = outcome.status if isinstance(outcome, Delivered) else status
        assert status is not Status.DEAD or after is Status.DEAD
        assert status is not Status.TERMINATING or after in (Status.TERMINATING, Status.DEAD)
        status = after


def test_a_cascade_reports_leaves_first_and_siblings_in_reverse_order() -> None:
    tree = {"root": None, "a": "root", "b": "root", "a1": "a", "a2": "a", "a2x": "a2", "b1": "b"}
    assert cascade("a", tree) == ["a2x", "a2", "a1", "a"]
    assert cascade("root", tree) == ["b1", "b", "a2x", "a2", "a1", "a", "root"]


def test_a_cascade_walks_through_the_dead_without_hitting_them() -> None:
    tree = {"root": None, "a": "root", "b": "a", "c": "b", "other": "root"}
    assert cascade("a", tree, dead={"b"}) == ["c", "a"]


def test_a_cascade_ends_where_damaged_rows_run_in_a_circle() -> None:
    tree = {"root": None, "a": "c", "b": "a", "c": "b", "self": "self"}
    assert cascade("b", tree) == ["a", "c", "b"]
    assert cascade("self", tree) == ["self"]


@given(PARENTS, st.integers(0, 1000), st.sets(st.integers(0, 40).map(str)))
def test_a_cascade_hits_exactly_the_living_at_and_below_its_top(parents: list[int], top: int, dead: set[str]) -> None:
    tree = grown(parents)
    chosen = list(tree)[top % len(tree)]
    hit = cascade(chosen, tree, dead)
    assert len(hit) == len(set(hit))
    assert set(hit) == {agent for agent in tree if chosen in ancestors(agent, tree)} - dead
    for place, agent in enumerate(hit):
        assert not ancestors(agent, tree) & set(hit[:place]), "somebody above it was reported before it"


@given(PARENTS, st.randoms(use_true_random=False))
def test_everybody_comes_after_its_supervisor_also_one_adopted_by_a_younger_agent(
    parents: list[int], random: Random
) -> None:
    tree = grown(parents)
    shuffled = {agent: tree[agent] for agent in random.sample(list(tree), len(tree))}
    walked: list[str | None] = [None, *everybody(shuffled)]
    assert all(walked.index(supervisor) < walked.index(agent) for agent, supervisor in tree.items())


@given(st.dictionaries(st.integers(0, 20).map(str), st.none() | st.integers(0, 25).map(str)))
def test_everybody_is_walked_once_whatever_the_rows(supervisors: dict[str, str | None]) -> None:
    assert sorted(everybody(supervisors)) == sorted(supervisors)


@pytest.mark.parametrize("shape", ["chain", "star"])
def test_a_walk_reads_twenty_thousand_agents_once(shape: str) -> None:
    number = 20_000
    supervisors = {str(n): None if n == 0 else str(n - 1 if shape == "chain" else 0) for n in range(number)}
    assert len(cascade("0", supervisors)) == number
    assert next(iter(everybody(supervisors))) == "0"
    assert list(top_down(supervisors, (str(number - 1),))) == [str(number - 1)]
