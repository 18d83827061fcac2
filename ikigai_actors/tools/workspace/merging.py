"""Merges of files: the changes of a child are merged into its parent's files, or an agent's changes into the directory.

    merge   a new layer is written beside the others; the commit of its row then adds it above the parent's layers
    apply   files are written beside their places and renamed into them, one after the other

A merge that is cut off before its commit leaves the files as they were, and a directory that the next merge replaces. A
merge into the base directory that is cut off may have written some files. A second call finds these unchanged from the
plan, and writes the rest.
"""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from ikigai_actors.actors.threads import in_thread
from ikigai_actors.errors import BadInput, FilesConflict, NotBelow
from ikigai_actors.tools.function import ToolError
from ikigai_actors.tools.removal import remove_all
from ikigai_actors.tools.trees.layers import FileView, touched
from ikigai_actors.tools.trees.merge import (
    FileChange,
    FilePlan,
    changed_outside,
    plan_merge,
    write_directory,
    write_layer,
)
from ikigai_actors.tools.trees.places import TreePlaces
from ikigai_actors.tools.trees.repositories import divided, repository_changes
from ikigai_actors.tools.trees.tree import (
    WORKTREE,
    FileTree,
    Layer,
    TreeMerge,
    TreeRows,
    common_point,
    layers_beneath,
    layers_of,
)
from ikigai_actors.tools.workspace.shells import Shells
from ikigai_actors.tools.workspace.worktrees import BranchMerge, branch_of

_SHOWN = 10
"""Paths of a conflict that its text names."""


async def merge_files(shells: Shells, places: TreePlaces, agent: str, child: str, how: str | None) -> list[str]:
    """Merge the files of a child into those of an agent, once no call of either runs; see `Toolset.merge_files`."""
    trees: Sequence[FileTree] = (await in_thread(lambda: _rows(places, child), "ikigai-merge"))[0]
    if how not in (None, kind := "branch" if trees[0].kind == WORKTREE else "apply"):
        raise BadInput(f"The files of agent {child} are merged with how={kind!r}, as its workspace forks them.")
    if trees[0].kind == WORKTREE:
        return await _merge_branch(shells, places, agent, trees)
    async with AsyncExitStack() as held:
        for who in dict.fromkeys((child, agent)):  # the one below first, as its calls do
            await held.enter_async_context(shells.at_rest(who))
        work = (lambda: write_to_base(places, agent)) if child == agent else lambda: merge_child(places, agent, child)
        changed: list[str] = await in_thread(work, "ikigai-merge")
        return changed


async def _merge_branch(shells: Shells, places: TreePlaces, agent: str, trees: Sequence[FileTree]) -> list[str]:
    """Merge an agent's files, committed or not, into the branch that another agent has checked out.

    Args:
        agent: the uuid of the agent that gets the changes; equal to that of the tree to merge into the directory
            itself.
        trees: the tree of the agent, and those on which it is built.
    """
    theirs, worktrees = trees[0], shells.worktrees
    ours = trees[-1] if agent == theirs.agent else (await in_thread(lambda: _rows(places, agent), "ikigai-merge"))[0][0]
    if theirs.parent is None or ours.agent == theirs.agent:
        return []
    try:
        fork = await shells.fork_point(trees, ours.agent)
        async with shells.prepared(theirs.agent):
            snapshot = await worktrees.snapshot(theirs, "merged")
        _check_nested(
            [repository.name for repository in snapshot.nested if not (repository.is_tracked and repository.is_saved)],
            theirs.agent,
        )
        async with shells.prepared(ours.agent):
            message = f"Merge branch '{branch_of(theirs.agent)}'"
            merge = await worktrees.merge(ours, snapshot.commit, message, fork)
    except ToolError as error:
        raise BadInput(f"Nothing was merged: {error}") from error
    _check(merge.conflicts, agent, "both agents have")
    _check_here(merge, agent)
    return list(merge.changed)


def _check_nested(names: Sequence[str], agent: str) -> None:
    """Raise `FilesConflict` if there are inner repositories, of which git would merge only empty directories."""
    if names:
        which = "is a repository of its own" if len(names) == 1 else "are repositories of their own"
        raise FilesConflict(
            f"Nothing was merged: {_few(names)} {which}, and git merges no files of such. Remove {names[0]}/.git "
            f"there, and they merge as files; or name {names[0]} in .gitignore there, and it stays there.",
            agent,
            names,
        )


