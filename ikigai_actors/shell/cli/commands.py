"""The commands that work beside a running shell, and without one: they read and write the database, and run no agents.

Exit status: 0 when it was done, 1 when it could not be (one line on standard error says why), 2 for wrong usage, 3
after a timeout, 130 after Ctrl-C. Standard output has the answer alone; notices go to standard error. With ``--json``
the answer is JSON: one value, or one object on each line for an endless answer.
"""

from typing import TYPE_CHECKING, Any

import click

from ikigai_actors.shell.cli.app import app_option
from ikigai_actors.shell.cli.exit_status import ended_early
from ikigai_actors.shell.cli.progress import progress_bar, progress_line, show_notice
from ikigai_actors.verbs.arguments import RECORDER, SESSIONS
from ikigai_actors.verbs.opening import Options, app_arguments
from ikigai_actors.verbs.text.harmless import as_json, harmless

if TYPE_CHECKING:
    pass


@click.command()
@click.argument("word", metavar="[WORD]", required=False)
@click.option("--all", "dead_too", is_flag=True, help="Show the dead too.")
@click.option("--limit", metavar="N", type=click.IntRange(1), help="At most N agents. Without it 200; as JSON all.")
@click.option("--tree", is_flag=True, help="With --json: in the order of the tree, with depths.")
@click.option("--json", "json", is_flag=True, help="A JSON list: without WORD and --limit of all, the dead too.")
@click.pass_obj
def agents(options: Options, word: str | None, dead_too: bool, limit: int | None, tree: bool, json: bool) -> None:
    """Show the tree of agents. Reads the database, beside a running shell or without one.

    If there are more than 200 agents, the list has the agents that were used last, and the number of the others. With
    WORD it has the agents whose name, or two words, contain WORD.
    """
    from ikigai_actors.shell.cli import registry as reader
    from ikigai_actors.shell.cli.paint import show
    from ikigai_actors.system.remote.client import Client
    from ikigai_actors.verbs.text.colours import Coloured

    with Client.open(options.database) as client:
        if json:
            for piece in reader.json_pieces(client, word or "", limit, dead_too, tree):
                click.echo(piece, nl=False)
        else:
            for line in reader.lines(client, word or "", limit, dead_too):
                show(Coloured(line.text, line.spans), dim=line.dead)


@click.command()
@click.argument("agent")
@click.option("--inherited", is_flag=True, help="Also what its ancestors wrote before the fork.")
@click.option("--last", metavar="N", type=click.IntRange(min=0), help="Only the latest N messages.")
@click.option("-f", "--follow", is_flag=True, help="Go on with what it writes, until it is dead or Ctrl-C comes.")
@click.option("--json", "json", is_flag=True, help="Each message as a JSON object on a line.")
@click.pass_context
def log(context: click.Context, /, agent: str, **how: Any) -> None:
    """Show the log of an agent: every message that it wrote, clears and rewinds too. The dead have one as well.

    AGENT is a name, two words, or 4 or more characters of a uuid. Works beside a running shell or without one.
    """
    from ikigai_actors.shell.cli.paint import show
    from ikigai_actors.shell.cli.tail import show_log

    with ended_early(context):
        show_log(context.obj.database, agent, **how, show=show, notice=show_notice)


@click.command()
@click.argument("agents", metavar="[AGENT]...", nargs=-1)
@click.option("--json", "json", is_flag=True, help="Each message, and each death, as a JSON object on a line.")
@click.pass_context
def tail(context: click.Context, agents: tuple[str, ...], json: bool) -> None:
    """Show what agents write from now on, as it is committed: of all agents, or of these.

    Replies come when they are finished. Ends by Ctrl-C, and when all the agents that were named are dead. Without a
    process that runs the agents nothing comes, and it says so.
    """
    from ikigai_actors.shell.cli import tail as tails
    from ikigai_actors.shell.cli.paint import show

    with ended_early(context):
        tails.tail(context.obj.database, agents, json=json, show=show, notice=show_notice)


