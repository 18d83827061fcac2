"""Every verb: where it is declared, what it does in a line, who may call it, and by what right. Imports no verb.

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
    """The entry of a verb in the table."""

    module: str
    """The module that declares the verb, below ``ikigai_actors``: its subject may be a face."""
    usage: str
    """The arguments of its subcommand."""
    line: str
    callers: Callers = Callers.ALL
    needs: Right = Right.OPERATE
    """The right to change something by it. `Right.LOOK` alone is shown what there is, and changes nothing."""
    for_models: bool = False
    """Whether `ikigai mcp` offers it to models as it is: it says what it `gives`. Other words for models are an act."""


TABLE = {
    word: VerbLine(module, usage, line, Callers(callers), Right(needs), for_models)
    for word, (module, usage, line, callers, needs, for_models) in DECLARED.items()
}


def names(callers: Callers) -> list[str]:
    """The words that these may call, in alphabetical order."""
    return sorted(name for name, entry in TABLE.items() if entry.callers & callers)


def load(name: str) -> "Verb | VerbGroup":
    """Import the verb of a word, which the table has."""
    from ikigai_actors.verbs.verb import Verb, VerbGroup

    module = import_module(f"ikigai_actors.{TABLE[name].module}")
    return next(var for var in vars(module).values() if isinstance(var, Verb | VerbGroup) and var.name == name)
