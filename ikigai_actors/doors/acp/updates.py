"""Converts messages of agents to updates for an ACP client. Pure.

updates_of(message, live)   # the parts of the message that were not streamed
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from acp.helpers import text_block, tool_content
from acp.schema import (
    AgentMessageChunk,
    AgentThoughtChunk,
    ToolCallProgress,
    ToolCallStart,
    ToolCallStatus,
    UserMessageChunk,
)
from pydantic import BaseModel

from ikigai_actors.doors.call_title import call_title
from ikigai_actors.providers.base import ToolCall
from ikigai_actors.records.messages.messages import Kind, Message

Update = BaseModel | Mapping[str, Any]
"""A model of the package, or an object of JSON for an update that only the protocol knows yet."""

RESULT_CUT = 100_000
"""The most characters of a call's result that a client is shown."""


def said_chunk(text: str, message_id: str) -> Update:
    """Return the update that adds a text to a message of the agent."""
    return AgentMessageChunk(session_update="agent_message_chunk", content=text_block(text), message_id=message_id)


def thought_chunk(text: str, message_id: str, meta: dict[str, Any] | None = None) -> Update:
    """Return the update that adds a text to the model's thinking."""
    chunk = AgentThoughtChunk(session_update="agent_thought_chunk", content=text_block(text), message_id=message_id)
    return chunk.model_copy(update={"field_meta": meta}) if meta else chunk


def message_id(message: Message) -> str:
    """Return the id of a message, which is the same each time the message is shown completely."""
    return f"{message.agent_uuid}:{message.id}"


class Live(NamedTuple):
    """The part of a reply in progress that a client was shown."""

    id: str
    """The message id under which the client was shown the reply."""
    text: str = ""
    is_whole: bool = True
    """Whether the client was shown all pieces of the reply so far."""


def updates_of(
    message: Message, live: Live | None = None, *, replayed: bool = False, compaction: bool = False
) -> Iterator[Update]:
    """Return the updates for a message.

    Args:
        live: the part of the reply that the client was shown while it was in progress; None for nothing.
        replayed: whether the session is being loaded, so prompts of the user are new to the client.
        compaction: whether the client supports summaries.
    """
    text = message.content
    match message.kind:
        case Kind.USER | Kind.STEER if replayed:
            content = text_block(text)
            yield UserMessageChunk(session_update="user_message_chunk", content=content, message_id=message_id(message))
        case Kind.ASSISTANT:
            goes_on = live is not None and live.is_whole and text.startswith(live.text)
            rest, under = (text[len(live.text) :], live.id) if goes_on and live else (text, message_id(message))
            if rest:
                yield said_chunk(rest, under)
            yield from map(_started, message.calls)
        case Kind.TOOL_CALL:
            yield _progress(message, "in_progress")
        case Kind.TOOL_RESULT:
            result = [tool_content(text_block(text[:RESULT_CUT]))]
            yield _progress(message, "failed" if message.data.get("is_error") else "completed", content=result)
        case Kind.SUMMARY if compaction:
            done: dict[str, Any] = {"compactionId": message_id(message), "status": "completed"}
            said = {"summary": [{"type": "text", "text": text}]} if text else {}
            yield {"sessionUpdate": "compaction_update", **done, **said}
        case Kind.SUMMARY:
            yield thought_chunk("The history was summarised, so that the next request is smaller.", message_id(message))
        case Kind.ERROR if replayed:
            yield thought_chunk(text, message_id(message))


def _started(call: ToolCall) -> Update:
    return ToolCallStart(
        session_update="tool_call",
        tool_call_id=call.id,
        title=call_title(call.name, call.input),
        status="pending",
        raw_input=dict(call.input),
    )


def _progress(message: Message, status: ToolCallStatus, **more: Any) -> Update:
    call = str(message.data.get("tool_use_id"))
    return ToolCallProgress(session_update="tool_call_update", tool_call_id=call, status=status, **more)


def sent_mail(message: Message, reply: Message | None) -> tuple[str, str] | None:
    """Return the recipient and the text of a mail. None if the message is not the result of a call that sent mail.

    Args:
        reply: the latest reply of the agent, which has the call.
    """
    if message.kind != Kind.TOOL_RESULT or message.data.get("name") != "send" or message.data.get("is_error"):
        return None
    calls = reply.calls if reply is not None else ()
    arguments = next((call.input for call in calls if call.id == message.data.get("tool_use_id")), {})
    to, body = arguments.get("to"), arguments.get("body")
    return (to, body) if isinstance(to, str) and isinstance(body, str) else None


def mail_update(message: Message, recipient: str | None, body: str) -> Update:
    """Return the update of an agent's session for a mail that the agent has sent.

    Args:
        message: the result of the agent's call.
        recipient: the session of the recipient; None if the client does not know it.
        body: the text of the mail.
    """
    named = {"recipientSessionId": recipient} if recipient is not None else {}
    content = [{"type": "text", "text": body}]
    fields = {"messageId": f"{message_id(message)}:mail", "senderSessionId": message.agent_uuid, **named}
    return {"sessionUpdate": "session_message", **fields, "content": content}


def subagent_update(child: str, **fields: Any) -> Update:
    """Return the update of a supervisor's session for a child session. Fields that are left out do not change."""
    return {"sessionUpdate": "subagent_update", "sessionId": child, **fields}
