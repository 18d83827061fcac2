"""PostgreSQL, by psycopg 3. Imported only when a PostgreSQL URL is opened.

One connection writes, under a lock and READ COMMITTED (a unit relies on the locks that it takes). Reads take a
connection from a small pool, REPEATABLE READ, so that each sees one snapshot. The store itself sends BEGIN and COMMIT,
together with other statements (`trips`). A few appended rows are one INSERT; many are sent by binary COPY.

Faults, and the reaction to each:

    a deadlock, a serialization failure     the work runs again, a few times
    the connection broke while idle         a new connection is made, without an error
    the connection broke before COMMIT      `StoreUnavailable`; the next transaction connects again
    it broke in the trip that has COMMIT    `CommitUnknown`
    the connection of a read broke          the work runs again on another, once
    the server has become read-only         `StoreUnavailable`; the next transaction connects again
    the network drops all packets           nothing, until the host's lease is lost: then `abandon` cuts all connections
"""

import contextlib
import logging
from collections.abc import Callable, Collection, Iterator
from threading import Lock, RLock
from typing import Any, TypeVar
from weakref import WeakSet

import psycopg
from psycopg.conninfo import conninfo_to_dict

from ikigai_actors.errors import StoreError, StoreUnavailable, SystemClosed
from ikigai_actors.store.base import Store, Transaction
from ikigai_actors.store.postgres.bell import Bell
from ikigai_actors.store.postgres.connecting import leave_unread, set_up, take_answer
from ikigai_actors.store.postgres.connection_limits import (
    CLIENT_CONNECTIONS,
    HOST_CONNECTIONS,
    check_limits,
    check_own,
)
from ikigai_actors.store.postgres.errors import Again, PostgresErrors, ReadOnly, refuse_encoding, refuse_old
from ikigai_actors.store.postgres.hints import CLIENTS, HOSTS, Hints
from ikigai_actors.store.postgres.readers import MOST_READERS, Readers
from ikigai_actors.store.postgres.transaction import (
    HOST_NAME,
    READS,
    WRITES,
    PostgresTransaction,
    Unmet,
    cut_off,
    is_alive,
)
from ikigai_actors.store.postgres.trips import Connection
from ikigai_actors.store.postgres.watch import ServerWatch

logger = logging.getLogger(__name__)

T = TypeVar("T")

_ATTEMPTS = 5
"""How often a transaction runs when it deadlocks or cannot be serialized."""

_PATIENCE = 5.0
"""Seconds that a read waits for a connection, and a new connection for its first answer."""

_SETTINGS: dict[str, Any] = {
    "fallback_application_name": "ikigai",
    "connect_timeout": 10,
    "tcp_user_timeout": 30_000,  # a network that swallows packets would hold a writer for a quarter of an hour
}
"""Connection settings, unless the URL says otherwise."""


_IDENTITY = b"""
    SELECT coalesce((SELECT system_identifier::text FROM pg_control_system()), ''), d.oid::text, current_schema()
    FROM pg_database d WHERE d.datname = current_database()
"""


def identity_of(url: str) -> str:
    """Return the identity that is stored in a database: equal for every host name, user or parameter in the URL.

    Raises:
        StoreError: the server does not answer.
    """
    server = _Server(url)
    with contextlib.closing(server.connect()) as connection:
        try:
            [row] = connection.execute(_IDENTITY).fetchall()
        except psycopg.Error as error:
            raise server.errors.ours(error) from server.errors.cause(error)
    return "/".join(map(str, row))


