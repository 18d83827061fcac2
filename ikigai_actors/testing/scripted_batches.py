"""A scripted provider whose service has batches, for agents with the setting ``urgency``.

    provider = ScriptedBatches(lambda request: f"{len(request.messages)} messages")
    with simulated() as world:
        world.open(provider)
        ...
        assert len(provider.paid) == 1

The provider keeps the batches that it was sent, as a service does, so it can be passed to a system that is opened
again. Like the strictest services it accepts no idempotency key and does not store our name of a batch: only the
results show which batch is whose.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict

from ikigai_actors.errors import ProviderError
from ikigai_actors.providers.base import OnDelta, Reply, Request, ToolCall, Usage
from ikigai_actors.providers.batches import BatchRequest, BatchResult, ListedBatch, MemberOutcome
from ikigai_actors.providers.scripted import Script, ScriptedProvider


class ScriptedBatches(ScriptedProvider):
    """A scripted provider with batches. An agent's request takes its reply from the script when it joins a batch."""

    counts = True

    def __init__(self, replies: Script, polls: int = 1) -> None:
        """Begin without batches.

        Args:
            replies: The script, as in `ScriptedProvider`.
            polls: how many times a batch must be asked for before it has ended.
        """
        super().__init__(replies)
        self.paid: list[str] = []
        """The bodies that were answered, one for each time that a body was paid for."""
        self.direct = 0
        """How many requests were answered without a batch."""
        self.lost_orders = 0
        """The number of next batches that the service accepts while its answer is lost."""
        self.refused_orders = 0
        """The number of next batches that the service refuses."""
        self.outcomes: list[str] = []
        """The kinds of the next results, where they are no ``succeeded``."""
        self.cancelled: list[str] = []
        """The batches that the runtime has asked to cancel."""
        self._polls = polls
        self._batches: dict[str, tuple[Sequence[BatchRequest], list[BatchResult]]] = {}
        self._asked: dict[str, int] = {}

    def takes_batches(self) -> bool:
        """Return True: this provider has batches."""
        return True

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        """Answer a request outside of any batch, and count it."""
        self.direct += 1
        return await super().respond(request, on_delta)

    async def batch_body(self, request: Request) -> bytes:
        """Return the request body: the conversation, with the scripted reply."""
        reply = await super().respond(request, lambda delta: None)
        return json.dumps([request.agent, list(request.messages), asdict(reply)], default=str).encode()

    def batch_reply(self, request: Request, result: str) -> Reply:
        """Return the reply in the result of a batch for a request."""
        reply = json.loads(result)
        calls = tuple(ToolCall(**call) for call in reply["tool_calls"])
        usage = None if reply["usage"] is None else Usage(**reply["usage"])
        return Reply(reply["text"], calls, reply["stop_reason"], usage, tuple(reply["blocks"]), reply["model"])

    async def create_batch(self, id: str, requests: Sequence[BatchRequest]) -> str:  # noqa: A002 - its field's name
        """Accept a batch, refuse it, or accept it without an answer. Raises `ProviderError`."""
        if self.refused_orders:
            self.refused_orders -= 1
            raise ProviderError("400: no such model", free=True)
        remote = f"batch_{len(self._batches) + 1}"
        self._batches[remote] = requests, []
        if self.lost_orders:
            self.lost_orders -= 1
            raise ProviderError("the connection broke", unavailable=True)
        return remote

    async def listed_batches(self) -> Sequence[ListedBatch]:
        """Return all accepted batches, without the names that the runtime gave them."""
        for remote in self._batches:
            self._asked[remote] = self._asked.get(remote, 0) + 1
        return self.orders[::-1]

    @property
    def orders(self) -> list[ListedBatch]:
        """Return the batches that were accepted, the oldest first."""
        batches = self._batches.items()
        return [ListedBatch(remote, len(requests), self._has_ended(remote), None) for remote, (requests, _) in batches]

    async def has_ended(self, remote: str) -> bool:
        """Return whether the batch has been asked for often enough."""
        self._asked[remote] = self._asked.get(remote, 0) + 1
        return self._has_ended(remote)

    async def batch_results(self, remote: str) -> Sequence[BatchResult]:
        """Return the results, in reverse order, and the same each time."""
        requests, results = self._batches[remote]
        if not results:
            results += [BatchResult(request.custom_id, self._outcome(request.body)) for request in requests]
        return results[::-1]

    async def cancel_batch(self, remote: str) -> None:
        """Cancel the rest of a batch. Results that exist stay."""
        self.cancelled.append(remote)

    def _has_ended(self, remote: str) -> bool:
        return self._asked.get(remote, 0) >= self._polls

    def _outcome(self, body: bytes) -> MemberOutcome:
        kind = self.outcomes.pop(0) if self.outcomes else "succeeded"
        if kind != "succeeded":
            return MemberOutcome(kind, f"{kind}: so it was scripted")
        agent, messages, reply = json.loads(body)
        self.paid.append(json.dumps([agent, len(messages)]))
        return MemberOutcome("succeeded", json.dumps(reply))
