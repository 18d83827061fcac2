"""The commands that work beside a running shell, and without one: they read and write the database, and run no agents.

Exit status: 0 when it was done, 1 when it could not be (one line on standard error says why), 2 for wrong usage, 3 when
a wait was over before what was waited for came, 130 after Ctrl-C. Standard output has the answer alone; notices go to
standard error. With ``--json`` the answer is JSON: one value, or one object a line where it goes on.
"""

import shutil
import sys
from typing import TYPE_CHECKING, Any

import click

from ikigai_actors.shell.cli.exit_status import TIMED_OUT, ended_early
from ikigai_actors.shell.cli.options import Options
from ikigai_actors.shell.cli.progress import show_notice
from ikigai_actors.shell.text.harmless import as_json, harmless

if TYPE_CHECKING:
    from ikigai_actors.providers.base import Reply


@click.command()
@click.option("--all", "dead_too", is_flag=True, help="Show the dead too.")
@click.option("--tree", is_flag=True, help="With --json: in the order of the tree, with depths.")
@click.option("--json", "json", is_flag=True, help="All of the registry, the dead too, as a JSON list.")
@click.pass_obj
def agents(options: Options, dead_too: bool, tree: bool, json: bool) -> None:
    """Show the tree of agents. Reads the database, beside a running shell or without one."""
    from ikigai_actors.shell.cli import registry as reader

    if json:
        click.echo(reader.registry_as_json(reader.read(options.database), tree))
        return
    from ikigai_actors.shell.cli.paint import show
    from ikigai_actors.shell.text.colours import Coloured

    for line in reader.read_tree(options.database, dead_too):
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
@click.argument("a", metavar="AGENT")
@click.argument("b", metavar="OTHER")
@click.option("--json", "json", is_flag=True, help="As a JSON object: what is in common, and both tails.")
@click.pass_obj
def diff(options: Options, a: str, b: str, json: bool) -> None:
    """Show where the histories of two agents part, and what each has said since. Of the dead, too.

    AGENT and OTHER are a name, two words, or 4 or more characters of a uuid. Works beside a running shell or without
    one.
    """
    from ikigai_actors.records.agents.words import called
    from ikigai_actors.shell.text.diff import diff_page
    from ikigai_actors.shell.text.rows import as_row
    from ikigai_actors.system.remote.client import Client

    with Client.open(options.database) as client:
        found = client.diff(a, b)
        lines = [] if json else diff_page(found, shutil.get_terminal_size().columns, client.label)
    if json:
        tails = {
            name: as_row(tail) | {"label": called(tail.agent, tail.name), "messages": [*map(as_row, tail.messages)]}
            for name, tail in (("a", found.a), ("b", found.b))
        }
        click.echo(as_json(as_row(found) | tails))
        return
    for line in lines:
        click.echo(harmless(line))


@click.command()
@click.argument("recipient")
@click.argument("text", nargs=-1, required=True)
@click.option("--as", "sender", metavar="AGENT", help="The agent that sends it; else a person outside of any agent.")
@click.option("--after", metavar="TIME", help="When, as 90s, 10m, 2h or 3d; else now.")
@click.option("--at", metavar="TIME", help="When, as 09:00 or 2026-11-26T09:00.")
@click.option("--zone", metavar="ZONE", help="Whose clocks --at means, as Europe/Berlin; else those of this machine.")
@click.pass_obj
def send(options: Options, /, recipient: str, text: tuple[str, ...], sender: str | None, **when: str | None) -> None:
    """Send a mail to an agent, which reads it when it chooses to. Works beside a running shell or without one.

    RECIPIENT and AGENT are a name, two words, or 4 or more characters of a uuid.
    """
    from ikigai_actors.shell.cli import client

    click.echo(client.send(options.database, recipient, " ".join(text), sender, **when))


