"""What a fork costs, by the length of the history that the child inherits. It should be flat.

Ours is ``ref.fork()`` of a running system, each after the commit of the one before, the parent's log loaded beforehand.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks import population
from benchmarks.machine import installed
from benchmarks.measure import each_time, kept_bytes, process_memory, timed, written_by_process
from benchmarks.peers import PEERS, Peer
from benchmarks.places import Place, stored
from benchmarks.table import Cell, Table, duration, number, size, times
from ikigai_actors import ActorSystem, OfflineProvider

SIZES = (0, 1_000, 100_000, 1_000_000)
QUICK_SIZES = (0, 1_000, 10_000)
WARM_UP = 10


class Fork(NamedTuple):
    """What one fork costs."""

    time: float
    written: float | None
    rows: float | None = None
    row_bytes: float | None = None
    kept: float | None = None
    process: int | None = None


def run(places: list[Place], quick: bool) -> Iterator[Table]:
    """Ours on each place, then the peers."""
    sizes = QUICK_SIZES if quick else SIZES
    ours = {place.name: [_ours(place, count, 50 if quick else 200) for count in sizes] for place in places}
    yield _table_of_ours(ours, sizes)
    yield _table_beside(ours, {peer: [_peer(peer, count) for count in sizes] for peer in PEERS}, sizes)


def _ours(place: Place, count: int, repetitions: int) -> Fork:
    database = place.fresh()
    try:
        population.alone(database, count)
        with ActorSystem.open(database.url, provider=OfflineProvider()) as system:
            root = system.root
            history = root.history()  # held: the log stays loaded
            assert len(history) == count
            for _ in range(WARM_UP):
                root.fork()
            before, written = stored(database), database.written()
            taken = each_time(root.fork, repetitions)
            now_written, after = database.written(), stored(database)
            kept, process = kept_bytes(root.fork, repetitions), process_memory()
        return Fork(
            time=median(taken),
            written=None if written is None or now_written is None else (now_written - written) / repetitions,
            rows=(after.rows - before.rows) / repetitions,
            row_bytes=(after.size - before.size) / repetitions,
            kept=kept,
            process=process,
        )
    finally:
        database.drop()


def _peer(peer: Peer, count: int) -> Fork | str:
    """What a fork costs a peer; or why there is no figure."""
    try:
        make = peer.open()
    except ImportError:
        return "not installed"
    if count > peer.most:
        return "not tried"
    with tempfile.TemporaryDirectory(prefix="ikigai-benchmarks-") as directory:
        session = make(Path(directory), count)
        try:
            try:
                session.fork()
            except (ValueError, FileNotFoundError):
                return "refused"
            session.rest()
            taken: list[float] = []
            written = 0
            while len(taken) < 3 or (sum(taken) < 2 and len(taken) < 100):
                before = written_by_process()
                taken.append(timed(session.fork)[0])
                written += (written_by_process() or 0) - (before or 0)
                session.rest()
        finally:
            session.close()
    return Fork(median(taken), written / len(taken) if written_by_process() is not None else None)


def _table_of_ours(ours: dict[str, list[Fork]], sizes: tuple[int, ...]) -> Table:
    table = Table(
        "A fork, by inherited history",
        ("database", "inherited messages", "time", "of the time at 0", "rows", "bytes in rows", "bytes written",
         "Python memory kept", "process"),
        notes=[
            "Median time of `ref.fork()`, each after the commit of the one before; the parent's log is loaded.",
            "Histories are made in bulk through the store's append. Rows: the child in `agents`, `fork` in both logs.",
            "Bytes written: by the process, checkpoints included (SQLite); in the server's own log (PostgreSQL).",
            "Python memory kept: by each child with its running actor. Process: resident, with the parent's log.",
        ],
    )  # fmt: skip
    for name, forks in ours.items():
        for count, fork in zip(sizes, forks, strict=True):
            table.add(
                name, number(count), duration(fork.time), times(fork.time / forks[0].time), number(fork.rows or 0),
                size(fork.row_bytes or 0), _size(fork.written), size(fork.kept or 0), size(fork.process or 0),
            )  # fmt: skip
    return table


def _table_beside(ours: dict[str, list[Fork]], peers: dict[Peer, list[Fork | str]], sizes: tuple[int, ...]) -> Table:
    table = Table(
        "A fork beside the peers",
        ("who", "inherited messages", "time", "bytes written", "time of ours on SQLite", "bytes of ours on SQLite"),
        notes=[
            "Ratios: the peer's figure as a multiple of ours at the same length. Bytes written: by the process.",
            f"Peers are tried up to {max(peer.most for peer in PEERS):,} messages, so that the whole takes minutes.",
            "DeltaChannel: from the second fork of a checkpoint on; the first one alone writes only what is new.",
            "fork_session refuses an empty session, and does not sync its file to the disk.",
        ],
    )
    reference: list[Fork] = ours.get("SQLite") or []
    for name, forks in ours.items():
        for count, fork in zip(sizes, forks, strict=True):
            table.add(f"ikigai-actors, {name}", number(count), duration(fork.time), _size(fork.written), "", "")
    for peer, results in peers.items():
        who = f"{peer.name} {installed(peer.package) or ''}".strip()
        for place, (count, result) in enumerate(zip(sizes, results, strict=True)):
            if isinstance(result, str):
                table.add(who, number(count), result, "", "", "")
                continue
            ratios: tuple[Cell, Cell] = ("", "")
            if reference:
                own = reference[place]
                bytes_ratio = times(result.written / own.written) if result.written and own.written else ""
                ratios = (times(result.time / own.time), bytes_ratio)
            table.add(who, number(count), duration(result.time), _size(result.written), *ratios)
    return table


def _size(count: float | None) -> Cell:
    return "not known" if count is None else size(count)
