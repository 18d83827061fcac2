"""The slash commands: the verbs that people may call, as click commands, so that help, errors and quoting are alike.

    run(shell, '/fork "read the schema" --name dba')

No error ends the session: it is printed on a line of its own.
"""

import json
import re
import shlex
import textwrap
from typing import Any

import click

from ikigai_actors.agent.turn.merging import PICK, RESULT, WAYS
from ikigai_actors.behaviour.listing import books_in, listed_trials
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.budgets.budget import parse_budget
from ikigai_actors.records.log.scrollback import Scrollback
from ikigai_actors.records.messages.settings import SETTINGS, parse_setting
from ikigai_actors.shell.headings import EVERYTHING, MOST_COLUMNS, SLASH_COMMANDS, HeadedGroup
from ikigai_actors.shell.text.diff import diff_page
from ikigai_actors.shell.text.naming import named
from ikigai_actors.shell.text.pages import context_page, history_page, merged_document, written
from ikigai_actors.shell.text.tree import tree_lines
from ikigai_actors.shell.verbs import (
    approvals,
    budgets,
    experiments,
    files,
    groups,
    hosts,
    mail,
    table,
    timers,
)
from ikigai_actors.shell.verbs.arguments import AGENT, COMMAND, MARK_LABEL, POSITION, SETTING, TEXT, TOOL
from ikigai_actors.shell.verbs.documents import doc
from ikigai_actors.shell.verbs.place import ShellPlace
from ikigai_actors.shell.verbs.verb import ScriptOption, Verb, VerbGroup
from ikigai_actors.store.hosts.rows import host_names, owners
from ikigai_actors.system.handles.outcomes import Merged


class SlashCommands(HeadedGroup):
    """The group of all slash commands; the names begin with the slash."""

    contents, help_command = SLASH_COMMANDS, "/help"


@click.group(cls=SlashCommands, add_help_option=False)
def commands() -> None:
    """What the shell understands beside text, which prompts the current agent."""


def slash_command(verb: Verb | VerbGroup) -> click.Command:
    """The command by which a person calls a verb."""
    if isinstance(verb, VerbGroup):
        return _group(verb)

    @click.pass_obj
    def run_verb(shell: ShellPlace, /, acted_on: str | None = None, **arguments: object) -> None:
        agent = shell.current if acted_on is None else shell.system.agent(acted_on)
        verb.work(shell, *([agent] if verb.needs_agent else []), **arguments)

    own = [one for one in verb.params if not isinstance(one, ScriptOption)]
    params = verb.slash.among(own, AGENT, "Another agent than the current one.")
    hint = "\n\nWithout ID it is the current agent." if verb.slash.text == "[ID]" else ""
    settings = {"ignore_unknown_options": True} if verb.is_free else {}
    return click.Command(f"/{verb.name}", settings, run_verb, params, help=verb.help + hint)


def _group(group: VerbGroup) -> click.Group:
    @click.pass_context
    def run_usual(ctx: click.Context) -> None:
        if ctx.invoked_subcommand is None:
            ctx.invoke(below[group.usual.name])

    below = {one.name: slash_command(one) for one in group.verbs}
    for name, command in below.items():
        command.name = name
    return click.Group(f"/{group.name}", below, invoke_without_command=True, callback=run_usual, help=group.help)


for _command in (doc, *mail.COMMANDS):
    commands.add_command(_command)


def run(shell: ShellPlace, line: str) -> None:
    """Run a line that begins with a slash. Raises the library's errors; those of the line itself are printed."""
    try:
        words = _words(line)
    except ValueError as error:
        shell.screen.error(f"{error}. Put text with quotes in it between quotes of the other kind.")
        return
    try:
        width = min(shell.screen.columns, MOST_COLUMNS)
        commands.main(words, prog_name="", obj=shell, standalone_mode=False, terminal_width=width)
    except click.UsageError as error:
        usage, told = error.ctx.command_path if error.ctx is not None else "", error.format_message().rstrip(".")
        shell.screen.error(told + ("" if told.endswith("?") else ".") + (f" Try {usage} --help." if usage else ""))
    except click.ClickException as error:
        shell.screen.error(error.format_message())


