"""Where the prompt cache is told to remember a request: four places at most, and the same ones for siblings."""

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ikigai_actors.providers.conversation import chain_of
from ikigai_actors.providers.message_json import MARK, encoded
from ikigai_actors.providers.prompt_cache import breakpoints, marked
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.testing.simulation.messages_api import thinking, violations
from tests.agent.turn.test_assembly import (
    MODEL,
    Entry,
    blocks,
    history,
    mail,
    result,
    said,
    text_block,
    use_block,
    user,
)
from tests.agent.turn.test_assembly_properties import entries, histories
from tests.kit.assembly import assemble

TOOLS = [
    {"name": "grep", "input_schema": {"type": "object", "properties": {}}},
    {"name": "read", "input_schema": {"type": "object"}},
]
SYSTEM = [text_block("Be brief."), text_block("Be kind.")]


def arguments(messages: Sequence[Message], fork: int = 0, **parts: Any) -> tuple[dict[str, Any], int]:
    """What the provider sends without breakpoints, and how many blocks are shared."""
    request = assemble(messages, {}, agent="agent", name=None, model=MODEL, fork=fork)
    return {"model": request.model, "max_tokens": 1, "messages": request.messages, **parts}, request.shared


def with_breakpoints(arguments: Mapping[str, Any], shared: int) -> dict[str, Any]:
    """What the provider sends."""
    last = chain_of(arguments["messages"])
    return {**marked(arguments), "messages": json.loads(b"".join(encoded(last, {}, breakpoints(last, shared))))}


def marks(sent: Mapping[str, Any]) -> list[str]:
    """Where the marks are, in the provider's order."""
    places = [
        *((f"tool {block['name']}", block) for block in sent.get("tools", ())),
        *((f"system {block['text']}", block) for block in sent.get("system", ())),
    ]
    for message in sent["messages"]:
        places += ((f"{message['role']} {_word(block)}", block) for block in message["content"])
    return [place for place, block in places if block.get("cache_control") == MARK]


def _word(block: Mapping[str, Any]) -> str:
    return str(block.get("text") or block.get("id") or f"={block.get('tool_use_id')}")


def marks_of(*log: Entry, fork: int = 0, **parts: Any) -> list[str]:
    """Where the marks are in the request that a history gives."""
    sent = with_breakpoints(*arguments(history(*log), fork, **parts))
    assert violations(sent) == []
    return marks(sent)


def test_the_four_places_are_system_the_parents_last_message_its_reply_and_the_last_message() -> None:
    log = (user("a"), said("b"), user("c"), mail("d"), said("e"), user("f"), said("g"), user("h"))
    assert marks_of(*log, fork=5, tools=TOOLS, system=SYSTEM) == ["system Be kind.", "user d", "assistant e", "user h"]


def test_without_a_system_prompt_the_last_tool_is_marked() -> None:
    assert marks_of(user("a"), tools=TOOLS) == ["tool read", "user a"]


def test_the_fork_is_at_the_last_reply_that_came_before_it() -> None:
    log = (user("a"), said("b"), user("c"), said("d"), user("e"))
    assert marks_of(*log, fork=2) == ["user a", "assistant b", "user e"]
    assert marks_of(*log, fork=3) == ["user a", "assistant b", "user e"]
    assert marks_of(*log, fork=4) == ["user c", "assistant d", "user e"]


def test_a_fork_by_a_call_shares_up_to_the_call() -> None:
    log = (user("a"), said("", "1:read", "2:fork"), result("1"), result("2", "you are the child"), user("go"))
    assert marks_of(*log, fork=3) == ["user a", "assistant 2", "user go"]


@pytest.mark.parametrize("fork", [0, 1])
def test_an_agent_that_shares_no_reply_is_marked_where_its_own_last_request_ended(fork: int) -> None:
    assert marks_of(user("a"), fork=fork) == ["user a"]
    calls = tuple(f"{number}:read" for number in range(30))
    log = (user("a"), said("b"), user("c"), said("", *calls), *(result(str(number)) for number in range(30)))
    assert marks_of(*log, fork=fork) == ["user c", "assistant 29", "user =29"]


def test_a_reply_that_is_joined_to_the_shared_one_is_not_shared() -> None:
    assert marks_of(user("a"), said("b"), said("c"), user("d"), fork=2) == ["user a", "assistant b", "user d"]


def test_what_was_cleared_is_not_shared() -> None:
    later = [message for message in history(user("a"), said("b"), user("c"), said("d"), user("e")) if message.id > 2]
    assert arguments(later, fork=2)[1] == 0


def test_thinking_is_never_marked() -> None:
    thought = thinking("model-a", "x")
    body = [{"role": "user", "content": [text_block("a"), thought]}]  # as assembly never makes it
    assert marks(with_breakpoints({"messages": body}, 0)) == ["user a"]
    assert marks(with_breakpoints({"messages": [{"role": "user", "content": [thought]}]}, 0)) == []
    log = (user("a"), blocks(thought, text_block("b"), use_block("1")), result("1"))
    assert marks_of(*log, fork=2) == ["user a", "assistant 1", "user =1"]


parts = st.fixed_dictionaries({}, optional={"tools": st.just(TOOLS), "system": st.just(SYSTEM)})


@given(histories, parts, st.data())
@settings(max_examples=150, deadline=None)
def test_whatever_happened_the_marked_request_is_valid_and_otherwise_the_same(
    messages: list[Message], parts: dict[str, Any], data: st.DataObject
) -> None:
    marked, shared = arguments(messages, data.draw(st.integers(0, len(messages))), **parts)
    before = deepcopy(marked)
    sent = with_breakpoints(marked, shared)
    assert violations(sent) == []
    assert len(marks(sent)) == bool(parts) + min(3, len(marked["messages"]))
    assert _plain(marked) == _plain(before), "blocks are shared with the messages"
    assert _without_marks(sent) == _plain(before)


@pytest.mark.slow("takes half a second")
@given(histories, st.lists(entries, max_size=5), st.lists(entries, max_size=5))
@settings(max_examples=150, deadline=None)
def test_siblings_send_the_same_bytes_up_to_the_end_of_what_they_share(
    common: list[Message], entries: list[Entry], other: list[Entry]
) -> None:
    sent = []
    for own in (entries, other):
        rest = [Message("agent", len(common) + place, *entry, created_at=0) for place, entry in enumerate(own, 1)]
        sent_arguments, shared = arguments([*common, *rest], fork=len(common))
        sent.append(json.dumps(_flat(with_breakpoints(sent_arguments, shared))[:shared]))
    assert sent[0] == sent[1]


def _plain(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {**arguments, "messages": list(arguments["messages"])}


def _without_marks(sent: Any) -> Any:
    if isinstance(sent, Mapping):
        return {key: _without_marks(value) for key, value in sent.items() if key != "cache_control"}
    return [_without_marks(element) for element in sent] if isinstance(sent, list | tuple) else sent


def _flat(sent: Mapping[str, Any]) -> list[Any]:
    return [(message["role"], block) for message in sent["messages"] for block in message["content"]]


def test_a_request_that_is_said_to_share_more_than_it_has_is_a_defect_that_is_told() -> None:
    sent, _ = arguments(history(user("a"), said("b"), user("c")))
    with pytest.raises(ValueError, match="2 blocks less"):
        with_breakpoints(sent, 5)
