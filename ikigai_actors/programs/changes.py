"""Changed functions: what follows where one does something else than the log of its turn holds. Pure.

    fail        the turn ends with `StepChanged`, and the agent lives
    go_on       the new act is done, and the reply names what nobody has asked for yet: that may still be asked for
    restart     the function begins again, without what the log holds: effects may repeat

A program says which, and `resume` decides for one turn by a note in its log. The reply with which a function begins
again says so; what came before it in the turn does not count for any later run.
"""

from collections.abc import Iterable

from ikigai_actors.arguments import check_choice
from ikigai_actors.records.messages.messages import Kind, Message

FAIL, GO_ON, RESTART = ON_CHANGE = ("fail", "go_on", "restart")
"""The ways."""

ON_CHANGE_NOTE = "on_change"
"""Under this name a note has what follows in its turn."""

BEGINS_AGAIN = "The function was changed, and begins again."
"""The text of the reply with which it does."""


def check_on_change(way: object) -> str:
    """One of the ways. Raises `BadInput`."""
    return check_choice(way, ON_CHANGE_NOTE, ON_CHANGE)


def way_of_turn(messages: Iterable[Message], usual: str) -> str:
    """The way of the turn that has these messages: what its latest note says, or else what is usual."""
    notes = [str(one.data[ON_CHANGE_NOTE]) for one in messages if one.kind == Kind.NOTE and ON_CHANGE_NOTE in one.data]
    return notes[-1] if notes and notes[-1] in ON_CHANGE else usual


def since_restart(messages: list[Message]) -> list[Message]:
    """The messages of a turn that count: those from its latest beginning on."""
    begun = [place for place, one in enumerate(messages) if one.kind == Kind.ASSISTANT and one.content == BEGINS_AGAIN]
    return messages[begun[-1] :] if begun else messages


def goes_on_without(calls: list[str]) -> str:
    """The text of a reply with a new act, beside calls that nobody has asked for yet."""
    return f"The function was changed, and goes on. Nothing has asked yet for {', '.join(calls)}." if calls else ""
