"""The write-ahead log of an SQLite file, and the mark in the file that says whether the file needs this log.

A commit goes to the log (``-wal``) first, and is moved into the file later (by a checkpoint), so a file alone may be
an older state than the database. The mark is SQLite's ``user_version``, a number at a fixed place of the first page.
A mark n > 0 in the file says that the file needs its log; any other mark says that the file is whole. The log has a
newer version of the first page, with the mark -n, and a reader of the database sees that. So a program that moves the
log into the file, such as SQLite at a close or the sqlite3 shell, writes -n into the file and thereby marks it as
whole, without knowing of the mark.

A host moves the log in three steps (`WriteAheadLog.move`): it commits the mark n + 1, lets SQLite move the log, and
commits -(n + 1) once the file has n + 1. With this last commit SQLite starts the log from its beginning, if everything
was moved and nobody reads the old log. So while a host lives, the mark in the file is above 0, and its number ties the
file to the log that follows. While another connection reads an older state, or moves the log itself, the move is not
finished. Connections of this program move the log at no other time before the last of them is closed; other programs,
such as the sqlite3 shell or a replicator, may move it at any moment. After an interruption the state is one of these:

| state | mark in the file | mark seen by readers | the file alone | at the next open, with the log beside it |
|---|---|---|---|---|
| new: its tables were made, without a log | 0 | 0 | whole | nothing to do |
| closed: no log | -n | -n | whole | nothing to do |
| no host, a client has written | -n | -n | lacks the client's writes | the next host marks the file before it writes |
| another connection has moved the log, and has written | -n | -n | lacks the writes | a host marks it before writing |
| step 1 at a host's start, nothing moved | -n | n + 1 | whole | the host finishes the move |
| a host lives, or was killed | n | -n | refused | nothing to do |
| step 1, nothing or a part moved (a reader) | n | n + 1 | refused | the host finishes the move |
| step 2, all moved | n + 1 | n + 1 | refused | the host finishes the move |
| step 3 | n + 1 | -(n + 1) | refused | nothing to do: a host lives |
| a host closes (`WriteAheadLog.settle`) | n | -n | refused | nothing to do |
| the last connection closed, its first page moved | -n | -n | whole | SQLite deletes the log |

A file that needs its log is refused when the log is missing or empty. A file and a log are refused if their numbers are
in no row of the table: they were copied at different moments, or the log is another database's. A whole file is refused
if it is longer than its first page says: it was copied while a host began, and grew. These checks are made before
SQLite can move the log, and not while a host uses the file. Files of programs before the mark have 0 everywhere.

When a host is killed before step 3, and the sqlite3 shell then moves the log and deletes it, the file alone has the
mark of step 2. So up to that step the host notes the mark in its ``.lock``, which stays where the host was.

Limits. While a transaction of a reader is open that began before the host, the file cannot be marked; each transaction
of the host tries again. Two kinds of damaged copies may be taken for whole: a copy that began before the host did, and
went on while the host moved its log, if the file did not grow; and a file and a log that were copied during a move. A
copy by SQLite's own backup within step 2 is refused: the error says how to take the file as it is.
"""

import contextlib
import os
import secrets
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from ikigai_actors.errors import StoreUnusable
from ikigai_actors.store.sqlite.file import HEADER, LOG, SQLiteFile, is_locked, lock_path, log_path

LOG_PAGES = 1000
"""This many pages of the log are moved into the file, however much is written; SQLite would do the same."""

_LIMIT = 2**31 - 1
_PREFIX, _FRAME = 32, 24
"""Bytes before the frames of a log, and before the page in each."""


def following(mark: int) -> int:
    """Return the next mark above 0. The first one is random, so that no other database has the same."""
    return abs(mark) % _LIMIT + 1 if mark else 1 + secrets.randbelow(2**30)


def belongs(mark: int, seen: int) -> bool:
    """Return whether a log belongs to its file, by the mark in the file and the mark seen through the log."""
    return seen in (mark, -abs(mark), following(mark)) or (mark == 0 and seen > 0)


