"""The search for things by a few letters: screens, agents, documents, commands and earlier prompts. Pure.

found_by(things, "buy")    matches in this order: equal name, beginning of the name, part of it, part of the description
found_by(things, "@buy")   the same, among agents alone
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import groupby
from typing import NamedTuple

from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.documents import DocumentVersion
from ikigai_actors.shell.app.agent_rows import URGENCY
from ikigai_actors.verbs.text.words import activity


class Group(StrEnum):
    """The kinds of things, each with the sign that restricts a search to this kind."""

    SCREEN = "!"
    AGENT = "@"
    DOCUMENT = "#"
    COMMAND = ">"
    PROMPT = "^"


class Thing(NamedTuple):
    """A thing that the search can find: a screen, an agent, a document, a command or an earlier prompt."""

    group: Group
    name: str
    about: str = ""
    value: str = ""
    """A uuid, a path, a key or a text, by its kind, which identifies the thing."""
    kind: str = ""
    """Of an agent, the kind of its activity."""


A_FEW = 10
"""The number of things of each kind that are shown before a letter is typed."""

_ABOUT = 4

_LEAST = 3
"""The number of typed letters from which descriptions are searched, too."""


def found_by(things: Sequence[Thing], text: str) -> list[Thing]:
    """Return the things that match a text, best match first; equal matches stay in order."""
    group, wanted = _read(text)
    if not wanted:
        return [thing for thing in things if thing.group == group] if group else _some(things)
    ranked = [
        (rank, thing)
        for thing in things
        if (not group or thing.group == group) and (rank := _rank(thing, wanted)) is not None
    ]
    return [thing for _, thing in sorted(ranked, key=lambda pair: pair[0])]


def by_kind(things: Iterable[Thing]) -> list[Thing]:
    """Return the things grouped by kind: screens, agents, documents, commands, and at last prompts."""
    places = {group: place for place, group in enumerate(Group)}
    return sorted(things, key=lambda thing: places[thing.group])


def letters_of_agents(text: str) -> str:
    """Return the part of the search text that may find agents; empty if it searches for other things or is blank."""
    group, wanted = _read(text)
    return wanted if group in (None, Group.AGENT) else ""


def letters(text: str) -> str:
    """Return the part of a search text that is compared with names."""
    return _read(text)[1]


def _read(text: str) -> tuple[Group | None, str]:
    """Return the kind to which a search text is restricted, and the wanted letters in lower case."""
    text = text.lstrip()
    if text[:1] in tuple(Group):
        return Group(text[0]), text[1:].strip().casefold()
    return None, text.strip().casefold()


def _rank(thing: Thing, wanted: str) -> int | None:
    """Return how well a thing matches: 0 is best; None if it does not match. Prompts rank last, since they are many."""
    name = thing.name.casefold()
    place = name.find(wanted)
    if place < 0:
        return _ABOUT if len(wanted) >= _LEAST and wanted in thing.about.casefold() else None
    if thing.group == Group.PROMPT:
        return _ABOUT
    if name.lstrip("/") == wanted.lstrip("/"):
        return 0
    return 1 if place == 0 else 3 if name[place - 1].isalnum() else 2 - (name[:place] == "/")


def _some(things: Iterable[Thing]) -> list[Thing]:
    return [thing for _, same in groupby(things, key=lambda thing: thing.group) for thing in list(same)[:A_FEW]]


def agent_things(labelled: Mapping[str, AgentRecord], state: Callable[[AgentRecord], str]) -> list[Thing]:
    """Return agents as things to find; those that need a person come first, then those that work."""
    things = []
    for label, record in labelled.items():
        kind, word = activity(state(record))
        things.append(Thing(Group.AGENT, label, word, record.uuid, kind))
    return sorted(things, key=lambda record: URGENCY[record.kind])


def document_things(documents: Iterable[DocumentVersion]) -> list[Thing]:
    """Return documents as things to find."""
    return [
        Thing(Group.DOCUMENT, document.path, f"version {document.version}", document.path) for document in documents
    ]
