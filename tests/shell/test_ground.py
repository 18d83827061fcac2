"""What a terminal answers about its ground, among what is typed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ikigai_actors.shell.ground import Answers, question, without_answer


@pytest.mark.parametrize(
    ("answer", "light"),
    [
        ("\x1b]11;rgb:ffff/ffff/ffff\x07", True),
        ("\x1b]11;rgb:1c1c/1e1e/2626\x1b\\", False),
        ("\x1b]11;rgb:fb/f9/f4\x1b\\", True),
        ("\x1b]11;rgba:0000/0000/0000/ffff\x07", False),
    ],
)
def test_an_answer_says_whether_the_ground_is_light_and_is_no_text(answer: str, light: bool) -> None:
    assert without_answer(f"ab{answer}c") == ("abc", light)


KEYS = st.text(alphabet=st.sampled_from("a]1;\x1b\r"), max_size=8)


@given(KEYS, KEYS, st.integers(0, 30))
def test_an_answer_in_two_parts_is_taken_out_and_every_key_goes_through(before: str, after: str, cut: int) -> None:
    sent, answers = f"{before}\x1b]11;rgb:ffff/ffff/ffff\x07{after}", Answers()
    at = len(before) + min(2 + cut, 24)  # not within the Escape, which is a key until more comes
    parts = [answers.feed(part) for part in (sent[:at], sent[at:], "")]
    assert "".join(text for text, _ in parts) == before + after
    assert [light for _, light in parts if light is not None] == [True]


@given(KEYS)
def test_keys_without_an_answer_go_through_when_nothing_more_comes(keys: str) -> None:
    answers = Answers()
    assert answers.feed(keys)[0] + answers.feed("")[0] == keys


def test_nobody_is_asked_whose_answer_would_not_be_used() -> None:
    assert question({"TERM": "xterm"})
    assert question({"TERM": "linux"}) == question({"TERM": "xterm", "NO_COLOR": "1"}) == ""