class _Server:
    """A server: how to connect to it, and the translation of its errors."""

    def __init__(self, url: str, patience: float = _PATIENCE) -> None:
        self.url, self._patience = url, patience
        self.errors, self.hints = PostgresErrors(url), Hints()
        try:
            known = conninfo_to_dict(url)
        except psycopg.Error as error:
            raise self.errors.bad_url(error) from self.errors.cause(error)
        self.settings = {key: value for key, value in _SETTINGS.items() if key not in known}
        self.settings["client_encoding"] = "UTF8"  # a server of another kind would give bytes for text
        self.is_pooled = False
        """Whether a pooler is before it, as its connections show."""
        self.losing = ""
        """By which settings it may lose what it has committed, as the latest connection shows."""
        self.called = ""
        """The application name of the connections; empty: that of the URL, or `_SETTINGS`."""
        self._open: WeakSet[Connection] = WeakSet()
        self._lock = Lock()
        self._abandoned: str | None = None

    def introduce(self, host: str) -> None:
        self.called = self.settings["application_name"] = HOST_NAME.format(host)

    def call(self, connection: Connection) -> None:
        """Give an idle connection the application name of new connections. Raises `StoreError`."""
        try:
            connection.execute(b"SELECT set_config('application_name', %s, false)", (self.called,))
        except psycopg.Error as error:
            raise self.errors.ours(error) from self.errors.cause(error)

    def check(self) -> None:
        if self._abandoned is not None:
            raise SystemClosed(self._abandoned)

    def connect(self, made: Callable[[Connection], object] = lambda connection: None) -> Connection:
        """Make a connection for transactions, which begin and end by statements of their own.

        ``made`` receives the connection before its first statement, whose answer may never come.

        Raises `StoreError`, and `SystemClosed` after `abandon`.
        """
        try:
            connection = psycopg.connect(self.url, autocommit=True, **self.settings)
        except psycopg.Error as error:
            self.check()
            raise self.errors.ours(error) from self.errors.cause(error)
        self.note(connection)
        made(connection)
        try:
            refuse_old(connection.info.server_version, self.errors.shown)
            refuse_encoding(connection.info.parameter_status("server_encoding"), self.errors.shown)
            greeting = set_up(connection, self._patience)
            self.is_pooled |= greeting.is_pooled
            self.losing = greeting.losing
        except psycopg.Error as error:
            connection.close()
            raise self.errors.ours(error) from self.errors.cause(error)
        except BaseException:  # Ctrl-C, too: it would belong to nobody
            connection.close()
            raise
        return connection

    def note(self, connection: Connection) -> None:
        with self._lock:
            self._open.add(connection)
        if self._abandoned is not None:
            cut_off(connection)

    def abandon(self, why: str) -> None:
        with self._lock:
            self._abandoned = why
            connections = list(self._open)
        for connection in connections:
            cut_off(connection)


@contextlib.contextmanager
def _transaction(
    connection: Connection, server: _Server, begin: bytes, end: Callable[[Connection], object]
) -> Iterator[PostgresTransaction]:
    """Run a transaction on an idle connection for the length of a block.

    ``end`` ends it unless the block has committed it.
    """
    transaction = PostgresTransaction(connection, server.errors, server.hints, begin)
    try:
        yield transaction
    finally:
        transaction.finish()
        end(connection)


def _read(connection: Connection, server: _Server, work: Callable[[Transaction], T]) -> T:
    with _transaction(connection, server, READS, leave_unread) as transaction:
        result = work(transaction)
        transaction.send_rest()
        return result


def _rollback(connection: Connection) -> None:
    """Roll back, if a transaction is open. If that fails, close the connection: then the server rolls back."""
    try:
        connection.rollback()
    except psycopg.Error:
        connection.close()


class _Session:
    """One connection, reopened after it broke, and the lock that its user holds for a whole transaction."""

    def __init__(self, server: _Server) -> None:
        self._server = server
        self._errors = server.errors
        self._lock = RLock()  # a transaction inside another is then refused; a plain lock would hang
        self._closed = self._busy = False
        self._called = server.called
        self._connection = server.connect()

    def transact(self, begin: bytes, work: Callable[[Transaction], T]) -> T:
        with self._lock:
            if self._busy:
                raise StoreError(f"Database {self._errors.shown}: a transaction was begun inside another.")
            self._busy = True
            try:
                for _ in range(_ATTEMPTS - 1):
                    with contextlib.suppress(Again):
                        return self._once(begin, work)
                return self._once(begin, work)
            finally:
                self._busy = False

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._connection.close()

    def _once(self, begin: bytes, work: Callable[[Transaction], T]) -> T:
        connection = self._ready()
        try:
            if begin is READS:
                return _read(connection, self._server, work)
            with _transaction(connection, self._server, begin, _rollback) as transaction:
                result = work(transaction)
                transaction.commit()
                return result
        except Unmet as unmet:
            with _transaction(connection, self._server, begin, _rollback) as after:
                raise unmet.otherwise(after) from None
        except ReadOnly:
            connection.close()  # the next one may reach the server that takes over
            raise

    def _ready(self) -> Connection:
        if self._closed:
            raise StoreError(f"Database {self._errors.shown}: this store was closed.")
        self._server.check()
        take_answer(self._connection)
        if not is_alive(self._connection):
            self._connection.close()
            self._called = self._server.called
            self._connection = self._server.connect()
        elif self._called != self._server.called:
            self._server.call(self._connection)
            self._called = self._server.called
        return self._connection


