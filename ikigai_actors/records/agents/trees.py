"""Trees: the layers of changes that make up an agent's directory. Tables ``trees``, ``tree_merges``, ``tree_writes``.

    born        the unit of the agent's birth makes its tree. A parent gets a tree at the latest with its first child
    written     a row of ``tree_writes`` is committed before the calls of a reply write to a layer
    frozen      the layer is written to no more: a birth, a merge or a further turn has given the agent a new layer
    applied     the changes are copied to the directory itself; the row has the time
    merged      a row of ``tree_merges``: a layer of the parent has the child's changes

The contents of the layers are in directories (`ikigai_actors.tools.trees`). The rows that name a layer are committed
before the layer is written to. So a crash leaves no agent without its files, and no files without their agent.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ikigai_actors.errors import BadInput, StoreConflict
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import LockedRows, Unit
from ikigai_actors.tools.trees.tree import (
    DIRECTLY,
    WORKTREE,
    Copied,
    FileTree,
    TreeMerge,
    TreeRows,
    TreeWrite,
    layers_at,
    ordered,
)


class ChildFiles(NamedTuple):
    """The version of the files with which a child begins: an agent, and a position in the agent's history."""

    child: str
    """The uuid of the child."""
    of: str
    """The uuid of the agent whose history the child inherits."""
    at: int | None
    """The last inherited position; None for the present end."""
    exactly: bool
    """Whether the child must have exactly the files of that position, because it is a trial that changes files. Other
    children get the present files if the earlier ones are not known.
    """


class PlannedTree(NamedTuple):
    """The tree of file layers that a child gets at its birth."""

    child: str
    of: str
    copied: Copied
    above: FileTree | None
    """The tree on which it is built; None for the directory itself."""
    below: int
    """The number of layers of the tree ``above`` that the child's tree is built on. The topmost may not be frozen
    yet.
    """


def plan_trees(tx: Transaction, children: Sequence[ChildFiles], copied: Sequence[Copied]) -> list[PlannedTree]:
    """Return the trees that children get at their birth, for each of the ``copied`` directories.

    Raises `BadInput` if files of an earlier position are not known.
    """
    return [_planned(tx, child, each) for each in copied for child in children]


def _planned(tx: Transaction, child: ChildFiles, copied: Copied) -> PlannedTree:
    tree, below = tree_at(tx, child.of, copied.base, child.at)
    if below is None and child.exactly:
        raise unknown_files(child.of, child.at, copied.base)
    if below is None:
        tree, below = tree_at(tx, child.of, copied.base, None)
    return PlannedTree(child.child, child.of, copied, tree, below or 0)


def tree_at(tx: Transaction, agent: str, base: str, at: int | None) -> tuple[FileTree | None, int | None]:
    """Return the tree that holds an agent's files at a position, and the number of layers that belong to that position.

    Args:
        agent: the uuid of the agent.
        base: the directory.
        at: the position; None for the present.

    Returns:
        The tree, or None for the directory itself; and the number, or None if it is not known.
    """
    tree = _tree_of(tx, agent, base)
    while tree is not None and at is not None and at < tree.since:
        if tree.parent is None:
            return tree, None
        tree = _tree_of(tx, agent := tree.parent, base)
    upper = DIRECTLY if tree is None else tree.upper
    if at is None:
        return tree, upper + 1
    writes = [TreeWrite(*row) for row in tx.run("tree_writes_of", agent=agent, base=base)]
    return tree, layers_at(upper, writes, at)


def unknown_files(agent: str, at: int | None, base: str) -> BadInput:
    """Return the error for a fork at a position whose files are not known."""
    return BadInput(
        f"The files in {base} that agent {agent} had at position {at} are not known: it has changed them since, in the "
        "same layer. Open the system with Workspace(…, on_fork='overlay', keep_turns=True) before the agent works: "
        "then they are known before and after each turn."
    )


def _tree_of(tx: Transaction, agent: str, base: str) -> FileTree | None:
    return next((FileTree(*row) for row in tx.run("tree_of", agent=agent, base=base)), None)


def bear_trees(tx: Transaction, maker: str, planned: Sequence[PlannedTree], since: Mapping[str, int], now: int) -> None:
    """Write the trees of children at their birth, and freeze the layers on which the trees are built.

    The agent that makes the children also gets a tree, if it has none. Another agent whose history they inherit gets
    none, and goes on working in the directory itself; except for worktrees, which are built on that agent's files.

    Args:
        maker: the uuid of the agent that makes the children.
        planned: the result of `plan_trees`.
        since: the positions up to which the children inherit, by uuid.
        now: the time of their birth, in milliseconds since 1970.
    """
    done = set[tuple[str, str]]()
    for child, of, copied, above, below in planned:
        base, machine, kind = copied
        parent = above.agent if above is not None else of if of == maker or kind == WORKTREE else None
        if parent is not None and (parent, base) not in done:
            if above is None:
                _add_first_tree(tx, parent, copied, now, frozen=kind == WORKTREE)
            elif below > above.upper:
                tx.run("freeze_tree", agent=parent, base=base, by=1)
            if above is None or below > above.upper:
                done.add((parent, base))
        if above is None and kind == WORKTREE:
            below = 1
        elif above is not None:
            machine, kind = above.machine, above.kind
        tx.append([FileTree(child, base, machine, kind, parent, below, 0, since[child], now, None)], "trees")


