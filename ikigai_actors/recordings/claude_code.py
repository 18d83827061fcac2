"""Sessions of Claude Code: ``~/.claude/projects/FOLDER/SESSION.jsonl``. Pure.

A line with a ``uuid`` follows the line that its ``parentUuid`` names, or after a compaction ``logicalParentUuid``.
Lines with the same ``message.id`` are the pieces of one reply. The results of parallel calls follow different pieces,
so some of them branch off the path; they belong to the path, too.

    P ── A(call 1) ── A(call 2) ── result 2 ── A        one path: result 1 belongs to it
              └─ result 1
    P ── A ── P ── A                                    two paths: the later path becomes the session's agent, the
         └─── P ── A                                    other path a fork of this agent

An attachment adds a text for the model that Claude Code wrote. A summary replaces all messages before it, except those
that the line before it names: the latest messages, or the first ones.

Lines of sidechains, also those of ``SESSION/subagents/agent-ID.jsonl``, are agents below the one whose call began them.
All other lines are kept with the file, and no model sees them.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any

from ikigai_actors.attachments import Attachment
from ikigai_actors.providers.base import Reply, ToolCall, Usage
from ikigai_actors.recordings.claude_attachments import attached_blocks, blocks_in, texts_of
from ikigai_actors.recordings.recording import RecordedLine, Recording, count_of, object_of, time_of
from ikigai_actors.recordings.tree import LinePlace, LineTree
from ikigai_actors.verbs.upkeep.draft import Draft, picture

_NEWEST = "2.1"
"""The latest known version of Claude Code. Lines of a later one are taken if they are understood."""

_INTERRUPTED = "[Request interrupted by user"
_COMMANDS = ("<command-name>", "<command-message>", "<local-command-", "<bash-", "Caveat: ")
"""The beginnings of prompts that Claude Code itself has written, for one of its commands."""


def is_claude_code(line: Mapping[str, Any]) -> bool:
    """Return whether a line is in the format of Claude Code."""
    return ("sessionId" in line and "type" in line) or line.get("type") in ("summary", "file-history-snapshot")


def claude_code_drafts(recordings: Sequence[Recording], settings: Mapping[str, Any], models: bool) -> list[Draft]:
    """Return an agent for each session in some files, for each of its other paths, and for each of its subagents.

    Args:
        recordings: the files; the file of a subagent belongs to the session that its lines name, if it is among them.
        settings: the settings of agents that inherit nothing.
        models: whether to set ``model`` to the model that answered last.
    """
    sessions = [ClaudeCodeSession(recording) for recording in recordings]
    mains = {name: session for session in sessions if not session.agent for name in (session.of.stem, session.id)}
    drafts: list[Draft] = []
    for session in sorted(sessions, key=lambda session: bool(session.agent)):
        drafts += session.write(settings, models, mains.get(session.id) if session.agent else None)
    return drafts


class Role(Enum):
    """The role of a line in the recorded conversation."""

    REPLY = auto()
    """A piece of a reply."""
    RESULTS = auto()
    PROMPT = auto()
    META = auto()
    """A text that Claude Code itself added for the model."""
    SUMMARY = auto()
    INTERRUPTION = auto()
    HIDDEN = auto()
    """A line that no model sees."""


@dataclass(slots=True)
class SessionLine:
    """A line of a session that names the line before it."""

    line: RecordedLine
    role: Role

    @property
    def at(self) -> int:
        """Return the time of the line, in milliseconds since 1970."""
        return time_of(self.line.value.get("timestamp"))

    @property
    def message(self) -> Mapping[str, Any]:
        """Return the message of the line, in the form of Anthropic's API."""
        return self.line.part("message")

    @property
    def reply_id(self) -> str:
        """Return the id that all pieces of a reply share; the line's own uuid if its message has no id."""
        own = self.message.get("id")
        return own if isinstance(own, str) and own else self.line.text("uuid")

    @property
    def blocks(self) -> list[Mapping[str, Any]]:
        """Return the content blocks of the message."""
        if self.line.value["type"] == "attachment":
            return attached_blocks(self.line.part("attachment")) or []
        return blocks_in(self.message.get("content"))

    @property
    def results(self) -> list[Mapping[str, Any]]:
        """Return the content blocks that are results of calls."""
        return [block for block in self.blocks if block.get("type") == "tool_result"]

    @property
    def model(self) -> str:
        """Return the model that wrote the line; empty for lines of Claude Code."""
        made_by = self.message.get("model")
        return made_by if isinstance(made_by, str) and not made_by.startswith("<") else ""


