"""How many shards a host takes, and which ones it gives to whom."""

from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ikigai_actors.store.hosts.placement import (
    FEW_TURNS,
    MOVED_AT_ONCE,
    UNCLAIMED,
    Gift,
    Living,
    SharingHost,
    gifts,
    is_stuck,
    may_give,
    room,
)

SHARDS = 64


def idle(agents: dict[int, int]) -> dict[int, Living]:
    """Shards with so many agents, none of which works."""
    return {shard: Living(count) for shard, count in agents.items()}


def test_who_is_alone_takes_all() -> None:
    assert room("a", [SharingHost("a", 0)], SHARDS) == SHARDS


def test_of_three_each_takes_a_third_rounded_up() -> None:
    assert room("b", [SharingHost("a", 22), SharingHost("b", 2), SharingHost("c", 0)], SHARDS) == 20


def test_what_nobody_has_taken_for_some_looks_is_taken_whoever_should() -> None:
    members = [SharingHost("a", 32), SharingHost("b", 31), SharingHost("c", 0, draining=True)]
    assert [room(name, members, SHARDS, UNCLAIMED) for name in "abc"] == [SHARDS, SHARDS, 0]
    assert room("a", members, SHARDS, UNCLAIMED / 2) == 0


def test_who_drains_is_not_counted_and_takes_none() -> None:
    members = [SharingHost("a", 10, draining=True), SharingHost("b", 0)]
    assert (room("a", members, SHARDS), room("b", members, SHARDS)) == (0, SHARDS)


def test_shards_without_agents_go_at_once_to_a_host_that_has_none() -> None:
    members = [SharingHost("a", 4, 2), SharingHost("b", 0)]
    assert gifts("a", members, idle({0: 1, 1: 0, 2: 0, 3: 1}), move=False) == [Gift(1, "b"), Gift(2, "b")]


def test_agents_move_a_part_of_the_difference_at_a_time() -> None:
    members = [SharingHost("a", 3, 24), SharingHost("b", 3, 0)]
    assert gifts("a", members, idle({0: 12, 1: 6, 2: 6}), move=True) == [Gift(1, "b")]
    assert gifts("a", members, idle({0: 12, 1: 6, 2: 6}), move=False) == []


def test_who_drains_is_stuck_when_nobody_is_left_who_takes_what_it_has() -> None:
    drains, other = SharingHost("a", 3, draining=True), SharingHost("b", 3)
    assert is_stuck("a", [drains])
    assert is_stuck("a", [drains, other._replace(draining=True)])
    assert not is_stuck("a", [drains, other])
    assert not is_stuck("a", [drains._replace(shards=0)])
    assert not is_stuck("a", [drains._replace(draining=False)])


def test_the_last_two_agents_of_a_difference_stay() -> None:
    assert gifts("a", [SharingHost("a", 1, 1), SharingHost("b", 1, 0)], idle({0: 1}), move=True) == []


def test_a_shard_that_is_too_large_to_help_stays() -> None:
    assert gifts("a", [SharingHost("a", 2, 100), SharingHost("b", 2, 60)], idle({0: 100, 1: 0}), move=True) == []


def test_who_drains_gives_everything_to_those_who_do_not() -> None:
    members = [
        SharingHost("a", 3, 9, draining=True),
        SharingHost("b", 1, 0),
        SharingHost("c", 1, 5),
        SharingHost("d", 0, 0, draining=True),
    ]
    assert gifts("a", members, idle({0: 2, 1: 7, 2: 0}), move=False) == [Gift(1, "b"), Gift(0, "c"), Gift(2, "b")]


def test_who_is_alone_gives_nothing() -> None:
    assert gifts("a", [SharingHost("a", 2, 9, draining=True)], idle({0: 9, 1: 0}), move=True) == []
    assert not may_give("a", [SharingHost("a", 2, 9, draining=True)])


HOSTS = st.lists(
    st.tuples(st.dictionaries(st.integers(0, 30), st.integers(0, 20), max_size=8), st.booleans()),
    min_size=1,
    max_size=4,
)


