"""The host: one OS process that runs agents, and owns the database while it does.

*SQLite:* the host holds locks of the operating system on the file (`ikigai_actors.store.sqlite.host_lock`). *In
memory:* no other process can come.

*PostgreSQL:* the host's row holds a lease by the server's clock, renewed every second on a connection of its own, which
also holds a lock of the server. A second host takes over when the lease has run out, or when the lock has been free for
some seconds: then the process has ended. Hosts that have names share the agents: each takes shards without a host, also
those of a host that has ended (`ikigai_actors.store.hosts.shards`). A host that could not renew for half its lease
starts no effect before the next renewal. A host whose row another host has ended is fenced, and closes. A network that
swallows every packet keeps a renewal waiting forever, so another thread checks the age of the latest renewal: after one
lease it reports trouble; after three the host gives every connection up, and closes.

A crash leaves the row open. Another host finds the lock free, or the lease run out, and ends the row.

Hosts of several versions of the program share one database (`ikigai_actors.store.migrations`). A host that joins
migrates the schema to its own version, if the living hosts know that schema. A host that finds at a renewal that its
program does not know the schema any more reports that once.
"""

import contextlib
import logging
import os
import socket
import threading
from collections.abc import Callable, Sequence
from enum import Enum

from ikigai_actors.actors.clock import Clock
from ikigai_actors.actors.service import Service
from ikigai_actors.actors.threads import SYSTEM_THREADS, Threads
from ikigai_actors.errors import (
    Fenced,
    IkigaiError,
    ProgramOutdated,
    SchemaInUse,
    StoreConflict,
    StoreUnavailable,
    StoreUnusable,
)
from ikigai_actors.store.base import Blocked, Row, Store, Transaction
from ikigai_actors.store.database_clock import DatabaseClock, HybridClock, clock_of
from ikigai_actors.store.hosts.machine import this_machine
from ikigai_actors.store.hosts.membership import LOOK, rhythm
from ikigai_actors.store.hosts.peers import Peers
from ikigai_actors.store.hosts.placement import Living
from ikigai_actors.store.hosts.rows import (
    HostRecord,
    in_use,
    older_hosts,
    open_hosts,
    open_hosts_of_any_version,
    unshared_host,
    went_back,
    why_ended,
)
from ikigai_actors.store.hosts.shards import claim
from ikigai_actors.store.migrations import (
    MIGRATIONS,
    Migration,
    least_for,
    migrate_within,
    newest,
    outdated,
    usable_version,
)

logger = logging.getLogger(__name__)

LEASE = 10.0
"""Seconds that a PostgreSQL host counts as living after it renewed its lease."""


LOST = 3
"""After this many leases without a renewal a host ends."""


class Renewal(Enum):
    """Whether a host still holds its lease, by the time since it last renewed the lease."""

    KEPT = "kept"
    LATE = "late"
    LOST = "lost"


def renewal(age: float, awake: float, lease: float) -> Renewal:
    """Return whether a host still holds its lease, and whether the next renewal is late.

    Args:
        age: seconds since the latest successful renewal was sent.
        awake: seconds since the process went on after it was stopped or suspended: it can renew only from then on.
        lease: seconds for which other hosts count this one as living after a renewal.
    """
    if age < lease:
        return Renewal.KEPT
    return Renewal.LOST if min(age, awake) >= LOST * lease else Renewal.LATE


class _LeaseWatch(Service):
    """Checks the age of a host's latest renewal on a thread of its own, since the renewal itself may hang."""

    def __init__(self, look: Callable[[float, float], None], clock: Clock, lease: float, threads: Threads) -> None:
        super().__init__("ikigai-lease-watch", threads)
        self._look, self._clock, self._lease = look, clock, lease

    def run(self) -> None:
        looked = awake = self._clock.monotonic()
        while self.pause(self._lease / 8):
            now = self._clock.monotonic()
            if now - looked > self._lease:
                awake = now
            looked = now
            self._look(now, awake)


