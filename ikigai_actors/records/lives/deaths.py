"""Deaths: the rows that the end of an agent writes, for any cause.

One transaction writes all of these changes, so a crash leaves all of them or none:

- The agent's row says why it died, and its epoch grows, so later writes of its host are fenced. Its log stays.
- Its orphan policy decides about the agents that it supervised.
- The nearest survivor above it gets a mail of kind ``exit`` (`ikigai_actors.records.lives.exit_mails`).
- The amount reserved for its request to a model counts as spent, since the request may have been sent.
- Its timers are deleted, it leaves its groups, and its watchers get a mail of kind ``exit``, too.
- Receivers outside get an event about the topmost agent that dies (`ikigai_actors.records.outbox.events`).
- The requests of programs to the agent are ended (`ikigai_actors.records.mail.asked`).

Every unit of deaths locks the row of ``tree`` first. While it has this lock no agent is born, dies, or gets another
supervisor. So the unit needs no further locks to find the agents that die and their heirs; then it locks all rows that
change in one statement, in the order that every unit keeps. No descendant escapes: the unit sees an earlier fork, and a
later fork finds its parent dead.

The actors of agents that died or paused are not in the database. The host that runs them ends or pauses them: the
unit's answer, a `LifecycleChange`, names the agents.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

from ikigai_actors.errors import AgentDead, AgentNotFound, AgentStopped, Fenced, RootProtected
from ikigai_actors.records.agents.former import (
    keep_last_statuses,
    keep_memberships,
    keep_statuses,
    keep_supervisors,
    keep_timers,
)
from ikigai_actors.records.agents.words import called
from ikigai_actors.records.budgets.holds import bury_holds
from ikigai_actors.records.lives.exit_mails import End, ExitMail, exit_mails
from ikigai_actors.records.lives.membership import forget_dead, watchers_of
from ikigai_actors.records.mail.asked import asked_of, bury_asked
from ikigai_actors.records.mail.mail import EXIT, write_mail
from ikigai_actors.records.outbox.events import AGENT_DIED, PostedEvent, post
from ikigai_actors.records.questions.questions import bury_questions
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import LockedRows, TreeLock, Unit
from supervisors.causes import Cause
from supervisors.orphans import Adopt, Kill, OrphanPolicy, Pause, decide, survivors_above, ways
from supervisors.signals import Refusal, Rejected, Signal, Status, cascade, deliver

ORPHANED = "its supervisor {} died, and takes those with it that it looks after"
"""The reason of agents that die by the policy ``cascade``; ``{}`` is the name of the supervisor."""

MANY_DEATHS = 100
"""From this many deaths on, the agents that need an end of their own (budgets, timers, requests) are found first."""


class Doomed(NamedTuple):
    """An agent and all its living descendants, which are to die, with the dead agents between them."""

    supervisors: Mapping[str, str | None]
    """The supervisor of each, in the order of creation."""
    names: Mapping[str, str]
    """The name of each that has one."""
    dead: Set[str]
    """The agents among them that are dead already."""
    counting: Sequence[str]
    """The living that have their own budget or an open request."""
    keys: Sequence[int | str]
    """The row keys of the living, in the order of storage."""

    def called(self, uuid: str) -> str:
        """Return the name of an agent for people."""
        return called(uuid, self.names.get(uuid))


class Relative(NamedTuple):
    """A relative of a dying agent, which the death may affect.

    It is a row of the queries ``household``, ``branch`` and ``supervisors_of``.
    """

    uuid: str
    supervisor: str | None
    status: Status
    policy: OrphanPolicy
    shard: int
    parent: str | None
    born: int
    created_at: int
    turn: int
    name: str | None
    way: int = 0
    """1 for a dead agent with a living one below it; else 0."""

    @property
    def called(self) -> str:
        """Return the name of the agent for people."""
        return called(self.uuid, self.name)


@dataclass(frozen=True, slots=True)
class LifecycleChange:
    """The agents that a unit has killed or changed.

    The host that runs these agents then ends or pauses their actors.
    """

    dead: Mapping[str, End] = field(default_factory=dict)
    """The agents that died, leaves first, with the cause."""
    status: Mapping[str, Status] = field(default_factory=dict)
    """The living agents that have another status now."""
    ignored: str = ""
    """Why a signal did nothing; empty when it did something."""
    reason: str = ""
    """The reason of the changes in `status`."""
    notified: tuple[tuple[str, str], ...] = ()
    """The mails of kind ``exit`` that were sent: the recipient, and the agent that died (or the topmost of several)."""
    freed: tuple[str, ...] = ()
    """The owners of budgets to be checked again, because amounts of the dead were settled."""


Family = Mapping[str, Relative]

_STATUS = {status.value: status for status in Status}
_POLICY = {policy.value: policy for policy in OrphanPolicy}
_CREATION = itemgetter(Relative._fields.index("created_at"), Relative._fields.index("born"))


def household(tx: Transaction, uuid: str) -> Family:
    """Return an agent, the agents affected by its death, and all its supervisors, in the order of creation.

    The death affects the agents that it supervises, and with the policy ``cascade`` all its descendants. Raises
    `AgentNotFound`.
    """
    family = _family(tx, "household", uuid)
    if uuid not in family:
        raise AgentNotFound(f"There is no agent {uuid}.", uuid)
    return branch(tx, uuid) if family[uuid].policy == OrphanPolicy.CASCADE else family


def branch(tx: Transaction, uuid: str) -> Family:
    """Return an agent, its living descendants with the dead between, and its supervisors, in order of creation.

    Raises `AgentNotFound`.
    """
    family = _family(tx, "branch", uuid)
    if uuid not in family:
        raise AgentNotFound(f"There is no agent {uuid}.", uuid)
    return family


def way_up(tx: Transaction, uuid: str) -> Family:
    """Return an agent and all its supervisors, in the order of creation. Raises `AgentNotFound`."""
    family = _family(tx, "relative", uuid)
    if uuid not in family:
        raise AgentNotFound(f"There is no agent {uuid}.", uuid)
    return family


def doomed_by(tx: Transaction, uuid: str) -> Doomed | None:
    """Return an agent and all its descendants; None if there is no such agent, or damaged rows run in a circle."""
    if any(row[0] == uuid for row in tx.run("supervisors_of", uuid=uuid)):
        return None
    [row] = tx.run("doomed", uuid=uuid)
    uuids, supervisors, named, names, dead, counting, keys = (json.loads(texts or "[]") for texts in row)
    if not uuids:
        return None
    above = dict(zip(uuids, supervisors, strict=True))
    return Doomed(above, dict(zip(named, names, strict=True)), set(dead), counting, sorted(keys))


def end_branch(
    tx: Transaction, locked: LockedRows, family: Family, doomed: Doomed, top: str, why: End, now: int
) -> LifecycleChange:
    """Let an agent and all its descendants die. No orphan policy applies, because no agent is left below them.

    The rows are the same as of `end_agents`, which reads more. The errors are the same, too.

    Args:
        tx: a transaction that has locked the tree.
        locked: gets the rows that are locked here, as in `end_agents`; the row of ``top`` is in it afterwards.
        family: the agent and all its supervisors, as `way_up` finds them.
        doomed: the agent and all its descendants, as `doomed_by` finds them.
        top: the agent, which lives.
        why: the cause of their deaths.
        now: milliseconds since 1970.
    """
    dead = dict.fromkeys(cascade(top, doomed.supervisors, doomed.dead), why)
    tied = _tied(tx, dead)
    nearest = survivors_above(family, {top})[top]
    watched = watchers_of(tx, tied)
    hearers = _told(dead, dict.fromkeys(dead, nearest), watched) if watched else {nearest: [*dead]}
    asking = _asking(tx, dead, tied)
    locked.lock_dying(tx, dead, list(dict.fromkeys((*hearers, top, *asking))), doomed.counting)
    keep_last_statuses(tx, [*dead], now)
    tx.run("bury_rows", keys=doomed.keys, **_written(why, now))
    mails = exit_mails(dead, hearers, doomed.supervisors, doomed.called)
    post(tx, locked, PostedEvent(AGENT_DIED, top, now, "", now))
    notified, freed = _settle(tx, locked, dead, tied, mails, now)
    return LifecycleChange(dead, notified=notified, freed=freed)


def end_agents(
    tx: Transaction,
    locked: LockedRows,
    family: Family,
    dying: Iterable[str],
    why: End,
    now: int,
    kept: Iterable[str] = (),
) -> LifecycleChange:
    """Let agents die, and apply their orphan policies.

    Args:
        tx: a transaction that holds the tree.
        locked: takes the rows that are locked here; of the dying, those that have something to settle.
        family: the agents around them, as `household` and `branch` find them.
        dying: the agents that die, leaves first. None of them is agent 0 or dead.
        why: the cause of their deaths.
        now: milliseconds since 1970.
        kept: agents whose rows are locked with the others, and are in ``locked`` afterwards.
    """
    ends = dict.fromkeys(dying, why)
    decisions = decide(family, ends.keys())
    orphaned = [decision.agent for decision in decisions if isinstance(decision, Kill)]
    dead = {uuid: End(Cause.ORPHANED, ORPHANED.format(_supervisor(family, uuid))) for uuid in orphaned} | ends
    adopted = {decision.agent: decision.by for decision in decisions if isinstance(decision, Adopt)}
    paused = [decision.agent for decision in decisions if isinstance(decision, Pause)]
    tied = _tied(tx, dead)
    hearers = _told(dead, survivors_above(family, dead.keys()), watchers_of(tx, tied))
    locked.lock_dying(
        tx, dead, list(dict.fromkeys((*adopted, *adopted.values(), *hearers, *kept, *_asking(tx, dead, tied))))
    )
    alike: dict[End, list[str]] = {}
    for uuid, how in dead.items():
        alike.setdefault(how, []).append(uuid)
    for how, uuids in alike.items():
        keep_last_statuses(tx, uuids, now)
        tx.run("bury", uuids=uuids, **_written(how, now))
    above = {uuid: relative.supervisor for uuid, relative in family.items()}
    if leads := ways(_left(family, above, dead.keys() | adopted.keys()), above, dead):
        tx.run("mark_ways", uuids=sorted(leads))
    mails = exit_mails(dead, hearers, above, lambda uuid: family[uuid].called)
    for uuid in dead:
        if above[uuid] not in dead:  # one event for all that die by it
            post(tx, locked, PostedEvent(AGENT_DIED, uuid, now, "", now))
    notified, freed = _settle(tx, locked, dead, tied, mails, now)
    children: dict[tuple[str, str], list[str]] = {}
    for child, by in adopted.items():
        children.setdefault((by, _supervisor(family, child)), []).append(child)
    for (by, gone), uuids in children.items():
        keep_supervisors(tx, uuids, by, now)
        tx.run("adopt", by=by, uuids=uuids, gave_up=f"its supervisor {gone} gave up, and died")
    orphans: dict[str, list[str]] = {}
    for uuid in paused:
        orphans.setdefault(_supervisor(family, uuid), []).append(uuid)
    for gone, uuids in orphans.items():
        reason = f"its supervisor {gone} died, whose policy is stop"
        keep_statuses(tx, uuids, now)
        tx.run("set_status", uuids=uuids, status=Status.STOPPED.value, deadline=None, reason=reason)
    return LifecycleChange(dead, dict.fromkeys(paused, Status.STOPPED), notified=notified, freed=freed)


def _left(family: Family, above: Mapping[str, str | None], others: Set[str]) -> list[str]:
    """Return the agents that live on, and dead agents outside of ``family`` that have living agents below them."""
    supervising = set(above.values())
    return [
        uuid
        for uuid, relative in family.items()
        if uuid not in others and (relative.status is not Status.DEAD or (relative.way and uuid not in supervising))
    ]


def _written(why: End, now: int) -> dict[str, str | int | None]:
    return {"cause": why.cause.value, "sender": why.sender, "reason": why.reason, "now": now}


def _settle(
    tx: Transaction, locked: LockedRows, dead: Collection[str], tied: Sequence[str], mails: Sequence[ExitMail], now: int
) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Remove timers, groups, waits and requests of dead agents, and write the mails about their deaths."""
    if tied:
        keep_timers(tx, tied, now)
        keep_memberships(tx, tied, now)
        bury_questions(tx, tied, now)
    tx.run("end_timers", agents=tied)
    forget_dead(tx, tied)
    if tied:
        bury_asked(tx, tied)
    freed = bury_holds(tx, locked, dead, tied)
    for mail in mails:
        write_mail(tx, locked, mail.recipient, mail.sender, mail.body, now, EXIT)
    return tuple((mail.recipient, mail.sender) for mail in mails), freed


