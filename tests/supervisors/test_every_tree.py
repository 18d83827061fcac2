"""Every small tree, with all statuses and policies, and every set of agents that dies: the rule is written anew here.

Agent 0 is one of the three or four.
"""

from collections.abc import Iterator
from itertools import combinations, product

import pytest

from supervisors.orphans import Adopt, Kill, OrphanDecision, OrphanPolicy, Pause, decide
from supervisors.signals import Status
from tests.supervisors.test_orphans import Member, Tree

STATUSES = (Status.RUNNING, Status.STOPPED, Status.DEAD)


def trees(size: int) -> Iterator[Tree]:
    """Every tree below agent 0 of this many agents: each is supervised by one that is older."""
    for supervisors in product(*(range(number) for number in range(1, size))):
        for statuses in product(STATUSES, repeat=size - 1):
            for policies in product(OrphanPolicy, repeat=size - 1):
                rows = zip(range(1, size), supervisors, statuses, policies, strict=True)
                yield {"0": Member(None, Status.RUNNING, OrphanPolicy.REPARENT)} | {
                    str(number): Member(str(above), status, policy) for number, above, status, policy in rows
                }


def deaths(tree: Tree) -> Iterator[set[str]]:
    """Every set of living agents that can die."""
    living = [agent for agent, member in tree.items() if member.status is not Status.DEAD and agent != "0"]
    return (set(some) for size in range(1, len(living) + 1) for some in combinations(living, size))


def expected(tree: Tree, dying: set[str]) -> set[OrphanDecision]:
    """What follows: who dies with them, who is adopted by whom, who pauses."""

    def falls(agent: str) -> bool:
        """Whether an agent that a cascade reaches, through whoever is between: a dying one above has the policy."""
        above = tree[agent].supervisor
        return above is not None and ((above in dying and tree[above].policy is OrphanPolicy.CASCADE) or falls(above))

    gone = dying | {agent for agent, member in tree.items() if member.status is Status.DEAD}
    killed = {agent for agent in tree if agent not in gone and falls(agent)}
    decisions: set[OrphanDecision] = {Kill(agent) for agent in killed}
    for agent, member in tree.items():
        above = member.supervisor
        if agent in gone | killed or above not in dying or above is None:
            continue
        policy, heir = tree[above].policy, tree[above].supervisor
        while heir is not None and heir in gone | killed:
            heir = tree[heir].supervisor
        if policy is not OrphanPolicy.CONTINUE:
            decisions.add(Adopt(agent, str(heir)))
        if policy is OrphanPolicy.STOP and member.status is Status.RUNNING:
            decisions.add(Pause(agent))
    return decisions


def check(size: int) -> int:
    """Compare each case; return how many there were."""
    cases = 0
    for tree in trees(size):
        for dying in deaths(tree):
            cases += 1
            done = decide(tree, dying)
            assert len(done) == len(set(done))
            assert set(done) == expected(tree, dying), (tree, dying)
            kills = [decision.agent for decision in done if isinstance(decision, Kill)]
            for place, agent in enumerate(kills):
                assert tree[agent].supervisor not in kills[:place], (tree, dying)
    return cases


def test_in_every_tree_of_three_each_set_of_deaths_has_the_consequences_of_the_policies() -> None:
    assert check(3) == 512


@pytest.mark.slow("tens of thousands of cases")
def test_in_every_tree_of_four_each_set_of_deaths_has_the_consequences_of_the_policies() -> None:
    assert check(4) == 37_632