class _ServerStore(Store):
    """The common part of both stores on a server: the server, and the connection that writes."""

    leases = True

    def __init__(self, server: _Server) -> None:
        self._server, self._session = server, _Session(server)
        self.location = server.errors.shown
        self._hear: Callable[[int], object] = lambda stamp: None

    def write(self, work: Callable[[Transaction], T]) -> T:
        return self._session.transact(WRITES, lambda tx: self._listening(tx, work))

    def listen(self, hear: Callable[[int], object]) -> None:
        self._hear = hear

    def _listening(self, tx: Transaction, work: Callable[[Transaction], T]) -> T:
        result = work(tx)
        self._hear(tx.heard)
        return result

    def abandon(self, why: str) -> None:
        self._server.abandon(why)

    def introduce(self, host: str) -> None:
        self._server.introduce(host)

    def separate(self) -> Store:
        return SeparateStore(self._server)

    def watch(self, *, hosts: bool = False) -> ServerWatch:
        return ServerWatch(self._server.connect, self._server.hints, (CLIENTS, HOSTS) if hosts else (CLIENTS,))

    def close(self) -> None:
        self._session.close()


class SeparateStore(_ServerStore):
    """A store with one connection of its own, for reads and writes, so that other transactions do not delay it.

    A `SeparateStore` sends no notifications (`ring`). The host commits through its main store, which sends them.
    """

    def read(self, work: Callable[[Transaction], T]) -> T:
        return self._session.transact(READS, lambda tx: self._listening(tx, work))


class PostgresStore(_ServerStore):
    """A `Store` on a PostgreSQL server."""

    def __init__(self, url: str, *, patience: float = _PATIENCE) -> None:
        """Connect.

        Args:
            url: ``postgresql://user:password@host:port/name?setting=value``; PG* variables may supply what it leaves
                out.
            patience: seconds that a read waits for a connection, and a new connection for its first answer.

        Raises:
            StoreUnavailable, StoreUnusable: see `ikigai_actors.errors`; the message says what to do.
        """
        super().__init__(_Server(url, patience))
        self._errors = self._server.errors
        self._readers = Readers(self._reader, patience, self.location)
        self._bell = Bell(self._server.connect, self._server.hints)
        try:
            if self._server.is_pooled:
                check_own(self, self)
        except BaseException:
            self.close()
            raise

    def read(self, work: Callable[[Transaction], T]) -> T:
        try:
            return self._read_once(work)
        except _Lost:
            self._server.check()  # of several connections that are cut off, the next one may not be yet
            return self._read_once(work)

    def close(self) -> None:
        self._readers.close()
        self._bell.close()
        super().close()

    def introduce(self, host: str) -> None:
        super().introduce(host)
        self._readers.change(self._server.call)
        self._take("a host", HOST_CONNECTIONS)
        check_limits(self)
        if self._server.losing:
            logger.warning("Database %s: %s", self.location, self._server.losing)

    def reserve(self) -> None:
        self._take("an attached program", CLIENT_CONNECTIONS)

    def _take(self, who: str, most: int) -> None:
        """Open this many connections at once, and close those that the pool of readers does not keep.

        Raises `StoreUnavailable` when a pooler does not give the connections.
        """
        if not self._server.is_pooled:
            return
        made: list[Connection] = []
        try:
            self._readers.fill()
            made.extend(self._server.connect() for _ in range(most - MOST_READERS - 1))
        except StoreUnavailable as error:
            raise StoreUnavailable(
                f"Database {self.location}: {who} needs {most} connections, and its pooler did not give them. Raise "
                f"its limits (PgBouncer: default_pool_size, max_client_conn). {error}"
            ) from error.__cause__
        finally:
            for connection in made:
                connection.close()

    def ring(self, agents: Collection[str] | None = None, *, hosts: bool = False) -> None:
        self._bell.ring((HOSTS, CLIENTS) if hosts else (HOSTS,), agents)

    def separate(self) -> Store:
        made = super().separate()
        try:
            if self._server.is_pooled:
                check_own(self, made)
        except BaseException:
            made.close()
            raise
        return made

    def _read_once(self, work: Callable[[Transaction], T]) -> T:
        with self._readers.lent() as connection:
            try:
                return _read(connection, self._server, lambda tx: self._listening(tx, work))
            except StoreUnavailable as error:
                if connection.closed:
                    raise _Lost(str(error)) from error.__cause__
                raise

    def _reader(self) -> Connection:
        self._server.check()
        return self._server.connect()


class _Lost(StoreUnavailable): ...  # the connection of a read broke
