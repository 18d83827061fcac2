"""The page of a diff: pure, so histories are made up here."""

import pytest

from ikigai_actors.records.log.diff import Diff, Tail
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.verbs.text.diff import SIDE_BY_SIDE, diff_page
from ikigai_actors.verbs.text.wrap import width


def tail(agent: str, *said: tuple[str, str], forgets: bool = False) -> Tail:
    messages = tuple(Message(agent, place, kind, text, {}, 0) for place, (kind, text) in enumerate(said, 5))
    return Tail(agent, agent, 4 + len(said), messages, forgets)


TEA = tail("tea", ("user", "which tea?"), ("assistant", "green"), ("user", "why?"))
COFFEE = tail("cup", ("user", "a word " * 60), ("assistant", "\x1b[2Jコーヒー" * 9), forgets=True)


def test_the_steps_of_two_histories_stand_side_by_side() -> None:
    lines = diff_page(Diff(4, "tea", TEA, tail("mug", ("user", "how hot?"), ("error", "too hot"))), 60)
    assert lines == [
        "In common: the messages up to 4.",
        "",
        "tea: 3 more                  │ mug: 2 more",
        "   5  user  which tea?       │    5  user  how hot?",
        "                             │    6  error  too hot",
        "   6  assistant  green       │",
        "   7  user  why?             │",
    ]


@pytest.mark.parametrize(
    ("said", "lines"),
    [
        ("für alle Größen gibt es Tee", ["   5  user  für alle", "      Größen gibt es", "      Tee"]),
        ("お茶はいかがですか", ["   5  user  お茶はい", "      かがですか"]),
        ("a\u0301 wörd-longer-than-a-line", ["   5  user  a\u0301 wörd-l", "      onger-than-a-l", "      ine"]),
        (
            "word " * 3 + "x" * 30,
            ["   5  user  word", "      word word xxxx", "      xxxxxxxxxxxxxx", "      xxxxxxxxxxxx"],
        ),
    ],
)
def test_long_texts_are_cut_between_words_by_the_columns_that_they_take(said: str, lines: list[str]) -> None:
    page = diff_page(Diff(4, "tea", tail("tea", ("user", said)), tail("cup")), 20)
    assert [line for line in page if line.startswith(("   5", "      "))] == lines


@pytest.mark.parametrize("columns", [20, SIDE_BY_SIDE - 1, SIDE_BY_SIDE, 81, 200])
def test_no_line_is_wider_than_the_terminal_and_none_moves_its_cursor(columns: int) -> None:
    lines = diff_page(Diff(0, None, TEA, COFFEE), columns)
    assert max(map(width, lines)) <= columns
    assert any("│" in line for line in lines) is (columns >= SIDE_BY_SIDE)
    text = " ".join(" ".join(lines).split())
    assert text.startswith("They have nothing in common.")
    assert "\x1b" not in text
    assert "forgets" in text
