"""The slash commands about files of agents."""

from typing import Any

import click

from ikigai_actors.shell.text.counts import counted
from ikigai_actors.shell.text.naming import named
from ikigai_actors.shell.verbs.arguments import AGENT, TEXT
from ikigai_actors.shell.verbs.place import ShellPlace


@click.command("/export")
@click.argument("file", metavar="FILE", type=TEXT)
@click.argument("agent", metavar="[ID]", type=AGENT, required=False)
@click.option("--from-clear", is_flag=True, help="Leave out what was cleared before the fork, which nobody there sees.")
@click.pass_obj
def export(shell: ShellPlace, file: str, agent: str | None, from_clear: bool) -> None:
    """Write an agent, else the current one, and all below it to a new file, for /import or ikigai import.

    Budgets are not in it. See also: ikigai export --markdown, which writes the histories for people.
    """
    found = shell.current if agent is None else shell.system.agent(agent)
    done = shell.wait_for(
        lambda: shell.system.export(found, file, from_clear=from_clear, notice=lambda text: shell.screen.line(text))
    )
    shell.screen.line(f"{named(found)}: {counted(done.agents, 'agent')}, {counted(done.messages, 'message')} to {file}")


@click.command("/import")
@click.argument("file", metavar="FILE", type=TEXT)
@click.option("--under", metavar="ID", type=AGENT, help="The agent under which they come.  [default: agent 0]")
@click.option("--documents", type=click.Choice(["keep", "append"]), help="For those that are here with other texts.")
@click.option("--stopped", is_flag=True, help="Begin nothing before /signal CONT, also where nothing waits.")
@click.option("--go", is_flag=True, help="Begin at once with the prompts that wait.")
@click.pass_obj
def import_agents(shell: ShellPlace, /, file: str, under: str | None, documents: str | None, **how: bool) -> None:
    """Bring the agents of a file of /export here: all of them, or none.

    It says first what the file would begin, and which models and tools it names. Agents in which an open turn or a
    prompt waits come stopped, until /signal CONT. No right to use a tool comes along.
    """
    given: dict[str, Any] = {"documents": documents or "refuse", "notice": shell.screen.line, **how}
    top = shell.wait_for(lambda: shell.system.import_(file, under, **given))
    shell.screen.line(f"imported {named(top)}, and all below it; /switch {top.record.short} goes there")


COMMANDS = (export, import_agents)
