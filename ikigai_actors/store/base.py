"""The interface of a database: `Store` and `Transaction`, the border between SQL and everything above it.

Work is a function of a `Transaction`. The store may call the function again after a deadlock or a lost read connection.
So work must be safe to run twice: it has no effect but its return value. Statements are named in ``queries.sql``.
Parameters are given by name. Rows are tuples. A driver's exception never reaches the caller: the store raises a
`StoreError` with that exception as its cause.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from ikigai_actors.errors import StoreUnavailable
from ikigai_actors.store.word_index import WordIndex

T = TypeVar("T")
Row = tuple[Any, ...]


class Blocked(StoreUnavailable):
    """A lock was not free within the time that this transaction may wait: see `SchemaTransaction.limit_waits`."""


class Hint(NamedTuple):
    """The agents whose rows other processes may have changed, by uuid; None where any agent may have changed."""

    agents: frozenset[str] | None = None
    """The agents that may have changed."""
    for_hosts: frozenset[str] | None = None
    """The uuids of agents for which a host may have work, since a client or another host has committed; None for any
    agent.
    """


class Watch(Protocol):
    """A watch of one database for commits of other processes. One thread waits; another thread may close the watch."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until something may have changed; False when the watch was closed, or after ``timeout`` seconds."""

    def heard(self) -> Hint:
        """Return the agents reported since the last call. Call it on the waiting thread.

        By default any agent may have changed, since not every watch learns which ones have.
        """
        return Hint()

    def wake(self) -> None:
        """End the current wait, or the next one, as if its timeout had passed. Any thread may call this.

        By default this does nothing, for watches in which nobody waits.
        """
        return

    def close(self) -> None:
        """End the wait in progress. `wait` returns False from then on."""


class SchemaTransaction(Protocol):
    """The operations of a transaction on whole tables: for migrations, copies and checks. See `Transaction.schema`."""

    TUNING: tuple[str, ...] = ()
    """SQL statements, run after the schema is made, that tune the storage of the database. They change no rows."""

    def execute(self, sql: str) -> list[Row]:
        """Run a statement given as text, without parameters."""

    def execute_all(self, statements: Sequence[str]) -> None:
        """Run SQL statements, in order."""
        for statement in statements:
            self.execute(statement)

    def limit_waits(self, milliseconds: int) -> None:
        """Let each later statement fail with `Blocked` if it waits for a lock for more than this many milliseconds.

        By default this does nothing, since in a file no other transaction holds locks on tables.
        """
        return

    def tables(self) -> set[str]:
        """Return the names of all existing tables."""

    def columns(self, table: str) -> list[str]:
        """Return the names of the columns of a table, in order."""

    def scan(self, table: str, columns: Sequence[str]) -> Iterator[list[Row]]:
        """Iterate over all rows of a table in batches, in no order."""

    def load(self, table: str, columns: Sequence[str], batches: Iterable[Sequence[Row]]) -> None:
        """Insert rows now. A row may refer to a later row of the same table."""

    def misfits(self, table: str, most: int | None = None) -> list[str]:
        """Return the columns of a table that have a value of another type than ``schema.sql`` declares.

        By default the list is empty, since most databases refuse such values.
        """
        return []


class Transaction(Protocol):
    """One transaction in progress. Use it only inside the function that received it."""

    @property
    def schema(self) -> SchemaTransaction:
        """Return the same transaction with methods for whole tables."""

    @property
    def words(self) -> WordIndex:
        """Return the index of words, which is not part of the schema."""

    @property
    def heard(self) -> int:
        """Return the latest time stamp in the rows read so far, in milliseconds since 1970; 0 for none."""

    def run(self, query: str, **parameters: Any) -> list[Row]:
        """Run the named statement; return its rows (empty for a statement that returns none).

        A statement that returns no rows may be sent to a server later: with the next statement that returns rows, or
        with COMMIT. An error of the statement is raised then.

        Args:
            query: the statement's name in ``queries.sql``.
            parameters: by name: text, an integer, None, or a list of texts (for ``= ANY(:name)``).
        """

    def ask(self, query: str, **parameters: Any) -> Callable[[], list[Row]]:
        """Queue the named statement; return a function that returns its rows.

        Statements queued before the first result is read are sent together.

        On a server this saves a round trip for each statement. Parameters are those of `run`.
        """

    def run_all(self, query: str, each: Sequence[dict[str, Any]]) -> None:
        """Run the named statement once for each set of parameters, in one batch. Rows that it returns are dropped."""

    def require(self, query: str, otherwise: Callable[["Transaction"], Exception], **parameters: Any) -> None:
        """Run the named statement as the last one, and commit only if it returns a row; once per transaction.

        If it returns no row, nothing is written, and `Store.write` raises the error that ``otherwise`` returns. That
        function may read the database, in this transaction or in a later one.
        """

    def defer(self, query: str, **parameters: Any) -> None:
        """Run the named statement just before COMMIT, together with all deferred calls of this statement, in order."""

    def append(self, rows: Sequence[Row], table: str = "messages") -> None:
        """Insert rows in bulk, before COMMIT and after the deferred statements.

        Args:
            rows: the rows; see `Message.row` for those of ``messages``.
            table: ``messages``, ``mail`` or ``pieces``.
        """

    @property
    def locks_rows(self) -> bool:
        """Return whether others may write meanwhile, so that rows must be locked before they are relied on."""

    def share_tree(self) -> None:
        """Take a shared lock of the tree before a birth.

        Other births go on; ``tree_change`` waits for this transaction to end.

        Call this as the first statement of the transaction. Waiting transactions are served in order, so births cannot
        keep a death waiting.
        """

    def end_stalled(self, host: str, before: int) -> None:
        """End old transactions of a host, and of clients, that have locked agents and do nothing.

        The processes of such transactions were stopped, or their machines are gone. The names of their connections
        identify them (`Store.introduce`). Transactions of other hosts are left alone. A file has no such transactions,
        since the lock of a dead owner is free.

        Args:
            host: the id of the host.
            before: only transactions that began before this moment, in milliseconds since 1970.
        """

    def hold(self, host: str) -> None:
        """Hold the lock of a host until this connection ends.

        A free lock shows others that the host's process has ended.
        """

    def held(self, hosts: Sequence[str]) -> set[str]:
        """Return the ids of those of these hosts that live: for each of them a connection holds its lock.

        In a file, which has a single lock, all of these hosts are returned.
        """

    def is_hosted(self) -> bool:
        """Return whether a process holds the lock by which a host owns the database.

        Also true where there is no such lock: a lease decides there, or no other process can open the database.
        """

    def notify(self, agents: Collection[str] | None = None) -> None:
        """Wake the other processes at this database when this transaction is committed; at most once per transaction.

        ``agents`` are the uuids of the agents that the commit concerns; None for any agent. Only processes that are no
        hosts call this. A host calls `Store.ring` instead.
        """


