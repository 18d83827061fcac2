"""A transaction on SQLite, and the translation of sqlite3's errors into ours."""

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from json.encoder import encode_basestring_ascii
from pathlib import Path
from typing import Any, ClassVar

from ikigai_actors.errors import CommitUnknown, StoreConflict, StoreError, StoreUnavailable, StoreUnusable
from ikigai_actors.store.base import Row
from ikigai_actors.store.location import MEMORY
from ikigai_actors.store.queries import Statement, for_sqlite
from ikigai_actors.store.sqlite.file import is_locked
from ikigai_actors.store.sqlite.words import SQLiteWords
from ikigai_actors.store.transaction import COLUMNS, BaseTransaction, Cursor, Parameters
from ikigai_actors.store.word_index import WordIndex

SQLITE_ERRORS = (sqlite3.Error, sqlite3.Warning, UnicodeError, OverflowError)
"""The errors that a call of sqlite3 may raise. The last two are for values that SQLite cannot hold, and bytes that are
no text.
"""

_APPEND = {
    table: f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
    for table, columns in COLUMNS.items()
}

_ERRORS: tuple[tuple[tuple[str, ...], type[StoreError], str], ...] = (
    (("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL"), StoreUnavailable,
     "another process is writing. Try again, or end that process"),
    (("SQLITE_FULL",), StoreUnavailable, "the disk is full. Free some space"),
    (("SQLITE_IOERR_SHMMAP", "SQLITE_IOERR_SHMOPEN", "SQLITE_IOERR_SHMLOCK"), StoreUnavailable,
     "its directory allows no memory that processes share. Put it on a local file system"),
    (("SQLITE_IOERR",), StoreUnavailable, "reading or writing the file failed. Check the disk and its free space"),
    (("SQLITE_NOMEM",), StoreUnavailable, "there is not enough memory"),
    (("SQLITE_CONSTRAINT",), StoreConflict, "a constraint refused the rows"),
    (("SQLITE_NOTADB",), StoreUnusable, "the file is no SQLite database. Name another file, or move this one away"),
    (("SQLITE_CORRUPT",), StoreUnusable, "the file is damaged. Restore a copy, or try the sqlite3 shell's .recover"),
    (("SQLITE_READONLY",), StoreUnusable, "it is read-only. Make the file and its directory writable"),
    (("SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH", "SQLITE_NOLFS"), StoreUnusable,
     "the file cannot be opened. Check that it is a file, and that you may write to it and its directory"),
)  # fmt: skip


def ours(error: Exception, location: str) -> StoreError:
    """Return the `StoreError` for an error of sqlite3; the only place that distinguishes them."""
    name = getattr(error, "sqlite_errorname", "")  # extended, like SQLITE_IOERR_WRITE; sqlite3's own errors have none
    for codes, kind, meaning in _ERRORS:
        if any(name == code or name.startswith(code + "_") for code in codes):
            return kind(f"Database {location}: {meaning}. ({name}: {error})")
    return StoreError(f"Database {location}: {error} ({name or type(error).__name__}).")


_UNCOMMITTED = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_CONSTRAINT")
"""Errors of COMMIT after which the transaction is still open. After any other the log may hold all of it: if this
process ends, the next one finds it committed.
"""


def failed_commit(error: sqlite3.Error, location: str) -> StoreError:
    """Return the `StoreError` for an error of sqlite3 at COMMIT."""
    failure = ours(error, location)
    if getattr(error, "sqlite_errorname", "").startswith(_UNCOMMITTED):
        return failure
    return CommitUnknown(f"{failure} It came from COMMIT, so the transaction may or may not be written.")


_NO_STAMPS = (), False


