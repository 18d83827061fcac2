"""The command line.

    ikigai                          the shell
    ikigai --mcp "uvx some-server"  the same, with the tools of an MCP server
    ikigai --plain                  the same in lines, not on the whole screen
    ikigai < questions.txt          the same, by a pipe
    ikigai --app MODULE:FUNCTION    the same, with the providers and tools of a program; also for serve, host and others
    ikigai serve [--port N]         the same in a browser on this machine (web/)
    ikigai observe [--port N]       a page that shows the present and past work of the agents (sight/)
    ikigai host [--name NAME]       runs the agents without a shell; on PostgreSQL several hosts share the agents
    ikigai api [--listen PLACE]     serves the agents to programs by HTTP, with tokens
    ikigai mcp                      serves the agents as tools for Claude Code and others; starts a host when none runs
    ikigai acp                      serves the agents as sessions for editors
    ikigai cluster COMMAND          runs hosts on a cluster of Ray
    ikigai demo                     an automatic tour
    ikigai help [COMMAND]           explains a command, or all of them: ikigai help all
    ikigai completion SHELL         the script that completes at the Tab key: bash, zsh or fish; --install

The next commands run with or without a running shell (commands.py), and so does each verb of ``verbs/table.py``:

    ikigai agents [--all] [--json]  lists the agents
    ikigai log AGENT [--follow]     the messages of an agent
    ikigai tail [AGENT]...          new messages of agents, as they come
    ikigai search AGENT             the best continuation of a history: --plan, --option, --score
    ikigai bisect AGENT             the first bad turn of a history, by a program that may err: --ask, --judge
    ikigai replay AGENT|FILE        recorded turns once more, with a change or an edit; nothing is done outside
    ikigai regress AGENT|FILE       whether a change makes recorded turns worse; exit status 0 no, 1 yes, 3 unsure
    ikigai evaluate AGENT           how often an agent answers prompts rightly, by a program: --case, --cases, --judge
    ikigai stats                    the numbers of agents, messages and other rows in the database
    ikigai drain HOST               has a host give its agents to the others
    ikigai backup FILE              a consistent copy of the database in one new file, beside a running shell too
    ikigai copy FROM TO             a whole database to an empty one, of either kind
    ikigai export AGENT FILE        a branch of agents as a file of JSON lines, or --markdown
    ikigai import FILE              the agents of such a file, under an agent
    ikigai prices MODEL             what a model costs; --update takes newer prices
    ikigai doctor                   which fences around agents' programs work on this machine
    ikigai programs check           which open turns no longer fit the programs of --app
    ikigai prune --dead-before 30d  delete the messages of dead agents that nobody needs; --dry-run, --vacuum
    ikigai verify [AGENT|FILE]      whether histories are unchanged since they were written; --since CHECKPOINT
    ikigai checkpoint FILE          the hash of every history, for ikigai verify --since
    ikigai trace export --to URL    the turns as spans of OpenTelemetry, for Phoenix, Jaeger and others
    ikigai fsck [--json]            checks the invariants of the database; exit status 1 if one is violated

A command imports its modules when it runs, so ``ikigai --help`` and ``ikigai agents`` answer at once. An error of this
library is one line on standard error and exit status 1.
"""

import contextlib
import logging
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import click

from ikigai_actors.errors import BadInput, IkigaiError
from ikigai_actors.shell import start
from ikigai_actors.shell.cli import commands, program_log
from ikigai_actors.shell.cli.api import network_api
from ikigai_actors.shell.cli.app import app_option
from ikigai_actors.shell.cli.cluster import cluster
from ikigai_actors.shell.cli.completion import completion
from ikigai_actors.shell.cli.doors import DOORS
from ikigai_actors.shell.cli.experiments import EXPERIMENTS
from ikigai_actors.shell.cli.notices import notices_of
from ikigai_actors.shell.cli.one_command import subcommand
from ikigai_actors.shell.cli.opening import opened
from ikigai_actors.shell.cli.traces import trace
from ikigai_actors.shell.front_end import (
    closed_output,
    draw_first_picture,
    fill_screen,
    front_of,
    greeting,
    show_front,
    while_it_lasts,
    write_nowhere,
)
from ikigai_actors.shell.headings import COMMAND_LINE, EVERYTHING, MOST_COLUMNS, HeadedGroup
from ikigai_actors.verbs import table
from ikigai_actors.verbs.opening import Options
from ikigai_actors.verbs.rights import Callers
from ikigai_actors.verbs.text.harmless import harmless, one_line

