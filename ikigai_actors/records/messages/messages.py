"""The message: one type for database, memory, model and screen.

A log is a list of messages. `Message.id` is a *lineage position*: an agent's first own message follows its fork point,
so one integer names a message in an agent's history wherever in the lineage it is stored. Order is by id, never by
time.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Flag, StrEnum, auto
from typing import Any

from ikigai_actors.errors import HistoryError
from ikigai_actors.frozen import NO_DATA, maker
from ikigai_actors.providers.base import Reply, Spent, ToolCall
from ikigai_actors.records.messages.forms import (
    Form,
    birth_form,
    call_form,
    mail_form,
    merge_form,
    output_form,
    problem_of,
    prompt_form,
    reply_form,
    retry_form,
    spending_form,
    start_form,
    summary_form,
    uncompact_form,
)
from ikigai_actors.records.messages.reply_data import INTERRUPTED, calls_at, reply_at, spent_in
from ikigai_actors.text import utc_time

ATTACHMENTS_KEY = "attached"
"""The key in the data of a message that has its attachments."""


class Trait(Flag):
    """A property of all messages of a kind."""

    CONTROL = auto()
    """Messages that change the view of a history."""
    CONVERSATION = auto()
    """Messages that the model may see; `ikigai_actors.agent.turn.request` decides how."""
    OPENING = auto()
    """Messages with which a turn may begin: a prompt; in a child, the result of the call that forked it; in a trial,
    its ``fork``.
    """
    IN_TURN = auto()
    """Messages that are written only while a turn is open."""
    ENDING = auto()
    """Messages with which a turn may end."""
    SPENDING = auto()
    """Messages that record the cost of a request: it was answered, broke off, failed, or was interrupted."""


class Kind(StrEnum):
    """The kind of a message, equal to a plain string. Messages of unknown kinds are kept and hidden.

    Each kind has its name, its traits, and the form of its data if it has one.
    """

    CONFIGURE = "configure", Trait.CONTROL
    """A change of settings: ``data`` is merged into the settings in force; None removes a setting."""
    USER = "user", Trait.CONVERSATION | Trait.OPENING, prompt_form
    """A prompt. Opens a turn. ``data.output`` says of which type the turn must give a value, if it must;
    ``data.attached`` refers to pictures and the like, as in the result of a tool.
    """
    STEER = "steer", Trait.CONVERSATION | Trait.IN_TURN, prompt_form
    """A steering message, which the model sees like a prompt. ``data.mail`` is the number of its mail, ``data.turn``
    the message that opened the turn, ``data.sender`` the agent that sent it, if one did.
    """
    ASSISTANT = "assistant", Trait.CONVERSATION | Trait.IN_TURN | Trait.ENDING | Trait.SPENDING, reply_form
    """A finished reply; with stop reason ``interrupted``, the part of it that was received. ``data.blocks`` is what the
    provider sent.
    """
    TOOL_CALL = "tool_call", Trait.IN_TURN, start_form
    """The record, written beforehand, that a tool starts now."""
    TOOL_RESULT = "tool_result", Trait.CONVERSATION | Trait.OPENING | Trait.IN_TURN, call_form
    """The result of a call of the last reply: ``data.tool_use_id``, ``data.is_error``."""
    APPROVAL = "approval", Trait.IN_TURN, call_form
    """A person is asked whether a call may run."""
    HOOK = "hook", Trait.IN_TURN, call_form
    """The verdict of hooks on a call, a request or a reply: ``data.event``, ``data.hooks`` that were asked,
    ``data.decision``, and the arguments ``data.input``, if they have changed them. About a reply there are two: the
    first says that they are ``asked``, the second ``goes_on`` or ``ends``. Where the process does not have hooks that
    must be asked, they are ``lacking``, and the turn waits for them ``until`` a time. No model sees it.
    """
    CONTEXT = "context", Trait.CONVERSATION | Trait.IN_TURN
    """A text for the model, added by the hook ``data.hook``."""
    CLEAR = "clear", Trait.CONTROL
    """A clear: empties the conversation and the marks; the search for earlier messages ends here."""
    MARK = "mark", Trait.CONTROL
    """A mark, to which a rewind can go back; the content is its label, perhaps empty."""
    REWIND = "rewind", Trait.CONTROL
    """A rewind to the mark at position ``data.mark``, or to before the prompt at ``data.before``."""
    SUMMARY = "summary", Trait.CONTROL | Trait.SPENDING, summary_form
    """A summary: its text replaces all visible messages before ``data.keep_from``, except the prompt at
    ``data.prompt``. Without a text, long results before ``data.elide`` are replaced by references. Nothing is deleted.
    """
    UNCOMPACT = "uncompact", Trait.CONTROL, uncompact_form
    """The end of the summary at position ``data.summary``, the latest in force."""
    OMITTED = "omitted", Trait(0)
    """A placeholder for a cleared message that was left out of an export."""
    FORK = "fork", Trait.OPENING, birth_form
    """In the parent's log: a child was forked here (``data.child``). In the child's log: its origin (``data.parent``);
    with ``data.go`` it opens a turn that answers the end of the inherited history.
    """
    MERGE = "merge", Trait.CONVERSATION | Trait.SPENDING, merge_form
    """A merge of agent ``data.from`` up to its head ``data.head``. The content is its result, a summary or a selection,
    by ``data.how``; ``data.documents`` are those that its branch wrote.
    """
    MAIL = "mail", Trait.CONVERSATION, mail_form
    """A notice about the mailbox, for the model."""
    REPAIR = "repair", Trait.CONVERSATION | Trait.IN_TURN
    """The faults of a model's value in a typed turn; the model is asked again."""
    OUTPUT = "output", Trait.IN_TURN | Trait.ENDING, output_form
    """The end of a typed turn with its value: ``data.output``, and as JSON in the content."""
    ERROR = "error", Trait.IN_TURN | Trait.ENDING | Trait.SPENDING, spending_form
    """The end of a turn with an error, which the content describes."""
    RETRY = "retry", Trait.IN_TURN | Trait.SPENDING, retry_form
    """A request that is sent again because its reply broke off; or that waits until ``data.until`` because
    ``data.service`` refuses it for the moment; or that goes to the model ``data.next`` because a service was not
    available. The turn goes on.
    """
    NOTE = "note", Trait(0)
    """A note for programs, in ``data``. No model sees it."""
    INTERRUPTED = "interrupted", Trait.IN_TURN | Trait.ENDING | Trait.SPENDING, spending_form
    """The end of a turn without a finished reply."""

    traits: Trait
    form: Form | None

    def __new__(cls, value: str, traits: Trait, form: Form | None = None) -> "Kind":
        kind = str.__new__(cls, value)
        kind._value_, kind.traits, kind.form = value, traits, form
        return kind