@click.command()
@click.argument("agent")
@click.argument("text", nargs=-1, required=True)
@click.option("--wait", is_flag=True, help="Wait for the end of its turn, and print the answer.")
@click.option("--timeout", metavar="SECONDS", type=click.FloatRange(min=0), help="Wait no longer; then exit status 3.")
@click.option("--json", "json", is_flag=True, help="What was prompted, and the answer, as a JSON object.")
@click.pass_context
@click.option("--attach", multiple=True, metavar="FILE", help="A picture, PDF or sound for the model; may be repeated.")
@click.option("--steer", is_flag=True, help="Say it into the turn in progress, which reads it before its next step.")
@click.option("--now", is_flag=True, help="With --steer: cut the step in progress off.")
def prompt(
    context: click.Context,
    agent: str,
    text: tuple[str, ...],
    wait: bool,
    timeout: float | None,
    json: bool,
    attach: tuple[str, ...],
    steer: bool,
    now: bool,
) -> None:
    """Prompt an agent. Works beside a running shell or without one.

    The prompt is in the database when this returns. The process that runs the agents takes it up when the agent is
    idle: now, or when it is started. With --wait the exit status is 1 when the turn ended without an answer.
    """
    from ikigai_actors.shell.cli import client

    if timeout is not None and not wait:
        raise click.UsageError("--timeout is for --wait.")
    if (steer and (wait or attach)) or (now and not steer):
        raise click.UsageError("--steer takes no --wait and no --attach; --now is for --steer.")
    database, said = context.obj.database, " ".join(text)
    with ended_early(context):
        left = (
            client.steer(database, agent, said, now, show_notice)
            if steer
            else client.prompt_and_wait(database, agent, said, timeout, show_notice, attach)
            if wait
            else client.prompt(database, agent, said, show_notice, attach)
        )
    if json:
        reply = left.reply
        told = {"agent_uuid": left.agent.uuid, "name": left.agent.name, "label": left.agent.short, "mail": left.mail}
        told |= {"text": reply.text, "stop_reason": reply.stop_reason} if reply is not None else {}
        click.echo(as_json(told))
    elif left.reply is not None:
        _answer(left.reply)
    elif not wait:
        click.echo(f"{'word' if steer else 'prompt'} {left.mail} to {left.agent.short}")
    if wait and left.reply is None:
        show_notice(
            f"No answer within {timeout:g} s. Prompt {left.mail} of {left.agent.short} stays. {left.why}".rstrip()
        )
        context.exit(TIMED_OUT)


