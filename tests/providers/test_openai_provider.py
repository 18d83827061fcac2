"""The OpenAI provider over real HTTP, against a server that is stricter than the real ones, and as odd as the worst."""

import asyncio
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, get_type_hints

import pytest
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from openai.types.responses.response_retrieve_params import ResponseRetrieveParamsStreaming
from pydantic import TypeAdapter

from ikigai_actors import ActorSystem
from ikigai_actors.errors import BadInput, ProviderError
from ikigai_actors.providers.base import Delta, KeptReply, OnDelta, Reply, Request, Spent, ToolCall, Usage
from ikigai_actors.providers.configuration import parse_configuration
from ikigai_actors.providers.openai import OpenAIProvider
from tests.kit.messages_server.server import Refuses, Sends, Waits
from tests.kit.openai_server.server import (
    Event,
    OpenAIServer,
    Streams,
    call_item,
    call_piece,
    chat_text,
    chunk,
    counted,
    message_item,
    response_events,
)

pytest.importorskip("openai", reason="OpenAIProvider needs the extra openai")

KEY = "sk-proj-secret-0123456789abcdef"
HELLO: tuple[dict[str, Any], ...] = ({"role": "user", "content": [{"type": "text", "text": "Hello"}]},)
READ = {"name": "read", "description": "Read a file.", "input_schema": {"type": "object", "properties": {}}}


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        yield running


def request(messages: Any = HELLO, model: str = "", system: str = "", tools: Any = (), **settings: Any) -> Request:
    return Request("uuid", "name", model, system, messages, tools, settings)


def ask(server: OpenAIServer, asked: Request | None = None, **options: Any) -> tuple[Reply, list[Delta]]:
    """One request on a loop and with a provider of its own: the reply, and the pieces in which it came."""
    deltas: list[Delta] = []
    return ask_and_hear(server, deltas.append, asked, **options), [delta for delta in deltas if delta.spent is None]


def ask_and_hear(
    server: OpenAIServer,
    on_delta: OnDelta,
    asked: Request | None = None,
    *,
    loop: Callable[[], asyncio.AbstractEventLoop] | None = None,
    **options: Any,
) -> Reply:
    async def run() -> Reply:
        arguments = {"model": "m", "base_url": server.url, "api_key": KEY, **options}
        provider = OpenAIProvider(**arguments)
        try:
            return await provider.respond(asked or request(), on_delta)
        finally:
            await provider.close()

    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(run())


def failure(server: OpenAIServer, asked: Request | None = None, **options: Any) -> ProviderError:
    with pytest.raises(ProviderError) as raised:
        ask(server, asked, **options)
    return raised.value


def answered(server: OpenAIServer, *events: Event | bytes, **how: Any) -> Reply:
    server.answers.append(Streams(events, **how))
    return ask(server, request(tools=(READ,)))[0]


