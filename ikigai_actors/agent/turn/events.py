"""The events of an agent: commands from outside, and completions of its own effects.

A command has its caller, which the machine passes on unchanged in an `Answer`. A completion has the number of the
request to which it belongs. The class of a command has two attributes: ``needs`` is the condition under which it can
run; ``travels_as`` is its kind as a remote command, and empty when another process cannot send it. The fields of a
command are sent with it, except the caller and the fields that the agent fills in itself (`AT_HOME`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, ClassVar, NamedTuple

from ikigai_actors.agent.turn.calls import Calls
from ikigai_actors.agent.turn.plan import READABLE, Elision, SummaryPlan
from ikigai_actors.agent.turn.record import RecordedResult
from ikigai_actors.attachments import Attachment
from ikigai_actors.errors import IkigaiError, ProviderError
from ikigai_actors.providers.base import Reply, Spent
from ikigai_actors.records.budgets.amounts import Charge, Held, Paused
from ikigai_actors.records.log.history import View
from ikigai_actors.records.log.merge_source import MergeSource
from ikigai_actors.records.messages.kept import KeptRequest
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.records.messages.steered import NOW, STEER
from ikigai_actors.tools.hooks.verdict import NO_HOOKS, DueHooks, HookOutcome
from ikigai_actors.tools.policy import Asked
from supervisors.signals import Status

Caller = Any
"""The receiver of the answer to a command. The machine does not look into it; usually it is a future."""


AT_HOME = {"at_home": True}
"""Metadata of a field that is not sent to another process: the agent that carries out the command fills it in."""


def arguments_of(command: type[Any]) -> tuple[str, ...]:
    """Return the names of the fields that are sent with a command."""
    return tuple(each.name for each in fields(command) if each.name != "caller" and not each.metadata)


class Needs(Enum):
    """The condition under which an agent can run a command.

    A command that needs more than the log is lost if the process ends.
    """

    LOG = "the log"
    TURN_OVER = "the log, and no turn in progress"
    AT_REST = "the log, and no turn in progress but one that waits for a budget"
    CALLS_OVER = "the log, and no call without a result: where a model may be asked"
    STEP_OVER = "the head of the log, and no call that is being carried out"


@dataclass(frozen=True, slots=True)
class Prompt:
    """Open a turn; answered with the turn's outcome."""

    needs = Needs.TURN_OVER
    travels_as = ""
    text: str
    caller: Caller
    mail: int = 0
    """The number of the mail by which another process sent the prompt; 0 for none."""
    repeats: int = 0
    """Position of an earlier prompt with the same text that this one replaces, because its turn failed or was cut off
    without a reply; 0 for none. The actor looks it up in the log.
    """
    data: Mapping[str, Any] = field(default_factory=dict)
    """Further data of the message: ``output``, the value that the turn must give (`records.outputs`); ``attached``; and
    ``labels`` for the turn.
    """
    blobs: tuple[Attachment, ...] = ()
    """The attachments, with their bytes; empty if these are stored already."""
    stored: Caller | None = None
    """Answered when the prompt is in the database: with the number of the mail by which a busy agent keeps it, or with
    0 where the prompt has opened a turn. None lets it wait in memory.
    """
    interrupted: bool = False
    """Whether an INT came before the turn of the prompt: then the turn ends as it begins, and no model is asked."""

    @property
    def is_word(self) -> bool:
        """Return whether this is a steering message (`records.words`).

        It enters the turn in progress, or opens a turn if there is none.
        """
        return STEER in self.data

    @property
    def at_once(self) -> bool:
        """Return whether this is a steering message that cuts off the step in progress."""
        return self.data.get(STEER) == NOW


MOST_CHILDREN = 10_000
"""The most children of one unit. Units of other agents wait meanwhile."""


class NewChild(NamedTuple):
    """The uuid, name and prompt of a child to be made."""

    uuid: str
    name: str | None
    prompt: str | None


