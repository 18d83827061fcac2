"""Agents as sessions of other programs: the way back.

An agent that was made of a session gives the lines of its file unchanged, and then what it has said since, in the form
of that program. Any other agent gives a new file with what its model sees; its forks are other paths of the session,
where the format has paths. A summary that was written here comes before what it keeps.
"""

import base64
import hashlib
import json
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from ikigai_actors.arguments import check_choice
from ikigai_actors.doors.importers.draft import LINES
from ikigai_actors.doors.importers.recording import parse_json
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.log.lineage import check_unpruned, read_lineage
from ikigai_actors.records.log.stored_history import StoredHistory
from ikigai_actors.records.messages.blob_references import blobs_of
from ikigai_actors.records.messages.blobs import read_blobs
from ikigai_actors.records.messages.messages import CONVERSATION, ENDINGS, Kind, Message
from ikigai_actors.records.messages.replies import calls_in, is_whole_reply, spent_of
from ikigai_actors.records.messages.settings import IMPORTED, is_trial
from ikigai_actors.store.base import Store, Transaction
from ikigai_actors.store.new_file import new_file
from ikigai_actors.text import iso_time

_WRITTEN = CONVERSATION | ENDINGS | {Kind.SUMMARY.value}
"""What has a line in a file."""

_Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SessionExport:
    """What is written: an agent as a session of another program."""

    agent: str
    """By uuid."""
    created_at: int
    model: str
    """The model that has answered last, as ``provider:model``."""
    system: str
    """The system prompt."""
    logs: Sequence[Sequence[tuple[Message, bool]]]
    """What the agent sees, and what each of its forks sees: messages, and whether they must be written."""
    data: bytes = b""
    """The file that the agent was made of; empty for none."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the note of its import says."""
    since: int = 0
    """The position of that note."""
    undone: int = 0
    """How many turns of that file count no more."""
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    """The bytes of pictures and the like, by hash."""


def export_session(store: Store, agent: str, file: Path, to: str) -> int:
    """Write an agent as a session of another program to a new file; return how many lines it has.

    Args:
        store: the database; a host may go on.
        agent: a uuid, name, or unique prefix of a uuid.
        file: the new file, which only its user may read.
        to: the format, one of `WRITERS`.

    Raises:
        AgentNotFound, AmbiguousAgent: there is no such agent, or there are several.
        HistoryPruned: its messages were deleted.
        BadInput: there is something at the place of the file, or it cannot be written.
    """
    check_choice(to, "to", tuple(WRITERS))
    session = store.read(lambda tx: _session_of(tx, registry.find(tx, agent), to))
    data = WRITERS[to](session).written()
    with new_file(file, "an export") as part:
        part.write(data)
    return data.count(b"\n")


def _session_of(tx: Transaction, top: AgentRecord, to: str) -> SessionExport:
    check_unpruned(top.uuid, top.pruned_at)
    history = StoredHistory(tx, read_lineage(tx, top.uuid, whole=True))
    note = next((one for one in history.backwards(history.head) if _is_note(one, to)), None)
    since = note.id if note is not None else 0
    logs = [_seen(history, since)]
    if note is None and WRITERS[to].has_paths:
        logs += [_seen(one, 0) for one in _forks(tx, top)]
    written = [message for log in logs for message, is_new in log if is_new]
    found = read_blobs(
        tx, {blob.sha256 for message in (*written, *([note] if note else ())) for blob in blobs_of(message)}
    )
    replies = [message for message, _ in logs[0] if message.kind == Kind.ASSISTANT and message.data.get("model")]
    settings = history.view(history.head).settings
    return SessionExport(
        top.uuid,
        top.created_at,
        str(replies[-1].data["model"]) if replies else str(settings.get("model") or ""),
        str(settings.get("system") or ""),
        logs,
        b"".join(found[blob.sha256] for blob in blobs_of(note)) if note is not None else b"",
        note.data[IMPORTED] if note is not None else {},
        since,
        _undone(history, since),
        found,
    )


