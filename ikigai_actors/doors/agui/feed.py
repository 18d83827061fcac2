"""One subscription for all streams of a door: each asks what is new of its agent, and is woken when something is.

    feed = WebFeed(access)
    async with feed.follow(uuid) as news:
        await news.wait(1.0)
        news.since((0, 0))      # how far the log has come, and what is new of the reply on its way, at one moment

Nothing is queued for a slow stream: it reads messages from the log.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from threading import Lock
from typing import NamedTuple

from ikigai_actors.agent.subscriptions import Event, StreamCut, Streamed, Subscription
from ikigai_actors.reach.access import Access
from ikigai_actors.records.agents.registry import Died
from ikigai_actors.records.messages.messages import BOUNDARIES, Message
from ikigai_actors.system.replies_on_their_way import RepliesOnTheirWay, UnseenPiece

_EVENTS = (Message, Streamed, StreamCut, Died)


class WebNews(NamedTuple):
    """The state of an agent, at one moment."""

    head: int
    """The latest message that was heard of; 0 for none."""
    goes_on: bool
    """Whether the reply that was asked about is on its way still."""
    piece: UnseenPiece | None
    """The news of the reply on its way."""


class FollowedAgent:
    """One agent, as one stream follows it. Of the event loop."""

    def __init__(self, feed: "WebFeed", agent: str) -> None:
        self._feed, self.agent, self.rung = feed, agent, asyncio.Event()

    def since(self, seen: tuple[int, int]) -> WebNews:
        """The reply on its way; ``seen`` is the reply that the stream has, and how many characters of it."""
        return self._feed.news_of(self.agent, seen)

    async def wait(self, seconds: float) -> None:
        """Return when something has come since the last time, or after this many seconds."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.rung.wait(), seconds)
        self.rung.clear()


class WebFeed:
    """Hears of agents while somebody follows one."""

    def __init__(self, access: Access) -> None:
        """Begin to rest."""
        self._access = access
        self._replies, self._heads = RepliesOnTheirWay(), dict[str, int]()
        self._lock = Lock()  # news have messages and pieces at one moment
        self._followed: dict[str, list[FollowedAgent]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._subscription: Subscription | None = None
        self._changing = asyncio.Lock()

    @asynccontextmanager
    async def follow(self, agent: str) -> AsyncIterator[FollowedAgent]:
        """Follow an agent for the length of a block. What is committed from now on is heard of."""
        self._loop = asyncio.get_running_loop()
        followed = FollowedAgent(self, agent)
        self._followed.setdefault(agent, []).append(followed)
        try:
            await self._subscribe_as_followed()
            yield followed
        finally:
            self._followed[agent].remove(followed)
            if not self._followed[agent]:
                del self._followed[agent]
            await asyncio.shield(self._subscribe_as_followed())

    def news_of(self, agent: str, seen: tuple[int, int]) -> WebNews:
        """The state of an agent."""
        with self._lock:
            goes_on = self._replies.is_open(agent, seen[0])
            return WebNews(self._heads.get(agent, 0), goes_on, self._replies.behind(agent, seen))

    async def _subscribe_as_followed(self) -> None:
        async with self._changing:
            if self._followed and self._subscription is None:
                self._replies.clear()
                self._subscription = await asyncio.to_thread(self._access.system.subscribe, self._hear, _EVENTS)
            elif not self._followed and self._subscription is not None:
                subscription, self._subscription = self._subscription, None
                await asyncio.to_thread(subscription.close)
                self._heads.clear()

    def _hear(self, event: Event) -> None:
        """Take an event, on the thread of the subscription."""
        with self._lock:
            match event:
                case Message():
                    self._heads[event.agent_uuid] = event.id
                    if event.kind in BOUNDARIES:
                        self._replies.close(event.agent_uuid)
                case Streamed(kind="text"):
                    self._replies.add(event.agent_uuid, event.text, event.at)
                case StreamCut() | Died():
                    self._replies.close(event.agent_uuid)
                case _:
                    return
        if event.agent_uuid in self._followed and self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._ring, event.agent_uuid)

    def _ring(self, agent: str) -> None:
        for followed in self._followed.get(agent, ()):
            followed.rung.set()
