"""The hosts of a database: the processes that run its agents."""

from dataclasses import dataclass
from typing import NamedTuple

from ikigai_actors.errors import NoHost
from ikigai_actors.store.base import Transaction

RECENT = 3_600_000
"""Milliseconds for which a host that has ended is still told of."""


@dataclass(frozen=True, slots=True)
class HostRecord:
    """A host, as its row tells. Times are milliseconds since 1970 (UTC)."""

    id: str
    name: str | None
    """By which it is known to those with which it shares the agents; None for one that shares them with nobody."""
    hostname: str
    pid: int
    started_at: int
    ended_at: int | None
    """When it gave the database up, or was ended by another host; None while it lives."""
    shards: int
    """Sets of agents that it has, or had at its end and nobody has taken since."""
    agents: int
    """Living agents in these."""
    working: int
    """Those of them that are in a turn."""
    age: int | None
    """Milliseconds since it has renewed its lease, by the clock of the database; None where hosts have no leases."""
    draining: bool
    """Whether it gives its agents away, and gets no others."""
    silent: bool
    """Whether it gives no sign of life: its process has ended, or its lease has run out."""

    @property
    def state(self) -> str:
        """In a word: ``runs``, ``drains``, ``silent`` or ``ended``."""
        if self.ended_at is not None:
            return "ended"
        if self.silent:
            return "silent"
        return "drains" if self.draining else "runs"


class Vacant(NamedTuple):
    """What no host runs."""

    shards: int
    agents: int


def vacant(tx: Transaction) -> Vacant:
    """The shards that nobody has, and the living agents in them."""
    [row] = tx.run("without_host")
    return Vacant(*row)


def find_host(tx: Transaction, text: str) -> HostRecord:
    """The living host with this name, or this id. Raises `NoHost`."""
    living = [one for one in recent_hosts(tx) if one.ended_at is None]
    for one in living:
        if text in (one.name, one.id):
            return one
    names = ", ".join(one.name or one.id for one in living) or "there are none"
    raise NoHost(f"No living host is called {text[:80]!r}; those that live: {names}.")


def find_taker(tx: Transaction, text: str) -> HostRecord:
    """The living host with this name, or this id, that takes agents. Raises `NoHost`."""
    found = find_host(tx, text)
    if found.draining:
        raise NoHost(f"Host {text} gives its agents away, and takes none. Name another.")
    if not found.shards:
        raise NoHost(f"Host {text} has just started, and takes no agents yet. Try again in some seconds.")
    return found


def recent_hosts(tx: Transaction) -> list[HostRecord]:
    """The hosts that live, and those that have ended within the last hour; in the order of their start."""
    rows = tx.run("recent_hosts", within=RECENT)
    held = tx.held([row[0] for row in rows]) if tx.is_hosted() else set[str]()
    return [
        HostRecord(
            id=uuid,
            name=name,
            hostname=hostname,
            pid=pid,
            started_at=started,
            ended_at=ended,
            shards=shards,
            agents=agents,
            working=working,
            age=max(0, now - until + lease) if until else None,
            draining=bool(draining),
            silent=uuid not in held or (bool(lease) and until <= now),
        )
        for uuid, name, hostname, pid, started, ended, lease, until, draining, shards, agents, working, now in rows
    ]
