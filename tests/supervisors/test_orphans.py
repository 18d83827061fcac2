"""What becomes of the agents below those that die."""

from dataclasses import dataclass
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisors.orphans import Adopt, Kill, OrphanPolicy, Pause, decide, survivors_above, ways
from supervisors.signals import Status

POLICIES = st.sampled_from(OrphanPolicy)
LIVING = st.sampled_from([Status.RUNNING, Status.RUNNING, Status.STOPPED, Status.TERMINATING])


class Member(NamedTuple):
    supervisor: str | None
    status: Status
    policy: OrphanPolicy


Tree = dict[str, Member]


def tree(*rows: str, **statuses: Status) -> Tree:
    """A tree below "root": each row is ``agent supervisor policy``."""
    members = {"root": Member(None, Status.RUNNING, OrphanPolicy.REPARENT)}
    for row in rows:
        agent, supervisor, policy = row.split()
        members[agent] = Member(supervisor, statuses.get(agent, Status.RUNNING), OrphanPolicy(policy))
    return members


def settle(members: Tree, dying: set[str]) -> Tree:
    """The tree after these deaths and what was decided about them."""
    after = {a: m._replace(status=Status.DEAD) if a in dying else m for a, m in members.items()}
    for decision in decide(members, dying):
        member = after[decision.agent]
        assert member.status is not Status.DEAD, f"{decision} is about a dead agent"
        match decision:
            case Kill(agent):
                after[agent] = member._replace(status=Status.DEAD)
            case Adopt(agent, by):
                assert after[by].status is not Status.DEAD, f"{decision} by a dead agent"
                after[agent] = member._replace(supervisor=by)
            case Pause(agent):
                after[agent] = member._replace(status=Status.STOPPED)
    return after


def above(agent: str, members: Tree) -> list[str]:
    """Its supervisor, that one's supervisor, and so on."""
    chain: list[str] = []
    supervisor = members[agent].supervisor
    while supervisor is not None:
        assert supervisor not in chain, "a circle"
        chain.append(supervisor)
        supervisor = members[supervisor].supervisor
    return chain


@dataclass(frozen=True)
class History:
    """A tree as it grew, and the deaths in it, one set after another."""

    members: Tree
    deaths: list[set[str]]


@st.composite
def histories(draw: st.DrawFn) -> History:
    members = tree()
    for number in range(draw(st.integers(0, 25))):
        supervisor = draw(st.sampled_from(list(members)))
        members[f"a{number}"] = Member(supervisor, draw(LIVING), draw(POLICIES))
    members = {agent: members[agent] for agent in draw(st.permutations(list(members)))}  # adopted by a younger one
    agents = st.sampled_from([*members]).filter(lambda agent: agent != "root")
    deaths = draw(st.lists(st.sets(agents, max_size=5), max_size=4)) if len(members) > 1 else []
    return History(members, deaths)


def test_reparent_gives_the_children_to_the_nearest_living_ancestor() -> None:
    members = tree("a root stop", "b a reparent", "c b stop", "d c reparent", "c2 b cascade")
    assert decide(members, {"b"}) == [Adopt("c", "a"), Adopt("c2", "a")]


def test_the_nearest_living_ancestor_is_found_through_the_dead() -> None:
    rows = ("a root reparent", "b a continue", "c b continue", "d c reparent", "e d reparent")
    members = tree(*rows, b=Status.DEAD, c=Status.DEAD)
    assert decide(members, {"d"}) == [Adopt("e", "a")]
    assert decide(members, {"d", "a"}) == [Adopt("e", "root")]


def test_cascade_kills_all_descendants_leaves_first_whatever_their_own_policies() -> None:
    members = tree("a root cascade", "b a continue", "c b stop", "d c reparent", "b2 a reparent", "e root continue")
    assert decide(members, {"a"}) == [Kill("b2"), Kill("d"), Kill("c"), Kill("b")]


def test_cascade_reaches_the_orphans_below_the_dead() -> None:
    members = tree("a root cascade", "b a continue", "c b reparent", b=Status.DEAD)
    assert decide(members, {"a"}) == [Kill("c")]


def test_stop_reparents_and_pauses_those_that_can_be_paused() -> None:
    statuses = {"c": Status.STOPPED, "d": Status.TERMINATING}
    members = tree("a root stop", "b a stop", "c a stop", "d a stop", **statuses)
    assert decide(members, {"a"}) == [Adopt("b", "root"), Pause("b"), Adopt("c", "root"), Adopt("d", "root")]


def test_the_ways_to_the_living_lead_through_the_dead_above_them_up_to_one_that_lives() -> None:
    above = {"root": None, "a": "root", "b": "a", "c": "b", "d": "c", "e": "b", "f": "a", "g": "f"}
    assert ways("d", above, {"a", "b", "c"}) == {"a", "b", "c"}
    assert ways("de", above, {"b", "c"}) == {"b", "c"}
    assert ways("eg", above, {"c", "f"}) == {"f"}
    assert ways("d", above | {"a": "c"}, {"a", "b", "c"}) == {"a", "b", "c"}  # damaged rows run in a circle
    assert ways("", above, {"a"}) == set()


