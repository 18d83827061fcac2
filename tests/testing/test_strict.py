"""The strict Messages API of the kit: each request that it is to reject is one step away from a good one."""

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import pytest

from ikigai_actors.testing.simulation.messages_api import PICTURE_SIZE, redacted_thinking, sign, thinking, violations
from tests.kit.pictures import PNG

MODEL = "claude"


def text(said: object) -> dict[str, Any]:
    return {"type": "text", "text": said}


def offer(name: object, **schema: object) -> dict[str, Any]:
    return {"name": name, "input_schema": {"type": "object", **schema}}


def request() -> dict[str, Any]:
    """A good one, with a bit of everything."""
    return {
        "model": MODEL,
        "max_tokens": 1,
        "system": [text("Be brief.")],
        "tools": [offer("work"), offer("send", properties={"a.b-c_1": {"anyOf": [{}, {}]}})],
        "messages": [
            {"role": "user", "content": [text("go")]},
            {
                "role": "assistant",
                "content": [
                    thinking(MODEL, "hm"),
                    redacted_thinking(MODEL, "psst"),
                    {"type": "tool_use", "id": "a", "name": "work", "input": {}},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "done"}, text("on")]},
        ],
    }


def picture(data: str = b64encode(PNG).decode()) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


PICTURE = picture()
LARGE = picture(b64encode(PNG[:16] + (2_001).to_bytes(4, "big") + PNG[20:]).decode())


def put(value: object, *path: str | int) -> dict[str, Any]:
    """The good request with another value in one place."""
    made: Any = request()
    place = made
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return dict(made)


def thinks(budget: object, max_tokens: int) -> dict[str, Any]:
    """The good request with a budget for thinking."""
    return {**request(), "thinking": {"type": "enabled", "budget_tokens": budget}, "max_tokens": max_tokens}


def said(*blocks: object) -> dict[str, Any]:
    """The good request with other blocks in the reply."""
    return put(list(blocks), "messages", 1, "content")


def answered(*blocks: object) -> dict[str, Any]:
    """The good request with other blocks in the last message."""
    return put(list(blocks), "messages", 2, "content")


def result(call: str = "a", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call, **more}


def call(**more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "a", "name": "work", "input": {}, **more}


