"""Deaths, and the signals that may lead to them: units that change who lives, and who looks after whom.

A signal is one transaction: its row in ``signals``, and what it does to the agents that it hits. A death is the end of
an agent, whatever its cause: its row says why, its epoch grows, so what it still does is fenced; its log is left as it
is; its orphan policy decides about the agents that it supervised; and the nearest survivor above it gets a mail of kind
``exit``. All that is one transaction too.

Every unit here takes the row of ``tree`` first. While it is held nobody is born, dies, or changes its supervisor, so
whom a signal hits, and who inherits, is read without locks; then all rows that change are locked in one statement, in
the order in which everybody locks them. No descendant escapes: a fork that comes first is seen, one that comes later
finds its parent dead.

A crash leaves all of it or nothing. What is not in the database, the actors of those that died or paused, is the
business of the host that runs them: the unit's answer says whom it hit, and another process's signals are found as rows
that nobody has handled.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from ikigai_actors.errors import AgentDead, AgentNotFound, AgentStopped, BadInput, Fenced, RootProtected
from ikigai_actors.locks import Locks
from ikigai_actors.mailbox import EXIT, deliver
from ikigai_actors.registry import find
from ikigai_actors.store.base import Transaction
from supervisors.orphans import Adopt, Kill, Member, OrphanPolicy, Pause, decide
from supervisors.signals import Delivered, Refusal, Refused, Signal, Status, cascade
from supervisors.signals import deliver as outcome_of


class Cause(StrEnum):
    """How an agent died."""

    KILLED = "killed"
    TERMINATED = "terminated"
    EXITED = "exited"
    CRASHED = "crashed"
    GAVE_UP = "gave up"
    ORPHANED = "orphaned"
    DAMAGED = "damaged"


class Relative(NamedTuple):
    """An agent as far as a death concerns it. A row of the queries ``household``, ``branch`` and ``supervisors_of``."""

    uuid: str
    supervisor: str | None
    status: str
    policy: str
    owner: str | None
    parent: str | None
    fork: int
    created_at: int
    turn: int

    @property
    def member(self) -> Member:
        """The same for the pure decisions."""
        return Member(self.supervisor, Status(self.status), OrphanPolicy(self.policy))


@dataclass(frozen=True, slots=True)
class End:
    """Why an agent dies."""

    cause: Cause
    reason: str
    """For people. Of an agent that exited, its result."""
    sender: str | None = None
    """The agent that ended it."""


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What a unit did, for the host that runs the agents."""

    dead: Mapping[str, End] = field(default_factory=dict)
    """Who died, leaves first."""
    status: Mapping[str, Status] = field(default_factory=dict)
    """Who lives on with another status."""
    ignored: str = ""
    """Why a signal did nothing, when it did nothing."""
    reason: str = ""
    """Why the status of those has changed."""


Family = Mapping[str, Relative]


def household(tx: Transaction, uuid: str) -> Family:
    """An agent, those that its death would concern, and everybody above it; in order of creation.

    Those are the agents that it supervises, or all its descendants when its policy is ``cascade``. Raises
    `AgentNotFound`.
    """
    family = _family(tx, "household", uuid)
    if uuid not in family:
        raise AgentNotFound(f"There is no agent {uuid}.", uuid)
    return branch(tx, uuid) if family[uuid].policy == OrphanPolicy.CASCADE else family


def branch(tx: Transaction, uuid: str) -> Family:
    """An agent, all its descendants, the dead too, and everybody above it; in order of creation."""
    family = _family(tx, "branch", uuid)
    if uuid not in family:
        raise AgentNotFound(f"There is no agent {uuid}.", uuid)
    return family


