"""The verb that finds a text in a talk."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from ikigai_actors.verbs import text as words
from ikigai_actors.verbs.arguments import TEXT
from ikigai_actors.verbs.text.harmless import one_line
from ikigai_actors.verbs.verb import verb

if TYPE_CHECKING:
    from ikigai_actors.records.messages.messages import Message
    from ikigai_actors.system.handles.ref import AgentRef
    from ikigai_actors.verbs.place import ShellPlace

_AT_ONCE = 500
"""Messages that are read at once."""

_AROUND = 40
"""Characters that are shown before a hit and after it."""


@verb("find")
@click.argument("text", type=TEXT, nargs=-1)
@click.option("--number", "-n", metavar="N", type=click.IntRange(min=1), default=20, help="List at most N messages.")
def find_text(shell: "ShellPlace", agent: "AgentRef", text: tuple[str, ...], number: int) -> object:
    """Find a TEXT in what was said, in capitals or not.

    On the whole screen it marks the hits, as Ctrl+F does. In lines it lists the latest messages that have the TEXT.
    """
    wanted = " ".join(text)
    if shell.find(wanted):
        return None
    if not wanted.strip():
        raise click.UsageError("Say what to find: /find TEXT.")
    pattern = re.compile(re.escape(wanted), re.IGNORECASE)
    found: list[str] = []
    more = False
    for message in _backwards(agent):
        if (line := _line_with(message, pattern)) is not None:
            more = len(found) == number
            if more:
                break
            found.append(f"{message.id:>5}  {message.kind:<11}  {line}")
    if more:
        shell.screen.line(f"The latest {words.counted(number, 'message')} with it; --number lists more:", dim=True)
    for line in reversed(found):
        shell.screen.block(line)
    if not found:
        shell.screen.line(f"Nothing that was said has “{one_line(wanted)}” in it.")
    return None


def _backwards(agent: "AgentRef") -> "Iterator[Message]":
    """The messages of a history, the latest first, read some at a time."""
    from ikigai_actors.records.log.scrollback import Scrollback

    scrollback = Scrollback(agent.system._store, agent.uuid)
    messages = scrollback.latest(_AT_ONCE)
    while messages:
        yield from reversed(messages)
        messages = scrollback.before(messages[0].id, _AT_ONCE) if messages[0].id > 1 else []


def _line_with(message: "Message", pattern: re.Pattern[str]) -> str | None:
    """What is around the first hit in a message; None when it has none."""
    from ikigai_actors.verbs.text.pages import message_words

    entry = message_words(message).entry
    if (found := pattern.search(entry)) is None:
        return None
    start, end = max(0, found.start() - _AROUND), found.end() + _AROUND
    before, after = "…" if start else "", "…" if end < len(entry) else ""
    return f"{before}{one_line(entry[start:end])}{after}"
