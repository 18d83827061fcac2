"""A search by words (`records.log.words`), by the index of words and by the messages themselves.

A hundred agents below agent 0 have said as many messages as the size says, of a dozen words each, out of 20,000 words
of which few are common. *Index* is the time that the index takes for a message, and the bytes that it adds to the
database. *Query* is the median of thirty: three words, of which one is in every tenth message, one in every thousandth,
and one in none. *By the messages* is the same without the index.
"""

import random
import statistics
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from benchmarks.measure import each_time, timed
from benchmarks.places import Database, Place
from benchmarks.results import Row
from ikigai_actors import ActorSystem, OfflineProvider
from ikigai_actors.records.log.words import drop_word_index, find_words, index_words
from ikigai_actors.store import Store, open_store

SIZES = (10_000, 100_000)
"""Messages."""
AGENTS = 100
QUERY = "common rare nowhere"


def run(places: list[Place], quick: bool) -> Iterator[Row]:
    """Each size in each place; the larger one in the thorough run alone."""
    for place in places:
        for count in SIZES[:1] if quick else SIZES:
            database = place.fresh()
            try:
                agents = _talk(database, count)
                database.settle()
                store = open_store(database.url)
                try:
                    yield from _rows(place, database, store, agents, count)
                finally:
                    store.close()
            finally:
                database.drop()


def _rows(place: Place, database: Database, store: Store, agents: Sequence[str], count: int) -> Iterator[Row]:
    def query() -> object:
        return store.read(lambda tx: find_words(tx, agents, QUERY, 20))

    slow = statistics.median(each_time(query, 5))
    before = _size(database)
    seconds, _ = timed(lambda: index_words(store, agents, least=1))
    grown = _size(database) - before
    place_of = ("ikigai", place.name, count, "messages")
    yield Row("words: index a message", *place_of, seconds / count, "s")
    yield Row("words: index, bytes a message", *place_of, grown / count, "B")
    fast = statistics.median(each_time(query, 30))
    yield Row("words: query", *place_of, fast, "s", "by the messages", slow)
    rare = statistics.median(each_time(lambda: store.read(lambda tx: find_words(tx, agents, "rare", 20)), 30))
    drop_word_index(store)
    plain = statistics.median(each_time(lambda: store.read(lambda tx: find_words(tx, agents, "rare", 20)), 5))
    yield Row("words: query of a rare word", *place_of, rare, "s", "by the messages", plain)


def _talk(database: Database, count: int) -> list[str]:
    """Agents that have said this many messages; their uuids."""
    with ActorSystem.open(database.url, OfflineProvider()) as system:
        agents = [system.root.fork(name=f"agent-{number}") for number in range(AGENTS)]
        heads = {agent.uuid: agent.history(all=True)[-1].id for agent in agents}
    source = random.Random(7)
    rows: list[tuple[object, ...]] = []
    for number in range(count):
        agent = agents[number % AGENTS].uuid
        heads[agent] += 1
        words = [f"word{int(20_000 * source.random() ** 3)}" for _ in range(12)]
        words += ["common"] if number % 10 == 0 else ["rare"] if number % 1_000 == 501 else []
        digest = sha256(f"{agent} {heads[agent]}".encode()).digest()
        rows.append((agent, heads[agent], "assistant", " ".join(words), None, number, digest))
    connection = database.connect()
    database.insert(connection, rows)
    connection.close()
    return list(heads)


def _size(database: Database) -> int:
    """The bytes of a database."""
    connection = database.connect()
    try:
        if database.url.startswith("postgres"):
            [size] = connection.execute("SELECT pg_database_size(current_database())").fetchone()
            return int(size)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return Path(database.url.removeprefix("sqlite:///")).stat().st_size
    finally:
        connection.close()
