"""A model that is asked through the batches of its service: for an agent whose setting ``urgency`` lets it wait.

The request becomes a row, and nothing stays awake for it: no thread, no timer, no connection. Its body is written when
it joins, since another host may send it, which has not this agent's tools. The answer comes to the turn as any other.
Where no batch answers in time, the model is asked directly.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import NamedTuple, Protocol

from ikigai_actors.errors import IkigaiError, ProviderError
from ikigai_actors.frozen import replace
from ikigai_actors.providers.base import Delta, OnDelta, Provider, Reply, Request, Spent, Usage
from ikigai_actors.providers.batches import BatchService
from ikigai_actors.records.batches import BatchAnswer

_BYTES = 3
"""Bytes that are expected to be a token."""


class BatchQuestion(NamedTuple):
    """A request that may wait for a batch."""

    service: str
    """``provider:model``: the requests of a batch are to one model."""
    agent: str
    position: int
    """The head of the history that it sends."""
    body: bytes
    patience: int
    """Milliseconds for which it may wait."""


Sealed = Callable[[], object]
"""Called when a request has been put into a batch: from now on it may be paid for."""

HandOver = Callable[[BatchAnswer | IkigaiError], object]
"""Takes what came of a request."""


class BatchDesk(Protocol):
    """Where requests wait for batches."""

    def join(self, question: BatchQuestion, sealed: Sealed, hand_over: HandOver) -> None:
        """Let a request wait; the callbacks run on any thread. Never waits."""

    def leave(self, question: BatchQuestion) -> None:
        """Forget a request; one that is not sealed is not sent. Never waits."""


class BatchedProvider:
    """Asks a provider through its batches."""

    def __init__(
        self,
        provider: Provider,
        service: BatchService,
        desk: BatchDesk,
        model: str,
        position: int,
        patience: int,
        gate: AbstractAsyncContextManager[object] | None,
    ) -> None:
        """Put the parts together.

        Args:
            provider: answers where no batch does.
            service: the same, as it makes batches.
            model: ``provider:model``.
            position: see `BatchQuestion`, and so the next one.
            patience: see there.
            gate: the queue before the provider, for what is asked directly.
        """
        self.name = provider.name
        self._provider, self._service, self._desk = provider, service, desk
        self._model, self._position, self._patience, self._gate = model, position, patience, gate

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        """Wait for the answer of a batch. Raises `ProviderError`."""
        body = await self._service.batch_body(request)
        question = BatchQuestion(self._model, request.agent, self._position, body, self._patience)
        answer = await self._waited(question, on_delta)
        if isinstance(answer, IkigaiError):
            raise ProviderError(f"The request could not wait for a batch: {answer}", free=True) from answer
        match answer.state:
            case "answered":
                assert answer.result is not None
                return replace(self._service.batch_reply(request, answer.result), batched=True)
            case "failed":
                on_delta(Delta(spent=Spent(Usage())))
                raise ProviderError(f"The batches of {self._model} refused the request: {answer.result}", free=True)
        on_delta(Delta(spent=Spent(Usage())))
        async with self._gate or nullcontext():
            return await self._provider.respond(request, on_delta)

    async def close(self) -> None:
        """Close nothing: the provider is closed by itself."""

    async def _waited(self, question: BatchQuestion, on_delta: OnDelta) -> BatchAnswer | IkigaiError:
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[BatchAnswer | IkigaiError] = loop.create_future()

        def take(answer: BatchAnswer | IkigaiError) -> None:
            if not waiting.done():
                waiting.set_result(answer)

        def charge() -> None:  # an agent that is interrupted from now on has spent about this
            if not waiting.done():
                on_delta(Delta(spent=Spent(Usage(len(question.body) // _BYTES))))

        def hand_over(answer: BatchAnswer | IkigaiError) -> None:
            loop.call_soon_threadsafe(take, answer)

        self._desk.join(question, lambda: loop.call_soon_threadsafe(charge), hand_over)
        try:
            return await waiting
        except asyncio.CancelledError:
            self._desk.leave(question)
            raise
