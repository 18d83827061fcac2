"""Figures and states as a person says them."""

import pytest

from ikigai_actors.agent.turn.state import IN_A_TURN, Phase, is_working, waits_for
from ikigai_actors.verbs.text.words import SIGNS, activity, counted, duration, in_thousands, money
from supervisors.signals import Status


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(-3, "0 s"), (0.9, "0 s"), (119.9, "119 s"), (120, "2 min"), (7_199, "119 min"), (7_200, "2 h"),
     (172_799, "47 h"), (172_800, "2 d"), (10**9, "11574 d")],
)  # fmt: skip
def test_a_time_is_said_in_its_largest_fitting_unit(seconds: float, said: str) -> None:
    assert duration(seconds) == said


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "0"), (999, "999"), (1_000, "1.0k"), (9_949, "9.9k"), (9_950, "10k"), (41_200, "41k"), (999_499, "999k"),
     (999_500, "1.0M"), (1_300_000, "1.3M")],
)  # fmt: skip
def test_a_large_number_is_said_in_thousands_or_millions(number: int, said: str) -> None:
    assert in_thousands(number) == said


@pytest.mark.parametrize(
    ("dollars", "said"),
    [(0, "$0.00"), (0.00001, "<$0.0001"), (0.00005, "$0.0001"), (0.0042, "$0.0042"), (0.00996, "$0.010"),
     (0.075, "$0.075"), (0.0999, "$0.10"), (1.239, "$1.24"), (12_345.6, "$12,345.60")],
)  # fmt: skip
def test_dollars_have_as_many_places_as_matter(dollars: float, said: str) -> None:
    assert money(dollars) == said


def test_one_thing_has_no_plural() -> None:
    assert [counted(number, "mail") for number in (0, 1, 1_200)] == ["0 mails", "1 mail", "1,200 mails"]


def test_every_state_has_a_sign_that_says_whether_it_works_or_waits_for_a_person() -> None:
    states = [*Phase, *Status, IN_A_TURN, waits_for(["ann"]), "runs bash", "summarising 7 messages"]
    signs = {state: activity(state).sign for state in states}
    assert all(len(sign) == 1 for sign in SIGNS.values())
    assert {signs[state] for state in states if is_working(state)} == {"◐", "▶", "◇", "$"}
    assert [signs[state] for state in ("waiting for approval", "idle", "stopped", "dead")] == ["?", "○", "‖", "×"]
    assert [activity(state).word for state in ("runs bash", waits_for(["ann"]))] == ["running bash", "waits for ann"]


def test_a_model_that_has_begun_to_answer_is_no_longer_thinking() -> None:
    assert activity(Phase.WAITING_FOR_MODEL).word == "thinking"
    assert activity(Phase.WAITING_FOR_MODEL, answering=True).word == "answering"
    assert activity(Phase.RUNNING_TOOLS, answering=True).word == "running tools"


def test_of_many_agents_that_are_awaited_those_that_were_cut_off_are_named_first() -> None:
    names = ["ann", "bob", "cem", "dan (interrupted)"]
    assert waits_for(names) == "waits for dan (interrupted), ann, bob and 1 more"
