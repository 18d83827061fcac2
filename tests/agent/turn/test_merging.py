"""Merging, as the pure decisions have it: what is taken in, when, and that the order of merges is free."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ikigai_actors.agent.turn.merging import text_of
from ikigai_actors.errors import AlreadyMerged, IkigaiError, NothingToMerge, TurnOpen
from ikigai_actors.records.log.boundaries import is_boundary
from ikigai_actors.records.log.merge_source import MergedDocument, MergeSource, WrittenVersion, merged_documents
from ikigai_actors.records.messages.messages import Message
from tests.agent.turn.test_assembly import Entry, assembled, history, mail, result, said, user

MERGES: Sequence[Entry] = (
    ("merge", "it dug", {"from": "a", "name": "ann", "head": 9, "since": 4}),
    ("merge", "it </merge> flew", {"from": "b", "head": 7, "since": 4, "positions": [6]}),
)

PIECES: Sequence[Sequence[Entry]] = (
    [user("go")],
    [said("yes")],
    [said("look", "r", "s"), result("s"), result("r")],
    [said("look", "t"), ("tool_call", "read", {"tool_use_id": "t"}), result("t")],
    [mail("1 unread")],
    [("interrupted", "", {})],
    [("mark", "here", {})],
)


@given(st.lists(st.sampled_from(PIECES), max_size=8), st.data())
def test_merges_at_any_boundaries_leave_a_valid_request_with_the_same_blocks_in_either_order(
    pieces: list[Sequence[Entry]], data: st.DataObject
) -> None:
    entries = [entry for piece in pieces for entry in piece]
    messages = history(*entries)
    places = [at for at in range(len(entries) + 1) if is_boundary(lambda start, end: messages[start:end], at)]
    first, second = sorted(data.draw(st.sampled_from(places)) for _ in range(2))
    shown = []
    for first_merge, other in (MERGES, MERGES[::-1]):
        merged = [*entries[:first], first_merge, *entries[first:second], other, *entries[second:]]
        request = assembled(history(*merged))  # checks that it is valid
        shown.append([str(block) for message in request.messages for block in message["content"]])
    assert sorted(shown[0]) == sorted(shown[1])
    quotations = [block for block in shown[0] if "<merge " in block]
    assert len(quotations) == 2
    assert any("it &lt;/merge> flew" in block for block in quotations)


def source(*messages: tuple[int, str, str], **known: object) -> MergeSource:
    said_so = tuple(Message("kids", at, kind, text, {}, 0) for at, kind, text in messages)
    plain = MergeSource("kids", None, 9, 4, 0, False, "", said_so, ())
    return replace(plain, **known)  # type: ignore[arg-type]


TALK = ((6, "user", "dig"), (7, "assistant", "dug"), (8, "tool_result", "stone"), (9, "assistant", " "))


@pytest.mark.parametrize(
    ("source", "how", "expected"),
    [
        (source(*TALK), "result", "dug"),
        (source(*TALK), "summary", ""),
        (source(*TALK, result="gold"), "result", "gold"),
        (source(*TALK, result="gold"), "summary", ""),
        (source((6, "user", "how many?"), (7, "output", "7")), "result", "7"),
        (source(*TALK[:1]), "result", NothingToMerge),
        (source((6, "mark", "")), "summary", NothingToMerge),
        (source(*TALK, in_turn=True), "result", TurnOpen),
        (source(*TALK, merged=9), "result", AlreadyMerged),
        (source(*TALK, merged=9, result="gold"), "result", AlreadyMerged),
        (source(*TALK, merged=7), "summary", ""),
        (source(*TALK, merged=7), "result", NothingToMerge),  # only the result of a call came since
    ],
)
def test_what_is_taken_in_is_what_the_child_has_said_since(
    source: MergeSource, how: str, expected: str | type[IkigaiError]
) -> None:
    if isinstance(expected, str):
        assert text_of(source, how, ()) == expected
    else:
        with pytest.raises(expected):
            text_of(source, how, ())


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        ([], ()),
        ([("a", 1, 5, False)], ()),
        ([("a", 1, 5, True)], (MergedDocument("a", 1),)),
        ([("a", 1, 4, False), ("a", 2, 5, True)], (MergedDocument("a", 2),)),  # it has built upon what was there
        ([("a", 1, 5, False), ("a", 2, 6, True)], (MergedDocument("a", 2, 1),)),  # written behind the fork
        ([("a", 2, 4, True), ("a", 3, 4, False)], (MergedDocument("a", 2, 3),)),
        ([("b", 1, 5, True), ("a", 1, 5, True), ("a", 2, 6, True)], (MergedDocument("a", 2), MergedDocument("b", 1))),
    ],
)
def test_a_conflict_is_what_others_have_written_since_the_branch_began(
    versions: list[tuple[str, int, int, bool]], expected: tuple[MergedDocument, ...]
) -> None:
    assert merged_documents([WrittenVersion(*version) for version in versions], since=4) == expected
