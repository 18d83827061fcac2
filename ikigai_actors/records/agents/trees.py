"""Trees: the layers of changes that the directory of an agent is made of. Tables ``trees`` and ``tree_merges``.

    born        with its agent, in the unit of the birth. The parent gets one with its first birth
    frozen      the number of the layer that an agent writes to grows: by a birth, or a merge
    merged      a row of ``tree_merges``: a layer of the parent has what the child has changed

What the layers hold is in directories (`ikigai_actors.tools.trees`). A layer is named by rows that are committed, and
only then written to: a crash leaves no agent without its files, and no files without their agent.
"""

from collections.abc import Mapping, Sequence

from ikigai_actors.store.base import Transaction
from ikigai_actors.tools.trees.tree import Copied, FileTree, TreeMerge, ordered


def bear_trees(tx: Transaction, maker: str, children: Mapping[str, str], copied: Sequence[Copied], now: int) -> None:
    """Write the trees of children that are born, and freeze what they are built on.

    A child of another's history gets the files of that agent as they are now. Where that has no tree, it stays so: it
    works in the directory itself.

    Args:
        maker: the agent that bears them, by uuid.
        children: their uuids, each with that of the agent whose history it inherits.
        copied: the directories of which they get trees.
        now: the time of their birth, in milliseconds since 1970.
    """
    for base, machine in copied:
        for parent in sorted(set(children.values())):
            [(below, on)] = tx.run("freeze_tree", agent=parent, base=base, by=1) or [(None, machine)]
            if below is None and parent == maker:
                tx.append([FileTree(parent, base, machine, None, 0, 0, now)], "trees")
                below = 0
            beneath = None if below is None else parent
            own = [child for child, of in children.items() if of == parent]
            tx.append([FileTree(child, base, on, beneath, below or 0, 0, now) for child in own], "trees")


def trees_of(tx: Transaction, uuid: str, base: str) -> tuple[tuple[FileTree, ...], tuple[TreeMerge, ...]]:
    """The tree of an agent over a directory, those on which it is built, and the merges of all of them."""
    rows = {row[0]: FileTree(*row) for row in tx.run("trees_beneath", agent=uuid, base=base)}
    merges = tx.run("tree_merges_of", agents=sorted(rows), base=base) if rows else []
    return ordered(uuid, rows), tuple(TreeMerge(*row) for row in merges)


def every_tree(tx: Transaction) -> list[FileTree]:
    """All trees."""
    return [FileTree(*row) for row in tx.run("all_trees")]


def every_tree_merge(tx: Transaction) -> list[TreeMerge]:
    """All merges of files."""
    return [TreeMerge(*row) for row in tx.run("all_tree_merges")]
