"""A reply in the form of the Messages API, read and checked. Pure.

The client builds a message without checking it, and a service must take the blocks of a reply again, or it would refuse
every later request. So nothing passes here that is not whole.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from ikigai_actors.errors import ProviderError
from ikigai_actors.providers.base import Reply, Spent, ToolCall, Usage
from ikigai_actors.providers.malformed import MalformedStreamError, expect
from ikigai_actors.providers.remedies import CUT, half_a_call

if TYPE_CHECKING:
    from anthropic.types import Message

_FIELDS: Mapping[str, Mapping[str, type]] = {
    "text": {"text": str},
    "thinking": {"thinking": str, "signature": str},
    "redacted_thinking": {"data": str},
    "tool_use": {"id": str, "name": str, "input": dict},
}
"""The fields that blocks of known types must have."""


def read_reply(message: "Message", partial: str, max_tokens: int, cut_by_budget: bool) -> Reply:
    """The reply of a finished message; raises `ProviderError` when it is not whole."""
    if message.stop_reason is None:
        raise ProviderError(CUT, partial, broke_off=True)
    blocks = _blocks(message)
    uses = [block for block in blocks if block["type"] == "tool_use"]
    if uses and blocks[-1]["type"] == "tool_use" and message.stop_reason != "tool_use":
        # The client completes half an input: "rm -rf /tmp/x" may have become "rm -rf /". Such a call must not run.
        told = half_a_call(uses[-1]["name"], message.stop_reason, max_tokens, cut_by_budget)
        raise ProviderError(told, partial)
    return Reply(
        text="".join(str(block.get("text", "")) for block in blocks if block["type"] == "text"),
        tool_calls=tuple(ToolCall(use["name"], use["input"], use["id"]) for use in uses),
        stop_reason=expect(str, message.stop_reason, "stop_reason"),
        usage=_usage(message),
        blocks=blocks,
        model=expect(str, message.model, "model"),
    )


def _blocks(message: "Message") -> tuple[dict[str, Any], ...]:
    """A message's blocks, checked: the API must take them again, or it would refuse every later request."""
    try:
        blocks = tuple(block.to_dict(warnings=False) for block in message.content)
    except (ValueError, TypeError, AttributeError) as error:
        raise MalformedStreamError(f"a broken block in the stream: {error!r}") from error
    for block in blocks:
        kind = expect(str, block.get("type"), "type of a block")
        for name, expected in _FIELDS.get(kind, {}).items():
            expect(expected, block.get(name), f"{name} of a block of type {kind}")
    return blocks


def _usage(message: "Message") -> Usage:
    counts = {field.name: getattr(message.usage, field.name, None) or 0 for field in fields(Usage)}
    return Usage(**{name: expect(int, count, name) for name, count in counts.items()})


def spent_so_far(message: "Message") -> Spent:
    """The tokens that the service has counted so far, of a message that is on its way."""
    return Spent(_usage(message), expect(str, message.model, "model"))
