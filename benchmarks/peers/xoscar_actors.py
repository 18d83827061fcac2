"""xoscar: actors of one process on its event loop, by coroutines; a message goes through the pool's own channel.

Told are messages all at once, then they are awaited; its references know no inbox that would take them sooner.
"""

import asyncio
import gc
import time
from collections.abc import Awaitable
from typing import Any

import xoscar

from benchmarks.measure import process_memory
from benchmarks.peers.actors import Figures, Work

ADDRESS = "127.0.0.1"


class Handler(xoscar.Actor):
    """An actor that handles one message at a time, and does nothing with it."""

    def handle(self) -> None:
        """Handle one message."""


def measure(work: Work) -> Figures:
    """See `benchmarks.peers.actors.Peer`."""
    return asyncio.run(_measure(work))


def idle(number: int) -> float:
    """See `benchmarks.peers.actors.Peer`."""
    return asyncio.run(_idle(number))


async def _measure(work: Work) -> Figures:
    pool = await xoscar.create_actor_pool(ADDRESS, n_process=0)
    figures: Figures = {}
    for size in work.made:
        began = time.perf_counter()
        actors = await _start(pool, size)
        figures["start", size] = size / (time.perf_counter() - began)
        figures["stop", size] = size / await _seconds(_stop(actors))
    [actor] = await _start(pool, 1)
    for size in work.bursts:
        rounds = work.rounds(size)
        figures["tell", size] = size * rounds / await _seconds(_tell([actor] * size, rounds))
    for size in work.fans:
        rounds, many = work.rounds(size), await _start(pool, size)
        figures["fan-out", size] = size * rounds / await _seconds(_tell(many, rounds))
        await _stop(many)
    for size in work.asks:
        figures["ask", size] = size / await _seconds(_ask(actor, size))
    await pool.stop()
    return figures


async def _idle(number: int) -> float:
    pool = await xoscar.create_actor_pool(ADDRESS, n_process=0)
    gc.collect()
    before = process_memory()
    actors = await _start(pool, number)
    gc.collect()
    grown = process_memory() - before
    await _stop(actors)
    await pool.stop()
    return grown / number


async def _start(pool: Any, count: int) -> list[Any]:
    return [await xoscar.create_actor(Handler, address=pool.external_address) for _ in range(count)]


async def _stop(actors: list[Any]) -> None:
    for actor in actors:
        await xoscar.destroy_actor(actor)


async def _tell(actors: list[Any], rounds: int) -> None:
    for _ in range(rounds):
        await asyncio.gather(*(actor.handle.tell() for actor in actors))
    await asyncio.gather(*(actor.handle() for actor in set(actors)))


async def _ask(actor: Any, count: int) -> None:
    for _ in range(count):
        await actor.handle()


async def _seconds(work: Awaitable[None]) -> float:
    gc.collect()
    began = time.perf_counter()
    await work
    return time.perf_counter() - began
