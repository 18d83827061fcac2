"""The stream of events of one agent, for one client."""

import asyncio
from collections.abc import Callable
from typing import Any

from ag_ui.core import BaseEvent
from ag_ui.encoder import EventEncoder

from ikigai_actors.doors.agui.transcript import WebTranscript
from ikigai_actors.http_server.answers import SentEventStream
from ikigai_actors.reach.access import Access
from ikigai_actors.reach.news import NewsWatch, ReplyHeard
from ikigai_actors.reach.scrollback import Scrollback
from ikigai_actors.reach.views import scrollback_of
from ikigai_actors.records.messages.messages import Kind, Message

LOOK_AGAIN = 1.0
"""Seconds after which a waiting stream checks whether its client is still connected."""

_PAGE = 200
"""The number of messages that are read in one query."""

_ENCODER = EventEncoder()


class AgentStream:
    """Sends the events of one agent to one client, in order."""

    def __init__(
        self, stream: SentEventStream, news: NewsWatch, scrollback: Scrollback, transcript: WebTranscript
    ) -> None:
        self._stream, self._news, self._scrollback, self._transcript = stream, news, scrollback, transcript

    @classmethod
    async def after(
        cls, place: int, access: Access, stream: SentEventStream, news: NewsWatch, **more: Any
    ) -> "AgentStream":
        """Return a stream that begins after a message of the agent; ``more`` are arguments of its transcript.

        Raises `IkigaiError`.
        """
        scrollback = await asyncio.to_thread(scrollback_of, access.client, str(news.agent))
        boundary = await asyncio.to_thread(latest_of, scrollback, place, lambda call: call.ends_pieces)
        reply = await asyncio.to_thread(
            latest_of, scrollback, place, lambda call: call.kind in (Kind.ASSISTANT, Kind.USER)
        )
        return cls(stream, news, scrollback, WebTranscript(place, boundary, reply, **more))

    @property
    def place(self) -> int:
        """Return the position of the latest message that was sent."""
        return self._transcript.place

    def news(self) -> ReplyHeard:
        """Return the latest state of the agent's reply in progress."""
        return self._news.since(self._transcript.seen)

    async def wait(self) -> None:
        """Wait until an event has come, or a second has passed."""
        await self._news.news(LOOK_AGAIN)

    async def send_messages(self, until: int) -> None:
        """Send the messages up to a position to the client. Raises `IkigaiError` and `ConnectionError`."""
        while (place := self._transcript.place) < until:
            end = min(until, place + _PAGE)
            for message in await asyncio.to_thread(self._scrollback.between, place, end):
                events = [*self._transcript.message(message)]
                for event in events[:-1]:
                    await send_event(self._stream, event)
                for event in events[-1:]:
                    await send_event(self._stream, event, f"id: {message.id}\n")
            self._transcript.place = end

    async def send_reply(self, news: ReplyHeard) -> None:
        """Send the new part of the reply in progress. Raises `ConnectionError`."""
        for event in () if news.goes_on else self._transcript.cut():
            await send_event(self._stream, event)
        for event in () if news.piece is None else self._transcript.piece(self._scrollback.uuid, news.piece):
            await send_event(self._stream, event)


async def send_event(stream: SentEventStream, event: BaseEvent, line: str = "") -> None:
    """Send an event to the client, after a further line. Raises `ConnectionError`."""
    await stream.write(line + _ENCODER.encode(event))


def latest_of(scrollback: Scrollback, place: int, wanted: Callable[[Message], bool]) -> int:
    """Return the latest matching message up to a position; 0 for none. Raises `IkigaiError`."""
    for end in range(place, 0, -_PAGE):
        for message in reversed(scrollback.between(max(0, end - _PAGE), end)):
            if wanted(message):
                return message.id
    return 0