def _is_note(message: Message, to: str) -> bool:
    """Whether a message is the note with the file of a session of a format."""
    told = message.data.get(IMPORTED) if message.kind == Kind.NOTE else None
    return isinstance(told, dict) and told.get("format") == to and "file" in told


def _forks(tx: Transaction, top: AgentRecord) -> Iterator[StoredHistory]:
    """The histories of the forks of an agent, and of theirs, that are no trials."""
    among = {top.uuid}
    for one in registry.every(tx):
        if one.parent_uuid in among and not one.grafted and one.pruned_at is None:
            history = StoredHistory(tx, read_lineage(tx, one.uuid, whole=True))
            if not is_trial(history.view(history.head).settings):
                among.add(one.uuid)
                yield history


def _seen(history: StoredHistory, since: int) -> list[tuple[Message, bool]]:
    """What a model sees at the end of a history, and whether it must be written.

    Args:
        history: the history.
        since: the position of the note with the file; what names lines after that is in the file.
    """
    view = history.view(history.head)
    ranges = view.visible(history.head)
    shown = [
        one
        for one in history.between(0, history.head)
        if one.kind in _WRITTEN and any(start < one.id <= end for start, end in ranges)
    ]
    seen = [(one, not _is_in_file(one, since)) for one in shown if one.kind != Kind.SUMMARY or _is_in_file(one, since)]
    lens = view.lens
    summary = next((one for one in history.between(0, history.head) if lens and one.id == lens.summary), None)
    if lens is None or summary is None or _is_in_file(summary, since):
        return seen
    early = [two for two in seen if two[0].id < lens.keep_from]
    prompt = [(one, True) for one, _ in early if one.id == lens.prompt]
    return [*early, (summary, True), *prompt, *((one, True) for one, _ in seen if one.id >= lens.keep_from)]


def _is_in_file(message: Message, since: int) -> bool:
    return bool(since) and LINES in message.data


def _undone(history: StoredHistory, since: int) -> int:
    """How many turns of the file count no more."""
    everything = history.between(0, history.head)
    in_file = [one.id for one in everything if _is_in_file(one, since)]
    prompts = {one.id for one in everything if one.kind == Kind.USER and one.id in set(in_file)}
    if not prompts:
        return 0

    def counting(head: int) -> int:
        view = history.view(head)
        return sum(view.shows(one, head) for one in prompts)

    return counting(max(in_file)) - counting(history.head)