@click.command()
@click.argument("agent")
@click.argument("prompt", nargs=-1)
@click.option("--name", help="A name for the child, unique among the living.")
@click.option("--model", metavar="PROVIDER:MODEL", help="Its model; else the one of the agent.")
@click.option("--system", metavar="TEXT", help="Its system prompt; else the one of the agent.")
@click.option(
    "--restart", default="transient", show_default=True, help="When it is restarted: permanent, transient or temporary."
)
@click.option(
    "--on-orphan",
    metavar="POLICY",
    help="Its children when it dies: reparent, cascade, stop or continue; else as here.",
)
@click.option(
    "--at", metavar="N", type=click.IntRange(min=0), help="The last message that it inherits; ikigai log shows them."
)
@click.option("--budget", metavar="usd=1,…", help="What it and all below it may spend.")
@click.option(
    "--count", metavar="N", type=int, help="How many children to make, all or none, each with the same PROMPT."
)
@click.option("--wait", is_flag=True, help="Wait for the end of its first turn, and print the answer.")
@click.option("--timeout", metavar="SECONDS", type=click.FloatRange(min=0), help="Wait no longer; then exit status 3.")
@click.option("--json", "json", is_flag=True, help="The child, and the answer, as a JSON object; children as a list.")
@click.pass_context
def fork(
    context: click.Context,
    /,
    agent: str,
    prompt: tuple[str, ...],
    count: int | None,
    budget: str | None,
    wait: bool,
    json: bool,
    **how: Any,
) -> None:
    """Fork an agent: make a child that remembers all that was said before. With a PROMPT the child answers at once.

    With --at it remembers what was said up to that message. Its settings are those of now all the same.

    The process that runs the agent does it, on whichever host that is: a busy agent forks when its model has replied,
    and the tools of that reply are done. Without such a process nothing happens, now or later.
    """
    from ikigai_actors.records.budgets.budget import parse_budget
    from ikigai_actors.shell.cli import client

    if wait and not prompt:
        raise click.UsageError("--wait is for a PROMPT.")
    said = " ".join(prompt) if prompt else None
    how["budget"] = None if budget is None else parse_budget(budget)
    if count is not None:
        if wait or how["name"] is not None:
            raise click.UsageError(f"{'--wait' if wait else '--name'} is for one child, not for --count.")
        with ended_early(context):
            parent, children = client.fork_many(context.obj.database, agent, said, count, **how)
        if json:
            born = [
                {"agent_uuid": uuid, "label": label, "parent_uuid": parent.uuid} for uuid, label in children.items()
            ]
            click.echo(as_json(born))
        else:
            click.echo("\n".join(children.values()))
        return
    with ended_early(context):
        made = client.fork(context.obj.database, agent, said, wait=wait, **how, notice=show_notice)
    child, reply = made.child, made.reply
    if json:
        told = {"agent_uuid": child.uuid, "name": child.name, "label": child.short, "parent_uuid": made.parent.uuid}
        told |= {"text": reply.text, "stop_reason": reply.stop_reason} if reply is not None else {}
        click.echo(as_json(told))
    elif reply is not None:
        _answer(reply)
    else:
        messages = "1 message" if made.inherited == 1 else f"{made.inherited} messages"
        click.echo(f"{child.short}: forked from {made.parent.short}; inherits {messages}")
    if wait and reply is None:
        show_notice(f"No answer within {how['timeout']:g} s. {child.short} is there, and goes on. {made.why}".rstrip())
        context.exit(TIMED_OUT)


@click.command()
@click.argument("agent")
@click.option("--cascade", is_flag=True, help="All its descendants too, at once.")
@click.option("--reason", default="", help="The reason, for the registry.")
@click.pass_obj
def kill(options: Options, agent: str, cascade: bool, reason: str) -> None:
    """End an agent at once. Works beside a running shell or without one."""
    _send_signal(options, "KILL", agent, cascade=cascade, reason=reason)


@click.command()
@click.argument("agent")
@click.argument("name")
@click.pass_obj
def rename(options: Options, agent: str, name: str) -> None:
    """Give an agent another name, unique among the living. Works beside a running shell or without one.

    An empty NAME ("") takes its name away.
    """
    from ikigai_actors.shell.cli import client

    click.echo(client.rename(options.database, agent, name))


@click.command("signal")
@click.argument("name", type=click.Choice(["INT", "STOP", "CONT", "TERM", "KILL"], case_sensitive=False))
@click.argument("agent")
@click.option("--cascade", is_flag=True, help="All its descendants too.")
@click.option("--reason", default="", help="The reason, for the registry if an agent dies of it.")
@click.option("--grace", metavar="SECONDS", type=click.FloatRange(min=0), default=30.0, help="TERM: then it is killed.")
@click.pass_obj
def send_signal(options: Options, /, name: str, agent: str, **how: Any) -> None:
    """Send a signal to an agent. Works beside a running shell or without one.

    INT ends its turn. STOP pauses it after its step, CONT lets it go on. TERM lets it finish its turn and die. KILL
    ends it at once.
    """
    _send_signal(options, name, agent, **how)