def _words(line: str) -> list[str]:
    """The words of a line. JSON that is a setting's value is one word as it is: its quotes are its own."""
    json_follows = re.fullmatch(r"\s*(/set)\s+([a-z_]+)\s+([\[{].*)", line, re.DOTALL)
    return list(json_follows.groups()) if json_follows is not None else shlex.split(line)


GUIDE = """
What you type goes to the current agent. A line that begins with / is a command; /COMMAND --help explains it. Put a
blank before a text that begins with /, and quotes around an argument of several words.

Ctrl-C interrupts the answer, twice leaves; Ctrl-D leaves. Enter during an answer lets it go on in the background; Enter
alone then shows the rest of it.
"""
"""What /help says before it lists the commands."""

Words = tuple[str, ...]


@commands.command("/fork")
@click.argument("prompt", type=TEXT, required=False)
@click.option("--name", type=TEXT, help="A name for the child, unique among the living.")
@click.option("--model", type=TEXT, help="Its model, as provider:model; else the one of this agent.")
@click.option("--at", metavar="N", type=POSITION, help="The last message that it inherits; /history shows them.")
@click.option("--budget", metavar="usd=1,…", type=TEXT, help="What it and all below it may spend.")
@click.option("--follow/--no-follow", default=None, help="Go to the child, or stay.  [as ikigai was started]")
@click.pass_obj
def fork(shell: ShellPlace, /, prompt: str | None, budget: str | None, **how: Any) -> None:
    """Fork the current agent and go to the child.

    The child remembers everything so far; with --at, everything up to that message. With a PROMPT (in quotes) it
    answers at once.

    A busy agent forks at its next step boundary: when its model has replied, and the tools of that reply are done. You
    can go on meanwhile; a notice says when it is done.
    """
    shell.fork(prompt, budget=None if budget is None else parse_budget(budget), **how)


@commands.command("/agents")
@click.option("--all", "dead_too", is_flag=True, help="Show the dead too.")
@click.pass_obj
def agents(shell: ShellPlace, dead_too: bool) -> None:
    """Show the tree of agents.

    * marks the current one. Each line has the beginning of the uuid, the name, the state, and two counts of
    messages of any kind: those before the fork, and its own since then. Messages that a /clear or /rewind hides count
    too, but not in /context. Unread mail is counted where there is any. For an agent in a turn it shows its latest sign
    of life. Where several hosts run the agents, a column names the host of each. An experiment says how many trials it
    has, and shows the first of them, with their scores and prompts.
    """
    records, own, hosts = shell.system.store.read(
        lambda tx: (registry.every(tx), registry.own_counts(tx), host_names(owners(tx)))
    )
    books = shell.system.store.read(lambda tx: books_in(tx, records))
    current, signs, state = shell.current.uuid, shell.system.signs(), shell.system.state_of
    trials = listed_trials(records, books, current)
    for line in tree_lines(records, own, state, current, dead_too, hosts, signs, trials):
        shell.screen.line(line.text, bold=line.current, dim=line.dead)


@commands.command("/switch")
@click.argument("agent", metavar="ID", type=AGENT)
@click.pass_obj
def switch(shell: ShellPlace, agent: str) -> None:
    """Go to an agent.

    ID is its name, or 4 or more characters of its uuid. The agent that you leave goes on with what it does.
    """
    shell.go_to(shell.system.agent(agent))


@commands.command("/parent")
@click.pass_obj
def parent(shell: ShellPlace) -> None:
    """Go up: to the supervisor of this agent."""
    above = shell.current.supervisor
    if above is None:
        shell.screen.error("This is agent 0: nobody is above it.")
    else:
        shell.go_to(above)


@commands.command("/child")
@click.pass_obj
def child(shell: ShellPlace) -> None:
    """Go down: to the newest child of this agent."""
    records = [record for record in _children(shell, shell.current.uuid) if record.living]
    if not records:
        shell.screen.error("This agent has no living child. /fork makes one.")
    else:
        newest = max(records, key=lambda record: (record.created_at, record.born))
        shell.go_to(shell.system.handle(newest.uuid))


