"""The pure machine: what an agent does next. No I/O, no clock, no randomness.

`step(state, event, now)` gives the state after the event, the unit of writes that makes it true, and the effects that
may follow once the unit is committed. It decides; `AgentActor` commits, performs, and feeds back what came of it.

    unloaded ──Loaded──> idle <────────── the turn ends: reply, error, INT
                          │ Prompt             │
                          v                    │
                     waiting_for_model ────────┘
                          ^
                          │ Resume, Prompt
                     interrupted   (the turn was cut off by a crash: open in the registry, nobody works on it)

What a crash leaves, state by state. ``unloaded``, ``idle``: nothing open. ``waiting_for_model``: the prompt and the
open turn are committed, the reply is not; the agent comes back ``interrupted`` and `Resume` sends the prompt again.
Between a commit and its
effects: the same, since an effect only ever answers a caller (who is gone) or starts what `Resume` starts again.

A command that cannot run yet is left with the actor, which offers it again after each step (`accepts`): forks wait for
a step boundary, everything else for the end of the turn. A completion that answers an older request changes nothing.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from ikigai_actors import events as on
from ikigai_actors.assembly import reply_message_data, reply_of
from ikigai_actors.errors import MarkNotFound, NoTurn, ProviderError, TurnInterrupted
from ikigai_actors.events import Caller, Event
from ikigai_actors.history import EMPTY, View, play_all
from ikigai_actors.messages import NO_DATA, Kind, Message
from ikigai_actors.providers.base import Reply
from ikigai_actors.units import Birth, LogUnit


class Phase(StrEnum):
    """Where an agent is in its turn."""

    UNLOADED = "unloaded"
    """Its log was not needed yet."""
    IDLE = "idle"
    """No turn is open."""
    WAITING_FOR_MODEL = "waiting for the model"
    """A request is out."""
    INTERRUPTED = "interrupted"
    """A turn is open that a crash cut off; resume it, or prompt anew."""


Outcome = Reply | ProviderError | TurnInterrupted
"""How a turn ended."""


@dataclass(frozen=True, slots=True)
class State:
    """All that decides what an agent does next. The messages themselves are in its log."""

    uuid: str
    head: int
    """Position of the latest message of the history."""
    turn: int = 0
    """Id of the message that opened the turn in progress; 0 when idle."""
    phase: Phase = Phase.UNLOADED
    view: View = EMPTY
    """The fold of the history up to head."""
    request: int = 0
    """Number of the latest model request; replies to older ones are ignored."""
    callers: tuple[Caller, ...] = ()
    """Who waits for the outcome of the turn in progress."""
    last: Outcome | None = None
    """How the latest turn ended."""

    @property
    def shown(self) -> Phase:
        """The phase as a person sees it: whether the log was read is the actor's own business."""
        if self.phase is not Phase.UNLOADED:
            return self.phase
        return Phase.INTERRUPTED if self.turn else Phase.IDLE


@dataclass(frozen=True, slots=True)
class RequestModel:
    """Effect: send the history to the model."""

    request: int


@dataclass(frozen=True, slots=True)
class Answer:
    """Effect: tell a caller what came of its command; an exception is raised to it."""

    caller: Caller
    value: Any


@dataclass(frozen=True, slots=True)
class Spawn:
    """Effect: run the agent that was just born."""

    birth: Birth


Effect = RequestModel | Answer | Spawn


@dataclass(frozen=True, slots=True)
class Step:
    """What to do: commit the unit (if any), take the state, perform the effects."""

    state: State
    unit: LogUnit | None = None
    effects: tuple[Effect, ...] = ()
    caller: Caller | None = None
    """Who is told when the unit is refused; the state then stays as it was."""


def accepts(state: State, command: Event) -> bool:
    """Whether a command can run now; it waits with the actor otherwise."""
    match command:
        case on.Loaded():
            return True
        case on.Prompt() | on.Fork() | on.Clear() | on.SetMark() | on.Rewind() | on.Configure():
            return state.phase in (Phase.IDLE, Phase.INTERRUPTED)
        case _:
            return state.phase is not Phase.UNLOADED


