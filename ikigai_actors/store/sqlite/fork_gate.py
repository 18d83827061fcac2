"""The fork gate: when a process forks, none of its threads is within SQLite.

SQLite has locks of the whole process, such as that of its memory. `os.fork` copies them as they are, and only the
thread that forks. If another thread holds one at that moment, nobody ever frees it in the child, and the child hangs in
its first call of SQLite, whichever database it opens. So threads enter this gate for as long as they are within SQLite,
and a fork waits until all others have left.
"""

import os
import threading

FORK_WAIT = 10.0
"""Seconds that a fork waits for a long transaction before it goes on anyway."""


class ForkGate:
    """A reentrant context manager for code inside SQLite.

    A fork of the process waits until all threads have left it.
    """

    def __init__(self) -> None:
        self._own = threading.local()
        self.begin_anew()

    @property
    def forking(self) -> bool:
        """Return whether a thread forks, or waits to fork."""
        return self._forking

    def __enter__(self) -> None:
        depth = getattr(self._own, "depth", 0)
        if not depth:
            with self._lock:
                while self._forking:
                    self._changed.wait()
                self._inside += 1
        self._own.depth = depth + 1

    def __exit__(self, *_: object) -> None:
        self._own.depth -= 1
        if not self._own.depth:
            with self._lock:
                self._inside -= 1
                if self._forking:
                    self._changed.notify_all()

    @property
    def _depth(self) -> int:
        """Return how many times the calling thread has entered the gate."""
        return getattr(self._own, "depth", 0)

    def close(self) -> None:
        """Keep other threads from entering, and wait until those inside have left.

        For the thread that is about to fork.
        """
        with self._changed:
            self._changed.wait_for(lambda: not self._forking)
            self._forking = True
            self._changed.wait_for(lambda: self._inside <= bool(self._depth), FORK_WAIT)

    def open(self) -> None:
        """Let other threads enter again."""
        with self._changed:
            self._forking = False
            self._changed.notify_all()

    def begin_anew(self) -> None:
        """Reset the gate in a forked child, which has none of the parent's other threads."""
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._inside = int(bool(self._depth))
        self._forking = False


FORK_GATE = ForkGate()
"""The gate of this process."""

os.register_at_fork(before=FORK_GATE.close, after_in_parent=FORK_GATE.open, after_in_child=FORK_GATE.begin_anew)


class GatedLock:
    """A reentrant lock. A thread that holds it is also inside the fork gate."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        FORK_GATE.__enter__()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        FORK_GATE.__exit__()
