"""Spread: forks by the number of hosts that share a database, and the death of a tree that lives on several of them.

Forks: hosts, each a process with five agents that fork one child after the other, with a COMMIT that takes 20 ms, as
with a synchronous standby (``commit_delay``). Four hosts run, and one, two or all of them fork. Beside them processes
of DBOS, in each of which five workflows start others, and of Ray, where an actor writes the same three rows and starts
an actor for each child, which is a process.

Death: a tree of which each host, a process, runs a part is killed branch by branch by a process that runs no agents:
ten cascades, one after the other, until the last is committed. One host is beside four.
"""

import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

from benchmarks import population
from benchmarks.host_processes import host, process, tell, until
from benchmarks.hosts import EACH, HOSTS, SLOW
from benchmarks.measure import timed
from benchmarks.peers import clusters
from benchmarks.places import Place
from benchmarks.results import Row
from ikigai_actors import ActorSystem
from ikigai_actors.system.attached import AttachedSystem

TREES = (1_000, 10_000, 100_000)
"""Agents of the tree that is killed."""


def run(places: list[Place], quick: bool) -> Iterator[Row]:
    """Forks by the number of hosts, then deaths with one host and with four."""
    each = 10 if quick else 100
    for place in places:
        if place.name != "PostgreSQL":  # a file has one host
            continue
        for hosts, rate in zip(HOSTS, _forks(place, each), strict=True):
            yield Row("forks", "ikigai", place.name, hosts, "hosts", rate, "/s")
        for peer in clusters.PEERS:
            database = place.fresh()
            try:
                figures = peer.measured("forks", database.url + SLOW, HOSTS, each)
            finally:
                database.drop()
            for hosts, figure in zip(HOSTS, [None] * len(HOSTS) if isinstance(figures, str) else figures, strict=True):
                why = figures if isinstance(figures, str) else ""
                yield Row("forks", peer.who, place.name, hosts, "hosts", figure, "/s", why=why)
        for count in TREES[:1] if quick else TREES:
            one_host, four = (_death(place, hosts, count) for hosts in (1, HOSTS[-1]))
            yield Row(
                "death of a tree on 4 hosts", "ikigai", place.name, count, "agents", four, "s", "one host", one_host
            )


def _forks(place: Place, each: int) -> list[float]:
    """Forks in a second, of each number of hosts."""
    database = place.fresh()
    try:
        with ExitStack() as stack, ThreadPoolExecutor(max(HOSTS)) as threads:
            hosts = []
            for number in range(max(HOSTS)):
                command = ["-m", "benchmarks.forking", f"h{number}"]
                hosts.append(stack.enter_context(process(command, IKIGAI_DATABASE_URL=database.url + SLOW)))
                tell(hosts[-1])
            rates = []
            for count in HOSTS:
                taken = timed(partial(_fork, threads, hosts[:count], each))[0]
                rates.append(count * EACH * each / taken)
            return rates
    finally:
        database.drop()


def _fork(threads: ThreadPoolExecutor, hosts: "Sequence[subprocess.Popen[bytes]]", each: int) -> None:
    """Have hosts fork as often, at once."""
    list(threads.map(lambda agent: tell(agent, f"fork {each}"), hosts))


def _death(place: Place, hosts: int, count: int) -> float:
    """Seconds until all but agent 0 are dead."""
    database = place.fresh()
    try:
        population.tree(database, count, 0)
        with ExitStack() as stack:
            for number in range(hosts):
                stack.enter_context(host(database.url, f"h{number}"))
            client = stack.enter_context(ActorSystem.attach(database.url))
            until(lambda: _have_shares(client, hosts), "the shares of all")
            branches = [
                client.handle(record.uuid) for record in client.agents() if record.parent_uuid == client.root.uuid
            ]
            taken = timed(lambda: [branch.kill(cascade=True) for branch in branches])[0]
            if left := len(client.agents("running")) - 1:
                raise AssertionError(f"{left} agents outlived their branch.")
            return taken
    finally:
        database.drop()


def _have_shares(client: AttachedSystem, hosts: int) -> bool:
    living = [host for host in client.hosts() if host.ended_at is None]
    return len(living) == hosts and all(host.shards for host in living)
