"""Assembly: whatever the history, the request is one that the API accepts."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ikigai_actors.agent.turn.request import NO_OUTPUT, NOT_RUN
from ikigai_actors.providers.base import GO_ON, OPENING, Request
from ikigai_actors.providers.blocks import CallBlock, ModelMessage, ResultBlock
from ikigai_actors.providers.messages_form import block_form, read_messages
from ikigai_actors.records.messages.messages import CONVERSATION, Kind, Message
from ikigai_actors.records.messages.reply_data import INTERRUPTED
from ikigai_actors.testing.simulation.messages_api import redacted_thinking, thinking, violations
from tests.kit.assembly import assemble
from tests.kit.pictures import PNG

MODEL = "anthropic:model-a"
OTHER = "anthropic:model-b"
FOREIGN = "openai:model-c"

Entry = tuple[str, str, Mapping[str, Any]]
"""A message without its position: kind, content, data."""


def history(*entries: Entry) -> list[Message]:
    return [Message("agent", position, *entry, created_at=0) for position, entry in enumerate(entries, 1)]


def assembled(messages: Sequence[Message], model: str = MODEL, **options: Any) -> Request:
    request = assemble(messages, options.pop("settings", {}), agent="agent", name="n", model=model, **options)
    assert violations(wire(request)) == []
    return request


def wire(request: Request) -> dict[str, Any]:
    """The request as JSON, as a provider sends it."""
    body = {"model": request.model, "max_tokens": 1, "system": request.system, "messages": list(request.messages)}
    return dict(json.loads(json.dumps(body)))


def shown(*entries: Entry) -> list[tuple[str, list[str]]]:
    """The request's messages, each block as a word or two."""
    return [
        (message["role"], [_word(block) for block in message["content"]])
        for message in assembled(history(*entries)).messages
    ]


def _word(block: Mapping[str, Any]) -> str:
    match block["type"]:
        case "text":
            return str(block["text"])
        case "tool_use":
            return f"{block['id']}:{block['name']}"
        case "tool_result":
            return f"{block['tool_use_id']}={block['content']}" + ("!" if block.get("is_error") else "")
    return str(block["type"])


def user(text: str) -> Entry:
    return (Kind.USER, text, {})


def mail(line: str) -> Entry:
    return (Kind.MAIL, line, {})


def said(text: str, *calls: str, **data: Any) -> Entry:
    """A reply without blocks; a call is ``id:name``, or ``:name`` for one without an id."""
    stored = [{"id": call.partition(":")[0], "name": call.partition(":")[2], "input": {}} for call in calls]
    return (Kind.ASSISTANT, text, {"model": MODEL, "tool_calls": stored, "stop_reason": "end_turn", **data})


def blocks(*content: Mapping[str, Any], model: str = MODEL, stop_reason: str = "end_turn") -> Entry:
    return (Kind.ASSISTANT, "", {"model": model, "blocks": list(content), "stop_reason": stop_reason})


def result(call_id: str, text: str = "done", **data: Any) -> Entry:
    return (Kind.TOOL_RESULT, text, {"tool_use_id": call_id, **data})


def text_block(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def use_block(call_id: str, name: str = "read") -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {}}


# Settings


def test_settings_are_sorted_into_the_request() -> None:
    chosen = {"system": "Be brief.", "model": "x", "tools": ["read"], "max_tokens": 5, "thinking": {"type": "adaptive"}}
    tool = {"name": "read", "input_schema": {"type": "object"}}
    request = assembled(history(user("hi")), settings=chosen, tools=[tool])
    assert request == Request(
        agent="agent",
        name="n",
        model="model-a",
        system="Be brief.",
        messages=({"role": "user", "content": [{"type": "text", "text": "hi"}]},),
        tools=(tool,),
        settings={"max_tokens": 5, "thinking": {"type": "adaptive"}},
    )


@pytest.mark.parametrize(("model", "within"), [("offline", ""), ("a:b", "b"), ("a:b:c", "b:c"), ("a:", "")])
def test_the_model_is_what_follows_the_provider(model: str, within: str) -> None:
    request = assemble([], {"system": None}, agent="a", name=None, model=model)
    assert (request.model, request.system) == (within, "")


# Roles


def test_prompts_and_replies_alternate() -> None:
    assert shown(user("a"), said("b"), user("c")) == [("user", ["a"]), ("assistant", ["b"]), ("user", ["c"])]


