"""The host: one OS process that runs agents, and owns the database while it does.

*SQLite:* the host holds an operating-system lock on ``<database>.lock`` for its life. The kernel frees it at death, so
a dead owner is taken over at once; no pid and no clock decides. *In memory:* nobody else can come.

*PostgreSQL:* the host's row holds a lease by the server's clock, renewed every few seconds on a connection of its own.
A second host takes over when the lease has run out, and not before. A host that could not renew for half its lease
starts no effect until it has; one that finds its row ended by another is fenced, and closes.

A crash leaves the row open. Whoever comes next finds the lock free, or the lease run out, and ends the row.
"""

import contextlib
import logging
import os
import socket
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from ikigai_actors.clock import Clock
from ikigai_actors.errors import Fenced, StoreError, StoreInUse, StoreUnusable
from ikigai_actors.store.base import Row, Store, Transaction

logger = logging.getLogger(__name__)

LEASE = 10.0
"""Seconds for which a host is believed on PostgreSQL."""


class Owner(NamedTuple):
    """A host as its row tells."""

    id: str
    hostname: str
    pid: int
    started_at: int
    lease_until: int
    epoch: int
    now: int

    @property
    def lives(self) -> bool:
        """Whether it runs the agents, as far as can be seen: by its lease, or on SQLite by its process on this machine;
        elsewhere it is believed to.
        """
        return self.lease_until > self.now if self.lease_until else not self.is_gone

    @property
    def is_gone(self) -> bool:
        """Whether its process is seen to be no more: only on this machine it can be."""
        if self.hostname != socket.gethostname():
            return False
        try:
            os.kill(self.pid, 0)  # asks, and sends nothing
        except ProcessLookupError:
            return True
        except OSError:  # somebody else's process
            return False
        return False

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.started_at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return f"host {self.hostname}, pid {self.pid}, since {since}"


class Host:
    """This process as the owner of a database. Taken by `take_database`."""

    def __init__(self, store: Store, host_id: str, clock: Clock, lease: float | None) -> None:
        self.id = host_id
        self._store, self._clock, self._lease = store, clock, lease
        self._renewed = clock.monotonic()
        self._postponed: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._on_fenced: Callable[[Fenced], None] = lambda error: None
        self._thread: threading.Thread | None = None
        self._resources = contextlib.ExitStack()

    def keep(self, on_fenced: Callable[[Fenced], None]) -> None:
        """Renew the lease from now on, where there is one; ``on_fenced`` hears when another host has taken over."""
        self._on_fenced = on_fenced
        if self._lease is not None:
            self._thread = threading.Thread(target=self._run, name="ikigai-lease", daemon=True)
            self._thread.start()

    def may_act(self, when_it_may: Callable[[], None]) -> bool:
        """Whether effects may start. If not, the callback is called once they may."""
        if self._lease is None:
            return True
        with self._lock:
            if self._clock.monotonic() - self._renewed < self._lease / 2:
                return True
            self._postponed.append(when_it_may)
            return False

    def renew(self) -> None:
        """Renew the lease now. Raises `Fenced` when another host has taken over, `StoreError` when the database does
        not answer.
        """
        assert self._lease is not None  # only a host with a lease renews
        asked, lease = self._clock.monotonic(), int(self._lease * 1000)
        if not self._store.write(lambda tx: tx.run("renew_lease", id=self.id, lease=lease)):
            raise Fenced("Another host has taken this database over, since the lease was not renewed in time.")
        with self._lock:
            self._renewed = asked
            postponed, self._postponed = self._postponed, []
        for wake in postponed:
            wake()

    def release(self) -> None:
        """Give the database up: a second call does nothing."""
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        with contextlib.suppress(StoreError):  # the next owner ends the row in any case
            self._store.write(lambda tx: tx.run("end_host", id=self.id))
        self._resources.close()

    def holds(self, release: Callable[[], object]) -> None:
        """Something to be given back with the database."""
        self._resources.callback(release)

    def _run(self) -> None:
        assert self._lease is not None
        while not self._stop.wait(self._lease / 4):
            try:
                self.renew()
            except Fenced as error:
                logger.error("%s", error)
                self._on_fenced(error)
                return
            except StoreError as error:
                logger.warning("The lease could not be renewed: %s", error)


