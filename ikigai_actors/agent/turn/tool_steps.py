"""The steps of a turn between two model requests, which carry out the calls of a reply.

Pure; the calls themselves are described in `ikigai_actors.agent.turn.calls`.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any

from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.builtin import BuiltinTraits
from ikigai_actors.agent.turn.calls import (
    GIVE_RESULT,
    NARROWED,
    PERHAPS_RUN,
    TOOL,
    WAIT,
    Call,
    Calls,
    Progress,
    allowed_by_pattern,
    asked_again,
    asking,
    changed_since,
    denial,
    denied,
    digest_of,
    ended_by_words,
    here,
    marked_approved,
    marked_asked,
    marked_by_pattern,
    marked_unfenced,
    narrowed_by,
    next_builtin_call,
    pending,
    progress,
    redefined,
    ruled,
    running,
    startable,
    to_be_asked,
    to_be_heard_of,
    to_be_hooked,
    unknown,
    waits,
    with_verdict,
)
from ikigai_actors.agent.turn.compaction import begin_for_model
from ikigai_actors.agent.turn.elision import CHANGED_BY
from ikigai_actors.agent.turn.hook_waits import await_hooks
from ikigai_actors.agent.turn.hooked import continue_ending
from ikigai_actors.agent.turn.questions import complaint_about
from ikigai_actors.agent.turn.record import NOT_RECORDED, RecordedResult, kept_in
from ikigai_actors.agent.turn.skills import LOAD_SKILL
from ikigai_actors.agent.turn.state import (
    Answer,
    AskApproval,
    AskHooks,
    CallUnit,
    Phase,
    RequestModel,
    RunTool,
    State,
    Step,
)
from ikigai_actors.agent.turn.steps import PendingMessage, advance, end_turn, messages_of
from ikigai_actors.attachments import Attachment
from ikigai_actors.errors import BadInput, ProviderError, ReplayDiverged
from ikigai_actors.frozen import replace
from ikigai_actors.providers.base import FIND_TOOLS
from ikigai_actors.records.budgets.amounts import Held, Paused
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.records.messages.blob_references import stored_in
from ikigai_actors.records.messages.messages import ATTACHMENTS_KEY, Kind
from ikigai_actors.records.messages.settings import MAX_STEPS, is_trial
from ikigai_actors.records.questions.forms import answer_text
from ikigai_actors.records.questions.waiting import ASK_PERSON
from ikigai_actors.tools.definitions import Definition
from ikigai_actors.tools.hooks.verdict import AFTER_CALL, BEFORE_CALL
from ikigai_actors.tools.policy import Policy, ToolTraits
from ikigai_actors.tools.rules.rule import NewRule, exact_pattern, rules_with
from supervisors.signals import Status

_QUIET = (FIND_TOOLS, LOAD_SKILL, ASK_PERSON)
"""Tools that the list of known tools leaves out, in the error about an unknown tool."""
_LACKING = (
    "This call must be looked at by hook {names}, which the process that runs you does not have, so it was denied. Do "
    "without it, or ask the person to start the program with that hook."
)
"""The result of a call that needs a hook which this process does not have."""


def continue_calls(
    state: State, event: on.Continue, now: int, tools: Mapping[str, ToolTraits], has_words: bool = False
) -> Step:
    """Return the next step for the calls of the last reply; an empty step while a tool runs.

    A stopped agent finishes the ordinary calls of its step, and goes no further. ``has_words`` says whether steering
    messages wait for the model; then it must read them before a typed turn takes its value.
    """
    if state.ending is not None:
        return continue_ending(state, event.hooks.reply, now)
    effects = state.view.settings.get("effects")
    if effects is not None and (kept := kept_in(effects, state.calls, tools)):
        return _answer_from_record(state, kept, event, now, effects)
    step = _continue_ruled(state, event, now, tools, has_words)
    unit, rules = step.unit, state.rules or ()
    if not isinstance(unit, LogUnit | CallUnit):
        return step
    return replace(step, state=replace(step.state, rules=rules), unit=replace(unit, rules=rules))


def _continue_ruled(
    state: State, event: on.Continue, now: int, tools: Mapping[str, ToolTraits], has_words: bool
) -> Step:
    if again := redefined(state.calls, tools):
        state = replace(state, calls=asked_again(state.calls, again))
    calls = ruled(state.calls, tools, rules_with(state.rules or (), state.view.settings), event.asked)
    if missing := unknown(state.calls, tools):
        known = ", ".join(sorted(name for name in tools if name not in _QUIET)) or "none"
        return _results(state, missing, f"There is no such tool. Tools on offer: {known}.", now)
    if unclear := {call.id: wrong for call in state.calls if (wrong := complaint_about(call))}:
        calls_about = tuple(call for call in state.calls if call.id in unclear)
        return _write_results(
            state, now, calls_about, *(_result(unsure, unclear[unsure.id], True) for unsure in calls_about)
        )
    if forbidden := denied(calls, tools):
        drafts = (_result(call, denial(call, tools), True) for call in forbidden)
        return _write_results(state, now, forbidden, *drafts)
    if (lacking := to_be_hooked(calls, event.hooks.lacking)) and _may_await_hooks(state, event, now):
        names = dict.fromkeys(name for call in lacking for name in event.hooks.lacking[call.id])
        return Step(state) if state.service_wait else await_hooks(state, list(names), event.hooks_until, now)
    state = replace(state, service_wait=None) if state.service_wait else state
    if lacking:
        named = {call.id: ", ".join(event.hooks.lacking[call.id]) for call in lacking}
        drafts = (_result(call, _LACKING.format(names=named[call.id]), True) for call in lacking)
        return _write_results(state, now, lacking, *drafts)
    if hooked := to_be_hooked(calls, event.hooks.before):
        if state.rules is None:
            return Step(state, LogUnit(state.uuid, ()))  # to hear of rules: what they deny no hook is asked about
        return _ask_hooks(state, hooked, BEFORE_CALL, event.hooks.before)
    if other := changed_since(calls):
        return _results(state, other, "This is not the call that was approved, so it was not begun.", now)
    if to_ask := to_be_asked(calls, tools):
        unfenced = [call.id for call in to_ask if tools[call.name].unfenced]
        shown = here(to_ask, tools)
        asked = _with(marked_unfenced(state.calls, unfenced), shown)
        kept = {call.name: tools[call.name] for call in shown if call.definition}
        bodies = tuple(Definition(each.definition, name, each.definition_body) for name, each in sorted(kept.items()))
        return _ask(replace(state, calls=asked), shown, unfenced, now, bodies)
    if chosen := startable(calls, tools):
        by_pattern = {call.id for call in allowed_by_pattern(chosen, tools)}
        chosen = here(chosen, tools)
        state = replace(state, calls=_with(marked_by_pattern(state.calls, by_pattern), chosen))
        return _start(state, marked_by_pattern(chosen, by_pattern), now)
    if heard := to_be_heard_of(state.calls, event.hooks.after, tools):
        return _ask_hooks(state, heard, AFTER_CALL, event.hooks.after)
    if running(state.calls) or waits(state.calls):
        return Step(state)
    if state.status is Status.STOPPED:
        return Step(state)
    call = next_builtin_call(state.calls, tools)
    if call is not None and call.name == GIVE_RESULT and has_words and not asking(state.calls):
        undone = tuple(call for call in state.calls if call.progress is not Progress.DONE)
        return _results(state, undone, "The result was not taken: read the new words, then give it again.", now)
    if call is not None and not (call.name == GIVE_RESULT and asking(state.calls)):
        return _begin(state, call, event, now, tools)
    if asking(state.calls):
        return Step(state) if state.rules is not None else Step(state, LogUnit(state.uuid, ()))  # to hear of rules
    if state.focus is not None:
        return begin_for_model(state, event.plan)
    if state.steps >= _most_steps(state):
        text = (
            f"The turn was ended after {_most_steps(state)} steps. /resume, or resume(), lets it go on; the setting "
            "max_steps allows more of them."
        )
        return end_turn(state, now, ProviderError(text), (Kind.ERROR, text, {"max_steps": _most_steps(state)}))
    if has_words and isinstance(state.hold, Held):  # for a shorter request than the one with the words
        state = replace(state, hold=None)
    return request_model(state)


def _may_await_hooks(state: State, event: on.Continue, now: int) -> bool:
    """Whether calls wait for hooks that this process lacks. A trial waits for nobody."""
    return not is_trial(state.view.settings) and not 0 < event.hooks_until <= now


def _with(calls: Calls, shown: Calls) -> Calls:
    new = {call.id: call for call in shown}
    return tuple(
        replace(call, definition=entry.definition, build=entry.build)
        if (entry := new.get(call.id)) is not None
        else call
        for call in calls
    )


def _ask_hooks(state: State, calls: Calls, event: str, hooks: Mapping[str, tuple[str, ...]]) -> Step:
    ids = {call.id for call in calls}
    checking, before = Progress.CHECKING, event == BEFORE_CALL
    asked = tuple(
        call if call.id not in ids else replace(call, progress=checking) if before else replace(call, after=checking)
        for call in state.calls
    )
    effects = tuple(AskHooks(state.request, call.id, event, hooks[call.id]) for call in calls)
    return Step(replace(state, calls=asked), effects=effects)


def take_verdict(state: State, event: on.HooksAnswered, now: int) -> Step:
    """Write the verdict of hooks on a call. The verdict on a call that is not being checked any more is dropped."""
    before = event.event == BEFORE_CALL
    checked = (call for call in state.calls if (call.progress if before else call.after) is Progress.CHECKING)
    call = next((call for call in checked if call.id == event.call), None)
    if event.request != state.request or call is None:
        return Step(state)
    said = event.outcome
    data: dict[str, Any] = {**call.data, "event": event.event, "hooks": list(said.asked), "decision": said.decision}
    if said.changed_by:
        data |= {"input": dict(said.input), CHANGED_BY: list(said.changed_by)}
    if said.settings:
        data |= {NARROWED: narrowed_by(said.settings)}
    drafts: list[PendingMessage] = [(Kind.HOOK, _in_words(call, event), data)]
    drafts += ((Kind.CONTEXT, text, {"hook": hook}) for hook, text in said.contexts)
    calls = with_verdict(state.calls, data)
    if before and said.decision == "deny":
        denied_ = next(own for own in calls if own.id == call.id)
        why = said.reason or "it gives no reason"
        drafts.append(_result(denied_, f"Hook {said.by} denies this call: {why}", True))
        there = Progress.DONE
    else:
        there = Progress.APPROVED if call.approved else Progress.WAITING
    if before:
        calls = progress(calls, (call.id,), there)
    messages = messages_of(state.uuid, state.head, now, tuple(drafts))
    hold = None if said.contexts else state.hold  # the request has more to read
    after = advance(state, messages, calls=calls, hold=hold)
    return Step(after, LogUnit(state.uuid, messages, asks=asks_next(after)))


def _in_words(call: Call, event: on.HooksAnswered) -> str:
    """Describe the verdict of hooks for a person."""
    said = event.outcome
    names = ", ".join(said.asked)
    if event.event == AFTER_CALL:
        return f"{names} heard of the result of {call.name}"
    sentences = [f"{said.by} denies {call.name}: {said.reason}"] if said.decision == "deny" else []
    sentences += [f"{said.by} asks about {call.name}: {said.reason}"] if said.decision == "ask" else []
    sentences += [f"{', '.join(said.changed_by)} changed the arguments of {call.name}"] if said.changed_by else []
    sentences += [f"{', '.join(name for name, _ in said.settings)} narrowed the child"] if said.settings else []
    return "; ".join(sentences) or f"{names} let {call.name} pass"


def _answer_from_record(state: State, kept: Calls, event: on.Continue, now: int, effects: Mapping[str, Any]) -> Step:
    """Give calls their recorded results. A call that is not in the record ends the turn, or gets an error."""
    missing = next((call for call in kept if call.id not in event.recorded), None)
    if missing is not None and effects.get("missing", "stop") == "stop":
        text = f"The model has called {missing.name}, which the record does not have here, and nothing runs."
        data = {"diverged": missing.id, "tool": missing.name, "input": dict(missing.input)}
        return end_turn(state, now, ReplayDiverged(text), (Kind.ERROR, text, data))
    drafts: list[PendingMessage] = []
    for call in kept:
        result = event.recorded.get(call.id, RecordedResult(NOT_RECORDED, True))
        kind, content, data = _result(call, result.content, result.is_error)
        drafts.append((kind, content, {**data, ATTACHMENTS_KEY: list(result.attached)} if result.attached else data))
    return _write_results(state, now, kept, *drafts)


def _begin(state: State, call: Call, event: on.Continue, now: int, tools: Mapping[str, ToolTraits]) -> Step:
    """Begin a built-in call. If its arguments do not fit, the reason is its result."""
    traits = tools[call.name]
    assert isinstance(traits, BuiltinTraits)  # as it was chosen
    try:
        return traits.begin(state, call, event, now, tools)
    except BadInput as error:
        return _results(state, (call,), str(error), now)


def request_model(state: State) -> Step:
    """Send the history to the model, after the highest cost of the request was reserved.

    The unit of the last result reserves the cost, or else a unit without messages does.
    """
    request = state.request + 1
    phase = Phase.WAITING_FOR_BUDGET if isinstance(state.hold, Paused) else Phase.WAITING_FOR_MODEL
    after = replace(state, phase=phase, request=request, steps=state.steps + 1, calls=(), retries=0, service_waits=0)
    if isinstance(state.hold, Paused):
        return Step(after)
    unit = None if isinstance(state.hold, Held) else LogUnit(state.uuid, (), asks=True)
    return Step(after, unit, effects=(RequestModel(request),))


def placed(step: Step, answer: Held | Paused) -> Step:
    """Complete a committed step with the answer of the budget on the request that follows.

    If the request has to wait for the budget, the step does not send the request.
    """
    state = replace(step.state, hold=answer)
    if isinstance(answer, Held) or state.phase is not Phase.WAITING_FOR_MODEL:
        return replace(step, state=state)
    effects = tuple(effect for effect in step.effects if not isinstance(effect, RequestModel))
    return replace(step, state=replace(state, phase=Phase.WAITING_FOR_BUDGET), effects=effects)


def go_on(state: State, held: Held) -> Step:
    """Send the request that has waited for a budget; do nothing if the turn was ended or another request waits."""
    if not isinstance(state.hold, Paused) or state.hold.at != held.at:
        return Step(state)
    if state.phase is Phase.RUNNING_TOOLS:
        return Step(replace(state, hold=held))
    if state.phase is not Phase.WAITING_FOR_BUDGET:
        return Step(state)
    request = state.request + 1
    after = replace(
        state, hold=held, phase=Phase.WAITING_FOR_MODEL, request=request, steps=max(1, state.steps), calls=()
    )
    return Step(after, effects=(RequestModel(request),))


def finished(state: State, event: on.ToolFinished, now: int) -> Step:
    """Write the result of a tool. The result of a call that no longer runs is dropped."""
    waited = any(call.id == event.call and call.progress is Progress.RUNNING for call in state.calls)
    if event.request != state.request or not waited:
        return Step(state)
    [call] = [call for call in state.calls if call.id == event.call]
    if event.connect is not None:
        connecting = replace(call, connect=event.connect)
        asked = replace(state, calls=tuple(connecting if other.id == call.id else other for other in state.calls))
        return _record(asked, (connecting,), now, Kind.APPROVAL, Progress.ASKING, AskApproval)
    kind, content, data = _result(call, event.content, event.is_error)
    filtered = [{"hook": hook, "sha256": former} for hook, former in event.filtered]
    filters = {"filtered": filtered} if filtered else {}
    draft = (kind, content, {**data, **filters, **stored_in(event.attached)})
    return _write_results(state, now, (call,), draft, blobs=event.attached)


def decide_call(state: State, event: on.Decide, now: int) -> Step:
    """Approve or deny a call that waits for a decision. With `Decide.always`, add a rule that allows later calls."""
    [call] = [call for call in asking(state.calls) if call.id == event.call]
    drafts: list[PendingMessage]
    decider = {"by": event.by} if event.by else {}
    if call.name == ASK_PERSON and event.approved:
        answer = json.loads(event.answer)
        drafts = [(Kind.TOOL_RESULT, answer_text(answer), {**call.data, **call.question, "answer": answer, **decider})]
    elif event.approved:
        drafts = [(Kind.APPROVAL, call.name, {**call.question, "approved": True, **decider})]
    else:
        what = "The question was declined" if call.name == ASK_PERSON else "This call was denied"
        what = what if call.connect is None else "No account was connected, so this call did not run"
        kind, content, data = _result(call, f"{what}: {event.reason or 'no reason was given'}", True)
        drafts = [(kind, content, {**data, **call.question, **decider})]
    messages = messages_of(state.uuid, state.head, now, tuple(drafts))
    runs = event.approved and call.name != ASK_PERSON
    calls = progress(state.calls, (call.id,), Progress.APPROVED if runs else Progress.DONE)
    if runs:
        calls = marked_approved(calls, call.id, digest_of(call.name, call.input))
        calls = tuple(replace(other, connect=None) if other.id == call.id else other for other in calls)
    after = advance(state, messages, calls=calls)
    unit = LogUnit(state.uuid, messages, rule=_always(state.uuid, call, event))
    return Step(after, unit, (Answer(event.caller, True),), event.caller)


def _always(agent: str, call: Call, event: on.Decide) -> NewRule | None:
    """Return the rule that lets later calls run without a question; None if the decision asks for no rule."""
    if not event.approved or event.always not in pending(agent, call).always:
        return None
    pattern = "" if event.always == TOOL else exact_pattern(call.name, call.input)
    return None if pattern is None else NewRule(Policy.ALLOW, call.name, pattern)


def lose(state: State, lost: Calls, now: int) -> Step:
    """Write the error `PERHAPS_RUN` as the result of calls that a crash cut off."""
    return _results(state, lost, PERHAPS_RUN, now)


def end_calls(state: State, now: int, at_once: bool) -> Step:
    """End the ``wait`` in progress, for a steering message; with ``at_once``, end every call that has no result.

    A program does not read steering messages, so its wait goes on.
    """
    if at_once:  # hooks that were asked were cut off too
        calls = (replace(call, after=Progress.DONE) for call in state.calls)
        state = replace(state, calls=tuple(calls))
    ended = ended_by_words(state.calls, at_once)
    return _write_results(state, now, ended, *(_result(call, *_why_ended(call)) for call in ended))


def _why_ended(call: Call) -> tuple[str, bool]:
    """Return the result of a call that a steering message has ended, and whether the result is an error."""
    if call.progress is not Progress.RUNNING:
        return "This call was not begun: read the new words.", True
    if call.name == WAIT:
        return "The wait was ended: read the new words. Wait again if you still want to.", False
    return "This call was cut off: it may or may not have run. Read the new words.", True


def refuse(state: State, call: str, reason: str, now: int) -> Step:
    """Write the reason why the store refused a built-in call as that call's result."""
    return _results(state, tuple(known for known in state.calls if known.id == call), reason, now)


