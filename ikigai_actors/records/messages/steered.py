"""The place where a word entered the history of its agent, by its message. Pure; `records.mail.words` keeps words."""

from collections.abc import Mapping, Sequence
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
    """The mail of the word that a message is, and where it has entered; None for any other message, or a copy."""
    data = message.data
    if not data.get(STEER) or "from" in data or message.kind not in (Kind.USER, Kind.STEER):
        return None
    opened = message.kind == Kind.USER
    return data.get("mail", 0), Steered(message.id, message.id if opened else data.get("turn", 0), opened)


def as_word(message: Message) -> Mapping[str, str]:
    """A word as a summary keeps it: its text, and who said it, if an agent did."""
    sender = message.data.get("name") or message.data.get("sender")
    return {"text": message.content} if sender is None else {"text": message.content, "from": str(sender)}


def words_beside(summary: Message) -> Sequence[Mapping[str, str]]:
    """The words that are shown beside a summary, after the prompt that was open."""
    words: Sequence[Mapping[str, str]] = summary.data.get("words", ())
    return words
