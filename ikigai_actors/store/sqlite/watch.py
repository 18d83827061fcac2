"""Wake-ups on SQLite when another process has committed. They are hints, on which no correctness depends.

*A file* has a number that changes with every commit. The watch looks at it again and again (8 µs each time); when it
has changed, the connection that writes for this process shows whether others have committed. *In memory* there is no
other process.
"""

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ikigai_actors.errors import StoreError
from ikigai_actors.store.base import Watch
from ikigai_actors.store.sqlite.file import SQLiteFile
from ikigai_actors.store.sqlite.fork_gate import FORK_GATE

_INTERVAL = 0.03
"""Seconds between two looks at an SQLite file."""


class _SQLiteWatch(Watch):
    def __init__(self) -> None:
        self._closed, self._rung = threading.Event(), threading.Event()

    def wake(self) -> None:
        self._rung.set()

    def close(self) -> None:
        self._closed.set()
        self._rung.set()


class NoWatch(_SQLiteWatch):
    """The watch of a database that no other process can change: it never reports a change."""

    def wait(self, timeout: float | None = None) -> bool:
        if self._rung.wait(timeout) and not self._closed.is_set():
            self._rung.clear()
            if self._closed.is_set():  # meanwhile
                self._rung.set()
        return False


class FileWatch(_SQLiteWatch):
    """Watches an SQLite file for commits of other processes."""

    def __init__(self, path: Path, others: Callable[[], int]) -> None:
        super().__init__()
        self._file = SQLiteFile(path)  # held until the connection is closed
        with FORK_GATE:
            self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._version = self._look()
        self._others = others
        self._seen = self._ask()

    def wait(self, timeout: float | None = None) -> bool:
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            rung = self._rung.wait(_INTERVAL)
            if self._closed.is_set():
                break
            if rung:
                self._rung.clear()
                return False
            if (version := self._look()) != self._version:
                self._version = version
                if (seen := self._ask()) != self._seen:
                    self._seen = seen
                    return True
            if until is not None and time.monotonic() >= until:
                return False
        with FORK_GATE:
            self._connection.close()
        self._file.close()
        return False

    def _ask(self) -> int | None:
        with contextlib.suppress(StoreError):  # closed, or a hint again
            return self._others()
        return None

    def _look(self) -> Any:
        with FORK_GATE, contextlib.suppress(sqlite3.Error):  # a hint: the next look shows it
            return self._connection.execute("PRAGMA data_version").fetchone()[0]
        return None
