"""An agent's state, the effects, and the step: the input and the output of the machine's decisions."""

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
from ikigai_actors.records.agents.words import WAS_CUT_OFF, called
from ikigai_actors.records.budgets.amounts import Held, Paused
from ikigai_actors.records.log.history import EMPTY, View
from ikigai_actors.records.log.log_unit import Birth, LogUnit
from ikigai_actors.records.log.merge_source import MergeSource
from ikigai_actors.records.messages.kept import KeptRequest
from ikigai_actors.records.messages.messages import Kind, Message, new_message
from ikigai_actors.records.messages.question_terms import APPROVERS
from ikigai_actors.tools.rules.rule import Rules
from supervisors.causes import Cause
from supervisors.children import RestartType
from supervisors.signals import Status


class Phase(StrEnum):
    """The phase of an agent: idle, or the stage of its turn."""

    UNLOADED = "unloaded"
    """The log was not needed yet, so it was not read."""
    IDLE = "idle"
    """No turn is open."""
    WAITING_FOR_MODEL = "waiting for the model"
    """A request to the model is in flight."""
    RUNNING_TOOLS = "running tools"
    """The calls of the last reply are being carried out."""
    WAITING_FOR_APPROVAL = "waiting for approval"
    """Shown to people, but never a state: calls of the last reply wait for a decision, and none runs."""
    WAITING_FOR_SERVICE = "waiting for the service"
    """The service of its model refuses requests for the moment; the request is sent again at a time that is known."""
    WAITING_FOR_PROGRAM = "waiting for program"
    """The model of the agent is a program that this process does not have. Nothing of the turn is touched. The name of
    the program follows in the state that people see.
    """
    WAITING_FOR_BATCH = "waiting for its batch"
    """Shown to people, but never a state: the request in flight waits for a batch of its service."""
    WAITING_FOR_BUDGET = "waiting for budget"
    """All calls have results, but the next request waits until a budget allows it."""
    COMPACTING = "compacting"
    """The model is asked for a summary of the history; with an open turn or without."""
    MERGING = "merging"
    """Another agent's history is read, or its model is asked for a summary; with an open turn or without."""
    INTERRUPTED = "interrupted"
    """The open turn was cut off, by a crash. Resume it, or prompt again."""


BESIDE_STEPS = (Phase.COMPACTING, Phase.MERGING)
"""The phases in which a model may be asked for a text that is no step of a turn."""

WORKING = (
    Phase.WAITING_FOR_MODEL,
    Phase.WAITING_FOR_SERVICE,
    Phase.WAITING_FOR_PROGRAM,
    Phase.WAITING_FOR_BATCH,
    Phase.RUNNING_TOOLS,
    Phase.WAITING_FOR_BUDGET,
    *BESIDE_STEPS,
)
"""The phases in which work is in progress: a turn, a summary, or a merge."""

MOST_NAMED = 3
"""The most agents that are named in the state of an agent that waits for others."""

WAITS_FOR = "waits for "
"""The beginning of the state of an agent whose turn waits for other agents."""

IN_A_TURN = "in a turn"
"""The state that is shown for an agent with an open turn in another process."""

HOSTLESS = "interrupted, no host"
"""The state that is shown for an agent with an open turn that no process runs."""


def waits_for(names: Sequence[str]) -> str:
    """Return the words for the state of an agent that waits for others; empty if ``names`` is empty.

    Agents whose turns were cut off come first, because they need a person.
    """
    if not names:
        return ""
    first = sorted(names, key=lambda name: not name.endswith(WAS_CUT_OFF))[:MOST_NAMED]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{WAITS_FOR}{', '.join(first)}{more}"


WAITS_FOR_TIME = f"{WAITS_FOR}its time"
"""The state of a parked program that waits for a time."""


