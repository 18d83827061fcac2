"""The data of an agent to be merged, for the merging agent. Pure data; `ikigai_actors.records.log.merges` reads it."""

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
    """The latest version that the branch has written."""
    other: int = 0
    """The latest version that somebody outside of the branch has written meanwhile, which is a conflict; 0 for none."""

    def as_data(self) -> dict[str, Any]:
        """Return the document as part of the ``merge`` message's data."""
        return {"path": self.path, "version": self.version, **({"other": self.other} if self.other else {})}


class WrittenVersion(NamedTuple):
    """A version of a document that was written after a branch began, or after the branch was last merged."""

    path: str
    version: int
    created_at: int
    own: bool
    """Whether an agent of the branch has written it."""


@dataclass(frozen=True, slots=True)
class MergeSource:
    """The state of an agent that another agent is about to merge."""

    agent: str
    """The uuid of the agent."""
    name: str | None
    head: int
    """The position of its latest message. If this has changed at the commit, the merge is refused."""
    common: int
    """The position of the last message that both histories share."""
    merged: int
    """The agent's head at its last merge; 0 if it was never merged."""
    in_turn: bool
    """Whether a turn of the agent is open."""
    result: str
    """The result with which the agent has exited; empty if it has not."""
    messages: tuple[Message, ...]
    """The visible messages of the agent that the merging agent does not have, oldest first."""
    documents: tuple[MergedDocument, ...]
    """The documents that the agent and those below it have written since, by path."""

    @property
    def since(self) -> int:
        """Return the position after which no message was merged yet."""
        return max(self.common, self.merged)

    @property
    def called(self) -> str:
        """Return the name of the agent for people."""
        return called(self.agent, self.name)


@dataclass(frozen=True, slots=True)
class MergeEntry:
    """The row of table ``merges`` for a merge."""

    child: str
    """The uuid of the merged agent."""
    head: int
    """The position of its latest message."""
    message: int
    """The position of the ``merge`` message in the merging agent's log."""
    created_at: int


def merged_documents(versions: Iterable[WrittenVersion], since: int) -> tuple[MergedDocument, ...]:
    """Return the documents that a branch has written, each with its conflict if there is one.

    A version from outside of the branch is a conflict if it was written after the branch began, or after the branch's
    first version.

    Args:
        versions: the versions that were written at ``since`` or later.
        since: when the branch began, or was merged last, in milliseconds since 1970.
    """
    by_path: dict[str, list[WrittenVersion]] = {}
    for version in versions:
        by_path.setdefault(version.path, []).append(version)
    documents = []
    for path, written in sorted(by_path.items()):
        own = [version.version for version in written if version.own]
        if own:
            others = (version for version in written if not version.own)
            meanwhile = (other.version for other in others if other.created_at > since or other.version > min(own))
            documents.append(MergedDocument(path, max(own), max(meanwhile, default=0)))
    return tuple(documents)
