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
        lambda all_of_them: [WaitEdge(*one, WaitKey(0, number, "")) for number, one in enumerate(all_of_them)]
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
    found = closed_by([start], lambda uuid: (edge for edge in among if edge.waiter == uuid))
    circles = [path for path in paths((start,), among) if path[-1].awaited == start.waiter and holds(start, path[-1])]
    assert (found is None) == (circles == [])
    if found is not None:
        assert len(found) == min(map(len, circles))
        assert found in circles


def test_a_circle_in_words_ends_where_it_begins() -> None:
    circle = tuple(
        WaitEdge(one, other, WaitedBy.CODE, Until.TURN, WaitKey(0, 0, "")) for one, other in ("ab", "bc", "ca")
    )
    assert in_words(circle, str.upper) == "A waits for B waits for C waits for A"
