"""Sessions of Codex: ``~/.codex/sessions/YEAR/MONTH/DAY/rollout-TIME-ID.jsonl``. Pure.

A line has a time, a type and a payload. Each item of a reply is a line; a later line has the cost of the reply.

    session_meta       the session's id, directory and instructions, which become the setting ``system``
    turn_context       the model of the turn
    response_item      a message, a thought, a call, the result of one
    compacted          a summary that replaces all lines before it, except the prompts that it repeats
    event_msg          a copy of a text for the screen; or the costs, an interruption, a turn that was undone

A session that was forked from another one repeats its lines. If both are imported, its agent is forked from the other
one at that place. The session of a subagent names the session that started it, and becomes an agent below the agent of
that session. All other lines are stored with the file, and no model sees them.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any

from ikigai_actors.attachments import Attachment
from ikigai_actors.providers.base import Reply, ToolCall, Usage
from ikigai_actors.recordings.recording import (
    RecordedLine,
    Recording,
    count_of,
    object_of,
    objects_in,
    parse_json,
    time_of,
)
from ikigai_actors.recordings.tree import LinePlace, LineTree
from ikigai_actors.verbs.upkeep.draft import Draft, picture

_NEWEST = "0.171"
"""The latest known version of Codex. Lines of a later one are taken if they are understood."""

_TYPES = ("session_meta", "turn_context", "response_item", "compacted", "event_msg")
_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_RESULTS = ("function_call_output", "custom_tool_call_output")
_CONTEXT = (
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<permissions",
    "<turn_aborted>",
)
"""The beginnings of texts that Codex itself adds to a person's prompts."""
_UNREADABLE = "(Codex has kept this summary in a form that only the service can read.)"


def is_codex(line: Mapping[str, Any]) -> bool:
    """Return whether a line is in the format of Codex."""
    return line.get("type") in _TYPES and isinstance(line.get("payload"), dict)


def codex_drafts(recordings: Sequence[Recording], settings: Mapping[str, Any], models: bool) -> list[Draft]:
    """Return an agent for each file: a fork or a child of another file's agent, or neither.

    Args:
        recordings: the files.
        settings: the settings of agents that inherit nothing.
        models: whether to set ``model`` to the model that answered last.
    """
    rollouts = [Rollout(recording) for recording in recordings]
    by_id = {rollout.id: rollout for rollout in reversed(rollouts) if rollout.id}
    written = dict[str, Draft]()

    def write(rollout: Rollout, below: tuple[str, ...] = ()) -> None:
        if rollout.of.name in written:
            return
        parent, starter = (by_id.get(each) for each in (rollout.forked_from, rollout.started_by))
        for above in (parent, starter):
            if above is not None and above.of.name not in (*below, rollout.of.name):
                write(above, (*below, rollout.of.name))
        if parent is not None and parent.of.name not in written:  # they lead back to itself
            parent = None
        written[rollout.of.name] = rollout.write(settings, models, parent)
        if starter is not None and starter.of.name in written and starter is not rollout:
            written[rollout.of.name].supervisor = written[starter.of.name]

    for rollout in rollouts:
        write(rollout)
    return list(written.values())


