"""Diffs of two histories: the last position that they have in common, and what each has behind it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from ikigai_actors.records.log.diff import MergeBase, merge_base
from ikigai_actors.records.log.history import Ancestor


@dataclass
class Tree:
    """Agents, each of which has copied what it inherits: the model."""

    parents: list[Ancestor] = field(default_factory=list)
    logs: list[list[tuple[str, int]]] = field(default_factory=list)
    """Of each agent the whole history: who wrote each message, and its number."""

    def lineage(self, agent: int) -> list[Ancestor]:
        by_uuid: Mapping[str, Ancestor] = {parent.uuid: parent for parent in self.parents}
        line = [self.parents[agent]]
        while (above := line[-1].parent_uuid) is not None:
            line.append(by_uuid[above])
        return line


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    tree = Tree([Ancestor("0", None, 0)], [[]])
    for number in range(1, draw(st.integers(2, 12))):
        for _ in range(draw(st.integers(0, 3))):
            who = draw(st.integers(0, number - 1))
            tree.logs[who].append((str(who), len(tree.logs[who]) + 1))
        parent = draw(st.integers(0, number - 1))
        at = draw(st.integers(0, len(tree.logs[parent])))
        tree.parents.append(Ancestor(str(number), str(parent), at))
        tree.logs.append(tree.logs[parent][:at])
    for who, log in enumerate(tree.logs):
        log.extend((str(who), len(log) + more) for more in range(1, draw(st.integers(0, 2)) + 1))
    return tree


@given(trees(), st.data())
def test_two_histories_part_where_their_copies_first_differ(tree: Tree, data: st.DataObject) -> None:
    a, b = (data.draw(st.integers(0, len(tree.logs) - 1)) for _ in range(2))
    first, second = tree.logs[a], tree.logs[b]
    same = [message == other for message, other in zip(first, second, strict=False)]
    common = same.index(False) if False in same else len(same)
    holder = first[common - 1][0] if common else None
    base = merge_base(tree.lineage(a), len(first), tree.lineage(b), len(second))
    assert base == MergeBase(common, holder)
    assert merge_base(tree.lineage(b), len(second), tree.lineage(a), len(first)) == base
