"""Messages of OpenAI's Chat Completions as JSON lines, as many programs log them and fine-tuning takes them. Pure.

Each line is a conversation with ``messages``, or a request with a reply beside it (``response``, ``choices``); or each
line is a message, and the file a conversation. A line that begins with all messages of the line before it continues
that conversation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ikigai_actors.recordings.chats import ChatMessage, RecordedChat, answered, chat_drafts, messages_in, usage_in
from ikigai_actors.recordings.recording import RecordedLine, Recording, object_of, time_of
from ikigai_actors.verbs.upkeep.draft import Draft


def is_chat(line: Mapping[str, Any]) -> bool:
    """Return whether a line has messages of OpenAI's Chat Completions, or is such a message."""
    return isinstance(line.get("messages"), list) or (isinstance(line.get("role"), str) and "content" in line)


def openai_drafts(recordings: Sequence[Recording], settings: Mapping[str, Any], models: bool) -> list[Draft]:
    """Return the agents of some files of OpenAI's messages; see `ikigai_actors.recordings.chats.chat_drafts`."""
    chats: list[RecordedChat] = []
    for recording in recordings:
        one_by_one = RecordedChat(recording.stem, [[]])
        latest: RecordedChat | None = None
        for line in recording.rows():
            if "messages" not in line.value:
                if not is_chat(line.value):
                    line.refuse("expected messages, or a message with a role and a content")
                one_by_one.paths[0] += _timed(line, messages_in(line, line.value))
                continue
            messages = _request(line)
            if latest is None or not latest.is_continued_by(messages):
                latest = RecordedChat(str(line.value.get("conversation_id") or recording.stem))
                chats.append(latest)
            latest.paths.append(messages)
        if one_by_one.paths[0]:
            chats.append(one_by_one)
    return chat_drafts(chats, "openai", settings, models)


def _request(line: RecordedLine) -> list[ChatMessage]:
    said = line.value["messages"]
    if not isinstance(said, list):
        line.refuse("expected messages to be a list")
    replied = object_of(line.value.get("response")) or line.value
    made_by = replied.get("model") or line.value.get("model")
    model = f"openai:{made_by}" if isinstance(made_by, str) and made_by else ""
    messages = _timed(line, messages_in(line, said))
    reply = messages_in(line, replied.get("choices") or [], "assistant")
    if not reply and messages and messages[-1].role == "assistant":
        messages, reply = messages[:-1], messages[-1:]
    at = _at(line, replied)
    return [*messages, *answered(reply, at, model, usage_in(replied.get("usage")))]


def _timed(line: RecordedLine, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    at = _at(line, line.value)
    return [replace(message, at=at) for message in messages]


def _at(line: RecordedLine, value: Mapping[str, Any]) -> int:
    stamp = next((value[name] for name in ("timestamp", "created_at", "created", "time") if name in value), None)
    return time_of(stamp * 1000 if isinstance(stamp, int | float) and stamp < 10**11 else stamp)
