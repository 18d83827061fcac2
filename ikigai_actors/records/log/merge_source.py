"""The data of an agent for another one that merges it. Pure data; `ikigai_actors.records.log.merges` reads it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ikigai_actors.records.agents.words import called
from ikigai_actors.records.messages.messages import Message


@dataclass(frozen=True, slots=True)
class MergedDocument:
    """A document that a merged branch has written."""

    path: str
    version: int
    """The latest version that is the branch's."""
    other: int = 0
    """The latest version that somebody outside of the branch has written meanwhile: a conflict. 0 for none."""

    def as_data(self) -> dict[str, Any]:
        """The document as part of a message's data."""
        return {"path": self.path, "version": self.version, **({"other": self.other} if self.other else {})}


class WrittenVersion(NamedTuple):
    """A version of a document that was written after a branch began, or after the branch was last merged."""

    path: str
    version: int
    created_at: int
    own: bool
    """Whether the branch has written it."""


@dataclass(frozen=True, slots=True)
class MergeSource:
    """An agent that is to be merged, as it was looked at."""

    agent: str
    """The uuid."""
    name: str | None
    head: int
    """Position of its latest message: the merge is refused when that is another one at the commit."""
    common: int
    """Position of the last message that both histories have in common."""
    merged: int
    """The head when it was merged last; 0 when it never was."""
    in_turn: bool
    """Whether a turn of it is open."""
    result: str
    """The result with which it has exited; empty when it has not."""
    messages: tuple[Message, ...]
    """The messages that count and the other agent has not, oldest first."""
    documents: tuple[MergedDocument, ...]
    """The documents that it and those below it have written since, by path."""

    @property
    def since(self) -> int:
        """The position after which nothing was merged yet."""
        return max(self.common, self.merged)

    @property
    def called(self) -> str:
        """The name for people."""
        return called(self.agent, self.name)


@dataclass(frozen=True, slots=True)
class MergeEntry:
    """The row of table ``merges`` that a merge writes beside its message."""

    child: str
    """The merged agent's uuid."""
    head: int
    """Position of its latest message."""
    message: int
    """Position of the message ``merge`` in the other agent's log."""
    created_at: int


def merged_documents(versions: Iterable[WrittenVersion], since: int) -> tuple[MergedDocument, ...]:
    """The documents that a branch has written, each with the conflict if there is one.

    Somebody else's version is a conflict when it came after the branch began, or after the branch's first version.

    Args:
        versions: those that were written at ``since`` or later.
        since: when the branch began, or was merged last, in milliseconds since 1970.
    """
    by_path: dict[str, list[WrittenVersion]] = {}
    for one in versions:
        by_path.setdefault(one.path, []).append(one)
    found = []
    for path, written in sorted(by_path.items()):
        own = [one.version for one in written if one.own]
        if own:
            others = (one for one in written if not one.own)
            meanwhile = (one.version for one in others if one.created_at > since or one.version > min(own))
            found.append(MergedDocument(path, max(own), max(meanwhile, default=0)))
    return tuple(found)
