"""A transaction on PostgreSQL, and the statements that begin it."""

import contextlib
import os
import selectors
import socket
from collections.abc import Callable, Collection, Iterable, Sequence
from hashlib import blake2b
from typing import Any, ClassVar

import psycopg
from psycopg.pq import TransactionStatus

from ikigai_actors.errors import CommitUnknown, StoreError
from ikigai_actors.store.base import Row, Transaction
from ikigai_actors.store.postgres.connecting import IDLE_IN_TRANSACTION
from ikigai_actors.store.postgres.errors import PostgresErrors
from ikigai_actors.store.postgres.hints import CLIENTS, NOTIFY, SECRET, Hints
from ikigai_actors.store.postgres.trips import PSYCOPG_ERRORS, Connection, Gathered, GatheredMany, Trips
from ikigai_actors.store.postgres.words import PostgresWords
from ikigai_actors.store.queries import as_array, as_arrays, for_postgres
from ikigai_actors.store.transaction import COLUMNS, BaseTransaction, Cursor, Parameters
from ikigai_actors.store.word_index import WordIndex


def is_alive(connection: Connection) -> bool:
    """Return whether a transaction can begin on a connection.

    The operating system, not the server, reports whether the connection is open.
    """
    if connection.info.transaction_status is not TransactionStatus.IDLE:  # closed, or a COMMIT was interrupted
        return False
    return not has_hung_up(connection)


def has_hung_up(connection: Connection) -> bool:
    """Return whether the server has closed an idle connection."""
    with selectors.DefaultSelector() as selector:  # an idle server says nothing but its farewell
        selector.register(connection.fileno(), selectors.EVENT_READ)
        return bool(selector.select(0))


def cut_off(connection: psycopg.Connection[Any]) -> None:
    """End a connection that another thread may be using.

    The socket is shut down, not closed, so its number is not reused.
    """
    try:
        line = socket.socket(fileno=os.dup(connection.fileno()))
    except (psycopg.Error, OSError):  # closed already
        return
    with line, contextlib.suppress(OSError):  # the other end was faster
        line.shutdown(socket.SHUT_RDWR)


WRITES = b"BEGIN ISOLATION LEVEL READ COMMITTED"
"""Begins a transaction that writes: it relies on the locks that it takes."""

READS = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
"""Begins a transaction that sees one snapshot."""

_FEW = 50
"""Rows from which on a COPY costs less than an INSERT, though it has two round trips of its own."""

_COPY = {name: f"COPY {name} ({', '.join(columns)}) FROM STDIN (FORMAT BINARY)" for name, columns in COLUMNS.items()}
_INSERT = {
    name: f"INSERT INTO {name} ({', '.join(columns)}) SELECT * FROM "
    f"unnest({', '.join(f'%s::{kind}[]' for kind in columns.values())})"
    for name, columns in COLUMNS.items()
}

_MET = "WITH met AS ({}) SELECT 1 / COUNT(*) FROM met"
"""Divides by zero if a statement returns no row. Then the server answers the COMMIT after it by rolling back."""


_OF_WHOLE_TABLES = ("seqscan", "hashjoin", "mergejoin")

_BY_INDEXES = tuple(f"SET LOCAL enable_{way} = off".encode() for way in _OF_WHOLE_TABLES)
_AS_BEFORE = tuple(f"SET LOCAL enable_{way} TO DEFAULT".encode() for way in _OF_WHOLE_TABLES)
"""Resets the planner after a walk down the tree, during which scans of whole tables are off. The planner does not know
how deep or how wide the tree is, so it would read a whole table or index for each level. That takes a hundred times as
long for a chain of a thousand agents, and four times as long for ten thousand agents of four hundred thousand."""

HOST_NAME = "ikigai {}"
"""The application name of a host's connections, by its id; others have other names."""

_END_STALLED = b"""
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()
      AND (application_name = %(host)s OR application_name NOT LIKE %(hosts)s)
      AND wait_event = 'ClientRead' AND xact_start < to_timestamp(%(before)s / 1000.0)
      AND pid IN (SELECT pid FROM pg_locks WHERE relation IN ('agents'::regclass, 'tree'::regclass)
                  AND mode IN ('RowShareLock', 'RowExclusiveLock', 'ShareLock'))
"""


_SHARE_TREE = b"LOCK TABLE tree IN SHARE MODE"
"""Excludes ``tree_change``, whose UPDATE takes a lock of the table as any does. No lock of the row would do: a
transaction that shares a row overtakes those that wait for it alone, so births without a pause would keep a death
waiting forever.
"""