@dataclass(frozen=True, slots=True)
class Fork:
    """Make a child, or several in one unit; answered with the uuid of the first. The caller has drawn the uuids."""

    needs = Needs.STEP_OVER
    travels_as: ClassVar[str] = "fork"
    child: str
    name: str | None
    prompt: str | None
    settings: Mapping[str, Any]
    restart: str
    caller: Caller
    on_orphan: str | None = None
    """The orphan policy of the child: what happens to the child's own children when it dies. None inherits the
    policy.
    """
    data: Mapping[str, Any] = field(default_factory=dict)
    """Data of the prompt, as `Prompt.data`."""
    more: tuple[NewChild, ...] = ()
    """Further children, born after the first in the same unit, in order."""
    blobs: tuple[Attachment, ...] = field(default=(), metadata=AT_HOME)
    """Attachments of the prompt, as `Prompt.blobs`."""
    budget: str | None = None
    """The child's own budget, as `encode_budget` writes it; None for none."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The labels of the child, which override those in force."""
    kind: str = ""
    """The name of the kind of the children; empty for none."""

    @property
    def children(self) -> tuple[NewChild, ...]:
        """Return all children, in the order of their birth."""
        return (NewChild(self.child, self.name, self.prompt), *self.more)


@dataclass(frozen=True, slots=True)
class ForkAt(Fork):
    """Make a child at an earlier position of the history, in any phase; answered with its uuid."""

    needs = Needs.LOG
    travels_as: ClassVar[str] = "fork_at"
    at: int = 0
    """The last position that the child inherits."""
    then: Mapping[str, Any] | None = field(default=None, metadata=AT_HOME)
    """The settings in force at that position; None until they were read from the store."""


class TrialBirth(NamedTuple):
    """A child that continues any agent's history from a position."""

    uuid: str
    of: str
    """The uuid of the agent whose history the child inherits, living or dead."""
    at: int
    """The last position that the child inherits."""
    prompt: str | None
    data: Mapping[str, Any]
    """Data of the prompt, as `Prompt.data`."""
    settings: Mapping[str, Any]
    """The settings in which the child differs from those at the position."""
    facts: Mapping[str, Any]
    """Data of the ``fork`` message, from the agent that makes the child."""
    go: bool = False
    """Whether the child begins at once without a prompt: it answers the prompt or the results with which its history
    ends. Then only ``output`` of ``data`` is used.
    """
    begin: tuple[tuple[str, str, Mapping[str, Any]], ...] = ()
    """Messages with which the child begins, before its prompt or before it goes on: kind, content and data of each.
    They are copies of messages of another history; ``from`` in their data is the position of the original.
    """


@dataclass(frozen=True, slots=True)
class ForkTrials:
    """Write a note, and make children of any histories, which the agent supervises; answered with the note's position.

    The agents whose histories are inherited are not changed. The caller has drawn the uuids, and has checked the
    positions.
    """

    needs = Needs.STEP_OVER
    travels_as = "trials"
    note: Mapping[str, Any]
    trials: tuple[TrialBirth, ...]
    caller: Caller
    head: int = 0
    """The latest position of the agent's log that the caller has read. If the log has gone on, nothing is written, and
    the answer is `StoreConflict`; 0 accepts any position.
    """


@dataclass(frozen=True, slots=True)
class Clear:
    """Start a new conversation with the settings in force; answered with the position of the clear."""

    needs = Needs.AT_REST
    travels_as = "clear"
    caller: Caller


@dataclass(frozen=True, slots=True)
class Compact:
    """Replace older messages by a summary, of the model or with a given text; answered with the outcome."""

    needs = Needs.CALLS_OVER
    travels_as = "compact"
    focus: str
    """The focus of the summary; empty for none."""
    caller: Caller
    summary: str = ""
    """The text of the summary, if no model is to write it."""
    plan: SummaryPlan | None = field(default=None, metadata=AT_HOME)
    """The part that a summary would replace; None when it would save nothing. The actor looks it up in the log."""


@dataclass(frozen=True, slots=True)
class Uncompact:
    """Remove the latest summary; answered with the position of the change."""

    needs = Needs.AT_REST
    travels_as = "uncompact"
    caller: Caller


