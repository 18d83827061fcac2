"""When a service may be asked again, in three protocols: the client says it, and never waits or asks by itself."""

import asyncio
import json
import math
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest

from ikigai_actors import ActorSystem, AnthropicProvider, OpenAIProvider, Provider, ProviderError, ScriptedProvider
from ikigai_actors.providers.anthropic_reply import MessagesReply
from ikigai_actors.providers.openai_chat import ChatReply
from ikigai_actors.providers.openai_responses import ResponsesReply
from ikigai_actors.providers.remedies import asked_to_wait
from ikigai_actors.providers.retry_after import refused_until
from ikigai_actors.providers.streamed_reply import LONGEST_PAUSE_IN_REPLY, StreamedReply, received
from tests.kit.blocking_provider import DEADLINE
from tests.kit.messages_server.server import Ending, MessagesServer, Refuses, Says
from tests.kit.openai_server.server import OpenAIServer, Streams, chat_text, message_item, response_events
from tests.providers.test_openai_provider import request

DAY = 86_400


@pytest.mark.parametrize(
    ("status", "headers", "seconds"),
    [
        (429, {"retry-after": "86400"}, DAY),
        (529, {"retry-after": "20"}, 20),
        (503, {"retry-after-ms": "350", "retry-after": "9"}, 0.35),
        (429, {"retry-after": "Sat, 01 Jan 2028 00:10:00 GMT", "date": "Sat, 01 Jan 2028 00:00:00 GMT"}, 600),
        (429, {"retry-after": "Sat, 01 Jan 2000 00:00:00 GMT"}, 0),
        (429, {"retry-after": "inf"}, math.inf),
        (429, {"retry-after": "1e9"}, 1e9),
        *((429, {"retry-after": text}, 0) for text in ("", "0", "-5", "abc", "nan", "-inf", "Mon, 99 Foo")),
        (500, {}, 0),
        (408, {}, 0),
        (409, {}, 0),
        (529, {"x-should-retry": "false", "retry-after": "3"}, None),
        (400, {"x-should-retry": "true", "retry-after": "3"}, 3),
        (400, {"retry-after": "3"}, None),
        (401, {}, None),
    ],
)
def test_an_answer_says_when_the_request_may_be_sent_again(
    status: int, headers: Mapping[str, str], seconds: float | None
) -> None:
    assert refused_until(status, headers) == seconds


def test_a_date_without_the_time_of_the_service_counts_from_now() -> None:
    assert (refused_until(429, {"retry-after": "Sat, 01 Jan 2400 00:00:00 GMT"}) or 0) > 1e9


@pytest.mark.parametrize(
    ("seconds", "message"),
    [
        (None, ""), (0, ""), (0.35, " It asks to wait 1 s."), (90, " It asks to wait 90 s."),
        (600, " It asks to wait 10 min."), (86_400, " It asks to wait 24 h."), (5 * DAY, " It asks to wait 5 d."),
        (math.inf, " It asks to wait for longer than anybody waits."),
    ],
)  # fmt: skip
def test_an_error_says_how_long_the_service_asks_to_wait(seconds: float | None, message: str) -> None:
    assert asked_to_wait(seconds) == message


@pytest.fixture(params=["messages", "chat", "responses"])
def service(request: pytest.FixtureRequest) -> Iterator[tuple[MessagesServer, Provider]]:
    """A server of each protocol, and its provider."""
    with ExitStack() as stack:
        if request.param == "messages":
            server: MessagesServer = stack.enter_context(MessagesServer())
            yield server, AnthropicProvider("m", base_url=server.url, api_key="key")
        else:
            pytest.importorskip("openai", reason="OpenAIProvider needs the extra openai")
            server = stack.enter_context(OpenAIServer())
            yield server, OpenAIProvider("m", base_url=server.url, api=request.param)


def answers(server: MessagesServer) -> list[Any]:
    return server.answers if isinstance(server, OpenAIServer) else server.script


def says(server: MessagesServer, provider: Provider, text: str) -> Any:
    if not isinstance(server, OpenAIServer):
        return Says.text(text)
    chat = isinstance(provider, OpenAIProvider) and provider._api == "chat"
    return Streams(chat_text(text) if chat else response_events(message_item(text)))


