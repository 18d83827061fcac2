"""The Anthropic provider over real HTTP, against a server that is stricter than the real one."""

import asyncio
import json
import os
import re
import subprocess
import sys
import traceback
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from ikigai_actors import ActorSystem, Budget
from ikigai_actors.errors import ProviderError
from ikigai_actors.providers.address import suspects
from ikigai_actors.providers.anthropic import DEFAULT_MODEL, AnthropicProvider
from ikigai_actors.providers.base import Delta, OnDelta, Reply, Request, Spent, ToolCall, Usage
from ikigai_actors.providers.secrets import without_keys
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.replies import reply_message_data
from ikigai_actors.records.messages.settings import SETTINGS
from ikigai_actors.testing.simulation.messages_api import redacted_thinking, sign
from tests.kit.assembly import assemble
from tests.kit.blocking_provider import DEADLINE
from tests.kit.messages_server.cache import tokens
from tests.kit.messages_server.server import OUTPUT_TOKENS, Ending, MessagesServer, Refuses, Says, Sends, Waits
from tests.kit.pictures import PNG

KEY = "sk-ant-secret-0123456789"
HELLO: tuple[dict[str, Any], ...] = ({"role": "user", "content": [{"type": "text", "text": "Hello"}]},)
TOO_LONG = "prompt is too long: 2837 tokens > 2048 maximum"
OF_THE_MODEL: dict[str, Any] = {
    "max_tokens": 4321, "options": {"top_k": 40}, "stop_sequences": ["END"], "system": "Be brief.", "temperature": 0.25,
    "thinking": {"type": "adaptive"}, "top_p": 0.75,
}  # fmt: skip
"""A value of each setting that goes to the model of this service."""
MARKED = {"cache_control": {"type": "ephemeral"}}


@pytest.fixture
def server() -> Iterator[MessagesServer]:
    with MessagesServer() as running:
        yield running


def request(messages: Any = HELLO, model: str = "", system: str = "", tools: Any = (), **settings: Any) -> Request:
    return Request("uuid", "name", model, system, messages, tools, settings)


def ask(server: MessagesServer, asked: Request | None = None, **options: Any) -> tuple[Reply, list[Delta]]:
    """One request on a loop and with a provider of its own: the reply, and the pieces in which it came."""
    deltas: list[Delta] = []
    return ask_and_hear(server, deltas.append, asked, **options), [delta for delta in deltas if delta.spent is None]


def ask_and_hear(server: MessagesServer, on_delta: OnDelta, asked: Request | None = None, **options: Any) -> Reply:
    """The same, with all that is heard on the way."""

    async def run() -> Reply:
        provider = AnthropicProvider(**{"base_url": server.url, "api_key": KEY, **options})
        try:
            return await provider.respond(asked or request(), on_delta)
        finally:
            await provider.close()

    return asyncio.run(run())


def test_a_reply_is_streamed_and_arrives_whole(server: MessagesServer) -> None:
    server.script.append(Says.text("Hello to you"))
    reply, deltas = ask(server)
    assert deltas == [Delta("Hello"), Delta(" to"), Delta(" you")]
    assert reply == Reply(
        text="Hello to you",
        stop_reason="end_turn",
        usage=Usage(output_tokens=OUTPUT_TOKENS, cache_creation_input_tokens=tokens(HELLO[0]["content"][0])),
        blocks=({"type": "text", "text": "Hello to you"},),
        model=DEFAULT_MODEL,
    )


def test_the_request_says_what_the_agent_is_set_to(server: MessagesServer) -> None:
    tool = {"name": "read", "description": "Read a file.", "input_schema": {"type": "object", "properties": {}}}
    thinking = {"type": "adaptive"}
    ask(server, request(model="m", system="Be brief.", tools=(tool,), max_tokens=99, thinking=thinking, colour="red"))
    ask(server, request(), model="other", max_tokens=7, prompt_cache=False)
    assert server.requests == [
        {
            "model": "m",
            "max_tokens": 99,
            "messages": [{"role": "user", "content": [{**HELLO[0]["content"][0], **MARKED}]}],
            "system": [{"type": "text", "text": "Be brief.", **MARKED}],
            "tools": [tool],
            "thinking": thinking,
            "stream": True,
        },
        {"model": "other", "max_tokens": 7, "messages": list(HELLO), "stream": True},
    ]
    assert server.keys == [KEY, KEY]


