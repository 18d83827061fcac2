"""Signals: lifecycle control from outside."""

from enum import StrEnum


class Signal(StrEnum):
    """What can be done to an agent from outside."""

    INT = "INT"
    """End the turn in progress now; the agent lives."""
