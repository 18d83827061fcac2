"""One conversation in three protocols: each accepts every history, and a tree is the same on each of them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ikigai_actors import ActorSystem, AnthropicProvider, Kind, Message, OpenAIProvider, Provider, tool
from ikigai_actors.providers.openai_chat import chat_arguments
from ikigai_actors.providers.openai_responses import responses_arguments
from ikigai_actors.records.agents.words import words_of
from ikigai_actors.records.messages.replies import reply_of
from tests.agent.turn.test_assembly import FOREIGN, MODEL, OTHER, Entry, assembled, history, result, said, user, wire
from tests.agent.turn.test_assembly_properties import histories
from tests.kit.assembly import assemble
from tests.kit.blocking_provider import DEADLINE
from tests.kit.messages_server.server import MessagesServer, Says
from tests.kit.openai_server.server import (
    OpenAIServer,
    Streams,
    call_item,
    call_piece,
    chat_text,
    chunk,
    message_item,
    response_events,
)
from tests.kit.openai_server.strict import chat_violations, responses_violations

READ = {"name": "read", "description": "", "input_schema": {"type": "object", "properties": {}}}


@pytest.mark.slow("takes half a second")
@given(histories, st.sampled_from([MODEL, OTHER, FOREIGN]))
@settings(max_examples=100, deadline=None)
def test_every_history_is_a_valid_request_of_both_protocols(messages: list[Message], model: str) -> None:
    for cut in range(len(messages) + 1):
        request = assemble(messages[:cut], {"system": "Go."}, agent="agent", name=None, model=model, tools=[READ])
        assert chat_violations(chat_arguments(request, "m", 9, official=False)) == []
        assert chat_violations(chat_arguments(request, "m", 9, official=True), official=True) == []
        assert responses_violations(responses_arguments(request, "m", 9)) == []


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Step:
    """What the models of the three servers do next: say something, and call tools."""

    def __init__(self, text: str, *calls: tuple[str, Mapping[str, Any]]) -> None:
        self.text, self.calls = text, calls


STEPS = [
    Step("I add.", ("add", {"a": 1, "b": 2})),
    Step("Again.", ("add", {"a": "x", "b": 2})),
    Step("", ("fork", {"name": "kid"})),
    Step("Done."),
    Step("Done."),  # the child's: which of both is asked first, is chance
]


def messages_api(server: MessagesServer, steps: Sequence[Step]) -> Provider:
    for step in steps:
        uses = [
            {"type": "tool_use", "id": f"call_{place}", "name": name, "input": arguments}
            for place, (name, arguments) in enumerate(step.calls)
        ]
        texts = [{"type": "text", "text": step.text}] if step.text else []
        server.script.append(Says((*texts, *uses), stop_reason="tool_use" if uses else "end_turn"))
    return AnthropicProvider("m", base_url=server.url, api_key="key")


def chat(server: OpenAIServer, steps: Sequence[Step]) -> Provider:
    for step in steps:
        pieces = [
            chunk(call_piece(place, json.dumps(arguments), name, f"call_{place}"))
            for place, (name, arguments) in enumerate(step.calls)
        ]
        said = chat_text(step.text)[:-1] if step.text else []
        server.answers.append(Streams([*said, *pieces, chunk({}, "stop")]))
    return OpenAIProvider("m", base_url=server.url)


def responses(server: OpenAIServer, steps: Sequence[Step]) -> Provider:
    for step in steps:
        items = [message_item(step.text)] if step.text else []
        items += [
            call_item(name, json.dumps(arguments), f"call_{place}")
            for place, (name, arguments) in enumerate(step.calls)
        ]
        server.answers.append(Streams(response_events(*items)))
    return OpenAIProvider("m", base_url=server.url, api="responses")


def entries_of(messages: Sequence[Message], root: str, child: str) -> list[tuple[Any, ...]]:
    """A log without names and usage."""
    return [
        (message.kind, message.content, reply_of(message).tool_calls, message.data["stop_reason"])
        if message.kind == Kind.ASSISTANT
        else (message.kind, message.content.replace(words_of(child), "CHILD").replace(words_of(root), "ROOT"))
        for message in messages
    ]


@pytest.mark.thorough("a tree for each protocol; every run has one of several")
def test_the_same_tree_has_the_same_logs_whatever_protocol_its_model_speaks() -> None:
    pytest.importorskip("openai", reason="OpenAIProvider needs the extra openai")
    logs = []
    with MessagesServer() as first, OpenAIServer() as second, OpenAIServer() as third:
        for provider in (messages_api(first, STEPS), chat(second, STEPS), responses(third, STEPS)):
            with ActorSystem.open(":memory:", provider, tools=[add]) as system:
                root = system.root
                root.prompt("Add, then fork.").get(timeout=DEADLINE)
                child = system.agent("kid")
                child.reply(timeout=DEADLINE)
                logs.append([entries_of(agent.history(), root.uuid, child.uuid) for agent in (root, child)])
    assert logs[0] == logs[1] == logs[2]


@pytest.mark.slow("takes a tenth of a second")
def test_a_tree_may_mix_models_and_change_them_within_a_history() -> None:
    pytest.importorskip("openai", reason="OpenAIProvider needs the extra openai")
    with MessagesServer() as first, OpenAIServer() as second, OpenAIServer() as third:
        providers = {
            "messages": messages_api(first, []),
            "chat": chat(second, []),
            "responses": responses(third, []),
        }
        first.script.append(Says(({"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "one"})))
        second.answers.append(Streams([chunk({"reasoning": "Hm."}), *chat_text("two")]))
        reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
        third.answers.append(Streams(response_events(reasoning, message_item("three"))))
        with ActorSystem.open(":memory:", "offline", providers) as system:
            for name in ("messages", "chat", "responses", "messages", "chat", "responses"):
                system.root.configure(model=f"{name}:m")
                system.root.prompt(f"Now {name}.").get(timeout=DEADLINE)
            assert [reply_of(message).text for message in system.root.history() if message.kind == Kind.ASSISTANT] == [
                "one", "two", "three", "ok", "ok", "ok",
            ]  # fmt: skip
    items = third.requests[-1]["input"]
    assert [item["encrypted_content"] for item in items if item.get("type") == "reasoning"] == ["x"]
    thoughts = [block for message in first.requests[-1]["messages"] for block in message["content"]]
    assert [block["thinking"] for block in thoughts if block["type"] == "thinking"] == ["Hm."]


def test_a_word_comes_behind_the_results_in_every_protocol_and_keeps_what_was_sent_before() -> None:
    step = [user("go"), said("", "c1:read", "c2:read"), result("c1"), result("c2")]
    word: Entry = (Kind.STEER, "by train", {"mail": 1, "turn": 1, "steer": True})
    entry: Entry = (Kind.STEER, "hurry", {"mail": 2, "turn": 1, "steer": True, "sender": "a" * 22, "name": "lead"})
    before, request = assembled(history(*step)), assembled(history(*step, word, entry))
    results, first, second = "tool_result", "by train", '<steer from="lead">\nhurry\n</steer>'
    said_last = [block.get("text", block["type"]) for block in wire(request)["messages"][-1]["content"]]
    assert said_last == [results, results, first, second]
    assert wire(request)["messages"][:-1] == wire(before)["messages"][:-1]
    chat = chat_arguments(request, "m", 9, official=False)
    assert chat_violations(chat) == []
    assert [message["role"] for message in chat["messages"]] == ["user", "assistant", "tool", "tool", "user"]
    assert chat["messages"][:4] == chat_arguments(before, "m", 9, official=False)["messages"]
    items = responses_arguments(request, "m", 9)["input"]
    assert [item.get("type", item.get("role")) for item in items[-3:]] == ["function_call_output"] * 2 + ["user"]
    assert items[:-1] == responses_arguments(before, "m", 9)["input"]
