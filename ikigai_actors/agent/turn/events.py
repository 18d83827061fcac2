"""The events of an agent: commands from outside, and completions of its own effects.

A command carries its caller, which the machine hands back untouched in an `Answer`; a completion names the request that
it answers. The class of a command says what it ``needs`` before it can run, and what it ``travels_as`` when another
process asks for it: a kind of remote command; empty when it cannot be remote. Its fields are the arguments that travel,
but for the caller and what the agent looks up itself (`AT_HOME`).
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
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.records.messages.steered import NOW, STEER
from ikigai_actors.tools.hooks.verdict import NO_HOOKS, DueHooks, HookOutcome
from ikigai_actors.tools.policy import Asked
from supervisors.signals import Status

Caller = Any
"""The receiver of the answer to a command; opaque to the machine (a future, in practice)."""


AT_HOME = {"at_home": True}
"""Marks a field that does not travel: the agent that carries the command out fills it in."""


def arguments_of(command: type[Any]) -> tuple[str, ...]:
    """The names of the fields that travel with a command."""
    return tuple(each.name for each in fields(command) if each.name != "caller" and not each.metadata)


class Needs(Enum):
    """The condition of a command. One that needs more than the log is lost when the process ends."""

    LOG = "the log"
    TURN_OVER = "the log, and no turn in progress"
    AT_REST = "the log, and no turn in progress but one that waits for a budget"
    CALLS_OVER = "the log, and no call without a result: where a model may be asked"
    STEP_OVER = "the head of the log, and no call that is being carried out"


@dataclass(frozen=True, slots=True)
class Prompt:
    """Open a turn; answered with its outcome."""

    needs = Needs.TURN_OVER
    travels_as = ""
    text: str
    caller: Caller
    mail: int = 0
    """Number of the mail by which another process sent it; 0 for none."""
    repeats: int = 0
    """Position of an earlier prompt with the same text that this one replaces, because its turn failed or was cut off
    without a reply; 0 for none. The actor looks it up in the log.
    """
    data: Mapping[str, Any] = field(default_factory=dict)
    """Further facts for the message: ``output``, what the turn must give (`records.outputs`), ``attached``, and
    ``labels``, which count for the turn.
    """
    blobs: tuple[Attachment, ...] = ()
    """The attached bytes; empty where they are stored already."""
    stored: Caller | None = None
    """Answered when the prompt is in the database: with the number of the mail by which a busy agent keeps it, or with
    0 where the prompt has opened a turn. None lets it wait in memory.
    """
    interrupted: bool = False
    """Whether an INT came before its turn: that ends as it begins, and asks no model."""

    @property
    def is_word(self) -> bool:
        """Whether it enters the turn in progress (`records.words`), and opens one only where there is none."""
        return STEER in self.data

    @property
    def at_once(self) -> bool:
        """Whether it is a word that cuts off the step in progress."""
        return self.data.get(STEER) == NOW


MOST_CHILDREN = 10_000
"""Children of one unit at most: other agents' units wait meanwhile."""


class NewChild(NamedTuple):
    """The part of a child that its siblings do not have."""

    uuid: str
    name: str | None
    prompt: str | None


@dataclass(frozen=True, slots=True)
class Fork:
    """Make a child, or several in one unit; answered with the uuid of the first. The caller drew the uuids."""

    needs = Needs.STEP_OVER
    travels_as: ClassVar[str] = "fork"
    child: str
    name: str | None
    prompt: str | None
    settings: Mapping[str, Any]
    restart: str
    caller: Caller
    on_orphan: str | None = None
    """The fate of the child's children when it dies; None inherits."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """As `Prompt.data`."""
    more: tuple[NewChild, ...] = ()
    """The younger siblings, born in the same unit, in order."""
    blobs: tuple[Attachment, ...] = field(default=(), metadata=AT_HOME)
    """As `Prompt.blobs`."""
    budget: str | None = None
    """The child's own budget, as `encode_budget` writes it; None for none."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The labels that it puts over those in force."""
    kind: str = ""
    """The kind of the children, by its name; empty for none."""

    @property
    def children(self) -> tuple[NewChild, ...]:
        """All children, the eldest first."""
        return (NewChild(self.child, self.name, self.prompt), *self.more)


