"""The provider for Pydantic AI's models, with its own model for tests, and with one that speaks real HTTP."""

import asyncio
import queue
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ikigai_actors import ActorSystem, ProviderError, Signal, Streamed, tool
from ikigai_actors.providers import PydanticAIProvider
from ikigai_actors.providers.openai_parts import sent_name
from ikigai_actors.records.messages.messages import Kind
from tests.kit.blocking_provider import DEADLINE
from tests.kit.echo import kinds
from tests.kit.messages_server.server import Refuses
from tests.kit.openai_server.server import OpenAIServer, Streams, call_piece, chat_text, chunk

pytest.importorskip("pydantic_ai", reason="PydanticAIProvider needs the extra pydantic-ai")


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def function_model(*replies: Any) -> tuple[Any, list[Any]]:
    """A model of Pydantic AI's that streams these; and what it was asked."""
    from pydantic_ai.models.function import FunctionModel

    asked: list[Any] = []
    left = list(replies)

    async def stream(history: Any, info: Any) -> AsyncIterator[Any]:
        asked.append((history, info))
        for piece in left.pop(0):
            yield piece

    return FunctionModel(stream_function=stream, model_name="written"), asked


def test_text_thinking_and_calls_are_streamed_and_go_back() -> None:
    from pydantic_ai.models.function import DeltaThinkingPart, DeltaToolCall

    thought = {0: DeltaThinkingPart(content="Hm.", signature="signed")}
    called = {1: DeltaToolCall(name="add", json_args='{"a": 1,', tool_call_id="c1")}
    model, asked = function_model([thought, called, {1: DeltaToolCall(json_args=' "b": 2}')}], ["It is ", "three."])
    heard: list[Any] = []
    with ActorSystem.open(":memory:", PydanticAIProvider(model), tools=[add]) as system:
        system.subscribe(lambda event: heard.append((event.text, event.kind)) if isinstance(event, Streamed) else None)
        system.root.configure(system="Be brief.", max_tokens=9, options={"seed": 7})
        assert system.root.prompt("Add.").get(timeout=DEADLINE).text == "It is three."
        assert [message.data["model"] for message in system.root.history() if message.kind == Kind.ASSISTANT] == [
            "pydantic:written"
        ] * 2
    assert heard == [("Hm.", "thinking"), ("It is ", "text"), ("three.", "text")]
    (history, info), (later, _) = asked
    assert "add" in [each.name for each in info.function_tools]
    assert (info.model_settings["max_tokens"], info.model_settings["seed"]) == (9, 7)
    assert (history[0].instructions, history[0].parts[0].content) == ("Be brief.", "Add.")
    thinking, call = later[1].parts
    assert (thinking.content, thinking.signature, call.tool_name, call.args) == (
        "Hm.", "signed", "add", {"a": 1, "b": 2},
    )  # fmt: skip
    [result] = later[2].parts
    assert (result.content, result.tool_call_id, result.outcome) == ("3", "c1", "success")


def test_a_tool_with_a_long_name_is_called_by_a_shorter_one_and_no_strict_mode_is_chosen() -> None:
    from pydantic_ai.models.function import DeltaToolCall

    long = tool(name="add_" * 20)(add.function)
    short = sent_name(long.name)
    model, asked = function_model(
        [{0: DeltaToolCall(name=short, json_args='{"a": 1, "b": 2}', tool_call_id="c")}], ["3"]
    )
    with ActorSystem.open(":memory:", PydanticAIProvider(model), tools=[long]) as system:
        assert system.root.prompt("Add.").get(timeout=DEADLINE).text == "3"
        assert [message.content for message in system.root.history() if message.kind == Kind.TOOL_CALL] == [long.name]
    (_, info), (history, _) = asked
    [offered] = [tool for tool in info.function_tools if tool.name == short]
    assert offered.strict is False
    assert [part.tool_name for message in history[1:] for part in message.parts] == [short, short]


def test_half_a_call_never_runs() -> None:
    from pydantic_ai.models.function import DeltaToolCall

    half = [{0: DeltaToolCall(name="add", json_args='{"a": 1', tool_call_id="c1")}]
    model, _ = function_model(half, half)
    with ActorSystem.open(":memory:", PydanticAIProvider(model), tools=[add]) as system:
        with pytest.raises(ProviderError, match="the arguments of the call of 'add' are no JSON"):
            system.root.prompt("Add.").get(timeout=DEADLINE)
        assert not [message for message in system.root.history() if message.kind == Kind.TOOL_CALL]