def test_what_the_api_knows_of_sampling_is_passed_on_as_it_is(server: MessagesServer) -> None:
    sampling: dict[str, Any] = {"temperature": 0.5, "top_p": 0.9, "stop_sequences": ["END"]}
    ask(server, request(**sampling), prompt_cache=False)
    [asked] = server.requests
    assert {name: asked[name] for name in sampling} == sampling


def test_further_fields_are_sent_as_they_are_unless_the_request_says_them_itself(server: MessagesServer) -> None:
    fields = {"top_k": 5, "metadata": {"user_id": "ann"}, "temperature": 0.5}
    ask(server, request(options=fields))
    assert {name: server.requests[0][name] for name in fields} == fields
    for wrong, message in (
        ({"messages": []}, "has 'messages', which the request says by itself. Take it out"),
        ({"max_output_tokens": 5}, "Use the setting max_tokens"),
        ({"system": "Hi"}, "Use the setting system"),
        ({"stream": False}, "has 'stream'"),
    ):
        with pytest.raises(ProviderError, match=message):
            ask(server, request(system="Be brief.", options=wrong))
    assert len(server.requests) == 1


@pytest.mark.parametrize("name", sorted(OF_THE_MODEL))
def test_every_setting_of_the_model_is_sent(name: str) -> None:
    assert {name for name, setting in SETTINGS.items() if setting.of_the_model} - OF_THE_MODEL.keys() == {"background"}
    hello = Message("root", 1, Kind.USER, "hello", {}, 0)
    asked = assemble([hello], {name: OF_THE_MODEL[name]}, agent="root", name=None, model="anthropic:claude")
    sent = {part: value for part, value in AnthropicProvider()._arguments(asked).items() if part != "messages"}
    assert json.dumps(OF_THE_MODEL[name]) in json.dumps(sent)


def test_a_blank_system_prompt_is_not_sent(server: MessagesServer) -> None:
    ask(server, request(system=" \n"))
    assert "system" not in server.requests[0]


def test_calls_arrive_with_their_inputs_and_blocks_of_unknown_types_unaltered(server: MessagesServer) -> None:
    use = {
        "type": "tool_use",
        "id": "toolu_1",
        "name": "read",
        "input": {"b": 1, "a": ["x"]},
        "caller": {"type": "direct"},
    }
    unknown = {"type": "hologram", "depth": 3, "of": {"a": None}}
    server.script.append(Says((unknown, {"type": "text", "text": "I read."}, use), stop_reason="tool_use"))
    reply, _ = ask(server)
    assert reply.blocks == (unknown, {"type": "text", "text": "I read."}, use)
    assert reply.tool_calls == (ToolCall("read", {"b": 1, "a": ["x"]}, "toolu_1"),)
    assert (reply.text, reply.stop_reason) == ("I read.", "tool_use")


def test_thinking_is_kept_byte_for_byte_and_accepted_when_resent(server: MessagesServer) -> None:
    thought = {"type": "thinking", "thinking": "Hm …  two  spaces\n"}
    hidden = redacted_thinking(DEFAULT_MODEL, "what nobody reads")
    call = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}
    server.script.append(Says((thought, hidden, {"type": "text", "text": "Reading."}, call), stop_reason="tool_use"))
    reply, deltas = ask(server)
    signed = {**thought, "signature": sign(DEFAULT_MODEL, thought["thinking"])}
    assert reply.blocks[:2] == (signed, hidden)
    assert deltas[0] == Delta("Hm …  two  spaces\n", "thinking")
    history = [
        Message("a", 1, Kind.USER, "Read it.", {}, 0),
        Message("a", 2, Kind.ASSISTANT, reply.text, reply_message_data(reply, "anthropic"), 0),
        Message("a", 3, Kind.TOOL_RESULT, "contents", {"tool_use_id": "toolu_1"}, 0),
    ]
    ask(server, assemble(history, {}, agent="a", name=None, model="anthropic"))
    said = {"type": "text", "text": "Reading."}
    assert server.requests[1]["messages"][1]["content"] == [signed, hidden, said, {**call, **MARKED}]


