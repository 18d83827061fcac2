"""A turn as it happens: the pieces of its replies, its calls and their results, and the reply at the end.

    with agent.stream("Plan the mast.") as stream:
        for piece in stream:
            print(piece.text, end="")
    stream.reply.text

The subscription begins before the prompt is sent, so nothing of the turn is missed, whichever host runs the agent.
Events before the agent took the prompt up belong to an earlier turn and are left out. The turn is over when its
outcome is known, which is published after all its messages.

A text comes in pieces as the model sends it. If a model does not stream, or its pieces were lost with a host, the
missing text is taken from the committed message. After ``retry`` the text of the reply begins again.
"""

import weakref
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, Self

from ikigai_actors.actors.beside import Beside
from ikigai_actors.actors.closing import ClosedByBlock
from ikigai_actors.actors.futures import Future
from ikigai_actors.agent.subscriptions import Callback, Event, StreamCut, Streamed, Subscription
from ikigai_actors.frozen import NO_DATA
from ikigai_actors.providers.base import Reply
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.replies import calls_in
from ikigai_actors.system.event_feed import AsyncFace, EventInbox
from ikigai_actors.text import storable

TEXT, THINKING, CALL, RESULT, RETRY = "text", "thinking", "call", "result", "retry"
_OUTCOME = "outcome"
"""A kind of event that is never stored: the outcome of the turn is known."""


@dataclass(frozen=True, slots=True)
class StreamPiece:
    """A piece of a turn: text, thinking, a call, a result, or the notice of a retry."""

    kind: str
    """``text``, ``thinking``, ``call``, ``result`` or ``retry``."""
    text: str
    """The text itself; of a call the tool's name, of a result its words, of a retry the reason."""
    position: int = 0
    """The position of the message that it is of; 0 for a piece of a reply that is not committed yet."""


class PieceMaker:
    """Converts the events of one agent to the pieces of a stream."""

    def __init__(self, prompt: str | None) -> None:
        """Begin with the prompt that opens the turn; with None, in the turn that is open."""
        self._prompt = prompt
        self._begun = prompt is None
        self._streamed = ""

    def pieces_of(self, event: Event) -> Iterator[StreamPiece]:
        """Yield the pieces that an event brings."""
        if not self._begun:
            self._begun = isinstance(event, Message) and event.kind == Kind.USER and event.content == self._prompt
            return
        match event:
            case Streamed():
                self._streamed += event.text if event.kind == TEXT else ""
                yield StreamPiece(event.kind, event.text)
            case StreamCut():
                yield self._again("The reply was cut off: its host has ended, or the agent has moved.", 0)
            case Message(kind=Kind.RETRY):
                yield self._again(event.content, event.id)
            case Message(kind=Kind.ASSISTANT | Kind.OUTPUT):
                yield from self._finished(event)
            case Message(kind=Kind.TOOL_RESULT):
                yield StreamPiece(RESULT, event.content, event.id)

    def _again(self, why: str, position: int) -> StreamPiece:
        self._streamed = ""
        return StreamPiece(RETRY, why, position)

    def _finished(self, message: Message) -> Iterator[StreamPiece]:
        streamed, self._streamed = storable(self._streamed), ""
        if not message.content.startswith(streamed):
            yield StreamPiece(RETRY, "The reply differs from what was received of it.", message.id)
            streamed = ""
        if rest := message.content[len(streamed) :]:
            yield StreamPiece(TEXT, rest, message.id)
        for call in calls_in(message):
            yield StreamPiece(CALL, call.name, message.id)


class Streaming(Protocol):
    """A system, as far as a stream needs it."""

    _beside: Beside

    def subscribe(self, callback: Callback, only: tuple[type, ...] = ()) -> Subscription:
        """Call the callback for each event."""


class ReplyStream(ClosedByBlock):
    """The pieces of one turn: an iterator, and a context manager. For one thread at a time."""

    def __init__(self, system: Streaming, uuid: str, prompt: str | None, ask: Callable[[], Future[Reply]]) -> None:
        """Subscribe to the events of the agent, then open the turn.

        Args:
            system: the system.
            uuid: the agent.
            prompt: the text of the prompt that opens the turn; None for the turn in progress.
            ask: opens the turn; returns a future of its outcome.
        """
        inbox = EventInbox()

        def hear(event: Event) -> None:  # knows no stream: one that nobody holds any more ends by itself
            if getattr(event, "agent", None) == uuid:
                inbox.put(event)

        self._inbox, self._maker = inbox, PieceMaker(prompt)
        self._ready: deque[StreamPiece] = deque()
        self._over = False
        subscription = system.subscribe(hear, (Message, Streamed, StreamCut))
        self._end = weakref.finalize(self, subscription.close)
        subscription.on_end(lambda: inbox.put(None))
        try:
            self.outcome = ask()
            """The outcome of the turn."""
        except BaseException:
            self._end()
            raise
        outcome = Message(uuid, 0, _OUTCOME, "", NO_DATA, 0)
        self.outcome.add_done_callback(lambda _: subscription.add(outcome))  # after the messages of the turn

    @property
    def reply(self) -> Reply:
        """The reply that ends the turn; waits for it. Raises the errors of ``prompt(...).get()``."""
        return self.outcome.get()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> StreamPiece:
        while not self.has_ready:
            if self.is_over:
                raise StopIteration
            self.arrival().get()
        return self.pop()

    def close(self) -> None:
        """Stop receiving pieces. The turn goes on. Pieces that were not read yet are dropped."""
        self._over = True
        self._ready.clear()
        self._end()

    @property
    def has_ready(self) -> bool:
        """Return whether `pop` has a piece to return."""
        for event in self._inbox.drain():
            if event is None or (isinstance(event, Message) and event.kind == _OUTCOME):
                self._over = True
                self._end()
            elif not self._over:
                self._ready += self._maker.pieces_of(event)
        return bool(self._ready)

    @property
    def is_over(self) -> bool:
        """Return whether no more pieces will come."""
        return self._over and not self._ready

    def arrival(self) -> "Future[None]":
        """Return a future that is settled when a piece, or the end, has arrived."""
        return self._inbox.arrival()

    def pop(self) -> StreamPiece:
        """Return the next piece that is ready."""
        return self._ready.popleft()


class AsyncReplyStream(AsyncFace[ReplyStream]):
    """The pieces of one turn for an asyncio program: an asynchronous iterator and context manager."""

    @property
    def reply(self) -> "Future[Reply]":
        """The reply that ends the turn, to be awaited. Raises the errors of `prompt`."""
        return self._beside.read(lambda: self._opening.get().reply)

    async def __anext__(self) -> StreamPiece:
        stream = await self._opening
        while not stream.has_ready:
            if stream.is_over:
                raise StopAsyncIteration
            await stream.arrival()
        return stream.pop()
