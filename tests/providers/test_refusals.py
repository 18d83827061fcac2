"""Models that do not want to answer, in three protocols: a typed turn ends at once, with their words."""

from typing import Any

import pytest

from ikigai_actors import ActorSystem, AnthropicProvider, OpenAIProvider, OutputError, Provider, Reply, ScriptedProvider
from tests.kit.blocking_provider import DEADLINE
from tests.kit.echo import kinds
from tests.kit.messages_server.server import MessagesServer, Says
from tests.kit.openai_server.server import OpenAIServer, Streams, chunk, response_events

NO = "I must not."


def refused_chat(words: str) -> Streams:
    said = [chunk({"refusal": words})] if words else []
    return Streams([*said, chunk({}, "stop" if words else "content_filter")])


def refused_response(words: str) -> Streams:
    part = {"type": "refusal", "refusal": words}
    return Streams(response_events({"type": "message", "id": "m", "role": "assistant", "content": [part]}))


def check(provider: Provider, asked: list[Any], words: str) -> None:
    """A typed turn that the model refuses has one request, and an error that says so, here and when read again."""
    text = f"The model refused: {words}" if words else "The model refused, without a word."
    with ActorSystem.open(":memory:", provider) as system:
        for ask in (
            lambda: system.root.prompt("?", output=int).get(timeout=DEADLINE),
            lambda: system.root.reply(timeout=DEADLINE),
        ):
            with pytest.raises(OutputError) as raised:
                ask()
            assert (str(raised.value), raised.value.reason) == (text, "refusal")
        assert kinds(system.root.history()) == ["user", "assistant", "error"]
    assert len(asked) == 1


@pytest.mark.parametrize("json_output", [True, False])
@pytest.mark.parametrize("words", [NO, ""])
def test_a_refusal_of_messages(words: str, json_output: bool) -> None:
    blocks = ({"type": "text", "text": words},) if words else ()
    with MessagesServer() as server:
        server.script.append(Says(blocks, stop_reason="refusal"))
        check(AnthropicProvider(base_url=server.url, api_key="k", json_output=json_output), server.requests, words)


@pytest.mark.sample(2, "protocols")
@pytest.mark.parametrize("words", [NO, ""])
@pytest.mark.parametrize("api", ["chat", "responses"])
def test_a_refusal_of_openai(words: str, api: str) -> None:
    pytest.importorskip("openai", reason="OpenAIProvider needs the extra openai")
    with OpenAIServer() as server:
        server.answers.append(refused_chat(words) if api == "chat" else refused_response(words))
        check(OpenAIProvider("m", base_url=server.url, api=api), server.requests, words)


def test_a_plain_turn_has_the_words_as_its_answer() -> None:
    with ActorSystem.open(":memory:", ScriptedProvider([Reply(NO, stop_reason="refusal")])) as system:
        assert system.root.prompt("?").get(timeout=DEADLINE) == Reply(NO, stop_reason="refusal")


def test_an_error_of_values_that_do_not_fit_says_so_too() -> None:
    with ActorSystem.open(":memory:", ScriptedProvider(["a", "b", "c"])) as system:
        with pytest.raises(OutputError, match=r"after 2 repairs: \(1\) the answer .* \(3\) the answer") as raised:
            system.root.prompt("?", output=int).get(timeout=DEADLINE)
        assert raised.value.reason == "misfit"
