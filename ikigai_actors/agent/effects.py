"""The effects of one agent's committed steps: those that wait to be performed, and those in flight.

The agent's actor adds the effects of a step once its unit is committed, and performs them one by one. Model requests,
tools and waits run elsewhere; each posts its outcome to the agent's inbox. No effect leaves the process while the host
may have lost its lease: it is postponed until the host may act again. The same holds when the agent is about to move:
the other host begins the effects that are postponed here.
"""

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from ikigai_actors.actors.futures import Future
from ikigai_actors.actors.inbox import Inbox
from ikigai_actors.agent.assembly import conversation_in_words, conversation_of, passage_of, shared_blocks
from ikigai_actors.agent.batched import BatchedProvider, answered_position
from ikigai_actors.agent.blob_cache import RequestBlobs
from ikigai_actors.agent.builtin_calls.naming import OUTSIDE
from ikigai_actors.agent.builtin_calls.programs import NEVER
from ikigai_actors.agent.builtin_calls.wait import waited_to_model
from ikigai_actors.agent.costs import usual_output
from ikigai_actors.agent.hooks import FilteredResult, FilteredRun, HookFailure, HookQuestion
from ikigai_actors.agent.jobs import Crash, ModelAnswer, ModelRequest, Permit, ToolRun, provider_failed
from ikigai_actors.agent.messages import Crashed, Wake
from ikigai_actors.agent.runtime import Runtime
from ikigai_actors.agent.sizes import fit_of, fixed_tokens, puts_off, report_tokens, request_tokens
from ikigai_actors.agent.statistics import Tally
from ikigai_actors.agent.subscriptions import HookFailed, Streamed, WindowNearlyFull
from ikigai_actors.agent.toolbox import Offer, finds, gone_from
from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.calls import Call, pending
from ikigai_actors.agent.turn.compaction import answer_tokens
from ikigai_actors.agent.turn.found_tools import found_in
from ikigai_actors.agent.turn.hook_waits import waited_until
from ikigai_actors.agent.turn.hooked import begins_with, is_hooked, rounds_in
from ikigai_actors.agent.turn.merging import asked_agent, talk_behind
from ikigai_actors.agent.turn.record import has_own_files
from ikigai_actors.agent.turn.request import assemble
from ikigai_actors.agent.turn.skills import loaded_skills
from ikigai_actors.agent.turn.state import (
    WORKING,
    Answer,
    AskApproval,
    AskHooks,
    AwaitService,
    BeginWait,
    Effect,
    GiveUpReply,
    MergeTree,
    PlanPart,
    RequestModel,
    RunTool,
    Spawn,
    State,
    Summarise,
)
from ikigai_actors.agent.waits import Wait, Waiter, WaitResult, WaitResults
from ikigai_actors.errors import IkigaiError, ProviderError, ProviderMissing
from ikigai_actors.frozen import replace
from ikigai_actors.providers import too_long
from ikigai_actors.providers.attachment_limits import AttachmentLimits
from ikigai_actors.providers.base import CUT_BY_BUDGET, Delta, Exit, Provider, Reply, Request, Spent
from ikigai_actors.providers.batches import batches_of
from ikigai_actors.providers.stand_in import other_writer
from ikigai_actors.providers.windows import learned_window
from ikigai_actors.records.agents.words import called
from ikigai_actors.records.budgets.amounts import Held
from ikigai_actors.records.log.log import Log, NotHeld
from ikigai_actors.records.log.log_unit import Birth
from ikigai_actors.records.mail.asked import AskedTurn
from ikigai_actors.records.messages.acts import program_of
from ikigai_actors.records.messages.kept import KeptRequest
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.outputs import expected_in
from ikigai_actors.records.messages.settings import URGENCIES, complaint, is_trial
from ikigai_actors.records.questions.waiting import ASK_PERSON
from ikigai_actors.text import storable
from ikigai_actors.tools.effect_keys import CurrentCall, effect_key
from ikigai_actors.tools.function import Result, Tool
from ikigai_actors.tools.hooks.function import Hook
from ikigai_actors.tools.hooks.verdict import (
    AFTER_CALL,
    AFTER_REPLY,
    BEFORE_REQUEST,
    ON_EXIT,
    Hooked,
    HookedCall,
    HookedExit,
    HookedReply,
    HookedRequest,
    HookOutcome,
)
from ikigai_actors.tools.rules.rule import Rules
from ikigai_actors.tools.skills.acting import acting_skills

OUTWARD = (RequestModel, Summarise, RunTool, AskApproval, AskHooks)
"""The types of effects that do something outside of the process."""
_LACKING = "the process that runs the agent does not have that hook; start it with hooks=[...]"