if TYPE_CHECKING:
    pass


class CommandLine(HeadedGroup):
    """The command group ``ikigai``.

    Arguments quoted in its errors are made harmless; Ctrl-C ends it silently.
    """

    contents, help_command = COMMAND_LINE, "ikigai help"

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*self.commands, *table.names(Callers.SCRIPTS)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Find a command. A verb is imported only when it runs or shows its help."""
        if cmd_name in self.commands or cmd_name not in table.names(Callers.SCRIPTS):
            return super().get_command(ctx, cmd_name)
        return subcommand(table.load(cmd_name))

    def entry(self, ctx: click.Context, name: str) -> tuple[str, str]:
        """Return the arguments of a command, and a line about it, without importing verbs."""
        if name in self.commands or name not in table.TABLE:
            return super().entry(ctx, name)
        return table.TABLE[name].usage, table.TABLE[name].line

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command. If a global option comes after it, the error says where the option belongs."""
        before = {name for option in self.params for name in option.opts if name.startswith("--")}
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and not isinstance(command, click.Group):
            known = {opt for option in command.get_params(ctx) for opt in option.opts}
            for place, word in enumerate(rest[: rest.index("--") if "--" in rest else None]):
                option = word.partition("=")[0]
                if option in before - known:
                    raise click.UsageError(_moved(self, args[0], rest, place), ctx)
        return name, command, rest

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        with _quoting():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _quoting():
            return super().invoke(ctx)


def _moved(group: click.Group, command: str, rest: list[str], place: int) -> str:
    """Return the error message for a global option that comes after the command."""
    option, equals, _ = rest[place].partition("=")
    [known] = [each for each in group.params if option in each.opts]
    takes = 2 if not equals and not getattr(known, "is_flag", False) else 1
    line = ["ikigai", *rest[place : place + takes], command, *rest[:place], *rest[place + takes :]]
    return f"Write {option} before the command: {shlex.join(line)}"


@contextlib.contextmanager
def _quoting() -> Iterator[None]:
    try:
        yield
    except click.UsageError as error:
        raise click.UsageError(harmless(error.format_message()), error.ctx) from error
    except KeyboardInterrupt as error:
        raise SystemExit(start.ENDED_BY_CTRL_C) from error


@click.group(
    cls=CommandLine,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": MOST_COLUMNS},
)
@click.version_option(package_name="ikigai-actors", message="ikigai %(version)s")
@click.option("--database", metavar="PLACE", help="A file, or postgresql://user@host/name.  [$IKIGAI_DATABASE_URL]")
@click.option(
    "--provider",
    metavar="NAME",
    help="The provider that answers by default: anthropic, openai, offline, MODULE:CLASS, …",
)
@click.option("--provider-url", metavar="NAME=URL", multiple=True, help="A server of models.  Repeatable.")
@click.option("--app", metavar="MODULE:FUNCTION", help="Returns arguments of ActorSystem.open: provider, tools, …")
@click.option("--config", metavar="FILE", help="Providers, models, prices.  [$IKIGAI_CONFIG, else ikigai.toml]")
@click.option("--model", metavar="PROVIDER:MODEL", help="The model of agents that have not set one.")
@click.option(
    "--set", "settings", metavar="NAME=VALUE", multiple=True, help="For agents that have not set it; /set lists."
)
@click.option("--budget", metavar="usd=5,…", help="What all agents may spend: usd, tokens, agents, …; kept once set.")
@click.option("--workspace", metavar="DIR", help="Give agents tools for the files of a directory, and bash.")
@click.option("--fence", metavar="MODE", help="Around bash: auto, required, landlock, none.  [default: auto]")
@click.option("--network", metavar="RULE", help="For bash: all, none, 443,5432 or proxy:PORT.  [default: all]")
@click.option("--read", metavar="PATH", multiple=True, help="What bash may read beside the system.  Repeatable.")
@click.option("--write", metavar="PATH", multiple=True, help="What bash may write beside DIR.  Repeatable.")
@click.option("--on-fork", metavar="RULE", help="A child's files: share, overlay, worktree.  [default: share]")
@click.option("--keep-turns", is_flag=True, help="With --on-fork overlay: keep the files of each turn.")
@click.option("--mcp", metavar="COMMAND", multiple=True, help="Attach the tools of an MCP server.  Repeatable.")
@click.option("--yes", is_flag=True, help="Approve every call of every tool without asking. For the reckless.")
@click.option(
    "--plain", is_flag=True, help="Lines of words, as for a screen reader; so it is by a pipe, and for TERM=dumb."
)
@click.option(
    "--log",
    type=click.Choice([program_log.TEXT, program_log.JSON]),
    envvar="IKIGAI_LOG",
    help="The form of the lines on standard error.  [$IKIGAI_LOG, else text]",
)
@click.option("--follow/--no-follow", default=True, help="Whether /fork goes to the child.  [default: it does]")
@click.pass_context
def cli(context: click.Context, /, **options: Any) -> None:
    """Talk to LLM agents that fork, remember, and survive a restart.

    Without a command it opens the shell, on the whole screen of a terminal or in lines. /help there lists its commands.
    """
    context.obj = Options(**options)
    program_log.log_as(context.obj.log or program_log.TEXT)
    if context.invoked_subcommand is None:
        context.exit(_shell(context.obj))
    start.hand_over()


