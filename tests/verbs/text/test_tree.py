"""The tree as text: pure, so records are made up here."""

import base64
from dataclasses import replace

import pytest

from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.verbs.text.tree import DEEPEST, Line, pad, summary, tree_lines
from ikigai_actors.verbs.text.wrap import width


def agent(
    number: int,
    above: AgentRecord | None = None,
    *,
    name: str | None = None,
    parent: AgentRecord | None = None,
    fork: int = 0,
    status: str = "running",
    created: int = 0,
) -> AgentRecord:
    """An agent whose uuid comes from its number; forked from its supervisor unless said otherwise."""
    born_of = parent or above
    return AgentRecord(
        uuid=uuid(number),
        name=name,
        parent_uuid=born_of.uuid if born_of else None,
        supervisor_uuid=above.uuid if above else None,
        fork_message_id=fork,
        born=fork,
        status=status,
        turn=0,
        restart="transient",
        exit_reason=None,
        created_at=created,
        ended_at=1 if status == "dead" else None,
        active_at=0,
        owner=None,
        epoch=1,
    )


def uuid(number: int) -> str:
    return "A" + base64.b32encode(number.to_bytes(13, "little")).decode()[:21]


def state(record: AgentRecord) -> str:
    return "idle" if record.living else "dead"


def shown(records: list[AgentRecord], own: dict[str, int] | None = None, current: str | None = None) -> list[str]:
    return [line.text for line in tree(records, own, current)]


def tree(
    records: list[AgentRecord], own: dict[str, int] | None = None, current: str | None = None, dead_too: bool = False
) -> list[Line]:
    return tree_lines(records, own or {}, state, current, (lambda uuid: True) if dead_too else None)


def test_a_tree_is_drawn_depth_first_whatever_the_order_of_its_records() -> None:
    root = agent(0)
    left, right = agent(1, root, name="left", fork=1), agent(2, root, name="right", fork=2)
    below = agent(3, left, name="below", fork=3)
    for records in ([root, left, right, below], [below, right, left, root]):
        names = [line.split()[-7:] for line in shown(records)[:-1]]
        assert [each[0] for each in names[1:]] == ["left", "below", "right"]


def test_a_column_names_the_hosts_where_there_are_several() -> None:
    root = agent(0)
    kid, lost = agent(1, root, name="kid", fork=1), agent(2, root, name="lost", fork=2)
    records = [replace(root, owner="1"), replace(kid, owner="2"), replace(lost, owner=None)]
    lines = [line.text for line in tree_lines(records, {}, state, None, hosts={"1": "blue", "2": "b"})]
    assert [line.split("inherited")[0].split()[-3:-1] for line in lines[:-1]] == [
        ["idle", "blue"], ["idle", "b"], ["idle", "-"]
    ]  # fmt: skip
    assert len({line.index("inherited") for line in lines[:-1]}) == 1


def test_lines_align_and_show_names_states_and_counts() -> None:
    root = agent(0)
    child = agent(1, root, name="dba", fork=4)
    grandchild = agent(2, child, fork=11)
    other = agent(3, root, name="critic", fork=5)
    own = {root.uuid: 5, child.uuid: 7, grandchild.uuid: 1, other.uuid: 12}
    assert shown([root, child, grandchild, other], own=own, current=grandchild.uuid) == [
        "  abiding-aardvark       idle   0 inherited +  5 own",
        "  ├─ dba                 idle   4 inherited +  7 own",
        "* │  └─ abiding-bellows  idle  11 inherited +  1 own",
        "  └─ critic              idle   5 inherited + 12 own",
        "4 running, 0 dead",
    ]
    in_words = tree_lines([root, child, grandchild, other], own, state, grandchild.uuid, is_drawn=False)
    assert [line.text for line in in_words] == [
        "  abiding-aardvark     idle   0 inherited +  5 own",
        "    dba                idle   4 inherited +  7 own, below abiding-aardvark",
        "*     abiding-bellows  idle  11 inherited +  1 own, below dba",
        "    critic             idle   5 inherited + 12 own, below abiding-aardvark",
        "4 running, 0 dead",
    ]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_star_stands_at_the_current_agent_at_every_depth(place: int) -> None:
    root = agent(0)
    child = agent(1, root)
    records = [root, child, agent(2, child)]
    lines = tree(records, current=records[place].uuid)
    assert [line.text.startswith("*") for line in lines[:-1]] == [each == place for each in range(3)]
    assert [line.current for line in lines[:-1]] == [each == place for each in range(3)]