class Header(bytes):
    """The first bytes of an SQLite file, from which the mark and the size are read."""

    @property
    def mark(self) -> int:
        """Return the mark of the file; 0 for a file without a log."""
        return int.from_bytes(self[60:64], "big", signed=True) if self._keeps_log else 0

    @property
    def size(self) -> int | None:
        """Return the size of the database in bytes according to the header; None for a file without a log."""
        page = int.from_bytes(self[16:18], "big")
        return int.from_bytes(self[28:32], "big") * (page if page > 1 else 65536) if self._keeps_log else None

    @property
    def _keeps_log(self) -> bool:
        return len(self) == HEADER and self.startswith(b"SQLite format 3\0") and self[18:20] == b"\2\2"


def check_log(file: SQLiteFile, patience: float) -> None:
    """Check that the log beside a file belongs to it, and exists if the file needs it.

    Call it before SQLite may move the log.

    Nothing is checked while a host lives, since the log is that host's. Raises `StoreUnusable`, and changes nothing
    then.
    """
    beside = log_path(file.path)
    while not is_locked(file.path):
        header, log = Header(file.header()), _size(beside)
        if log:
            wrong = None if belongs(header.mark, _seen(file.path, patience)) else _FOREIGN
        elif header.mark > 0:
            wrong = None if _moved(file.path) == header.mark else _LOST
        else:
            wrong = _TORN if header.size is not None and header.size < _size(file.path) else None
        if wrong is None:
            return
        if (header, log) == (file.header(), _size(beside)):  # else somebody has closed it, or a host has begun
            raise StoreUnusable(_refusal(str(file.path), wrong))


class WriteAheadLog:
    """The log of a file, for the connection that writes. Its methods must be called outside of transactions."""

    def __init__(self, file: SQLiteFile, writer: sqlite3.Connection) -> None:
        self._file, self._writer = file, writer
        self._path, self._due = str(log_path(file.path)), LOG_PAGES
        self._open = 0  # the mark of a move that has not ended
        self._claimed = b""  # the header of the file that said so at the latest look
        writer.execute("PRAGMA wal_autocheckpoint = 0")  # it would move a mark that says that the file is whole

    def recover(self) -> None:
        """Finish a move of the log that a host began before it ended."""
        if (seen := self._mark_seen()) > 0 and not is_locked(self._file.path):
            with _unsynced(self._writer):
                self._checkpoint()
                self._end(seen)

    def claim(self) -> None:
        """Mark the file as needing this log, unless it is marked already."""
        header = self._file.header()
        if header == self._claimed:
            return
        mark = Header(header).mark
        if mark > 0 and not self._open:
            self._claimed = header
        elif mark <= 0:
            self.move()
        elif mark == self._open:  # another connection has moved it there
            with _unsynced(self._writer):
                self._end(mark)

    def move(self) -> None:
        """Move the log into the file, except for the part that another process still reads.

        While another process moves the log, or reads an older state, the move is not finished.
        """
        with _unsynced(self._writer):
            if self._open:
                self._end(self._open)  # its note must stay up to then
            self._open = mark = following(self._mark_in_file())
            _note(self._file.path, str(mark))
            self._writer.execute(f"PRAGMA user_version = {mark}")
            pages = self._checkpoint()
            self._end(mark)
        if pages is not None:
            self._due = LOG_PAGES + (pages if self._reaches(pages + 1) else 0)

    def move_when_long(self) -> None:
        """Move the log into the file if it has grown long."""
        if self._reaches(self._due):
            self.move()

    def settle(self, reader: sqlite3.Connection) -> None:
        """Move everything except the mark into the file, so that only the mark is left for the last close.

        SQLite would move the page with the mark first, and a copy made meanwhile would look whole. Pages that another
        connection reads stay in the log. So ``reader`` keeps reading the state before the mark was last written.
        """
        if self._open:
            self.move()
        if self._open or self._mark_in_file() <= 0:
            return
        reader.execute("BEGIN")
        try:
            reader.execute("SELECT COUNT(*) FROM sqlite_master").fetchall()
            with _unsynced(self._writer):
                self._writer.execute(f"PRAGMA user_version = {-self._mark_in_file()}")
                self._writer.execute("PRAGMA synchronous = OFF")  # the log stays until the close has synchronized both
                self._checkpoint()
        finally:
            reader.execute("ROLLBACK")

    def _checkpoint(self) -> int | None:
        """Checkpoint: have SQLite copy pages from the log into the file, as far as readers of older states let it.

        Return the number of pages in the log; None while another connection makes a checkpoint.
        """
        [(_, pages, _)] = self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        return int(pages) if pages >= 0 else None

    def _end(self, mark: int) -> None:
        """End the move of the log that has this mark, if the mark is in the file.

        Until the mark is in the file, the move must stay open. Another connection may still move the mark there, and a
        log with any other mark would not fit the file after that.
        """
        if self._mark_in_file() == mark:
            self._writer.execute(f"PRAGMA user_version = {-mark}")
            self._open = 0
            _note(self._file.path, "")

    def _mark_in_file(self) -> int:
        return Header(self._file.header()).mark

    def _mark_seen(self) -> int:
        return int(self._writer.execute("PRAGMA user_version").fetchone()[0])

    def _reaches(self, pages: int) -> bool:
        """Return whether the log has at least this many pages. Only pages with its present salt count."""
        try:
            descriptor = os.open(self._path, os.O_RDONLY)
        except OSError:
            return False
        try:
            header = os.pread(descriptor, _PREFIX, 0)
            size = _FRAME + int.from_bytes(header[8:12], "big")
            frame = os.pread(descriptor, _FRAME, _PREFIX + (pages - 1) * size)
        finally:
            os.close(descriptor)  # no lock is lost: SQLite has none on the log
        return len(frame) == _FRAME and frame[8:16] == header[16:24]


