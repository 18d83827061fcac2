"""`RetryingReader`: reads a store, for a thread that waits while the store does not answer."""

from collections.abc import Callable
from typing import TypeVar

from ikigai_actors.actors.threads import Threads
from ikigai_actors.errors import StoreUnavailable, SystemClosed
from ikigai_actors.store.base import Store, Transaction

T = TypeVar("T")

FIRST_RETRY = 0.05
LONGEST_RETRY = 1.0
"""The most seconds between two attempts while the store is down; the first pause has the same length."""


class RetryingReader:
    """Reads a store, and tries again while the store does not answer. Any thread may use it."""

    def __init__(self, store: Store, threads: Threads) -> None:
        self._store = store
        self._closing = threads.condition()
        self._closed = False

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Run ``work`` in a transaction that only reads, and return its result.

        Raises:
            SystemClosed: the reader was closed before the store answered.
            Exception: any other error of the store, and any error of ``work``.
        """
        pause = FIRST_RETRY
        while True:
            try:
                return self._store.read(work)
            except StoreUnavailable as error:
                with self._closing:
                    if self._closing.wait_for(lambda: self._closed, pause):
                        raise SystemClosed("The system was closed while the database did not answer.") from error
            pause = min(pause * 2, LONGEST_RETRY)

    def close(self) -> None:
        """Let reads that wait for the store fail with `SystemClosed`."""
        with self._closing:
            self._closed = True
            self._closing.notify_all()