def end(tx: Transaction, locked: Locks, family: Family, ends: Mapping[str, End], now: int) -> Aftermath:
    """Let agents die, and carry out what that means for those below them.

    Args:
        tx: a transaction that holds the tree.
        locked: takes the rows that are locked here.
        family: the agents around them, see `household` and `branch`.
        ends: why each dies, leaves first. None of them is agent 0 or dead.
        now: milliseconds since 1970.
    """
    decisions = decide({uuid: one.member for uuid, one in family.items()}, ends.keys())
    inherited = {
        one.agent: End(Cause.ORPHANED, _orphaned(family[one.agent])) for one in decisions if isinstance(one, Kill)
    }
    dead = {**inherited, **ends}
    adopted = {one.agent: one.by for one in decisions if isinstance(one, Adopt)}
    paused = [one.agent for one in decisions if isinstance(one, Pause)]
    heirs = {uuid: _heir(family, dead, uuid) for uuid in dead}
    locked.take(tx, {*dead, *adopted, *adopted.values(), *heirs.values()})
    _bury(tx, dead, now)
    for uuid, why in dead.items():
        deliver(tx, locked, heirs[uuid], uuid, _obituary(why), now, EXIT)
    for heir in dict.fromkeys(adopted.values()):
        tx.run("adopt", by=heir, uuids=[child for child, by in adopted.items() if by == heir])
    if paused:
        tx.run("set_status", uuids=paused, status=Status.STOPPED.value, deadline=None, reason=None)
    return Aftermath(dead, dict.fromkeys(paused, Status.STOPPED))


class SendSignal:
    """A signal; answered with its `Aftermath`.

    Raises:
        AgentNotFound, AgentDead: there is nobody to hit.
        AgentStopped: the agent is terminating and cannot be paused.
        RootProtected: agent 0 cannot be killed or terminated.
    """

    __slots__ = ("_deadline", "_handled", "_now", "_reason", "_sender", "_signal", "_spread", "_target")

    alone = True
    changes_tree = True
    touches: tuple[str, ...] = ()

    def __init__(
        self,
        target: str,
        signal: Signal,
        now: int,
        *,
        spread: bool = False,
        sender: str | None = None,
        reason: str = "",
        grace: int = 30_000,
        handled: bool = False,
    ) -> None:
        """Make a signal.

        Args:
            target: whom it hits, by uuid.
            signal: what is done to it.
            now: milliseconds since 1970.
            spread: it hits all descendants too.
            sender: the agent that sends it; None is a person.
            reason: why; it stands in the registry when somebody dies of it.
            grace: milliseconds after which TERM becomes KILL.
            handled: the sender is the host itself, and carries it out.
        """
        self._target, self._signal, self._now = target, signal, now
        self._spread, self._sender, self._reason = spread, sender, reason
        self._deadline = now + grace if signal is Signal.TERM else None
        self._handled = handled

    def write(self, tx: Transaction, locked: Locks) -> Aftermath:
        """See `Unit.write`."""
        family = (branch if self._spread else household)(tx, self._target)
        top = family[self._target]
        told = outcome_of(Status(top.status), self._signal, protected=top.parent is None)
        if isinstance(told, Refused):
            raise _refusal(top, told.refusal)
        hit = self._hit(family)
        done = self._carry_out(tx, locked, family, hit)
        self._record(tx, top)
        if hit:
            return done
        return Aftermath(ignored=told.reason if not isinstance(told, Delivered) else "")

    def _hit(self, family: Family) -> dict[str, Status]:
        """Who is hit, leaves first, and what becomes of each."""
        if self._spread:
            above = {uuid: one.supervisor for uuid, one in family.items()}
            order: Sequence[str] = cascade(self._target, above)
        else:
            order = [self._target]
        hit = {}
        for uuid in order:
            one = family[uuid]
            told = outcome_of(Status(one.status), self._signal, protected=one.parent is None)
            if isinstance(told, Delivered):
                hit[uuid] = told.status
        return hit

    def _carry_out(self, tx: Transaction, locked: Locks, family: Family, hit: Mapping[str, Status]) -> Aftermath:
        cause = Cause.TERMINATED if self._signal is Signal.TERM else Cause.KILLED
        why = End(cause, self._reason or f"{self._signal} by {self._sender or 'a person'}", self._sender)
        dying = {uuid: why for uuid, status in hit.items() if status is Status.DEAD}
        done = end(tx, locked, family, dying, self._now) if dying else Aftermath()
        status = {uuid: to for uuid, to in hit.items() if uuid not in done.dead and to != family[uuid].status}
        if status:
            locked.take(tx, status)
            to = next(iter(set(status.values())))  # a signal leads the living to one status
            reason = why.reason if to is Status.TERMINATING else None
            tx.run("set_status", uuids=list(status), status=to.value, deadline=self._deadline, reason=reason)
        return Aftermath(done.dead, {**done.status, **status}, reason=why.reason)

    def _record(self, tx: Transaction, top: Relative) -> None:
        tx.run(
            "add_signal",
            agent=self._target,
            signal=self._signal.value,
            spread=int(self._spread),
            turn=top.turn,
            sender=self._sender,
            reason=self._reason,
            now=self._now,
            handled=self._now if self._handled else None,
        )


