"""Worktrees of git for agents whose files fork. Git makes, reads and merges them, in a fence.

A row says on which snapshot of its parent a child is built (see `ikigai_actors.tools.trees.tree`). A snapshot is a
commit of all that git does not ignore. It is made when it is needed first: when the child makes its first call, or
before its parent makes the next one. So a birth does nothing on the disk, and a child gets what its parent had.

    snapshot    ``refs/ikigai/<agent>/<number>`` keeps the commit; then the file ``<number>.commit`` names the commit
    worktree    the file ``made`` shows that the worktree was complete once; if one of the two is gone, it is made again
    merge       the file ``merging`` exists while merged files are moved into place; the next call finishes this first

Everything runs on the runtime's event loop.
"""

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from subprocess import DEVNULL, STDOUT
from typing import NamedTuple

from ikigai_actors.actors.threads import in_thread
from ikigai_actors.tools.fence.enclosure import Enclosure
from ikigai_actors.tools.fence.launch import FencedStart
from ikigai_actors.tools.fence.policy import REPOSITORY
from ikigai_actors.tools.function import ToolError
from ikigai_actors.tools.process import ChildProcess
from ikigai_actors.tools.trees.places import FilePlaces
from ikigai_actors.tools.trees.tree import GIT_FILE, FileTree
from ikigai_actors.tools.workspace import worktree_scripts as scripts

_PRIVATE = "git"
"""The name of the private directory of git."""

_SNAPSHOT = re.compile(r"(?:.*\n)*([0-9a-f]{40}|[0-9a-f]{64})\s*")
_NESTED = re.compile(r"^nested (tracked|untracked) (saved|unsaved) (.+)$", re.MULTILINE)

_PATHS = ("changed", "conflict", "dirty", "protected")
"""The texts of a merge about paths, in the order of `BranchMerge`."""

_AGAIN = {
    "again": "[your worktree had been removed, and was made again from what git has of it: the rest is lost]",
    "known": "[the repository had forgotten your worktree, and knows it again: nothing is staged]",
}
"""The text that an agent reads of a worktree that was made again."""


class Mount(NamedTuple):
    """The open mount in which an agent works that has its own layer of files."""

    upper: str
    """The layer to which the agent writes."""
    directory: int
    """A descriptor of the directory."""
    namespace: int
    """A descriptor that keeps the mounts of the agent's namespace."""

    def close(self) -> None:
        """Close the descriptors. Running programs of the agent are not affected."""
        os.close(self.directory)
        os.close(self.namespace)


class NestedRepository(NamedTuple):
    """A repository within a worktree. Snapshots do not have its files."""

    name: str
    """The path within the worktree."""
    is_tracked: bool
    """Whether the outer repository refers to one of its commits, as for a submodule."""
    is_saved: bool
    """Whether a remote has all its commits."""


class FileSnapshot(NamedTuple):
    """A commit of an agent's files."""

    commit: str
    nested: tuple[NestedRepository, ...] = ()


class BranchMerge(NamedTuple):
    """The outcome of a merge. If any field but `changed` is set, nothing was merged."""

    changed: tuple[str, ...]
    conflicts: tuple[str, ...]
    """The paths that both sides have changed."""
    dirty: tuple[str, ...]
    """The paths with uncommitted changes in the files into which the merge goes."""
    protected: tuple[str, ...]
    """The paths that no agent may change."""
    refused: str
    """The reason why git does not merge, in git's words."""


