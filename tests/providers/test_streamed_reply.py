"""How a streamed response is read, whatever its protocol: a flood holds nobody else, and a page may have no end."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from itertools import islice, repeat

import pytest

from ikigai_actors.providers.anthropic_reply import MessagesReply
from ikigai_actors.providers.base import Delta
from ikigai_actors.providers.event_stream import LONGEST_STREAM
from ikigai_actors.providers.malformed import MalformedStreamError
from ikigai_actors.providers.streamed_reply import NoStreamError, received
from tests.kit.messages_server.server import Says, events_of


class Flood:
    """A response whose pieces are there already: to read them never waits."""

    def __init__(self, pieces: Iterator[bytes], media: str = "text/event-stream") -> None:
        self.headers: Mapping[str, str] = {"content-type": media}
        self._pieces = pieces

    async def iter_bytes(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


def test_others_get_a_turn_between_the_pieces_of_a_flood() -> None:
    stream = [b"data: %b\n\n" % json.dumps(event).encode() for event in events_of(Says.text("one two three four"))]
    turns: list[int] = []

    async def run() -> str:
        now = 0

        async def count() -> None:
            nonlocal now
            while True:
                now += 1
                await asyncio.sleep(0)

        def hear(_: Delta) -> None:
            turns.append(now)

        counting = asyncio.create_task(count())
        reply = await received(Flood(iter(stream)), MessagesReply(), hear)
        counting.cancel()
        return reply.text

    assert asyncio.run(run()) == "one two three four"
    assert len(turns) == len(set(turns)) == 6


@pytest.mark.slow("takes a tenth of a second")
def test_a_stream_without_end_is_given_up() -> None:
    comments = b":" + bytes(2**20) + b"\n"
    with pytest.raises(MalformedStreamError, match="it does not end: 256 MB have come"):
        asyncio.run(received(Flood(repeat(comments)), MessagesReply(), lambda _: None))
    assert LONGEST_STREAM == 256 << 20


def test_of_a_page_without_end_the_beginning_is_read() -> None:
    read = 0

    def pieces() -> Iterator[bytes]:
        nonlocal read
        for piece in islice(repeat(b"<p>Welcome</p>" * 100), 50):
            read += 1
            yield piece

    with pytest.raises(NoStreamError, match="got text/html: '<p>Welcome"):
        asyncio.run(received(Flood(pieces(), "text/html"), MessagesReply(), lambda _: None))
    assert read == 2