@click.command()
@click.option("--tokens", is_flag=True, help="Also the tokens that each agent has used; reads every message.")
@click.option("--by", metavar="LABEL", help="Only what was spent, by the value of this label: --by team.")
@click.option("--since", metavar="TIME", help="With --by: from then on, as 7d, or 2026-11-26T08:00+00:00.")
@click.option("--json", "json", is_flag=True, help="As a JSON object.")
@click.pass_obj
def stats(options: Options, tokens: bool, by: str | None, since: str | None, json: bool) -> None:
    """Count what the database holds, and show who runs its agents.

    --by LABEL shows what requests to models have cost instead, for each value of a label that agents or prompts have.

    Reads the database, beside a running shell or without one. F4 in the shell shows more: what each agent does,
    for how long, and how fast its answer comes.
    """
    from ikigai_actors.reach.statistics import read_figures
    from ikigai_actors.shell.cli.stats import as_lines, as_object, read_spending, spending_lines

    if since is not None and by is None:
        raise click.UsageError("--since goes with --by LABEL.")
    if by is not None:
        spent = read_spending(options.database, by, since)
        click.echo(as_object(spent) if json else "\n".join(spending_lines(by, spent)))
        return
    figures = read_figures(options.database, tokens, everybody=json)
    if json:
        click.echo(as_object(figures))
        return
    from ikigai_actors.shell.cli.paint import show

    for line in as_lines(figures):
        show(line)


@click.command()
@click.argument("host", metavar="HOST")
@click.option("--timeout", type=click.FloatRange(0), default=60.0, show_default=True, help="Seconds to wait.")
@click.pass_context
def drain(context: click.Context, host: str, timeout: float) -> None:
    """Make a HOST, by its name, give all its agents to the other hosts. The HOST gets no new agents.

    Waits until the HOST has no agents left; the exit status is 1 if some are left.
    """
    from ikigai_actors.shell.cli.hosts import drain

    with ended_early(context):
        left = drain(context.obj.database, host, timeout)
    click.echo(harmless(f"{host} has no agents left" if not left else f"{host} still has {left} agents"))
    context.exit(1 if left else 0)


@click.command()
@click.option("--json", "json", is_flag=True, help="What was looked at and found, as a JSON object.")
@click.pass_context
def fsck(context: click.Context, json: bool) -> None:
    """Check that the database holds together. Changes nothing, beside a running shell or without one.

    Names each violation on a line; the exit status is 1 if there is any.
    """
    from ikigai_actors.verbs.upkeep import fsck

    report = fsck.examine(context.obj.database)
    click.echo(fsck.report_as_json(report) if json else "\n".join(fsck.as_lines(report)))
    context.exit(1 if report.violations else 0)


@click.command()
@click.option("--json", "json", is_flag=True, help="As one JSON object.")
@click.pass_context
def doctor(context: click.Context, json: bool) -> None:
    """Show which fence for agents' programs holds on this machine, and what it leaves open.

    Exit status: 0 for namespaces, 1 for Landlock alone, 2 for none. Examines the fence for --workspace and its options,
    if they come before the command.
    """
    from ikigai_actors.verbs.upkeep import doctor

    examination = doctor.examination(context.obj)
    click.echo(as_json(doctor.as_fields(examination)) if json else harmless("\n".join(doctor.report(examination))))
    context.exit(doctor.STATUS[examination.tier])


@click.command()
@click.argument("model", metavar="[MODEL]", required=False)
@click.option("--update", is_flag=True, help="Write the prices of the installed genai-prices, extra [prices], first.")
@click.option("--to", metavar="FILE", help="With --update: write them to this file, which nothing reads by itself.")
@click.pass_context
def prices(context: click.Context, model: str | None, update: bool, to: str | None) -> None:
    """Show the price of a MODEL, or without a MODEL the sources of prices.

    Budgets and figures in dollars use these prices. Prices that you write into prices.toml or ikigai.toml count first.
    """
    from ikigai_actors.verbs.upkeep import prices

    if to is not None and not update:
        raise click.UsageError("--to is for --update.")
    lines = prices.update(to) if update else []
    lines += prices.price_lines(model, context.obj.config) if model is not None else [] if to else prices.sources()
    click.echo(harmless("\n".join(lines)))


@click.command()
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.pass_context
def copy(context: click.Context, source: str, target: str) -> None:
    """Copy the database FROM to the empty database TO, from SQLite to PostgreSQL or any other way.

    FROM and TO are files or URLs. All committed data is copied in one transaction, compared, and checked as by fsck;
    the exit status is 1 if the check finds a violation. FROM is not changed.
    """
    from ikigai_actors.verbs.upkeep import copy

    done = copy.copy_to(source, target, progress_bar)
    click.echo("\n".join(done.lines))
    context.exit(0 if done.sound else 1)


