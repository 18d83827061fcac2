"""Where a word has entered the history of its agent, as its message says. Pure; `records.mail.words` keeps words."""

from dataclasses import dataclass

from ikigai_actors.records.messages.messages import Kind, Message

STEER = "steer"
"""In the data of a prompt, and of its message: it is a word. True, or `NOW`."""

NOW = "now"
"""The word does not wait for the end of the step in progress: it cuts that off."""


@dataclass(frozen=True, slots=True)
class Steered:
    """Where a word has entered the history of its agent."""

    position: int
    """The position of its message."""
    turn: int
    """The position of the message that opened the turn."""
    opened: bool = False
    """Whether the word itself opened the turn, since none was in progress."""


def steered_in(message: Message) -> tuple[int, Steered] | None:
    """The mail of the word that a message is, and where it has entered; None for any other message."""
    data = message.data
    if not data.get(STEER) or message.kind not in (Kind.USER, Kind.STEER):
        return None
    opened = message.kind == Kind.USER
    return data.get("mail", 0), Steered(message.id, message.id if opened else data.get("turn", 0), opened)