class SessionWriter(ABC):
    """Writes a session in the form of a program."""

    has_paths: ClassVar[bool] = True
    """Whether a file has other paths."""

    def __init__(self, session: SessionExport) -> None:
        self.session = session
        self.folder = str(session.facts.get("folder") or ".")
        self.id = str(uuid.uuid5(uuid.NAMESPACE_OID, session.agent))
        self._lines = session.data.removeprefix(b"\xef\xbb\xbf").split(b"\n")

    @abstractmethod
    def head_rows(self) -> Iterator[_Row]:
        """The rows with which a new file begins."""

    @abstractmethod
    def rows_of(self, message: Message, after: str | None) -> Iterator[_Row]:
        """The rows of a message.

        Args:
            after: the id of the row before it, where rows have ids.
        """

    @abstractmethod
    def id_of(self, row: Mapping[str, Any]) -> str | None:
        """The id of a row, or of a line of the file."""

    def written(self) -> bytes:
        """The file."""
        placed: dict[tuple[str, int], str | None] = {}
        paths = [self._path_rows(log, placed) for log in self.session.logs]
        main = paths[0]
        rows = [*([] if self.session.data else self.head_rows()), *main[:-1]]
        rows += [row for path in paths[1:] for row in path]
        rows += main[-1:]  # what is last is the session as it is
        new = b"".join(json.dumps(row, ensure_ascii=False).encode(errors="replace") + b"\n" for row in rows)
        return self._whole(self.session.data) + new if new else self.session.data

    def _path_rows(self, log: Sequence[tuple[Message, bool]], placed: dict[tuple[str, int], str | None]) -> list[_Row]:
        rows: list[_Row] = []
        after, line = None, -1 if self.session.data else 0
        for message, is_new in log:
            key = message.agent_uuid, message.id
            if not is_new:
                after, line = None, max(message.data[LINES], default=line) if message.id > self.session.since else -1
            elif key in placed:
                after = placed[key]
            else:
                after = after or self._id_at(line)
                for row in self.rows_of(message, after):
                    rows.append(row)
                    after = self.id_of(row) or after
                placed[key] = after
        return rows

    def _id_at(self, number: int) -> str | None:
        """The id of a line of the file; -1 is the last one that has one, 0 none."""
        if number > 0:
            return self.id_of(parse_json(self._lines[number - 1]))
        for text in reversed(self._lines) if number else ():
            try:
                found = self.id_of(parse_json(text))
            except (ValueError, AttributeError):
                continue
            if found is not None:
                return found
        return None

    def _whole(self, data: bytes) -> bytes:
        """The file with an end after its last line; without that if it was cut off."""
        if not data or data.endswith(b"\n"):
            return data
        kept, _, last = data.rpartition(b"\n")
        try:
            parse_json(last)
        except ValueError:
            return kept + b"\n" if kept else b""
        return data + b"\n"

    def row_id(self, message: Message, part: int = 0) -> str:
        """An id for a row, always the same one for a message."""
        return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{message.agent_uuid} {message.id} {part}"))

    def pictures(self, message: Message) -> list[tuple[str, str]]:
        """The media types and the base64 of what goes with a message."""
        known = [(one.media, self.session.blobs.get(one.sha256)) for one in blobs_of(message)]
        return [(media, base64.b64encode(data).decode()) for media, data in known if data is not None]


class ClaudeCodeWriter(SessionWriter):
    """Writes lines as Claude Code does."""

    def head_rows(self) -> Iterator[_Row]:
        yield from ()

    def id_of(self, row: Mapping[str, Any]) -> str | None:
        found = row.get("uuid")
        return found if isinstance(found, str) else None

    def _row(self, kind: str, of: Message, after: str | None, part: int = 0, **fields: Any) -> _Row:
        return {
            "parentUuid": after, "isSidechain": False, "userType": "external", "cwd": self.folder,
            "sessionId": str(self.session.facts.get("session") or self.id),
            "version": str(self.session.facts.get("version") or "2.1.0"), "type": kind, **fields,
            "uuid": self.row_id(of, part), "timestamp": iso_time(of.created_at),
        }  # fmt: skip

    def rows_of(self, message: Message, after: str | None) -> Iterator[_Row]:
        match message.kind:
            case Kind.ASSISTANT | Kind.OUTPUT:
                yield self._row("assistant", message, after, message=self._reply(message))
                if message.kind == Kind.ASSISTANT and not is_whole_reply(message):
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
                told: _Row = {
                    "logicalParentUuid": after,
                    "subtype": "compact_boundary",
                    "content": "Conversation compacted",
                }
                yield self._row("system", message, None, **told)
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

    def _user(self, message: Message, after: str | None, content: object, part: int = 0, **fields: Any) -> _Row:
        return self._row("user", message, after, part, message={"role": "user", "content": content}, **fields)

    def _blocks(self, message: Message) -> list[_Row]:
        return [
            {
                "type": "image" if media.startswith("image/") else "document",
                "source": {"type": "base64", "media_type": media, "data": data},
            }
            for media, data in self.pictures(message)
        ]

    def _reply(self, message: Message) -> _Row:
        calls = iter(calls_in(message))
        blocks: list[_Row] = []
        for one in message.data.get("blocks") or [{"type": "text", "text": message.content}]:
            if one.get("type") in ("text", "thinking", "redacted_thinking"):
                blocks.append(dict(one))
            elif one.get("type") == "tool_use" and (call := next(calls, None)) is not None:
                blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.input)})
        blocks += [{"type": "tool_use", "id": one.id, "name": one.name, "input": dict(one.input)} for one in calls]
        spent = spent_of(message)
        usage = message.data["usage"] if spent is not None else {"input_tokens": 0, "output_tokens": 0}
        made_by = message.data.get("made_by") or str(message.data.get("model", "")).partition(":")[2]
        return {
            "id": f"msg_{self.row_id(message).replace('-', '')}", "type": "message", "role": "assistant",
            "model": made_by or "<synthetic>", "content": [one for one in blocks if one.get("text") != ""],
            "stop_reason": message.data.get("stop_reason", "end_turn"), "stop_sequence": None, "usage": dict(usage),
        }  # fmt: skip


