"""The updates that an ACP client is shown of the messages of agents. Pure.

updates_of(message, live)   # what was not streamed of it already
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ikigai_actors.records.messages.messages import Kind, Message

Update = Mapping[str, Any]

LONGEST_TITLE = 200
"""Characters of the title of a call."""

RESULT_CUT = 100_000
"""Characters of a call's result that a client is shown."""


def text_chunk(kind: str, text: str, message_id: str) -> Update:
    """A part of a message of the user or the agent, or of a thought."""
    return {"sessionUpdate": kind, "messageId": message_id, "content": {"type": "text", "text": text}}


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
            yield text_chunk("user_message_chunk", text, message_id(message))
        case Kind.ASSISTANT:
            goes_on = live is not None and live.is_whole and text.startswith(live.text)
            rest, under = (text[len(live.text) :], live.id) if goes_on and live else (text, message_id(message))
            if rest:
                yield text_chunk("agent_message_chunk", rest, under)
            for call in message.calls:
                yield {
                    "sessionUpdate": "tool_call",
                    "toolCallId": call.id,
                    "title": call_title(call.name, call.input),
                    "status": "pending",
                    "rawInput": dict(call.input),
                }
        case Kind.TOOL_CALL:
            call_id = message.data.get("tool_use_id")
            yield {"sessionUpdate": "tool_call_update", "toolCallId": call_id, "status": "in_progress"}
        case Kind.TOOL_RESULT:
            yield {
                "sessionUpdate": "tool_call_update",
                "toolCallId": message.data.get("tool_use_id"),
                "status": "failed" if message.data.get("is_error") else "completed",
                "content": [{"type": "content", "content": {"type": "text", "text": text[:RESULT_CUT]}}],
            }
        case Kind.SUMMARY if compaction:
            done: dict[str, Any] = {"compactionId": message_id(message), "status": "completed"}
            said = {"summary": [{"type": "text", "text": text}]} if text else {}
            yield {"sessionUpdate": "compaction_update", **done, **said}
        case Kind.SUMMARY:
            told = "The history was summarised, so that the next request is smaller."
            yield text_chunk("agent_thought_chunk", told, message_id(message))
        case Kind.ERROR if replayed:
            yield text_chunk("agent_thought_chunk", text, message_id(message))


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


def call_title(tool: str, given: Mapping[str, Any]) -> str:
    """A call as a person reads it on a line."""
    words = ", ".join(str(value) for value in given.values() if isinstance(value, str | int | float))
    return " ".join(f"{tool} {words}".split())[:LONGEST_TITLE]


def subagent_update(child: str, **fields: Any) -> Update:
    """The update of a supervisor's session for a child session; what is left out stays as it was."""
    return {"sessionUpdate": "subagent_update", "sessionId": child, **fields}
