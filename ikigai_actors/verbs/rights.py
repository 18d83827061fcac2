"""The callers of a verb, and the right that each needs."""

from enum import Flag, IntEnum, auto


class Callers(Flag):
    """Callers that may use a verb."""

    PEOPLE = auto()
    """By a slash command."""
    SCRIPTS = auto()
    """By a subcommand of ``ikigai``."""
    PROTOCOLS = auto()
    """By a tool of a protocol."""
    ALL = PEOPLE | SCRIPTS | PROTOCOLS


class Right(IntEnum):
    """A right of a person or a program that asks for something. Each has those before it."""

    LOOK = 0
    PROMPT = 1
    """Have agents work, and talk to them."""
    APPROVE = 2
    """Decide on calls of their models."""
    OPERATE = 3
    """Set what they may do and spend, and end them."""
