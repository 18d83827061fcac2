"""The slash commands: the verbs that people may call, as click commands, so that help, errors and quoting are alike.

    run(shell, '/fork "read the schema" --name dba')

No error ends the session; an error is printed on a separate line.
"""

import re
import shlex

import click

from ikigai_actors.shell.headings import MOST_COLUMNS, SLASH_COMMANDS, HeadedGroup
from ikigai_actors.verbs import table
from ikigai_actors.verbs.arguments import AGENT
from ikigai_actors.verbs.place import ShellPlace
from ikigai_actors.verbs.rights import Callers
from ikigai_actors.verbs.verb import Verb, VerbGroup


class SlashCommands(HeadedGroup):
    """The group of all slash commands; the names begin with the slash."""

    contents, help_command = SLASH_COMMANDS, "/help"


@click.group(cls=SlashCommands, add_help_option=False)
def commands() -> None:
    """The slash commands of the shell; other text prompts the current agent."""


def slash_command(verb: Verb | VerbGroup) -> click.Command:
    """Return the command by which a person calls a verb."""
    if isinstance(verb, VerbGroup):
        return _group(verb)

    @click.pass_obj
    def run_verb(shell: ShellPlace, /, acted_on: str | None = None, **arguments: object) -> None:
        agent = shell.current if acted_on is None else shell.system.agent(acted_on)
        verb.work(shell, *([agent] if verb.needs_agent else []), **arguments)

    params = verb.slash.among(verb.params_of_shell(), AGENT, "Another agent than the current one.")
    hint = "\n\nWithout ID it is the current agent." if verb.slash.text == "[ID]" else ""
    settings = {"ignore_unknown_options": True} if verb.is_free else {}
    return click.Command(f"/{verb.name}", settings, run_verb, params, help=verb.help + hint)


def _group(group: VerbGroup) -> click.Group:
    @click.pass_context
    def run_usual(ctx: click.Context) -> None:
        if ctx.invoked_subcommand is None:
            ctx.invoke(below[group.usual.name])

    below = {verb.name: slash_command(verb) for verb in group.verbs}
    for name, command in below.items():
        command.name = name
    return click.Group(f"/{group.name}", below, invoke_without_command=True, callback=run_usual, help=group.help)


def run(shell: ShellPlace, line: str) -> None:
    """Run a line that begins with a slash. Wrong usage is printed; errors of the library are raised."""
    try:
        words = _words(line)
    except ValueError as error:
        shell.screen.error(f"{error}. Put text with quotes in it between quotes of the other kind.")
        return
    try:
        width = min(shell.screen.columns, MOST_COLUMNS)
        commands.main(words, prog_name="", obj=shell, standalone_mode=False, terminal_width=width)
    except click.UsageError as error:
        usage, message = error.ctx.command_path if error.ctx is not None else "", error.format_message().rstrip(".")
        shell.screen.error(
            message + ("" if message.endswith("?") else ".") + (f" Try {usage} --help." if usage else "")
        )
    except click.ClickException as error:
        shell.screen.error(error.format_message())


def _words(line: str) -> list[str]:
    """Split a line into words. The JSON value of a setting is one word with its quotes."""
    json_follows = re.fullmatch(r"\s*(/set)\s+([a-z_]+)\s+([\[{].*)", line, re.DOTALL)
    return list(json_follows.groups()) if json_follows is not None else shlex.split(line)


for _name in table.names(Callers.PEOPLE):
    commands.add_command(slash_command(table.load(_name)))


def _print_help(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        ctx.obj.screen.block(ctx.get_help())
        ctx.exit()


def _print_help_on_screen(group: click.Group) -> None:
    """Let ``--help`` print on the shell's screen, because the application does not show standard output."""
    description = "Show this message and exit."
    for command in group.commands.values():
        command.add_help_option = False
        command.params.append(
            click.Option(
                ["--help"], is_flag=True, is_eager=True, expose_value=False, callback=_print_help, help=description
            )
        )
        if isinstance(command, click.Group):
            _print_help_on_screen(command)


_print_help_on_screen(commands)