@contextlib.contextmanager
def _unsynced(writer: sqlite3.Connection) -> Iterator[None]:
    """Let commits in the block reach the disk later, though in order.

    A crash may lose a mark, with everything after it.
    """
    writer.execute("PRAGMA synchronous = NORMAL")
    try:
        yield
    finally:
        writer.execute("PRAGMA synchronous = FULL")


def _note(path: Path, mark: str) -> None:
    """Write the mark under which the log is moved into the host's lock file, beside the database.

    An empty mark removes the note.
    """
    with contextlib.suppress(OSError):
        lock_path(path).write_text(mark)


def _moved(path: Path) -> int | None:
    """Return the mark in the lock file, under which a killed host was moving the log; None if there is none."""
    with contextlib.suppress(OSError, ValueError):
        return int(lock_path(path).read_text())
    return None


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 - as in file.py
    except OSError:
        return 0


def _seen(path: Path, patience: float) -> int:
    """Return the mark as SQLite shows it, through a connection that moves nothing."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=patience)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def has_no_table(location: str) -> StoreUnusable:
    """Return the error for a file of an older program whose log, which has the tables, is missing."""
    loss = _LOST.format(log=f"{location}{LOG}")
    return StoreUnusable(
        f"Database {location} has no table. It {loss} {_ANOTHER_COPY} If nothing in it is needed, delete the file."
    )


def _refusal(location: str, wrong: str) -> str:
    return (
        f"Database {location} {wrong.format(log=f'{location}{LOG}')} {_ANOTHER_COPY} To open it without a log as it "
        f"is, which may be an older state or damaged: sqlite3 {shlex.quote(location)} 'PRAGMA user_version = 0', then "
        "ikigai fsck."
    )


_LOST = (
    "was in use, and its log {log} is missing: it was copied without it, or the log was deleted. Put the log back "
    "beside it."
)
_FOREIGN = (
    "has a log {log} that is not its own: the two were copied at different moments, or another file of this name left "
    "the log. Move the log away; if the file is a backup, that is all."
)
_TORN = "was copied while a host began to use it, and has pages of before and after."
_ANOTHER_COPY = "Or take another copy where it came from: ikigai backup FILE makes one of a database in use."