def waits_for_person(asks: Sequence[str]) -> str:
    """Return the words for the state of an agent whose turn asks people, with their addresses.

    The address of all who may approve is left out.
    """
    named = [address for address in asks if address != APPROVERS]
    return f"{Phase.WAITING_FOR_APPROVAL} by {', '.join(named)}" if named else Phase.WAITING_FOR_APPROVAL.value


def waits_for_program(name: str) -> str:
    """Return the words for the state of an agent whose program this process does not have."""
    return f"{Phase.WAITING_FOR_PROGRAM} {name}"


def lacks_program(state: str) -> bool:
    """Return whether a state, as people see it, means that a turn waits for a program."""
    return state.startswith(Phase.WAITING_FOR_PROGRAM)


def asks_person(state: str) -> bool:
    """Return whether a state, as people see it, means that a turn waits for a person's decision."""
    return state.startswith(Phase.WAITING_FOR_APPROVAL)


def is_working(state: str) -> bool:
    """Return whether a state, as people see it, means that a turn is in progress."""
    return state in (*WORKING, IN_A_TURN) or state.startswith(WAITS_FOR) or lacks_program(state)


NOT_ASKED = (Phase.WAITING_FOR_BUDGET, Phase.WAITING_FOR_SERVICE)
"""The phases of a turn whose request was not sent yet, or must be sent again."""

TO_BE_RESUMED = (Phase.INTERRUPTED, Phase.WAITING_FOR_PROGRAM)
"""The phases of an open turn that may have calls which were cut off, so it is resumed before anything else of it."""

BETWEEN_TURNS = (Phase.IDLE, Phase.INTERRUPTED)
"""The phases in which no turn is in progress, so a command that begins a turn can run."""

TurnOutcome = Reply | ProviderError | TurnInterrupted
"""The outcome of a turn."""


def is_interrupted(state: str) -> bool:
    """Return whether a state, as people see it, means that a turn was cut off and was not resumed."""
    return state in (Phase.INTERRUPTED, HOSTLESS)


class LifecycleState(NamedTuple):
    """The facts in an agent's registry row on which its next actions depend."""

    status: Status = Status.RUNNING
    ending: str = ""
    """The reason why the agent is terminating."""
    restart: str = RestartType.TRANSIENT
    """The restart type: when the agent is restarted."""

    @property
    def permanent(self) -> bool:
        """Return whether the agent is restarted when it exits."""
        return self.restart == RestartType.PERMANENT


RUNNING = LifecycleState()

UNKNOWN = -1
"""The value of an agent's head when it is not known whether its last unit was committed."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """A summary in progress, with its plan and the talk with the model about it."""

    plan: SummaryPlan
    focus: str
    """The focus of the summary; empty for none."""
    caller: Caller
    back: Phase
    """The phase before the compaction, which is also the phase after it."""
    by: str = "person"
    """The origin of the request: ``person``, ``model``, ``auto`` or ``refusal``."""
    tokens: int = 0
    """The approximate number of tokens of the request that waits for the summary; 0 if none waits."""
    must: bool = False
    """Whether that request cannot be sent without a summary. If the model gives none, a digest takes its place."""
    talk: tuple[tuple[Kind, str, Any], ...] = ()
    """The messages to and from the model about the summary, after the instruction: kind, content, data of each."""
    attempts: int = 1
    """The number of times the model was asked."""
    written: Mapping[str, Any] | None = None
    """The summary of the earlier parts; None before the first."""


@dataclass(frozen=True, slots=True)
class Merging:
    """A merge in progress, with the data of the merged agent."""

    child: str
    """The agent to be merged, by uuid; in a model's call also by name or prefix."""
    how: str
    """The way of the merge: ``result``, ``summary`` or ``pick``."""
    positions: tuple[int, ...]
    """The positions of the messages to pick."""
    caller: Caller
    """The caller that asked for the merge; None for a model's call."""
    call: Call | None
    """The model's call that asked for the merge; None for a caller."""
    back: Phase
    """The phase before the merge, which is also the phase after it."""
    source: MergeSource | None = None
    """The data of the agent to be merged; None until they were read."""
    talk: tuple[tuple[Kind, str, Any], ...] = ()
    """The messages to and from the model about a summary, as `Compaction.talk`."""
    attempts: int = 1
    """The number of times the model was asked for the summary."""
    part: ReadPart | None = None
    """The part of the history that the model is shown; None for the whole history."""
    usage: Usage | None = None
    """The tokens that the summaries of earlier parts have cost."""
    for_code: bool = False
    """Whether a program made the call, so that its result is JSON data."""


