"""Reads a stored reply from the data of its message. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from ikigai_actors.providers.base import Reply, Spent, ToolCall, Usage

INTERRUPTED = "interrupted"
"""The stop reason of a reply that was cut off. Only the text of such a reply is stored."""


def reply_at(position: int, content: str, data: Mapping[str, Any]) -> Reply:
    """Return the reply at a position, from the content and data of its message.

    Each call of the reply has an id that is unique in the reply. A call without an id gets one made from its position.
    The field ``data.tool_use_id`` of a result refers to these ids.
    """
    stop_reason = data.get("stop_reason", "end_turn")
    return Reply(
        text=content,
        tool_calls=calls_at(position, data),
        stop_reason=stop_reason,
        usage=stored_usage(data.get("usage")),
        blocks=() if stop_reason == INTERRUPTED else tuple(data.get("blocks") or ()),
        model=data.get("made_by", ""),
    )


def spent_in(data: Mapping[str, Any]) -> Spent | None:
    """Return the tokens that a service counted, from the data of a message; None for none."""
    usage = stored_usage(data.get("usage"))
    return None if usage is None else Spent(usage, data.get("made_by", ""))


def stored_usage(stored: Mapping[str, Any] | None) -> Usage | None:
    """Return the stored usage. Fields of a newer version are left out."""
    if stored is None:
        return None
    return Usage(**{field.name: stored[field.name] for field in fields(Usage) if field.name in stored})


def calls_at(position: int, data: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """Return the calls of the reply at a position, each with an id that is unique in the reply."""
    if data.get("stop_reason") == INTERRUPTED:
        return ()
    blocks = data.get("blocks")
    stored = [block for block in blocks if block.get("type") == "tool_use"] if blocks else data.get("tool_calls")
    taken = {str(call.get("id") or "") for call in stored or ()}
    seen: set[str] = set()
    calls = []
    for place, call in enumerate(stored or ()):
        own = str(call.get("id") or "")
        call_id = own if own and own not in seen else new_call_id(position, place, (taken | seen).__contains__)
        seen.add(call_id)
        calls.append(ToolCall(str(call.get("name") or ""), call.get("input") or {}, call_id))
    return tuple(calls)


def new_call_id(message_id: int, position: int, is_taken: Callable[[str], bool]) -> str:
    """Return a new id for a call, made from its position. Underscores are added until the id is free."""
    call_id = f"call_{message_id}_{position}"
    while is_taken(call_id):
        call_id += "_"
    return call_id
