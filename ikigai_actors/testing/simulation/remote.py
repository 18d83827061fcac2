"""The outside of a simulation: the given providers and tools, on a way that takes time and has faults.

A request and its reply, a call and its result arrive when the agenda chooses them, so they overtake one another and
anything that the runtime does. No choice is drawn inside other people's code: a fault is drawn when something arrives.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from ikigai_actors.errors import ProviderError
from ikigai_actors.providers.base import Delta, OnDelta, Provider, Reply, Request
from ikigai_actors.testing.simulation.process import Process
from ikigai_actors.testing.simulation.scheduler import Entry
from ikigai_actors.tools.function import Result, Tool
from ikigai_actors.tools.policy import ToolTraits

LATE = "This reply comes too late."
"""The late answer of a provider that ignores cancellation."""


class RemoteProvider(Provider):
    """A provider on the other end of a network."""

    def __init__(self, inner: Provider, process: Process) -> None:
        self._inner, self._process = inner, process
        self.name = inner.name
        self.own_code = getattr(inner, "own_code", False)
        self.counts, self.max_tokens = getattr(inner, "counts", None), getattr(inner, "max_tokens", None)
        self.model = getattr(inner, "model", "")

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        process = self._process
        process.asked(request)
        fault = await self._arrives(f"the request of {request.agent} arrives", "errors", "cuts", "deaf")
        process.arrived(request)
        if fault == "errors":
            raise ProviderError("The provider is overloaded, as the simulation will have it.")
        said: list[str] = []

        def passed_on(delta: Delta) -> None:
            said.append(delta.text)
            if fault != "cuts":
                on_delta(delta)

        try:
            reply = await self._inner.respond(request, passed_on)
            if fault == "cuts":
                half = "".join(said)[: len("".join(said)) // 2]
                on_delta(Delta(half))
                raise ProviderError("The reply broke off, as the simulation will have it.", half, broke_off=True)
            await self._arrives(f"the reply to {request.agent} arrives")
        except asyncio.CancelledError:
            if fault != "deaf":
                raise
            await self._arrives(f"the reply to {request.agent} arrives late")
            process.note("reply", f"to {request.agent} comes late")
            return Reply(LATE)
        return reply

    async def close(self) -> None:
        await self._inner.close()

    async def _arrives(self, what: str, *faults: str) -> str:
        """Wait until the agenda chooses this arrival; return the fault that was drawn then, or nothing."""
        loop = asyncio.get_running_loop()
        arrived: asyncio.Future[str] = loop.create_future()
        process = self._process

        def arrive(fault: str) -> None:
            if not arrived.done():  # cancelled meanwhile
                arrived.set_result(fault)

        def choose() -> None:
            if not arrived.done() and not loop.is_closed():
                loop.call_soon_threadsafe(arrive, process.misfortune(*faults))

        process.agenda.add(Entry(what, choose, process.threads))
        return await arrived


class RemoteTool(Tool):
    """A tool that begins and ends when the agenda chooses."""

    def __init__(self, inner: Tool, process: Process) -> None:
        self._inner, self._process = inner, process

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def timeout(self) -> float:
        return self._inner.timeout

    @property
    def traits(self) -> ToolTraits:
        return self._inner.traits

    @property
    def is_async(self) -> bool:
        return self._inner.is_async

    def describe(self) -> Mapping[str, Any]:
        return self._inner.describe()

    def call(self, arguments: Mapping[str, Any]) -> Result:
        drawn: list[str] = []
        self._process.threads.pause(f"{self.name} begins", lambda: drawn.append(self._process.misfortune("slow_tools")))
        result = self._inner.call(arguments)
        if drawn[0]:
            self._process.threads.sleep(self.timeout + 1)
        self._process.threads.pause(f"{self.name} ends")
        return result

    async def call_async(self, arguments: Mapping[str, Any]) -> Result:
        return await self._inner.call_async(arguments)