@dataclass(frozen=True, slots=True)
class ForkAt(Fork):
    """Make a child at an earlier position, which is committed: in any phase; answered with its uuid."""

    needs = Needs.LOG
    travels_as: ClassVar[str] = "fork_at"
    at: int = 0
    """The last position that the child inherits."""
    then: Mapping[str, Any] | None = field(default=None, metadata=AT_HOME)
    """The settings in force there; None until the store was asked."""


class TrialBirth(NamedTuple):
    """A child that goes on from a position of any agent's history."""

    uuid: str
    of: str
    """The agent whose history it inherits, by uuid, living or dead."""
    at: int
    """The last position that it inherits."""
    prompt: str | None
    data: Mapping[str, Any]
    """As `Prompt.data`."""
    settings: Mapping[str, Any]
    """The settings that differ from those at that position."""
    facts: Mapping[str, Any]
    """The note of the agent that makes it."""
    go: bool = False
    """Whether it has no prompt, and goes on at once with what its history ends with: with a prompt, or with results.
    Of ``data`` it takes ``output``.
    """
    begin: tuple[tuple[str, str, Mapping[str, Any]], ...] = ()
    """Messages that it begins with, before its prompt or before it goes on: kind, content and data of each. They are
    copies of what was said elsewhere; ``from`` in their data is the position of what they are a copy of.
    """


@dataclass(frozen=True, slots=True)
class ForkTrials:
    """Write a note, and make children of any histories, which the agent supervises; answered with the note's position.

    Whose histories they inherit is neither asked nor written. The caller drew the uuids, and has looked whether the
    positions will do.
    """

    needs = Needs.STEP_OVER
    travels_as = "trials"
    note: Mapping[str, Any]
    trials: tuple[TrialBirth, ...]
    caller: Caller
    head: int = 0
    """The latest position of the agent's log that the caller has read: when there are others, nothing is written, and
    the answer is `StoreConflict`; 0 for whichever.
    """


@dataclass(frozen=True, slots=True)
class Clear:
    """Start over, with the settings in force; answered with the position of the clear."""

    needs = Needs.AT_REST
    travels_as = "clear"
    caller: Caller


@dataclass(frozen=True, slots=True)
class Compact:
    """Summarise what was said, by the model or by a text that is given; answered with what came of it."""

    needs = Needs.CALLS_OVER
    travels_as = "compact"
    focus: str
    """The focus; empty for none."""
    caller: Caller
    summary: str = ""
    """The text, where no model is to write it."""
    plan: SummaryPlan | None = field(default=None, metadata=AT_HOME)
    """The part that a summary would replace; None when it would save nothing. The actor looks it up in the log."""


@dataclass(frozen=True, slots=True)
class Uncompact:
    """Take off the latest summary; answered with the position of that."""

    needs = Needs.AT_REST
    travels_as = "uncompact"
    caller: Caller


@dataclass(frozen=True, slots=True)
class Merge:
    """Take in what another agent has said; answered with what came of it."""

    needs = Needs.AT_REST
    travels_as = "merge"
    child: str
    """The uuid."""
    how: str
    """``result``, ``summary`` or ``pick``."""
    positions: tuple[int, ...]
    """The picked positions; none for the other ways."""
    caller: Caller


@dataclass(frozen=True, slots=True)
class MergeFiles:
    """Take over what a child has changed in the files of its directory; answered with the paths of these."""

    needs = Needs.TURN_OVER
    travels_as = "merge_files"
    child: str
    """The uuid. The agent's own: what it has changed goes into the directory itself."""
    caller: Caller
    way: str = ""
    """``apply`` or ``branch``, as the files of the child have forked; empty for whichever it is."""