class Host(Service):
    """A host: this process as the owner of a database, or of some of its shards. Call `new_host` to make one."""

    def __init__(
        self,
        store: Store,
        host_id: str,
        clock: Clock,
        lease: float | None,
        threads: Threads = SYSTEM_THREADS,
        name: str | None = None,
        migrations: Sequence[Migration] = MIGRATIONS,
    ) -> None:
        super().__init__("ikigai-lease", threads)
        self.id = host_id
        self.name = name
        """By which it is known to those with which it shares the agents; None when it shares them with nobody."""
        self.clock = clock
        """The clock of the times that are stored."""
        self._store, self._lease, self._migrations = store, lease, migrations
        self._knows = newest(migrations)
        self._peers = Peers(store, host_id, clock)
        self._renewed = clock.monotonic()
        self._beat = 0  # the number of the latest renewal
        self._registered = False  # whether the database may have its row
        self._warned = False
        self._postponed: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._watch = _LeaseWatch(self._look_at_age, clock, lease or 0.0, threads)
        self.count: Callable[[], Living] = lambda: Living(0)
        """Counts the agents that it runs, for those with which it shares them."""
        self.describe: Callable[[Transaction], object] = lambda tx: None
        """Writes, in the transaction in which it begins, what its process runs."""
        self.on_wait: Callable[[HostRecord], object] = lambda owner: None
        """Gets the host that this one waits for before it joins, whenever that is another one than before."""
        self.on_renewal: Callable[[], object] = lambda: None
        """Called when the lease begins and after each renewal, on the thread that did it."""
        self.on_vacancy: Callable[[], object] = lambda: None
        """Called when another host was found dead, whose shards nobody has; on the thread that keeps the lease."""
        self.on_outdated: Callable[[ProgramOutdated], object] = lambda error: None
        """Gets the reason when a newer program has changed the schema, so that this one should not use it any more;
        once, on the thread that renews the lease.
        """
        self._is_outdated = False
        self._why_ended: IkigaiError | None = None
        self._told = Renewal.KEPT
        self._on_end: Callable[[IkigaiError], None] = lambda error: None
        self._on_trouble: Callable[[str | None], None] = lambda reason: None
        self._resources = contextlib.ExitStack()

    @property
    def lease(self) -> float:
        """Return the seconds that this host counts as living after a renewal; 0 if it has no lease."""
        return self._lease or 0.0

    def keep(
        self,
        on_end: Callable[[IkigaiError], None] = lambda error: None,
        on_trouble: Callable[[str | None], None] = lambda reason: None,
    ) -> None:
        """Start to renew the lease regularly, if hosts of this database have leases.

        Call this again to replace both functions. If the host has ended before, ``on_end`` is called at once.

        Args:
            on_end: gets the reason why this host must end: `Fenced`, another host has taken over; `StoreUnavailable`,
                the lease could not be renewed for too long.
            on_trouble: gets the reason when the lease has run out, and None when it is renewed again.
        """
        with self._lock:
            self._on_end, self._on_trouble = on_end, on_trouble
            self._told = Renewal.KEPT  # these have heard of no trouble
            ended = self._why_ended
        if ended is not None:
            on_end(ended)
        if self._lease is not None:
            self.start()
            self._watch.start()

    def may_act(self, when_it_may: Callable[[], None]) -> bool:
        """Return whether effects may start now. If not, ``when_it_may`` is called once they may."""
        if self._lease is None:
            return True
        with self._lock:
            if self.clock.monotonic() - self._renewed < self._lease / 2:
                return True
            self._postponed.append(when_it_may)
            return False

    def renew(self) -> None:
        """Renew the lease now.

        Raises `Fenced` when another host has taken over, or the database has become an older copy of itself, and
        `StoreError` when the database does not answer.
        """
        assert self._lease is not None  # only a host with a lease renews
        asked, lease = self.clock.monotonic(), int(self._lease * 1000)

        def beat(tx: Transaction) -> list[Row]:
            tx.hold(self.id)  # again, since the connection may be another one
            if self.name is not None:
                tx.run("count_agents", host=self.id, **self.count()._asdict())
            return tx.run("renew_lease", id=self.id, lease=lease)

        renewed = self._store.write(beat)
        if not renewed:
            raise self._store.read(lambda tx: why_ended(tx, self.id))
        [(now, number, least)] = renewed
        if number <= self._beat:
            raise went_back(self._store.location, f"it knows {number - 1} of {self._beat} renewals of its lease")
        self._beat, self._warned = number, False
        if isinstance(self.clock, HybridClock) and isinstance(self.clock.calendar, DatabaseClock):
            self.clock.calendar.hear(asked, now)
        with self._lock:
            self._renewed = asked
            postponed, self._postponed = self._postponed, []
        for wake in postponed:
            wake()
        self.on_renewal()
        if least > self._knows and not self._is_outdated:
            self._is_outdated = True
            self.on_outdated(outdated(self._store.location, least, self._migrations))

    def begin(self) -> None:
        """Become the owner, or one of the owners, of the database; migrate the schema to the newest version.

        Raises:
            StoreInUse: another host owns it, or has a share, and this one does not join; the message names it.
            Fenced: see `join`.
            StoreError: the database does not answer.
        """
        if self._lease is None:
            self.holds(self._store.lock())
            self._migrating(self._take)
        elif self.name is None:
            self.take_over()
        else:
            self.join()

    def take_over(self) -> None:
        """Become the only owner of the database. Raises `StoreInUse` when another host lives.

        If another host's lease is valid and its process seems to have ended, this waits a few seconds until that is
        certain.
        """
        waits_for = ""
        while (owner := self._store.read(self._owner)) is not None:
            if not self._peers.end_dead():
                if owner.id != waits_for:
                    waits_for = owner.id
                    self.on_wait(owner)
                self.pause(LOOK / 4)
        self._migrating(self._take)

    def join(self) -> None:
        """Become one of the hosts that share the agents, at first without any shard.

        If a host that does not share the agents runs, this waits until that host has ended or is judged dead.

        Raises:
            Fenced: another host of the same name has taken this one's place, or this one was judged dead.
            SchemaInUse: a host of an older program lives that does not know the schema that this one needs.
            ProgramOutdated: a newer program has changed the schema meanwhile.
            StoreError: the server does not answer at the first try. Later tries go on.
        """
        self._migrating(self._enter)
        self.on_renewal()
        last = ""
        while True:
            try:
                owner = self._store.read(unshared_host)
                if owner is None:
                    return
                if owner.id != last:
                    last = owner.id
                    self.on_wait(owner)
                self.pause(LOOK)
                self._peers.end_dead()
                self.renew()
            except (StoreConflict, StoreUnavailable) as error:
                self._warn("This host waits, and the database does not answer: %s", error)
                self.pause(LOOK)

    def _migrating(self, work: Callable[[Transaction], None]) -> None:
        """Commit work that may migrate the schema. While another transaction is in the way, try again each second."""
        while True:
            try:
                return self._store.write(work)
            except Blocked as error:
                self._warn("The tables are changed as soon as a longer transaction lets them go: %s", error)
            self.pause(LOOK)

    @property
    def _milliseconds(self) -> int:
        return 0 if self._lease is None else int(self._lease * 1000)

    def _owner(self, tx: Transaction) -> HostRecord | None:
        """Return a host whose lease is valid although its process seems to have ended.

        If there is none, clean up after ended hosts.

        Raises `StoreInUse` for one that lives.
        """
        opened = open_hosts_of_any_version(tx)
        believed = [row for row in opened if row.is_believed]
        if believed and usable_version(tx, self._store.location, self._migrations) < self._knows:
            raise _schema_in_use(self._store.location, older_hosts(tx, self._knows))
        if believed:
            believed = [row for row in open_hosts(tx) if row.is_believed]
        if believed and tx.held([row.id for row in believed if not row.is_gone]):
            raise in_use(self._store.location, believed)
        if not believed:
            _end_stalled(tx, opened)
        return next(iter(believed), None)

    def _enter(self, tx: Transaction) -> None:
        """Register this host, in place of one of the same name, and migrate the schema to this program's version.

        Living hosts must know the migrated schema. Hosts that do not know it, and whose lease has run out, are ended,
        since they could come back. An earlier host of the same name is ended first: it is none that lives on.
        """
        tx.run("tree_change")
        version = usable_version(tx, self._store.location, self._migrations)
        tx.run("end_namesake", name=self.name)
        if least := least_for(version, self._migrations):
            tx.run("end_older_hosts", least=least)
            if older := older_hosts(tx, least):
                raise _schema_in_use(self._store.location, older)
            migrate_within(tx, self._migrations)
        self._register(tx)

    def _take(self, tx: Transaction) -> None:
        """End the earlier hosts and claim their shards: from here on, later writes of an earlier host are fenced.

        An earlier host that is committing, or renewing its lease, holds the lock of its row, and this waits for it. If
        it has renewed its lease, it counts as living after all.
        """
        tx.run(
            "tree_change"
        )  # one that takes the database at the same moment waits here, and then finds this one's row
        if believed := [row for row in open_hosts_of_any_version(tx) if row.is_believed]:
            raise in_use(self._store.location, believed)
        tx.run("end_hosts")
        if renewed := open_hosts_of_any_version(tx):
            raise in_use(self._store.location, renewed)
        usable_version(tx, self._store.location, self._migrations)
        migrate_within(tx, self._migrations)  # the statements before this one know no more than the first version had
        self._register(tx)
        tx.run("claim_shards", host=self.id)

    def _register(self, tx: Transaction) -> None:
        self._registered = True
        _register(tx, self.id, self._milliseconds, self.name, self._knows)
        self.describe(tx)

    def claim(self, waited: float = 0.0) -> None:
        """Take shards that no host runs, up to this host's share of them, or all. Raises `Fenced`, `StoreError`.

        Args:
            waited: seconds for which this host has seen shards without a host; after `placement.UNCLAIMED` it takes
                all.
        """
        self._store.write(lambda tx: self._claim(tx, waited))

    def _claim(self, tx: Transaction, waited: float) -> None:
        tx.run("tree_change")  # of two hosts that claim at once the second one sees what the first has taken
        if not tx.run("renew_lease", id=self.id, lease=self._milliseconds):
            raise why_ended(tx, self.id)
        claim(tx, self.id, waited)

    def release(self) -> None:
        """Give up the ownership of the database; a second call does nothing."""
        self.close()
        self._watch.close()
        if self._registered:  # else whoever kept this host from its database would keep it from leaving too
            with contextlib.suppress(IkigaiError):  # the next owner ends the row in any case
                self._store.write(lambda tx: tx.run("end_host", id=self.id))
        self._resources.close()

    def holds(self, release: Callable[[], object]) -> None:
        """Register a function to be called when the database is released."""
        self._resources.callback(release)

    def _end_by(self, error: IkigaiError) -> None:
        """End this host, because another host or an error has ended it, and report the reason."""
        logger.error("%s", error)
        self.stop()
        with self._lock:
            self._why_ended, tell = error, self._on_end
        tell(error)

    def stop(self) -> None:
        super().stop()
        self._watch.stop()

    def run(self) -> None:
        """Renew the lease regularly until the host stops, on the thread of the service."""
        assert self._lease is not None
        while self.pause(rhythm(self._lease)):
            if self.name is not None:  # before the renewal: by its own lock it sees whether its connection was lost
                self._look_at_peers()
            try:
                self.renew()
            except Fenced as error:
                self._end_by(error)
                return
            except IkigaiError as error:
                self._warn("The lease could not be renewed: %s", error)

    def _warn(self, text: str, error: IkigaiError) -> None:
        """Log a warning that the database does not answer; once until it answers again."""
        logger.log(logging.INFO if self._warned else logging.WARNING, text, error)
        self._warned = True

    def _look_at_peers(self) -> None:
        try:
            if self._peers.end_dead():
                self.on_vacancy()
        except IkigaiError as error:
            logger.info("The other hosts could not be looked at: %s", error)

    def _look_at_age(self, now: float, awake: float) -> None:
        """Look at the age of the latest renewal; end the host when it is too old.

        Args:
            awake: since when the process runs without having been stopped.
        """
        assert self._lease is not None
        age = now - self._renewed
        outcome = renewal(age, now - awake, self._lease)
        if outcome is Renewal.LOST:
            self._give_up(age)
            return
        with self._lock:
            is_new, self._told, tell = outcome is not self._told, outcome, self._on_trouble
        if is_new:
            tell(self._late(age) if outcome is Renewal.LATE else None)

    def _late(self, age: float) -> str:
        return (
            f"Database {self._store.location} has not renewed the lease of {self._lease:g} s for {age:.0f} s: another "
            "host may run these agents"
        )

    def _give_up(self, age: float) -> None:
        error = StoreUnavailable(
            f"{self._late(age)}, so this one ends. Check the network and the server, and start again."
        )
        self._end_by(error)
        self._store.abandon(str(error))


