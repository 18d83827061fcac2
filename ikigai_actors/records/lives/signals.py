"""Signals as units: a row in ``signals`` and, in the same transaction, the effects on agents.

A signal changes the registry first, so any process on the database can send it. Then the host that runs the agents
stops or ends their actors: at once if the host sent the signal itself (the unit's answer names the agents), else when
it reads the changes of the registry (`ikigai_actors.records.hosts.changes`). The module `deaths` explains the locks,
and why no descendant escapes a cascade.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ikigai_actors.arguments import check_seconds
from ikigai_actors.errors import BadInput
from ikigai_actors.records.agents.former import keep_statuses
from ikigai_actors.records.agents.registry import find
from ikigai_actors.records.agents.words import called
from ikigai_actors.records.lives.deaths import (
    Doomed,
    Family,
    LifecycleChange,
    Relative,
    branch,
    doomed_by,
    end_agents,
    end_branch,
    hosts_of,
    household,
    refusal_of,
    way_up,
)
from ikigai_actors.records.lives.exit_mails import End
from ikigai_actors.store.asker import current_principal
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import LockedRows, TreeLock, Unit
from supervisors.causes import Cause
from supervisors.signals import Delivered, Rejected, Signal, Status, cascade, deliver


class SendSignal(Unit):
    """Record a signal and its effects on agents; answered with its `LifecycleChange`.

    Raises:
        AgentNotFound, AgentDead: there is no such living agent.
        AgentStopped: the agent is terminating and cannot be paused.
        RootProtected: agent 0 cannot be killed or terminated.
    """

    __slots__ = ("_deadline", "_host", "_now", "_reason", "_sender", "_signal", "_spread", "_target", "_turn")

    alone = True
    tree = TreeLock.WHOLE
    concerns_others = True

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
        host: str | None = None,
        turn: int = 0,
    ) -> None:
        """Make a signal.

        Args:
            target: the uuid of the agent that it hits.
            signal: the signal.
            now: milliseconds since 1970.
            spread: whether it hits all descendants too.
            sender: the uuid of the agent that sends it; None is a person.
            reason: why; the registry shows it for every agent that dies of the signal.
            grace: milliseconds after which TERM becomes KILL.
            host: the host that sends it, which interrupts its own agents itself; None for a process that runs no
                agents.
            turn: for INT: the turn to end; 0 for the turn in progress, or the turn of the oldest prompt.
        """
        self._target, self._signal, self._now = target, signal, now
        self._spread, self._sender, self._reason = spread, sender, reason
        self._deadline = now + grace if signal is Signal.TERM else None
        self._host, self._turn = host, turn

    def write(self, tx: Transaction, locked: LockedRows) -> LifecycleChange:
        if self._spread and self._signal is Signal.KILL and (doomed := doomed_by(tx, self._target)) is not None:
            return self._end_branch(tx, locked, doomed)
        family = (branch if self._spread else household)(tx, self._target)
        top = family[self._target]
        delivered = deliver(top.status, self._signal, protected=top.parent is None)
        if isinstance(delivered, Rejected):
            raise refusal_of(top, delivered.refusal)
        hit = self._hit(family)
        done = self._carry_out(tx, locked, family, hit)
        self._record(tx, locked)
        if hit:
            return done
        return LifecycleChange(ignored=delivered.reason if not isinstance(delivered, Delivered) else "")

    def _end_branch(self, tx: Transaction, locked: LockedRows, doomed: Doomed) -> LifecycleChange:
        """Kill the agent and all its descendants.

        `_carry_out` calls this if none of them survives, because it reads less.
        """
        family = way_up(tx, self._target)
        top = family[self._target]
        delivered = deliver(top.status, self._signal, protected=top.parent is None)
        if isinstance(delivered, Rejected):
            raise refusal_of(top, delivered.refusal)
        why = End(Cause.KILLED, self._reason or f"{self._signal} by {self._by(family, doomed)}", self._sender)
        done = end_branch(tx, locked, family, doomed, self._target, why, self._now)
        self._record(tx, locked)
        return replace(done, reason=why.reason)

    def _hit(self, family: Family) -> dict[str, Status]:
        """Return the agents that the signal hits, leaves first, with the new status of each."""
        if self._spread:
            above = {uuid: relative.supervisor for uuid, relative in family.items()}
            order: Sequence[str] = cascade(self._target, above)
        else:
            order = [self._target]
        outcomes = {status: deliver(status, self._signal) for status in Status}
        becomes = {status: outcome.status for status, outcome in outcomes.items() if isinstance(outcome, Delivered)}
        return {uuid: becomes[status] for uuid in order if (status := family[uuid].status) in becomes}

    def _carry_out(
        self, tx: Transaction, locked: LockedRows, family: Family, hit: Mapping[str, Status]
    ) -> LifecycleChange:
        cause = Cause.TERMINATED if self._signal is Signal.TERM else Cause.KILLED
        why = End(cause, self._reason or f"{self._signal} by {self._by(family)}", self._sender)
        dying = [uuid for uuid, status in hit.items() if status is Status.DEAD]
        done = LifecycleChange()
        if dying:
            done = end_agents(tx, locked, family, dying, why, self._now, (self._target,))
        status = {uuid: to for uuid, to in hit.items() if uuid not in done.dead and to != family[uuid].status}
        if status:
            locked.lock(tx, (*status, self._target))
            to = next(iter(set(status.values())))  # a signal leads the living to one status
            reason = self._why(to, why, family)
            keep_statuses(tx, list(status), self._now)
            tx.run("set_status", uuids=list(status), status=to.value, deadline=self._deadline, reason=reason)
        if self._signal is Signal.INT:
            self._interrupt(tx, locked, [family[uuid] for uuid in hit])
        locked.lock(tx, (self._target,))  # it has changed nothing
        return replace(done, status={**done.status, **status}, reason=why.reason)

    def _interrupt(self, tx: Transaction, locked: LockedRows, hit: Sequence[Relative]) -> None:
        """Mark the open turns of agents without an actor on this host as interrupted, according to their locked rows.

        If an agent has no open turn, its oldest waiting prompt is marked, so the signal does not overtake that prompt.
        """
        hosts = hosts_of(tx, hit)
        remote = [relative.uuid for relative in hit if self._host is None or hosts.get(relative.shard) != self._host]
        # these have no actors
        parked = [uuid for (uuid,) in tx.run("parked_among", uuids=[relative.uuid for relative in hit])]
        remote = list(dict.fromkeys((*remote, *parked)))
        locked.lock(tx, (*remote, self._target))
        marked = [uuid for uuid in remote if locked[uuid].turn and self._turn in (0, locked[uuid].turn)]
        if between_turns := [uuid for uuid in remote if not (locked[uuid].turn or self._turn)]:
            marked += [uuid for (uuid,) in tx.run("interrupt_prompts", uuids=between_turns)]
        if marked:
            tx.run("interrupt", uuids=marked)
            tx.run("wake_parked", uuids=marked)

    def _by(self, family: Family, doomed: Doomed | None = None) -> str:
        if self._sender is None:
            return "a person"
        if doomed is not None and self._sender in doomed.names:
            return doomed.called(self._sender)
        return called(self._sender, family[self._sender].name if self._sender in family else None)

    def _why(self, status: Status, why: End, family: Family) -> str | None:
        """Return the reason that the registry shows for agents with this new status; None for no reason.

        The sender comes before the reason that it gave, so nobody mistakes the reason for one of the runtime's.
        """
        if status is Status.STOPPED:
            return f"STOP by {self._by(family)}" + (f": {self._reason}" if self._reason else "")
        return why.reason if status is Status.TERMINATING else None

    def _record(self, tx: Transaction, locked: LockedRows) -> None:
        """Write the row of the signal.

        Its turn comes from the locked row, since the turn may have opened just before.
        """
        tx.run(
            "add_signal",
            agent=self._target,
            signal=self._signal.value,
            spread=int(self._spread),
            turn=locked[self._target].turn,
            sender=self._sender,
            reason=self._reason,
            now=self._now,
            principal=current_principal(),
        )


def milliseconds(grace: float) -> int:
    """Convert a grace period in seconds to milliseconds. Raises `BadInput`."""
    return int(check_seconds(grace, "grace") * 1000)


@dataclass(frozen=True, slots=True)
class SignalByAgent(Unit):
    """Send a signal from one agent to another, which is named by a text; answered with the `LifecycleChange`.

    Raises the errors of `SendSignal`, and `BadInput` when the target is the sender itself, or is above it and would
    die.
    """

    target: str
    sender: str
    now: int
    reason: str
    spread: bool
    signal: Signal = Signal.KILL
    grace: int = 30_000
    """Milliseconds after which TERM becomes KILL."""

    alone = True
    tree = TreeLock.WHOLE
    concerns_others = True

    def write(self, tx: Transaction, locked: LockedRows) -> LifecycleChange:
        target = find(tx, self.target).uuid
        deadly = self.signal in (Signal.KILL, Signal.TERM)
        if target == self.sender:
            raise BadInput("That is you. Use exit to end yourself." if deadly else "That is you: signal others.")
        if deadly and target in {row[0] for row in tx.run("supervisors_of", uuid=self.sender)}:
            raise BadInput(f"Agent {target} is above you: only a person ends it. Send it a mail, or exit.")
        how: dict[str, Any] = {"spread": self.spread, "sender": self.sender, "reason": self.reason, "grace": self.grace}
        return SendSignal(target, self.signal, self.now, **how).write(tx, locked)
