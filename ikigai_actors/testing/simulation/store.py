"""The database of a simulation: SQLite in memory, with the same SQL, and crashes and faults at commits.

A crash before COMMIT loses the transaction. A crash after COMMIT keeps the writes, although no caller gets an answer.
The next process begins with an image of the committed data; or another host opens the same database.

A database may behave as one on a server, for hosts that share its agents: they hold leases and locks, send hints to one
another, and can be cut off from the database.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from enum import Enum
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

from ikigai_actors.actors.threads import Threads
from ikigai_actors.errors import CommitUnknown, StoreError, StoreUnavailable, SystemClosed
from ikigai_actors.store.base import Hint, Row, SchemaTransaction, Store, Transaction, Watch
from ikigai_actors.store.sqlite.store import BorrowedStore, SQLiteStore
from ikigai_actors.store.word_index import WordIndex
from ikigai_actors.testing.simulation.changes import SHARED_TREE, RanStatement, StoredChange, Written, changes_rows

T = TypeVar("T")

BOOKKEEPING = frozenset({"tree_change", "lock_agents", "lock_dying", "set_batch", "lock_schema_version"})
"""SQL statements that the trace leaves out, because their changes are of no interest."""

TELL_TIME = frozenset({"time", "renew_lease"})
"""SQL statements whose result rows begin with the server's time."""

BY_ROW = {"bury_rows": "bury"}
"""SQL statements that name agents by row ids. The trace shows the equivalent statement with uuids instead."""


class Link(Enum):
    """The state of the connection from a process to the database."""

    OPEN = "open"
    CUT = "cut"
    """The connection is cut, and both sides know: calls fail, and locks are free."""
    SILENT = "silent"
    """The connection is silent: calls wait, and locks are held, because messages are lost."""


class _Shared:
    """The state of one database, shared by all stores that have it open."""

    def __init__(self) -> None:
        self.open: list[SimulatedStore] = []
        self.locks: dict[str, SimulatedStore] = {}
        """The store that holds the lock of each host, by host id."""