def result(call_id: str, text: str = "done", **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": text, **more}]}


# Chat completions


def test_a_reply_is_streamed_and_arrives_whole(server: OpenAIServer) -> None:
    cost = counted(30, 7, cached_tokens=20, cache_write_tokens=4)
    server.answers.append(Streams([*chat_text("Hello to you"), cost]))
    heard: list[Delta] = []
    reply = ask_and_hear(server, heard.append)
    usage = Usage(6, 7, 4, 20)
    assert heard == [Delta("Hello"), Delta(" to"), Delta(" you"), Delta(spent=Spent(usage, "m-1"))]
    blocks = ({"type": "text", "text": "Hello to you"},)
    assert reply == Reply("Hello to you", (), "end_turn", usage, blocks, "m-1")


def test_the_request_says_what_the_agent_is_set_to(server: OpenAIServer) -> None:
    thinking = {"type": "adaptive", "effort": "low"}
    settings = {"max_tokens": 9, "temperature": 0.5, "top_p": 0.9, "stop_sequences": ["END"], "thinking": thinking}
    ask(server, request(model="n", system="Be brief.", tools=(READ,), colour="red", **settings))
    ask(server, request(system=" "))
    function = {"name": "read", "description": "Read a file.", "parameters": READ["input_schema"]}
    streamed = {"stream": True, "stream_options": {"include_usage": True}}
    said = {"role": "user", "content": "Hello"}
    assert server.requests == [
        {
            "model": "n",
            "messages": [{"role": "system", "content": "Be brief."}, said],
            **streamed,
            "max_tokens": 9,
            "temperature": 0.5,
            "top_p": 0.9,
            "stop": ["END"],
            "reasoning_effort": "low",
            "tools": [{"type": "function", "function": function}],
        },
        {"model": "m", "messages": [said], **streamed},
    ]
    assert server.keys == [KEY, KEY]


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.parametrize("api", ["chat", "responses"])
def test_further_fields_are_sent_as_they_are_unless_the_request_says_them_itself(api: str) -> None:
    fields = {"seed": 5, "metadata": {"user": "ann"}, "temperature": 0.5}
    with OpenAIServer(strict=False) as server:
        server.answers.append(Streams(chat_text("ok") if api == "chat" else response_events(message_item("ok"))))
        ask(server, request(options=fields), api=api)
        [sent] = server.requests
        assert {name: sent[name] for name in fields} == fields
        assert "options" not in sent
        assert "extra_body" not in sent
        for wrong, message in (
            ({"max_completion_tokens": 5}, "Use the setting max_tokens"),
            ({"stream": False}, "has 'stream'"),
            ({"model": "n"}, "Use the setting model"),
            ({"n_predict": 5}, "Use the setting max_tokens"),
            ({"n": 50}, "has 'n', which could make the service write more than the one reply"),
            ({"best_of": 2}, "has 'best_of'"),
            ({"background": True}, "has 'background'"),
            ({"extra_body": {"seed": 5, "n": 2}}, "has 'n'"),
        ):
            assert message in str(failure(server, request(options=wrong), api=api))
        assert len(server.requests) == 1


def test_calls_and_results_go_back_in_the_form_of_the_protocol(server: OpenAIServer) -> None:
    uses = [
        {"type": "text", "text": "I read."},
        {"type": "tool_use", "id": "call_1", "name": "read", "input": {"path": "ä"}},
        {"type": "tool_use", "id": "x" * 50, "name": "n" * 100, "input": {}},
    ]
    results = [*result("call_1")["content"], *result("x" * 50, "no such file", is_error=True)["content"]]
    later = [*results, {"type": "text", "text": "Go"}, {"type": "text", "text": "on."}]
    history = (*HELLO, {"role": "assistant", "content": uses}, {"role": "user", "content": later})
    long = {**READ, "name": "n" * 100}
    server.answers.append(Streams([chunk(call_piece(0, "{}", f"{'n' * 55}_{'0' * 8}")), chunk({}, "tool_calls")]))
    ask(server, request(history, tools=(READ, long)))
    _, assistant, first, second, said = server.requests[0]["messages"]
    called, other = assistant["tool_calls"]
    assert called == {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"path": "ä"}'}}
    assert len(other["id"]) == 9
    assert first == {"role": "tool", "tool_call_id": "call_1", "content": "done"}
    assert second == {"role": "tool", "tool_call_id": other["id"], "content": "Error: no such file"}
    assert said == {"role": "user", "content": "Go\n\non."}
    sent = server.requests[0]["tools"][1]["function"]["name"]
    server.answers.append(Streams([chunk(call_piece(0, "{}", sent)), chunk({}, "tool_calls")]))
    assert ask(server, request(tools=(long,)))[0].tool_calls == (ToolCall("n" * 100),)


TWO = [ToolCall("read", {"a": 1}, "c1"), ToolCall("read", {"b": 2}, "c2")]
WITHOUT_IDS = [ToolCall("read", {"a": 1}), ToolCall("read", {"b": 2})]


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        pytest.param(
            [
                call_piece(0, "", "read", "c1"),
                call_piece(0, '{"a":'),
                call_piece(0, " 1}"),
                call_piece(1, '{"b"', "read", "c2"),
                call_piece(1, ": 2}"),
            ],
            TWO,
            id="as documented",
        ),
        pytest.param(
            [call_piece(0, '{"a": 1}', "read", "c1"), call_piece(1, '{"b": 2}', "read", "c2")], TWO, id="whole calls"
        ),
        pytest.param(
            [call_piece(None, '{"a": 1}', "read", "c1"), call_piece(None, '{"b": 2}', "read", "c2")],
            TWO,
            id="no index",
        ),
        pytest.param(
            [call_piece(None, '{"a":', "read"), call_piece(None, " 1}"), call_piece(None, '{"b": 2}', "read")],
            WITHOUT_IDS,
            id="neither index nor id",
        ),
        pytest.param(
            [call_piece(0, '{"a": 1}', "read", "c1"), call_piece(0, '{"b": 2}', "read", "c2")], TWO, id="one index"
        ),
        pytest.param(
            [call_piece(0, '{"a": 1}', "read", ""), call_piece(1, '{"b": 2}', "read", "")],
            WITHOUT_IDS,
            id="empty ids",
        ),
        pytest.param([call_piece(0, {"a": 1}, "read", "c1"), call_piece(1, {"b": 2}, "read", "c2")], TWO, id="objects"),
        pytest.param(
            [
                {"tool_calls": [call_piece(1, '{"b":', "read", "c2")["tool_calls"][0]]},
                call_piece(0, '{"a": 1}', "read", "c1"),
                call_piece(1, " 2}", "read", "c2"),
            ],
            TWO[::-1],
            id="mixed, names repeated",
        ),
    ],
)
@pytest.mark.parametrize("finish", ["tool_calls", "stop", "eos_token"])
def test_calls_are_read_in_whatever_pieces_a_server_sends_them(
    server: OpenAIServer, pieces: Sequence[Event], expected: list[ToolCall], finish: str
) -> None:
    reply = answered(server, *(chunk(piece) for piece in pieces), chunk({}, finish))
    assert list(reply.tool_calls) == expected
    assert reply.stop_reason == "tool_use"