@pytest.mark.parametrize(
    ("status", "error_type", "remedy"),
    [
        (400, "invalid_request_error", "/undo"),
        (401, "authentication_error", "check api_key"),
        (402, "billing_error", "billing"),
        (403, "permission_error", "workspace"),
        (404, "not_found_error", "agent's model"),
        (413, "request_too_large", "too long"),
        (418, "teapot_error", "The API refused"),
        (429, "rate_limit_error", "wait, then /resume"),
        (500, "api_error", "wait, then /resume"),
        (529, "overloaded_error", "overloaded"),
    ],
)
def test_a_refusal_says_what_to_do_and_what_the_api_said(
    server: MessagesServer, status: int, error_type: str, remedy: str
) -> None:
    server.script.append(Refuses(status, error_type, f"You sent {KEY}."))
    with pytest.raises(ProviderError) as raised:
        ask(server)
    for part in (remedy, "You sent [key].", str(status), error_type, "req_1"):
        assert part in str(raised.value)
    assert raised.value.partial == ""


@pytest.mark.parametrize(("thinking", "reply"), [(8_000, 16_000), (16_000, 32_000)])
def test_thinking_that_the_system_sets_leaves_tokens_for_replies_and_for_summaries(
    server: MessagesServer, thinking: int, reply: int
) -> None:
    provider = AnthropicProvider(base_url=server.url, api_key=KEY)
    settings = {"thinking": {"type": "enabled", "budget_tokens": thinking}}
    with ActorSystem.open(":memory:", provider, settings=settings, budget={"tokens": 10**6, "strict": True}) as system:
        for _ in range(3):
            system.root.prompt("word " * 400).get(timeout=60)
        system.root.compact(timeout=60)
    assert [request["max_tokens"] for request in server.requests] == [reply] * 3 + [4_096 + thinking]


@pytest.mark.slow("takes a tenth of a second")
def test_what_is_refused_costs_nothing_however_often_it_is_sent(server: MessagesServer) -> None:
    provider = AnthropicProvider(base_url=server.url, api_key=KEY, max_tokens=100)
    for strict in (True, False):
        del server.requests[:]
        server.script[:] = [Refuses(529, "overloaded_error")] * 2
        budget = Budget(tokens=20_000, strict=strict)
        with ActorSystem.open(":memory:", provider, budget=budget) as system:
            system.root.configure(service_retries=1)
            with pytest.raises(ProviderError, match="overloaded"):
                system.root.prompt("go").get(timeout=DEADLINE)
            assert len(server.requests) == 2
            assert system.root.budget is not None
            assert (system.root.budget.spent, system.root.budget.held) == ({"tokens": 0}, {"tokens": 0})


