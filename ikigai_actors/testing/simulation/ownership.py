"""Checks, after every commit, which of several simulated hosts owns which agents.

The invariants:

    owner      a host that appends to the log of an agent has the agent's shard, and has not ended
    handed     a host that has given an agent away appends nothing to its log, and sends no request for it
    epoch      in one epoch of a shard, only one host writes
    believed   no host ends a host that was running during a whole lease, or that has renewed since the judgement
    noticed    other hosts take the agents of a host that is gone within two leases, if they run for as long
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ikigai_actors.store.base import Store, Transaction
from ikigai_actors.testing.simulation.changes import RanStatement, StoredChange, Written
from ikigai_actors.testing.simulation.clock import ManualClock

GIVE = frozenset({"give_shards", "move_agents"})
"""SQL statements by which a host gives agents away."""

LEASES = 2
"""The number of leases within which agents that nobody runs must be taken."""


class JudgedProcess(Protocol):
    """A process that commits, with the id of its host."""

    host_id: str


class OneHost(Protocol):
    """The properties of a host that the checks of ownership read."""

    @property
    def reaches(self) -> bool:
        """Return whether the host runs and reaches the database."""

    @property
    def host_id(self) -> str:
        """Return the id of the host's row; empty when the host has none."""

    @property
    def there_since(self) -> float:
        """Return the monotonic time, in seconds, since which the host has reached the database."""


class _Held(NamedTuple):
    """A shard, and the host that owns it."""

    shard: int
    epoch: int
    host: str | None
    ended: bool


class Ownership:
    """Checks after each commit of several hosts which host may write for which agent."""

    def __init__(self, hosts: Sequence[OneHost], clock: ManualClock, lease: float) -> None:
        """Make the check for a database that has no commits yet; ``lease`` is in seconds."""
        self._hosts, self._clock = hosts, clock
        self.lease = lease
        """The seconds for which a host counts as living after a renewal of its lease."""
        self.ended: frozenset[str] = frozenset()
        """The ids of the hosts that have ended."""
        self._writers: dict[tuple[int, int], str] = {}
        self._asked: set[tuple[str, str]] = set()  # host and agent: the host has asked a model for it
        self._given: set[tuple[str, str]] = set()  # those of them of which the host has given the agent away since
        self._served: dict[int, float] = {}  # when the owner of a shard was seen to reach the database

    def after(self, process: JudgedProcess, changes: Sequence[StoredChange], store: Store) -> list[str]:
        """Check the writes of a commit against the owners of shards; return the violations."""
        agents = sorted({change.row[0] for change in changes if isinstance(change, Written) and _is_log(change)})
        ended, draining, shards, owners = store.read(lambda tx: (*_hosts(tx), _shards(tx), _owners(tx, agents)))
        if _gives(changes):
            self._note_given(process.host_id, store)
        wrong = [self._written(process.host_id, agent, owners[agent]) for agent in agents]
        wrong += [self._judged(change, store) for change in changes if _is_sentence(change, ended - self.ended)]
        self.ended = ended
        return [fault for fault in (*wrong, self._unnoticed(shards, draining)) if fault]

    def asks(self, host: str, agent: str, store: Store) -> str:
        """Check a request of a host that reaches a model; return the violation, empty for none.

        An agent that was born while its shard was given away may send one request.
        """
        if (host, agent) in self._given and store.read(lambda tx: _owners(tx, [agent]))[agent].host != host:
            return f"handed: host {host} asks a model for agent {agent}, which it has given away"
        self._asked.add((host, agent))
        return ""

    def _judged(self, change: StoredChange, store: Store) -> str:
        """Check that one host ended another host rightly; return the violation, empty for none."""
        assert isinstance(change, RanStatement)
        host, now = change.parameters["host"], self._clock.monotonic()
        [(beat,)] = store.read(lambda tx: tx.schema.execute(f"SELECT beat FROM hosts WHERE id = {host!r}"))
        if beat != change.parameters["beat"]:
            return f"believed: host {host} was ended at beat {change.parameters['beat']}, and has renewed since: {beat}"
        there = [owner for owner in self._hosts if owner.host_id == host and owner.reaches]
        if there and now - there[0].there_since > self.lease:
            return f"believed: host {host} was ended, and was there for {now - there[0].there_since:g} s"
        return ""

    def _note_given(self, host: str, store: Store) -> None:
        """Record the agents that a host has given away, and the agents that the host has got back."""
        asked = [agent for by, agent in self._asked if by == host]
        owners = store.read(lambda tx: _owners(tx, asked))
        self._given -= {(held.host or "", agent) for agent, held in owners.items()}
        self._given |= {(host, agent) for agent, held in owners.items() if held.host != host}

    def _written(self, host: str, agent: str, held: _Held) -> str:
        if (host, agent) in self._given and host != held.host:
            return f"handed: host {host} has written in the log of agent {agent}, which it has given away"
        if host != held.host or host in self.ended:
            return f"owner: host {host} has written in the log of agent {agent}, which host {held.host} runs"
        if (writer := self._writers.setdefault((held.shard, held.epoch), host)) != host:
            return f"epoch: hosts {writer} and {host} have both written in epoch {held.epoch} of shard {held.shard}"
        return ""

    def _unnoticed(self, shards: Sequence[_Held], draining: frozenset[str]) -> str:
        now, most = self._clock.monotonic(), LEASES * self.lease
        there = {
            host.host_id: host.there_since for host in self._hosts if host.reaches and host.host_id not in self.ended
        }
        for held in shards:
            if held.host in there or held.shard not in self._served:
                self._served[held.shard] = now
        takers = [since for host, since in there.items() if host not in draining]
        if not takers or now - min(takers) <= most:
            return ""
        late = [held for held in shards if now - self._served[held.shard] > most]
        return f"noticed: nobody has run shard {late[0].shard} for more than {most:g} s" if late else ""


def _gives(changes: Sequence[StoredChange]) -> bool:
    """Return whether a host has given agents away by a commit."""
    return any(isinstance(change, RanStatement) and change.query in GIVE for change in changes)


def _is_sentence(change: StoredChange, ended: frozenset[str]) -> bool:
    """Return whether a change ends one of the hosts in ``ended`` on behalf of another host."""
    return isinstance(change, RanStatement) and change.query == "end_suspect" and change.parameters["host"] in ended


def _is_log(change: Written) -> bool:
    return change.table == "messages"


def _hosts(tx: Transaction) -> tuple[frozenset[str], frozenset[str]]:
    """Return the ids of the hosts that have ended, and the ids of the hosts that are being drained."""
    rows = tx.schema.execute("SELECT id, ended_at IS NOT NULL, draining FROM hosts")
    return frozenset(row[0] for row in rows if row[1]), frozenset(row[0] for row in rows if row[2])


def _shards(tx: Transaction) -> list[_Held]:
    rows = tx.schema.execute(
        "SELECT s.id, s.epoch, s.host, h.ended_at IS NOT NULL FROM shards s LEFT JOIN hosts h ON h.id = s.host"
    )
    return [_Held(*row) for row in rows]


def _owners(tx: Transaction, agents: Sequence[str]) -> dict[str, _Held]:
    """Return the shard of each of these agents, with its owner."""
    if not agents:
        return {}
    rows = tx.schema.execute(
        "SELECT a.uuid, s.id, s.epoch, s.host, h.ended_at IS NOT NULL FROM agents a JOIN shards s ON s.id = a.shard"
        f" LEFT JOIN hosts h ON h.id = s.host WHERE a.uuid IN ({', '.join(repr(agent) for agent in agents)})",
    )
    return {row[0]: _Held(*row[1:]) for row in rows}
