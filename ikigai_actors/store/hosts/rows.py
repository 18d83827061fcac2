"""The rows of hosts: the processes that run the agents of a database.

This module is separate from `ikigai_actors.store.hosts.host`, since a process that only reads owners needs no threads.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple

from ikigai_actors.errors import Fenced, HostReplaced, NoHost, StoreInUse
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.hosts.machine import has_ended

RECENT = 3_600_000
"""Milliseconds for which a host that has ended is still listed."""


@dataclass(frozen=True, slots=True)
class HostRecord:
    """A host, by its row. Times are milliseconds since 1970 (UTC)."""

    id: str
    name: str | None
    """The name of a host that shares the agents with other hosts; None for a host that shares them with none."""
    hostname: str
    pid: int
    started_at: int
    ended_at: int | None = None
    """When the host gave the database up, or was ended by another host; None while it lives. Milliseconds since
    1970.
    """
    shards: int = 0
    """The number of its shards; for an ended host, those that nobody has taken since. Set by `recent_hosts` only."""
    agents: int = 0
    """The number of living agents in these shards. From `open_hosts`: the number that the host last reported."""
    working: int = 0
    """The number of these agents that are in a turn; set by `recent_hosts` only."""
    age: int | None = None
    """Milliseconds since the host renewed its lease, by the database's clock; None if hosts have no leases."""
    draining: bool = False
    """Whether the host gives its agents away and gets no others."""
    silent: bool = False
    """Whether the host sends no heartbeat, since its process has ended or its lease has expired. Set by
    `recent_hosts`.
    """
    lease_until: int = 0
    """When the host's lease expires, in milliseconds since 1970; 0 if hosts have no leases."""
    now: int = 0
    """When the row was read, in milliseconds since 1970."""
    waits: str = ""
    """The waits of its agents for one another; see `ikigai_actors.records.hosts.host_waits`."""
    machine: str = ""
    """The boot and process-id namespace of the host's machine; see `this_machine`. Set by `open_hosts` only."""
    build: str = ""
    """The build of the app's code that the host runs; empty if unknown. Set by `recent_hosts` only."""

    @property
    def state(self) -> str:
        """Return the state of the host as one word: ``runs``, ``drains``, ``silent`` or ``ended``."""
        if self.ended_at is not None:
            return "ended"
        if self.silent:
            return "silent"
        return "drains" if self.draining else "runs"

    @property
    def is_believed(self) -> bool:
        """Return whether the host's lease is valid. On SQLite there is no lease, so this is False."""
        return self.lease_until > self.now

    @property
    def is_gone(self) -> bool:
        """Return whether the host has a lease though its process has ended.

        False for a process of another machine, which cannot be checked.
        """
        return bool(self.lease_until) and has_ended(self.pid, self.machine)

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.started_at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return f"{self.called}, since {since}"

    @property
    def called(self) -> str:
        """Return the name of the host for people."""
        name = "" if self.name is None else f"{self.name} on "
        return f"host {name}{self.hostname}, pid {self.pid}"


def owners(tx: Transaction) -> tuple[HostRecord, ...]:
    """Return the hosts that run the agents according to the rows, latest first."""
    return ask_owners(tx)()


def ask_owners(tx: Transaction) -> Callable[[], tuple[HostRecord, ...]]:
    """Send the query of `owners` in one round trip with other queries (see `Transaction.ask`).

    Returns:
        A function that returns the result of `owners`.
    """
    rows = tx.ask("running_hosts")

    def owners() -> tuple[HostRecord, ...]:
        opened = (_record(*row) for row in rows())
        return tuple(record for record in opened if record.is_believed or (not record.lease_until and tx.is_hosted()))

    return owners


RETURNS = 10_000
"""Milliseconds that hosts are expected to come back by themselves after all hosts went silent or ended."""


def expected_hosts(tx: Transaction) -> tuple[HostRecord, ...]:
    """Return the hosts that may come back by themselves, while no host runs the agents.

    A lease may have run out because the server was away or the host was delayed. A host that shares agents and has
    ended is usually started again by a service manager.
    """
    records = (_record(*row) for row in tx.run("expected_hosts", within=RETURNS))
    return tuple(record for record in records if record.lease_until and (record.name is not None or not record.is_gone))


def owner(tx: Transaction) -> HostRecord | None:
    """Return the latest host that runs the agents according to the rows; None if there is none."""
    return next(iter(owners(tx)), None)


def open_hosts(tx: Transaction) -> tuple[HostRecord, ...]:
    """Return the hosts that have neither closed nor been ended by another host, latest first."""
    return tuple(_record(*row) for row in tx.run("running_hosts"))


def open_hosts_of_any_version(tx: Transaction) -> list[HostRecord]:
    """Return the open hosts of a database with any schema version. Only columns that every version has are read."""
    return [_record(*row) for row in tx.run("open_hosts")]


