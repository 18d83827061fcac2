"""Trees are born with their agents, in one unit."""

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, Child
from ikigai_actors.errors import FilesConflict, NameTaken
from ikigai_actors.records.agents.trees import every_tree, trees_of
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.system.handles.ref import AgentRef, System
from ikigai_actors.tools.base import Tell, Toolset
from ikigai_actors.tools.function import Tool
from ikigai_actors.tools.trees.tree import Copied, layers_of
from tests.kit.blocking_provider import DEADLINE
from tests.kit.tool_scripts import calling, scripted

BASE = "/work"


class Copying(Toolset):
    """A toolset whose directory is copied; it has no tools, and no directory."""

    copied = Copied(BASE, "here")

    @property
    def name(self) -> str:
        return "copying"

    async def open(self, tell: Tell) -> Sequence[Tool]:
        return []

    async def leave(self, agent: str) -> None:
        pass

    async def close(self) -> None:
        pass


class Merging(Copying):
    """One that merges by name."""

    async def merge_files(self, agent: str, child: str, how: str | None = None) -> list[str]:
        if agent == child:
            raise FilesConflict("somebody has", agent, ["a"])
        return ["a", "b"]


def rows(system: System) -> dict[str, tuple[str | None, int, int]]:
    """Parent, layers beneath, and frozen layers, by name."""
    names = {agent.uuid: agent.name or "root" for agent in system.agents()}
    trees = system._store.read(every_tree)
    return {names[tree.agent]: (tree.parent and names[tree.parent], tree.below, tree.upper) for tree in trees}


def layers(agent: AgentRef) -> list[str]:
    trees, merges = agent.system._store.read(lambda tx: trees_of(tx, agent.uuid, BASE))
    names = {record.uuid: record.name or "root" for record in agent.system.agents()}
    return [f"{names[layer.agent]}/{layer.number}" for layer in layers_of(trees, merges)]


def test_the_first_birth_gives_parent_and_child_a_tree_and_each_later_one_freezes_a_layer(database: str) -> None:
    with ActorSystem.open(database, scripted(), tools=[Copying()]) as system:
        kid = system.root.fork(name="kid")
        assert rows(system) == {"root": (None, 0, 0), "kid": ("root", 0, 0)}
        kid.fork(name="grandchild")
        second = system.root.fork(name="second")
        assert rows(system) == {
            "root": (None, 0, 1), "kid": ("root", 0, 1), "grandchild": ("kid", 1, 0), "second": ("root", 1, 0),
        }  # fmt: skip
        assert layers(second) == ["root/0"]
        assert layers(kid) == ["kid/0"]


def test_a_birth_that_is_refused_leaves_no_tree_and_freezes_nothing(database: str) -> None:
    with ActorSystem.open(database, scripted(), tools=[Copying()]) as system:
        system.root.fork(name="kid")
        before = rows(system)
        with pytest.raises(NameTaken):
            system.root.fork(name="kid")
        assert rows(system) == before


def test_children_that_a_model_makes_in_one_reply_share_the_layers_beneath() -> None:
    script = scripted([calling(("fork", {"name": "a", "prompt": "x"}), ("fork", {"name": "b", "prompt": "x"})), "made"])
    with ActorSystem.open(":memory:", script, tools=[Copying()]) as system:
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "made"
        assert rows(system) == {"root": (None, 0, 0), "a": ("root", 0, 0), "b": ("root", 0, 0)}


def test_a_child_of_another_history_gets_the_files_of_that_agent_but_gives_it_no_tree() -> None:
    with ActorSystem.open(":memory:", scripted(), tools=[Copying()]) as system:
        kid, overseer = system.root.fork(name="kid"), system.root.fork(name="overseer")
        [trial] = overseer.fork_many([Child(kid)])
        tree = system._store.read(lambda tx: trees_of(tx, trial.uuid, BASE))[0]
        assert [(row.agent, row.below, row.upper) for row in tree[:2]] == [(trial.uuid, 1, 0), (kid.uuid, 0, 1)]
    with ActorSystem.open(":memory:", scripted()) as system:
        worker, overseer = system.root.fork(name="worker"), system.root.fork(name="overseer")
        system._toolbox.copied = (Copied(BASE, "here"),)
        [trial] = overseer.fork_many([Child(worker)])
        [own] = system._store.read(lambda tx: trees_of(tx, trial.uuid, BASE))[0]
        assert (own.parent, own.below) == (None, 0)
        assert worker.uuid not in {row.agent for row in system._store.read(every_tree)}


def test_without_such_a_directory_there_are_no_trees() -> None:
    with ActorSystem.open(":memory:", scripted()) as system:
        system.root.fork(name="kid")
        assert rows(system) == {}


def test_files_are_merged_by_the_host_whichever_process_asks(durable: str) -> None:
    with ActorSystem.open(durable, scripted(), tools=[Merging()]) as system:
        system.root.fork(name="kid")
        with AttachedSystem.open(durable) as elsewhere:
            for root in (system.root, elsewhere.root):
                assert root.merge_files("kid", timeout=DEADLINE) == ["a", "b"]
                with pytest.raises(FilesConflict) as caught:
                    root.merge_files(timeout=DEADLINE)
                assert caught.value.paths == ("a",)


@pytest.mark.thorough("a thousand births")
def test_a_thousand_forks_cost_what_the_size_of_the_directory_does_not_change(tmp_path: Path) -> None:
    file = tmp_path / "d.db"
    with ActorSystem.open(file, scripted(), tools=[Copying()]) as system:
        begun = time.process_time()
        for _ in range(1_000):
            system.root.fork()
        assert time.process_time() - begun < 5
        trees = system._store.read(every_tree)
        assert [tree.upper for tree in trees if tree.parent is None] == [999]
    assert file.stat().st_size < 1_000 * 8 * 1024
