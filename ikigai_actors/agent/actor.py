"""The agent's actor: feeds the machine, hands its units to the journal, and performs the effects after the commit.

While a unit is being committed, the actor is held: it receives no message, so it decides nothing on a state that may
not be committed. The verdict of the journal releases it.

    committed   the actor takes the new state, the log grows, subscribers get events, then the effects are performed
    refused     the state stays as it was, and the caller gets the reason
    failed      the new state is dropped: the agent is unloaded, as after a boot, and is read again when it is needed
    fenced      the agent belongs to another host, or is dead: the actor stops

If a handler fails, the actor ends, and the supervisor decides about a new actor, which gets all waiting messages. The
caller of the failed command gets the error first. The command is not tried again, because it would fail again.

An idle agent is also unloaded when other agents need the memory (`ikigai_actors.agent.log_eviction`).

If the model is a plain function and no other work waits for a thread, a turn changes threads twice:

    caller to worker       the caller may run an event loop, or be hit by Ctrl-C; a worker is safe from both
    worker to caller       the answer

The worker itself commits the prompt, calls the function and commits the reply, each time outside of the agent's slice
(see `ikigai_actors.actors.dispatcher`), and then goes on with the agent. If other work waits, the turn changes threads
up to five more times:

    worker to journal      one thread writes, so that agents share transactions: for the prompt, and for the reply
    journal to worker      the journal begins the next transaction: after the prompt, and after the reply
    function to worker     workers take agents in order of arrival, so the thread of the function has to queue

Between a verdict and its effects the actor checks for signals, so that no request is sent for a turn that was
interrupted during the commit. No effect starts while the host may have lost its lease.
"""

import logging
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from ikigai_actors.actors.actor import QUANTUM, ActorGone, PooledActor
from ikigai_actors.actors.futures import Future
from ikigai_actors.actors.inbox import INBOX_CAPACITY, Envelope
from ikigai_actors.agent.agent_log import AgentLog
from ikigai_actors.agent.backlog import Backlog, wants_news
from ikigai_actors.agent.boot import MOST_CUT_OFFS, Origin
from ikigai_actors.agent.builtin_calls.mail import append_notice
from ikigai_actors.agent.builtin_calls.memory import FoundByWords
from ikigai_actors.agent.builtin_calls.programs import NEVER
from ikigai_actors.agent.builtin_calls.table import append_call
from ikigai_actors.agent.costs import Costs
from ikigai_actors.agent.effects import Effects, begun_call
from ikigai_actors.agent.messages import (
    Awaken,
    Crashed,
    Dead,
    Departed,
    Finish,
    Handover,
    InterruptPrompt,
    LoadFailed,
    LogRead,
    LookedUp,
    NewMail,
    ParkIdle,
    Replayed,
    Reset,
    Rest,
    Restarted,
    RulesRead,
    Sleep,
    TakeBack,
    TakenIn,
    Wake,
    WholeRead,
)
from ikigai_actors.agent.remote_commands import RemoteCaller, keyed_of, remote_command_of, step_by_principal
from ikigai_actors.agent.runtime import Runtime
from ikigai_actors.agent.statistics import AgentStatistics, Tally
from ikigai_actors.agent.subscriptions import PromptKept
from ikigai_actors.agent.succession import Successor
from ikigai_actors.agent.turn import compaction, machine
from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.ahead import Ahead, with_beginnings, with_reply
from ikigai_actors.agent.turn.calls import FORK, WAIT, Progress, waits
from ikigai_actors.agent.turn.fork import as_written
from ikigai_actors.agent.turn.questions import with_questions
from ikigai_actors.agent.turn.recorded_words import words_due
from ikigai_actors.agent.turn.state import (
    BESIDE_STEPS,
    TO_BE_RESUMED,
    UNKNOWN,
    Answer,
    AskApproval,
    CallUnit,
    ComeBack,
    Compaction,
    Departure,
    Effect,
    MailNotice,
    Merging,
    Parking,
    Phase,
    PutAside,
    ReadChild,
    State,
    Step,
    StepUnit,
    Summarise,
    Unparking,
)
from ikigai_actors.agent.turn.tool_steps import placed
from ikigai_actors.errors import (
    AgentDead,
    AgentError,
    Fenced,
    HistoryError,
    IkigaiError,
    InboxFull,
    ProviderError,
    StoreError,
    SystemClosed,
    TurnInterrupted,
    Withdrawn,
)
from ikigai_actors.frozen import replace
from ikigai_actors.providers.base import Reply, Spent, Usage
from ikigai_actors.records.agents.identity import new_agent_uuid
from ikigai_actors.records.agents.rules import RulesChanged
from ikigai_actors.records.agents.words import called
from ikigai_actors.records.budgets.amounts import Held, Paused, Settled
from ikigai_actors.records.hosts.remote_commands import CarryOut
from ikigai_actors.records.lives.deaths import WriteDeath
from ikigai_actors.records.log.append import Append, AppendCompleted, CallAppended, FencingToken, StoppedBefore
from ikigai_actors.records.log.log import Log, NotHeld
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.records.log.parking import Park, Parked, Unpark
from ikigai_actors.records.mail.asked import AskedTurn, EndAsked, Woken
from ikigai_actors.records.mail.prompts import KeepPrompt, Kept, PromptInterrupted
from ikigai_actors.records.mail.words import WordsGone
from ikigai_actors.records.messages.messages import Kind
from ikigai_actors.records.once import Once
from ikigai_actors.records.questions.waiting import ASK_PERSON
from ikigai_actors.store.journal import CommitResult, Committed, Failed, Refused
from ikigai_actors.store.unit import Unit
from ikigai_actors.text import described
from ikigai_actors.tools.policy import ToolTraits
from supervisors.causes import Cause
from supervisors.signals import Status

logger = logging.getLogger(__name__)

_Answered = on.ReplyReceived | on.ReplyFailed | on.Exited | on.SummaryReplied | on.SummaryFailed


