"""``ikigai mcp`` and ``acp``: the agents for programs that speak a protocol. The work is in `ikigai_actors.doors`."""

from typing import TYPE_CHECKING

import click

from ikigai_actors.shell.cli import program_log
from ikigai_actors.verbs.opening import Options

if TYPE_CHECKING:
    from ikigai_actors.doors.program import DoorOptions


def _opened(options: Options, under: str | None, read_only: bool = False, tasks: bool = False) -> "DoorOptions":
    from ikigai_actors.doors.program import DoorOptions

    json_log = options.log == program_log.JSON
    return DoorOptions(options.database, options.words(), under, read_only, options.workspace, tasks, json_log)


UNDER = click.option("--under", metavar="AGENT", help="Only this agent and those below it can be reached.")


@click.command()
@click.option(
    "--http",
    "port",
    metavar="[PORT]",
    type=click.IntRange(0, 65535),
    is_flag=False,
    flag_value=0,
    help="By HTTP on loopback.  [default: a port that is free]",
)
@UNDER
@click.option("--read-only", is_flag=True, help="Offer only tools that change nothing.")
@click.option("--tasks", is_flag=True, help="Give a client that knows the extension for tasks one for each turn.")
@click.pass_context
def mcp(context: click.Context, port: int | None, under: str | None, read_only: bool, tasks: bool) -> None:
    """Offer the agents as tools of MCP, to Claude Code, Codex, Zed and others.

    Speaks by standard input and output until the input ends, or by HTTP with a token until Ctrl-C. A host that runs the
    agents is started when none does, with the options before the command, and ends when nobody needs it. Needs: pip
    install 'ikigai-actors[mcp]'.
    """
    from ikigai_actors.doors import program
    from ikigai_actors.shell.cli.parent_watchdog import end_with_parent

    opened = _opened(context.obj, under, read_only, tasks)
    if port is not None:
        context.exit(program.serve_mcp_by_http(opened, port, click.echo))
    end_with_parent()
    context.exit(program.serve_mcp(opened))


@click.command()
@UNDER
@click.pass_context
def acp(context: click.Context, under: str | None) -> None:
    """Let an editor such as Zed drive agents by ACP.

    Each session of the editor is an agent. Speaks by standard input and output until the input ends. A host that runs
    the agents is started when none does, with the options before the command, and ends when nobody needs it. Needs: pip
    install 'ikigai-actors[acp]'.
    """
    from ikigai_actors.doors import program
    from ikigai_actors.shell.cli.parent_watchdog import end_with_parent

    end_with_parent()
    context.exit(program.serve_acp(_opened(context.obj, under)))


DOORS = (acp, mcp)
