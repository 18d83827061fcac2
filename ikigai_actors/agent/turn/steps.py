"""Drafts of messages, and the steps that write them. Pure helper functions of the machine."""

from typing import Any

from ikigai_actors.agent.turn.calls import Call, Progress
from ikigai_actors.agent.turn.events import Caller
from ikigai_actors.agent.turn.service_waits import ServiceWait, seconds_to_wait
from ikigai_actors.agent.turn.state import (
    Answer,
    AwaitService,
    ComeBack,
    Departure,
    Phase,
    RequestModel,
    State,
    Step,
    Summarise,
    TurnOutcome,
)
from ikigai_actors.errors import ProviderError, StepChanged, TurnInterrupted
from ikigai_actors.frozen import NO_DATA, replace
from ikigai_actors.providers.base import Reply
from ikigai_actors.records.budgets.amounts import Held, Paused
from ikigai_actors.records.log.history import play_all
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.records.messages.messages import Kind, Message, new_message
from supervisors.causes import Cause
from supervisors.signals import Status

PendingMessage = tuple[Kind, str, Any]
"""A message without a position yet: kind, content, data."""

INTERRUPTION: PendingMessage = (Kind.INTERRUPTED, "", NO_DATA)


def messages_of(uuid: str, head: int, now: int, drafts: tuple[PendingMessage, ...]) -> tuple[Message, ...]:
    """Turn drafts into the next messages of an agent whose log ends at ``head``."""
    made = [
        new_message(uuid, head + place, kind._value_, content, data, now)
        for place, (kind, content, data) in enumerate(drafts, start=1)
    ]
    return tuple(made)


def advance(state: State, messages: tuple[Message, ...], **changes: Any) -> State:
    """Return the state after the agent's log has grown by these messages, with further fields changed."""
    return replace(state, head=state.head + len(messages), view=play_all(state.view, messages), **changes)


def write_messages(state: State, now: int, *drafts: PendingMessage, caller: Caller) -> Step:
    """Append drafts to the log, and give the caller the position of the first message.

    The messages may change a request that waits for a budget, so its cost is estimated again. A request that waits for
    its service or for a program is sent if the settings have changed, because the model may be another one.
    """
    messages = messages_of(state.uuid, state.head, now, drafts)
    answer = Answer(caller, messages[0].id)
    lacks = state.phase is Phase.WAITING_FOR_PROGRAM and all(call.progress is Progress.DONE for call in state.calls)
    waits = state.phase is Phase.WAITING_FOR_SERVICE or lacks
    other = waits and any(kind is Kind.CONFIGURE for kind, *_ in drafts)
    if state.phase is not Phase.WAITING_FOR_BUDGET and not other:
        return Step(advance(state, messages), LogUnit(state.uuid, messages), (answer,), caller)
    step = request_anew(state, *messages)
    return replace(step, effects=(answer, *step.effects), caller=caller)


def request_anew(state: State, *messages: Message) -> Step:
    """Send a request that has waited for a budget or for its service, after these messages.

    The cost of the request is estimated again.
    """
    request = state.request + 1
    fields = {"request": request, "steps": max(1, state.steps), "calls": (), "passed": 0, "hold": None}
    fields |= {"service_wait": None, "service_waits": 0}
    after = advance(state, messages, phase=Phase.WAITING_FOR_MODEL, **fields)
    unit = LogUnit(state.uuid, messages, asks=True, unpaused=isinstance(state.hold, Paused))
    return Step(after, unit, (RequestModel(request),))


def wait_after(state: State, error: ProviderError, has_next: bool) -> float | None:
    """Return the seconds after which the failed request in progress is sent again; None if it is not sent again."""
    strict = isinstance(state.hold, Held) and state.hold.strict
    who = f"{state.uuid} {state.request}"
    return seconds_to_wait(error, state.service_waits, state.view.settings, has_next=has_next, strict=strict, who=who)


def await_service(state: State, service: str, seconds: float, now: int, *drafts: PendingMessage) -> Step:
    """Wait before the request in progress is sent again. Its reserved cost is freed meanwhile."""
    wait = ServiceWait(service, now + round(seconds * 1_000))
    entries = tuple((kind, text, {**data, "until": wait.until, "service": service}) for kind, text, data in drafts)
    messages = messages_of(state.uuid, state.head, now, entries)
    request = state.request + 1
    phase = state.phase if state.side is not None else Phase.WAITING_FOR_SERVICE
    fields = {"request": request, "service_wait": wait, "service_waits": state.service_waits + 1, "hold": None}
    after = advance(state, messages, phase=phase, **fields)
    unit = LogUnit(state.uuid, messages) if messages or isinstance(state.hold, Held) else None
    return Step(after, unit, (AwaitService(request, wait.until),))


