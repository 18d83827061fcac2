"""Drafts: agents that are made of a recording, with their logs. Pure.

A log is written as the runtime would have written it: a prompt opens a turn, a reply without calls ends the turn, and a
turn that was cut off ends as interrupted. A result that answers no call is left out. The data of each message from a
recording has the numbers of its lines, as ``lines``, so an export knows which messages are new. A note contains the
file, in parts, and its format.
"""

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, Protocol

from ikigai_actors.attachments import LARGEST, Attachment, attachment
from ikigai_actors.errors import BadInput
from ikigai_actors.providers.base import Reply, Spent, Usage
from ikigai_actors.providers.checked import checked_reply
from ikigai_actors.reach.sessions import LINES
from ikigai_actors.records.agents.identity import NAME_LENGTH, check_name, new_agent_uuid
from ikigai_actors.records.messages.blob_references import stored_in
from ikigai_actors.records.messages.forms import problem_of
from ikigai_actors.records.messages.messages import Kind
from ikigai_actors.records.messages.replies import reply_message_data, spent_data
from ikigai_actors.records.messages.settings import IMPORTED
from ikigai_actors.text import storable

PART_BYTES = 4 * 2**20
"""Bytes of a part of a recording, which is stored as a blob."""
NO_CALLS: Mapping[str, Any] = {"missing": "tell", IMPORTED: True}
"""The setting ``effects`` of an imported agent: no call runs, and its model gets an error as the result."""


class SourceFile(Protocol):
    """A file of another program from which drafts are made."""

    @property
    def name(self) -> str:
        """Return the path of the file, for errors and for the agents' notes."""

    @property
    def data(self) -> bytes:
        """Return the bytes of the file."""


class SourceLine(Protocol):
    """A line of a file from which drafts are made."""

    @property
    def number(self) -> int:
        """Return the number of the line, from 1."""

    def refuse(self, why: str) -> NoReturn:
        """Raise an error that names the line."""


class DraftMessage(NamedTuple):
    """A message that a draft will have in the log of its agent."""

    kind: str
    content: str
    data: Mapping[str, Any]
    at: int
    tokens: int = 0
    """The cost of the request that the message ends, in tokens."""
    usd: int = 0

    @property
    def begins_a_step(self) -> bool:
        """Return whether the messages that a summary keeps may begin with this one."""
        return self.kind in (Kind.USER, Kind.ASSISTANT)