def test_a_good_request_is_accepted() -> None:
    assert violations(request()) == []
    assert violations(put("Be brief.", "system")) == []
    assert violations(answered(result(is_error=True, content="It failed."))) == []
    assert violations(answered(result(is_error=True, content=[text("It failed.")]), PICTURE)) == []
    assert violations(answered(result(content=[PICTURE, text("done")]))) == []
    assert violations(answered(result(content="done"), *[LARGE] * 20)) == []
    assert violations(answered(result(content="done"), *[PICTURE] * 100)) == []
    assert violations(thinks(2_000, 2_001)) == []


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (put(None, "model"), "model: Field required"),
        (put("", "model"), "model: Field required"),
        (put(0, "max_tokens"), "max_tokens: Field required"),
        (put("1", "max_tokens"), "max_tokens: Field required"),
        (put([offer("work"), offer("work")], "tools"), "tools: Tool names must be unique."),
        (put("a b", "tools", 1, "name"), "tools.1.custom.name: should match"),
        (put(None, "tools", 1, "name"), "tools.1.custom.name: should match"),
        (put(None, "tools", 1, "input_schema"), "tools.1.custom.input_schema.type: Input should be 'object'"),
        (put({}, "tools", 1, "input_schema"), "tools.1.custom.input_schema.type: Input should be 'object'"),
        (put([{}], "tools", 1, "input_schema", "oneOf"), "tools.1.custom.input_schema: no oneOf is supported"),
        (put({"$x": {}}, "tools", 1, "input_schema", "properties"), "tools.1.custom.input_schema.properties: keys"),
        (put({"x" * 65: {}}, "tools", 1, "input_schema", "properties"), "input_schema.properties: keys should match"),
        (thinks(1_023, 9_000), "thinking.budget_tokens: Input should be a whole number, 1024 or more"),
        (thinks(None, 9_000), "thinking.budget_tokens: Input should be a whole number, 1024 or more"),
        (thinks(2_000, 2_000), "max_tokens: must be greater than thinking.budget_tokens"),
        (put(7, "system"), "system: Input should be a string or a list"),
        (put([result()], "system"), "system.0: Input should be a text block"),
        (put([text(" \n")], "system"), "system.0: text content blocks must contain non-whitespace text"),
        (put(["x"], "system"), "system.0: a block must be an object with a type"),
        (put(None, "messages"), "messages: at least one message is required"),
        (put([], "messages"), "messages: at least one message is required"),
        (put("user", "messages", 1, "role"), "messages.1: expected role 'assistant', got 'user'"),
        (put("assistant", "messages", 2, "role"), "messages: the last one must be the user's"),
        (put([], "messages", 2, "content"), "messages.2: content must be a list of at least one block"),
        (put("go", "messages", 0, "content"), "messages.0: content must be a list of at least one block"),
        (put("go", "messages", 0, "content", 0), "messages.0.content.0: a block must be an object with a type"),
        (put(None, "messages", 0, "content", 0, "type"), "messages.0.content.0: a block must be an object with a type"),
        (put([], "messages", 0, "content", 0, "type"), "messages.0.content.0: a block must be an object with a type"),
        (put(" ", "messages", 0, "content", 0, "text"), "messages.0.content.0: text content blocks must contain"),
        (answered(result(), call()), "messages.2: a user message may not hold 'tool_use'"),
        (answered(text("on"), result()), "messages.2: tool_result blocks must come first"),
        (answered(result(), result()), "messages.2: each tool_use must have a single result"),
        (answered(text("on")), "messages.2: `tool_use` a was found without a `tool_result` block immediately after"),
        (answered(result(), result("z")), "messages.2: unexpected `tool_use_id` z in a `tool_result` block"),
        (answered(result(content=[text(" ")])), "messages.2.tool_result.content.0: text content blocks must contain"),
        (answered(result(is_error=True, content=" ")), "messages.2: content cannot be empty if `is_error` is true"),
        (answered(result(is_error=True)), "messages.2: content cannot be empty if `is_error` is true"),
        (
            answered(result(is_error=True, content=[text("no"), PICTURE])),
            'all content must be type "text" if `is_error`',
        ),
        (answered(result(content=[PICTURE] * 9), *[PICTURE] * 92), "101 images and documents exceed the maximum"),
        (answered(result(content=[LARGE]), *[PICTURE] * 20), "image dimensions exceed max allowed size: 2000 pixels"),
        (answered(result(), picture("A" * (PICTURE_SIZE + 1))), "image exceeds 5 MB maximum: 5242881 bytes > 5242880"),
        (said(call(), thinking(MODEL, "hm")), "messages.1: The final block in an assistant message cannot be"),
        (said(result(), call()), "messages.1: an assistant message may not hold 'tool_result'"),
        (said(thinking("other", "hm"), call()), "messages.1: Invalid `signature` in `thinking` block"),
        (said(redacted_thinking("other", "hm"), call()), "messages.1: Invalid `signature` in `redacted_thinking`"),
        (said({"type": "redacted_thinking", "data": f"hm.{sign(MODEL, 'hm')}"}, call()), "Invalid `signature`"),
        (said({"type": "redacted_thinking", "data": f"ff.{sign(MODEL, 'hm')}"}, call()), "Invalid `signature`"),
        (said(call(), call(id="b c")), "messages.1: tool_use.id 'b c' should match"),
        (said(call(), call(id=None)), "messages.1: tool_use.id None should match"),
        (said(call(), call()), "messages.1: `tool_use` ids must be unique, a is not"),
        (said(call(name="")), "messages.1: tool_use.name '' should match"),
        (said(call(name=None)), "messages.1: tool_use.name None should match"),
        (said(call(input=None)), "messages.1: tool_use.input: Input should be a valid dictionary"),
    ],
)
def test_what_the_api_rejects_is_a_violation(made: dict[str, Any], message: str) -> None:
    assert any(message in violation for violation in violations(made))


@pytest.mark.parametrize("empty", [[], "", ["no block"]])
def test_a_message_without_content_says_nothing_of_those_after_it(empty: Sequence[object]) -> None:
    assert len(violations(put(empty, "messages", 0, "content"))) == 1