@click.command()
@click.option("--tokens", is_flag=True, help="Also the tokens that each agent has used; reads every message.")
@click.option("--by", metavar="LABEL", help="Only what was spent, by the value of this label: --by team.")
@click.option("--since", metavar="TIME", help="With --by: from then on, as 7d, or 2026-11-26T08:00+00:00.")
@click.option("--json", "json", is_flag=True, help="As a JSON object.")
@click.pass_obj
def stats(options: Options, tokens: bool, by: str | None, since: str | None, json: bool) -> None:
    """Count what the database holds, and show who runs its agents.

    --by LABEL shows what requests to models have cost instead, for each value of a label that agents or prompts have.

    Reads the database, beside a running shell or without one. F4 in the shell shows more: how long agents have waited
    for the model, for example, which only the process that runs them knows.
    """
    from ikigai_actors.shell.cli.stats import as_lines, as_object, read_figures, read_spending, spending_lines

    if since is not None and by is None:
        raise click.UsageError("--since goes with --by LABEL.")
    if by is not None:
        spent = read_spending(options.database, by, since)
        click.echo(as_object(spent) if json else "\n".join(spending_lines(by, spent)))
        return
    figures = read_figures(options.database, tokens)
    if json:
        click.echo(as_object(figures))
        return
    from ikigai_actors.shell.cli.paint import show

    for line in as_lines(figures):
        show(line)


@click.command()
@click.argument("agent", metavar="[AGENT]", default="")
@click.argument("more", metavar="[+AMOUNT|LIMIT]", required=False)
@click.option("--json", "json", is_flag=True, help="As a JSON object.")
@click.pass_obj
def budget(options: Options, agent: str, more: str | None, json: bool) -> None:
    """Show the nearest budget of an AGENT, or grant more of it: +5usd, +100ktokens, +2agents, +1h.

    Those who wait for it go on. usd=5 sets how much AGENT's own budget grants in all, at least what is spent and held,
    and makes it where there is none. Without AGENT it is that of agent 0, for all together. Works beside a running
    shell or without one.
    """
    from ikigai_actors.shell.cli import budgets
    from ikigai_actors.shell.text.budgets import budget_lines

    if more is None and (agent.startswith("+") or "=" in agent):
        agent, more = "", agent
    found, owner = budgets.look_or_grant(options.database, agent, more)
    click.echo(budgets.as_object(found, owner) if json else harmless("\n".join(budget_lines(found, owner))))


@click.command()
@click.argument("agent", metavar="[AGENT]", default="")
@click.argument("text", metavar="[TEXT]...", nargs=-1)
@click.option("--after", metavar="TIME", help="When, as 90s, 10m, 2h or 3d.")
@click.option("--at", metavar="TIME", help="When, as 09:00 or 2026-11-26T09:00.")
@click.option("--every", metavar="CRON|TIME", help="Again and again, as '0 9 * * 1-5' or 36h.")
@click.option("--zone", metavar="ZONE", help="Whose clocks are meant, as Europe/Berlin; else those of this machine.")
@click.option("--prompt", is_flag=True, help="As a prompt, which begins a turn; else as mail.")
@click.option("--cancel", metavar="N", type=click.IntRange(min=1), help="Cancel timer N of the AGENT.")
@click.option("--json", "json", is_flag=True, help="The timers as a JSON list.")
@click.pass_obj
def timers(options: Options, /, agent: str, text: tuple[str, ...], cancel: int | None, json: bool, **how: Any) -> None:
    """Show the timers of all agents, or of an AGENT; with a TEXT remind the AGENT of it later.

    With --every and no TEXT it is shown when that would be, and nothing is set.
    The process that runs the agent does so when the time comes; what it misses while it does not run comes once.
    """
    from ikigai_actors.shell.cli import timers
    from ikigai_actors.shell.text.timers import next_lines

    if (text or cancel is not None) and not agent:
        raise click.UsageError("Say whose timer.")
    if cancel is not None:
        click.echo(timers.cancel(options.database, agent, cancel))
    elif text:
        click.echo(timers.set_timer(options.database, agent, " ".join(text), **how))
    elif how["every"] and not (how["after"] or how["at"]):
        times = timers.next_times(how["every"], how["zone"])
        click.echo(timers.times_as_list(times) if json else "\n".join(next_lines(times)))
    elif any(how.values()):
        raise click.UsageError("Say of what: ikigai timers AGENT --after 10m TEXT.")
    else:
        found, names = timers.list_timers(options.database, agent)
        click.echo(timers.as_list(found, names) if json else "\n".join(timers.as_lines(found, names)))


