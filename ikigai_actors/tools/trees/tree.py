"""The layers of changes that make up the directory of an agent. Pure.

A directory (the base) is never copied. An agent with a tree sees its base beneath layers: directories that hold what
was changed, as overlayfs writes them. All but the topmost are frozen: nobody writes to them any more.

    a birth     freezes the layer that the parent writes to. Parent and child then write to separate new layers, above
                all layers that the parent sees
    a merge     freezes the layers of parent and child, and gives the parent a layer with the child's changes
    a turn      freezes the layer of the turn before, if a person has chosen to have the files of each turn

Instead, each agent may have a worktree of git. A layer is then a commit of the agent's files at the time of the freeze.
The first agent works in the base itself.

Rows record when each layer was written to. So the layers at an earlier position of an agent's log are known.

Rows say which layers there are; a layer to which nothing was written has no directory. So a birth touches no file.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

OVERLAY, WORKTREE = "overlay", "worktree"

WORKTREE_AT = "tree/work"
"""The path of an agent's worktree, relative to the agent's directory."""


GIT_FILE = "gitfile"
"""The name, in the agent's directory, of the file that programs see as ``.git`` of the worktree."""


class Copied(NamedTuple):
    """A base directory of which children get their own trees."""

    base: str
    """The path of the directory, with links resolved."""
    machine: str
    """The machine of the directory and the layers; see `machine_of`."""
    kind: str = OVERLAY
    """The kind of files that children get: `OVERLAY` or `WORKTREE`."""


class FileTree(NamedTuple):
    """The files of an agent over a base directory: a row of table ``trees``."""

    agent: str
    """The uuid of the agent."""
    base: str
    machine: str
    kind: str
    """The kind of the tree, `OVERLAY` or `WORKTREE`."""
    parent: str | None
    """The agent with whose files the tree began; None for the base as it is."""
    below: int
    """The number of that agent's layers that are beneath the tree's own layers."""
    upper: int
    """The number of the layer to which the agent writes. Earlier layers are frozen."""
    since: int
    """The position of the agent's log from which on it has this tree. Before it, it had the files of `parent`."""
    created_at: int
    applied_at: int | None = None
    """The time when the tree was last written to the base, in milliseconds since 1970; None for never."""


class TreeMerge(NamedTuple):
    """A merge that made a layer with the changes of a child: a row of table ``tree_merges``."""

    agent: str
    """The uuid of the agent that has merged the changes."""
    base: str
    layer: int
    """The number of the layer among the layers of that agent."""
    child: str
    upto: int
    """The number of the child's layers that it includes."""
    created_at: int


DIRECTLY = -1
"""The layer number of an agent that writes to the base itself."""


class TreeWrite(NamedTuple):
    """The fact that a turn has written to a layer: a row of table ``tree_writes``."""

    agent: str
    base: str
    layer: int
    """The number of the layer among the layers of that agent; or `DIRECTLY`."""
    position: int
    """The position of the reply whose calls wrote; for a merge, the end of the log at that time."""


class Layer(NamedTuple):
    """A layer of changes, which may have no directory yet."""

    agent: str
    number: int
    merged: tuple[str, int] | None = None
    """For a merge, the child and the number of its layers; else None."""

    @property
    def name(self) -> str:
        """The name of the layer's directory within the agent's directory."""
        return str(self.number) if self.merged is None else merged_name(self.number, *self.merged)


def merged_name(layer: int, child: str, upto: int) -> str:
    """Return the name of the directory of a layer that a merge makes.

    A merge that was cut off before its commit may leave such a directory without a row.
    """
    return f"{layer}-{child}-{upto}"


TreeRows = tuple[tuple[FileTree, ...], tuple[TreeMerge, ...]]
"""The tree of an agent and the trees on which it is built, each before the one beneath it; and the merges of all of
them.
"""


