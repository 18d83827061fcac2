"""Causes of death."""

from enum import StrEnum


class Cause(StrEnum):
    """How an agent died."""

    KILLED = "killed"
    TERMINATED = "terminated"
    EXITED = "exited"
    CRASHED = "crashed"
    GAVE_UP = "gave up"
    ORPHANED = "orphaned"
    DAMAGED = "damaged"
