"""Verbs about the memory of an agent: marks, rewinds, summaries, and the history."""

from typing import TYPE_CHECKING

import click

from ikigai_actors.verbs import text as words
from ikigai_actors.verbs.arguments import MARK_LABEL, TEXT
from ikigai_actors.verbs.rights import Right
from ikigai_actors.verbs.verb import verb

if TYPE_CHECKING:
    from ikigai_actors.system.handles.ref import AgentRef
    from ikigai_actors.verbs.place import Place


@verb("clear", waits=True, needs=Right.PROMPT)
def clear(place: "Place", agent: "AgentRef") -> object:
    """Start over: the agent forgets the conversation.

    The marks of the agent go, too; the settings stay. Children are not affected, and nothing is deleted from the
    database.
    """
    done = "cleared: the history starts over, the settings stay"
    return _changed(agent, place.change(agent, "the clear", agent.aio.clear, done))


@verb("mark", waits=True, needs=Right.PROMPT)
@click.argument("label", type=TEXT, nargs=-1)
def mark(place: "Place", agent: "AgentRef", label: tuple[str, ...]) -> object:
    """Set a mark to which rewind comes back.

    Labels may repeat: the latest counts.
    """
    name = " ".join(label)
    done = f"marked {name!r}" if name else "marked"
    return _changed(agent, place.change(agent, "the mark", lambda: agent.aio.mark(name), done))


@verb("rewind", waits=True, needs=Right.PROMPT)
@click.argument("label", type=MARK_LABEL, nargs=-1)
def rewind(place: "Place", agent: "AgentRef", label: tuple[str, ...]) -> object:
    """Go back to the latest mark, or to the one named LABEL.

    Inherited marks count too. Settings stay as they are.
    """
    name = " ".join(label)
    done = f"back at mark {name!r}" if name else "back at the latest mark"
    return _changed(agent, place.change(agent, "the rewind", lambda: agent.aio.rewind(name or None), done))


@verb("undo", waits=True, needs=Right.PROMPT)
def undo(place: "Place", agent: "AgentRef") -> object:
    """Take back the latest prompt, and everything after it.

    A second undo takes back the prompt before. Settings stay, and so do the effects of tools. Nothing is deleted from
    the database.
    """
    return _changed(agent, place.change(agent, "the undo", agent.aio.undo, "took back the latest prompt"))


@verb("compact", waits=True, needs=Right.PROMPT)
@click.argument("focus", metavar="[WHAT MATTERS]", type=TEXT, nargs=-1)
@click.option("--text", metavar="SUMMARY", type=TEXT, help="A summary of your own, in quotes: no model is asked.")
def compact(place: "Place", agent: "AgentRef", focus: tuple[str, ...], text: str | None) -> object:
    """Let the model summarise the history, so that the next request is smaller.

    The latest messages stay as they are, and nothing is deleted: uncompact brings everything back. With --text, your
    text is the summary. A summary right after another summary replaces it.
    """
    history, back = place.spelled("history", agent), place.spelled("uncompact", agent)
    news = f"summarised: {history} shows it, and {back} brings the messages back"
    done = place.change(agent, "the summary", lambda: agent.aio.compact(" ".join(focus) or None, text), news)
    return words.agent_row(agent) | ({} if done is None else words.as_row(done))


@verb("uncompact", waits=True, needs=Right.PROMPT)
def uncompact(place: "Place", agent: "AgentRef") -> object:
    """Take off the latest summary: the model sees the messages again that it replaced, and everything since."""
    news = "the summary is off: all of it is back"
    return _changed(agent, place.change(agent, "the end of the summary", agent.aio.uncompact, news))


@verb("context", needs=Right.LOOK)
def context(place: "Place", agent: "AgentRef") -> object:
    """Show the agent's context.

    Shows its messages, tokens, settings and marks, and where its history is stored.
    """
    record, context = agent.record, agent.context()
    state = place.system.state_of(record)
    for line in words.context_page(record, state, context, words.shown_name_in(place.system)):
        place.screen.line(line)
    return words.agent_row(agent) | {"state": str(state)} | words.as_row(context)


@verb("history", needs=Right.LOOK)
@click.argument("count", metavar="[N]", type=click.IntRange(min=1), default=10)
def history(place: "Place", agent: "AgentRef", count: int) -> object:
    """Show the latest N messages of the agent's history.

    10 when N is left out; < marks inherited ones.
    """
    messages = agent.history()
    everything = place.spelled("history", agent, str(len(messages)))
    entries = words.history_page(messages, agent.uuid, count, everything, words.shown_name_in(place.system))
    for entry in entries:
        place.screen.line(entry.text, dim=not entry.spoken)
    if not entries:
        place.screen.line("Nothing was said yet.", dim=True)
    return [words.as_row(message) for message in messages[-count:]]


def _changed(agent: "AgentRef", position: int | None) -> object:
    """Return the uuid and name of a changed agent, and the position of the message about the change, as JSON data."""
    return words.agent_row(agent) | {"position": position}
