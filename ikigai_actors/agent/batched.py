"""Asks a model through the batches of its service, for agents whose setting ``urgency`` allows a delay.

The request becomes a row in the database, and occupies no thread, timer or connection while it waits. The row has the
whole body of the request, because another host, without this agent's tools, may send the batch. The turn gets the
answer like any other. If no batch answers in time, the model is asked directly.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from itertools import chain
from typing import NamedTuple, Protocol

from ikigai_actors.errors import IkigaiError, ProviderError
from ikigai_actors.frozen import replace
from ikigai_actors.providers.base import Delta, OnDelta, Provider, Reply, Request, Spent, Usage
from ikigai_actors.providers.batches import BatchService
from ikigai_actors.records.batches import BatchAnswer
from ikigai_actors.records.log.log import Log, NotHeld
from ikigai_actors.records.messages.messages import Kind, Message

_BYTES = 3
"""Bytes that are expected to be a token."""


class BatchQuestion(NamedTuple):
    """A model request that may be answered through a batch of its service."""

    service: str
    """The model, ``provider:model``. All requests of a batch are to one model."""
    agent: str
    position: int
    """The position of the latest message in the history that the request sends."""
    body: bytes
    patience: int
    """The most milliseconds for which the request may wait for its batch."""


Sealed = Callable[[], object]
"""Called when a request has become part of a batch. From then on it may be paid for."""

HandOver = Callable[[BatchAnswer | IkigaiError], object]
"""Takes the answer of the batch to a request, or an error."""


class BatchDesk(Protocol):
    """Collects requests that wait for batches."""

    def join(self, question: BatchQuestion, sealed: Sealed, hand_over: HandOver) -> None:
        """Add a request to those that wait for a batch. Never waits.

        Args:
            question: the request.
            sealed: called when the request has left in a batch; on any thread.
            hand_over: called with the answer; on any thread.
        """

    def leave(self, question: BatchQuestion) -> None:
        """Remove a request from those that wait. If it is in no batch yet, it is not sent. Never waits."""


def answered_position(log: Log | None, head: int, new: Sequence[Message] = ()) -> int:
    """Return the position of the message that a request answers: before births and notes that came since.

    Args:
        log: the log of the agent; None while it is not in memory.
        head: the position of the latest message.
        new: the latest messages, which no log has yet.
    """
    if new and new[-1].kind not in (Kind.NOTE, Kind.FORK):  # nearly always
        return new[-1].id
    with suppress(NotHeld):
        for message in chain(reversed(new), () if log is None else log.newest_first()):
            if message.kind != Kind.NOTE and not message.announces_birth:
                return message.id
    return head


class BatchedProvider:
    """A provider that gets its answers through the batches of another provider's service."""

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
        """Wrap a provider whose service has batches.

        Args:
            provider: answers directly if no batch does in time.
            service: the batch service of that provider.
            desk: collects the requests that wait for batches.
            model: ``provider:model``.
            position: the position of the latest message in the history that is sent.
            patience: the most milliseconds to wait for the batch.
            gate: the queue before the provider, for direct requests.
        """
        self.name = provider.name
        self._provider, self._service, self._desk = provider, service, desk
        self._model, self._position, self._patience, self._gate = model, position, patience, gate

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        """Wait for the answer of a batch, or ask directly. Raises `ProviderError`."""
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
        """Do nothing: the owner of the provider closes it."""

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
