"""Toolsets: tools that share something which outlives a call: a directory and its shells, a server.

    ActorSystem.open(tools=[count_lines, Workspace("src"), McpServer("uvx mcp-server-time")])

A toolset is opened with the system and closed with it, and is notified when an agent is gone. All its coroutines run on
the runtime's event loop, where they must not block.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ikigai_actors.tools.function import Tool
from ikigai_actors.tools.trees.tree import Copied, TreeStore

Tell = Callable[[str], None]
"""Takes a sentence for a person, for example that a server died. Thread-safe."""

ReadBlobs = Callable[[Sequence[str]], Mapping[str, bytes]]
"""Gives bytes of the database by their digests; those that are missing are left out. Blocks."""


@dataclass(frozen=True, slots=True)
class HostPaths:
    """The files of the host that opens a toolset."""

    state: Path
    """The directory of what it keeps for itself; it may be missing."""
    secrets: tuple[Path, ...] = ()
    """Files that no tool may give away: the database, the configuration."""


class RemoteTools(Protocol):
    """Services of the system for toolsets that are reached by the network."""

    def secret(self, reference: str) -> str:
        """The secret that a reference names, as ``env:NAME``; empty where this process does not find it. Blocks."""

    def listing(self, server: str) -> tuple[str, str] | None:
        """The tools that a server has listed: their digest, and the list as JSON; None where it never has. Blocks."""

    def keep_listing(self, server: str, digest: str, listing: str) -> None:
        """Keep the tools that a server lists. Does not wait."""

    def redefine(self, tools: Sequence[Tool]) -> None:
        """Offer these tools in place of those with the same names; new ones too. Does not wait."""


class Toolset(ABC):
    """Tools that share something."""

    host_paths: HostPaths | None = None
    """Which files belong to the host. The system sets it before `open`."""
    trees: TreeStore | None = None
    """The stored trees in the database. The system sets it before `open`."""
    read_blobs: ReadBlobs | None = None
    """Reads bytes of the database by their digests. The system sets it before `open`."""
    remotes: RemoteTools | None = None
    """Services for a toolset that is reached by the network. The system sets it before `open`."""
    directory: Path | None = None
    """The directory that its tools work in, if they work in one."""
    copied: Copied | None = None
    """The directory of which children get trees of their own. `open` sets it where there is one."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name by which a person knows it."""

    @abstractmethod
    async def open(self, tell: Tell) -> Sequence[Tool]:
        """Start what the tools need, and return them.

        Args:
            tell: takes sentences for a person, now and later.

        Raises:
            BadInput: it cannot start; nothing of it is left then.
        """

    def printed(self, agent: str) -> Mapping[str, str]:
        """The end of what the running calls of an agent have printed so far, for a person who watches.

        Args:
            agent: the agent, by uuid.

        Returns:
            A text for each call that has printed something, by its id. Any thread may ask, and never waits.
        """
        return {}

    def text_of(self, agent: str, path: str) -> str | None:
        """The text of a file as an agent sees it, for a person who decides on an edit of it.

        Args:
            agent: the agent, by uuid.
            path: the path, as the agent's model gives it.

        Returns:
            The text; None when these tools know no such file, or it is no text. Any thread may ask, and may wait.
        """
        return None

    async def merge_files(self, agent: str, child: str, how: str | None = None) -> list[str]:
        """Take over what a child has changed in the directory that is copied (`copied`).

        Args:
            agent: gets the changes, by uuid.
            child: has them. The agent itself: what it has changed is written to the directory.
            how: ``apply`` for files in layers, ``branch`` for worktrees of git; None for what it is.

        Returns:
            The paths that are others now, beneath the directory.

        Raises:
            FilesConflict: both have changed the same.
            IkigaiError: it cannot be done, and nothing was.
        """
        raise NotImplementedError(f"{self.name} copies no directory")

    @abstractmethod
    async def leave(self, agent: str) -> None:
        """Give up what an agent alone held. The agent, given by uuid, acts no more on this host."""

    @abstractmethod
    async def close(self) -> None:
        """End everything."""