# The kinds with each trait, as plain words: every message is looked up in some of them.
CONTROL, CONVERSATION, OPENINGS, IN_TURN, ENDINGS, SPENDING = (
    frozenset(kind.value for kind in Kind if trait in kind.traits) for trait in Trait
)
BOUNDARIES = SPENDING | {Kind.USER.value, Kind.STEER.value}
"""The kinds after which, or before which, the pieces of a reply in progress are void."""

DECIDING = frozenset(
    kind.value for kind in (Kind.ASSISTANT, Kind.USER, Kind.INTERRUPTED, Kind.ERROR, Kind.REWIND, Kind.CLEAR)
)
"""The kinds that decide where a history may be cut: a reply, and messages that end a step. Nothing before the latest of
these matters.
"""

_FORMS: Mapping[str, Form | None] = {kind.value: kind.form for kind in Kind}
encode_data = json.JSONEncoder(separators=(",", ":")).encode
"""Encodes a mapping as JSON for a column, as `Message.row` does."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message: one entry of a log. Immutable; do not change ``data``."""

    agent_uuid: str
    """The uuid of the agent that wrote it, in whose log it is."""
    id: int
    """The position in the lineage, from 1."""
    kind: str
    """The kind: one of `Kind`, or a kind of a newer version."""
    content: str
    """The text for people."""
    data: Mapping[str, Any]
    """Further data, whose keys depend on the kind; often empty."""
    created_at: int
    """The time when it was written, in milliseconds since 1970 (UTC)."""

    @property
    def agent(self) -> str:
        """The uuid of the agent that wrote the message."""
        return self.agent_uuid

    @property
    def position(self) -> int:
        """The position in the lineage, from 1."""
        return self.id

    @property
    def created_time(self) -> datetime:
        """The time when the message was written, in UTC."""
        return utc_time(self.created_at)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls of a reply, each with an id that is unique in the reply; empty for other messages."""
        return calls_at(self.id, self.data)

    @property
    def spent(self) -> Spent | None:
        """The tokens that a service has counted for the message, with their price; None if it has counted none."""
        return spent_in(self.data)

    @property
    def reply(self) -> Reply:
        """The reply in a message of kind ``assistant``."""
        return reply_at(self.id, self.content, self.data)

    @property
    def is_whole_reply(self) -> bool:
        """Whether the message is a reply that was not cut off."""
        return self.kind == Kind.ASSISTANT and self.data.get("stop_reason") != INTERRUPTED

    @property
    def attached(self) -> Sequence[Mapping[str, Any]]:
        """The attachments, each with ``sha256``, ``media``, ``size`` and ``name``."""
        return self.data.get(ATTACHMENTS_KEY) or ()

    @property
    def may_cost(self) -> bool:
        """Whether the message records the cost of a request, or a request that may have cost something."""
        return self.kind in SPENDING

    @property
    def counts_as_request(self) -> bool:
        """Whether the message records a request of its own agent. Copies in trials do not count."""
        return self.may_cost and (self.kind == Kind.MERGE or "from" not in self.data)

    @property
    def is_in_turn(self) -> bool:
        """Whether the message belongs to a turn, after the message that opens the turn."""
        return self.kind in IN_TURN

    @property
    def announces_birth(self) -> bool:
        """Whether the message says that a child was born here. It changes nothing for the agent itself."""
        return self.kind == Kind.FORK and "child" in self.data

    @property
    def ends_turn(self) -> bool:
        """Whether a turn may have ended with this message."""
        return self.kind in ENDINGS

    @property
    def ends_pieces(self) -> bool:
        """Whether pieces of a reply in progress are void after this message."""
        return self.kind in BOUNDARIES

    def row(self) -> tuple[str, int, str, str, str | None, int]:
        """Return the message as a row of table ``messages``; empty data are NULL."""
        data = encode_data(self.data) if self.data else None
        return (self.agent_uuid, self.id, self.kind, self.content, data, self.created_at)

    @staticmethod
    def from_row(row: tuple[Any, ...]) -> "Message":
        """Return the message of a row of table ``messages``, with or without its hash.

        Raises `HistoryError` when the row is invalid: its data cannot be parsed, or lack a required part.
        """
        uuid, position, kind, content, text, created_at = row[:6]
        if not (type(content) is str and isinstance(kind, str) and type(created_at) is int):
            raise HistoryError(f"Message {position} of agent {uuid} has a content, kind or time of a wrong type.", uuid)
        if text is None:
            return new_message(uuid, position, kind, content, NO_DATA, created_at)
        try:
            data = _decode(text)
        except (ValueError, TypeError, RecursionError) as error:
            raise HistoryError(f"Message {position} of agent {uuid} has data that is no JSON: {error}", uuid) from error
        if not isinstance(data, dict):
            raise HistoryError(f"Message {position} of agent {uuid} has data that is no JSON object.", uuid)
        if (problem := problem_of(_FORMS.get(kind), data)) is not None:
            raise HistoryError(f"Message {position} of agent {uuid}, of kind {kind}, is damaged: {problem}.", uuid)
        return new_message(uuid, position, kind, content, data, created_at)


_decode = json.JSONDecoder().decode

new_message = maker(Message)
"""Makes messages fast, for logs that are read completely and for new messages."""
