"""The waits of a system's agents for one another: the place that knows who waits for which others.

    with registry.noted(OpenWait("a", AwaitedAgent("b", future), registry, ...)):   # raises WouldDeadlock
        future.get()

The actor that closes a circle is refused: it gets `WouldDeadlock`, and the others go on waiting for what then comes. A
wait is noted before it is looked at, so of two that close a circle at once one at least finds it; and only one is
refused, since it is gone before the other is judged.

A wait with a time-out counts like any other, since two that wait for each other get nothing but time-outs. Only who
looks without waiting, by a time-out of 0, is never refused.

What a wait waits for may be there already and not yet noticed, such as mail. So a circle counts only when each of its
waits confirms that it still waits, from the rows.
"""

import contextvars
import itertools
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from ikigai_actors.actors.wait_graph import (
    Circle,
    Until,
    WaitedBy,
    WaitEdge,
    WaitKey,
    closed_by,
    in_words,
    still_agents,
)
from ikigai_actors.errors import WouldDeadlock

_OF_PARKED = WaitKey(0, 0, "parked")


class WaitTarget(Protocol):
    """The targets of a wait. Any thread may ask."""

    def awaited(self) -> Collection[str]:
        """Return the uuids of the agents still waited for, in a fixed order. Does not read the store."""

    def confirm(self, uuid: str) -> bool:
        """Return whether this agent is still waited for, according to the rows.

        May read the store, and raise its errors.
        """


@dataclass(frozen=True, slots=True)
class ActingCode:
    """The code of an agent that runs: the function of its provider, or of a tool."""

    agent: str
    """The uuid of the agent."""
    registry: "WaitRegistry"
    """The registry of its system."""
    is_over: Callable[[], bool]
    """Returns whether nobody needs the outcome of this code any more: its waits then keep nobody waiting."""


acting_code: contextvars.ContextVar[ActingCode] = contextvars.ContextVar("acting_code")
"""The code that runs in this context."""


@dataclass(eq=False, slots=True)
class OpenWait:
    """A wait of one agent for others."""

    waiter: str
    """The uuid of the agent that waits."""
    awaits: WaitTarget
    by: WaitedBy
    until: Until
    is_over: Callable[[], bool]
    """Returns whether this wait has ended."""
    refuse: Callable[[WouldDeadlock], object]
    """Ends the wait by an error, from any thread."""
    needs_all: bool = True
    """Whether the wait needs all of its agents. One that some of them can end closes no circle."""
    key: WaitKey = field(default=WaitKey(0, 0, ""), init=False)
    """The key of the wait, set by the registry."""
    has_read_parked: bool = field(default=False, init=False)
    """Whether the waits of parked agents to which it leads were looked at."""

    def edges(self) -> Iterator[WaitEdge]:
        """Return the present edges of the wait, one for each agent without which it does not end."""
        if self.needs_all and not self.is_over():
            for uuid in self.awaits.awaited():
                yield WaitEdge(self.waiter, uuid, self.by, self.until, self.key)