@click.command()
@click.argument("file", metavar="FILE")
@click.pass_context
def backup(context: click.Context, file: str) -> None:
    """Back the database up to the new file FILE. Works beside a running shell or without one.

    For SQLite. The backup is one file, a database in itself, with all that is committed at this moment. The backup is
    checked as by fsck; the exit status is 1 if the check finds a violation, and if no backup could be made. Nothing is
    overwritten.
    """
    from ikigai_actors.verbs.upkeep import backup as backups

    with ended_early(context):
        done = backups.make(context.obj.database, file, progress_line)
    click.echo(harmless("\n".join(done.lines)))
    context.exit(0 if done.sound else 1)


@click.command()
@click.option("--dead-before", metavar="SPAN", required=True, help="Of agents that died so long ago: 30d, 12h, 90m.")
@click.option("--dry-run", is_flag=True, help="Only say what would be deleted.")
@click.option("--vacuum", is_flag=True, help="SQLite: rewrite the file of an earlier ikigai, so that it shrinks.")
@click.pass_context
def prune(context: click.Context, dead_before: str, dry_run: bool, vacuum: bool) -> None:
    """Delete the messages and mail of dead agents that nobody needs any more. Works beside a running shell.

    Nothing is deleted of an agent from which a living one descends, or one that died later. Agents stay in the
    registry, and documents stay. There is no way back: export the agents first, or back the database up.

    Layers of files of these agents on this machine are deleted, too. Before a worktree of git is deleted, its
    uncommitted changes are committed to a branch.
    """
    from ikigai_actors.verbs.upkeep import prune

    with ended_early(context):
        lines = prune.prune_database(context.obj.database, dead_before, dry_run, vacuum, progress_bar)
    click.echo(harmless("\n".join(lines)))


@click.command()
@click.argument("agent", metavar="AGENT")
@click.argument("file", metavar="FILE")
@click.option("--from-clear", is_flag=True, help="Leave out what was cleared before the fork, which nobody there sees.")
@click.option("--markdown", is_flag=True, help="Only the histories, for people; no such file can be imported.")
@click.option("--to", type=SESSIONS, help="Only the agent, as a session of another program.")
@click.pass_context
def export(context: click.Context, agent: str, file: str, from_clear: bool, markdown: bool, to: str | None) -> None:
    """Write an AGENT and all below it to the new FILE. Works beside a running shell or without one.

    With --to, an imported agent is written as the lines of its session, followed by its later messages.

    The file has JSON lines: agents, messages with what is inherited, mail, documents, pictures. Budgets, signals,
    restarts and files of workspaces are not in it.
    """
    from ikigai_actors.verbs.upkeep import transfer

    if to is not None and (markdown or from_clear):
        raise click.UsageError("--to goes with neither --markdown nor --from-clear.")
    with ended_early(context):
        if to is not None:
            from ikigai_actors.recordings.session_files import export_as_session

            click.echo(harmless(export_as_session(context.obj.database, agent, file, to)))
            return
        line = transfer.export(context.obj.database, agent, file, from_clear, markdown, show_notice, progress_bar)
    click.echo(harmless(line))