@dataclass(frozen=True, slots=True)
class SetMark:
    """Set a mark; answered with its position."""

    needs = Needs.AT_REST
    travels_as = "mark"
    label: str
    caller: Caller


@dataclass(frozen=True, slots=True)
class Rewind:
    """Go back to the latest mark, or the latest with a label; answered with the position of the rewind."""

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
    """Position of that prompt; 0 when there is none. The actor looks it up in the log."""


@dataclass(frozen=True, slots=True)
class Configure:
    """Change settings; None removes one. Answered with the position of the change."""

    needs = Needs.AT_REST
    travels_as = "configure"
    settings: Mapping[str, Any]
    caller: Caller
    blobs: tuple[Attachment, ...] = field(default=(), metadata=AT_HOME)
    """The files of skills that it pins."""


class Resumption(Enum):
    """On whose account a turn goes on."""

    PERSON = "a caller asks for it"
    HOST = "a host, after the end of the one before"
    SUPERVISOR = "the supervisor of an agent that was restarted or just born: nothing was cut off"


@dataclass(frozen=True, slots=True)
class Resume:
    """Go on with a turn that was cut off, or that ended with an error; answered with whether there was one."""

    needs = Needs.LOG
    travels_as = "resume"
    caller: Caller
    by: Resumption = field(default=Resumption.PERSON, metadata=AT_HOME)
    """On whose account it goes on."""


@dataclass(frozen=True, slots=True)
class GetOutcome:
    """Ask for the outcome of the turn in progress, or else of the latest one."""

    needs = Needs.LOG
    travels_as = ""
    caller: Caller


@dataclass(frozen=True, slots=True)
class Decide:
    """Decide on a call that asks; answered with whether it was still undecided."""

    needs = Needs.LOG
    travels_as = "decide"
    reply: int
    """Position of the reply that asks for it."""
    call: str
    """The call's id."""
    approved: bool
    reason: str
    """Why it is denied."""
    always: str
    """Which later calls a rule allows: ``tool``, all of this tool; ``exact``, the same command of bash; empty, none."""
    caller: Caller
    call_sha256: str = ""
    """The digest of the call as it was shown; empty where it was not."""
    by: str = ""
    """The one who decides; empty where that is not told."""
    definition: str = ""
    """The digest of the tool's definition as it was shown; empty where it was not."""
    build: str = ""
    """The build of the host that asked; empty where it was not shown."""
    question: str = ""
    """The id of the question that was shown; empty where it was not."""
    answer: str = ""
    """The answer to the question of a model, as JSON; empty for a call that waits for approval."""


@dataclass(frozen=True, slots=True)
class Interrupt:
    """End the turn in progress now; answered with whether there was one."""

    needs = Needs.LOG
    caller: Caller
    partial: str = ""
    """The text that the model had sent so far; the actor looks it up when it takes the signal."""
    turn: int = 0
    """Only this turn is ended, and no later one; 0 means whichever is in progress."""
    spent: Spent | None = None
    """The tokens that the model's service had counted so far; the actor looks them up at the same moment."""
    behind: Any = None
    """The latest message that waited in the agent's inbox then, which the signal overtakes; None for none. Without a
    turn in progress it ends the one that the oldest prompt up to there opens.
    """


@dataclass(frozen=True, slots=True)
class ExitNow:
    """End the agent, between two turns; answered when it is dead, or restarted because it is permanent."""

    needs = Needs.TURN_OVER
    travels_as = "exit"
    result: str
    caller: Caller


@dataclass(frozen=True, slots=True)
class StatusChanged:
    """The registry gave the agent another status."""

    status: Status
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Leave:
    """The agent is terminating, and its turn is over."""


@dataclass(frozen=True, slots=True)
class Granted:
    """The tokens that the agent's request waits for are held now."""

    needs = Needs.LOG
    held: Held


