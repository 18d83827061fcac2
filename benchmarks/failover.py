"""Failover: from the `kill -9` of a process until what it ran answers elsewhere.

Two hosts share a PostgreSQL database, each a process. The second one runs an agent whose model never answers there, and
at once with the first one. The agent is prompted before the kill (*before*: the turn is open, and goes on elsewhere) or
right after it (*after*), by a process that runs no agents. Then the host is started again, and the agent moved back.

Beside it DBOS: two workers of one queue, of which the first never answers; after the kill a workflow goes to the other
one, and what was begun before waits until somebody starts that worker again, which is done here at once. And Ray: an
actor that may be restarted and calls of it that may be repeated; each writes the prompt and the reply itself.
"""

import time
from collections.abc import Iterator
from statistics import median

from benchmarks import population
from benchmarks.host_processes import TIMEOUT, host, until
from benchmarks.peers import clusters
from benchmarks.places import Database, Place
from benchmarks.results import Row
from ikigai_actors import ActorSystem

AGENTS = (60, 20_000)
"""Agents of the database."""

PARTS = ("before", "after")
"""When the agent is prompted."""


def run(places: list[Place], quick: bool) -> Iterator[Row]:
    """Kill, and wait for the answer, several times."""
    times = 2 if quick else 20
    for place in places:
        if place.name != "PostgreSQL":  # a file has one host
            continue
        for count in AGENTS[:1] if quick else AGENTS:
            database = place.fresh()
            try:
                population.tree(database, count, 0)
                yield from _rows("ikigai", place, count, _kills(database, times))
            finally:
                database.drop()
        for peer in clusters.PEERS:
            database = place.fresh()
            try:
                yield from _rows(peer.who, place, AGENTS[0], peer.measured("failover", database.url, times))
            finally:
                database.drop()


def _rows(who: str, place: Place, count: int, taken: dict[str, list[float]] | str) -> Iterator[Row]:
    for part in PARTS:
        head = f"kill to answer, prompted {part}"
        for title, choose in (("p50", median), ("max", max)):
            figure, why = (None, taken) if isinstance(taken, str) else (choose(taken[part]), "")
            yield Row(f"{head}: {title}", who, place.name, count, "agents", figure, "s", why=why)


def _kills(database: Database, times: int) -> dict[str, list[float]]:
    """The seconds from each kill to the answer."""
    taken: dict[str, list[float]] = {part: [] for part in PARTS}
    with host(database.url, "first"):
        until(lambda: _hosts(database.url), "the first host")
        with ActorSystem.attach(database.url) as client:
            agent = client.root.fork(name="far", timeout=TIMEOUT)
            for part in PARTS * times:
                with host(database.url, "second", "silent_app") as second:
                    until(lambda: _hosts(database.url).get("second"), "the shards of the second host")
                    agent.move("second", timeout=TIMEOUT)
                    if part == "before":
                        reply = agent.aio.prompt("go")
                        until(lambda: agent.record.turn, "the turn")
                    second.kill()
                    began = time.perf_counter()
                    if part == "after":
                        reply = agent.aio.prompt("go")
                    reply.get(timeout=TIMEOUT)
                    taken[part].append(time.perf_counter() - began)
    return taken


def _hosts(url: str) -> dict[str | None, int]:
    """The shards of each host that lives, by its name."""
    with ActorSystem.attach(url) as client:
        return {host.name: host.shards for host in client.hosts() if host.ended_at is None}