class SQLiteTransaction(BaseTransaction):
    """One transaction on a connection."""

    DRIVER_ERRORS = SQLITE_ERRORS
    _stamps: ClassVar = {}

    def __init__(self, connection: sqlite3.Connection, location: str) -> None:
        super().__init__()
        self._connection = connection
        self._location = location

    def ours(self, error: Exception) -> StoreError:
        return ours(error, self._location)

    @property
    def words(self) -> WordIndex:
        def run(sql: str, parameters: Sequence[Any]) -> list[Row]:
            return self._guard(lambda: self._connection.execute(sql, parameters).fetchall())

        def run_many(sql: str, each: Sequence[Sequence[Any]]) -> None:
            self._guard(self._connection.executemany, sql, each)

        return SQLiteWords(run, run_many)

    def is_hosted(self) -> bool:
        return self._location == MEMORY or is_locked(Path(self._location))

    def misfits(self, table: str, most: int | None = None) -> list[str]:
        """Return the columns that hold a value of a wrong type: SQLite stores any value in any column."""
        if most is not None and not 0 < (self.execute(f"SELECT MAX(rowid) FROM {table}")[0][0] or 0) <= most:
            return []  # it is long, or empty
        columns = tuple((row[1], row[2], row[3] or row[5]) for row in self.execute(f"PRAGMA table_info({table})"))
        if not self.execute(_find_misfit(table, columns))[0][0]:
            return []
        [counts] = self.execute(_count_misfits(table, columns))
        return [name for (name, _, _), count in zip(columns, counts, strict=True) if count]

    def run(self, query: str, **parameters: Any) -> list[Row]:
        if self._failure is not None:
            raise self._failure
        try:
            return self._run(query, parameters)
        except SQLITE_ERRORS as error:
            self._fail(error)

    def ask(self, query: str, **parameters: Any) -> Callable[[], list[Row]]:
        rows = self.run(query, **parameters)
        return lambda: rows

    def _run(self, query: str, parameters: Parameters) -> list[Row]:
        statement = for_sqlite(query)
        cursor = self._connection.execute(
            statement.sql, _lists_as_json(statement, parameters) if statement.lists else parameters
        )
        rows = cursor.fetchall()
        if not rows or self._stamps.get(query) == _NO_STAMPS:
            return rows
        return self.hear(query, rows, lambda: (column[0] for column in cursor.description))

    def _run_many(self, query: str, parameters: list[Parameters]) -> None:
        statement = for_sqlite(query)
        if statement.lists:
            parameters = [_lists_as_json(statement, each) for each in parameters]
        self._connection.executemany(statement.sql, parameters)

    def _notify(self, agents: Collection[str] | None) -> None:
        """Do nothing: every commit changes a number of the file, which other processes watch."""

    def _append(self, table: str, rows: list[Row]) -> None:
        self._connection.executemany(_APPEND[table], rows)

    def _execute(self, sql: str) -> list[Row]:
        return self._connection.execute(sql).fetchall()

    def _tables(self) -> list[Row]:
        return self._execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        )

    def _columns(self, table: str) -> list[Row]:
        return self._execute(f"SELECT name FROM pragma_table_info('{table}')")

    def _open(self, sql: str) -> Cursor:
        return self._connection.execute(sql)

    def _load(self, table: str, columns: Sequence[str], batches: Iterable[Sequence[Row]]) -> None:
        self._connection.execute("PRAGMA defer_foreign_keys = ON")  # up to the COMMIT
        into = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
        for rows in batches:
            self._connection.executemany(into, rows)


def _lists_as_json(statement: Statement, parameters: Parameters) -> Parameters:
    parameters = dict(parameters)
    for name in statement.lists:
        if (values := parameters.get(name)) is not None:
            parameters[name] = _as_json(list(values))
    return parameters


def _as_json(values: list[Any]) -> str:
    """Return values as JSON. Lists of one text or none avoid the encoder, which takes ten times as long."""
    try:
        return f"[{','.join(map(encode_basestring_ascii, values))}]"
    except TypeError:
        return json.dumps(values)


@cache  # a simulation asks at each commit
def _find_misfit(table: str, columns: tuple[tuple[str, str, int], ...]) -> str:
    """Return a SELECT that finds whether a column (name, declared type, required) has a value of another type.

    Counting such values would take twice as long.
    """
    return f"SELECT EXISTS (SELECT 1 FROM {table} WHERE {' OR '.join(_wrong(*column) for column in columns)})"


@cache
def _count_misfits(table: str, columns: tuple[tuple[str, str, int], ...]) -> str:
    """Return a SELECT that counts, for each column, the values of another type."""
    return f"SELECT {', '.join(f'SUM({_wrong(*column)})' for column in columns)} FROM {table}"


def _wrong(name: str, declared: str, required: int) -> str:
    """Return the SQL condition that a value does not fit its column in ``schema.sql``. Keys count as required."""
    kind = {"BIGINT": "integer", "BYTEA": "blob"}.get(declared, "text")
    wrong = f"typeof({name}) <> '{kind}'"
    return wrong if required else f"({name} IS NOT NULL AND {wrong})"