def test_letters_follow_words_that_are_not_unique() -> None:
    root = agent(0)
    twins = [replace(agent(1, root), uuid=f"Twins_{sign}AAAAAAAAAAAAAAA") for sign in "ab"]
    lines = shown([root, *twins])
    assert "gabled-finale-ns_a " in lines[1]
    assert "gabled-finale-ns_b " in lines[2]
    assert "abiding-aardvark " in lines[0]


def test_a_dead_agent_whose_name_another_one_has_is_told_by_its_words_with_that_name() -> None:
    root = agent(0)
    lines = [
        line.text
        for line in tree([root, agent(2, root, name="kid", status="dead"), agent(3, root, name="kid")], dead_too=True)
    ]
    assert [line.partition("─ ")[2].partition("  ")[0] for line in lines[1:3]] == ["abiding-bellows (kid)", "kid"]


def test_children_of_the_same_millisecond_stand_in_order_of_their_forks_and_adopted_ones_last() -> None:
    root = agent(0)
    first, second = agent(5, root, name="first", fork=1), agent(4, root, name="second", fork=2)
    adopted = agent(1, root, name="adopted", parent=second, fork=1)
    assert [line.split()[1] for line in shown([adopted, second, first, root])[1:4]] == ["first", "second", "adopted"]


def test_the_dead_are_left_out_but_counted() -> None:
    root = agent(0)
    gone = agent(1, root, name="gone", status="dead")
    assert shown([root, gone]) == ["  abiding-aardvark  idle  0 inherited + 0 own", "1 running, 1 dead"]


def test_a_dead_agent_with_living_descendants_is_shown_and_marked() -> None:
    root = agent(0)
    gone = agent(1, root, name="gone", status="dead")
    also_gone = agent(2, gone, name="also-gone", status="dead")
    lives = agent(3, also_gone, name="lives")
    lines = tree([root, gone, also_gone, lives])
    assert [line.dead for line in lines[:-1]] == [False, True, True, False]
    assert "lives" in lines[3].text


def test_all_the_dead_are_shown_when_asked_for() -> None:
    root = agent(0)
    lines = tree([root, agent(1, root, name="gone", status="dead")], dead_too=True)
    assert lines[1].dead
    assert " dead " in lines[1].text


def test_the_summary_names_other_states_only_when_there_are_any() -> None:
    assert summary({"running": 1}) == "1 running, 0 dead"
    assert summary(dict.fromkeys(("dead", "stopped", "terminating", "running"), 1)) == (
        "1 running, 1 stopped, 1 terminating, 1 dead"
    )


@pytest.mark.slow("takes a tenth of a second")
def test_two_thousand_levels_are_drawn_without_recursion_and_with_a_bounded_indent() -> None:
    records = [agent(0)]
    for number in range(1, 2000):
        records.append(agent(number, records[-1]))
    lines = shown(records)
    assert len(lines) == 2001
    assert max(map(len, lines)) < 3 * DEEPEST + 80
    assert "┄1999┄" in lines[-2]


def test_agents_that_hang_in_a_circle_or_from_nobody_are_shown_once_after_the_tree() -> None:
    root = agent(0)
    first, other = agent(1, root, name="one"), agent(2, root, name="other")
    circle = [replace(first, supervisor_uuid=other.uuid), replace(other, supervisor_uuid=first.uuid)]
    stray = replace(agent(3, name="stray"), supervisor_uuid=uuid(99), created_at=1)
    lines = shown([root, *circle, stray])
    assert sum("one" in line for line in lines) == 1
    assert sum("other" in line for line in lines) == 1
    assert sum("stray" in line for line in lines) == 1


def test_an_empty_registry_is_only_counted() -> None:
    assert shown([]) == ["0 running, 0 dead"]


def test_wide_names_take_two_columns_for_each_sign() -> None:
    assert width("茶") == 2
    assert width("e\u0301") == 1
    assert pad("茶", 4) == "茶  "
    assert pad("long", 2) == "long"


def test_an_orphan_is_marked() -> None:
    root = agent(0)
    dead = agent(1, root, name="dead", status="dead")
    orphan = agent(2, dead, name="orphan")
    records = [root, dead, orphan, agent(3, orphan, name="kid"), agent(4, dead, status="dead")]
    assert [line.endswith(", orphan") for line in shown(records)] == [False, False, True, False, False]
    assert [line.text.endswith(", orphan") for line in tree(records, dead_too=True)].count(True) == 1
