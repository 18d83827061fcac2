"""Groups that agents join by name, and monitors of deaths. Tables ``groups`` and ``monitors``.

    member      from the commit of `JoinGroup` to that of `LeaveGroup`, or to the commit of the member's death
    watcher     from the commit of `MonitorAgent` until the watcher or the watched agent dies. The watcher gets the same
                mail of kind ``exit`` as the supervisor; at once, as in Erlang, if the watched agent is dead already.

Joining, leaving and sending to a group lock the row of its name, after the tree and before any agent: so they follow
one another, and a mail to a group reaches its members at the commit. Each has a transaction of its own, so nobody holds
two groups. A death needs no such lock: it holds the rows of those who die.

A unit that adds a monitor locks the tree as births do. No death can happen meanwhile, so none is missed between the
check whether the agent lives and the new row.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ikigai_actors.errors import AgentNotFound, BadInput, GroupEmpty, GroupFull, MailboxFull
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.former import keep_memberships
from ikigai_actors.records.agents.identity import check_name
from ikigai_actors.records.lives.exit_mails import End
from ikigai_actors.records.mail.mail import EXIT, Mail, check_letter, write_mail
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import Addressed, LockedRows, TreeLock, Unit
from supervisors.causes import Cause

GROUP_PREFIX = "group:"
"""The prefix of a recipient that is a group."""

MOST_MEMBERS = 1_000
"""The most members of a group."""


def group_in(recipient: object) -> str | None:
    """Return the name of the group that a recipient names; None when it is an agent. Raises `BadInput`."""
    if not isinstance(recipient, str) or not recipient.startswith(GROUP_PREFIX):
        return None
    return check_name(recipient.removeprefix(GROUP_PREFIX))


def every_group(tx: Transaction) -> dict[str, list[str]]:
    """Return the members of each group, by uuid, in the order in which they joined."""
    groups: dict[str, list[str]] = {}
    for name, agent in tx.run("all_members"):
        groups.setdefault(name, []).append(agent)
    return groups


class _OfGroup(Addressed):
    """A unit about one group, whose row it locks before those of agents."""

    alone = True

    def __init__(self, group: str, agent: str | None) -> None:
        self._group, self._agent = group, agent
        self._members: tuple[str, ...] = ()

    def look_up(self, tx: Transaction) -> None:
        tx.run("lock_group", name=self._group)
        self._members = tuple(agent for (agent,) in tx.run("members_of", name=self._group))

    @property
    def touches(self) -> tuple[str, ...]:
        return () if self._agent is None else (self._agent,)


class JoinGroup(_OfGroup):
    """Let an agent join a group; answered with whether it was no member.

    Raises:
        AgentNotFound, AgentDead: there is no such living agent.
        GroupFull: the group has `MOST_MEMBERS`.
        BadInput: the name is invalid.
    """

    def __init__(self, agent: str, group: str, now: int) -> None:
        super().__init__(check_name(group), agent)
        self._now = now

    def look_up(self, tx: Transaction) -> None:
        tx.run("make_group", name=self._group)
        super().look_up(tx)

    def write(self, tx: Transaction, locked: LockedRows) -> bool:
        assert self._agent is not None
        locked.living(self._agent)
        if self._agent in self._members:
            return False
        if len(self._members) >= MOST_MEMBERS:
            raise GroupFull(f"Group {self._group} has {MOST_MEMBERS:,} members, and none may have more.", self._agent)
        tx.run("join_group", name=self._group, agent=self._agent, now=self._now)
        return True


class LeaveGroup(_OfGroup):
    """Let an agent leave a group; answered with whether it was a member. Raises `BadInput` for an invalid name."""

    def __init__(self, agent: str, group: str, now: int) -> None:
        super().__init__(check_name(group), agent)
        self._now = now

    def write(self, tx: Transaction, locked: LockedRows) -> bool:
        assert self._agent is not None
        keep_memberships(tx, [self._agent], self._now, self._group)
        return bool(tx.run("leave_group", name=self._group, agent=self._agent))  # it may have died since the look-up


class GroupSent(NamedTuple):
    """The outcome of a mail to a group: the mails, and the members that did not get one."""

    mails: tuple[Mail, ...]
    """The mails: one for each member except the sender."""
    full: tuple[str, ...] = ()
    """The uuids of members with full mailboxes, which did not get the mail."""

    @property
    def id(self) -> int:
        """Return the number of members that got the mail."""
        return len(self.mails)


class SendToGroup(_OfGroup):
    """Send a mail to all members of a group but the sender; answered with `GroupSent`.

    Raises:
        GroupEmpty: nobody else is a member.
        AgentNotFound, AgentDead: the sender does not live.
        MailboxFull: the mailboxes of all members are full.
        BadInput: the body cannot be sent.
    """

    concerns_others = True

    def __init__(self, group: str, sender: str | None, body: str, now: int) -> None:
        super().__init__(group, sender)
        self._body, self._now = check_letter(body), now

    @property
    def touches(self) -> tuple[str, ...]:
        return (*super().touches, *self._members)

    def write(self, tx: Transaction, locked: LockedRows) -> GroupSent:
        if self._agent is not None:
            locked.living(self._agent)
        hearers = [uuid for uuid in self._members if uuid != self._agent and locked[uuid].status != "dead"]
        if not hearers:
            raise GroupEmpty(f"Nobody else is in group {self._group}, so nobody would get that.", self._agent or "")
        mails, full = list[Mail](), list[str]()
        for uuid in hearers:
            try:
                mails.append(write_mail(tx, locked, uuid, self._agent, self._body, self._now))
            except MailboxFull as refusal:
                full.append(uuid)
                last = refusal
        if not mails:
            raise last
        return GroupSent(tuple(mails), tuple(full))


@dataclass(frozen=True, slots=True)
class MonitorAgent(Unit):
    """Let an agent get mail when another one dies.

    If the other agent is dead already, the answer is the mail about its death, else None. Raises `AgentNotFound`,
    `AgentDead`, and `BadInput` for an agent that would monitor itself.
    """

    watched: str
    watcher: str
    now: int

    tree = TreeLock.SHARED
    concerns_others = True

    def __post_init__(self) -> None:
        if self.watched == self.watcher:
            raise BadInput("An agent cannot monitor itself: the dead read no mail.")

    @property
    def touches(self) -> tuple[str, ...]:
        return (self.watched, self.watcher)

    def write(self, tx: Transaction, locked: LockedRows) -> Mail | None:
        locked.living(self.watcher)
        other = locked.get(self.watched)
        if other is None:
            raise AgentNotFound(f"There is no agent {self.watched}.", self.watched)
        if other.status == "dead":
            record = registry.get(tx, self.watched)
            end = End(Cause(record.exit_cause or Cause.KILLED), record.exit_reason or "")
            return write_mail(tx, locked, self.watcher, self.watched, end.text or "exited", self.now, EXIT)
        tx.run("add_monitor", agent=self.watched, watcher=self.watcher, now=self.now)
        return None


@dataclass(frozen=True, slots=True)
class Demonitor(Unit):
    """End the monitoring of an agent by another one; answered with whether there was a monitor."""

    watched: str
    watcher: str

    @property
    def touches(self) -> tuple[str, ...]:
        return (self.watched, self.watcher)

    def write(self, tx: Transaction, locked: LockedRows) -> bool:
        return bool(tx.run("end_monitor", agent=self.watched, watcher=self.watcher))


def watchers_of(tx: Transaction, agents: Iterable[str]) -> list[tuple[str, str]]:
    """Return pairs of an agent and an agent that monitors it."""
    return [(agent, watcher) for agent, watcher in tx.run("watchers_of", agents=list(agents))]


def forget_dead(tx: Transaction, agents: Iterable[str]) -> None:
    """Remove dying agents from groups and from monitors."""
    dead = list(agents)
    tx.run("leave_groups", agents=dead)
    tx.run("end_monitors", agents=dead)
