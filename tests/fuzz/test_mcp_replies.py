"""MCP servers that answer anything: a result that is text, or an error result; the next call is answered."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ikigai_actors import BadInput, McpServer
from ikigai_actors.agent.toolbox import Toolbox
from ikigai_actors.testing.simulation.messages_api import violations
from ikigai_actors.tools.function import LIMIT, Result
from tests.fuzz.hostile import fuzzed, texts
from tests.fuzz.mutations import mutated
from tests.fuzz.shells import no_defects, refusals_allowed
from tests.kit.mcp_rendezvous import SERVER, Bench


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    made = Bench()
    made.open(McpServer(SERVER, name="t", policy="allow", timeout=5, clock=made.clock))
    yield made
    made.close()


def line(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"


content = st.lists(
    st.one_of(
        st.builds(lambda text: {"type": "text", "text": text}, texts),
        st.builds(lambda text: {"type": "image", "data": text, "mimeType": text}, texts),
        st.builds(lambda text: {"type": "resource_link", "uri": text, "name": text}, texts),
        st.builds(lambda text: {"type": "resource", "resource": {"uri": f"file:///{text}", "text": text}}, texts),
        st.builds(lambda text: {"type": "resource", "resource": {"uri": "file:///x", "blob": text}}, texts),
        st.builds(lambda text: {"type": text, "text": text}, texts),
    ),
    max_size=3,
)

results = st.builds(
    lambda blocks, wrong, extra: {
        "jsonrpc": "2.0",
        "id": "$ID",
        "result": {"content": blocks, "isError": wrong, **extra},
    },
    content,
    st.booleans(),
    st.one_of(st.just({}), st.builds(lambda text: {"structuredContent": {text: text}}, texts)),
)

others = st.one_of(
    st.builds(
        lambda code, message: {"jsonrpc": "2.0", "id": "$ID", "error": {"code": code, "message": message}},
        st.integers(),
        texts,
    ),
    st.builds(
        lambda method, text: {"jsonrpc": "2.0", "method": method, "params": {"level": "error", "data": text}},
        st.sampled_from(["notifications/message", "notifications/tools/list_changed", "notifications/cancelled"]),
        texts,
    ),
    st.builds(
        lambda method, text: {"jsonrpc": "2.0", "id": 7, "method": method, "params": {"messages": text}},
        st.sampled_from(["sampling/createMessage", "roots/list", "elicitation/create", "ping"]),
        texts,
    ),
)


@st.composite
def replies(draw: st.DrawFn) -> bytes:
    """Some lines of a server."""
    data = b""
    for _ in range(draw(st.integers(1, 3))):
        value = draw(st.one_of(results, others))
        data += line(draw(mutated(value)) if draw(st.booleans()) else value)
    if draw(st.integers(0, 4)) == 0:
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(st.binary(max_size=8)) + data[at:]
    return data if data.endswith(b"\n") else data + b"\n"


def is_clean(result: Result) -> bool:
    return isinstance(result.content, str) and len(result.content) <= LIMIT + 200


@fuzzed(25)
@given(replies())
def test_any_reply_is_a_result_and_the_server_goes_on(bench: Bench, reply: bytes) -> None:
    with no_defects():
        assert is_clean(bench.call("say", lines=base64.b64encode(reply).decode()))
        assert bench.call("say", lines="") == Result("said")


@fuzzed(3)
@given(
    st.lists(
        mutated({"name": "look", "description": "Look.", "inputSchema": {"type": "object", "properties": {"a": {}}}}),
        max_size=3,
    ).flatmap(lambda tools: mutated({"jsonrpc": "2.0", "id": "$ID", "result": {"tools": tools}}, most=1))
)
def test_any_list_of_tools_can_be_described_as_services_take_them_or_is_refused(listing: Any) -> None:
    bench = Bench()
    try:
        server = McpServer([*SERVER, base64.b64encode(line(listing)).decode()], name="t", start_timeout=20)
        with refusals_allowed(BadInput):
            bench.open(server)
        offered = Toolbox([])
        left_out = offered.add(bench.tools.values())
        described = [tool for tool in offered.offer({}).read if tool["name"] in bench.tools]
        assert left_out.keys() | {tool["name"] for tool in described} == bench.tools.keys()
        said = [{"role": "user", "content": [{"type": "text", "text": "go"}]}]
        assert violations({"model": "m", "max_tokens": 9, "messages": said, "tools": described}) == []
        json.dumps(described, ensure_ascii=False, allow_nan=False).encode()
    finally:
        bench.close()


@pytest.mark.parametrize("said", [b"\xff\n", b'{"jsonrpc": "2.0", "id": "$ID", \xff}\n'])
def test_a_line_that_is_no_utf8_does_not_make_a_server_unheard(bench: Bench, said: bytes) -> None:
    assert bench.call("say", lines=base64.b64encode(said).decode()) == Result("said")
    assert bench.call("say", lines="") == Result("said")
