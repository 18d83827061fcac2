"""What an agent's actor is told beside the machine's events, which are in events.py."""

from dataclasses import dataclass

from ikigai_actors.errors import IkigaiError
from ikigai_actors.log import Log


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
class Buried:
    """The registry says that the agent is dead."""