@commands.command("/next")
@click.pass_obj
def next_sibling(shell: ShellPlace) -> None:
    """Go to the next sibling, from the last to the first."""
    _go_sideways(shell, 1)


@commands.command("/prev")
@click.pass_obj
def previous_sibling(shell: ShellPlace) -> None:
    """Go to the previous sibling, from the first to the last."""
    _go_sideways(shell, -1)


@commands.command("/clear")
@click.pass_obj
def clear(shell: ShellPlace) -> None:
    """Start over: the agent forgets the conversation.

    Its marks go too; its settings stay. Its children are not affected, and nothing is deleted from the database.
    """
    shell.change(
        shell.current, "the clear", shell.current.aio.clear, "cleared: the history starts over, the settings stay"
    )


@commands.command("/mark")
@click.argument("label", type=TEXT, nargs=-1)
@click.pass_obj
def mark(shell: ShellPlace, label: Words) -> None:
    """Set a mark to come back to by /rewind.

    Labels may repeat: the latest counts.
    """
    text = " ".join(label)
    shell.change(
        shell.current, "the mark", lambda: shell.current.aio.mark(text), f"marked {text!r}" if text else "marked"
    )


@commands.command("/rewind")
@click.argument("label", type=MARK_LABEL, nargs=-1)
@click.pass_obj
def rewind(shell: ShellPlace, label: Words) -> None:
    """Go back to the latest mark, or to the one named LABEL.

    Inherited marks count too. Settings stay as they are.
    """
    text = " ".join(label)
    told = f"back at mark {text!r}" if text else "back at the latest mark"
    shell.change(shell.current, "the rewind", lambda: shell.current.aio.rewind(text or None), told)


@commands.command("/undo")
@click.pass_obj
def undo(shell: ShellPlace) -> None:
    """Take back the latest prompt, and everything after it.

    A second /undo takes back the prompt before. Settings stay, and so do the effects of tools. Nothing is deleted from
    the database.
    """
    shell.change(shell.current, "the undo", shell.current.aio.undo, "took back the latest prompt")


@commands.command("/compact")
@click.argument("focus", metavar="[WHAT MATTERS]", type=TEXT, nargs=-1)
@click.option("--text", metavar="SUMMARY", type=TEXT, help="A summary of your own, in quotes: no model is asked.")
@click.pass_obj
def compact(shell: ShellPlace, focus: Words, text: str | None) -> None:
    """Let the model summarise the history, so that the next request is smaller.

    The latest messages stay as they are, and nothing is deleted: /uncompact brings everything back. With --text the
    summary is yours. Right after a summary, it replaces that one.
    """
    told = "summarised: /history shows it, and /uncompact brings the messages back"
    shell.change(shell.current, "the summary", lambda: shell.current.aio.compact(" ".join(focus) or None, text), told)


@commands.command("/uncompact")
@click.pass_obj
def uncompact(shell: ShellPlace) -> None:
    """Take off the latest summary: the model sees the messages again that it replaced, and everything since."""
    shell.change(
        shell.current, "the end of the summary", shell.current.aio.uncompact, "the summary is off: all of it is back"
    )


@commands.command("/context")
@click.pass_obj
def context(shell: ShellPlace) -> None:
    """Show the agent's context.

    Messages, tokens, settings, marks, and where its history is stored.
    """
    record = shell.current.record
    for line in context_page(record, shell.system.state_of(record), shell.current.context()):
        shell.screen.line(line)


@commands.command("/history")
@click.argument("count", metavar="[N]", type=click.IntRange(min=1), default=10)
@click.pass_obj
def history(shell: ShellPlace, count: int) -> None:
    """Show the latest N messages of the agent's history.

    10 when N is left out; < marks inherited ones.
    """
    entries = history_page(shell.current.history(), shell.current.uuid, count)
    for entry in entries:
        shell.screen.line(entry.text, dim=not entry.spoken)
    if not entries:
        shell.screen.line("Nothing was said yet.", dim=True)


@commands.command("/diff")
@click.argument("agent", metavar="ID", type=AGENT)
@click.pass_obj
def show_diff(shell: ShellPlace, agent: str) -> None:
    """Show where this agent's history and another's part, and what each has said since.

    ID is a name, or 4 or more characters of a uuid; of the dead, too. The histories are side by side, step by step,
    this agent on the left; in a narrow terminal, one below the other.
    """
    for line in diff_page(shell.current.diff(agent), shell.screen.columns):
        shell.screen.line(line)


