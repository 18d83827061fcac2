"""SQLite, by the standard library's sqlite3.

One connection writes and one reads, each with a lock that is held for a whole transaction; a database in memory has one
connection and one lock for both. Writes begin with BEGIN IMMEDIATE: a transaction that reads first and writes later
would be refused at once when another process has written in between. Durability is WAL with ``synchronous=FULL``: a
commit that returned survives a crash. A new file gets its log (WAL) after its tables. So a file that has a log and no
tables has lost the contents of the log. Later a mark in the file says whether it needs its log:
`ikigai_actors.store.sqlite.wal`.

Limits: one process writes at a time; the others wait up to ``patience`` seconds and then get `StoreUnavailable`.
"""

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ikigai_actors.errors import CommitUnknown, StoreError, StoreUnavailable, StoreUnusable
from ikigai_actors.store.base import Store, Transaction, Watch
from ikigai_actors.store.forwarding import ForwardingStore
from ikigai_actors.store.location import MEMORY
from ikigai_actors.store.sqlite.file import SQLiteFile
from ikigai_actors.store.sqlite.fork_gate import FORK_GATE, GatedLock
from ikigai_actors.store.sqlite.host_lock import lock_file, lock_name
from ikigai_actors.store.sqlite.transaction import SQLITE_ERRORS, SQLiteTransaction, failed_commit, ours
from ikigai_actors.store.sqlite.wal import WriteAheadLog, check_log, has_no_table
from ikigai_actors.store.sqlite.watch import FileWatch, NoWatch

T = TypeVar("T")

_PATIENCE = 5.0
"""Seconds that a transaction waits for another process's."""

CACHE = 8 * 1024
"""KiB of pages that the writing connection keeps in memory between transactions, at most: a long-lived process fills
it.
"""

SPILL = 64 * 1024
"""KiB of changed pages above which a transaction writes some before its COMMIT, perhaps to write them again later. With
`CACHE` alone, the death of 100,000 agents would write many pages over and over.
"""

_PAGE = 4
"""KiB of a page."""

FREED = 1_000
"""Pages that are given back to the disk at once."""

_INCREMENTAL = 2
"""SQLite's number for the mode of a file that gives pages back when it is asked."""


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class _Session:
    """A connection of SQLite, and the lock that its user holds for a whole transaction."""

    def __init__(self, connection: sqlite3.Connection, location: str) -> None:
        self.connection = connection
        self.lock = GatedLock()  # a transaction inside another is then refused; a plain lock would hang
        self._location = location

    def transact(self, work: Callable[[Transaction], T], hear: Callable[[int], object], *, writes: bool) -> T:
        if self.connection.in_transaction:
            raise StoreError(f"Database {self._location}: a transaction was begun inside another.")
        transaction = SQLiteTransaction(self.connection, self._location)
        before = self.connection.total_changes
        try:
            self._begin("BEGIN IMMEDIATE" if writes else "BEGIN")
            result = work(transaction)
            if transaction.heard:
                hear(transaction.heard)
            transaction.flush()
            if not writes and self.connection.total_changes != before:  # in memory, where the connection may write
                raise StoreError(f"Database {self._location}: a transaction that only reads has written.")
            self._commit()
        except CommitUnknown:
            with contextlib.suppress(StoreError):
                self._rollback()
            raise
        except BaseException:
            self._rollback()
            raise
        finally:
            transaction.finish()
        return result

    def _begin(self, how: str) -> None:
        try:
            self.connection.execute(how)
        except SQLITE_ERRORS as error:
            raise ours(error, self._location) from error

    def _commit(self) -> None:
        try:
            self.connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise failed_commit(error, self._location) from error

    def _rollback(self) -> None:
        if self.connection.in_transaction:  # a full disk has rolled back already, and ROLLBACK would fail
            try:
                self.connection.execute("ROLLBACK")
            except sqlite3.Error as error:
                raise ours(error, self._location) from error


def _fill(connection: sqlite3.Connection, image: bytes) -> None:
    """Give a database in memory its first contents. Deserialized itself, it could not grow beyond a gigabyte."""
    with contextlib.closing(sqlite3.connect(":memory:")) as memory:
        memory.deserialize(image)
        memory.backup(connection)


