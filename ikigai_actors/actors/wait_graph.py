"""The graph of actors that wait for one another, and its circles. Pure.

    circle = closed_by([edge], out)         # the edges of a circle, or None
    in_words(circle, name)                  # "a waits for b waits for a"

An edge says that an agent goes on only when another one has come to a certain point. An agent goes on when all its
waits are over, so each circle of edges is a deadlock: none of the agents in it ever gets there.

There are two points. A prompt is answered at the end of a turn; a fork needs a step boundary only. And there are two
kinds of waiters. Code that waits, in a provider or a tool, keeps its agent from both. A call of ``wait`` by a model
keeps its agent from the end of the turn, while a fork passes it.
"""

from collections import deque
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import NamedTuple


class Until(StrEnum):
    """The target of a wait."""

    STEP = "step"
    """The awaited agent must come to its next step boundary."""
    TURN = "turn"
    """The end of its turn."""


class WaitedBy(StrEnum):
    """The part of an agent that waits."""

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
    """One agent waits for another one."""

    waiter: str
    """The uuid of the agent that waits."""
    awaited: str
    """The uuid of the awaited agent."""
    by: WaitedBy
    until: Until
    wait: WaitKey
    """The wait of this edge; a wait for several agents has an edge to each."""


Circle = tuple[WaitEdge, ...]
"""Edges, each of which begins where the one before it ends; the last one ends where the first one begins."""


def closed_by(edges: Iterable[WaitEdge], out: Callable[[str], Iterable[WaitEdge]]) -> Circle | None:
    """Return the shortest circle that begins with one of these edges; None if there is none.

    Args:
        edges: edges of one agent.
        out: gives all edges of an agent, by its uuid, in a fixed order.
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


def still_agents(edges: Iterable[WaitEdge], out: Callable[[str], Iterable[WaitEdge]]) -> set[str]:
    """The agents that these edges lead to and that wait for nobody; ``out`` is as for `closed_by`."""
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
    """Return whether the wait of this edge keeps its agent from the point that the previous edge waits for."""
    return before.until is Until.TURN or edge.by is WaitedBy.CODE


def in_words(circle: Circle, name: Callable[[str], str]) -> str:
    """Return a circle in words for people, as ``a waits for b waits for a``.

    ``name`` gives the shown name of an agent.
    """
    return " waits for ".join(map(name, (*(edge.waiter for edge in circle), circle[0].waiter)))
