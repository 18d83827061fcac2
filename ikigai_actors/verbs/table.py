"""The table of verbs: where each is declared, its summary, its callers, and the right that it needs. Imports no verb.

The table is `declared`, which follows from the declarations: the line is the first sentence of the verb's docstring,
and ``usage`` is what follows the word in a script. For more, load the verb.
"""

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from ikigai_actors.verbs.declared import DECLARED
from ikigai_actors.verbs.rights import Callers, Right

if TYPE_CHECKING:
    from ikigai_actors.verbs.verb import Verb, VerbGroup


class VerbLine(NamedTuple):
    """The entry of a verb in the table: its module, its usage, its summary, its callers and its right."""

    module: str
    """The module that declares the verb, below ``ikigai_actors``."""
    usage: str
    """The arguments of its subcommand."""
    line: str
    callers: Callers = Callers.ALL
    needs: Right = Right.OPERATE
    """The right that a caller needs to change something with the verb.

    With `Right.LOOK` alone the verb can only read.
    """
    for_models: bool = False
    """Whether ``ikigai mcp`` offers the verb itself as a tool to models, because the verb has a type ``gives``."""


TABLE = {
    word: VerbLine(module, usage, line, Callers(callers), Right(needs), for_models)
    for word, (module, usage, line, callers, needs, for_models) in DECLARED.items()
}


def names(callers: Callers) -> list[str]:
    """Return the verbs that these callers may use, in alphabetical order."""
    return sorted(name for name, entry in TABLE.items() if entry.callers & callers)


def load(name: str) -> "Verb | VerbGroup":
    """Import the module of a verb that is in the table, and return the verb."""
    from ikigai_actors.verbs.verb import Verb, VerbGroup

    module = import_module(f"ikigai_actors.{TABLE[name].module}")
    return next(var for var in vars(module).values() if isinstance(var, Verb | VerbGroup) and var.name == name)
