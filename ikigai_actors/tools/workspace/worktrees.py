"""Worktrees of git for agents whose files fork: made, looked at and merged by git, in a fence.

A row says on which snapshot of its parent a child is built (see `ikigai_actors.tools.trees.tree`). A snapshot is a
commit of all that git does not ignore. It is made when it is needed first: when the child makes its first call, or
before its parent makes the next one. So a birth does nothing on the disk, and a child gets what its parent had.

    snapshot    ``<number>.commit`` beside the worktree names it, after ``refs/ikigai/<agent>/<number>`` keeps it
    worktree    ``made`` is there when it is whole; else it is made again
    merge       ``merging`` is there while files are put in their places; the next call finishes that first

Everything runs on the runtime's event loop.
"""

import os
import re
import shutil
from pathlib import Path
from subprocess import DEVNULL, STDOUT
from typing import NamedTuple

from ikigai_actors.actors.threads import in_thread
from ikigai_actors.tools.fence.enclosure import Enclosure
from ikigai_actors.tools.fence.launch import FencedStart
from ikigai_actors.tools.fence.policy import REPOSITORY
from ikigai_actors.tools.function import ToolError
from ikigai_actors.tools.process import ChildProcess
from ikigai_actors.tools.trees.places import TreePlaces
from ikigai_actors.tools.trees.tree import GIT_FILE, FileTree

_PRIVATE = "git"
"""The name of the private directory of git."""

_GIT = r"""
set -eu
rm -f "$COMMON/commondir"
git() {
    command git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c commit.gpgSign=false -c gc.auto=0 \
        -c maintenance.auto=false -c core.fsync=all -c submodule.recurse=false -c core.quotePath=false "$@"
}
if [ -z "$(git config user.email || true)" ]; then
    export GIT_AUTHOR_NAME=ikigai GIT_AUTHOR_EMAIL=ikigai@localhost
    export GIT_COMMITTER_NAME=ikigai GIT_COMMITTER_EMAIL=ikigai@localhost
fi
"""
"""The beginning of each script: no hook and no program that the repository names. A file ``commondir``, which no main
directory has, would name another repository."""

_SNAPSHOT = (
    _GIT
    + r"""
GIT_INDEX_FILE=$(mktemp); export GIT_INDEX_FILE
trap 'rm -f "$GIT_INDEX_FILE" "$GIT_INDEX_FILE.lock"' EXIT
index=$(unset GIT_INDEX_FILE; git rev-parse --git-path index)
if [ -e "$index" ]; then cp "$index" "$GIT_INDEX_FILE"; else rm "$GIT_INDEX_FILE"; fi
git add -A .
tree=$(git write-tree)
head=$(git rev-parse -q --verify 'HEAD^{commit}' || true)
if [ -n "$head" ] && [ "$tree" = "$(git rev-parse "$head^{tree}")" ]; then commit=$head
else commit=$(git commit-tree "$tree" ${head:+-p "$head"} -m "Keep what was not committed"); fi
git update-ref "$1" "$commit"
echo "$commit"
"""
)
"""Commits what is there, beside all branches; prints the commit. Argument: the reference that is to keep it."""

_MAKE = (
    _GIT
    + r"""
git worktree unlock "$2" 2> /dev/null || true
git worktree remove -f "$2" 2> /dev/null || true
rm -rf "$2"
from=$(git rev-parse -q --verify "refs/heads/$1^{commit}" || echo "$3")
git worktree add -q -f -f -B "$1" "$2" "$from"
git worktree lock --reason "an agent works there" "$2"
"""
)
"""Makes a worktree, again where that was cut off, or somebody has removed it: its branch has what was committed.
Arguments: branch, path, commit."""

_MERGE = (
    _GIT
    + r"""
head=$(git rev-parse -q --verify 'HEAD^{commit}') || { echo "refused nothing is committed there yet"; exit 0; }
if git merge-base --is-ancestor "$1" "$head"; then exit 0; fi
if ! merged=$(git merge-tree --write-tree --name-only --no-messages "$head" "$1"); then
    case $merged in
        [0-9a-f]*) printf '%s\n' "$merged" | tail -n +2 | sed 's/^/conflict /' ;;
        *) echo "refused these histories have nothing in common" ;;
    esac
    exit 0
fi
commit=$(git commit-tree "$merged" -p "$head" -p "$1" -m "$2") kept=$3
shift 3
for name; do
    if [ -e "$name" ] && ! git diff-tree -r --quiet "$head" "$commit" -- ":(literal)$name"; then
        echo "refused $name is protected"
        exit 0
    fi
done
git update-index -q --refresh || true
if ! words=$(git read-tree -m -u -n "$head" "$commit" 2>&1); then echo "refused $words"; exit 0; fi
git update-ref "$kept" "$commit"
git read-tree -m -u "$head" "$commit"
git update-ref -m "merge of an agent's work" HEAD "$commit" "$head"
git update-ref -d "$kept"
git diff-tree -r --no-renames --name-only "$head" "$commit" | sed 's/^/changed /'
"""
)
"""Merges a commit: decides without touching a file, then puts files in their places. Arguments: the commit, a message,
a reference that keeps the merge meanwhile, and the names that no agent may change."""

