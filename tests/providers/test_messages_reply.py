"""The reply in a stream of the Messages API: events to blocks, without a server."""

from collections.abc import Mapping
from typing import Any

import pytest

from ikigai_actors.providers.anthropic_reply import MessagesReply
from ikigai_actors.providers.base import Delta, Reply, Spent, ToolCall, Usage
from ikigai_actors.providers.malformed import MalformedStreamError
from ikigai_actors.providers.streamed_reply import BrokenArgumentsError, HalfACallError

START = {"type": "message_start", "message": {"model": "m", "content": [], "usage": {"input_tokens": 3}}}
TEXT = {"type": "text", "text": ""}
CALL = {"type": "tool_use", "id": "c", "name": "wipe", "input": {}}


def begins(block: Mapping[str, Any], place: int = 0) -> dict[str, Any]:
    return {"type": "content_block_start", "index": place, "content_block": dict(block)}


def goes_on(kind: str, text: str, place: int = 0) -> dict[str, Any]:
    name = {"input_json_delta": "partial_json"}.get(kind, kind.removesuffix("_delta"))
    return {"type": "content_block_delta", "index": place, "delta": {"type": kind, name: text}}


def ends(why: str = "tool_use") -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": why}, "usage": {"output_tokens": 5}}


def heard(*events: Mapping[str, Any]) -> tuple[MessagesReply, list[Delta]]:
    arriving = MessagesReply()
    return arriving, [delta for event in events for delta in arriving.deltas_of(event)]


def read(*events: Mapping[str, Any]) -> Reply:
    return heard(*events)[0].reply()


@pytest.mark.parametrize(
    "pieces",
    [
        ['{"only": "/tmp/scr'],
        ['{"tea": "Assam", ', '"kilos": 1'],
        ['{"n":'],
        ["[1]"],
        ['{"a": 1} rm'],
        ['{"a": 1, ', '"a": 2}'],
    ],
)
def test_half_a_call_never_runs_and_is_asked_for_again(pieces: list[str]) -> None:
    closed = {"type": "content_block_stop", "index": 0}
    with pytest.raises(BrokenArgumentsError, match="the arguments of the call of 'wipe' are no JSON"):
        read(START, begins(CALL), *(goes_on("input_json_delta", piece) for piece in pieces), closed, ends())


def test_a_call_that_is_cut_is_half_a_call_even_where_its_arguments_look_whole() -> None:
    for pieces in ([], [goes_on("input_json_delta", "{}")]):
        with pytest.raises(HalfACallError) as raised:
            read(START, begins(CALL), *pieces, ends("max_tokens"))
        assert (raised.value.name, raised.value.why) == ("wipe", "max_tokens")


def test_arguments_come_in_pieces_at_once_or_not_at_all() -> None:
    pieces = (goes_on("input_json_delta", piece) for piece in ('{"a": ', "[1, ", "2]}"))
    whole = {**CALL, "id": "d", "input": {"b": 1}}
    without = {"type": "tool_use", "id": "e", "name": "list"}
    reply = read(START, begins(CALL), *pieces, begins(whole, 1), begins(without, 2), ends())
    assert reply.tool_calls == (
        ToolCall("wipe", {"a": [1, 2]}, "c"),
        ToolCall("wipe", {"b": 1}, "d"),
        ToolCall("list", {}, "e"),
    )
    assert [block["input"] for block in reply.blocks] == [{"a": [1, 2]}, {"b": 1}, {}]


def test_texts_that_begin_with_a_block_are_said_too() -> None:
    said = {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": {"n": 1}}}
    arriving, deltas = heard(
        START, begins({"type": "text", "text": "One"}), goes_on("text_delta", " two"), said, ends("end_turn")
    )
    assert [delta.text for delta in deltas if delta.spent is None] == ["One", " two"]
    assert arriving.text == arriving.reply().text == "One two"
    assert arriving.reply().blocks == ({"type": "text", "text": "One two", "citations": [{"n": 1}]},)


def test_counts_are_told_as_they_come_and_one_that_is_left_out_stays() -> None:
    _, deltas = heard(START, ends("end_turn"))
    assert deltas == [
        Delta(spent=Spent(Usage(input_tokens=3), "m")),
        Delta(spent=Spent(Usage(input_tokens=3, output_tokens=5), "m")),
    ]


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([begins(TEXT)], "content_block_start before message_start"),
        ([{"choices": []}], "type of an event"),
        ([START, goes_on("text_delta", "x", 9)], "block 9 has not begun"),
        ([START, begins(TEXT), begins(CALL)], "block 0 begins twice"),
        ([START, begins(CALL), START, ends()], "the message begins twice"),
        ([START, begins(CALL), goes_on("text_delta", "x")], "text for a block of type tool_use"),
        ([START, begins({"type": "thinking", "thinking": ""}), ends("end_turn")], "signature of a block"),
    ],
)
def test_what_is_not_in_the_form_of_the_protocol_is_named(events: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(MalformedStreamError, match=message):
        read(*events)
