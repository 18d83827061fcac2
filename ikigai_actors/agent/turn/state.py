"""An agent's state, effects, and the step that holds both: what the machine decides on, and what it decides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from ikigai_actors.agent.turn.calls import Call, Calls, asking, running
from ikigai_actors.agent.turn.events import Caller, Prompt
from ikigai_actors.agent.turn.parts import ReadPart
from ikigai_actors.agent.turn.plan import SummaryPlan
from ikigai_actors.agent.turn.service_waits import ServiceWait
from ikigai_actors.errors import ProviderError, TurnInterrupted
from ikigai_actors.frozen import NO_DATA
from ikigai_actors.providers.base import Reply, Usage
from ikigai_actors.records.agents.words import called
from ikigai_actors.records.budgets.amounts import Held, Paused
from ikigai_actors.records.log.history import EMPTY, View
from ikigai_actors.records.log.log_unit import Birth, LogUnit
from ikigai_actors.records.log.merge_source import MergeSource
from ikigai_actors.records.messages.messages import Kind, Message, new_message
from ikigai_actors.records.messages.question_terms import APPROVERS
from ikigai_actors.tools.rules.rule import Rules
from supervisors.causes import Cause
from supervisors.children import RestartType
from supervisors.signals import Status


class Phase(StrEnum):
    """The stage of an agent in its turn."""

    UNLOADED = "unloaded"
    """The log was not needed yet."""
    IDLE = "idle"
    """No turn is open."""
    WAITING_FOR_MODEL = "waiting for the model"
    """A request is in flight."""
    RUNNING_TOOLS = "running tools"
    """The calls of the last reply are being carried out."""
    WAITING_FOR_APPROVAL = "waiting for approval"
    """Shown to people, never a state: calls of the last reply wait for a decision, and none runs."""
    WAITING_FOR_SERVICE = "waiting for the service"
    """The service of its model refuses requests for the moment; the request is sent again at a time that is known."""
    WAITING_FOR_BATCH = "waiting for its batch"
    """Shown to people, never a state: the request in flight waits for a batch of its service."""
    WAITING_FOR_BUDGET = "waiting for budget"
    """A request may not leave until a budget allows it; every call has its result."""
    COMPACTING = "compacting"
    """The model is asked for a summary of what was said; with an open turn or without."""
    MERGING = "merging"
    """Another agent's history is read, or its model is asked for a summary of it; with an open turn or without."""
    INTERRUPTED = "interrupted"
    """A crash cut off the open turn; resume it, or prompt again."""


BESIDE_STEPS = (Phase.COMPACTING, Phase.MERGING)
"""The phases in which a model may be asked for something that is no step of a turn."""

WORKING = (
    Phase.WAITING_FOR_MODEL,
    Phase.WAITING_FOR_SERVICE,
    Phase.WAITING_FOR_BATCH,
    Phase.RUNNING_TOOLS,
    Phase.WAITING_FOR_BUDGET,
    *BESIDE_STEPS,
)
"""The phases in which something is in progress: a turn, a summary, or a merge."""

MOST_NAMED = 3
"""How many of the agents that an agent waits for its state names."""

WAITS_FOR = "waits for "
"""How the state begins of an agent whose turn waits for other agents."""

IN_A_TURN = "in a turn"
"""The state that is shown for an agent with an open turn that another process runs."""

HOSTLESS = "interrupted, no host"
"""The state that is shown for an agent with an open turn that no process runs."""


def waits_for(names: Sequence[str]) -> str:
    """The state of an agent that waits for others; empty when there are none."""
    if not names:
        return ""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{WAITS_FOR}{', '.join(names[:MOST_NAMED])}{more}"


WAITS_FOR_TIME = f"{WAITS_FOR}its time"
"""The state of a program that is parked, and waits for a time."""


def waits_for_person(asks: Sequence[str]) -> str:
    """The state of an agent whose turn asks people, by their addresses; who may approve at all is not named."""
    named = [one for one in asks if one != APPROVERS]
    return f"{Phase.WAITING_FOR_APPROVAL} by {', '.join(named)}" if named else Phase.WAITING_FOR_APPROVAL.value


def asks_person(state: str) -> bool:
    """Whether a state, as people see it, is one of a turn that waits for a person's decision."""
    return state.startswith(Phase.WAITING_FOR_APPROVAL)


def is_working(state: str) -> bool:
    """Whether a state, as people see it, is one of a turn in progress."""
    return state in (*WORKING, IN_A_TURN) or state.startswith(WAITS_FOR)


