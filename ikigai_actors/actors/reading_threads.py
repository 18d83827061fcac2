"""Readers: threads on which something is read for a caller who must not block, such as an event loop."""

from collections.abc import Callable
from typing import TypeVar

from ikigai_actors.actors.futures import Future
from ikigai_actors.actors.spare_threads import SpareThreads
from ikigai_actors.actors.threads import Threads

T = TypeVar("T")


class ReadingThreads:
    """Reads, each on a thread that does nothing else meanwhile."""

    def __init__(self, threads: Threads) -> None:
        self._spare = SpareThreads(threads)

    def read(self, reading: Callable[[], T]) -> Future[T]:
        """Read on another thread; give a future of the value, or of the exception. A read is never cancelled."""
        found = Future[T]()

        def run() -> None:
            try:
                found.settle(reading())
            except Exception as error:  # whatever it is, the caller gets it
                found.settle(error)

        self._spare.run(run, "ikigai-reading")
        return found

    def close(self) -> None:
        """End the threads that read nothing, now and later."""
        self._spare.close()