@commands.command("/merge")
@click.argument("agent", metavar="ID", type=AGENT)
@click.option("--how", type=click.Choice(WAYS), help="What to take in: its result, a summary, or a selection.")
@click.option(
    "--pick", "positions", metavar="N", multiple=True, type=POSITION, help="A message of it; may be repeated."
)
@click.pass_obj
def merge_child(shell: ShellPlace, agent: str, how: str | None, positions: tuple[int, ...]) -> None:
    """Take in what an agent below this one has said: the model sees it as a quotation from then on.

    ID is a name, or 4 or more characters of a uuid; of the dead, too. By default it takes in the result with which that
    agent has exited, or else its latest answer; with --how summary, what its model writes about its work; with --pick,
    its messages at these positions, which /diff shows. Each of its states is merged once. Documents are shared, so
    those that it or others have written meanwhile are only named.
    """
    child, chosen = shell.system.agent(agent), how or (PICK if positions else RESULT)

    def what_came(done: Merged) -> str:
        documents = [merged_document(one.as_data()) for one in done.documents]
        return "\n".join([f"merged {named(child)}: /history 1 shows it", *documents])

    shell.change(shell.current, "the merge", lambda: shell.current.aio.merge(child, chosen, positions), what_came)


@commands.command("/model")
@click.argument("name", type=TEXT, required=False)
@click.pass_obj
def model(shell: ShellPlace, name: str | None) -> None:
    """Show the agent's model, or set it as provider:model.

    Of several, separated by commas, the next one is asked when a service is not available. An empty NAME ("") removes
    the setting, and the shell's default answers. Children inherit the setting.
    """
    _setting(shell, "model", name)


@commands.command("/system")
@click.argument("text", type=TEXT, nargs=-1)
@click.pass_obj
def system(shell: ShellPlace, text: Words) -> None:
    """Show the agent's system prompt, or set it.

    TEXT is the rest of the line. An empty one ("") removes the setting. Children inherit the setting.
    """
    _setting(shell, "system", " ".join(text) if text else None)


@commands.command("/set", context_settings={"ignore_unknown_options": True})
@click.argument("name", type=SETTING)
@click.argument("value", type=TEXT, nargs=-1)
@click.pass_obj
def set_one(shell: ShellPlace, name: str, value: Words) -> None:
    """Show one of the agent's settings, or set it. /settings shows all.

    VALUE is a number (max_tokens, max_steps, max_agents, temperature, top_p, stream_retries, stuck_after,
    context_window, compact_at), on or off (notify), words separated by commas or a JSON list (tools,
    stop_sequences), a JSON object (thinking, options, policies, effects), or text (model, system, compact,
    compact_model). An empty one ("") removes the setting. Children that are forked later inherit it.
    """
    _setting(shell, name, " ".join(value) if value else None)


@commands.command("/settings")
@click.pass_obj
def settings(shell: ShellPlace) -> None:
    """Show the settings that are in force, and where each comes from: from which agent, or from the start of ikigai."""
    system, here = shell.system, shell.current.uuid
    scrollback = Scrollback(system.store, here)
    in_force, sources = scrollback.settings(), scrollback.sources()
    for name in SETTINGS:
        if name in in_force:
            source = sources[name].agent_uuid
            whence = "its own" if source == here else f"inherited from {named(system.handle(source))}"
            shell.screen.line(f"{name}: {written(in_force[name])}   ({whence})")
        elif name in system.default_settings:
            shell.screen.line(f"{name}: {written(system.default_settings[name])}   (as ikigai was started)")
    if not in_force and not system.default_settings:
        shell.screen.line("No setting is in force: the model's own defaults apply. /help set lists all.", dim=True)


