"""Signals, as all verbs, acts and front ends send them.

INT is sent by the agent's handle, because the process that runs the agent ends the turn; other signals are one unit.
"""

from typing import TYPE_CHECKING, NamedTuple

from supervisors.signals import Signal

if TYPE_CHECKING:
    from ikigai_actors.records.lives.deaths import LifecycleChange
    from ikigai_actors.system.handles.ref import AgentRef

TERM_SECONDS = 30.0
"""Seconds after which TERM becomes KILL."""


class SignalEffect(NamedTuple):
    """The effect of a signal: whether it changed anything, and the agents that died."""

    effect: bool
    """Whether the signal changed anything."""
    dead: tuple[str, ...] = ()
    """The uuids of the agents that died of it, leaves first."""


def send_signal(
    agent: "AgentRef", sent: Signal, *, cascade: bool = False, reason: str = "", grace: float = TERM_SECONDS
) -> SignalEffect:
    """Send a signal, and wait for its commit. Arguments and errors are those of `AgentRef.signal`."""
    if sent is Signal.INT:
        return SignalEffect(agent.signal(sent, cascade=cascade, reason=reason))

    def made(change: "LifecycleChange") -> SignalEffect:
        return SignalEffect(not change.ignored, tuple(change.dead))

    lifecycle = agent.system._lifecycle
    return lifecycle.signal(agent.uuid, sent, made, cascade=cascade, reason=reason, grace=grace).get()


def interrupt_turn(agent: "AgentRef") -> None:
    """Send INT to an agent, so that its turn ends soon; never waits."""
    agent.aio.signal(Signal.INT)
