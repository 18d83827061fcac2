"""The watch of an observer: follows a system while a page is open, and keeps the data that pages show.

    resting     no page is open: no subscription, no read. A forgotten observer costs its host nothing
    watching    subscribed; reads the registry each second, or after `_LOOKS` times the duration of a read
    leaving     the last page was closed `_LINGER` seconds ago: the subscription is closed, and the rows are stored

The subscription only reports that there is news: pages read messages from the log, after their own positions. So a page
misses no message if the subscription drops an event or a host is killed.
"""

import asyncio
import contextlib
from collections.abc import Callable
from time import monotonic
from typing import TypeVar

from ikigai_actors.agent.subscriptions import (
    Event,
    Mailed,
    StoreTrouble,
    StreamCut,
    Streamed,
    Subscription,
)
from ikigai_actors.errors import IkigaiError
from ikigai_actors.reach.replies_on_their_way import RepliesOnTheirWay
from ikigai_actors.reach.rows import LiveRows
from ikigai_actors.reach.views import glances_of, has_owner, latest_marks_of, now_of
from ikigai_actors.records.agents.registry import Died, Renamed, StatusSet
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.system.handles.ref import System

T = TypeVar("T")

PAGE_TICK = 0.08
"""Seconds between two groups of events that are sent to a page."""

_LOOK = 1.0
"""The least seconds between two readings of the registry."""

_LOOKS = 40
"""The pause after a reading of the registry, as a multiple of the time that the reading took."""

_LINGER = 10.0
"""Seconds for which the subscription outlives the last page, so that a reloaded page finds it."""

_AT_ONCE = 4
"""The most simultaneous readings of the database."""

_EVENTS = (Message, Streamed, StreamCut, Mailed, Died, Renamed, StatusSet, StoreTrouble)


_NO_HOST = "No process runs the agents now. What you prompt waits in the database. Start a host: ikigai host."


class ObserverWatch:
    """The state of a system, shared by all pages. Call the methods on the observer's event loop."""

    def __init__(self, system: System, epoch: str) -> None:
        """Prepare the watch, without a subscription."""
        self.system = system
        self.rows, self.replies = LiveRows(epoch), RepliesOnTheirWay()
        self._trouble = ""  # with the store
        self.pages = 0
        self._subscription: Subscription | None = None
        self._whole: set[str] = set()  # of whose next reply every piece is heard
        self._born = False  # an agent was heard of that no look has found yet
        self._reads = asyncio.Semaphore(_AT_ONCE)
        self._waking = asyncio.Lock()
        self._work: list[asyncio.Task[None]] = []
        self._leaving: asyncio.TimerHandle | None = None

    @property
    def trouble(self) -> str:
        """Return the reason why no news may arrive; empty if there is none."""
        if isinstance(self.system, AttachedSystem) and not has_owner(self.system):
            return self._trouble or _NO_HOST
        return self._trouble

    async def read(self, work: Callable[[], T]) -> T:
        """Run a function that waits for the database on a thread, and return its result. Only a few run at a time."""
        async with self._reads:
            return await asyncio.to_thread(work)

    async def join(self) -> None:
        """Count one more open page. When the call returns, the rows are loaded."""
        self.pages += 1
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None
        async with self._waking:
            if self._subscription is None:
                await self._begin()

    def leave(self) -> None:
        """Count one page as closed. After the last page, the subscription ends soon."""
        self.pages -= 1
        if not self.pages:
            self._leaving = asyncio.get_running_loop().call_later(_LINGER, self._rest)

    async def refresh(self) -> None:
        """Read the registry once, and store the result in the rows."""
        await self.read(self._look)

    async def close(self) -> None:
        """End the subscription and all work of the watch for good."""
        if self._leaving is not None:
            self._leaving.cancel()
        for task in self._work:
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)
        if self._subscription is not None:
            await asyncio.to_thread(self._subscription.close)
            self._subscription = None

    async def _begin(self) -> None:
        self.replies.clear()
        self._whole.clear()
        self._subscription = await asyncio.to_thread(self.system.subscribe, self._hear, _EVENTS)
        await self.refresh()
        self._work = [asyncio.create_task(self._tick()), asyncio.create_task(self._look_again())]

    def _rest(self) -> None:
        self._leaving = None
        for task in self._work:
            task.cancel()
        self._work.clear()
        if (subscription := self._subscription) is not None:
            self._subscription = None
            asyncio.get_running_loop().run_in_executor(None, subscription.close)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(PAGE_TICK)
            self.rows.tick(monotonic())

    async def _look_again(self) -> None:
        due = monotonic() + _LOOK
        while True:
            await asyncio.sleep(PAGE_TICK)
            if monotonic() < due and not self._born:
                continue
            began, self._born = monotonic(), False
            with contextlib.suppress(IkigaiError):  # the bar says it
                await self.refresh()
            due = monotonic() + max(_LOOK, _LOOKS * (monotonic() - began))

    def _look(self) -> None:
        glances = glances_of(self.system)
        self.rows.refresh(glances, latest_marks_of(self.system, self.rows.unplaced(glances)))

    def _hear(self, event: Event) -> None:
        now = now_of(self.system)
        match event:
            case Message():
                if event.ends_pieces:
                    self._end_reply(event.agent_uuid)
                known = self.rows.hear(event, now)
                self._born |= not known or (event.kind == Kind.FORK and "child" in event.data)
            case Streamed():
                if event.kind == "text":
                    self._add_piece(event.agent_uuid, event.text)
                self.rows.stream(event.agent_uuid, len(event.text), now, monotonic())
            case StreamCut():
                self._end_reply(event.agent_uuid)
            case Died():
                self._end_reply(event.agent_uuid)
                self.rows.die(event.agent_uuid, now)
            case Renamed():
                self.rows.rename(event.agent_uuid, event.name)
            case StatusSet():
                self.rows.set_status(event.agent_uuid, event.status)
            case Mailed():
                self.rows.add_unread(event.agent)
            case StoreTrouble():
                self._trouble = event.reason or ""

    def _end_reply(self, uuid: str) -> None:
        self.replies.close(uuid)
        self._whole.add(uuid)

    def _add_piece(self, uuid: str, text: str) -> None:
        """Add a piece to a reply. If the reply began before the subscription, its beginning is missing."""
        if uuid not in self._whole and not self.system.attached:
            text = "… " + text
        self._whole.add(uuid)
        self.replies.add(uuid, text)