def test_continue_leaves_the_children_with_the_dead() -> None:
    members = tree("a root continue", "b a reparent", "c b reparent")
    assert decide(members, {"a"}) == []


def test_the_policy_of_each_of_the_dying_counts_for_its_own_children() -> None:
    rows = ("a root reparent", "b a continue", "c b stop", "a1 a reparent", "b1 b reparent", "c1 c reparent")
    assert decide(tree(*rows), {"a", "b", "c"}) == [Adopt("c1", "root"), Pause("c1"), Adopt("a1", "root")]


def test_whoever_dies_below_a_cascade_saves_nobody() -> None:
    members = tree("a root cascade", "b a reparent", "c b reparent", "d c continue")
    assert decide(members, {"a", "c"}) == [Kill("d"), Kill("b")]


def test_agent_0_is_not_among_the_dying() -> None:
    with pytest.raises(ValueError, match="got: root, which is agent 0"):
        decide(tree("a root reparent"), {"a", "root"})


def test_agent_0_adopts_where_damaged_rows_break_the_way_up() -> None:
    lost = tree("a nobody reparent", "b a reparent")
    assert decide(lost, {"a"}) == [Adopt("b", "root")]
    circle = tree("a b reparent", "b a reparent")
    assert decide(circle, {"b"}) == [Adopt("a", "root")]
    assert survivors_above(lost, {"a"}) == {"a": "root"}
    assert survivors_above(circle, {"a", "b"}) == {"a": "root", "b": "root"}
    assert survivors_above(circle, {"a"}) == {"a": "root"}


def test_whom_nobody_can_adopt_is_left() -> None:
    members = tree("a nobody reparent", "b a reparent")
    del members["root"]
    assert decide(members, {"a"}) == []


@given(histories())
def test_every_living_agent_has_a_living_supervisor_unless_a_continue_left_it_an_orphan(history: History) -> None:
    members = history.members
    for deaths in history.deaths:
        members = settle(members, {agent for agent in deaths if members[agent].status is not Status.DEAD})
        for agent, member in members.items():
            assert agent == "root" or above(agent, members)[-1] == "root"
            if member.status is not Status.DEAD and member.supervisor is not None:
                supervisor = members[member.supervisor]
                assert supervisor.status is not Status.DEAD or supervisor.policy is OrphanPolicy.CONTINUE


@pytest.mark.slow("takes half a second")
@given(histories())
def test_the_decisions_are_what_each_agents_ancestors_say(history: History) -> None:
    members = history.members
    for deaths in history.deaths:
        dying = {agent for agent in deaths if members[agent].status is not Status.DEAD}
        after = settle(members, dying)
        for agent, before in members.items():
            ancestors = above(agent, members)
            doomed = any(
                ancestor in dying and members[ancestor].policy is OrphanPolicy.CASCADE for ancestor in ancestors
            )
            dead = before.status is Status.DEAD or agent in dying or doomed
            assert (after[agent].status is Status.DEAD) == dead
            if dead or before.supervisor not in dying or before.supervisor is None:
                assert after[agent].supervisor == before.supervisor
                assert dead or after[agent] == before
                continue
            policy = members[before.supervisor].policy
            survivors = (ancestor for ancestor in ancestors if after[ancestor].status is not Status.DEAD)
            heir = before.supervisor if policy is OrphanPolicy.CONTINUE else next(survivors)
            pauses = policy is OrphanPolicy.STOP and before.status is Status.RUNNING
            assert after[agent] == Member(heir, Status.STOPPED if pauses else before.status, before.policy)
        members = after


@given(histories())
def test_the_nearest_survivor_above_takes_over_from_each_of_the_dying(history: History) -> None:
    members = history.members
    for deaths in history.deaths:
        nearest = survivors_above(members, deaths)
        for agent in deaths:
            ancestors = (ancestor for ancestor in above(agent, members) if ancestor not in deaths)
            assert nearest[agent] == next(
                ancestor for ancestor in ancestors if members[ancestor].status is not Status.DEAD
            )
        members = settle(members, {agent for agent in deaths if members[agent].status is not Status.DEAD})


@given(histories())
def test_the_part_of_the_tree_that_matters_suffices(history: History) -> None:
    members = history.members
    for dying in history.deaths:
        cascading = {agent for agent in dying if members[agent].policy is OrphanPolicy.CASCADE}
        part = dying | {ancestor for agent in dying for ancestor in above(agent, members)}
        part |= {agent for agent, member in members.items() if member.supervisor in dying}
        part |= {agent for agent in members if cascading & set(above(agent, members))}
        assert decide({agent: members[agent] for agent in members if agent in part}, dying) == decide(members, dying)


@pytest.mark.parametrize("policy", [OrphanPolicy.REPARENT, OrphanPolicy.CASCADE])
def test_five_thousand_deaths_are_settled_at_once(policy: OrphanPolicy) -> None:
    number = 5_000
    chain = tree(*(f"a{n} {f'a{n - 1}' if n else 'root'} {policy}" for n in range(number)))
    assert len(decide(chain, {f"a{n}" for n in range(0, number, 2)})) >= number // 2
