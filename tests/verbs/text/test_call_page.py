"""The page of a call that waits for a person: it shows all that is signed."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ikigai_actors.agent.turn.calls import PendingCall
from ikigai_actors.verbs.text.call_page import SHORT, CallPart, call_line, call_page, described_call


def call(tool: str, **arguments: Any) -> PendingCall:
    return PendingCall("agent", 1, "id", tool, arguments)


@pytest.mark.parametrize(
    ("asked", "lines"),
    [
        (call("bash", command="echo a  b\n  rm -rf ~"), ["echo a  b", "  rm -rf ~"]),
        (call("bash", command="ls", timeout=5), ["command: ls", "timeout: 5"]),
        (
            call("edit", file_path="a.py", old_string="a\nb\nc", new_string="a\nB\nc\n", replace_all=True),
            ["file_path: a.py", "replace_all: true", "  a", "- b", "+ B", "  c", "+ "],
        ),
        (call("edit", old_string="a", new_string="a"), ["- a", "+ a"]),
        (call("write", path="a", content="1\n\n2\n"), ["path: a", "content:", "    1", "    ", "    2", "    "]),
        (call("mcp__send", to=["ann", "bob"], urgent=None), ['to: ["ann", "bob"]', "urgent: null"]),
        (call("launch"), []),
    ],
)  # fmt: skip
def test_each_argument_is_shown_whole(asked: PendingCall, lines: list[str]) -> None:
    assert [str(line) for line in call_page(asked)] == lines


def test_what_cannot_be_seen_is_spelled_out() -> None:
    hidden = "a\tb\u200bc\u202ed\xa0e\x1b[2K\U000e0041"
    [line] = call_page(call("bash", command=hidden))
    assert line.text == r"a\x09b\u200bc\u202ed\xa0e\x1b[2K\U000e0041"
    assert call_line(call("run\u200b", text="a  b\u200b")) == r'run\u200b {"text": "a  b\u200b"}'


@pytest.mark.sample(2, "a length each")
@pytest.mark.parametrize("length", [0, SHORT, 100 * SHORT])
def test_nothing_is_cut_however_long_it_is(length: int) -> None:
    command = f"echo {'x' * length}; rm -rf ~"
    assert command in described_call(call("bash", command=command))
    long = call("edit", old_string="\n".join(map(str, range(length))), new_string="new\n" * length)
    page = [str(line) for line in call_page(long)]
    assert [line[2:] for line in page if line[0] == "-" and length] == [*map(str, range(length))]
    assert sum(line == "+ new" for line in page) == length


def test_a_question_that_is_asked_again_shows_how_the_tool_has_changed() -> None:
    again = replace(
        call("pay", sum=5), definition="b" * 64, former="a" * 64, change="-Pay it.\n+Pay it\u200b twice.\n {"
    )
    lines = [
        "The tool, or the build that has it, has changed since you were asked:",
        "- Pay it.",
        r"+ Pay it\u200b twice.",
        "  {",
    ]
    lines += ["It is called with:", "sum: 5"]
    assert [str(line) for line in call_page(again)] == lines
    assert described_call(again) == "\n    ".join(["pay:", *lines])


FILE = "1\n2\n3\n4\nthe oak mast\n6\n7\n8\n9"


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("oak", "pine", ["at line 5:", "  2", "  3", "  4", "- the oak mast", "+ the pine mast", "  6", "  7", "  8"]),
        ("1\n", "", ["at line 1:", "- 1", "  2", "  3", "  4", "  the oak mast"]),
        ("9", "9\n10", ["at line 9:", "  6", "  7", "  8", "  9", "+ 10"]),
        ("ash", "pine", ["- ash", "+ pine"]),  # the file has other text now
    ],
)
def test_an_edit_is_shown_with_the_lines_around_it(old: str, new: str, lines: list[str]) -> None:
    asked = call("edit", file_path="a", old_string=old, new_string=new)
    for text in (FILE, FILE.replace("\n", "\r\n")):
        assert [str(line) for line in call_page(asked, text)] == ["file_path: a", *lines]
    assert described_call(asked, FILE).split("\n    ")[0] == "edit:"


def test_an_edit_everywhere_says_how_often() -> None:
    asked = call("edit", file_path="a", old_string="x", new_string="y", replace_all=True)
    lines = [str(line) for line in call_page(asked, "x\nx\nx")]
    assert lines[-4:] == ["+ y", "  x", "  x", "and the same in 2 more places"]


@given(st.text("ab\n", max_size=40), st.integers(0, 40), st.integers(1, 12), st.text("ab\n", max_size=9))
def test_an_edit_shows_whole_lines_of_the_file_before_and_after_it(text: str, at: int, size: int, new: str) -> None:
    old = text[at : at + size]
    page = call_page(call("edit", file_path="a", old_string=old, new_string=new), text)
    for part, whole in ((CallPart.OLD, text), (CallPart.NEW, text.replace(old, new, 1))):
        lines, shown = whole.split("\n"), [line.text for line in page if line.part in (CallPart.SAME, part)]
        places = range(len(lines) - len(shown) + 1)
        assert not old or any(lines[place : place + len(shown)] == shown for place in places)