@dataclass(frozen=True, slots=True)
class KillByAgent:
    """An agent kills another one, that it names; answered with the `Aftermath`. Raises as `SendSignal` does, and

    BadInput: that is the agent itself, or somebody above it.
    """

    target: str
    sender: str
    now: int
    reason: str
    spread: bool

    alone = True
    changes_tree = True
    touches = ()

    def write(self, tx: Transaction, locked: Locks) -> Aftermath:
        """See `Unit.write`."""
        target = find(tx, self.target).uuid
        if target == self.sender:
            raise BadInput("That is you. Use exit to end yourself.")
        if target in {row[0] for row in tx.run("supervisors_of", uuid=self.sender)}:
            raise BadInput(f"Agent {target} is above you: only a person ends it. Send it a mail, or exit.")
        signal = SendSignal(
            target, Signal.KILL, self.now, spread=self.spread, sender=self.sender, reason=self.reason, handled=True
        )
        return signal.write(tx, locked)


@dataclass(frozen=True, slots=True)
class Bury:
    """The death of one agent that no signal asked for; answered with its `Aftermath`.

    Raises:
        AgentNotFound, AgentDead: there is nobody to bury.
        RootProtected: agent 0 cannot die.
        Fenced: another host owns the agent, and decides on it.
    """

    uuid: str
    host: str
    reason: str
    now: int
    cause: Cause = Cause.DAMAGED

    alone = True
    changes_tree = True
    touches = ()

    def write(self, tx: Transaction, locked: Locks) -> Aftermath:
        """See `Unit.write`."""
        family = household(tx, self.uuid)
        victim = family[self.uuid]
        told = outcome_of(Status(victim.status), Signal.KILL, protected=victim.parent is None)
        if isinstance(told, Refused):
            raise _refusal(victim, told.refusal)
        if victim.owner != self.host:
            raise Fenced(f"Agent {self.uuid} belongs to another host by now, which decides on it.", self.uuid)
        return end(tx, locked, family, {self.uuid: End(self.cause, self.reason)}, self.now)


def _family(tx: Transaction, query: str, uuid: str) -> Family:
    """Rows in order of creation: fork points of one parent always grow, creation times can be equal."""
    rows = {row[0]: Relative(*row) for found in (query, "supervisors_of") for row in tx.run(found, uuid=uuid)}
    return dict(sorted(rows.items(), key=lambda pair: (pair[1].created_at, pair[1].fork)))


def _heir(family: Family, dead: Mapping[str, End], uuid: str) -> str:
    """The nearest survivor above an agent. Agent 0, which never dies, where damaged rows run in a circle."""
    above, seen = family[uuid].supervisor, {uuid}
    while above is not None and above in family and above not in seen:
        if above not in dead and family[above].status != Status.DEAD:
            return above
        seen.add(above)
        above = family[above].supervisor
    return next(other for other, one in family.items() if one.parent is None)


def _bury(tx: Transaction, dead: Mapping[str, End], now: int) -> None:
    """Who dies for the same reason is one statement."""
    alike: dict[End, list[str]] = {}
    for uuid, why in dead.items():
        alike.setdefault(why, []).append(uuid)
    for why, uuids in alike.items():
        tx.run("bury", uuids=uuids, cause=why.cause.value, sender=why.sender, reason=why.reason, now=now)


def _obituary(why: End) -> str:
    """The body of the exit mail: what an agent that exited had to say, or how it died."""
    if why.cause is Cause.EXITED:
        return why.reason
    return f"{why.cause}: {why.reason}"


def _orphaned(one: Relative) -> str:
    return f"its supervisor {one.supervisor} died, and takes those with it that it looks after"


def _refusal(one: Relative, refusal: Refusal) -> AgentDead | AgentStopped | RootProtected:
    kinds: Mapping[Refusal, type[AgentDead | AgentStopped | RootProtected]] = {
        Refusal.DEAD: AgentDead,
        Refusal.TERMINATING: AgentStopped,
        Refusal.PROTECTED: RootProtected,
    }
    return kinds[refusal](f"Agent {one.uuid} takes no such signal: {refusal}.", one.uuid)