@dataclass(frozen=True, slots=True)
class Merge:
    """Copy another agent's work into this history; answered with the outcome of the merge."""

    needs = Needs.AT_REST
    travels_as = "merge"
    child: str
    """The uuid of the other agent."""
    how: str
    """The way of the merge: ``result``, ``summary`` or ``pick``."""
    positions: tuple[int, ...]
    """The positions of the messages to pick; empty for the other ways."""
    caller: Caller


@dataclass(frozen=True, slots=True)
class MergeFiles:
    """Copy the changes that a child has made in its directory to the agent's files; answered with their paths."""

    needs = Needs.TURN_OVER
    travels_as = "merge_files"
    child: str
    """The uuid of the child. If it is the agent's own, its changes are written to the directory itself."""
    caller: Caller
    way: str = ""
    """``apply`` or ``branch``; empty for the way that fits the child's files."""


@dataclass(frozen=True, slots=True)
class SetMark:
    """Set a mark; answered with the mark's position."""

    needs = Needs.AT_REST
    travels_as = "mark"
    label: str
    caller: Caller


@dataclass(frozen=True, slots=True)
class Rewind:
    """Go back to the latest mark, or to the latest mark with a label; answered with the position of the rewind."""

    needs = Needs.AT_REST
    travels_as = "rewind"
    label: str | None
    caller: Caller


@dataclass(frozen=True, slots=True)
class Undo:
    """Go back to before the latest prompt; answered with the position of the rewind."""

    needs = Needs.AT_REST
    travels_as = "undo"
    caller: Caller
    prompt: int = field(default=0, metadata=AT_HOME)
    """The position of that prompt; 0 when there is none. The actor looks it up in the log."""


@dataclass(frozen=True, slots=True)
class Configure:
    """Change settings; the value None removes a setting. Answered with the position of the change."""

    needs = Needs.AT_REST
    travels_as = "configure"
    settings: Mapping[str, Any]
    caller: Caller
    blobs: tuple[Attachment, ...] = field(default=(), metadata=AT_HOME)
    """The files of the skills that the change pins."""
    above: Mapping[str, Any] = field(default_factory=dict, metadata=AT_HOME)
    """The settings that the agent has inherited, where the change is about hooks."""


class Resumption(Enum):
    """The cause why a turn is resumed: a person, a boot, or a supervisor, for example."""

    PERSON = "a caller asks for it"
    HOST = "a host, after the end of the one before"
    SUPERVISOR = "the supervisor of an agent that was restarted or just born: nothing was cut off"


@dataclass(frozen=True, slots=True)
class Resume:
    """Resume a turn that was cut off, or that ended with an error; answered with whether there was such a turn."""

    needs = Needs.LOG
    travels_as = "resume"
    caller: Caller
    by: Resumption = field(default=Resumption.PERSON, metadata=AT_HOME)
    """The cause for which the turn goes on."""
    program: str = field(default="", metadata=AT_HOME)
    """The name of the program that is the agent's model, if this process lacks it; else empty."""


@dataclass(frozen=True, slots=True)
class GetOutcome:
    """Ask for the outcome of the turn in progress, or else of the latest turn."""

    needs = Needs.LOG
    travels_as = ""
    caller: Caller


@dataclass(frozen=True, slots=True)
class Decide:
    """Decide on a call that waits for a decision; answered with whether nobody had decided before."""

    needs = Needs.LOG
    travels_as = "decide"
    reply: int
    """The position of the reply that makes the call."""
    call: str
    """The id of the call."""
    approved: bool
    reason: str
    """The reason for a denial."""
    always: str
    """The later calls that a new rule allows: ``tool``, all calls of the tool; ``exact``, the same command of bash;
    empty, none.
    """
    caller: Caller
    call_sha256: str = ""
    """The digest of the call as it was shown; empty if it was not shown."""
    by: str = ""
    """The person who decides; empty if unknown."""
    definition: str = ""
    """The digest of the tool's definition as it was shown; empty if it was not shown."""
    build: str = ""
    """The build of the host that asked; empty if it was not shown."""
    question: str = ""
    """The id of the question that was shown; empty if it was not shown."""
    answer: str = ""
    """The answer to the question of a model, as JSON; empty for a call that waits for approval."""