@pytest.mark.parametrize(
    ("ending", "explanation", "broke_off"),
    [
        (Ending.CUT, "connection broke", True),
        (Ending.SHORT, "connection broke", True),
        (Ending.ERROR, "overloaded", True),
        (Ending.BROKEN_JSON, "broken JSON", False),
        (Ending.BROKEN_EVENT, "broken event", False),
    ],
)
def test_a_stream_that_breaks_off_is_an_error_with_the_text_so_far(
    server: MessagesServer, ending: Ending, explanation: str, broke_off: bool
) -> None:
    server.script.append(
        Says(({"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "so far"}), ending=ending)
    )
    with pytest.raises(ProviderError, match=explanation) as raised:
        ask(server)
    assert (raised.value.partial, raised.value.broke_off) == ("so far", broke_off)
    assert raised.value.__cause__ is not None or ending is Ending.SHORT
    assert not re.search("ReadError|TransferEncoding|payload", str(raised.value))
    assert len(server.requests) == 1, "what has begun is not asked for again"


def test_what_a_reply_costs_is_told_as_soon_as_the_service_tells_it(server: MessagesServer) -> None:
    server.script.append(Says.text("so far", ending=Ending.CUT))
    deltas: list[Delta] = []
    with pytest.raises(ProviderError):
        ask_and_hear(server, deltas.append)
    written = tokens(HELLO[0]["content"][0])
    assert deltas[0].spent == Spent(Usage(output_tokens=1, cache_creation_input_tokens=written), DEFAULT_MODEL)
    reply = ask_and_hear(server, deltas.append)
    assert deltas[-1].spent == Spent(reply.usage or Usage(), reply.model)


def test_a_request_of_many_pieces_is_sent_whole(server: MessagesServer) -> None:
    long = said(*("word " * 10_000 for _ in range(9)))
    ask(server, request(long), prompt_cache=False)
    assert [request["messages"] for request in server.requests] == [list(long)]


def said(*texts: str) -> tuple[dict[str, Any], ...]:
    """A conversation of these texts, the user's first and last."""
    roles = ("user", "assistant")
    return tuple(
        {"role": roles[place % 2], "content": [{"type": "text", "text": text}]} for place, text in enumerate(texts)
    )


@pytest.mark.parametrize(
    "refusal", [Refuses(400, "invalid_request_error", TOO_LONG), Refuses(413, "request_too_large")]
)
def test_a_prompt_that_is_too_long_is_named_and_how_to_take_it_back(server: MessagesServer, refusal: Refuses) -> None:
    server.script.append(refusal)
    with pytest.raises(ProviderError) as raised:
        ask(server, request(said("We sell tea.", "Fine.", "word " * 500)))
    assert "The prompt 'word word word word word word word word …' (2,500 of 2,517 characters) is too long" in str(
        raised.value
    )
    assert "/undo" in str(raised.value)


def test_a_history_that_is_too_long_is_told_from_its_latest_prompt(server: MessagesServer) -> None:
    server.script.append(Refuses(400, "invalid_request_error", TOO_LONG))
    with pytest.raises(ProviderError, match=r"The history is too long for the model: .*/compact.*'And now\?'"):
        ask(server, request(said("word " * 500, "Fine.", "And now?")))


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "messages.0.content.0.image.source.base64: image exceeds 5 MB maximum"),
        (500, "image input is not supported"),
    ],
)
def test_a_picture_that_is_refused_is_named_as_that(server: MessagesServer, status: int, said: str) -> None:
    server.script.append(Refuses(status, "invalid_request_error", said))
    with pytest.raises(
        ProviderError, match=r"does not take a picture or document .*/undo.*/compact.*The API said: .*image"
    ):
        ask(server, replace(request(), blobs={"hash": PNG}))
    server.script.append(Refuses(status, "invalid_request_error", said))
    with pytest.raises(ProviderError) as raised:
        ask(server)
    assert "does not take a picture" not in str(raised.value), "there is none"


@pytest.mark.slow("takes a second")
def test_silence_in_the_stream_is_given_up(server: MessagesServer) -> None:
    server.script.append(Says.text("and then", ending=Ending.PAUSE))
    with pytest.raises(ProviderError, match="fell silent") as raised:
        ask(server, timeout=1.0)
    assert raised.value.partial == "and then"


@pytest.mark.slow("takes a second")
def test_silence_before_the_stream_is_given_up(server: MessagesServer) -> None:
    server.script.append(Waits())
    with pytest.raises(ProviderError, match="did not answer in time"):
        ask(server, timeout=1.0)


def test_an_empty_stream_is_an_error(server: MessagesServer) -> None:
    server.script.append(Says((), ending=Ending.SHORT))
    with pytest.raises(ProviderError, match="connection broke"):
        ask(server)


def test_a_message_without_a_list_of_blocks_is_an_error(server: MessagesServer) -> None:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "1", "role": "assistant", "model": "m", "content": None, "stop_reason": "end_turn", "usage": usage}
    begins = json.dumps({"type": "message_start", "message": message})
    server.script.append(Sends(f"event: message_start\ndata: {begins}\n\n".encode()))
    with pytest.raises(
        ProviderError,
        match=r"cannot be understood: the content of the message is None\. /resume, or resume\(\), asks again\.",
    ):
        ask(server)


