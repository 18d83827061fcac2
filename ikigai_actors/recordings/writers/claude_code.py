"""Writes sessions in the format of Claude Code."""

from collections.abc import Iterator, Mapping
from typing import Any

from ikigai_actors.recordings.writers.writer import SessionRow, SessionWriter
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.text import iso_time


class ClaudeCodeWriter(SessionWriter):
    """Writes the messages of an agent as a session of Claude Code."""

    def head_rows(self) -> Iterator[SessionRow]:
        yield from ()

    def id_of(self, row: Mapping[str, Any]) -> str | None:
        uuid = row.get("uuid")
        return uuid if isinstance(uuid, str) else None

    def _row(self, kind: str, of: Message, after: str | None, part: int = 0, **fields: Any) -> SessionRow:
        return {
            "parentUuid": after, "isSidechain": False, "userType": "external", "cwd": self.folder,
            "sessionId": str(self.session.facts.get("session") or self.id),
            "version": str(self.session.facts.get("version") or "2.1.0"), "type": kind, **fields,
            "uuid": self.row_id(of, part), "timestamp": iso_time(of.created_at),
        }  # fmt: skip

    def rows_of(self, message: Message, after: str | None) -> Iterator[SessionRow]:
        match message.kind:
            case Kind.ASSISTANT | Kind.OUTPUT:
                yield self._row("assistant", message, after, message=self._reply(message))
                if message.kind == Kind.ASSISTANT and not message.is_whole_reply:
                    yield self._user(message, self.row_id(message), "[Request interrupted by user]", part=1)
            case Kind.TOOL_RESULT:
                said: object = message.content
                if pictures := self._blocks(message):
                    said = [{"type": "text", "text": message.content}, *pictures]
                result = {"type": "tool_result", "tool_use_id": message.data.get("tool_use_id"), "content": said}
                yield self._user(
                    message, after, [result | ({"is_error": True} if message.data.get("is_error") else {})]
                )
            case Kind.SUMMARY:
                row: SessionRow = {
                    "logicalParentUuid": after,
                    "subtype": "compact_boundary",
                    "content": "Conversation compacted",
                }
                yield self._row("system", message, None, **row)
                yield self._user(message, self.row_id(message), message.content, part=1, isCompactSummary=True)
            case Kind.ERROR:
                content = [{"type": "text", "text": message.content}]
                failed = {"id": self.row_id(message), "role": "assistant", "model": "<synthetic>", "content": content}
                yield self._row("assistant", message, after, message=failed, isApiErrorMessage=True)
            case Kind.INTERRUPTED:
                yield self._user(message, after, "[Request interrupted by user]")
            case _:
                pictures = self._blocks(message)
                told_text = [{"type": "text", "text": message.content}] if message.content else []
                content_of = [*told_text, *pictures] if pictures else message.content
                beside = {"isMeta": True} if message.kind != Kind.USER else {}
                yield self._user(message, after, content_of, **beside)

    def _user(self, message: Message, after: str | None, content: object, part: int = 0, **fields: Any) -> SessionRow:
        return self._row("user", message, after, part, message={"role": "user", "content": content}, **fields)

    def _blocks(self, message: Message) -> list[SessionRow]:
        return [
            {
                "type": "image" if media.startswith("image/") else "document",
                "source": {"type": "base64", "media_type": media, "data": data},
            }
            for media, data in self.pictures(message)
        ]

    def _reply(self, message: Message) -> SessionRow:
        calls = iter(message.calls)
        blocks: list[SessionRow] = []
        for block in message.data.get("blocks") or [{"type": "text", "text": message.content}]:
            if block.get("type") in ("text", "thinking", "redacted_thinking"):
                blocks.append(dict(block))
            elif block.get("type") == "tool_use" and (call := next(calls, None)) is not None:
                blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.input)})
        blocks += [{"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.input)} for call in calls]
        spent = message.spent
        usage = message.data["usage"] if spent is not None else {"input_tokens": 0, "output_tokens": 0}
        made_by = message.data.get("made_by") or str(message.data.get("model", "")).partition(":")[2]
        return {
            "id": f"msg_{self.row_id(message).replace('-', '')}", "type": "message", "role": "assistant",
            "model": made_by or "<synthetic>", "content": [block for block in blocks if block.get("text") != ""],
            "stop_reason": message.data.get("stop_reason", "end_turn"), "stop_sequence": None, "usage": dict(usage),
        }  # fmt: skip
