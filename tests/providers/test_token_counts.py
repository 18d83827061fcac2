"""What services report of tokens, in three protocols: a paid reply is never thrown away because of its counts."""

import logging
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ikigai_actors.providers.anthropic_reply import MessagesReply
from ikigai_actors.providers.base import Reply, Spent, Usage
from ikigai_actors.providers.checked import checked_reply
from ikigai_actors.providers.openai_chat import ChatReply
from ikigai_actors.providers.openai_responses import ResponsesReply
from ikigai_actors.providers.prices import Price
from ikigai_actors.providers.streamed_reply import StreamedReply
from ikigai_actors.providers.token_counts import MOST_TOKENS, counted_tokens
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.replies import spent_data, spent_of
from tests.kit.openai_server.server import chat_text, chunk, message_item, response_events

COUNTS: list[tuple[Any, int]] = [
    (25, 25), (25.0, 25), ("25", 25), (25.4, 26), ("25.4", 26), (" 25 ", 25), (0, 0), (-0.0, 0), (None, 0), (-25, 0),
    ("-25", 0), ("many", 0), ("", 0), (True, 0), ([25], 0), ({"n": 25}, 0), (math.nan, 0), (math.inf, 0), ("1e400", 0),
    (10**16, 0), (MOST_TOKENS, MOST_TOKENS),
]  # fmt: skip


def messages(count: Any) -> tuple[StreamedReply, list[Any]]:
    start = {"type": "message_start", "message": {"model": "m", "content": [], "usage": {"input_tokens": count}}}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": count}}
    return MessagesReply(), [start, end]


def chat(count: Any) -> tuple[StreamedReply, list[Any]]:
    usage = {"prompt_tokens": count, "completion_tokens": count}
    return ChatReply(), [*chat_text("Hi"), chunk({}, None) | {"choices": [], "usage": usage}]


def responses(count: Any) -> tuple[StreamedReply, list[Any]]:
    usage = {"input_tokens": count, "output_tokens": count}
    return ResponsesReply(), response_events(message_item("Hi"), usage=usage)


@pytest.mark.parametrize("protocol", [messages, chat, responses])
@pytest.mark.parametrize(("form", "count"), COUNTS, ids=str)
def test_a_count_is_what_it_means_whatever_its_form(protocol: Any, form: Any, count: int) -> None:
    reply, events = protocol(form)
    for event in events:
        list(reply.deltas_of(event))
    assert checked_reply(reply.reply()).usage == Usage(count, count)


def test_what_is_no_count_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        for wrong in (-1, "none", -2):
            reply = MessagesReply()
            usage = {"input_tokens": 3, "cache_read_input_tokens": wrong}
            list(reply.deltas_of({"type": "message_start", "message": {"model": "m", "content": [], "usage": usage}}))
    about = [record.getMessage() for record in caplog.records if "cache_read_input_tokens" in record.getMessage()]
    assert len(about) <= 1  # another test may have said it


@given(st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers()))
def test_a_count_is_a_number_of_tokens_or_none(value: Any) -> None:
    count = counted_tokens(value)
    assert count is None or 0 <= count <= MOST_TOKENS
    if count is not None:
        assert checked_reply(Reply(usage=Usage(count))).usage == Usage(count)


def test_what_a_cache_keeps_for_an_hour_costs_twice_its_input() -> None:
    reply = MessagesReply()
    written = {"ephemeral_5m_input_tokens": 400_000, "ephemeral_1h_input_tokens": 600_000}
    usage = {"input_tokens": 0, "cache_creation_input_tokens": 1_000_000, "cache_creation": written}
    list(reply.deltas_of({"type": "message_start", "message": {"model": "m", "content": [], "usage": usage}}))
    list(reply.deltas_of({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}))
    counted = reply.reply().usage
    assert counted == Usage(0, 0, 1_000_000, 0, 600_000)
    assert counted.all_tokens == 1_000_000
    sonnet = Price(3_000_000, 15_000_000, 3_750_000, 300_000)
    assert sonnet.of(counted) == 400_000 * 3.75 + 600_000 * 6
    assert sonnet.of(Usage(0, 0, 1_000_000)) == 3_750_000
    assert sonnet.of(Usage(0, 0, 5, 0, 9)) == 30  # a service that counts more for an hour than in all


def test_the_log_keeps_the_tokens_of_an_hour_and_no_others() -> None:
    for usage in (Usage(1, 2, 3, 4), Usage(1, 2, 3, 4, 2)):
        data = spent_data(Spent(usage, "m"))
        assert ("cache_creation_1h_input_tokens" in data["usage"]) is bool(usage.cache_creation_1h_input_tokens)
        assert spent_of(Message("me", 1, Kind.ASSISTANT, "", data, 0)) == Spent(usage, "m")
