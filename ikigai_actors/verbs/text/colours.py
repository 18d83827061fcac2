"""The meanings of colours: amber waits for a person, red is a failure, grey is past.

Pure: a text has spans with meanings; `ikigai_actors.shell.cli.paint` colours the spans at a terminal.
"""

from enum import StrEnum
from typing import NamedTuple

from ikigai_actors.agent.turn.state import HOSTLESS, Phase, asks_person, lacks_program
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.messages.messages import CONVERSATION, Kind, Message
from ikigai_actors.verbs.text.harmless import harmless

FAULTS = {"crashed", "gave up", "damaged"}
"""The causes of death that are failures."""

_FOR_A_PERSON = {Phase.WAITING_FOR_BUDGET, Phase.INTERRUPTED, HOSTLESS, "stopped"}
"""States that a person ends, by a grant, /resume, or CONT. Two more kinds are texts with names in them."""


class Meaning(StrEnum):
    """The meaning of a part of a line; its value is the name of a colour."""

    PERSON = "yellow"
    """Something waits for a person."""
    FAILURE = "red"
    PAST = "bright_black"


class Span(NamedTuple):
    """A part of a line with a meaning, which a colour shows."""

    start: int
    end: int
    meaning: Meaning


class Coloured(NamedTuple):
    """A text that is safe for a terminal, and the meanings of its parts; the spans are in order and do not overlap."""

    text: str
    spans: tuple[Span, ...] = ()


def coloured(*parts: str | tuple[str, Meaning | None]) -> Coloured:
    """Make a text of parts, some of which have a meaning. Control characters are escaped."""
    text, spans = "", []
    for part in parts:
        words, meaning = (part, None) if isinstance(part, str) else part
        shown = harmless(words)
        if meaning is not None and shown:
            spans.append(Span(len(text), len(text) + len(shown), meaning))
        text += shown
    return Coloured(text, tuple(spans))


def meaning_of_agent(record: AgentRecord, state: str) -> Meaning | None:
    """Return the meaning of an agent's state, which a colour shows; None for a state without colour."""
    if not record.living:
        return meaning_of_death(record.exit_cause)
    is_for_person = state in _FOR_A_PERSON or asks_person(state) or lacks_program(state)
    return Meaning.PERSON if is_for_person else None


def meaning_of_death(cause: str | None) -> Meaning:
    """Return the meaning of a cause of death, which a colour shows: a failure or the past."""
    return Meaning.FAILURE if cause in FAULTS else Meaning.PAST


def meaning_of_message(message: Message) -> Meaning | None:
    """Return the meaning of a message in a log, which a colour shows. Messages that no model sees are past."""
    if message.kind == Kind.ERROR or message.data.get("is_error"):
        return Meaning.FAILURE
    if message.kind == Kind.APPROVAL:
        return Meaning.PERSON
    return None if message.kind in CONVERSATION else Meaning.PAST
