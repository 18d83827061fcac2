"""The rows of agents, as a tree and as a table: pure, so rows are made up here."""

from dataclasses import replace

from ikigai_actors.reach.snapshots import Snapshot
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.budgets.budget import BudgetStatus
from ikigai_actors.shell.app.agent_rows import AgentRow, below
from ikigai_actors.shell.app.agent_table import TABLE_COLUMNS, Order, head_line, meter_line, row_line, table, widths
from ikigai_actors.shell.app.theme import DARK
from ikigai_actors.shell.app.tree_rows import LARGE_TREE, TreeView, tree_rows
from ikigai_actors.verbs.text.words import activity

STATES = {
    "idle": "idle", "thinks": "waiting for the model", "runs": "runs bash", "asks": "waiting for approval",
    "short": "waiting for budget", "cut": "interrupted", "stopped": "stopped", "dead": "dead",
}  # fmt: skip


def row(name: str, above: str | None = None, state: str = "idle", seconds: float = 0.0, rate: float = 0.0) -> AgentRow:
    status = state if state in ("stopped", "dead") else "running"
    record = AgentRecord(
        uuid=name, name=name, parent_uuid=above, supervisor_uuid=above, fork_message_id=0, status=status, turn=0,
        restart="transient", exit_reason=None, created_at=0, ended_at=None, active_at=0, owner=None, epoch=1,
    )  # fmt: skip
    doing = activity(STATES[state], answering=rate > 0)
    return AgentRow(record, name, doing, seconds, rate, 0.0, 0, 0, 0, len(name), 0, "")


def chain(length: int, *last: AgentRow) -> list[AgentRow]:
    """An agent below another, from 0 on; and others."""
    return [row(str(number), str(number - 1) if number else None) for number in range(length)] + list(last)


def drawing(rows: list[AgentRow], view: TreeView) -> list[str]:
    """The tree as text; what is folded after its agent, and in brackets who is there for another."""
    return [
        f"{row.branch}{row.agent.name if row.wanted else f'({row.agent.name})'}"
        + (f" +{row.below.agents}, {row.below.working} work, {row.below.waiting} wait" if row.folded else "")
        for row in tree_rows(rows, view)
    ]


TEAM = [
    row("lead"), row("buyer", "lead", "asks"), row("seller", "lead", "thinks"), row("labels", "seller", "runs"),
    row("files", "seller"), row("gone", "lead", "dead"), row("orphan", "gone"), row("past", "lead", "dead"),
]  # fmt: skip


def test_the_tree_has_the_living_and_the_dead_above_them() -> None:
    assert drawing(TEAM, TreeView()) == [
        "lead", "├─ buyer", "├─ seller", "│  ├─ labels", "│  └─ files", "└─ (gone)", "   └─ orphan",
    ]  # fmt: skip
    assert [row.parent for row in tree_rows(TEAM, TreeView())] == [
        "",
        "lead",
        "lead",
        "seller",
        "seller",
        "lead",
        "gone",
    ]


def test_a_folded_branch_says_how_many_are_below_and_what_they_do() -> None:
    assert drawing(TEAM, TreeView(folds={"seller": True, "buyer": True, "gone": False})) == [
        "lead", "├─ buyer", "├─ seller +2, 1 work, 0 wait", "└─ (gone)", "   └─ orphan",
    ]  # fmt: skip
    assert drawing(TEAM, TreeView(folds={"lead": True})) == ["lead +6, 2 work, 1 wait"]


def test_a_filter_keeps_those_above_and_opens_what_is_folded() -> None:
    assert drawing(TEAM, TreeView(folds={"lead": True}, wanted="lab")) == ["(lead)", "└─ (seller)", "   └─ labels"]
    assert drawing(TEAM, TreeView(wanted="asks you")) == ["(lead)", "└─ buyer"]
    assert drawing(TEAM, TreeView(wanted="nobody")) == []


