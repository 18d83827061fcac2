"""Sessions of pi: ``~/.pi/agent/sessions/FOLDER/TIME_ID.jsonl``. Pure.

The first line is the header. Each further line follows the line that its ``parentId`` names, or in version 1 the line
before it. The path to the last line of the file becomes the agent of the session; other paths become agents forked from
it.

A session that was forked from another one (``parentSession``) begins with copies of its lines. If both are imported,
its agent is forked from the other one at that place. Lines that no model sees are stored with the file.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ikigai_actors.attachments import Attachment
from ikigai_actors.providers.base import Reply, ToolCall, Usage
from ikigai_actors.recordings.recording import RecordedLine, Recording, count_of, object_of, objects_in, time_of
from ikigai_actors.recordings.tree import LinePlace, LineTree
from ikigai_actors.verbs.upkeep.draft import Draft, picture

_NEWEST = 3
"""The latest known version of pi's sessions. Lines of a later one are taken if they are understood."""

_SHOWN = ("message", "compaction", "branch_summary", "custom_message", "model_change")
_STOPPED = {"stop": "end_turn", "length": "max_tokens", "toolUse": "tool_use"}
_MESSAGES = ("user", "assistant", "toolResult", "bashExecution", "custom", "hookMessage", "branchSummary")


def is_pi(line: Mapping[str, Any]) -> bool:
    """Return whether a line is the header of a session of pi."""
    return line.get("type") == "session" and isinstance(line.get("id"), str) and "cwd" in line


def pi_drafts(recordings: Sequence[Recording], settings: Mapping[str, Any], models: bool) -> list[Draft]:
    """Return an agent for each session in some files, and for each of its other paths.

    Args:
        recordings: the files.
        settings: the settings of agents that inherit nothing.
        models: whether to write the models of a session as settings.
    """
    sessions = [PiSession(recording) for recording in recordings]
    by_name = {session.of.stem: session for session in sessions}
    drafts: list[Draft] = []
    for session in sorted(sessions, key=lambda session: time_of(session.header.get("timestamp"))):
        parent = by_name.get(session.forked_from)
        drafts += session.write(settings, models, parent if parent is not session else None)
    return drafts


