"""What it costs to come back: logs from the store into memory, and all agents of a database at boot.

Replay reads logs through the library's `Archive`, and folds them. Beside it the raw read: one SELECT of the same rows
by the driver alone, into the same `Message` objects.
"""

import gc
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median

from benchmarks import population, siblings
from benchmarks.measure import process_memory, timed
from benchmarks.places import COLUMNS, Database, Place, prepared
from benchmarks.table import Figure, Table, duration, number, percent, rate, size
from ikigai_actors import ActorSystem, Message, OfflineProvider
from ikigai_actors.log import Archive, Log

EACH = 10
"""Messages of each agent that boots."""

AT_ONCE = 1_000
"""Logs that are loaded together."""

DEPTH = 1_000
"""Agents of the chain, each with 100 messages."""


def run(places: list[Place], quick: bool) -> Iterator[Table]:
    """Single logs, whole databases, and siblings that are prompted."""
    yield _logs(places, quick)
    yield _boots(places, quick)
    yield siblings.run(places, quick)


def _logs(places: list[Place], quick: bool) -> Table:
    table = Table(
        "Replay of one history",
        ("database", "history", "messages", "replay", "raw SELECT", "replay / raw SELECT"),
        notes=[
            "Messages per second, medians. Replay: `Archive.load` of the log and its ancestors, the view of its head.",
            "Raw SELECT: the same rows by the driver alone, each through `Message.from_row`.",
        ],
    )  # fmt: skip
    for place in places:
        for count in (10_000,) if quick else (100_000, 1_000_000):
            _log(table, place, "one agent", count, partial(population.alone, count=count))
        deep = DEPTH // 10 if quick else DEPTH
        _log(table, place, f"chain of {deep:,} agents", deep * 100, partial(_leaf, deep))
    return table


def _leaf(deep: int, database: Database) -> str:
    return population.chain(database, deep, 100)[-1]


def _log(table: Table, place: Place, what: str, count: int, build: Callable[[Database], str]) -> None:
    database = place.fresh()
    try:
        uuid = build(database)
        store = prepared(database.url)
        try:
            ours: list[float] = []
            raw: list[float] = []
            for _ in range(3):  # in turn: what disturbs one disturbs the other
                ours.append(timed(lambda: replay(Archive(store), [uuid]))[0])
                raw.append(timed(lambda: select(database, count))[0])
        finally:
            store.close()
    finally:
        database.drop()
    table.add(place.name, what, *_rates(count, median(ours), median(raw)))


def _boots(places: list[Place], quick: bool) -> Table:
    table = Table(
        f"Boot of agents with {EACH} messages each",
        ("database", "agents", "open", "an agent", "process grows by", "then all logs: messages", "replay",
         "raw SELECT", "replay / raw SELECT"),
        notes=[
            "Open: `ActorSystem.open` until it returns, logs unread; a tree in which each agent has ten children.",
            "Replay: each log (`Archive.load_many`, 1,000 at a time) and its view. Raw SELECT: all rows at once.",
        ],
    )  # fmt: skip
    for place in places:
        for count in (1_000,) if quick else (1_000, 10_000, 100_000):
            _boot(table, place, count)
    return table


def _boot(table: Table, place: Place, count: int) -> None:
    database = place.fresh()
    try:
        uuids = population.tree(database, count, EACH)
        opening: list[float] = []
        ours: list[float] = []
        raw: list[float] = []
        memory = 0
        for _ in range(3):
            gc.collect()
            before = process_memory()
            taken, system = timed(lambda: ActorSystem.open(database.url, provider=OfflineProvider()))
            with system:
                opening.append(taken)
                memory = max(memory, process_memory() - before)
                if not ours or count < 100_000:  # a hundred thousand logs are read once
                    ours.append(timed(partial(replay, system.archive, uuids))[0])
            raw.append(timed(lambda: select(database, count * EACH))[0])
        seconds = median(opening)
        table.add(
            place.name, number(count), duration(seconds), duration(seconds / count), size(memory),
            *_rates(count * EACH, median(ours), median(raw)),
        )  # fmt: skip
    finally:
        database.drop()


def replay(archive: Archive, uuids: list[str]) -> list[Log]:
    """Load and fold these agents' logs; they are held, so each is read once."""
    logs: list[Log] = []
    for start in range(0, len(uuids), AT_ONCE):
        logs += archive.load_many(uuids[start : start + AT_ONCE])
    for log in logs:
        log.view(log.head)
    return logs


def select(database: Database, expected: int) -> list[Message]:
    """Every message of the database, by its driver alone."""
    connection = database.connect()
    try:
        messages = [Message.from_row(row) for row in connection.execute(f"SELECT {COLUMNS} FROM messages").fetchall()]
    finally:
        connection.close()
    assert len(messages) == expected
    return messages


def _rates(count: int, ours: float, raw: float) -> tuple[Figure, Figure, Figure, Figure]:
    return number(count), rate(count / ours), rate(count / raw), percent(raw / ours)