NOT_ASKED = (Phase.WAITING_FOR_BUDGET, Phase.WAITING_FOR_SERVICE)
"""The phases of a turn whose request has not left yet, or has to leave again."""

BETWEEN_TURNS = (Phase.IDLE, Phase.INTERRUPTED)
"""The phases in which a command of a turn can run: no turn is in progress."""

TurnOutcome = Reply | ProviderError | TurnInterrupted
"""How a turn ended."""


def is_interrupted(state: str) -> bool:
    """Whether a state, as people see it, is one of a turn that was cut off and that nobody goes on with."""
    return state in (Phase.INTERRUPTED, HOSTLESS)


class LifecycleState(NamedTuple):
    """The part of an agent's registry row that decides what the agent does next."""

    status: Status = Status.RUNNING
    ending: str = ""
    """Why it is terminating."""
    restart: str = RestartType.TRANSIENT
    """When it is restarted."""

    @property
    def permanent(self) -> bool:
        """Whether it is restarted when it exits."""
        return self.restart == RestartType.PERMANENT


RUNNING = LifecycleState()

UNKNOWN = -1
"""The head of an agent when it is not known whether its last unit was committed."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """A summary that the model is asked for."""

    plan: SummaryPlan
    focus: str
    """The focus; empty for none."""
    caller: Caller
    back: Phase
    """The phase before, and after it."""
    by: str = "person"
    """The caller that asked for it."""
    tokens: int = 0
    """The tokens of the request that waits for it, about; 0 where none does."""
    must: bool = False
    """Whether the request that waits for it cannot leave without: where the model gives none, a digest is there."""
    talk: tuple[tuple[Kind, str, Any], ...] = ()
    """The talk with the model about it, after the instruction: kind, content, data."""
    attempts: int = 1
    """How often the model was asked."""
    written: Mapping[str, Any] | None = None
    """The notes of the parts that are summarised already; None before the first."""


@dataclass(frozen=True, slots=True)
class Merging:
    """Another agent, of which what it has said is to be taken in."""

    child: str
    """By uuid; in a model's call also by name or prefix."""
    how: str
    """``result``, ``summary`` or ``pick``."""
    positions: tuple[int, ...]
    """The picked positions."""
    caller: Caller
    """The caller that asked for it; None when a model's call did."""
    call: Call | None
    """The call."""
    back: Phase
    """The phase before, and after it."""
    source: MergeSource | None = None
    """The agent as it was looked at; None until then."""
    talk: tuple[tuple[Kind, str, Any], ...] = ()
    """As `Compaction.talk`, for a summary of it."""
    attempts: int = 1
    """How often its model was asked for that."""
    part: ReadPart | None = None
    """The part that its model is shown in place of its whole history, which is too long."""
    usage: Usage | None = None
    """The cost of the notes of earlier parts."""
    for_code: bool = False
    """Whether the call is that of a program, whose result is data."""


