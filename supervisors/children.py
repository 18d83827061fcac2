"""Children: the agents that a supervisor looks after, and what the end of one means.

By restart type and end:

                 crash      exit       KILL, TERM, give-up, wrong rows, shutdown
    permanent    restart    restart    bury
    transient    restart    bury       bury
    temporary    bury       bury       bury
"""

from enum import StrEnum
from typing import NamedTuple


class RestartType(StrEnum):
    """Which ends of an agent its supervisor answers with a restart."""

    PERMANENT = "permanent"
    """A crash or an exit."""
    TRANSIENT = "transient"
    """A crash."""
    TEMPORARY = "temporary"
    """None."""


class Exit(StrEnum):
    """How an agent ended; the value is its reason."""

    NORMAL = "exit"
    """It had finished, and said so with a result."""
    CRASH = "crash"
    """An exception in its own code, or it gave up as a supervisor."""
    KILL = "KILL"
    TERM = "TERM"
    GIVE_UP = "gave up"
    """Its supervisor has no restarts left, and cannot crash because it is agent 0."""
    WRONG_ROWS = "wrong rows"
    """No history can be made of what is stored of it."""
    SHUTDOWN = "shutdown"
    """A temporary agent, stopped because a sibling is restarted."""


class Child(NamedTuple):
    """An agent as its supervisor sees it."""

    agent: str
    restart: RestartType = RestartType.TRANSIENT


def is_restarted(restart: RestartType, end: Exit) -> bool:
    """Whether an agent of this type is restarted after this end; it is buried otherwise."""
    match restart, end:
        case RestartType.PERMANENT, Exit.CRASH | Exit.NORMAL:
            return True
        case RestartType.TRANSIENT, Exit.CRASH:
            return True
        case _:
            return False
