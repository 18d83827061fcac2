"""The position of a steering message in the history of its agent. Pure; `records.mail.words` stores the messages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ikigai_actors.records.messages.messages import Kind, Message

STEER = "steer"
"""The key in the data of a prompt that makes it a steering message. The value is True, or `NOW`."""

NOW = "now"
"""The value for a steering message that cuts off the step in progress."""


@dataclass(frozen=True, slots=True)
class Steered:
    """The position at which a steering message has entered the history of its agent, and its turn."""

    position: int
    """The position of the message."""
    turn: int
    """The position of the message that opened the turn."""
    opened: bool = False
    """Whether the message itself opened the turn, because none was in progress."""


def steered_in(message: Message) -> tuple[int, Steered] | None:
    """Return the number of a steering message's mail, and its position; None for any other message, or a copy."""
    data = message.data
    if not data.get(STEER) or "from" in data or message.kind not in (Kind.USER, Kind.STEER):
        return None
    opened = message.kind == Kind.USER
    return data.get("mail", 0), Steered(message.id, message.id if opened else data.get("turn", 0), opened)


def as_word(message: Message) -> Mapping[str, str]:
    """Return a steering message in the form in which a summary has it: its text and, if any, its sender."""
    sender = message.data.get("name") or message.data.get("sender")
    return {"text": message.content} if sender is None else {"text": message.content, "from": str(sender)}


def words_beside(summary: Message) -> Sequence[Mapping[str, str]]:
    """Return the steering messages that are shown beside a summary, after the prompt that was open."""
    words: Sequence[Mapping[str, str]] = summary.data.get("words", ())
    return words