_FINISH = (
    _GIT
    + r"""
commit=$(git rev-parse -q --verify "$1^{commit}") || exit 0
head=$(git rev-parse HEAD)
if [ "$head" = "$(git rev-parse "$commit^1")" ]; then
    rm -f "$(git rev-parse --git-path index.lock)"
    git diff-tree -r -z --no-renames --name-only --diff-filter=d "$head" "$commit" |
        xargs -0 -r git -c core.hooksPath=/dev/null checkout -q -f "$commit" --
    git diff-tree -r -z --no-renames --name-only --diff-filter=D "$head" "$commit" |
        xargs -0 -r git -c core.hooksPath=/dev/null rm -q -f --ignore-unmatch --
    git update-ref -m "merge of an agent's work" HEAD "$commit" "$head"
fi
git update-ref -d "$1"
"""
)
"""Puts the files of a merge in their places that was cut off. Argument: the reference that kept it."""

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class Mount(NamedTuple):
    """The directory of an agent with a tree, as it sees it."""

    upper: str
    """The layer that it writes to."""
    directory: int
    """A descriptor of the directory."""
    namespace: int
    """A descriptor that keeps what is mounted in it."""

    def close(self) -> None:
        """Give it back. What the agent still runs keeps its own."""
        os.close(self.directory)
        os.close(self.namespace)


class BranchMerge(NamedTuple):
    """The outcome of a merge."""

    changed: list[str]
    conflicts: list[str]
    """What both sides have changed: then nothing was merged."""
    refused: str
    """Why git does not merge, in its words."""


class Worktrees:
    """The worktrees of a workspace."""

    def __init__(self, enclosure: Enclosure, places: TreePlaces) -> None:
        """Run git in a fence like that of the workspace."""
        self._base, self._places = enclosure, places
        self._within = enclosure.of_worktrees()
        reach = enclosure.reach
        self._protected = [name for above, name in reach.protect if above == reach.directory]

    def launch(self, agent: str, tree: FileTree) -> FencedStart:
        """How to start a program of an agent in its worktree; in the directory itself where it works there."""
        if tree.parent is None:
            return self._base.launch(agent)
        return self._within.launch(agent, str(self._places.beside(tree)))

    def opened(self, tree: FileTree) -> Mount | None:
        """The worktree of an agent, open; None where it works in the directory itself."""
        if tree.parent is None:
            return None
        directory = os.open(self._places.worktree(tree), os.O_PATH | os.O_DIRECTORY)
        return Mount("", directory, os.dup(directory))

    def is_made(self, tree: FileTree) -> bool:
        """Whether an agent's worktree is there; the directory itself is."""
        return tree.parent is None or (self._places.beside(tree) / "made").exists()

    def commit(self, tree: FileTree, number: int) -> str | None:
        """A snapshot of an agent; None when there is none yet."""
        try:
            return (self._places.beside(tree) / f"{number}.commit").read_text(encoding="ascii")
        except FileNotFoundError:
            return None

    async def snapshot(self, tree: FileTree, name: str) -> str:
        """Commit what an agent has, while it does not write; ``name`` is a number, or another name."""
        await self.finish(tree)
        said = await self._run(tree, _SNAPSHOT, f"refs/ikigai/{tree.agent}/{name}")
        if not _COMMIT.fullmatch(commit := said.splitlines()[-1] if said else ""):
            raise ToolError(f"git could not commit what the agent has: {said}")
        if name.isdigit():
            await in_thread(lambda: _write(self._places.beside(tree) / f"{name}.commit", commit), "ikigai-trees")
        return commit

    async def make(self, tree: FileTree, commit: str) -> None:
        """Make an agent's worktree."""
        beside, path = self._places.beside(tree), self._places.worktree(tree)
        await in_thread(lambda: path.parent.mkdir(mode=0o700, parents=True, exist_ok=True), "ikigai-trees")
        fence = self._base.launch(_PRIVATE, str(path.parent))
        await self._run(None, _MAKE, branch_of(tree.agent), str(path), commit, fence=fence)

        def note() -> None:
            name = Path((path / ".git").read_text(encoding="utf-8").removeprefix("gitdir: ").strip()).name
            _write(beside / GIT_FILE, f"gitdir: {REPOSITORY}/worktrees/{name}\n")
            _write(beside / "made", "")

        await in_thread(note, "ikigai-trees")

    async def merge(self, tree: FileTree, commit: str, message: str) -> BranchMerge:
        """Merge a commit into the branch that an agent's worktree, or the directory, has checked out."""
        await self.finish(tree)
        await in_thread(lambda: _write(self._places.beside(tree) / "merging", ""), "ikigai-trees")
        said = await self._run(tree, _MERGE, commit, message, self._merging(tree), *self._protected)
        (self._places.beside(tree) / "merging").unlink()
        lines = [line.partition(" ")[::2] for line in said.splitlines()]
        refused = said.partition("refused ")[2] if said.startswith("refused ") else ""
        found = {kind: [text for one, text in lines if one == kind] for kind in ("changed", "conflict")}
        return BranchMerge(found["changed"], found["conflict"], refused)

    async def finish(self, tree: FileTree) -> None:
        """Finish a merge that was cut off."""
        marker = self._places.beside(tree) / "merging"
        if marker.exists():
            await self._run(tree, _FINISH, self._merging(tree))
            marker.unlink()

    def _merging(self, tree: FileTree) -> str:
        return f"refs/ikigai/{tree.agent}/merging"

    async def _run(self, tree: FileTree | None, script: str, *arguments: str, fence: FencedStart | None = None) -> str:
        """What a script prints. Raises `ToolError` with it when it fails.

        Args:
            tree: that of the agent where it runs; None for the directory itself.
            script: one of those above.
            arguments: of the script.
            fence: how it starts, if not as the agent's own programs do.
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
    """Write a file whole, so that it is there after a crash of the machine too."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = file.with_name(f".{file.name}")
    with made.open("w", encoding="utf-8") as written:
        written.write(text)
        written.flush()
        os.fsync(written.fileno())
    made.replace(file)


def branch_of(agent: str) -> str:
    """The name of the branch that has the commits of an agent."""
    return f"ikigai/{agent[:8]}"