def test_a_call_that_the_length_limit_cut_never_gets_out(server: MessagesServer) -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"command": "rm -rf /"}}
    server.script.append(Says(({"type": "text", "text": "I clean up."}, call), stop_reason="max_tokens"))
    with pytest.raises(ProviderError, match=r"call of 'bash': raise the setting max_tokens \(now 16000\)") as raised:
        ask(server)
    assert raised.value.partial == "I clean up."


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        (Sends(b"<html><h1>Welcome</h1></html>", content_type="text/html"), "<html><h1>Welcome</h1></html>"),
        (Sends(b'{"content": []}', content_type="application/json"), '{"content": []}'),
        (Sends(b"", content_type="text/plain"), "''"),
    ],
)
def test_an_answer_that_is_no_stream_is_quoted_with_its_beginning(
    server: MessagesServer, sent: Sends, shown: str
) -> None:
    server.script.append(sent)
    with pytest.raises(ProviderError, match="The address does not answer as a server of models") as raised:
        ask(server, base_url=f"{server.url}/")
    assert shown in str(raised.value)
    assert "check base_url" in str(raised.value)
    assert (raised.value.broke_off, raised.value.unavailable) == (False, True)


def test_of_the_page_of_an_error_the_beginning_is_quoted(server: MessagesServer) -> None:
    server.script.append(Sends(b"<html><h1>Bad\n gateway</h1>" + b"x" * 3_000_000, 502, "text/html"))
    with pytest.raises(ProviderError, match="The API said: <html><h1>Bad gateway</h1>xx") as raised:
        ask(server)
    assert len(str(raised.value)) < 1_000


def test_no_server_is_an_error_that_names_the_address_setting() -> None:
    with MessagesServer() as server:
        pass
    with pytest.raises(ProviderError, match=r"cannot be reached .*base_url"):
        ask(server)


NO_URLS = ["", "no address at all", "127.0.0.1:8766", "http://[", "http://h:x", "http://", "ftp://h"]


@pytest.mark.parametrize("url", NO_URLS)
def test_an_address_that_is_no_url_is_refused_before_anything_is_sent(
    server: MessagesServer, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    with pytest.raises(ProviderError, match=r"The address in base_url is no URL: expected https://.*, got '"):
        ask(server, base_url=url)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
    with pytest.raises(ProviderError, match=r"The address in ANTHROPIC_BASE_URL is no URL: expected https://"):
        ask(server, base_url=None)


def test_a_wrong_address_disturbs_nobody_who_asks_another_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "")
    with ActorSystem.open(":memory:", "offline") as system:
        assert system.root.prompt("hello").get(timeout=60).text


def test_an_address_that_ends_in_v1_gets_a_hint() -> None:
    assert suspects("https://h/v1/", {}) == " The address ends in /v1, which is added to it: leave that out."
    assert suspects("https://h/v10", {}) == suspects("", {"HTTPS_PROXY": ""}) == ""