def step(state: State, event: Event, now: int) -> Step:
    """Decide what an event leads to. Commands must be accepted (`accepts`); ``now`` is in milliseconds since 1970."""
    match event:
        case on.Loaded():
            return Step(_loaded(state, event))
        case on.Prompt():
            return _prompt(state, event, now)
        case on.ReplyReceived() if _expects(state, event.request):
            return _reply(state, event.reply, event.model, now)
        case on.ReplyFailed() if _expects(state, event.request):
            data = {"partial": event.error.partial} if event.error.partial else NO_DATA
            return _end_turn(state, now, event.error, (Kind.ERROR, str(event.error), data))
        case on.ReplyReceived() | on.ReplyFailed():
            return Step(state)
        case on.Interrupt():
            return _interrupt(state, event, now)
        case on.Resume():
            return _resume(state, event)
        case on.AskOutcome():
            return _outcome(state, event)
        case on.Fork():
            return _fork(state, event, now)
        case on.Clear():
            return _clear(state, event, now)
        case on.SetMark():
            return _write(state, now, (Kind.MARK, event.label, NO_DATA), caller=event.caller)
        case on.Rewind():
            return _rewind(state, event, now)
        case on.Configure():
            return _write(state, now, (Kind.CONFIGURE, "", event.settings), caller=event.caller)


Draft = tuple[Kind, str, Any]
"""A message to be: kind, content, data."""


def _expects(state: State, request: int) -> bool:
    return state.phase is Phase.WAITING_FOR_MODEL and state.request == request


def _messages(uuid: str, head: int, now: int, drafts: tuple[Draft, ...]) -> tuple[Message, ...]:
    return tuple(
        Message(uuid, head + place, kind.value, content, data, now)
        for place, (kind, content, data) in enumerate(drafts, start=1)
    )


def _advance(state: State, messages: tuple[Message, ...], **changes: Any) -> State:
    return replace(state, head=state.head + len(messages), view=play_all(state.view, messages), **changes)


def _write(state: State, now: int, *drafts: Draft, caller: Caller) -> Step:
    """Append drafts to the log and tell the caller the id of the first."""
    messages = _messages(state.uuid, state.head, now, drafts)
    unit = LogUnit(state.uuid, messages)
    return Step(_advance(state, messages), unit, (Answer(caller, messages[0].id),), caller)


def _loaded(state: State, event: on.Loaded) -> State:
    turn_open = state.turn != 0
    last = (
        TurnInterrupted(f"The turn of agent {state.uuid} was cut off; resume it.", state.uuid)
        if turn_open
        else event.last
    )
    phase = Phase.INTERRUPTED if turn_open else Phase.IDLE
    return replace(state, phase=phase, head=event.head, view=event.view, last=last)


def _prompt(state: State, event: on.Prompt, now: int) -> Step:
    cut_off: tuple[Draft, ...] = ((Kind.INTERRUPTED, "", NO_DATA),) if state.turn else ()
    messages = _messages(state.uuid, state.head, now, (*cut_off, (Kind.USER, event.text, NO_DATA)))
    request = state.request + 1
    after = _advance(
        state,
        messages,
        turn=messages[-1].id,
        phase=Phase.WAITING_FOR_MODEL,
        request=request,
        callers=(event.caller,),
    )
    unit = LogUnit(state.uuid, messages, turn=messages[-1].id)
    return Step(after, unit, (RequestModel(request),), event.caller)


def _reply(state: State, reply: Reply, model: str, now: int) -> Step:
    return _end_turn(state, now, reply, (Kind.ASSISTANT, reply.text, reply_message_data(reply, model)))


def _end_turn(state: State, now: int, outcome: Outcome, *drafts: Draft) -> Step:
    messages = _messages(state.uuid, state.head, now, drafts)
    after = _advance(state, messages, turn=0, phase=Phase.IDLE, callers=(), last=outcome)
    answers = tuple(Answer(caller, outcome) for caller in state.callers)
    return Step(after, LogUnit(state.uuid, messages, turn=0), answers)


def _interrupt(state: State, event: on.Interrupt, now: int) -> Step:
    """End the turn; what was received stays, as a reply with stop reason ``interrupted``."""
    told = (Answer(event.caller, bool(state.turn)),)
    if not state.turn:
        return Step(state, effects=told)
    outcome = TurnInterrupted(f"The turn of agent {state.uuid} was interrupted.", state.uuid)
    draft: Draft = (Kind.INTERRUPTED, "", NO_DATA)
    if event.partial:
        reply = Reply(event.partial, stop_reason="interrupted")
        draft = (Kind.ASSISTANT, reply.text, reply_message_data(reply, ""))
    ended = _end_turn(state, now, outcome, draft)
    return replace(ended, effects=(*ended.effects, *told))


