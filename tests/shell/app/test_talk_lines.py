"""The lines around the prompt."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from ikigai_actors.agent.turn.state import Phase, waits_for
from ikigai_actors.providers.base import Usage
from ikigai_actors.reach.snapshots import Snapshot
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.budgets.budget import BudgetStatus
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.shell.app.theme import DARK
from ikigai_actors.shell.app.widgets.talk_lines import (
    Underway,
    command_line,
    edge,
    facts,
    foot,
    placeholder,
    way,
    welcome,
    work_line,
)
from ikigai_actors.verbs.text.pace import Pace, TurnSpan

WIDTHS = st.integers(20, 200)
NAMES = st.text(st.characters(codec="utf-8"), max_size=40) | st.sampled_from(["buyer", "漢字" * 12])
STATES = st.sampled_from(
    [*Phase, waits_for(["ann", "漢字" * 9]), "runs bash", "dead", "stopped", "summarising 7 messages"]
)


def moment(*way: str) -> Snapshot:
    """A snapshot of the last of these agents, which are one below the other."""
    *above, current = [
        AgentRecord("a" * 22, name, None, None, 0, "running", 0, "transient", None, 1, None, 0, "host", 1)
        for name in way
    ]
    return Snapshot(
        current=current, state="idle", parent=above[-1] if above else None, previous=None, following=None, children=0,
        model="tea-1", tokens=Usage(900, 340, 100, 200), questions={}, cost=0.0042,
        above=tuple(reversed(above)),
    )  # fmt: skip


@given(STATES, st.none() | st.floats(0, 10**7), st.booleans(), st.floats(0, 10_000), st.integers(0, 99), WIDTHS)
def test_no_line_of_work_is_wider_than_the_box(
    state: str, seconds: float | None, answering: bool, rate: float, waiting: int, width: int
) -> None:
    work = Underway(state, seconds, answering, rate)
    assert work_line(work, "", waiting, waiting, width, DARK).cell_len <= width
    assert command_line(state, seconds or 0, waiting, width, DARK).cell_len <= width


@given(st.lists(NAMES, min_size=1, max_size=5), st.integers(0, 10**6), WIDTHS)
def test_no_line_around_the_prompt_is_wider_than_it(names: list[str], mail: int, width: int) -> None:
    snapshot = moment(*names)
    full = replace(
        snapshot, current=replace(snapshot.current, unread=mail), previous=snapshot.parent, following=snapshot.parent
    )
    assert edge(way(full, DARK), facts(full, "default"), width, DARK).cell_len <= width
    assert foot(full, width, DARK).cell_len <= width
    assert placeholder(names[0], width).cell_length <= width


def test_an_empty_prompt_leaves_out_the_commands_before_it_cuts_the_name() -> None:
    shown = [placeholder("ageless-dolphin", width).plain for width in (60, 34, 12)]
    assert shown == ["Ask ageless-dolphin, or / for commands", "Ask ageless-dolphin", "Ask ageles…"]


def test_the_edge_says_where_one_is_and_what_it_cost_and_leaves_out_what_does_not_fit() -> None:
    budget = BudgetStatus("a" * 22, False, granted={"usd": 5.0}, held={}, spent={"usd": 1.239})
    snapshot = replace(moment("root", "lead", "seller", "buyer"), budget=budget)

    def shown(width: int) -> str:
        return edge(way(snapshot, DARK), facts(snapshot, ""), width, DARK).plain

    whole = "budget $1.24 of $5.00 · tea-1 · 1.2k in · 340 out · $0.0042"
    assert shown(100) == f"… ▸ lead ▸ seller ▸ buyer {'─' * 14} {whole}"
    assert shown(74).endswith("── tea-1 · 1.2k in · 340 out · $0.0042")
    assert shown(62).endswith("── 1.2k in · 340 out · $0.0042")
    assert shown(30) == "… ▸ lead ▸ seller ▸ buyer"
    assert shown(12) == "… ▸ lead ▸ …"


@pytest.mark.parametrize(
    ("work", "shown"),
    [
        (Underway(Phase.WAITING_FOR_MODEL, 12, True, 41.2), " ⠋ answering · 12 s · 41 tokens/s · Esc interrupts"),
        (Underway(Phase.WAITING_FOR_MODEL, 200), " ⠋ thinking · 3 min · Esc interrupts"),
        (Underway("runs bash"), " ⠋ running bash · Esc interrupts"),
        (Underway(Phase.WAITING_FOR_APPROVAL, 5), " ? asks you · 5 s · F2 answers"),
        (Underway(Phase.INTERRUPTED, 5), " ‖ interrupted · 5 s · /resume goes on"),
        (Underway("stopped", 5), " ‖ stopped · /signal CONT goes on"),
        (Underway("dead", 5), " × dead"),
    ],
)
def test_the_line_of_work_says_what_goes_on_and_what_one_can_do(work: Underway, shown: str) -> None:
    assert work_line(work, "", 0, 0, 80, DARK).plain == shown


def test_what_waits_is_counted_at_the_right_also_when_nothing_goes_on() -> None:
    assert work_line(None, "12 s · 340 out", 2, 0, 46, DARK).plain == " 12 s · 340 out     2 waiting · Up takes back "
    assert work_line(None, "", 0, 0, 46, DARK) == Text("", DARK.past)


def test_the_foot_names_the_neighbours_as_far_as_there_is_room() -> None:
    snapshot = replace(moment("lead", "buyer"), children=4)
    assert foot(snapshot, 60, DARK).plain.rstrip() == " ^↑ lead  ^↓ 4 below  F3 tree  F4 agents  ^P find  F1 keys"
    assert foot(snapshot, 20, DARK).plain.rstrip() == " ^↑ lead   F1 keys"
    assert foot(snapshot, 60, DARK, below=True).plain.startswith(" ^End new text below  ")


def test_the_pace_counts_the_last_seconds_and_begins_again_with_each_answer() -> None:
    pace = Pace()
    assert [pace.tokens_a_second(size, at) for at, size in enumerate((0, 40, 80, 80, 80, 80))] == [
        0,
        10,
        10,
        20 / 3,
        10 / 3,
        0,
    ]
    assert pace.tokens_a_second(4, 6.0) == 0  # of the next answer
    assert pace.tokens_a_second(12, 8.0) == 1


def test_a_turn_begins_with_its_prompt_and_sums_up_its_answers() -> None:
    turn, usage = TurnSpan(), {"usage": {"input_tokens": 5, "output_tokens": 7}}
    for at, (kind, data) in enumerate([("user", {}), ("assistant", usage), ("tool_result", {}), ("assistant", usage)]):
        turn.add(Message("a" * 22, at + 1, kind, "", data, 1_000 * (at + 1)))
    assert (turn.seconds, turn.tokens) == (3, 14)
    turn.add(Message("a" * 22, 5, "user", "", {}, 60_000))
    assert (turn.began, turn.seconds, turn.tokens) == (60_000, 0, 0)


@given(WIDTHS)
def test_the_welcome_names_what_to_try_in_whatever_width(width: int) -> None:
    head, *tries = welcome(width, DARK).plain.split("\n")
    assert "outlives kill -9" in head
    assert all(len(line) <= max(width, 42) for line in tries)


def test_tokens_of_an_answer_on_its_way_are_added_in_tens_and_are_about() -> None:
    assert [facts(moment("root"), "", arrived)[-1] for arrived in (0, 9, 25)] == [
        "1.2k in · 340 out · $0.0042",
        "1.2k in · 340 out · $0.0042",
        "1.2k in · ~360 out · $0.0042",
    ]


def test_what_was_held_is_said_to_be_the_most_that_was_spent() -> None:
    most = replace(moment("root"), is_most=True)
    assert facts(most, "")[-1] == "1.2k in · 340 out · up to $0.0042"
    unpriced = replace(most, cost=None, current=replace(most.current, spent_tokens=9_300))
    assert facts(unpriced, "")[-1] == "1.2k in · 340 out · up to 9.3k tokens"


def test_the_line_of_work_names_no_key_for_a_question_that_has_the_keyboard() -> None:
    asks = Underway(Phase.WAITING_FOR_APPROVAL, 3)
    assert "F2 answers" in work_line(asks, "", 0, 0, 80, DARK).plain
    assert "F2" not in work_line(asks._replace(answered=True), "", 0, 0, 80, DARK).plain
