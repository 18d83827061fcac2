"""Records which agents of a system wait for which others, and refuses waits that would deadlock.

    with registry.noted(OpenWait("a", AwaitedAgent("b", future), registry, ...)):   # raises WouldDeadlock
        future.get()

The actor that closes a circle is refused: it gets `WouldDeadlock`, and the others go on waiting. A wait is noted before
it is looked at, so of two that close a circle at once one at least finds it; and only one is refused, since it is gone
before the other is judged.

A wait with a time-out counts like any other, since two agents that wait for each other would get nothing but time-outs.
Only a check with a time-out of 0, which does not wait, is never refused.

The awaited event, such as mail, may have happened without being noticed yet. So a circle counts only if each of its
waits confirms from the rows that it still waits.
"""

import contextvars
import itertools
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from ikigai_actors.actors.wait_graph import (
    Circle,
    Until,
    WaitedBy,
    WaitEdge,
    WaitKey,
    deadlock_of,
    in_words,
    still_agents,
)
from ikigai_actors.errors import WouldDeadlock

_PARKED = "parked"
"""The name in place of the host in the keys of waits of parked agents."""


class WaitTarget(Protocol):
    """The agents that an open wait still waits for. Any thread may call the methods."""

    def awaited(self) -> Collection[str]:
        """Return the uuids of the awaited agents, in a fixed order. Does not read the store."""

    def confirm(self, uuid: str) -> bool:
        """Return whether the wait still waits for this agent, according to the rows.

        May read the store, and raise its errors.
        """


@dataclass(frozen=True, slots=True)
class ActingCode:
    """The code of an agent that is running: the function of its provider, or a tool."""

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
    """An open wait of one agent for others."""

    waiter: str
    """The uuid of the agent that waits."""
    awaits: WaitTarget
    by: WaitedBy
    until: Until
    is_over: Callable[[], bool]
    """Returns whether this wait has ended."""
    refuse: Callable[[WouldDeadlock], object]
    """Ends the wait by an error, from any thread."""
    spare: int = 0
    """The number of its agents without which the wait ends all the same."""
    key: WaitKey = field(default=WaitKey(0, 0, ""), init=False)
    """The key of the wait, set by the registry."""
    has_read_parked: bool = field(default=False, init=False)
    """Whether the waits of parked agents to which it leads were looked at."""

    def edges(self) -> Iterator[WaitEdge]:
        """Iterate over the present edges of the wait, one for each awaited agent."""
        if not self.is_over():
            for uuid in self.awaits.awaited():
                yield WaitEdge(self.waiter, uuid, self.by, self.until, self.key, self.spare)


