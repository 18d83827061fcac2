"""The updates that an ACP client is shown of the messages of agents. Pure.

updates_of(message, live)   # what was not streamed of it already
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
"""Characters of a call's result that a client is shown."""


def said_chunk(text: str, message_id: str) -> Update:
    """A part of a message of the agent."""
    return AgentMessageChunk(session_update="agent_message_chunk", content=text_block(text), message_id=message_id)


def thought_chunk(text: str, message_id: str, meta: dict[str, Any] | None = None) -> Update:
    """A part of a thought."""
    chunk = AgentThoughtChunk(session_update="agent_thought_chunk", content=text_block(text), message_id=message_id)
    return chunk.model_copy(update={"field_meta": meta}) if meta else chunk


def message_id(message: Message) -> str:
    """The id of a message, the same whenever it is shown whole."""
    return f"{message.agent_uuid}:{message.id}"


class Live(NamedTuple):
    """The part of a reply on its way that a client was shown."""

    id: str
    """Under which message id."""
    text: str = ""
    is_whole: bool = True
    """Whether nothing was left out of it."""


def updates_of(
    message: Message, live: Live | None = None, *, replayed: bool = False, compaction: bool = False
) -> Iterator[Update]:
    """The updates that a client is shown of a message.

    Args:
        live: what it was shown of the reply while that was on its way.
        replayed: whether the session is loaded: what the user has said is new to the client then.
        compaction: whether the client knows summaries.
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
    """The recipient and the text of a mail. None if the message is not the result of a call that sent one.

    Args:
        reply: the latest reply of the agent, which has the call.
    """
    if message.kind != Kind.TOOL_RESULT or message.data.get("name") != "send" or message.data.get("is_error"):
        return None
    calls = reply.calls if reply is not None else ()
    given = next((call.input for call in calls if call.id == message.data.get("tool_use_id")), {})
    to, body = given.get("to"), given.get("body")
    return (to, body) if isinstance(to, str) and isinstance(body, str) else None


def mail_update(message: Message, recipient: str | None, body: str) -> Update:
    """The update of the session of an agent for a mail that it has sent.

    Args:
        message: the result of its call.
        recipient: the session of the other agent; None where the client does not know it.
        body: the text.
    """
    named = {"recipientSessionId": recipient} if recipient is not None else {}
    content = [{"type": "text", "text": body}]
    told = {"messageId": f"{message_id(message)}:mail", "senderSessionId": message.agent_uuid, **named}
    return {"sessionUpdate": "session_message", **told, "content": content}


def subagent_update(child: str, **fields: Any) -> Update:
    """The update of a supervisor's session for a child session; what is left out stays as it was."""
    return {"sessionUpdate": "subagent_update", "sessionId": child, **fields}
