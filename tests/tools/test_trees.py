"""Which layers the directory of an agent is made of, and when its tools see it."""

import asyncio
from pathlib import Path
from typing import NamedTuple

import pytest

from ikigai_actors.actors.futures import acting_agent
from ikigai_actors.actors.threads import in_thread
from ikigai_actors.tools.effect_keys import CurrentCall, acting_call
from ikigai_actors.tools.function import ToolError
from ikigai_actors.tools.trees.places import TreePlaces
from ikigai_actors.tools.trees.tree import (
    OVERLAY,
    FileTree,
    TreeMerge,
    TreeRows,
    common_point,
    layers_beneath,
    layers_of,
    ordered,
)
from ikigai_actors.tools.workspace.shells import AgentSlot, Shells
from tests.kit.file_trees import OneTree

BASE = "/work"


def tree(agent: str, parent: str | None = None, below: int = 0, upper: int = 0) -> FileTree:
    return FileTree(agent, BASE, "here", OVERLAY, parent, below, upper, 0, 1)


def names(trees: list[FileTree], *merges: TreeMerge, since: tuple[str, int] | None = None) -> list[str]:
    return [f"{layer.agent}/{layer.name}" for layer in layers_of(trees, merges, since)]


def test_an_agent_sees_what_it_froze_above_what_its_parent_had_frozen_at_its_birth() -> None:
    root, kid, grandchild = tree("root", upper=3), tree("kid", "root", 1, 2), tree("grandchild", "kid", 2)
    assert names([root]) == ["root/2", "root/1", "root/0"]
    assert names([kid, root]) == ["kid/1", "kid/0", "root/0"]
    assert names([grandchild, kid, root]) == ["kid/1", "kid/0", "root/0"]
    assert names([]) == []


def test_a_merge_is_a_layer_with_a_name_of_its_own() -> None:
    merge = TreeMerge("root", BASE, 1, "kid", 2, 1)
    assert names([tree("root", upper=2)], merge) == ["root/1-kid-2", "root/0"]


def test_what_an_agent_has_changed_since_a_layer_is_all_above_that() -> None:
    root, kid = tree("root", upper=3), tree("kid", "root", 1, 2)
    assert names([kid, root], since=("kid", 1)) == ["kid/1"]
    assert names([kid, root], since=("kid", 0)) == ["kid/1", "kid/0"]
    assert names([root], since=("root", 1)) == ["root/2", "root/1"]


def merge(layer: int, child: str, upto: int) -> TreeMerge:
    return TreeMerge("root", BASE, layer, child, upto, 1)


def test_changes_that_are_merged_begin_at_the_latest_merge_or_at_the_fork() -> None:
    root, kid, grandchild = tree("root", upper=9), tree("kid", "root", 1, 4), tree("grandchild", "kid", 3, 1)
    line = (grandchild, kid, root)
    assert common_point(((root,), ()), ((kid, root), ())) == ("root", 1)
    assert common_point(((root,), ()), (line, ())) == ("root", 1)
    assert common_point(((root,), (merge(5, "kid", 2), merge(7, "kid", 4))), ((kid, root), ())) == ("kid", 4)
    assert common_point(((root,), (merge(5, "kid", 2), merge(7, "kid", 4))), (line, ())) == ("kid", 2)
    assert common_point(((root,), (merge(5, "kid", 2), merge(7, "grandchild", 1))), (line, ())) == ("grandchild", 1)
    assert common_point(((kid, root), (merge(5, "kid", 2),)), (line, ())) == ("kid", 3)
    assert common_point((line, ()), ((kid, root), ())) is None
    assert common_point(((tree("other"),), ()), (line, ())) is None


def test_what_was_there_at_a_point_is_what_is_beneath_it() -> None:
    rows = ((tree("grandchild", "kid", 3, 1), tree("kid", "root", 1, 4), tree("root", upper=9)), ())
    assert [f"{layer.agent}/{layer.name}" for layer in layers_beneath(rows, "kid", 2)] == ["kid/1", "kid/0", "root/0"]
    assert [f"{layer.agent}/{layer.name}" for layer in layers_beneath(rows, "root", 1)] == ["root/0"]


def test_a_chain_of_trees_ends_at_the_base_and_a_circle_is_cut() -> None:
    rows = {"a": tree("a", "b", 1), "b": tree("b", None, upper=1)}
    assert [tree.agent for tree in ordered("a", rows)] == ["a", "b"]
    assert [tree.agent for tree in ordered("a", {"a": tree("a", "b"), "b": tree("b", "a")})] == ["a", "b"]
    assert ordered("nobody", rows) == ()


class Somebody(NamedTuple):
    uuid: str


def test_a_call_whose_time_is_over_before_its_turn_does_nothing(tmp_path: Path) -> None:
    (tmp_path / "trees").mkdir()
    (tmp_path / "trees" / "machine").write_text("here")
    done: list[str] = []

    async def play() -> str:
        loop = asyncio.get_running_loop()
        shells = Shells(tmp_path, {}, 600.0, None, TreePlaces(tmp_path, str(tmp_path), OneTree()), loop)

        def call() -> str:
            acting_agent.set(Somebody("kid"))
            try:
                with shells.holding(0):
                    done.append("written")
            except ToolError as error:
                return str(error)
            return ""

        slot = shells._slots.setdefault("kid", AgentSlot())
        async with slot.turn:
            said: str = await in_thread(call, "test")
        await shells.close()
        return said

    assert asyncio.run(play()) == "An earlier call had not ended after 0 s. Nothing was done."
    assert done == []


class NoTree(OneTree):
    """Nobody has a tree."""

    def of(self, agent: str, base: str) -> TreeRows:
        return (), ()


@pytest.mark.parametrize("own_files", [True, False])
def test_a_trial_without_files_of_its_own_over_a_directory_changes_nothing_there(
    tmp_path: Path, own_files: bool
) -> None:
    (tmp_path / "trees").mkdir()
    places = TreePlaces(tmp_path, str(tmp_path), NoTree())

    def call() -> str:
        acting_agent.set(Somebody("kid"))
        acting_call.set(CurrentCall("key", 1, "kid", "c1", 0, own_files))
        try:
            with Shells(tmp_path, {}, 600.0, None, places).holding(0):
                return "begun"
        except ToolError as error:
            return str(error)

    async def play() -> str:
        said: str = await in_thread(call, "test")
        return said

    assert (asyncio.run(play()) == "begun") == (not own_files)
