"""Trees: the layers of changes that the directory of an agent is made of. Tables ``trees`` and ``tree_merges``.

    born        with its agent, in the unit of the birth. The parent gets one with its first birth
    frozen      the number of the layer that an agent writes to grows: by a birth, or a merge
    applied     to the directory itself, at a time
    merged      a row of ``tree_merges``: a layer of the parent has what the child has changed

What the layers hold is in directories (`ikigai_actors.tools.trees`). A layer is named by rows that are committed, and
only then written to: a crash leaves no agent without its files, and no files without their agent.
"""

from collections.abc import Mapping, Sequence

from ikigai_actors.errors import StoreConflict
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import LockedRows, Unit
from ikigai_actors.tools.trees.tree import Copied, FileTree, TreeMerge, TreeRows, ordered


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
                tx.append([FileTree(parent, base, machine, None, 0, 0, now, None)], "trees")
                below = 0
            beneath = None if below is None else parent
            own = [child for child, of in children.items() if of == parent]
            tx.append([FileTree(child, base, on, beneath, below or 0, 0, now, None) for child in own], "trees")


def trees_of(tx: Transaction, uuid: str, base: str) -> TreeRows:
    """The tree of an agent over a directory, those on which it is built, and the merges of all of them."""
    rows = {row[0]: FileTree(*row) for row in tx.run("trees_beneath", agent=uuid, base=base)}
    merges = tx.run("tree_merges_of", agents=sorted(rows), base=base) if rows else []
    return ordered(uuid, rows), tuple(TreeMerge(*row) for row in merges)


def pruned_trees(tx: Transaction, machine: str) -> list[str]:
    """The agents whose layers on a machine nobody needs: they are pruned, and so are all that descend from them."""
    return [uuid for (uuid,) in tx.run("pruned_trees", machine=machine)]


def forget_trees(tx: Transaction, agents: Sequence[str], machine: str) -> None:
    """Delete the rows of agents whose layers were removed."""
    tx.run("forget_tree_merges", agents=agents)
    tx.run("forget_trees", agents=agents, machine=machine)


def every_tree(tx: Transaction) -> list[FileTree]:
    """All trees."""
    return [FileTree(*row) for row in tx.run("all_trees")]


def every_tree_merge(tx: Transaction) -> list[TreeMerge]:
    """All merges of files."""
    return [TreeMerge(*row) for row in tx.run("all_tree_merges")]


class MergeTrees(Unit):
    """A merge of files, whose layer is written: both agents write to other layers from now on.

    Raises `AgentNotFound`, `AgentDead`; `StoreConflict` when one of them has other layers now.
    """

    __slots__ = ("_agent", "_child", "_merge", "_upper")

    locks = ("_agent", "_child")

    def __init__(self, merge: TreeMerge, upper: int) -> None:
        """Make the unit: the row, and the layer that the agent has written to until now."""
        self._agent, self._child, self._merge, self._upper = merge.agent, merge.child, merge, upper

    def write(self, tx: Transaction, locked: LockedRows) -> None:
        locked.living(self._agent, ": its files stay as they are")
        locked.existing(self._child)
        merge = self._merge
        got = tx.run("freeze_tree", agent=merge.agent, base=merge.base, by=merge.layer + 1 - self._upper)
        had = tx.run("freeze_tree", agent=merge.child, base=merge.base, by=1)
        if [upper for upper, _ in (*got, *had)] != [merge.layer + 1, merge.upto]:
            raise StoreConflict(f"The files of {merge.agent} or {merge.child} have forked meanwhile. Merge again.")
        tx.run(
            "add_tree_merge", agent=merge.agent, base=merge.base, layer=merge.layer, child=merge.child,
            upto=merge.upto, now=merge.created_at,
        )  # fmt: skip


class MarkApplied(Unit):
    """Note that what an agent sees was written to the directory. Raises `AgentNotFound`."""

    __slots__ = ("_agent", "_base", "_now")

    locks = ("_agent",)

    def __init__(self, agent: str, base: str, now: int) -> None:
        self._agent, self._base, self._now = agent, base, now

    def write(self, tx: Transaction, locked: LockedRows) -> None:
        locked.existing(self._agent)
        tx.run("mark_tree_applied", agent=self._agent, base=self._base, now=self._now)
