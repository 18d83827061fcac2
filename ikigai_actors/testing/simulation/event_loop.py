"""The event loop of a simulation: asyncio's own, on the agenda in place of the operating system."""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from ikigai_actors.actors.event_loop import EndlessLoop
from ikigai_actors.testing.simulation.scheduler import Abandoned, Agenda

BEGINNING = 3
"""The rounds of the loop after which every task of a crashed process has begun. A task that has not begun cannot clean
up.
"""

UNWINDING = 100
"""The rounds of the loop in which the tasks of a crashed process may unwind."""


class OneWait(Protocol):
    """One wait of one thread, which another thread can end."""

    def wake(self) -> None:
        """Let the thread check its condition again when it is chosen."""

    def wait(self, done: Callable[[], object], timeout: float | None, what: str) -> bool:
        """Wait until ``done()`` is true, or ``timeout`` seconds have passed; return whether it is true."""


class Waiting(Protocol):
    """The threads of the process to which an event loop belongs."""

    agenda: Agenda
    abandoned: bool
    """Whether the process has crashed."""

    def pause(self, name: str) -> None:
        """Wait on the agenda until it chooses the calling thread."""

    def waiter(self) -> OneWait:
        """Return an object for a wait of the calling thread."""


class SimulatedLoop(EndlessLoop):
    """An event loop that waits on an agenda. The loop has no sockets and no child processes.

    Before each round of callbacks the loop yields to the agenda, so anything may happen between two rounds.
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
        """Return the simulated time in seconds."""
        return self._threads.agenda.clock.monotonic()

    def select(self, timeout: float | None) -> list[Any]:
        """Wait on the agenda for a callback, in place of asyncio's wait for sockets; return an empty list."""
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
        """Let every task of the crashed process end. The effects of these tasks do not count."""
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
        """Do nothing, because no events come from the operating system."""

    def _write_to_self(self) -> None:
        """Wake the loop after another thread has added a callback."""
        self._called = True
        if self._waiter is not None:
            self._waiter.wake()