def test_a_client_asks_once_and_its_error_says_when_to_ask_again(service: tuple[MessagesServer, Provider]) -> None:
    server, provider = service
    answers(server).append(Refuses(429, "rate_limit_error", headers={"retry-after": str(DAY)}))

    async def ask() -> None:
        try:
            await provider.respond(request(), lambda _: None)
        finally:
            await provider.close()

    with pytest.raises(ProviderError, match="It asks to wait 24 h") as raised:
        asyncio.run(ask())
    assert (raised.value.retry_after, raised.value.unavailable, raised.value.free) == (DAY, True, True)
    assert len(server.requests) == 1


@pytest.mark.sample(1, "protocols")
def test_nobody_waits_a_day_where_another_model_is_there(service: tuple[MessagesServer, Provider]) -> None:
    server, provider = service
    answers(server).append(Refuses(429, "rate_limit_error", "daily limit", headers={"retry-after": str(DAY)}))
    with ActorSystem.open(":memory:", provider, {"echo": ScriptedProvider(["second"])}) as system:
        system.root.configure(model=f"{provider.name}:m, echo:x")
        assert system.root.prompt("hi").get(timeout=DEADLINE).text == "second"
    assert len(server.requests) == 1


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.sample(2, "services")
@pytest.mark.parametrize("strict", [False, True])
def test_a_turn_asks_again_what_was_refused_for_the_moment_and_pays_nothing_for_that(
    service: tuple[MessagesServer, Provider], strict: bool
) -> None:
    server, provider = service
    answers(server).extend([Refuses(429, "rate_limit_error"), Refuses(529, "overloaded_error")])
    answers(server).append(says(server, provider, "third time"))
    with ActorSystem.open(":memory:", provider, budget={"tokens": 100_000, "strict": strict}) as system:
        assert system.root.prompt("hi").get(timeout=DEADLINE).text == "third time"
        assert [message.content.startswith("The ") for message in system.root.history() if message.kind == "retry"] == [
            True
        ] * 2
        assert system.root.budget is not None
        assert system.root.budget.held == {"tokens": 0}
    assert len(server.requests) == 3


def new_provider(protocol: str, url: str) -> Provider:
    if protocol == "messages":
        return AnthropicProvider("m", base_url=url, api_key="key")
    pytest.importorskip("openai", reason="OpenAIProvider needs the extra openai")
    return OpenAIProvider("m", base_url=f"{url}/v1")


@pytest.mark.parametrize("protocol", ["messages", "chat"])
def test_who_cannot_be_reached_may_be_asked_again_and_costs_nothing(protocol: str) -> None:
    with MessagesServer() as gone:
        provider = new_provider(protocol, gone.url)

    async def ask() -> None:
        try:
            await provider.respond(request(), lambda _: None)
        finally:
            await provider.close()

    with pytest.raises(ProviderError, match="cannot be reached") as raised:
        asyncio.run(ask())
    assert (raised.value.retry_after, raised.value.unavailable, raised.value.free) == (0, True, True)


def breaks_off(server: MessagesServer, provider: Provider, text: str) -> Any:
    """A reply that ends with an overload after some text."""
    if not isinstance(server, OpenAIServer):
        return Says.text(text, ending=Ending.ERROR)
    if isinstance(provider, OpenAIProvider) and provider._api == "chat":
        return Streams([*chat_text(text)[:-1], {"error": {"message": "Overloaded", "type": "server_error"}}])
    piece = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": text}
    return Streams([piece, {"type": "error", "code": "server_error", "message": "Overloaded", "param": None}])


@pytest.mark.sample(1, "protocols")
@pytest.mark.slow("takes a tenth of a second")
def test_an_overload_in_the_middle_of_a_stream_is_waited_for_and_asked_again(
    service: tuple[MessagesServer, Provider],
) -> None:
    server, provider = service
    answers(server).extend([breaks_off(server, provider, "so far"), says(server, provider, "whole")])
    with ActorSystem.open(":memory:", provider) as system:
        assert system.root.prompt("hi").get(timeout=DEADLINE).text == "whole"
        [retry] = [message for message in system.root.history() if message.kind == "retry"]
        assert retry.data["partial"] == "so far"
        assert 350 <= retry.data["until"] - retry.created_at <= 500
    assert len(server.requests) == 2