class Worktrees:
    """The git worktrees of agents in a workspace."""

    def __init__(self, enclosure: Enclosure, places: FilePlaces) -> None:
        """Use the directories in ``places``. Git runs in a fence like that of the workspace."""
        self._base, self._places = enclosure, places
        self._within = enclosure.of_worktrees()
        reach = enclosure.reach
        self._protected = [name for above, name in reach.protect if above == reach.directory]

    def launch(self, agent: str, tree: FileTree) -> FencedStart:
        """Return an object that starts programs of an agent in its worktree, or in the directory itself."""
        if tree.parent is None:
            return self._base.launch(agent)
        return self._within.launch(agent, str(self._places.beside(tree)))

    def opened(self, tree: FileTree) -> Mount | None:
        """Open the worktree of an agent; None if the agent works in the directory itself."""
        if tree.parent is None:
            return None
        directory = os.open(self._places.worktree(tree), os.O_PATH | os.O_DIRECTORY)
        return Mount("", directory, os.dup(directory))

    def is_made(self, tree: FileTree) -> bool:
        """Return whether an agent's worktree exists, and its repository knows it. True for the directory itself."""
        if tree.parent is None:
            return True
        beside = self._places.beside(tree)
        try:
            name = Path((beside / GIT_FILE).read_text(encoding="utf-8").strip()).name
        except OSError:
            return False
        known = (self._places.base / ".git" / "worktrees" / name / "HEAD").exists()
        return known and (beside / "made").exists() and (self._places.worktree(tree) / ".git").exists()

    def kept(self, tree: FileTree, number: int) -> FileSnapshot | None:
        """Return a snapshot of an agent by its number; None if it does not exist."""
        try:
            text = (self._places.beside(tree) / f"{number}.commit").read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        return snapshot_in(text)

    async def snapshot(self, tree: FileTree, name: str) -> FileSnapshot:
        """Commit an agent's files while it does not write. ``name`` is the number of the snapshot, or another name."""
        await self.finish(tree)
        once = "once" if name.isdigit() else ""
        said = await self._run(tree, scripts.SNAPSHOT, f"refs/ikigai/{tree.agent}/{name}", once)
        if (snapshot := snapshot_in(said)) is None:
            raise ToolError(f"git could not commit what the agent has: {said}")
        if once:
            await in_thread(lambda: _write(self._places.beside(tree) / f"{name}.commit", said), "ikigai-trees")
        return snapshot

    async def latest(self, tree: FileTree) -> FileSnapshot | None:
        """Return the latest commit of an agent whose worktree is gone: of its branch, or of a later snapshot."""
        said = await self._run(None, scripts.FOUND, branch_of(tree.agent), tree.agent)
        return snapshot_in(said)

    async def make(self, tree: FileTree, begun: FileSnapshot) -> str:
        """Make an agent's worktree, or make it again. Return a notice for the agent.

        Args:
            tree: the tree of the agent.
            begun: the snapshot with which the worktree begins.
        """
        beside, path = self._places.beside(tree), self._places.worktree(tree)
        state = "made" if (beside / "made").exists() else "cut" if beside.exists() else "missing"
        await in_thread(lambda: path.parent.mkdir(mode=0o700, parents=True, exist_ok=True), "ikigai-trees")
        fence = self._base.launch(_PRIVATE, str(path.parent))
        arguments = (branch_of(tree.agent), str(path), begun.commit, tree.agent, state)
        said = await self._run(None, scripts.MAKE, *arguments, fence=fence)

        def note() -> None:
            name = Path((path / ".git").read_text(encoding="utf-8").removeprefix("gitdir: ").strip()).name
            _write(beside / GIT_FILE, f"gitdir: {REPOSITORY}/worktrees/{name}\n")
            _write(beside / "made", "")

        await in_thread(note, "ikigai-trees")
        return _AGAIN.get(said) or _left_behind(begun.nested)

    async def merge(self, tree: FileTree, commit: str, message: str, fork: str = "") -> BranchMerge:
        """Merge a commit into the branch that an agent's worktree, or the directory, has checked out.

        Args:
            tree: the tree of the agent.
            commit: the commit to merge.
            message: the commit message.
            fork: the commit of the agent's files when the other agent was born; it may not be on a branch. Empty if
                unknown.
        """
        await self.finish(tree)
        await in_thread(lambda: _write(self._places.beside(tree) / "merging", ""), "ikigai-trees")
        said = await self._run(tree, scripts.MERGE, commit, message, self._merging(tree), fork, *self._protected)
        (self._places.beside(tree) / "merging").unlink()
        lines = [line.partition(" ")[::2] for line in said.splitlines()]
        changed, conflicts, dirty, protected = (
            tuple(text for label, text in lines if label == kind) for kind in _PATHS
        )
        return BranchMerge(changed, conflicts, dirty, protected, said.partition("refused ")[2])

    async def keep(self, tree: FileTree, commit: str) -> str:
        """Put a commit of an agent on a branch.

        Return the branch's name; empty if another branch has the commit already.
        """
        return await self._run(tree, scripts.KEEP, branch_of(tree.agent), commit)

    async def finish(self, tree: FileTree) -> None:
        """Finish a merge that was cut off."""
        marker = self._places.beside(tree) / "merging"
        if marker.exists():
            await self._run(tree, scripts.FINISH, self._merging(tree))
            marker.unlink()

    def _merging(self, tree: FileTree) -> str:
        return f"refs/ikigai/{tree.agent}/merging"

    async def _run(self, tree: FileTree | None, script: str, *arguments: str, fence: FencedStart | None = None) -> str:
        """Run a script; return its output. Raises `ToolError` with the output if the script fails.

        Args:
            tree: the tree of the agent in whose worktree the script runs; None for the directory itself.
            script: a script of `worktree_scripts`.
            arguments: the arguments of the script.
            fence: starts the script; None starts it as the agent's own programs.
        """
        within = tree is not None and tree.parent is not None
        common = REPOSITORY if within else f"{self._places.base}/.git"
        environment = {**self._base.environment(_PRIVATE), "COMMON": common}
        if fence is None:
            fence = self.launch(_PRIVATE, tree) if tree is not None else self._base.launch(_PRIVATE)
        process = await ChildProcess().spawn(
            [shutil.which("bash") or "/bin/bash", "--noprofile", "--norc", "-c", script, "git", *arguments],
            environment=environment, stdin=DEVNULL, stderr=STDOUT, fence=fence,
        )  # fmt: skip
        try:
            said = (await process.stdout.read()).decode(errors="replace").strip()
            await process.ended(None)
        finally:
            if process.exit_code is None:
                process.kill()
            await process.reap()
        if process.exit_code:
            raise ToolError(f"git failed: {said or process.exit_code}")
        return said


def _write(file: Path, text: str) -> None:
    """Write a file atomically and sync it, so that it survives a crash of the machine."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = file.with_name(f".{file.name}")
    with made.open("w", encoding="utf-8") as written:
        written.write(text)
        written.flush()
        os.fsync(written.fileno())
    made.replace(file)


def branch_of(agent: str) -> str:
    """Return the name of the branch with the commits of an agent."""
    return f"ikigai/{agent[:8]}"


def snapshot_in(said: str) -> FileSnapshot | None:
    """Parse the snapshot that a script has printed or a file names; None if it is no commit."""
    if (match := _SNAPSHOT.fullmatch(said)) is None:
        return None
    nested = _NESTED.findall(said)
    return FileSnapshot(
        match[1], tuple(NestedRepository(name, how == "tracked", has == "saved") for how, has, name in nested)
    )


def _left_behind(nested: Sequence[NestedRepository]) -> str:
    """Return the notice for an agent that its worktree lacks the files of these inner repositories."""
    names = ", ".join(sorted(repository.name for repository in nested))
    return names and f"[repositories of their own, whose files do not come along with a fork: {names}]"
