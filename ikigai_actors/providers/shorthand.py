"""Shorthand: what a person may write instead of a `Reply`, and how it becomes one.

    as_reply("text")
    as_reply([ToolCall("read", {"path": "a"})])
    as_reply([{"type": "text", "text": "…"}, {"type": "tool_use", "name": "read", "input": {}}])
    as_reply(Reply(...))

Text, calls or content blocks of the Messages API become a whole reply; what a `Reply` leaves out is taken from its
blocks.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ikigai_actors.providers.base import Reply, ToolCall

Answer = str | Reply | Sequence[Mapping[str, Any]] | Sequence[ToolCall]
"""Anything that `as_reply` takes."""

_EXPECTED = "Expected a reply as text, a Reply, a list of ToolCall or a list of content blocks (dicts with a 'type')"


def as_reply(value: object) -> Reply:
    """Make a reply of what a person wrote.

    Args:
        value: One of `Answer`.

    Returns:
        The reply, complete: its text, calls and stop reason agree with its blocks.

    Raises:
        TypeError: It is nothing of the kind, or holds what JSON cannot.
    """
    if isinstance(value, str):
        return Reply(text=value)
    if isinstance(value, Reply):
        return _checked(_completed(value))
    if value is None:
        raise TypeError(f"{_EXPECTED}, got None. Does the function return its answer?")
    if not isinstance(value, Sequence) or isinstance(value, bytes | bytearray):
        raise TypeError(f"{_EXPECTED}, got {value!r} (type={type(value).__name__}).")
    calls = tuple(item for item in value if isinstance(item, ToolCall))
    if len(calls) == len(value):
        return _checked(_completed(Reply(tool_calls=calls)))
    for item in value:
        _check_block(item)
    return _checked(_completed(Reply(blocks=tuple(value))))


def _completed(reply: Reply) -> Reply:
    """The reply with text and calls from its blocks, when it names none, and a stop reason that fits its calls."""
    for block in reply.blocks:
        _check_block(block)
    uses = [block for block in reply.blocks if block["type"] == "tool_use"]
    calls = tuple(reply.tool_calls) or tuple(ToolCall(use["name"], use["input"], use.get("id", "")) for use in uses)
    text = reply.text or "".join(block["text"] for block in reply.blocks if block["type"] == "text")
    stop_reason = "tool_use" if calls and reply.stop_reason == "end_turn" else reply.stop_reason
    return replace(reply, text=text, tool_calls=calls, stop_reason=stop_reason)


def _check_block(block: object) -> None:
    if not isinstance(block, Mapping) or not isinstance(block.get("type"), str):
        raise TypeError(f"{_EXPECTED}, got one that holds {block!r} (type={type(block).__name__}).")
    if block["type"] == "text" and not isinstance(block.get("text"), str):
        raise TypeError(f"Expected a text block to hold text under 'text', got {block!r}.")
    if block["type"] == "tool_use" and not (
        isinstance(block.get("name"), str) and isinstance(block.get("input"), Mapping)
    ):
        raise TypeError(f"Expected a tool_use block to hold a 'name' and, as a dict, an 'input', got {block!r}.")


def _checked(reply: Reply) -> Reply:
    """The reply, if it can be stored: here the fault is its maker's, in the store it would be nobody's."""
    for call in reply.tool_calls:
        if not isinstance(call, ToolCall) or not isinstance(call.name, str) or not isinstance(call.input, Mapping):
            raise TypeError(f"Expected a call as ToolCall(name, input), with a dict as input, got {call!r}.")
    try:
        json.dumps([dict(block) for block in reply.blocks])
        json.dumps([dict(call.input) for call in reply.tool_calls])
    except (TypeError, ValueError) as error:
        raise TypeError(f"Expected blocks and the inputs of calls to be JSON, got {reply!r}: {error}.") from error
    return reply
