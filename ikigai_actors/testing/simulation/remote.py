"""The outside of a simulation: providers and tools on a network with delays and faults.

Requests, replies, calls and results arrive when the agenda chooses them, so they may overtake one another and any work
of the runtime. No random choice is made within other people's code: a fault is drawn when something arrives.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from ikigai_actors.errors import ProviderError
from ikigai_actors.providers.base import Delta, OnDelta, Provider, Reply, Request
from ikigai_actors.providers.batches import BatchRequest, BatchResult, BatchService, ListedBatch, batches_of
from ikigai_actors.testing.simulation.process import Process
from ikigai_actors.testing.simulation.scheduler import Entry
from ikigai_actors.tools.function import Result, Tool
from ikigai_actors.tools.policy import ToolTraits

T = TypeVar("T")

LATE = "This reply comes too late."
"""The text of a late answer by a provider that ignores cancellation."""


class RemoteProvider(Provider):
    """A provider on a simulated network."""

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

    async def give_up(self, reply: str) -> None:
        """Call the inner provider's ``give_up`` for a reply that nobody reads any more, if the provider has it."""
        if (give_up := getattr(self._inner, "give_up", None)) is not None:
            await give_up(reply)

    async def close(self) -> None:
        await self._inner.close()

    async def _arrives(self, what: str, *faults: str) -> str:
        """Wait until the agenda chooses this arrival; return the fault that was drawn then, or an empty text."""
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


class RemoteBatches(RemoteProvider, BatchService):
    """A provider with batches on a simulated network."""

    def __init__(self, inner: Provider, service: BatchService, process: Process) -> None:
        super().__init__(inner, process)
        self._service = service

    def takes_batches(self) -> bool:
        return True

    async def batch_body(self, request: Request) -> bytes:
        self._process.asked(request)  # the judges hear of each request; it leaves later, without a word of it here
        return await self._service.batch_body(request)

    def batch_reply(self, request: Request, result: str) -> Reply:
        return self._service.batch_reply(request, result)

    async def create_batch(self, id: str, requests: Sequence[BatchRequest]) -> str:  # noqa: A002 - its field's name
        return await self._asked(f"batch {id}", lambda: self._service.create_batch(id, requests))

    async def listed_batches(self) -> Sequence[ListedBatch]:
        return await self._asked("the list of batches", self._service.listed_batches)

    async def has_ended(self, remote: str) -> bool:
        return await self._asked(f"the state of {remote}", lambda: self._service.has_ended(remote))

    async def batch_results(self, remote: str) -> Sequence[BatchResult]:
        return await self._asked(f"the results of {remote}", lambda: self._service.batch_results(remote))

    async def cancel_batch(self, remote: str) -> None:
        await self._asked(f"the end of {remote}", lambda: self._service.cancel_batch(remote))

    async def _asked(self, what: str, ask: Callable[[], Awaitable[T]]) -> T:
        """Send a request to the service, and return its answer. Either may be lost."""
        if await self._arrives(f"the question for {what} arrives", "errors") == "errors":
            raise ProviderError("The question was lost, as the simulation will have it.", unavailable=True)
        answer = await ask()
        if await self._arrives(f"the answer to {what} arrives", "cuts") == "cuts":
            raise ProviderError("The answer was lost, as the simulation will have it.", unavailable=True)
        return answer


def remote_provider(inner: Provider, process: Process) -> RemoteProvider:
    """Put a provider, with its batches if it has any, on a simulated network."""
    service = batches_of(inner)
    return RemoteProvider(inner, process) if service is None else RemoteBatches(inner, service, process)


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
