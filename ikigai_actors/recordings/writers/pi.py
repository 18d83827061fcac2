"""Writes sessions in the format of pi."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from ikigai_actors.reach.sessions import SessionExport
from ikigai_actors.recordings.writers.writer import SessionRow, SessionWriter
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.text import iso_time


class PiWriter(SessionWriter):
    """Writes the messages of an agent as a session of pi."""

    def __init__(self, session: SessionExport) -> None:
        super().__init__(session)
        self._is_linked = str(session.facts.get("version", "3")) != "1"
        self._first: dict[tuple[str, int], str] = {}

    def head_rows(self) -> Iterator[SessionRow]:
        at = iso_time(self.session.created_at)
        yield {"type": "session", "version": 3, "id": self.id, "timestamp": at, "cwd": self.folder}

    def id_of(self, row: Mapping[str, Any]) -> str | None:
        entry = row.get("id") if row.get("type") != "session" else None
        return entry if isinstance(entry, str) else None

    def row_id(self, message: Message, part: int = 0) -> str:
        return hashlib.sha256(f"{message.agent_uuid} {message.id} {part}".encode()).hexdigest()[:8]

    def rows_of(self, message: Message, after: str | None) -> Iterator[SessionRow]:
        kind, fields = self._fields(message)
        linked = {"id": self.row_id(message), "parentId": after} if self._is_linked else {}
        yield {"type": kind, **linked, "timestamp": iso_time(message.created_at), **fields}

    def _fields(self, message: Message) -> tuple[str, SessionRow]:
        at = {"timestamp": message.created_at}
        content = [{"type": "text", "text": message.content}] if message.content else []
        pictures = [{"type": "image", "data": data, "mimeType": media} for media, data in self.pictures(message)]
        match message.kind:
            case Kind.ASSISTANT | Kind.OUTPUT | Kind.ERROR | Kind.INTERRUPTED:
                return "message", {"message": {**self._reply(message), **at}}
            case Kind.TOOL_RESULT:
                result = {"toolCallId": message.data.get("tool_use_id"), "toolName": message.data.get("name", "")}
                failed = bool(message.data.get("is_error"))
                said = {"role": "toolResult", **result, "content": [*content, *pictures], "isError": failed}
                return "message", {"message": {**said, **at}}
            case Kind.SUMMARY:
                return "compaction", {"summary": message.content, "firstKeptEntryId": "", "tokensBefore": 0}
            case Kind.USER | Kind.STEER:
                said = {"role": "user", "content": [*content, *pictures] if pictures else message.content}
                return "message", {"message": {**said, **at}}
        return "custom_message", {"customType": "ikigai", "content": message.content, "display": True}

    def _reply(self, message: Message) -> SessionRow:
        calls = iter(message.calls)
        blocks: list[SessionRow] = []
        for block in message.data.get("blocks") or [{"type": "text", "text": message.content}]:
            if block.get("type") == "text" and block.get("text"):
                blocks.append({"type": "text", "text": block["text"]})
            elif block.get("type") == "thinking":
                signed = {"thinking": block.get("thinking", ""), "thinkingSignature": block.get("signature", "")}
                blocks.append({"type": "thinking", **signed})
            elif block.get("type") == "tool_use" and (call := next(calls, None)) is not None:
                blocks.append({"type": "toolCall", "id": call.id, "name": call.name, "arguments": dict(call.input)})
        blocks += [
            {"type": "toolCall", "id": call.id, "name": call.name, "arguments": dict(call.input)} for call in calls
        ]
        provider, _, model = str(message.data.get("model") or self.session.model).partition(":")
        spent = message.spent
        usage = spent.usage if spent is not None else None
        counts = {
            "input": usage.input_tokens if usage else 0, "output": usage.output_tokens if usage else 0,
            "cacheRead": usage.cache_read_input_tokens if usage else 0,
            "cacheWrite": usage.cache_creation_input_tokens if usage else 0,
            "totalTokens": usage.all_tokens if usage else 0, "cost": {"total": 0},
        }  # fmt: skip
        reason = {"max_tokens": "length", "tool_use": "toolUse", "interrupted": "aborted"}
        stop = reason.get(str(message.data.get("stop_reason")), "stop")
        stop = {"error": "error", "interrupted": "aborted"}.get(message.kind, stop)
        reply = {"role": "assistant", "content": blocks if message.kind != Kind.ERROR else [], "api": "ikigai"}
        failed = {"errorMessage": message.content} if message.kind == Kind.ERROR else {}
        return {**reply, "provider": provider, "model": model, "usage": counts, "stopReason": stop, **failed}
