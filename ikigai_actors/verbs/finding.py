"""The verb ``find``, which finds a text in the history of an agent."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, NotRequired, TypedDict

import click

from ikigai_actors.verbs import text as words
from ikigai_actors.verbs.arguments import TEXT
from ikigai_actors.verbs.place import ShellPlace
from ikigai_actors.verbs.rights import Right
from ikigai_actors.verbs.text.harmless import one_line
from ikigai_actors.verbs.verb import verb

if TYPE_CHECKING:
    from ikigai_actors.records.messages.messages import Message
    from ikigai_actors.system.handles.ref import AgentRef
    from ikigai_actors.verbs.place import Place

_AT_ONCE = 500
"""Messages that are read at once."""

_AROUND = 40
"""The number of characters shown before and after a hit."""


class TextHit(TypedDict):
    """A message that contains the searched text, in the answer to `find`."""

    id: int
    kind: str
    text: Annotated[str, "The text around it."]
    agent_uuid: NotRequired[Annotated[str, "The agent that has written it, with --below."]]


class FoundText(TypedDict):
    """The answer to `find`: the latest messages of an agent that contain a text."""

    agent_uuid: str
    name: str | None
    label: str
    found: list[TextHit]
    more: Annotated[bool, "Whether earlier messages have it, too."]


@verb("find", needs=Right.LOOK, gives=FoundText)
@click.argument("text", type=TEXT, nargs=-1)
@click.option("--number", "-n", metavar="N", type=click.IntRange(min=1), default=20, help="List at most N messages.")
@click.option("--below", is_flag=True, help="By words, of the agent and all below it, best first.")
def find_text(place: "Place", agent: "AgentRef", text: tuple[str, ...], number: int, below: bool) -> FoundText | None:
    """Find a TEXT in what was said, in capitals or not.

    On the whole screen the hits are marked, as by Ctrl+F. In lines the latest messages with the TEXT are listed. With
    --below the list has the messages with most words of the TEXT, of this agent and of all agents below it.
    """
    wanted = " ".join(text)
    if below:
        return _find_below(place, agent, wanted, number)
    if isinstance(place, ShellPlace) and place.find(wanted):
        return None
    if not wanted.strip():
        raise click.UsageError(f"Say what to find: {place.spelled('find', agent, 'TEXT')}.")
    pattern = re.compile(re.escape(wanted), re.IGNORECASE)
    hits: list[TextHit] = []
    for message in _backwards(agent):
        if (line := _line_with(message, pattern)) is not None:
            hits.insert(0, {"id": message.id, "kind": message.kind, "text": line})
            if len(hits) > number:
                break
    more, listed = len(hits) > number, hits[-number:]
    if more:
        place.screen.line(f"The latest {words.counted(number, 'message')} with it; --number lists more:", dim=True)
    for hit in listed:
        place.screen.block(f"{hit['id']:>5}  {hit['kind']:<11}  {hit['text']}")
    if not hits:
        place.screen.line(f"Nothing that was said has “{one_line(wanted)}” in it.")
    row = words.agent_row(agent)
    return {
        "agent_uuid": row["agent_uuid"],
        "name": row["name"],
        "label": row["label"],
        "found": listed,
        "more": more,
    }


def _find_below(place: "Place", agent: "AgentRef", wanted: str, number: int) -> FoundText:
    from ikigai_actors.verbs.text.naming import shown_name_in

    called, hits = shown_name_in(place.system), place.system.find(wanted, under=agent, most=number + 1)
    listed: list[TextHit] = []
    for hit in hits[:number]:
        place.screen.block(f"{called(hit.agent_uuid)} {hit.position}  {hit.kind}  {hit.text}")
        listed.append({"id": hit.position, "kind": hit.kind, "text": hit.text, "agent_uuid": hit.agent_uuid})
    if not hits:
        place.screen.line(f"Nothing that was said has words of “{one_line(wanted)}”.")
    row = words.agent_row(agent)
    return FoundText(
        agent_uuid=row["agent_uuid"], name=row["name"], label=row["label"], found=listed, more=len(hits) > number
    )


def _backwards(agent: "AgentRef") -> "Iterator[Message]":
    """Iterate over the messages of a history, the latest first; they are read in batches."""
    from ikigai_actors.reach.views import scrollback_of

    scrollback = scrollback_of(agent.system, agent.uuid)
    messages = scrollback.latest(_AT_ONCE)
    while messages:
        yield from reversed(messages)
        messages = scrollback.before(messages[0].id, _AT_ONCE) if messages[0].id > 1 else []


def _line_with(message: "Message", pattern: re.Pattern[str]) -> str | None:
    """Return the text around the first hit in a message; None if there is no hit."""
    from ikigai_actors.verbs.text.pages import message_words

    entry = message_words(message).entry
    if (match := pattern.search(entry)) is None:
        return None
    start, end = max(0, match.start() - _AROUND), match.end() + _AROUND
    before, after = "…" if start else "", "…" if end < len(entry) else ""
    return f"{before}{one_line(entry[start:end])}{after}"
