"""Hosts on PostgreSQL: what it costs to take a database over, and whether hosts that commit at once hinder one another.

Take-over: `take_database`, after the host before it has died and its lease has run out: seconds, and bytes of the
server's log. Beside it one UPDATE of the row of each living agent, which an owner that stands in the agents' rows would
need.

Boot: `ActorSystem.open` of a host that joins and finds the database without another, beside a read of the rows of the
agents.

Commits: hosts that each write units of five agents through a journal of their own, in one process, with a COMMIT that
takes 20 ms, as with a synchronous standby (``commit_delay``). Beside them as many plain connections that insert the
same rows. Two hosts should commit twice as often as one; they do not where a lock of the server is held through COMMIT,
as a NOTIFY within the transaction holds one.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from statistics import median
from typing import NamedTuple
from urllib.parse import quote

from benchmarks import population
from benchmarks.journal import Writers
from benchmarks.measure import timed
from benchmarks.places import Database, Place, prepared
from benchmarks.results import Row
from ikigai_actors import ActorSystem, OfflineProvider
from ikigai_actors.actors.clock import SystemClock
from ikigai_actors.records.agents.identity import new_agent_uuid
from ikigai_actors.records.log.append import FIRST_EPOCH, Append, FencingToken
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.store.base import Store
from ikigai_actors.store.hosts.host import new_host, take_database
from ikigai_actors.store.journal import Journal

AGENTS = (1_000, 10_000, 100_000)
"""Agents of the database that is taken over."""

HOSTS = (1, 2, 4)
"""Hosts that commit at once."""

EACH = 5
"""Agents of a host that write."""

SLOW = quote(" -ccommit_delay=20000 -ccommit_siblings=0")
"""Connection options: COMMIT takes 20 ms."""


class TakeOver(NamedTuple):
    """What it cost."""

    seconds: float
    written: int


def run(places: list[Place], quick: bool) -> Iterator[Row]:
    """Take-over by the number of agents, then commits by the number of hosts."""
    for place in places:
        if place.name != "PostgreSQL":  # a file has one host, and its lock is free at once
            continue
        for count in AGENTS[:2] if quick else AGENTS:
            yield from _take_over(place, count)
        for hosts in HOSTS:
            ours, raw = _commits(place, hosts, 20 if quick else 100)
            yield Row("commits", "ikigai", place.name, hosts, "hosts", ours, "/s", "plain connections", raw)


def _take_over(place: Place, count: int) -> Iterator[Row]:
    database = place.fresh()
    try:
        population.tree(database, count, 0)
        ours = [_taken(database) for _ in range(3)]
        raw = [_rewritten(database) for _ in range(3)]
        boots = [_booted(database) for _ in range(3)]
        reads = [_read(database) for _ in range(3)]
    finally:
        database.drop()
    head, beside = ("ikigai", place.name, count, "agents"), "a write for each agent"
    seconds, written = (tuple(median(values) for values in zip(*each, strict=True)) for each in (ours, raw))
    yield Row("boot of a host", *head, median(boots), "s", "a read of the rows", median(reads))
    yield Row("take-over", *head, seconds[0], "s", beside, written[0])
    yield Row("take-over: written", *head, seconds[1], "B", beside, written[1])


def _taken(database: Database) -> TakeOver:
    store = prepared(database.url)
    try:
        with database.connect() as connection:
            connection.execute("UPDATE hosts SET ended_at = NULL, lease_until = 1")  # all of them died
        before = database.written() or 0
        seconds, host = timed(lambda: take_database(new_host(store, new_agent_uuid(os.urandom), SystemClock())))
        written = (database.written() or 0) - before
        host.release()
    finally:
        store.close()
    return TakeOver(seconds, written)


def _booted(database: Database) -> float:
    """Seconds until a host that joins runs all agents."""
    seconds, system = timed(lambda: ActorSystem.open(database.url, OfflineProvider(), join=True, name="first"))
    system.close()
    return seconds


def _read(database: Database) -> float:
    with database.connect() as connection:
        return timed(lambda: connection.execute("SELECT * FROM agents WHERE status <> 'dead'").fetchall())[0]


def _rewritten(database: Database) -> TakeOver:
    before = database.written() or 0
    with database.connect() as connection:
        seconds = timed(lambda: connection.execute("UPDATE agents SET epoch = epoch WHERE status <> 'dead'"))[0]
    return TakeOver(seconds, (database.written() or 0) - before)


def _commits(place: Place, hosts: int, each: int) -> tuple[float, float]:
    """Commits of all in a second: of hosts, and of plain connections."""
    database = place.fresh()
    try:
        root = population.alone(database, 0)
        with ExitStack() as stack, ThreadPoolExecutor(hosts) as threads:
            stores = [prepared(database.url + SLOW) for _ in range(hosts)]
            for store in stores:
                stack.callback(store.close)
            agents = [population.siblings(stores[0], root, EACH) for _ in range(hosts)]
            journals = [
                _journal(database, store, number, mine)
                for number, (store, mine) in enumerate(zip(stores, agents, strict=True))
            ]
            writers = [
                Writers(
                    journal,
                    {
                        uuid: [
                            Append(LogUnit(uuid, (said,)), FencingToken(_name(number), FIRST_EPOCH))
                            for said in population.conversation(uuid, 0, each)
                        ]
                        for uuid in mine
                    },
                )
                for number, (journal, mine) in enumerate(zip(journals, agents, strict=True))
            ]
            taken = timed(lambda: list(threads.map(lambda writer: writer.run(), writers)))[0]
            ours = sum(journal.statistics().batches for journal in journals) / taken
            for journal in journals:
                journal.close()
            if failed := [writer.failed for writer in writers if writer.failed]:
                raise AssertionError(f"A host could not write: {failed[0][:1]}")
            raw = [
                [
                    [*together]
                    for together in zip(
                        *(population.hashed(population.conversation(uuid, each, each)) for uuid in mine), strict=True
                    )
                ]
                for mine in agents
            ]

            def insert(batches: list[list[tuple[object, ...]]]) -> None:
                with database.connect() as connection:
                    connection.execute("SET commit_delay = 20000; SET commit_siblings = 0")
                    for batch in batches:
                        database.insert(connection, batch)

            plain = timed(lambda: list(threads.map(insert, raw)))[0]
            return ours, hosts * each / plain
    finally:
        database.drop()


def _name(number: int) -> str:
    return f"host {number}"


def _journal(database: Database, store: Store, number: int, agents: list[str]) -> Journal:
    """The journal of one more host, which has these agents."""
    name = _name(number)
    store.write(lambda tx: tx.run("register_host", id=name, hostname="here", pid=1, lease=600_000))
    with database.connect() as connection:
        connection.execute("UPDATE shards SET host = %s WHERE id = %s", (name, number))
        connection.execute("UPDATE agents SET shard = %s WHERE uuid = ANY(%s)", (number, agents))
    journal = Journal(store, name, SystemClock())
    journal.start()
    return journal