def _check_here(merge: BranchMerge, agent: str) -> None:
    """Raise `FilesConflict` if git did not merge, or the merge would overwrite uncommitted or protected files."""
    if merge.dirty:
        raise FilesConflict(
            f"Nothing was merged, since the other agent has changed files that are changed here as well, and not "
            f"committed: {_few(merge.dirty)}. Commit them here or put them back, then merge again.",
            agent,
            merge.dirty,
        )
    if merge.protected:
        raise FilesConflict(
            f"Nothing was merged: {_few(merge.protected)} is protected. Put it back there, then merge again.",
            agent,
            merge.protected,
        )
    if merge.refused:
        raise FilesConflict(f"Nothing was merged. git says: {merge.refused}", agent)


def merge_child(places: TreePlaces, agent: str, child: str) -> list[str]:
    """Merge the changes of a child into an agent's layers, while neither writes. Blocks."""
    ours, theirs = _rows(places, agent), _rows(places, child)
    mine, its = ours[0][0], theirs[0][0]
    if (point := common_point(ours, theirs)) is None:
        raise NotBelow(f"The files of agent {child} did not begin as those of {agent}. Merge them above.", agent)
    before = FileView(places.filled(layers_beneath(theirs, *point)), places.base)
    here = FileView(places.whole(ours), places.base)
    there = FileView(places.whole(theirs), places.base)
    changes = places.filled((Layer(child, its.upper), *layers_of(*theirs, since=point)))
    paths = divided(touched(changes, before), here)
    plan = plan_merge(before, here, there, paths.files)
    _check(plan.conflicts, agent, "both agents have")
    if not changes:
        return []
    layer = Layer(agent, mine.upper + 1, (child, its.upper + 1))
    made = places.place(layer)
    remove_all(made)  # of a merge that was cut off
    with TemporaryDirectory() as scratch:
        further = repository_changes(paths, here, there, branch_of(child), Path(scratch))
        if plan.changes or further:  # else both have changed the same, which the next merge must know
            write_layer(made, plan._replace(changes=(*plan.changes, *further)), here)
    # A commit that fails may have happened all the same: the layer stays, and without a row nobody sees it.
    places.store.merge(TreeMerge(agent, mine.base, layer.number, child, its.upper + 1, 0), mine.upper)
    return _named(plan, further)


def write_to_base(places: TreePlaces, agent: str) -> list[str]:
    """Write an agent's changes to the base directory, while the agent does not write. Blocks."""
    rows = _rows(places, agent)
    directory, there = FileView((), places.base), FileView(places.whole(rows), places.base)
    layers = places.filled((Layer(agent, rows[0][0].upper), *layers_of(*rows)))
    paths = divided(touched(layers, directory), directory)
    plan = plan_merge(directory, directory, there, paths.files)
    since = max(max(write.created_at, write.applied_at or 0) for write in rows[0])
    _check(changed_outside(plan, directory, since), agent, "somebody has, in the directory,")
    with TemporaryDirectory() as scratch:
        further = repository_changes(paths, directory, there, branch_of(agent), Path(scratch))
        write_directory(places.base, plan._replace(changes=(*plan.changes, *further)))
    places.store.applied(agent, str(places.base))
    return _named(plan, further)


def _named(plan: FilePlan, further: Sequence[FileChange]) -> list[str]:
    return [change.path for change in (*plan.changes, *further) if "/.git/objects/" not in f"/{change.path}"]


def _rows(places: TreePlaces, agent: str) -> TreeRows:
    rows = places.rows(agent)
    if not rows[0]:
        raise BadInput(
            f"Agent {agent} works in {places.base} itself, so there is nothing to merge. An agent has files of its own "
            "when it was born in a workspace with on_fork='overlay' or 'worktree'."
        )
    return rows


def _check(conflicts: tuple[str, ...], agent: str, who: str) -> None:
    if conflicts:
        raise FilesConflict(
            f"Nothing was merged, since {who} changed the same files: {_few(conflicts)}. Make them equal on one side, "
            "then merge again.",
            agent,
            conflicts,
        )


def _few(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return f"{', '.join(paths[:_SHOWN])}{more}"
