"""The pure machine: what an agent does next. No I/O, no clock, no randomness.

`step(state, event, now, tools)` returns the state after the event, the unit of writes that stores this state, and the
effects that may follow after the commit. The machine decides. `AgentActor` commits the unit, performs the effects, and
passes their results to the machine as events.

    unloaded ──Loaded──> idle <──────────── the turn ends: reply without calls, error, INT
                          │ Prompt                    │
                          v            reply          │
                     waiting_for_model ──────> running_tools
                          ^     ^      with calls     │
              Resume,     │     └─────────────────────┘ every call has its result
              Prompt      │
                     interrupted   (the turn was cut off by a crash: open in the registry, nobody works on it)

A unit that is followed by a request to the model also reserves what the request may cost
(`ikigai_actors.records.budgets`). The unit has the prompt, the last result of the calls, or no message. If a budget
does not allow the request, the answer of the unit says so, and the agent is ``waiting for budget`` until the budget is
raised or the turn is ended. If settings or history change meanwhile, the cost is estimated again. If the prompt is
taken back, the turn ends. There is one more phase, ``compacting``: when every call has a result, the model may be asked
for a summary of the history (`ikigai_actors.agent.turn.compaction`). After that the agent goes on as before.

If a reply breaks off, the request is repeated, up to ``stream_retries`` times: first a `retry` message is committed,
then the request is sent again. If a service is not available, the agent's next model is asked in the same way, for the
rest of the turn. If there is no further model, or the service will be back soon, the agent is ``waiting for the
service`` (`ikigai_actors.agent.turn.service_waits`): a `retry` message has the time of the next request, and the
reserved amount is released until then. `Resume`, or a change of the settings, sends the request earlier. If the model
is a program that this process lacks, the agent is ``waiting for program``: the turn stays open in the log, for a
process that has the program. Any other error ends the turn, and `State.failed` has the error. `Resume` then opens the
turn again, and the next request is sent after that commit.

If the service stores a reply, a `note` is committed at the first event of the reply (`ikigai_actors.agent.turn.kept`).

A turn that must return a typed value ends by the rules of `ikigai_actors.agent.turn.typed`.

After a crash, all committed data are there. In ``unloaded`` and ``idle`` no turn is open. In ``waiting_for_model`` the
prompt and the open turn are committed, but not the reply: the agent comes back ``interrupted``, and `Resume` sends the
history again. In ``running_tools`` the reply and the progress of each call are committed (the table in ``calls.py``):
`Resume` goes on from there. If a call waits for a person, its question is committed, and is still open. A crash between
a commit and its effects loses nothing: an effect answers a caller, who is gone too, or starts work that `Resume` starts
again.

Apart from its phase, an agent has a status in the registry. A stopped agent finishes its step and then pauses: the next
request to the model waits, and prompts wait as mail, so that they survive the end of the process. A terminating agent
dies when its turn is over.

The actor keeps a command that cannot run yet, and offers it again after each step (`accepts`). Each command declares
what it needs. A reply or a result of an earlier request changes nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ikigai_actors.agent.turn import compaction, merging
from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.calls import (
    FORK,
    GIVE_RESULT,
    LOOKS,
    Progress,
    asking,
    at_rest,
    calls_of,
    digest_of,
    settle_cut_off,
    waits,
)
from ikigai_actors.agent.turn.elision import RECALL
from ikigai_actors.agent.turn.events import Needs, TurnEvent
from ikigai_actors.agent.turn.fork import fork_by_command, fork_trials
from ikigai_actors.agent.turn.found_tools import found_in
from ikigai_actors.agent.turn.hook_waits import await_hooks, waited_until
from ikigai_actors.agent.turn.hooked import (
    ask_about_reply,
    dropped_hooks,
    may_add,
    refusal_to_drop,
    take_reply_verdict,
    take_request_verdict,
)
from ikigai_actors.agent.turn.kept import giving_up, keep_reply
from ikigai_actors.agent.turn.plan import READABLE, History, SummaryPlan, elision_of, less_of, plan_in_place, plan_of
from ikigai_actors.agent.turn.record import from_record
from ikigai_actors.agent.turn.skills import LOAD_SKILL, loaded_in, without_loaded
from ikigai_actors.agent.turn.state import (
    BESIDE_STEPS,
    BETWEEN_TURNS,
    NOT_ASKED,
    TO_BE_RESUMED,
    UNKNOWN,
    WORKING,
    Answer,
    AskApproval,
    BeginWait,
    Departure,
    Effect,
    MailNotice,
    MergeTree,
    Phase,
    PutAside,
    RequestModel,
    State,
    Step,
)
from ikigai_actors.agent.turn.steps import (
    INTERRUPTION,
    PendingMessage,
    advance,
    answers_of_cut_off,
    ask_again,
    await_program,
    await_service,
    between_steps,
    close_and_write,
    depart,
    end_turn,
    go_on_behind,
    messages_of,
    request_anew,
    wait_after,
    write_messages,
)
from ikigai_actors.agent.turn.tool_steps import (
    continue_calls,
    decide_call,
    end_calls,
    finished,
    go_on,
    lose,
    may_ask,
    refuse,
    request_model,
    take_verdict,
)
from ikigai_actors.agent.turn.typed import exit_typed, take_reply
from ikigai_actors.agent.turn.ways import SUMMARY
from ikigai_actors.errors import (
    BadInput,
    MarkNotFound,
    NoTurn,
    ProviderError,
    ProviderMissing,
    StepChanged,
    TurnInterrupted,
)
from ikigai_actors.frozen import NO_DATA, replace
from ikigai_actors.providers.base import FIND_TOOLS, Reply, Spent
from ikigai_actors.providers.too_long import too_long
from ikigai_actors.records.agents.labels import joined
from ikigai_actors.records.budgets.amounts import Held, Paused
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.records.messages.forms import ASKER
from ikigai_actors.records.messages.kept import kept_data
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.replies import reply_message_data, spent_data, spent_of
from ikigai_actors.records.messages.settings import STREAM_RETRIES, is_trial
from ikigai_actors.records.messages.skills_beside import SKILLS
from ikigai_actors.records.questions.asked import question_id
from ikigai_actors.records.questions.waiting import ASK_PERSON
from ikigai_actors.text import storable
from ikigai_actors.tools.hooks import verdict
from ikigai_actors.tools.policy import ToolTraits
from supervisors.causes import Cause
from supervisors.children import RestartType
from supervisors.signals import Status

_BEFORE_A_REQUEST = (*BETWEEN_TURNS, Phase.RUNNING_TOOLS)

NO_TOOLS: Mapping[str, ToolTraits] = {}


def accepts(state: State, command: on.Deferrable) -> bool:
    """Return whether a command can run now. If not, the actor keeps it and offers it again later."""
    match command:
        case on.Prompt() if puts_aside(state, command):
            return not command.mail
        case on.Resume() if state.phase in BESIDE_STEPS:
            return False  # what is to be gone on with shows after it
        case on.Merge() if state.phase is Phase.WAITING_FOR_PROGRAM:
            return False
        case on.Merge() if command.how == SUMMARY and state.status is not Status.RUNNING:
            return False  # a model is asked
        case on.Fork() if SKILLS in command.data and state.phase is Phase.UNLOADED:
            return False  # the log says which of them the child has already
        case on.Resume() if state.status is Status.STOPPED:
            return state.phase is Phase.IDLE and not state.failed
    match command.needs:
        case Needs.LOG:
            return state.phase is not Phase.UNLOADED
        case Needs.TURN_OVER:
            return state.phase in BETWEEN_TURNS
        case Needs.AT_REST:
            waits = state.phase in (*NOT_ASKED, Phase.WAITING_FOR_PROGRAM) and state.status is not Status.STOPPED
            return waits or state.phase in BETWEEN_TURNS
        case Needs.CALLS_OVER if state.phase in NOT_ASKED:
            return state.status is Status.RUNNING
        case Needs.CALLS_OVER:
            settled = state.ending is None and all(call.progress is Progress.DONE for call in state.calls)
            free = state.status is Status.RUNNING and not isinstance(state.hold, Paused)
            return settled and free and state.phase in _BEFORE_A_REQUEST
        case Needs.STEP_OVER if state.phase is Phase.UNLOADED:
            return state.head != UNKNOWN  # a child refers to the log, which need not be read for that
        case Needs.STEP_OVER:
            between = (*BETWEEN_TURNS, *NOT_ASKED, Phase.COMPACTING, Phase.WAITING_FOR_PROGRAM)
            if state.phase is Phase.MERGING:
                return all(call.progress is Progress.DONE for call in state.calls)
            calls_rest = state.phase is Phase.RUNNING_TOOLS and at_rest(state.calls)
            return state.phase in between or calls_rest


def completed(state: State, event: TurnEvent, log: History) -> TurnEvent:
    """Return the event, completed by the data from the log that the machine needs for it."""
    if isinstance(event, on.Continue) and (effects := state.view.settings.get("effects")) is not None:
        event = replace(event, recorded=from_record(effects, log.messages, state.calls))
    if isinstance(event, on.Continue) and any(call.name == FIND_TOOLS for call in state.calls):
        event = replace(event, found_tools=found_in(log, state.head).all)
    if isinstance(event, on.Continue) and any(call.name == LOAD_SKILL for call in state.calls):
        event = replace(event, loaded=loaded_in(log, state.head))
    if isinstance(event, on.Continue) and event.hooks.lacking:
        event = replace(event, hooks_until=waited_until(log.between(state.turn - 1, state.head)))
    if isinstance(event, on.Fork) and SKILLS in event.data:
        at = event.at if isinstance(event, on.ForkAt) else state.head
        event = replace(event, data=without_loaded(event.data, loaded_in(log, at)))
    match event:
        case on.ReplyReceived() if event.hooks and not may_add(log.between(state.turn, state.head)):
            return replace(event, hooks=())
        case on.Undo():
            return replace(event, prompt=latest.id if (latest := log.latest_prompt()) is not None else 0)
        case on.ReplyFailed() if _expects(state, event.request) and (refused := too_long(str(event.error))) is not None:
            known = bool(refused.window and refused.tokens)
            part = READABLE * refused.window / refused.tokens if known else READABLE
            size = (refused.tokens, refused.window) if known else (0, 0)
            return replace(event, **_shorter(state, log, min(part, READABLE), *size, must=True))
        case on.WindowFull() if _expects(state, event.request):
            return replace(event, **_shorter(state, log, event.readable, event.tokens, event.near, event.is_full))
        case on.Compact():
            plan = plan_of(log, state.head, state.turn or state.failed)
            return replace(event, plan=plan or (plan_in_place(log, state.head) if event.summary else None))
        case on.SummaryFailed() if _awaits_summary(state, event.request) and state.compaction is not None:
            return replace(event, plan=_less(state, log, event, state.compaction.plan))
        case on.PartWritten() if _awaits_summary(state, event.request):
            return replace(event, plan=plan_of(log, state.head, state.turn or state.failed))
        case on.Prompt():
            return _prompt_after(state, event, log)
        case on.LookAtMail() if state.notice:
            news = next(log.between(state.notice - 1, state.notice)).data
            return on.LookAtMail(news if news.keys() >= {"unread", "last"} else None)
        case on.Continue() if state.focus is not None and all(call.progress is Progress.DONE for call in state.calls):
            return replace(event, plan=plan_of(log, state.head, state.turn))
        case on.Continue() if any(call.name in (GIVE_RESULT, FORK) for call in state.calls):
            reply = state.calls[0].reply
            return replace(event, spent=spent_of(next(log.between(reply - 1, reply))))
    return event


def _prompt_after(state: State, event: on.Prompt, log: History) -> on.Prompt:
    """Return a prompt with the message that it replaces, and without texts of skills that the model sees already."""
    opening = (state.failed or state.turn) if state.failed or state.phase is Phase.INTERRUPTED else 0
    if opening and _repeats(event.text, list(log.between(opening - 1, state.head))):
        event = replace(event, repeats=opening)
    if SKILLS not in event.data:
        return event
    seen = event.repeats - 1 if event.repeats else state.head
    return replace(event, data=without_loaded(event.data, loaded_in(log, seen)))


def _shorter(state: State, log: History, part: float, tokens: int, near: float, must: bool) -> dict[str, Any]:
    """Return the fields of an event that shorten the request: a plan for a summary, and an elision, each or None."""
    plan = plan_of(log, state.head, state.turn, part)
    elision = elision_of(log, state.head, state.turn, tokens, near) if tokens else None
    if elision is None and plan is None and must and tokens:
        elision = elision_of(log, state.head, state.turn, tokens, near, whole=True)
    return {"plan": plan, "elision": elision}


def _less(state: State, log: History, event: on.SummaryFailed, plan: SummaryPlan) -> SummaryPlan | None:
    """Return a plan for a smaller part than the one that was too long for the model; None after another failure."""
    if (refused := too_long(str(event.error))) is None:
        return None
    fits = READABLE * refused.window / refused.tokens if refused.window and refused.tokens else READABLE
    return less_of(plan, log, state.head, state.turn or state.failed, min(fits, event.readable))


def step(
    state: State,
    event: TurnEvent,
    now: int,
    tools: Mapping[str, ToolTraits] = NO_TOOLS,
    words: Sequence[on.Prompt] = (),
) -> Step:
    """Decide the step for an event. If nothing is to be done, the step has the same state, no unit and no effects.

    Steering messages enter a turn only as the last messages of a unit after which a request of the turn is sent. So
    they never come between a call and its result, and they do not change what the model was shown before.

    Args:
        state: the state of the agent. If the event is a command, `accepts` must be true for it.
        now: the time, in milliseconds since 1970.
        tools: the traits of the tools that the agent has now, by name.
        words: the waiting steering messages that may enter now, oldest first, without the prompt that is the event.
    """
    if not words:
        return giving_up(state, event, _step(state, event, now, tools, words=False))
    return giving_up(state, event, _with_words(_step(state, event, now, tools, words=True), words, now))


def _with_words(step: Step, words: Sequence[on.Prompt], now: int) -> Step:
    """Return the step with the steering messages as the last messages of its unit, if a request may follow."""
    unit, state = step.unit, step.state
    if not (isinstance(unit, LogUnit) and unit.asks and unit.may_wait):
        return step
    drafts = tuple((Kind.STEER, word.text, {**_mail_of(word), "turn": state.turn, **word.data}) for word in words)
    messages = messages_of(state.uuid, state.head, now, drafts)
    mails = tuple(word.mail for word in words if word.mail)
    unit = replace(unit, messages=(*unit.messages, *messages), words=mails)
    return replace(step, state=advance(state, messages), unit=unit)


def _mail_of(prompt: on.Prompt) -> Mapping[str, Any]:
    """Return the part of a message's data that names the mail by which the prompt came.

    Empty if it did not come by mail.
    """
    return {"mail": prompt.mail} if prompt.mail else NO_DATA


def _step(state: State, event: TurnEvent, now: int, tools: Mapping[str, ToolTraits], words: bool) -> Step:
    """Return the step for an event, as `step` does, without steering messages.

    ``words`` says whether steering messages wait.
    """
    match event:
        case on.TakeWords():
            return _take_words(state, event, now, words)
        case on.Loaded():
            return Step(_loaded(state, event))
        case on.Prompt() if puts_aside(state, event):
            return Step(state, PutAside(event), caller=event.caller)
        case on.Prompt():
            return _prompt(state, event, now)
        case on.ReplyReceived() if _expects(state, event.request):
            return _reply(state, event, now, words and _goes_on(state))
        case on.Batched():
            return Step(replace(state, batched=event.request) if _expects(state, event.request) else state)
        case on.ReplyKept():
            return keep_reply(state, event, now) if _expects(state, event.request) else Step(state)
        case on.ServiceDue():
            return ask_again(state, now) if event.request == state.request else Step(state)
        case on.HooksLacking() if _expects(state, event.request):
            return await_hooks(state, event.hooks, event.until, now)
        case on.WindowFull() if _expects(state, event.request):
            return compaction.window_full(state, event, now, can_recall=RECALL in tools)
        case on.ReplyFailed() if _expects(state, event.request) and compaction.may_squeeze(state, event):
            return compaction.squeeze_refused(state, event, now, can_recall=RECALL in tools)
        case on.ReplyFailed() if _expects(state, event.request):
            return _failed(state, event, now)
        case on.ProgramMissing() if _expects(state, event.request):
            return await_program(state, event.program)
        case on.Exited() if _expects(state, event.request) and state.output is not None:
            return exit_typed(state, event.result, now)
        case on.Exited() if _expects(state, event.request):
            return depart(state, event.result, now)
        case on.SummaryReplied() if _awaits_summary(state, event.request):
            return compaction.take_summary(state, event, now)
        case on.ChildRead() if _merges(state, event.request):
            return merging.take_child(state, event, now)
        case on.SummaryReplied() if _merges(state, event.request):
            return merging.take_report(state, event, now)
        case on.SummaryFailed() if _awaits_side(state, event) and (seconds := _side_wait(state, event)) is not None:
            return await_service(state, event.service, seconds, now)
        case on.SummaryFailed() if _merges(state, event.request):
            return merging.report_failed(state, event, now)
        case on.SummaryFailed() if _awaits_summary(state, event.request) and _may_pass(event):
            return compaction.ask_next(state)
        case on.SummaryFailed() if event.refused is not None:
            return compaction.summary_refused(state, event, event.refused, now)
        case on.SummaryFailed() if _awaits_summary(state, event.request) and event.plan is not None:
            return compaction.ask_for_less(state, event)
        case on.SummaryFailed() if _awaits_summary(state, event.request):
            return compaction.fail_compaction(state, event.error, now)
        case on.PartWritten() if _awaits_summary(state, event.request):
            return compaction.part_written(state, event)
        case (
            on.WindowFull()
            | on.HooksLacking()
            | on.ReplyReceived()
            | on.ReplyFailed()
            | on.ProgramMissing()
            | on.Exited()
            | on.SummaryReplied()
            | on.SummaryFailed()
            | on.PartWritten()
            | on.ChildRead()
        ):
            return Step(state)
        case on.ToolFinished():
            return finished(state, event, now)
        case on.HooksAnswered(event=verdict.BEFORE_REQUEST):
            return take_request_verdict(state, event, now)
        case on.HooksAnswered(event=verdict.AFTER_REPLY):
            return take_reply_verdict(state, event, now, words and _goes_on(state))
        case on.HooksAnswered():
            return take_verdict(state, event, now)
        case on.CallRefused():
            return refuse(state, event.call, event.reason, now)
        case on.Continue():
            return continue_calls(state, event, now, tools, words and _goes_on(state))
        case on.Interrupt():
            return _interrupt(state, event, now)
        case on.Resume():
            return _resume(state, event, now, tools)
        case on.WaitsElsewhere():
            return _wait_elsewhere(state, event.paused)
        case on.Granted():
            return go_on(state, event.held)
        case on.Decide():
            return _decide(state, event, now)
        case on.ExitNow():
            return _exit(state, event, now)
        case on.StatusChanged():
            lifecycle = state.lifecycle._replace(status=event.status, ending=event.reason)
            return ask_again(replace(state, lifecycle=lifecycle), now)
        case on.Leave():
            return Step(state, Departure(Cause.TERMINATED, state.lifecycle.ending))
        case on.TurnPoisoned() if state.turn:
            error = StepChanged(event.reason) if event.is_changed else ProviderError(event.reason)
            return end_turn(state, now, error, (Kind.ERROR, storable(event.reason), NO_DATA))
        case on.TurnPoisoned():
            return Step(state)
        case on.LookAtMail():
            return _note_mail(state, event, now)
        case on.GetOutcome():
            return _outcome(state, event)
        case on.Fork():
            return fork_by_command(state, event, now, tools)
        case on.ForkTrials():
            return fork_trials(state, event, now)
        case on.Clear():
            return _clear(state, event, now)
        case on.Compact():
            return compaction.begin_compaction(state, event, now)
        case on.Uncompact():
            return compaction.take_off_summary(state, event, now)
        case on.MergeFiles():
            return Step(state, effects=(MergeTree(event.child, event.caller, event.way),))
        case on.Merge() if state.phase is Phase.WAITING_FOR_BUDGET:
            return merging.refuse_merge(state, event.caller)
        case on.Merge() if state.phase is Phase.WAITING_FOR_SERVICE:
            between = between_steps(state)
            return merging.begin_merge(between, event.child, event.how, event.positions, caller=event.caller)
        case on.Merge():
            return merging.begin_merge(state, event.child, event.how, event.positions, caller=event.caller)
        case on.SetMark():
            return write_messages(state, now, (Kind.MARK, event.label, NO_DATA), caller=event.caller)
        case on.Rewind():
            return _rewind(state, event, now)
        case on.Undo():
            return _undo(state, event, now)
        case on.Configure() if "effects" in event.settings and is_trial(state.view.settings):
            kept = BadInput(f"The setting effects of agent {state.called} is kept: fork it, to go on without it.")
            return Step(state, effects=(Answer(event.caller, kept),))
        case on.Configure() if lost := dropped_hooks(event.above, event.settings):
            return Step(state, effects=(Answer(event.caller, refusal_to_drop(state.called, lost)),))
        case on.Configure():
            step = write_messages(state, now, (Kind.CONFIGURE, "", event.settings), caller=event.caller)
            unit = step.unit
            return replace(step, unit=replace(unit, blobs=event.blobs)) if isinstance(unit, LogUnit) else step


def _expects(state: State, request: int) -> bool:
    return state.phase is Phase.WAITING_FOR_MODEL and state.request == request


def _awaits_summary(state: State, request: int) -> bool:
    return state.phase is Phase.COMPACTING and state.request == request


def _awaits_side(state: State, event: on.SummaryFailed) -> bool:
    return event.refused is None and (_awaits_summary(state, event.request) or _merges(state, event.request))


def _side_wait(state: State, event: on.SummaryFailed) -> float | None:
    return wait_after(state, event.error, _may_pass(event))


def _may_pass(event: on.SummaryFailed) -> bool:
    return event.error.unavailable and bool(event.next)


def _merges(state: State, request: int) -> bool:
    return state.phase is Phase.MERGING and state.request == request


def _loaded(state: State, event: on.Loaded) -> State:
    last = event.last
    if state.turn:
        why = event.cut_off or f"The turn of agent {state.called} was cut off"
        last = TurnInterrupted(f"{why}; resume() goes on with it.", state.uuid)
    phase = Phase.INTERRUPTED if state.turn else Phase.IDLE
    ending = event.ending if state.turn else None
    if isinstance(state.hold, Paused):
        phase = Phase.WAITING_FOR_BUDGET
    failed = 0 if state.turn else event.failed
    known = replace(state, head=event.head, view=event.view, calls=event.calls, last=last, notice=event.notice)
    known = replace(known, turn_labels=_labels_of_turn(state, event.labels), asked=event.asked, ending=ending)
    known = replace(known, kept=event.kept)
    return replace(known, phase=phase, failed=failed, output=event.output, misfits=event.misfits, focus=event.focus)


def puts_aside(state: State, prompt: on.Prompt) -> bool:
    """Return whether a prompt must be stored as mail: the agent is stopped, or busy and the caller wants it stored."""
    busy = state.phase not in (*BETWEEN_TURNS, Phase.UNLOADED)
    return not prompt.interrupted and (state.status is Status.STOPPED or (busy and prompt.stored is not None))


def _stored(prompt: on.Prompt) -> tuple[Answer, ...]:
    """Return the answer to a caller who waits only until the prompt is stored; empty without such a caller."""
    return () if prompt.stored is None else (Answer(prompt.stored, 0),)


def _prompt(state: State, event: on.Prompt, now: int) -> Step:
    first: tuple[PendingMessage, ...] = (INTERRUPTION,) if state.turn else ()
    if event.repeats:
        first = (*first, (Kind.REWIND, "", {"before": event.repeats}))
    data = {**_mail_of(event), **event.data}
    messages = messages_of(state.uuid, state.head, now, (*first, (Kind.USER, event.text, data)))
    request = state.request + 1
    after = advance(
        state,
        messages,
        turn=messages[-1].id,
        phase=Phase.WAITING_FOR_MODEL,
        request=request,
        steps=1,
        calls=(),
        callers=(event.caller,),
        failed=0,
        retries=0,
        service_waits=0,
        passed=0,
        output=event.data.get("output"),
        asked=event.mail if ASKER in event.data else 0,
        turn_labels=_labels_of_turn(state, event.data.get("labels", {})),
        misfits=(),
        squeezed=0,
        focus=None,
        hold=None,
        ending=None,
    )
    unit = LogUnit(state.uuid, messages, turn=messages[-1].id, prompt=event.mail, blobs=event.blobs, asks=True)
    if after.turn_labels:
        unit = replace(unit, labels=after.turn_labels)
    if state.turn:
        unit = replace(unit, asked=(state.asked,) if state.asked else (), cancels=True)
    effects: tuple[Effect, ...] = (*(answers_of_cut_off(state) if state.turn else ()), *_stored(event))
    if event.interrupted:
        return _end_at_once(after, unit, effects, event, now)
    return Step(after, unit, (*effects, RequestModel(request)), event.caller)


def _end_at_once(state: State, unit: LogUnit, effects: tuple[Effect, ...], event: on.Prompt, now: int) -> Step:
    """End the turn that a unit opens, in the same unit, before anything was asked of a model."""
    ended = end_turn(state, now, _interrupted(state), INTERRUPTION)
    assert isinstance(ended.unit, LogUnit)
    asked = (*unit.asked, *ended.unit.asked)
    unit = replace(unit, messages=(*unit.messages, *ended.unit.messages), turn=0, asks=False, asked=asked)
    return Step(ended.state, unit, (*effects, *ended.effects), event.caller)


def _labels_of_turn(state: State, labels: Mapping[str, str]) -> str:
    return joined(state.own_labels, labels) if labels else ""


def _goes_on(state: State) -> bool:
    return state.status is Status.RUNNING and may_ask(state)


def _take_words(state: State, event: on.TakeWords, now: int, words: bool) -> Step:
    """End the calls that steering messages interrupt, and ask the model again, even if the messages were withdrawn."""
    if state.phase is Phase.WAITING_FOR_BUDGET:
        return request_anew(state)
    if state.phase is Phase.RUNNING_TOOLS:
        return end_calls(state, now, event.at_once)
    if state.phase is not Phase.WAITING_FOR_MODEL:
        return Step(state)
    reason = "The request was cut off, since there is a word for the agent."
    cut = _cut_off(event.partial if words else "", event.spent, Kind.RETRY, reason)
    messages = messages_of(state.uuid, state.head, now, (cut,) if event.asked else ())
    request = state.request + 1
    after = advance(state, messages, request=request, retries=0, service_waits=0, hold=None)
    return Step(after, LogUnit(state.uuid, messages, asks=True), (RequestModel(request),))


def _cut_off(partial: str, spent: Spent | None, kind: Kind, reason: str = "") -> PendingMessage:
    """Return the message for a request that was cut off: a reply with the text so far, or a message of this kind.

    The message has the kind ``kind`` if no text was received.
    """
    if not partial:
        return kind, reason, spent_data(spent)
    reply = Reply(storable(partial), stop_reason="interrupted")
    return Kind.ASSISTANT, reply.text, {**reply_message_data(reply, ""), **spent_data(spent)}


def _reply(state: State, event: on.ReplyReceived, now: int, has_words: bool) -> Step:
    """Take a reply: begin its calls. Without calls it ends the turn, unless steering messages wait (``has_words``)."""
    reply = event.reply
    draft: PendingMessage = (Kind.ASSISTANT, reply.text, reply_message_data(reply, event.model))
    if not reply.tool_calls and state.output is not None:
        return take_reply(state, reply, draft, now, has_words)
    if not reply.tool_calls and has_words:
        return go_on_behind(replace(state, squeezed=0), now, draft)
    if not reply.tool_calls and event.hooks:
        return ask_about_reply(state, draft, event.hooks, now)
    if not reply.tool_calls:
        reply = replace(reply, output=None)
        return end_turn(state, now, reply, draft)
    messages = messages_of(state.uuid, state.head, now, (draft,))
    anew = {"calls": calls_of(messages[0]), "hold": None, "squeezed": 0, "focus": None, "service_waits": 0}
    after = advance(state, messages, phase=Phase.RUNNING_TOOLS, **anew)
    return Step(after, LogUnit(state.uuid, messages))


def _failed(state: State, event: on.ReplyFailed, now: int) -> Step:
    """Handle a failed request: repeat a reply that broke off, and ask the next model if the service is not available.

    If the service refuses the request for the moment, wait for it. Any other error ends the turn.
    """
    error = event.error
    seconds = wait_after(state, error, bool(error.unavailable and event.next))
    missing = {"missing": True} if isinstance(error, ProviderMissing) else NO_DATA
    data = {**({"partial": error.partial} if error.partial else NO_DATA), **missing, **spent_data(event.spent)}
    kept = NO_DATA if state.kept is None or not error.is_kept else kept_data(state.kept)
    failure = storable(str(error))
    if seconds is not None:
        return await_service(state, event.service, seconds, now, (Kind.RETRY, failure, {**data, **kept}))
    most = 0 if state.service_waits else state.view.settings.get("stream_retries", STREAM_RETRIES)
    again = error.broke_off and state.retries < most
    if not again and not (error.unavailable and event.next):
        return end_turn(state, now, error, (Kind.ERROR, failure, data))
    data = {**data, **kept} if again else {**data, "next": event.next}
    messages = messages_of(state.uuid, state.head, now, ((Kind.RETRY, failure, data),))
    request = state.request + 1
    retries, passed = (state.retries + 1, state.passed) if again else (0, state.passed + 1)
    anew = {"retries": retries, "service_waits": 0, "passed": passed, "hold": None}
    after = advance(state, messages, request=request, **anew)
    return Step(after, LogUnit(state.uuid, messages, asks=True), (RequestModel(request),))


def _interrupt(state: State, event: on.Interrupt, now: int) -> Step:
    """End the turn, because of an INT. The received text stays, as a reply with stop reason ``interrupted``."""
    aside = state.phase in BESIDE_STEPS
    meant = (bool(state.turn) or aside) and event.turn in (0, state.turn)
    effects: tuple[Effect, ...] = (Answer(event.caller, meant),)
    if not meant:
        return Step(state, effects=effects)
    if aside:
        what = "summary" if state.phase is Phase.COMPACTING else "merge"
        cut_off = TurnInterrupted(
            f"The {what} of agent {state.called} was interrupted; nothing was changed.", state.uuid
        )
        effects = (*compaction.answers_of_compaction(state, cut_off), *effects)
        state, event = compaction.state_behind(state), replace(event, partial="")  # what was received is no reply
    if not state.turn and isinstance(state.hold, Held):
        return Step(replace(state, hold=None), LogUnit(state.uuid, ()), effects, event.caller)
    if not state.turn:
        return Step(state, effects=effects)
    ended = end_turn(state, now, _interrupted(state), _cut_off(event.partial, event.spent, Kind.INTERRUPTED))
    return replace(ended, effects=(*ended.effects, *effects), caller=event.caller)


def _interrupted(state: State) -> TurnInterrupted:
    return TurnInterrupted(f"The turn of agent {state.called} was interrupted.", state.uuid)


def _resume(state: State, event: on.Resume, now: int, tools: Mapping[str, ToolTraits]) -> Step:
    """Go on with a turn that was cut off: with the calls of its last reply, or with a new request."""
    if state.failed:
        return _reopen(state, event)
    if state.phase is Phase.WAITING_FOR_SERVICE:
        asked = request_anew(state)
        return replace(asked, effects=(Answer(event.caller, True), *asked.effects), caller=event.caller)
    if state.phase not in TO_BE_RESUMED:
        return Step(state, effects=(Answer(event.caller, False),))
    if event.by is on.Resumption.HOST and _is_given_up(state):
        return _interrupt(state, on.Interrupt(event.caller), now)
    if event.program:
        return replace(await_program(state, event.program), effects=(Answer(event.caller, True),))
    calls, lost = settle_cut_off(state.calls, tools)
    questions = (AskApproval(state.request, call.id) for call in asking(calls))
    waiting = (BeginWait(state.request, call.id) for call in waits(calls))
    effects: tuple[Effect, ...] = (Answer(event.caller, True), *questions, *waiting)
    going_on = replace(state, phase=Phase.RUNNING_TOOLS, calls=calls)
    if not calls and state.ending is None:
        asked = request_model(state)
        step = replace(asked, effects=(*effects, *asked.effects), caller=event.caller)
    elif lost:
        step = replace(lose(going_on, lost, now), effects=effects, caller=event.caller)
    elif event.by is on.Resumption.SUPERVISOR:
        return Step(going_on, effects=effects)
    else:
        rests = at_rest(calls) and bool(asking(calls) or waits(calls))
        step = Step(going_on, LogUnit(state.uuid, (), rests=rests), effects, event.caller)
    if event.by is on.Resumption.SUPERVISOR or not isinstance(step.unit, LogUnit):
        return step
    return replace(step, unit=replace(step.unit, resumed_at=state.head))


def _is_given_up(state: State) -> bool:
    """Return whether a cut-off turn of the agent is not resumed, because the restart type is temporary.

    Trials are an exception, since their experiment resumes their turns.
    """
    return state.lifecycle.restart == RestartType.TEMPORARY and not is_trial(state.view.settings)


def _reopen(state: State, event: on.Resume) -> Step:
    """Open the turn that ended with an error again, as it is in the log, and send a new request."""
    asked = request_model(replace(state, turn=state.failed, failed=0, steps=0, passed=0, misfits=()))
    unit = LogUnit(state.uuid, (), turn=state.failed, asks=True)
    return Step(asked.state, unit, (Answer(event.caller, True), *asked.effects), event.caller)


def _wait_elsewhere(state: State, paused: Paused) -> Step:
    """Note the budget or limit for which the unchanged request waits now."""
    if not isinstance(state.hold, Paused):
        return Step(state)
    return Step(replace(state, hold=paused._replace(at=state.hold.at)))


def _note_mail(state: State, event: on.LookAtMail, now: int) -> Step:
    unit = MailNotice(state.uuid, state.head + 1, now, event.earlier)
    return Step(advance(state, (unit.message(),), notice=state.head + 1), unit)


def _decide(state: State, event: on.Decide, now: int) -> Step:
    """Approve or deny a call, also one of a turn that was cut off. The first decision counts."""
    asked = [call for call in asking(state.calls) if (call.reply, call.id) == (event.reply, event.call)]
    is_another = bool(asked and event.question) and event.question != question_id(state.uuid, asked[0].asked_at)
    if not asked or is_another:
        return Step(state, effects=(Answer(event.caller, False),))
    if event.approved and (asked[0].name == ASK_PERSON) != bool(event.answer):
        other = "A question of a model takes an answer, and a call that waits for approval takes none."
        return Step(state, effects=(Answer(event.caller, BadInput(other)),))
    if event.call_sha256 and event.call_sha256 != digest_of(asked[0].name, asked[0].input):
        other = "This call has other arguments than the one that was decided on, and still waits: look at it again."
        return Step(state, effects=(Answer(event.caller, BadInput(other)),))
    if (event.definition and event.definition != asked[0].definition) or event.build not in ("", asked[0].build):
        other = (
            f"The tool {asked[0].name}, or its build, has changed since the question that was decided on, and was "
            "asked about again: look at the new question."
        )
        return Step(state, effects=(Answer(event.caller, BadInput(other)),))
    return decide_call(state, event, now)


def _exit(state: State, event: on.ExitNow, now: int) -> Step:
    step = depart(state, event.result, now)
    return replace(step, effects=(*step.effects, Answer(event.caller, None)), caller=event.caller)


def _outcome(state: State, event: on.GetOutcome) -> Step:
    if state.phase in WORKING and state.turn:
        return Step(replace(state, callers=(*state.callers, event.caller)))
    never = NoTurn(f"Agent {state.called} has had no turn of its own yet; prompt it first.", state.uuid)
    return Step(state, effects=(Answer(event.caller, state.last or never),))


def _clear(state: State, event: on.Clear, now: int) -> Step:
    """Write ``clear``, and in the same unit the settings in force, which it would empty.

    This closes a turn that was cut off.
    """
    drafts: list[PendingMessage] = [(Kind.CLEAR, "", NO_DATA)]
    if state.view.settings:
        drafts.append((Kind.CONFIGURE, "", dict(state.view.settings)))
    return _anew(close_and_write(state, now, event.caller, *drafts))


def _rewind(state: State, event: on.Rewind, now: int) -> Step:
    mark = state.view.find_mark(event.label)
    if mark is None:
        labels = ", ".join(repr(known.label) for known in state.view.all_marks()) or "none"
        wanted = "a mark" if event.label is None else f"a mark {event.label!r}"
        error = MarkNotFound(
            f"Expected {wanted} to rewind to; marks in force: {labels}. Set one with mark().", state.uuid
        )
        return Step(state, effects=(Answer(event.caller, error),))
    return _anew(close_and_write(state, now, event.caller, (Kind.REWIND, mark.label, {"mark": mark.id})))


def _undo(state: State, event: on.Undo, now: int) -> Step:
    if not event.prompt:
        nothing = NoTurn(f"There is no prompt in the history of agent {state.called}, so nothing to undo.", state.uuid)
        return Step(state, effects=(Answer(event.caller, nothing),))
    return _anew(close_and_write(state, now, event.caller, (Kind.REWIND, "", {"before": event.prompt})))


def _anew(step: Step) -> Step:
    """Return the step with `State.notice` and `State.failed` reset.

    The model may not see the notice or the failed turn any more.
    """
    return replace(step, state=replace(step.state, notice=0, failed=0))


def _repeats(text: str, turn: Sequence[Message]) -> bool:
    """Whether a prompt repeats that of a turn which failed or was cut off without a reply. Models see it once."""
    replied = any(message.kind in (Kind.ASSISTANT, Kind.TOOL_RESULT, Kind.MARK, Kind.STEER) for message in turn)
    return not replied and turn[0].kind == Kind.USER and turn[0].content == text


def failed_turn(newest_first: Iterable[Message]) -> int:
    """Return the position of the prompt whose turn has failed (`State.failed`); 0 for none.

    ``newest_first``: the agent's own messages.
    """
    failed = False
    later: Message | None = None
    earliest: Message | None = None
    for message in newest_first:
        later, earliest = earliest, message
        match message.kind:
            case Kind.ERROR:
                failed = True
            case Kind.FORK if failed and "go" in message.data:  # a child whose first turn was opened by its birth
                return int(message.id)
            case Kind.USER if "from" in message.data:  # a copy with which that turn has begun
                pass
            case Kind.USER if failed:
                return int(message.id)
            case Kind.USER | Kind.ASSISTANT | Kind.TOOL_RESULT | Kind.INTERRUPTED | Kind.CLEAR | Kind.REWIND:
                if not failed:
                    return 0
    # A child that a call has forked: its first turn was opened by the result of that call.
    return later.id if failed and later is not None and later.kind == Kind.TOOL_RESULT else 0


def notice_of(newest_first: Iterable[Message]) -> int:
    """Return the position of the latest notice of mail (`State.notice`); 0 for none.

    ``newest_first``: the agent's own messages.
    """
    for message in newest_first:
        if message.kind == Kind.MAIL:
            position: int = message.id
            return position
        looked = message.kind == Kind.TOOL_RESULT and message.data.get("name") in LOOKS
        if message.kind in (Kind.CLEAR, Kind.REWIND) or (looked and not message.data.get("is_error")):
            return 0
    return 0
