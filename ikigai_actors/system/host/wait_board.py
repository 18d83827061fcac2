"""The board of a host: its rows say which agents wait for which others for long, and other hosts read them.

Agents wait for other agents, or for the service or the program that is their model. Other processes read from the rows
what the agents are doing. Hosts that share the agents find circles of waits that go over several hosts. (Those within
one host, `ikigai_actors.actors.wait_registry` finds at once.)

A separate thread begins with the first wait, and sleeps while there is none. A wait that exists at two looks, some
seconds apart, is written; so most waits cost nothing. A circle counts when, after this host has read it, the host of
each of its waits has found that wait again: then all of them existed at one moment. The host with the latest wait ends
that wait.
"""

import logging
from collections.abc import Callable

from ikigai_actors.actors.service import Service
from ikigai_actors.actors.threads import Threads
from ikigai_actors.actors.wait_graph import WaitEdge, WaitKey
from ikigai_actors.actors.wait_registry import OpenWait, WaitRegistry
from ikigai_actors.agent.instruments import Instrument
from ikigai_actors.agent.statistics import Tally
from ikigai_actors.agent.turn.state import Phase
from ikigai_actors.records.hosts.host_waits import HostWaits, circles_of, decode_waits, encode_waits, lasting, publish
from ikigai_actors.store.base import Store
from ikigai_actors.store.hosts.rows import open_hosts

logger = logging.getLogger(__name__)

LOOK_EVERY = 2.0
"""Seconds between two looks."""

MOST_EDGES = 1_000
"""The most edges that a host writes, and the most waits for services."""

MOST_OF_ONE = 100
"""The most edges of one wait that are written. Agents of other hosts come first, since only they may be in a circle
over several hosts."""


class WaitBoard(Service, Instrument):
    """Writes the waits of one host's agents as rows, and ends circles of waits that go over several hosts."""

    _is_ours = True

    def __init__(
        self,
        registry: WaitRegistry,
        store: Store,
        host: str,
        shared: bool,
        runs: Callable[[str], bool],
        state: Callable[[str], str],
        threads: Threads,
    ) -> None:
        """Make the board. Its thread begins with the first wait.

        Args:
            registry: the waits of this host's agents.
            store: where the rows of hosts are.
            host: the id of this one.
            shared: whether other hosts may run agents of this database.
            runs: whether this host runs the agent with a uuid.
            state: the state of an agent that waits, as people see it.
        """
        super().__init__("ikigai-wait-board", threads)
        self._registry, self._store, self._host, self._shared = registry, store, host, shared
        self._runs, self._state = runs, state
        self._due = False
        self._seen = frozenset[WaitKey]()
        self._at_services = dict[str, None]()  # who waits for a service or a program, by uuid
        self._seen_at_services = frozenset[str]()
        self._looks = 0
        self._written = HostWaits()
        self._read: dict[str, HostWaits] = {}
        registry.on_change = self._note

    def publish_waits(self) -> None:
        """Write the waits that existed at the previous look too, and end circles over hosts. Raises `StoreError`."""
        waits = self._registry.waits()
        lasting = self._lasting([wait for wait in waits if wait.key in self._seen])
        keys, at_services = frozenset(wait.key for wait in waits), frozenset(self._at_services.copy())
        young = (keys - self._seen) | (at_services - self._seen_at_services)
        self._seen, self._seen_at_services = keys, at_services
        self._due = bool(young or (lasting.edges and self._shared))
        if lasting != self._written:
            publish(self._store, self._host, encode_waits(lasting))
            self._written = lasting
        if self._shared and lasting.edges:
            self._end_circles()
        else:
            self._read = {}

    def _lasting(self, waits: list[OpenWait]) -> HostWaits:
        edges, states = list[WaitEdge](), dict[str, str]()
        for wait in waits:
            of_wait = sorted(wait.edges(), key=lambda edge: self._runs(edge.awaited))[:MOST_OF_ONE]
            edges += (of_wait := of_wait[: MOST_EDGES - len(edges)])
            if of_wait and (state := self._state(wait.waiter)):
                states[wait.waiter] = state
        for uuid in list(self._at_services)[:MOST_EDGES]:
            if uuid in self._seen_at_services and (state := self._state(uuid)):
                states[uuid] = state
        if self._shared and edges:
            self._looks += 1
        return HostWaits(self._looks if edges else 0, frozenset(edges), states)

    def _end_circles(self) -> None:
        rows = self._store.read(open_hosts)
        before, self._read = self._read, {row.id: decode_waits(row.waits) for row in rows}
        for circle in circles_of(self._host, lasting(before, self._read)):
            self._registry.refuse(circle)

    def state_changes(self, agent: Tally, state: str, turn: int) -> None:
        waits = state in (Phase.WAITING_FOR_SERVICE, Phase.WAITING_FOR_PROGRAM)
        if waits is (agent.uuid in self._at_services):
            return
        if waits:
            self._at_services[agent.uuid] = None
        else:
            del self._at_services[agent.uuid]
        self._note()

    def _note(self) -> None:
        self.start()
        with self._changed:
            self._due = True
            self._changed.notify()

    def run(self) -> None:
        """Publish the waits some time after each change, until the thread is stopped."""
        while self.awaits(lambda: self._due) and self.pause(LOOK_EVERY):
            if not self.attempt(self.publish_waits):
                self._due = True  # it is looked at again soon
