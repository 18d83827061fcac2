"""The prompts of a client that are not answered yet.

A prompt is answered when its turn is over according to the database, and all messages of the turn were shown. So no
text comes after the answer, and no text is missing.
"""

import asyncio
import hashlib
import json
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextlib import suppress

from acp.schema import PromptRequest, PromptResponse, StopReason
from acp.schema import Usage as SeenUsage

from ikigai_actors.doors.acp.client_prompt import prompt_of
from ikigai_actors.doors.acp.models import dumped
from ikigai_actors.doors.acp.updates import thought_chunk
from ikigai_actors.doors.acp.view import ClientView
from ikigai_actors.doors.json_rpc import RequestId
from ikigai_actors.errors import IkigaiError, ProviderError, StoreError, TurnInterrupted
from ikigai_actors.providers.base import Reply
from ikigai_actors.reach.access import Access
from ikigai_actors.reach.turns import TurnHandle, TurnReader
from ikigai_actors.system.lifecycle import data_of
from ikigai_actors.verbs.acts.turns import end_or_take_back, kept_prompt, take_back

_LOOK = 0.5
"""Seconds between two checks of the turns that a client waits for, because a turn may end without a message."""

MOST_REQUESTS = "max_turn_requests"
STOP_REASONS: Mapping[str, StopReason] = {
    "max_tokens": "max_tokens",
    "refusal": "refusal",
    MOST_REQUESTS: "max_turn_requests",
}
"""The protocol's names for the reasons why a turn ended. Any other reason is ``end_turn``."""