@dataclass(frozen=True, slots=True)
class WaitsElsewhere:
    """The agent's request now waits for another budget, or another unit of the same one."""

    needs = Needs.LOG
    paused: Paused


@dataclass(frozen=True, slots=True)
class TurnPoisoned:
    """The turn in progress has crashed its agent too often, or its program has changed; it is closed."""

    needs = Needs.LOG
    reason: str
    is_changed: bool = False


@dataclass(frozen=True, slots=True)
class Loaded:
    """The log was read."""

    head: int
    view: View
    calls: Calls
    """The calls of the last reply of an open turn, with their progress."""
    last: Any
    """The outcome of the latest turn that was closed, or None."""
    notice: int = 0
    """The new `State.notice`."""
    failed: int = 0
    """The new `State.failed`."""
    output: Mapping[str, Any] | None = None
    """The new `State.output`."""
    misfits: tuple[str, ...] = ()
    """The new `State.misfits`."""
    focus: str | None = None
    """The new `State.focus`."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The labels that the prompt of the latest turn puts over those of the agent."""
    asked: int = 0
    """The new `State.asked`."""
    cut_off: str = ""
    """Why the open turn does not go on by itself, for who asks for its outcome. The actor fills it in."""


@dataclass(frozen=True, slots=True)
class ReplyReceived:
    """The model answered."""

    request: int
    reply: Reply
    model: str
    """``provider:model`` that made the reply."""


@dataclass(frozen=True, slots=True)
class ReplyFailed:
    """The model could not answer."""

    request: int
    error: ProviderError
    spent: Spent | None = None
    """The tokens that the model's service counted of the reply that did not come."""
    next: str = ""
    """The model to ask if the service is not available, ``provider:model``; empty when there is no other."""
    service: str = ""
    """The name of the provider that was asked; empty where none was."""
    plan: SummaryPlan | None = None
    """As `Compact.plan`, for a request that was refused because of its length. The actor looks it up in the log."""
    elision: Elision | None = None
    """As `WindowFull.elision`."""


@dataclass(frozen=True, slots=True)
class ServiceDue:
    """The time has come to send a request again that waits for its service."""

    request: int


@dataclass(frozen=True, slots=True)
class WindowFull:
    """A request comes near the model's window, and has not left."""

    request: int
    tokens: int = 0
    """How many it has, about."""
    near: float = 0
    """At how many it comes near the window."""
    is_full: bool = False
    """Whether it would be too long: it is not to leave without a summary, or what replaces one."""
    readable: float = 1.0
    """The part of the conversation that the model can read when it writes the summary."""
    plan: SummaryPlan | None = None
    """As `Compact.plan`."""
    elision: Elision | None = None
    """The elision that is enough without a summary, if its long results are shown by reference. The actor looks it up
    in the log.
    """


@dataclass(frozen=True, slots=True)
class SummaryReplied:
    """The model answered when it was asked for a summary."""

    request: int
    reply: Reply
    model: str
    """``provider:model`` that made the reply."""
    saw: int
    """Position of the latest message that it was shown."""
    name: str | None
    """The agent's name."""


class RefusedSummary(NamedTuple):
    """A summary in place of a request that is due, which could not begin, since the unit before it was refused."""

    compaction: Any
    """The `Compaction` of the state that did not come true."""
    messages: tuple[Message, ...]
    """The messages that the unit would have written."""


@dataclass(frozen=True, slots=True)
class SummaryFailed:
    """The model gave no summary."""

    request: int
    error: ProviderError
    spent: Spent | None = None
    """The tokens that the model's service counted of the answer that did not come."""
    charge: Charge | None = None
    """The cost of the answer, where one came, and the unit was refused that says so."""
    refused: "RefusedSummary | None" = None
    """The summary that nobody asked for, and that no budget has room for: it has not begun."""
    readable: float = READABLE
    """The part of what the model was shown that it can read, where that was too long for it."""
    plan: SummaryPlan | None = None
    """The shorter request in place of the one that was too long; None where nothing shorter is left. Looked up in the
    log."""
    next: str = ""
    """As `ReplyFailed.next`."""
    service: str = ""
    """As `ReplyFailed.service`."""


