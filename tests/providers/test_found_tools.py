"""Tools that are found, on the wire: what a service cached stays, and each protocol takes every such history."""

import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import anthropic.types as messages_types
import openai.types.responses as responses_types
import pytest
from openai.types.responses import response_input_item_param, response_tool_search_output_item_param_param
from pydantic import TypeAdapter

from ikigai_actors import ActorSystem, AgentRef, AnthropicProvider, OpenAIProvider
from ikigai_actors.agent.assembly import conversation_of
from ikigai_actors.agent.toolbox import Toolbox, gone_from
from ikigai_actors.agent.turn.found_tools import ALWAYS_THERE, TOOL_GROUPS, found_in
from ikigai_actors.agent.turn.request import assemble
from ikigai_actors.providers.base import FIND_TOOLS, Request
from ikigai_actors.providers.openai_chat import chat_arguments
from ikigai_actors.providers.openai_responses import responses_arguments
from ikigai_actors.records.log.log import Log
from ikigai_actors.testing.simulation.messages_api import violations
from tests.agent.turn.test_assembly import FOREIGN, MODEL, history, result, user
from tests.kit.blocking_provider import DEADLINE
from tests.kit.messages_server.server import MessagesServer, Says
from tests.kit.openai_server.server import OpenAIServer, Streams, message_item, response_events
from tests.kit.openai_server.strict import chat_violations, responses_violations

DOCUMENTS = tuple(TOOL_GROUPS["documents"])
SKILLS = "- pdf: Fills forms."
SEARCH = {
    "type": "tool_search_call", "id": "ts_1", "call_id": "call_s", "execution": "client", "status": "completed",
    "arguments": {"query": "share a document"},
}  # fmt: skip


def say(agent: AgentRef, *prompts: str) -> None:
    for prompt in prompts:
        agent.prompt(prompt).get(timeout=DEADLINE)


def test_after_a_find_and_in_a_fork_all_that_the_messages_api_had_cached_is_read_from_there() -> None:
    use = {"type": "tool_use", "id": "toolu_1", "name": FIND_TOOLS, "input": {"query": "share a document"}}
    with MessagesServer() as server:
        server.script += [Says.text("hello"), Says((use,), stop_reason="tool_use"), Says.text("found")]
        provider = AnthropicProvider("claude-m", base_url=server.url, api_key="key", tool_references=True)
        with ActorSystem.open(":memory:", provider) as system:
            say(system.root, "hi", "look for something")
            system.root.fork("go on").reply(timeout=DEADLINE)
        first, search, after, forked = server.requests
        assert first["tools"] == search["tools"] == after["tools"] == forked["tools"]
        assert sorted(tool["name"] for tool in first["tools"] if not tool.get("defer_loading")) == sorted(ALWAYS_THERE)
        result = after["messages"][-1]["content"][0]
        assert [part["tool_name"] for part in result["content"]] == [*DOCUMENTS]
        for earlier, now in pairwise(server.served):
            assert now.read == earlier.read + earlier.written  # all that the one before has written, and nothing anew
        assert "cache_control" in json.dumps(first["tools"])


@pytest.mark.slow("takes a tenth of a second")
def test_after_a_find_and_in_a_fork_a_request_of_responses_begins_as_the_one_before() -> None:
    with OpenAIServer() as server:
        server.answers += [
            Streams(response_events(message_item("hello"))),
            Streams(response_events(SEARCH)),
            Streams(response_events(message_item("found"))),
            Streams(response_events(message_item("ok"))),
        ]
        provider = OpenAIProvider("m", base_url=server.url, api="responses", tool_search=True)
        with ActorSystem.open(":memory:", provider) as system:
            say(system.root, "hi", "look for something")
            system.root.fork("go on").reply(timeout=DEADLINE)
        requests = server.requests
        for earlier, now in pairwise(requests):
            assert now["tools"] == earlier["tools"]
            assert now["input"][: len(earlier["input"])] == earlier["input"]
        call, output = requests[2]["input"][-2:]
        assert [tool["name"] for tool in output["tools"]] == [*DOCUMENTS]
        assert fits(response_input_item_param.ToolSearchCall, call)
        assert fits(response_tool_search_output_item_param_param.ResponseToolSearchOutputItemParamParam, output)
        [search] = [tool for tool in requests[0]["tools"] if tool["type"] == "tool_search"]
        assert fits(responses_types.ToolSearchToolParam, search)
        assert all(fits(responses_types.FunctionToolParam, tool) for tool in output["tools"])


