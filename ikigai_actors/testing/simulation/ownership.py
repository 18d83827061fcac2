"""Who owns what: the judge of several hosts in a simulation. It looks at the database after every commit.

owner      who appends to the log of an agent has the shard of the agent, and has not ended
epoch      of one epoch of a shard, one host alone writes
noticed    agents of a host that is gone are taken within two leases, if another host is there for as long
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ikigai_actors.store.base import Row, Store, Transaction
from ikigai_actors.store.migrations import SchemaTransaction
from ikigai_actors.testing.simulation.clock import ManualClock
from ikigai_actors.testing.simulation.store import StoredChange, Written

LEASES = 2
"""Within so many leases agents are taken that nobody runs."""


class JudgedProcess(Protocol):
    """A process that commits."""

    host_id: str


class OneHost(Protocol):
    """A host, as it is seen from outside."""

    @property
    def reaches(self) -> bool:
        """Whether it runs, and reaches the database."""

    @property
    def host_id(self) -> str:
        """The id of its row; empty when it has none."""

    @property
    def there_since(self) -> float:
        """Since when it does, by the clock that never leaps."""


class _Held(NamedTuple):
    """A shard, and who has it."""

    shard: int
    epoch: int
    host: str | None
    ended: bool


class Ownership:
    """What is known of who owns what."""

    def __init__(self, hosts: Sequence[OneHost], clock: ManualClock, lease: float) -> None:
        """Begin before the first commit.

        Args:
            hosts: all there are.
            clock: measures for how long agents have waited.
            lease: seconds.
        """
        self._hosts, self._clock = hosts, clock
        self.lease = lease
        """Seconds for which a host is believed."""
        self.ended: frozenset[str] = frozenset()
        """The ids of the hosts whose rows have ended."""
        self._writers: dict[tuple[int, int], str] = {}
        self._served: dict[int, float] = {}  # when the owner of a shard was seen to reach the database

    def after(self, process: JudgedProcess, changes: Sequence[StoredChange], store: Store) -> list[str]:
        """Judge a commit; returns what is wrong."""
        agents = sorted({change.row[0] for change in changes if isinstance(change, Written) and _is_log(change)})
        ended, draining, shards, owners = store.read(lambda tx: (*_hosts(tx), _shards(tx), _owners(tx, agents)))
        wrong = [self._written(process.host_id, agent, owners[agent]) for agent in agents]
        self.ended = ended
        return [one for one in (*wrong, self._unnoticed(shards, draining)) if one]

    def _written(self, host: str, agent: str, held: _Held) -> str:
        if host != held.host or host in self.ended:
            return f"owner: host {host} has written in the log of agent {agent}, which host {held.host} runs"
        if (writer := self._writers.setdefault((held.shard, held.epoch), host)) != host:
            return f"epoch: hosts {writer} and {host} have both written in epoch {held.epoch} of shard {held.shard}"
        return ""

    def _unnoticed(self, shards: Sequence[_Held], draining: frozenset[str]) -> str:
        now, most = self._clock.monotonic(), LEASES * self.lease
        there = {one.host_id: one.there_since for one in self._hosts if one.reaches and one.host_id not in self.ended}
        for held in shards:
            if held.host in there or held.shard not in self._served:
                self._served[held.shard] = now
        takers = [since for host, since in there.items() if host not in draining]
        if not takers or now - min(takers) <= most:
            return ""
        late = [held for held in shards if now - self._served[held.shard] > most]
        return f"noticed: nobody has run shard {late[0].shard} for more than {most:g} s" if late else ""


def _is_log(change: Written) -> bool:
    return change.table == "messages"


def _hosts(tx: Transaction) -> tuple[frozenset[str], frozenset[str]]:
    """The hosts that have ended, and those that drain."""
    rows = _rows(tx, "SELECT id, ended_at IS NOT NULL, draining FROM hosts")
    return frozenset(row[0] for row in rows if row[1]), frozenset(row[0] for row in rows if row[2])


def _shards(tx: Transaction) -> list[_Held]:
    rows = _rows(
        tx, "SELECT s.id, s.epoch, s.host, h.ended_at IS NOT NULL FROM shards s LEFT JOIN hosts h ON h.id = s.host"
    )
    return [_Held(*row) for row in rows]


def _owners(tx: Transaction, agents: Sequence[str]) -> dict[str, _Held]:
    """The shards of these agents."""
    if not agents:
        return {}
    rows = _rows(
        tx,
        "SELECT a.uuid, s.id, s.epoch, s.host, h.ended_at IS NOT NULL FROM agents a JOIN shards s ON s.id = a.shard"
        f" LEFT JOIN hosts h ON h.id = s.host WHERE a.uuid IN ({', '.join(repr(agent) for agent in agents)})",
    )
    return {row[0]: _Held(*row[1:]) for row in rows}


def _rows(tx: Transaction, sql: str) -> list[Row]:
    assert isinstance(tx, SchemaTransaction)  # a database in memory
    return tx.execute(sql)
