"""The provider that docs/integrate/providers.md shows, against a server that speaks as Ollama does; and wrong ones."""

import importlib.util
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from aiohttp import web

from ikigai_actors import ActorSystem, Delta, Kind, Provider, ProviderError, Reply, Request, ToolCall, Usage, tool
from ikigai_actors.providers import OnDelta
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import ROOT
from tests.kit.messages_server.server import MessagesServer

EXAMPLE = ROOT / "examples" / "own_provider.py"


def said(content: str, **more: Any) -> dict[str, Any]:
    return {"model": "m-1", "message": {"role": "assistant", "content": content, **more}, "done": False}


DONE = {**said(""), "done": True, "done_reason": "stop", "prompt_eval_count": 5, "eval_count": 2}


class OllamaServer(MessagesServer):
    """Answers each request with the next lines."""

    def __init__(self, *answers: list[dict[str, Any]]) -> None:
        super().__init__()
        self.answers = list(answers)

    def _route(self, app: web.Application) -> None:
        app.router.add_post("/api/chat", self._answer)

    async def _answer(self, request: web.Request) -> web.Response:
        self.requests.append(await request.json())
        lines = self.answers.pop(0)
        status = 503 if "error" in lines[0] else 200
        return web.Response(body="".join(json.dumps(line) + "\n" for line in lines).encode(), status=status)


@pytest.fixture
def ollama() -> Any:
    """The class of the example."""
    spec = importlib.util.spec_from_file_location("own_provider", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Ollama


@tool
def weather(place: str) -> str:
    """Tell the weather."""
    return f"Rain in {place}."


def test_the_page_shows_the_example_as_it_is_and_it_is_short() -> None:
    code = EXAMPLE.read_text(encoding="utf-8")
    assert code in (ROOT / "docs" / "integrate" / "providers.md").read_text(encoding="utf-8")
    assert len(code.splitlines()) <= 60


def test_the_example_streams_and_calls_tools(ollama: Any) -> None:
    call = {"function": {"name": "weather", "arguments": {"place": "Kyoto"}}}
    asked = [said("I "), said("look.", tool_calls=[call]), DONE]
    heard: list[str] = []
    with (
        OllamaServer(asked, [said("It "), said("rains."), DONE]) as server,
        ActorSystem.open(":memory:", ollama("m", server.url), tools=[weather]) as system,
    ):
        system.subscribe(lambda event: heard.append(getattr(event, "text", "")))
        system.root.configure(system="Be brief.", model="ollama:n")
        reply = system.root.prompt("What is the weather?").get(timeout=DEADLINE)
        assert (reply.text, reply.usage, reply.model) == ("It rains.", Usage(5, 2), "m-1")
    assert [text for text in heard if text] == ["I ", "look.", "It ", "rains."]
    first, second = server.requests
    assert first["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is the weather?"},
    ]
    assert "weather" in [tool["function"]["name"] for tool in first["tools"]]
    assert second["model"] == "n"
    assert second["messages"][2:] == [
        {"role": "assistant", "content": "I look.", "tool_calls": [call]},
        {"role": "tool", "tool_name": "weather", "content": "Rain in Kyoto."},
    ]


def test_the_example_s_errors_are_of_the_kinds_that_the_page_tells(ollama: Any) -> None:
    with (
        OllamaServer([said("It ")], [said("It "), DONE], [{"error": "busy"}]) as server,
        ActorSystem.open(":memory:", ollama("m", server.url)) as system,
    ):
        assert system.root.prompt("What is it?").get(timeout=DEADLINE).text == "It "
        assert Kind.RETRY in [message.kind for message in system.root.history()]
        system.root.configure(model="ollama:m, offline")
        assert system.root.prompt("And now?").get(timeout=DEADLINE).text.startswith("You said")


WRONG: Mapping[str, tuple[Any, str]] = {
    "nothing": (None, "Expected respond() to return a Reply, got None"),
    "text": ("hello", "Expected respond() to return a Reply, got 'hello'"),
    "a dict": ({"text": "hello"}, "Expected respond() to return a Reply"),
    "text that is none": (Reply(text=5), "Expected text of a Reply to be text, got 5"),  # type: ignore[arg-type]
    "calls that are none": (Reply(tool_calls=("a",)), "tool_calls[0] of a Reply to be ToolCall(name, input)"),  # type: ignore[arg-type]
    "an input that is none": (Reply(tool_calls=(ToolCall("a", "b"),)), "tool_calls[0].input of a Reply to be a dict"),  # type: ignore[arg-type]
    "usage that is none": (Reply(usage=(1, 2)), "usage of a Reply to be a Usage"),  # type: ignore[arg-type]
    "a block that is none": (Reply(blocks=("a",)), "blocks[0] of a Reply to be a content block"),  # type: ignore[arg-type]
    "what JSON cannot hold": (Reply(blocks=({"type": "x", "y": {1}},)), "blocks[0]['y'] of a Reply to be JSON"),
}


class Wrong:
    """Answers with anything, once; then well."""

    name = "wrong"

    def __init__(self, answers: Iterator[Any]) -> None:
        self._answers = answers

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        answer: Reply = next(self._answers)
        on_delta(Delta("a piece"))
        return answer

    async def close(self) -> None: ...


def test_wrong_types_of_a_provider_are_a_clear_error_of_that_turn_alone() -> None:
    provider: Provider = Wrong(iter([part for answer, _ in WRONG.values() for part in (answer, Reply("well"))]))
    with ActorSystem.open(":memory:", provider) as system:
        for _, message in WRONG.values():
            agent = system.root.fork()
            with pytest.raises(ProviderError) as raised:
                agent.prompt("one").get(timeout=DEADLINE)
            assert message in str(raised.value)
            assert [message.kind for message in agent.history()][-3:] == [Kind.FORK, Kind.USER, Kind.ERROR]
            assert agent.prompt("two").get(timeout=DEADLINE).text == "well"
