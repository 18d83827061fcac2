"""The file of an SQLite database: how it is made, recognized again, and locked.

SQLite finds its log (``-wal``) and the memory that readers and writers share (``-shm``) by the name of the file. A
second name has a second log, and commits under one name are lost under the other: so a file with two hard links is
refused. A file that is mounted by itself has one link and two names all the same; only a lock on the file itself shows
that.

A process that closes any descriptor of a file loses every POSIX lock that it has on it, SQLite's too. So a process has
one `Anchor` for each file, opened before SQLite's connections and closed after the last of them.
"""

import contextlib
import errno
import fcntl
import os
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import NoReturn

from ikigai_actors.errors import StoreInUse, StoreUnavailable, StoreUnusable

Inode = tuple[int, int]

LOG, SHARED = "-wal", "-shm"
"""The suffixes of SQLite's log, and of the memory that processes share."""

LOCK = ".lock"
"""The suffix of the file whose lock a host holds."""

BESIDE = (LOG, SHARED, LOCK, "-journal")
"""The suffixes of the files beside a database."""

ASKED = 1.0
"""Seconds that a lock may be held by processes that only ask whether there is a host: one may be stopped meanwhile."""

HEADER = 100
"""Bytes of an SQLite file before its first page's content."""

LOCKS_MEET = sys.platform != "linux"
"""Whether ``flock`` and SQLite's POSIX locks hinder one another, as they do on BSD and macOS."""


def lock_path(path: Path) -> Path:
    """Return the file beside the database whose lock a host holds."""
    return path.with_name(path.name + LOCK)


def log_path(path: Path) -> Path:
    """Return the log file of an SQLite database, which lies beside it."""
    return path.with_name(path.name + LOG)


def is_locked(path: Path) -> bool:
    """Return whether a process holds the host's lock of a database. Takes that lock for a moment to find out."""
    try:
        descriptor = os.open(lock_path(path), os.O_RDONLY)
    except FileNotFoundError:
        return False
    except OSError:  # somebody else's: nothing speaks against it
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: those who ask do not see one another
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


