"""The event loop of a simulation: asyncio's own, with the agenda in the place of the operating system."""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from ikigai_actors.actors.event_loop import EndlessLoop
from ikigai_actors.testing.simulation.scheduler import Abandoned, Agenda

BEGINNING = 3
"""Rounds after which every task of a crashed process has begun: one that has not cannot clean up."""

UNWINDING = 100
"""Rounds that the tasks of a crashed process have to unwind."""


class OneWait(Protocol):
    """One wait of one thread."""

    def wake(self) -> None:
        """Let the thread look again, when it is chosen."""

    def wait(self, done: Callable[[], object], timeout: float | None, what: str) -> bool:
        """Wait until it is done, or ``timeout`` seconds have passed; return whether it is done."""


class Waiting(Protocol):
    """The threads with which the loop waits: those of its process."""

    agenda: Agenda
    abandoned: bool
    """Whether the process has crashed."""

    def pause(self, name: str) -> None:
        """Be on the agenda until chosen."""

    def waiter(self) -> OneWait:
        """A wait of the calling thread."""


class SimulatedLoop(EndlessLoop):
    """An event loop that waits on an agenda; it has no sockets and no processes.

    Before each round of callbacks it hands over, so chance may let anything happen between two of them.
    """

    _selector: Any

    def __init__(self, threads: Waiting) -> None:
        super().__init__()
        self._selector = self
        self._threads = threads
        self._waiter: OneWait | None = None
        self._called = False
        self._rounds = 0

    def time(self) -> float:
        """Seconds of the simulation's clock."""
        return self._threads.agenda.clock.monotonic()

    def select(self, timeout: float | None) -> list[Any]:
        """Wait for a callback, in the place of a selector."""
        if self._threads.abandoned:
            self._unwind()
            return []
        self._called = False
        # What the agenda runs on this thread meanwhile is outside the loop. Were the loop said to run, asyncio would
        # settle its futures without a call of `_write_to_self` (as Python 3.14 does), and nothing would end the wait.
        asyncio._set_running_loop(None)
        try:
            if timeout is not None and timeout <= 0:
                self._threads.pause("outside")
                return []
            self._waiter = self._threads.waiter()
            self._waiter.wait(lambda: self._called, timeout, "the event loop")
        except Abandoned:
            self._unwind()
        finally:
            asyncio._set_running_loop(self)
            self._waiter = None
        return []

    def _unwind(self) -> None:
        """The process has crashed: nothing counts any more, so let every task end."""
        if self._rounds > UNWINDING:
            return
        self._rounds += 1
        if self._rounds <= BEGINNING:
            return
        tasks = asyncio.all_tasks(self)
        if not tasks or self._rounds > UNWINDING:
            self._rounds = UNWINDING + 1
            self.finish()
        for task in tasks:
            task.cancel()

    def _process_events(self, event_list: list[Any]) -> None:
        """Nothing comes from the operating system."""

    def _write_to_self(self) -> None:
        """Another thread has called: look again."""
        self._called = True
        if self._waiter is not None:
            self._waiter.wake()
