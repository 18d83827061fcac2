"""One durable message to another, each sent when the one before is stored: by `ref.send()`, and by DBOS.

Peers whose messages are lost with the process are in `benchmarks.actors`.
"""

from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Protocol, cast

from benchmarks import population
from benchmarks.measure import each_time
from benchmarks.peers.sessions import Peer, Unavailable
from benchmarks.places import Place
from benchmarks.results import Row
from ikigai_actors import ActorSystem, OfflineProvider

BODY = "The index on this column is used by two reports; both could use the primary key. Shall I drop it?"

PEERS = tuple(
    Peer("DBOS", "dbos", "benchmarks.peers.dbos_workflow", "Workflow", backend, 1)
    for backend in ("SQLite", "PostgreSQL")
)

COUNTED = "mails in turn"


class Sends(Protocol):
    """A session that takes mail."""

    def send(self, body: str) -> None:
        """Send one mail."""


def run(places: list[Place], quick: bool) -> Iterator[Row]:
    """Ours on each place, then DBOS; so many mails in turn, and ten times as many."""
    sizes = (20, 200) if quick else (100, 1_000)
    for place in places:
        for size, value in zip(sizes, _ours(place, sizes), strict=True):
            yield Row("one send", "ikigai", place.name, size, COUNTED, value, "s")
    for peer in PEERS:
        try:
            with peer.session(places, 1) as session:
                values = _by_age(partial(cast(Sends, session).send, BODY), sizes)
        except Unavailable as why:
            yield Row("one send", peer.who, peer.backend, sizes[0], COUNTED, None, "s", why=str(why))
            continue
        for size, value in zip(sizes, values, strict=True):
            yield Row("one send", peer.who, peer.backend, size, COUNTED, value, "s")


def _ours(place: Place, sizes: tuple[int, ...]) -> list[float]:
    database = place.fresh()
    try:
        population.alone(database, 0)
        with ActorSystem.open(database.url, provider=OfflineProvider()) as system:
            child = system.root.fork()
            return _by_age(lambda: system.root.send(child, BODY), sizes)
    finally:
        database.drop()


def _by_age(send: Callable[[], object], sizes: tuple[int, ...]) -> list[float]:
    """The median time of a send, over so many in turn."""
    send()
    return [median(each_time(send, size)) for size in sizes]