_HELD = b"""
    SELECT (l.classid::bigint << 32) | l.objid::bigint FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND has_table_privilege(a.usesysid, 'hosts', 'UPDATE')
"""
"""The advisory locks of this database with one number, which PostgreSQL stores in two halves. Only locks of roles that
may run a host count. Otherwise another role could take the lock of a host that has ended, which would then count as
living."""


def _lock_of(host: str) -> int:
    """Return the number of a host's advisory lock: 64 bits of the host's id, signed."""
    return int.from_bytes(blake2b(host.encode(), digest_size=8).digest(), signed=True)


class Unmet(Exception):
    """The server has rolled back, because the statement passed to `require` returned no row."""

    def __init__(self, otherwise: Callable[[Transaction], Exception]) -> None:
        super().__init__()
        self.otherwise = otherwise
        """Gives the reason, in another transaction."""


class PostgresTransaction(BaseTransaction):
    """One transaction on a connection."""

    DRIVER_ERRORS = PSYCOPG_ERRORS
    _stamps: ClassVar = {}
    TUNING = (
        # A turn then leaves the indexes alone. Few rows change often: vacuum comes before a fifth of them is dead.
        "ALTER TABLE agents SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02)",
        "ALTER TABLE portions SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02)",
        "ALTER TABLE hosts SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02)",
        # The planner then expects few children of an agent. Where some have thousands, it would expect as many of each,
        # and read the whole table for each level of a walk.
        "ALTER TABLE agents ALTER COLUMN supervisor_uuid SET (n_distinct = -0.1)",
        "INSERT INTO shards (id) SELECT generate_series(64, 1023) ON CONFLICT DO NOTHING",
    )

    def __init__(self, connection: Connection, errors: PostgresErrors, hints: Hints, begin: bytes) -> None:
        super().__init__()
        self._connection, self._hints = connection, hints
        self._errors = errors
        self._writes = begin is WRITES
        self._trips = Trips(connection)
        self._trips.gather(Gathered(begin))

    def ours(self, error: Exception) -> StoreError:
        return self._errors.ours(error)

    def cause(self, error: Exception) -> Exception | None:
        return self._errors.cause(error)

    def commit(self) -> None:
        """Send all deferred statements and appended rows, and commit, in one round trip.

        Raises:
            Unmet: the statement of `require` returned no row.
            CommitUnknown: the connection broke.
            StoreError: the server refused a statement, or COMMIT.
        """
        self.flush()
        if not self._connection.closed and has_hung_up(self._connection):
            self._guard(self._trips.go)  # fails: so nothing is committed, and nobody has to ask
        commit = self._trips.gather(Gathered(b"COMMIT"))
        try:
            self._trips.go()
        except psycopg.errors.DivisionByZero as error:
            if self._required is None:
                raise self.ours(error) from self.cause(error)
            raise Unmet(self._required[1]) from None
        except PSYCOPG_ERRORS as error:
            if not self._connection.closed:
                raise self.ours(error) from self.cause(error)
            message = f"Database {self._errors.shown}: the connection broke during COMMIT. ({type(error).__name__})"
            raise CommitUnknown(message) from self.cause(error)
        if commit.tag() != "COMMIT":  # it would say ROLLBACK after a failure that nobody has seen
            raise StoreError(f"Database {self._errors.shown}: it answered COMMIT with {commit.tag()}.")

    def send_rest(self) -> None:
        """Send the remaining statements of a transaction that only reads. The server refuses statements that write."""
        self.flush()
        self._guard(self._trips.go)

    def ask(self, query: str, **parameters: Any) -> Callable[[], list[Row]]:
        asked = self._guard(self._gather, query, parameters)
        return lambda: self._guard(self._heard_rows, query, asked)

    def _gather(self, query: str, parameters: Parameters) -> Gathered:
        statement = for_postgres(query)
        asked = Gathered(statement.sql.encode(), as_arrays(statement, parameters))
        for each in _BY_INDEXES if statement.walks_down else ():
            self._trips.gather(Gathered(each))
        self._trips.gather(asked)
        for each in _AS_BEFORE if statement.walks_down else ():
            self._trips.gather(Gathered(each))
        return asked

    def _run(self, query: str, parameters: Parameters) -> list[Row]:
        asked = self._gather(query, parameters)
        return self._heard_rows(query, asked) if for_postgres(query).gives_rows else []

    def _heard_rows(self, query: str, asked: Gathered) -> list[Row]:
        rows = self._rows(asked)
        return self.hear(query, rows, asked.names) if rows else rows

    def _rows(self, asked: Gathered) -> list[Row]:
        rows = self._trips.rows(asked)
        if len(rows) > IDLE_IN_TRANSACTION and self._writes:
            self._trips.gather(Gathered(f"SET LOCAL idle_in_transaction_session_timeout = {len(rows)}".encode()))
            self._trips.go()
        return rows

    def _run_many(self, query: str, parameters: list[Parameters]) -> None:
        statement = for_postgres(query)
        many = [as_arrays(statement, parameter) for parameter in parameters]
        self._trips.gather(GatheredMany(statement.sql.encode(), many))

    def _require(self, query: str, parameters: Parameters) -> bool:
        statement = for_postgres(query)
        met = _MET.format(statement.sql)
        self._trips.gather(Gathered(met.encode(), as_arrays(statement, parameters)))
        return True  # else COMMIT fails

    @property
    def words(self) -> WordIndex:
        def run(sql: str, parameters: Sequence[Any]) -> list[Row]:
            return self._guard(self._rows, self._trips.gather(Gathered(sql.encode(), parameters)))

        def run_many(sql: str, each: Sequence[Sequence[Any]]) -> None:
            self._guard(self._trips.gather, GatheredMany(sql.encode(), each))

        return PostgresWords(run, run_many)

    @property
    def locks_rows(self) -> bool:
        return True

    def share_tree(self) -> None:
        self._guard(self._trips.gather, Gathered(_SHARE_TREE))

    def end_stalled(self, host: str, before: int) -> None:
        """End the connections of stalled writers.

        The server's own time-out for idle transactions is not enough: it does not end a COPY that waits for its client,
        and before version 17 no other time-out does.
        """
        names = {"host": HOST_NAME.format(host), "hosts": HOST_NAME.format("%"), "before": before}
        self._guard(self._trips.gather, Gathered(_END_STALLED, names))

    def hold(self, host: str) -> None:
        self._guard(self._trips.gather, Gathered(b"SELECT pg_try_advisory_lock(%s)", (_lock_of(host),)))

    def held(self, hosts: Sequence[str]) -> set[str]:
        locks = {_lock_of(host): host for host in hosts}
        asked = self._guard(self._trips.gather, Gathered(_HELD))
        return {locks[number] for (number,) in self._guard(self._rows, asked) if number in locks}

    def _notify(self, agents: Collection[str] | None) -> None:
        channels = self._hints.channels(lambda: str(self._rows(self._trips.gather(Gathered(SECRET)))[0][0]))
        self._trips.gather(Gathered(NOTIFY, (channels.name(CLIENTS), channels.payload(agents))))

    def _append(self, table: str, rows: list[Row]) -> None:
        if len(rows) < _FEW:
            columns = zip(*rows, strict=True)
            self._trips.gather(Gathered(_INSERT[table].encode(), [as_array(column) for column in columns]))
            return
        self._trips.go()
        with self._connection.cursor() as cursor, cursor.copy(_COPY[table].encode()) as copy:
            copy.set_types(list(COLUMNS[table].values()))
            for row in rows:
                copy.write_row(row)

    def _execute(self, sql: str) -> list[Row]:
        return self._rows(self._trips.gather(Gathered(sql.encode())))

    def execute_all(self, statements: Sequence[str]) -> None:
        self._guard(self._trips.go)
        self.execute(";\n".join(statements))  # one message, which none may share

    def limit_waits(self, milliseconds: int) -> None:
        self.execute_all([f"SET LOCAL lock_timeout = {milliseconds}"])

    def _tables(self) -> list[Row]:
        return self._execute("SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = current_schema()")

    def _columns(self, table: str) -> list[Row]:
        return self._execute(
            "SELECT column_name FROM information_schema.columns "
            f"WHERE table_schema = current_schema() AND table_name = '{table}'"
        )

    def _open(self, sql: str) -> Cursor:
        self._trips.go()
        cursor = self._connection.cursor("scan")  # the server's: an unnamed one would hold every row in memory
        cursor.execute(sql.encode())
        return cursor

    def _load(self, table: str, columns: Sequence[str], batches: Iterable[Sequence[Row]]) -> None:
        into = f"COPY {table} ({', '.join(columns)}) FROM STDIN"  # one statement: references are checked at its end
        self._trips.go()
        with self._connection.cursor() as cursor, cursor.copy(into.encode()) as copy:
            for rows in batches:
                for row in rows:
                    copy.write_row(row)
