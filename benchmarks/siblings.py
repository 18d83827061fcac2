"""Many children of one parent, each prompted once: ten times as many should take ten times as long.

The parent's log grows by one ``fork`` message for each child; siblings share the fold of what they inherit.
"""

from collections.abc import Iterator

from benchmarks import population
from benchmarks.measure import in_new_process, process_memory, timed
from benchmarks.places import Place
from benchmarks.results import Row
from ikigai_actors import ActorSystem, AgentRef, Request, ScriptedProvider

INHERITED = 100
"""Messages of the parent before its first fork."""

AT_ONCE = 1_000
"""Commands that are under way at a time."""


def run(places: list[Place], quick: bool) -> Iterator[Row]:
    """Measure a number of siblings, and ten times as many."""
    for place in places:
        for count in (100, 1_000) if quick else (1_000, 10_000):
            forking, prompting, memory = _measure(place, count)
            head = ("ikigai", place.name, count, "siblings")
            yield Row("forks at once", *head, forking, "s")
            yield Row("turns at once", *head, prompting, "s")
            yield Row("forks and turns: memory", *head, memory, "B")


def _answer(request: Request) -> str:
    return f"Heard {len(request.messages)} messages."


def _measure(place: Place, count: int) -> tuple[float, float, int]:
    """Seconds to fork one, seconds to prompt one, and the memory that all of them took."""
    database = place.fresh()
    try:
        population.alone(database, INHERITED)
        return in_new_process(_measured, database.url, count)
    finally:
        database.drop()


def _measured(url: str, count: int) -> tuple[float, float, int]:
    provider = ScriptedProvider(_answer)
    with ActorSystem.open(url, provider=provider) as system:
        before = process_memory()
        forking, children = timed(lambda: _fork(system.root, count))
        prompting, _ = timed(lambda: _prompt(provider, children))
        return forking / count, prompting / count, process_memory() - before


def _fork(parent: AgentRef, count: int) -> list[AgentRef]:
    children: list[AgentRef] = []
    for start in range(0, count, AT_ONCE):
        futures = [parent.aio.fork() for _ in range(start, min(start + AT_ONCE, count))]
        children += [future.get(timeout=600).sync for future in futures]
    return children


def _prompt(provider: ScriptedProvider, children: list[AgentRef]) -> None:
    for start in range(0, len(children), AT_ONCE):
        futures = [child.prompt("And you, what do you say?") for child in children[start : start + AT_ONCE]]
        for future in futures:
            assert future.get(timeout=600).text.startswith("Heard")
        provider.requests.clear()  # it keeps them for tests to look at