@dataclass(frozen=True, slots=True)
class State:
    """All data on which an agent's next actions depend, except the messages, which are in its log."""

    uuid: str
    head: int
    """The position of the latest message of the history; `UNKNOWN` when only the log has it."""
    name: str | None = field(default=None, kw_only=True)
    """The name of the agent, which is used only in texts."""
    turn: int = 0
    """The id of the message that opened the turn in progress; 0 when no turn is open."""
    phase: Phase = Phase.UNLOADED
    view: View = EMPTY
    """The view of the history up to the head: visible positions, marks and settings in force."""
    request: int = 0
    """The number of the latest model request. Replies to older requests, and results of their calls, are ignored."""
    steps: int = 0
    """The number of model requests of the turn in progress."""
    calls: Calls = ()
    """The calls of the last reply of the turn in progress."""
    callers: tuple[Caller, ...] = ()
    """The callers that wait for the outcome of the turn in progress."""
    last: TurnOutcome | None = None
    """The outcome of the latest turn; None if there was none."""
    lifecycle: LifecycleState = RUNNING
    """The status in the registry, with the reason, restart type and so on."""
    failed: int = 0
    """The id of the message that opened the latest turn, if that turn ended with an error and no message followed; else
    0. `Resume` opens that turn again.
    """
    retries: int = 0
    """How many times the request in progress was sent again because its reply broke off."""
    service_wait: ServiceWait | None = None
    """The service and time for which the request in progress waits, while the service refuses it; also for a summary's
    request.
    """
    service_waits: int = 0
    """How many times the request in progress has waited for its service."""
    program: str = ""
    """The name of the program that this process lacks, in phase `Phase.WAITING_FOR_PROGRAM`."""
    batched: int = 0
    """The number of the request that waits for a batch."""
    kept: KeptRequest | None = None
    """The reply of the request in progress that its service makes and keeps: the message at the head names it."""
    passed: int = 0
    """How many of the agent's models, in their order, were unavailable in the turn in progress."""
    output: Mapping[str, Any] | None = None
    """The type of value that the latest turn must give, as its prompt says (`records.outputs`); None for any answer."""
    misfits: tuple[str, ...] = ()
    """The faults of each value of that turn for which the model was asked again."""
    squeezed: int = 0
    """How many times the next request was delayed for a summary, or allowed in spite of its length."""
    left_at: int = 0
    """The tokens of a request near the limit of the window that was sent because no summary could be made; 0 for
    none.
    """
    focus: str | None = None
    """The focus of the summary for which the model has asked, by a call of its last reply; None if it has not."""
    compaction: Compaction | None = None
    """The summary in progress, in phase `Phase.COMPACTING`."""
    merging: Merging | None = None
    """The merge in progress, in phase `Phase.MERGING`."""
    notice: int = 0
    """The position of the notice of unread mail, until the agent looks at its mailbox; 0 if there is none."""

    ending: Message | None = None
    """The reply that ends the turn in progress, unless a hook adds to it; None for none."""
    ending_asked: bool = False
    """Whether hooks are being asked about that reply."""
    hold: Held | Paused | None = None
    """The reserved cost of the next request to the model or of the one in flight; or the budget for which the request
    waits.
    """
    rules: Rules | None = None
    """The rules for the agent as last read; None before that. The unit that begins a call checks whether they have
    changed.
    """
    own_labels: str = ""
    """The labels of the agent, encoded as one text (`records.agents.labels`)."""
    asked: int = 0
    """The number of the mail by which a program has opened the latest turn; else 0."""
    turn_labels: str = ""
    """The labels in force in the latest turn, encoded as one text, if its prompt changed any; else empty."""

    @property
    def called(self) -> str:
        """The name of the agent for people: its own or a generated name."""
        return called(self.uuid, self.name)

    @property
    def labels(self) -> str:
        """The labels to which the cost of requests is charged, and which children inherit.

        Those of the turn, if its prompt had labels; else those of the agent.
        """
        return self.turn_labels if self.turn and self.turn_labels else self.own_labels

    if TYPE_CHECKING:

        @property
        def status(self) -> Status:
            """The agent's status in the registry."""

    else:
        status = property(attrgetter("lifecycle.status"), doc="The status in the registry.")  # a turn asks 20 times

    @property
    def side(self) -> Compaction | Merging | None:
        """The compaction or merge in progress; None if neither is."""
        return self.compaction or self.merging

    @property
    def shown(self) -> Phase:
        """The phase that people see. `UNLOADED` is shown as idle or interrupted."""
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
    def is_put_off(self) -> bool:
        """Whether the turn waits until its service accepts a request, or for a process that has its program."""
        return self.service_wait is not None or self.phase is Phase.WAITING_FOR_PROGRAM

    @property
    def lacks(self) -> bool:
        """Return whether the turn waits for hooks or a program that another process may have."""
        wait = self.service_wait
        return self.phase is Phase.WAITING_FOR_PROGRAM or (wait is not None and wait.lacks_hooks)

    @property
    def goes_on(self) -> bool:
        """Whether work is in progress that will end without action from outside.

        It waits for no approval, grant or CONT, and for no program of another process.
        """
        if self.shown is Phase.RUNNING_TOOLS and self.status is Status.STOPPED:
            return bool(running(self.calls))
        return self.shown in WORKING and self.shown not in (Phase.WAITING_FOR_BUDGET, Phase.WAITING_FOR_PROGRAM)