class _Chosen(NamedTuple):
    """The model chosen for a request, and everything that it is sent besides the history."""

    provider: Provider
    own_code: bool
    """Whether the agent's own code answers."""
    name: str
    """``provider:model``."""
    following: str
    """The next of the agent's models, if this one is not available; empty for none."""
    settings: Mapping[str, Any]
    offer: Offer
    """The tools of the request."""
    gone: frozenset[str] | None
    """The tools to which no result may refer; None where results refer to none."""
    is_typed: bool
    """Whether the turn must give a value, by the last of the tools."""
    cut_by_budget: bool
    """`Request.cut_by_budget`."""
    window: int
    """The size of the model's window, in tokens; 0 if unknown."""
    limits: AttachmentLimits | None
    """The attachments that its service takes; None when they are not known."""

    @property
    def fixed(self) -> int:
        """Return the approximate number of tokens that are sent besides the conversation."""
        return fixed_tokens(self.settings, self.offer.read)

    @property
    def service(self) -> str:
        return self.name.partition(":")[0]


class Effects:
    """The effects of one agent that wait or are in flight.

    Only the agent's actor calls these methods, except that any thread may read `is_empty`.
    """

    __slots__ = (
        "_crash",
        "_finished",
        "_inbox",
        "_joined",
        "_name",
        "_permit",
        "_postponed",
        "_questions",
        "_request",
        "_runs",
        "_runtime",
        "_spent",
        "_tally",
        "_uuid",
        "_warned",
        "waiting",
    )

    def __init__(self, runtime: Runtime, inbox: Inbox, uuid: str, name: str | None, tally: Tally) -> None:
        """Begin without effects.

        Args:
            runtime: the parts of the system that perform effects.
            inbox: gets the outcomes, as urgent messages.
            name: the agent's name, for requests to its model.
            tally: the agent's counters, which instruments get.
        """
        self._runtime, self._inbox, self._uuid, self._name, self._tally = runtime, inbox, uuid, name, tally
        self.waiting: list[Effect] = []
        """The effects that wait to be performed."""
        self._postponed: tuple[Effect, ...] = ()
        self._permit = Permit()
        self._request: ModelRequest | None = None
        self._joined: RequestModel | None = None  # the request in flight, where its service keeps the answer
        self._crash: Crashed | None = None
        self._spent: Spent | None = None
        self._warned = 0  # the turn in which people got a notice that the window is nearly full
        self._runs: dict[str, ToolRun | FilteredRun | Waiter] | None = None
        self._questions: list[HookQuestion] = []
        self._finished: list[Callable[[], object]] | None = None  # once it begins nothing more: who waits for the end

    @property
    def is_empty(self) -> bool:
        """Whether no effect waits to be performed. Postponed effects and those in flight do not count."""
        return not self.waiting

    @property
    def is_asking(self) -> bool:
        """Whether a request to a model is in flight."""
        return self._request is not None

    @property
    def only_wait(self) -> bool:
        """Whether the agent only waits in a call of ``wait``: no other effect is in flight, due or postponed."""
        if self.waiting or self._postponed or self._request or self._questions or self._finished is not None:
            return False
        return all(isinstance(run, Waiter) for run in (self._runs or {}).values())

    def rename(self, name: str | None) -> None:
        """Use another name from the next model request on. Thread-safe."""
        self._name = name

    def revoke(self) -> None:
        """Begin nothing outside the process any more, since the agent is dead. Thread-safe; never waits."""
        self._permit.ended = True

    def add(self, effects: Iterable[Effect]) -> None:
        """Append the effects of a step that is committed, or that needed no commit."""
        self.waiting.extend(effects)

    def next(self) -> Effect:
        """Take the first effect that waits. Raises `IndexError` when there is none."""
        return self.waiting.pop(0)

    def finish(self, finished: Callable[[], object]) -> None:
        """Begin no effects outside the process from now on.

        ``finished`` is called once no model request and no tool runs.
        """
        self._finished = [*(self._finished or ()), finished]
        if self._request is not None and (joined := self._joined) is not None:
            self.cancel()  # it may take long, and nothing is lost: its answer is for whoever goes on with the turn
            self._postponed = (*self._postponed, joined)
        self._note_end()

    def give_up(self, kept: KeptRequest) -> None:
        """Ask a service to end a reply that nobody reads any more. Never waits; errors are only logged.

        If the process is killed before that, the reply is paid for although nobody reads it.
        """
        try:
            [chosen, *_] = self._runtime.providers.choose(kept.model)
        except IkigaiError:  # the provider is gone, and with it the key
            return
        self._runtime.executor.give_up(chosen.provider, kept.reply.id)

    def retry_postponed(self) -> None:
        """Put the postponed effects before all others: the host may act again."""
        self.waiting, self._postponed = [*self._postponed, *self.waiting], ()

    def perform(self, effect: Effect, state: State, log: Log | None) -> None:
        """Perform an effect, or postpone it. Never waits.

        Args:
            effect: any effect but `ComeBack`, which the actor performs itself, because it ends the actor.
            state: the agent's state. An effect for an earlier request than the state's is dropped, because the turn was
                interrupted after the commit.
            log: the agent's log; None while it is not in memory. In a turn it is always in memory.
        """
        if isinstance(effect, OUTWARD) and self._permit.ended:
            return
        if isinstance(effect, OUTWARD) and (self._finished is not None or not self._runtime.host.may_act(self._wake)):
            self._postponed = (*self._postponed, effect)
            return
        match effect:
            case Answer():
                effect.caller.settle(effect.value)
            case MergeTree():
                self._runtime.executor.merge_files(self._uuid, effect.child, effect.way, effect.caller.settle)
            case Spawn():
                self._spawn(effect.birth, log)
            case GiveUpReply():
                self.give_up(effect.kept)
            case AwaitService() if effect.request == state.request:
                if state.lacks:
                    self._runtime.processes.lacks(self._uuid)
                self._runtime.processes.await_service(self._uuid, effect.at)
            case AwaitService():
                pass
            case RequestModel() | Summarise() | RunTool() | AskApproval() | AskHooks() | BeginWait() if not _is_due(
                effect, state
            ):
                pass
            case Summarise():
                assert log is not None
                self._summarise(state, log)
            case PlanPart():
                self._inbox.put_urgent(on.PartWritten(effect.request))
            case RequestModel():
                assert log is not None
                self._ask_model(state, log)
            case RunTool():
                own_files = has_own_files(state.view.settings.get("effects") or {})
                call, rules = _call(state, effect.call), state.rules or ()
                place = (state.turn, call.reply, state.calls.index(call))
                loaded = [] if log is None else loaded_skills(state.view.settings, log, state.head)
                tool = self._runtime.toolbox.tool_of(state.view.settings, call.name)
                own_code = self._runtime.toolbox.is_program(state.view.settings)
                filters = () if own_code else self._runtime.hooks.filters(state.view.settings, call.name)
                self._run_tool(tool, effect.request, call, place, own_files, rules, loaded, filters)
            case BeginWait():
                assert log is not None
                self._wait(effect.request, _call(state, effect.call), log)
            case AskApproval():
                self._ask_approval(_call(state, effect.call))
            case AskHooks() if effect.event == AFTER_REPLY:
                assert log is not None
                self._ask_about_reply(effect, state, log)
            case AskHooks():
                assert log is not None
                self._ask_hooks(effect, _call(state, effect.call), log, state.view.settings)

    def abandon(self, state: State, log: Log | None) -> None:
        """Cancel all effects in flight, and drop those that wait, except answers, births and merges of files."""
        waiting, self.waiting, self._postponed = self.waiting, [], ()
        try:
            for effect in waiting:
                if isinstance(effect, Answer | Spawn | MergeTree):
                    self.perform(effect, state, log)
        finally:  # callers get their answers, also where an effect before them failed
            for effect in waiting:
                if isinstance(effect, Answer):
                    effect.caller.settle(effect.value)
        self.cancel()

    def cancel(self) -> tuple[str, Spent | None]:
        """Cancel all effects in flight.

        Returns the received part of the model's reply, and the tokens that it has cost; without a request in flight, an
        empty text and None.
        """
        request, self._request = self._request, None
        runs, self._runs = self._runs, None
        for question in self._questions:
            question.cancel()
        self._questions = []
        for call, run in (runs or {}).items():
            run.cancel()
            self._ended(call, run, None)
        self._note_end()
        if request is None:
            return "", None
        request.cancel()
        for hook in self._runtime.instruments.request_ends:
            hook(self._tally, None, self._spent)
        return request.text, self._spent

    def end_waits(self) -> None:
        """Cancel the ``wait`` call in progress. Other calls of the reply go on."""
        for call, run in tuple((self._runs or {}).items()):
            if isinstance(run, Waiter) and self._runs is not None:
                del self._runs[call]
                run.cancel()
                self._ended(call, run, None)

    def replied(self, answer: Reply | Exception | None, spent: Spent | None) -> None:
        """Note that no model request is in flight any more, and pass the outcome and the cost to the instruments.

        ``answer`` is the reply or the error; None for a request that was cancelled.
        """
        self._request = None
        for hook in self._runtime.instruments.request_ends:
            hook(self._tally, answer, spent)
        self._note_end()

    def tool_finished(self, finished: on.ToolFinished) -> None:
        """Note that a call's tool or wait has ended, and is not in flight any more."""
        if self._runs is not None:
            if (run := self._runs.pop(finished.call, None)) is not None:
                self._ended(finished.call, run, finished.content)
            self._note_end()

    def hooks_answered(self) -> None:
        """Note that the hooks have answered, so that no question to them is in flight."""
        self._questions = [question for question in self._questions if not question.over]

    def _ended(self, call: str, run: ToolRun | FilteredRun | Waiter, result: str | None) -> None:
        if not isinstance(run, Waiter):
            for hook in self._runtime.instruments.tool_ends:
                hook(self._tally, run.tool, call, result)
        else:
            self._runtime.processes.ends_wait(self._uuid)
            for waited in self._runtime.instruments.wait_ends:
                waited(self._tally, call)

    def crash(self, request: int) -> Exception | None:
        """Return the error by which the agent's own code failed to answer this request.

        None if the code did not fail, or was cancelled. An actor that ends calls this, since the message about the
        failure may still be in its inbox.
        """
        crash = self._crash
        return crash.error if crash is not None and crash.request == request and self.is_asking else None

    def _note_end(self) -> None:
        """Call the functions passed to `finish`, if no request and no tool runs. A ``wait`` does not count."""
        runs = (self._runs or {}).values()
        if self._finished and self._request is None and all(isinstance(run, Waiter) for run in runs):
            finished, self._finished = self._finished, []
            for report in finished:
                report()

    def _ask_model(self, state: State, log: Log) -> None:
        """Send the history up to the state's head to the model that the settings name."""
        request = state.request
        if program := self.missing_program(state, log):
            self._runtime.processes.lacks(self._uuid)
            self._inbox.put_urgent(on.ProgramMissing(request, program))
            return
        if self._ask_before(state, log):
            return
        try:
            chosen = self._choose(state, log, state.head)
        except ProviderError as error:
            self._inbox.put_urgent(on.ReplyFailed(request, error))
            return
        if chosen.window and (full := self._window_full(chosen, state, log)) is not None:
            self._inbox.put_urgent(full)
            return
        conversation = conversation_of(log, state.head, chosen.name, chosen.limits, gone=chosen.gone)
        blobs = RequestBlobs(self._runtime.blobs, conversation.blobs)
        question = assemble(
            conversation,
            chosen.settings,
            agent=self._uuid,
            name=self._name,
            model=chosen.name,
            tools=chosen.offer.sent,
            blobs=blobs,
            shared=shared_blocks(log, state.head, chosen.name, chosen.limits, conversation.hidden, chosen.gone),
            output=chosen.offer.sent[-1] if chosen.is_typed else None,
            once=held_output(state) is not None,
            cut_by_budget=chosen.cut_by_budget,
            kept=state.kept.reply if state.kept is not None and state.kept.model == chosen.name else None,
        )
        inbox, publisher, uuid, head = self._inbox, self._runtime.publisher, self._uuid, state.head

        def on_reply(answer: ModelAnswer) -> None:
            match answer:
                case Reply(stop_reason=too_long.WINDOW_EXCEEDED):
                    text = f"The reply was cut, since the model's window is full ({too_long.WINDOW_EXCEEDED})."
                    spent = self._spent if answer.usage is None else Spent(answer.usage, answer.model)
                    inbox.put_urgent(on.ReplyFailed(request, ProviderError(text, answer.text), spent))
                case Reply():
                    inbox.put_urgent(on.ReplyReceived(request, _with_limit(answer, chosen.cut_by_budget), chosen.name))
                case ProviderError():
                    self._learn_window(chosen, answer, log, head)
                    failed = on.ReplyFailed(request, answer, self._spent, chosen.following, service=chosen.service)
                    inbox.put_urgent(failed)
                case Exit():
                    inbox.put_urgent(on.Exited(request, storable(answer.result)))
                case Crash():
                    self._crash = Crashed(request, answer.error)
                    inbox.put_urgent(self._crash)

        def heard(delta: Delta) -> None:
            if delta.kept is not None:
                self._joined = RequestModel(request)
                inbox.put_urgent(on.ReplyKept(request, KeptRequest(chosen.name, delta.kept)))
                return
            publisher.publish(Streamed(uuid, delta.text, delta.kind, head))

        batched = self._batched(chosen, log, head)
        if batched is not None:
            inbox.put_urgent(on.Batched(request))
        self._joined = RequestModel(request) if batched is not None or question.kept is not None else None
        self._send(chosen, question, blobs, heard, on_reply, self._runs_at(state.turn, log), head, batched)

    def _batched(self, chosen: "_Chosen", log: Log, head: int) -> BatchedProvider | None:
        """Return the provider that asks through batches; None if the model is asked directly."""
        patience = URGENCIES.get(chosen.settings.get("urgency") or "now", 0)
        if not patience or chosen.own_code:
            return None
        try:
            service = batches_of(chosen.provider)
        except Exception:  # other people's code; the request itself reports what is wrong
            return None
        if service is None:
            return None
        gate = self._runtime.gates.before(chosen.service)
        at = answered_position(log, head)
        return BatchedProvider(chosen.provider, service, self._runtime.batches, chosen.name, at, patience, gate)

    def _window_full(self, chosen: "_Chosen", state: State, log: Log) -> on.WindowFull | None:
        """Return the event for a request that is too long to be sent; None if the request may be sent.

        Subscribers get a warning, once a turn, if the request is sent and nearly fills the window. If the system prompt
        and the tools are the cause, they get it once for each model.
        """
        fixed = chosen.fixed
        fit = fit_of(log, state.head, chosen.name, chosen.settings, fixed, chosen.window)
        own_code = chosen.own_code and not chosen.settings.get("compact_model")
        if chosen.settings.get("compact") != "off" and not own_code and puts_off(fit, state.squeezed, state.left_at):
            return on.WindowFull(state.request, fit.tokens, fit.near, fit.is_full, fit.readable)
        is_warning = fit.is_to_be_told and self._warned != state.turn
        if self._runtime.providers.note_cramped(chosen.name) if fit.is_cramped else is_warning:
            self._warned = state.turn
            name = called(self._uuid, self._name)
            self._runtime.publisher.publish(WindowNearlyFull(self._uuid, name, fit.tokens, fit.window, fixed))
        return None

    def _learn_window(self, chosen: "_Chosen", error: ProviderError, log: Log, head: int) -> None:
        """Remember the window's size that a refusal reports. Runs on any thread."""
        if (refused := too_long.too_long(str(error))) is not None:
            size = 0 if refused.window or refused.tokens else request_tokens(log, head, chosen.name)
            self._runtime.providers.learn_window(chosen.name, learned_window(refused, size))

    def _summarise(self, state: State, log: Log) -> None:
        """Send a history and the instruction for a summary to its agent's model.

        The pieces of the text are not published.

        The history is the agent's own, or that of the agent which it merges.
        """
        uuid, name, end, runs = self._uuid, self._name, log.head, self._runs_at(state.turn, log)
        if state.compaction is not None:
            end = state.compaction.plan.upto
        elif state.merging is not None and state.merging.source is not None:
            end, name = state.merging.source.head, state.merging.source.name
            state = asked_agent(state, log.view(end))
            uuid = state.uuid
        inbox, request, saw = self._inbox, state.request, end
        try:
            chosen = self._choose(state, log, end, summary=True)
            if chosen.own_code:
                raise ProviderError(
                    f"Agent {called(uuid, name)} is answered by code, {chosen.name}, which writes no summary. Set "
                    "compact_model to the model that is to write it."
                )
        except ProviderError as error:
            inbox.put_urgent(on.SummaryFailed(request, error))
            return
        fixed = chosen.fixed
        if state.compaction is not None and not state.compaction.plan.is_part and chosen.window:
            fit = fit_of(log, end, chosen.name, chosen.settings, fixed, chosen.window)
            if fit.readable < 1:  # it does not leave: some services cut silently
                too_much = too_long.refusal(fit.tokens, chosen.window)
                inbox.put_urgent(on.SummaryFailed(request, too_much, readable=fit.readable))
                return
        wanted, held = answer_tokens(chosen.settings), held_output(state)
        part = state.merging.part if state.merging is not None else None
        if state.merging is not None and chosen.window:
            shown = None if part is None else part.messages
            size = report_tokens(log, end, chosen.name, fixed, shown, talk_behind(state))
            if size + min(wanted, chosen.window // 4) > chosen.window:  # it does not leave: some services cut silently
                inbox.put_urgent(on.SummaryFailed(request, too_long.refusal(size, chosen.window)))
                return
        most = wanted if held is None else min(wanted, held)
        cut = most < wanted
        # The list that a turn goes on with: another agent's models and those for summaries alone are none of it.
        following = "" if state.merging is not None or chosen.settings.get("compact_model") else chosen.following
        if part is None:
            talk = talk_behind(state)
            conversation = conversation_in_words(log, state.head, chosen.name, chosen.limits, talk, end, chosen.gone)
        else:
            conversation = passage_of((*part.messages, *talk_behind(state)), chosen.name)
        blobs = RequestBlobs(self._runtime.blobs, conversation.blobs)
        question = assemble(
            conversation,
            {**chosen.settings, "max_tokens": most, "background": False},
            agent=uuid,
            name=name,
            model=chosen.name,
            tools=chosen.offer.sent,
            blobs=blobs,
            once=held_output(state) is not None,
            cut_by_budget=cut,
        )

        def on_reply(answer: ModelAnswer) -> None:
            match answer:
                case Reply():
                    inbox.put_urgent(on.SummaryReplied(request, _with_limit(answer, cut), chosen.name, saw, name))
                case ProviderError():
                    failed = on.SummaryFailed(request, answer, self._spent, next=following, service=chosen.service)
                    inbox.put_urgent(failed)
                case Exit() | Crash():
                    error = ProviderError(f"{chosen.name} gave no summary. Nothing was changed.")
                    inbox.put_urgent(on.SummaryFailed(request, error, self._spent))

        self._joined = None
        self._send(chosen, question, blobs, lambda delta: None, on_reply, runs)

    def missing_program(self, state: State, log: Log) -> str:
        """Return the name of the program that is an agent's model, if this process does not have it; else empty.

        A name counts as that of a program if a program made the latest reply in the log.
        """
        model = state.view.settings.get("model")
        if not isinstance(model, str) or self._runtime.providers.knows(model):
            return ""
        with contextlib.suppress(NotHeld):
            replies = (message for message in log.newest_first() if message.kind == Kind.ASSISTANT)
            if (latest := next(replies, None)) is not None and program_of(latest) == model:
                return model
        return ""

    def _choose(self, state: State, log: Log, end: int, summary: bool = False) -> "_Chosen":
        """Return the model, and all of the request except the history, for a reply or a summary.

        Raises `ProviderError`.
        """
        settings = {**self._runtime.providers.settings, **state.view.settings}
        most = held_output(state)
        try:
            if (wrong := complaint(settings)) is not None:
                raise ProviderError(wrong)
            if self._runtime.providers.only_stands_in(settings, summary):
                self._check_stand_in(log, end, settings)
            models = self._runtime.providers.asked(settings, summary)
            chosen, *others = models[min(state.passed, len(models) - 1) :]
            wanted = None if state.output is None else expected_in({"output": state.output})
            by_reference = chosen.refers_to_tools
            known_tools = found_in(log, state.head) if finds(settings, by_reference) else None
            offer = self._runtime.toolbox.offer(settings, known_tools, by_reference, wanted)
            gone = gone_from(offer, known_tools) if known_tools is not None and by_reference else None
            following = str(others[0]) if others else ""
            own_code = chosen.own_code
            if most == 0 and not own_code:
                raise ProviderError(
                    f"What a request to {chosen} may cost could not be determined, and the budget is strict: its "
                    "provider's attributes counts and max_tokens must not fail. /resume, or resume(), asks again."
                )
            cut = most is not None and most < usual_output(settings, chosen.provider)
            sent = settings if most is None else {**settings, "max_tokens": most}
            window = settings.get("context_window") or self._runtime.providers.window_of(chosen)
            is_typed, limits = wanted is not None, chosen.attachments
            return _Chosen(
                chosen.provider, own_code, str(chosen), following, sent, offer, gone, is_typed, cut, window, limits
            )
        except ProviderError:
            raise
        except BaseException as error:  # other people's code: a provider's name, a tool's description
            raise provider_failed(error) from error

    def _check_stand_in(self, log: Log, end: int, settings: Mapping[str, Any]) -> None:
        """Raise `ProviderMissing` if the offline provider would answer although nobody has chosen it.

        If the history has no reply, the database decides. For a trial, the experiment has checked this already.
        """
        opened = (message for message in log.opening(end) if message is not None)
        models = (str(message.data.get("model", "")) for message in chain(log.spoken(end), opened))
        writers = [model for model in models if model]
        if writer := other_writer(writers):
            raise ProviderMissing(self._runtime.providers.why_silent(writer), free=True)
        if (writer := self._runtime.written_by) and not writers and settings.get("effects") is None:
            raise ProviderMissing(self._runtime.providers.why_silent(writer, "in this database"), free=True)

    def _send(
        self,
        chosen: "_Chosen",
        question: Request,
        blobs: RequestBlobs,
        heard: Callable[[Delta], object],
        on_reply: Callable[[ModelAnswer], None],
        runs: Callable[[], object],
        at: int = 0,
        batched: BatchedProvider | None = None,
    ) -> None:
        """Send a request, and record the tokens that it has cost so far. For ``at`` see `ModelRequest.at`.

        ``runs`` is called in the context in which the provider is asked.
        """
        for hook in self._runtime.instruments.request_begins:
            hook(self._tally, question)
        self._spent = None

        def on_delta(delta: Delta) -> None:
            if delta.spent is not None:
                self._spent = delta.spent
            else:
                for came in self._runtime.instruments.piece_comes if delta.kept is None else ():
                    came(self._tally, len(delta.text))
                heard(delta)

        self._request = self._runtime.executor.ask_model(
            chosen.provider if batched is None else batched,
            question,
            self._runtime.processes.handle(self._uuid),
            on_delta,
            on_reply,
            blobs.load if blobs.to_be_loaded else None,
            self._runtime.gates.before(chosen.service) if batched is None else None,
            at,
            chosen.own_code,
            runs,
            self._permit,
        )

    def _runs_at(self, turn: int, log: Log) -> Callable[[], object]:
        """Return a function that calls the instruments' ``request_runs`` with the turn and the request's number."""
        hooks = self._runtime.instruments.request_runs
        number = 0
        if hooks and turn:
            with contextlib.suppress(NotHeld):  # of a turn that is opened again: it may be long ago
                number = 1 + sum(message.counts_as_request for message in log.between(turn, log.head))
        place = (turn, number) if number else (0, 0)

        def runs() -> None:
            for hook in hooks:
                hook(self._tally, *place)

        return runs

    def _run_tool(
        self,
        tool: Tool,
        request: int,
        call: Call,
        place: tuple[int, int, int],
        own_files: bool,
        rules: Rules,
        skills: Sequence[Mapping[str, Any]],
        filters: Sequence[Hook] = (),
    ) -> None:
        """Run the tool of a call whose write-ahead record is committed."""
        for hook in self._runtime.instruments.tool_begins:
            hook(self._tally, call.name, call.id, call.input)
        inbox = self._inbox

        asks = self._runtime.toolbox.asks

        def on_result(result: Result) -> None:
            connect = result.connect if asks else None
            ended = on.ToolFinished(request, call.id, storable(result.content), result.is_error, result.attached)
            inbox.put_urgent(ended if connect is None else replace(ended, connect=connect))

        key = self._key_of(call)
        current = CurrentCall(key, call.attempt, self._uuid, call.id, call.reply, own_files, call.by_pattern)
        handle, executor = self._runtime.processes.handle(self._uuid), self._runtime.executor

        def runs() -> None:
            acting_skills.set(skills)
            for hook in self._runtime.instruments.tool_runs:
                hook(self._tally, *place)

        if not filters:
            self._keep(call, executor.run_tool(tool, call.input, handle, on_result, current, runs, rules, self._permit))
            return

        def on_filtered(end: FilteredResult) -> None:
            end = end if asks else end._replace(connect=None)
            inbox.put_urgent(on.ToolFinished(request, call.id, *end))

        asked = HookedCall(self._uuid, call.name, call.input, call.id)
        failed, permit = self._hook_failed, self._permit
        filtered = FilteredRun(executor, filters, asked, handle, current, on_filtered, failed, permit)
        self._keep(call, filtered)
        filtered.begins(executor.run_tool(tool, call.input, handle, filtered.filter, current, runs, rules, permit))

    def _wait(self, request: int, call: Call, log: Log) -> None:
        """Begin the wait of a call whose ``tool_call`` is committed.

        The agent gets the end of the wait as a message.
        """
        inbox = self._inbox
        begun = begun_call(log, call.id)
        named: list[tuple[str, str | None]] | None = begun.data.get("agents")
        known = None if named is None else tuple(dict.fromkeys(uuid for _, uuid in named if uuid is not None))

        def over(answers: WaitResults | IkigaiError) -> None:
            if isinstance(answers, IkigaiError):
                inbox.put_urgent(on.ToolFinished(request, call.id, str(answers), True))
                return
            outcomes = (
                {uuid or OUTSIDE: str(result) for uuid, result in answers.items()}
                if named is None
                else {called: str(answers[uuid] if uuid is not None else WaitResult.UNKNOWN) for called, uuid in named}
            )
            inbox.put_urgent(on.ToolFinished(request, call.id, waited_to_model(outcomes, named is not None), False))

        def ended(answer: str | IkigaiError) -> None:
            inbox.put_urgent(on.ToolFinished(request, call.id, str(answer), isinstance(answer, IkigaiError)))

        for hook in self._runtime.instruments.wait_begins:
            hook(self._tally, call.id)
        deadline = begun.data["deadline"]
        wait = Wait(self._uuid, known, deadline if deadline < NEVER else None, begun.created_at)
        if (turns := begun.data.get("turns")) is None:
            self._keep(call, self._runtime.waits.begin(wait, over))
        else:
            asked = [AskedTurn(*turn) for turn in turns]
            self._runtime.processes.begins_wait(self._uuid)
            self._keep(call, self._runtime.waits.begin_turns(wait, asked, begun.data["need"], ended))

    def _keep(self, call: Call, run: ToolRun | FilteredRun | Waiter) -> None:
        if self._runs is None:
            self._runs = {}
        self._runs[call.id] = run

    def _key_of(self, call: Call) -> str:
        return effect_key(self._uuid, call.reply, call.id)

    def _ask_hooks(self, effect: AskHooks, call: Call, log: Log, settings: Mapping[str, Any]) -> None:
        """Ask hooks about a call. The agent gets their verdict as a message."""
        inbox, result = self._inbox, None
        if effect.event == AFTER_CALL:
            result = next(
                message
                for message in log.newest_first()
                if message.kind == Kind.TOOL_RESULT and message.data.get("tool_use_id") == call.id
            )
        text, failed = (None, False) if result is None else (result.content, bool(result.data.get("is_error")))
        asked = HookedCall(self._uuid, call.name, call.input, call.id, text, failed)
        key = self._key_of(call)
        current = CurrentCall(key, call.attempt, self._uuid, call.id, call.reply)

        def done(outcome: HookOutcome) -> None:
            inbox.put_urgent(on.HooksAnswered(effect.request, call.id, effect.event, outcome))

        self._ask(self._runtime.hooks.named(settings, effect.hooks), asked, current, done)

    def _ask(
        self, hooks: Sequence[Hook], asked: Hooked, current: CurrentCall, done: Callable[[HookOutcome], object]
    ) -> None:
        handle, executor = self._runtime.processes.handle(self._uuid), self._runtime.executor
        failed, permit = self._hook_failed, self._permit
        self._questions.append(HookQuestion(executor, list(hooks), asked, handle, current, done, failed, permit))

    def _hook_failed(self, failure: HookFailure) -> None:
        hook, name = failure.hook, called(self._uuid, self._name)
        event = HookFailed(self._uuid, name, hook.name, hook.event, failure.reason, hook.denies_at_failure)
        self._runtime.publisher.publish(event)

    def _ask_before(self, state: State, log: Log) -> bool:
        """Ask hooks about the request that is due; return whether the request must wait for their verdict."""
        book, settings, request = self._runtime.hooks, state.view.settings, state.request
        if not (book.of(settings) or settings.get("hooks")) or self._runtime.toolbox.is_program(settings):
            return False
        hooks = book.before_requests(settings)
        missing = () if is_trial(settings) else book.missing(settings, BEFORE_REQUEST)
        if not (hooks or missing) or is_hooked(log.newest_first()):
            return False

        def done(outcome: HookOutcome) -> None:
            self._inbox.put_urgent(on.HooksAnswered(request, "", BEFORE_REQUEST, outcome))

        if missing:
            until = waited_until(log.since(state.turn))
            if 0 < until <= self._runtime.clock.now_ms():
                done(HookOutcome(decision="deny", by=", ".join(missing), reason=_LACKING))
            else:
                self._inbox.put_urgent(on.HooksLacking(request, missing, until))
            return True
        asked = HookedRequest(self._uuid, begins_with(log.newest_first()))
        self._ask(book.named(settings, hooks), asked, self._current_of(BEFORE_REQUEST, state.head), done)
        return True

    def _ask_about_reply(self, effect: AskHooks, state: State, log: Log) -> None:
        inbox, reply = self._inbox, state.ending
        assert reply is not None

        def done(outcome: HookOutcome) -> None:
            inbox.put_urgent(on.HooksAnswered(effect.request, "", AFTER_REPLY, outcome))

        asked = HookedReply(self._uuid, reply.content, rounds_in(log.since(state.turn)))
        hooks = self._runtime.hooks.named(state.view.settings, effect.hooks)
        self._ask(hooks, asked, self._current_of(AFTER_REPLY, reply.id), done)

    def tell_of_exit(self, settings: Mapping[str, Any], result: str) -> None:
        """Call the hooks for the exit of the agent, which is committed. The agent does not wait for them."""
        if hooks := self._runtime.hooks.of_exits(settings):
            handle, executor = self._runtime.processes.handle(self._uuid), self._runtime.executor
            asked, current = HookedExit(self._uuid, result), self._current_of(ON_EXIT, 0)
            HookQuestion(executor, list(hooks), asked, handle, current, lambda outcome: None, self._hook_failed)

    def _current_of(self, event: str, place: int) -> CurrentCall:
        """Return the `current_call` of a hook that runs for an event other than a tool call.

        The key of this call stays the same when a crash makes the hook run again.
        """
        return CurrentCall(effect_key(self._uuid, place, event), 0, self._uuid, "", place)

    def _ask_approval(self, call: Call) -> None:
        """Ask the program's approver about a call. Without one, a person decides in the shell."""
        approver = self._runtime.approver
        if approver is None or call.name == ASK_PERSON or call.connect is not None:
            if call.name == ASK_PERSON:
                self._runtime.processes.begins_wait(self._uuid)
            return
        inbox, asked = self._inbox, pending(self._uuid, call)

        def decided(decision: bool | str) -> None:
            reason = decision if isinstance(decision, str) else ""
            why = storable(reason)
            shown = (asked.sha256, "program", asked.definition, asked.build)
            inbox.put_urgent(on.Decide(call.reply, call.id, decision is True, why, "", Future(), *shown))

        self._runtime.executor.consult(lambda: approver(asked), self._runtime.processes.handle(self._uuid), decided)

    def _spawn(self, birth: Birth, log: Log | None) -> None:
        for message in birth.messages:
            self._runtime.publisher.publish(message)
        inherits = log is not None and birth.parent_uuid == log.agent_uuid
        parents = log.holder(birth.fork_message_id) if log is not None and inherits else None
        if parents is None:  # not read, not so far back, or another's: the child's is read when it needs it
            self._runtime.processes.spawn(birth, None)
        else:
            own = Log(birth.uuid, birth.fork_message_id, parents, birth.messages)
            kept = self._runtime.log_cache.keep(own) if own.shows(own.head) else None
            self._runtime.processes.spawn(birth, kept)

    def _wake(self) -> None:
        self._inbox.put_urgent(Wake())


def begun_call(log: Log, call: str) -> Message:
    """Return the ``tool_call`` message with which a call was begun."""
    return next(
        message
        for message in log.newest_first()
        if message.kind == Kind.TOOL_CALL and message.data["tool_use_id"] == call
    )


def held_output(state: State) -> int | None:
    """Return the most tokens that a strict budget has reserved for the reply; None if no budget is strict."""
    return state.hold.max_tokens if isinstance(state.hold, Held) else None


def _with_limit(reply: Reply, cut_by_budget: bool) -> Reply:
    """Return the reply, marked as cut if it has reached the limit that a strict budget had left."""
    return replace(reply, stop_reason=CUT_BY_BUDGET) if cut_by_budget and reply.stop_reason == "max_tokens" else reply


def _is_due(effect: RequestModel | Summarise | RunTool | AskApproval | AskHooks | BeginWait, state: State) -> bool:
    is_beside = state.compaction is not None or state.merging is not None
    is_due = effect.request == state.request and state.phase in WORKING
    return is_due and isinstance(effect, Summarise) is is_beside


def _call(state: State, call_id: str) -> Call:
    [call] = [call for call in state.calls if call.id == call_id]
    return call
