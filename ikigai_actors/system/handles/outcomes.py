"""The outcomes of the commands that give more than a position."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ikigai_actors.providers.base import Usage
from ikigai_actors.records.log.merge_source import MergedDocument


@dataclass(frozen=True, slots=True)
class Compacted:
    """The outcome of a compaction."""

    position: int
    """The position of the summary."""
    before: int
    """How many tokens the conversation had, about."""
    after: int
    """How many it has now, about."""
    usage: Usage | None
    """The cost of the summary, when the provider reports it."""


def compacted(told: Mapping[str, Any]) -> Compacted:
    """The outcome of a compaction, made of the agent's answer."""
    usage = told.get("usage")
    return Compacted(told["position"], told["before"], told["after"], None if usage is None else Usage(**usage))


@dataclass(frozen=True, slots=True)
class Merged:
    """The outcome of a merge."""

    position: int
    """The position of the message ``merge``."""
    head: int
    """The position up to which the child is merged now."""
    text: str
    """The text that was taken in: a result, a summary, or a selection."""
    documents: tuple[MergedDocument, ...]
    """The documents that the child and those below it have written since, by path; nothing of it was changed."""
    usage: Usage | None
    """The cost of the summary, when the provider reports it."""


def merged(told: Mapping[str, Any]) -> Merged:
    """The outcome of a merge, made of the agent's answer."""
    usage, documents = told.get("usage"), tuple(MergedDocument(**one) for one in told["documents"])
    return Merged(told["position"], told["head"], told["text"], documents, None if usage is None else Usage(**usage))
