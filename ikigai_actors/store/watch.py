"""Wake-ups: that another process has committed something. A hint, on which nothing depends for being right.

*SQLite:* a number of the file that changes with every commit, looked at again and again (8 µs each time). *PostgreSQL:*
LISTEN; whoever wants to wake others says NOTIFY in its transaction, which is told when that is committed. *In memory*
there is no other process.
"""

import contextlib
import sqlite3
import threading
from pathlib import Path
from typing import Any

import psycopg

INTERVAL = 0.03
"""Seconds between two looks at an SQLite file."""

CHANNEL = "ikigai"

_AGAIN = 1.0
"""Seconds before a connection that broke is made anew; and between two looks at whether the watch was closed."""


class NoWatch:
    """For a database that nobody else can change."""

    def __init__(self) -> None:
        self._closed = threading.Event()

    def wait(self) -> bool:
        """See `Watch.wait`."""
        self._closed.wait()
        return False

    def close(self) -> None:
        """See `Watch.close`."""
        self._closed.set()


class FileWatch:
    """Watches an SQLite file."""

    def __init__(self, path: Path) -> None:
        self._closed = threading.Event()
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._version = self._look()

    def wait(self) -> bool:
        """See `Watch.wait`."""
        while not self._closed.wait(INTERVAL):
            if (version := self._look()) != self._version:
                self._version = version
                return True
        self._connection.close()
        return False

    def close(self) -> None:
        """See `Watch.close`."""
        self._closed.set()

    def _look(self) -> Any:
        with contextlib.suppress(sqlite3.Error):  # a hint: the next look tells
            return self._connection.execute("PRAGMA data_version").fetchone()[0]
        return None


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
