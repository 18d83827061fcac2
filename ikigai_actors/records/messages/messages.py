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
    """A trait of all messages of a kind."""

    CONTROL = auto()
    """Kinds that change the view of a history; all others are only in it."""
    CONVERSATION = auto()
    """The model may see them; `ikigai_actors.agent.turn.request` decides how."""
    OPENING = auto()
    """A turn may begin with them: with a prompt, in a child with the result of the call that forked it, and in a trial
    with its ``fork``.
    """
    IN_TURN = auto()
    """Kinds that are written only while a turn is open."""
    ENDING = auto()
    """A turn may end with them."""
    SPENDING = auto()
    """Kinds that have the cost of a request: it was answered, broke off, failed, or was interrupted."""


class Kind(StrEnum):
    """The kind of a message. Compares equal to a plain string. An unknown kind is kept and hidden.

    A table: each kind has its word, its traits, and the form of its data where not any will do.
    """

    CONFIGURE = "configure", Trait.CONTROL
    """Settings: ``data`` is merged into those in force; a setting given as None is removed."""
    USER = "user", Trait.CONVERSATION | Trait.OPENING, prompt_form
    """A prompt. Opens a turn. ``data.output`` says of which type the turn must give a value, if it must;
    ``data.attached`` refers to pictures and the like, as in the result of a tool.
    """
    STEER = "steer", Trait.CONVERSATION | Trait.IN_TURN, prompt_form
    """A word for the agent within a turn; for its model it is like a prompt. ``data.mail`` is the number of the mail
    that it came as, ``data.turn`` the message that opened the turn, ``data.sender`` the agent that said it, if one did.
    """
    ASSISTANT = "assistant", Trait.CONVERSATION | Trait.IN_TURN | Trait.ENDING | Trait.SPENDING, reply_form
    """A finished reply; with stop reason ``interrupted``, the part of it that was received. ``data.blocks`` is what the
    provider sent.
    """
    TOOL_CALL = "tool_call", Trait.IN_TURN, start_form
    """Write-ahead record that a tool starts now."""
    TOOL_RESULT = "tool_result", Trait.CONVERSATION | Trait.OPENING | Trait.IN_TURN, call_form
    """The result of a call of the last reply: ``data.tool_use_id``, ``data.is_error``."""
    APPROVAL = "approval", Trait.IN_TURN, call_form
    """A person is asked whether a call may run."""
    HOOK = "hook", Trait.IN_TURN, call_form
    """The verdict of hooks on a call, a request or a reply: ``data.event``, ``data.hooks`` that were asked,
    ``data.decision``, and the arguments ``data.input``, if they have changed them. About a reply there are two: the
    first says that they are ``asked``, the second ``goes_on`` or ``ends``. No model sees it.
    """
    CONTEXT = "context", Trait.CONVERSATION | Trait.IN_TURN
    """A text of the hook ``data.hook`` for the model."""
    CLEAR = "clear", Trait.CONTROL
    """Empties conversation, marks and settings; ends the walk backwards."""
    MARK = "mark", Trait.CONTROL
    """A place to come back to; the content is its label, perhaps empty."""
    REWIND = "rewind", Trait.CONTROL
    """Back to the mark whose position is ``data.mark``, or to before the prompt at ``data.before``."""
    SUMMARY = "summary", Trait.CONTROL | Trait.SPENDING, summary_form
    """The text replaces everything that counts before ``data.keep_from``; beside it the prompt at ``data.prompt`` is
    shown. Without a text, long results before ``data.elide`` are shown by reference. Nothing is taken away.
    """
    UNCOMPACT = "uncompact", Trait.CONTROL, uncompact_form
    """The latest summary in force, at ``data.summary``, is in force no more."""
    OMITTED = "omitted", Trait(0)
    """In the place of one that was cleared, and was left out when the agents were exported."""
    FORK = "fork", Trait.OPENING, birth_form
    """In the parent's log: a child began here (``data.child``). In the child's: who it is (``data.parent``), and with
    ``data.go`` that it goes on at once with what its history ends with: it opens a turn, as a prompt does.
    """
    MERGE = "merge", Trait.CONVERSATION | Trait.SPENDING, merge_form
    """The words of agent ``data.from`` up to its head ``data.head`` are taken in: the content is its result, a
    summary or a selection, as ``data.how`` says; ``data.documents`` are those that its branch wrote.
    """
    MAIL = "mail", Trait.CONVERSATION, mail_form
    """A line about the mailbox, for the model."""
    REPAIR = "repair", Trait.CONVERSATION | Trait.IN_TURN
    """Says why the model's answer is not the value that the turn was asked for; the model is asked again."""
    OUTPUT = "output", Trait.IN_TURN | Trait.ENDING, output_form
    """The turn ended with the value that it was asked for: ``data.output``, and as JSON in the content."""
    ERROR = "error", Trait.IN_TURN | Trait.ENDING | Trait.SPENDING, spending_form
    """The turn ended with an error; the content says which."""
    RETRY = "retry", Trait.IN_TURN | Trait.SPENDING, retry_form
    """A reply broke off on its way, and its request is sent again; or ``data.service`` refuses it for the moment, and
    it is sent again at ``data.until``; or a service was not available, and the model ``data.next`` is asked. The turn
    goes on.
    """
    NOTE = "note", Trait(0)
    """Facts for programs, in ``data``. No model sees them."""
    INTERRUPTED = "interrupted", Trait.IN_TURN | Trait.ENDING | Trait.SPENDING, spending_form
    """The turn ended without a finished reply."""

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
"""The kinds that end an answer on its way, since its request is over, or come before it."""