@dataclass(frozen=True, slots=True)
class RequestModel:
    """Effect: send the history to the model."""

    request: int


@dataclass(frozen=True, slots=True)
class GiveUpReply:
    """Effect: have a service end a reply that nobody reads any more."""

    kept: KeptRequest


@dataclass(frozen=True, slots=True)
class AwaitService:
    """Effect: send `ServiceDue` at a time."""

    request: int
    at: int
    """The time, in milliseconds since 1970."""


@dataclass(frozen=True, slots=True)
class Summarise:
    """Effect: ask the model for the summary of `State.compaction`, or of `State.merging`."""

    request: int


@dataclass(frozen=True, slots=True)
class PlanPart:
    """Effect: plan the summary of the next part of the history. The summary of the part before it is committed."""

    request: int


@dataclass(frozen=True, slots=True)
class ReadChild:
    """Effect: read the data of the agent that is to be merged."""

    request: int
    child: str
    """The agent, by uuid, name or prefix."""
    with_log: bool
    """Whether its whole history is needed, too."""


@dataclass(frozen=True, slots=True)
class RunTool:
    """Effect: run the tool of a call."""

    request: int
    """The number of the request whose reply made the call."""
    call: str
    """The id of the call."""


@dataclass(frozen=True, slots=True)
class AskApproval:
    """Effect: ask for a decision on a call."""

    request: int
    """The number of the request whose reply made the call."""
    call: str
    """The id of the call."""


@dataclass(frozen=True, slots=True)
class AskHooks:
    """Effect: ask hooks about a call, before the call runs or after it, or about a reply."""

    request: int
    """The number of the latest request."""
    call: str
    """The id of the call; empty for a reply."""
    event: str
    hooks: tuple[str, ...]
    """The names of the hooks, in order."""