def test_in_a_large_tree_deep_branches_are_folded_but_none_in_which_something_happens() -> None:
    crowd = [row(f"crowd-{number}", "0") for number in range(LARGE_TREE)]
    assert drawing([*chain(6), *crowd], TreeView())[3] == "│     └─ 3 +2, 0 work, 0 wait"
    assert drawing([*chain(6), *crowd], TreeView(folds={"3": False}))[4] == "│        └─ 4 +1, 0 work, 0 wait"
    assert drawing([*chain(6), *crowd], TreeView(current="5"))[5] == "│           └─ 5"
    for state in ("thinks", "asks", "short"):
        assert drawing([*chain(6, row("one", "5", state)), *crowd], TreeView())[6].endswith("└─ one"), state
    assert drawing(chain(6), TreeView())[5] == "            └─ 5"


def test_the_table_begins_with_those_who_need_a_person_then_those_who_work() -> None:
    rows = [
        row("early", state="idle", seconds=900), row("late", state="idle", seconds=5), row("paused", state="stopped"),
        row("new", state="thinks", seconds=1), row("long", state="thinks", seconds=60), row("cut", state="cut"),
        row("says", state="thinks", seconds=2, rate=40), row("asks", state="asks", seconds=3),
        row("poor", state="short"),
    ]  # fmt: skip
    names = ["asks", "poor", "cut", "says", "long", "new", "paused", "late", "early"]
    assert [row.name for row in table(rows, Order()).rows] == names
    assert [row.name for row in table(rows, Order(turned=True)).rows] == names[::-1]
    assert [row.name for row in table(rows, Order(by="agent", wanted="think")).rows] == ["long", "new"]
    meters = table([*rows, row("dead", state="dead")], Order(wanted="nobody")).meters
    assert (meters.agents, meters.working, meters.kinds["asks"], meters.rate) == (9, 3, 1, 40.0)


def test_the_columns_fit_into_a_window_of_any_width_and_narrow_ones_have_the_first() -> None:
    for width in range(36, 200):
        for hosts in (False, True):
            shown = widths(width, 60, hosts)
            assert sum(shown.values()) < width
            assert shown["agent"] >= 5
            assert ("host" in shown) == (hosts and width >= TABLE_COLUMNS["host"].least)
    assert list(widths(40, 9, hosts=False)) == ["agent", "state", "tokens"]
    assert list(widths(80, 9, hosts=True)) == ["agent", "state", "for", "rate", "mail", "tokens", "cost"]
    assert widths(200, 9, hosts=False)["agent"] == 20


def test_a_row_of_the_table_is_as_wide_as_its_head_and_cuts_names_in_any_script() -> None:
    wide = row("漢字" * 12, state="asks", seconds=75)._replace(host="team-host-number-12", usd=14_000, restarts=3)
    for width in range(36, 140):
        shown = widths(width, 48, hosts=True)
        line, head = row_line(wide, shown, True, DARK), head_line(shown, Order(), DARK)
        assert line.cell_len == head.cell_len < width
        assert line.plain.startswith("✓? 漢")
    assert line.plain.endswith("  …number-12")


def test_the_meters_have_what_there_is_and_what_has_room() -> None:
    rows = [row("a", state="asks"), row("b", state="thinks", rate=40.0), row("c"), row("d", state="stopped")]
    status = BudgetStatus("a", False, granted={"usd": 5.0}, held={}, spent={"usd": 4.5})
    moment = Snapshot(rows[0].record, "idle", None, None, None, 0, "", None, {}, budget=status, abandoned=1)
    meters = table(rows, Order()).meters
    full = " 4 agents   1 working   1 asks you   1 stopped   1 overdue calls   40 tokens/s   "
    assert meter_line(meters, moment, 120, DARK).plain == f"{full}$4.50 of $5.00 ━━━━━━━━━─"
    assert meter_line(meters, replace(moment, budget=None, all_cost=0.0142), 120, DARK).plain == f"{full}$0.014 spent"
    most = replace(moment, budget=None, all_cost=0.0142, all_is_most=True)
    assert meter_line(meters, most, 120, DARK).plain == f"{full}up to $0.014 spent"
    assert meter_line(meters, moment, 40, DARK).plain == " 4 agents   1 working   1 asks you   "


def test_those_below_an_agent_are_counted_once_and_the_dead_are_not() -> None:
    records = [row.record for row in TEAM]
    assert below(records, ["lead"]) == 5
    assert below(records, ["seller", "labels"]) == 1
    assert below(records, ["lead", "gone", "orphan"]) == 4
    assert below(records, ["files"]) == 0
