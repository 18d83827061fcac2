"""Trees: the layers of changes that the directory of an agent is made of: ``trees``, ``tree_merges``, ``tree_writes``.

    born        with its agent, in the unit of the birth. The parent gets one with its first birth
    written     a row of ``tree_writes`` says so before the calls of a reply write to a layer
    frozen      the number of the layer that an agent writes to grows: by a birth, a merge, or in a further turn
    applied     to the directory itself, at a time
    merged      a row of ``tree_merges``: a layer of the parent has what the child has changed

What the layers hold is in directories (`ikigai_actors.tools.trees`). A layer is named by rows that are committed, and
only then written to: a crash leaves no agent without its files, and no files without their agent.
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
    """The beginning of a child's files."""

    child: str
    """The uuid."""
    of: str
    """The agent whose history it inherits."""
    at: int | None
    """The position up to which it does; None for where that agent is now."""
    exactly: bool
    """Whether it gets the files of then or is not born: it may change its files, as a trial. Others get those of now
    where those of then are not known."""


class PlannedTree(NamedTuple):
    """The tree of a child that is about to be born."""

    child: str
    of: str
    copied: Copied
    above: FileTree | None
    """The one on which it is built; None: on the directory itself."""
    below: int
    """How many layers of that are beneath it; the topmost may not be frozen yet."""


def plan_trees(tx: Transaction, children: Sequence[ChildFiles], copied: Sequence[Copied]) -> list[PlannedTree]:
    """The trees of children over these directories. Raises `BadInput` for files of an earlier position, not known."""
    return [_planned(tx, child, each) for each in copied for child in children]


def _planned(tx: Transaction, child: ChildFiles, copied: Copied) -> PlannedTree:
    found, below = tree_at(tx, child.of, copied.base, child.at)
    if below is None and child.exactly:
        raise unknown_files(child.of, child.at, copied.base)
    if below is None:
        found, below = tree_at(tx, child.of, copied.base, None)
    return PlannedTree(child.child, child.of, copied, found, below or 0)


def tree_at(tx: Transaction, agent: str, base: str, at: int | None) -> tuple[FileTree | None, int | None]:
    """The tree that had an agent's files at a position, and how many of its layers.

    Args:
        agent: its uuid.
        base: the directory.
        at: the position; None for now.

    Returns:
        A tree, or None for the directory itself; and the number, or None where it is not known.
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
    """The error for files of an earlier position that nobody kept."""
    return BadInput(
        f"The files in {base} that agent {agent} had at position {at} are not known: it has changed them since, in the "
        "same layer. Open the system with Workspace(…, on_fork='overlay', keep_turns=True) before the agent works: "
        "then they are known before and after each turn."
    )


def _tree_of(tx: Transaction, agent: str, base: str) -> FileTree | None:
    return next((FileTree(*row) for row in tx.run("tree_of", agent=agent, base=base)), None)


def bear_trees(tx: Transaction, maker: str, planned: Sequence[PlannedTree], since: Mapping[str, int], now: int) -> None:
    """Write the trees of children that are born, and freeze what they are built on.

    The one that bears them gets a tree, too, if it has none. Another one stays without, and works in the directory
    itself; but a worktree is built on what somebody has, so that one gets a tree as well, and stays there.

    Args:
        maker: the agent that bears them, by uuid.
        planned: what `plan_trees` gave.
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
    """Write the tree of an agent that has worked in the directory itself; ``frozen``: a layer of it is frozen."""
    [(born, _)] = tx.run("span_of_log", uuid=agent)
    tx.run("add_tree", agent=agent, upper=int(frozen), since=born, now=now, **copied._asdict())


def trees_of(tx: Transaction, uuid: str, base: str) -> TreeRows:
    """The tree of an agent over a directory, those on which it is built, and the merges of all of them."""
    rows = {row[0]: FileTree(*row) for row in tx.run("trees_beneath", agent=uuid, base=base)}
    merges = tx.run("tree_merges_of", agents=sorted(rows), base=base) if rows else []
    return ordered(uuid, rows), tuple(TreeMerge(*row) for row in merges)


def pruned_trees(tx: Transaction, machine: str) -> list[FileTree]:
    """The trees on a machine that nobody needs: their agents are pruned, and so are all that descend from them."""
    return [FileTree(*row) for row in tx.run("pruned_trees", machine=machine)]


def trees_of_agents(tx: Transaction, agents: Sequence[str], machine: str) -> list[FileTree]:
    """The trees of agents on a machine."""
    return [FileTree(*row) for row in tx.run("trees_of_agents", agents=agents, machine=machine)]


def forget_trees(tx: Transaction, agents: Sequence[str], machine: str) -> None:
    """Delete the rows of agents whose layers were removed."""
    tx.run("forget_tree_merges", agents=agents)
    tx.run("forget_tree_writes", agents=agents)
    tx.run("forget_trees", agents=agents, machine=machine)


def every_tree(tx: Transaction) -> list[FileTree]:
    """All trees."""
    return [FileTree(*row) for row in tx.run("all_trees")]


def every_tree_merge(tx: Transaction) -> list[TreeMerge]:
    """All merges of files."""
    return [TreeMerge(*row) for row in tx.run("all_tree_merges")]


def every_tree_write(tx: Transaction) -> list[TreeWrite]:
    """When each layer was written to."""
    return [TreeWrite(*row) for row in tx.run("all_tree_writes")]


class BeginWrite(Unit):
    """Calls of a reply are about to write; see `TreeStore.begin_write`. Raises `AgentNotFound`, `AgentDead`."""

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
            if any(one.layer == layer and one.position < turn for one in latest):
                [(layer, _)] = tx.run("freeze_tree", agent=agent, base=base, by=1)
        tx.run("add_tree_write", agent=agent, base=base, layer=layer, position=self._position)
        return layer


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
        [(_, head)] = tx.run("span_of_log", uuid=merge.agent)
        tx.run("add_tree_write", agent=merge.agent, base=merge.base, layer=merge.layer, position=head)


class MarkApplied(Unit):
    """Note that what an agent sees was written to the directory. Raises `AgentNotFound`."""

    __slots__ = ("_agent", "_base", "_now")

    locks = ("_agent",)

    def __init__(self, agent: str, base: str, now: int) -> None:
        self._agent, self._base, self._now = agent, base, now

    def write(self, tx: Transaction, locked: LockedRows) -> None:
        locked.existing(self._agent)
        tx.run("mark_tree_applied", agent=self._agent, base=self._base, now=self._now)