def test_neighbours_of_the_same_role_are_joined() -> None:
    log = (user("a"), mail("1 mail"), user("b"), said("c"), said("d"), user("e"))
    assert shown(*log) == [("user", ["a", "1 mail", "b"]), ("assistant", ["c", "d"]), ("user", ["e"])]


def test_a_placeholder_stands_before_a_first_reply_and_after_a_last_one() -> None:
    assert shown(said("a")) == [("user", [OPENING]), ("assistant", ["a"]), ("user", [GO_ON])]
    assert shown() == [("user", [GO_ON])]


def test_blank_texts_are_left_out_and_their_neighbours_joined() -> None:
    assert shown(user("a"), said(" \n"), user("\t"), user("b")) == [("user", ["a", "b"])]
    assert shown(user("a"), said("b"), user(""), said("c"), user("d"))[1] == ("assistant", ["b", "c"])
    assert shown(user("a"), blocks(text_block(" "), text_block("b")), user("c"))[1] == ("assistant", ["b"])


@pytest.mark.parametrize("kind", sorted({*Kind, "of a newer version"} - CONVERSATION))
def test_other_kinds_are_not_shown_to_the_model(kind: str) -> None:
    assert shown(user("a"), (kind, "hidden", {}), said("b"), user("c")) == shown(user("a"), said("b"), user("c"))


# Calls


def test_results_come_first_and_in_the_order_of_the_calls() -> None:
    log = (user("a"), said("b", "1:read", "2:grep"), result("2"), mail("mail"), result("1"), user("c"))
    assert shown(*log)[1:] == [
        ("assistant", ["b", "1:read", "2:grep"]),
        ("user", ["1=done", "2=done", "mail", "c"]),
    ]


def test_results_of_forks_come_last_and_keep_their_order() -> None:
    calls = ("1:fork", "2:read", "3:fork", "4:grep")
    log = (user("a"), said("", *calls), *(result(str(number)) for number in range(1, 5)))
    assert shown(*log)[-1] == ("user", ["2=done", "4=done", "1=done", "3=done"])


def test_a_call_without_a_result_gets_one_that_says_why() -> None:
    log = (user("a"), said("", "1:read", "2:read"), result("2"), user("b"))
    assert shown(*log)[-1] == ("user", [f"1={NOT_RUN}!", "2=done", "b"])
    assert shown(user("a"), said("", "1:read"), said("b"), user("c"))[2] == ("user", [f"1={NOT_RUN}!"])


def test_results_that_answer_nothing_are_dropped() -> None:
    assert shown(result("1"), user("a")) == [("user", ["a"])]
    log = (user("a"), said("", "1:read"), result("1"), said("b"), result("1"), result("9"), user("c"))
    assert shown(*log)[-1] == ("user", ["c"])


def test_the_first_of_two_results_counts() -> None:
    assert shown(user("a"), said("", "1:read"), result("1", "x"), result("1", "y"))[-1] == ("user", ["1=x"])


def test_a_result_may_follow_the_prompt_that_it_is_sent_with() -> None:
    log = (user("a"), said("", "1:fork"), user("b"), result("1", "you are the child"))
    assert shown(*log)[-1] == ("user", ["1=you are the child", "b"])


def test_an_empty_result_says_that_there_is_no_output() -> None:
    log = (user("a"), said("", "1:read", "2:read"), result("1", ""), result("2", " ", is_error=True))
    assert shown(*log)[-1] == ("user", [f"1={NO_OUTPUT}", f"2={NO_OUTPUT}!"])


def test_what_an_error_gives_beside_its_text_follows_all_results() -> None:
    seen = {"attached": [{"sha256": "1", "media": "image/png", "size": len(PNG), "name": "shot.png"}]}
    entries = (user("look"), said("", "1:shot", "2:read"), result("1", "failed", is_error=True, **seen), result("2"))
    request = assembled(history(*entries, user("on")), blobs={"1": PNG})
    text_block, picture, on = request.messages[-1]["content"][2:]
    assert [_word(block) for block in request.messages[-1]["content"][:2]] == ["1=failed!", "2=done"]
    assert (text_block["text"], picture["type"], on["text"]) == ("What shot gave beside its text:", "image", "on")


def test_calls_without_ids_get_one_from_the_position_of_their_message() -> None:
    log = (user("a"), said("", ":read", ":grep"), result("call_2_1", "x"))
    assert shown(*log)[1:] == [
        ("assistant", ["call_2_0:read", "call_2_1:grep"]),
        ("user", [f"call_2_0={NOT_RUN}!", "call_2_1=x"]),
    ]