def fits(form: Any, value: Mapping[str, Any]) -> bool:
    """Whether a value is of the client's type, and has no field that the type does not have."""
    TypeAdapter(form).validate_python(value)
    return value.keys() <= {*form.__annotations__}


def made(model: str, finds: bool, *further: Any) -> Request:
    """A request after a find in another service's reply, and one in which a tool is gone."""
    own = {"type": "tool_use", "id": "call_s", "name": FIND_TOOLS, "input": {"query": "x"}, "item": SEARCH}
    reply = ("assistant", "", {"model": FOREIGN, "blocks": [own], "stop_reason": "tool_use"})
    finding = result("call_s", f"From your next step on …\n{SKILLS}", found=["gone", *DOCUMENTS], found_skills=SKILLS)
    log = Log("agent", 0, None, history(user("hi"), reply, finding, *further))
    toolbox, known = Toolbox([]), found_in(log, log.head)
    offer = toolbox.offer({}, known if finds else None, finds)
    gone = gone_from(offer, known) if finds else None
    conversation = conversation_of(log, log.head, model, gone=gone)
    return assemble(conversation, {}, agent="agent", name=None, model=model, tools=offer.sent)


@pytest.mark.parametrize("finds", [True, False])
@pytest.mark.parametrize("model", [MODEL, FOREIGN])
def test_a_history_with_a_find_is_taken_by_each_protocol_whoever_made_it(model: str, finds: bool) -> None:
    request = made(model, finds)
    body = {"model": "m", "max_tokens": 9, "tools": list(request.tools), "messages": list(request.messages)}
    assert violations(json.loads(json.dumps(body))) == []
    arguments = responses_arguments(request, "m", 9)
    assert responses_violations(arguments) == []
    assert ("tool_search_output" in json.dumps(arguments)) is finds
    assert json.dumps(body["messages"]).count(SKILLS) == json.dumps(arguments).count(SKILLS) == 1
    if not finds:
        chat = chat_arguments(request, "m", 9, official=False)
        assert chat_violations(chat) == []
        assert json.dumps(chat).count(SKILLS) == 1
    block = request.messages[-1]["content"][0]
    assert isinstance(block["content"], list) is finds
    if finds:
        assert [part["tool_name"] for part in block["content"]] == [*DOCUMENTS]
        assert all(fits(messages_types.ToolReferenceBlockParam, part) for part in block["content"])
        assert all(fits(messages_types.ToolParam, tool) for tool in request.tools)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("claude-sonnet-5-5", True),
        ("claude-opus-4-5-20251101", True),
        ("claude-opus-4-1-20250805", False),
        ("claude-sonnet-4-20250514", False),
        ("claude-3-5-sonnet-20241022", False),
        ("claude-haiku-4-5", False),
        ("claude-haiku-5", True),
        ("mine", False),
    ],
)
def test_only_newer_models_of_anthropic_refer_to_tools(
    model: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    assert AnthropicProvider(api_key="key").refers_to_tools(model) is expected
    assert not AnthropicProvider(api_key="key", base_url="http://127.0.0.1:1").refers_to_tools(model)


@pytest.mark.parametrize(
    ("model", "expected"), [("gpt-5.4", True), ("gpt-6-astra", True), ("gpt-5.5-mini", True), ("gpt-5", False)]
)
def test_only_newer_models_of_openai_search_for_tools(
    model: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert OpenAIProvider(api_key="key").refers_to_tools(model) is expected
    assert not OpenAIProvider(base_url="http://127.0.0.1:1").refers_to_tools(model)
    assert not OpenAIProvider(api_key="key", api="chat", tool_search=True).refers_to_tools(model)