@dataclass(frozen=True, slots=True)
class Batched:
    """The request in flight waits for a batch."""

    request: int


@dataclass(frozen=True, slots=True)
class PartWritten:
    """The summary of a part is committed: the next part is due."""

    request: int
    plan: SummaryPlan | None = None
    """The part of the log; None where too little is left. Looked up in the log."""


@dataclass(frozen=True, slots=True)
class ChildRead:
    """The agent that is to be merged was looked at."""

    request: int
    source: MergeSource | None = None
    error: IkigaiError | None = None
    """Why it could not be; else there is a source."""


@dataclass(frozen=True, slots=True)
class Exited:
    """The agent's own code has ended the agent instead of answering."""

    request: int
    result: str


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A tool has returned a result, or failed."""

    request: int
    """The request whose reply asked for it."""
    call: str
    """The call's id."""
    content: str
    """The result as the model reads it."""
    is_error: bool
    attached: tuple[Attachment, ...] = ()
    """Pictures and the like that belong to it."""


@dataclass(frozen=True, slots=True)
class CallRefused:
    """The store refused the unit of a call that the agent performs itself."""

    call: str
    """The call's id."""
    reason: str


@dataclass(frozen=True, slots=True)
class TakeWords:
    """Let the words in that wait, though the step in progress has not ended: end what they need not wait for."""

    at_once: bool = False
    """Whether these words cut the step off. Otherwise they only end a ``wait``."""
    partial: str = ""
    """The received part of the reply that is cut off, as `Interrupt.partial`."""
    spent: Spent | None = None
    """The cost, as `Interrupt.spent`."""
    asked: bool = False
    """Whether the request had left."""


@dataclass(frozen=True, slots=True)
class LookAtMail:
    """Give the idle agent a notice of unread mail; not if it had one before and has not looked since."""

    earlier: Mapping[str, Any] | None
    """The earlier notice: the data of that line."""


@dataclass(frozen=True, slots=True)
class Continue:
    """Go on with the calls of the last reply. Comes after each step, not from outside."""

    fresh: Sequence[str]
    """New uuids, for children: one for each call of ``fork`` that is still to be carried out."""
    spent: Spent | None = None
    """The tokens of the reply whose calls these are. The actor looks them up in the log where they matter."""
    one_by_one: bool = False
    """Whether the next call is carried out alone: together with others it was refused."""
    plan: SummaryPlan | None = None
    """As `Compact.plan`, where the model has asked for a summary. The actor looks it up in the log."""
    asked: Mapping[str, Asked] = field(default_factory=dict)
    """The subjects of the calls that rules may look at, by id. The actor looks that up where there are rules."""
    recorded: Mapping[str, RecordedResult] = field(default_factory=dict)
    """The recorded results of these calls, by id, where nothing runs. The actor looks them up in the log."""
    found: Sequence[str] = ()
    """The tools that the model has found, where a call is to find more."""
    hooks: DueHooks = NO_HOOKS
    """The hooks that are to be asked about these calls."""
    loaded: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """The parts of skills that the model has before it, for a call that loads one: `agent.turn.skills`."""


@dataclass(frozen=True, slots=True)
class HooksAnswered:
    """Hooks have said what they say of a call."""

    request: int
    """The request whose reply asked for it."""
    call: str
    """The call's id."""
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
"""The commands that may have to wait; each says what it needs."""
Completion = (
    Loaded
    | ServiceDue
    | WindowFull
    | ReplyReceived
    | ReplyFailed
    | SummaryReplied
    | SummaryFailed
    | PartWritten
    | Batched
    | ChildRead
    | Exited
    | ToolFinished
    | HooksAnswered
    | CallRefused
)
TurnEvent = Deferrable | Completion | Continue | LookAtMail | TakeWords | StatusChanged | Leave