class Prompts:
    """The prompts of one client that were not answered yet."""

    def __init__(self, access: Access, view: ClientView, pool: Executor) -> None:
        """Begin without prompts. Calls that wait for the database run in ``pool``."""
        self._access, self._view, self._pool = access, view, pool
        self._loop = asyncio.get_running_loop()
        self._connection = secrets.token_hex(16)
        self._waiting: dict[TurnHandle, asyncio.Future[PromptResponse]] = {}
        self._kept: dict[RequestId | None, tuple[object, asyncio.Future[TurnHandle]]] = {}
        """The session of each request that is not answered, and the handle of its prompt, once that is kept."""
        self._to_store: set[RequestId | None] = set()
        """The requests whose prompts are not on their way to the database yet: a cancel ends them without a trace."""
        self._withdrawing: set[TurnHandle] = set()
        """The prompts that are being withdrawn. Between that commit and its answer a look finds that they have no turn,
        which would be an error.
        """

    @property
    def _turns(self) -> TurnReader:
        return self._access.turns

    async def watch(self) -> None:
        """Check, again and again, whether turns that the client waits for have ended."""
        while True:
            await asyncio.sleep(_LOOK)
            if self._waiting:
                with suppress(IkigaiError):
                    await self._loop.run_in_executor(self._pool, self._look)

    async def answer(self, number: RequestId | None, asked: PromptRequest, ready: asyncio.Event) -> PromptResponse:
        """Store a prompt once the door is ready, and wait for the end of its turn.

        The request is registered before anything is awaited: a cancel that comes right after it finds it. The prompt
        is stored one round of the loop later: once it is there, its turn may begin and ask the model at any time.
        """
        kept: asyncio.Future[TurnHandle] = self._loop.create_future()
        self._kept[number] = (asked.session_id, kept)
        self._to_store.add(number)
        handle: TurnHandle | None = None
        try:
            await ready.wait()
            await asyncio.sleep(0)
            self._to_store.discard(number)
            if kept.cancelled():
                return PromptResponse(stop_reason="cancelled")
            handle = await self._loop.run_in_executor(self._pool, self._keep, number, asked)
            end: asyncio.Future[PromptResponse] = self._loop.create_future()
            self._waiting[handle] = end
            kept.set_result(handle)
            await self._loop.run_in_executor(self._pool, self._look)
            return await end
        finally:
            kept.cancel()
            self._to_store.discard(number)
            self._kept.pop(number, None)
            if handle is not None:
                self._waiting.pop(handle, None)

    def _keep(self, number: RequestId | None, asked: PromptRequest) -> TurnHandle:
        """Store a prompt once for a request, even if the client repeats the request; return its handle."""
        uuid, said = self._access.find(asked.session_id).uuid, prompt_of(asked.prompt)
        data, blobs = data_of(None, list(said.attached))
        digest = hashlib.sha256(json.dumps([self._connection, number]).encode()).hexdigest()
        fields = {"agent": uuid, "prompt": dumped(asked)["prompt"]}
        keyed = self._access.keyed(f"acp {digest}", "session/prompt", fields)
        handle = kept_prompt(keyed, uuid, said.text, data=data, blobs=blobs)
        if self._access.find(uuid).turn:
            waits = "Your prompt waits until the turn in progress is over."
            with self._view.lock:
                self._view.show(uuid, [thought_chunk(waits, f"{uuid}:m{handle.number}")])
        return handle

    def _look(self) -> None:
        with self._view.lock:
            self.answer_ended()

    def answer_ended(self, agent: str | None = None) -> None:
        """Answer the prompts, of one agent or all, that have ended and whose messages the client was shown completely.

        The caller holds the view's lock.
        """
        for handle in list(self._waiting):  # the loop changes them meanwhile
            if agent is None or handle.agent == agent:
                try:
                    end = self._end(handle)
                except StoreError:  # it is looked at again soon
                    continue
                except IkigaiError as error:
                    end = error
                if end is not None:
                    self._loop.call_soon_threadsafe(self._settle, handle, end)

    def _end(self, handle: TurnHandle) -> object:
        """Return the end of a turn; None while the turn is open, or the client was not shown all of it."""
        seen = self._turns.seen(handle)
        if seen.end is None or self._view.heard.get(handle.agent, 0) < seen.position:
            return None
        if isinstance(seen.end, ProviderError) and self._turns.steps_ended(seen):
            return Reply("", stop_reason=MOST_REQUESTS)
        return seen.end

    def _settle(self, handle: TurnHandle, end: object) -> None:
        future = self._waiting.get(handle)
        if future is None or future.done() or handle in self._withdrawing:
            return
        if isinstance(end, Reply):
            future.set_result(_ended(end))
        elif isinstance(end, TurnInterrupted):
            future.set_result(PromptResponse(stop_reason="cancelled"))
        elif isinstance(end, IkigaiError):
            future.set_exception(end)

    async def cancel(self, session: str) -> None:
        """End the turn of a session's agent, and withdraw its earlier prompts that still wait.

        The tasks of one client begin in the order of its lines, so earlier prompts are registered already.
        """
        before = [(number, kept) for number, (of, kept) in self._kept.items() if of == session]
        for number, kept in before:
            if number in self._to_store:
                kept.cancel()
        with suppress(IkigaiError):
            uuid = (await self._loop.run_in_executor(self._pool, self._access.find, session)).uuid
            for _, kept in before:
                if (handle := await _outcome(kept)) is not None:
                    await self._withdraw(handle, take_back)
            if turn := (await self._loop.run_in_executor(self._pool, self._access.find, session)).turn:
                await self._interrupt(uuid, turn)

    async def give_up(self, number: RequestId | None) -> None:
        """End the turn of a prompt, or withdraw the prompt if it still waits."""
        prompt = self._kept.get(number)
        with suppress(IkigaiError):
            handle = None if prompt is None else await _outcome(prompt[1])
            if handle is not None:
                await self._withdraw(handle, end_or_take_back)

    async def _withdraw(self, handle: TurnHandle, how: Callable[[Access, TurnHandle], bool]) -> None:
        """Withdraw a prompt, if its turn has not begun, and answer it."""
        self._withdrawing.add(handle)
        try:
            withdrawn = await self._loop.run_in_executor(self._pool, how, self._access, handle)
        finally:
            self._withdrawing.discard(handle)
        if withdrawn:
            self._settle(handle, TurnInterrupted("withdrawn", handle.agent))

    async def _interrupt(self, uuid: str, turn: int) -> None:
        await self._loop.run_in_executor(self._pool, self._access.client.interrupt, uuid, turn)


async def _outcome(kept: asyncio.Future[TurnHandle]) -> TurnHandle | None:
    """Wait until a prompt is stored, and return its handle; None if the prompt was refused."""
    await asyncio.wait([kept])
    return None if kept.cancelled() else kept.result()


def _ended(reply: Reply) -> PromptResponse:
    """Return the answer for a turn that ended with a reply, with the counted tokens of the latest request, if any."""
    reason = STOP_REASONS.get(reply.stop_reason, "end_turn")
    if (used := reply.usage) is None:
        return PromptResponse(stop_reason=reason)
    total = used.input_tokens + used.output_tokens
    usage = SeenUsage(total_tokens=total, input_tokens=used.input_tokens, output_tokens=used.output_tokens)
    return PromptResponse(stop_reason=reason, usage=usage)