@given(HOSTS, st.booleans())
def test_what_is_given_is_ones_own_goes_to_others_and_is_not_more_than_they_lack(
    drawn: list[tuple[dict[int, int], bool]], move: bool
) -> None:
    members = [
        SharingHost(str(n), len(own), sum(own.values()), draining=draining) for n, (own, draining) in enumerate(drawn)
    ]
    own, draining = drawn[0]
    gifts_made = gifts("0", members, idle(own), move)
    takers = {member.host for member in members[1:] if not member.draining}
    assert len({gift.shard for gift in gifts_made}) == len(gifts_made)
    assert {gift.shard for gift in gifts_made} <= own.keys()
    assert {gift.to for gift in gifts_made} <= takers
    assert not gifts_made or may_give("0", members)
    if draining:
        assert len(gifts_made) == (len(own) if takers else 0)
    elif takers:
        busy = [own[gift.shard] for gift in gifts_made if own[gift.shard]]
        difference = sum(own.values()) - min(member.agents for member in members if member.host in takers)
        assert sum(busy) <= max(0, difference // MOVED_AT_ONCE) or (len(busy) == 1 and busy[0] < difference)


def members_of(has: dict[str, dict[int, Living]]) -> list[SharingHost]:
    """The hosts, which have these shards."""
    return [
        SharingHost(
            host, len(own), sum(shard.agents for shard in own.values()), sum(shard.working for shard in own.values())
        )
        for host, own in has.items()
    ]


def settle(has: dict[str, dict[int, Living]], at_once: bool = False) -> list[SharingHost]:
    """Let hosts give until nobody gives any more: in turn, or all at the same moment, when none sees what others give.

    Args:
        has: the shards of each host.
        at_once: whether they give at the same moment.
    """
    for _ in range(50):
        view, moved = members_of(has), False
        chosen = {host: gifts(host, view, has[host], move=True) for host in has} if at_once else {}
        for host in has:
            for gift in chosen[host] if at_once else gifts(host, members_of(has), dict(has[host]), move=True):
                has[gift.to][gift.shard] = has[host].pop(gift.shard)
                moved = True
        if not moved:
            return members_of(has)
    raise AssertionError(f"it never ends: {has}")


def begun(shards: list[Living], count: int) -> dict[str, dict[int, Living]]:
    """Hosts of which the first one has all shards."""
    return {"0": dict(enumerate(shards)), **{str(number): {} for number in range(1, count)}}


@pytest.mark.parametrize(
    ("branches", "count", "numbers"),
    [
        ([10, 10], 2, [10, 11]),
        ([2] * 3, 2, [3, 4]),
        ([2] * 12, 2, [12, 13]),
        ([11_111] * 9, 4, [22_222, 22_222, 22_223, 33_333]),
        ([10_000] * 10, 4, [20_000, 20_001, 30_000, 30_000]),
        ([100_000], 2, [1, 100_000]),
        ([90_000, 1_000, 1_000], 3, [1_000, 1_001, 90_000]),
    ],
)
def test_teams_are_shared_as_evenly_as_whole_branches_allow(
    branches: list[int], count: int, numbers: list[int]
) -> None:
    """Agent 0 and some branches below it, all on one host, when others join."""
    members = settle(begun(list(map(Living, [1, *branches])), count))
    assert sorted(member.agents for member in members) == numbers


LOADS = st.lists(st.lists(st.integers(0, 40), max_size=8), min_size=2, max_size=5)


@settings(max_examples=40)
@given(LOADS, st.booleans())
def test_hosts_that_give_again_and_again_end_within_the_largest_branch_of_each_other(
    drawn: list[list[int]], at_once: bool
) -> None:
    numbers = count()
    members = settle(
        {str(host): {next(numbers): Living(work) for work in own} for host, own in enumerate(drawn)}, at_once
    )
    loads = [member.agents for member in members]
    assert max(loads) - min(loads) <= max([1, *(work for own in drawn for work in own)])


LIVING = st.integers(0, 40).flatmap(lambda agents: st.builds(Living, st.just(agents), st.integers(0, agents)))


@settings(max_examples=40)
@given(st.lists(LIVING, min_size=16, max_size=16), st.integers(2, 4), st.booleans())
def test_no_host_keeps_much_more_to_do_than_another_one_whose_share_it_could_be(
    shards: list[Living], count: int, at_once: bool
) -> None:
    members = settle(begun(shards, count), at_once)
    most, least = max(member.working for member in members), min(member.working for member in members)
    assert most < 2 * least + FEW_TURNS + 2 * max(shard.working for shard in shards)


def test_a_host_whose_agents_have_much_to_do_gives_some_and_gets_idle_ones_for_them() -> None:
    busy = SharingHost("a", 2, 10, working=10)
    idles = SharingHost("b", 2, 10)
    assert gifts("a", [busy, idles], {0: Living(5, 5), 1: Living(5, 5)}, move=True) == [Gift(1, "b")]
    after = [SharingHost("a", 1, 5, 5), SharingHost("b", 3, 15, 5)]
    assert gifts("b", after, {1: Living(5, 5), 2: Living(2), 3: Living(8)}, move=True) == [Gift(2, "a")]


def test_a_few_turns_move_nobody() -> None:
    members = [SharingHost("a", 1, FEW_TURNS - 1, FEW_TURNS - 1), SharingHost("b", 1, FEW_TURNS - 1)]
    assert not may_give("a", members)
    assert gifts("a", members, {0: Living(FEW_TURNS - 1, FEW_TURNS - 1)}, move=True) == []
