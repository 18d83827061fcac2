"""What agents cost a host while they wait for a batch (`system.host.batches`).

A thousand agents are forked and prompted, and their requests are one batch, which the service has taken and does not
end. Each figure is of a process that has opened nothing before. *Sealed* is the time of the processor from the first
fork until the batch is sent. *Memory* is what the process has grown by then, for each agent. *Waits* is the time of the
processor that half a minute of waiting takes.
"""

import time
from collections.abc import Iterator

from benchmarks.host_processes import until
from benchmarks.measure import in_new_process, process_memory
from benchmarks.places import Place
from benchmarks.results import Row
from ikigai_actors import ActorSystem, Reply
from ikigai_actors.testing.scripted_batches import ScriptedBatches

AGENTS = 1_000
"""As many are a batch at once."""
PAUSE = 30.0
"""Seconds of waiting."""

FIGURES = (("sealed, processor", "s"), ("memory an agent", "B"), ("waits, processor", "s"))


def run(places: list[Place], quick: bool) -> Iterator[Row]:
    """The same size in each place."""
    for place in places:
        database = place.fresh()
        try:
            for (name, unit), figure in zip(FIGURES, in_new_process(_measure, database.url), strict=True):
                yield Row(f"batches: {name}", "ikigai", place.name, AGENTS, "agents", figure, unit)
        finally:
            database.drop()


def _measure(url: str) -> tuple[float, float, float]:
    provider = ScriptedBatches(lambda request: Reply("noted"), polls=1_000)
    with ActorSystem.open(url, provider) as system:
        system.root.configure(urgency="24h")
        memory, began = process_memory(), time.process_time()
        for kid in system.root.fork(count=AGENTS):
            kid.prompt("hello")
        until(lambda: sum(order.size for order in provider.orders) == AGENTS, "the batch")
        sealed, grown = time.process_time() - began, (process_memory() - memory) / AGENTS
        began = time.process_time()
        time.sleep(PAUSE)
        return sealed, grown, time.process_time() - began