class ClaudeCodeSession:
    """The lines of a session file, and the agents made from them. Raises `ImportRefused` for a wrong line."""

    def __init__(self, of: Recording) -> None:
        self.of = of
        self.id = self.agent = self.version = self.folder = ""
        self.top: Draft | None = None
        """The agent of the session as it is, once it is written."""
        self._unsaid = set[str]()
        self._tree = LineTree()
        self._nodes: dict[str, SessionLine] = {}
        self._compacted = set[str]()  # the lines that follow what was compacted
        for line in of.lines():
            self._read(line)
        self._tree.link(may_miss=self._compacted)
        self._beside = self._lines_beside()
        self._aside = {
            uuid for uuid, node in self._nodes.items() if not self.agent and node.line.value.get("isSidechain")
        }
        self._heads: dict[str, str] = {}  # the first piece of the reply that a piece belongs to
        self._pieces: dict[str, list[SessionLine]] = defaultdict(list)
        self._results: dict[str, SessionLine] = {}
        for uuid in self._tree.parents_first():
            if (node := self._nodes[uuid]).role is Role.REPLY:
                before = self._followed(uuid)
                joins = before is not None and self._nodes[before].reply_id == node.reply_id
                self._heads[uuid] = self._heads[before] if joins and before is not None else uuid
        for uuid, node in self._nodes.items():
            if node.role is Role.REPLY:
                self._pieces[self._heads[uuid]].append(node)
            for block in node.results if uuid in self._beside else ():
                self._results.setdefault(str(block.get("tool_use_id")), node)
        self._owners: dict[str, Draft] = {}  # who began a subagent, by its id and by the prompt that it got

    def _read(self, line: RecordedLine) -> None:
        kind, uuid = line.value.get("type"), line.value.get("uuid")
        self.id, self.folder = self.id or line.text("sessionId"), self.folder or line.text("cwd")
        self.agent, self.version = self.agent or line.text("agentId"), line.text("version") or self.version
        if not isinstance(kind, str):
            line.refuse("expected a type")
        speaks, message = kind in ("user", "assistant"), line.value.get("message")
        if speaks and not (isinstance(uuid, str) and isinstance(message, dict)):
            line.refuse(f"expected a line of the type {kind} to have a uuid and a message")
        if speaks:
            line.check_content(object_of(message))
        if not speaks and isinstance(message, dict) and "role" in message:
            made_by = f"; made by Claude Code {self.version:.20}, understood up to {_NEWEST}" if self.version else ""
            line.refuse(f"a message of the unknown type {kind:.60}{made_by}")
        if not isinstance(uuid, str):
            return
        parent = line.value.get("parentUuid")
        if not parent:
            self._compacted.add(uuid)
            parent = line.value.get("logicalParentUuid")
        if self._tree.add(uuid, line, parent):
            self._nodes[uuid] = SessionLine(line, _role_of(line))
            if kind == "attachment" and self._nodes[uuid].role is Role.HIDDEN:
                self._unsaid.add(f"attachment {line.part('attachment').get('type')!s:.60}")

    def _lines_beside(self) -> set[str]:
        """Return the uuids of lines beside the paths: final results, pieces of replies, and hidden lines."""
        beside = set[str]()
        for uuid in reversed(self._tree.parents_first()):
            node = self._nodes[uuid]
            followed = self._followed(uuid) if node.role is Role.REPLY else None
            piece = followed is not None and self._nodes[followed].reply_id == node.reply_id
            results = node.role is Role.RESULTS and not texts_of(node.blocks)
            if (piece or results or node.role in (Role.META, Role.HIDDEN)) and beside.issuperset(
                self._tree.children.get(uuid, ())
            ):
                beside.add(uuid)
        return beside

    def _followed(self, uuid: str) -> str | None:
        """Return the uuid of the reply's piece before a line, past results and hidden lines; None if there is none."""
        at = self._tree.parents[uuid]
        while at is not None and self._nodes[at].role in (Role.RESULTS, Role.HIDDEN):
            at = self._tree.parents[at]
        return at if at is not None and self._nodes[at].role is Role.REPLY else None

    def _leaves(self) -> list[str]:
        """Return the uuids of the lines with which the paths end, in the order of the file."""
        apart = self._beside | self._aside
        shown = {uuid for uuid, node in self._nodes.items() if node.role is not Role.HIDDEN and uuid not in apart}
        return self._tree.leaves(shown)

    def _opens(self, keys: Iterable[str]) -> bool:
        roles = (self._nodes[uuid].role for uuid in keys)
        return next((role for role in roles if role is not Role.HIDDEN), None) is Role.PROMPT

    def write(self, settings: Mapping[str, Any], models: bool, main: "ClaudeCodeSession | None") -> list[Draft]:
        """Return the agents of the file: for the session itself, for its other paths, and for its sidechains.

        Args:
            settings: the settings of agents that inherit nothing.
            models: whether to set ``model`` to the model that answered last.
            main: the session that began this one, if this is a subagent's; else None.
        """
        name = f"agent-{self.agent}" if self.agent else self.of.stem
        top = self.top = Draft(f"claude-code {self.of.name} {self.id} {self.agent}", name)
        top.unsaid |= self._unsaid
        if main is not None:
            self._owners = main._owners
            top.supervisor = self._owners.get(self.agent, main.top)
        made_by = next((node.model for node in reversed(self._nodes.values()) if node.model), "")
        model = {"model": f"anthropic:{made_by}"} if models and made_by else {}
        facts = {"format": "claude-code", "session": self.id, "version": self.version, "folder": self.folder}
        first = next((node.at for node in self._nodes.values() if node.at), 1)
        top.begin(self.of, facts, {**settings, **model}, first)
        drafts, base = [top], top.head
        leaves = self._leaves()
        if leaves:
            self._write_path(top, self._tree.path(leaves[-1]))
        drafts += (self._branch(top, base, self._tree.path(leaf)) for leaf in reversed(leaves[:-1]))
        roots = [uuid for uuid in self._nodes if uuid in self._aside and self._tree.parents[uuid] not in self._aside]
        drafts += (self._sidechain(top, root, {**settings, **model}) for root in roots)
        return drafts

    def _branch(self, top: Draft, base: int, path: list[str]) -> Draft:
        """Return an agent for another path of the session, forked at the end of the last turn that both share."""
        above, at, new = self._tree.forked(path, top, base, self._opens)
        branch = Draft(f"{top.uuid} {path[-1]}", f"{top.name}-branch", parent=above, fork=at)
        self._write_path(branch, new)
        return branch

    def _sidechain(self, top: Draft, root: str, settings: Mapping[str, Any]) -> Draft:
        """Return an agent for a sidechain of the file, below the agent whose call had the sidechain's prompt."""
        chain = [root]
        while inside := [uuid for uuid in self._tree.children.get(chain[-1], ()) if uuid in self._aside]:
            chain.append(next((uuid for uuid in reversed(inside) if uuid not in self._beside), inside[-1]))
        node = self._nodes[root]
        above = self._owners.get(texts_of(node.blocks), top)
        side = Draft(f"{top.uuid} {root}", f"{top.name}-sidechain", supervisor=above)
        side.begin(None, {"format": "claude-code", "session": self.id, "line": node.line.number}, settings, node.at)
        self._write_path(side, chain)
        return side

    def _write_path(self, draft: Draft, path: Sequence[str]) -> None:
        written = set[str]()
        before, start, meta = draft.head, path[0], False
        boundary: RecordedLine | None = None
        for uuid in path:
            node = self._nodes[uuid]
            role, message = node.role, node.line
            if message.value.get("subtype") == "compact_boundary":
                boundary = message
            first, after = self._kept(draft, boundary) if role is Role.SUMMARY else (0, 0)
            boundary = None if role is Role.SUMMARY else boundary
            if after:
                self._settle(draft)
                draft.rewind(message, after, node.at)
                role = Role.META
            if role in (Role.PROMPT, Role.META):
                joins = meta if role is Role.PROMPT else draft.is_open
                if not joins:
                    self._settle(draft)
                    draft.interrupt(node.at)
                    before, start = draft.head, uuid
                self._write_text(draft, node, joins)
            elif role is Role.REPLY and self._heads[uuid] not in written:
                written.add(self._heads[uuid])
                self._settle(draft)
                self._write_reply(draft, self._pieces[self._heads[uuid]])
            elif role is Role.SUMMARY:
                self._settle(draft)
                draft.summarise(message, texts_of(node.blocks), node.at, first)
            elif role in (Role.RESULTS, Role.INTERRUPTION):
                self._write_said(draft, node)
            meta = draft.is_open if role is Role.META else meta and role is Role.HIDDEN
            self._tree.places.setdefault(uuid, LinePlace(draft, before, start, None if draft.is_open else draft.head))
        self._settle(draft)

    def _kept(self, draft: Draft, boundary: RecordedLine | None) -> tuple[int, int]:
        """Return the bounds of the messages that a summary keeps.

        Args:
            draft: has the summarised messages.
            boundary: the line before the summary.

        Returns:
            The position of the first kept step, and 0; or 0, and the prompt up to which the first messages are kept.
                Both are 0 if the summary keeps no message.
        """
        facts = object_of(boundary.value.get("compactMetadata")) if boundary is not None else {}
        messages, segment = object_of(facts.get("preservedMessages")), object_of(facts.get("preservedSegment"))
        named = messages.get("uuids")
        uuids = named if isinstance(named, list) and named else [segment.get("headUuid"), segment.get("tailUuid")]
        lines = [self._tree.lines[uuid] for uuid in uuids if isinstance(uuid, str) and uuid in self._tree.lines]
        steps = [step for line in lines if (step := draft.step_of(line.number))]
        anchor = messages.get("anchorUuid") or segment.get("anchorUuid")
        if steps and boundary is not None and anchor == boundary.value.get("uuid"):  # the first ones: a summary follows
            return 0, next((prompt for prompt in draft.prompts if prompt > max(steps)), 0)
        return min(steps, default=0), 0

    def _write_text(self, draft: Draft, node: SessionLine, joins: bool) -> None:
        """Write a line's text as a prompt, or as an addition to the prompt before it."""
        text, pictures = texts_of(node.blocks), _pictures_in(node.blocks)
        if not (text.strip() or pictures):
            return
        if not joins:
            draft.prompt(node.line, text, node.at, pictures)
        elif draft.messages[-1].kind == "user":
            draft.prompt_more(node.line, text, node.at, pictures)
        else:
            self._settle(draft)
            draft.word(node.line, text, node.at, pictures)

    def _write_said(self, draft: Draft, node: SessionLine) -> None:
        line, at, text = node.line, node.at, texts_of(node.blocks)
        for block in node.results:
            parts = blocks_in(block.get("content"))
            call, failed = str(block.get("tool_use_id")), bool(block.get("is_error"))
            draft.result(line, call, texts_of(parts), at, failed, _pictures_in(parts))
            if isinstance(agent := line.part("toolUseResult").get("agentId"), str):
                self._owners[agent] = draft
        if node.role is Role.RESULTS and not text.strip():
            return
        self._settle(draft)
        if node.role is Role.INTERRUPTION:
            draft.interrupt(at, line, text)
        else:
            draft.word(line, text, at)

    def _settle(self, draft: Draft) -> None:
        """Write the results of calls that have none yet, and whose result lines lie beside the path."""
        for call in draft.waiting:
            if (node := self._results.get(call)) is not None and call in draft.waiting:
                self._write_said(draft, node)

    def _write_reply(self, draft: Draft, pieces: Sequence[SessionLine]) -> None:
        first, last = pieces[0], pieces[-1]
        blocks = [dict(block) for piece in pieces for block in piece.blocks]
        text = "".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")
        if first.line.value.get("isApiErrorMessage"):
            draft.fail(first.line, text, last.at)
            return
        calls = [_call_in(first.line, block) for block in blocks if block.get("type") == "tool_use"]
        for call in calls:
            self._owners.setdefault(str(call.input.get("prompt")), draft)
        reasons = (piece.message.get("stop_reason") for piece in reversed(pieces))
        reason = next((words for words in reasons if isinstance(words, str)), "tool_use" if calls else "end_turn")
        usage = _usage_of(last.message.get("usage"))
        reply = Reply(text, tuple(calls), reason, usage, tuple(blocks), last.model)
        model = f"anthropic:{last.model}" if last.model else ""
        draft.reply(first.line, reply, model, first.at, [piece.line.number for piece in pieces])