@dataclass(frozen=True, slots=True)
class State:
    """Everything that decides what an agent does next. The messages themselves are in its log."""

    uuid: str
    head: int
    """Position of the latest message of the history; `UNKNOWN` when only the log has it."""
    name: str | None = field(default=None, kw_only=True)
    """The name of the agent, for texts alone."""
    turn: int = 0
    """Id of the message that opened the turn in progress; 0 when idle."""
    phase: Phase = Phase.UNLOADED
    view: View = EMPTY
    """The fold of the history up to head."""
    request: int = 0
    """Number of the latest model request; replies to older ones, and results of their calls, are ignored."""
    steps: int = 0
    """Model requests of the turn in progress."""
    calls: Calls = ()
    """The calls of the last reply of the turn in progress."""
    callers: tuple[Caller, ...] = ()
    """The callers that wait for the outcome of the turn in progress."""
    last: TurnOutcome | None = None
    """How the latest turn ended."""
    lifecycle: LifecycleState = RUNNING
    """The status in the registry, and what belongs to that."""
    failed: int = 0
    """Id of the message that opened the latest turn, when that ended with an error and nothing was said since; else 0.
    `Resume` opens that turn again.
    """
    retries: int = 0
    """How often the request in progress was sent again because its reply broke off."""
    service_wait: ServiceWait | None = None
    """The time at which the request in progress is sent again, while its service refuses it; also that for a summary.
    """
    service_waits: int = 0
    """How often the request in progress has waited for its service."""
    batched: int = 0
    """The number of the request that waits for a batch."""
    passed: int = 0
    """How many of the agent's models, in their order, could not serve the turn in progress."""
    output: Mapping[str, Any] | None = None
    """The type of value that the latest turn must give, as its prompt says (`records.outputs`); None for any answer."""
    misfits: tuple[str, ...] = ()
    """The faults of each value for which the model was asked again in that turn."""
    squeezed: int = 0
    """How often the request that is due was put off for a summary, or let go in spite of its length."""
    left_at: int = 0
    """The tokens of a request that came near the window and has left, since no summary came of it; 0 for none."""
    focus: str | None = None
    """The focus of the summary that the model has asked for, by a call of its last reply; None for none."""
    compaction: Compaction | None = None
    """The summary that the model is asked for, in phase `Phase.COMPACTING`."""
    merging: Merging | None = None
    """The agent that is being merged, in phase `Phase.MERGING`."""
    notice: int = 0
    """Position of the line that told the agent of unread mail, until it looks at its mailbox; 0 when there is none."""

    hold: Held | Paused | None = None
    """The hold of its next request to the model, or of the one in flight; or why that request waits."""
    rules: Rules | None = None
    """The rules in force for it, as it last heard; None before that. Whether others are, the unit that begins a call
    finds out.
    """
    own_labels: str = ""
    """The labels of the agent, as one text (`records.agents.labels`)."""
    asked: int = 0
    """The number of the mail by which a program has opened the latest turn; else 0."""
    turn_labels: str = ""
    """The labels in force in the latest turn, if its prompt changed any. Empty otherwise."""

    @property
    def called(self) -> str:
        """The name that people call the agent by."""
        return called(self.uuid, self.name)

    @property
    def labels(self) -> str:
        """The labels in force: on whose account a request is made, and a child works."""
        return self.turn_labels if self.turn and self.turn_labels else self.own_labels

    if TYPE_CHECKING:

        @property
        def status(self) -> Status:
            """The status in the registry."""

    else:
        status = property(attrgetter("lifecycle.status"), doc="The status in the registry.")  # a turn asks 20 times

    @property
    def side(self) -> Compaction | Merging | None:
        """The work in progress beside the steps of a turn."""
        return self.compaction or self.merging

    @property
    def shown(self) -> Phase:
        """The phase as a person sees it: `UNLOADED` only concerns the actor."""
        if self.phase is Phase.RUNNING_TOOLS and asking(self.calls) and not running(self.calls):
            return Phase.WAITING_FOR_APPROVAL
        if self.service_wait is not None:
            return Phase.WAITING_FOR_SERVICE
        if self.phase is Phase.WAITING_FOR_MODEL and self.batched == self.request:
            return Phase.WAITING_FOR_BATCH
        if self.phase is not Phase.UNLOADED:
            return self.phase
        if isinstance(self.hold, Paused):
            return Phase.WAITING_FOR_BUDGET
        return Phase.INTERRUPTED if self.turn else Phase.IDLE

    @property
    def goes_on(self) -> bool:
        """Whether something is in progress that ends without a person: no approval, grant or CONT is waited for."""
        if self.shown is Phase.RUNNING_TOOLS and self.status is Status.STOPPED:
            return bool(running(self.calls))
        return self.shown in WORKING and self.shown is not Phase.WAITING_FOR_BUDGET


@dataclass(frozen=True, slots=True)
class RequestModel:
    """Effect: send the history to the model."""

    request: int


@dataclass(frozen=True, slots=True)
class AwaitService:
    """Effect: send `ServiceDue` at a time."""

    request: int
    at: int
    """In milliseconds since 1970."""


@dataclass(frozen=True, slots=True)
class Summarise:
    """Effect: ask the model for the summary of `State.compaction`, or of `State.merging`."""

    request: int


@dataclass(frozen=True, slots=True)
class PlanPart:
    """Effect: plan the next part of the summary of `State.compaction`, now that the log has the one before."""

    request: int


@dataclass(frozen=True, slots=True)
class ReadChild:
    """Effect: look at the agent that is to be merged."""

    request: int
    child: str
    """By uuid, name or prefix."""
    with_log: bool
    """Whether its whole history is needed, too."""


@dataclass(frozen=True, slots=True)
class RunTool:
    """Effect: run a call's tool outside."""

    request: int
    """The request whose reply asked for it."""
    call: str
    """The call's id."""


