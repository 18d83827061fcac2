"""Removes files of agents that are not needed any more. Uncommitted changes in worktrees are first put on a branch.

A worktree is kept if that is not possible: because it contains a repository with unpushed work, or because git does not
start.
"""

import asyncio
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from ikigai_actors.errors import BadInput
from ikigai_actors.tools.base import HostPaths
from ikigai_actors.tools.fence.enclosure import open_enclosure
from ikigai_actors.tools.fence.policy import Fence
from ikigai_actors.tools.function import ToolError
from ikigai_actors.tools.removal import remove_all
from ikigai_actors.tools.trees.places import FilePlaces, unregister_worktree
from ikigai_actors.tools.trees.tree import WORKTREE, FileTree
from ikigai_actors.tools.workspace import PASSED_ON
from ikigai_actors.tools.workspace.worktrees import Worktrees


class Holdings(NamedTuple):
    """The numbers of agents that have layers or worktrees on this machine."""

    worktrees: int
    layered: int
    """The number of agents with layers of changes."""


class Removal(NamedTuple):
    """The trees that were removed, and those that were kept."""

    gone: tuple[str, ...]
    """The uuids of the agents whose files are gone completely."""
    branches: tuple[str, ...]
    """The branches that have got uncommitted changes."""
    left: Mapping[str, str]
    """The worktrees that were kept: path and reason of each."""


def holdings(trees: Path, rows: Sequence[FileTree]) -> Holdings:
    """Count the agents with files on this machine; ``trees`` is the directory of all layers."""
    there = [tree for tree in rows if (trees / tree.agent).is_dir()]
    worktrees = [tree for tree in there if tree.kind == WORKTREE and FilePlaces(trees, tree.base).has_worktree(tree)]
    return Holdings(len(worktrees), len({tree.agent for tree in there if tree.kind != WORKTREE}))


def remove_files(state: Path, rows: Sequence[FileTree]) -> Removal:
    """Remove the files of agents on this machine. Blocks.

    Args:
        state: the host's directory.
        rows: the trees of these agents.
    """
    trees, branches, left = state / "trees", list[str](), dict[str, str]()
    stays: dict[str, bool] = defaultdict(bool)
    for base, those in groupby(sorted(rows, key=lambda tree: tree.base), lambda tree: tree.base):
        places = FilePlaces(trees, base)
        made = [tree for tree in those if tree.kind == WORKTREE and places.has_worktree(tree)]
        for tree, (branch, why) in zip(made, _kept(state, places, made), strict=True):
            branches += [branch] * bool(branch)
            stays[tree.agent] |= bool(why)
            left |= {str(places.worktree(tree)): why} if why else {}
    for tree in rows:
        if not stays[tree.agent]:
            if tree.kind == WORKTREE:
                unregister_worktree(Path(tree.base), trees / tree.agent)
            remove_all(trees / tree.agent)
    return Removal(tuple(sorted({tree.agent for tree in rows if not stays[tree.agent]})), tuple(branches), left)


def _kept(state: Path, places: FilePlaces, trees: Sequence[FileTree]) -> list[tuple[str, str]]:
    """Return for each worktree the branch with its uncommitted changes, and why it is kept; either may be empty."""
    if not trees:
        return []
    passed_on = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    try:
        fence = Fence(network="none", mode="required")
        enclosure = open_enclosure(fence, HostPaths(state), str(places.base), passed_on, {}, lambda _: None)
    except (BadInput, OSError) as error:
        return [("", f"what was not committed cannot be kept: {error}")] * len(trees)
    assert enclosure is not None
    worktrees = Worktrees(enclosure, places)

    async def keep_all() -> list[tuple[str, str]]:
        return [await _keep(worktrees, tree) for tree in trees]

    try:
        return asyncio.run(keep_all())
    finally:
        enclosure.close()


async def _keep(worktrees: Worktrees, tree: FileTree) -> tuple[str, str]:
    try:
        snapshot = await worktrees.snapshot(tree, "kept")
        if unsaved := [repository.name for repository in snapshot.nested if not repository.is_saved]:
            has = "is a repository of its own" if len(unsaved) == 1 else "are repositories of their own"
            return "", f"{', '.join(unsaved)} {has}, with work that no remote has"
        return await worktrees.keep(tree, snapshot.commit), ""
    except (ToolError, OSError) as error:
        return "", f"what was not committed cannot be kept: {error}"