def _explained(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in (*cli.contents.names(), EVERYTHING) if name.startswith(incomplete)]


@cli.command("help")
@click.argument("words", metavar="[COMMAND|all]", nargs=-1, shell_complete=_explained)
@click.pass_context
def show_help(context: click.Context, words: tuple[str, ...]) -> None:
    """List the first commands, explain one, or list all under headings."""
    assert context.parent is not None  # it runs within the group of commands
    if words == (EVERYTHING,):
        click.echo(cli.all_commands(context.parent))
    else:
        click.echo(cli.help_of(context.parent, [*words]))


@cli.command()
@click.pass_context
def demo(context: click.Context) -> None:
    """Play a short tour on a temporary database: three agents work, are killed, and come back."""
    from rich.console import Console

    from ikigai_actors.shell.cli.demo import play_demo

    context.exit(0 if play_demo(Console(soft_wrap=False)) else 1)


@cli.command()
@app_option
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="On loopback.  [default: one that is free]")
@click.pass_context
def serve(context: click.Context, port: int) -> None:
    """Run the agents, and show the shell in a browser on this machine.

    Prints the link to open; the pages are attached to this process, or to the one that runs the agents already, and ask
    for approval as a shell does. Needs: pip install 'ikigai-actors[serve]'. Ends by Ctrl-C.
    """
    context.exit(_serve(context.obj, port))


@cli.command("observe")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="[default: one that is free]")
@click.option(
    "--host", "address", metavar="HOST", default="127.0.0.1", help="The address to listen at.  [default: 127.0.0.1]"
)
@click.option("--allow-remote", is_flag=True, help="Listen at another machine's address too. Nothing is encrypted.")
@click.option("--read-only", is_flag=True, help="Nothing can be done on the page.")
@click.option("--token-file", metavar="FILE", help="Keep the token in FILE, for Prometheus.  [default: one each time]")
@click.option("--json", "json", is_flag=True, help="Print the link as a JSON object with url, address and token.")
@click.pass_context
def observe_page(context: click.Context, /, port: int, address: str, **how: Any) -> None:
    """Show what the agents do, did and cost, on a page in a browser.

    The tree beside a timeline, transcripts as they are written, and a slider over time; fork, prompt and decide there.

    Prints the link to open; /metrics there is for Prometheus. The observer runs no agents: another process runs them,
    or none does. Ends by Ctrl-C.
    """
    from ikigai_actors.shell.cli.observe import run_observer

    context.exit(run_observer(context.obj, port, address, **how))


@cli.command()
@click.option("--name", metavar="NAME", help="PostgreSQL: the next host of this name takes its place at once.")
@click.option("--build", metavar="BUILD", help="A name for this version of your code.  [default: a digest]")
@app_option
@click.option("--resume/--no-resume", default=None, help="Turns that were cut off.  [default: they go on]")
@click.option("--alive", metavar="FILE", help="Written at each renewal of the lease, for who looks whether it hangs.")
@click.option(
    "--until-idle",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    help="End when for that long nobody was attached, no agent at work and no timer due.",
)
@click.option(
    "--allow-private",
    "allowed",
    metavar="CIDR",
    multiple=True,
    help="Send events to this network as well, also without TLS.  [default: $IKIGAI_ALLOW_PRIVATE]",
)
@click.option(
    "--key",
    "keys",
    metavar="REF",
    multiple=True,
    help="The operator's key, as ikigai api has it: seals accounts.  Repeatable.  [default: $IKIGAI_KEYS]",
)
@click.pass_context
def host(context: click.Context, /, **how: Any) -> None:
    """Run the agents without a shell, for shells and commands elsewhere, until SIGTERM or Ctrl-C.

    On PostgreSQL several hosts share the agents. When a host ends, is killed or hangs, the others go on with its
    agents. After SIGTERM a host gives its agents away, and then ends. Exit status 75: the host lost the database, or
    did not get it; start the host again.

    With --until-idle the host ends by itself; questions to persons and agents that wait for a budget wait in the
    database.

    Under systemd (Type=notify) the host reports when it runs the agents, and sends heartbeats (WatchdogSec).
    """
    from ikigai_actors.shell.cli.host import run_host

    context.exit(run_host(context.obj, **how, until=while_it_lasts, tell=program_log.announce))


