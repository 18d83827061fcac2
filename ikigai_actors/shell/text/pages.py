"""Pages about one agent, as text. Pure: data of the library in, lines out."""

import json
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ikigai_actors.records.messages import CONVERSATION, Kind, Message
from ikigai_actors.records.registry import AgentRecord
from ikigai_actors.records.replies import reply_of

if TYPE_CHECKING:
    from ikigai_actors.system.ref import Context

BROKE_OFF = "[the reply broke off, and is asked for again]"
"""The text for a message of kind ``retry``."""

_INDENT = " " * 20


class MessageView(NamedTuple):
    """A message as it is shown."""

    text: str
    spoken: bool
    """Whether the model sees it: the rest is shown dim."""


def history_page(messages: Sequence[Message], uuid: str, most: int) -> list[MessageView]:
    """The latest messages of a history, oldest first; ``<`` stands at inherited ones."""
    left_out = len(messages) - most
    head = [MessageView(f"({left_out} earlier; /history {len(messages)} shows all)", False)] if left_out > 0 else []
    return [*head, *(_entry(message, uuid) for message in messages[-most:])]


def _entry(message: Message, uuid: str) -> MessageView:
    inherited = "<" if message.agent_uuid != uuid else " "
    lines = text_of(message).split("\n")
    text = "\n".join([lines[0], *(f"{_INDENT}{line}".rstrip() for line in lines[1:])])
    return MessageView(f"{inherited}{message.id:>4}  {message.kind:<11}  {text}", message.kind in CONVERSATION)


def text_of(message: Message) -> str:
    """The text of a message for a person."""
    data = message.data
    match message.kind:
        case Kind.FORK:
            return f"forked {data['child']}" if "child" in data else f"forked from {data.get('parent', '?')}"
        case Kind.CONFIGURE:
            return ", ".join(f"{key} = {value!r}" for key, value in data.items())
        case Kind.MARK:
            return message.content or "(no label)"
        case Kind.REWIND if "before" in data:
            return f"to before the prompt at {data['before']}"
        case Kind.REWIND:
            return f"to mark {message.content!r}" if message.content else f"to the mark at {data.get('mark', '?')}"
        case Kind.ASSISTANT if data.get("stop_reason") == "interrupted":
            return f"{message.content.rstrip()} [interrupted]"
        case Kind.ASSISTANT:
            calls = [
                f"{call.name} {json.dumps(dict(call.input), ensure_ascii=False)}"
                for call in reply_of(message).tool_calls
            ]
            return "\n".join([message.content, *calls]) if message.content else "\n".join(calls)
        case Kind.RETRY:
            return BROKE_OFF
        case Kind.TOOL_CALL:
            return f"{message.content} started"
        case Kind.TOOL_RESULT:
            return f"{data.get('name', 'tool')}: {message.content}"
        case _:
            return message.content


def written(value: object) -> str:
    """The value of a setting as a person writes it: text unchanged, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def context_page(record: AgentRecord, state: str, context: "Context") -> list[str]:
    """The meaning of an agent's history now."""
    settings = context.settings
    others = {key: value for key, value in settings.items() if key not in ("model", "system")}
    rows = {
        "agent": f"{record.uuid}{f' ({record.name})' if record.name else ''}",
        "state": state,
        "model": settings.get("model", "the default of this shell"),
        "system": textwrap.shorten(str(settings.get("system", "none")), 70, placeholder=" …"),
        "settings": ", ".join(f"{key} = {value!r}" for key, value in others.items()) or None,
        "messages": f"{context.inherited} inherited + {context.own} own in its context",
        "tokens": _tokens(context.usage),
        "marks": ", ".join(f"{label or '(no label)'} at {place}" for label, place in context.marks) or "none",
        "ranges": ", ".join(
            f"{stored.agent_uuid[:6]} {stored.start_id + 1} to {stored.end_id or 'the end'}"
            for stored in context.ranges
        ),
    }
    return [f"{title:<9} {text}" for title, text in rows.items() if text is not None]


def _tokens(usage: Mapping[str, Any]) -> str:
    told = [f"{count} {name.removesuffix('_tokens').replace('_', ' ')}" for name, count in usage.items() if count]
    return f"{', '.join(told)}, as last reported" if told else "none reported"
