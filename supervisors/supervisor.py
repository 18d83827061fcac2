"""Supervisor: what it does about each event of its children. The semantics are those of OTP's ``supervisor``.

    exited       a child has ended               ─> Bury it, or restart it: Stop and Start, by the strategy
    unstarted    a child has failed to start     ─> Retry: after a while it has `exited` by a crash once more

Each is a pure function that gives the supervisor after the event, and the decisions, to be carried out in order. A
failed start is counted like every restart, because its retry is one.

A restart that the intensity does not allow makes the supervisor give up: its children are stopped, the last one first,
and it has crashed itself, which is an `exited` for *its* supervisor. So trouble climbs, until a restart cures it or it
reaches agent 0: agent 0 cannot crash, and buries only the failing child.

A `Supervisor` holds the data of the registry and the restarts of the last period; nothing else is remembered. Every
event is linear in the children.

A database that is down is neither an end nor a failed start: the caller waits for it before it carries the decisions
out. So an outage uses up no restarts and buries no agent.

Two things differ from OTP. A child that ends without a restart is no longer a child (OTP keeps a transient one's
specification, and starts it again with its siblings). And a failed restart is retried after a while, not at once.
"""

from dataclasses import dataclass, replace

from supervisors.causes import Cause
from supervisors.children import RestartType, SupervisedChild, is_restarted
from supervisors.intensity import DEFAULT_INTENSITY, DEFAULT_PERIOD, add_restart, backoff
from supervisors.strategies import Strategy, plan


@dataclass(frozen=True, slots=True)
class Supervisor:
    """An agent as the supervisor of its children. Raises `ValueError` for settings that make no sense."""

    children: tuple[SupervisedChild, ...] = ()
    """The living ones, in order."""
    strategy: Strategy = Strategy.ONE_FOR_ONE
    intensity: int = DEFAULT_INTENSITY
    """How many restarts are allowed within a period; at 0 the first crash is one too many."""
    period: int = DEFAULT_PERIOD
    """Milliseconds."""
    restarts: tuple[int, ...] = ()
    """When it restarted children, in milliseconds; at least the restarts of the last period."""
    protected: bool = False
    """Whether it is agent 0, which cannot crash."""

    def __post_init__(self) -> None:
        if self.intensity < 0:
            raise ValueError(f"Expected an intensity of 0 restarts or more, got: {self.intensity}.")
        if self.period <= 0:
            raise ValueError(f"Expected a period of 1 millisecond or more, got: {self.period}.")


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop a child: its work is cancelled, and its state is dropped. The child lives, and is started again."""

    agent: str


@dataclass(frozen=True, slots=True)
class Start:
    """Start children in order from their logs; they resume open turns, except poison (`supervisors.intensity`).

    A paused child stays paused. The event `unstarted` follows for each that fails.
    """

    children: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Retry:
    """The start of the child is tried again after this many milliseconds: it has `exited` by a crash then."""

    agent: str
    after: int


@dataclass(frozen=True, slots=True)
class Bury:
    """The child is dead by this cause; its orphan policy applies to those below it."""

    agent: str
    cause: Cause


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The supervisor has crashed; its children are stopped in this order, until it is restarted or buried."""

    children: tuple[str, ...]


Decision = Stop | Start | Retry | Bury | GiveUp
Decided = tuple[Supervisor, tuple[Decision, ...]]
"""The supervisor after an event, and what to carry out, in order."""


def exited(supervisor: Supervisor, agent: str, cause: Cause, now: int) -> Decided:
    """A child has ended. An agent that is not (or no longer) its child changes nothing.

    Args:
        supervisor: the supervisor before the event.
        agent: the agent that has ended.
        cause: how it ended.
        now: milliseconds.
    """
    child = _child(supervisor, agent)
    if child is None:
        return supervisor, ()
    if is_restarted(child.restart, cause):
        return _restart(supervisor, child, now)
    return _bury(supervisor, child, cause)


def unstarted(supervisor: Supervisor, agent: str) -> Decided:
    """Retry a child that has failed to start, after a wait that grows with the number of restarts.

    A temporary child is never started again.
    """
    child = _child(supervisor, agent)
    if child is None:
        return supervisor, ()
    if child.restart is RestartType.TEMPORARY:
        return _bury(supervisor, child, Cause.CRASHED)
    return supervisor, (Retry(agent, backoff(len(supervisor.restarts))),)


def _restart(supervisor: Supervisor, child: SupervisedChild, now: int) -> Decided:
    """Restart a child and the siblings that the strategy takes along, or give up."""
    restarts = add_restart(supervisor.restarts, now, supervisor.intensity, supervisor.period)
    if restarts is None:
        return _bury(supervisor, child, Cause.GAVE_UP) if supervisor.protected else _give_up(supervisor)
    stop, start = plan(supervisor.strategy, supervisor.children, child)
    lost = {member.agent for member in stop} - {member.agent for member in start}
    after = replace(
        supervisor, children=tuple(other for other in supervisor.children if other.agent not in lost), restarts=restarts
    )
    stops = (Bury(member.agent, Cause.TERMINATED) if member.agent in lost else Stop(member.agent) for member in stop)
    return after, (*stops, Start(tuple(member.agent for member in start)))


def _bury(supervisor: Supervisor, child: SupervisedChild, cause: Cause) -> Decided:
    """Bury a child: return the supervisor without it, and the decision."""
    children = tuple(other for other in supervisor.children if other != child)
    return replace(supervisor, children=children), (Bury(child.agent, cause),)


def _give_up(supervisor: Supervisor) -> Decided:
    """Stop all children, the last one first, and crash. A supervisor that is restarted counts its restarts from 0."""
    return replace(supervisor, restarts=()), (GiveUp(tuple(child.agent for child in reversed(supervisor.children))),)


def _child(supervisor: Supervisor, agent: str) -> SupervisedChild | None:
    return next((child for child in supervisor.children if child.agent == agent), None)
