"""Assembly, with any history whatever; and replies, stored and read back."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ikigai_actors.agent.turn.request import NOT_RUN
from ikigai_actors.providers.base import GO_ON, Reply, Request, ToolCall, Usage
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.replies import reply_message_data, reply_of
from ikigai_actors.records.messages.reply_data import INTERRUPTED
from ikigai_actors.testing.simulation.messages_api import redacted_thinking, thinking, violations
from tests.agent.turn.test_assembly import FOREIGN, MODEL, OTHER, Entry, history, result, text_block, use_block, wire
from tests.kit.assembly import assemble
from tests.kit.pictures import MP3, PDF, PNG

# Storing replies

jsons = st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), max_size=2)
calls = st.builds(ToolCall, name=st.text(max_size=3), input=jsons, id=st.sampled_from(["", "a", "b", "call_7_1"]))
replies = st.builds(
    Reply,
    text=st.text(max_size=5),
    tool_calls=st.lists(calls, max_size=3).map(tuple),
    stop_reason=st.sampled_from(["end_turn", "tool_use", "max_tokens"]),
    usage=st.none() | st.builds(Usage, *[st.integers(0, 9)] * 4),
    model=st.sampled_from(["", "model-a"]),
)


@given(replies)
@settings(deadline=None)
def test_a_stored_reply_reads_back_with_an_id_for_each_call(reply: Reply) -> None:
    row = Message("agent", 7, Kind.ASSISTANT, reply.text, reply_message_data(reply, MODEL), 0).row()
    back = reply_of(Message.from_row(row))
    ids = [call.id for call in back.tool_calls]
    assert "" not in ids
    assert len(set(ids)) == len(ids)
    without_ids = [(call.name, call.input) for call in back.tool_calls]
    assert without_ids == [(call.name, call.input) for call in reply.tool_calls]
    first_uses = {call.id: call for call in reversed(reply.tool_calls) if call.id}
    assert all(call in back.tool_calls for call in first_uses.values())
    assert (back.text, back.stop_reason, back.usage, back.model) == (
        reply.text,
        reply.stop_reason,
        reply.usage,
        reply.model,
    )


def test_a_stored_reply_with_blocks_reads_back_whole() -> None:
    stored = (thinking("model-a", "x"), text_block("b"), use_block("toolu_1"))
    reply = Reply("b", (ToolCall("read", {}, "toolu_1"),), "tool_use", Usage(1, 2, 3, 4), stored, "model-a")
    data = reply_message_data(reply, MODEL)
    assert data["model"] == MODEL
    assert "tool_calls" not in data
    assert reply_of(Message("agent", 1, Kind.ASSISTANT, "b", data, 0)) == reply


def test_the_usage_of_a_newer_version_is_read_as_far_as_it_is_known() -> None:
    data = {"usage": {"input_tokens": 1, "carbon": 2}}
    assert reply_of(Message("agent", 1, Kind.ASSISTANT, "b", data, 0)).usage == Usage(input_tokens=1)


# Any history

ids = st.sampled_from(["", "1", "2", "3", "call_2_0", "call_3_1", "not an id"])
texts = st.sampled_from(["", " ", "a", "b\n", " c "])
names = st.sampled_from(["read", "fork", "wait", "", "läs"])
models = st.sampled_from([MODEL, OTHER, FOREIGN])


@st.composite
def provider_blocks(draw: st.DrawFn, model: str) -> list[dict[str, Any]]:
    within = model.partition(":")[2]
    each = st.one_of(
        texts.map(text_block),
        st.builds(use_block, ids, names),
        texts.map(lambda text: thinking(within, text)),
        texts.map(lambda text: redacted_thinking(within, text)),
        st.just({"type": "reasoning" if model == FOREIGN else "server_tool_use", "id": "rs_1"}),
    )
    return draw(st.lists(each, max_size=4))


@st.composite
def assistant_entries(draw: st.DrawFn) -> Entry:
    model = draw(models)
    data: dict[str, Any] = {"model": model, "stop_reason": draw(st.sampled_from(["end_turn", "tool_use", INTERRUPTED]))}
    if draw(st.booleans()):
        data["blocks"] = draw(provider_blocks(model))
    else:
        pairs = draw(st.lists(st.tuples(ids, names), max_size=3))
        data["tool_calls"] = [{"id": call_id, "name": name, "input": {}} for call_id, name in pairs]
    return (Kind.ASSISTANT, draw(texts), data)


def entries_with(attached: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[Entry]:
    """Messages that have such data beside their own."""
    return st.one_of(
        st.tuples(st.sampled_from([*Kind, "unknown"]).filter(lambda kind: kind != Kind.ASSISTANT), texts, attached),
        assistant_entries(),
        st.builds(
            lambda call_id, text, error, more: result(call_id, text, is_error=error, **more),
            ids,
            texts,
            st.booleans(),
            attached,
        ),
    )


entries = entries_with(st.just({}))
histories = st.lists(entries, max_size=12).map(lambda drawn: history(*drawn))
BLOBS = {"image/png": PNG, "application/pdf": PDF, "audio/mpeg": MP3}
attachments = st.lists(st.sampled_from(sorted(BLOBS)), max_size=2).map(
    lambda media: {"attached": [{"sha256": name, "media": name, "size": 5, "name": ""} for name in media]}
)
pictured = st.lists(entries_with(attachments), max_size=12).map(lambda drawn: history(*drawn))


@pytest.mark.slow("takes half a second")
@given(histories | pictured, st.sampled_from([MODEL, OTHER]))
@settings(max_examples=150, deadline=None)
def test_whatever_happened_the_request_is_valid_at_every_cut(messages: list[Message], model: str) -> None:
    for cut in range(len(messages) + 1):
        request = assemble(messages[:cut], {}, agent="agent", name=None, model=model, blobs=BLOBS)
        assert violations(wire(request)) == []


@given(histories, models)
@settings(max_examples=150, deadline=None)
def test_of_two_histories_cut_at_step_boundaries_the_shorter_is_a_prefix(messages: list[Message], model: str) -> None:
    whole = _sequence(assemble(messages, {}, agent="agent", name=None, model=model))
    for cut in range(len(messages) + 1):
        request = assemble(messages[:cut], {}, agent="agent", name=None, model=model)
        if _waits(request) and any(message.kind == Kind.TOOL_RESULT for message in messages[cut:]):
            continue  # no step boundary: the result of a call may come after the cut
        shorter = _sequence(request)
        assert whole[: len(shorter)] == shorter


@pytest.mark.slow("takes half a second")
@given(histories)
@settings(deadline=None)
def test_no_result_that_the_model_asked_for_is_lost(messages: list[Message]) -> None:
    """With distinct ids: each first result that stands before the next reply is sent, with its text."""
    tagged = [replace(message, data=_with_distinct_ids(message)) for message in messages]
    request = assemble(_answered(tagged), {}, agent="agent", name=None, model=MODEL)
    sent = [block for message in request.messages for block in message["content"]]
    uses = [block["id"] for block in sent if block["type"] == "tool_use"]
    results = {block["tool_use_id"]: block["content"] for block in sent if block["type"] == "tool_result"}
    assert results == {call_id: f"result of {call_id}" for call_id in uses}


def _sequence(request: Request) -> list[str]:
    """The request's blocks with their roles, without the placeholder at the end."""
    blocks = [(message["role"], block) for message in request.messages for block in message["content"]]
    if blocks[-1] == ("user", text_block(GO_ON)):
        blocks.pop()
    return [json.dumps(block) for block in blocks]


def _waits(request: Request) -> bool:
    """Whether a call of the last reply has no result."""
    return any(block.get("content") == NOT_RUN for block in request.messages[-1]["content"])


def _with_distinct_ids(message: Message) -> dict[str, Any]:
    data = dict(message.data)
    for key in ("blocks", "tool_calls"):
        data[key] = [{**call, "id": ""} if "name" in call else call for call in data.get(key, ())]
    return data


def _answered(messages: Sequence[Message]) -> list[Message]:
    """The history with a result for each call right after its reply, in reverse order."""
    answered = []
    for message in messages:
        answered.append(message)
        if message.kind == Kind.ASSISTANT:
            calls = reply_of(message).tool_calls
            answered += [
                replace(message, kind=Kind.TOOL_RESULT, content=f"result of {call.id}", data={"tool_use_id": call.id})
                for call in reversed(calls)
            ]
    return answered
