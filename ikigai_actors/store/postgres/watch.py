"""Wake-ups on PostgreSQL, by LISTEN and NOTIFY. The server delivers a NOTIFY when its transaction commits.

Hosts have a channel of their own: a host listens to what clients do, and is not woken by every commit of its own.
"""

import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Callable

import psycopg

from ikigai_actors.errors import StoreError, SystemClosed
from ikigai_actors.store.base import Hint, Watch
from ikigai_actors.store.postgres.hints import CLIENTS, Hints, secret_of, together
from ikigai_actors.store.postgres.transaction import cut_off
from ikigai_actors.store.postgres.trips import Connection

_AGAIN = 1.0
"""Seconds before a broken connection is made again."""


class ServerWatch(Watch):
    """Watches a PostgreSQL database, on a connection of its own."""

    def __init__(
        self,
        connect: Callable[[Callable[[Connection], object]], Connection],
        hints: Hints,
        audiences: tuple[str, ...],
    ) -> None:
        self._connect, self._hints, self._audiences = connect, hints, audiences
        self._closed, self._rung = threading.Event(), threading.Event()
        self._waking, self._woken = socket.socketpair()  # a byte wakes who waits for the server
        for end in (self._waking, self._woken):
            end.setblocking(False)
        self._connection: Connection | None = None
        self._listens = False
        self._heard: list[tuple[str, frozenset[str]]] = []  # each with its audience

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for a NOTIFY. A new connection also counts as a change, because earlier notifications are lost."""
        until = None if timeout is None else time.monotonic() + timeout
        while not self._closed.is_set():
            if self._rung.is_set():
                self._rung.clear()
                with contextlib.suppress(BlockingIOError):
                    self._woken.recv(4096)
                return False
            left = None if until is None else max(0.0, until - time.monotonic())
            try:
                if self._connection is None:
                    self._listen()
                    return True
                if self._is_notified(self._connection, left):
                    return True
            except (psycopg.Error, StoreError, SystemClosed):
                self._give_up()
                self._closed.wait(_AGAIN if left is None else min(_AGAIN, left))
            if until is not None and time.monotonic() >= until:
                return False
        self._give_up()
        self._waking.close()
        self._woken.close()
        return False

    def heard(self) -> Hint:
        heard, self._heard = self._heard, []
        return Hint(
            together(agents for _, agents in heard),
            together(agents for audience, agents in heard if audience == CLIENTS),
        )

    def wake(self) -> None:
        self._rung.set()
        with contextlib.suppress(OSError):  # many bytes are there already, or who waited is gone
            self._waking.send(b"\0")

    def close(self) -> None:
        self._closed.set()
        self.wake()
        if (connection := self._connection) is not None and not self._listens:
            cut_off(connection)  # a thread that waits for an answer of the server, which may never come, stops waiting

    def _listen(self) -> None:
        connection = self._connect(self._made)
        if self._closed.is_set():
            return
        channels = self._hints.learn(secret_of(connection))
        for audience in self._audiences:
            if self._closed.is_set():  # before there was a connection to cut
                return
            connection.execute(f"LISTEN {channels.name(audience)}".encode())
        self._listens = True
        self._heard.append((CLIENTS, frozenset()))

    def _made(self, connection: Connection) -> None:
        self._connection = connection
        if self._closed.is_set():  # before there was one to cut
            cut_off(connection)

    def _is_notified(self, connection: Connection, timeout: float | None) -> bool:
        """Wait for the server, or for `wake`; return whether a NOTIFY came."""
        if self._take(connection):
            return True
        with selectors.DefaultSelector() as selector:
            selector.register(connection, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            selector.select(timeout)
        return self._take(connection)

    def _take(self, connection: Connection) -> bool:
        channels, before = self._hints.channels(lambda: ""), len(self._heard)
        for notify in connection.notifies(timeout=0, stop_after=1):
            if (agents := channels.agents(notify.payload)) is not None:
                self._heard.append((channels.audience(notify.channel), agents))
        return len(self._heard) > before

    def _give_up(self) -> None:
        connection, self._connection, self._listens = self._connection, None, False
        if connection is not None:
            connection.close()