class Rollout:
    """The lines of a session file of Codex, and the agent made from them. Raises `ImportRefused` for a wrong line."""

    def __init__(self, of: Recording) -> None:
        self.of = of
        self.meta: Mapping[str, Any] = {}
        self.path: list[str] = []
        """The ids of its lines that matter, those that it repeats included."""
        self._lines: list[RecordedLine] = []
        self._models: list[str] = []
        """The model in force at each."""
        self._tree = LineTree()
        self._draft: Draft | None = None
        self._items: list[tuple[RecordedLine, Mapping[str, Any]]] = []  # of the reply in progress
        model = ""
        for line in of.lines():
            kind, payload = line.value.get("type"), line.value.get("payload")
            if not isinstance(kind, str) or not isinstance(payload, dict):
                line.refuse("expected a type and a payload")
            if kind not in _TYPES and "role" in payload:
                line.refuse(f"a message of the unknown type {kind:.60}{self._made_by}")
            if kind == "session_meta" and not self.meta:
                self.meta = payload
            if kind == "turn_context":
                model = _text(payload, "model") or model
            if kind in ("response_item", "compacted", "event_msg"):
                self._lines.append(line)
                self._models.append(model)

    @property
    def id(self) -> str:
        """Return the id of the session."""
        return _text(self.meta, "id")

    @property
    def forked_from(self) -> str:
        """Return the id of the session whose lines this one repeats; empty for none."""
        return _text(self.meta, "forked_from_id")

    @property
    def started_by(self) -> str:
        """Return the id of the session that started this one as a subagent; empty for none."""
        spawned = object_of(object_of(object_of(self.meta.get("source")).get("subagent")).get("thread_spawn"))
        return _text(self.meta, "parent_thread_id") or _text(spawned, "parent_thread_id")

    @property
    def _made_by(self) -> str:
        version = _text(self.meta, "cli_version")
        return f"; made by Codex {version:.20}, understood up to {_NEWEST}" if version else ""

    @property
    def _provider(self) -> str:
        return _text(self.meta, "model_provider") or "openai"

    def write(self, settings: Mapping[str, Any], models: bool, parent: "Rollout | None") -> Draft:
        """Return the agent of the session.

        Args:
            settings: the first settings of an agent that inherits nothing.
            models: whether to set ``model`` to the model that answered last.
            parent: the session whose lines this one repeats.
        """
        key, common = f"codex {self.of.name} {self.id}", self._common(parent)
        own = [f"{self.of.name} {number}" for number in range(len(self._lines))]
        facts = {
            "format": "codex", "session": self.id, "version": _text(self.meta, "cli_version"),
            "folder": _text(self.meta, "cwd"),
        }  # fmt: skip
        model = (
            {"model": f"{self._provider}:{self._models[-1]}"} if models and self._models and self._models[-1] else {}
        )
        first = time_of(self.meta.get("timestamp")) or next((_at(line) for line in self._lines if _at(line)), 1)
        if parent is None or parent._draft is None or not common:
            instructions = self.meta.get("base_instructions")
            system = _text(object_of(instructions), "text") or _text(self.meta, "instructions")
            draft = Draft(key, self.of.stem)
            draft.begin(self.of, facts, {**settings, **({"system": system} if system else {}), **model}, first)
            self.path, lines = own, own
        else:
            self.path, self._tree = [*parent.path[:common], *own[common:]], parent._tree
            above, at, lines = self._tree.forked(self.path, parent._draft, 0, lambda new: self._opens(new))
            draft = Draft(key, self.of.stem, parent=above, fork=at)
            draft.begin(self.of, facts, model, first)
        self._draft = draft
        self._write_lines(draft, lines)
        return draft

    def _common(self, parent: "Rollout | None") -> int:
        """Return the number of first lines that repeat the lines of ``parent``."""
        if parent is None:
            return 0
        both = zip(parent._lines, self._lines, strict=False)
        return sum(1 for _ in takewhile(lambda two: _said(two[0]) == _said(two[1]), both))

    def _opens(self, keys: Iterable[str]) -> bool:
        place = len(self.path) - len(list(keys))
        said = (
            object_of(line.value["payload"]) for line in self._lines[place:] if line.value["type"] == "response_item"
        )
        first = next(said, None)
        return first is None or first.get("role") in ("user", "developer", "system")

    def _write_lines(self, draft: Draft, keys: Sequence[str]) -> None:
        before, start, joins = draft.head, keys[0] if keys else "", False
        skipped = len(self.path) - len(keys)
        for key, line, model in zip(keys, self._lines[skipped:], self._models[skipped:], strict=True):
            payload = object_of(line.value["payload"])
            kind = line.value["type"]
            if kind == "response_item" and "role" in payload:
                line.check_content(payload)
            if kind == "response_item" and payload.get("role") in ("user", "developer", "system"):
                self._flush(draft, model)
                is_context = payload.get("role") != "user" or _text_in(payload).startswith(_CONTEXT)
                if not (joins or (is_context and draft.is_open)):
                    draft.interrupt(_at(line))
                    before, start = draft.head, key
                self._write_text(draft, line, payload, joins or (is_context and draft.is_open))
                joins = is_context and draft.is_open
            elif kind == "response_item":
                self._write_item(draft, line, payload, model)
                joins = joins and payload.get("type") == "ghost_snapshot"
            elif kind == "compacted":
                self._flush(draft, model)
                draft.summarise(line, _summary_in(payload), _at(line))
            else:
                self._write_event(draft, line, payload, model)
            open_here = draft.is_open or bool(self._items)
            self._tree.places.setdefault(key, LinePlace(draft, before, start, None if open_here else draft.head))
        self._flush(draft, self._models[-1] if self._models else "")

    def _write_text(self, draft: Draft, line: RecordedLine, payload: Mapping[str, Any], joins: bool) -> None:
        text, pictures = _text_in(payload), _pictures_in(payload.get("content"))
        if not (text.strip() or pictures):
            return
        if not joins:
            draft.prompt(line, text, _at(line), pictures)
        elif draft.messages[-1].kind == "user":
            draft.prompt_more(line, text, _at(line), pictures)
        else:
            draft.word(line, text, _at(line), pictures)

    def _write_item(self, draft: Draft, line: RecordedLine, payload: Mapping[str, Any], model: str) -> None:
        kind = payload.get("type")
        if kind in _RESULTS:
            self._flush(draft, model)
            output = payload.get("output")
            parts = output if isinstance(output, list) else object_of(output).get("content")
            text = (
                output if isinstance(output, str) else parts if isinstance(parts, str) else _text_in({"content": parts})
            )
            failed = object_of(output).get("success") is False
            draft.result(line, _text(payload, "call_id"), text, _at(line), failed, _pictures_in(parts))
        elif kind in ("message", "reasoning", *_CALLS):
            if kind == "message" and payload.get("role") != "assistant":
                line.refuse(f"a message of the unknown role {payload.get('role')!r:.60}{self._made_by}")
            self._items.append((line, payload))
        elif "role" in payload:
            line.refuse(f"a message of the unknown type {kind!r:.60}{self._made_by}")

    def _write_event(self, draft: Draft, line: RecordedLine, payload: Mapping[str, Any], model: str) -> None:
        match payload.get("type"):
            case "token_count":
                usage = _usage_of(object_of(payload.get("info")).get("last_token_usage"))
                if self._items:
                    self._flush(draft, model, usage)
                elif usage is not None:
                    draft.cost(usage)
            case "turn_aborted":
                self._flush(draft, model)
                draft.interrupt(_at(line), line)
            case "error":
                self._flush(draft, model)
                if draft.is_open:
                    draft.fail(line, _text(payload, "message"), _at(line))
            case "thread_rolled_back":
                self._flush(draft, model)
                turns = count_of(payload.get("num_turns"))
                if 0 < turns <= len(draft.prompts):
                    draft.rewind(line, draft.prompts[-turns], _at(line))

    def _flush(self, draft: Draft, model: str, usage: Usage | None = None) -> None:
        """Write the items of the reply in progress as one message."""
        if not self._items:
            return
        blocks: list[dict[str, Any]] = []
        calls: list[ToolCall] = []
        for line, item in self._items:
            match item["type"]:
                case "message":
                    blocks += ({"type": "text", "text": text} for text in _texts_in(item.get("content")))
                case "reasoning":
                    thought = "\n".join(_texts_in(item.get("summary")))
                    blocks.append({"type": "reasoning", "thinking": thought, "item": dict(item)})
                case _:
                    calls.append(_call_in(line, item))
                    blocks.append(
                        {"type": "tool_use", "id": calls[-1].id, "name": calls[-1].name, "input": calls[-1].input}
                    )
        text = "".join(block["text"] for block in blocks if block["type"] == "text")
        first, numbers = self._items[0][0], [line.number for line, _ in self._items]
        self._items = []
        reply = Reply(text, tuple(calls), "tool_use" if calls else "end_turn", usage, tuple(blocks), model)
        draft.reply(first, reply, f"{self._provider}:{model}" if model else "", _at(first), numbers)