@pytest.mark.parametrize("nothing", ["", "null", "{}"])
def test_a_call_without_arguments_has_none(server: OpenAIServer, nothing: str) -> None:
    assert answered(server, chunk(call_piece(0, nothing, "read", "c")), chunk({}, "stop")).tool_calls == (
        ToolCall("read", {}, "c"),
    )


@pytest.mark.parametrize(
    "arguments", ['{"path": "/tmp/x', '{"path": "/", "path": "/x"}', '{"path": "/"} rm', "[1]", "0", "5"]
)
def test_arguments_that_are_no_object_never_run_and_are_asked_for_again(server: OpenAIServer, arguments: str) -> None:
    server.answers.append(Streams([chunk(call_piece(0, arguments, "read", "c")), chunk({}, "tool_calls")]))
    error = failure(server)
    assert "the arguments of the call of 'read' are no JSON" in str(error)
    assert error.broke_off


def test_a_call_that_the_limit_cut_says_which_limit(server: OpenAIServer) -> None:
    cut = [chunk({"content": "So."}), chunk(call_piece(0, '{"path": "/tm', "read", "c")), chunk({}, "length")]
    server.answers.append(Streams(cut))
    error = failure(server, request(max_tokens=20))
    assert "in the middle of a call of 'read': raise the setting max_tokens (now 20)" in str(error)
    assert (error.partial, error.broke_off) == ("So.", False)
    server.answers.append(Streams(cut))
    error = failure(server, replace(request(max_tokens=20), cut_by_budget=True))
    assert "call of 'read': a strict budget had 20 tokens left for it. /budget" in str(error)
    assert "raise" not in str(error)
    server.answers.append(Streams([chunk(call_piece(0, "", "read", "c")), chunk({}, "length")]))
    assert "in the middle of a call of 'read'" in str(failure(server)), "its arguments may have been to come"


@pytest.mark.parametrize(
    ("finish", "reason"),
    [("stop", "end_turn"), ("length", "max_tokens"), ("content_filter", "refusal"), ("eos", "end_turn"), ("?", "?")],
)
def test_the_words_for_an_end_are_those_of_other_providers(server: OpenAIServer, finish: str, reason: str) -> None:
    assert answered(server, *chat_text("so", finish)).stop_reason == reason


def test_a_refusal_is_text_with_a_stop_reason_of_its_own(server: OpenAIServer) -> None:
    reply = answered(server, chunk({"refusal": "I will "}), chunk({"refusal": "not."}), chunk({}, "stop"))
    assert (reply.text, reply.stop_reason) == ("I will not.", "refusal")


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_goes_back_under_its_own_name_and_beside_calls_alone(server: OpenAIServer, field: str) -> None:
    thought = [chunk({field: "Let me "}), chunk({field: "see.", "content": "I read."})]
    reply = answered(server, *thought, chunk(call_piece(0, "{}", "read", "c")), chunk({}, "stop"))
    assert reply.blocks[0] == {"type": "thinking", "thinking": "Let me see.", "field": field}
    with_call = {"role": "assistant", "content": list(reply.blocks)}
    without = {"role": "assistant", "content": list(reply.blocks[:2])}
    ask(server, request((*HELLO, with_call, result("c"), without, *HELLO)))
    assert [message.get(field) for message in server.requests[-1]["messages"]] == [
        None, "Let me see.", None, None, None,
    ]  # fmt: skip


def test_a_content_in_parts_is_read_as_thoughts_and_text(server: OpenAIServer) -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"type": "text", "text": "Yes."}]
    reply = answered(server, chunk({"content": parts}), chunk({}, "stop"))
    assert [block["type"] for block in reply.blocks] == ["thinking", "text"]
    assert reply.text == "Yes."


ODD: dict[str, Sequence[Event | bytes]] = {
    "comments and CRLF": [b": hello\r\n\r\n", b'data: {"choices": [{"delta": {"content": "so"}}]}\r\n\r\n'],
    "no choices": [{"model": "m-1"}, chunk({"content": "so"}), {"choices": None}],
    "no delta": [chunk({"content": "so"}), {"choices": [{"index": 0, "delta": None}]}],
    "unknown fields": [chunk({"content": "so", "colour": {"a": 1}}, mood="blue")],
    "usage in each": [chunk({"content": "so"}, usage={"prompt_tokens": 1}), chunk({"content": ""}, usage=None)],
    "usage that is none": [chunk({"content": "so"}, usage={"prompt_tokens": None, "completion_tokens": "7"})],
}


@pytest.mark.parametrize("events", ODD.values(), ids=ODD)
def test_oddities_that_do_no_harm_do_none(server: OpenAIServer, events: Sequence[Event | bytes]) -> None:
    assert answered(server, *events, chunk({}, "stop"), done=False).text == "so"