def _add_first_tree(tx: Transaction, agent: str, copied: Copied, now: int, frozen: bool = False) -> None:
    """Write the first tree of an agent that has worked in the workspace's directory so far.

    ``frozen``: whether its layer is frozen.
    """
    [(born, _)] = tx.run("span_of_log", uuid=agent)
    tx.run("add_tree", agent=agent, upper=int(frozen), since=born, now=now, **copied._asdict())


def trees_of(tx: Transaction, uuid: str, base: str) -> TreeRows:
    """Return the tree of an agent over a directory, the trees on which it is built, and the merges of all of them."""
    rows = {row[0]: FileTree(*row) for row in tx.run("trees_beneath", agent=uuid, base=base)}
    merges = tx.run("tree_merges_of", agents=sorted(rows), base=base) if rows else []
    return ordered(uuid, rows), tuple(TreeMerge(*row) for row in merges)


def pruned_trees(tx: Transaction, machine: str) -> list[FileTree]:
    """Return the trees on a machine that can be deleted: their agents and all their descendants are pruned."""
    return [FileTree(*row) for row in tx.run("pruned_trees", machine=machine)]


def trees_of_agents(tx: Transaction, agents: Sequence[str], machine: str) -> list[FileTree]:
    """Return the trees of agents on a machine."""
    return [FileTree(*row) for row in tx.run("trees_of_agents", agents=agents, machine=machine)]


def forget_trees(tx: Transaction, agents: Sequence[str], machine: str) -> None:
    """Delete the rows of agents whose layers were removed."""
    tx.run("forget_tree_merges", agents=agents)
    tx.run("forget_tree_writes", agents=agents)
    tx.run("forget_trees", agents=agents, machine=machine)


def every_tree(tx: Transaction) -> list[FileTree]:
    """Return all trees."""
    return [FileTree(*row) for row in tx.run("all_trees")]


def every_tree_merge(tx: Transaction) -> list[TreeMerge]:
    """Return all merges of files."""
    return [TreeMerge(*row) for row in tx.run("all_tree_merges")]


def every_tree_write(tx: Transaction) -> list[TreeWrite]:
    """Return all rows of ``tree_writes``: the writes of agents to layers of their trees."""
    return [TreeWrite(*row) for row in tx.run("all_tree_writes")]


class BeginWrite(Unit):
    """Record that calls of a reply will write to the agent's layer; see `TreeStore.begin_write`.

    Raises `AgentNotFound`, `AgentDead`.
    """

    __slots__ = ("_agent", "_copied", "_keep_turns", "_now", "_position")

    locks = ("_agent",)

    def __init__(self, agent: str, copied: Copied, position: int, keep_turns: bool, now: int) -> None:
        self._agent, self._copied, self._position = agent, copied, position
        self._keep_turns, self._now = keep_turns, now

    def write(self, tx: Transaction, locked: LockedRows) -> int:
        agent, base = self._agent, self._copied.base
        turn = locked.living(agent, ": it changes no file").turn
        tree = _tree_of(tx, agent, base)
        layer = DIRECTLY if tree is None else tree.upper
        if self._keep_turns and tree is None:
            _add_first_tree(tx, agent, self._copied, self._now)
            layer = 0
        elif self._keep_turns:
            latest = [TreeWrite(*row) for row in tx.run("latest_tree_write", agent=agent, base=base)]
            if any(write.layer == layer and write.position < turn for write in latest):
                [(layer, _)] = tx.run("freeze_tree", agent=agent, base=base, by=1)
        tx.run("add_tree_write", agent=agent, base=base, layer=layer, position=self._position)
        return layer


class MergeTrees(Unit):
    """Record the merge of a child's files into a layer of its parent. From now on both agents write to new layers.

    Raises `AgentNotFound`, `AgentDead`; `StoreConflict` when the layers of one of them have changed.
    """

    __slots__ = ("_agent", "_child", "_merge", "_upper")

    locks = ("_agent", "_child")

    def __init__(self, merge: TreeMerge, upper: int) -> None:
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
        [(_, head)] = tx.run("span_of_log", uuid=merge.agent)
        tx.run("add_tree_write", agent=merge.agent, base=merge.base, layer=merge.layer, position=head)


class MarkApplied(Unit):
    """Record that an agent's files were copied from its tree into the workspace's directory.

    Raises `AgentNotFound`.
    """

    __slots__ = ("_agent", "_base", "_now")

    locks = ("_agent",)

    def __init__(self, agent: str, base: str, now: int) -> None:
        self._agent, self._base, self._now = agent, base, now

    def write(self, tx: Transaction, locked: LockedRows) -> None:
        locked.existing(self._agent)
        tx.run("mark_tree_applied", agent=self._agent, base=self._base, now=self._now)
