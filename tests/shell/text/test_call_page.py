"""The page of a call that waits for a person: it shows all that is signed."""

from typing import Any

import pytest

from ikigai_actors.agent.turn.calls import PendingCall
from ikigai_actors.shell.text.call_page import SHORT, call_line, call_page, described_call


def call(tool: str, **given: Any) -> PendingCall:
    return PendingCall("agent", 1, "id", tool, given)


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
