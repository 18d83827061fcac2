"""Pending messages, and the steps that write them. Pure helpers of the machine."""

from dataclasses import replace
from typing import Any

from ikigai_actors.agent.turn.calls import Call
from ikigai_actors.agent.turn.events import Caller
from ikigai_actors.agent.turn.state import (
    Answer,
    ComeBack,
    Departure,
    Phase,
    RequestModel,
    State,
    Step,
    TurnOutcome,
)
from ikigai_actors.errors import ProviderError, TurnInterrupted
from ikigai_actors.providers.base import Reply
from ikigai_actors.records.budgets.amounts import Paused
from ikigai_actors.records.log.history import play_all
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.records.messages.messages import NO_DATA, Kind, Message, new_message
from supervisors.causes import Cause

PendingMessage = tuple[Kind, str, Any]
"""A message that is not numbered yet: kind, content, data."""

INTERRUPTION: PendingMessage = (Kind.INTERRUPTED, "", NO_DATA)


def messages_of(uuid: str, head: int, now: int, drafts: tuple[PendingMessage, ...]) -> tuple[Message, ...]:
    """Number drafts as the next messages of an agent whose head is given."""
    return tuple(
        new_message(uuid, head + place, kind.value, content, data, now)
        for place, (kind, content, data) in enumerate(drafts, start=1)
    )


def advance(state: State, messages: tuple[Message, ...], **changes: Any) -> State:
    """The state after messages of the agent itself, with further changes."""
    return replace(state, head=state.head + len(messages), view=play_all(state.view, messages), **changes)


def write_messages(state: State, now: int, *drafts: PendingMessage, caller: Caller) -> Step:
    """Append drafts to the log and give the caller the position of the first.

    A request that waits for a budget is not the same after them: what it needs is looked at again.
    """
    messages = messages_of(state.uuid, state.head, now, drafts)
    told = Answer(caller, messages[0].id)
    if state.phase is not Phase.WAITING_FOR_BUDGET:
        return Step(advance(state, messages), LogUnit(state.uuid, messages), (told,), caller)
    step = request_anew(state, *messages)
    return replace(step, effects=(told, *step.effects), caller=caller)


def request_anew(state: State, *messages: Message) -> Step:
    """Weigh a request again that waits for a budget, after these messages."""
    request = state.request + 1
    anew = {"request": request, "steps": max(1, state.steps), "calls": (), "passed": 0, "hold": None}
    after = advance(state, messages, phase=Phase.WAITING_FOR_MODEL, **anew)
    return Step(after, LogUnit(state.uuid, messages, asks=True, unpaused=True), (RequestModel(request),))


def go_on_behind(state: State, now: int, *drafts: PendingMessage) -> Step:
    """Go on with the turn after a reply that does not end it: write these messages, and ask the model again."""
    messages = messages_of(state.uuid, state.head, now, drafts)
    request = state.request + 1
    after = advance(state, messages, request=request, steps=state.steps + 1, retries=0, hold=None)
    return Step(after, LogUnit(state.uuid, messages, asks=True), (RequestModel(request),))


def close_and_write(state: State, now: int, caller: Caller, *drafts: PendingMessage) -> Step:
    """Do what `write_messages` does, and close a turn that was cut off before, or that waits for a budget."""
    if not state.turn:
        return write_messages(state, now, *drafts, caller=caller)
    ended = end_turn(state, now, _superseded(state), INTERRUPTION, *drafts)
    told = Answer(caller, state.head + 2)
    return replace(ended, effects=(*ended.effects, told), caller=caller)


def answers_of_cut_off(state: State) -> tuple[Answer, ...]:
    """Answers for callers of an interrupted turn that a new command supersedes."""
    return tuple(Answer(caller, _superseded(state)) for caller in state.callers) if state.turn else ()


def _superseded(state: State) -> TurnInterrupted:
    how = "taken back while it waited for a budget" if isinstance(state.hold, Paused) else "cut off, and not resumed"
    return TurnInterrupted(f"The turn of agent {state.uuid} was {how}.", state.uuid)


def end_turn(state: State, now: int, outcome: TurnOutcome, *drafts: PendingMessage) -> Step:
    """Close the turn with these messages, and answer all its callers with the outcome."""
    messages = messages_of(state.uuid, state.head, now, drafts)
    failed = state.turn if isinstance(outcome, ProviderError) else 0
    ended = {"turn": 0, "phase": Phase.IDLE, "steps": 0, "calls": (), "callers": (), "last": outcome, "failed": failed}
    after = advance(state, messages, hold=None, **ended)
    answers = tuple(Answer(caller, outcome) for caller in state.callers)
    unit = LogUnit(state.uuid, messages, turn=0, unpaused=isinstance(state.hold, Paused))
    return Step(after, unit, answers)


def depart(state: State, result: str, now: int, call: Call | None = None) -> Step:
    """End the agent normally. For a permanent agent this closes the turn, and its supervisor restarts the agent."""
    if not state.lifecycle.permanent:
        return Step(state, Departure(Cause.EXITED, result), call=call.id if call is not None else None)
    drafts = [] if call is None else [(Kind.TOOL_RESULT, "You exited, and were restarted.", call.data)]
    ended = end_turn(state, now, Reply(result, stop_reason="exit"), *drafts, (Kind.INTERRUPTED, "", {"exit": result}))
    return replace(ended, effects=(*ended.effects, ComeBack()))
