"""Verbs of a shell about files of agents. ``ikigai export`` and ``ikigai import`` need no process that runs agents."""

from typing import TYPE_CHECKING, Any

import click

from ikigai_actors.verbs import text as words
from ikigai_actors.verbs.arguments import AGENT, RECORDER, TEXT
from ikigai_actors.verbs.rights import Callers
from ikigai_actors.verbs.verb import verb

if TYPE_CHECKING:
    from ikigai_actors.system.handles.ref import AgentRef
    from ikigai_actors.verbs.place import ShellPlace


@verb("export", slash="… [ID]", callers=Callers.PEOPLE)
@click.argument("file", metavar="FILE", type=TEXT)
@click.option("--from-clear", is_flag=True, help="Leave out what was cleared before the fork, which nobody there sees.")
def export_here(shell: "ShellPlace", agent: "AgentRef", file: str, from_clear: bool) -> None:
    """Write an agent, else the current one, and all agents below it to a new file, for /import or ikigai import.

    Budgets are left out. A FILE that ends with .md gets the conversation with the agent alone, as Markdown for people
    to read; no such file can be imported. ikigai export --markdown also writes the conversations of all agents below
    it.
    """
    if file.endswith(".md"):
        _export_talk(shell, agent, file)
        return
    done = shell.wait_for(
        lambda: shell.system.export(agent, file, from_clear=from_clear, notice=lambda text: shell.screen.line(text))
    )
    what = f"{words.counted(done.agents, 'agent')}, {words.counted(done.messages, 'message')}"
    shell.screen.line(f"{words.named(agent)}: {what} to {file}")


def _export_talk(shell: "ShellPlace", agent: "AgentRef", file: str) -> None:
    from ikigai_actors.reach.views import scrollback_of
    from ikigai_actors.verbs.text.markdown import export_talk
    from ikigai_actors.verbs.text.naming import shown_name_in

    called, scrollback = shown_name_in(shell.system), scrollback_of(shell.system, agent.uuid)
    count = shell.wait_for(lambda: export_talk(scrollback, called(agent.uuid), called, file))
    shell.screen.line(f"{words.named(agent)}: {words.counted(count, 'message')} to {file}")


@verb("import", script="", callers=Callers.PEOPLE)
@click.argument("file", metavar="FILE", type=TEXT)
@click.option("--under", metavar="ID", type=AGENT, help="The agent under which they come.  [default: agent 0]")
@click.option("--from", "recorder", type=RECORDER, default="auto", help="What has written it.  [default: auto]")
@click.option("--keep-workspace", is_flag=True, help="Of another program: let their calls run here.")
@click.option("--keep-model", is_flag=True, help="Of another program: ask the models that have answered then.")
@click.option("--documents", type=click.Choice(["keep", "append"]), help="For those that are here with other texts.")
@click.option("--stopped", is_flag=True, help="Begin nothing before /signal CONT, also where nothing waits.")
@click.option("--go", is_flag=True, help="Begin at once with the prompts that wait.")
def import_here(
    shell: "ShellPlace",
    file: str,
    under: str | None,
    recorder: str,
    keep_workspace: bool,
    keep_model: bool,
    documents: str | None,
    **how: bool,
) -> None:
    """Bring the agents of a file of /export here: all of them, or none.

    The file may also be a session of another program, as of Claude Code, or a folder of sessions.

    Before the import, a preview lists the work that the file would begin, and its models and tools. Agents in which an
    open turn or a prompt waits come stopped, until /signal CONT. No right to use a tool comes along.
    """
    from ikigai_actors.recordings.formats import importable

    options: dict[str, Any] = {"documents": documents or "refuse", "notice": shell.screen.line, **how}
    opened = importable(file, recorder, keep_workspace=keep_workspace, keep_model=keep_model, notice=shell.screen.line)
    top = shell.wait_for(lambda: shell.system.import_(opened, under, **options))
    shell.screen.line(f"imported {words.named(top)}, and all below it; /switch {top.record.short} goes there")
