"""What an actor without a thread costs, beside other actors: Pykka's with a thread each, xoscar's, the executors of
Microsoft's Agent Framework, Erlang's.

All do the same: nothing with most messages, an answer to an ask. Medians of three runs, each of all in turn; one
sender. Idle: resident, in a new process. Stop: all are told, then all are waited for. Tell: bursts to one actor, each
followed by an ask. Fan-out: a message to each actor, again and again, then a wait for all. Ask: one after the other,
from the main thread; then from another one, which may run our actor itself.

An idle agent is more than an actor: what `ActorSystem.open` of a database of so many agents adds to the process.
"""

from collections.abc import Iterator
from statistics import median
from typing import Any

from benchmarks import population
from benchmarks.machine import installed
from benchmarks.measure import grown, in_new_process
from benchmarks.peers.actors import OURS, PEERS, Figures, Peer, Work
from benchmarks.peers.erlang import otp_release
from benchmarks.places import Place
from benchmarks.results import Row
from ikigai_actors import ActorSystem, OfflineProvider

COUNTED = {
    "start": "actors",
    "stop": "actors",
    "tell": "messages a burst",
    "fan-out": "actors",
    "ask": "asks",
    "ask of a thread": "asks",
}

AGENTS = (1_000, 10_000)
"""Idle agents."""


def run(places: list[Place], quick: bool) -> Iterator[Row]:
    """Ours and everybody's actors; then the memory of whole agents."""
    repetitions = 1 if quick else 3
    figures: dict[Peer, list[Figures]] = {}
    for _ in range(repetitions):
        for peer in (OURS, *(peer for peer in PEERS if _version(peer))):
            figures.setdefault(peer, []).append(in_new_process(peer.measure, _work(peer, quick)))
    for name, counted in COUNTED.items():
        for peer in (OURS, *PEERS):
            if peer not in figures:
                yield Row(name, peer.name, "", peer.made[-1], counted, None, "/s", why="not installed")
                continue
            for size in _work(peer, quick).sizes()[name]:
                runs = [each[name, size] for each in figures[peer] if (name, size) in each]
                why = "" if runs else "not offered"
                yield Row(name, _who(peer), "", size, counted, median(runs) if runs else None, "/s", why=why)
    yield from _idle(quick)
    yield from _agents(places, quick)


def _idle(quick: bool) -> Iterator[Row]:
    for peer in (OURS, *PEERS):
        if peer != OURS and not _version(peer):
            yield Row("idle actor", peer.name, "", peer.made[-1], "actors", None, "B", why="not installed")
            continue
        for size in _work(peer, quick).made:
            yield Row("idle actor", _who(peer), "", size, "actors", in_new_process(peer.idle, size), "B")


def _agents(places: list[Place], quick: bool) -> Iterator[Row]:
    for place in places:
        for number in AGENTS:
            database = place.fresh()
            try:
                population.tree(database, number, 0)
                resident = in_new_process(_booted, database.url) / number
            finally:
                database.drop()
            yield Row("idle agent", "ikigai", place.name, number, "agents", resident, "B")


def _booted(url: str) -> float:
    systems: list[ActorSystem] = []
    try:
        return grown(lambda: systems.append(ActorSystem.open(url, provider=OfflineProvider())))
    finally:
        for system in systems:
            system.close()


def _work(peer: Peer, quick: bool) -> Work:
    return Work(
        made=tuple(size // (10 if quick else 1) for size in peer.made),
        bursts=(500, 5_000),
        fans=(100, 1_000),
        asks=(500, 5_000) if peer is OURS or not quick else (50, 500),
        messages=peer.messages // (10 if quick else 1),
    )


def _who(peer: Peer) -> str:
    version: Any = _version(peer)
    return peer.name if peer == OURS else f"{peer.name} {version}"


def _version(peer: Peer) -> str | None:
    """None when it is not installed."""
    return installed(peer.package) if peer.package else otp_release()