class Anchor:
    """One process's open descriptor of a database file, kept until SQLite's own are closed.

    The anchor also holds the host's lock.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptors = [descriptor]
        self._users = 0
        self._locked = False

    def lock(self) -> Callable[[], None] | None:
        """Lock the file for a host.

        Return the function that unlocks it, or None if another process has locked the file.

        Raises `OSError` on a file system without locks. Nothing is locked where such a lock would stop SQLite.
        """
        if LOCKS_MEET:
            return lambda: None
        with _lock:
            if self._locked:
                return None
            try:
                fcntl.flock(self._descriptors[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return None
            self._locked = True
            self._users += 1  # closing the store first takes no descriptor from under the lock
        owner = os.getpid()

        def unlock() -> None:
            if os.getpid() == owner:  # a forked child would free its parent's
                with _lock:
                    fcntl.flock(self._descriptors[0], fcntl.LOCK_UN)
                    self._locked = False
                self._release()

        return unlock

    def is_locked(self) -> bool:
        """Return whether another process has locked the file for a host."""
        if LOCKS_MEET:
            return False
        with _lock:
            if self._locked:
                return False
            try:
                fcntl.flock(self._descriptors[0], fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            except OSError:  # no locks there: a process that wants to run the agents gets the error
                return False
            fcntl.flock(self._descriptors[0], fcntl.LOCK_UN)
            return False

    def header(self) -> bytes:
        """Return the first bytes of the file; empty if it cannot be read."""
        try:
            return os.pread(self._descriptors[0], HEADER, 0)
        except OSError:
            return b""

    def _release(self) -> None:
        with _lock:
            self._users -= 1
            if self._users == 0:
                _anchors.pop(next(inode for inode, anchor in _anchors.items() if anchor is self))
                for descriptor in self._descriptors:
                    os.close(descriptor)


_anchors: dict[Inode, Anchor] = {}
_lock = Lock()


def _anchored(path: Path) -> Anchor | None:
    """Return the anchor of a file, and count one more user of it; None for a path that is no readable file."""
    with _lock:
        try:
            status = os.stat(path)  # noqa: PTH116 - as below
            if not stat.S_ISREG(status.st_mode):  # SQLite says what is wrong
                return None
            anchor = _anchors.get((status.st_dev, status.st_ino))
            if anchor is None:
                descriptor = os.open(path, os.O_RDONLY)
                status = os.fstat(descriptor)
                anchor = _anchors.setdefault((status.st_dev, status.st_ino), Anchor(descriptor))
                if descriptor not in anchor._descriptors:  # replaced meanwhile by one that is held already
                    anchor._descriptors.append(descriptor)
        except OSError:
            return None
        anchor._users += 1
        return anchor


class SQLiteFile:
    """The file of one store, for as long as it is open."""

    def __init__(self, path: Path) -> None:
        """Open the file, making it if it is missing, and keep it open.

        Raises `StoreUnavailable`, `StoreUnusable`, and `StoreInUse` when the host of the file opened it under another
        name.
        """
        make_file(path)
        self.path = path
        self._names = [path]
        self._paths: list[str] = []
        self._seen: list[Inode | None] = []
        self._anchor = _anchored(path)
        try:
            self._refuse_links()
            self._refuse_other_name()
        except BaseException:
            self.close()
            raise

    def remember(self, *, log: bool) -> None:
        """Remember the file's identity; with ``log`` also the identity of SQLite's files beside it."""
        self._names = [self.path]
        if log:
            self._names += [self.path.with_name(self.path.name + suffix) for suffix in (LOG, SHARED)]
        self._paths = list(map(str, self._names))
        self._seen = list(map(inode, self._paths))

    def check(self) -> None:
        """Raise `StoreUnusable` if the file was moved or deleted. SQLite would go on writing to it unnoticed."""
        try:
            inodes: list[Inode | None] = [(status.st_dev, status.st_ino) for status in map(os.stat, self._paths)]
        except OSError:  # one is gone, or was not there
            inodes = list(map(inode, self._paths))
        for name, seen, now in zip(self._names, self._seen, inodes, strict=False):
            if now != seen:
                raise StoreUnusable(self._gone(name))

    def header(self) -> bytes:
        """Return the first bytes of the file itself, without changes in its log; empty if the file cannot be read."""
        return b"" if self._anchor is None else self._anchor.header()

    def lock(self) -> Callable[[], None] | None:
        """Lock the file for a host, as `Anchor.lock` does; does nothing for a file without an anchor."""
        return self._anchor.lock() if self._anchor is not None else lambda: None

    def close(self) -> None:
        """Close the file, after all connections to it were closed. A second call does nothing."""
        anchor, self._anchor = self._anchor, None
        if anchor is not None:
            anchor._release()

    def _gone(self, name: Path) -> str:
        if name == self.path:
            return f"Database {self.path} was deleted or replaced while it was open. Start again."
        return (
            f"Database {self.path}: its {name.name} was deleted or replaced while it was open. It is part of the "
            "database while that is in use, so nothing more is written. End every program that has it open, without "
            "kill -9, and start again."
        )

    def _refuse_links(self) -> None:
        with contextlib.suppress(OSError):
            status = os.stat(self.path)  # noqa: PTH116 - as below
            if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                raise StoreUnusable(
                    f"Database {self.path} has {status.st_nlink} names (hard links), and each would have a log of its "
                    "own, so what is written by one name would be lost by the other. Delete all names but one "
                    f"(find DIRECTORY -samefile {self.path} lists them)."
                )

    def _refuse_other_name(self) -> None:
        until = time.monotonic() + ASKED
        while self._anchor is not None and self._anchor.is_locked() and not is_locked(self.path):
            if time.monotonic() > until:
                raise StoreInUse(
                    f"Database {self.path} is in use by a process that knows the file by another name: it was mounted "
                    "alone, say. What is written by one name would be lost by the other. End that process, and mount "
                    "the directory of the file instead."
                )
            time.sleep(ASKED / 100)  # that host begins, or ends: it has one lock, and not the other


def inode(path: str | Path) -> Inode | None:
    """Return the identity (device and inode) of the file with this name; None if there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116 - before each transaction: half of what Path.stat takes
    except OSError:
        return None
    return status.st_dev, status.st_ino


def make_file(path: Path) -> None:
    """Make a file that only its user may read. SQLite gives its own files beside it the same mode.

    An existing file is not opened: closing it would give up every lock that this process has on it.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        _refuse(path, error)


def _refuse(path: Path, error: OSError) -> NoReturn:
    reason = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE):
        raise StoreUnavailable(f"Database {path} cannot be made: {reason}.") from error
    if not path.parent.is_dir():
        raise StoreUnusable(
            f"Database {path}: there is no directory {path.parent}. Make it, or name another."
        ) from error
    raise StoreUnusable(f"Database {path} cannot be made: {reason}. Name another place.") from error