def test_an_end_without_a_blank_line_is_an_end(server: OpenAIServer) -> None:
    last = f"data: {json.dumps(chunk({}, 'stop'))}".encode()
    assert answered(server, chunk({"content": "so"}), last, done=False).text == "so"


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (b'data: {"choices": [}\n\n', "broken JSON in the stream"),
        (b"data: [1]\n\n", "the event in the stream is [1]"),
        (b"data: 5\n\n", "the event in the stream is 5"),
        (b"data: " + b"[" * 100_000 + b"\n\n", "broken JSON in the stream"),
        ({"choices": 5}, "the list of choices is 5"),
        ({"choices": ["a"]}, "the choice is 'a'"),
        ({"choices": [{"delta": "a"}]}, "the delta of a choice is 'a'"),
        (chunk({"content": 5}), "the content is 5"),
        (chunk({"tool_calls": [5]}), "the tool call is 5"),
        (chunk({"tool_calls": [{"index": "a"}]}), "the index of a call is 'a'"),
        (chunk({"tool_calls": [{"function": {"name": 5}}]}), "the id or name of a call is 5"),
        (chunk({"tool_calls": [{"index": 0, "id": "c"}]}), "a call has no name"),
    ],
)
def test_what_is_not_in_the_form_of_the_protocol_is_an_error_that_names_it(
    server: OpenAIServer, event: Event | bytes, message: str
) -> None:
    server.answers.append(Streams([chunk({"content": "so"}), event, chunk({}, "stop")]))
    error = failure(server)
    assert f"The reply cannot be understood: {message}" in str(error)
    assert error.partial == "so"


CALLING = [
    *chat_text("Let me see", "tool_calls")[:-1],
    chunk(call_piece(0, "{}", "read", "c")),
    chunk({}, "tool_calls"),
]


@pytest.mark.parametrize("place", range(len(CALLING)))
@pytest.mark.parametrize("cut", [True, False])
def test_a_stream_that_is_cut_at_any_event_is_told_and_asked_for_again(
    server: OpenAIServer, place: int, cut: bool
) -> None:
    server.answers.append(Streams(CALLING[:place], cut=cut))
    error = failure(server)
    assert str(error) == "The connection broke in the middle of the reply: /resume, or resume(), asks again."
    assert (error.broke_off, error.partial) == (True, "Let me see"[: len(error.partial)])


@pytest.mark.parametrize(
    ("failure_sent", "expected", "broke_off", "unavailable"),
    [
        ({"message": "Slow down", "code": "rate_limit_exceeded"}, "rate limit is reached", False, True),
        ({"message": "Oh", "type": "server_error"}, "overloaded or failing", True, True),
        ({"message": "Oh", "code": 503}, "overloaded or failing", True, True),
        ("out of memory", "out of memory", True, True),
        ({"message": "Bad", "type": "BadRequestError", "code": 400}, "does not suit the model", False, False),
    ],
)
def test_an_error_in_the_stream_says_what_to_do(
    server: OpenAIServer, failure_sent: object, expected: str, broke_off: bool, unavailable: bool
) -> None:
    server.answers.append(Streams([chunk({"content": "so"}), {"error": failure_sent}]))
    error = failure(server)
    assert expected in str(error)
    assert (error.broke_off, error.unavailable, error.partial) == (broke_off, unavailable, "so")


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        (Sends(b"<html><h1>Welcome</h1></html>", content_type="text/html"), "<html><h1>Welcome</h1></html>"),
        (Sends(b'{"choices": []}', content_type="application/json"), '{"choices": []}'),
        (Sends(b"", content_type="text/plain"), "''"),
    ],
)
def test_an_answer_that_is_no_stream_is_told_with_its_beginning(server: OpenAIServer, sent: Sends, shown: str) -> None:
    server.answers.append(sent)
    error = failure(server)
    assert "The address does not answer as a server of models" in str(error)
    assert shown in str(error)
    assert "check base_url, which mostly ends in /v1" in str(error)


@pytest.mark.parametrize(
    ("status", "code", "message", "sentence", "unavailable"),
    [
        (400, "", "No.", "does not suit the model", False),
        (
            400,
            "context_length_exceeded",
            "maximum context length is 8",
            "The prompt 'Hello' (5 of 5 characters)",
            False,
        ),
        (401, "invalid_api_key", "No.", "check api_key", True),
        (404, "model_not_found", "No model", "check the agent's model and base_url", False),
        (413, "", "No.", "is too long for the model", False),
        (429, "rate_limit_exceeded", "No.", "rate limit", True),
        (429, "insufficient_quota", "No.", "The account cannot pay", True),
        (503, "", "No.", "overloaded", True),
    ],
)
def test_a_refusal_says_what_to_do_and_what_the_api_said(
    server: OpenAIServer, status: int, code: str, message: str, sentence: str, unavailable: bool
) -> None:
    server.answers.append(Refuses(status, code, message))
    error = failure(server)
    assert sentence in str(error)
    assert f"The API said: {message} ({status}" in str(error)
    assert (error.unavailable, error.broke_off, error.free) == (unavailable, False, True)