class PiSession:
    """The lines of a session file of pi, and the agents made from them. Raises `ImportRefused` for a wrong line."""

    def __init__(self, of: Recording) -> None:
        self.of = of
        self.header: Mapping[str, Any] = {}
        self.top: Draft | None = None
        """The agent of the session as it is, once it is written."""
        self._tree = LineTree()
        self._positions: dict[str, int] = {}  # where the message of a line is, or the next one
        before: str | None = None
        for line in of.lines():
            kind = line.value.get("type")
            if not isinstance(kind, str):
                line.refuse("expected a type")
            if kind == "session":
                self.header = self.header or line.value
                continue
            self._check(line, kind)
            key = line.value.get("id")
            is_linked = isinstance(key, str)
            key = str(key) if is_linked else f"line {line.number}"
            self._tree.add(key, line, line.value.get("parentId") if is_linked else before)
            before = key
        self._tree.link()

    @property
    def forked_from(self) -> str:
        """Return the name of the file whose lines this one repeats, without folder and suffix; empty for none."""
        path = self.header.get("parentSession") or self.header.get("branchedFrom")
        return Recording(path, b"").stem if isinstance(path, str) else ""

    def _check(self, line: RecordedLine, kind: str) -> None:
        message = line.value.get("message")
        role = message.get("role") if isinstance(message, dict) else None
        version = self.header.get("version", 1)
        made_by = f"; of version {version}, understood up to {_NEWEST}"
        if kind == "message" and role not in (*_MESSAGES, "compactionSummary"):
            line.refuse(f"a message of the unknown role {role!r:.60}{made_by}")
        if kind != "message" and role is not None:
            line.refuse(f"a message of the unknown type {kind:.60}{made_by}")

    def write(self, settings: Mapping[str, Any], models: bool, parent: "PiSession | None") -> list[Draft]:
        """Return the agents of the file: for the session itself, and for its other paths.

        Args:
            settings: the first settings of an agent that inherits nothing.
            models: whether to write the models of the session as settings.
            parent: the session whose lines this one repeats, if its agents were made before.
        """
        key = f"pi {self.of.name} {self.header.get('id')}"
        facts = {
            "format": "pi", "session": self.header.get("id"), "version": str(self.header.get("version", 1)),
            "folder": self.header.get("cwd"),
        }  # fmt: skip
        first = time_of(self.header.get("timestamp")) or 1
        leaves = self._tree.leaves({uuid for uuid, line in self._tree.lines.items() if line.value["type"] in _SHOWN})
        main = self._tree.path(leaves[-1]) if leaves else []
        above = parent.top if parent is not None else None
        if parent is not None and above is not None:
            self._share(parent)
        if main and above is not None and main[0] in self._tree.places:
            above, at, main = self._tree.forked(main, above, 0, self._opens)
            top = Draft(key, self.of.stem, parent=above, fork=at)
            top.begin(self.of, facts, {}, first)
        else:
            top = Draft(key, self.of.stem)
            top.begin(self.of, facts, settings, first)
        self.top, base, drafts = top, top.head, [top]
        self._write_path(top, main, models)
        for leaf in reversed(leaves[:-1]):
            path = self._tree.path(leaf)
            if path[-1] not in self._tree.places:
                above, at, new = self._tree.forked(path, top, base, self._opens)
                drafts.append(Draft(f"{key} {leaf}", f"{top.name}-branch", parent=above, fork=at))
                self._write_path(drafts[-1], new, models)
        return drafts

    def _share(self, parent: "PiSession") -> None:
        """Copy the places of shared lines in the log from the parent session, so that the agent is forked there."""
        for key, line in self._tree.lines.items():
            other = parent._tree.lines.get(key)
            if other is not None and other.value == line.value and key in parent._tree.places:
                self._tree.places[key] = parent._tree.places[key]
                self._positions[key] = parent._positions.get(key, 0)

    def _opens(self, keys: Iterable[str]) -> bool:
        said = (self._tree.lines[key].value for key in keys)
        shown = (value for value in said if value["type"] in ("message", "custom_message", "branch_summary"))
        first = next(shown, None)
        return first is None or object_of(first.get("message")).get("role", "user") not in ("assistant", "toolResult")

    def _write_path(self, draft: Draft, path: Sequence[str], models: bool) -> None:
        before, start, joins = draft.head, path[0] if path else "", False
        for key in path:
            line = self._tree.lines[key]
            message, kind = line.part("message"), line.value["type"]
            head, together = draft.head, False
            line.check_content(message)
            at = time_of(line.value.get("timestamp")) or time_of(message.get("timestamp"))
            role = message.get("role") if kind == "message" else kind
            is_context = role in (
                "bashExecution",
                "custom",
                "hookMessage",
                "branchSummary",
                "custom_message",
                "branch_summary",
            )
            if role == "user" or is_context:
                together = joins or (is_context and draft.is_open)
                if not together:
                    draft.interrupt(at)
                    before, start = draft.head, key
                _write_text(draft, line, at, together)
                joins = is_context and draft.is_open
            elif role == "assistant":
                joins = False
                _write_reply(draft, line, at)
            elif role == "toolResult":
                joins = False
                text, pictures = _text_of(message.get("content")), _pictures_in(message.get("content"))
                call, failed = str(message.get("toolCallId")), bool(message.get("isError"))
                draft.result(line, call, text, at, failed, pictures)
            elif role in ("compaction", "compactionSummary"):
                summary = (message if kind == "message" else line.value).get("summary")
                kept = self._positions.get(str(line.value.get("firstKeptEntryId")), 0)
                draft.summarise(line, summary if isinstance(summary, str) else "", at, kept)
            elif role == "model_change" and models:
                model = f"{line.text('provider')}:{line.text('modelId')}"
                draft.configure(line, {"model": model}, at)
            self._positions.setdefault(key, head if together and draft.head == head else head + 1)
            self._tree.places.setdefault(key, LinePlace(draft, before, start, None if draft.is_open else draft.head))


