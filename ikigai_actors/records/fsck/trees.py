"""The checks of fsck for file trees of agents. The contents of their layers, on the disk, are not checked."""

from collections.abc import Callable, Collection, Iterator, Mapping

from ikigai_actors.records.agents.trees import every_tree, every_tree_merge, every_tree_write
from ikigai_actors.records.fsck.invariants import Invariant, Violation
from ikigai_actors.store.base import Transaction
from ikigai_actors.tools.trees.tree import DIRECTLY, FileTree


def check_trees(
    tx: Transaction, agents: Collection[str], circles: Callable[[Mapping[str, str | None]], list[list[str]]]
) -> Iterator[Violation]:
    """Return the faults of trees and merges of files; ``agents`` are all uuids, ``circles`` finds circles."""
    trees = {(listed.agent, listed.base): listed for listed in every_tree(tx)}
    for base in {tree.base for tree in trees.values()}:
        for circle in circles({known.agent: known.parent for known in trees.values() if known.base == base}):
            yield Violation(Invariant.TREE, min(circle), "expected a tree that is built on others, got a circle")
    for tree in trees.values():
        for wrong in _wrong_with(tree, trees, agents):
            yield Violation(Invariant.TREE, tree.agent, wrong)
    for merge in every_tree_merge(tx):
        for who, number in ((merge.agent, merge.layer + 1), (merge.child, merge.upto)):
            merged = trees.get((who, merge.base))
            if merged is None and who == merge.child:  # it was pruned
                continue
            if merged is None or merged.upper < number:
                text = f"expected {number} frozen layers of {who} for merge {merge.layer}, got "
                yield Violation(Invariant.TREE, merge.agent, f"{text}{'no tree' if merged is None else merged.upper}")
                break
    for write in every_tree_write(tx):
        written = trees.get((write.agent, write.base))
        if write.agent not in agents or write.layer > (DIRECTLY if written is None else written.upper):
            yield Violation(
                Invariant.TREE, write.agent, f"expected layer {write.layer}, to which it is to have written"
            )


def _wrong_with(tree: FileTree, trees: Mapping[tuple[str, str], FileTree], agents: Collection[str]) -> Iterator[str]:
    if tree.agent not in agents:
        yield "expected an agent that has a tree, and there is none"
    if tree.parent is None:
        if tree.below:
            yield f"expected no layers beneath a tree that is built on none, got {tree.below}"
        return
    beneath = trees.get((tree.parent, tree.base))
    if beneath is None or beneath.upper < tree.below or beneath.machine != tree.machine:
        yield f"expected agent {tree.parent} to have {tree.below} frozen layers on the same machine"
