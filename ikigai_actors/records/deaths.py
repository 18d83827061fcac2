"""Deaths: what the end of an agent writes, whatever its cause.

One transaction writes all of it, so a crash leaves all of it or nothing:

- The agent's row says why it died, and its epoch grows, so later writes of its host are fenced. Its log stays.
- Its orphan policy decides about the agents that it supervised.
- The nearest survivor above it gets a mail of kind ``exit`` (`ikigai_actors.records.exit_mails`).
- What is held for its request to a model is spent: it may have left.
- Its timers go, it leaves its groups, and who monitors it gets that mail as well.

Every unit of deaths locks the row of ``tree`` first. While that is held no agent is born, dies, or gets another
supervisor. So the unit finds out without locks who dies and who takes over; then it locks all rows that change in one
statement, in the order that every unit keeps. No descendant escapes: a fork that comes first is seen, a later one finds
its parent dead.

The database does not hold the actors of the agents that died or paused. The host that runs them ends or pauses them:
the unit's answer, a `LifecycleChange`, names them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ikigai_actors.errors import AgentDead, AgentNotFound, AgentStopped, Fenced, RootProtected
from ikigai_actors.records.budgets.holds import spend_holds
from ikigai_actors.records.exit_mails import End, exit_mails
from ikigai_actors.records.identity import SHORT_LENGTH
from ikigai_actors.records.mail import EXIT, write_mail
from ikigai_actors.records.membership import forget_dead, watchers_of
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import LockedRows, TreeLock, Unit
from supervisors.causes import Cause
from supervisors.orphans import Adopt, Kill, Member, OrphanPolicy, Pause, decide, survivors_above
from supervisors.signals import Refusal, Rejected, Signal, Status, deliver


class Relative(NamedTuple):
    """An agent as far as a death concerns it: a row of the queries ``household``, ``branch`` and ``supervisors_of``."""

    uuid: str
    supervisor: str | None
    status: str
    policy: str
    owner: str | None
    parent: str | None
    born: int
    created_at: int
    turn: int
    name: str | None

    @property
    def called(self) -> str:
        """What people call it."""
        return self.name or self.uuid[:SHORT_LENGTH]

    @property
    def member(self) -> Member:
        """The agent as the pure decisions of `supervisors` need it."""
        return Member(self.supervisor, Status(self.status), OrphanPolicy(self.policy))


@dataclass(frozen=True, slots=True)
class LifecycleChange:
    """What a unit changed, for the host that runs the agents."""

    dead: Mapping[str, End] = field(default_factory=dict)
    """The agents that died, leaves first."""
    status: Mapping[str, Status] = field(default_factory=dict)
    """The agents that live on with another status."""
    ignored: str = ""
    """Why a signal did nothing; empty when it did something."""
    reason: str = ""
    """Why the agents in `status` have another one."""
    notified: tuple[tuple[str, str], ...] = ()
    """The mails of kind ``exit`` that were sent: recipient, and the agent that died, or the topmost of those."""
    freed: tuple[str, ...] = ()
    """The budgets that are to be looked at again, by their owners: what the dead held is settled."""


Family = Mapping[str, Relative]


def household(tx: Transaction, uuid: str) -> Family:
    """An agent, the agents that its death would concern, and all its supervisors; in order of creation.

    Its death concerns the agents that it supervises, and with the policy ``cascade`` all its descendants. Raises
    `AgentNotFound`.
    """
    family = _family(tx, "household", uuid)
    if uuid not in family:
        raise AgentNotFound(f"There is no agent {uuid}.", uuid)
    return branch(tx, uuid) if family[uuid].policy == OrphanPolicy.CASCADE else family


def branch(tx: Transaction, uuid: str) -> Family:
    """An agent, all its descendants, the dead too, and all its supervisors; in order of creation.

    Raises `AgentNotFound`.
    """
    family = _family(tx, "branch", uuid)
    if uuid not in family:
        raise AgentNotFound(f"There is no agent {uuid}.", uuid)
    return family


def end_agents(
    tx: Transaction, locked: LockedRows, family: Family, ends: Mapping[str, End], now: int
) -> LifecycleChange:
    """Let agents die, and carry out their orphan policies.

    Args:
        tx: a transaction that holds the tree.
        locked: takes the rows that are locked here.
        family: the agents around them, as `household` and `branch` find them.
        ends: why each agent dies, leaves first. None of them is agent 0 or dead.
        now: milliseconds since 1970.
    """
    members = {uuid: one.member for uuid, one in family.items()}
    decisions = decide(members, ends.keys())
    killed = {
        one.agent: End(Cause.ORPHANED, _orphaned(family[one.agent])) for one in decisions if isinstance(one, Kill)
    }
    dead = {**killed, **ends}
    adopted = {one.agent: one.by for one in decisions if isinstance(one, Adopt)}
    paused = [one.agent for one in decisions if isinstance(one, Pause)]
    nearest = survivors_above(members, dead.keys())
    hearers = {uuid: [nearest[uuid]] for uuid in dead}
    for uuid, watcher in watchers_of(tx, dead):
        if watcher not in dead and watcher != nearest[uuid]:
            hearers[uuid].append(watcher)
    locked.lock(tx, {*dead, *adopted, *adopted.values(), *(one for each in hearers.values() for one in each)})
    _write_deaths(tx, dead, now)
    tx.run("end_timers", agents=[*dead])
    forget_dead(tx, dead)
    freed = spend_holds(tx, locked, [locked[uuid] for uuid in dead], ended=True)
    supervisors = {uuid: family[uuid].supervisor for uuid in dead}
    mails = exit_mails(dead, hearers, supervisors, {uuid: family[uuid].called for uuid in dead})
    for mail in mails:
        write_mail(tx, locked, mail.recipient, mail.sender, mail.body, now, EXIT)
    children: dict[str, list[str]] = {}
    for child, by in adopted.items():
        children.setdefault(by, []).append(child)
    for by, uuids in children.items():
        tx.run("adopt", by=by, uuids=uuids)
    orphans: dict[str, list[str]] = {}
    for uuid in paused:
        orphans.setdefault(str(family[uuid].supervisor)[:SHORT_LENGTH], []).append(uuid)
    for gone, uuids in orphans.items():
        reason = f"its supervisor {gone} died, whose policy is stop"
        tx.run("set_status", uuids=uuids, status=Status.STOPPED.value, deadline=None, reason=reason)
    notified = tuple((mail.recipient, mail.sender) for mail in mails)
    return LifecycleChange(dead, dict.fromkeys(paused, Status.STOPPED), notified=notified, freed=freed)


@dataclass(frozen=True, slots=True)
class WriteDeath(Unit):
    """The death of one agent without a signal; answered with its `LifecycleChange`.

    Raises:
        AgentNotFound, AgentDead: there is no such living agent.
        RootProtected: agent 0 cannot die.
        Fenced: another host owns the agent, and decides on it.
    """

    uuid: str
    host: str
    reason: str
    now: int
    cause: Cause = Cause.DAMAGED

    alone = True
    tree = TreeLock.WHOLE
    concerns_others = True

    def write(self, tx: Transaction, locked: LockedRows) -> LifecycleChange:
        family = household(tx, self.uuid)
        victim = family[self.uuid]
        is_root = victim.parent is None or victim.member.supervisor is None  # in damaged rows only one may be so
        told = deliver(Status(victim.status), Signal.KILL, protected=is_root)
        if isinstance(told, Rejected):
            raise refusal_of(victim, told.refusal)
        if victim.owner != self.host:
            raise Fenced(f"Agent {self.uuid} belongs to another host by now, which decides on it.", self.uuid)
        return end_agents(tx, locked, family, {self.uuid: End(self.cause, self.reason)}, self.now)


def _family(tx: Transaction, query: str, uuid: str) -> Family:
    """The rows of a query, in order of creation: positions of births in one log always grow, times can be equal.

    Agent 0 is added when damaged rows run in a circle: it takes over.
    """
    found = [*tx.run(query, uuid=uuid), *tx.run("supervisors_of", uuid=uuid), *tx.run("agent_0")]
    rows = {row[0]: Relative(*row) for row in found}
    return dict(sorted(rows.items(), key=lambda pair: (pair[1].created_at, pair[1].born)))


def _write_deaths(tx: Transaction, dead: Mapping[str, End], now: int) -> None:
    """Mark agents dead, with one statement for all that die for the same reason."""
    alike: dict[End, list[str]] = {}
    for uuid, why in dead.items():
        alike.setdefault(why, []).append(uuid)
    for why, uuids in alike.items():
        tx.run("bury", uuids=uuids, cause=why.cause.value, sender=why.sender, reason=why.reason, now=now)


def _orphaned(one: Relative) -> str:
    return f"its supervisor {one.supervisor} died, and takes those with it that it looks after"


def refusal_of(one: Relative, refusal: Refusal) -> AgentDead | AgentStopped | RootProtected:
    """The error that says why an agent does not take a signal."""
    kinds: Mapping[Refusal, type[AgentDead | AgentStopped | RootProtected]] = {
        Refusal.DEAD: AgentDead,
        Refusal.TERMINATING: AgentStopped,
        Refusal.PROTECTED: RootProtected,
    }
    return kinds[refusal](f"Agent {one.uuid} takes no such signal: {refusal}.", one.uuid)


def deadlines(tx: Transaction) -> dict[str, int | None]:
    """When each agent that terminates is to be killed, by uuid; milliseconds since 1970, None is at once."""
    return dict(tx.run("deadlines"))
