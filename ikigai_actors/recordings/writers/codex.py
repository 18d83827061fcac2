"""Writes sessions in the format of Codex."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ikigai_actors.recordings.recording import parse_json
from ikigai_actors.recordings.writers.writer import SessionRow, SessionWriter
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.text import iso_time

_ITS_OWN = "openai"
"""The name of Codex's built-in model provider."""


class CodexWriter(SessionWriter):
    """Writes the messages of an agent as a session of Codex."""

    has_paths = False

    def head_rows(self) -> Iterator[SessionRow]:
        at = iso_time(self.session.created_at)
        provider, _, model = self.session.model.partition(":")
        system = {"base_instructions": {"text": self.session.system}} if self.session.system else {}
        meta = {
            "id": self.id,
            "timestamp": at,
            "cwd": self.folder,
            "originator": "codex_cli_rs",
            "cli_version": "0.142.0",
        }
        if provider in ("", _ITS_OWN):  # one that its settings have not would keep it from resuming
            meta["model_provider"] = _ITS_OWN
        yield {"timestamp": at, "type": "session_meta", "payload": {**meta, **system}}
        if model:
            yield {"timestamp": at, "type": "turn_context", "payload": {"cwd": self.folder, "model": model}}

    def id_of(self, row: Mapping[str, Any]) -> str | None:
        return None

    def first_rows(self) -> Iterator[SessionRow]:
        if self.session.undone:
            at = self.session.logs[0][-1][0].created_at if self.session.logs[0] else self.session.created_at
            payload = {"type": "thread_rolled_back", "num_turns": self.session.undone}
            yield {"timestamp": iso_time(at), "type": "event_msg", "payload": payload}

    def numbered(self, rows: Sequence[SessionRow], base: bytes) -> Sequence[SessionRow]:
        last = base.rstrip().rpartition(b"\n")[2]
        ordinal = parse_json(last).get("ordinal") if last else None
        if not isinstance(ordinal, int):
            return rows
        return [{**row, "ordinal": number} for number, row in enumerate(rows, ordinal + 1)]

    def rows_of(self, message: Message, after: str | None) -> Iterator[SessionRow]:
        for kind, payload in self._payloads(message):
            yield {"timestamp": iso_time(message.created_at), "type": kind, "payload": payload}

    def _payloads(self, message: Message) -> Iterator[tuple[str, SessionRow]]:
        match message.kind:
            case Kind.ASSISTANT | Kind.OUTPUT:
                yield from (("response_item", item) for item in self._items(message))
                if (spent := message.spent) is not None:
                    cached_and_new = spent.usage.all_tokens - spent.usage.output_tokens
                    used = {
                        "input_tokens": cached_and_new, "cached_input_tokens": spent.usage.cache_read_input_tokens,
                        "output_tokens": spent.usage.output_tokens, "total_tokens": spent.usage.all_tokens,
                    }  # fmt: skip
                    yield "event_msg", {"type": "token_count", "info": {"last_token_usage": used}}
                if message.kind == Kind.ASSISTANT and not message.is_whole_reply:
                    yield "event_msg", {"type": "turn_aborted", "reason": "interrupted"}
            case Kind.TOOL_RESULT:
                output: object = message.content
                if pictures := self._content(message, "input_text"):
                    output = pictures if len(pictures) > 1 else message.content
                call = message.data.get("tool_use_id")
                yield "response_item", {"type": "function_call_output", "call_id": call, "output": output}
            case Kind.SUMMARY:
                yield "compacted", {"message": message.content}
            case Kind.ERROR:
                yield "event_msg", {"type": "error", "message": message.content}
            case Kind.INTERRUPTED:
                yield "event_msg", {"type": "turn_aborted", "reason": "interrupted"}
            case _:
                role = "user" if message.kind in (Kind.USER, Kind.STEER) else "developer"
                content = self._content(message, "input_text")
                yield "response_item", {"type": "message", "role": role, "content": content}

    def _content(self, message: Message, kind: str) -> list[SessionRow]:
        text = [{"type": kind, "text": message.content}]
        urls = (f"data:{media};base64,{data}" for media, data in self.pictures(message))
        return [*text, *({"type": "input_image", "image_url": url} for url in urls)]

    def _items(self, message: Message) -> Iterator[SessionRow]:
        calls = iter(message.calls)
        for block in message.data.get("blocks") or [{"type": "text", "text": message.content}]:
            if block.get("type") == "reasoning" and isinstance(block.get("item"), dict):
                yield {**block["item"], "type": "reasoning"}
            elif block.get("type") == "text" and block.get("text"):
                content = [{"type": "output_text", "text": block["text"]}]
                yield {"type": "message", "role": "assistant", "content": content}
            elif block.get("type") == "tool_use":
                yield from (self._call(call.id, call.name, call.input) for call in (next(calls, None),) if call)
        yield from (self._call(call.id, call.name, call.input) for call in calls)

    def _call(self, call: str, name: str, arguments: Mapping[str, Any]) -> SessionRow:
        return {"type": "function_call", "name": name, "arguments": json.dumps(dict(arguments)), "call_id": call}
