"""What it costs to come back: logs from the store into memory, and all agents of a database at boot.

Replay: `LogCache.load` of the log and its ancestors (of many agents 1,000 at a time), and the view of its head. Beside
it the raw read: one SELECT of the same rows by the driver alone, each through `Message.from_row`. Boot: `ActorSystem
.open` until it returns, of a tree in which each agent has ten children and ten messages, logs unread. A chain: each
agent has one child. Peers read the whole conversation from where it is stored, by their own call for that.

Siblings: many children of one parent, each prompted once, 1,000 under way at a time; the time for each.
"""

from collections.abc import Callable, Iterator
from functools import partial
from statistics import median

from benchmarks import population, siblings
from benchmarks.measure import timed
from benchmarks.peers.sessions import PEERS, Peer, Unavailable
from benchmarks.places import COLUMNS, Database, Place, prepared
from benchmarks.results import Row
from ikigai_actors import ActorSystem, Message, OfflineProvider
from ikigai_actors.records.log.log import Log
from ikigai_actors.records.log.log_cache import LogCache

EACH = 10
"""Messages of each agent that boots."""

AT_ONCE = 1_000
"""Logs that are loaded together."""

ALONE = (10_000, 100_000, 1_000_000)
"""Messages of one agent."""

DEEP = (10, 100, 1_000)
"""Agents of a chain, each with 100 messages."""

AGENTS = (1_000, 10_000, 100_000)
"""Agents that boot."""

RAW = "raw SELECT"


def run(places: list[Place], quick: bool) -> Iterator[Row]:
    """Single logs, whole databases, and siblings that are prompted."""
    for place in places:
        for count in ALONE[:1] if quick else ALONE:
            yield from _log("replay of one agent", place, count, count, "messages", partial(_alone, count))
        for deep in DEEP[:2] if quick else DEEP:
            yield from _log("replay of a chain", place, deep, deep * 100, "agents", partial(_leaf, deep))
    for peer in PEERS:
        for count in ALONE[:1] if quick else ALONE[:2]:
            yield _by_peer(places, peer, count)
    for place in places:
        for count in AGENTS[:1] if quick else AGENTS:
            yield from _boot(place, count)
    yield from siblings.run(places, quick)


def _alone(count: int, database: Database) -> str:
    return population.alone(database, count)


def _leaf(deep: int, database: Database) -> str:
    return population.chain(database, deep, 100)[-1]


def _log(
    name: str, place: Place, size: int, messages: int, counted: str, build: Callable[[Database], str]
) -> Iterator[Row]:
    database = place.fresh()
    try:
        uuid = build(database)
        store = prepared(database.url)
        try:
            ours: list[float] = []
            raw: list[float] = []
            for _ in range(3):  # in turn: what disturbs one disturbs the other
                ours.append(timed(lambda: replay(LogCache(store), [uuid]))[0])
                raw.append(timed(lambda: select(database, messages))[0])
        finally:
            store.close()
    finally:
        database.drop()
    yield Row(name, "ikigai", place.name, size, counted, median(ours), "s", RAW, median(raw))


def _by_peer(places: list[Place], peer: Peer, count: int) -> Row:
    head = ("replay of one agent", peer.who, peer.backend, count, "messages")
    try:
        with peer.session(places, count) as session:
            taken = [timed(session.read) for _ in range(3)]
            if taken[0][1] < count:
                raise AssertionError(f"Expected {count} messages, got {taken[0][1]}")
            return Row(*head, median(seconds for seconds, _ in taken), "s")
    except Unavailable as why:
        return Row(*head, None, "s", why=str(why))


def _boot(place: Place, count: int) -> Iterator[Row]:
    database = place.fresh()
    try:
        uuids = population.tree(database, count, EACH)
        opening: list[float] = []
        ours: list[float] = []
        raw: list[float] = []
        for _ in range(3):
            taken, system = timed(lambda: ActorSystem.open(database.url, provider=OfflineProvider()))
            with system:
                opening.append(taken)
                if not ours or count < AGENTS[-1]:  # a hundred thousand logs are read once
                    ours.append(timed(partial(replay, system._ungated_log_cache, uuids))[0])
                    raw.append(timed(lambda: select(database, count * EACH))[0])
    finally:
        database.drop()
    yield Row("boot", "ikigai", place.name, count, "agents", median(opening), "s")
    yield Row("replay of all agents", "ikigai", place.name, count, "agents", median(ours), "s", RAW, median(raw))


def replay(log_cache: LogCache, uuids: list[str]) -> list[Log]:
    """Load and fold these agents' logs; they are held, so each is read once."""
    logs: list[Log] = []
    for start in range(0, len(uuids), AT_ONCE):
        logs += [log for log in log_cache.load_many(uuids[start : start + AT_ONCE]) if isinstance(log, Log)]
    assert len(logs) == len(uuids)
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