def _said(line: RecordedLine) -> object:
    """Return the type and the payload of a line. Repeated lines are equal in these, but not in their times."""
    return line.value["type"], line.value["payload"]


def _at(line: RecordedLine) -> int:
    return time_of(line.value.get("timestamp"))


def _text(of: Mapping[str, Any], name: str) -> str:
    value = of.get(name)
    return value if isinstance(value, str) else ""


def _texts_in(content: object) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [text for part in objects_in(content) if isinstance(text := part.get("text"), str)]


def _text_in(payload: Mapping[str, Any]) -> str:
    return "\n".join(_texts_in(payload.get("content")))


def _pictures_in(content: object) -> list[Attachment]:
    urls = (part.get("image_url") for part in objects_in(content) if part.get("type") == "input_image")
    texts = (url.partition(";base64,")[2] for url in urls if isinstance(url, str))
    return [image for text in texts if (image := picture(text)) is not None]


def _call_in(line: RecordedLine, item: Mapping[str, Any]) -> ToolCall:
    call = item.get("call_id") or item.get("id")
    name = "local_shell" if item["type"] == "local_shell_call" else item.get("name")
    if not isinstance(call, str) or not isinstance(name, str):
        line.refuse("expected a call to have a call_id and a name")
    if item["type"] == "local_shell_call":
        return ToolCall(name, object_of(item.get("action")), call)
    arguments = item.get("input") if item["type"] == "custom_tool_call" else item.get("arguments")
    if item["type"] == "custom_tool_call" or not isinstance(arguments, str):
        return ToolCall(name, arguments if isinstance(arguments, dict) else {"input": arguments}, call)
    try:
        parsed = parse_json(arguments)
    except (ValueError, RecursionError):
        parsed = None
    return ToolCall(name, parsed if isinstance(parsed, dict) else {"arguments": arguments}, call)


def _summary_in(payload: Mapping[str, Any]) -> str:
    """Return the texts that replaced the history: the summary, and the prompts kept beside it."""
    summary, items = _text(payload, "message"), objects_in(payload.get("replacement_history"))
    kept = [_UNREADABLE if "encrypted_content" in item else _text_in(item) for item in items]
    texts = kept if summary in kept else [*kept, summary]
    return "\n\n".join(filter(str.strip, texts)) or _UNREADABLE


def _usage_of(value: object) -> Usage | None:
    if not isinstance(value, dict):
        return None
    tokens, cached = count_of(value.get("input_tokens")), count_of(value.get("cached_input_tokens"))
    return Usage(max(0, tokens - cached), count_of(value.get("output_tokens")), 0, min(tokens, cached))
