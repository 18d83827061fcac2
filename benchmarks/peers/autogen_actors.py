"""AutoGen core: agents of its `SingleThreadedAgentRuntime`, by coroutines.

It knows no message without an answer to one agent: told are messages all at once, then their answers are awaited. An
agent is never stopped by itself.
"""

import asyncio
import gc
import time
from collections.abc import Awaitable
from typing import Any

from autogen_core import AgentId, BaseAgent, MessageContext, SingleThreadedAgentRuntime

from benchmarks.measure import process_memory
from benchmarks.peers.actors import Figures, Work


class Handler(BaseAgent):  # type: ignore[misc]  # a peer that may not be installed
    """An agent that does nothing with a message."""

    async def on_message_impl(self, message: Any, ctx: MessageContext) -> None:
        """Handle one message."""


def measure(work: Work) -> Figures:
    """See `benchmarks.peers.actors.Peer`."""
    return asyncio.run(_measure(work))


def idle(number: int) -> float:
    """See `benchmarks.peers.actors.Peer`."""
    return asyncio.run(_idle(number))


async def _measure(work: Work) -> Figures:
    figures: Figures = {}
    for size in work.made:
        runtime = await _runtime()
        began = time.perf_counter()
        await _start(runtime, size)
        figures["start", size] = size / (time.perf_counter() - began)
    runtime = await _runtime()
    runtime.start()
    for size in work.bursts:
        rounds = work.rounds(size)
        [one] = await _start(runtime, 1)
        figures["tell", size] = size * rounds / await _seconds(_tell(runtime, [one] * size, rounds))
    for size in work.fans:
        rounds, many = work.rounds(size), await _start(runtime, size)
        figures["fan-out", size] = size * rounds / await _seconds(_tell(runtime, many, rounds))
    for size in work.asks:
        [one] = await _start(runtime, 1)
        figures["ask", size] = size / await _seconds(_ask(runtime, one, size))
    await runtime.stop_when_idle()
    await runtime.close()
    return figures


async def _idle(number: int) -> float:
    runtime = await _runtime()
    gc.collect()
    before = process_memory()
    await _start(runtime, number)
    gc.collect()
    return (process_memory() - before) / number


async def _runtime() -> Any:
    runtime = SingleThreadedAgentRuntime(ignore_unhandled_exceptions=False)
    await Handler.register(runtime, "handler", lambda: Handler("handles messages"))
    return runtime


async def _start(runtime: Any, count: int) -> list[AgentId]:
    return [await runtime.get("handler", str(place), lazy=False) for place in range(count)]


async def _tell(runtime: Any, agents: list[AgentId], rounds: int) -> None:
    for _ in range(rounds):
        await asyncio.gather(*(runtime.send_message("nothing", agent) for agent in agents))


async def _ask(runtime: Any, agent: AgentId, count: int) -> None:
    for _ in range(count):
        await runtime.send_message("nothing", agent)


async def _seconds(work: Awaitable[None]) -> float:
    gc.collect()
    began = time.perf_counter()
    await work
    return time.perf_counter() - began
