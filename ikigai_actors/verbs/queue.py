"""The verb ``queue``, which lists, adds and withdraws prompts that wait for an agent."""

from typing import TYPE_CHECKING

import click

from ikigai_actors.verbs import text as words
from ikigai_actors.verbs.arguments import TEXT
from ikigai_actors.verbs.place import ScriptPlace, ShellPlace
from ikigai_actors.verbs.rights import Right
from ikigai_actors.verbs.verb import verb

if TYPE_CHECKING:
    from ikigai_actors.system.handles.ref import AgentRef
    from ikigai_actors.verbs.place import Place


@verb("queue", needs=Right.PROMPT)
@click.argument("text", type=TEXT, nargs=-1)
@click.option("--take-back", is_flag=True, help="Take the latest back, as Up does in an empty prompt.")
def queue(place: "Place", agent: "AgentRef", text: tuple[str, ...], take_back: bool) -> object:
    """Prompt an agent after its turn, or list the prompts that wait.

    In a shell a line without /queue steers a busy agent, which reads the line before its next step. There the list
    has the commands, too, that wait for the end of the turn.
    """
    if take_back:
        return _take_back(place, agent)
    if text and isinstance(place, ShellPlace):
        place.prompt_later(agent, " ".join(text))
        return None
    if text and isinstance(place, ScriptPlace):
        return place.leave_prompt(agent, " ".join(text), ())
    from ikigai_actors.records.mail.prompts import waiting_prompts

    waiting = place.system._store.read(lambda tx: waiting_prompts(tx, agent.uuid))
    commands = place.words.commands(agent.uuid) if isinstance(place, ShellPlace) else []
    for prompt in waiting:
        place.screen.block(f"{prompt.mail}  {prompt.text}")
    for line in commands:
        place.screen.block(f"-  {line}")
    if not (waiting or commands):
        place.screen.line(f"Nothing waits for {words.named(agent)}.")
    return [{"mail": prompt.mail, "text": prompt.text} for prompt in waiting]


def _take_back(place: "Place", agent: "AgentRef") -> object:
    """Withdraw the latest waiting prompt, or in a shell the latest waiting command; return its text as JSON data."""
    from ikigai_actors.reach.conversation import Words

    stored = place.words if isinstance(place, ShellPlace) else Words()
    taken = place.wait_for(lambda: stored.take_back_latest(agent))
    if taken is None:
        place.screen.line(f"Nothing waits for {words.named(agent)}.")
    elif isinstance(place, ShellPlace):
        place.put_back(taken)
    else:
        place.screen.block(taken)
    return words.agent_row(agent) | {"text": taken}