DECIDING = frozenset(
    kind.value for kind in (Kind.ASSISTANT, Kind.USER, Kind.INTERRUPTED, Kind.ERROR, Kind.REWIND, Kind.CLEAR)
)
"""A reply, and what ends a step: where a history may be cut, nothing before the latest of these matters."""

_FORMS: Mapping[str, Form | None] = {kind.value: kind.form for kind in Kind}
encode_data = json.JSONEncoder(separators=(",", ":")).encode
"""Makes the text of a column of a mapping, as `Message.row` does."""


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of a log. Immutable, also when it came from the database (do not change ``data``)."""

    agent_uuid: str
    """The agent that wrote it. It is in this agent's log."""
    id: int
    """The lineage position, from 1."""
    kind: str
    """One of `Kind`, or a kind that a newer version wrote."""
    content: str
    """The text, as a person reads it."""
    data: Mapping[str, Any]
    """Further facts, whose keys depend on the kind. Empty for most."""
    created_at: int
    """When it was written, in milliseconds since 1970 (UTC)."""

    @property
    def agent(self) -> str:
        """The uuid of the agent that wrote it."""
        return self.agent_uuid

    @property
    def position(self) -> int:
        """The lineage position, from 1."""
        return self.id

    @property
    def created_time(self) -> datetime:
        """When it was written, in UTC."""
        return utc_time(self.created_at)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls of a reply, each with an id that is unique among them; none of another message."""
        return calls_at(self.id, self.data)

    @property
    def spent(self) -> Spent | None:
        """The tokens that a service has counted for it, and their price; None when it has counted none."""
        return spent_in(self.data)

    @property
    def reply(self) -> Reply:
        """The reply that a message of kind ``assistant`` holds."""
        return reply_at(self.id, self.content, self.data)

    @property
    def is_whole_reply(self) -> bool:
        """Whether it is a reply that was not cut off."""
        return self.kind == Kind.ASSISTANT and self.data.get("stop_reason") != INTERRUPTED

    @property
    def attached(self) -> Sequence[Mapping[str, Any]]:
        """The attachments, each as it is kept: ``sha256``, ``media``, ``size`` and ``name``."""
        return self.data.get(ATTACHMENTS_KEY) or ()

    @property
    def may_cost(self) -> bool:
        """Whether it says what a request cost, or could have."""
        return self.kind in SPENDING

    @property
    def counts_as_request(self) -> bool:
        """Whether it says what a request of its agent cost, or could have. A trial's copies do not."""
        return self.may_cost and (self.kind == Kind.MERGE or "from" not in self.data)

    @property
    def is_in_turn(self) -> bool:
        """Whether it belongs to a turn, after the message that opens it."""
        return self.kind in IN_TURN

    @property
    def ends_turn(self) -> bool:
        """Whether a turn may have ended with it."""
        return self.kind in ENDINGS

    @property
    def ends_pieces(self) -> bool:
        """Whether the pieces of a reply on its way are of no use after it."""
        return self.kind in BOUNDARIES

    def row(self) -> tuple[str, int, str, str, str | None, int]:
        """The message as a row of table ``messages``; empty data is NULL."""
        data = encode_data(self.data) if self.data else None
        return (self.agent_uuid, self.id, self.kind, self.content, data, self.created_at)

    @staticmethod
    def from_row(row: tuple[Any, ...]) -> "Message":
        """The message that a row of table ``messages`` holds, with its hash or without.

        Raises `HistoryError` when the row holds no message: its data does not parse, or lacks what messages of its kind
        have.
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
"""Makes messages fast. Used for logs that are read whole, and for new messages."""