def _asking(tx: Transaction, dead: Collection[str], tied: Sequence[str]) -> list[str]:
    return [asker for asker in dict.fromkeys(row[0] for row in asked_of(tx, tied)) if asker not in dead]


def _supervisor(family: Family, uuid: str) -> str:
    return family[str(family[uuid].supervisor)].called


@dataclass(frozen=True, slots=True)
class WriteDeath(Unit):
    """Record the death of one agent that no signal has caused; answered with its `LifecycleChange`."""

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
        is_root = victim.parent is None or victim.supervisor is None  # in damaged rows only one may be so
        delivered = deliver(victim.status, Signal.KILL, protected=is_root)
        if isinstance(delivered, Rejected):
            raise refusal_of(victim, delivered.refusal)
        if hosts_of(tx, [victim])[victim.shard] != self.host:
            raise Fenced(f"Agent {self.uuid} now belongs to another host, which decides on it.", self.uuid)
        return end_agents(tx, locked, family, (self.uuid,), End(self.cause, self.reason), self.now)


def hosts_of(tx: Transaction, agents: Iterable[Relative]) -> dict[int, str | None]:
    """Return the host of each shard in which these agents live."""
    return dict(tx.run("hosts_of_shards", shards=[str(shard) for shard in {agent.shard for agent in agents}]))


