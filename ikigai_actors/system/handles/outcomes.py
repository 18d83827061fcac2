"""The outcomes of commands that return more than a position."""

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
    """The approximate number of tokens of the conversation before the compaction."""
    after: int
    """The approximate number of tokens of the conversation after the compaction."""
    usage: Usage | None
    """The tokens that the summary has cost, if the provider reports them."""


def compacted(outcome: Mapping[str, Any]) -> Compacted:
    """Return the outcome of a compaction as an object, from the agent's answer."""
    usage = outcome.get("usage")
    return Compacted(
        outcome["position"], outcome["before"], outcome["after"], None if usage is None else Usage(**usage)
    )


@dataclass(frozen=True, slots=True)
class Merged:
    """The outcome of a merge."""

    position: int
    """The position of the ``merge`` message in the log of the merging agent."""
    head: int
    """The position in the child's history up to which the child is merged now."""
    text: str
    """The text that was taken in: a result, a summary, or a selection."""
    documents: tuple[MergedDocument, ...]
    """The documents that the child and its descendants have written since the last merge, by path. The merge changes
    none.
    """
    usage: Usage | None
    """The tokens that the summary has cost, if the provider reports them."""


def merged(outcome: Mapping[str, Any]) -> Merged:
    """Return the outcome of a merge as an object, from the agent's answer."""
    usage, documents = outcome.get("usage"), tuple(MergedDocument(**document) for document in outcome["documents"])
    return Merged(
        outcome["position"], outcome["head"], outcome["text"], documents, None if usage is None else Usage(**usage)
    )
