"""Which layers of changes the directory of an agent is made of.

A directory (the base) is never copied. An agent with a tree sees its base beneath layers: directories that hold what
was changed, as overlayfs writes them. All but the topmost are frozen: nobody writes to them any more.

    a birth     freezes the layer that the parent writes to. Parent and child then write to layers of their own, above
                all that the parent has seen
    a merge     freezes the layers of parent and child, and puts one between that has the child's changes
    a turn      freezes the layer of the one before, where a person wants the files of each turn

Instead, each may have a worktree of git. A layer is then a commit, of what its agent had as it was frozen. The first of
all works in the base itself.

A row says when a layer was written to, so that it is known which ones there were at a position of an agent's log.

Rows say which layers there are; a layer to which nothing was written has no directory. So a birth touches no file.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

OVERLAY, WORKTREE = "overlay", "worktree"

WORKTREE_AT = "tree/work"
"""Where the worktree of an agent is, beneath its directory."""


GIT_FILE = "gitfile"
"""The name there of the file that programs see as ``.git`` of the worktree."""


class Copied(NamedTuple):
    """A directory of which children get trees."""

    base: str
    """The path, without links."""
    machine: str
    """Where it is, and where the layers are: see `machine_of`."""
    kind: str = OVERLAY
    """How children get files of their own: `OVERLAY`, or `WORKTREE`."""


class FileTree(NamedTuple):
    """A row of table ``trees``, column by column."""

    agent: str
    """Whose it is, by uuid."""
    base: str
    machine: str
    kind: str
    """`OVERLAY`, or `WORKTREE`."""
    parent: str | None
    """The agent with whose files it began; None for the base as it is."""
    below: int
    """How many layers of that agent are beneath its own."""
    upper: int
    """The layer that it writes to: those before it are frozen."""
    since: int
    """The position of its log from which on its files are these; before it, they were those of `parent`."""
    created_at: int
    applied_at: int | None = None
    """When what it shows was last written to the base; None: never."""


class TreeMerge(NamedTuple):
    """A row of table ``tree_merges``, column by column: a layer that has what a child has changed."""

    agent: str
    """The agent that got it, by uuid."""
    base: str
    layer: int
    """The number among the layers of that agent."""
    child: str
    upto: int
    """How many layers of the child it has."""
    created_at: int


DIRECTLY = -1
"""The number of the layer of an agent that writes to the base itself."""


class TreeWrite(NamedTuple):
    """A row of table ``tree_writes``, column by column: a layer was written to."""

    agent: str
    base: str
    layer: int
    """The number among the layers of that agent; or `DIRECTLY`."""
    position: int
    """The reply whose calls wrote, or the end of the log as a merge was put there."""


class Layer(NamedTuple):
    """A layer, which may have no directory yet."""

    agent: str
    number: int
    merged: tuple[str, int] | None = None
    """For a merge, the child and how many of its layers."""

    @property
    def name(self) -> str:
        """The name of its directory among those of its agent."""
        return str(self.number) if self.merged is None else merged_name(self.number, *self.merged)


def merged_name(layer: int, child: str, upto: int) -> str:
    """The name of the directory of a layer that a merge makes.

    A merge that was cut off before its commit may leave one, which no row names.
    """
    return f"{layer}-{child}-{upto}"


TreeRows = tuple[tuple[FileTree, ...], tuple[TreeMerge, ...]]
"""The tree of an agent, those on which it is built, each before the one beneath it, and the merges of all of them."""


class TreeStore(Protocol):
    """The rows of trees in the database. Its methods block."""

    def of(self, agent: str, base: str) -> TreeRows:
        """The tree of an agent over a directory."""

    def begin_write(self, agent: str, copied: Copied, position: int, keep_turns: bool) -> int:
        """Commit that calls of a reply are about to write to the files of an agent; the layer to which they write.

        Args:
            agent: its uuid.
            copied: the directory.
            position: that of the reply.
            keep_turns: whether the agent gets a tree if it has none, and in each turn a layer that it writes to.
        """

    def merge(self, merge: TreeMerge, upper: int) -> None:
        """Commit a merge, whose layer is there.

        Args:
            merge: its row.
            upper: the layer that the agent has written to until now.

        Raises:
            StoreConflict: agent or child has other layers now.
        """

    def applied(self, agent: str, base: str) -> None:
        """Commit that what an agent sees was written to the base."""


def layers_at(upper: int, writes: Sequence[TreeWrite], position: int) -> int | None:
    """How many layers an agent's files had at a position of its log; None: that is not known.

    Args:
        upper: the layer that it writes to now; `DIRECTLY` where it has no tree.
        writes: all that were made.
        position: a layer that was written to before and after it shows nothing of what was there then.
    """
    later = [one.layer for one in writes if one.position > position]
    if not later:
        return upper + 1
    had = 1 + max((one.layer for one in writes if one.position <= position), default=DIRECTLY)
    return had if min(later) >= had else None


def layers_of(
    trees: Sequence[FileTree], merges: Sequence[TreeMerge], since: tuple[str, int] | None = None
) -> tuple[Layer, ...]:
    """The frozen layers beneath the one that an agent writes to, the topmost first.

    Args:
        trees: its tree, and those on which that is built, each before the one beneath it.
        merges: the merges of all these agents.
        since: an agent and a number: the layers of that agent before this number are left out, with all below them.
    """
    merged = {(one.agent, one.layer): (one.child, one.upto) for one in merges}
    found = list[Layer]()
    below = trees[0].upper if trees else 0
    for tree in trees:
        first = since[1] if since is not None and since[0] == tree.agent else 0
        found += (
            Layer(tree.agent, number, merged.get((tree.agent, number))) for number in range(below - 1, first - 1, -1)
        )
        if since is not None and since[0] == tree.agent:
            break
        below = tree.below
    return tuple(found)


def layers_beneath(rows: TreeRows, agent: str, layer: int) -> tuple[Layer, ...]:
    """The layers beneath one of an agent's, which is among the trees; the topmost first."""
    trees = rows[0][next(place for place, tree in enumerate(rows[0]) if tree.agent == agent) :]
    return layers_of((trees[0]._replace(upper=layer), *trees[1:]), rows[1])


def common_point(ours: TreeRows, theirs: TreeRows) -> tuple[str, int] | None:
    """The layer above which the changes of an agent begin that another one has not: of the latest merge, or the fork.

    Args:
        ours: the other one's tree.
        theirs: the tree of the agent with the changes.

    Returns:
        An agent and the number of its layer; None when these files did not begin as ours.
    """
    agent, seen = ours[0][0].agent, theirs[0][0].upper
    for tree in theirs[0]:
        merges = [one.upto for one in ours[1] if one.agent == agent and one.child == tree.agent and one.upto <= seen]
        if merges:
            return tree.agent, max(merges)
        if tree.parent == agent:
            return agent, tree.below
        seen = tree.below
    return None


def ordered(agent: str, rows: Mapping[str, FileTree]) -> tuple[FileTree, ...]:
    """The tree of an agent, and those on which it is built. A circle, which only a hand can have written, is cut."""
    found: dict[str, FileTree] = {}
    while (tree := rows.get(agent)) is not None and agent not in found:
        found[agent] = tree
        if tree.parent is None:
            break
        agent = tree.parent
    return tuple(found.values())