def _family(tx: Transaction, query: str, uuid: str) -> Family:
    """Return the relatives in the rows of a query, in order of creation.

    Births in one log are ordered by position, since their times can be equal. If damaged rows run in a circle, agent 0
    is added to take over.
    """
    rows = [*tx.run(query, uuid=uuid), *tx.run("supervisors_of", uuid=uuid), *tx.run("agent_0")]
    rows.sort(key=_CREATION)
    return {row[0]: Relative(row[0], row[1], _STATUS[row[2]], _POLICY[row[3]], *row[4:]) for row in rows}


def _told(
    dead: Mapping[str, End], nearest: Mapping[str, str], watched: Iterable[tuple[str, str]]
) -> dict[str, list[str]]:
    """Return for each survivor the deaths about which it gets mail, leaves first.

    These are the deaths of agents directly below it, and of agents that it monitors.

    Args:
        dead: the agents that die, leaves first.
        nearest: the survivor above each of them.
        watched: pairs of an agent that dies and one that monitors it.
    """
    watchers: dict[str, list[str]] = {}
    for uuid, watcher in watched:
        if watcher not in dead and watcher != nearest[uuid]:
            watchers.setdefault(uuid, []).append(watcher)
    hearers: dict[str, list[str]] = {}
    for uuid in dead:
        hearers.setdefault(nearest[uuid], []).append(uuid)
        for watcher in watchers.get(uuid, ()):
            hearers.setdefault(watcher, []).append(uuid)
    return hearers


