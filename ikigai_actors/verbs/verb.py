"""Verbs: the requests that a person, a script or a program can make about agents. Each verb is declared once.

    @verb("kill", slash="[ID]")
    @click.option("--cascade", is_flag=True, help="All its descendants too, at once.")
    def kill(place: Place, agent: AgentRef, cascade: bool) -> object:
        '''End an agent at once.'''
        dead = place.wait_for(lambda: agent.kill(cascade=cascade))
        place.screen.line(f"{words.named(agent)} is dead")
        return words.agent_row(agent) | {"dead": [one.uuid for one in dead]}

From this follow the slash command ``/kill [ID]`` (`slash`), the subcommand ``ikigai kill AGENT`` (``one_command`` of
the command line), a resource of the network API, and a tool with a JSON schema (`tools`). The Tab key, ``--help`` and
errors of usage are click's, from the same parameters. The help is the docstring. ``python -m tests.kit.verbs`` writes
the declarations of all modules into `declared`, so a list of verbs imports none of them. To keep help fast, the module
of a verb imports click and `ikigai_actors.verbs.text` at its head, and all else where it is used.

The function gets a `Place`, which is where it runs, and the agent that it is about:

- In line mode and in the application that is the current agent, or the one that ``slash`` lets a person name. Lines are
  printed for the person, into the transcript of the agent in the application.
- In one command of a script it is the agent that ``script`` has the script name. Lines go to standard output; with
  ``--json`` only the value that the function returns.
- As a tool it is the argument ``agent``. The caller gets the lines and the value.

A function reports failure by an exception of the library, or by ``click.UsageError`` when arguments do not go together.
A shell prints either on a line and goes on. A subcommand prints it on standard error: exit status 1, or 2 for wrong
usage; 3 when ``--timeout`` was over, 130 after Ctrl-C. A tool raises it to its caller. Nothing that was refused has
changed anything.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import click

from ikigai_actors.verbs.rights import Callers, Right

ACTED_ON = "acted_on"
"""The name of the parameter for the agent, as click passes it."""

ACTS = "The agent that acts; else a person outside of any agent."
"""The help of an option that names the acting agent."""


class ShellOption(click.Option):
    """An option that only a slash command has."""


class ShellArgument(click.Argument):
    """An argument that only a slash command has."""


class ScriptOption(click.Option):
    """An option that only a subcommand of ``ikigai`` has."""


class LocalOption(click.Option):
    """An option that opens a file of this machine, or is only for scripts. Tools of protocols do not have it."""


class Naming(NamedTuple):
    """The way in which a command names the agent of its verb."""

    text: str
    """``AGENT``: an argument; ``[AGENT]``: an optional argument; ``--as``: an option; empty: none."""
    last: bool = False
    """Whether the argument comes after all others."""

    @classmethod
    def of(cls, text: str) -> "Naming":
        """Parse a declaration. In ``… AGENT`` the argument comes after the others."""
        return cls(text.removeprefix("… "), text.startswith("… "))

    @property
    def is_option(self) -> bool:
        """Return whether an option names the agent."""
        return self.text.startswith("--")

    @property
    def is_required(self) -> bool:
        """Return whether the agent must be named."""
        return bool(self.text) and not self.is_option and not self.text.startswith("[")

    def among(
        self, others: Sequence[click.Parameter], kind: "click.ParamType[object] | None", description: str
    ) -> list[click.Parameter]:
        """Return the parameters of a command: ``others``, and the parameter that names the agent.

        Args:
            others: the parameters that the verb declares.
            kind: the type of the name.
            description: the help of an option that names the agent.
        """
        if not self.text:
            return [*others]
        if self.is_option:
            return [*others, click.Option([self.text, ACTED_ON], metavar="ID", type=kind, help=description)]
        named = click.Argument([ACTED_ON], metavar=self.text, type=kind, required=self.is_required)
        return [*others, named] if self.last else [named, *others]


@dataclass(frozen=True)
class Verb:
    """A verb, as the decorator `verb` declares it."""

    name: str
    work: Callable[..., object]
    params: tuple[click.Parameter, ...]
    slash: Naming
    script: Naming
    waits: bool
    """Whether the process that runs the agent must answer. A script may limit the wait."""
    timeout: float | None
    """The seconds that a script waits for the process by default; None waits forever."""
    opens_turn: bool
    """Whether the verb opens a turn, for whose end a script may wait."""
    is_free: bool
    """Whether words that look like options are values."""
    everywhere: bool
    """Whether the verb reads or changes data of no single agent, so that the caller must reach all agents."""
    needs: Right
    """The right that a caller needs to change something with the verb, as `VerbLine.needs`."""
    callers: Callers
    """The callers that may use the verb."""
    gives: object
    """The type of the verb's value, if ``ikigai mcp`` offers the verb to models; else None."""

    @property
    def help(self) -> str:
        """Return the help text of the verb, which is its docstring."""
        return inspect.cleandoc(self.work.__doc__ or "")

    @property
    def needs_agent(self) -> bool:
        """Return whether the verb's function takes an agent."""
        return bool(self.script.text)

    def params_of_shell(self) -> list[click.Parameter]:
        """Return the parameters that the function takes in a shell."""
        return [param for param in self.params if not isinstance(param, ScriptOption)]

    def params_of_script(self) -> list[click.Parameter]:
        """Return the parameters that the function takes outside a shell."""
        return [param for param in self.params if not isinstance(param, ShellOption | ShellArgument)]

    def params_of_tool(self) -> list[click.Parameter]:
        """Return the parameters for callers from other machines: those of a script, without options that open files."""
        return [param for param in self.params_of_script() if not isinstance(param, LocalOption)]


@dataclass(frozen=True)
class VerbGroup:
    """Verbs that share their first word, such as ``doc show`` and ``doc write``."""

    name: str
    help: str
    verbs: tuple[Verb, ...]
    usual: Verb
    """The verb that a shell runs without a second word."""
    needs: Right = Right.OPERATE
    """The right that a caller needs for each verb of the group; see `VerbLine.needs`."""
    callers: Callers = Callers.ALL
    """The callers that may use the verbs of the group."""


def verb(
    name: str,
    *,
    slash: str = "",
    script: str = "AGENT",
    waits: bool = False,
    timeout: float | None = None,
    opens_turn: bool = False,
    is_free: bool = False,
    everywhere: bool = False,
    needs: Right = Right.OPERATE,
    callers: Callers = Callers.ALL,
    gives: object = None,
) -> Callable[[Callable[..., object]], Verb]:
    """Declare a verb by a function; its arguments and options are decorators below, as of a click command.

    Args:
        slash: how a slash command names another agent than the current one; see `Naming.text`. A ``…`` in front stands
            for the arguments that come before it.
        script: how a subcommand names the agent. An option names who acts, and without it the function gets None, a
            person. Empty for a verb that is about no agent: its function takes none.
        waits: see `Verb.waits`.
        timeout: see `Verb.timeout`.
        opens_turn: see `Verb.opens_turn`.
        is_free: see `Verb.is_free`.
        everywhere: see `Verb.everywhere`.
        needs: see `Verb.needs`.
        callers: see `Verb.callers`.
        gives: a ``TypedDict`` of the value, which makes it a tool of `ikigai mcp`.
    """

    def declare(work: Callable[..., object]) -> Verb:
        params: list[click.Parameter] = [*reversed(getattr(work, "__click_params__", []))]
        named = Naming.of(slash), Naming.of(script)
        return Verb(
            name, work, tuple(params), *named, waits, timeout, opens_turn, is_free, everywhere, needs, callers, gives
        )

    return declare