class CodexWriter(SessionWriter):
    """Writes lines as Codex does."""

    has_paths = False

    def head_rows(self) -> Iterator[_Row]:
        at = iso_time(self.session.created_at)
        provider, _, model = self.session.model.partition(":")
        system = {"base_instructions": {"text": self.session.system}} if self.session.system else {}
        told = {
            "id": self.id,
            "timestamp": at,
            "cwd": self.folder,
            "originator": "codex_cli_rs",
            "cli_version": "0.142.0",
        }
        yield {
            "timestamp": at,
            "type": "session_meta",
            "payload": {**told, "model_provider": provider or "openai", **system},
        }
        if model:
            yield {"timestamp": at, "type": "turn_context", "payload": {"cwd": self.folder, "model": model}}

    def id_of(self, row: Mapping[str, Any]) -> str | None:
        return None

    def written(self) -> bytes:
        data = super().written()
        if not self.session.undone or not self.session.data:
            return data
        base = self._whole(self.session.data)
        at = self.session.logs[0][-1][0].created_at if self.session.logs[0] else self.session.created_at
        told = {"type": "thread_rolled_back", "num_turns": self.session.undone}
        row = {"timestamp": iso_time(at), "type": "event_msg", "payload": told}
        return base + json.dumps(row).encode() + b"\n" + data[len(base) :]

    def rows_of(self, message: Message, after: str | None) -> Iterator[_Row]:
        for kind, payload in self._payloads(message):
            yield {"timestamp": iso_time(message.created_at), "type": kind, "payload": payload}

    def _payloads(self, message: Message) -> Iterator[tuple[str, _Row]]:
        match message.kind:
            case Kind.ASSISTANT | Kind.OUTPUT:
                yield from (("response_item", one) for one in self._items(message))
                if (spent := spent_of(message)) is not None:
                    given = spent.usage.all_tokens - spent.usage.output_tokens
                    used = {
                        "input_tokens": given, "cached_input_tokens": spent.usage.cache_read_input_tokens,
                        "output_tokens": spent.usage.output_tokens, "total_tokens": spent.usage.all_tokens,
                    }  # fmt: skip
                    yield "event_msg", {"type": "token_count", "info": {"last_token_usage": used}}
                if message.kind == Kind.ASSISTANT and not is_whole_reply(message):
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

    def _content(self, message: Message, kind: str) -> list[_Row]:
        text = [{"type": kind, "text": message.content}]
        urls = (f"data:{media};base64,{data}" for media, data in self.pictures(message))
        return [*text, *({"type": "input_image", "image_url": url} for url in urls)]

    def _items(self, message: Message) -> Iterator[_Row]:
        calls = iter(calls_in(message))
        for one in message.data.get("blocks") or [{"type": "text", "text": message.content}]:
            if one.get("type") == "reasoning" and isinstance(one.get("item"), dict):
                yield {**one["item"], "type": "reasoning"}
            elif one.get("type") == "text" and one.get("text"):
                content = [{"type": "output_text", "text": one["text"]}]
                yield {"type": "message", "role": "assistant", "content": content}
            elif one.get("type") == "tool_use":
                yield from (self._call(call.id, call.name, call.input) for call in (next(calls, None),) if call)
        yield from (self._call(call.id, call.name, call.input) for call in calls)

    def _call(self, call: str, name: str, given: Mapping[str, Any]) -> _Row:
        return {"type": "function_call", "name": name, "arguments": json.dumps(dict(given)), "call_id": call}