@cli.command(hidden=True)
@click.pass_context
def page(context: click.Context) -> None:
    """Run one page of ikigai serve: the application on a whole screen, attached, for a browser."""
    from ikigai_actors.shell.cli.parent_watchdog import end_with_parent
    from ikigai_actors.system.attached import AttachedSystem

    end_with_parent()
    with AttachedSystem.open(context.obj.database) as system:
        context.exit(fill_screen(system, front_of(False, context.obj.follow), notices_of(system, context.obj)))


for _command in (*commands.COMMANDS, network_api, cluster, completion, trace, *DOORS, *EXPERIMENTS):
    cli.add_command(_command)


def main() -> NoReturn:
    """Run the command line, and end the process."""
    if sys.stdout is None:
        sys.stdout = closed_output()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError):  # closed, or replaced by something simpler
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # what else it is: suppressed
    program_log.log_in_lines()
    try:
        status = run()
    finally:
        start.give_back()
    sys.exit(status)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line with these arguments (None: those of this process); return the exit status."""
    try:
        cli.main(arguments, prog_name="ikigai")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except IkigaiError as error:
        from ikigai_actors.verbs.text.naming import said_by

        start.give_back()  # the screen, too: an error on ours would go with it
        program_log.announce(one_line(said_by(error)), logging.ERROR)
    except OSError as error:  # not of the library, whose errors are caught above
        start.give_back()
        if error.filename is not None:  # a program that cannot be started, or a file; the output has no name
            program_log.announce(one_line(f"{error.filename}: {error.strerror}"), logging.ERROR)
            return 1
        write_nowhere(1)
        program_log.announce(f"the output cannot be written: {error.strerror}", logging.ERROR)
    return 1


def _shell(options: Options) -> int:
    """Run the shell, on the whole screen, in lines at a terminal, or by a pipe; return the exit status."""
    from ikigai_actors.agent.subscriptions import is_no_event
    from ikigai_actors.shell.line.interrupts import Interrupts

    for handler in logging.getLogger("ikigai_actors").handlers:
        handler.addFilter(is_no_event)
    is_named = bool(options.model or options.provider or options.app)
    front = front_of(options.plain, options.follow, is_named, options.config)
    if front.fills_screen:
        if options.app is None:  # or what the person's own code prints would be covered
            draw_first_picture()
        import ikigai_actors.shell.app.application  # noqa: F401 - it takes long, and Ctrl-C leaves nothing open yet
    with start.interruptible():
        running = opened(options, front.is_interactive)
    interrupts = Interrupts().install()
    with running as system:
        return show_front(system, front, notices_of(system, options), interrupts)


def _serve(options: Options, port: int) -> int:
    from ikigai_actors.shell.line.repl import leaving

    try:
        from ikigai_actors.reach.views import location_of, stand_in_notice
        from ikigai_actors.shell.web.server import serve_pages
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("ikigai"):  # a module of this package: a defect
            raise
        raise BadInput("ikigai serve needs textual-serve: pip install 'ikigai-actors[serve]'.") from error

    if options.database is not None:
        os.environ["IKIGAI_DATABASE_URL"] = options.database  # the pages inherit it; a command line is public
    if options.config is not None:
        os.environ["IKIGAI_CONFIG"] = options.config

    notice = program_log.announce
    with opened(options, interactive=True) as system:  # pages ask the person
        notice(greeting(system))
        if offline := stand_in_notice(system):
            notice(offline)
        status = while_it_lasts(system, lambda: serve_pages(location_of(system), port, click.echo, notice))
        if line := leaving(system):
            notice(line)
        return status
