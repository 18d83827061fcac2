"""Orphans: what happens to the agents below those that die.

The policy is that of the agent that dies, whatever the cause. It decides about the living agents that it supervises:

    reparent    the nearest living ancestor adopts them
    cascade     they die with it, and so do all their descendants, whatever their own policies
    stop        the nearest living ancestor adopts them, and they are paused until a CONT
    continue    they go on with a dead supervisor: orphans, until another agent adopts them

Several may die at once. `decide` sees all of these deaths as one moment: no agent is adopted by one that dies in it. So
afterwards every living agent has a living supervisor, and by it a chain of them to agent 0, unless a `continue` left it
an orphan. Adoption leads upwards only, so it makes no circle. The decisions belong into the transaction of the deaths.
"""

from collections.abc import Container, Iterable, Mapping, Set
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from supervisors.signals import Delivered, Signal, Status, deliver
from supervisors.tree import everybody


class OrphanPolicy(StrEnum):
    """The policy for the agents that a dead agent supervised."""

    REPARENT = "reparent"
    """The nearest living ancestor adopts them."""
    CASCADE = "cascade"
    """The children die too, with all their descendants."""
    STOP = "stop"
    """The nearest living ancestor adopts them, and they are paused."""
    CONTINUE = "continue"
    """The children go on without a living supervisor."""


class Member(Protocol):
    """An agent as a member of the tree, before the deaths."""

    @property
    def supervisor(self) -> str | None:
        """The supervisor; None for agent 0."""

    @property
    def status(self) -> Status:
        """The status."""

    @property
    def policy(self) -> OrphanPolicy:
        """The policy of this member: what happens to the agents below it when it dies."""


@dataclass(frozen=True, slots=True)
class Kill:
    """The agent dies because one above it does."""

    agent: str


@dataclass(frozen=True, slots=True)
class Adopt:
    """The agent gets a new supervisor."""

    agent: str
    by: str


@dataclass(frozen=True, slots=True)
class Pause:
    """The agent is stopped, as by STOP."""

    agent: str


OrphanDecision = Kill | Adopt | Pause


def decide(tree: Mapping[str, Member], dying: Set[str]) -> list[OrphanDecision]:
    """The consequences of the deaths of these agents for the agents below them. Linear in the tree.

    Args:
        tree: in order of creation, the dead too. This part suffices: the agents that die, all agents above them, and
            below them the children or, where one cascades, all descendants.
        dying: the agents that die, all at one moment.

    Returns:
        The further agents to kill, leaves first; then what happens to survivors whose supervisors die, from the top
        down. Nothing is decided about agents that stay orphans.

    Raises:
        ValueError: agent 0 is among the dying.
    """
    root = next((agent for agent, member in tree.items() if member.supervisor is None), None)
    if root in dying:
        raise ValueError(f"Expected deaths of agents that can die, got: {root}, which is agent 0.")
    gone = {agent for agent, member in tree.items() if member.status is Status.DEAD} | dying
    if not any(member.supervisor in gone for agent, member in tree.items() if agent not in gone):
        return []  # a whole branch dies: nobody is left below it
    kills: list[OrphanDecision] = []
    others: list[OrphanDecision] = []
    condemned: set[str | None] = set()  # an agent with one of these as its supervisor dies
    survivors: dict[str | None, str | None] = {}  # the nearest survivor, at or above each agent
    for agent in everybody({agent: member.supervisor for agent, member in tree.items()}):
        member = tree[agent]
        supervisor = member.supervisor
        doomed = supervisor in condemned
        if doomed or (agent in dying and member.policy is OrphanPolicy.CASCADE):
            condemned.add(agent)
        if doomed or agent in gone:
            survivors[agent] = survivors.get(supervisor, root)  # agent 0 where damaged rows break the way up
            if agent not in gone:
                kills.append(Kill(agent))
        else:
            survivors[agent] = agent
            if supervisor in dying and supervisor is not None:
                others += _orphaned(agent, member.status, tree[supervisor].policy, survivors.get(supervisor, root))
    return kills[::-1] + others


def survivors_above(tree: Mapping[str, Member], dying: Set[str]) -> dict[str, str]:
    """Return, for each dying agent, the agent that adopts its children: the nearest survivor above it.

    That is agent 0, which never dies, where damaged rows break the way up. Linear in the tree, whatever its depth.
    """
    root = next(agent for agent, member in tree.items() if member.supervisor is None)
    nearest: dict[str, str] = {}
    sound: set[str] = set()  # those from which the way up ends
    for agent in dying:
        climbed: list[str] = []
        above: str | None = agent
        while above is not None and above in tree and above not in nearest:
            if above not in dying and tree[above].status is not Status.DEAD:
                break
            climbed.append(above)
            nearest[above] = root  # ends a circle of the dead
            above = tree[above].supervisor
        if above is None or above not in tree:
            continue
        heir = nearest.get(above, above)
        if _ends_above(tree, heir, sound):
            nearest.update(dict.fromkeys(climbed, heir))
    return nearest


def ways(living: Iterable[str], supervisors: Mapping[str, str | None], dead: Container[str]) -> set[str]:
    """Return the dead agents above the living ones, each up to the next living agent."""
    passed: set[str] = set()
    for agent in living:
        above = supervisors.get(agent)
        while above is not None and above in dead and above not in passed:
            passed.add(above)
            above = supervisors.get(above)
    return passed


def _ends_above(tree: Mapping[str, Member], agent: str, sound: set[str]) -> bool:
    """Whether the way up from an agent ends at the top. If so, adds the agents on the way to ``sound``."""
    way: dict[str, None] = {}
    above: str | None = agent
    while above is not None and above in tree and above not in sound:
        if above in way:
            return False
        way[above] = None
        above = tree[above].supervisor
    sound.update(way)
    return True


def _orphaned(agent: str, status: Status, policy: OrphanPolicy, adopter: str | None) -> list[OrphanDecision]:
    """Return the decisions about a survivor, by the policy of its dead supervisor.

    In a part of a tree without agent 0, it may be that no agent adopts it.
    """
    if policy is OrphanPolicy.CONTINUE or adopter is None:
        return []
    pauses = policy is OrphanPolicy.STOP and isinstance(deliver(status, Signal.STOP), Delivered)
    return [Adopt(agent, adopter), Pause(agent)] if pauses else [Adopt(agent, adopter)]