def _ask(state: State, chosen: Calls, unfenced: Collection[str], now: int, definitions: tuple[Definition, ...]) -> Step:
    """Write questions whether calls may run. People are asked once the questions are committed."""
    step = _record(state, chosen, now, Kind.APPROVAL, Progress.ASKING, AskApproval, unfenced)
    assert isinstance(step.unit, LogUnit)
    return replace(step, unit=replace(step.unit, definitions=definitions))


def _start(state: State, chosen: Calls, now: int) -> Step:
    """Write the write-ahead records of calls that start together. The calls start once the records are committed."""
    return _record(state, chosen, now, Kind.TOOL_CALL, Progress.RUNNING, RunTool)


def _record(
    state: State,
    chosen: Calls,
    now: int,
    kind: Kind,
    there: Progress,
    effect: type[AskApproval] | type[RunTool],
    unfenced: Collection[str] = (),
) -> Step:
    def data_of(call: Call) -> dict[str, Any]:
        begun = call.defined_by
        if call.by_pattern:
            begun["by_pattern"] = True
        data = call.question if kind is Kind.APPROVAL else {**call.data, **begun}
        return {**data, "unfenced": True} if call.id in unfenced else data

    drafts = ((kind, call.name, data_of(call)) for call in chosen)
    messages = messages_of(state.uuid, state.head, now, tuple(drafts))
    ids = [call.id for call in chosen]
    calls = progress(state.calls, ids, there)
    for message in messages if there is Progress.ASKING else ():
        calls = marked_asked(calls, message.data["tool_use_id"], message.id)
    after = advance(state, messages, calls=calls)
    return Step(after, LogUnit(state.uuid, messages), tuple(effect(state.request, call) for call in ids))