@commands.command("/tools")
@click.argument("name", type=TOOL, required=False)
@click.pass_obj
def tools(shell: ShellPlace, name: str | None) -> None:
    """List the tools that the agent's model is offered, or explain one.

    NAME shows its whole description and the schema of its arguments.
    """
    offered = {str(tool["name"]): tool for tool in shell.current.tools()}
    if name is None:
        for tool_name, tool in offered.items():
            shell.screen.line(
                f"{tool_name:<12} {textwrap.shorten(str(tool.get('description', '')), 80, placeholder=' …')}"
            )
    elif name not in offered:
        shell.screen.error(f"There is no tool {name!r}. /tools lists them.")
    else:
        shell.screen.block(str(offered[name].get("description", "")))
        shell.screen.line(json.dumps(offered[name]["input_schema"], indent=2, ensure_ascii=False))


@commands.command("/resume")
@click.pass_obj
def resume(shell: ShellPlace) -> None:
    """Go on with the latest turn: one that a crash cut off, or that ended with an error.

    The history is sent to the model again, with all that the turn had come to.
    """
    shell.resume()


@commands.command("/help")
@click.argument("command", metavar="[COMMAND|all]", type=COMMAND, required=False)
@click.pass_context
def show_help(ctx: click.Context, command: str | None) -> None:
    """List the first commands, explain one, or list all under headings."""
    shell: ShellPlace = ctx.obj
    assert ctx.parent is not None  # /help runs within the group of commands
    if command is None:
        shell.screen.block(_overview(ctx.parent))
    elif command == EVERYTHING:
        shell.screen.block(commands.all_commands(ctx.parent))
    else:
        shell.screen.block(commands.help_of(ctx.parent, ["/" + command.removeprefix("/")]))


@commands.command("/exit")
@click.pass_obj
def leave(shell: ShellPlace) -> None:
    """Leave. So do /quit and Ctrl-D."""
    shell.leave()


@commands.command("/quit")
@click.pass_obj
def leave_as_others_do(shell: ShellPlace) -> None:
    """Leave: the same as /exit."""
    shell.leave()


for command in (
    *approvals.COMMANDS, *budgets.COMMANDS, *experiments.COMMANDS, *groups.COMMANDS, *hosts.COMMANDS,
    *timers.COMMANDS, *files.COMMANDS,
):  # fmt: skip
    commands.add_command(command)


for _name in table.names(table.Callers.PEOPLE):
    commands.add_command(slash_command(table.load(_name)))


def _print_help(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        ctx.obj.screen.block(ctx.get_help())
        ctx.exit()


def _print_help_on_screen(group: click.Group) -> None:
    """Let ``--help`` print where commands print: click's own goes to standard output, which no application shows."""
    told = "Show this message and exit."
    for command in group.commands.values():
        command.add_help_option = False
        command.params.append(
            click.Option(["--help"], is_flag=True, is_eager=True, expose_value=False, callback=_print_help, help=told)
        )
        if isinstance(command, click.Group):
            _print_help_on_screen(command)


_print_help_on_screen(commands)


def _children(shell: ShellPlace, uuid: str) -> list[AgentRecord]:
    return shell.system.store.read(lambda tx: registry.children(tx, uuid))


def _go_sideways(shell: ShellPlace, step: int) -> None:
    here = shell.current.record
    family = _children(shell, here.supervisor_uuid) if here.supervisor_uuid is not None else [here]
    row = [record.uuid for record in family if record.living or record.uuid == here.uuid]
    if len(row) == 1:
        shell.screen.error("This agent has no living sibling.")
    else:
        shell.go_to(shell.system.handle(row[(row.index(here.uuid) + step) % len(row)]))


def _setting(shell: ShellPlace, key: str, text: str | None) -> None:
    """Show a setting, or set it; empty text removes it. Raises `BadInput`."""
    value = parse_setting(key, text or "")
    if text is None:
        shown = shell.current.context().settings.get(key)
        shell.screen.line(f"{key}: {written(shown) if shown is not None else 'not set'}")
        return
    agent = shell.current
    told = f"{key} set to {written(value)}" if value is not None else f"{key} removed"
    shell.change(shell.current, "the change", lambda: agent.aio.configure(**{key: value}), told)


def _overview(ctx: click.Context) -> str:
    formatter = ctx.make_formatter()
    formatter.write_text(GUIDE.strip())
    commands.format_commands(ctx, formatter)
    return formatter.getvalue().rstrip()