@click.command()
@click.option("--json", "json", is_flag=True, help="As a JSON list.")
@click.pass_obj
def hosts(options: Options, json: bool) -> None:
    """Show which processes run the agents, or did within the last hour.

    Reads the database, beside a running shell or without one. See also: ikigai host.
    """
    from ikigai_actors.shell.cli.hosts import as_objects, read_hosts
    from ikigai_actors.shell.text.hosts import host_lines

    found, vacant = read_hosts(options.database)
    click.echo(as_objects(found) if json else harmless("\n".join(host_lines(found, vacant))))


@click.command()
@click.argument("host", metavar="HOST")
@click.option("--timeout", type=click.FloatRange(0), default=60.0, show_default=True, help="Seconds to wait.")
@click.pass_context
def drain(context: click.Context, host: str, timeout: float) -> None:
    """Have a HOST, by its name, give all its agents to the other hosts. It gets no new ones.

    Waits until none is left; the exit status is 1 if some are.
    """
    from ikigai_actors.shell.cli.hosts import drain

    with ended_early(context):
        left = drain(context.obj.database, host, timeout)
    click.echo(harmless(f"{host} has no agents left" if not left else f"{host} still has {left} agents"))
    context.exit(1 if left else 0)


@click.command()
@click.argument("agent", metavar="AGENT")
@click.argument("host", metavar="HOST")
@click.option("--timeout", type=click.FloatRange(0), default=60.0, show_default=True, help="Seconds to wait.")
@click.pass_context
def move(context: click.Context, agent: str, host: str, timeout: float) -> None:
    """Have a HOST, by its name, run an AGENT, and those below it that live with it.

    The host that runs them now does so, and this waits for it. What they are doing is cut off, and goes on there.
    """
    from ikigai_actors.shell.cli.hosts import move

    with ended_early(context):
        moved = move(context.obj.database, agent, host, timeout)
    click.echo(harmless(f"{moved} is run by {host} from now on"))


@click.command()
@click.option("--json", "json", is_flag=True, help="What was looked at and found, as a JSON object.")
@click.pass_context
def fsck(context: click.Context, json: bool) -> None:
    """Check that the database holds together. Changes nothing, beside a running shell or without one.

    Names each violation on a line; the exit status is 1 if there is any.
    """
    from ikigai_actors.shell.cli import fsck

    report = fsck.examine(context.obj.database)
    click.echo(fsck.report_as_json(report) if json else "\n".join(fsck.as_lines(report)))
    context.exit(1 if report.violations else 0)


@click.command()
@click.option("--json", "json", is_flag=True, help="As one JSON object.")
@click.pass_context
def doctor(context: click.Context, json: bool) -> None:
    """Show which fence for agents' programs holds on this machine, and what it leaves open.

    Exit status: 0 for namespaces, 1 for Landlock alone, 2 for none. With --workspace and the options beside it before
    the command, for these.
    """
    from ikigai_actors.shell.cli import doctor

    found = doctor.examination(context.obj)
    click.echo(as_json(doctor.as_fields(found)) if json else harmless("\n".join(doctor.report(found))))
    context.exit(doctor.STATUS[found.tier])