@dataclass(frozen=True, slots=True)
class Interrupt:
    """End the turn in progress at once; answered with whether a turn was in progress."""

    needs = Needs.LOG
    caller: Caller
    partial: str = ""
    """The text that the model has sent so far. The actor looks it up when it takes the signal."""
    turn: int = 0
    """The turn to end; a later turn is not ended. 0 means the turn in progress."""
    spent: Spent | None = None
    """The tokens that the model's service has counted so far. The actor looks them up when it takes the signal."""
    behind: Any = None
    """The latest message that waited in the agent's inbox when the signal came; None for none. Without a turn in
    progress, the signal ends the turn that the oldest prompt up to this message opens.
    """


@dataclass(frozen=True, slots=True)
class ExitNow:
    """End the agent between two turns; answered when the agent is dead, or restarted because it is permanent."""

    needs = Needs.TURN_OVER
    travels_as = "exit"
    result: str
    caller: Caller


@dataclass(frozen=True, slots=True)
class StatusChanged:
    """Says that the registry gave the agent another status."""

    status: Status
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Leave:
    """End a terminating agent, whose turn is over."""


@dataclass(frozen=True, slots=True)
class Granted:
    """Says that the tokens for which the agent's request waited are reserved now."""

    needs = Needs.LOG
    held: Held


@dataclass(frozen=True, slots=True)
class WaitsElsewhere:
    """Says that the agent's waiting request now waits for another budget, or for another limit of its budget."""

    needs = Needs.LOG
    paused: Paused


@dataclass(frozen=True, slots=True)
class TurnPoisoned:
    """Closes the turn in progress, because it has crashed its agent too often, or its program has changed."""

    needs = Needs.LOG
    reason: str
    is_changed: bool = False


@dataclass(frozen=True, slots=True)
class Loaded:
    """Brings the facts that the machine needs of the agent's log, which was read."""

    head: int
    view: View
    calls: Calls
    """The calls of the last reply of an open turn, with their progress."""
    last: Any
    """The outcome of the latest turn that has ended, or None."""
    notice: int = 0
    """The new value of `State.notice`."""
    failed: int = 0
    """The new value of `State.failed`."""
    output: Mapping[str, Any] | None = None
    """The new value of `State.output`."""
    misfits: tuple[str, ...] = ()
    """The new value of `State.misfits`."""
    focus: str | None = None
    """The new value of `State.focus`."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The labels that the prompt of the latest turn adds to those of the agent."""
    asked: int = 0
    """The new value of `State.asked`."""
    ending: Message | None = None
    """The new value of `State.ending`."""
    kept: KeptRequest | None = None
    """The new value of `State.kept`."""
    cut_off: str = ""
    """Why the open turn does not go on by itself, for callers that ask for its outcome. The actor fills it in."""


@dataclass(frozen=True, slots=True)
class ReplyKept:
    """Says that the service makes the reply whether or not anybody reads it, and keeps it."""

    request: int
    kept: KeptRequest


@dataclass(frozen=True, slots=True)
class ReplyReceived:
    """Brings the model's reply to a request."""

    request: int
    reply: Reply
    model: str
    """The model that made the reply, ``provider:model``."""
    hooks: tuple[str, ...] = ()
    """The hooks that are to be asked before it ends the turn. The actor fills them in."""


@dataclass(frozen=True, slots=True)
class ReplyFailed:
    """Says that a request to the model failed."""

    request: int
    error: ProviderError
    spent: Spent | None = None
    """The tokens that the model's service counted for the missing reply."""
    next: str = ""
    """The model to ask if the service is not available, ``provider:model``; empty when there is no other model."""
    service: str = ""
    """The name of the provider that was asked; empty where none was."""
    plan: SummaryPlan | None = None
    """As `Compact.plan`, for a request that was refused because of its length. The actor looks it up in the log."""
    elision: Elision | None = None
    """As `WindowFull.elision`."""


