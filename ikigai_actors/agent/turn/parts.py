"""Parts: divides another agent's history into requests that fit its model's window, for the summary of a merge. Pure.

The history that both agents inherit is left out first, since the merging agent knows it. If that is not enough, the
rest is read in parts of whole steps. Each part is shown with the notes of the earlier parts, and the model writes new
notes of both. A step that is too long by itself, and everything after `MOST_PARTS` parts, is shown by its prompts and
its latest answer.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from ikigai_actors.agent.turn.plan import DIGESTED, READABLE
from ikigai_actors.agent.turn.tokens import UNTOLD, tokens_of
from ikigai_actors.records.log.boundaries import is_boundary
from ikigai_actors.records.messages.messages import Kind, Message

MOST_PARTS = 8
"""The most parts of one history that are read."""
_MOST_DIGESTED = 20_000
"""The most characters of a digest, about. The latest prompts are kept."""
_DIGEST = "(Nobody could summarise this; it is what was asked, and the latest answer.)"


class ReadPart(NamedTuple):
    """A part of another agent's history, short enough to be sent to a model at once."""

    messages: Sequence[Message]
    rest: Sequence[Message] = ()
    """The later messages, which are read in further parts."""
    notes: str = ""
    """The notes of all earlier messages."""
    number: int = 1
    """The number of this part, from 1."""


def shorter(news: Sequence[Message], part: ReadPart | None, window: int) -> ReadPart | str:
    """Return a shorter part of a history, after a request that was too long.

    Args:
        news: the messages of the agent that the merging agent does not have.
        part: the part that was too long; None for the whole history.
        window: the size of the model's window, in tokens; 0 if unknown.

    Returns:
        A shorter part. Where no model can write notes, the notes that replace the whole history.
    """
    shown = news if part is None else part.messages
    allowed = [READABLE * window] if window else []
    if part is not None:
        allowed.append(READABLE * _size(shown))
    first, behind = _split(shown, min(allowed)) if allowed else (shown, ())
    if part is None:
        return ReadPart(first, behind)
    if len(first) < len(shown):
        return part._replace(messages=first, rest=(*behind, *part.rest))
    return behind_part(part, _joined(part.notes, _digest(first)))


def behind_part(part: ReadPart, notes: str) -> ReadPart | str:
    """Return the part after this one, with the notes so far; or the notes themselves after the last part."""
    if not part.rest:
        return notes
    if part.number >= MOST_PARTS:
        return _joined(notes, _digest(part.rest))
    first, behind = _split(part.rest, _size(part.messages))
    return ReadPart(first, behind, notes, part.number + 1)


def _split(messages: Sequence[Message], most: float) -> tuple[Sequence[Message], Sequence[Message]]:
    """Split messages into whole steps of about ``most`` tokens, at least one step, and the rest."""
    places = [message.id for message in messages]

    def read(start: int, end: int) -> Sequence[Message]:
        return messages[bisect_right(places, start) : bisect_right(places, end)]

    size, cut = 0, 0
    for place, message in enumerate(messages):
        begins = message.kind in (Kind.USER, Kind.ASSISTANT) and place > 0
        if begins and is_boundary(read, message.id - 1):
            if size <= most or not cut:
                cut = place
            if size > most:
                break
        size += tokens_of(message, UNTOLD)
    if size <= most or not cut:
        cut = len(messages)
    return messages[:cut], messages[cut:]


def _size(messages: Sequence[Message]) -> int:
    return sum(tokens_of(message, UNTOLD) for message in messages)


def _joined(notes: str, digest: str) -> str:
    return f"{notes}\n\n{digest}" if notes else digest


def _digest(messages: Sequence[Message]) -> str:
    """Return a text with the prompts, and the latest answer."""
    answers = (message for message in reversed(messages) if message.kind == Kind.ASSISTANT and message.content.strip())
    latest = next(answers, None)
    lines = [f"The latest answer, at {latest.id}: {latest.content[:DIGESTED]}"] if latest is not None else []
    for message in reversed(messages):
        if message.kind == Kind.USER and sum(map(len, lines)) < _MOST_DIGESTED:
            lines.append(f"Prompt at {message.id}: {message.content[:DIGESTED]}")
    return "\n".join([_DIGEST, *reversed(lines)])