def test_an_id_that_is_used_twice_stands_once_in_the_request() -> None:
    log = (user("a"), said("", "1:read"), result("1", "x"), said("", "1:read", "1:read"), result("1", "y"))
    assert shown(*log)[-2:] == [
        ("assistant", ["call_4_0:read", "call_4_1:read"]),
        ("user", ["call_4_0=y", f"call_4_1={NOT_RUN}!"]),
    ]


def test_ids_and_names_that_the_api_refuses_are_replaced() -> None:
    log = (user("a"), said("", "é 1:läs mig", ":"), result("é 1", "x"))
    assert shown(*log)[1:] == [
        ("assistant", ["call_2_0:l_s_mig", "call_2_1:_"]),
        ("user", ["call_2_0=x", f"call_2_1={NOT_RUN}!"]),
    ]


# Blocks


def test_blocks_are_resent_unaltered() -> None:
    reply_blocks = [
        thinking("model-a", "hm"),
        redacted_thinking("model-a", "secret"),
        {"type": "text", "text": "b", "citations": [{"quoted": "x"}]},
        {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"z": 1, "a": 2}, "caller": {"type": "direct"}},
    ]
    messages = assembled(history(user("a"), blocks(*reply_blocks), result("toolu_1"))).messages
    assert messages[1]["content"] == reply_blocks
    assert json.dumps(messages[1]["content"]) == json.dumps(reply_blocks)


def test_thinking_goes_back_only_to_the_model_that_made_it() -> None:
    log = (
        user("a"),
        blocks(thinking("model-a", "x"), text_block("b")),
        user("c"),
        blocks(thinking("model-b", "y"), redacted_thinking("model-b", "z"), text_block("d"), model=OTHER),
        user("e"),
    )
    assert shown(*log)[1::2] == [("assistant", ["thinking", "b"]), ("assistant", ["d"])]


def test_what_only_one_service_understands_goes_to_no_other() -> None:
    search = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
    cited = {"type": "text", "text": "b", "citations": [{"quoted": "x"}]}
    log = (user("a"), blocks(search, cited), user("c"), blocks(reasoning, text_block("d"), model=FOREIGN), user("e"))
    sent = {
        model: assemble(history(*log), {}, agent="agent", name=None, model=model).messages
        for model in (MODEL, OTHER, FOREIGN, "openai:other")
    }
    assert sent[MODEL][1]["content"] == sent[OTHER][1]["content"] == [search, cited]
    assert sent[FOREIGN][1]["content"] == sent["openai:other"][1]["content"] == [text_block("b")]
    assert sent[FOREIGN][3]["content"] == [reasoning, text_block("d")]
    assert all(sent[model][3]["content"] == [text_block("d")] for model in (MODEL, OTHER, "openai:other"))


def as_sent(conversation: Sequence[ModelMessage]) -> list[dict[str, Any]]:
    return [
        {"role": message.role, "content": [block_form(block, {}) for block in message.blocks]}
        for message in conversation
    ]


def test_the_messages_of_a_request_and_its_blocks_say_the_same() -> None:
    read = {**use_block("1"), "caller": {"type": "direct"}}
    log = (user("a"), blocks(thinking("model-a", "hm"), text_block("b"), read), result("1", "x", is_error=True))
    request = assembled(history(*log))
    assert [type(block) for message in read_messages(request.messages) for block in message.blocks] == [
        type(block) for message in request.conversation for block in message.blocks
    ]
    assert as_sent(read_messages(request.messages)) == request.messages
    assert request.conversation[1].blocks[2] == CallBlock("1", "read", {}, read)
    assert request.conversation[2].blocks == (ResultBlock("1", "read", "x", is_error=True),)
    assert as_sent(request.conversation) == request.messages


def test_thinking_never_ends_a_message() -> None:
    thought = thinking("model-a", "x")
    assert shown(user("a"), blocks(thought), user("b")) == [("user", ["a", "b"])]
    assert shown(user("a"), blocks(text_block("b"), thought, text_block(" ")), user("c"))[1] == ("assistant", ["b"])


def test_of_an_interrupted_reply_only_its_text_is_sent() -> None:
    kept = (Kind.ASSISTANT, "so far", {"stop_reason": INTERRUPTED, "model": MODEL, "blocks": [use_block("1")]})
    assert shown(user("a"), kept, result("1"), user("b"))[1:] == [("assistant", ["so far"]), ("user", ["b"])]