@dataclass(frozen=True, slots=True)
class BeginWait:
    """Effect: begin the wait of a call of ``wait``. The agent gets a message when the wait is over."""

    request: int
    """The number of the request whose reply made the call."""
    call: str
    """The id of the call."""


@dataclass(frozen=True, slots=True)
class ComeBack:
    """Effect: have the supervisor restart the agent, which is permanent and has exited."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Effect: settle the future of a caller with the result of its command, or with an exception."""

    caller: Caller
    value: Any


@dataclass(frozen=True, slots=True)
class Spawn:
    """Effect: start the actor of an agent that was just born."""

    birth: Birth


@dataclass(frozen=True, slots=True)
class MergeTree:
    """Effect: have the toolset merge files of a child; the caller gets the paths."""

    child: str
    caller: Caller
    way: str = ""
    """The way of the merge, as `MergeFiles.way`."""


Effect = (
    RequestModel
    | GiveUpReply
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
    """The unit of writes that ends the agent: its row, its orphans, and the mail to its supervisor.

    The agent's log does not change.
    """

    cause: Cause
    reason: str
    """The reason of the end; for an exit, the result."""


@dataclass(frozen=True, slots=True)
class PutAside:
    """The unit of writes that stores a prompt as mail, because the agent is stopped or busy."""

    prompt: Prompt


@dataclass(frozen=True, slots=True)
class Parking:
    """The unit of writes that parks an agent whose turn only waits.

    A parked agent needs no memory (`ikigai_actors.records.log.parking`).
    """

    turns: tuple[tuple[str, int], ...]
    """The turns for whose ends the agent waits, by agent and prompt; empty if it waits for a decision or for a time."""
    need: int
    """The number of these turns that must end."""
    wake_at: int | None
    """The end of the wait, in milliseconds since 1970; None for never."""


@dataclass(frozen=True, slots=True)
class Unparking:
    """The unit of writes by which a parked agent comes back. It is committed before any other unit of the agent."""


@dataclass(frozen=True, slots=True)
class CallUnit:
    """The unit of writes of a built-in call: its act, and the message that reports the act."""

    agent: str
    id: int
    """The position of the message."""
    call: Call
    created_at: int
    kind: Kind = Kind.TOOL_RESULT
    rules: Rules | None = None
    """The rules in force, as `LogUnit.rules`."""

    def message(self, content: str = "", further: Mapping[str, Any] = NO_DATA) -> Message:
        """Return the message of the unit, with the text and data that are known after the call was carried out."""
        data = {**self.call.data, **further}
        return new_message(self.agent, self.id, self.kind.value, content, data, self.created_at)


@dataclass(frozen=True, slots=True)
class MailNotice:
    """The unit of writes that gives an idle agent a notice of unread mail. It is refused if there is no new mail."""

    agent: str
    id: int
    """The position of the notice."""
    created_at: int
    earlier: Mapping[str, Any] | None
    """The data of the earlier notice, if the agent has not looked at its mailbox since; else None."""

    def message(self, content: str = "", data: Mapping[str, Any] = NO_DATA) -> Message:
        """Return the notice, with the text and data that are known after the mailbox was read."""
        return new_message(self.agent, self.id, Kind.MAIL.value, content, data, self.created_at)


StepUnit = LogUnit | CallUnit | MailNotice | Departure | PutAside | Parking | Unparking
"""The units that a step may commit."""


@dataclass(frozen=True, slots=True)
class Step:
    """A decision: commit the unit (if any), take the state, perform the effects."""

    state: State
    unit: StepUnit | None = None
    effects: tuple[Effect, ...] = ()
    caller: Caller | None = None
    """The caller that gets the error if the unit is refused. The state then stays as it was."""
    call: str | None = None
    """The id of the model's call that gets the error as its result if the unit is refused."""
    together: bool = False
    """Whether the unit carries out several calls. If it is refused, each call is carried out by itself."""
