"""What an agent's actor is told beside the machine's events, which are in events.py."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from ikigai_actors.actors.futures import Future
from ikigai_actors.agent.turn.state import LifecycleState
from ikigai_actors.errors import IkigaiError
from ikigai_actors.records.log import Log
from supervisors.signals import Status


@dataclass(frozen=True, slots=True)
class LogRead:
    """The log was read."""

    log: Log


@dataclass(frozen=True, slots=True)
class LoadFailed:
    """The log could not be read: the agent's rows are wrong, or the store did not answer."""

    error: IkigaiError


@dataclass(frozen=True, slots=True)
class GoOn:
    """Look again at what waits: the host may act again."""


@dataclass(frozen=True, slots=True)
class NewMail:
    """Mail has come, of which the agent is to be told when it is idle."""


@dataclass(frozen=True, slots=True)
class Buried:
    """The registry says that the agent is dead."""

    epitaph: str
    """How it died."""


@dataclass(frozen=True, slots=True)
class Crashed:
    """The agent's own code failed while it answered."""

    request: int
    error: Exception


@dataclass(frozen=True, slots=True)
class Cut:
    """A sibling's restart takes the agent along, or its supervisor gave up: forget everything, and be made anew."""

    done: Future[None]
    """Answered when it is."""


class Restarted(NamedTuple):
    """The supervisor has decided: the agent goes on."""

    turn: int
    """The turn in progress, by the message that opened it; 0 when idle."""
    status: Status
    """How it stands in the registry by now."""
    poison: str = ""
    """Why that turn is closed instead of resumed."""
    attempt: int = 1
    """Which attempt this is: a log that cannot be read now is read later."""


@dataclass(frozen=True, slots=True)
class Remains:
    """What an actor that died leaves to the one that takes its place."""

    head: int
    turn: int
    standing: LifecycleState
    callers: tuple[Any, ...] = ()
    """Who waits for the outcome of the turn in progress."""
    commands: tuple[Any, ...] = ()
    """What waits for the end of that turn."""
