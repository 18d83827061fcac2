"""Durable appends: how many in a second through the journal, by agents that write at once; one, by length of history.

Each agent has one unit of one message in flight, as in the runtime: its callback submits the next. Beside it stands the
database's own bulk insert (SQLite `executemany`, PostgreSQL binary `COPY`, by the driver alone) of the same rows with
the same keys, in transactions of as many rows as there are agents; medians, units and rows made beforehand.

One append: `ref.mark()` of a running system, a message that is committed before the next; peers add a message to a
conversation of that length, each durable before the next. DBOS: a step of a new workflow, whatever came before.
"""

import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from itertools import islice
from statistics import median
from typing import NamedTuple

from benchmarks import population
from benchmarks.measure import each_time, timed
from benchmarks.peers.sessions import PEERS, Peer, Unavailable
from benchmarks.places import Database, Place, prepared, stored
from benchmarks.results import Row
from ikigai_actors import ActorSystem, OfflineProvider
from ikigai_actors.actors.clock import SystemClock
from ikigai_actors.records.agents.identity import new_agent_uuid
from ikigai_actors.records.log.append import FIRST_EPOCH, Append, FencingToken
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.store.base import Row as Values
from ikigai_actors.store.base import Store
from ikigai_actors.store.hosts.host import Host, new_host, take_database
from ikigai_actors.store.journal import CommitResult, Committed, Journal
from ikigai_actors.store.unit import Unit

APPENDS = {1: 2_000, 10: 10_000, 100: 50_000, 1_000: 100_000}
"""Appends that are measured, by the number of agents that write."""

BULK = 1_000
"""Rows of one transaction of the larger bulk insert."""

HISTORIES = (1_000, 10_000, 100_000)
"""Messages of the history that one more is appended to."""


class Rates(NamedTuple):
    """Rows per second of one run."""

    ours: float
    batch: float
    """Units of one of our transactions."""
    raw: float
    """In transactions of a row for each agent."""
    bulk: float
    """In transactions of `BULK` rows."""


def run(places: list[Place], quick: bool) -> Iterator[Row]:
    """Measure every place with every number of agents, then with every history; then the peers."""
    for place in places:
        for agents, appends in APPENDS.items():
            runs = [_measure(place, agents, appends // (10 if quick else 1)) for _ in range(1 if quick else 3)]
            ours, batch, raw, bulk = (median(values) for values in zip(*runs, strict=True))
            head = ("ikigai", place.name, agents, "agents")
            yield Row("durable appends", *head, ours, "/s", "bulk insert", raw)
            yield Row("durable appends, beside large transactions", *head, ours, "/s", f"bulk insert by {BULK:,}", bulk)
            yield Row("durable appends: units a transaction", *head, round(batch, 1), "units")
    histories = HISTORIES[:1] if quick else HISTORIES
    for place in places:
        for size in histories:
            yield Row("one append", "ikigai", place.name, size, "messages before", _one(place, size), "s")
    for peer in PEERS:
        for size in histories:
            yield _by_peer(places, peer, size)


def _one(place: Place, size: int) -> float:
    database = place.fresh()
    try:
        population.alone(database, size)
        with ActorSystem.open(database.url, provider=OfflineProvider()) as system:
            system.root.mark()
            return median(each_time(system.root.mark, 200))
    finally:
        database.drop()


def _by_peer(places: list[Place], peer: Peer, size: int) -> Row:
    head = ("one append", peer.who, peer.backend, size, "messages before")
    try:
        with peer.session(places, size) as session:
            session.append(1)
            taken: list[float] = []
            while len(taken) < 2 or (sum(taken) < 2 and len(taken) < 10):
                taken.append(timed(lambda: session.append(5))[0] / 5)
                if taken[-1] > 0.4:
                    break
            return Row(*head, median(taken), "s")
    except Unavailable as why:
        return Row(*head, None, "s", why=str(why))
    except NotImplementedError:  # see `Session`
        return Row(*head, None, "s", why="not offered")


def _measure(place: Place, agents: int, appends: int) -> Rates:
    ours, batch = _through_journal(place, agents, appends // agents)
    raw = _by_bulk_insert(place, agents, appends, agents)
    return Rates(ours, batch, raw, raw if agents == BULK else _by_bulk_insert(place, agents, 10 * BULK, BULK))


class Writers:
    """Agents that write, each its next unit when the one before is committed."""

    def __init__(self, journal: Journal, units: Mapping[str, Iterable[Unit]]) -> None:
        self._journal = journal
        self._units = {uuid: iter(each) for uuid, each in units.items()}
        self._busy = len(units)
        self._over = threading.Event()
        self.failed: list[CommitResult] = []

    def run(self) -> None:
        """Write all; return when the last is committed."""
        for uuid in self._units:
            self._next(uuid)
        self._over.wait()

    def _next(self, uuid: str) -> None:
        unit = next(self._units[uuid], None)
        if unit is not None and not self.failed:
            self._journal.submit(unit, lambda verdict: self._done(uuid, verdict))
            return
        self._busy -= 1  # on the journal's thread alone
        if not self._busy:
            self._over.set()

    def _done(self, uuid: str, verdict: CommitResult) -> None:
        if not isinstance(verdict, Committed):
            self.failed.append(verdict)
        self._next(uuid)


def writable(stack: ExitStack, place: Place, agents: int) -> tuple[Database, Store, Host, list[str]]:
    """A database of its own with agents that belong to a host."""
    database = place.fresh()
    stack.callback(database.drop)
    root = population.alone(database, 0)
    store = prepared(database.url)
    stack.callback(store.close)
    host = take_database(new_host(store, new_agent_uuid(os.urandom), SystemClock()))
    stack.callback(host.release)
    uuids = population.siblings(store, root, agents)
    database.settle()
    return database, store, host, uuids


def _through_journal(place: Place, agents: int, each: int) -> tuple[float, float]:
    """Appends per second, and units per transaction."""
    with ExitStack() as stack:
        database, store, host, uuids = writable(stack, place, agents)
        before = stored(database).rows
        host.keep(lambda error: None)
        journal = Journal(store, host.id, SystemClock())
        journal.start()
        fence = FencingToken(host.id, FIRST_EPOCH)
        writers = Writers(
            journal,
            {
                uuid: [Append(LogUnit(uuid, (said,)), fence) for said in population.conversation(uuid, 0, each)]
                for uuid in uuids
            },
        )
        taken = timed(writers.run)[0]
        journal.close()
        written = stored(database).rows - before
        if writers.failed or written != agents * each:
            raise AssertionError(f"Expected {agents * each} rows, got {written}; {writers.failed[:1]}")
        return written / taken, written / journal.statistics().batches


def _by_bulk_insert(place: Place, agents: int, count: int, at_once: int) -> float:
    """Rows per second."""
    with ExitStack() as stack:
        database, _, _, uuids = writable(stack, place, agents)
        logs = [population.hashed(population.conversation(uuid, 0, -(-count // agents))) for uuid in uuids]
        rows = iter([row for together in zip(*logs, strict=True) for row in together][:count])
        batches: list[list[Values]] = []
        while batch := list(islice(rows, at_once)):
            batches.append(batch)
        connection = database.connect()
        stack.callback(connection.close)

        def insert() -> None:
            for batch in batches:
                database.insert(connection, batch)

        return count / timed(insert)[0]
