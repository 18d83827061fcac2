"""Supervisor: what it does about each event of its children. The semantics are those of OTP's ``supervisor``.

    exited       a child has ended                      ─> Bury it, or restart it: Stop and Start, by the strategy
    unstarted    a child has failed to start            ─> Retry after a while
    retry        that while is over                     ─> a restart like the first, counted like the first
    started      children have started
    restarted    the supervisor itself was restarted    ─> Start every child, in order

Each is a pure function that gives the supervisor after the event, and the decisions, to be carried out in order. When
one of the children of a `Start` fails to start, those behind it stay *down*, and come with the retry.

A restart that the intensity does not allow makes the supervisor give up: its children are stopped, the last one first,
and it has crashed itself, which is an `exited` for *its* supervisor. So trouble climbs, until somebody's restart cures
it or agent 0 is reached: agent 0 cannot crash, and buries the failing child alone.

Nothing is hidden: a `Supervisor` is what the registry and the restarts of the last period tell. Only who is down at the
moment lives in memory; after the end of a process nobody is, since everybody who lives comes back. Every event is
linear in the children; where they end for good by the thousands, ask `is_restarted` first.

What differs from OTP: a child that ends without a restart is no longer a child (OTP keeps a transient one's
specification, and starts it again with its siblings); a failed restart is retried after a while, not at once; when a
child that would be retried is buried, the siblings that are down behind it are started, since they live.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from supervisors.causes import Cause
from supervisors.children import Child, RestartType, is_restarted
from supervisors.intensity import INTENSITY, PERIOD, add_restart, backoff
from supervisors.strategies import Strategy, plan


@dataclass(frozen=True, slots=True)
class Supervisor:
    """An agent as the one who looks after its children. Raises ValueError for settings that make no sense."""

    children: tuple[Child, ...] = ()
    """The living ones, in order."""
    strategy: Strategy = Strategy.ONE_FOR_ONE
    intensity: int = INTENSITY
    """How many restarts are allowed within a period; at 0 the first crash is one too many."""
    period: int = PERIOD
    """Milliseconds."""
    restarts: tuple[int, ...] = ()
    """When it restarted children: milliseconds, at least those of the last period."""
    protected: bool = False
    """Whether it is agent 0, which cannot crash."""
    down: frozenset[str] = frozenset()
    """The children that live but do not run: their start is under way, has failed, or is behind one that has."""
    retrying: frozenset[str] = frozenset()
    """Those of them whose start has failed, and is tried again."""

    def __post_init__(self) -> None:
        if self.intensity < 0:
            raise ValueError(f"Expected an intensity of 0 restarts or more, got: {self.intensity}.")
        if self.period <= 0:
            raise ValueError(f"Expected a period of 1 millisecond or more, got: {self.period}.")


@dataclass(frozen=True, slots=True)
class Stop:
    """The child is cut: its work is cancelled, its state thrown away. It lives, and is started again."""

    agent: str


@dataclass(frozen=True, slots=True)
class Start:
    """Children are replayed, one after another, and resume their open turns (unless poison: `supervisors.intensity`).

    It ends with the first that fails. A child that is being started already is left to that; a paused one stays paused.
    """

    children: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Retry:
    """The child's start is tried again: `retry` is due after so many milliseconds."""

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


def exited(supervisor: Supervisor, agent: str, end: Cause, now: int) -> Decided:
    """A child has ended. One that is not (or no longer) its child changes nothing.

    Args:
        supervisor: as it is.
        agent: who has ended.
        end: how.
        now: milliseconds.
    """
    child = _child(supervisor, agent)
    if child is None:
        return supervisor, ()
    if is_restarted(child.restart, end):
        return _restart(supervisor, child, now)
    return _bury(supervisor, child, end)


def unstarted(supervisor: Supervisor, agent: str) -> Decided:
    """A child has failed to start: it is tried again, the later the more restarts there were; a temporary never."""
    child = _child(supervisor, agent)
    if child is None:
        return supervisor, ()
    waiting = replace(supervisor, down=supervisor.down | {agent}, retrying=supervisor.retrying | {agent})
    if child.restart is RestartType.TEMPORARY:
        return _bury(waiting, child, Cause.CRASHED)
    return waiting, (Retry(agent, backoff(len(supervisor.restarts))),)


def retry(supervisor: Supervisor, agent: str, now: int) -> Decided:
    """It is time to try the start of a child again, unless it was started or buried meanwhile."""
    child = _child(supervisor, agent)
    if child is None or agent not in supervisor.retrying:
        return supervisor, ()
    return _restart(supervisor, child, now)


def started(supervisor: Supervisor, agents: Iterable[str]) -> Supervisor:
    """These children have started: they run."""
    up = frozenset(agents)
    return replace(supervisor, down=supervisor.down - up, retrying=supervisor.retrying - up)


def restarted(supervisor: Supervisor) -> Decided:
    """The supervisor was restarted after it gave up: it begins anew, with all its children in order."""
    agents = tuple(child.agent for child in supervisor.children)
    independent = supervisor.strategy is Strategy.ONE_FOR_ONE
    return _all_down(supervisor), tuple(Start((agent,)) for agent in agents) if independent else (Start(agents),)


def _restart(supervisor: Supervisor, child: Child, now: int) -> Decided:
    """Restart a child and whom the strategy takes along, or give up."""
    restarts = add_restart(supervisor.restarts, now, supervisor.intensity, supervisor.period)
    if restarts is None:
        return _bury(supervisor, child, Cause.GAVE_UP) if supervisor.protected else _give_up(supervisor)
    stop, start = plan(supervisor.strategy, supervisor.children, child)
    again = frozenset(one.agent for one in start)
    lost = {one.agent for one in stop} - again
    after = replace(
        supervisor,
        children=tuple(one for one in supervisor.children if one.agent not in lost),
        restarts=restarts,
        down=supervisor.down - lost | again,
        retrying=supervisor.retrying - again,
    )
    stops = (
        Bury(one.agent, Cause.TERMINATED) if one.agent in lost else Stop(one.agent)
        for one in stop
        if one.agent in lost or one.agent not in supervisor.down
    )
    return after, (*stops, Start(tuple(one.agent for one in start)))


def _bury(supervisor: Supervisor, child: Child, cause: Cause) -> Decided:
    """Let go of a child; whoever is down behind it need not wait for it any more."""
    gone = {child.agent}
    after = replace(
        supervisor,
        children=tuple(one for one in supervisor.children if one != child),
        down=supervisor.down - gone,
        retrying=supervisor.retrying - gone,
    )
    released = after.down - after.retrying if child.agent in supervisor.retrying else frozenset()
    behind = tuple(one.agent for one in after.children if one.agent in released)
    return after, (Bury(child.agent, cause), Start(behind)) if behind else (Bury(child.agent, cause),)


def _give_up(supervisor: Supervisor) -> Decided:
    """Stop all children, the last one first, and crash."""
    return _all_down(supervisor), (GiveUp(tuple(child.agent for child in reversed(supervisor.children))),)


def _all_down(supervisor: Supervisor) -> Supervisor:
    agents = frozenset(child.agent for child in supervisor.children)
    return replace(supervisor, restarts=(), down=agents, retrying=frozenset())


def _child(supervisor: Supervisor, agent: str) -> Child | None:
    return next((child for child in supervisor.children if child.agent == agent), None)