@click.command("import")
@click.argument("file", metavar="FILE")
@click.option("--under", metavar="AGENT", help="The agent under which they come.  [default: agent 0]")
@click.option(
    "--from",
    "recorder",
    type=RECORDER,
    default="auto",
    show_default=True,
    help="What has written it.",
)
@click.option("--keep-workspace", is_flag=True, help="Of another program: let their calls run here.")
@click.option("--keep-model", is_flag=True, help="Of another program: ask the models that have answered then.")
@click.option(
    "--documents", type=click.Choice(["keep", "append"]), help="What to do with those that are here with other texts."
)
@click.option("--stopped", is_flag=True, help="Let none of them begin anything before ikigai signal CONT.")
@click.option("--go", is_flag=True, help="Let those begin as well in which work waits.")
@click.option("--dry-run", is_flag=True, help="Only say what the file would bring.")
@click.option("--json", "json", is_flag=True, help="What came, or would come, as a JSON object.")
@click.pass_context
def import_agents(
    context: click.Context,
    /,
    file: str,
    under: str | None,
    recorder: str,
    keep_workspace: bool,
    keep_model: bool,
    documents: str | None,
    dry_run: bool,
    json: bool,
    **how: bool,
) -> None:
    """Bring the agents of a FILE of ikigai export into the database: all of them, or none.

    FILE may also be a session of Claude Code, Codex or pi, a trace of OpenTelemetry or Langfuse, or a folder of these:
    each becomes an agent, and each other path of it a fork. No call of these agents runs before their setting effects
    is removed.

    For a database that no process runs, or an empty one: where ikigai runs, type /import there. First it says what the
    file would begin, and which models and tools it names. Agents in which an open turn or a prompt waits come stopped,
    and no right to use a tool comes along.
    """
    from ikigai_actors.recordings.formats import importable
    from ikigai_actors.verbs.upkeep import transfer

    with ended_early(context):
        opened = importable(file, recorder, keep_workspace=keep_workspace, keep_model=keep_model, notice=show_notice)
        looked = transfer.looked_at(opened, documents or "refuse", **how)
        if dry_run:
            click.echo(harmless(transfer.preview_of(looked, json)))
            return
        for line in looked.lines():
            show_notice(line)
        lines = transfer.import_agents(context.obj.database, looked, under, json, progress_bar)
    click.echo(harmless(lines))


@click.command()
@click.argument("what", metavar="[AGENT|FILE]", required=False)
@click.option("--since", metavar="CHECKPOINT", help="Also compare with this file, which ikigai checkpoint has written.")
@click.option("--json", "json", is_flag=True, help="What was compared and found, as a JSON object.")
@click.pass_context
def verify(context: click.Context, what: str | None, since: str | None, json: bool) -> None:
    """Verify that histories are unchanged: of all agents, of an AGENT, or in a FILE of ikigai export.

    Each message has a hash of itself and of all before it. Exit status: 0 if every hash fits, 1 with a line for each
    hash that does not fit, 2 if the histories could not be read. Changes nothing, beside a running shell or without
    one.
    """
    from ikigai_actors.errors import IkigaiError
    from ikigai_actors.verbs.upkeep import proof

    with ended_early(context):
        try:
            report = proof.examine(context.obj.database, what, since)
        except IkigaiError as error:
            show_notice(str(error))
            context.exit(2)
    click.echo(proof.report_as_json(report) if json else harmless("\n".join(proof.as_lines(report))))
    context.exit(1 if report.problems else 0)


@click.command()
@click.argument("file", metavar="FILE")
@click.option("--previous", metavar="OLD", help="Verify against this checkpoint first; name only what has gone on.")
@click.pass_context
def checkpoint(context: click.Context, file: str, previous: str | None) -> None:
    """Write the hash of every history to the new FILE, for ikigai verify --since. Keep it where no host can reach it.

    Works beside a running shell or without one, in one snapshot. Sign it with ssh-keygen -Y sign, if you like.
    """
    from ikigai_actors.verbs.upkeep import proof

    with ended_early(context):
        click.echo(harmless(proof.write(context.obj.database, file, previous)))


@click.group()
def programs() -> None:
    """Look after programs: functions that are the models of agents."""


@programs.command("check")
@app_option
@click.option("--json", "json", is_flag=True, help="Each turn as an object, with why it does not fit.")
@click.pass_context
def open_turns_checked(context: click.Context, json: bool) -> None:
    """Replay the open turns of the programs of --app, and list those that no longer fit. Changes nothing.

    Each function is called with the recorded results of its turn, up to the point where it waits. Run the command
    before you deploy changed programs; the exit status is 1 if a turn does not fit. Works beside a running host or
    without one.
    """
    from ikigai_actors.verbs.upkeep import programs as checked

    if context.obj.app is None:
        raise click.UsageError("Expected --app MODULE:FUNCTION, whose programs are checked.")
    turns = checked.check_programs_of(context.obj.database, app_arguments(context.obj.app).get("programs", ()))
    click.echo(checked.checked_as_json(turns) if json else "\n".join(checked.as_lines(turns)))
    context.exit(1 if any(turn.why for turn in turns) else 0)


COMMANDS = (
    agents, backup, checkpoint, copy, doctor, drain, export, fsck, import_agents, log, prices, programs, prune, stats,
    tail, verify,
)  # fmt: skip