@dataclass(frozen=True, slots=True)
class ProgramMissing:
    """Says that the model of the agent is a program that this process does not have, so no request was sent."""

    request: int
    program: str
    """The name of the program."""


@dataclass(frozen=True, slots=True)
class ServiceDue:
    """Says that the time has come to repeat a request that its service had refused for the moment."""

    request: int


@dataclass(frozen=True, slots=True)
class HooksLacking:
    """Says that a request was not sent, because this process lacks hooks that must be asked about it."""

    request: int
    hooks: tuple[str, ...]
    until: int
    """When the wait for them is over, in milliseconds since 1970; 0 if the turn has not waited yet."""


@dataclass(frozen=True, slots=True)
class WindowFull:
    """Says that a request comes near the limit of the model's window, and was not sent."""

    request: int
    tokens: int = 0
    """The approximate number of tokens of the request."""
    near: float = 0
    """The number of tokens at which a request counts as near the limit."""
    is_full: bool = False
    """Whether the request would be too long, so it must not be sent without a summary or a digest."""
    readable: float = 1.0
    """The part of the conversation that the model can read when it writes the summary, from 0 to 1."""
    plan: SummaryPlan | None = None
    """As `Compact.plan`."""
    elision: Elision | None = None
    """The elision that shortens the request enough without a summary; None if there is none. The actor looks it up in
    the log.
    """


@dataclass(frozen=True, slots=True)
class SummaryReplied:
    """Brings the model's answer to the request for a summary."""

    request: int
    reply: Reply
    model: str
    """The model that made the reply, ``provider:model``."""
    saw: int
    """The position of the latest message that the model was shown."""
    name: str | None
    """The name of the agent; None for none."""


class RefusedSummary(NamedTuple):
    """An automatic summary that could not begin, because its unit was refused."""

    compaction: Any
    """The `Compaction` of the state that was not taken."""
    messages: tuple[Message, ...]
    """The messages that the refused unit would have written."""


@dataclass(frozen=True, slots=True)
class SummaryFailed:
    """Says that the request for a summary failed."""

    request: int
    error: ProviderError
    spent: Spent | None = None
    """The tokens that the model's service counted for the missing answer."""
    charge: Charge | None = None
    """The cost of the answer, if one came and the unit that records it was refused."""
    refused: "RefusedSummary | None" = None
    """The automatic summary that has not begun, because no budget has room for it."""
    readable: float = READABLE
    """The part of the shown text that the model can read, if the text was too long for it; from 0 to 1."""
    plan: SummaryPlan | None = None
    """A plan for a shorter request, if the last one was too long; None if no shorter one is possible. The actor looks
    it up in the log.
    """
    next: str = ""
    """As `ReplyFailed.next`."""
    service: str = ""
    """As `ReplyFailed.service`."""


@dataclass(frozen=True, slots=True)
class Batched:
    """Says that the request in flight waits to be answered through a batch."""

    request: int


@dataclass(frozen=True, slots=True)
class PartWritten:
    """Says that the summary of a part is committed, so the next part is due."""

    request: int
    plan: SummaryPlan | None = None
    """The plan for the next part; None if too little is left. The actor looks it up in the log."""


@dataclass(frozen=True, slots=True)
class ChildRead:
    """Brings the data of the agent that is to be merged."""

    request: int
    source: MergeSource | None = None
    error: IkigaiError | None = None
    """The error if it could not be read; then there is no source."""


@dataclass(frozen=True, slots=True)
class Exited:
    """Says that the agent's own code, a function as its model, has ended the agent instead of answering."""

    request: int
    result: str


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """Says that a tool has returned a result, or failed."""

    request: int
    """The number of the request whose reply made the call."""
    call: str
    """The id of the call."""
    content: str
    """The result as the model reads it."""
    is_error: bool
    attached: tuple[Attachment, ...] = ()
    """The attachments of the result."""
    filtered: tuple[tuple[str, str], ...] = ()
    """The hooks that have replaced its text, each with the SHA-256 of the text that it was before."""
    connect: Mapping[str, Any] | None = None
    """The account without which the call did not run, as `Result.connect` names it."""


