"""The stream of all agents in reach: ``GET /v1/events``.

    event: message      a message of a log, with its agent
    event: died         the death of an agent
    id: …               from time to time: the position of the feed; a client that connects again sends it as
                        Last-Event-ID

After a reconnect a client may get events again that came after the latest id: delivery is at least once, in the order
of each agent's log. For a slow client only the next events are kept, and no thread waits for it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from time import monotonic
from typing import Any

from ikigai_actors.http_server.answers import SentEventStream
from ikigai_actors.reach.branch_feed import BranchFeed
from ikigai_actors.reach.reading import message_as_json
from ikigai_actors.records.agents.registry import Died

OnThread = Callable[[Callable[[], Any]], Awaitable[Any]]

PLACED_EVERY = 100
"""The most events after which a stream sends its position."""

PLACED_AFTER = 1.0
"""The most seconds after which a stream sends its position."""


async def stream_feed(
    feed: BranchFeed,
    stream: SentEventStream,
    ending: asyncio.Event,
    on_thread: OnThread,
    quiet: float,
) -> None:
    """Stream a feed until the client disconnects or the server shuts down.

    Args:
        feed: the feed; it is closed at the end.
        stream: the stream to the client; not begun yet.
        ending: is set when the server shuts down.
        on_thread: runs work that waits for a database.
        quiet: the seconds without events after which the stream sends a keep-alive.
    """
    over = asyncio.ensure_future(ending.wait())
    unplaced, placed = 0, monotonic()
    try:
        async with stream:
            await stream.event({}, "place", feed.position)
            while not stream.is_left and not feed.is_over:
                if ending.is_set():
                    await stream.event({}, "bye", feed.position)
                    break
                while feed.has_ready:
                    event = feed.pop()
                    unplaced += 1
                    is_due = unplaced >= PLACED_EVERY or monotonic() - placed >= PLACED_AFTER or not feed.has_ready
                    place = feed.position if is_due else None
                    if isinstance(event, Died):
                        await stream.event({"agent": event.agent_uuid, "reason": event.reason}, "died", place)
                    else:
                        await stream.event(message_as_json(event), "message", place)
                    if is_due:
                        unplaced, placed = 0, monotonic()
                    if feed.must_widen(event):
                        await on_thread(feed.widen)
                if await on_thread(feed.prepare):
                    continue
                waiting = asyncio.ensure_future(_arrives(feed))
                done, _ = await asyncio.wait(
                    (waiting, stream.gone, over), timeout=quiet, return_when=asyncio.FIRST_COMPLETED
                )
                waiting.cancel()
                if not done:
                    await stream.comment()
    finally:
        over.cancel()
        await on_thread(partial(feed.close))


async def _arrives(feed: BranchFeed) -> None:
    await feed.arrival()