def _results(state: State, calls: Calls, text: str, now: int) -> Step:
    return _write_results(state, now, calls, *(_result(call, text, True) for call in calls))


def _write_results(
    state: State, now: int, calls: Calls, *drafts: PendingMessage, blobs: tuple[Attachment, ...] = ()
) -> Step:
    messages = messages_of(state.uuid, state.head, now, drafts)
    after = advance(state, messages, calls=progress(state.calls, (call.id for call in calls), Progress.DONE))
    return Step(after, LogUnit(state.uuid, messages, blobs=blobs, asks=asks_next(after)))


def asks_next(state: State) -> bool:
    """Return whether the machine sends the next request at once, unless a command or a signal comes first."""
    done = all(call.progress is Progress.DONE and call.after is not Progress.CHECKING for call in state.calls)
    free = state.hold is None and state.focus is None and state.status is not Status.STOPPED
    return done and free and may_ask(state)


def may_ask(state: State) -> bool:
    """Return whether the turn may send a further request: its number of steps is limited."""
    return state.steps < _most_steps(state)


def _most_steps(state: State) -> int:
    most: int = state.view.settings.get("max_steps", MAX_STEPS)
    return most


def _result(call: Call, content: str, is_error: bool) -> PendingMessage:
    data = call.data
    return (Kind.TOOL_RESULT, content, {**data, "is_error": True} if is_error else data)