class AgentActor(PooledActor):
    """The actor that runs one agent."""

    serves_callers = False  # its handlers commit, which is a worker's business

    def __init__(self, runtime: Runtime, origin: Origin, handover: Handover | None = None) -> None:
        """Make the actor of an agent. Its log is not read yet.

        An earlier actor of the agent may hand over its waiting messages.
        """
        last = handover or Handover(origin.head, origin.turn, origin.lifecycle, paused=origin.paused)
        state = State(
            origin.uuid,
            last.head,
            last.turn,
            callers=last.callers,
            lifecycle=last.lifecycle,
            hold=last.paused,
            own_labels=origin.labels,
            name=origin.name,
        )
        super().__init__(runtime.dispatcher)
        self.runtime, self.origin, self.state = runtime, origin, state
        self.tally = Tally(state.uuid, runtime.clock, state.shown, state.turn)
        self.backlog = Backlog(last.commands)
        self._fence = FencingToken(runtime.host.id, origin.epoch)
        self._log = AgentLog(runtime, self.actor_inbox, state.uuid)
        self._costs = Costs(runtime, self._log)
        self._step: Step | None = None  # its unit is with the journal, or committed and not taken yet
        self._deciding: on.TurnEvent | None = None  # what the actor is at: it is in no other place
        self._undecided: tuple[on.TurnEvent | None, bool] = None, False  # while all of the log is read for it
        # With mail: to be decided again where a word is withdrawn, or an INT has come for a prompt
        self._decided: tuple[on.TurnEvent, bool, tuple[on.Prompt, ...]] | None = None
        self._effects = Effects(runtime, self.actor_inbox, state.uuid, origin.name, self.tally)
        self._restarted: Restarted | None = None
        self._successor: Successor | None = None
        self._exit_message = ""
        self._ended_with: IkigaiError | None = None  # without a worker
        self._slices = 0
        self._sleeps = False
        self._replayed: Replayed | None = None  # of the turn that was cut off, with this error; None: not begun
        self._perhaps_parked = origin.is_parked  # its row says so, or it is not known whether that does
        self._parks = False
        self._unused = (-1, 0)  # the slices at the latest look, and how many looks have found no more

    def __str__(self) -> str:
        return f"agent {self.state.uuid}"

    @property
    def called(self) -> str:
        """The name of the agent for people: its name, or its two generated words. Thread-safe."""
        return called(self.state.uuid, self.origin.name)

    def statistics(self) -> AgentStatistics:
        """The counters of the agent since the actor was made. Thread-safe; never waits."""
        return self.tally.report(self.state.shown.value, self.waiting)

    @property
    def waiting(self) -> int:
        """The number of messages that wait for the agent: in its inbox, or for the end of its turn."""
        return len(self.actor_inbox) + len(self.backlog)

    @property
    def wants_news(self) -> bool:
        """Whether the agent gets notices of new mail. Thread-safe."""
        return wants_news(self.state)

    @property
    def used(self) -> float | None:
        """The time when the log was last read or grew, by the host's clock; None when no log is in memory.

        Thread-safe.
        """
        return self._log.used if self._may_rest else None

    def looks_unused(self) -> int:
        """Count a check that has found the agent unused, and return the number of such checks in a row.

        No message was handled between them. Only one thread may call it.
        """
        slices, before = self._slices, self._unused
        self._unused = (slices, before[1] + 1 if slices == before[0] else 0)
        return self._unused[1]

    def sleep(self) -> None:
        """Ask the agent to go to sleep if it has no open work: its actor ends until the agent is needed.

        Thread-safe; never waits.
        """
        self.actor_inbox.put_urgent(Sleep())

    def park(self) -> None:
        """Park the agent soon, if its turn only waits: the actor ends until the wait is over.

        Thread-safe; never waits.
        """
        self.actor_inbox.put_urgent(ParkIdle())

    def rest(self) -> None:
        """Ask the agent to drop its log from memory if it is idle. Thread-safe; never waits."""
        self.actor_inbox.put_urgent(Rest())

    @property
    def is_idle(self) -> bool:
        """Whether the agent is idle: its inbox is empty, no command waits, and no turn is open.

        Thread-safe. May be False by mistake, but then `Waits.became_idle` is called shortly after.
        """
        inbox, slices = self.actor_inbox, self._slices
        if inbox.scheduled:
            return False
        busy = inbox.held or not inbox.empty() or len(self.backlog) or not self._effects.is_empty or self.state.turn
        return not busy and not inbox.scheduled and slices == self._slices  # nobody was at it meanwhile

    def heard(self) -> Future[None] | None:
        """Return a future that is settled once the agent has handled all messages that are in its inbox now.

        None if the inbox is empty and the agent handles no message, or if it is full. Thread-safe.
        """
        inbox, done = self.actor_inbox, Future[None]()
        with suppress(InboxFull):
            if (inbox.scheduled or inbox.held or not inbox.empty()) and self.deliver(TakenIn(done)):
                return done
        return None

    def run_slice(self, quantum: int = QUANTUM) -> bool:
        """Handle messages, as `PooledActor.run_slice` does; notify `Waits` when the agent may have become idle."""
        self._slices += 1
        again = super().run_slice(quantum)
        if not (again or self.actor_inbox.held):  # a held one is not idle, and has a slice after that
            self.runtime.waits.became_idle(self.state.uuid)
        return again

    def revoke(self) -> None:
        """Begin no request and no tool from now on: the agent is dead, and `Dead` is about to come.

        Thread-safe; never waits.
        """
        self._effects.revoke()

    def rename(self, name: str | None) -> None:
        """Set the agent's name. Thread-safe, since no decision depends on the name."""
        self.origin = self.origin._replace(name=name)
        self._effects.rename(name)

    def begin(self, log: Log | None) -> None:
        """Release the actor of a child that was just born.

        If the child was born with an open turn, the turn goes on at once.

        Args:
            log: the child's log, when it is in memory; None to read it when the child needs it.
        """
        if log is None and self.state.turn:
            self.actor_inbox.release(Restarted(self.state.turn, self.state.status, born=True))
            return
        if log is None:
            self.actor_inbox.end_hold()
            self.runtime.waits.became_idle(self.state.uuid)
            return
        if self.state.turn:
            self.actor_inbox.put_urgent(on.Resume(Future(), on.Resumption.SUPERVISOR), first=True)
        self.actor_inbox.release(LogRead(log))

    def on_receive(self, message: Any) -> None:
        """Handle one command, signal, completion or verdict; then begin all work that can begin."""
        if self._perhaps_parked and not isinstance(message, Committed | Refused | Failed | Dead | Departed):
            self.actor_inbox.put_urgent(message, first=True)
            self._take(Step(self.state, Unparking()))
            return
        match message:
            case Committed() | Refused() | Failed():
                self._settle(message)
            case LogRead():
                self._loaded(message.log)
            case WholeRead():
                self._whole_read(message.log)
            case LoadFailed():
                self._lost(message.error)
            case LookedUp(error=IkigaiError() as error):
                message.caller.settle(error)
            case LookedUp():
                self.on_receive(message.command)
                return
            case on.ForkAt() if message.then is None:
                self._deciding = message
                self._log.look_up(message)
                self._deciding = None
            case Wake():
                self._effects.retry_postponed()
            case Replayed():
                self._replayed = message
            case Rest():
                self._rest()
            case Sleep():
                self._sleep()
            case ParkIdle():
                self._park()
            case Awaken() if self.state.turn and self.state.phase in (Phase.UNLOADED, Phase.INTERRUPTED):
                self.backlog.add_first(on.Resume(Future(), on.Resumption.SUPERVISOR))
            case Awaken():
                pass
            case Dead():
                self._exit_message = message.exit_message
                self.runtime.processes.leaves_words(self.state.uuid, self._gone())
                if self.state.kept is not None:
                    self._effects.give_up(self.state.kept)
                self._stop()
            case Reset():
                self._hand_over(self._effects.crash(self.state.request))
                self._stop()
                message.done.settle(None)
            case Finish():
                self._effects.finish(message.finished)
            case TakenIn():
                message.done.settle(None)
            case TakeBack():
                self._take_back(message)
            case Departed():
                self._depart()
                self._stop()
                message.done.settle(None)
            case NewMail():
                self.backlog.has_news = True
            case RulesRead():
                if self.state.phase is Phase.RUNNING_TOOLS:
                    self._become(replace(self.state, rules=message.rules))
            case on.Prompt() if message.mail:
                self.backlog.add_remote(message)
            case InterruptPrompt():
                self.backlog.interrupt(message.mail)
            case on.Interrupt() if self.state.phase is Phase.UNLOADED and self.state.turn:
                self.backlog.add_first(message)  # else the turn goes on before it ends
            case on.Interrupt() if not (self.state.turn or message.turn or self.state.phase in BESIDE_STEPS):
                self._interrupt_prompt(message)
            case Crashed():
                if message.request == self.state.request and self._effects.is_asking:
                    raise message.error
            case Restarted():
                self._go_on_after(message)
            case on.StatusChanged() | on.ServiceDue() | on.HooksLacking() | on.WindowFull() | on.PartWritten():
                self._decide(message)
            case on.Batched() | on.ReplyKept() | on.ChildRead() | on.ProgramMissing():
                self._decide(message)
            case on.ReplyReceived() | on.ReplyFailed() | on.Exited() | on.SummaryReplied() | on.SummaryFailed():
                self._answered(message)
            case on.HooksAnswered():
                self._effects.hooks_answered()
                self._decide(message)
            case on.ToolFinished():
                if message.request == self.state.request:  # a late one must not forget a newer run of the same call
                    self._effects.tool_finished(message)
                self._decide(message)
            case on.GetOutcome() if self.backlog.resumes:
                self.backlog.add(message)
            case on.Resume() if self.state.phase in TO_BE_RESUMED:
                if (event := self._replays(message)) is not None:
                    self._decide(event)
            case _ if message.needs is on.Needs.LOG and machine.accepts(self.state, message):
                self._decide(message)
            case _ if message.needs is not on.Needs.LOG and self.backlog.is_full:
                text = f"Agent {self.called} has {INBOX_CAPACITY} commands waiting; wait for some."
                message.caller.settle(InboxFull(text, self.state.uuid))
            case _:
                self.backlog.add(message)
        self._go_on()

    def _go_on_after(self, restarted: Restarted) -> None:
        """Resume the turn or close it, as the supervisor has decided. Without a turn, its callers get an error."""
        self._restarted = restarted
        for hook in () if restarted.born or restarted.attempt > 1 else self.runtime.instruments.restart_ends:
            hook(self.tally)
        lifecycle = self.state.lifecycle._replace(status=restarted.status)
        self._become(replace(self.state, turn=restarted.turn, lifecycle=lifecycle))
        if restarted.turn:  # before all that waits for the end of that turn
            goes_on = on.Resume(Future(), on.Resumption.SUPERVISOR)
            self.backlog.add_first(on.TurnPoisoned(restarted.poison) if restarted.poison else goes_on)
            return
        callers, self.state = self.state.callers, replace(self.state, callers=())
        for caller in callers:
            caller.settle(TurnInterrupted(f"Agent {self.called} was restarted; no turn is open.", self.state.uuid))

    def _interrupt_prompt(self, interrupt: on.Interrupt) -> None:
        """Without a turn in progress, end the turn of the oldest prompt from before the signal, as the turn begins."""
        before = [entry for entry in self.actor_inbox.up_to(interrupt.behind) if isinstance(entry.message, on.Prompt)]
        waiting = [entry for entry in before if not entry.message.interrupted]
        prompt = self.backlog.interrupt(words=not waiting)
        if prompt is None and waiting:
            prompt = waiting[0].message
            waiting[0].message = replace(prompt, interrupted=True)
        if prompt is None:
            interrupt.caller.settle(False)
        else:
            prompt.caller.add_done_callback(partial(_answer_interrupt, interrupt.caller))

    def _take_back(self, asked: TakeBack) -> None:
        waits = self.backlog.take_back(asked.command)
        if waits:
            asked.command.settle(Withdrawn("The command was taken back.", self.state.uuid))
        asked.caller.settle(waits)

    def _answered(self, completion: _Answered) -> None:
        asked = self._effects.is_asking
        if completion.request == self.state.request and asked:
            self._effects.replied(_answer_of(completion), _spent_on(completion))
        self._decide(completion, asked)

    def _decide(self, event: on.TurnEvent, asked: bool = False) -> bool:
        """Ask the machine about an event, and carry out its step; return whether the step does anything.

        ``asked``: for an event that ends a request to the model, whether the request was sent.
        """
        self._deciding = event
        something = self._decide_now(event, asked)
        self._deciding = None
        return something

    def _decide_now(self, event: on.TurnEvent, asked: bool) -> bool:
        again: tuple[on.Prompt, ...] = ()
        if isinstance(event, on.ReplyReceived):
            event = self._with_hooks(event)
        if isinstance(event, on.Configure) and {"hooks", "hook_commands"} & event.settings.keys():
            event = replace(event, above=self._log.inherited(self.state.view.settings))
        if isinstance(event, on.Interrupt) and event.turn in (0, self.state.turn):
            asked = self._effects.is_asking
            partial, spent = self._effects.cancel()
            event = replace(event, partial=partial, spent=spent)
        elif isinstance(event, on.TakeWords):
            event = self._cut_for_words(event)
            asked = event.asked
        elif self._log.current is not None:
            try:
                event = machine.completed(self.state, event, self._log.current)
                if "effects" in self.state.view.settings:
                    again = words_due(self.state, event, self._log.current)
            except NotHeld:
                self._read_whole(event, asked)
                return True
        return self._decide_on(event, asked, again)

    def _with_hooks(self, event: on.ReplyReceived) -> on.ReplyReceived:
        """Add to a reply's event the hooks that must be asked before the reply ends the turn. A typed turn has none."""
        settings = self.state.view.settings
        if event.reply.tool_calls or self.state.output is not None or self.runtime.toolbox.is_program(settings):
            return event
        hooks = self.runtime.hooks.about_replies(settings)
        return replace(event, hooks=hooks) if hooks else event

    def _cut_for_words(self, event: on.TakeWords) -> on.TakeWords:
        """Cancel the work that a steering message ends: the waits, or (``at_once``) the model request and the calls.

        Return the event; in the second case with the received part of the reply and its cost.
        """
        if not event.at_once:
            self._effects.end_waits()
            return event
        asked = self._effects.is_asking
        partial, spent = self._effects.cancel()
        return replace(event, partial=partial, spent=spent, asked=asked)

    def _decide_on(self, event: on.TurnEvent, asked: bool, again: tuple[on.Prompt, ...] = ()) -> bool:
        """Carry out the machine's step for an event that `_with_hooks` and `_cut_for_words` have completed.

        ``again`` are recorded steering messages that may enter with it.
        """
        if self.state.name != self.origin.name:  # it was renamed
            self.state = replace(self.state, name=self.origin.name)
        if self.state.steps > 1 and self.runtime.toolbox.is_program(self.state.view.settings):
            self.state = replace(self.state, steps=1)  # it acts as often as it likes
        tools = self.runtime.toolbox.traits(self.state.view.settings, typed=self.state.output is not None)
        may_follow = isinstance(event, on.ReplyReceived | on.ToolFinished)
        may_follow = may_follow and self.runtime.toolbox.is_program(self.state.view.settings)
        ahead = self._went_ahead(event) if may_follow else None
        now, words = self.runtime.clock.now_ms() if ahead is None else ahead.at, (*again, *self.backlog.words)
        step = machine.step(self.state, event, now, tools, words)
        is_more = False
        if may_follow and not words and self.backlog.is_empty:
            step, alone = self._with_what_follows(step, event, ahead, now, tools), step
            is_more = step is not alone
        step = self._costs.filled(self.state, step, event, asked)
        if isinstance(step.caller, RemoteCaller):
            step = step_by_principal(step)
        if self.state.calls or step.state.calls:
            step = with_questions(self.state, event, step)
        by_mail = isinstance(step.unit, LogUnit) and (step.unit.words or step.unit.prompt)
        self._decided = (event, asked, again) if by_mail or is_more else None
        something = step.unit is not None or step.state is not self.state or bool(step.effects)
        self._take(step)
        if isinstance(event, on.StatusChanged) and isinstance(self.state.hold, Paused):
            self.runtime.processes.serve((self.state.hold.budget,))  # CONT: it may go on again
        return something

    def _went_ahead(self, event: on.TurnEvent) -> Ahead | None:
        """Return what a program's function did with a tool's result before that result was committed; else None."""
        log = self._log.current
        if not isinstance(event, on.ToolFinished) or event.request != self.state.request or log is None:
            return None
        ahead = self.runtime.toolbox.went_ahead(self.state.view.settings, self.state.uuid, event.call)
        # A message that came meanwhile is not later than the result: the function begins again with the time of that.
        return None if ahead is None or next(log.newest_first()).created_at > ahead.at else ahead

    def _with_what_follows(
        self, step: Step, event: on.TurnEvent, ahead: Ahead | None, now: int, tools: Mapping[str, ToolTraits]
    ) -> Step:
        """Return the step of a program, extended by the next acts of its function, as one unit."""

        def decide(state: State, event: on.TurnEvent | None) -> Step:
            return machine.step(state, event or self._continue(state), now, tools)

        if isinstance(event, on.ReplyReceived):
            return with_beginnings(step, decide)
        if ahead is None or ahead.reply is None or self._log.current is None:
            return step
        before = next(message for message in self._log.current.newest_first() if message.kind == Kind.ASSISTANT)
        return with_reply(step, ahead.reply, before.data["model"], decide)

    def _read_whole(self, event: on.TurnEvent | None = None, asked: bool = False) -> None:
        """Read all of the log, and then decide on an event, if there is one. Meanwhile nothing else is done.

        Effects of committed units wait as well, because a caller with an answer may ask for the history at once.
        Signals wait in the inbox, as during a commit. If the log cannot be read, all callers get the error, and the
        turn stays open: the next command reads the log again.
        """
        self._undecided = event, asked
        self.actor_inbox.held = True
        self._log.read_whole()

    def _whole_read(self, log: Log | IkigaiError) -> None:
        if isinstance(log, IkigaiError):
            self._abandon(None, log)
            self._unreadable(log)
            return
        self._log.hold_whole(log)
        (event, asked), self._undecided = self._undecided, (None, False)
        if event is not None:
            self._decide(event, asked)

    def _go_on(self) -> None:
        inbox = self.actor_inbox
        while not inbox.held and not inbox.closed and not inbox.urgent:
            if self._effects.waiting:
                self._perform(self._effects.next())
            elif (command := self._next_command()) is None:
                return
            elif not self._decide(command) and isinstance(command, on.Continue):
                return  # its calls wait for what is outside; any other command is done with

    def _next_command(self) -> on.TurnEvent | None:
        """The next event to decide on: the agent's own end, a command that waits, or the calls of the last reply."""
        state = self.state
        if state.status is Status.TERMINATING and not state.turn:
            return on.Leave()
        while (command := self.backlog.next(state, self._log.loading, bool(self.actor_inbox.ordinary))) is not None:
            if isinstance(command, on.Resume):
                return self._replays(command)
            caller = getattr(command, "caller", None)
            if state.status is Status.STOPPED or not isinstance(caller, Future) or caller.refusal is None:
                return command
            if isinstance(command, on.Prompt) and machine.puts_aside(state, command):
                return command
            caller.settle(caller.refusal)  # who asked may not wait for it: as if it had not asked
        if state.phase is Phase.UNLOADED and self.backlog.needs_log(state.status):
            self._log.load()
        if state.phase is Phase.RUNNING_TOOLS:
            return self._continue(state)
        return None

    def _replays(self, resume: on.Resume) -> on.TurnEvent | None:
        """Return the event that resumes a turn; None while a program's function replays up to where it waits.

        Cut-off calls are settled only after the replay, because a changed function may not ask for them any more.
        Without the program, no call is settled.
        """
        state, toolbox, log = self.state, self.runtime.toolbox, self._log.current
        if state.phase in TO_BE_RESUMED and log is not None:
            resume = replace(resume, program=self._effects.missing_program(state, log))
            if resume.program:
                self.runtime.processes.lacks(self.origin.uuid)
        cut_off = any(call.progress is not Progress.DONE and call not in waits(state.calls) for call in state.calls)
        if state.phase not in TO_BE_RESUMED or not cut_off or not toolbox.is_program(state.view.settings):
            return resume
        replayed, turn = self._replayed, state.turn
        if replayed is not None and replayed.turn == turn and replayed.error is not None:
            self._replayed = None
            if not replayed.error:
                return resume
            resume.caller.settle(True)
            return on.TurnPoisoned(replayed.error, is_changed=True)
        self.backlog.add_first(resume)
        if replayed is None or replayed.turn != turn:
            self._replayed = Replayed(turn, None)
            me, inbox, settings = self.runtime.processes.handle(state.uuid), self.actor_inbox, state.view.settings
            self.runtime.executor.replay(
                lambda: toolbox.replay(settings, me), me, lambda error: inbox.put_urgent(Replayed(turn, error))
            )
        return None

    def _continue(self, state: State, one_by_one: bool = False) -> on.Continue:
        forks = sum(call.name == FORK and call.progress is not Progress.DONE for call in state.calls)
        fresh = [new_agent_uuid(self.runtime.random_bytes) for _ in range(forks)]
        patterns = any(rule.pattern for rule in state.rules or ())
        asked = self.runtime.toolbox.asked(state.uuid, state.calls) if patterns else {}
        hooks = self.runtime.hooks.due(state.view.settings, state.calls)
        return on.Continue(fresh, one_by_one=one_by_one, asked=asked, hooks=hooks)

    def _perform(self, effect: Effect) -> None:
        state = self.state
        match effect:
            case ComeBack():
                self._exit()
            case ReadChild() if state.phase is Phase.MERGING and state.request == effect.request:
                self._log.look_at_child(effect)
            case ReadChild():
                pass
            case Summarise() if state.merging is not None:
                self._effects.perform(effect, state, self._log.child)
            case _:
                self._effects.perform(effect, state, self._log.current)

    def _exit(self) -> None:
        """End the actor of a permanent agent that has exited; its successor goes on."""
        self._hand_over(end=Cause.EXITED)
        self._stop()

    def _take(self, step: Step) -> None:
        if step.effects and AskApproval in map(type, step.effects):
            self.runtime.processes.asks(self.state.uuid)  # before the commit, which a rule may follow at once
        if isinstance(step.unit, LogUnit) and step.unit.births and self.runtime.toolbox.copied:
            step = replace(step, unit=replace(step.unit, copied=self.runtime.toolbox.copied))
        if step.unit is None:
            self._enter(step)
            return
        self._step = step
        self.actor_inbox.held = True
        for hook in self.runtime.instruments.commit_begins:
            hook(self.tally)
        for birth in step.unit.births if isinstance(step.unit, LogUnit) else ():
            self.runtime.processes.expect(birth)
        unit, caller = self._to_be_committed(step.unit), step.caller
        if isinstance(caller, Future) and caller.keyed is not None and (keyed := keyed_of(step)) is not None:
            call, gave = keyed[0], {**keyed[0].names, "value": keyed[1]}
            unit = Once(unit, call, self.runtime.clock.now_ms(), lambda done: gave)
        if isinstance(caller, RemoteCaller) and (asked := remote_command_of(step)) is not None:
            unit = CarryOut(caller.key, unit, asked[1], self.runtime.clock.now_ms())
        self.runtime.journal.submit(unit, self.actor_inbox.release, self.dispatcher)

    def _to_be_committed(self, unit: StepUnit) -> Unit:
        match unit:
            case Parking():
                return Park(
                    self.state.uuid,
                    self._fence,
                    tuple(AskedTurn(*turn) for turn in unit.turns),
                    unit.need,
                    unit.wake_at,
                )
            case Unparking():
                return Unpark(self.state.uuid, self._fence)
            case PutAside():
                known = self.backlog.latest_mail
                now = self.runtime.clock.now_ms()
                return KeepPrompt(self.state.uuid, unit.prompt.text, now, known, unit.prompt.data, unit.prompt.blobs)
            case LogUnit() if unit.asked:
                return EndAsked(Append(unit, self._fence), unit.agent, unit.asked)
            case LogUnit():
                return Append(unit, self._fence)
            case CallUnit():
                is_program = self.runtime.toolbox.is_program(self.state.view.settings)
                return append_call(unit, self._fence, is_program)
            case MailNotice():
                return append_notice(unit, self._fence)
            case Departure():
                now = self.runtime.clock.now_ms()
                return WriteDeath(self.state.uuid, self.runtime.host.id, unit.reason, now, unit.cause)

    def _enter(self, step: Step) -> None:
        self._become(step.state)
        self._effects.add(step.effects)

    def _settle(self, verdict: CommitResult) -> None:
        step = self._step
        assert step is not None  # a verdict answers the one unit in flight
        for hook in self.runtime.instruments.commit_ends:
            hook(self.tally, None if isinstance(verdict, Committed) else verdict.error)
        if not isinstance(verdict, Committed):
            self._step = None
        unit = step.unit
        if isinstance(unit, LogUnit) and not isinstance(verdict, Committed):
            for birth in unit.births:
                self.runtime.processes.forget(birth)
        if isinstance(unit, PutAside):
            self._put_aside(unit.prompt, verdict)
        match verdict:
            case Committed():
                self._committed(step, verdict.value)
            case Refused(error=Fenced(dead=False) as error) if error.agent == self.state.uuid:
                self._abandon(step, error)
                self.runtime.processes.drop(self)  # else it would hide the agent, should that come back to this host
                self._stop()
            case Refused(error=Fenced() | AgentDead() as error) if error.agent == self.state.uuid:
                self._exit_message = str(error)  # for commands that wait in the inbox, or come before the next look
                self._abandon(step, ActorGone(str(error), error.agent) if isinstance(error, Fenced) else error)
                self._stop()
            case Refused(error=WordsGone() as error) if self._decided is not None:
                self.backlog.drop_words(error.mails)
                self._decide_again()
            case Refused(error=PromptInterrupted()) if self._decided is not None:
                prompt, asked, again = self._decided
                assert isinstance(prompt, on.Prompt)
                self._decided = replace(prompt, interrupted=True), asked, again
                self._decide_again()
            case Refused(error=RulesChanged() as error):
                self._become(replace(self.state, rules=error.rules))
                if self._decided is not None and not isinstance(self._decided[0], on.Continue):
                    self._decide_again()
                else:
                    self._decide(self._continue(self.state))
            case Refused(error=StoppedBefore() as error) if step.call is not None:  # nothing of it has happened
                self.runtime.processes.was_stopped(self.state.uuid, error.changed)  # CONT goes on
                self._decide(on.StatusChanged(Status.STOPPED))
            case Refused():
                self._refused(step, verdict.error)
            case Failed() if isinstance(unit, Parking):
                self._perhaps_parked = True
            case Failed() if isinstance(unit, Unparking):
                self._abandon(step, verdict.error)
                self.runtime.processes.drop(self)
                self.runtime.processes.look_at_woken()
                self._stop()
            case Failed():
                self._abandon(step, verdict.error)
                if isinstance(unit, LogUnit) and (unit.prompt or unit.words):
                    self._leave_prompts(verdict.error)

    def _decide_again(self) -> None:
        """Pass an event to the machine again, because the store refused its unit. The event must not be lost."""
        assert self._decided is not None
        self._deciding, asked, again = self._decided
        self._decide_on(self._deciding, asked, again)
        self._deciding = None

    def _become(self, state: State) -> None:
        before = self.state
        if state.phase is Phase.IDLE and wants_news(state) and not (before.phase is Phase.IDLE and self.wants_news):
            self.backlog.has_news = True
        self.state = state
        if state.status is Status.STOPPED and before.status is not Status.STOPPED:
            for prompt in self.backlog.kept:
                self.runtime.publisher.publish(PromptKept(state.uuid, prompt.mail, prompt.text))
        shown = state.shown
        if shown is not before.shown or state.turn != before.turn:
            for hook in self.runtime.instruments.state_changes:
                hook(self.tally, shown, state.turn)
            if state.turn and state.view.settings.get("stuck_after"):
                self.runtime.processes.watch(state.uuid)

    def _committed(self, step: Step, answer: Any) -> None:
        if isinstance(answer, Woken):
            answer = answer.answer
        if isinstance(answer, AppendCompleted):
            step, answer = as_written(step, answer.unit), answer.answer
            self._step = step
        if isinstance(step.unit, LogUnit):
            self._log.grow(step.unit.messages)
            if step.unit.words or step.unit.prompt:
                self.backlog.drop_words(step.unit.words)
                for message in step.unit.messages:
                    self.runtime.processes.entered(message)
            if step.unit.questions and any(question.next_at is not None for question in step.unit.questions):
                self.runtime.processes.look_at_questions()
        elif isinstance(answer, CallAppended):
            self._log.grow((answer.message,))
            if isinstance(answer.answer, FoundByWords):
                self._log.index_words(answer.answer.below)
        if isinstance(step.caller, RemoteCaller) and (asked := remote_command_of(step)) is not None:
            caller, value = asked
            caller.committed(value)
        before = self.state.hold
        waited = before if isinstance(step.unit, LogUnit) and step.unit.unpaused else None
        if isinstance(answer, Held | Paused):
            step = placed(step, answer)
        self._enter(step)
        self._step = None
        if isinstance(step.unit, Parking | Unparking):
            self._perhaps_parked = False
        if isinstance(step.unit, Departure):
            self._effects.tell_of_exit(self.state.view.settings, step.unit.reason)
        if isinstance(answer, Parked):
            self._leave_parked()
        if isinstance(waited, Paused) and not isinstance(answer, Paused):  # others that have waited for it may go on
            self.runtime.processes.serve((waited.budget,))
        if isinstance(answer, Held | Paused | Settled) and answer.freed:
            self.runtime.processes.serve(answer.freed)
        if isinstance(answer, Paused):
            if not isinstance(before, Paused):
                level = logging.WARNING if answer.due is None else logging.INFO
                logger.log(level, "%s waits for budget: %s", self.called, answer.text)
            self.runtime.waits.changed(self.state.uuid)
            if answer.again_at is not None:
                self.runtime.processes.serve((answer.budget,), answer.again_at)
        if self._log.lacks_what_is_shown:
            self._read_whole()

    def _put_aside(self, prompt: on.Prompt, verdict: CommitResult) -> None:
        """Note in the backlog that a prompt is stored as mail; drop the prompt if it could not be stored.

        Prompts of other processes with smaller mail numbers enter the backlog before it, even if unknown until now.
        """
        if not isinstance(verdict, Committed):
            self.backlog.discard(prompt.caller)
            return
        kept: Kept = verdict.value
        for _, mail, text, data, interrupted in kept.before:
            self.backlog.add_remote(on.Prompt(text, Future(), mail, data=data, interrupted=interrupted))
        self.backlog.keep(prompt.caller, kept.mail)
        if prompt.stored is not None:
            prompt.stored.settle(kept.mail)
        if self.state.status is Status.STOPPED:
            self.runtime.publisher.publish(PromptKept(self.state.uuid, kept.mail, prompt.text))

    def _refused(self, step: Step, error: IkigaiError) -> None:
        """Keep the state as it was; the caller, or the model, gets the reason."""
        if step.caller is not None:
            step.caller.settle(error)
        if step.together:
            self._decide(self._continue(self.state, one_by_one=True))
        elif step.call is not None:
            self._decide(on.CallRefused(step.call, str(error)))
        elif self.state.phase in BESIDE_STEPS:  # withdrawn by who asked for it, too dear, or a merge that cannot be
            charge = step.unit.charge if isinstance(step.unit, LogUnit) else None
            self._decide(on.SummaryFailed(self.state.request, ProviderError(str(error)), charge=charge))
        elif isinstance(step.unit, LogUnit) and (begun := step.state.compaction) is not None and step.caller is None:
            refused = on.RefusedSummary(begun, step.unit.messages)
            why = ProviderError(str(error))
            self._decide(on.SummaryFailed(self.state.request, why, charge=step.unit.charge, refused=refused))
        elif isinstance(step.unit, Departure):  # of agent 0, by its own code
            self._decide(on.ReplyFailed(self.state.request, ProviderError(str(error))))

    def _rest(self) -> None:
        state = self.state
        if self._may_rest:
            self._log.drop()
            request, lifecycle = state.request + 1, state.lifecycle
            self._become(State(state.uuid, state.head, name=state.name, request=request, lifecycle=lifecycle))

    def _sleep(self) -> None:
        """End the actor if the agent has no open work. A later command wakes the agent."""
        state = self.state
        rests = state.phase in (Phase.IDLE, Phase.UNLOADED) and state.status in (Status.RUNNING, Status.STOPPED)
        waits = state.turn or state.hold or state.callers or self.wants_news or not self.backlog.is_empty
        busy = self._step is not None or self._log.loading or not self._effects.is_empty
        if rests and not waits and not busy:
            self._successor = self.runtime.processes.sleep(self)
            if self._successor is not None:
                self._sleeps = True
                self._stop()

    def _park(self) -> None:
        """Ask the host to park the agent if its turn only waits: for agents, for a person or for a time."""
        state, log = self.state, self._log.current
        is_still = state.phase is Phase.RUNNING_TOOLS and state.status is Status.RUNNING and self._effects.only_wait
        if not is_still or log is None or len(self.backlog) or self.backlog.words or self._step is not None:
            return
        left = [open_call for open_call in state.calls if open_call.progress is not Progress.DONE]
        if len(left) != 1 or not self.runtime.toolbox.is_program(state.view.settings):
            return
        [call] = left
        if call.name == WAIT and call.progress is Progress.RUNNING:
            begun = begun_call(log, call.id).data
            until = begun["deadline"] if begun["deadline"] < NEVER else None
            turns = tuple((agent, prompt) for agent, prompt in begun["turns"])
            self._take(Step(state, Parking(turns, begun["need"], until)))
        elif call.name == ASK_PERSON and call.progress is Progress.ASKING:
            self._take(Step(state, Parking((), 1, None)))

    def _leave_parked(self) -> None:
        """End the actor, because the agent is parked. If a message came meanwhile, the agent goes on instead."""
        state = self.state
        self._successor = self.runtime.processes.park(self, state.callers)
        if self._successor is None:
            self._perhaps_parked = True
            return
        self._parks = self._sleeps = True
        self._become(replace(state, callers=()))
        self._effects.cancel()
        self._log.abandon()
        self.backlog.discard_remote()
        self.runtime.toolbox.drop_frame(state.uuid)
        self._stop()

    @property
    def _may_rest(self) -> bool:
        """Whether nothing needs the log now. An agent with notices of new mail keeps it."""
        idle = self._log.current is not None and self.state.phase is Phase.IDLE
        return idle and not (len(self.backlog) or self.wants_news) and self._effects.is_empty

    def _abandon(self, step: Step | None, error: IkigaiError) -> None:
        """Return to the state before a unit that failed, and give the error to all callers.

        The log is dropped; the next command reads it again.
        """
        callers = [*self._callers(step), *([step.caller] if step is not None and step.caller is not None else [])]
        if self.state.side is not None and self.state.side.caller is not None:
            callers.append(self.state.side.caller)
        (undecided, _), self._undecided = self._undecided, (None, False)
        if (caller := getattr(undecided, "caller", None)) is not None:
            callers.append(caller)
        try:
            self._effects.abandon(self.state, self._log.current)
            self._log.abandon()
            before = self.state
            head = before.head if step is None else UNKNOWN
            request, lifecycle = before.request + 1, before.lifecycle
            self._become(State(before.uuid, head, before.turn, name=before.name, request=request, lifecycle=lifecycle))
        finally:
            for caller in callers:
                caller.settle(error)

    def _callers(self, step: Step | None) -> list[Any]:
        """All callers that wait for the outcome of the turn, also of a turn that the unit in flight opens."""
        return list(dict.fromkeys([*self.state.callers, *(step.state.callers if step else ())]))

    def _loaded(self, log: Log) -> None:
        try:
            loaded = self._log.hold(log, self.state.turn)
        except NotHeld:
            self._log.load(whole=True)
            return
        except Exception as error:
            self._answer_waiting(self._crash_of(error))  # else each restart would fail for them again
            raise
        self._restarted = None
        self._decide(replace(loaded, cut_off=self._cut_off) if self.state.turn else loaded)

    @property
    def _cut_off(self) -> str:
        times = self.origin.cut_offs
        often = f" {times} times, and came no further in between" if times >= MOST_CUT_OFFS else ""
        return f"{self.called}'s turn was cut off{often}"

    def _lost(self, error: IkigaiError) -> None:
        """Give all callers the error because of which the log could not be read."""
        self._log.loading = False
        if self._restarted is not None and isinstance(error, StoreError):
            self.backlog.discard_resumption()
            self.actor_inbox.held = True
            again = self._restarted._replace(status=self.state.status)
            if not self.runtime.processes.on_failed_start(self.state.uuid, again, error):
                self.actor_inbox.held = False
            return
        self._answer_waiting(error)
        self._unreadable(error)

    def _unreadable(self, error: IkigaiError) -> None:
        """Drop the stored prompts for now, and mark the agent as dead if its own rows are wrong."""
        self._leave_prompts(error)
        if isinstance(error, HistoryError) and error.agent == self.state.uuid:
            self.runtime.processes.bury(self.state.uuid, str(error))

    def _answer_waiting(self, error: IkigaiError) -> None:
        for command in self.backlog.take_all():
            if (caller := getattr(command, "caller", None)) is not None:
                caller.settle(error)

    def _leave_prompts(self, error: IkigaiError) -> None:
        """Drop the prompts of other processes for now. They stay in the mailbox, and are read again later."""
        if isinstance(error, StoreError):
            self.runtime.processes.retry_prompts()
        self.backlog.discard_remote()

    def report(self, reason: BaseException) -> None:
        """Log the traceback of a crash at DEBUG. The agent's supervisor logs one line about its decision."""
        if self.actor_inbox.closed:
            super().report(reason)
        else:
            logger.debug("Agent %s crashed", self.state.uuid, exc_info=reason)

    def on_crash(self, reason: BaseException) -> None:
        """Leave the decision about a crash to the agent's supervisor.

        The next actor of the agent gets all later messages.
        """
        for failed in (self._deciding, self._undecided[0]):
            if (caller := getattr(failed, "caller", None)) is not None:
                caller.settle(self._crash_of(reason))
        if self._step is not None:  # it is committed
            for effect in self._step.effects:
                if isinstance(effect, Answer):
                    effect.caller.settle(effect.value)
            self._effects.add(self._step.effects)  # the births among them are reported as the actor ends
        self._hand_over(reason)

    def _crash_of(self, reason: BaseException) -> IkigaiError:
        if isinstance(reason, IkigaiError):
            return reason
        text = f"Agent {self.called} crashed as it was to do this, and has not done it: {described(reason)}"
        error = AgentError(text, self.state.uuid)
        error.__cause__ = reason
        return error

    def on_death(self, reason: BaseException | None) -> None:
        """Answer all callers that still wait, because the agent is dead."""
        self._end(self._gone())

    def _gone(self) -> IkigaiError:
        uuid = self.state.uuid
        return self._ended_with or ActorGone(
            self._exit_message or f"Agent {self.called} acts no more on this host.", uuid
        )

    def _hand_over(self, error: BaseException | None = None, end: Cause | None = None) -> None:
        """Ask the process table for a new actor of the agent, which gets all callers.

        Whether a unit in flight will be committed is unknown here.
        """
        end, why = (Cause.CRASHED, described(error)) if error is not None else (end, "")
        for hook in self.runtime.instruments.restart_begins if end is not None else ():
            hook(self.tally, why or str(end))
        waiting = self._what_waits()
        try:
            self._successor = self.runtime.processes.replace_actor(self, waiting, end, why, error)
        except BaseException:  # nobody has got them
            for caller in (*waiting.callers, *(getattr(command, "caller", None) for command in waiting.commands)):
                if caller is not None:
                    caller.settle(self._gone())
            raise

    def _what_waits(self) -> Handover:
        """Take all callers and commands from this actor; return them for the next actor."""
        state, waiting = self.state, self.backlog.take_all()
        if (asked := state.side) is not None and asked.caller is not None:
            if self._step is None:  # the next actor starts it again
                waiting = (_anew(asked), *waiting)
            else:
                what = "summary" if isinstance(asked, Compaction) else "merge"
                text = f"Agent {self.called} has ended as its {what} was written: look at its history."
                asked.caller.settle(TurnInterrupted(text, state.uuid))
            state = compaction.state_behind(state)
        callers = tuple(self._callers(self._step))
        self._become(replace(state, callers=()))
        if self._step is not None:
            left = None if self._step.caller in callers else self._step.caller
            self._step = replace(self._step, state=replace(self._step.state, callers=()), caller=left)
        head = state.head if self._step is None else UNKNOWN
        paused = state.hold if isinstance(state.hold, Paused) else None
        return Handover(head, state.turn, state.lifecycle, callers, waiting, paused)

    def _depart(self) -> None:
        """End the actor; the host that runs the agent from now on answers the callers."""
        self._successor = self.runtime.processes.depart(self, self._what_waits())

    def take_over(self, message: Any) -> None:
        """Put a message that an earlier actor of the agent did not handle before all others in the inbox."""
        self.actor_inbox.put_urgent(message)

    def close(self) -> None:
        """End the actor because the system closes. No worker may run any more."""
        self.close_with(
            SystemClosed("The system was closed before this was answered; an open turn comes back as interrupted.")
        )

    def close_with(self, error: IkigaiError) -> None:
        """End the actor, which no worker may run any more. All who wait for it, or ask it later, get the error."""
        self._ended_with = error
        self._end(error)
        self.actor_inbox.set()

    def _end(self, error: IkigaiError) -> None:
        try:
            if not self._parks:  # else nothing is left of it here
                self._abandon(self._step, error)
        finally:
            self._answer_waiting(error)
            if not self._sleeps:  # its shells stay as it has left them
                self.runtime.executor.leave(self.state.uuid)

    def refuse(self, envelope: Envelope) -> None:
        """Answer a message that will never be handled."""
        message = envelope.message
        caller = getattr(message, "caller", None)
        if isinstance(message, Reset | Departed | TakenIn):
            message.done.settle(None)
        elif isinstance(message, Finish):
            message.finished()
        elif isinstance(message, Dead):
            self.runtime.processes.leaves_words(self.state.uuid, AgentDead(message.exit_message, self.state.uuid))
        elif isinstance(caller, Future) and self._successor is not None and not caller.done():
            self._successor.take_over(message)
        elif isinstance(caller, Future):
            caller.settle(self._gone())
        super().refuse(envelope)


