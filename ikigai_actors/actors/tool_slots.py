"""Slots, which limit how many plain tools run at once.

A tool takes a slot before it gets its thread, and gives it back when the thread ends. While the thread waits in a call
of ours (`lent`), another tool has the slot: so tools that wait for agents never keep the tools of those agents from
running. A thread that has waited goes on at once, even if more threads than slots are running then. The next tool
begins when a slot is free again.

A thread cannot be ended. If it runs on after the time limit of its call, it is abandoned, and its slot becomes free.
Above `MOST_ABANDONED` such threads, which would fill the process, further threads keep their slots until they end.
"""

import asyncio
import contextlib
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

T = TypeVar("T")

MOST_ABANDONED = 256
"""Abandoned threads that hold no slot."""

_thread = threading.local()


class Slot:
    """The slot of one tool's call. All methods except `run` and `lend` must be called on the loop."""

    __slots__ = ("_slots", "abandoned", "lent", "name", "taken")

    def __init__(self, slots: "Slots", name: str) -> None:
        self._slots, self.name = slots, name
        self.taken = self.lent = self.abandoned = False

    @property
    def counts_as(self) -> bool | None:
        """Return whether the slot's thread is abandoned; None if no thread has the slot now."""
        return self.abandoned if self.taken and not self.lent else None

    def run(self, call: Callable[[], T]) -> T:
        """Run the call on the thread of the slot, and return its value."""
        _thread.slot = self
        try:
            return call()
        finally:
            del _thread.slot

    @contextlib.contextmanager
    def lend(self) -> Iterator[None]:
        """Give this thread's slot to another tool for the length of a block in which the thread waits."""
        self._tell(True)
        try:
            yield
        finally:
            self._tell(False)

    def abandon(self) -> None:
        """Mark the slot's thread as abandoned: its call is over for the caller, but the thread still runs."""
        self._slots.change(self, abandoned=True)

    def give_back(self) -> None:
        """Release the slot, because its thread has ended or will not begin."""
        self._slots.change(self, taken=False)

    def _tell(self, lent: bool) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: no tool begins any more
            self._slots.loop.call_soon_threadsafe(partial(self._slots.change, self, lent=lent))


class Slots:
    """The slots for the tools of one event loop, given out in the order of the requests."""

    def __init__(self, loop: asyncio.AbstractEventLoop, number: int, most_abandoned: int = MOST_ABANDONED) -> None:
        self.loop = loop
        self._number, self._most_abandoned = number, most_abandoned
        self._taken: dict[Slot, None] = {}
        self._busy: Counter[bool | None] = Counter()  # by `Slot.counts_as`
        self._queue: deque[tuple[Slot, asyncio.Future[None]]] = deque()

    @property
    def abandoned(self) -> int:
        """Return the number of abandoned threads, without those that wait in a call of this package.

        Any thread may call.
        """
        return self._busy[True]

    @property
    def full(self) -> bool:
        """Return whether the number of abandoned threads is at its limit, above which threads keep their slots."""
        return self.abandoned >= self._most_abandoned

    async def acquire(self, name: str) -> Slot:
        """Wait for a slot for a tool of this name. Call it on the loop."""
        slot, future = Slot(self, name), self.loop.create_future()
        self._queue.append((slot, future))
        self._hand_out()
        try:
            await future
        except asyncio.CancelledError:
            slot.give_back()
            raise
        return slot

    def change(self, slot: Slot, **now: bool) -> None:
        """Change fields of a slot, and give a slot that became free to the next waiting tool."""
        self._busy[slot.counts_as] -= 1
        for field, value in now.items():
            setattr(slot, field, value)
        self._busy[slot.counts_as] += 1
        if slot.taken:
            self._taken[slot] = None
        else:
            self._taken.pop(slot, None)
        self._hand_out()

    def holders(self) -> str:
        """Return the names of the tools that have slots, each with the number of its threads, as text for people."""
        held = Counter(slot.name for slot in self._taken if slot.counts_as is not None)
        return ", ".join(f"{count} × {name}" for name, count in held.most_common(5))

    def _hand_out(self) -> None:
        while self._queue and self._busy[False] + max(0, self.abandoned - self._most_abandoned) < self._number:
            slot, future = self._queue.popleft()
            if not future.done():  # else its call was cancelled
                future.set_result(None)
                self.change(slot, taken=True)


_NOTHING = contextlib.nullcontext()


def lent() -> contextlib.AbstractContextManager[None]:
    """Lend the calling thread's tool slot, if it has one, to another tool while the thread waits in this block."""
    slot: Slot | None = getattr(_thread, "slot", None)
    return _NOTHING if slot is None else slot.lend()
