"""Boundaries: where a history may be cut, by a summary or a fork."""

from collections.abc import Sequence
from typing import Any

import pytest

from ikigai_actors.records.log.boundaries import is_boundary, nearest
from ikigai_actors.records.messages.messages import Message

Draft = tuple[str, dict[str, Any]]

USER: Draft = ("user", {})
SAID: Draft = ("assistant", {})
FORKED: Draft = ("fork", {"child": "b"})
BORN: Draft = ("fork", {"parent": "a"})


def asked(*calls: str) -> Draft:
    """A reply with calls."""
    return "assistant", {"tool_calls": [{"id": call, "name": "read", "input": {}} for call in calls]}


def about(kind: str, call: str) -> Draft:
    """A message about a call."""
    return kind, {"tool_use_id": call, "name": "read"}


def history(drafts: Sequence[Draft]) -> list[Message]:
    return [Message("a", place, kind, "", data, 0) for place, (kind, data) in enumerate(drafts, 1)]


def boundaries(*drafts: Draft) -> list[int]:
    messages = history(drafts)
    return [at for at in range(len(drafts) + 1) if is_boundary(lambda start, end: messages[start:end], at)]


@pytest.mark.parametrize(
    ("expected", "drafts"),
    [
        ([0], ()),
        ([0, 1, 2, 3], (USER, SAID, ("mark", {}))),
        ([0, 1, 4, 5], (USER, asked("c"), about("tool_call", "c"), about("tool_result", "c"), SAID)),
        ([0, 1, 4], (USER, asked("c", "d"), about("tool_result", "d"), about("tool_result", "c"))),
        ([0, 1], (USER, asked("c"), about("approval", "c"))),
        ([0, 1], (USER, asked("c"), about("tool_result", "d"))),
        ([0, 1, 3, 4], (USER, asked("c"), ("interrupted", {}), ("mark", {}))),
        ([0, 1, 4], (USER, asked("c"), about("tool_call", "c"), USER)),
        ([0, 1, 3], (USER, asked("c"), ("error", {}))),
        ([0, 1, 4], (USER, asked("c"), FORKED, ("rewind", {"mark": 9}))),
        ([0, 1, 3, 4], (USER, asked("c"), ("clear", {}), SAID)),
        ([0, 1, 2, 3, 4], (USER, SAID, ("configure", {}), ("mark", {}))),
        ([0, 1, 2, 4], (USER, SAID, ("clear", {}), ("configure", {}))),
        ([0, 1, 4, 5], (USER, asked("c", "d"), BORN, about("tool_result", "c"), SAID)),
        ([0, 1, 5], (USER, asked("c", "d"), BORN, about("tool_result", "c"), USER)),
        ([0, 1, 4], (USER, asked("c"), BORN, ("configure", {}))),
        ([0, 1, 3, 4], (USER, asked("c"), BORN, USER)),
        ([0, 1, 4, 5], (USER, asked("c"), BORN, ("configure", {}), SAID)),
        ([0, 1, 2, 3], (USER, ("assistant", {"stop_reason": "interrupted", "tool_calls": [{"id": "c"}]}), USER)),
    ],
)
def test_a_history_may_be_cut_where_no_step_is_in_the_midst(expected: list[int], drafts: Sequence[Draft]) -> None:
    assert boundaries(*drafts) == expected


def test_a_reply_is_found_however_many_messages_stand_behind_it() -> None:
    calls = [str(number) for number in range(100)]
    begun = [about("tool_call", call) for call in calls]
    ended = [about("tool_result", call) for call in calls]
    assert boundaries(USER, asked(*calls), *begun, *ended) == [0, 1, 202]


def test_the_nearest_boundaries_are_told_before_and_behind_a_position() -> None:
    messages = history([USER, asked("c"), about("tool_call", "c"), about("tool_result", "c"), USER, asked("d")])

    def read(start: int, end: int) -> list[Message]:
        return messages[start:end]

    assert nearest(read, 3, 6) == (1, 4)
    assert nearest(read, 6, 6) == (5, None)
    assert nearest(read, 40, 6) == (5, None)
