"""Placement: how many shards a host takes, and which ones it gives to which host. Pure.

No host decides for the others. A host takes shards without a host until it has its share of all shards, by number.
After some seconds it takes the remaining ones, too: the host to which they belong may be dead, and not judged yet. A
host that has more than another one gives shards away:

    shards without agents     given at once, until the two hosts' numbers of shards differ by at most one
    shards with turns         one at a time, while the giver has `FEW_TURNS` turns more than twice the taker's
    shards with agents        a part of the difference at a time, or the smallest shard that makes the difference
                              smaller; shards with turns only if the turns stay about as equal as they are

So a host that joins gets its share soon, and not all agents have to move at the same moment. At the end the hosts
differ by no more than the largest shard, which is a whole branch. A host whose agents are busy keeps some of them, and
gets idle agents in exchange for others. A draining host takes no shards, gets none, and gives all its shards away.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

MOVED_AT_ONCE = 4
"""The divisor of the difference in agents between two hosts: 4 means that a quarter of it moves at once."""


FEW_TURNS = 8
"""Below this number of turns a host counts as idle for placement: moving an agent in a turn repeats its request to the
model.
"""


UNCLAIMED = 3.0
"""Seconds that shards without a host wait for the hosts whose share they are."""


class Living(NamedTuple):
    """The living agents of a shard."""

    agents: int
    """The number of living agents."""
    working: int = 0
    """The number of these agents that are in a turn."""


class SharingHost(NamedTuple):
    """A living host that shares agents with others."""

    host: str
    shards: int
    """The number of shards of this host."""
    agents: int = 0
    """The number of living agents of this host, as last reported by it."""
    working: int = 0
    """The number of these agents that are in a turn."""
    draining: bool = False


class Gift(NamedTuple):
    """A shard to be given to another host."""

    shard: int
    to: str


def room(me: str, members: Sequence[SharingHost], shards: int, waited: float = 0.0) -> int:
    """Return how many more shards without a host this host should take.

    Args:
        members: all living hosts, itself among them.
        shards: how many shards there are.
        waited: seconds for which this host has seen shards without a host.
    """
    takers = [member for member in members if not member.draining]
    own = next((taker for taker in takers if taker.host == me), None)
    if own is None:
        return 0
    return shards if waited >= UNCLAIMED else max(0, -(-shards // len(takers)) - own.shards)


def may_give(me: str, members: Sequence[SharingHost]) -> bool:
    """Return whether a host may have shards to give away; only then the agents of its shards must be counted."""
    own, others = _divide(me, members)
    if own is None or not others:
        return False
    least = min(others, key=lambda other: other.agents)
    fewer = own.shards - min(other.shards for other in others) >= 2
    return own.draining or fewer or own.agents - least.agents >= 2 or _is_heavy(own, _idlest(others))


def is_stuck(me: str, members: Sequence[SharingHost]) -> bool:
    """Return whether a host drains while no other host is left to take its shards."""
    own, others = _divide(me, members)
    return own is not None and own.draining and own.shards > 0 and not others


def gifts(me: str, members: Sequence[SharingHost], agents: Mapping[int, Living], move: bool) -> list[Gift]:
    """Return the shards that a host should give away now.

    Args:
        members: all living hosts, itself among them.
        agents: the shards of the host, with the living agents of each.
        move: whether shards with agents may be given now.
    """
    own, others = _divide(me, members)
    if own is None or not others:
        return []
    if own.draining:
        return list(_all(others, agents))
    empty = list(_empty(others, agents))
    if not move:
        return empty
    return [*empty, *(_turns(own, others, agents) or _agents(own, others, agents))]


def _divide(me: str, members: Sequence[SharingHost]) -> tuple[SharingHost | None, list[SharingHost]]:
    own = next((member for member in members if member.host == me), None)
    return own, [member for member in members if not member.draining and member.host != me]


def _idlest(others: Sequence[SharingHost]) -> SharingHost:
    return min(others, key=lambda other: (other.working, other.agents, other.host))


def _is_heavy(own: SharingHost, other: SharingHost) -> bool:
    """Return whether a host has so much more work than another one that a cut-off request is worth the move."""
    return own.working >= 2 * other.working + FEW_TURNS


def _all(others: Sequence[SharingHost], agents: Mapping[int, Living]) -> Iterator[Gift]:
    load = {other.host: (other.agents, other.shards) for other in others}
    for shard in sorted(agents, key=lambda shard: (-agents[shard].agents, shard)):
        to = min(load, key=lambda host: (*load[host], host))
        load[to] = load[to][0] + agents[shard].agents, load[to][1] + 1
        yield Gift(shard, to)


def _empty(others: Sequence[SharingHost], agents: Mapping[int, Living]) -> Iterator[Gift]:
    """Yield shards without agents, as long as another host has at least two shards fewer."""
    counts = {other.host: other.shards for other in others}
    left = len(agents)
    for shard in sorted(shard for shard, living in agents.items() if not living.agents):
        to = min(counts, key=lambda host: (counts[host], host))
        if left - counts[to] < 2:
            return
        counts[to] += 1
        left -= 1
        yield Gift(shard, to)


def _turns(own: SharingHost, others: Sequence[SharingHost], agents: Mapping[int, Living]) -> list[Gift]:
    """Return the shard with the most turns that leaves the other host less busy; none unless this host is heavy."""
    least = _idlest(others)
    fit = [shard for shard, living in agents.items() if 0 < 2 * living.working <= own.working - least.working]
    if not fit or not _is_heavy(own, least):
        return []
    return [Gift(max(fit, key=lambda shard: (agents[shard].working, -agents[shard].agents, shard)), least.host)]


def _agents(own: SharingHost, others: Sequence[SharingHost], agents: Mapping[int, Living]) -> list[Gift]:
    """Return shards with agents for the host with the fewest agents: some that fit, or else the smallest that helps.

    The giving host keeps more agents than the other one had, even if several hosts give to it at once. So every gift
    raises the lowest number of agents of any host, and gifts come to an end.
    """
    least = min(others, key=lambda count: (count.agents, count.host))
    difference = sum(living.agents for living in agents.values()) - least.agents
    spare = own.working - least.working + FEW_TURNS // 2
    movable = {
        shard: count
        for shard, count in agents.items()
        if count.agents and (not count.working or 2 * count.working <= spare)
    }
    return [Gift(shard, least.host) for shard in _fitting(movable, difference, spare) or _smallest(movable, difference)]


def _fitting(agents: Mapping[int, Living], difference: int, spare: int) -> list[int]:
    """Return shards with at most the part of the difference that moves at once, idle and large ones first.

    Args:
        agents: the shards that may move.
        difference: in agents.
        spare: no more than half as many turns move.
    """
    left, turns, chosen = difference // MOVED_AT_ONCE, 0, list[int]()
    for shard in sorted(agents, key=lambda shard: (agents[shard].working, -agents[shard].agents, shard)):
        living, working = agents[shard]
        if living <= left and (not working or 2 * (turns + working) <= spare):
            left -= living
            turns += working
            chosen.append(shard)
    return chosen


def _smallest(agents: Mapping[int, Living], difference: int) -> list[int]:
    """Return the smallest shard that reduces a difference in agents, an idle one first; empty if none does."""
    small = [shard for shard, living in agents.items() if living.agents < difference]
    return sorted(small, key=lambda shard: (agents[shard].working, agents[shard].agents, shard))[:1]