class Store(Protocol):
    """An open database. Several threads may use it; one transaction writes at a time."""

    location: str
    """The place of the database as shown to people: a path, or a URL without its password."""
    leases: bool
    """Whether hosts hold leases by the server's time, since processes of several machines may use the database."""

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Run ``work``, which only reads, in one consistent snapshot; return its result."""

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run ``work`` in one write transaction and commit; return its result.

        If the work raises an exception, the transaction is rolled back, and the exception is raised. Raises
        `StoreConflict`, `StoreUnavailable`, `StoreUnusable`, and `CommitUnknown` when COMMIT gave no good answer,
        though the database may have carried it out.
        """

    def listen(self, hear: Callable[[int], object]) -> None:
        """Set the function that receives the latest time stamp (milliseconds since 1970) that a transaction has read.

        The function replaces an earlier one. The store calls it when the work of a transaction is done, before it
        returns the result.
        """

    def checkpoint(self) -> None:
        """Move committed pages from the write-ahead log into the database's file, where there is a log.

        Only the host calls this.

        Correctness does not depend on the call. By default this does nothing, since a server moves its log by itself.
        """
        return

    def shrink(self, whole: bool = False) -> bool:
        """Give the space that deletions have left in the database's file back to the disk.

        Args:
            whole: rewrite the file, while nobody runs the agents. For a while the disk holds both the old and the new
                file.

        Returns:
            Whether the space was given back. A file of an older program gives it back only with ``whole``. By default
                this does nothing, since a server does it by itself.

        Raises `StoreInUse` when the file is to be rewritten, and a process runs the agents.
        """
        return True

    def introduce(self, host: str) -> None:
        """Name every connection after the host that uses it from now on: see `Transaction.end_stalled`.

        By default this does nothing, since connections to a file have no names.

        Raises `StoreUnusable` or `StoreUnavailable` when a server does not give the connections that a host needs.
        """
        return

    def reserve(self) -> None:
        """Open all connections that a long-lived client needs now, since a connection pooler may have none left later.

        By default this does nothing: a file has no such limit.

        Raises `StoreUnavailable` when the server does not give the connections.
        """
        return

    def lock(self) -> Callable[[], object]:
        """Lock the database for a host, if hosts of this database use locks; return a function that unlocks it.

        By default there is nothing to lock: hosts hold leases, or no other process can come.

        Raises `StoreInUse` when another process has locked it, and `StoreUnusable` when it cannot be locked.
        """
        return lambda: None

    def ring(self, agents: Collection[str] | None = None, *, hosts: bool = False) -> None:
        """Notify the processes that watch hosts (`watch`) of a commit of this host.

        The notification is a hint, which may get lost. The call returns at once. By default this does nothing, since a
        file needs no such hint.

        Args:
            agents: the uuids of the agents that the commit concerns; None for any agent.
            hosts: wake the other hosts too, since the commit concerns agents that they run.
        """
        return

    def separate(self) -> "Store":
        """Return a store for the same database with a connection of its own, which other work does not delay.

        The caller closes it.

        Raises `StoreUnusable` when there is no such connection, since a pooler is in front of the server.
        """

    def watch(self, *, hosts: bool = False) -> Watch:
        """Return a watch for the commits of other processes. The caller closes the watch.

        Args:
            hosts: watch the commits of hosts too, of which there are far more.
        """

    def abandon(self, why: str) -> None:
        """Cut every connection off, also those of separate stores, and even in the middle of a statement.

        Calls in progress fail, and later ones raise `SystemClosed` with the reason ``why``. A file always answers: by
        default this does nothing.
        """
        return

    def close(self) -> None:
        """Give back every connection; a second call does nothing."""
