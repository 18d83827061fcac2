"""The news of agents, for requests that wait or stream: `NewsHub` hears all of it, `AgentWatch` that of one agent.

    with hub.watch(uuid, pieces=True) as watch:
        while await watch.news(15):             # False when nothing came in that time
            ...                                 # read what is committed; `watch.pieces()` came in between

A watch only says that there is something. Messages are read from the log after the client's place, so a slow client
misses none, and nothing is kept for it but the latest pieces of a reply.
"""

import asyncio
from collections import defaultdict, deque
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from ikigai_actors.agent.subscriptions import StreamCut, Streamed, Subscription
from ikigai_actors.records.agents.registry import Died
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.system.handles.ref import System

MOST_KEPT_PIECES = 1_000
"""Pieces that are kept for a client; of more the earliest are dropped. The whole reply comes as a message."""


class NewsHub:
    """Hears the events of a system, while somebody watches. On one event loop."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._loop: asyncio.AbstractEventLoop | None = None
        self._watches: dict[str, set[AgentWatch]] = defaultdict(set)
        self._news: Subscription | None = None
        self._pieces: Subscription | None = None
        self._wanting = 0
        self.ending = asyncio.Event()
        """Set when the server ends: nobody waits from then on."""

    def watch(self, agent: str, *, pieces: bool = False) -> "AgentWatch":
        """Watch an agent, by uuid, for the length of a block; with the pieces of replies on their way."""
        return AgentWatch(self, agent, pieces)

    def enter(self, watch: "AgentWatch") -> None:
        """Give a watch the events from now on."""
        self._loop = asyncio.get_running_loop()
        self._watches[watch.agent].add(watch)
        if self._news is None:
            self._news = self._system.subscribe(self._tell, only=(Message, Died))
        self._wanting += watch.wants_pieces
        if self._wanting and self._pieces is None:  # hosts write pieces only while somebody asks for them
            self._pieces = self._system.subscribe(self._tell, only=(Streamed, StreamCut))

    def leave(self, watch: "AgentWatch") -> None:
        """Give it nothing more."""
        self._watches[watch.agent].discard(watch)
        if not self._watches[watch.agent]:
            del self._watches[watch.agent]
        self._wanting -= watch.wants_pieces
        if not self._wanting and self._pieces is not None:
            closing, self._pieces = self._pieces, None
            asyncio.get_running_loop().run_in_executor(None, closing.close)

    def release_all(self) -> None:
        """Let everybody go: waits answer with what they have."""
        self.ending.set()
        for watches in self._watches.values():
            for watch in watches:
                watch.ring()

    def close(self) -> None:
        """Hear no more. Waits for events that are under way: for no event loop."""
        for subscription in (self._news, self._pieces):
            if subscription is not None:
                subscription.close()

    def _tell(self, event: Any) -> None:
        assert self._loop is not None
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            self._loop.call_soon_threadsafe(self._hear, event)

    def _hear(self, event: Any) -> None:
        for watch in self._watches.get(event.agent_uuid, ()):
            watch.hear(event)


class AgentWatch:
    """Says when there is news of an agent."""

    def __init__(self, hub: NewsHub, agent: str, pieces: bool) -> None:
        self._hub, self.agent, self.wants_pieces = hub, agent, pieces
        self._rung = asyncio.Event()
        self._kept: deque[tuple[str, dict[str, Any]]] = deque(maxlen=MOST_KEPT_PIECES)
        self.is_behind = False
        """Whether a message has come since this was set to False: pieces that come now are of the next reply."""

    def __enter__(self) -> Self:
        self._hub.enter(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._hub.leave(self)

    def hear(self, event: Any) -> None:
        """Take an event of the agent."""
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
        """Say that there is news."""
        self._rung.set()

    def pieces(self) -> list[tuple[str, dict[str, Any]]]:
        """The news of a reply since the last call: kinds of events, and their values."""
        taken = [*self._kept]
        self._kept.clear()
        return taken

    async def news(self, seconds: float) -> bool:
        """Wait for news; False when none came in this time."""
        try:
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        except TimeoutError:
            return False
        self._rung.clear()
        return True
