"""Circles of waits, against an answer that tries every path."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from ikigai_actors.actors.wait_graph import Circle, Until, WaitedBy, WaitEdge, WaitKey, closed_by, holds, in_words

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


def test_a_circle_in_words_ends_where_it_begins() -> None:
    circle = tuple(
        WaitEdge(waiter, other, WaitedBy.CODE, Until.TURN, WaitKey(0, 0, "")) for waiter, other in ("ab", "bc", "ca")
    )
    assert in_words(circle, str.upper) == "A waits for B waits for C waits for A"
