"""Replies on their way: how long after its provider another process hears a piece of a reply.

One process runs the agent. Its model says a hundred times what time it is (`time.monotonic_ns`, one clock for all);
late is when an attached process hears a piece, less what it says. The last pieces come with the whole reply.
"""

import asyncio
import random
import time
from collections.abc import Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from statistics import median, quantiles

from benchmarks.host_processes import TIMEOUT
from benchmarks.places import Place
from benchmarks.results import Row
from ikigai_actors import ActorSystem, Delta, Message, OfflineProvider, Reply, Request, Streamed
from ikigai_actors.providers.base import OnDelta


class Stamping(OfflineProvider):
    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        stamps = []
        for _ in range(100):
            await asyncio.sleep(random.uniform(0, 0.1))
            stamps.append(f"{time.monotonic_ns()} ")
            on_delta(Delta(stamps[-1]))
        return Reply(text="".join(stamps))


def run(places: list[Place], quick: bool) -> Iterator[Row]:
    """Of all pieces, by the database."""
    for place in places:
        late = [piece for _ in range(1 if quick else 4) for piece in _late(place.fresh().url)]
        for rank, figure in (("p50", median(late)), ("p90", quantiles(late, n=10)[-1])):
            yield Row(f"piece of a reply, late: {rank}", "ikigai", place.name, len(late), "pieces", figure, "s")


def _late(url: str) -> list[float]:
    (ours, theirs), late = get_context("spawn").Pipe(), list[float]()
    get_context("spawn").Process(target=_host, args=(url, theirs), daemon=True).start()
    ours.recv()  # it runs the agent

    def hear(event: object) -> None:
        text = event.text if isinstance(event, Streamed) else ""
        if isinstance(event, Message) and event.kind == "assistant":
            text = " ".join(event.content.split()[len(late) :])
        late.extend((time.monotonic_ns() - int(stamp)) / 1e9 for stamp in text.split())

    with ActorSystem.attach(url) as system, ours:
        system.subscribe(hear)
        system.root.prompt("What time is it?").get(timeout=TIMEOUT)
    return late


def _host(url: str, attached: Connection) -> None:
    with ActorSystem.open(url, Stamping()):
        attached.send("It runs.")
        attached.poll(None)  # until the other end is closed
