"""The stored part of supervision: restarts, supervisors that gave up, and adoptions.

Each restart has a row. So a crash loses neither the count of a supervisor's restarts nor that of a turn's crashes.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ikigai_actors.errors import AgentError, BadInput
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.former import keep_statuses, keep_supervision, keep_supervisors
from ikigai_actors.records.lives.deaths import LifecycleChange
from ikigai_actors.records.lives.groups import gather
from ikigai_actors.store.base import Row, Transaction
from ikigai_actors.store.unit import LockedRows, TreeLock, Unit
from supervisors.signals import Status
from supervisors.strategies import Strategy

GAVE_UP = "gave up"
"""The reason in the row of an agent that is stopped because its supervisor gave up."""


class Recorded(NamedTuple):
    """The state after a restart: the open turn of the restarted agent, and the crashes of that turn."""

    turn: int
    """The id of the message that opened the turn in progress; 0 when no turn is open."""
    status: Status
    crashes: int
    """How many times that turn has crashed the agent, this time included."""


class KnownRestarts(NamedTuple):
    """The restarts of a supervisor's children that a decision about another restart has counted."""

    since: int
    """The time from which on they count, in milliseconds since 1970."""
    times: tuple[int, ...]
    """The times of restarts, as `restarts_of` returns them."""


class RestartsChanged(AgentError):
    """The error when another host has restarted a child of the supervisor since the decision. Nothing was written.

    The caller decides again.
    """


@dataclass(frozen=True, slots=True)
class RecordRestart(Unit):
    """Record that an agent is restarted; answered with `Recorded`. Siblings restarted together with it do not count.

    Raises `AgentDead`, `AgentNotFound`, `RestartsChanged`.
    """

    agent: str
    supervisor: str
    failed: bool
    """Whether the agent itself had failed, so the restart counts."""
    crashed: bool
    """Whether it failed in its turn. False when it failed before it could resume the turn."""
    reason: str
    now: int
    known: KnownRestarts | None = None
    """The counted restarts at the decision; None restarts the agent in any case."""

    @property
    def touches(self) -> tuple[str, ...]:
        """Return the agent, and also its supervisor if the number of restarts is limited.

        The row of the supervisor is locked because its children may fail on several hosts at once.
        """
        return (self.agent,) if self.known is None else (self.agent, self.supervisor)

    def write(self, tx: Transaction, locked: LockedRows) -> Recorded:
        locked.living(self.agent)
        if self.known is not None and restarts_of(tx, self.supervisor, self.known.since) != self.known.times:
            raise RestartsChanged(f"Supervisor {self.supervisor} has counted another restart.", self.supervisor)
        [(turn,)] = tx.run("turn_of", uuid=self.agent)
        if self.failed:
            tx.run(
                "add_restart",
                agent=self.agent,
                supervisor=self.supervisor,
                turn=turn if self.crashed else 0,
                reason=self.reason,
                now=self.now,
            )
        [(crashes,)] = tx.run("crashes_of_turn", agent=self.agent, turn=turn)
        return Recorded(turn, Status(locked[self.agent].status), crashes)


@dataclass(frozen=True, slots=True)
class StopChildren(Unit):
    """Stop the children of a supervisor that gave up, in reverse order.

    Answered with the `LifecycleChange`.
    """

    supervisor: str
    now: int

    alone = True
    tree = TreeLock.WHOLE
    concerns_others = True

    def write(self, tx: Transaction, locked: LockedRows) -> LifecycleChange:
        children = reversed(registry.living_children(tx, self.supervisor))
        stopped = [child.uuid for child in children if child.status == Status.RUNNING]
        if stopped:
            locked.lock(tx, stopped)
            keep_statuses(tx, stopped, self.now)
            tx.run("set_status", uuids=stopped, status=Status.STOPPED.value, deadline=None, reason=GAVE_UP)
        return LifecycleChange(status=dict.fromkeys(stopped, Status.STOPPED))


@dataclass(frozen=True, slots=True)
class Revive(Unit):
    """Continue all agents that were stopped because this supervisor, or one below it, gave up.

    The host commits this after a restart of the supervisor. Answered with the `LifecycleChange`.
    """

    supervisor: str
    now: int

    alone = True
    tree = TreeLock.WHOLE
    concerns_others = True

    def write(self, tx: Transaction, locked: LockedRows) -> LifecycleChange:
        return _continue(tx, locked, tx.run("those_that_gave_up", top=self.supervisor), self.now)


