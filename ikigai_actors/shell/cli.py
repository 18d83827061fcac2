"""The command line.

    ikigai                          the shell
    ikigai --mcp "uvx some-server"  the same, with the tools of an MCP server
    ikigai --plain                  the same in lines, not on the whole screen
    ikigai < questions.txt          the same, by a pipe
    ikigai agents [--all] [--json]  who exists; works beside a running shell
    ikigai send AGENT TEXT          sends a mail; works beside a running shell
    ikigai prompt AGENT TEXT        a prompt, which the agent answers when it is idle; likewise
    ikigai kill AGENT [--cascade]   the end of an agent, or of a branch; likewise
    ikigai signal NAME AGENT        INT, STOP, CONT, TERM or KILL; likewise
    ikigai fsck [--json]            whether the database holds together; exit status 1 if it does not
    ikigai copy FROM TO             a whole database to an empty one, of either kind
    ikigai demo                     a tour that plays itself

What a command needs is imported when it runs, so ``ikigai --help`` and ``ikigai agents`` answer at once. An error of
ours is one line on standard error and exit status 1.
"""

import contextlib
import logging
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import click

from ikigai_actors.errors import BadInput, IkigaiError
from ikigai_actors.shell.screen import one_line

if TYPE_CHECKING:
    from ikigai_actors.shell.keyboard import Complete, Keyboard
    from ikigai_actors.system import ActorSystem
    from ikigai_actors.toolsets import Toolset

NO_KEY = "No ANTHROPIC_API_KEY is set: the offline stand-in answers, from what each agent remembers."


@dataclass(frozen=True, slots=True)
class Options:
    """The global options."""

    database: str | None
    provider: str | None
    model: str | None
    workspace: str | None = None
    mcp: tuple[str, ...] = ()
    yes: bool = False
    plain: bool = False
    follow: bool = True

    def tools(self) -> "list[Toolset]":
        """What agents get beside what they always have. Raises `BadInput`."""
        from ikigai_actors.mcp_server import mcp_servers
        from ikigai_actors.workspace import Workspace

        workspaces = [Workspace(self.workspace)] if self.workspace is not None else []
        return [*workspaces, *mcp_servers(self.mcp)]

    def approvals(self, interactive: bool) -> str:
        """Who decides on calls that ask: the person at the terminal; from a pipe nobody can."""
        if self.yes:
            return "allow"
        return "ask" if interactive else "deny"

    def default_provider(self) -> str | None:
        """Who answers for agents whose settings name no model, as ``provider:model``. Raises `BadInput`."""
        if self.model is None or self.provider is None:
            return self.model or self.provider
        named, colon, model = self.model.partition(":")
        if colon and named != self.provider:
            raise BadInput(f"--provider {self.provider} and --model {self.model} disagree; give one of them.")
        return f"{self.provider}:{model if colon else self.model}"


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="ikigai-actors", message="ikigai %(version)s")
@click.option("--database", metavar="PLACE", help="A file, or postgresql://user@host/name.  [$IKIGAI_DATABASE_URL]")
@click.option("--provider", metavar="NAME", help="Who answers by default: anthropic or offline.")
@click.option("--model", metavar="PROVIDER:MODEL", help="The model of agents that have not set one.")
@click.option("--workspace", metavar="DIR", help="Give agents tools for the files of a directory, and bash.")
@click.option("--mcp", metavar="COMMAND", multiple=True, help="Attach the tools of an MCP server.  Repeatable.")
@click.option("--yes", is_flag=True, help="Approve every call of every tool without asking. For the reckless.")
@click.option("--plain", is_flag=True, help="Lines instead of the whole screen; so it is by a pipe, and for TERM=dumb.")
@click.option("--follow/--no-follow", default=True, help="Whether /fork goes to the child.  [default: it does]")
@click.pass_context
def cli(context: click.Context, /, **options: Any) -> None:
    """Talk to LLM agents that fork, remember, and survive a restart.

    Without a command: the shell, on the whole screen of a terminal, or in lines; /help there lists its commands.
    """
    context.obj = Options(**options)
    if context.invoked_subcommand is None:
        context.exit(_shell(context.obj))


@cli.command()
@click.pass_context
def demo(context: click.Context) -> None:
    """Play a short tour on a temporary database: fork, diverge, restart."""
    from ikigai_actors.shell.demo import play

    context.exit(0 if play(click.echo) else 1)