def _role_of(line: RecordedLine) -> Role:
    message, kind = line.part("message"), line.value["type"]
    if kind == "attachment":
        return Role.META if attached_blocks(line.part("attachment")) else Role.HIDDEN
    if kind != "user":
        return Role.REPLY if kind == "assistant" else Role.HIDDEN
    blocks = blocks_in(message.get("content"))
    text = texts_of(blocks)
    if line.value.get("isCompactSummary"):
        return Role.SUMMARY
    if any(block.get("type") == "tool_result" for block in blocks):
        return Role.RESULTS
    if text.startswith(_INTERRUPTED):
        return Role.INTERRUPTION
    return Role.META if line.value.get("isMeta") or text.startswith(_COMMANDS) else Role.PROMPT


def _call_in(line: RecordedLine, block: Mapping[str, Any]) -> ToolCall:
    call, name, arguments = block.get("id"), block.get("name"), block.get("input")
    if not (isinstance(call, str) and isinstance(name, str) and isinstance(arguments, dict)):
        line.refuse("expected a tool_use to have an id, a name and an input")
    return ToolCall(name, arguments, call)


def _usage_of(value: object) -> Usage | None:
    if not isinstance(value, dict):
        return None
    names = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    written = value.get("cache_creation")
    hourly = written.get("ephemeral_1h_input_tokens") if isinstance(written, dict) else None
    counts = (count_of(value.get(name)) for name in names)
    return replace(Usage(*counts), cache_creation_1h_input_tokens=count_of(hourly))


def _pictures_in(blocks: Iterable[Mapping[str, Any]]) -> list[Attachment]:
    sources = (object_of(block.get("source")) for block in blocks if block.get("type") in ("image", "document"))
    return [image for source in sources if (image := picture(source.get("data"))) is not None]
