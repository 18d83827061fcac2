"""Wake-ups on PostgreSQL: LISTEN; whoever wants to wake others says NOTIFY in its transaction, told at its commit."""

import threading
from typing import Any

import psycopg

CHANNEL = "ikigai"

_AGAIN = 1.0
"""Seconds before a connection that broke is made anew; and between two looks at whether the watch was closed."""


class ServerWatch:
    """Watches a PostgreSQL database, on a connection of its own."""

    def __init__(self, url: str, settings: dict[str, Any]) -> None:
        self._url, self._settings = url, settings
        self._closed = threading.Event()
        self._connection: psycopg.Connection[Any] | None = None

    def wait(self) -> bool:
        """See `Watch.wait`. A new connection counts as a change: what was told before it is lost."""
        while not self._closed.is_set():
            try:
                if self._connection is None:
                    self._connection = psycopg.connect(self._url, autocommit=True, **self._settings)
                    self._connection.execute(f"LISTEN {CHANNEL}".encode())
                    return True
                for _ in self._connection.notifies(timeout=_AGAIN, stop_after=1):
                    return True
            except psycopg.Error:
                self._give_up()
                self._closed.wait(_AGAIN)
        self._give_up()
        return False

    def close(self) -> None:
        """See `Watch.close`."""
        self._closed.set()

    def _give_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