def _write_text(draft: Draft, line: RecordedLine, at: int, joins: bool) -> None:
    """Write a line's text as a prompt, or as an addition to the prompt before it."""
    text, pictures = _said_in(line)
    if not (text.strip() or pictures):
        return
    if not joins:
        draft.prompt(line, text, at, pictures)
    elif draft.messages[-1].kind == "user":
        draft.prompt_more(line, text, at, pictures)
    else:
        draft.word(line, text, at, pictures)


def _said_in(line: RecordedLine) -> tuple[str, list[Attachment]]:
    message = line.part("message") or line.value
    if message.get("role") == "bashExecution":
        shown = not message.get("excludeFromContext")
        return (f"Ran `{message.get('command')}`:\n{message.get('output')}" if shown else ""), []
    if isinstance(summary := message.get("summary"), str):
        return f"A summary of another path of this conversation:\n\n{summary}", []
    return _text_of(message.get("content")), _pictures_in(message.get("content"))


def _write_reply(draft: Draft, line: RecordedLine, at: int) -> None:
    message = line.part("message")
    provider, made_by = message.get("provider"), message.get("model")
    model = f"{provider}:{made_by}" if isinstance(provider, str) and isinstance(made_by, str) else ""
    blocks, calls = list[dict[str, Any]](), list[ToolCall]()
    for block in objects_in(message.get("content")):
        match block.get("type"):
            case "text":
                blocks.append({"type": "text", "text": str(block.get("text", ""))})
            case "thinking" if provider == "anthropic" and isinstance(block.get("thinkingSignature"), str):
                signed = {"thinking": str(block.get("thinking", "")), "signature": block["thinkingSignature"]}
                blocks.append({"type": "thinking", **signed})
            case "toolCall":
                call, name, arguments = block.get("id"), block.get("name"), block.get("arguments")
                if not (isinstance(call, str) and isinstance(name, str) and isinstance(arguments, dict)):
                    line.refuse("expected a toolCall to have an id, a name and arguments")
                calls.append(ToolCall(name, arguments, call))
                blocks.append({"type": "tool_use", "id": call, "name": name, "input": arguments})
    text, stopped = _text_of(message.get("content")), message.get("stopReason")
    if stopped == "error":
        draft.fail(line, str(message.get("errorMessage") or text), at)
        return
    usage, usd = _usage_of(message.get("usage"))
    if stopped == "aborted":
        cut = Reply(text, stop_reason="interrupted", usage=usage, model=str(made_by or ""))
        draft.reply(line, cut, model, at, usd=usd)
        return
    reason = _STOPPED.get(str(stopped), "tool_use" if calls else "end_turn")
    reply = Reply(text, tuple(calls), reason, usage, tuple(blocks), str(made_by or ""))
    draft.reply(line, reply, model, at, usd=usd)


def _usage_of(value: object) -> tuple[Usage | None, int]:
    """Return the recorded tokens, None if there are none, and their cost in millionths of a dollar."""
    if not isinstance(value, dict):
        return None, 0
    usage = Usage(*(count_of(value.get(name)) for name in ("input", "output", "cacheWrite", "cacheRead")))
    cost = object_of(value.get("cost")).get("total")
    is_cost = isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < 10**6
    return usage, round(cost * 10**6) if isinstance(cost, int | float) and is_cost else 0


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    texts = (block.get("text") for block in objects_in(content) if block.get("type") == "text")
    return "\n".join(text for text in texts if isinstance(text, str))


def _pictures_in(content: object) -> list[Attachment]:
    data = (block.get("data") for block in objects_in(content) if block.get("type") == "image")
    return [image for text in data if (image := picture(text)) is not None]