class SQLiteStore(Store):
    """A `Store` in an SQLite file, or in memory."""

    leases = False

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        patience: float = _PATIENCE,
        now_ms: Callable[[], int] = _now_ms,
        image: bytes = b"",
    ) -> None:
        """Open the file, or make an empty one that only the user may read.

        Args:
            path: the file, in a directory that exists; None: a database in memory.
            patience: seconds that a transaction waits for another process's.
            now_ms: the clock of the statements, in milliseconds since 1970.
            image: the first contents of a database in memory, as `image` returned them; empty for none.

        Raises:
            StoreUnavailable, StoreUnusable: see `ikigai_actors.errors`; the message says what to do.
        """
        self.path = None if path is None else Path(path).absolute()
        """The file; None for a database in memory."""
        self.location = MEMORY if self.path is None else str(self.path)
        self._closed = False
        self._now_ms = now_ms
        self._patience = patience
        self._log: WriteAheadLog | None = None
        self._hosted = False
        self._hear: Callable[[int], object] = lambda stamp: None
        self._file = None if self.path is None else SQLiteFile(self.path)
        with FORK_GATE:
            self._open_connections(image)

    def _open_connections(self, image: bytes) -> None:
        try:
            self._look_at_log()
            self._writer = self._reader = _Session(self._connect(), self.location)
            try:
                if image:
                    _fill(self._writer.connection, image)
                self._prepare()
            except BaseException:
                self._writer.connection.close()
                raise
        except BaseException:
            self._let_go()
            raise

    def _look_at_log(self) -> None:
        if self._file is not None:
            try:
                check_log(self._file, self._patience)
            except sqlite3.Error as error:
                raise ours(error, self.location) from error

    def read(self, work: Callable[[Transaction], T]) -> T:
        with self._reader.lock:
            self._check()
            return self._reader.transact(work, self._hear, writes=False)

    def write(self, work: Callable[[Transaction], T]) -> T:
        with self._writer.lock:
            self._check()
            if self._hosted:
                self._care(WriteAheadLog.claim)
            result = self._writer.transact(work, self._hear, writes=True)
            if self._file is not None and self._log is None:  # the first transaction, which made the tables
                with contextlib.suppress(StoreUnavailable):  # somebody reads: the next one does it
                    self._keep_log(self._file)
            elif self._hosted:
                self._care(WriteAheadLog.move_when_long)
            return result

    def listen(self, hear: Callable[[int], object]) -> None:
        self._hear = hear

    def image(self) -> bytes:
        """Return the bytes of everything that is committed to a database in memory. Another one can begin with them."""
        with self._reader.lock:
            return self._reader.connection.serialize()

    def close(self) -> None:
        """Wait for the transactions in progress, then close the connections; a second call does nothing."""
        with self._reader.lock, self._writer.lock:
            self._closed = True
            self._reader.connection.close()
            self._writer.connection.close()  # last: it moves the log into the file
            self._let_go()

    def checkpoint(self) -> None:
        """Move the log into the file, except for the part that another process still reads. For the host alone."""
        with self._writer.lock:
            self._check()
            self._care(WriteAheadLog.move)

    def shrink(self, whole: bool = False) -> bool:
        """Give free pages back to the disk, `FREED` at a time.

        A file made by an older program must be rewritten first.
        """
        if self._file is None:
            return True
        if whole:
            unlock = self.lock()
            try:
                self._vacuum("PRAGMA auto_vacuum = INCREMENTAL; VACUUM")
            finally:
                unlock()
        free, mode = self._vacuum()
        while mode == _INCREMENTAL and free:
            free, mode = self._vacuum(f"PRAGMA incremental_vacuum({FREED})")
        return mode == _INCREMENTAL

    def _vacuum(self, script: str = "") -> tuple[int, int]:
        """Run a script outside of transactions; return how many pages are free then, and the mode of the file."""
        with self._writer.lock:
            self._check()
            connection = self._writer.connection
            try:
                connection.executescript(script)  # by `execute` it would free one page alone
                [(free,)] = connection.execute("PRAGMA freelist_count").fetchall()
                [(mode,)] = connection.execute("PRAGMA auto_vacuum").fetchall()
            except sqlite3.Error as error:
                raise ours(error, self.location) from error
            if self._hosted:
                self._care(WriteAheadLog.move_when_long)
            return int(free), int(mode)

    def lock(self) -> Callable[[], object]:
        """Lock the file for a host, under any name; in memory there is nothing to lock.

        Before each later transaction the file is marked as needing its log; see `ikigai_actors.store.sqlite.wal`.
        """
        with contextlib.ExitStack() as locks:
            if self._file is not None:
                locks.callback(lock_file(self, self._file))
                locks.callback(lock_name(self, self._file))
                self._hosted = True
                locks.callback(self._end_marking)
            return locks.pop_all().close

    def _end_marking(self) -> None:
        with self._reader.lock, self._writer.lock:
            self._hosted = False
            if not self._closed:
                self._care(lambda log: log.settle(self._reader.connection))

    def _care(self, work: Callable[[WriteAheadLog], None]) -> None:
        """Run maintenance of the log, if there is a log.

        Failed maintenance is tried again later: no transaction is refused because of it, and no committed one counts as
        failed.
        """
        if self._log is not None:
            try:
                work(self._log)
            except (*SQLITE_ERRORS, OSError) as error:
                import logging  # 10 ms, for what hardly happens

                logging.getLogger(__name__).info("The log of database %s stays as it is: %s", self.location, error)

    def copy_into(self, target: sqlite3.Connection) -> None:
        """Copy everything that is committed, in one snapshot, to an empty database; hosts go on meanwhile."""
        with self._reader.lock:
            self._check()
            try:
                self._reader.connection.backup(target)
            except sqlite3.Error as error:
                raise ours(error, self.location) from error

    def separate(self) -> Store:
        """Return this store under another name: SQLite has one writer, so more connections would gain nothing."""
        return BorrowedStore(self)

    def watch(self, *, hosts: bool = False) -> Watch:
        """Return a watch on the file. Every commit changes the file, so ``hosts`` makes no difference."""
        return NoWatch() if self.path is None else FileWatch(self.path, self._commits_of_others)

    def _commits_of_others(self) -> int:
        """Return a number that changes when a connection other than the writing one has committed."""
        with self._writer.lock:
            self._check()
            try:
                return int(self._writer.connection.execute("PRAGMA data_version").fetchone()[0])
            except sqlite3.Error as error:
                raise ours(error, self.location) from error

    def _check(self) -> None:
        """Refuse a closed store, and a file that was moved or deleted.

        SQLite would go on writing to the file unnoticed.
        """
        if self._closed:
            raise StoreError(f"Database {self.location}: this store was closed.")
        if self._file is not None:
            self._file.check()

    def _let_go(self) -> None:
        if self._file is not None:
            self._file.close()

    def _connect(self) -> sqlite3.Connection:
        try:
            connection = sqlite3.connect(
                self.location,
                timeout=self._patience,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=256,
            )
            connection.create_function("now_ms", 0, self._now_ms)
        except sqlite3.Error as error:
            raise ours(error, self.location) from error
        return connection

    def _prepare(self) -> None:
        writer = self._writer.connection
        try:
            writer.execute("PRAGMA synchronous = FULL")
            if self._file is not None:
                if not _tables(writer):  # later it would need the whole file to be rewritten
                    writer.execute("PRAGMA auto_vacuum = INCREMENTAL")
                self._keep_log(self._file)
            writer.execute("PRAGMA foreign_keys = ON")
            writer.execute(f"PRAGMA cache_size = -{CACHE}")
            writer.execute(f"PRAGMA cache_spill = {SPILL // _PAGE}")
        except SQLITE_ERRORS as error:
            raise ours(error, self.location) from error
        if self._file is not None:
            self._reader = _Session(self._connect(), self.location)
            self._reader.connection.execute("PRAGMA query_only = ON")  # a read that writes is an error, not an accident

    def _keep_log(self, file: SQLiteFile) -> None:
        try:
            has_log = self._has_log()
            file.remember(log=has_log)
            if has_log:
                self._log = WriteAheadLog(file, self._writer.connection)
                self._log.recover()
        except sqlite3.Error as error:
            raise ours(error, self.location) from error

    def _has_log(self) -> bool:
        """Set the file's journal mode; return whether it has a log.

        The call is repeated while another process also sets the mode: SQLite does not wait for that by itself.
        """
        writer, deadline = self._writer.connection, time.monotonic() + self._patience
        while True:
            try:
                mode, tables = writer.execute("PRAGMA journal_mode").fetchone()[0], _tables(writer)
                if mode == "wal" and not tables:
                    raise has_no_table(self.location)
                if mode != "wal" and "schema_version" not in tables:  # new, or foreign: then refused unchanged
                    return False
                if mode != "wal":
                    mode = writer.execute("PRAGMA journal_mode = WAL").fetchone()[0]
                    _tables(writer)  # opens the log
                break
            except sqlite3.OperationalError as error:
                if not getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY") or time.monotonic() > deadline:
                    raise
                time.sleep(0.005)  # nothing shows when the other process is done; its own timeout is not used here
        if mode != "wal":
            raise StoreUnusable(f"Database {self.location}: no write-ahead log can be kept there. Use a local disk.")
        return True


class BorrowedStore(ForwardingStore):
    """Another name for a store; closing it leaves the store open."""

    def separate(self) -> Store:
        return self

    def close(self) -> None:
        """Do nothing: the store stays open."""


def _tables(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
