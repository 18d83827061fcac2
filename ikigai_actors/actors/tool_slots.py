"""Slots: how many plain tools run at once.

A tool takes a slot before it gets its thread, and gives it back when the thread ends. While the thread waits in a call
of ours (`lent`), another tool has the slot: so tools that wait for agents never keep the tools of those agents from
running. A thread that has waited goes on at once, even if one more then runs than there are slots; the next tool begins
when that is made up for.
"""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")

_thread = threading.local()


class Slots:
    """The slots of one event loop. They are given out in the order of the requests."""

    def __init__(self, loop: asyncio.AbstractEventLoop, number: int) -> None:
        """Make ``number`` slots."""
        self._loop = loop
        self._free = number  # below 0: so many threads went on without one
        self._queue: deque[asyncio.Future[None]] = deque()

    async def take(self) -> None:
        """Wait for a slot. Call it on the loop, like `give_back`."""
        if self._free > 0:
            self._free -= 1
            return
        given = self._loop.create_future()
        self._queue.append(given)
        try:
            await given
        except asyncio.CancelledError:
            if not given.cancelled():
                self.give_back()
            raise

    def give_back(self) -> None:
        """Hand a slot to the tool that has waited longest."""
        self._free += 1
        while self._free > 0 and self._queue:
            given = self._queue.popleft()
            if not given.cancelled():
                self._free -= 1
                given.set_result(None)

    def run(self, call: Callable[[], T]) -> T:
        """Run a call on a thread that has a slot."""
        _thread.slots = self
        try:
            return call()
        finally:
            del _thread.slots

    @contextlib.contextmanager
    def lend(self) -> Iterator[None]:
        """Let another tool have the slot of this thread for the block."""
        self._tell(self.give_back)
        try:
            yield
        finally:
            self._tell(self._go_on)

    def _go_on(self) -> None:
        self._free -= 1

    def _tell(self, what: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: no tool begins any more
            self._loop.call_soon_threadsafe(what)


def lent() -> contextlib.AbstractContextManager[None]:
    """Let another tool have the calling thread's slot, if it has one, while it waits in this block."""
    slots: Slots | None = getattr(_thread, "slots", None)
    return contextlib.nullcontext() if slots is None else slots.lend()