class Draft:
    """An agent that is being made from a recording, with its log so far."""

    def __init__(
        self,
        key: str,
        name: str,
        *,
        parent: "Draft | None" = None,
        fork: int = 0,
        supervisor: "Draft | None" = None,
    ) -> None:
        """Begin the log of an agent.

        Args:
            key: the text from which its uuid is made.
            name: its name, if it is valid for an agent.
            parent: the draft from which it was forked; None if it inherits nothing.
            fork: the position of the parent at which it was forked.
            supervisor: its supervisor; None for the parent.
        """
        self.uuid = _uuid_of(key)
        self.name = _name_of(name)
        self.parent, self.fork = parent, fork
        self.supervisor = supervisor or parent
        self.messages: list[DraftMessage] = []
        self.blobs: dict[str, tuple[str, bytes]] = {}
        """The media type and the bytes of each blob, by hash."""
        self.is_open = False
        """Whether a turn is in progress."""
        self.unsaid = set[str]()
        """The parts of the file, in words for people, that the model may have read and that the log lacks."""
        self.prompts: list[int] = [] if parent is None else [prompt for prompt in parent.prompts if prompt <= fork]
        """The positions of the prompts that no rewind has undone."""
        self._kept: int = (
            0 if parent is None else min(parent._kept, fork)
        )  # no summary may keep more than the one before
        self._waiting: dict[str, str] = {}  # the names of the calls of the latest reply without a result, by id
        if parent is not None:
            self._write(Kind.FORK, "", {"parent": parent.uuid, LINES: []}, 0)

    @property
    def head(self) -> int:
        """Return the position of the agent's latest message."""
        return self.fork + len(self.messages)

    @property
    def waiting(self) -> Sequence[str]:
        """Return the ids of the calls that have no result yet."""
        return list(self._waiting)

    def begin(self, of: SourceFile | None, facts: Mapping[str, Any], settings: Mapping[str, Any], at: int) -> None:
        """Write the agent's settings, and the note with the recording."""
        if settings:
            self._write(Kind.CONFIGURE, "", {name: _clean(value) for name, value in settings.items()}, at)
        fields: dict[str, Any] = {name: _clean(value) for name, value in facts.items() if value}
        data: dict[str, Any] = {IMPORTED: fields}
        if of is not None:
            fields |= {"file": storable(of.name), "size": len(of.data)}
            data["attached"] = [self._keep(of.data[at : at + PART_BYTES]) for at in range(0, len(of.data), PART_BYTES)]
        self._write(Kind.NOTE, "", data, at)

    def configure(self, line: SourceLine, settings: Mapping[str, Any], at: int) -> None:
        """Write a change of settings into the agent's log."""
        self._write(Kind.CONFIGURE, "", {name: _clean(value) for name, value in settings.items()}, at, line)

    def prompt(self, line: SourceLine, text: str, at: int, pictures: Sequence[Attachment] = ()) -> int:
        """Write a prompt, which opens a turn. A turn in progress counts as interrupted. Returns the position."""
        self.interrupt(at)
        self.is_open = True
        self.prompts.append(self._said(Kind.USER, line, text, at, pictures))
        return self.prompts[-1]

    def prompt_more(self, line: SourceLine, text: str, at: int, pictures: Sequence[Attachment] = ()) -> None:
        """Add a text to the prompt that was just written; if there is none, write a prompt."""
        if not self.messages or self.messages[-1].kind != Kind.USER:
            self.prompt(line, text, at, pictures)
            return
        last = self.messages.pop()
        both = "\n\n".join(filter(str.strip, (last.content, text)))
        self._said(Kind.USER, line, both, last.at, pictures, last.data)

    def word(self, line: SourceLine, text: str, at: int, pictures: Sequence[Attachment] = ()) -> None:
        """Write a steering message within a turn, after all results; without a turn, write a prompt."""
        if not self.is_open or self._waiting:
            self.prompt(line, text, at, pictures)
        else:
            self._said(Kind.STEER, line, text, at, pictures)

    def reply(
        self, line: SourceLine, reply: Reply, model: str, at: int, lines: Iterable[int] = (), usd: int = 0
    ) -> None:
        """Write a reply of a model. A reply without calls ends the turn."""
        try:
            reply = checked_reply(reply)
        except TypeError as error:
            line.refuse(str(error))
        if self._waiting:
            self.interrupt(at)
        data = reply_message_data(reply, model)
        self._write(Kind.ASSISTANT, reply.text, data, at, line, lines, usd)
        self._waiting = {call.id: call.name for call in reply.tool_calls}
        self.is_open = bool(self._waiting)

    def result(
        self, line: SourceLine, call: str, text: str, at: int, is_error: bool, pictures: Sequence[Attachment] = ()
    ) -> bool:
        """Write the result of a call; return whether there was such a call without a result."""
        if (name := self._waiting.pop(call, None)) is None:
            return False
        data = {"tool_use_id": call, "name": name, **({"is_error": True} if is_error else {})}
        self._said(Kind.TOOL_RESULT, line, text, at, pictures, data)
        return True

    def cost(self, usage: Usage) -> None:
        """Record the tokens and cost of the latest reply, unless the reply has them."""
        for place in range(len(self.messages) - 1, -1, -1):
            message = self.messages[place]
            if message.kind == Kind.ASSISTANT:
                if "usage" not in message.data:
                    data = {**message.data, **spent_data(Spent(usage, message.data.get("made_by", "")))}
                    self.messages[place] = message._replace(data=data, tokens=usage.all_tokens)
                return

    def fail(self, line: SourceLine, text: str, at: int) -> None:
        """End the turn with an error in the agent's log."""
        self._end()
        self._write(Kind.ERROR, text, {}, at, line)

    def interrupt(self, at: int, line: SourceLine | None = None, text: str = "") -> None:
        """End a turn in progress as interrupted."""
        if self.is_open:
            self._end()
            self._write(Kind.INTERRUPTED, text, {}, at, line)

    def summarise(self, line: SourceLine, text: str, at: int, keep_from: int = 0, usd: int = 0) -> None:
        """Replace the messages before the step at ``keep_from`` by a summary; 0 replaces all messages."""
        if self._waiting:
            self.interrupt(at)
        if not text.strip():
            return
        first = max(keep_from, self._kept) if keep_from else self.head + 1
        steps = (number for number in range(first, self.head + 1) if (kept := self._at(number)) and kept.begins_a_step)
        self._kept = next(steps, self.head + 1)
        self._write(Kind.SUMMARY, text, {"keep_from": self._kept, "how": "given"}, at, line, (), usd)

    def step_of(self, number: int) -> int:
        """Return the position of the step, own or inherited, that a line of the file begins; 0 for none."""
        draft: Draft | None = self
        upto = self.head
        while draft is not None:
            own = draft.messages[: upto - draft.fork]
            for place in range(len(own) - 1, -1, -1):
                if own[place].begins_a_step and number in own[place].data[LINES]:
                    return draft.fork + place + 1
            upto = min(upto, draft.fork)
            draft = draft.parent
        return 0

    def _at(self, position: int) -> DraftMessage | None:
        """Return the message at a position, including inherited ones; None if there is none."""
        draft: Draft | None = self
        while draft is not None and position <= draft.fork:
            draft = draft.parent
        if draft is None or not draft.fork < position <= draft.head:
            return None
        return draft.messages[position - draft.fork - 1]

    def rewind(self, line: SourceLine, prompt: int, at: int) -> None:
        """Write a rewind that undoes a prompt and everything after it."""
        self.interrupt(at)
        self.prompts = [earlier for earlier in self.prompts if earlier < prompt]
        self._write(Kind.REWIND, "", {"before": prompt}, at, line)

    def note(self, line: SourceLine, facts: Mapping[str, Any], at: int) -> None:
        """Write a note with facts, which no model sees, into the agent's log."""
        self._write(Kind.NOTE, "", {name: _clean(value) for name, value in facts.items()}, at, line)

    def bear(self, child: "Draft") -> int:
        """Write the birth of a child; return its position. No further messages may be added to this log."""
        at = {} if child.fork == self.head else {"at": child.fork}
        return self._write(Kind.FORK, "", {"child": child.uuid, **at}, child.messages[0].at)

    @property
    def _time_of_fork(self) -> int:
        """Return the time of the parent's message after which the agent was forked."""
        above = self.parent._at(self.fork) if self.parent is not None else None
        return above.at if above is not None else 1

    def _end(self) -> None:
        self.is_open, self._waiting = False, {}

    def _said(
        self,
        kind: Kind,
        line: SourceLine,
        text: str,
        at: int,
        pictures: Sequence[Attachment],
        data: Mapping[str, Any] | None = None,
    ) -> int:
        rest = dict(data or {})
        earlier = list(rest.pop(LINES, ()))
        attached = [*rest.pop("attached", ()), *stored_in(pictures).get("attached", ())]
        self.blobs.update({picture.sha256: (picture.media, picture.data) for picture in pictures})
        if attached:
            rest["attached"] = attached
        return self._write(kind, text, rest, at, line, [*earlier, line.number])

    def _write(
        self,
        kind: Kind,
        content: str,
        data: Mapping[str, Any],
        at: int,
        line: SourceLine | None = None,
        lines: Iterable[int] = (),
        usd: int = 0,
    ) -> int:
        facts = dict(data)
        if kind is not Kind.CONFIGURE:  # its data are settings
            facts[LINES] = sorted({*lines, *(() if line is None else (line.number,))})
        if (wrong := problem_of(kind.form, facts)) is not None and line is not None:
            line.refuse(wrong)
        before = self.messages[-1].at if self.messages else self._time_of_fork
        tokens = sum(facts.get("usage", {}).values())
        self.messages.append(DraftMessage(kind.value, storable(content), facts, max(at, before), tokens, usd))
        return self.head

    def _keep(self, part: bytes) -> dict[str, Any]:
        """Store a part of a recording as a blob; return the reference to the blob."""
        sha256 = hashlib.sha256(part).hexdigest()
        self.blobs[sha256] = ("application/jsonl", part)
        return {"sha256": sha256, "media": "application/jsonl", "size": len(part), "name": ""}


def picture(data: object, most: int = LARGEST) -> Attachment | None:
    """Return the attachment that a base64 text encodes; None if models cannot take it."""
    if not isinstance(data, str) or len(data) > most * 4 // 3 + 4:
        return None
    try:
        return attachment(base64.b64decode(data, validate=True))
    except (BadInput, ValueError):
        return None


def _uuid_of(key: str) -> str:
    """Return the uuid that is derived from a text, always the same one."""
    tries = (hashlib.sha256(f"{key}\n{number}".encode(errors="replace")).digest() for number in range(10**6))
    return new_agent_uuid(lambda size: next(tries)[:size])


def _name_of(text: str) -> str:
    """Return a valid agent name that resembles a text."""
    name = "".join(char if char.isalnum() or char in "._+@-" else "-" for char in text).strip("._+@-")
    name = name[: NAME_LENGTH - 8].rstrip("._+@-")
    try:
        return check_name(name)
    except BadInput:
        return "session"


def _clean(value: Any) -> Any:
    """Return a value without the characters that databases refuse."""
    match value:
        case str():
            return storable(value)
        case dict():
            return {storable(str(key)): _clean(part) for key, part in value.items()}
        case list() | tuple():
            return [_clean(part) for part in value]
    return value
