"""The verb about prompts that wait for their agent."""

from typing import TYPE_CHECKING

import click

from ikigai_actors.verbs import text as words
from ikigai_actors.verbs.arguments import TEXT
from ikigai_actors.verbs.verb import verb

if TYPE_CHECKING:
    from ikigai_actors.system.handles.ref import AgentRef
    from ikigai_actors.verbs.place import ShellPlace


@verb("queue")
@click.argument("text", type=TEXT, nargs=-1)
@click.option("--take-back", is_flag=True, help="Take the latest back, as Up does in an empty prompt.")
def queue(shell: "ShellPlace", agent: "AgentRef", text: tuple[str, ...], take_back: bool) -> object:
    """Prompt this agent after its turn, or list the prompts that wait.

    A line without /queue steers an agent that is busy: it reads that before its next step.
    """
    from ikigai_actors.records.mail.prompts import waiting_prompts

    if take_back:
        if (taken := shell.wait_for(lambda: shell.words.take_back_latest(agent))) is None:
            shell.screen.line(f"Nothing waits for {words.named(agent)}.")
        else:
            shell.put_back(taken)
        return None
    if text:
        shell.prompt_later(agent, " ".join(text))
        return None
    waiting = shell.system._store.read(lambda tx: waiting_prompts(tx, agent.uuid))
    for one in waiting:
        shell.screen.block(f"{one.mail}  {one.text}")
    if not waiting:
        shell.screen.line(f"Nothing waits for {words.named(agent)}.")
    return None