@pytest.mark.sample(1, "services")
@pytest.mark.parametrize(("status", "advice", "asked"), [(529, "false", 1), (400, "true", 2)])
def test_a_service_decides_by_its_header_whether_it_is_asked_again(
    service: tuple[MessagesServer, Provider], status: int, advice: str, asked: int
) -> None:
    server, provider = service
    headers = {"x-should-retry": advice, "retry-after-ms": "1"}
    answers(server).extend([Refuses(status, "api_error", headers=headers), says(server, provider, "whole")])
    with ActorSystem.open(":memory:", provider) as system:
        answer = system.root.prompt("hi")
        if asked == 1:
            with pytest.raises(ProviderError):
                answer.get(timeout=DEADLINE)
        else:
            assert answer.get(timeout=DEADLINE).text == "whole"
    assert len(server.requests) == asked


class Heartbeats(asyncio.SelectorEventLoop):
    """A loop whose clock leaps by a minute whenever it is read."""

    now = 0.0

    def time(self) -> float:
        self.now += 60
        return self.now


class Pinging:
    """A response that begins well, and then only says that it is there."""

    headers: Mapping[str, str] = {"content-type": "text/event-stream"}

    def __init__(self, begins: list[Any], heartbeat: bytes) -> None:
        self._begins, self._heartbeat = begins, heartbeat
        self.sent = 0

    async def iter_bytes(self) -> AsyncIterator[bytes]:
        for event in self._begins:
            yield b"data: %b\n\n" % json.dumps(event).encode()
        while self._heartbeat and self.sent < 10_000:
            self.sent += 1
            yield self._heartbeat


@pytest.mark.parametrize("pause", [None, 300.0])
@pytest.mark.parametrize(
    ("reply", "begins", "heartbeat"),
    [
        (MessagesReply(), [], b'event: ping\ndata: {"type": "ping"}\n\n'),
        (MessagesReply(), [], b": comment\n\n"),
        (ChatReply(), chat_text("so far")[:1], b'data: {"choices": [], "usage": {"prompt_tokens": 3}}\n\n'),
        (ChatReply(), [], b'data: {"choices": [{"delta": {"role": "assistant", "content": ""}}]}\n\n'),
        (ResponsesReply(), [], b'data: {"type": "keepalive"}\n\n'),
        (ResponsesReply(), [], b'data: {"type": "response.in_progress", "response": {}}\n\n'),
    ],
)
def test_a_stream_that_only_says_that_it_is_there_is_given_up(
    reply: StreamedReply, begins: list[Any], heartbeat: bytes, pause: float | None
) -> None:
    response = Pinging(begins, heartbeat)
    with asyncio.Runner(loop_factory=Heartbeats) as runner:
        with pytest.raises(ProviderError, match="fell silent") as raised:
            runner.run(received(response, reply, lambda _: None, pause))
        assert raised.value.broke_off
        assert response.sent <= (pause or LONGEST_PAUSE_IN_REPLY) / 60 + 1


def test_a_stream_that_goes_on_to_bring_something_takes_as_long_as_it_takes() -> None:
    words = chat_text(" ".join(["word"] * 200))
    with asyncio.Runner(loop_factory=Heartbeats) as runner:
        whole = runner.run(received(Pinging([*words], b""), ChatReply(), lambda _: None, 600.0))
    assert whole.text.startswith("word word")


@pytest.mark.parametrize("protocol", ["messages", "chat"])
def test_a_request_that_the_server_read_before_it_hung_up_is_not_free(protocol: str) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    async def ask() -> ProviderError:
        async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
            _, port = server.sockets[0].getsockname()
            provider = new_provider(protocol, f"http://127.0.0.1:{port}")
            try:
                with pytest.raises(ProviderError) as raised:
                    await provider.respond(request(), lambda _: None)
            finally:
                await provider.close()
        return raised.value

    error = asyncio.run(ask())
    assert (error.retry_after, error.unavailable, error.free) == (0, True, False)
    assert "in time" not in str(error)
