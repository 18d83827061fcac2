"""A pool of a few connections for reads, which are opened when needed, and again after they broke.

A server that restarts is back within a second. So a caller that finds no connection opens one at once, and tries again
after short pauses until its patience ends. (The pool of psycopg_pool doubles its pauses from a second on, and has no
setting for that: reads hung for seven seconds after two restarts.)
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore, Event, Lock

from ikigai_actors.errors import StoreError, StoreUnavailable
from ikigai_actors.store.postgres.connecting import take_answer
from ikigai_actors.store.postgres.transaction import is_alive
from ikigai_actors.store.postgres.trips import Connection

MOST_READERS = 4
"""The most read connections open at once."""

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.5
"""Seconds between two attempts to connect; each pause is twice as long as the one before."""


class Readers:
    """A pool of read connections, each lent to one caller at a time. Safe to share between threads."""

    def __init__(self, connect: Callable[[], Connection], patience: float, location: str) -> None:
        self._connect, self._patience, self._location = connect, patience, location
        self._places = BoundedSemaphore(MOST_READERS)
        self._idle: list[Connection] = []
        self._lock = Lock()
        self._closed = Event()

    @contextmanager
    def lent(self) -> Iterator[Connection]:
        """Lend a connection for the length of a block, and end its transaction after the block.

        Raises `StoreUnavailable` when no connection was free in time, and `StoreError` when the pool was closed.
        """
        until = time.monotonic() + self._patience
        if not self._places.acquire(timeout=self._patience):
            raise StoreUnavailable(f"Database {self._location}: all {MOST_READERS} connections for reads are in use.")
        try:
            connection = self._from_idle() or self._made(until)
            try:
                yield connection
            finally:
                self._take_back(connection)
        finally:
            self._places.release()

    def fill(self) -> None:
        """Open all connections now. Raises the errors of opening a connection."""
        for _ in range(MOST_READERS - len(self._idle)):
            self._take_back(self._connect())

    def change(self, change: Callable[[Connection], object]) -> None:
        """Call ``change`` with each idle connection; a connection that breaks is not lent again.

        Raises the errors of ``change``.
        """
        with self._lock:
            for connection in self._idle:
                take_answer(connection)
                change(connection)

    def close(self) -> None:
        """Close every connection; a lent one when it is returned. Threads that wait for a connection get an error."""
        self._closed.set()
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _from_idle(self) -> Connection | None:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            try:
                take_answer(connection)
                if is_alive(connection):
                    return connection
            except BaseException:  # Ctrl-C in this instant: it would belong to nobody
                connection.close()
                raise
            connection.close()

    def _made(self, until: float) -> Connection:
        pause = FIRST_PAUSE
        while True:
            if self._closed.is_set():
                raise StoreError(f"Database {self._location}: this store was closed.")
            try:
                return self._connect()
            except StoreUnavailable:
                if time.monotonic() + pause > until:
                    raise
            self._closed.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _take_back(self, connection: Connection) -> None:
        with self._lock:
            if not self._closed.is_set() and not connection.closed:
                self._idle.append(connection)
                return
        connection.close()
