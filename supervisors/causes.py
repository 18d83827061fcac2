"""Causes: how an agent ended."""

from enum import StrEnum


class Cause(StrEnum):
    """The way in which an agent ended. The registry stores the value."""

    KILLED = "killed"
    """The signal KILL."""
    TERMINATED = "terminated"
    """The signal TERM; for a temporary agent also the restart of a sibling that takes it along."""
    EXITED = "exited"
    """The agent had finished, and gave a result."""
    CRASHED = "crashed"
    """An exception in its own code, or it gave up as a supervisor."""
    GAVE_UP = "gave up"
    """The supervisor has no restarts left, and cannot crash because it is agent 0."""
    ORPHANED = "orphaned"
    """The supervisor died, with the orphan policy ``cascade``."""
    DAMAGED = "damaged"
    """The rows in the database make no history."""
