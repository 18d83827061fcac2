"""The place where a subcommand runs a verb: attached to the agents of a database, for one command.

It waits for everything that the verb asks for, goes nowhere, and prints on standard output. With ``--json`` it prints
the value of the verb alone. When ``--timeout`` is over, what was asked for is taken back: it is not done later either.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import click

from ikigai_actors.shell.cli.exit_status import ended_early
from ikigai_actors.shell.text.harmless import as_json, harmless
from ikigai_actors.shell.verbs.arguments import TEXT
from ikigai_actors.shell.verbs.place import Place, Printer
from ikigai_actors.shell.verbs.verb import ShellOption, Verb, VerbGroup

if TYPE_CHECKING:
    from ikigai_actors.actors.futures import Future
    from ikigai_actors.system.handles.ref import AgentRef, System

T = TypeVar("T")

_TAKEN_BACK_WITHIN = 5.0
"""Seconds within which something that was taken back is known to be done, or not to be."""


class StandardOutput(Printer):
    """Prints the lines of a verb; nothing where only its value is wanted."""

    columns = 10_000

    def __init__(self, is_silent: bool) -> None:
        self._is_silent = is_silent

    def line(self, text: str = "", *, bold: bool = False, dim: bool = False) -> None:
        if not self._is_silent:
            click.echo(harmless(text))

    def block(self, text: str) -> None:
        self.line(text)

    def error(self, text: str) -> None:
        click.echo(f"ikigai: {harmless(text)}", err=True)


class OneCommand(Place):
    """The place of one command."""

    prefix = "ikigai "

    def __init__(self, system: "System", screen: Printer, timeout: float | None) -> None:
        """Make it; ``timeout`` is how many seconds it waits for the process that runs the agents."""
        self.system, self.screen, self._timeout = system, screen, timeout

    def wait_for(self, work: Callable[[], T]) -> T:
        return work()

    def outcome(self, ask: "Callable[[], Future[T]]") -> T:
        from ikigai_actors.actors.futures import TimedOut
        from ikigai_actors.errors import NoHost

        future = ask()
        try:
            return future.get(timeout=self._timeout)
        except TimedOut:
            future.take_back()
            with suppress(NoHost, TimedOut):  # the answer of what was taken back
                return future.get(timeout=_TAKEN_BACK_WITHIN)
            raise TimedOut(f"Not done within {self._timeout:g} s, and not done later either.") from None

    def change(self, agent: "AgentRef", what: str, ask: "Callable[[], Future[T]]", text: str | Callable[[T], str]) -> T:
        from ikigai_actors.shell.text.naming import named

        done = self.outcome(ask)
        self.screen.line(f"{named(agent)}: {text if isinstance(text, str) else text(done)}")
        return done

    def leave_the_dead(self) -> None:
        """Nobody is here."""


def subcommand(verb: Verb | VerbGroup) -> click.Command:
    """The command by which a script calls a verb."""
    if isinstance(verb, VerbGroup):
        return click.Group(verb.name, {one.name: subcommand(one) for one in verb.verbs}, help=verb.help)

    @click.pass_context
    def run_verb(
        context: click.Context,
        /,
        as_value: bool,
        acted_on: str | None = None,
        timeout: float | None = None,
        **arguments: object,
    ) -> None:
        from ikigai_actors.system.attached import AttachedSystem

        with ended_early(context), AttachedSystem.open(context.obj.database) as system:
            place = OneCommand(system, StandardOutput(is_silent=as_value), timeout)
            agent = None if acted_on is None else system.agent(acted_on)
            value = verb.work(place, *([agent] if verb.needs_agent else []), **arguments)
        if as_value:
            click.echo(as_json(value))

    own = [one for one in verb.params if not isinstance(one, ShellOption)]
    params = verb.script.among(own, TEXT, "The agent that acts; else a person outside of any agent.")
    if verb.waits:
        seconds = click.FloatRange(min=0)
        told = "Wait no longer; then exit status 3."
        params.append(
            click.Option(
                ["--timeout"], metavar="SECONDS", type=seconds, default=verb.timeout, show_default=True, help=told
            )
        )
    params.append(click.Option(["--json", "as_value"], is_flag=True, help="The result as JSON."))
    settings = {"ignore_unknown_options": True} if verb.is_free else {}
    return click.Command(verb.name, settings, run_verb, params, help=verb.help)


def _timeout(default: float | None) -> click.Option:
    told, seconds = "Wait no longer; then exit status 3.", click.FloatRange(min=0)
    return click.Option(["--timeout"], metavar="SECONDS", type=seconds, default=default, show_default=True, help=told)
