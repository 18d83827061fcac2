"""The file trees of agents, checked by the commits: the invariant ``tree``.

The commit of a birth also gives the child a tree, above a layer of its parent that the same commit freezes. The parent
gets its own tree with its first child. No other commit makes trees.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ikigai_actors.testing.simulation.changes import RanStatement, StoredChange, Written
from ikigai_actors.tools.base import Tell, Toolset
from ikigai_actors.tools.function import Tool
from ikigai_actors.tools.trees.tree import Copied, FileTree

if TYPE_CHECKING:
    from ikigai_actors.testing.simulation.world import Simulation


class Files(Toolset):
    """A toolset with a directory that forks with its agents. The directory is empty, and there are no tools."""

    copied = Copied("/work", "here")

    @property
    def name(self) -> str:
        return "files"

    async def open(self, tell: Tell) -> Sequence[Tool]:
        return []

    async def leave(self, agent: str) -> None:
        pass

    async def close(self) -> None:
        pass


class TreeOracle:
    """Checks the file trees of a run."""

    def __init__(self, world: "Simulation") -> None:
        self._world = world
        self._upper: dict[str, int] = {}
        self._parents: dict[str, str] = {}

    def committed(self, changes: Sequence[StoredChange]) -> None:
        """Check the file trees that a commit makes."""
        ran = [change for change in changes if isinstance(change, RanStatement)]
        born = {
            statement.parameters["uuid"]: statement.parameters["parent"]
            for statement in ran
            if statement.query == "register"
        }
        self._parents |= born
        trees = {
            row[0]: FileTree(*row)
            for row in (change.row for change in changes if isinstance(change, Written) and change.table == "trees")
        }
        before = dict(self._upper)
        first = {
            statement.parameters["agent"]: statement.parameters["upper"]
            for statement in ran
            if statement.query == "add_tree"
        }
        self._upper |= dict.fromkeys(trees, 0) | first
        for statement in ran:
            if statement.query == "unregister":
                born = {child: parent for child, parent in born.items() if child not in statement.parameters["uuids"]}
            elif statement.query == "add_tree":  # of one that has worked in the directory itself
                self._upper.setdefault(statement.parameters["agent"], statement.parameters["upper"])
            elif statement.query == "freeze_tree" and statement.parameters["agent"] in before:
                self._upper[statement.parameters["agent"]] += statement.parameters["by"]
        for child, parent in born.items():
            tree = trees.pop(child, None)
            if tree is None:
                self._broken(f"{child} is born without one")
            elif tree.parent is None:
                if parent in before:
                    self._broken(f"that of {child} is not built on that of {parent}")
            elif not before.get(tree.parent, -1) < tree.below <= self._upper[tree.parent]:
                self._broken(f"that of {child} is above {tree.below} layers of {tree.parent}, of which others are open")
            elif tree.parent not in self._above(parent):
                self._broken(f"that of {child} is built on that of {tree.parent}, whose history it does not inherit")
        if others := (trees.keys() | first.keys()) - {*born.values()}:
            self._broken(f"{sorted(others)} get one, and have no child")

    def _above(self, agent: str) -> Iterator[str]:
        """Yield the uuid of an agent, and of each ancestor whose history it inherits."""
        above: str | None = agent
        while above is not None:
            yield above
            above = self._parents.get(above)

    def _broken(self, text: str) -> None:
        self._world.process.broken(f"tree: {text}")