def await_program(state: State, name: str) -> Step:
    """Let the turn wait for a process that has its program. The reserved cost of the request is freed."""
    unit = LogUnit(state.uuid, ()) if isinstance(state.hold, Held) else None
    hold = None if unit is not None else state.hold
    waits = replace(state, phase=Phase.WAITING_FOR_PROGRAM, program=name, request=state.request + 1, hold=hold)
    return Step(waits, unit)


def ask_again(state: State, now: int) -> Step:
    """Repeat the request that waits for its service, if its time has come. A stopped agent sends it after CONT.

    Calls that wait for a hook go on.
    """
    wait = state.service_wait
    if wait is not None and now >= wait.until and state.phase is Phase.RUNNING_TOOLS:
        return Step(replace(state, service_wait=None))
    if wait is None or now < wait.until or state.status is Status.STOPPED:
        return Step(state)
    request = state.request + 1
    after = replace(state, request=request, service_wait=None, hold=None)
    if state.side is not None:
        unit = LogUnit(state.uuid, (), asks=True, may_wait=False)
        return Step(after, unit, (Summarise(request),), state.side.caller if state.merging is not None else None)
    after = replace(after, phase=Phase.WAITING_FOR_MODEL)
    return Step(after, LogUnit(state.uuid, (), asks=True), (RequestModel(request),))


def between_steps(state: State) -> State:
    """Return the state of a turn, whose request waits, as it was before that request was due."""
    steps = max(1, state.steps) - 1
    return replace(state, phase=Phase.RUNNING_TOOLS, steps=steps, calls=(), service_wait=None)


def go_on_behind(state: State, now: int, *drafts: PendingMessage) -> Step:
    """Continue the turn after a reply that does not end it: write these messages, and ask the model again."""
    messages = messages_of(state.uuid, state.head, now, drafts)
    request = state.request + 1
    after = advance(state, messages, request=request, steps=state.steps + 1, retries=0, service_waits=0, hold=None)
    return Step(after, LogUnit(state.uuid, messages, asks=True), (RequestModel(request),))


def close_and_write(state: State, now: int, caller: Caller, *drafts: PendingMessage) -> Step:
    """Append drafts to the log as `write_messages` does; also close a turn that was cut off, or whose request waits."""
    if not state.turn:
        return write_messages(state, now, *drafts, caller=caller)
    ended = end_turn(state, now, _superseded(state), INTERRUPTION, *drafts)
    answer = Answer(caller, state.head + 2)
    return replace(ended, effects=(*ended.effects, answer), caller=caller)


def answers_of_cut_off(state: State) -> tuple[Answer, ...]:
    """Return the answers to the callers of a turn that was cut off and that a new command replaces."""
    return tuple(Answer(caller, _superseded(state)) for caller in state.callers)


def _superseded(state: State) -> TurnInterrupted:
    known = {Phase.WAITING_FOR_BUDGET: "a budget", Phase.WAITING_FOR_SERVICE: "its service"}
    waited = {**known, Phase.WAITING_FOR_PROGRAM: f"program {state.program}"}.get(state.phase)
    how = f"taken back while it waited for {waited}" if waited else "cut off, and not resumed"
    return TurnInterrupted(f"The turn of agent {state.called} was {how}.", state.uuid)


def end_turn(state: State, now: int, outcome: TurnOutcome, *drafts: PendingMessage) -> Step:
    """Close the turn with these messages, and answer all its callers with the outcome."""
    messages = messages_of(state.uuid, state.head, now, drafts)
    failed = state.turn if isinstance(outcome, ProviderError) else 0
    fields = {"turn": 0, "phase": Phase.IDLE, "steps": 0, "calls": (), "callers": (), "last": outcome, "failed": failed}
    fields |= {"ending": None, "ending_asked": False}
    after = advance(state, messages, hold=None, service_wait=None, service_waits=0, **fields)
    answers = tuple(Answer(caller, outcome) for caller in state.callers)
    ended = (state.asked,) if state.asked else ()
    cancels = not isinstance(outcome, Reply | StepChanged)  # a changed function has done nothing
    paused = isinstance(state.hold, Paused)
    unit = LogUnit(state.uuid, messages, turn=0, unpaused=paused, asked=ended, cancels=cancels)
    return Step(after, unit, answers)


def depart(state: State, result: str, now: int, call: Call | None = None) -> Step:
    """End the agent because it exits, with ``result``. A permanent agent only ends its turn and is restarted."""
    if not state.lifecycle.permanent:
        return Step(state, Departure(Cause.EXITED, result), call=call.id if call is not None else None)
    drafts = [] if call is None else [(Kind.TOOL_RESULT, "You exited, and were restarted.", call.data)]
    ended = end_turn(state, now, Reply(result, stop_reason="exit"), *drafts, (Kind.INTERRUPTED, "", {"exit": result}))
    return replace(ended, effects=(*ended.effects, ComeBack()))