class PiWriter(SessionWriter):
    """Writes lines as pi does."""

    def __init__(self, session: SessionExport) -> None:
        super().__init__(session)
        self._is_linked = str(session.facts.get("version", "3")) != "1"
        self._first: dict[tuple[str, int], str] = {}

    def head_rows(self) -> Iterator[_Row]:
        at = iso_time(self.session.created_at)
        yield {"type": "session", "version": 3, "id": self.id, "timestamp": at, "cwd": self.folder}

    def id_of(self, row: Mapping[str, Any]) -> str | None:
        found = row.get("id") if row.get("type") != "session" else None
        return found if isinstance(found, str) else None

    def row_id(self, message: Message, part: int = 0) -> str:
        return hashlib.sha256(f"{message.agent_uuid} {message.id} {part}".encode()).hexdigest()[:8]

    def rows_of(self, message: Message, after: str | None) -> Iterator[_Row]:
        kind, fields = self._fields(message)
        linked = {"id": self.row_id(message), "parentId": after} if self._is_linked else {}
        yield {"type": kind, **linked, "timestamp": iso_time(message.created_at), **fields}

    def _fields(self, message: Message) -> tuple[str, _Row]:
        at = {"timestamp": message.created_at}
        content = [{"type": "text", "text": message.content}] if message.content else []
        pictures = [{"type": "image", "data": data, "mimeType": media} for media, data in self.pictures(message)]
        match message.kind:
            case Kind.ASSISTANT | Kind.OUTPUT | Kind.ERROR | Kind.INTERRUPTED:
                return "message", {"message": {**self._reply(message), **at}}
            case Kind.TOOL_RESULT:
                told = {"toolCallId": message.data.get("tool_use_id"), "toolName": message.data.get("name", "")}
                failed = bool(message.data.get("is_error"))
                said = {"role": "toolResult", **told, "content": [*content, *pictures], "isError": failed}
                return "message", {"message": {**said, **at}}
            case Kind.SUMMARY:
                return "compaction", {"summary": message.content, "firstKeptEntryId": "", "tokensBefore": 0}
            case Kind.USER | Kind.STEER:
                said = {"role": "user", "content": [*content, *pictures] if pictures else message.content}
                return "message", {"message": {**said, **at}}
        return "custom_message", {"customType": "ikigai", "content": message.content, "display": True}

    def _reply(self, message: Message) -> _Row:
        calls = iter(calls_in(message))
        blocks: list[_Row] = []
        for one in message.data.get("blocks") or [{"type": "text", "text": message.content}]:
            if one.get("type") == "text" and one.get("text"):
                blocks.append({"type": "text", "text": one["text"]})
            elif one.get("type") == "thinking":
                signed = {"thinking": one.get("thinking", ""), "thinkingSignature": one.get("signature", "")}
                blocks.append({"type": "thinking", **signed})
            elif one.get("type") == "tool_use" and (call := next(calls, None)) is not None:
                blocks.append({"type": "toolCall", "id": call.id, "name": call.name, "arguments": dict(call.input)})
        blocks += [{"type": "toolCall", "id": one.id, "name": one.name, "arguments": dict(one.input)} for one in calls]
        provider, _, model = str(message.data.get("model") or self.session.model).partition(":")
        spent = spent_of(message)
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
        told = {"role": "assistant", "content": blocks if message.kind != Kind.ERROR else [], "api": "ikigai"}
        failed = {"errorMessage": message.content} if message.kind == Kind.ERROR else {}
        return {**told, "provider": provider, "model": model, "usage": counts, "stopReason": stop, **failed}


WRITERS: Mapping[str, type[SessionWriter]] = {
    "claude-code": ClaudeCodeWriter,
    "codex": CodexWriter,
    "pi": PiWriter,
}
"""The writer of each format."""
