"""Every verb: where it is declared, what it does in a line, and who may call it. Imports nothing else.

The line is the first sentence of the verb's docstring (held by a test), and ``usage`` is what follows the word in a
script. For more, load the verb.
"""

from enum import Flag, auto
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ikigai_actors.shell.verbs.verb import Verb, VerbGroup


class Callers(Flag):
    """Callers that may use a verb."""

    PEOPLE = auto()
    """By a slash command."""
    SCRIPTS = auto()
    """By a subcommand of ``ikigai``."""
    PROTOCOLS = auto()
    """By a tool of a protocol."""
    ALL = PEOPLE | SCRIPTS | PROTOCOLS


class VerbLine(NamedTuple):
    """What the table says of a verb."""

    module: str
    """Its module in this package."""
    usage: str
    """The arguments of its subcommand."""
    line: str
    callers: Callers = Callers.ALL


TABLE = {
    "adopt": VerbLine("life", "AGENT ID", "Let an agent supervise another one, which goes on if it was stopped."),
    "finish": VerbLine("life", "AGENT [TEXT]...", "End an agent after its turn: the normal end."),
    "kill": VerbLine("life", "AGENT", "End an agent at once."),
    "orphans": VerbLine(
        "life",
        "AGENT [reparent|cascade|stop|continue]",
        "Show or set what becomes of an agent's children when it dies.",
    ),
    "rename": VerbLine("life", "AGENT NAME", "Give an agent another name, unique among the living."),
    "signal": VerbLine("life", "NAME AGENT", "Send a signal to an agent."),
    "supervise": VerbLine("life", "AGENT", "Show or set how an agent restarts its children when they crash."),
}


def names(callers: Callers) -> list[str]:
    """The words that these may call, in alphabetical order."""
    return sorted(name for name, entry in TABLE.items() if entry.callers & callers)


def load(name: str) -> "Verb | VerbGroup":
    """Import the verb of a word, which the table has."""
    from ikigai_actors.shell.verbs.verb import Verb, VerbGroup

    module = import_module(f"ikigai_actors.shell.verbs.{TABLE[name].module}")
    return next(one for one in vars(module).values() if isinstance(one, Verb | VerbGroup) and one.name == name)
