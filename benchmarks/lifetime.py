"""What a long life costs: one agent, many turns, a clear after every fifty.

Grown: resident memory of the process from the first thousand turns to the last, the store's own cache of pages
included (8 MiB at most on SQLite). After a restart: the time of the first prompt, in a new process, and what that
process has grown by then. Each life is in a process of its own. The provider is a function that remembers nothing.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from benchmarks.measure import in_new_process, process_memory, timed
from benchmarks.places import Place
from benchmarks.results import Row
from ikigai_actors import ActorSystem, FunctionProvider, Request

TURNS = (10_000, 100_000)
QUICK_TURNS = (2_000,)
CLEAR_EVERY = 50
WARM_UP = 1_000


class Life(NamedTuple):
    """What was seen in one process."""

    grown: int
    """Bytes."""
    held: int
    """Messages in memory."""
    stored: int
    """Messages in the database."""
    first: float
    """Seconds of the first prompt."""


def run(places: list[Place], quick: bool) -> Iterator[Row]:
    """One life on each place, and the first prompt after it."""
    for place in places:
        for turns in QUICK_TURNS if quick else TURNS:
            database = place.fresh()
            try:
                life = in_new_process(partial(live, database.url, turns))
                again = in_new_process(partial(come_back, database.url))
            finally:
                database.drop()
            head = ("ikigai", place.name, turns, "turns")
            yield Row("a long life: memory grown", *head, life.grown, "B")
            yield Row("a long life: messages held", *head, life.held, "messages", "messages stored", life.stored)
            yield Row("a long life: first prompt after a restart", *head, again.first, "s")
            yield Row("a long life: memory grown by that", *head, again.grown, "B")


def live(url: str, turns: int) -> Life:
    """Let agent 0 of a database live so long."""
    with _open(url) as system:
        before = 0
        first, _ = timed(partial(_prompt, system))
        for turn in range(1, turns):
            _prompt(system)
            if turn % CLEAR_EVERY == CLEAR_EVERY - 1:
                system.root.clear()
            if turn == WARM_UP:
                before = process_memory()
        held = system._ungated_log_cache.in_memory()
        stored = system.root.clear()
        return Life(process_memory() - before, held, stored, first)


def come_back(url: str) -> Life:
    """Open the database, and prompt agent 0."""
    with _open(url) as system:
        before = process_memory()
        first, _ = timed(partial(_prompt, system))
        held = system._ungated_log_cache.in_memory()
        return Life(process_memory() - before, held, len(system.root.history()), first)


def _prompt(system: ActorSystem) -> None:
    system.root.prompt("What is the weather like today, and what will it be tomorrow?").get(timeout=60)


def _open(url: str) -> ActorSystem:
    return ActorSystem.open(url, provider=FunctionProvider(_answer))


def _answer(request: Request) -> str:
    return f"It is mild today, and it will be as mild tomorrow. We spoke {len(request.messages)} times of it. " * 10