class SimulatedStore(SQLiteStore):
    """An in-memory SQLite store whose transactions can be observed and made to fail."""

    def __init__(
        self,
        now_ms: Callable[[], int],
        image: bytes,
        commits: "Commits",
        threads: Threads,
        beside: "SimulatedStore | None" = None,
        *,
        leases: bool = False,
    ) -> None:
        """Open a database.

        Args:
            now_ms: returns the database's time, in milliseconds since 1970.
            image: the first contents of the database, for the first store of a world.
            commits: observes the transactions.
            threads: makes the objects with which callers wait.
            beside: a store that has or had the same database open. Its connection, with its prepared statements, is
                used again until `close_database`, which saves time.
            leases: whether the database behaves as one on a server.
        """
        self._beside = beside
        super().__init__(None, now_ms=now_ms, image=image)
        self.leases = leases
        self._shared: _Shared = beside._shared if beside is not None else _Shared()
        self._shared.open.append(self)
        self._commits, self._threads = commits, threads
        self._watches: list[CalledWatch] = []
        self._link = Link.OPEN
        self._link_changed = threads.condition()
        self._abandoned: str | None = None
        self._hear_own: Callable[[int], object] = lambda stamp: None
        self.apart = 0
        """The milliseconds by which the server's clock seems to this process to be ahead."""

    def _open_connections(self, image: bytes) -> None:
        if self._beside is None:
            super()._open_connections(image)
        else:
            self._writer = self._reader = self._beside._writer

    @property
    def link(self) -> Link:
        """Return the state of the connection to the database."""
        return self._link

    @link.setter
    def link(self, link: Link) -> None:
        self._link = link
        if link is Link.CUT:
            self.let_go()
        if link is Link.OPEN:
            self.changed_by_others()  # a watch connects again, and does not know what it has missed
        self._link_changed.notify_all()

    def become(self, image: bytes) -> None:
        """Replace the contents of the database for all processes."""
        with closing(SQLiteStore(image=image)) as other:  # deserialize() would leave statements that crash SQLite
            other._writer.connection.backup(self._writer.connection)

    @property
    def closed(self) -> bool:
        """Return whether this process has closed the database."""
        return self._closed

    def listen(self, hear: Callable[[int], object]) -> None:
        """Ignore the subscription to hints, for a store that a test reads."""
        self._hear_own = hear

    def read_undisturbed(self, work: Callable[[Transaction], T]) -> T:
        """Read without faults, even when this process has closed the database: it exists until `close_database`."""
        with self._reader.lock:
            return self._reader.transact(work, self._hear, writes=False)

    def write_undisturbed(self, work: Callable[[Transaction], T]) -> T:
        """Write as `read_undisturbed` reads."""
        with self._writer.lock:
            return self._writer.transact(work, self._hear, writes=True)

    def _reading(self, tx: Transaction, work: Callable[[Transaction], T]) -> T:
        result = work(tx)
        self._hear_own(tx.heard)
        return result

    def read(self, work: Callable[[Transaction], T]) -> T:
        self._commits.reads()
        if not self.leases:
            return super().read(lambda tx: self._reading(tx, work))
        self._reach()
        return super().read(lambda tx: self._reading(Observed(tx, self), work))

    def write(self, work: Callable[[Transaction], T]) -> T:
        observed: Observed | None = None

        def observe(tx: Transaction) -> T:
            nonlocal observed
            observed = Observed(tx, self)
            result = self._reading(observed, work)
            if trouble is not None and not trouble.committed:
                raise trouble.error
            return result

        trouble = self._commits.before()
        self._reach()
        result = super().write(observe)
        assert observed is not None  # a transaction that committed has begun
        if observed.notifies:
            self._call_watches(observed.concerned, for_hosts=True)
        self._commits.after(observed.changes)
        if trouble is not None:
            raise trouble.error
        return result

    def watch(self, *, hosts: bool = False) -> Watch:
        self._watches.append(CalledWatch(self._threads, hosts))
        if self.leases:
            self._watches[-1].call()  # as when it connects
        return self._watches[-1]

    def ring(self, agents: Collection[str] | None = None, *, hosts: bool = False) -> None:
        if self.leases and self._link is Link.OPEN and self._commits.rings():
            self._call_watches(agents, for_hosts=hosts)

    def separate(self) -> Store:
        return _Separate(self) if self.leases else super().separate()

    def abandon(self, why: str) -> None:
        if self.leases:
            self._abandoned = why
            self.let_go()
            self._link_changed.notify_all()

    def disconnect(self) -> None:
        """Break every connection. The next use connects again, without the former locks."""
        self.let_go()
        self.changed_by_others()

    def let_go(self) -> None:
        """Release all locks of hosts that this process holds."""
        held = self._shared.locks
        for host in [host for host, store in held.items() if store is self]:
            del held[host]

    def hold(self, host: str) -> None:
        """Take the lock of a host, unless another process holds it."""
        self._shared.locks.setdefault(host, self)

    def held(self, hosts: Sequence[str]) -> set[str]:
        """Return the ids of these hosts whose locks are held, which means that they live."""
        return set(hosts) & self._shared.locks.keys()

    def _reach(self) -> None:
        """Wait until the database can be reached. Raises the error of a broken connection."""
        if self._link is Link.SILENT and self._abandoned is None:
            self._link_changed.wait_for(lambda: self._link is not Link.SILENT or self._abandoned is not None)
        if self._abandoned is not None:
            raise SystemClosed(self._abandoned)
        if self._link is Link.CUT:
            raise StoreUnavailable("The server cannot be reached, as the simulation will have it.")

    def _call_watches(self, agents: Collection[str] | None, *, for_hosts: bool) -> None:
        """Notify the watches of all reachable processes of changed agents, as a database server does.

        ``for_hosts``: whether hosts may have something to do, not only followers of the agents.
        """
        for store in self._shared.open if self.leases else ():
            for watch in store._watches if store._link is Link.OPEN else ():
                if for_hosts or watch.hosts:
                    store._commits.hears(partial(watch.call, agents, for_hosts=for_hosts))

    def changed_by_others(self) -> None:
        """Note that another host has committed, and call all watches."""
        for watch in self._watches:
            watch.call()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self.let_go()
            self._shared.open.remove(self)

    def close_database(self) -> None:
        """Close the database, which nobody opens any more."""
        self._writer.connection.close()


class _Separate(BorrowedStore):
    """A separate connection, on which a host has its lock."""

    def __init__(self, store: SimulatedStore) -> None:
        super().__init__(store)
        self._own = store

    def write(self, work: Callable[[Transaction], T]) -> T:
        try:
            return super().write(work)
        except (StoreUnavailable, CommitUnknown):  # the connection is lost, and its lock
            self._own.let_go()
            raise

    def separate(self) -> Store:
        return _Separate(self._own)

    def close(self) -> None:
        """Release the locks that are held on this connection."""
        self._own.let_go()


class Undisturbed(BorrowedStore):
    """A simulated store without faults, for checks and for other processes than the simulated one."""

    def __init__(self, store: SimulatedStore) -> None:
        super().__init__(store)
        self._look, self._change = store.read_undisturbed, store.write_undisturbed

    def read(self, work: Callable[[Transaction], T]) -> T:
        return self._look(work)

    def write(self, work: Callable[[Transaction], T]) -> T:
        return self._change(work)


NOTHING = Hint(frozenset(), frozenset())


def _joined(some: frozenset[str] | None, others: Collection[str] | None) -> frozenset[str] | None:
    return None if some is None or others is None else some.union(others)