@click.command()
@click.argument("model", metavar="[MODEL]", required=False)
@click.option("--update", is_flag=True, help="Write the prices of the installed genai-prices, extra [prices], first.")
@click.option("--to", metavar="FILE", help="With --update: write them to this file, which nothing reads by itself.")
@click.pass_context
def prices(context: click.Context, model: str | None, update: bool, to: str | None) -> None:
    """Show what a MODEL costs, or without one where prices come from.

    Budgets and figures in dollars go by them. What you write into prices.toml or ikigai.toml counts first.
    """
    from ikigai_actors.shell.cli import prices

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

    FROM and TO are files or URLs. All that is committed is copied, in one transaction, compared, and checked as by
    fsck; the exit status is 1 if that finds a violation. FROM is left as it is.
    """
    from ikigai_actors.shell.cli import copy

    done = copy.transfer(source, target)
    click.echo("\n".join(done.lines))
    context.exit(0 if done.sound else 1)


@click.command()
@click.argument("file", metavar="FILE")
@click.pass_context
def backup(context: click.Context, file: str) -> None:
    """Back the database up to the new file FILE. Works beside a running shell or without one.

    For SQLite. The backup is one file, a database in itself, with all that is committed at this moment. It is checked
    as by fsck; the exit status is 1 if that finds a violation, and if no backup could be made. Nothing is overwritten.
    """
    from ikigai_actors.shell.cli import backup as backups

    with ended_early(context):
        done = backups.make(context.obj.database, file)
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
    """
    from ikigai_actors.shell.cli import prune

    with ended_early(context):
        lines = prune.run(context.obj.database, dead_before, dry_run, vacuum)
    click.echo(harmless("\n".join(lines)))


@click.command()
@click.argument("agent", metavar="AGENT")
@click.argument("file", metavar="FILE")
@click.option("--from-clear", is_flag=True, help="Leave out what was cleared before the fork, which nobody there sees.")
@click.option("--markdown", is_flag=True, help="Only the histories, for people; no such file can be imported.")
@click.pass_context
def export(context: click.Context, agent: str, file: str, from_clear: bool, markdown: bool) -> None:
    """Write an AGENT and all below it to the new FILE. Works beside a running shell or without one.

    The file has JSON lines: agents, messages with what is inherited, mail, documents, pictures. Budgets, signals,
    restarts and files of workspaces are not in it.
    """
    from ikigai_actors.shell.cli import transfer

    with ended_early(context):
        told = transfer.export(context.obj.database, agent, file, from_clear, markdown, show_notice)
    click.echo(harmless(told))


@click.command("import")
@click.argument("file", metavar="FILE")
@click.option("--under", metavar="AGENT", help="The agent under which they come.  [default: agent 0]")
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
    documents: str | None,
    dry_run: bool,
    json: bool,
    **how: bool,
) -> None:
    """Bring the agents of a FILE of ikigai export into the database: all of them, or none.

    For a database that no process runs, or an empty one: where ikigai runs, type /import there. First it says what the
    file would begin, and which models and tools it names. Agents in which an open turn or a prompt waits come stopped,
    and no right to use a tool comes along.
    """
    from ikigai_actors.records.transfer.export import as_path
    from ikigai_actors.records.transfer.graft import ImportFile
    from ikigai_actors.shell.cli import transfer

    with ended_early(context):
        looked = ImportFile.of(as_path(file), documents or "refuse", **how)
        if dry_run:
            click.echo(harmless(transfer.preview_of(looked, json)))
            return
        for line in looked.lines():
            show_notice(line)
        told = transfer.import_agents(context.obj.database, looked, under, json)
    click.echo(harmless(told))


COMMANDS = (
    agents, backup, budget, copy, diff, doctor, drain, export, fork, fsck, hosts, import_agents, kill, log, move,
    prices, prompt, prune, rename, send, send_signal, stats, tail, timers,
)  # fmt: skip


def _send_signal(options: Options, name: str, agent: str, *, cascade: bool, reason: str, grace: float = 30.0) -> None:
    from ikigai_actors.shell.cli import client
    from supervisors.signals import Signal

    click.echo(client.signal(options.database, agent, Signal(name), cascade=cascade, reason=reason, grace=grace))


def _answer(reply: "Reply") -> None:
    """Print an answer. That it is empty, or was cut, is a notice."""
    from ikigai_actors.shell.text.pages import stop_note

    click.echo(_shown(reply.text))
    if note := stop_note(reply.stop_reason, not reply.text.strip()):
        show_notice(note)


def _shown(text: str) -> str:
    """A text of somebody's: whole for a program, harmless for a terminal."""
    return harmless(text) if sys.stdout.isatty() else text
