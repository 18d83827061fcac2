"""Shorthand: values that a function may return instead of a `Reply`.

    as_reply("text")
    as_reply([ToolCall("read", {"path": "a"})])
    as_reply([{"type": "text", "text": "…"}, {"type": "tool_use", "name": "read", "input": {}}])
    as_reply(Reply(...))
    as_reply(Invoice(total=12.5))

Text, calls or content blocks of the Messages API become a whole reply; what a `Reply` leaves out is taken from its
blocks. A dataclass or a pydantic model becomes the value of a typed turn, and the text of the reply as JSON.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass, replace
from typing import Any, ClassVar, Protocol

from ikigai_actors.providers.base import Reply, ToolCall
from ikigai_actors.providers.checked import NoReply, checked_reply


class DataclassValue(Protocol):
    """An instance of a dataclass, as type checkers know it."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


class ModelValue(Protocol):
    """An instance of a pydantic model."""

    model_fields: ClassVar[Any]


ReplyShorthand = str | Reply | Sequence[Mapping[str, Any]] | Sequence[ToolCall] | DataclassValue | ModelValue
"""The values that `as_reply` accepts."""

_EXPECTED = "Expected a reply as text, a Reply, a list of ToolCall or a list of content blocks (dicts with a 'type')"


def as_reply(value: object) -> Reply:
    """Return the reply for a shorthand value.

    Args:
        value: One of `ReplyShorthand`.

    Returns:
        The reply, complete: its text, calls and stop reason agree with its blocks.

    Raises:
        NoReply: The value is of another type, or holds a value that JSON cannot hold.
    """
    if isinstance(value, str):
        return Reply(text=value)
    if isinstance(value, Reply):
        return _completed(checked_reply(replace(value, output=_as_json(value.output))))
    if (is_dataclass(value) or hasattr(type(value), "model_fields")) and not isinstance(value, type | ToolCall):
        output = _as_json(value)
        return Reply(text=json.dumps(output, ensure_ascii=False, default=str), output=output)
    if value is None:
        raise NoReply(f"{_EXPECTED}, got None. Does the function return its answer?")
    if not isinstance(value, Sequence) or isinstance(value, bytes | bytearray):
        raise NoReply(f"{_EXPECTED}, got {value!r} (type={type(value).__name__}).")
    calls = tuple(item for item in value if isinstance(item, ToolCall))
    if len(calls) == len(value):
        return _completed(checked_reply(Reply(tool_calls=calls)))
    for item in value:
        if not isinstance(item, Mapping):
            raise NoReply(f"{_EXPECTED}, got one that holds {item!r} (type={type(item).__name__}).")
    return _completed(checked_reply(Reply(blocks=tuple(value))))


def _as_json(value: object) -> object:
    """Return the value of a typed turn in JSON's types. The turn reports a value that JSON cannot hold."""
    try:
        json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        from pydantic_core import PydanticSerializationError, to_jsonable_python

        try:
            jsonable: object = to_jsonable_python(value)
        except (PydanticSerializationError, ValueError, RecursionError):
            return value
        return jsonable
    return value


def _completed(reply: Reply) -> Reply:
    """Return the reply with missing text and calls taken from its blocks, and a stop reason that fits its calls."""
    uses = [block for block in reply.blocks if block["type"] == "tool_use"]
    calls = reply.tool_calls or tuple(ToolCall(use["name"], use["input"], use.get("id", "")) for use in uses)
    text = reply.text or "".join(block["text"] for block in reply.blocks if block["type"] == "text")
    stop_reason = "tool_use" if calls and reply.stop_reason == "end_turn" else reply.stop_reason
    return replace(reply, text=text, tool_calls=calls, stop_reason=stop_reason)
