"""Circles of waits, against an answer that tries every path."""

from collections.abc import Iterator
from itertools import chain, combinations

from hypothesis import given
from hypothesis import strategies as st

from ikigai_actors.actors.wait_graph import (
    Circle,
    Until,
    WaitedBy,
    WaitEdge,
    WaitKey,
    closed_by,
    deadlock_of,
    holds,
    in_words,
    never_ending,
)

AGENTS = "abcde"


def edges() -> st.SearchStrategy[list[WaitEdge]]:
    names = st.sampled_from(AGENTS)
    drawn = st.tuples(names, names, st.sampled_from(WaitedBy), st.sampled_from(Until))
    return st.lists(drawn, min_size=1, max_size=9).map(
        lambda all_of_them: [WaitEdge(*ends, WaitKey(0, number, "")) for number, ends in enumerate(all_of_them)]
    )


def paths(path: Circle, among: list[WaitEdge]) -> Iterator[Circle]:
    """Every path that goes on from this one, and takes no edge twice."""
    yield path
    for edge in among:
        if edge not in path and edge.waiter == path[-1].awaited and holds(edge, path[-1]):
            yield from paths((*path, edge), among)


@given(edges())
def test_a_circle_is_found_if_there_is_one_and_it_is_the_shortest(among: list[WaitEdge]) -> None:
    start = among[0]
    circle = closed_by([start], lambda uuid: (edge for edge in among if edge.waiter == uuid))
    circles = [path for path in paths((start,), among) if path[-1].awaited == start.waiter and holds(start, path[-1])]
    assert (circle is None) == (circles == [])
    if circle is not None:
        assert len(circle) == min(map(len, circles))
        assert circle in circles


def waits() -> st.SearchStrategy[list[WaitEdge]]:
    """The edges of some waits, each of which may do without some of its agents."""
    some = st.lists(st.sampled_from(AGENTS), min_size=1, max_size=3, unique=True)
    drawn = st.tuples(
        st.sampled_from(AGENTS), some, st.sampled_from(WaitedBy), st.sampled_from(Until), st.integers(0, 2)
    )
    return st.lists(drawn, min_size=1, max_size=6).map(
        lambda all_of_them: [
            WaitEdge(waiter, awaited, by, until, WaitKey(0, number, ""), min(spare, len(some) - 1))
            for number, (waiter, some, by, until, spare) in enumerate(all_of_them)
            for awaited in some
        ]
    )


def every_never_ending(among: list[WaitEdge]) -> set[WaitEdge]:
    """Of all sets of waits of which each keeps enough agents of each other: all together."""
    keys = sorted({edge.wait for edge in among})
    out = set[WaitEdge]()
    for some in chain.from_iterable(combinations(keys, size) for size in range(1, len(keys) + 1)):
        kept = [
            edge
            for edge in among
            if edge.wait in some
            if any(other.wait in some and other.waiter == edge.awaited and holds(other, edge) for other in among)
        ]
        count = {key: [edge for edge in kept if edge.wait == key] for key in some}
        if all(len(count[edge.wait]) > edge.spare for edge in among if edge.wait in some):
            out |= {*kept}
    return out


@given(waits())
def test_a_wait_for_some_never_ends_if_too_few_are_left_and_one_for_all_if_one_is_kept(among: list[WaitEdge]) -> None:
    assert never_ending(among) == every_never_ending(among)


@given(waits())
def test_a_wait_closes_a_deadlock_if_it_never_ends_and_is_in_a_circle_of_such(among: list[WaitEdge]) -> None:
    latest = [edge for edge in among if edge.wait == among[-1].wait]
    deadlock = deadlock_of(latest, lambda uuid: [edge for edge in among if edge.waiter == uuid])
    every = every_never_ending(among)
    dead = [edge for edge in among if edge in every]
    own = [edge for edge in dead if edge in latest]
    circle = closed_by(own, lambda uuid: [edge for edge in dead if edge.waiter == uuid])
    assert (deadlock is None) == (circle is None)
    if deadlock is not None:
        assert deadlock.edges >= {*deadlock.circle, *own}
        assert deadlock.edges <= {*dead}


def test_a_circle_in_words_ends_where_it_begins() -> None:
    circle = tuple(
        WaitEdge(waiter, other, WaitedBy.CODE, Until.TURN, WaitKey(0, 0, "")) for waiter, other in ("ab", "bc", "ca")
    )
    assert in_words(circle, str.upper) == "A waits for B waits for C waits for A"
