"""Toolsets: groups of tools that share a resource which outlives a call: a directory with its shells, or a server.

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
"""A function that shows a sentence to a person, for example that a server died. Thread-safe."""

ReadBlobs = Callable[[Sequence[str]], Mapping[str, bytes]]
"""A function that returns blobs of the database by their digests. Missing blobs are left out. Blocks."""


@dataclass(frozen=True, slots=True)
class HostPaths:
    """The paths of the host's own files, such as the database, which tools must not disclose."""

    state: Path
    """The host's private directory. It may be missing."""
    secrets: tuple[Path, ...] = ()
    """Files that no tool may disclose: the database and the configuration."""


class RemoteTools(Protocol):
    """The functions of a system that toolsets need which are reached over the network."""

    def secret(self, reference: str) -> str:
        """Return the secret that a reference such as ``env:NAME`` names; empty if it is not found here. Blocks."""

    def listing(self, server: str) -> tuple[str, str] | None:
        """Return the tools that a server has listed, as a digest and JSON; None if it never listed any. Blocks."""

    def keep_listing(self, server: str, digest: str, listing: str) -> None:
        """Store the tools that a server lists. Does not wait."""

    def redefine(self, tools: Sequence[Tool]) -> None:
        """Offer these tools in place of those with the same names; new ones too. Does not wait."""

    def check_accounts(self) -> None:
        """Raise `BadInput` if this host cannot store accounts, for example without an operator's key. Blocks."""

    def subject(self, agent: str, label: str) -> str | None:
        """Return the subject of an agent from one of its labels, as ``user=anna``; None without the label. Blocks."""

    def subjects(self, server: str) -> list[str]:
        """Return the subjects with an account at a server. Blocks."""

    async def token(self, server: str, subject: str, refused: str = "") -> str | None:
        """Return the access token of a subject at a server; None if somebody has to connect an account first.

        ``refused`` is a token that the server has just refused. Raises `ToolError` if the authorization server cannot
        be reached.
        """

    async def scope(self, server: str, subject: str) -> str:
        """Return the rights of a subject's account at a server; empty without an account."""


class Toolset(ABC):
    """A group of tools that share a resource."""

    host_paths: HostPaths | None = None
    """The paths of the host's own files. The system sets them before `open`."""
    trees: TreeStore | None = None
    """The database's records of the agents' file trees. The system sets it before `open`."""
    read_blobs: ReadBlobs | None = None
    """Reads blobs of the database by their digests. The system sets it before `open`."""
    remotes: RemoteTools | None = None
    """Services for a toolset that is reached by the network. The system sets it before `open`."""
    directory: Path | None = None
    """The directory in which the tools work; None if they work in no directory."""
    copied: Copied | None = None
    """The directory of which children get their own trees. `open` sets it if there is one."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the toolset, for people."""

    @abstractmethod
    async def open(self, tell: Tell) -> Sequence[Tool]:
        """Start the resource that the tools share, and return the tools.

        Args:
            tell: takes sentences for a person, now and later.

        Raises:
            BadInput: the toolset cannot start, and has released everything.
        """

    def printed(self, agent: str) -> Mapping[str, str]:
        """Return the latest output of an agent's running calls, for a person who watches.

        Args:
            agent: the uuid of the agent.

        Returns:
            The text of each call that has printed something, by the id of the call. Thread-safe; never waits.
        """
        return {}

    def text_of(self, agent: str, path: str) -> str | None:
        """Return the text of a file as an agent sees it, for a person who decides on an edit of the file.

        Args:
            agent: the uuid of the agent.
            path: the path, as the agent's model has written it.

        Returns:
            The text; None when the toolset has no such file, or the file is no text. Thread-safe; may wait.
        """
        return None

    async def merge_files(self, agent: str, child: str, how: str | None = None) -> list[str]:
        """Copy the changes that a child has made to the files of the directory `copied`.

        Args:
            agent: the uuid of the agent that gets the changes.
            child: the uuid of the child. If it is ``agent``, its changes are written to the directory itself.
            how: ``apply`` for files in layers, ``branch`` for worktrees of git; None for the way that fits.

        Returns:
            The paths of the changed files, relative to the directory.

        Raises:
            FilesConflict: both sides have changed the same files.
            IkigaiError: the merge is not possible, and nothing was changed.
        """
        raise NotImplementedError(f"{self.name} copies no directory")

    async def run_hook(self, command: str, text: str) -> tuple[int, str, str]:
        """Run a command of the directory as a hook, in the fence of these tools.

        Args:
            command: the command, for bash.
            text: the standard input of the command.

        Returns:
            The exit code, the output and the standard error.

        Raises:
            BadInput, OSError, RuntimeError: the command cannot run here.
        """
        raise NotImplementedError(f"{self.name} runs no commands")

    @abstractmethod
    async def leave(self, agent: str) -> None:
        """Release the resources that only this agent used.

        The agent, named by its uuid, does not run on this host any more.
        """

    @abstractmethod
    async def close(self) -> None:
        """Release all resources, and end the tools."""