@dataclass(frozen=True, slots=True)
class ReviveAll(Unit):
    """Continue the agents in a host's shards that stopped because their supervisor gave up, if it is running again.

    A host that has taken shards commits this: their earlier host may have ended between the giving up and the restart.
    Answered with the `LifecycleChange`.
    """

    host: str
    now: int

    alone = True
    tree = TreeLock.WHOLE
    concerns_others = True

    def write(self, tx: Transaction, locked: LockedRows) -> LifecycleChange:
        return _continue(tx, locked, tx.run("all_that_gave_up", host=self.host), self.now)


@dataclass(frozen=True, slots=True)
class SetSupervision(Unit):
    """Change how an agent supervises its children; None leaves a setting as it is.

    Raises `AgentDead`, `AgentNotFound`.
    """

    agent: str
    now: int
    strategy: str | None = None
    intensity: int | None = None
    period: int | None = None
    """The period in milliseconds."""
    policy: str | None = None
    """The orphan policy."""

    locks = ("agent",)

    def write(self, tx: Transaction, locked: LockedRows) -> None:
        locked.living(self.agent)
        keep_supervision(tx, self.agent, self.now)
        tx.run(
            "set_supervision",
            uuid=self.agent,
            strategy=self.strategy,
            intensity=self.intensity,
            period=self.period,
            policy=self.policy,
        )


class SetGroupSupervision(SetSupervision):
    """Make an agent restart its children together, and move them to its shard.

    Raises `AgentDead`, `AgentNotFound`, and `BadInput` when a child lives on another host.
    """

    __slots__ = ()

    alone = True
    tree = TreeLock.WHOLE

    def write(self, tx: Transaction, locked: LockedRows) -> None:
        locked.living(self.agent)
        gather(tx, locked, self.agent, [child.uuid for child in registry.living_children(tx, self.agent)])
        super().write(tx, locked)


@dataclass(frozen=True, slots=True)
class AdoptChild(Unit):
    """Make a living agent the supervisor of another one. Lineage does not change.

    The adopted agent goes on if the death of its supervisor had paused it.

    Raises:
        AgentNotFound, AgentDead: one of the two is no living agent.
        BadInput: the adopter is the other agent, or is below it; or it restarts its children together, and the
            other one lives on another host.
        RootProtected: agent 0 cannot be adopted.
    """

    agent: str
    by: str
    now: int

    alone = True
    tree = TreeLock.WHOLE
    concerns_others = True

    def write(self, tx: Transaction, locked: LockedRows) -> LifecycleChange:
        above = {self.by, *(row[0] for row in tx.run("supervisors_of", uuid=self.by))}
        locked.lock(tx, (self.agent, self.by))
        for uuid in (self.agent, self.by):
            locked.living(uuid)
        if self.agent in above:
            name = registry.shown_name_of(tx, self.agent)
            if self.agent == self.by:
                raise BadInput(f"Agent {name} cannot adopt itself: no agent is below itself.")
            raise BadInput(
                f"Agent {name} is above agent {registry.shown_name_of(tx, self.by)}: no agent is below itself."
            )
        if registry.get(tx, self.by).strategy != Strategy.ONE_FOR_ONE:
            gather(tx, locked, self.by, [self.agent])
        keep_supervisors(tx, [self.agent], self.by, self.now)
        tx.run("adopt", by=self.by, uuids=[self.agent], gave_up=None)
        if locked[self.agent].status != Status.STOPPED:
            return LifecycleChange()
        keep_statuses(tx, [self.agent], self.now)
        tx.run("set_status", uuids=[self.agent], status=Status.RUNNING.value, deadline=None, reason=None)
        return LifecycleChange(status={self.agent: Status.RUNNING})


def _continue(tx: Transaction, locked: LockedRows, rows: Sequence[Row], now: int) -> LifecycleChange:
    children = [uuid for (uuid,) in rows]
    if children:
        locked.lock(tx, children)
        keep_statuses(tx, children, now)
        tx.run("set_status", uuids=children, status=Status.RUNNING.value, deadline=None, reason=None)
    return LifecycleChange(status=dict.fromkeys(children, Status.RUNNING))


def restarts_of(tx: Transaction, supervisor: str, since: int) -> tuple[int, ...]:
    """Return the times at which a supervisor has restarted children, in milliseconds since 1970.

    Only restarts after ``since`` and after the supervisor's own latest restart count.
    """
    return tuple(time for (time,) in tx.run("restarts_of", supervisor=supervisor, since=since))


def times_restarted(tx: Transaction, agent: str) -> int:
    """Return how many times an agent was ever restarted."""
    [(times,)] = tx.run("restarts_of_agent", agent=agent)
    return int(times)


def restart_counts(tx: Transaction, uuids: Collection[str]) -> dict[str, int]:
    """Return how many times each of these agents was restarted, by uuid. Agents without restarts are left out."""
    return dict(tx.run("restart_counts", uuids=list(uuids)))