def test_no_server_behind_a_proxy_is_an_error_that_names_the_proxy_and_the_address(
    server: MessagesServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MessagesServer() as gone:
        pass
    monkeypatch.setenv("all_proxy", gone.url)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    hint = r"cannot be reached .* The address ends in /v1.* A proxy is set \(ALL_PROXY\): check it"
    with pytest.raises(ProviderError, match=hint):
        ask(server, base_url=f"{gone.url}/v1")


def test_no_key_is_an_error_that_says_what_to_do_but_where_an_address_is_given(
    server: MessagesServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    for variable in [name for name in os.environ if name.startswith("ANTHROPIC_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("HOME", str(tmp_path))  # the client also looks for a login there
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    for key in (None, ""):
        with pytest.raises(ProviderError, match=r"set ANTHROPIC_API_KEY, or use the model 'offline'"):
            ask(server, api_key=key, base_url=None)
    assert server.requests == []
    for key in (None, ""):
        ask(server, api_key=key)
    assert server.keys == ["none", "none"]


def test_a_login_that_is_not_there_is_an_error_that_names_the_key(
    server: MessagesServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ANTHROPIC_PROFILE", "nobody")
    with pytest.raises(ProviderError, match=r"The client of the API failed .*'nobody'.*check ANTHROPIC_API_KEY"):
        ask(server, api_key=None)


def test_key_and_address_come_from_the_environment(server: MessagesServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "from the environment")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    reply, _ = ask(server, api_key=None, base_url=None)
    assert reply.text == "ok"
    assert server.keys == ["from the environment"]


@pytest.mark.parametrize("key", ["an odd key\n", "an odd\r key", "an odd key\x00", "an odd këy"])
def test_a_key_that_cannot_be_sent_names_its_setting_and_stands_in_no_message_or_traceback(
    server: MessagesServer, key: str
) -> None:
    with pytest.raises(ProviderError, match="The key in api_key has a character that no header can carry") as raised:
        ask(server, api_key=key)
    assert server.requests == []
    assert "an odd key" not in "".join(traceback.format_exception_only(raised.value))
    cause: BaseException | None = raised.value.__cause__
    while cause is not None:
        assert "an odd key" not in str(cause)
        cause = cause.__cause__ or cause.__context__


def test_a_token_that_cannot_be_sent_names_its_variable(
    server: MessagesServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "an odd token\n")
    with pytest.raises(ProviderError, match="The key in ANTHROPIC_AUTH_TOKEN has a character"):
        ask(server, api_key=None)


def test_certificates_that_are_not_there_are_named_with_their_variable(
    server: MessagesServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/at/all.pem")
    with pytest.raises(ProviderError, match=r"SSL_CERT_FILE names cannot be read \('/nowhere/at/all.pem'.*unset it"):
        ask(server)


@pytest.mark.parametrize("key", ["a", "sk", "an odd", "a\n"])
def test_a_key_too_short_to_tell_of_turns_no_text_into_brackets(key: str) -> None:
    said = "An odd banana asks for more than a sketch."
    assert without_keys(said, [key]) == said
    assert without_keys("You sent sk-ant-api03-x.", [key]) == "You sent [key]."


def test_half_a_character_is_an_error_that_says_what_to_do(server: MessagesServer) -> None:
    broken = ({"role": "user", "content": [{"type": "text", "text": "half \ud83d"}]},)
    with pytest.raises(ProviderError, match="half of a character"):
        ask(server, request(broken))


def test_a_thinking_setting_that_is_no_object_is_an_error_that_shows_one(server: MessagesServer) -> None:
    with pytest.raises(ProviderError, match="'type': 'adaptive'"):
        ask(server, request(thinking="much"))


def test_cancelling_a_stream_ends_it_at_once_and_harms_no_other(server: MessagesServer) -> None:
    server.script += [Says.text("one", ending=Ending.PAUSE), Says.text("two", ending=Ending.PAUSE)]

    def cancels(event: asyncio.Event) -> OnDelta:
        return lambda _: event.set()

    async def run() -> Reply:
        provider = AnthropicProvider(base_url=server.url, api_key=KEY)
        begun = [asyncio.Event(), asyncio.Event()]
        tasks = [asyncio.create_task(provider.respond(request(), cancels(event))) for event in begun]
        for event in begun:
            await event.wait()
        tasks[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]  # the server is silent still: it is the cancel that ends this
        server.release()
        reply = await tasks[1]
        await provider.close()
        return reply

    assert asyncio.run(run()).text in {"one", "two"}


@pytest.mark.thorough("many streams")
def test_more_streams_than_a_pool_holds_are_open_at_once(server: MessagesServer) -> None:
    streams = 120  # aiohttp's own limit is 100
    server.script += [Says.text("hello", ending=Ending.PAUSE)] * streams

    async def run() -> list[Reply]:
        provider = AnthropicProvider(base_url=server.url, api_key=KEY)
        begun = 0

        def count(_: Delta) -> None:
            nonlocal begun
            begun += 1
            if begun == streams:
                server.release()

        replies = await asyncio.gather(*(provider.respond(request(), count) for _ in range(streams)))
        await provider.close()
        return replies

    assert len(asyncio.run(run())) == streams


def test_a_provider_serves_one_loop_after_another(server: MessagesServer) -> None:
    provider = AnthropicProvider(base_url=server.url, api_key=KEY)

    async def run() -> str:
        reply = await provider.respond(request(), lambda _: None)
        await provider.close()
        await provider.close()
        return reply.text

    assert [asyncio.run(run()), asyncio.run(run())] == ["ok", "ok"]


@pytest.mark.thorough("a second fresh interpreter; the one of the whole core imports no client either")
def test_importing_the_module_does_not_import_the_client() -> None:
    code = "import sys, ikigai_actors.providers.anthropic; sys.exit('anthropic' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-W", "error", "-c", code], env=environment, check=False).returncode == 0


NUMBER = {"type": "object", "properties": {"result": {"type": "integer"}}, "required": ["result"],
          "additionalProperties": False}  # fmt: skip
AT_LEAST_1 = {**NUMBER, "properties": {"result": {"type": "integer", "minimum": 1}}}
NAMED = {**NUMBER, "properties": {"result": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("schema", "setting", "by_service"),
    [
        (NUMBER, True, True),
        (NUMBER, None, False),
        (NUMBER, False, False),
        (AT_LEAST_1, True, False),
        (NAMED, True, False),
    ],
)
def test_a_service_writes_the_value_itself_where_it_takes_the_schema_as_it_is(
    server: MessagesServer, schema: Mapping[str, Any], setting: bool | None, by_service: bool
) -> None:
    server.script.append(Says.text('{"result": 7}'))
    tool = {"name": "give_result", "description": "Give it.", "input_schema": schema}
    asked = replace(
        request(tools=[{"name": "read", "input_schema": {"type": "object", "properties": {}}}, tool]), output=tool
    )
    reply, _ = ask(server, asked, json_output=setting)
    assert reply.text == '{"result": 7}'
    [body] = server.requests
    assert [definition["name"] for definition in body["tools"]] == (["read"] if by_service else ["read", "give_result"])
    assert body.get("output_config") == ({"format": {"type": "json_schema", "schema": schema}} if by_service else None)


def test_at_its_own_address_anthropic_writes_values_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    tool = {"name": "give_result", "description": "Give it.", "input_schema": NUMBER}
    asked = replace(request(tools=[tool]), output=tool)
    assert "output_config" in AnthropicProvider(api_key=KEY)._arguments(asked)
    assert "output_config" not in AnthropicProvider(api_key=KEY, base_url="http://localhost:1")._arguments(asked)


def test_a_system_sends_pictures_and_takes_the_value_that_the_service_writes(server: MessagesServer) -> None:
    server.script += [Says.text('{"result": "7"}'), Says.text('{"result": 7}')]
    provider = AnthropicProvider(base_url=server.url, api_key=KEY, json_output=True)
    with ActorSystem.open(provider=provider) as system:
        assert system.root.prompt("How many?", output=int, attach=[PNG]).get(timeout=60).output == 7
    first, second = (request["messages"] for request in server.requests)
    picture = {"type": "base64", "media_type": "image/png", "data": b64encode(PNG).decode()}
    assert first[0]["content"][0] == {"type": "image", "source": picture}
    assert second[0]["content"][0]["source"] == picture
    assert "'7' is not of type 'integer'" in second[-1]["content"][0]["text"]
    assert all(request["output_config"]["format"]["type"] == "json_schema" for request in server.requests)


@pytest.mark.parametrize("asked", [False, True])
def test_the_client_makes_spans_only_where_it_is_asked_to_and_sends_none_of_their_addresses(asked: bool) -> None:
    async def made() -> Mapping[str, Any]:
        client = AnthropicProvider(api_key=KEY, client_spans=asked)._new_client()
        await client.close()
        return client.open_telemetry

    options = asyncio.run(made())
    assert (options["traces"]["enabled"], options["propagation"]) == (asked, False)
