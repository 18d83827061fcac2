"""The form in which a reply is stored: `reply_message_data` writes it, and `reply_of` reads it. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from math import isfinite
from typing import Any

from ikigai_actors.errors import OutputError, ProviderError, ProviderMissing, ReplayDiverged, TurnInterrupted
from ikigai_actors.providers.base import Reply, Spent, ToolCall
from ikigai_actors.providers.blocks import THINKING
from ikigai_actors.records.messages.messages import Kind, Message

OUTPUT = "output"
"""The stop reason of a reply that is the value of a typed turn."""

_HALVES = re.compile("[\ud800-\udfff]")


def reply_message_data(reply: Reply, model: str) -> dict[str, Any]:
    """Return the data of an assistant message for a reply, without its text.

    Blocks and calls are kept as they came, except for what no request can carry: halves of characters become U+FFFD,
    and numbers that JSON does not have become None. A thinking block that this changes is left out, since its signature
    would be wrong.

    Args:
        model: The model that was asked for it, as ``provider:model``: `assemble` compares it before it resends
            thinking.

    Returns:
        The message's data: ``model``, ``stop_reason`` and, when there are any, ``blocks`` (else ``tool_calls``),
        ``usage``, ``made_by`` (the model's name as the provider reported it) and ``batched``.
    """
    data: dict[str, Any] = {"model": model, "stop_reason": reply.stop_reason}
    if reply.blocks:
        sendable = ((block, _sendable(dict(block))) for block in reply.blocks)
        data["blocks"] = [sent for block, sent in sendable if sent == block or block.get("type") not in THINKING]
    elif reply.tool_calls:
        data["tool_calls"] = [
            _sendable({"id": call.id, "name": call.name, "input": dict(call.input)}) for call in reply.tool_calls
        ]
    if reply.usage is not None:
        data |= spent_data(Spent(reply.usage, reply.model))
    elif reply.model:
        data["made_by"] = reply.model
    if reply.batched:
        data["batched"] = True
    return data


def spent_data(spent: Spent | None) -> dict[str, Any]:
    """Return the part of a message's data that records the tokens counted by a service.

    Messages about requests without a reply have this part, too.
    """
    if spent is None:
        return {}
    counts = asdict(spent.usage)
    if not spent.usage.cache_creation_1h_input_tokens:  # nearly always
        del counts["cache_creation_1h_input_tokens"]
    usage = {"usage": counts}
    return {**usage, "made_by": spent.model} if spent.model else usage


def _sendable(value: Any) -> Any:
    """Return a value of a reply without the characters and numbers that a request cannot contain."""
    match value:
        case str():
            return value if value.isascii() else _HALVES.sub("\ufffd", value)
        case float():
            return value if isfinite(value) else None
        case Mapping():
            return {_sendable(key): _sendable(part) for key, part in value.items()}
        case list() | tuple():
            return [_sendable(part) for part in value]
    return value


def output_reply(message: Message) -> Reply:
    """Return the reply for a message of kind ``output``: its text is the value as JSON."""
    data = message.data
    spent = spent_of(message)
    return Reply(
        message.content,
        stop_reason=OUTPUT,
        usage=spent.usage if spent is not None else None,
        model=data.get("made_by", ""),
        output=data["output"],
    )


def outcome_of(newest_first: Iterable[Message]) -> Reply | ProviderError | TurnInterrupted | None:
    """Return the outcome of the latest turn among an agent's own messages; None if there was none."""
    ended = False  # hooks have let it end
    for message in newest_first:
        match message.kind:
            case Kind.ASSISTANT if is_whole_reply(message):
                return reply_of(message)
            case Kind.ERROR if "diverged" in message.data:
                return ReplayDiverged(message.content)
            case Kind.OUTPUT:
                return output_reply(message)
            case Kind.REPAIR | Kind.STEER | Kind.CONTEXT:
                return None  # its turn is open, or death has cut it off
            case Kind.HOOK if message.data.get("ends"):
                ended = True
            case Kind.HOOK if message.data.get("asked") and not ended:
                return None  # hooks may have it go on
            case Kind.ERROR if "output" in message.data:
                return OutputError(message.content, reason=str(message.data.get("reason", "misfit")))
            case Kind.ERROR if "missing" in message.data:
                return ProviderMissing(message.content)
            case Kind.ERROR:
                return ProviderError(message.content, message.data.get("partial", ""))
            case Kind.ASSISTANT | Kind.INTERRUPTED:
                return TurnInterrupted("The turn was interrupted.", message.agent_uuid)
    return None


def last_outcome(newest_first: Iterable[Message]) -> Reply | ProviderError | TurnInterrupted | None:
    """Return the outcome of a dead agent's latest turn; None if there was none, or the death cut it off."""
    ended = False
    for message in newest_first:
        if message.kind in (Kind.USER, Kind.REPAIR, Kind.STEER, Kind.CONTEXT):
            return None
        if message.kind == Kind.HOOK and "asked" in message.data and not ended:
            return None
        ended = ended or "ends" in message.data
        outcome = outcome_of((message,))
        if isinstance(outcome, Reply) and outcome.tool_calls:
            return None
        if outcome is not None:
            return outcome
    return None


def reply_of(message: Message) -> Reply:
    """Return the reply that an assistant message has stored: the inverse of `reply_message_data`."""
    return message.reply


def is_whole_reply(message: Message) -> bool:
    """Return whether a message is a reply that was not cut off."""
    return message.is_whole_reply


def spent_of(message: Message) -> Spent | None:
    """Return the tokens that a service counted for a message; None for none. The inverse of `spent_data`."""
    return message.spent


def calls_in(message: Message) -> tuple[ToolCall, ...]:
    """Return the calls of an assistant message, each with an id that is unique in the message."""
    return message.calls
