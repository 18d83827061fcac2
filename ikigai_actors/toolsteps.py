"""The steps of a turn between two model requests: what becomes of the calls of a reply. Pure; see
`ikigai_actors.calls`.
"""

from dataclasses import replace

from ikigai_actors import events as on
from ikigai_actors.calls import (
    PERHAPS_RUN,
    Book,
    Call,
    Calls,
    Progress,
    next_fork,
    progress,
    running,
    startable,
    unknown,
)
from ikigai_actors.drafts import Draft, advance, end_turn, messages_of
from ikigai_actors.errors import ProviderError
from ikigai_actors.forks import fork_by_call, problem_of
from ikigai_actors.messages import NO_DATA, Kind
from ikigai_actors.state import Phase, RequestModel, RunTool, State, Step
from ikigai_actors.units import LogUnit

MAX_STEPS = 50
"""Model requests that a turn may take."""


def go_on(state: State, event: on.GoOn, now: int, book: Book) -> Step:
    """The next thing to do for the calls of the last reply; nothing while a tool is outside."""
    if missing := unknown(state.calls, book):
        known = ", ".join(sorted(book)) or "none"
        return _results(state, missing, f"There is no such tool. Tools on offer: {known}.", now)
    if chosen := startable(state.calls, book):
        return _start(state, chosen, now)
    if running(state.calls):
        return Step(state)
    if call := next_fork(state.calls):
        problem = problem_of(call)
        return (
            fork_by_call(state, call, event.fresh, now) if problem is None else _results(state, (call,), problem, now)
        )
    if state.steps >= MAX_STEPS:
        text = f"The turn was ended after {MAX_STEPS} steps. Prompt again to let it go on."
        return end_turn(state, now, ProviderError(text), (Kind.ERROR, text, NO_DATA))
    return request_model(state)


def request_model(state: State) -> Step:
    """Send the history to the model. Writes nothing: what it answers to is committed."""
    request = state.request + 1
    after = replace(state, phase=Phase.WAITING_FOR_MODEL, request=request, steps=state.steps + 1, calls=())
    return Step(after, effects=(RequestModel(request),))


def finished(state: State, event: on.ToolFinished, now: int) -> Step:
    """A tool is done: its result is written. One that nobody waits for is dropped."""
    waited = any(call.id == event.call and call.progress is Progress.RUNNING for call in state.calls)
    if event.request != state.request or not waited:
        return Step(state)
    [call] = [call for call in state.calls if call.id == event.call]
    return _write_results(state, now, (call,), _result(call, event.content, event.is_error))


def lose(state: State, lost: Calls, now: int) -> Step:
    """Give the calls that a crash cut off the result that says so."""
    return _results(state, lost, PERHAPS_RUN, now)


def refuse(state: State, call: str, reason: str, now: int) -> Step:
    """Give a call that the store refused the reason as its result."""
    return _results(state, tuple(known for known in state.calls if known.id == call), reason, now)


def _start(state: State, chosen: Calls, now: int) -> Step:
    """The write-ahead records of calls that start together; they start when these are committed."""
    drafts = tuple((Kind.TOOL_CALL, call.name, {"tool_use_id": call.id, "name": call.name}) for call in chosen)
    messages = messages_of(state.uuid, state.head, now, drafts)
    ids = [call.id for call in chosen]
    after = advance(state, messages, calls=progress(state.calls, ids, Progress.RUNNING))
    return Step(after, LogUnit(state.uuid, messages), tuple(RunTool(state.request, call) for call in ids))


def _results(state: State, calls: Calls, text: str, now: int) -> Step:
    return _write_results(state, now, calls, *(_result(call, text, True) for call in calls))


def _write_results(state: State, now: int, calls: Calls, *drafts: Draft) -> Step:
    messages = messages_of(state.uuid, state.head, now, drafts)
    after = advance(state, messages, calls=progress(state.calls, (call.id for call in calls), Progress.DONE))
    return Step(after, LogUnit(state.uuid, messages))


def _result(call: Call, content: str, is_error: bool) -> Draft:
    data = {"tool_use_id": call.id, "name": call.name}
    return (Kind.TOOL_RESULT, content, {**data, "is_error": True} if is_error else data)
