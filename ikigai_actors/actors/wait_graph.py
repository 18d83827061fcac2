"""The graph of actors that wait for one another, and its circles. Pure.

    circle = closed_by([edge], out)         # the edges of a circle, or None
    in_words(circle, name)                  # "a waits for b waits for a"

An edge says that an agent waits until another one has come to a certain point. An agent goes on when all its waits are
over. A wait that needs each of its agents never ends if one of them never gets there; a wait for some of them never
ends if too few are left (`never_ending`). A circle of edges that never end is a deadlock.

There are two points. A prompt is answered at the end of a turn; a fork needs only a step boundary. And there are two
kinds of waiters. Waiting code, in a provider or a tool, keeps its agent from both points. A call of ``wait`` by a model
keeps its agent from the end of the turn, but not from a step boundary.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable
from enum import StrEnum
from typing import NamedTuple


class Until(StrEnum):
    """The point that an awaited agent must reach before a wait for it ends."""

    STEP = "step"
    """The awaited agent must come to its next step boundary."""
    TURN = "turn"
    """The end of its turn."""


class WaitedBy(StrEnum):
    """The part of an agent that waits: its running code, or a call of its model."""

    CODE = "code"
    """The code of the agent's provider, or of a tool that it runs."""
    CALL = "call"
    """The built-in call of its model."""


class WaitKey(NamedTuple):
    """Identifies a wait among the waits of all hosts; the greatest key belongs to the latest wait."""

    began: int
    """The time at which the wait began, in milliseconds since 1970."""
    number: int
    """Counts the waits of its host."""
    host: str


class WaitEdge(NamedTuple):
    """The fact that one agent waits for another."""

    waiter: str
    """The uuid of the agent that waits."""
    awaited: str
    """The uuid of the awaited agent."""
    by: WaitedBy
    until: Until
    wait: WaitKey
    """The wait of this edge; a wait for several agents has an edge to each."""
    spare: int = 0
    """The number of its agents without which the wait ends all the same."""


Circle = tuple[WaitEdge, ...]
"""Edges, each of which begins where the one before it ends; the last one ends where the first one begins."""


class Deadlock(NamedTuple):
    """A circle of waits, none of which can end."""

    circle: Circle
    edges: frozenset[WaitEdge]
    """The edges because of which they never end, with those of the circle."""


def closed_by(edges: Iterable[WaitEdge], out: Callable[[str], Iterable[WaitEdge]]) -> Circle | None:
    """Return the shortest circle that begins with one of these edges; None if there is none.

    Args:
        edges: edges of one agent.
        out: returns all edges of an agent, by its uuid, in a fixed order.
    """
    paths = deque[Circle]((edge,) for edge in edges)
    seen = set[tuple[str, Until]]()
    while paths:
        path = paths.popleft()
        last = path[-1]
        if last.awaited == path[0].waiter:
            if holds(path[0], last):
                return path
            continue
        if (last.awaited, last.until) not in seen:
            seen.add((last.awaited, last.until))
            paths.extend((*path, edge) for edge in out(last.awaited) if holds(edge, last))
    return None


def never_ending(edges: Iterable[WaitEdge]) -> frozenset[WaitEdge]:
    """Return those of these edges that can never end: the awaited agent never reaches the point, and the wait needs it.

    An agent of which no wait is among the result goes on.
    """
    of_wait: dict[WaitKey, set[WaitEdge]] = {}
    of_waiter, to_agent = dict[str, set[WaitEdge]](), dict[str, set[WaitKey]]()
    for edge in edges:
        of_wait.setdefault(edge.wait, set()).add(edge)
        of_waiter.setdefault(edge.waiter, set()).add(edge)
        to_agent.setdefault(edge.awaited, set()).add(edge.wait)
    lasting, left = set(of_wait), list(of_wait)

    def is_kept(edge: WaitEdge) -> bool:
        return any(further.wait in lasting and holds(further, edge) for further in of_waiter.get(edge.awaited, ()))

    while left:
        key = left.pop()
        kept = [edge for edge in of_wait[key] if key in lasting and is_kept(edge)]
        if key in lasting and not (kept and len(kept) > kept[0].spare):
            lasting.remove(key)
            left += {further for edge in of_wait[key] for further in to_agent.get(edge.waiter, ())}
    return frozenset(edge for key in lasting for edge in of_wait[key] if is_kept(edge))


def reached(edges: Iterable[WaitEdge], out: Callable[[str], Iterable[WaitEdge]]) -> list[WaitEdge]:
    """Return these edges and all edges that can be reached from them; ``out`` is as for `closed_by`."""
    every, left, seen = [*edges], [edge.awaited for edge in edges], set[str]()
    while left:
        uuid = left.pop()
        if uuid not in seen:
            seen.add(uuid)
            further = [*out(uuid)]
            every += further
            left += [edge.awaited for edge in further]
    return every


def deadlock_of(edges: Collection[WaitEdge], out: Callable[[str], Iterable[WaitEdge]]) -> Deadlock | None:
    """Return the deadlock that a wait with these edges causes; None if there is none. ``out`` is as for `closed_by`."""
    if closed_by(edges, out) is None:  # nearly always
        return None
    dead: dict[str, list[WaitEdge]] = {}
    for edge in sorted(never_ending(reached(edges, out)), key=lambda edge: (edge.wait, edge.awaited)):
        dead.setdefault(edge.waiter, []).append(edge)
    first = [edge for of in dead.values() for edge in of if edge in edges]
    circle = closed_by(first, lambda uuid: dead.get(uuid, ()))
    return None if circle is None else Deadlock(circle, frozenset(reached(first, lambda uuid: dead.get(uuid, ()))))


def still_agents(edges: Iterable[WaitEdge], out: Callable[[str], Iterable[WaitEdge]]) -> set[str]:
    """Return the agents that can be reached from these edges and wait for no other. ``out`` is as for `closed_by`."""
    left, seen, still = [edge.awaited for edge in edges], set[str](), set[str]()
    while left:
        uuid = left.pop()
        if uuid not in seen:
            seen.add(uuid)
            further = [edge.awaited for edge in out(uuid)]
            left += further
            still |= set() if further else {uuid}
    return still


def holds(edge: WaitEdge, before: WaitEdge) -> bool:
    """Return whether an agent's own wait (``edge``) keeps it from the point that the wait ``before`` needs."""
    return before.until is Until.TURN or edge.by is WaitedBy.CODE


def in_words(circle: Circle, name: Callable[[str], str]) -> str:
    """Return a circle in words for people, as ``a waits for b waits for a``.

    ``name`` gives the shown name of an agent.
    """
    return " waits for ".join(map(name, (*(edge.waiter for edge in circle), circle[0].waiter)))
