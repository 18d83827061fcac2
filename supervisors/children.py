"""Children: the agents that a supervisor supervises, and what the end of one means.

By restart type and end:

                 crashed    exited     any other cause
    permanent    restart    restart    bury
    transient    restart    bury       bury
    temporary    bury       bury       bury
"""

from enum import StrEnum
from typing import NamedTuple

from supervisors.causes import Cause


class RestartType(StrEnum):
    """The restart type of a child: after which causes its supervisor restarts it."""

    PERMANENT = "permanent"
    """A crash or an exit."""
    TRANSIENT = "transient"
    """A crash."""
    TEMPORARY = "temporary"
    """No end."""


class SupervisedChild(NamedTuple):
    """An agent as its supervisor sees it."""

    agent: str
    restart: RestartType = RestartType.TRANSIENT


def is_restarted(restart: RestartType, cause: Cause) -> bool:
    """Whether an agent of this type is restarted after this end; it is buried otherwise."""
    match restart, cause:
        case RestartType.PERMANENT, Cause.CRASHED | Cause.EXITED:
            return True
        case RestartType.TRANSIENT, Cause.CRASHED:
            return True
        case _:
            return False
