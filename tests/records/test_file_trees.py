"""The rows of trees: what a birth and a write add, and what they leave alone."""

from dataclasses import replace

import pytest

from ikigai_actors.errors import BadInput
from ikigai_actors.records.agents.trees import BeginWrite, every_tree, every_tree_write
from ikigai_actors.records.log.append import FIRST_EPOCH, Append, FencingToken
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.store import Store, Transaction
from ikigai_actors.store.journal import Committed
from ikigai_actors.store.unit import lock
from ikigai_actors.tools.trees.tree import DIRECTLY, Copied
from tests.kit.trees import HOST, Noting, append, fork
from tests.records.test_units import Desk

BASE = Copied("/work", "here")


def bear(parent: str, child: str, born: int, at: int | None = None, *, trial: bool = False) -> Append:
    """A birth over the directory; ``at`` is an earlier position, ``trial``: the child may change its files."""
    unit = fork(parent, child, born)._unit
    [birth] = unit.births
    if at is not None:
        birth = replace(birth, fork_message_id=at)
    if trial:
        effects = {"effects": {"run": [], "files": "overlay"}}
        birth = replace(birth, messages=(*birth.messages, Message(child, born + 1, "configure", "", effects, 1)))
    return Append(replace(unit, births=(birth,), copied=(BASE,)), FencingToken(HOST, FIRST_EPOCH))


def write(agent: str, position: int, *, keep_turns: bool = False) -> BeginWrite:
    return BeginWrite(agent, BASE, position, keep_turns, 1)


def written(desk: Desk, unit: BeginWrite) -> object:
    """The layer to which calls write."""
    verdict = desk.write(unit)["0"]
    assert isinstance(verdict, Committed)
    return verdict.value


@pytest.fixture
def desk(store: Store) -> Desk:
    return Desk(store)


def built(store: Store) -> dict[str, tuple[str | None, int, int]]:
    """Parent, layers beneath and frozen layers of each tree."""
    return {tree.agent: (tree.parent, tree.below, tree.upper) for tree in store.read(every_tree)}


def test_without_a_directory_that_forks_a_birth_runs_no_statement_about_trees(desk: Desk) -> None:
    for copied, count in (((), 0), ((BASE,), 1)):
        statements: list[str] = []

        def work(tx: Transaction, copied: tuple[Copied, ...] = copied, ran: list[str] = statements) -> None:
            unit = fork("a", f"child{len(copied)}", 1 + len(copied))
            unit = Append(replace(unit._unit, copied=copied), FencingToken(HOST, FIRST_EPOCH))
            locked = lock(tx, (unit,))
            unit.write(Noting(tx, ran), locked)
            locked.settle(tx)

        desk.store.write(work)
        assert any("tree" in statement for statement in statements) == bool(count)


def test_a_write_is_noted_in_the_layer_that_it_goes_to(desk: Desk) -> None:
    desk.accepts(append("a", 1, 2))
    assert written(desk, write("a", 2)) == DIRECTLY
    desk.accepts(bear("a", "child", 3))
    assert [written(desk, write("a", 4)) for _ in range(2)] == [0, 0]
    assert [write[2:] for write in desk.store.read(every_tree_write)] == [(DIRECTLY, 2), (0, 4)]


def test_each_turn_that_writes_has_a_layer_of_its_own_where_turns_are_kept(desk: Desk) -> None:
    desk.accepts(append("a", 1, turn=1))
    layers = [written(desk, write("a", position, keep_turns=True)) for position in (2, 3)]
    desk.accepts(append("a", 2, 3, 4, turn=4))
    layers += [written(desk, write("a", position, keep_turns=True)) for position in (5, 6)]
    assert layers == [0, 0, 1, 1]
    assert built(desk.store) == {"a": (None, 0, 1)}


def test_a_trial_of_files_that_nobody_kept_is_not_born_and_another_child_gets_those_of_now(desk: Desk) -> None:
    desk.accepts(append("a", 1, 2))
    desk.accepts(bear("a", "first", 3))
    desk.accepts(append("a", 4, 5, 6))
    for position in (4, 6):
        desk.accepts(write("a", position))
    before = built(desk.store)
    assert "at position 5 are not known" in str(desk.refuses(bear("a", "trial", 7, 5, trial=True), BadInput))
    assert built(desk.store) == before
    desk.accepts(bear("a", "early", 7, 3))
    desk.accepts(bear("a", "unknown", 8, 5))
    desk.accepts(bear("a", "late", 9))
    assert built(desk.store) == {
        **before, "a": (None, 0, 2), "early": ("a", 0, 0), "unknown": ("a", 1, 0), "late": ("a", 2, 0),
    }  # fmt: skip