def owner(tx: Transaction) -> Owner | None:
    """The host that runs the agents; None when none does, as far as can be seen."""
    return next((one for one in map(Owner._make, tx.run("owners")) if one.lives), None)


def take_database(store: Store, host_id: str, clock: Clock, lease: float = LEASE) -> Host:
    """Become the owner of a database whose schema is there.

    Args:
        store: the database.
        host_id: a fresh id for this host.
        clock: measures how old the lease is.
        lease: seconds for which the host is believed on PostgreSQL.

    Raises:
        StoreInUse: another host owns it; the message names it.
    """
    from ikigai_actors.store.sqlite import SQLiteStore

    if isinstance(store, SQLiteStore):
        host = Host(store, host_id, clock, None)
        if store.path is not None:
            host.holds(_lock_file(store, store.path))
        try:
            store.write(lambda tx: _take(tx, store.location, host_id, 0))
        except BaseException:
            host.release()
            raise
        return host
    own = store.separate()
    host = Host(own, host_id, clock, lease)
    host.holds(own.close)
    try:
        own.read(lambda tx: _clear_the_way(tx, store.location))
        own.write(lambda tx: _take(tx, store.location, host_id, int(lease * 1000)))
    except BaseException:
        own.close()
        raise
    return host


def _lock_file(store: Store, path: Path) -> Callable[[], object]:
    from filelock import FileLock, Timeout  # 0.08 s: a command that only reads does without

    # No fallback: a lock that is a file's existence would survive kill -9, and lock the database for good.
    lock = FileLock(path.with_name(path.name + ".lock"), mode=0o600, thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise _in_use(store.location, store.read(lambda tx: tx.run("owners"))) from error
    except (OSError, NotImplementedError) as error:  # the latter: a file system without kernel locks
        raise StoreUnusable(f"The lock file {lock.lock_file} cannot be used: {error}. Use a local disk.") from error
    return lock.release


def _clear_the_way(tx: Transaction, location: str) -> None:
    """End what an owner whose lease has run out has begun and does not go on with: its locks would keep the next one
    waiting for ever. While it is believed nothing is waited for.
    """
    _refuse_believed(tx, location)
    for row in tx.run("owners"):
        tx.end_stalled(Owner(*row).lease_until)


def _refuse_believed(tx: Transaction, location: str) -> None:
    believed = [row for row in tx.run("owners") if Owner(*row).lease_until > Owner(*row).now]
    if believed:
        raise _in_use(location, believed)


def _take(tx: Transaction, location: str, host_id: str, lease: int) -> None:
    """End the earlier hosts and claim every living agent: what an earlier host still writes is fenced from here on.

    Locks are taken in the order of the journal: the tree, the agents, the host's row. An earlier host that still
    commits, or renews its lease at this moment, is waited for; one that has renewed it is believed after all.
    """
    tx.run("tree_change")  # whoever takes the database at the same moment waits here, and then finds this one's row
    _refuse_believed(tx, location)
    tx.run("lock_living")
    tx.run("end_hosts")
    if renewed := tx.run("owners"):
        raise _in_use(location, renewed)
    tx.run("register_host", id=host_id, hostname=socket.gethostname(), pid=os.getpid(), lease=lease)
    tx.run("claim", host=host_id)


def _in_use(location: str, owners: list[Row]) -> StoreInUse:
    who, wait = "another process", ""
    if owners:
        owner = Owner(*owners[0])
        who = str(owner)
        if owner.lease_until > owner.now:
            wait = f"; if that process is gone, try again in {(owner.lease_until - owner.now) // 1000 + 1} s"
    return StoreInUse(
        f"Database {location} is in use by {who}. Use that one, end it{wait}, or name another database with "
        "--database or $IKIGAI_DATABASE_URL."
    )
