"""Lines of MCP servers, without one: what can be mended is read; an answer that cannot be is an error of its call."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.types import JSONRPCError, JSONRPCRequest, JSONRPCResponse

from ikigai_actors.tools.mcp.lines import UNREADABLE_LINE, Heard, read_line, write_line

UNREADABLE_VALUES = {
    "a number of 6,000 digits": "9" * 6_000,
    "lists 3,000 deep": "[" * 3_000 + "]" * 3_000,
    "an end in the middle": '"',
    "text where an object belongs": None,
}

ORDERS = {
    "id first": '{"jsonrpc": "2.0", "id": 5, "result": %s}',
    "id first of all": '{"id":5,"jsonrpc":"2.0","result":%s}',
    "id last": '{"result": %s, "jsonrpc": "2.0", "id": 5}\r',
    "id behind": '{"jsonrpc":"2.0","result":%s,"id":"5"}',
    "id between": '{"id":5,"result":%s,"jsonrpc":"2.0"}',
    "an error": '{"jsonrpc":"2.0","id":5,"error":%s}',
    "a number with a point": '{"jsonrpc":"2.0","id":5.0,"result":%s}',
    "a list of one": '[{"jsonrpc":"2.0","id":5,"result":%s}]',
}


def line(text: str) -> bytes:
    return text.encode() + b"\n"


def result_of(heard: Heard) -> object:
    assert not isinstance(heard, Exception)
    assert isinstance(heard.message, JSONRPCResponse)
    return heard.message.result


@pytest.mark.parametrize("value", UNREADABLE_VALUES.values(), ids=UNREADABLE_VALUES)
@pytest.mark.parametrize("answer", ORDERS.values(), ids=ORDERS)
def test_an_answer_that_cannot_be_read_is_an_error_of_the_request_that_it_answers(
    answer: str, value: str | None
) -> None:
    body = '"done"' if value is None else f'{{"content": [], "structuredContent": {value}}}'
    heard = read_line(line(answer.replace("%s", body)))
    assert not isinstance(heard, Exception)
    assert isinstance(heard.message, JSONRPCError)
    assert (heard.message.id, heard.message.error.data) == (5, UNREADABLE_LINE)
    assert heard.message.error.message


@pytest.mark.parametrize(
    "text",
    [
        "Listening on port 8000",
        '{"level": "info", "id": 5}',
        '{"jsonrpc": "2.0", "id": 5, "method": "ping", "params": [',
        '{"jsonrpc": "2.0", "method": "notifications/message", "params": {"id": 5}',
        '{"jsonrpc": "2.0", "result": {"id": 5}',
        "",
    ],
)
def test_a_line_that_answers_nothing_is_nobodys_error(text: str) -> None:
    assert isinstance(read_line(line(text)), Exception)


@given(st.text(st.characters(exclude_categories=[]) | st.sampled_from('\ud83d\ude00\\u"')))
def test_halves_of_characters_are_replaced_and_all_else_is_read_and_sent_as_it_is(text: str) -> None:
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    answer = {"jsonrpc": "2.0", "id": 5, "result": {"text": text}}
    assert result_of(read_line(line(json.dumps(answer)))) == {"text": whole}
    request = JSONRPCRequest(jsonrpc="2.0", id=5, method="tools/call", params={"text": text})
    assert json.loads(write_line(request))["params"] == {"text": whole}
