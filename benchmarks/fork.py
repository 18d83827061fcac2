"""What a fork costs, by the length of the history that the child inherits. It should be flat.

Ours is the median time of `ref.fork()` of a running system, each after the commit of the one before: warm with the
parent's log in memory, and cold, the first one after each of some starts. Beside it the same rows (the child, and
`fork` in both logs), inserted in one transaction by the driver alone. Written: by the process, checkpoints included
(SQLite, files); in the server's own log (PostgreSQL). Kept: Python memory of each child with its running actor.
Histories are made in bulk.

LangGraph's DeltaChannel: from the second fork of a checkpoint on; the first one alone writes only what is new. Claude's
fork_session does not sync its file to the disk.
"""

import gc
import time
from collections.abc import Iterator
from itertools import count as counting
from statistics import median
from typing import NamedTuple

from benchmarks import population
from benchmarks.measure import each_time, kept_bytes, written_by_process
from benchmarks.peers.sessions import PEERS, Peer, Unavailable
from benchmarks.places import COLUMNS, Database, Place, stored
from benchmarks.results import Row
from ikigai_actors import ActorSystem, OfflineProvider

SIZES = (0, 1_000, 10_000, 100_000, 1_000_000)
QUICK_SIZES = (0, 100, 1_000)
WARM_UP = 10
COLD = 5
"""Starts, each with one fork."""
COUNTED = "inherited messages"


class Fork(NamedTuple):
    """What one fork costs."""

    time: float
    cold: float
    """Time of the first one after a start."""
    raw: float
    """Time of the same rows, by the driver alone."""
    written: float | None
    rows: float
    kept: float


def run(places: list[Place], quick: bool) -> Iterator[Row]:
    """Ours on each place, then the peers."""
    sizes = QUICK_SIZES if quick else SIZES
    for place in places:
        for size in sizes:
            fork = _ours(place, size, 50 if quick else 200)
            yield Row("fork", "ikigai", place.name, size, COUNTED, fork.time, "s", "3 raw INSERTs", fork.raw)
            yield Row("fork: first after a start", "ikigai", place.name, size, COUNTED, fork.cold, "s")
            why = "not known" if fork.written is None else ""
            yield Row("fork: bytes written", "ikigai", place.name, size, COUNTED, fork.written, "B", why=why)
            yield Row("fork: rows", "ikigai", place.name, size, COUNTED, fork.rows, "rows")
            yield Row("fork: memory kept", "ikigai", place.name, size, COUNTED, fork.kept, "B")
    for peer in PEERS:
        for size in sizes:
            yield from _peer(places, peer, size)


def _ours(place: Place, size: int, repetitions: int) -> Fork:
    database = place.fresh()
    try:
        population.alone(database, size)
        cold = [_first(database) for _ in range(COLD)]
        with ActorSystem.open(database.url, provider=OfflineProvider()) as system:
            root = system.root
            root.mark()  # the log is read, and stays in memory
            assert len(root.history()) == size + COLD + 1
            children = [root.fork().uuid for _ in range(WARM_UP)]
            before, written = stored(database), database.written()
            taken = each_time(root.fork, repetitions)
            now_written, after = database.written(), stored(database)
            kept = kept_bytes(root.fork, repetitions)
        return Fork(
            time=median(taken),
            cold=median(cold),
            raw=_raw(database, root.uuid, children[0], repetitions),
            written=None if written is None or now_written is None else (now_written - written) / repetitions,
            rows=(after.rows - before.rows) / repetitions,
            kept=kept,
        )
    finally:
        database.drop()


def _first(database: Database) -> float:
    """Seconds of the first fork after a start, which reads no log."""
    with ActorSystem.open(database.url, provider=OfflineProvider()) as system:
        root = system.root
        [taken] = each_time(root.fork, 1)
        assert system.statistics().read_logs == 0
        return taken


def _raw(database: Database, parent: str, child: str, repetitions: int) -> float:
    """Seconds for copies of the rows that a fork wrote: the child, its first message, the last one of its parent."""
    connection = database.connect()
    numbers = counting(1)
    try:
        agent = connection.execute(f"SELECT * FROM agents WHERE uuid = '{child}'")
        names = [column[0] for column in agent.description]
        others = ", ".join(name for name in names if name != "uuid")
        [(head,)] = connection.execute(f"SELECT MAX(id) FROM messages WHERE agent_uuid = '{parent}'").fetchall()
        message = COLUMNS.replace("agent_uuid, id, ", "")

        def insert() -> None:
            number = next(numbers)
            connection.execute("BEGIN")
            connection.execute(
                f"INSERT INTO agents (uuid, {others}) SELECT 'raw{number}', {others} FROM agents WHERE uuid = '{child}'"
            )
            for uuid, place, source in (
                (f"raw{number}", "id", f"agent_uuid = '{child}'"),
                (parent, f"id + {number}", f"agent_uuid = '{parent}' AND id = {head}"),
            ):
                connection.execute(
                    f"INSERT INTO messages ({COLUMNS}) SELECT '{uuid}', {place}, {message} FROM messages WHERE {source}"
                )
            connection.execute("COMMIT")

        return median(each_time(insert, repetitions))
    finally:
        connection.close()


def _peer(places: list[Place], peer: Peer, size: int) -> Iterator[Row]:
    """What a fork costs a peer; or why there is no figure."""
    head = (peer.who, peer.backend, size, COUNTED)
    try:
        with peer.session(places, size) as session:
            try:
                session.fork()
            except (ValueError, FileNotFoundError) as error:
                raise Unavailable("refused") from error
            session.rest()
            taken: list[float] = []
            written = 0
            gc.collect()
            while (len(taken) < 3 and sum(taken) < 10) or (sum(taken) < 2 and len(taken) < 100):
                before = written_by_process()
                began = time.perf_counter()
                session.fork()
                taken.append(time.perf_counter() - began)
                written += (written_by_process() or 0) - (before or 0)
                session.rest()
    except Unavailable as why:
        yield Row("fork", *head, None, "s", why=str(why))
        yield Row("fork: bytes written", *head, None, "B", why=str(why))
        return
    yield Row("fork", *head, median(taken), "s")
    known = peer.backend != "PostgreSQL" and written_by_process() is not None
    amount = written / len(taken) if known else None
    yield Row("fork: bytes written", *head, amount, "B", why="" if known else "not measured")