def new_host(
    store: Store,
    host_id: str,
    clock: Clock,
    lease: float = LEASE,
    threads: Threads = SYSTEM_THREADS,
    *,
    name: str | None = None,
    on_wait: Callable[[HostRecord], object] = lambda owner: None,
    on_renewal: Callable[[], object] = lambda: None,
    migrations: Sequence[Migration] = MIGRATIONS,
) -> Host:
    """Make a host of a database that has its schema. Other hosts see it after `Host.begin`.

    Always release it at the end.

    Args:
        host_id: a fresh id for this host.
        lease: seconds for which other hosts count this one as living after a renewal on PostgreSQL.
        threads: makes the threads that keep the lease.
        name: the name of a host that shares the agents with others, see `Host.join`; None shares them with nobody.
        on_wait: see `Host.join`.
        on_renewal: see `Host.on_renewal`.
        migrations: the changes of the schema that its program knows.

    Raises:
        StoreUnusable: hosts cannot share the agents of this database; or its server, or a pooler before it, does not
            give the connections that a host needs.
    """
    if not store.leases:
        if name is not None:
            raise unshareable(store.location)
        return Host(store, host_id, clock_of(store, clock), None, threads, migrations=migrations)
    store.introduce(host_id)
    own = store.separate()
    try:
        stamps = clock_of(own, clock)
        host = Host(own, host_id, stamps, lease, threads, name, migrations)
        store.listen(stamps.hear)
    except BaseException:
        own.close()
        raise
    host.holds(own.close)
    host.on_wait, host.on_renewal = on_wait, on_renewal
    return host