def _tied(tx: Transaction, dead: Collection[str]) -> list[str]:
    """Return the dying agents that may have a timer, group, monitor, pause or question to remove.

    Up to `MANY_DEATHS` that is every one of them; above, a query finds them.
    """
    if len(dead) >= MANY_DEATHS:
        ties = tx.run("some_ties", most=len(dead))
        if len(ties) < len(dead):  # these are all there are
            tied = {uuid for (uuid,) in ties}
            return [uuid for uuid in dead if uuid in tied]
    return list(dead)


def refusal_of(relative: Relative, refusal: Refusal) -> AgentDead | AgentStopped | RootProtected:
    """Return the error that explains why an agent refuses a signal."""
    kinds: Mapping[Refusal, type[AgentDead | AgentStopped | RootProtected]] = {
        Refusal.DEAD: AgentDead,
        Refusal.TERMINATING: AgentStopped,
        Refusal.PROTECTED: RootProtected,
    }
    return kinds[refusal](f"Agent {relative.called} takes no such signal: {refusal}.", relative.uuid)


def deadlines(tx: Transaction, host: str) -> dict[str, int | None]:
    """Return the times at which terminating agents of a host are to be killed, by uuid.

    The times are milliseconds since 1970; None for at once.
    """
    return dict(tx.run("deadlines", host=host))
