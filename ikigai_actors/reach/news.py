"""The news of agents, shared by all who wait or stream on an event loop.

    feed = NewsFeed(lambda: system)
    async with feed.watch(uuid, pieces=True) as watch:
        while await watch.news(15):             # False when nothing came in that time
            ...                                 # read what is committed; `watch.pieces()` came in between

A watch only reports that there is news. Messages are read from the log after the client's position, so a slow client
misses none, and only the latest pieces of a reply are kept for the client. Watches with pieces get pieces and messages
in one order; hosts write pieces only while a watch wants them.

A watch misses no commit after its entry: a client that reads first and then waits is woken by news that came in
between, because only the method `news` resets the flag of the watch.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from types import TracebackType
from typing import Any, NamedTuple, Self

from ikigai_actors.agent.subscriptions import HostChanged, StreamCut, Streamed, Subscription
from ikigai_actors.reach.replies_on_their_way import RepliesOnTheirWay, UnseenPiece
from ikigai_actors.records.agents.registry import Died
from ikigai_actors.records.messages.messages import BOUNDARIES, Message
from ikigai_actors.system.handles.ref import System

MOST_KEPT_PIECES = 1_000
"""The most pieces of a reply that are kept for a client. Earlier ones are dropped; the message has the whole reply."""


class ReplyHeard(NamedTuple):
    """The state of an agent's reply at one moment: the latest message, and the new part of the reply."""

    head: int
    """The position of the latest known message; 0 for none."""
    goes_on: bool
    """Whether the known reply is still in progress."""
    piece: UnseenPiece | None
    """The new part of the reply in progress; None for none."""


class NewsFeed:
    """Receives the events of a system while anything watches. Use a feed on one event loop."""

    def __init__(self, system: Callable[[], System]) -> None:
        """Begin without a subscription; ``system`` is called on another thread at the first watch."""
        self._system = system
        self._committed = _Line((Message, Died, HostChanged), self._hear)
        self._with_pieces = _Line((Message, Died, HostChanged, Streamed, StreamCut), self._hear_pieces)
        self._replies, self._heads = RepliesOnTheirWay(), dict[str, int]()
        self._lock = Lock()  # news have messages and pieces at one moment
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changing = asyncio.Lock()
        self.ending = asyncio.Event()
        """An event that is set when the server ends, so that nobody waits from then on."""

    def watch(self, agent: str | None = None, *, pieces: bool = False) -> "NewsWatch":
        """Watch an agent, by uuid, or all, for the time of a block; with ``pieces``, also pieces of replies."""
        return NewsWatch(self, agent, pieces)

    async def enter(self, watch: "NewsWatch") -> None:
        """Send all events to a watch from now on. Raises the errors of the system."""
        self._loop = asyncio.get_running_loop()
        line = self._line_of(watch)
        line.watches[watch.agent].add(watch)
        try:
            await self._subscribe_as_wanted(line)
        except BaseException:
            await self.leave(watch)
            raise

    async def leave(self, watch: "NewsWatch") -> None:
        """Stop sending events to a watch."""
        line = self._line_of(watch)
        line.watches[watch.agent].discard(watch)
        if not line.watches[watch.agent]:
            del line.watches[watch.agent]
        if line is self._with_pieces and not line.watches:
            await asyncio.shield(self._subscribe_as_wanted(line))

    def since(self, agent: str, seen: tuple[int, int]) -> ReplyHeard:
        """Return the reply of an agent that is on its way, without the text that the caller has.

        ``seen`` is the number of the reply that the caller has read from, and how many of its characters.
        """
        with self._lock:
            goes_on = self._replies.is_open(agent, seen[0])
            return ReplyHeard(self._heads.get(agent, 0), goes_on, self._replies.behind(agent, seen))

    def release_all(self) -> None:
        """End all waits on this feed; each wait returns at once."""
        self.ending.set()
        for line in (self._committed, self._with_pieces):
            for watches in line.watches.values():
                for watch in watches:
                    watch.ring()

    def close(self) -> None:
        """Stop receiving events. Blocks, so do not call it on an event loop."""
        for line in (self._committed, self._with_pieces):
            if line.subscription is not None:
                line.subscription.close()

    def _line_of(self, watch: "NewsWatch") -> "_Line":
        return self._with_pieces if watch.wants_pieces else self._committed

    async def _subscribe_as_wanted(self, line: "_Line") -> None:
        """Subscribe while there are watches; receive pieces of replies only while a watch wants them."""
        if line.watches and line.subscription is not None:
            return
        async with self._changing:
            if line.watches and line.subscription is None:
                if line is self._with_pieces:
                    self._replies.clear()
                line.subscription = await asyncio.to_thread(self._subscribed, line)
            elif not line.watches and line.subscription is not None:
                closing, line.subscription = line.subscription, None
                await asyncio.to_thread(closing.close)
                self._heads.clear()

    def _subscribed(self, line: "_Line") -> Subscription:
        return self._system().subscribe(line.hear, line.events)

    def _hear(self, event: Any) -> None:
        self._tell(self._committed, event)

    def _hear_pieces(self, event: Any) -> None:
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
        self._tell(self._with_pieces, event)

    def _tell(self, line: "_Line", event: Any) -> None:
        agent = getattr(event, "agent_uuid", None)
        if self._loop is not None and (agent is None or agent in line.watches or None in line.watches):
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                self._loop.call_soon_threadsafe(self._hand_out, line, agent, event)

    def _hand_out(self, line: "_Line", agent: str | None, event: Any) -> None:
        followed = line.watches.keys() if agent is None else (agent, None)
        for uuid in followed:
            for watch in line.watches.get(uuid, ()):
                watch.hear(event)


class _Line:
    """The watches that share one subscription."""

    def __init__(self, events: tuple[type, ...], hear: Callable[[Any], object]) -> None:
        self.events, self.hear = events, hear
        self.watches: dict[str | None, set[NewsWatch]] = defaultdict(set)
        self.subscription: Subscription | None = None


class NewsWatch:
    """Waits for news of one agent, or of all agents."""

    def __init__(self, feed: NewsFeed, agent: str | None, pieces: bool) -> None:
        self._feed, self.agent, self.wants_pieces = feed, agent, pieces
        self._rung = asyncio.Event()
        self._kept: deque[tuple[str, dict[str, Any]]] = deque(maxlen=MOST_KEPT_PIECES)
        self.is_behind = False
        """Whether a message has come since the reader last set this to False; later pieces belong to the next reply."""

    async def __aenter__(self) -> Self:
        await self._feed.enter(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._feed.leave(self)

    def hear(self, event: Any) -> None:
        """Take an event of the feed."""
        match event:
            case Streamed() if self.wants_pieces:
                self._kept.append(("piece", {"kind": event.kind, "text": event.text}))
            case StreamCut() if self.wants_pieces:
                self._kept.append(("cut", {}))
            case Message():
                self._kept.clear()  # the reply is whole
                self.is_behind = True
        self.ring()

    def ring(self) -> None:
        """Wake the waiting reader, because there is news."""
        self._rung.set()

    def pieces(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the events of the reply in progress since the last call, each as its kind and value."""
        taken = [*self._kept]
        self._kept.clear()
        return taken

    def since(self, seen: tuple[int, int]) -> ReplyHeard:
        """Return the reply of the watched agent, as `NewsFeed.since` does."""
        assert self.agent is not None  # of all there is no such
        return self._feed.since(self.agent, seen)

    async def news(self, seconds: float) -> bool:
        """Wait for news; return False if none came in this time."""
        try:
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        except TimeoutError:
            return False
        self._rung.clear()
        return True