@dataclass(frozen=True, slots=True)
class AskApproval:
    """Effect: ask for a decision on a call."""

    request: int
    """The request whose reply asked for it."""
    call: str
    """The call's id."""


@dataclass(frozen=True, slots=True)
class AskHooks:
    """Effect: ask hooks about a call, before it or after."""

    request: int
    """The request whose reply asked for it."""
    call: str
    """The call's id."""
    event: str
    hooks: tuple[str, ...]
    """The names of the hooks, in order."""


@dataclass(frozen=True, slots=True)
class BeginWait:
    """Effect: register a call of ``wait``, so that the agent hears when it is over."""

    request: int
    """The request whose reply asked for it."""
    call: str
    """The call's id."""


@dataclass(frozen=True, slots=True)
class ComeBack:
    """Effect: the agent has exited and is permanent, so its supervisor restarts it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Effect: give a caller the result of its command; an exception is raised there."""

    caller: Caller
    value: Any


@dataclass(frozen=True, slots=True)
class Spawn:
    """Effect: run the agent that was just born."""

    birth: Birth


@dataclass(frozen=True, slots=True)
class MergeTree:
    """Effect: have the toolset merge files, and answer with what it says."""

    child: str
    caller: Caller
    way: str = ""
    """`MergeFiles.way`."""


Effect = (
    RequestModel
    | AwaitService
    | Summarise
    | PlanPart
    | ReadChild
    | RunTool
    | AskApproval
    | AskHooks
    | BeginWait
    | Answer
    | Spawn
    | MergeTree
    | ComeBack
)


@dataclass(frozen=True, slots=True)
class Departure:
    """The agent's own end, as a unit: its row, its orphans, the mail to its supervisor. Its log is left as it is."""

    cause: Cause
    reason: str
    """Why; for an exit, the result."""


@dataclass(frozen=True, slots=True)
class PutAside:
    """A prompt to a stopped or busy agent, as a unit: it is kept as mail, and taken up when the agent goes on."""

    prompt: Prompt


@dataclass(frozen=True, slots=True)
class Parking:
    """The end of what a turn that only waits has in memory, as a unit (`ikigai_actors.records.log.parking`)."""

    turns: tuple[tuple[str, int], ...]
    """The turns, by agent and prompt, for whose ends it waits; none where it waits for a decision, or for a time."""
    need: int
    """How many of them are enough."""
    wake_at: int | None
    """When it waits no more, in milliseconds since 1970; None for never."""


@dataclass(frozen=True, slots=True)
class Unparking:
    """The return of an agent that is parked, or may be, as a unit: nothing else is committed before it."""


@dataclass(frozen=True, slots=True)
class CallUnit:
    """The act of a built-in call, and the message that reports it, as one unit."""

    agent: str
    id: int
    """Position of the message."""
    call: Call
    created_at: int
    kind: Kind = Kind.TOOL_RESULT
    rules: Rules | None = None
    """As `LogUnit.rules`."""

    def message(self, content: str = "", further: Mapping[str, Any] = NO_DATA) -> Message:
        """The message, with the text and data that are known once the call is carried out."""
        data = {**self.call.data, **further}
        return new_message(self.agent, self.id, self.kind.value, content, data, self.created_at)


@dataclass(frozen=True, slots=True)
class MailNotice:
    """The notice of unread mail for an idle agent, as a unit; refused when there is nothing new."""

    agent: str
    id: int
    """Position of the line."""
    created_at: int
    earlier: Mapping[str, Any] | None
    """The earlier notice, if the agent has not looked at its mailbox since."""

    def message(self, content: str = "", data: Mapping[str, Any] = NO_DATA) -> Message:
        """The line, with the text and data that are known once the mailbox was looked at."""
        return new_message(self.agent, self.id, Kind.MAIL.value, content, data, self.created_at)


StepUnit = LogUnit | CallUnit | MailNotice | Departure | PutAside | Parking | Unparking
"""The units that a step commits."""


@dataclass(frozen=True, slots=True)
class Step:
    """A decision: commit the unit (if any), take the state, perform the effects."""

    state: State
    unit: StepUnit | None = None
    effects: tuple[Effect, ...] = ()
    caller: Caller | None = None
    """The caller that gets the refusal of the unit; the state then stays as it was."""
    call: str | None = None
    """The id of the model's call that gets the refusal of the unit as its result."""
    together: bool = False
    """Whether the unit carries out more calls than this one: when it is refused, each is carried out by itself."""