def _answer_interrupt(caller: Any, ended: Future[Any]) -> None:
    """Settle the caller of an INT that waited for a prompt: True if it ended the prompt's turn."""
    error = None if ended.cancelled() else ended.exception()
    caller.settle(error if isinstance(error, AgentDead | SystemClosed) else isinstance(error, TurnInterrupted))


def _anew(asked: Compaction | Merging) -> on.Compact | on.Merge:
    if isinstance(asked, Compaction):
        return on.Compact(asked.focus, asked.caller)
    return on.Merge(asked.child, asked.how, asked.positions, asked.caller)


def _answer_of(completion: _Answered) -> Reply | Exception:
    match completion:
        case on.ReplyReceived() | on.SummaryReplied():
            return completion.reply
        case on.ReplyFailed() | on.SummaryFailed():
            return completion.error
        case on.Exited():
            return Reply(completion.result)


def _spent_on(completion: _Answered) -> Spent | None:
    match completion:
        case on.ReplyReceived(reply=Reply(usage=Usage() as usage, model=model)):
            return Spent(usage, model)
        case on.SummaryReplied(reply=Reply(usage=Usage() as usage, model=model)):
            return Spent(usage, model)
        case on.ReplyFailed() | on.SummaryFailed():
            return completion.spent
    return None
