"""``ikigai search``, ``bisect``, ``replay``, ``regress``, ``evaluate``: experiments on histories, at the terminal.

The commands run the agents of the database, or ask the process that runs them. The calls of a trial's model have no
effects outside. Before its first request, each command prints the expected requests and their cost, and the models that
will read histories which other models have written.
"""

from collections.abc import Callable
from typing import Any

import click

from ikigai_actors.errors import IkigaiError, ProviderMissing
from ikigai_actors.shell.cli.app import app_option
from ikigai_actors.shell.cli.progress import show_notice
from ikigai_actors.shell.start import ENDED_BY_CTRL_C
from ikigai_actors.verbs.text.harmless import harmless

WRONG, UNSURE = 2, 3
"""The exit statuses of a regression that could not be made, and of one without a clear result. Experiments end with the
first if only the offline provider is there and was not asked for.
"""

Decorator = Callable[[Any], Any]


def _options(*options: Decorator) -> Decorator:
    """Return a decorator that adds all of these options, in this order."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


_AT = click.option("--at", metavar="N", type=click.IntRange(min=0), help="The position that counts as the end.")
_TOOLS, _RUN = (
    click.option("--run", name, metavar="TOOL", multiple=True, help="A tool that runs; it must only read.  Repeatable.")
    for name in ("tools", "run")
)
_FILES = click.option(
    "--files",
    type=click.Choice(["share", "overlay"]),
    default="share",
    show_default=True,
    help="overlay: a trial may change its own; see --on-fork.",
)
_AT_LEAST = click.option(
    "--at-least", metavar="RATE", type=float, help="How often it is to be right, as 0.8; instead of a baseline."
)
_PARALLEL, _ONE_BY_ONE = (
    click.option("--parallel", type=click.IntRange(1, 1_000), default=default, show_default=True, help=description)
    for default, description in ((8, "At once."), (1, "At once.  More of them are sooner done, and cost more probes."))
)
_TIMEOUT = click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    default=60,
    show_default=True,
    help="A PROGRAM that takes longer cannot judge.",
)
_TRIALS = _options(
    app_option,
    click.option("--dry-run", is_flag=True, help="Only say what would be asked, and what that costs."),
    click.option("--yes", is_flag=True, help="Let another model or service read the recorded histories."),
    click.option("--name", "--resume", metavar="NAME", help="Of the experiment; the same one goes on."),
    click.option("--html", metavar="FILE", help="Write a page to this file, too."),
    click.option("--json", "json", is_flag=True, help="As JSON."),
)
_REPLAYS = _options(
    click.option("--with", "change", metavar="SETTING=VALUE", multiple=True, help="What differs; @FILE reads it."),
    click.option(
        "--from", "start", metavar="N", type=click.IntRange(min=0), default=0, help="Only turns from this message on."
    ),
    click.option("--each", type=click.Choice(["turn", "log", "step"]), default="turn", help="What is replayed."),
    click.option("--missing", type=click.Choice(["stop", "tell"]), default="stop", help="For unrecorded calls."),
    _RUN,
    _PARALLEL,
    _TRIALS,
)


@click.command("search")
@click.argument("agent")
@click.option("--plan", required=True, metavar="PLAN", help="best:N, beam:WIDTHxDEPTH or mcts:TRIALS.")
@click.option("--option", "texts", metavar="PROMPT", multiple=True, required=True, help="To go on with.  Repeatable.")
@click.option(
    "--score", "program", required=True, metavar="PROGRAM", help="Reads an answer, prints a number; 125: none."
)
@_TIMEOUT
@_AT
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the chance in the plan.")
@click.option("--enough", type=float, help="A score that ends mcts.")
@click.option("--keep", metavar="NAME", help="Fork the best one out under this name.")
@_TOOLS
@_FILES
@_PARALLEL
@_TRIALS
@click.pass_context
def search_command(context: click.Context, /, **how: Any) -> None:
    """Search for the best continuation of an AGENT's history.

    Trials are forks; the AGENT itself gets no message. Killed in the middle, the same command goes on.
    """
    _run(context, lambda trials: trials.search_history, how, 1)


@click.command("bisect")
@click.argument("agent")
@click.option("--ask", "probe", metavar="QUESTION", help="Asked at each place; else what followed there is sent again.")
@click.option(
    "--judge", "program", metavar="PROGRAM", required=True, help="Reads an answer: 0 good, 125 none, else bad."
)
@_TIMEOUT
@click.option("--sure", type=click.FloatRange(0.5, 1, True, True), default=0.99, show_default=True, help="Enough.")
@click.option("--most", type=click.IntRange(min=1), default=60, show_default=True, help="The most probes.")
@click.option("--steps", is_flag=True, help="Look within turns, too.")
@_AT
@_TOOLS
@_FILES
@_ONE_BY_ONE
@_TRIALS
@click.pass_context
def bisect_command(context: click.Context, /, **how: Any) -> None:
    """Find the first bad turn of an AGENT's history.

    The PROGRAM may err: its error rates are estimated. Killed in the middle, the same command goes on.
    """
    _run(context, lambda trials: trials.bisect_history, how, 1)


@click.command("replay")
@click.argument("source", metavar="AGENT|FILE")
@click.option("--edit", metavar="N=TEXT", multiple=True, help="Another text for message N; @FILE reads it.")
@_REPLAYS
@click.pass_context
def replay_command(context: click.Context, /, **how: Any) -> None:
    """Replay the turns of an AGENT, or of a FILE of ikigai export, and show what differs.

    Calls are answered from the record. A FILE is read into a database in memory.
    """
    _run(context, lambda trials: trials.replay_turns, how, 1)


@click.command("regress")
@click.argument("source", metavar="AGENT|FILE")
@click.option(
    "--check", default="calls", show_default=True, metavar="CHECK", help="calls, text, schema:MODULE:TYPE or a PROGRAM."
)
@_TIMEOUT
@click.option("--samples", type=click.IntRange(min=1), default=1, show_default=True, help="Of each turn in each arm.")
@click.option("--baseline/--no-baseline", default=True, help="Hold the change to a replay without it.")
@click.option("--margin", type=click.FloatRange(0, 1), default=0.02, show_default=True, help="How much worse may be.")
@_AT_LEAST
@_REPLAYS
@click.pass_context
def regress_command(context: click.Context, /, **how: Any) -> None:
    """Say whether a change makes recorded turns of an AGENT, or of a FILE of ikigai export, worse.

    Exit status: 0 it does not, 1 it does, 2 it could not be tried, 3 unsure; so git bisect can run it. A PROGRAM reads
    an answer: status 0 is right, 125 cannot be judged, else it is wrong.
    """
    _run(context, lambda trials: trials.regress_turns, how, WRONG)


@click.command("evaluate")
@click.argument("agent")
@click.option("--case", "texts", metavar="PROMPT", multiple=True, help="A prompt; @FILE reads it.  Repeatable.")
@click.option("--cases", "file", metavar="FILE", help="A file with a prompt a line.")
@click.option(
    "--judge", "program", metavar="PROGRAM", required=True, help="Reads an answer: 0 right, 125 none, else wrong."
)
@_TIMEOUT
@click.option("--with", "change", metavar="SETTING=VALUE", multiple=True, help="What differs; @FILE reads it.")
@click.option("--samples", type=click.IntRange(min=1), default=1, show_default=True, help="Of each prompt in each arm.")
@click.option("--baseline", is_flag=True, help="Ask without the change, too, and hold the change to that.")
@click.option("--margin", type=click.FloatRange(0, 1), default=0.02, show_default=True, help="How much worse may be.")
@_AT_LEAST
@_AT
@_TOOLS
@_PARALLEL
@_TRIALS
@click.pass_context
def evaluate_command(context: click.Context, /, **how: Any) -> None:
    """Say how often an AGENT answers prompts rightly, by a PROGRAM that reads an answer.

    The prompts are asked of forks; the AGENT itself gets no message. Exit status as of regress: 0 pass, 1 fail, 2 the
    evaluation could not be made, 3 unsure, also without --at-least and --baseline.
    """
    _run(context, lambda trials: trials.evaluate_agent, how, WRONG)


EXPERIMENTS = (search_command, bisect_command, replay_command, regress_command, evaluate_command)


def _run(context: click.Context, verb: Callable[[Any], Any], how: dict[str, Any], failed: int) -> None:
    """Run an experiment, print its result, and exit with its status; with ``failed`` if it could not be carried out."""
    from ikigai_actors.shell.cli import trials

    shared = {name: how.pop(name) for name in ("dry_run", "yes", "html", "json")}
    try:
        text, status = verb(trials)(context.obj, trials.Display(**shared, tell=show_notice), **how)
    except KeyboardInterrupt:
        show_notice("Cut off; the same command goes on.")
        context.exit(ENDED_BY_CTRL_C)
    except IkigaiError as error:
        if failed == 1 and not isinstance(error, ProviderMissing):
            raise
        show_notice(str(error))
        context.exit(WRONG)
    click.echo(harmless(text))
    context.exit(status)