def _resume(state: State, event: on.Resume) -> Step:
    if state.phase is not Phase.INTERRUPTED:
        return Step(state, effects=(Answer(event.caller, False),))
    request = state.request + 1
    after = replace(state, phase=Phase.WAITING_FOR_MODEL, request=request)
    return Step(after, effects=(Answer(event.caller, True), RequestModel(request)))


def _outcome(state: State, event: on.AskOutcome) -> Step:
    if state.phase is Phase.WAITING_FOR_MODEL:
        return Step(replace(state, callers=(*state.callers, event.caller)))
    never = NoTurn(f"Agent {state.uuid} has had no turn of its own yet; prompt it first.", state.uuid)
    return Step(state, effects=(Answer(event.caller, state.last or never),))


def _fork(state: State, event: on.Fork, now: int) -> Step:
    """One unit: the child's row, ``fork`` in both logs, and the child's settings and prompt."""
    in_parent = _messages(state.uuid, state.head, now, ((Kind.FORK, "", {"child": event.child}),))
    drafts: list[Draft] = [(Kind.FORK, "", {"parent": state.uuid})]
    if event.settings:
        drafts.append((Kind.CONFIGURE, "", event.settings))
    if event.prompt is not None:
        drafts.append((Kind.USER, event.prompt, NO_DATA))
    in_child = _messages(event.child, state.head, now, tuple(drafts))
    birth = Birth(
        uuid=event.child,
        name=event.name,
        parent_uuid=state.uuid,
        fork_message_id=state.head,
        turn=in_child[-1].id if event.prompt is not None else 0,
        restart=event.restart,
        created_at=now,
        messages=in_child,
    )
    unit = LogUnit(state.uuid, in_parent, birth=birth)
    return Step(_advance(state, in_parent), unit, (Spawn(birth), Answer(event.caller, event.child)), event.caller)


def _clear(state: State, event: on.Clear, now: int) -> Step:
    """``clear``, and in the same unit the settings that it would have emptied. A turn that was cut off ends with it."""
    drafts: list[Draft] = [(Kind.CLEAR, "", NO_DATA)]
    if state.view.settings:
        drafts.append((Kind.CONFIGURE, "", dict(state.view.settings)))
    return _close_and_write(state, now, event.caller, *drafts)


def _rewind(state: State, event: on.Rewind, now: int) -> Step:
    mark = state.view.find_mark(event.label)
    if mark is None:
        labels = ", ".join(repr(known.label) for known in state.view.all_marks()) or "none"
        wanted = "a mark" if event.label is None else f"a mark {event.label!r}"
        error = MarkNotFound(
            f"Expected {wanted} to rewind to; marks in force: {labels}. Set one with mark().", state.uuid
        )
        return Step(state, effects=(Answer(event.caller, error),))
    return _close_and_write(state, now, event.caller, (Kind.REWIND, mark.label, {"mark": mark.id}))


def _close_and_write(state: State, now: int, caller: Caller, *drafts: Draft) -> Step:
    """As `_write`, but a turn that was cut off is closed first."""
    if not state.turn:
        return _write(state, now, *drafts, caller=caller)
    messages = _messages(state.uuid, state.head, now, ((Kind.INTERRUPTED, "", NO_DATA), *drafts))
    after = _advance(state, messages, turn=0, phase=Phase.IDLE)
    return Step(after, LogUnit(state.uuid, messages, turn=0), (Answer(caller, messages[1].id),), caller)


def outcome_of(messages: list[Message]) -> Outcome | None:
    """How the latest turn among an agent's own messages ended; None when there was none."""
    for message in reversed(messages):
        match message.kind:
            case Kind.ASSISTANT:
                reply = reply_of(message)
                if reply.stop_reason == "interrupted":
                    return TurnInterrupted(
                        f"The turn of agent {message.agent_uuid} was interrupted.", message.agent_uuid
                    )
                return reply
            case Kind.ERROR:
                return ProviderError(message.content, message.data.get("partial", ""))
            case Kind.INTERRUPTED:
                return TurnInterrupted(f"The turn of agent {message.agent_uuid} was interrupted.", message.agent_uuid)
    return None
