"""A reply that a service keeps until it is read, as the log of its agent records it.

A `note`, or a `retry` of the same request, has ``response``, ``after`` and ``model``. The reply may be read while that
message is the last one of the agent, not counting births of children. Any other later message means that the agent does
not wait for the reply any more.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ikigai_actors.providers.base import KeptReply
from ikigai_actors.records.messages.messages import Kind, Message

RESPONSE = "response"
"""The key in the data of the message: the name of the reply at its service."""


class KeptRequest(NamedTuple):
    """A request to a model whose reply the service keeps, so that it can be read after a crash."""

    model: str
    """``provider:model``."""
    reply: KeptReply


def kept_data(kept: KeptRequest) -> Mapping[str, Any]:
    """Return the data of a message that names a reply which a service keeps."""
    return {RESPONSE: kept.reply.id, "after": kept.reply.after, "model": kept.model}


def awaited_reply(newest_first: Iterable[Message], agent: str) -> KeptRequest | None:
    """Return the kept request that an agent waits for, by the end of its log; None if it waits for none."""
    message = next((message for message in newest_first if not message.announces_birth), None)
    match None if message is None else message.data:
        case {"response": str(name), "after": int(after), "model": str(model)} if name and _may_name(message, agent):
            return KeptRequest(model, KeptReply(name, after))
    return None


def _may_name(message: Message | None, agent: str) -> bool:
    return message is not None and message.agent_uuid == agent and message.kind in (Kind.NOTE, Kind.RETRY)
