"""Verbs of a shell alone: to look around, to go from agent to agent, help, and to leave."""

from typing import TYPE_CHECKING

import click

from ikigai_actors.shell.headings import EVERYTHING, HeadedGroup
from ikigai_actors.verbs.arguments import AGENT, COMMAND, TEXT
from ikigai_actors.verbs.rights import Callers, Right
from ikigai_actors.verbs.verb import verb

if TYPE_CHECKING:
    from ikigai_actors.verbs.place import ShellPlace

_GUIDE = """
What you type goes to the current agent. A line that begins with / is a command; /COMMAND --help explains it. Put a
blank before a text that begins with /, and quotes around an argument of several words.

Ctrl-C interrupts the answer, twice leaves; Ctrl-D leaves. Enter during an answer lets it go on in the background; Enter
alone then shows the rest of it.
"""
"""The text of /help before the list of commands."""


@verb("agents", script="", needs=Right.LOOK, callers=Callers.PEOPLE)
@click.argument("word", metavar="[WORD]", required=False, type=TEXT)
@click.option("--all", "dead_too", is_flag=True, help="Show the dead too.")
@click.option("--limit", metavar="N", type=click.IntRange(1), help="Show at most N agents. Without it 200.")
def agents(shell: "ShellPlace", word: str | None, dead_too: bool, limit: int | None) -> None:
    """Show the tree of agents.

    If there are more than 200 agents, the list has the agents that were used last, and the number of the others. With
    WORD it has the agents whose name, or two words, contain WORD.

    * marks the current one. Each line has the name, or two words for an agent without one, the state, and two counts of
    messages of any kind: those before the fork, and its own since then. Messages that a /clear or /rewind hides count
    too, but not in /context. Unread mail is counted where there is any. For an agent in a turn it shows its latest
    heartbeat. Where several hosts run the agents, a column names the host of each. An experiment says how many trials
    it has, and shows the first of them, with their scores and prompts.
    """
    from ikigai_actors.reach.views import signs_of
    from ikigai_actors.shell.agent_lists import list_lines, read_list

    current, system = shell.current.uuid, shell.system
    agents, signs = read_list(system, word or "", limit, dead_too, current), signs_of(system)
    for line in list_lines(agents, system.state_of, "/agents", current, not shell.screen.in_words, signs):
        shell.screen.line(line.text, bold=line.current, dim=line.dead)


@verb("switch", script="", needs=Right.LOOK, callers=Callers.PEOPLE)
@click.argument("agent", metavar="ID", type=AGENT)
def switch(shell: "ShellPlace", agent: str) -> None:
    """Go to an agent.

    ID is the agent's name, its two words, or 4 or more characters of its uuid. The agent that you leave goes on with
    its work.
    """
    shell.go_to(shell.system.agent(agent))


@verb("parent", script="", needs=Right.LOOK, callers=Callers.PEOPLE)
def parent(shell: "ShellPlace") -> None:
    """Go up: to the supervisor of this agent."""
    above = shell.current.supervisor
    if above is None:
        shell.screen.error("This is agent 0: nobody is above it.")
    else:
        shell.go_to(above)


@verb("child", script="", needs=Right.LOOK, callers=Callers.PEOPLE)
def child(shell: "ShellPlace") -> None:
    """Go down: to the newest child of this agent."""
    from ikigai_actors.reach.views import newest_child_of

    newest = newest_child_of(shell.system, shell.current.uuid)
    if newest is None:
        shell.screen.error("This agent has no living child. /fork makes one.")
    else:
        shell.go_to(shell.system.handle(newest.uuid))


@verb("next", script="", needs=Right.LOOK, callers=Callers.PEOPLE)
def next_sibling(shell: "ShellPlace") -> None:
    """Go to the next sibling, from the last to the first."""
    _go_sideways(shell, 1)


@verb("prev", script="", needs=Right.LOOK, callers=Callers.PEOPLE)
def previous_sibling(shell: "ShellPlace") -> None:
    """Go to the previous sibling, from the first to the last."""
    _go_sideways(shell, -1)


@verb("help", script="", needs=Right.LOOK, callers=Callers.PEOPLE)
@click.argument("command", metavar="[COMMAND|all]", type=COMMAND, required=False)
def show_help(shell: "ShellPlace", command: str | None) -> None:
    """List the first commands, explain one, or list all under headings."""
    above = click.get_current_context().parent
    assert above is not None  # it runs within the group of commands
    group = above.command
    assert isinstance(group, HeadedGroup)
    if command is None:
        formatter = above.make_formatter()
        formatter.write_text(_GUIDE.strip())
        group.format_commands(above, formatter)
        shell.screen.block(formatter.getvalue().rstrip())
    elif command == EVERYTHING:
        shell.screen.block(group.all_commands(above))
    else:
        shell.screen.block(group.help_of(above, ["/" + command.removeprefix("/")]))


@verb("exit", script="", needs=Right.LOOK, callers=Callers.PEOPLE)
def leave(shell: "ShellPlace") -> None:
    """Leave the shell. /quit and Ctrl-D do the same."""
    shell.leave()


@verb("quit", script="", needs=Right.LOOK, callers=Callers.PEOPLE)
def leave_as_others_do(shell: "ShellPlace") -> None:
    """Leave the shell, as /exit does."""
    shell.leave()


def _go_sideways(shell: "ShellPlace", step: int) -> None:
    from ikigai_actors.reach.views import siblings_of

    beside = siblings_of(shell.system, shell.current.record)
    to = beside.following if step > 0 else beside.previous
    if to is None:
        shell.screen.error("This agent has no living sibling.")
    else:
        shell.go_to(shell.system.handle(to.uuid))
