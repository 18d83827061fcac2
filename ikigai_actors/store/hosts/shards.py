"""Shards: which host runs which agents. A shard is a set of agents that live on one host together.

The owner of a shard changes in two ways only. The owner gives the shard away in a transaction of its journal, which
checks the owner's fence. Or the owner has ended, and another host claims the shard in a transaction that sees that end.
So all writes of an owner come before the change of the owner, and an agent never has two writers.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple

from ikigai_actors.errors import NoHost, StoreConflict
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.hosts.placement import Living, SharingHost, room
from ikigai_actors.store.unit import LockedRows, Unit


class Shares(NamedTuple):
    """The shards and their hosts, as seen by one host."""

    members: list[SharingHost]
    """The living hosts that share the agents."""
    own: dict[int, int]
    """The shards of the asking host, with the epoch of each: a number that grows whenever the shard changes its
    host.
    """
    vacant: int
    """The number of shards without a host."""
    shards: int
    """The number of all shards."""


def shares(tx: Transaction, host: str) -> Shares:
    """Return the distribution of shards over hosts, as seen by one host."""
    vacant, members, own = tx.ask("vacant_shards"), tx.ask("members"), tx.ask("shards_of", host=host)
    [(free, shards)] = vacant()
    sharing = [
        SharingHost(host, owned, agents, working, bool(drains)) for host, owned, agents, working, drains in members()
    ]
    return Shares(sharing, dict(own()), free, shards)


def claim(tx: Transaction, host: str, waited: float) -> None:
    """Let a host take as many shards without a host as `room` returns. The caller has locked the row of the tree."""
    shared = shares(tx, host)
    if most := min(shared.vacant, room(host, shared.members, shared.shards, waited)):
        tx.run("claim_some_shards", host=host, most=most)


def living_in(tx: Transaction, shards: Collection[int]) -> dict[int, Living]:
    """Return for each of these shards how many agents live in it, and how many of them are in a turn."""
    rows = tx.run("living_in", shards=[str(shard) for shard in shards])
    counted = {shard: Living(agents, working) for shard, agents, working in rows}
    return {shard: counted.get(shard, Living(0)) for shard in shards}


def agents_in(tx: Transaction, shards: Collection[int], agents: Collection[str]) -> list[str]:
    """Return the uuids of those of these agents that live in the given shards."""
    rows = tx.run("agents_in", shards=[str(shard) for shard in shards], uuids=list(agents))
    return [uuid for (uuid,) in rows]


@dataclass(frozen=True, slots=True)
class Drain(Unit):
    """Make a host give all its shards away, and get none from now on.

    Raises `NoHost` when no other host could take them, or this one does not live.
    """

    host: str

    alone = True
    concerns_hosts = True

    def write(self, tx: Transaction, locked: LockedRows) -> None:
        tx.run("tree_change")  # of two hosts that drain at once the second one sees the first
        others = [row for row in tx.run("members") if row[0] != self.host and not row[-1]]
        if not others:
            raise NoHost("No other host shares these agents, so none could take them. Start one, or just end this one.")
        if not tx.run("drain_host", host=self.host):
            raise NoHost("That host has ended. See the list of hosts.")


class GivenAgents(NamedTuple):
    """The agents of shards that were given to another host."""

    living: int
    """The number of living agents that were given."""
    agents: list[str]
    """The uuids of the given agents that had actors."""


@dataclass(frozen=True, slots=True)
class GiveShards(Unit):
    """Give shards of this host to another one; answered with `GivenAgents`.

    Raises `StoreConflict` when this host has lost one of the shards, or the other host does not live.
    """

    shards: tuple[int, ...]
    host: str
    to: str
    with_actors: Callable[[], Collection[str]] = tuple
    """The agents that have actors, by uuid."""

    alone = True
    concerns_hosts = True

    def write(self, tx: Transaction, locked: LockedRows) -> GivenAgents:
        moved = tx.run("give_shards", shards=[str(shard) for shard in self.shards], host=self.host, to=self.to)
        if len(moved) < len(self.shards):
            raise StoreConflict(f"Shards {', '.join(map(str, self.shards))} cannot be given to host {self.to}.")
        if resumed := [uuid for (uuid,) in tx.run("resumed_in", shards=[str(shard) for shard in self.shards])]:
            locked.lock(tx, resumed)
            tx.run("forget_resumes", uuids=resumed)
        living = sum(shard.agents for shard in living_in(tx, self.shards).values())
        return GivenAgents(living, agents_in(tx, self.shards, self.with_actors()))