class WaitRegistry:
    """The open waits of one system. Any thread may call any method."""

    def __init__(self, name: Callable[[str], str] = str, host: str = "", now_ms: Callable[[], int] = lambda: 0) -> None:
        """Begin without waits.

        Args:
            name: gives what people call an agent, by its uuid.
            host: the id of the host.
            now_ms: gives the time when a wait begins, in milliseconds since 1970.
        """
        self._name, self._host, self._now_ms = name, host, now_ms
        self.on_change: Callable[[], object] = lambda: None
        """Called when there is one wait more, or one less. Never waits."""
        self.parked_waits: Callable[[Collection[str]], Iterable[tuple[str, str]]] = lambda uuids: ()
        """The waits of those among agents that are parked, each with an agent that it waits for. May read the store."""
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._waits: dict[WaitKey, OpenWait] = {}
        self._of: dict[str, dict[OpenWait, None]] = {}

    def add(self, wait: OpenWait) -> None:
        """Note a wait."""
        with self._lock:
            wait.key = WaitKey(self._now_ms(), next(self._numbers), self._host)
            self._waits[wait.key] = wait
            self._of.setdefault(wait.waiter, {})[wait] = None
        self.on_change()

    def remove(self, wait: OpenWait) -> None:
        """Forget a wait; nothing happens if it is not noted."""
        with self._lock:
            self._remove(wait)
        self.on_change()

    @contextmanager
    def noted(self, wait: OpenWait) -> Iterator[None]:
        """Note a wait for the length of a block. Raises `WouldDeadlock` in its place when it closes a circle."""
        self.add(wait)
        try:
            self.check(wait)
            yield
        finally:
            self.remove(wait)

    def check(self, wait: OpenWait, among: Collection[str] | None = None) -> None:
        """Raise `WouldDeadlock`, and forget the wait, if the wait closes a circle.

        Args:
            wait: one that is noted.
            among: uuids of awaited agents: look only for circles through these; None for all.
        """
        circle = self._circle(wait, among)
        noted = [edge for edge in circle or () if edge.wait != _OF_PARKED]
        with self._lock:
            waits = [self._waits.get(edge.wait) for edge in noted]
        if circle is None or not all(
            noticed is not None and noticed.awaits.confirm(edge.awaited)
            for noticed, edge in zip(waits, noted, strict=True)
        ):
            return
        with self._lock:
            if not all(
                noticed is not None and edge in noticed.edges() for noticed, edge in zip(waits, noted, strict=True)
            ):
                return
            if not all(edge.wait in self._waits for edge in noted):  # another one was refused for it
                return
            self._remove(wait)
        raise self.deadlock(circle)

    def _circle(self, wait: OpenWait, among: Collection[str] | None) -> Circle | None:
        """The circle that a wait closes; None where it closes none.

        Agents that are parked have no wait here. Their rows are read when a wait is checked first: theirs is earlier.
        """
        of_parked: dict[str, list[WaitEdge]] = {}

        def out(uuid: str) -> Iterable[WaitEdge]:
            return itertools.chain(self._out(uuid), of_parked.get(uuid, ()))

        while True:
            with self._lock:
                edges = [edge for edge in wait.edges() if among is None or edge.awaited in among]
                circle = closed_by(edges, out)
                still = set() if wait.has_read_parked else still_agents(edges, out) - of_parked.keys()
            if circle is not None or not still:
                wait.has_read_parked = True
                return circle
            of_parked.update((uuid, []) for uuid in still)
            for waiter, awaited in self.parked_waits(still):
                of_parked[waiter].append(WaitEdge(waiter, awaited, WaitedBy.CALL, Until.TURN, _OF_PARKED))

    def refuse(self, circle: Circle) -> None:
        """End the wait of the first edge of a circle over several hosts, unless it is over. May raise `StoreError`."""
        with self._lock:
            wait = self._waits.get(circle[0].wait)
        if wait is not None and circle[0] in wait.edges() and wait.awaits.confirm(circle[0].awaited):
            self.remove(wait)
            wait.refuse(self.deadlock(circle))

    def waits(self) -> list[OpenWait]:
        """All open waits, in the order in which they began."""
        with self._lock:
            return list(self._waits.values())

    def deadlock(self, circle: Circle) -> WouldDeadlock:
        """The error for the actor that closes this circle."""
        return WouldDeadlock(
            f"{in_words(circle, self._name)}: each would wait forever. Let one of them end its turn first, or send "
            "mail in place of a prompt.",
            tuple(edge.waiter for edge in circle),
        )

    def awaited_by(self, uuid: str) -> tuple[str, ...]:
        """The agents for which this one waits, by uuid, in the order of its waits."""
        if uuid not in self._of:  # nearly always
            return ()
        with self._lock:
            waits = [wait for wait in self._of.get(uuid, ()) if not wait.is_over()]
            return tuple(dict.fromkeys(awaited for wait in waits for awaited in wait.awaits.awaited()))

    def _out(self, uuid: str) -> Iterable[WaitEdge]:
        return itertools.chain.from_iterable(wait.edges() for wait in self._of.get(uuid, ()))

    def _remove(self, wait: OpenWait) -> None:
        self._waits.pop(wait.key, None)
        of = self._of.get(wait.waiter, {})
        of.pop(wait, None)
        if not of:
            self._of.pop(wait.waiter, None)


@dataclass(frozen=True, slots=True)
class AwaitedAgent(WaitTarget):
    """A wait for one agent, of which memory knows at once whether it still goes on."""

    uuid: str
    is_there: Callable[[], bool]

    def awaited(self) -> Collection[str]:
        return () if self.is_there() else (self.uuid,)

    def confirm(self, uuid: str) -> bool:
        return not self.is_there()
