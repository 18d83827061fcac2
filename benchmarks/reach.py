"""Reach: how long it takes until a prompt is answered by an agent that another process runs.

Two hosts share a PostgreSQL database, each a process, and a model answers at once. An agent of the second host is
prompted, again and again, by the first one (*elsewhere*) and by a process that runs no agents (*attached*); beside that
an agent of the first host, by itself (*here*). Each is measured with few agents in the database and with many.

The raw limit is what rows and hints allow: two plain connections, each in a process, take turns. One inserts a row and
notifies; the other one inserts two, as the prompt and the reply are two commits, and notifies.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from multiprocessing import get_context
from statistics import median, quantiles

import psycopg

from benchmarks import population
from benchmarks.host_processes import TIMEOUT, app, host, until
from benchmarks.measure import each_time
from benchmarks.places import Database, Place
from benchmarks.results import Row
from ikigai_actors import ActorSystem, AgentRef

AGENTS = (100, 20_000)
"""Agents of the database."""

FAR = "far"
"""The name of the agent that the second host runs."""


def run(places: list[Place], quick: bool) -> Iterator[Row]:
    """Prompts to an agent here, elsewhere and attached, by the number of agents."""
    for place in places:
        if place.name != "PostgreSQL":  # a file has one host
            continue
        times = 20 if quick else 200
        for count in AGENTS[:1] if quick else AGENTS:
            database = place.fresh()
            try:
                raw = _by_rows(database, times)
                population.tree(database, count, 0)
                for name, taken in _prompts(database, times).items():
                    for part, figure, limit in zip(("p50", "p90"), _parts(taken), _parts(raw), strict=True):
                        beside = ("rows and hints", limit)
                        yield Row(
                            f"prompt, {name}: {part}", "ikigai", place.name, count, "agents", figure, "s", *beside
                        )
            finally:
                database.drop()


def _parts(taken: list[float]) -> tuple[float, float]:
    return median(taken), quantiles(taken, n=10)[-1]


def _prompts(database: Database, times: int) -> dict[str, list[float]]:
    """The seconds that each prompt took, by where the agent is."""
    with ExitStack() as stack:
        first = stack.enter_context(ActorSystem.open(database.url, join=True, name="first", **app()))
        near, far = first.root.fork(), first.root.fork(name=FAR)
        stack.enter_context(host(database.url, "second"))
        until(lambda: any(host.name == "second" and host.shards for host in first.hosts()), "the second host")
        first.move(far, "second", timeout=TIMEOUT)
        client = stack.enter_context(ActorSystem.attach(database.url))
        asked = {"here": near, "elsewhere": far, "attached": client.agent(FAR)}
        taken = {}
        for name, agent in asked.items():
            agent.prompt("warm").get(timeout=TIMEOUT)
            taken[name] = each_time(partial(_ask, agent), times)
            agent.clear(timeout=TIMEOUT)
        return taken


def _ask(agent: AgentRef) -> None:
    agent.prompt("go").get(timeout=TIMEOUT)


def _by_rows(database: Database, times: int) -> list[float]:
    """The seconds of each exchange of two plain connections."""
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE said (id BIGSERIAL PRIMARY KEY, text TEXT)")
        connection.execute("LISTEN answered")
        other = get_context("spawn").Process(target=_answer, args=(database.url, times + 1))
        other.start()
        next(connection.notifies(timeout=TIMEOUT))

        def ask() -> None:
            connection.execute("INSERT INTO said (text) VALUES ('question')")
            connection.execute("NOTIFY asked")
            next(connection.notifies(timeout=TIMEOUT))

        ask()
        taken = each_time(ask, times)
        other.join(TIMEOUT)
        return taken


def _answer(url: str, times: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("LISTEN asked")
        connection.execute("NOTIFY answered")
        for _ in range(times):
            next(connection.notifies(timeout=TIMEOUT))
            connection.execute("INSERT INTO said (text) VALUES ('taken up')")
            connection.execute("INSERT INTO said (text) VALUES ('answer')")
            connection.execute("NOTIFY answered")
