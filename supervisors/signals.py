"""Signals: lifecycle control from outside. What each does to an agent, and which agents a cascade hits.

    running ──STOP──> stopped          running ──TERM──> terminating ──the turn ends──> dead
            <──CONT──                  stopped ──TERM──> dead
                                       anything that lives ──KILL──> dead

A signal is *delivered*; or *ignored*, because the agent is already as it asks; or *refused*. `TRANSITIONS` says which.
Agent 0 cannot be killed or terminated.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from supervisors.tree import Supervisors, top_down


class Signal(StrEnum):
    """A command to an agent from outside."""

    INT = "INT"
    """End the turn in progress now; the agent lives."""
    STOP = "STOP"
    """Pause after the current step; prompts and mail wait."""
    CONT = "CONT"
    """Go on."""
    TERM = "TERM"
    """Finish the turn in progress, then die."""
    KILL = "KILL"
    """Die at once."""


class Status(StrEnum):
    """The status of an agent in the registry."""

    RUNNING = "running"
    """The agent acts."""
    STOPPED = "stopped"
    """The agent is paused."""
    TERMINATING = "terminating"
    """The agent finishes its turn, then dies."""
    DEAD = "dead"
    """The agent never acts again."""


class Refusal(StrEnum):
    """The reason for refusing a signal; the value is a text for people."""

    DEAD = "it is dead already"
    TERMINATING = "it is terminating: it finishes its turn and dies; KILL ends it at once"
    PROTECTED = "it is agent 0, which cannot be killed or terminated"


@dataclass(frozen=True, slots=True)
class Delivered:
    """The signal takes effect."""

    status: Status
    """The agent's status from now on."""


@dataclass(frozen=True, slots=True)
class Ignored:
    """The signal changes nothing."""

    reason: str
    """Why, for a person."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """The signal cannot be obeyed; its sender gets the refusal."""

    refusal: Refusal


Outcome = Delivered | Ignored | Rejected

_RUNS, _PAUSED, _ENDING = Ignored("it runs"), Ignored("it is stopped already"), Ignored("it is terminating already")
_GONE = Rejected(Refusal.DEAD)

TRANSITIONS: Final[Mapping[tuple[Status, Signal], Outcome]] = {
    (Status.RUNNING, Signal.INT): Delivered(Status.RUNNING),
    (Status.RUNNING, Signal.STOP): Delivered(Status.STOPPED),
    (Status.RUNNING, Signal.CONT): _RUNS,
    (Status.RUNNING, Signal.TERM): Delivered(Status.TERMINATING),
    (Status.RUNNING, Signal.KILL): Delivered(Status.DEAD),
    (Status.STOPPED, Signal.INT): Delivered(Status.STOPPED),
    (Status.STOPPED, Signal.STOP): _PAUSED,
    (Status.STOPPED, Signal.CONT): Delivered(Status.RUNNING),
    (Status.STOPPED, Signal.TERM): Delivered(Status.DEAD),
    (Status.STOPPED, Signal.KILL): Delivered(Status.DEAD),
    (Status.TERMINATING, Signal.INT): Delivered(Status.TERMINATING),
    (Status.TERMINATING, Signal.STOP): Rejected(Refusal.TERMINATING),
    (Status.TERMINATING, Signal.CONT): _ENDING,
    (Status.TERMINATING, Signal.TERM): _ENDING,
    (Status.TERMINATING, Signal.KILL): Delivered(Status.DEAD),
    (Status.DEAD, Signal.INT): _GONE,
    (Status.DEAD, Signal.STOP): _GONE,
    (Status.DEAD, Signal.CONT): _GONE,
    (Status.DEAD, Signal.TERM): _GONE,
    (Status.DEAD, Signal.KILL): _GONE,
}
"""The effect of each signal on an agent of each status."""


def deliver(status: Status, signal: Signal, *, protected: bool = False) -> Outcome:
    """The effect of a signal on an agent.

    Args:
        status: the agent's status now.
        signal: what was sent.
        protected: whether it is agent 0.
    """
    if protected and signal in (Signal.TERM, Signal.KILL):
        return Rejected(Refusal.PROTECTED)
    return TRANSITIONS[status, signal]


def cascade(top: str, supervisors: Supervisors, dead: Set[str] = frozenset()) -> list[str]:
    """The agents that a signal to ``top`` and all its descendants hits, in the order in which their ends are reported.

    Leaves first, siblings in reverse order of creation: as OTP's supervisors shut down.

    Args:
        top: where the cascade begins.
        supervisors: every agent that may be below, with the dead through which the way to a living one leads.
        dead: the agents that are dead already, and are not hit again.
    """
    below = list(top_down(supervisors, (top,)))
    return [agent for agent in reversed(below) if agent not in dead]
