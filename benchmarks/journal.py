"""Durable appends per second through the journal, beside the database's own bulk insert into the same table.

Each agent has one unit of one message in flight, as in the runtime: its callback submits the next. The bulk insert
writes the same rows, with the same keys, in transactions of as many rows as there are agents. Units and rows are made
beforehand.
"""

import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from itertools import islice
from statistics import median
from typing import NamedTuple

from benchmarks import population
from benchmarks.measure import timed
from benchmarks.places import Database, Place, prepared, stored
from benchmarks.table import Table, number, percent, rate
from ikigai_actors.clock import SystemClock
from ikigai_actors.host import Host, take_database
from ikigai_actors.identity import new_agent_uuid
from ikigai_actors.journal import Committed, Journal, Verdict
from ikigai_actors.store.base import Row, Store
from ikigai_actors.units import FIRST_EPOCH, Append, Fence, LogUnit, Unit

APPENDS = {1: 2_000, 10: 10_000, 1_000: 100_000}
"""Appends that are measured, by the number of agents that write."""

BULK = 1_000
"""Rows of one transaction of the bulk insert that the target is about."""


class Rates(NamedTuple):
    """Rows per second of one run."""

    ours: float
    batch: float
    raw: float
    """In transactions of a row for each agent."""
    bulk: float
    """In transactions of `BULK` rows."""


def run(places: list[Place], quick: bool) -> Iterator[Table]:
    """Measure every place with every number of agents."""
    table = Table(
        "Durable appends per second",
        ("database", "agents", "journal", "units a transaction", "bulk insert, as many rows a transaction",
         "journal / that", f"bulk insert, {BULK:,} rows a transaction", "journal / that one"),
        notes=[
            "Medians. Bulk insert: SQLite `executemany`, PostgreSQL binary `COPY`, by the driver alone.",
            "Both write the same rows into the same table, keys and all, in the same run.",
        ],
    )  # fmt: skip
    for place in places:
        for agents, appends in APPENDS.items():
            runs = [_measure(place, agents, appends // (10 if quick else 1)) for _ in range(1 if quick else 3)]
            ours, batch, raw, bulk = (median(values) for values in zip(*runs, strict=True))
            table.add(
                place.name, number(agents), rate(ours), number(round(batch)), rate(raw), percent(ours / raw),
                rate(bulk), percent(ours / bulk),
            )  # fmt: skip
    yield table


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
        self.failed: list[Verdict] = []

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

    def _done(self, uuid: str, verdict: Verdict) -> None:
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
    host = take_database(store, new_agent_uuid(os.urandom), SystemClock())
    stack.callback(host.release)
    uuids = population.siblings(store, root, agents, host.id)
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
        fence = Fence(host.id, FIRST_EPOCH)
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
        logs = [population.conversation(uuid, 0, -(-count // agents)) for uuid in uuids]
        rows = iter([message.row() for together in zip(*logs, strict=True) for message in together][:count])
        batches: list[list[Row]] = []
        while batch := list(islice(rows, at_once)):
            batches.append(batch)
        connection = database.connect()
        stack.callback(connection.close)

        def insert() -> None:
            for batch in batches:
                database.insert(connection, batch)

        return count / timed(insert)[0]
