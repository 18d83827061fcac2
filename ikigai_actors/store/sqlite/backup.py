"""Backups of an SQLite database: a consistent copy in one file, made while a host goes on."""

import contextlib
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from ikigai_actors.errors import BadInput, StoreError, StoreUnusable
from ikigai_actors.store.base import Store
from ikigai_actors.store.location import mask
from ikigai_actors.store.new_file import partial_path, reach_the_disk, refuse_to_overwrite
from ikigai_actors.store.sqlite.file import LOG, SHARED, make_file
from ikigai_actors.store.sqlite.fork_gate import FORK_GATE
from ikigai_actors.store.sqlite.store import SQLiteStore
from ikigai_actors.store.sqlite.transaction import ours

T = TypeVar("T")

_BESIDE = ("", "-journal", LOG, SHARED)
"""The files that SQLite may leave beside a file."""


def back_up(store: Store, target: Path, examine: Callable[[Store], T]) -> T:
    """Copy everything that is committed at this moment to a new file; hosts go on meanwhile.

    Args:
        store: an SQLite database. For PostgreSQL use the server's own programs.
        target: the new file, which only its user may read.
        examine: checks the copy before it gets its name; an error that it raises undoes the backup.

    Returns:
        What ``examine`` returned.

    Raises:
        BadInput: a file exists at the target.
        StoreUnusable: the database is not SQLite's, or it is damaged.
        StoreError: an error of either file. Nothing is left then.
    """
    if not isinstance(store, SQLiteStore):
        raise StoreUnusable(
            f"Database {store.location} is on a PostgreSQL server, which makes its own backups: run pg_dump. Or copy "
            f"it to a file: ikigai copy {store.location} FILE."
        )
    target = target.absolute()
    refuse_to_overwrite(target, "a backup")
    part = partial_path(target)
    make_file(part)
    try:
        _fill(part, store)
        with closing(SQLiteStore(part)) as copy:
            _leave_words_out(copy)
            examination = examine(copy)
        _settle(part)
        refuse_to_overwrite(target, "a backup")
        part.rename(target)
        reach_the_disk(target.parent)
    except OSError as error:
        raise StoreError(f"The backup {target} cannot be written: {error.strerror or error}.") from error
    finally:
        for suffix in _BESIDE:
            with contextlib.suppress(OSError):
                part.with_name(part.name + suffix).unlink()
    return examination


def as_target(text: str) -> Path:
    """Return the file that a person names for a backup. Raises `BadInput` for a URL."""
    if "://" in text or not text.strip():
        raise BadInput(
            f"Expected the path of a new file, got {mask(text)!r}. To another database: ikigai copy FROM TO."
        )
    return Path(text).expanduser()


def _leave_words_out(copy: SQLiteStore) -> None:
    if copy.read(lambda tx: tx.words.is_there()):
        copy.write(lambda tx: tx.words.drop())
        copy.shrink()


def _fill(part: Path, store: SQLiteStore) -> None:
    """Copy the database, and check the copy by reading it in full."""
    try:
        with FORK_GATE, closing(sqlite3.connect(part, isolation_level=None)) as connection:
            store.copy_into(connection)
            connection.execute("PRAGMA user_version = 0")  # it needs no log: see wal.py
            [(verdict,), *_] = connection.execute("PRAGMA integrity_check(1)").fetchall()
    except sqlite3.Error as error:
        raise ours(error, store.location) from error
    if verdict != "ok":
        raise StoreUnusable(f"Database {store.location} is damaged, and no backup was made: {verdict}.")


def _settle(part: Path) -> None:
    """Move the copy's log into the file, and flush it to the disk."""
    try:
        with FORK_GATE, closing(sqlite3.connect(part, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.Error as error:
        raise ours(error, str(part)) from error
    reach_the_disk(part)