def take_database(host: Host) -> Host:
    """Let a new host begin. Raises the errors of `Host.begin`, after releasing the host."""
    try:
        host.begin()
    except BaseException:
        host.release()
        raise
    return host


def unshareable(location: str) -> StoreUnusable:
    """Return the error that hosts cannot share the agents of a file."""
    return StoreUnusable(
        f"Database {location} is a file, which has one host. Hosts share agents on PostgreSQL: ikigai copy moves a "
        "team there. Open it without join, or name that database."
    )


def _end_stalled(tx: Transaction, owners: Sequence[HostRecord]) -> None:
    """End the stalled transactions of owners whose lease has run out: their locks would make the next one wait."""
    for row in owners:
        tx.end_stalled(row.id, row.lease_until)


def claim_new(tx: Transaction, host_id: str) -> None:
    """Make a host without a lease the owner of a new database."""
    _register(tx, host_id, 0, None, newest())
    tx.run("claim_shards", host=host_id)


def _register(tx: Transaction, host_id: str, lease: int, name: str | None, knows: int) -> None:
    tx.run("register_host", id=host_id, hostname=socket.gethostname(), pid=os.getpid(), lease=lease)
    tx.run("describe_host", id=host_id, name=name, lease=lease, machine=this_machine(), schema=knows)
    tx.hold(host_id)


def _schema_in_use(location: str, hosts: Sequence[HostRecord]) -> SchemaInUse:
    who = tuple(str(host) for host in hosts)
    return SchemaInUse(
        f"Database {location} has an older version, and this ikigai changes what an older ikigai still uses: "
        f"{' and '.join(who)}. End each of them, and start this one again: it brings the database to the new version.",
        who,
    )
