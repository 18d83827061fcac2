"""Microsoft Agent Framework, which succeeds AutoGen: executors of a workflow.

What one sends is delivered to the others in the next of the workflow's steps. Told are messages of one source, which
sends them all in one step; an ask is a run of a workflow that yields one output. Executors have edges to all that they
send to, so to start them is to build the workflow. None is stopped by itself.
"""

import asyncio
import gc
import time
from collections.abc import Awaitable
from typing import Any, Never

from agent_framework import Executor, Workflow, WorkflowBuilder, WorkflowContext, handler

from benchmarks.measure import process_memory
from benchmarks.peers.actors import Figures, Work


class Handler(Executor):
    """An executor that does nothing with a message."""

    @handler
    async def handle(self, message: str, ctx: WorkflowContext[str]) -> None:
        """Handle one message."""


class Answerer(Executor):
    """An executor that answers a message."""

    @handler
    async def handle(self, message: str, ctx: WorkflowContext[Never, str]) -> None:
        """Answer one message."""
        await ctx.yield_output(message)


class Source(Executor):
    """An executor that sends a message to all whom it reaches, again and again."""

    def __init__(self, times: int) -> None:
        super().__init__(id="source")
        self._times = times

    @handler
    async def handle(self, message: str, ctx: WorkflowContext[str]) -> None:
        """Send the messages."""
        for _ in range(self._times):
            await ctx.send_message(message)


def measure(work: Work) -> Figures:
    """See `benchmarks.peers.actors.Peer`."""
    return asyncio.run(_measure(work))


def idle(number: int) -> float:
    """See `benchmarks.peers.actors.Peer`."""
    gc.collect()
    before = process_memory()
    workflow = _built(1, number)
    gc.collect()
    size = (process_memory() - before) / number
    del workflow
    return size


async def _measure(work: Work) -> Figures:
    figures: Figures = {}
    for size in work.made:
        began = time.perf_counter()
        _built(1, size)
        figures["start", size] = size / (time.perf_counter() - began)
    for size in work.bursts:
        rounds = work.rounds(size)
        figures["tell", size] = size * rounds / await _seconds(_run(_built(size, 1), rounds))
    for size in work.fans:
        rounds = work.rounds(size)
        figures["fan-out", size] = size * rounds / await _seconds(_run(_built(1, size), rounds))
    workflow = WorkflowBuilder(start_executor=(answerer := Answerer(id="one")), output_from=[answerer]).build()
    for size in work.asks:
        figures["ask", size] = size / await _seconds(_run(workflow, size))
    return figures


def _built(times: int, number: int) -> Workflow:
    """A workflow in which one source sends to this many executors, this many times."""
    source, others = Source(times), [Handler(id=str(place)) for place in range(number)]
    builder = WorkflowBuilder(start_executor=source)
    edges = builder.add_edge(source, others[0]) if number == 1 else builder.add_fan_out_edges(source, others)
    return edges.build()


async def _run(workflow: Any, times: int) -> None:
    for _ in range(times):
        await workflow.run("nothing")


async def _seconds(work: Awaitable[None]) -> float:
    gc.collect()
    began = time.perf_counter()
    await work
    return time.perf_counter() - began
