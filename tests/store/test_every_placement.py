"""Every share of a few shards among three hosts: gifts come to an end, and then nobody has much more than another.

The hosts look in turn, and give what the decision says. No share comes twice, so gifts run in no circle.
"""

from collections.abc import Iterator, Sequence
from itertools import product

import pytest

from ikigai_actors.store.hosts.placement import Living, SharingHost, gifts

HOSTS = ("a", "b", "c")

LOADS = (Living(0, 0), Living(1, 0), Living(1, 1), Living(3, 0), Living(9, 9), Living(40, 0))
"""The agents of a shard, and how many of them are in a turn."""

Share = tuple[str, ...]
"""The host of each shard."""


def members(share: Share, loads: Sequence[Living]) -> list[SharingHost]:
    """The hosts as all of them see one another."""
    hosts: list[SharingHost] = []
    for host in HOSTS:
        own = [loads[shard] for shard, of in enumerate(share) if of == host]
        agents, working = sum(shard.agents for shard in own), sum(shard.working for shard in own)
        hosts.append(SharingHost(host, agents=agents, working=working, shards=len(own), draining=False))
    return hosts


def shares(share: Share, loads: Sequence[Living]) -> Iterator[Share]:
    """What becomes of a share, gift by gift, until nobody gives any more."""
    quiet = 0
    while quiet < len(HOSTS):
        for host in HOSTS:
            own = {shard: loads[shard] for shard, of in enumerate(share) if of == host}
            given_away = dict(gifts(host, members(share, loads), own, move=True))
            quiet = 0 if given_away else quiet + 1
            share = tuple(given_away.get(shard, of) for shard, of in enumerate(share))
            if given_away:
                yield share


def check(count: int) -> int:
    """Look at every share of this many shards; return how many there were."""
    cases = 0
    for loads in product(LOADS, repeat=count):
        for first in product(HOSTS, repeat=count):
            cases += 1
            seen = [first]
            for share in shares(first, loads):
                assert share not in seen, (loads, seen, share)
                seen.append(share)
            agents = [member.agents for member in members(seen[-1], loads)]
            assert max(agents) - min(agents) <= max(work.agents for work in loads), (loads, first, seen)
    return cases


def test_gifts_of_two_shards_come_to_an_even_end() -> None:
    assert check(2) == 324


@pytest.mark.thorough("all placements; the properties of test_placement in each run")
def test_gifts_of_three_shards_come_to_an_even_end() -> None:
    assert check(3) == 5_832
