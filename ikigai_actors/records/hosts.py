"""The hosts of a database: the processes that run its agents, and those that wait for their turn."""

from dataclasses import dataclass

from ikigai_actors.store.base import Transaction

RECENT = 3_600_000
"""Milliseconds for which a host that has ended is still told of."""


@dataclass(frozen=True, slots=True)
class HostRecord:
    """A host, as its row tells. Times are milliseconds since 1970 (UTC)."""

    id: str
    name: str | None
    """By which it takes turns with others; None for one that does not."""
    hostname: str
    pid: int
    started_at: int
    ended_at: int | None
    """When it gave the database up, or was ended by another host; None while it lives."""
    agents: int
    """Living agents that it runs, or ran at its end and nobody has run since."""
    silent: bool
    """Whether it gives no sign of life: its process has ended, or its lease has run out."""

    @property
    def state(self) -> str:
        """In a word: ``runs``, ``waits``, ``silent`` or ``ended``."""
        if self.ended_at is not None:
            return "ended"
        if self.silent:
            return "silent"
        return "runs" if self.agents else "waits"


def hosts_of_late(tx: Transaction) -> list[HostRecord]:
    """The hosts that live, and those that have ended within the last hour; in the order of their start."""
    rows = tx.run("hosts_of_late", within=RECENT)
    held = tx.held([row[0] for row in rows]) if tx.is_hosted() else set[str]()
    return [
        HostRecord(
            uuid, name, hostname, pid, started, ended, agents, uuid not in held or (bool(lease) and until <= now)
        )
        for uuid, name, hostname, pid, started, ended, lease, until, agents, now in rows
    ]
