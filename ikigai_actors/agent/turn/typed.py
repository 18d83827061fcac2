"""Typed turns, which must end with a value of a type. Pure; `records.outputs` checks types and values.

A typed turn succeeds only with a valid value. The model gives the value by calling `GIVE_RESULT`, a tool that only
these turns have, or as a JSON answer if its service supports typed answers. If the value is invalid, or the answer is
plain text, the model gets all errors and tries again, `MOST_REPAIRS` times at most; then the turn fails. The turn fails
at once if the model refuses. The call ``exit`` in such a turn takes the value, too: the agent's supervisor gets the
value by mail, as JSON.

After a crash the type is in the data of the prompt. Before a unit of this module is committed, the value is a call
without a result, which is carried out again when the turn goes on, or a reply that was never received. After the unit
the turn is over (``output``, ``error``), or the log has the errors, which are counted there: a ``repair`` message, or a
result with ``data.repair``.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ikigai_actors.agent.turn.calls import GIVE_RESULT, Call, Progress, progress
from ikigai_actors.agent.turn.events import Continue
from ikigai_actors.agent.turn.state import State, Step
from ikigai_actors.agent.turn.steps import PendingMessage, advance, depart, end_turn, go_on_behind, messages_of
from ikigai_actors.errors import OutputError, ReplayDiverged
from ikigai_actors.frozen import replace
from ikigai_actors.providers.base import REFUSAL, Reply, Spent
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.outputs import Expected, as_text, expected_in, given_as_text, given_in, problems
from ikigai_actors.records.messages.replies import output_reply, spent_data
from ikigai_actors.text import storable
from ikigai_actors.tools.policy import ToolTraits

EXIT = "exit"
"""The built-in call that takes the value too."""

MOST_REPAIRS = 2
"""The most times that a model may correct its value."""

ACCEPTED = "The result fits. The task is over."
_DOES_NOT_FIT = "The result does not fit:"
_NOT_LAST = "Only the last result of a reply counts."
_WHAT_TO_DO = f"Give the whole result once more, mended: by calling {GIVE_RESULT}, if you have that tool."

_DESCRIPTION = (
    "Give the result of the task, once, when all else is done: the task is over then. It must fit the schema of this "
    "tool; an answer in words does not count as a result."
)


def form_of(wanted: Expected) -> Mapping[str, Any]:
    """Return the tool `GIVE_RESULT`, by which a model gives the value, as a Messages-API dict."""
    return {"name": GIVE_RESULT, "description": _DESCRIPTION, "input_schema": wanted.arguments}


def described_exit(exit_tool: Mapping[str, Any], wanted: Expected) -> Mapping[str, Any]:
    """Return the tool ``exit`` of a typed turn, as a Messages-API dict. Its arguments are the value."""
    return {**exit_tool, "input_schema": wanted.arguments}


def begin_result(state: State, call: Call, event: Continue, now: int, tools: Mapping[str, ToolTraits]) -> Step:
    """Return the step that takes the value of a call; see `ikigai_actors.agent.turn.builtin.Begin`."""
    *others, last = [
        pending for pending in state.calls if pending.name == GIVE_RESULT and pending.progress is not Progress.DONE
    ]
    drafts = [_result(other, _NOT_LAST, is_error=True) for other in others]
    value, wrong = given_in(last.input, _wanted(state))
    if not wrong:
        return _accept(state, value, event.spent, now, *drafts, _result(last, ACCEPTED))
    return _refuse_call(state, last, wrong, now, drafts)


def begin_exit(state: State, call: Call, now: int) -> Step:
    """Return the step that ends an agent with the value of its call of ``exit``, if the value fits."""
    value, wrong = given_in(call.input, _wanted(state))
    return _refuse_call(state, call, wrong, now) if wrong else depart(state, as_text(value), now, call)


def exit_typed(state: State, text: str, now: int) -> Step:
    """Return the step for an agent whose own code ends it with ``text``: its end, if the text is the value as JSON.

    Any other text fails the turn.
    """
    value, wrong = given_as_text(text, _wanted(state))
    if wrong:
        return _fail(state, wrong, now)
    return depart(state, as_text(value), now)


def take_reply(state: State, reply: Reply, draft: PendingMessage, now: int, goes_on: bool = False) -> Step:
    """Return the step that takes a reply without calls: the value itself, or words, which do not end the turn.

    With ``goes_on``, the turn goes on because messages wait for the model. Then no value is taken, and a missing value
    is no fault.
    """
    wanted = _wanted(state)
    if reply.output is not None:
        value, wrong = reply.output, problems(wanted, reply.output)
    else:
        value, wrong = given_as_text(reply.text, wanted)
    if goes_on and (not wrong or _is_last(state)):
        return go_on_behind(state, now, draft)
    if not wrong:
        spent = Spent(reply.usage, reply.model) if reply.usage is not None else None
        return _accept(state, value, spent, now, draft)
    if _is_one_step(state):
        return _end_step(state, now, draft)
    if reply.stop_reason == REFUSAL:  # what a model does not want to answer it does not mend either
        return _refuse(state, reply.text, now, draft)
    if _is_last(state):
        return _fail(state, wrong, now, draft)
    misfits = (*state.misfits, "; ".join(wrong))
    repair: PendingMessage = (Kind.REPAIR, _misfit(wrong), {"repair": len(misfits)})
    return go_on_behind(replace(state, misfits=misfits), now, draft, repair)


def misfits_in(turn: Iterable[Message]) -> tuple[str, ...]:
    """Return the objections to earlier values in the messages of a turn (`State.misfits`)."""
    misfits: tuple[str, ...] = ()
    for message in turn:
        if message.kind == Kind.ERROR:  # it was opened again
            misfits = ()
        elif isinstance(message.data.get("repair"), int):
            misfits = (*misfits, _wrong_in(message.content))
    return misfits


def _accept(state: State, value: Any, spent: Spent | None, now: int, *drafts: PendingMessage) -> Step:
    data = {"output": value, **spent_data(spent)}
    draft: PendingMessage = (Kind.OUTPUT, storable(as_text(value)), data)
    [message] = messages_of(state.uuid, state.head + len(drafts), now, (draft,))
    return end_turn(state, now, output_reply(message), *drafts, draft)


def _refuse_call(state: State, call: Call, wrong: list[str], now: int, before: Sequence[PendingMessage] = ()) -> Step:
    """Give the model the errors of the value in its call. If it may not repair the value any more, fail the turn."""
    if _is_one_step(state):
        return _end_step(state, now)
    if _is_last(state):
        return _fail(state, wrong, now, *before, _result(call, _misfit(wrong), is_error=True))
    misfits = (*state.misfits, "; ".join(wrong))
    messages = messages_of(
        state.uuid, state.head, now, (*before, _result(call, _misfit(wrong), is_error=True, repair=len(misfits)))
    )
    settled = [call.id, *(earlier.id for earlier in state.calls if before and earlier.name == GIVE_RESULT)]
    after = advance(state, messages, calls=progress(state.calls, settled, Progress.DONE), misfits=misfits)
    return Step(after, LogUnit(state.uuid, messages))


def _is_one_step(state: State) -> bool:
    """Return whether the first reply ends the turn in any case, because the turn replays one recorded step."""
    effects: Mapping[str, Any] = state.view.settings.get("effects") or {}
    return bool(effects.get("once"))


def _end_step(state: State, now: int, *drafts: PendingMessage) -> Step:
    """End the turn that replays one recorded step, although its reply would need a further step."""
    text = "The reply has no result that fits, and ends the step: only this one is replayed."
    return end_turn(state, now, ReplayDiverged(text), *drafts, (Kind.ERROR, text, {"diverged": ""}))


def _is_last(state: State) -> bool:
    return len(state.misfits) >= MOST_REPAIRS


def _refuse(state: State, words: str, now: int, *drafts: PendingMessage) -> Step:
    """End the turn of a model that refuses to give a value, with the text of its refusal."""
    said = words.strip()
    text = storable(f"The model refused{f': {said}' if said else ', without a word'}")
    error = OutputError(text if text.endswith((".", "!", "?")) else f"{text}.", reason=REFUSAL)
    return end_turn(state, now, error, *drafts, (Kind.ERROR, str(error), {"output": False, "reason": REFUSAL}))


def _fail(state: State, wrong: list[str], now: int, *drafts: PendingMessage) -> Step:
    count, misfits = len(state.misfits), (*state.misfits, "; ".join(wrong))
    repaired = f" after {count} repair{'s' * (count != 1)}" if count else ""
    text = " ".join(f"({place}) {misfit}." for place, misfit in enumerate(misfits, 1)) if count else f"{misfits[0]}."
    error = OutputError(storable(f"The model gave no result that fits{repaired}: {text}"))
    return end_turn(state, now, error, *drafts, (Kind.ERROR, str(error), {"output": False}))


def _wanted(state: State) -> Expected:
    wanted = None if state.output is None else expected_in({"output": state.output})
    assert wanted is not None  # the turn is typed
    return wanted


def _misfit(wrong: list[str]) -> str:
    return storable("\n".join([_DOES_NOT_FIT, *(f"- {line}" for line in wrong), _WHAT_TO_DO]))


def _wrong_in(misfit: str) -> str:
    lines = misfit.removeprefix(f"{_DOES_NOT_FIT}\n- ").removesuffix(f"\n{_WHAT_TO_DO}")
    return lines.replace("\n- ", "; ")


def _result(call: Call, content: str, is_error: bool = False, **data: Any) -> PendingMessage:
    return (Kind.TOOL_RESULT, content, {**call.data, **({"is_error": True} if is_error else {}), **data})
