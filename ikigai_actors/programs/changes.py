"""Changed functions: what happens when a program's function asks for other acts than the log of its turn has. Pure.

    fail        the turn ends with `StepChanged`; the agent lives on
    go_on       the new act is done, and the reply names the recorded calls that the function has not asked for yet
    restart     the function begins again and gets none of the recorded results: effects may repeat

A program chooses one of these, and `resume` can choose for one turn, by a note in its log. When a function begins
again, a reply in the log says so. Later runs ignore the part of the turn before that reply.
"""

from collections.abc import Iterable

from ikigai_actors.arguments import check_choice
from ikigai_actors.records.messages.messages import Kind, Message

FAIL, GO_ON, RESTART = ON_CHANGE = ("fail", "go_on", "restart")
"""The three ways to handle a changed function."""

ON_CHANGE_NOTE = "on_change"
"""The key in the data of a note that has the way for its turn."""

BEGINS_AGAIN = "The function was changed, and begins again."
"""The text of the reply that marks where a function begins again."""


def check_on_change(way: object) -> str:
    """Check that a value is one of the three ways, and return it. Raises `BadInput`."""
    return check_choice(way, ON_CHANGE_NOTE, ON_CHANGE)


def way_of_turn(messages: Iterable[Message], usual: str) -> str:
    """Return the way that holds for the turn with these messages: that of its latest note, or else ``usual``."""
    notes = [
        str(message.data[ON_CHANGE_NOTE])
        for message in messages
        if message.kind == Kind.NOTE and ON_CHANGE_NOTE in message.data
    ]
    return notes[-1] if notes and notes[-1] in ON_CHANGE else usual


def since_restart(messages: list[Message]) -> list[Message]:
    """Return the messages of a turn that count: those since the function last began again."""
    begun = [
        place
        for place, message in enumerate(messages)
        if message.kind == Kind.ASSISTANT and message.content == BEGINS_AGAIN
    ]
    return messages[begun[-1] :] if begun else messages


def goes_on_without(calls: list[str]) -> str:
    """Return the text of a reply of a changed function, which names the recorded calls that it has not repeated yet."""
    return f"The function was changed, and goes on. Nothing has asked yet for {', '.join(calls)}." if calls else ""