def test_a_page_with_an_error_status_is_told_by_its_beginning(server: OpenAIServer) -> None:
    server.answers.append(Sends(b"<html>\n" + b"Bad gateway. " * 1000, 502, "text/html"))
    assert len(str(failure(server))) < 1000


class Leaping(asyncio.SelectorEventLoop):
    """A loop whose clock leaps by an hour in each round, from the first leap on."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead

    def leap(self) -> None:
        self.ahead += 3600
        self.call_soon(self.leap)

    async def shutdown_default_executor(self, *within: float | None) -> None:
        """Wait for its threads without a limit, which a leap would pass."""
        await super().shutdown_default_executor()


def test_silence_is_given_up(server: OpenAIServer) -> None:
    server.answers += [Waits(), Streams(chat_text("so far"), pause=2)]
    assert "did not answer in time: check the network and base_url" in str(failure(server, timeout=0.05))
    loop = Leaping()
    with pytest.raises(ProviderError, match="fell silent") as raised:
        ask_and_hear(server, lambda delta: loop.leap(), loop=lambda: loop, timeout=600)
    assert (raised.value.partial, raised.value.broke_off) == ("so", True)


def test_addresses_that_answer_nothing_or_something_else_are_named(server: OpenAIServer) -> None:
    base = server.url.removesuffix("/v1")
    error = str(failure(server, base_url=base))
    assert "no such model or address" in error
    assert "has no version in it: it mostly ends in /v1" in error
    with OpenAIServer() as gone:
        pass
    unreachable = failure(gone)
    assert "cannot be reached" in str(unreachable)
    assert unreachable.unavailable
    for url in ("localhost:8000/v1", "", "ftp://host/v1", "http://"):
        assert "The address in base_url is no URL" in str(failure(server, base_url=url))


def test_a_key_is_wanted_by_openai_alone_and_given_to_no_other(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ProviderError, match="There is no key for OpenAI: set OPENAI_API_KEY"):
        asyncio.run(OpenAIProvider("m").respond(request(), lambda _: None))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    ask(server, api_key=None)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    ask(server, api_key=None, base_url=None)
    assert server.keys == ["none", KEY]


@pytest.mark.parametrize(("line", "has"), [("in_flight = 8", "messages"), ("protocol = 'responses'", "input")])
def test_the_address_of_the_environment_is_asked_for_chat_unless_the_file_says_otherwise(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, line: str, has: str
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    provider = parse_configuration(f"[providers.openai]\nmodel = 'm'\n{line}", "ikigai.toml", {}).providers["openai"]

    async def run() -> str:
        try:
            return (await provider.respond(request(), lambda _: None)).text
        finally:
            await provider.close()

    assert asyncio.run(run()) == "ok"
    assert has in server.requests[0]


@pytest.mark.parametrize("key", ["sk-proj-ab\nc0123456789", "sk-projéabcdefghij"])
def test_a_key_that_no_header_can_carry_is_told_without_it(server: OpenAIServer, key: str) -> None:
    error = failure(server, api_key=key)
    assert "The key in api_key has a character that no header can carry" in str(error)
    assert key not in "".join(traceback.format_exception(error))


def test_no_error_shows_the_key(server: OpenAIServer) -> None:
    server.answers.append(Refuses(401, "invalid_api_key", f"Incorrect API key provided: {KEY}."))
    error = failure(server)
    assert "secret" not in "".join(traceback.format_exception(error))
    assert "provided: [key]" in str(error)


def test_a_model_that_nobody_named_is_an_error_that_says_how(server: OpenAIServer) -> None:
    assert "No model is named" in str(failure(server, model=None))


@pytest.mark.parametrize("wrong", [{"api": "soap"}, {"model": 5}, {"base_url": 5}, {"api_key": 5}, {"timeout": 0}])
def test_arguments_that_cannot_be_used_are_refused_at_once(wrong: Mapping[str, Any]) -> None:
    with pytest.raises(BadInput):
        OpenAIProvider(**wrong)


def test_half_a_character_is_an_error_of_the_request(server: OpenAIServer) -> None:
    broken = ({"role": "user", "content": [{"type": "text", "text": "\ud83d"}]},)
    assert "half of a character" in str(failure(server, request(broken)))


def test_a_request_that_is_cancelled_lets_go_of_the_server(server: OpenAIServer) -> None:
    server.answers.append(Streams(chat_text("so far"), pause=2))

    async def run() -> None:
        provider = OpenAIProvider("m", base_url=server.url)
        begun = asyncio.Event()
        asked = asyncio.create_task(provider.respond(request(), lambda _: begun.set()))
        await begun.wait()
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        await provider.close()

    asyncio.run(run())


# Responses

REASONING = {
    "type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}], "id": "rs_1", "z": None,
    "encrypted_content": "gAAAA=", "a": {"b": [1, 2.5]},
}  # fmt: skip


def respond(server: OpenAIServer, asked: Request | None = None) -> Reply:
    return ask(server, asked, api="responses")[0]


def test_a_response_is_streamed_and_arrives_whole(server: OpenAIServer) -> None:
    usage = {
        "input_tokens": 30,
        "output_tokens": 9,
        "input_tokens_details": {"cached_tokens": 20},
        "output_tokens_details": {"reasoning_tokens": 5},
    }
    items = (REASONING, message_item("I read."), call_item("read", '{"a": 1}'))
    events = response_events(*items, usage=usage)
    thought = {"type": "response.reasoning_summary_text.delta", "delta": "Hm."}
    server.answers.append(Streams([events[0], thought, *events[1:]]))
    reply, deltas = ask(server, request(tools=(READ,)), api="responses")
    assert deltas == [Delta("Hm.", "thinking"), Delta("I read.")]
    assert (reply.text, reply.stop_reason, reply.model) == ("I read.", "tool_use", "gpt-1")
    assert reply.tool_calls == (ToolCall("read", {"a": 1}, "call_1"),)
    assert reply.usage == Usage(10, 9, 0, 20)
    assert [block["type"] for block in reply.blocks] == ["reasoning", "text", "tool_use"]


def test_the_request_of_responses_says_what_the_agent_is_set_to(server: OpenAIServer) -> None:
    thinking = {"type": "adaptive", "effort": "high"}
    respond(server, request(system="Be brief.", tools=(READ,), max_tokens=9, temperature=0.5, thinking=thinking))
    tool = {"type": "function", "name": "read", "description": "Read a file.", "parameters": READ["input_schema"]}
    assert server.requests == [
        {
            "model": "m",
            "input": [{"role": "user", "content": [{"type": "input_text", "text": "Hello"}]}],
            "stream": True,
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "instructions": "Be brief.",
            "max_output_tokens": 9,
            "temperature": 0.5,
            "reasoning": {"summary": "auto", "effort": "high"},
            "tools": [{**tool, "strict": False}],
        }
    ]


def test_reasoning_goes_back_byte_for_byte_and_the_rest_without_ids(server: OpenAIServer) -> None:
    items = (REASONING, message_item("I read."), call_item("read", '{"a":  1}'))
    server.answers.append(Streams(response_events(*items)))
    reply = respond(server, request(tools=(READ,)))
    history = (*HELLO, {"role": "assistant", "content": list(reply.blocks)}, result("call_1"))
    respond(server, request(history))
    _, reasoning, message, call, output = server.requests[-1]["input"]
    assert json.dumps(reasoning) == json.dumps(REASONING)
    assert message == {key: value for key, value in message_item("I read.").items() if key not in ("id", "status")}
    assert call == {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": '{"a":  1}'}
    assert output == {"type": "function_call_output", "call_id": "call_1", "output": "done"}


@pytest.mark.parametrize("arguments", ["", " \n", "null", None])
def test_a_call_without_arguments_goes_back_with_an_empty_object(server: OpenAIServer, arguments: str | None) -> None:
    server.answers.append(Streams(response_events({**call_item("read", ""), "arguments": arguments})))
    reply = respond(server, request(tools=(READ,)))
    assert reply.tool_calls == (ToolCall("read", {}, "call_1"),)
    respond(server, request((*HELLO, {"role": "assistant", "content": list(reply.blocks)}, result("call_1"))))
    _, call, _ = server.requests[-1]["input"]
    assert call == {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": "{}"}


def test_a_model_without_reasoning_is_asked_without_it_from_then_on(server: OpenAIServer) -> None:
    server.plain_models.add("m")

    async def run() -> list[str]:
        provider = OpenAIProvider("m", base_url=server.url, api="responses")
        try:
            return [(await provider.respond(request(), lambda _: None)).text for _ in range(2)]
        finally:
            await provider.close()

    assert asyncio.run(run()) == ["ok", "ok"]
    assert ["include" in body for body in server.requests] == [True, False, False]


@pytest.mark.parametrize(
    ("events", "message", "broke_off"),
    [
        (response_events(message_item("so"))[:-1], "The connection broke", True),
        (
            response_events(status="failed", error={"code": "rate_limit_exceeded", "message": "Slow"}),
            "rate limit is reached",
            False,
        ),
        (response_events(status="failed", error={"code": "server_error", "message": "Oh"}), "overloaded", True),
        ([{"type": "error", "code": "server_error", "message": "Oh", "param": None}], "overloaded", True),
        ([{"type": "error", "error": {"type": "invalid_request_error", "message": "Oh"}}], "does not suit", False),
        ([{"nothing": 1}], "the type of an event is None", False),
        (response_events({"no": "type"}), "an item has no type", False),
        (response_events(call_item("read", '{"a')), "are no JSON", True),
        (response_events(call_item("read", '{"a": {"b": 1, "b": 2}}')), "a key is twice in an object", True),
        (
            response_events(
                call_item("read", '{"a'), status="incomplete", incomplete_details={"reason": "max_output_tokens"}
            ),
            "in the middle of a call of 'read'",
            False,
        ),
    ],
)
def test_a_response_that_fails_is_an_error_that_says_so(
    server: OpenAIServer, events: Sequence[Event], message: str, broke_off: bool
) -> None:
    server.answers.append(Streams(events, done=False))
    error = failure(server, api="responses")
    assert message in str(error)
    assert error.broke_off is broke_off


@pytest.mark.parametrize(
    ("reason", "expected"), [("max_output_tokens", "max_tokens"), ("content_filter", "refusal"), ("other", "other")]
)
def test_a_response_that_is_incomplete_tells_why(server: OpenAIServer, reason: str, expected: str) -> None:
    events = response_events(message_item("so far"), status="incomplete", incomplete_details={"reason": reason})
    server.answers.append(Streams(events))
    reply = respond(server)
    assert (reply.text, reply.stop_reason) == ("so far", expected)


def test_items_that_only_the_last_event_has_are_read_and_unknown_ones_kept(server: OpenAIServer) -> None:
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    last = response_events(output=[search, message_item("so")])[-1]
    server.answers.append(Streams([last]))
    assert respond(server).blocks == (
        {"type": "item", "item": search},
        {"type": "text", "text": "so", "item": message_item("so")},
    )


# Values that the service writes itself

NUMBER = {"type": "object", "properties": {"result": {"type": "integer"}}, "required": ["result"],
          "additionalProperties": False}  # fmt: skip
TUPLE = {**NUMBER, "properties": {"result": {"type": "array", "prefixItems": [{"type": "integer"}], "items": {}}}}


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_what_is_too_long_of_a_description_stands_in_that_of_the_parameters(server: OpenAIServer, api: str) -> None:
    description = "".join(f"{number:05}" for number in range(500))
    schema = {"type": "object", "description": "As before.", "properties": {}}
    ask(server, request(tools=({"name": "read", "description": description, "input_schema": schema},)), api=api)
    [tool] = server.requests[0]["tools"]
    sent = tool.get("function", tool)
    rest, before = sent["parameters"]["description"].split("\n\n")
    assert sent["description"][:-1] + rest[1:] == description
    assert (len(sent["description"]), before) == (1_024, "As before.")


def typed(schema: Mapping[str, Any]) -> Request:
    tool = {"name": "give_result", "description": "Give it.", "input_schema": schema}
    return replace(request(tools=(READ, tool)), output=tool)


def names_in(body: Mapping[str, Any]) -> list[str]:
    return [tool.get("function", tool)["name"] for tool in body.get("tools", ())]


def format_in(body: Mapping[str, Any]) -> Any:
    """The schema by which a request has the service write a value, in either protocol."""
    form = body["text"]["format"] if "text" in body else body.get("response_format", {}).get("json_schema", {})
    return form.get("schema")


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize(
    ("schema", "setting", "by_service"),
    [(NUMBER, True, True), (NUMBER, None, False), (NUMBER, False, False), (TUPLE, True, False)],
)
def test_a_service_writes_the_value_itself_where_it_takes_the_schema_as_it_is(
    server: OpenAIServer, api: str, schema: Mapping[str, Any], setting: bool | None, by_service: bool
) -> None:
    ask(server, typed(schema), api=api, json_output=setting)
    [body] = server.requests
    assert names_in(body) == (["read"] if by_service else ["read", "give_result"])
    assert format_in(body) == (schema if by_service else None)


@pytest.mark.parametrize("api", [None, "chat"])
def test_at_its_own_address_openai_writes_values_itself(api: str | None) -> None:
    provider = OpenAIProvider("m", api=api, api_key=KEY)
    own, other = "https://api.openai.com/v1", "https://models.example.com/v1"
    assert format_in(provider._arguments(typed(NUMBER), "m", None, own)) == NUMBER
    assert format_in(provider._arguments(typed(NUMBER), "m", None, other)) is None
    assert format_in(provider._arguments(request(), "m", None, own)) is None


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_a_model_that_refuses_to_write_a_value_is_given_the_tool_from_then_on(server: OpenAIServer, api: str) -> None:
    message = "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."
    server.answers.append(Refuses(400, "", message))

    async def run() -> list[str]:
        provider = OpenAIProvider("m", base_url=server.url, api=api, json_output=True)
        try:
            return [(await provider.respond(typed(NUMBER), lambda _: None)).text for _ in range(2)]
        finally:
            await provider.close()

    assert asyncio.run(run()) == ["ok", "ok"]
    assert [format_in(body) for body in server.requests] == [NUMBER, None, None]
    assert names_in(server.requests[-1]) == ["read", "give_result"]


def test_another_refusal_of_a_typed_turn_is_told(server: OpenAIServer) -> None:
    server.answers.append(Refuses(400, "", "No."))
    assert "does not suit the model" in str(failure(server, typed(NUMBER), json_output=True))
    assert len(server.requests) == 1


@pytest.mark.sample(1, "protocols")
@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.parametrize("api", ["chat", "responses"])
def test_a_system_takes_the_value_that_the_service_writes(server: OpenAIServer, api: str) -> None:
    for text in ('{"result": "7"}', '{"result": 7}'):
        server.answers.append(Streams(chat_text(text) if api == "chat" else response_events(message_item(text))))
    provider = OpenAIProvider("m", base_url=server.url, api=api, json_output=True)
    with ActorSystem.open(provider=provider) as system:
        assert system.root.prompt("How many?", output=int).get(timeout=60).output == 7
    first, second = server.requests
    assert "give_result" not in names_in(first)
    assert "'7' is not of type 'integer'" in json.dumps(second)
    assert format_in(first) == format_in(second)
    assert format_in(first)["properties"]["result"] == {"type": "integer"}


@pytest.mark.thorough("a fresh interpreter; every run has one in tests/project/test_layers.py")
def test_a_request_does_not_import_the_client_of_another_service() -> None:
    code = """
