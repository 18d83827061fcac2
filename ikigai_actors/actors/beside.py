"""Runs calls that may wait for the database on other threads, for callers on an event loop.

    system.beside.read(lambda: ...)             # any number at once
    system.beside.post(lambda: ..., future)     # one after the other, in the order in which they were posted

Each call returns a future.
"""

import contextvars
from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import TypeVar

from ikigai_actors.actors.futures import Future
from ikigai_actors.actors.spare_threads import SpareThreads
from ikigai_actors.actors.threads import Threads

T = TypeVar("T")


class Beside:
    """Runs calls on other threads, for callers who must not block. Thread-safe."""

    def __init__(self, threads: Threads) -> None:
        self._spare, self._lock = SpareThreads(threads), Lock()
        self._posted: deque[Callable[[], None]] = deque()
        self._posting = False

    def read(self, reading: Callable[[], T]) -> Future[T]:
        """Run a read on another thread; return a future of its value or its exception. A read is never cancelled."""
        future = Future[T]()
        self._spare.run(lambda: _settle(future, reading), "ikigai-reading")
        return future

    def post(self, act: Callable[[], object], future: "Future[T]") -> None:
        """Run an act on another thread, after all acts posted before. An exception of the act settles the future."""
        context = contextvars.copy_context()

        def run() -> None:
            try:
                context.run(act)
            except Exception as error:  # whatever it is, the caller gets it
                future.settle(error)

        with self._lock:
            self._posted.append(run)
            begins, self._posting = not self._posting, True
        if begins:
            self._spare.run(self._work, "ikigai-asking")

    def forward(self, ask: Callable[[], "Future[T]"], *, cancels: bool = False) -> "Future[T]":
        """Post an act that returns a future; return a new future, which gets the outcome of that future.

        Args:
            ask: the act.
            cancels: whether cancelling an ``await`` of the new future also cancels the act's future.
        """
        asked: list[Future[T]] = []
        outer = Future[T](cancel=(lambda: [inner.cancel() for inner in asked]) if cancels else None)

        def act() -> None:
            inner = ask()
            asked.append(inner)
            if outer.cancelled():
                inner.cancel()
            inner.add_done_callback(outer.become)

        self.post(act, outer)
        return outer

    @property
    def is_idle(self) -> bool:
        """Return whether all posted acts are done."""
        return not self._posting

    def close(self) -> None:
        """Let idle threads end now, and busy threads after their calls."""
        self._spare.close()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._posted:
                    self._posting = False
                    return
                run = self._posted.popleft()
            run()


def _settle(future: "Future[T]", reading: Callable[[], T]) -> None:
    try:
        future.settle(reading())
    except Exception as error:  # whatever it is, the caller gets it
        future.settle(error)