class WaitRegistry:
    """The open waits of one system. Any thread may call any method."""

    def __init__(self, name: Callable[[str], str] = str, host: str = "", now_ms: Callable[[], int] = lambda: 0) -> None:
        """Make a registry without waits.

        Args:
            name: returns the name of an agent for people, by its uuid.
            host: the id of the host.
            now_ms: returns the time when a wait begins, in milliseconds since 1970.
        """
        self._name, self._host, self._now_ms = name, host, now_ms
        self.on_change: Callable[[], object] = lambda: None
        """Called when there is one wait more, or one less. Never waits."""
        self.parked_waits: Callable[[Collection[str]], Iterable[tuple[str, str, int]]] = lambda uuids: ()
        """The waits of those among agents that are parked, each with an agent that it waits for, and with the number of
        agents that it can spare. May read the store.
        """
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._waits: dict[WaitKey, OpenWait] = {}
        self._of: dict[str, dict[OpenWait, None]] = {}

    def add(self, wait: OpenWait) -> None:
        """Register a wait, and give it a key."""
        with self._lock:
            wait.key = WaitKey(self._now_ms(), next(self._numbers), self._host)
            self._waits[wait.key] = wait
            self._of.setdefault(wait.waiter, {})[wait] = None
        self.on_change()

    def remove(self, wait: OpenWait) -> None:
        """Remove a wait. Nothing happens if it is not registered."""
        with self._lock:
            self._remove(wait)
        self.on_change()

    @contextmanager
    def noted(self, wait: OpenWait) -> Iterator[None]:
        """Register a wait for the length of a block.

        Raises `WouldDeadlock`, in place of the block, if it closes a circle.
        """
        self.add(wait)
        try:
            self.check(wait)
            yield
        finally:
            self.remove(wait)

    def check(self, wait: OpenWait, among: Collection[str] | None = None) -> None:
        """Raise `WouldDeadlock`, and remove the wait, if it closes a circle of waits.

        Args:
            wait: a registered wait.
            among: uuids of awaited agents: look only for circles through these; None for all.
        """
        of_parked, ended = self._waits_of_parked(wait), set[WaitEdge]()
        while True:
            with self._lock:
                edges, out = self._graph(wait, of_parked, ended)
                deadlock = deadlock_of([edge for edge in edges if among is None or edge.awaited in among], out)
                noted = [edge for edge in (deadlock.edges if deadlock else ()) if edge.wait.host != _PARKED]
                waits = [self._waits.get(edge.wait) for edge in noted]
            if deadlock is None:
                return
            over = {
                edge
                for noticed, edge in zip(waits, noted, strict=True)
                if noticed is None or not noticed.awaits.confirm(edge.awaited)
            }
            if not over:
                break
            ended |= over
        with self._lock:
            if not all(
                noticed is not None and edge in noticed.edges() for noticed, edge in zip(waits, noted, strict=True)
            ):
                return
            if not all(edge.wait in self._waits for edge in noted):  # another one was refused for it
                return
            self._remove(wait)
        raise self.deadlock(deadlock.circle)

    def _graph(
        self, wait: OpenWait, of_parked: Mapping[str, Sequence[WaitEdge]], ended: Collection[WaitEdge]
    ) -> tuple[list[WaitEdge], Callable[[str], Iterable[WaitEdge]]]:
        """Return the edges of a wait, and a function that returns the edges of each agent; ended edges are left out."""

        def out(uuid: str) -> Iterable[WaitEdge]:
            edges = itertools.chain(self._out(uuid), of_parked.get(uuid, ()))
            return (edge for edge in edges if edge not in ended)

        return [edge for edge in wait.edges() if edge not in ended], out

    def _waits_of_parked(self, wait: OpenWait) -> Mapping[str, Sequence[WaitEdge]]:
        """Return the edges of parked agents that can be reached from a wait, by agent.

        The registry does not have the waits of parked agents. Their rows are read when the wait is checked first.
        """
        of_parked: dict[str, list[WaitEdge]] = {}
        while not wait.has_read_parked:
            with self._lock:
                still = still_agents(*self._graph(wait, of_parked, ())) - of_parked.keys()
            keys = {uuid: WaitKey(0, len(of_parked) + place, _PARKED) for place, uuid in enumerate(sorted(still))}
            of_parked.update((uuid, []) for uuid in still)
            for waiter, awaited, spare in self.parked_waits(still) if still else ():
                edge = WaitEdge(waiter, awaited, WaitedBy.CALL, Until.TURN, keys[waiter], spare)
                of_parked[waiter].append(edge)
            wait.has_read_parked = not still
        return of_parked

    def refuse(self, circle: Circle) -> None:
        """End the wait of the first edge of a circle over several hosts with an error, if it is still open.

        May raise `StoreError`.
        """
        with self._lock:
            wait = self._waits.get(circle[0].wait)
        if wait is not None and circle[0] in wait.edges() and wait.awaits.confirm(circle[0].awaited):
            self.remove(wait)
            wait.refuse(self.deadlock(circle))

    def waits(self) -> list[OpenWait]:
        """Return all open waits, in the order in which they began."""
        with self._lock:
            return list(self._waits.values())

    def deadlock(self, circle: Circle) -> WouldDeadlock:
        """Return the error for the actor whose wait closes this circle."""
        return WouldDeadlock(
            f"{in_words(circle, self._name)}: each would wait forever. Let one of them end its turn first, or send "
            "mail in place of a prompt.",
            tuple(edge.waiter for edge in circle),
        )

    def awaited_by(self, uuid: str) -> tuple[str, ...]:
        """Return the uuids of the agents that an agent waits for, in the order of its waits."""
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
    """The target of a wait for one agent of this process. Memory alone shows whether it goes on, so no row is read."""

    uuid: str
    is_there: Callable[[], bool]

    def awaited(self) -> Collection[str]:
        return () if self.is_there() else (self.uuid,)

    def confirm(self, uuid: str) -> bool:
        return not self.is_there()