@dataclass(frozen=True, slots=True)
class CallRefused:
    """Says that the store refused the unit of a call that the agent carries out itself."""

    call: str
    """The id of the call."""
    reason: str


@dataclass(frozen=True, slots=True)
class TakeWords:
    """Let waiting steering messages enter now, by ending the waits, or with ``at_once`` the whole step in progress."""

    at_once: bool = False
    """Whether the messages cut off the step. Otherwise they only end a ``wait``."""
    partial: str = ""
    """The received part of the reply that is cut off, as `Interrupt.partial`."""
    spent: Spent | None = None
    """The cost of that reply, as `Interrupt.spent`."""
    asked: bool = False
    """Whether the request was sent."""


@dataclass(frozen=True, slots=True)
class LookAtMail:
    """Write a notice of unread mail for the idle agent, unless it got such a notice and has not read mail since."""

    earlier: Mapping[str, Any] | None
    """The data of the earlier notice; None for none."""


@dataclass(frozen=True, slots=True)
class Continue:
    """Go on with the calls of the last reply. The actor sends this after each step."""

    fresh: Sequence[str]
    """New uuids for children, one for each call of ``fork`` that is still to be carried out."""
    spent: Spent | None = None
    """The tokens of the reply that makes the calls. The actor looks them up in the log if they matter."""
    one_by_one: bool = False
    """Whether the next call is carried out alone, because it was refused together with others."""
    plan: SummaryPlan | None = None
    """As `Compact.plan`, where the model has asked for a summary. The actor looks it up in the log."""
    asked: Mapping[str, Asked] = field(default_factory=dict)
    """The parts of the calls to which the patterns of rules apply, by id. The actor looks them up if there are
    rules.
    """
    recorded: Mapping[str, RecordedResult] = field(default_factory=dict)
    """The recorded results of the calls, by id, for an agent that runs no tools. The actor looks them up in the log."""
    found_tools: Sequence[str] = ()
    """The tools that the model has found already, if a call is to find more."""
    hooks: DueHooks = NO_HOOKS
    """The hooks that must be asked about these calls."""
    hooks_until: int = 0
    """When the wait for hooks that this process lacks is over; 0 if the turn has not waited for any. The actor looks it
    up in the log if hooks are lacking.
    """
    loaded: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """The texts of skills that the model sees already, for a call that loads one; see `agent.turn.skills`."""


@dataclass(frozen=True, slots=True)
class HooksAnswered:
    """Brings the verdict of hooks on a call, a request or a reply."""

    request: int
    """The number of the latest request, or of the one about which the hooks were asked."""
    call: str
    """The id of the call; empty for a request or a reply."""
    event: str
    outcome: HookOutcome


Command = (
    Prompt
    | Fork
    | ForkAt
    | ForkTrials
    | Clear
    | Compact
    | Uncompact
    | Merge
    | MergeFiles
    | SetMark
    | Rewind
    | Undo
    | Configure
    | Resume
    | GetOutcome
    | Decide
    | ExitNow
)
Deferrable = Command | Interrupt | TurnPoisoned | Granted | WaitsElsewhere
"""The commands that may have to wait. Each has its condition in ``needs``."""
Completion = (
    Loaded
    | ServiceDue
    | HooksLacking
    | WindowFull
    | ReplyReceived
    | ReplyFailed
    | ProgramMissing
    | SummaryReplied
    | SummaryFailed
    | PartWritten
    | Batched
    | ReplyKept
    | ChildRead
    | Exited
    | ToolFinished
    | HooksAnswered
    | CallRefused
)
TurnEvent = Deferrable | Completion | Continue | LookAtMail | TakeWords | StatusChanged | Leave
