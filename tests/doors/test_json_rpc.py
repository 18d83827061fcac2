"""Lines of a client: whatever they are, there is an answer, and the connection goes on."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ikigai_actors.doors.json_rpc import (
    INTERNAL,
    GivenUp,
    Params,
    RpcConnection,
    RpcError,
    RpcRequest,
    RpcResponse,
    message_of,
    parsed,
)
from ikigai_actors.doors.lines import LineSplitter
from ikigai_actors.errors import BadInput
from tests.kit.doors import RawClient

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)
NEARLY = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": JSON,
        "id": JSON,
        "method": JSON | st.just("ping"),
        "params": JSON,
        "result": JSON,
        "error": JSON,
    },
)


class Echo:
    """Answers with what it was asked, or as a method says."""

    def __init__(self) -> None:
        self.noted: list[str] = []
        self.hangs = asyncio.Event()
        self.given_up = GivenUp.REFUSED

    async def request(self, request: RpcRequest, notify: Callable[[str, Params], object]) -> Any:
        match request.method:
            case "hang":
                await self.hangs.wait()
            case "refuse":
                raise BadInput("not so")
            case "break":
                raise ZeroDivisionError("secret")
            case "report":
                notify("half", {"of": "it"})
        return {"was": request.method}

    def notified(self, request: RpcRequest) -> None:
        self.noted.append(request.method)

    def give_up(self, request: RpcRequest) -> GivenUp:
        if self.given_up is GivenUp.ANSWERED:
            self.hangs.set()
        return self.given_up


class RpcClient(RawClient):
    """A client of a server by JSON-RPC."""

    def __init__(self, server: Echo) -> None:
        super().__init__(self._connected(server))

    def _connected(self, server: Echo) -> Callable[[Callable[[Mapping[str, Any]], object]], RpcConnection]:
        def connect(hear: Callable[[Mapping[str, Any]], object]) -> RpcConnection:
            self.connection = RpcConnection(server, hear)
            return self.connection

        return connect


def said(read: Callable[[], object]) -> object:
    """A message, or why there is none."""
    try:
        return read()
    except RpcError as error:
        return str(error)


@given(NEARLY | JSON)
def test_any_json_is_a_message_or_is_refused(value: object) -> None:
    assert isinstance(said(lambda: message_of(value)), RpcRequest | RpcResponse | str)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_are_refused(line: bytes) -> None:
    assert isinstance(said(lambda: parsed(line)), RpcRequest | RpcResponse | str)


@pytest.mark.parametrize("line", [b"[" * 100_000, b"1" * 100_000, b"[]", b'{"id": true, "method": "x"}', b"\xff"])
def test_lines_that_no_parser_likes_are_refused(line: bytes) -> None:
    with pytest.raises(RpcError):
        parsed(line)


def test_a_connection_answers_after_each_kind_of_trouble() -> None:
    async def scenario() -> None:
        client = RpcClient(echo := Echo())
        client.say(b"no json")
        assert (await client.heard.get())["error"]["code"] == -32700
        client.say({"id": 1, "method": 7})
        assert (await client.heard.get())["error"]["code"] == -32600
        assert (await client.ask("refuse"))["error"] == {"code": -32602, "message": "not so"}
        assert (await client.ask("break"))["error"] == {"code": -32603, "message": INTERNAL}
        client.say({"id": "a", "method": "report"})
        heard = [await client.heard.get() for _ in range(2)]
        assert [message.get("method") for message in heard] == ["half", None]
        client.say({"method": "noted"})
        assert (await client.ask("fine"), echo.noted) == ({"was": "fine"}, ["noted"])

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("how", "answer"),
    [
        (GivenUp.REFUSED, {"error": {"code": -32800, "message": "Request cancelled"}}),
        (GivenUp.ANSWERED, {"result": {"was": "hang"}}),
    ],
)
def test_a_server_says_what_a_request_gets_that_its_client_gives_up(how: GivenUp, answer: dict[str, Any]) -> None:
    async def scenario() -> None:
        echo = Echo()
        echo.given_up = how
        client = RpcClient(echo)
        client.say({"id": 5, "method": "hang"})
        client.say({"id": 5, "method": "hang"})
        assert "is not answered yet" in (await client.heard.get())["error"]["message"]
        client.say({"method": "$/cancel_request", "params": {"requestId": 5}})
        client.say({"method": "$/cancel_request", "params": {"requestId": "another"}})
        assert await client.heard.get() == {"jsonrpc": "2.0", "id": 5, **answer}
        client.say({"id": 5, "method": "fine"})
        assert await client.heard.get() == {"jsonrpc": "2.0", "id": 5, "result": {"was": "fine"}}

    asyncio.run(scenario())


def test_the_client_is_asked_and_answers_or_refuses() -> None:
    async def scenario() -> None:
        client = RpcClient(Echo())
        loop = asyncio.get_running_loop()
        for answer, end in (({"result": 7}, 7), ({"error": {"code": 1, "message": "no"}}, "no")):
            asked = loop.create_task(client.connection.ask("question", {}))
            number = (await client.heard.get())["id"]
            client.say({"id": "another", "result": 0})
            client.say({"id": number, **answer})
            client.say({"id": number, **answer})
            await asyncio.wait([asked])
            assert (asked.result() if asked.exception() is None else str(asked.exception())) == end

    asyncio.run(scenario())


@given(st.binary(max_size=200), st.lists(st.integers(0, 40), max_size=12))
def test_lines_come_whole_however_they_are_cut(data: bytes, cuts: list[int]) -> None:
    splitter, got = LineSplitter(), list[bytes | None]()
    rest = data
    for cut in cuts:
        got += splitter.feed(rest[:cut])
        rest = rest[cut:]
    got += splitter.feed(rest)
    assert got == [line for line in data.split(b"\n")[:-1] if line.strip()]


def test_a_line_that_is_too_long_is_skipped_and_the_next_one_is_read() -> None:
    splitter = LineSplitter(10)
    assert list(splitter.feed(b"x" * 8)) == []
    assert list(splitter.feed(b"x" * 8)) == []
    assert list(splitter.feed(b"x\n" + json.dumps({}).encode() + b"\n")) == [None, b"{}"]