class TreeStore(Protocol):
    """The rows of trees in the database. The methods block."""

    def of(self, agent: str, base: str) -> TreeRows:
        """Return the tree of an agent over a base directory."""

    def begin_write(self, agent: str, copied: Copied, position: int, keep_turns: bool) -> int:
        """Commit that calls of a reply are about to write to an agent's files; return the number of the layer.

        Args:
            agent: the uuid of the agent.
            copied: the base directory.
            position: the position of the reply.
            keep_turns: whether the agent gets a tree if it has none, and a new layer in each turn in which it writes.
        """

    def merge(self, merge: TreeMerge, upper: int) -> None:
        """Commit a merge, after its layer was written.

        Args:
            merge: the row of the merge.
            upper: the layer to which the agent has written until now.

        Raises:
            StoreConflict: the layers of the agent or of the child have changed.
        """

    def applied(self, agent: str, base: str) -> None:
        """Commit that the changes of an agent were written to the base directory."""


def layers_at(upper: int, writes: Sequence[TreeWrite], position: int) -> int | None:
    """Return the number of layers that an agent's files had at a position of its log; None if that is not known.

    Args:
        upper: the layer to which the agent writes now; `DIRECTLY` if it has no tree.
        writes: all writes to its layers.
        position: the position. If a layer was written to before and after it, the files at the position are not known.
    """
    later = [write.layer for write in writes if write.position > position]
    if not later:
        return upper + 1
    had = 1 + max((write.layer for write in writes if write.position <= position), default=DIRECTLY)
    return had if min(later) >= had else None


def layers_of(
    trees: Sequence[FileTree], merges: Sequence[TreeMerge], since: tuple[str, int] | None = None
) -> tuple[Layer, ...]:
    """Return the frozen layers beneath the one to which an agent writes, the topmost first.

    Args:
        trees: the agent's tree and the trees on which it is built, each before the one beneath it.
        merges: the merges of all these agents.
        since: an agent and a layer number: earlier layers of that agent are left out, with all below them; None for
            all.
    """
    merged = {(merge.agent, merge.layer): (merge.child, merge.upto) for merge in merges}
    layers = list[Layer]()
    below = trees[0].upper if trees else 0
    for tree in trees:
        first = since[1] if since is not None and since[0] == tree.agent else 0
        layers += (
            Layer(tree.agent, number, merged.get((tree.agent, number))) for number in range(below - 1, first - 1, -1)
        )
        if since is not None and since[0] == tree.agent:
            break
        below = tree.below
    return tuple(layers)


def layers_beneath(rows: TreeRows, agent: str, layer: int) -> tuple[Layer, ...]:
    """Return the layers beneath a layer of an agent, the topmost first. The agent must be among the trees."""
    trees = rows[0][next(place for place, tree in enumerate(rows[0]) if tree.agent == agent) :]
    return layers_of((trees[0]._replace(upper=layer), *trees[1:]), rows[1])


def common_point(ours: TreeRows, theirs: TreeRows) -> tuple[str, int] | None:
    """Return the layer at which the files of two agents last were equal: that of the latest merge, or of the fork.

    Args:
        ours: the tree of the agent that gets the changes.
        theirs: the tree of the agent with the changes.

    Returns:
        An agent and the number of its layer; None when the trees have no common origin.
    """
    agent, seen = ours[0][0].agent, theirs[0][0].upper
    for tree in theirs[0]:
        merges = [
            merge.upto for merge in ours[1] if merge.agent == agent and merge.child == tree.agent and merge.upto <= seen
        ]
        if merges:
            return tree.agent, max(merges)
        if tree.parent == agent:
            return agent, tree.below
        seen = tree.below
    return None


def ordered(agent: str, rows: Mapping[str, FileTree]) -> tuple[FileTree, ...]:
    """Return the tree of an agent and the trees on which it is built, in order.

    A circle, possible only after manual edits, is cut.
    """
    trees: dict[str, FileTree] = {}
    while (tree := rows.get(agent)) is not None and agent not in trees:
        trees[agent] = tree
        if tree.parent is None:
            break
        agent = tree.parent
    return tuple(trees.values())
