"""The owners of a database: the hosts that run its agents, as their rows tell.

Not in `ikigai_actors.store.hosts.host`: a process that only asks for the owner needs no threads.
"""

import os
import socket
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from ikigai_actors.errors import Fenced, StoreInUse
from ikigai_actors.store.base import Transaction


class HostRow(NamedTuple):
    """A host as its row tells."""

    id: str
    hostname: str
    pid: int
    started_at: int
    lease_until: int
    epoch: int
    now: int
    name: str | None = None
    """By which it is known to those with which it shares the agents; None for one that shares them with nobody."""
    agents: int = 0
    """How many it ran when it last told, if it shares them."""
    draining: int = 0
    """1 while it gives its agents away."""
    waits: str = ""
    """Which of its agents wait for which; see `ikigai_actors.records.host_waits`."""

    @property
    def is_believed(self) -> bool:
        """Whether its lease lasts. On SQLite there is none."""
        return self.lease_until > self.now

    @property
    def is_gone(self) -> bool:
        """Whether it has a lease, but its process has ended. Only a process on this machine can be checked."""
        if not self.lease_until or self.hostname != socket.gethostname():
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
        return f"{self.called}, since {since}"

    @property
    def called(self) -> str:
        """How a person knows it."""
        name = "" if self.name is None else f"{self.name} on "
        return f"host {name}{self.hostname}, pid {self.pid}"


def owners(tx: Transaction) -> tuple[HostRow, ...]:
    """The hosts that run the agents, as far as rows tell; the latest first."""
    return tuple(one for one in open_hosts(tx) if one.is_believed or (not one.lease_until and tx.is_hosted()))


def open_hosts(tx: Transaction) -> tuple[HostRow, ...]:
    """The hosts that have neither closed nor been ended by another one; the latest first."""
    return tuple(HostRow(*row) for row in tx.run("running_hosts"))


def open_hosts_of_any_version(tx: Transaction) -> list[HostRow]:
    """The same with a schema of any version, of which it tells less."""
    return [HostRow(*row) for row in tx.run("open_hosts")]


def in_use(location: str, owners: Sequence[HostRow]) -> StoreInUse:
    """Why this process cannot be the host.

    Args:
        location: the database, as a person names it.
        owners: its hosts, the latest first; none when they are not known.
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


def owner(tx: Transaction) -> HostRow | None:
    """The host that runs the agents, the latest of several; None when there is none, as far as rows tell."""
    return next(iter(owners(tx)), None)


def why_ended(tx: Transaction, host: str) -> str:
    """Why a host does not own what it had: another one has ended its row."""
    name = next((row[3] for row in tx.run("hosts") if row[0] == host), None)
    if name is None:
        return "Another host has taken this database over, since the lease was not renewed in time."
    other = next((one for one in open_hosts(tx) if one.name == name and one.id != host), None)
    if other is not None:
        return f"Another host named {name} was started, and has taken the place of this one: {other}."
    return f"Host {name} gave no sign of life in time, so other hosts have taken its agents. Start it again."


def host_names(hosts: Sequence[HostRow]) -> Mapping[str, str]:
    """The names of hosts by id, where agents may live on one or another: empty for less than two hosts."""
    return {one.id: one.name or one.id[:6] for one in hosts} if len(hosts) > 1 else {}


def went_back(location: str, known: str) -> Fenced:
    """Why a host ends whose database does not know any more what the host has written.

    Args:
        location: the database, as a person names it.
        known: what the database still knows.
    """
    return Fenced(
        f"Database {location} has lost what this host has written: {known}. An older copy was put in its place, or a "
        "standby without the latest commits took over. Start again."
    )