import asyncio, sys
from ikigai_actors import OpenAIProvider, ProviderError
from ikigai_actors.providers.base import Request

async def ask():
    provider = OpenAIProvider("m", base_url="http://127.0.0.1:9/v1")
    try:
        await provider.respond(Request("a", None, "", "", ()), lambda _: None)
    except ProviderError as error:
        print(error)
    await provider.close()

asyncio.run(ask())
sys.exit("anthropic" in sys.modules)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, env=environment, check=False, capture_output=True)
    assert (done.returncode, b"cannot be reached" in done.stdout) == (0, True), done.stderr


# Replies in the background


def read_on(server: OpenAIServer, kept: KeptReply | None = None) -> tuple[Reply, list[KeptReply]]:
    """A reply in the background, and the names of it that were said."""
    asked, heard = replace(request(background=True), kept=kept), list[Delta]()
    reply = ask_and_hear(server, heard.append, asked, api="responses", model="gpt-5.5")
    return reply, [delta.kept for delta in heard if delta.kept is not None]


@pytest.mark.slow("takes a tenth of a second")
def test_a_reply_in_the_background_is_read_on_where_its_connection_broke(server: OpenAIServer) -> None:
    server.answers.append(Streams(response_events(message_item("Hello")), pause=3, cut=True))
    reply, named = read_on(server)
    assert (reply.text, named) == ("Hello", [KeptReply("resp_1", 0)])
    assert server.read_after == [("resp_1", 2)]
    body = TypeAdapter(ResponseCreateParamsStreaming).validate_python(server.requests[0])
    assert (body["background"], body["store"]) == (True, True)
    query = get_type_hints(ResponseRetrieveParamsStreaming)
    assert {"stream", "starting_after", "include"} <= query.keys()