class CalledWatch(Watch):
    """A `Watch` that is called when another host commits."""

    def __init__(self, threads: Threads, hosts: bool = False) -> None:
        self.hosts = hosts
        """Whether every commit of a host calls the watch."""
        self._changed = threads.condition()
        self._called = self._rung = self._closed = False
        self._heard = NOTHING

    def wait(self, timeout: float | None = None) -> bool:
        self._changed.wait_for(lambda: self._called or self._rung or self._closed, timeout)
        called, self._called, self._rung = self._called, False, False
        return called and not self._closed

    def heard(self) -> Hint:
        heard, self._heard = self._heard, NOTHING
        return heard

    def call(self, agents: Collection[str] | None = None, *, for_hosts: bool = True) -> None:
        """Record that agents may have changed, and wake the waiting thread; None for any agent.

        ``for_hosts``: hosts are notified too, not only followers of the agents.
        """
        self._called = True
        before = self._heard
        self._heard = Hint(_joined(before.agents, agents), _joined(before.for_hosts, agents if for_hosts else ()))
        self._changed.notify_all()

    def wake(self) -> None:
        self._rung = True
        self._changed.notify_all()

    def close(self) -> None:
        self._closed = True
        self._changed.notify_all()


class CommitTrouble(NamedTuple):
    """An error that the simulation raises at the end of a transaction."""

    error: StoreError
    committed: bool = False
    """Whether the transaction is committed all the same."""


class Commits(Protocol):
    """Observes the transactions of a simulated store, and can make them fail."""

    def reads(self) -> None:
        """Called before a read. An exception prevents the read."""

    def before(self) -> CommitTrouble | None:
        """Called before a transaction. An exception prevents the transaction; a returned error is raised at its end."""

    def rings(self) -> bool:
        """Called after a commit; returns whether the hint about the commit arrives."""

    def hears(self, hint: Callable[[], object]) -> None:
        """Called with a function that delivers the hint of a commit, to be called now or later."""

    def after(self, changes: Sequence[StoredChange]) -> None:
        """Called with the changes of a committed transaction.

        An exception is raised before any caller gets an answer.
        """


class Observed(Transaction):
    """A `Transaction` that records its changes."""

    def __init__(self, inner: Transaction, store: SimulatedStore) -> None:
        self._inner, self._store = inner, store
        self.notifies = False
        """Whether the transaction wakes the other processes."""
        self.concerned: Collection[str] | None = None
        """The agents about which the other processes get a hint; None for any agent."""
        self.changes: list[StoredChange] = []
        """The changes, in the order of the calls."""

    @property
    def schema(self) -> SchemaTransaction:
        return self._inner.schema

    @property
    def words(self) -> WordIndex:
        return self._inner.words

    @property
    def heard(self) -> int:
        return self._inner.heard

    def run(self, query: str, **parameters: Any) -> list[Row]:
        self._remember(query, parameters)
        rows = self._inner.run(query, **parameters)
        if query in TELL_TIME and self._store.apart:
            return [(row[0] + self._store.apart, *row[1:]) for row in rows]
        return rows

    def ask(self, query: str, **parameters: Any) -> Callable[[], list[Row]]:
        self._remember(query, parameters)
        return self._inner.ask(query, **parameters)

    def run_all(self, query: str, each: Sequence[dict[str, Any]]) -> None:
        for parameters in each:
            self._remember(query, parameters)
        self._inner.run_all(query, each)

    def require(self, query: str, otherwise: Callable[[Transaction], Exception], **parameters: Any) -> None:
        self._remember(query, parameters)
        self._inner.require(query, otherwise, **parameters)

    def defer(self, query: str, **parameters: Any) -> None:
        self._remember(query, parameters)
        self._inner.defer(query, **parameters)

    def append(self, rows: Sequence[Row], table: str = "messages") -> None:
        self.changes.extend(Written(table, tuple(row)) for row in rows)
        self._inner.append(rows, table)

    @property
    def locks_rows(self) -> bool:
        return self._inner.locks_rows

    def share_tree(self) -> None:
        self.changes.append(SHARED_TREE)
        self._inner.share_tree()

    def end_stalled(self, host: str, before: int) -> None:
        self.changes.append(RanStatement("end_stalled", {"host": host}))
        self._inner.end_stalled(host, before)

    def hold(self, host: str) -> None:
        self._store.hold(host)

    def held(self, hosts: Sequence[str]) -> set[str]:
        return self._store.held(hosts) if self._store.leases else self._inner.held(hosts)

    def is_hosted(self) -> bool:
        return self._inner.is_hosted()

    def notify(self, agents: Collection[str] | None = None) -> None:
        self.notifies, self.concerned = True, agents
        self._inner.notify(agents)

    def _remember(self, name: str, parameters: Mapping[str, Any]) -> None:
        if name in BY_ROW:
            rest = {key: value for key, value in parameters.items() if key != "keys"}
            name, parameters = BY_ROW[name], {"uuids": self._uuids(parameters["keys"]), **rest}
        if name not in BOOKKEEPING and changes_rows(name):
            self.changes.append(RanStatement(name, parameters))

    def _uuids(self, rows: Sequence[int]) -> list[str]:
        return [
            uuid
            for row in rows
            for (uuid,) in self._inner.schema.execute(f"SELECT uuid FROM agents WHERE rowid = {row}")
        ]