def older_hosts(tx: Transaction, least: int) -> list[HostRecord]:
    """Return the open hosts whose program does not know schema version ``least``."""
    return [_record(*row) for row in tx.run("older_hosts", least=least)]


def unshared_host(tx: Transaction) -> HostRecord | None:
    """Return the open host that shares the agents with no other; None if there is none."""
    return next((_record(*row) for row in tx.run("unshared_hosts")), None)


def recent_hosts(tx: Transaction) -> list[HostRecord]:
    """Return the living hosts, and those that ended within the last hour, in the order of their start."""
    rows = tx.run("recent_hosts", within=RECENT)
    held = tx.held([row[0] for row in rows]) if tx.is_hosted() else set[str]()
    return [
        replace(
            (record := _record(*row)),
            ended_at=ended,
            shards=shards,
            working=working,
            build=build,
            age=max(0, record.now - record.lease_until + lease) if record.lease_until else None,
            silent=record.id not in held or (bool(lease) and not record.is_believed),
        )
        for *row, ended, lease, shards, working, build in rows
    ]


def _record(
    host: str,
    hostname: str,
    pid: int,
    started_at: int,
    lease_until: int,
    now: int,
    name: str | None = None,
    agents: int = 0,
    draining: int = 0,
    waits: str = "",
    machine: str = "",
) -> HostRecord:
    shown = HostRecord(host, name, hostname, pid, started_at, agents=agents, draining=bool(draining))
    return replace(shown, lease_until=lease_until, now=now, waits=waits, machine=machine)


def find_host(tx: Transaction, text: str) -> HostRecord:
    """Return the living host with this name or id. Raises `NoHost`."""
    living = [host for host in recent_hosts(tx) if host.ended_at is None]
    for host in living:
        if text in (host.name, host.id):
            return host
    names = ", ".join(host.name or host.id for host in living) or "there are none"
    raise NoHost(f"No living host is called {text[:80]!r}; those that live: {names}.")


def find_taker(tx: Transaction, text: str) -> HostRecord:
    """Return the living host with this name or id that takes agents. Raises `NoHost`."""
    host = find_host(tx, text)
    if host.draining:
        raise NoHost(f"Host {text} gives its agents away, and takes none. Name another.")
    if not host.shards:
        raise NoHost(f"Host {text} has just started, and takes no agents yet. Try again in some seconds.")
    return host


class Vacant(NamedTuple):
    """The agents and shards that no host runs."""

    shards: int
    agents: int


def vacant(tx: Transaction) -> Vacant:
    """Return the shards that no host has, and the number of living agents in them."""
    [row] = tx.run("without_host")
    return Vacant(*row)


def in_use(location: str, owners: Sequence[HostRecord]) -> StoreInUse:
    """Return the error that says why this process cannot become the host.

    Args:
        location: the database, as a person names it.
        owners: the present hosts, latest first; empty if unknown.
    """
    who, wait = "another process", ""
    if owners:
        owner = owners[0]
        who = str(owner)
        if owner.is_believed:
            wait = f"; if that process is gone, try again in {(owner.lease_until - owner.now) // 1000 + 1} s"
    return StoreInUse(
        f"Database {location} is in use by {who}. Use that one, end it{wait}, or name another database with "
        "--database or $IKIGAI_DATABASE_URL."
    )


def why_ended(tx: Transaction, host: str, then: str = "") -> Fenced:
    """Return the error that says why this host lost the database: another host ended its row.

    ``then`` is added to the message.
    """
    name = next((row[3] for row in tx.run("hosts") if row[0] == host), None)
    if name is None:
        return Fenced(f"Another host has taken this database over, since the lease was not renewed in time.{then}")
    other = next((namesake for namesake in open_hosts(tx) if namesake.name == name and namesake.id != host), None)
    if other is not None:
        return HostReplaced(
            f"Another host named {name} was started, and has taken the place of this one: {other}.{then}"
        )
    silent = f"Host {name} sent no heartbeat in time, so other hosts have taken its agents. Start it again."
    return Fenced(f"{silent}{then}")


def host_names(hosts: Sequence[HostRecord]) -> Mapping[str, str]:
    """Return the names of hosts by id; empty if there are fewer than two hosts."""
    return {host.id: host.name or host.id[:6] for host in hosts} if len(hosts) > 1 else {}


def went_back(location: str, known: str) -> Fenced:
    """Return the error for a host whose commits are gone, since an older copy replaced its database.

    Args:
        location: the database, as a person names it.
        known: what the database still knows.
    """
    return Fenced(
        f"Database {location} has lost what this host has written: {known}. An older copy was put in its place, or a "
        "standby without the latest commits took over. Start again."
    )