@cli.command()
@click.option("--all", "dead_too", is_flag=True, help="Show the dead too.")
@click.option("--json", "as_json", is_flag=True, help="All of the registry, as a JSON list.")
@click.pass_obj
def agents(options: Options, dead_too: bool, as_json: bool) -> None:
    """Show the tree of agents. Reads the database, beside a running shell or without one."""
    from ikigai_actors.shell import reader

    registry = reader.read(options.database)
    if as_json:
        click.echo(reader.as_json(registry))
        return
    for line in reader.as_tree(registry, dead_too):
        click.echo(click.style(line.text, dim=True) if line.dead else line.text)


@cli.command()
@click.argument("recipient")
@click.argument("text", nargs=-1, required=True)
@click.option("--as", "sender", metavar="AGENT", help="The agent that sends it; else a person outside of any agent.")
@click.pass_obj
def send(options: Options, recipient: str, text: tuple[str, ...], sender: str | None) -> None:
    """Send a mail to an agent, which reads it when it chooses to. Works beside a running shell or without one.

    RECIPIENT and AGENT are a uuid, 4 or more characters of one, or a name.
    """
    from ikigai_actors.shell import client

    click.echo(client.send(options.database, recipient, " ".join(text), sender))


@cli.command()
@click.argument("agent")
@click.argument("text", nargs=-1, required=True)
@click.pass_obj
def prompt(options: Options, agent: str, text: tuple[str, ...]) -> None:
    """Prompt an agent. Works beside a running shell or without one.

    The prompt is in the database when this returns. The process that runs the agents takes it up when the agent is
    idle: now, or when it is started.
    """
    from ikigai_actors.shell import client

    click.echo(client.prompt(options.database, agent, " ".join(text)))


@cli.command()
@click.argument("agent")
@click.option("--cascade", is_flag=True, help="All its descendants too, at once.")
@click.option("--reason", default="", help="Why; it stands in the registry.")
@click.pass_obj
def kill(options: Options, agent: str, cascade: bool, reason: str) -> None:
    """End an agent at once. Works beside a running shell or without one."""
    _send_signal(options, "KILL", agent, cascade=cascade, reason=reason)


@cli.command("signal")
@click.argument("name", type=click.Choice(["INT", "STOP", "CONT", "TERM", "KILL"], case_sensitive=False))
@click.argument("agent")
@click.option("--cascade", is_flag=True, help="All its descendants too.")
@click.option("--reason", default="", help="Why; it stands in the registry when somebody dies of it.")
@click.option("--grace", metavar="SECONDS", type=click.FloatRange(min=0), default=30.0, help="TERM: then it is killed.")
@click.pass_obj
def send_signal(options: Options, /, name: str, agent: str, **how: Any) -> None:
    """Send a signal to an agent. Works beside a running shell or without one.

    INT ends its turn. STOP pauses it after its step, CONT lets it go on. TERM lets it finish its turn and die. KILL
    ends it at once.
    """
    _send_signal(options, name, agent, **how)


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="What was looked at and found, as a JSON object.")
@click.pass_context
def fsck(context: click.Context, as_json: bool) -> None:
    """Check that the database holds together. Changes nothing, beside a running shell or without one.

    Names each violation on a line; the exit status is 1 if there is any.
    """
    from ikigai_actors.shell import checkup

    report = checkup.examine(context.obj.database)
    click.echo(checkup.as_json(report) if as_json else "\n".join(checkup.as_lines(report)))
    context.exit(1 if report.violations else 0)


@cli.command()
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.pass_context
def copy(context: click.Context, source: str, target: str) -> None:
    """Copy the database FROM to the empty database TO, from SQLite to PostgreSQL or any other way.

    FROM and TO are files or URLs. All that is committed is copied, in one transaction, compared, and checked as by
    fsck; the exit status is 1 if that finds a violation. FROM is left as it is.
    """
    from ikigai_actors.shell import transfer

    done = transfer.transfer(source, target)
    click.echo("\n".join(done.lines))
    context.exit(0 if done.sound else 1)