def test_a_model_that_nobody_knows_is_an_error_of_the_turn() -> None:
    with ActorSystem.open(":memory:", PydanticAIProvider("nobody:m")) as system:
        with pytest.raises(ProviderError, match=r"Pydantic AI: .*nobody"):
            system.root.prompt("Hi").get(timeout=DEADLINE)
        assert system.root.state == "idle"


def test_a_real_service_s_calls_run_and_its_refusals_let_the_next_model_answer() -> None:
    pytest.importorskip("openai", reason="its model for chat completions needs the package openai")
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider as Service

    with OpenAIServer(strict=False) as server:
        provider = PydanticAIProvider(OpenAIChatModel("m", provider=Service(base_url=server.url, api_key="key")))
        calls = [chunk(call_piece(0, '{"a": 1, "b": 2}', "add", "c1")), chunk({}, "tool_calls")]
        server.answers += [Streams(calls), Streams(chat_text("three"))]
        server.answers += [Refuses(429, "rate_limit_exceeded", "Slow down")] * 3
        with ActorSystem.open(":memory:", provider, tools=[add]) as system:
            root = system.root
            assert root.prompt("Add.").get(timeout=DEADLINE).text == "three"
            root.configure(model="pydantic:m, offline")
            assert root.prompt("And now?").get(timeout=DEADLINE).text.startswith("You said")


def test_under_a_strict_budget_each_attempt_is_one_that_the_runtime_makes() -> None:
    pytest.importorskip("openai", reason="its model for chat completions needs the package openai")
    from pydantic_ai.models.fallback import FallbackModel
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.models.wrapper import WrapperModel
    from pydantic_ai.providers.openai import OpenAIProvider as Service

    class Stubborn(OpenAIChatModel):  # type: ignore[misc]
        unsupported_settings = frozenset({"max_retries"})

    with OpenAIServer(strict=False) as server:
        service = Service(base_url=server.url, api_key="key")
        model = OpenAIChatModel("m", provider=service)
        hidden: list[tuple[Any, str]] = [
            (FallbackModel(model, model), "name its models one by one in the setting model, as 'pydantic:openai:m, "),
            (WrapperModel(FallbackModel(model)), "FallbackModel hides some"),
            (
                Stubborn("m", provider=service),
                "cannot keep the client",
            ),
        ]
        for wrong, message in hidden:
            with ActorSystem.open(
                ":memory:", PydanticAIProvider(wrong), budget={"tokens": 100_000, "strict": True}
            ) as system:
                with pytest.raises(ProviderError, match=message):
                    system.root.prompt("Hi").get(timeout=DEADLINE)
                assert system.root.budget is not None
                assert (system.root.budget.spent, server.requests) == ({"tokens": 0}, [])
        server.answers += [Refuses(529, "overloaded"), Streams(chat_text("second time"))]
        with ActorSystem.open(
            ":memory:", PydanticAIProvider(model), budget={"tokens": 100_000, "strict": True}
        ) as system:
            assert system.root.prompt("Hi").get(timeout=DEADLINE).text == "second time"
            assert kinds(system.root.history()) == ["user", "retry", "assistant"]
            assert len(server.requests) == 2


def test_an_interrupt_ends_the_stream() -> None:
    async def stream(history: Any, info: Any) -> AsyncIterator[str]:
        yield "so far"
        await asyncio.Event().wait()

    from pydantic_ai.models.function import FunctionModel

    with ActorSystem.open(":memory:", PydanticAIProvider(FunctionModel(stream_function=stream))) as system:
        heard: queue.SimpleQueue[Any] = queue.SimpleQueue()
        system.subscribe(lambda event: heard.put(event) if isinstance(event, Streamed) else None)
        system.root.prompt("Hi")
        assert heard.get(timeout=DEADLINE).text == "so far"
        assert system.root.aio.signal(Signal.INT).get(timeout=DEADLINE)
        assert system.root.history()[-1].content == "so far"