def test_a_reply_that_another_process_has_begun_is_read_from_its_beginning(server: OpenAIServer) -> None:
    server.answers.append(Streams(response_events(message_item("Hello"), call_item("read", "{}"))))
    first, _ = read_on(server)
    again, named = read_on(server, KeptReply("resp_1", 0))
    assert (again.text, again.blocks, again.tool_calls) == (first.text, first.blocks, first.tool_calls)
    assert (len(server.kept), named) == (1, [])


def test_a_reply_that_the_service_has_no_more_is_asked_for_anew(server: OpenAIServer) -> None:
    reply, named = read_on(server, KeptReply("resp_9", 0))
    assert (reply.text, named) == ("ok", [KeptReply("resp_1", 0)])


def test_a_reply_whose_connection_breaks_again_and_again_is_kept_for_later(server: OpenAIServer) -> None:
    events = response_events(message_item("Hello"))
    server.answers.append(Streams(events[:3]))
    with pytest.raises(ProviderError, match="it is read again") as raised:
        read_on(server)
    assert (raised.value.is_kept, raised.value.broke_off, raised.value.retry_after) == (True, True, 0)
    assert len(server.kept) == 1


def test_a_reply_in_the_background_that_fails_or_is_garbled_is_not_read_again(server: OpenAIServer) -> None:
    failed = response_events(status="failed", error={"code": "server_error", "message": "The model gave up."})
    server.answers += [Streams(failed), Streams(response_events(call_item("read", "{{")))]
    for _ in range(2):
        with pytest.raises(ProviderError) as raised:
            read_on(server)
        assert not raised.value.is_kept
    assert server.read_after == []


def test_a_batch_and_chat_completions_are_not_asked_for_a_background(server: OpenAIServer) -> None:
    ask(server, request(background=True))
    assert "background" not in server.requests[0]
    provider = OpenAIProvider("gpt-5.5", base_url=server.url, api_key=KEY, api="responses")
    body = json.loads(asyncio.run(provider.batch_body(request(background=True))))
    assert body.keys().isdisjoint({"background", "store", "stream"})