def main() -> NoReturn:
    """Run the command line, and end the process."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError):  # closed, or replaced by something simpler
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # what else it is: suppressed
    _log_in_lines()
    try:
        cli.main(prog_name="ikigai")
    except IkigaiError as error:
        click.echo(f"ikigai: {one_line(str(error))}", err=True)
    except OSError as error:  # of the library's none gets here: the output cannot be written
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or the interpreter would try again, and complain
        click.echo(f"ikigai: the output cannot be written: {error.strerror}", err=True)
    sys.exit(1)


def _send_signal(options: Options, name: str, agent: str, *, cascade: bool, reason: str, grace: float = 30.0) -> None:
    from ikigai_actors.shell import client
    from supervisors.signals import Signal

    sent = client.signal(options.database, agent, Signal(name), cascade=cascade, reason=reason, grace=grace)
    click.echo(sent)


def _shell(options: Options) -> int:
    """The shell, on a whole screen, at a terminal or by a pipe; returns the exit status."""
    from ikigai_actors.system import ActorSystem

    default = options.default_provider()
    interactive = _are_terminals(sys.stdin, sys.stdout)
    notices = [] if default is not None or os.environ.get("ANTHROPIC_API_KEY") else [NO_KEY]
    with ActorSystem.open(
        options.database, default, tools=options.tools(), approvals=options.approvals(interactive)
    ) as system:
        # Textual draws on standard error.
        full_screen = interactive and _are_terminals(sys.stderr) and os.environ.get("TERM", "") not in ("", "dumb")
        if full_screen and not options.plain:
            return _application(system, options, notices)
        return _line_mode(system, options, interactive, notices)


def _are_terminals(*streams: "TextIO | None") -> bool:
    return all(stream is not None and stream.isatty() for stream in streams)


def _application(system: "ActorSystem", options: Options, notices: list[str]) -> int:
    from ikigai_actors.shell.app.application import Application
    from ikigai_actors.shell.app.logs import logged_to
    from ikigai_actors.shell.interrupts import Interrupts
    from ikigai_actors.shell.line import leaving

    provider = options.default_provider() or ("anthropic" if os.environ.get("ANTHROPIC_API_KEY") else "offline")
    told = [f"{_greeting(system)} · F1 keys, /help commands", *notices]
    application = Application(system, _home() / "history", options.follow, provider, told)
    with logged_to(_home() / "ikigai.log", application.feed.notice):
        status = application.run_it()
    Interrupts().install()  # nothing tears the closing
    if notice := leaving(system):
        click.echo(notice, err=True)
    return status


def _line_mode(system: "ActorSystem", options: Options, interactive: bool, notices: list[str]) -> int:
    from ikigai_actors.shell.completion import completions
    from ikigai_actors.shell.interrupts import Interrupts
    from ikigai_actors.shell.line import LineMode
    from ikigai_actors.shell.screen import Screen
    from ikigai_actors.shell.session import Shell

    interrupts, screen = Interrupts().install(), Screen()
    keyboard = _keyboard(interactive, lambda line: completions(shell.current, line), screen.styled)
    shell = Shell(system, keyboard, screen, interrupts, options.follow)
    if keyboard.interactive:
        screen.notice(_greeting(system))
        screen.notice("Text prompts the agent that the prompt names; /help lists the commands; Ctrl-D leaves.")
    for notice in notices:
        screen.notice(notice)
    return LineMode(shell).run()


def _keyboard(interactive: bool, complete: "Complete", styled: bool) -> "Keyboard":
    from ikigai_actors.shell.keyboard import Pipe, Terminal

    if not interactive:
        return Pipe(sys.stdin.buffer if sys.stdin is not None else None)
    return Terminal(_home() / "history", complete, styled)


def _home() -> Path:
    """The directory of what belongs to the user rather than to a database."""
    from ikigai_actors.store.location import user_home

    return Path(os.environ.get("IKIGAI_HOME") or user_home()).expanduser()


def _greeting(system: "ActorSystem") -> str:
    from importlib.metadata import version

    from ikigai_actors.shell.tree import summary

    return f"ikigai {version('ikigai-actors')} · {system.store.location} · {summary(system.agents())}"


def _log_in_lines() -> None:
    """What the library logs, as the program's own lines; a defect of ours keeps its traceback. What a server gets wrong
    is no news beside its results.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("ikigai: %(message)s"))
    handler.setLevel(logging.WARNING)
    logging.getLogger("ikigai_actors").addHandler(handler)
    logging.getLogger("mcp").addHandler(logging.NullHandler())
