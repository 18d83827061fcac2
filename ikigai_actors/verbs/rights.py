"""The callers of a verb, and the right that each needs."""

from enum import Flag, IntEnum, auto


class Callers(Flag):
    """The kinds of callers that may use a verb."""

    PEOPLE = auto()
    """People may use the verb by a slash command."""
    SCRIPTS = auto()
    """Scripts may use the verb by a subcommand of ``ikigai``."""
    PROTOCOLS = auto()
    """Programs may use the verb by a tool of a protocol."""
    ALL = PEOPLE | SCRIPTS | PROTOCOLS


class Right(IntEnum):
    """A right of a person or a program. Each right includes the lower rights."""

    LOOK = 0
    PROMPT = 1
    """Prompt agents, and send them messages."""
    APPROVE = 2
    """Decide on calls of their models."""
    OPERATE = 3
    """Set what agents may do and spend, and end them."""
