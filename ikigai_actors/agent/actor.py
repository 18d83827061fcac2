"""The agent's actor: feeds the machine, hands its units to the journal, and performs the effects after the commit.

While a unit is on its way to the disk the actor is held: no message reaches it, so nothing can be decided on a state
that may not come true. The verdict releases it.

    committed   the new state is taken, the log grows, subscribers hear, and then the effects leave
    refused     the state stays, and the caller hears why
    failed      the state is thrown away: the agent is unloaded, as after boot, and read again when next needed
    fenced      the agent belongs to somebody else, or is dead: the actor stops

Between a verdict and its effects the actor looks for signals, so a turn that was interrupted meanwhile asks no model.
No effect starts while the host may have lost its lease.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ikigai_actors.actors.actor import ActorGone, PooledActor
from ikigai_actors.actors.futures import Future
from ikigai_actors.actors.inbox import CAPACITY, Envelope
from ikigai_actors.agent.boot import Survivor
from ikigai_actors.agent.builtin_calls.mail import append_notice
from ikigai_actors.agent.builtin_calls.table import append_call
from ikigai_actors.agent.messages import Buried, Crashed, Cut, GoOn, LoadFailed, LogRead, NewMail, Remains, Restarted
from ikigai_actors.agent.performer import Performer
from ikigai_actors.agent.runtime import Runtime
from ikigai_actors.agent.subscriptions import PromptKept
from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn import machine
from ikigai_actors.agent.turn.calls import recover
from ikigai_actors.agent.turn.state import UNKNOWN, CallUnit, Departure, MailNotice, Phase, PutAside, State, Step
from ikigai_actors.errors import (
    AgentDead,
    Fenced,
    HistoryError,
    IkigaiError,
    InboxFull,
    ProviderError,
    StoreError,
    SystemClosed,
    TurnInterrupted,
)
from ikigai_actors.providers.base import Reply, Spent, Usage
from ikigai_actors.records.append import Append, CallAppended, Fence
from ikigai_actors.records.deaths import Bury
from ikigai_actors.records.identity import new_agent_uuid
from ikigai_actors.records.log import Log
from ikigai_actors.records.log_unit import LogUnit
from ikigai_actors.records.mail import KeepPrompt
from ikigai_actors.records.messages import Message
from ikigai_actors.records.replies import outcome_of
from ikigai_actors.store.journal import CommitResult, Committed, Failed, Refused
from ikigai_actors.store.unit import Unit
from ikigai_actors.text import described
from supervisors.children import Exit
from supervisors.signals import Status

AT_ANY_TIME = (on.GetOutcome, on.Decide, on.Interrupt)
"""The commands that wait for no turn to end."""


class AgentActor(Performer):
    """Runs one agent."""

    def __init__(self, runtime: Runtime, origin: Survivor, remains: Remains | None = None) -> None:
        """Make the actor of an agent whose log is not read yet.

        Args:
            runtime: the parts of the system that it works with.
            origin: the agent, as the registry knew it at the boot or at its birth.
            remains: what an earlier actor of it has left, if there was one.
        """
        last = remains or Remains(origin.head, origin.turn, origin.standing)
        state = State(origin.uuid, last.head, last.turn, callers=last.callers, standing=last.standing)
        super().__init__(runtime, state, origin.name)
        self.origin = origin
        self._fence = Fence(runtime.host.id, origin.epoch)
        self._step: Step | None = None
        self._later.extend(last.commands)
        self._passing = sum(isinstance(one, AT_ANY_TIME) for one in last.commands)  # how many of them wait for no turn
        self._restarted: Restarted | None = None
        self._heir: PooledActor | None = None
        self._epitaph = ""

    def begin(self, log: Log | None) -> None:
        """Release a child that was just born; a turn that it was born with goes on at once.

        ``log``: its log, when it is at hand; else it is read when the child needs it, again and again if need be.
        """
        if log is None:
            self.actor_inbox.release(Restarted(self.state.turn, self.state.status) if self.state.turn else GoOn())
            return
        if self.state.turn:
            self.actor_inbox.put_urgent(on.Resume(Future()), first=True)
        self.actor_inbox.release(LogRead(log))

    def on_receive(self, message: Any) -> None:
        """One command, signal, completion or verdict; then whatever can be done next."""
        match message:
            case Committed() | Refused() | Failed():
                self._settle(message)
            case LogRead():
                self._loaded(message.log)
            case LoadFailed():
                self._lost(message.error)
            case GoOn():
                self._effects, self._postponed = [*self._postponed, *self._effects], []
            case Buried():
                self._epitaph = message.epitaph
                self._stop()
            case Cut():
                self._leave_remains(self._errands.crash(self.state.request))
                self._stop()
                message.done.settle(None)
            case NewMail():
                self._news = True
            case on.Prompt() if message.mail:
                if all(message.mail != known.mail for known in (*self._prompts, *self._prompts_here)):
                    self._prompts.append(message)
            case Crashed():
                if message.request == self.state.request and self._errands.asking:
                    raise message.error
            case Restarted():
                self._go_on_after(message)
            case on.StatusChanged():
                self._decide(message)
            case on.Resume() | on.GetOutcome() | on.Decide() | on.Interrupt():
                self._now_or_later(message)
            case on.ReplyReceived() | on.ReplyFailed() | on.Exited():
                self._answered(message)
            case on.ToolFinished():
                if message.request == self.state.request:  # a late one must not forget a newer run of the same call
                    self._errands.finished(message.call)
                self._decide(message)
            case _ if len(self._forks) + len(self._later) >= CAPACITY:
                told = f"Agent {self.state.uuid} has {CAPACITY} commands waiting; wait for some."
                message.caller.settle(InboxFull(told, self.state.uuid))
            case on.Fork():
                self._forks.append(message)
            case _:
                self._later.append(message)
        self._go_on()

    def _now_or_later(self, command: on.GetOutcome | on.Resume | on.Decide | on.Interrupt) -> None:
        """What waits for no turn is looked at now, unless the log must be read first."""
        if machine.accepts(self.state, command):
            self._decide(command)
        else:
            self._later.append(command)
            self._passing += isinstance(command, AT_ANY_TIME)

    def _go_on_after(self, restarted: Restarted) -> None:
        """The supervisor lets the agent go on: its turn is resumed, or closed; who waits for nothing is told so."""
        self._restarted = restarted
        standing = self.state.standing._replace(status=restarted.status)
        self._become(replace(self.state, turn=restarted.turn, standing=standing))
        if restarted.turn:  # before all that waits for the end of that turn
            self._later.insert(0, on.TurnPoisoned(restarted.poison) if restarted.poison else on.Resume(Future()))
            return
        callers, self.state = self.state.callers, replace(self.state, callers=())
        for caller in callers:
            caller.settle(TurnInterrupted(f"Agent {self.state.uuid} was restarted; no turn is open.", self.state.uuid))

    def _answered(self, completion: on.ReplyReceived | on.ReplyFailed | on.Exited) -> None:
        if completion.request == self.state.request and self._errands.asking:
            self._errands.answered()
            self.tally.answered(_spent_on(completion))
        self._decide(completion)

    def _decide(self, event: on.Event) -> bool:
        """Ask the machine; returns whether it had something to do."""
        event = self._informed(event)
        tools = self.runtime.toolbox.traits(self.state.view.settings)
        step = machine.step(self.state, event, self.runtime.clock.now_ms(), tools)
        something = step.unit is not None or step.state is not self.state or bool(step.effects)
        self._take(step)
        return something

    def _informed(self, event: on.Event) -> on.Event:
        """The event, with what only the log and what is outside know of it."""
        match event:
            case on.Interrupt() if event.turn in (0, self.state.turn):
                partial, spent = self._cancel()
                return replace(event, partial=partial, spent=spent)
            case on.Undo() if self._log is not None:
                latest = self._log.latest_prompt()
                return replace(event, prompt=latest.id if latest is not None else 0)
            case on.Prompt() if self._log is not None and self.state.failed:
                since = list(self._log.between(self.state.failed - 1, self.state.head))
                return replace(event, repeats=self.state.failed if machine.repeats(event.text, since) else 0)
        return event

    def exit(self) -> None:
        """See `Performer.exit`."""
        self._leave_remains(end=Exit.NORMAL)
        self._stop()

    def _go_on(self) -> None:
        """Perform what waits to be performed, then offer the machine what waits to be decided."""
        inbox = self.actor_inbox
        while not inbox.held and not inbox.closed and not inbox.urgent:
            if self._effects:
                self._perform_or_postpone(self._effects.pop(0))
            elif (command := self._next_command()) is None:
                return
            elif not self._decide(command) and isinstance(command, on.Continue):
                return  # its calls wait for what is outside; any other command is done with

    def _next_command(self) -> on.Event | None:
        """What can be decided now: a fork first, since it waits for less; then the calls of the last reply."""
        if self.state.status is Status.TERMINATING and not self.state.turn:
            return on.Leave()
        if self.state.status is Status.STOPPED and (new := [one for one in self._prompts_here if not one.mail]):
            return new[0]  # it stays where it is, as mail
        if self.state.phase is Phase.UNLOADED:
            if self._forks and not self._loading and machine.accepts(self.state, self._forks[0]):
                return self._forks.pop(0)
            if self._forks or self._later or self._prompts:
                self._load()
            return None
        if (own := self._between_turns()) is not None:
            return own
        if self._forks and machine.accepts(self.state, self._forks[0]):
            return self._forks.pop(0)
        if (waiting := self._next_of_those_that_wait()) is not None:
            return waiting
        if self.state.phase is Phase.RUNNING_TOOLS:
            return on.Continue(new_agent_uuid(self.runtime.random_bytes))
        return None

    def _next_of_those_that_wait(self) -> on.Event | None:
        """What has waited for the log: the commands of turns keep their order; what waits for no turn passes them, and
        prompts that wait for CONT are passed by all.
        """
        first, stopped = True, self.state.status is Status.STOPPED
        waiting = self._later if stopped or self._passing else self._later[:1]
        for place, command in enumerate(waiting):
            if stopped and isinstance(command, on.Prompt):
                continue
            if (first or isinstance(command, AT_ANY_TIME)) and machine.accepts(self.state, command):
                taken: on.Event = self._later.pop(place)
                self._passing -= isinstance(taken, AT_ANY_TIME)
                return taken
            first = False
        return None

    def _take(self, step: Step) -> None:
        if step.unit is None:
            self._enter(step)
            return
        self._step = step
        self.actor_inbox.held = True
        self.tally.submitted()
        if isinstance(step.unit, LogUnit) and step.unit.birth is not None:
            self.runtime.processes.expect(step.unit.birth)
        self.runtime.journal.submit(self._to_be_committed(step.unit), self.actor_inbox.release)

    def _to_be_committed(self, unit: LogUnit | CallUnit | MailNotice | Departure | PutAside) -> Unit:
        match unit:
            case PutAside():
                return KeepPrompt(self.state.uuid, unit.prompt.text, self.runtime.clock.now_ms())
            case LogUnit():
                return Append(unit, self._fence)
            case CallUnit():
                return append_call(unit, self._fence)
            case MailNotice():
                return append_notice(unit, self._fence)
            case Departure():
                now = self.runtime.clock.now_ms()
                return Bury(self.state.uuid, self.runtime.host.id, unit.reason, now, unit.cause)

    def _enter(self, step: Step) -> None:
        self._become(step.state)
        self._effects.extend(step.effects)

    def _settle(self, verdict: CommitResult) -> None:
        step, self._step = self._step, None
        self.tally.settled()
        assert step is not None  # a verdict answers the one unit in flight
        unit = step.unit
        if isinstance(unit, LogUnit) and unit.birth is not None and not isinstance(verdict, Committed):
            self.runtime.processes.forget(unit.birth)
        if isinstance(unit, PutAside):
            self._put_aside(unit.prompt, verdict)
        match verdict:
            case Committed():
                self._committed(step, verdict.value)
            case Refused(error=Fenced() | AgentDead() as error) if error.agent == self.state.uuid:
                dead = isinstance(error, Fenced) and error.dead
                self._abandon(step, ActorGone(str(error), error.agent) if dead else error)
                self._stop()
            case Refused():
                self._refused(step, verdict.error)
            case Failed():
                self._abandon(step, verdict.error)
                if isinstance(unit, LogUnit) and unit.prompt:
                    self._leave_prompts(verdict.error)

    def _committed(self, step: Step, answer: Any) -> None:
        if isinstance(step.unit, LogUnit):
            self._grow(step.unit.messages)
        elif isinstance(answer, CallAppended):
            self._grow((answer.message,))
        self._enter(step)

    def _put_aside(self, prompt: on.Prompt, verdict: CommitResult) -> None:
        """It is kept as mail, and keeps its place among what waits; or it could not be, and its caller hears."""
        place = next(place for place, one in enumerate(self._later) if getattr(one, "caller", None) is prompt.caller)
        if not isinstance(verdict, Committed):
            del self._later[place]
            return
        self._later[place] = replace(self._later[place], mail=verdict.value)
        self.runtime.publisher.publish(PromptKept(self.state.uuid, verdict.value, prompt.text))

    def _refused(self, step: Step, error: IkigaiError) -> None:
        """The state stays as it was; whoever asked hears why."""
        if step.caller is not None:
            step.caller.settle(error)
        if step.call is not None:
            self._decide(on.CallRefused(step.call, str(error)))
        elif isinstance(step.unit, Departure):  # of agent 0, by its own code
            self._decide(on.ReplyFailed(self.state.request, ProviderError(str(error))))

    def _grow(self, messages: Sequence[Message]) -> None:
        """The log in memory follows the store, and subscribers hear of it."""
        archive = self.runtime.archive
        if self._log is None:  # it has forked, for which its head was enough
            archive.forget(self.state.uuid)
        else:
            self._log = archive.grow(self._log, messages)
        for message in messages:
            self.runtime.publisher.publish(message)

    def _abandon(self, step: Step | None, error: IkigaiError) -> None:
        """Forget a state that did not come true; the next command reads the log again."""
        callers = [*self._callers(step), *([step.caller] if step is not None and step.caller is not None else [])]
        self._drop()
        before = self.state
        head = before.head if step is None else UNKNOWN
        self._become(State(before.uuid, head, before.turn, request=before.request + 1, standing=before.standing))
        for caller in callers:
            caller.settle(error)

    def _callers(self, step: Step | None) -> list[Any]:
        """Who waits for the outcome of the turn, also of one that a unit in flight opens."""
        return list(dict.fromkeys([*self.state.callers, *(step.state.callers if step else ())]))

    def _loaded(self, log: Log) -> None:
        self._loading, self._restarted = False, None
        self._log = log
        own = log.messages
        calls = recover(log.since(self.state.turn)) if self.state.turn else ()
        view = log.view(log.head)
        notice = machine.notice_of(own) if view.settings.get("notify") else 0
        last = outcome_of(own if log.ended is None else [log.ended, *own])
        self._decide(on.Loaded(log.head, view, calls, last, notice, machine.failed_turn(own)))

    def _lost(self, error: IkigaiError) -> None:
        """Without a log nothing can be done: who waits hears why. An agent whose own rows are wrong is buried; one that
        inherits from such an agent lives on. A restart is tried again later.
        """
        self._loading = False
        if self._restarted is not None and isinstance(error, StoreError):
            self._later = [one for one in self._later if not isinstance(one, on.Resume | on.TurnPoisoned)]
            self.actor_inbox.held = True
            again = self._restarted._replace(status=self.state.status)
            self.actor_inbox.held = self.runtime.processes.unstarted(self.state.uuid, again)
            return
        self._answer_waiting(error)
        self._leave_prompts(error)
        if isinstance(error, HistoryError) and error.agent == self.state.uuid:
            self.runtime.processes.bury(self.state.uuid, str(error))

    def on_crash(self, reason: BaseException) -> None:
        """An agent that crashed is the business of its supervisor; its next actor takes what comes from here on."""
        self._leave_remains(reason)

    def on_death(self, reason: BaseException | None) -> None:
        """Nobody is left waiting for an agent that acts no more."""
        self._end(self._gone())

    def _gone(self) -> ActorGone:
        uuid = self.state.uuid
        return ActorGone(self._epitaph or f"Agent {uuid} acts no more on this host.", uuid)

    def _leave_remains(self, error: BaseException | None = None, end: Exit | None = None) -> None:
        """Have the agent made anew, with all who wait. Whether a unit in flight came true is not known here."""
        end, why = (Exit.CRASH, described(error)) if error is not None else (end, "")
        callers = tuple(self._callers(self._step))
        state, waiting = self.state, (*self._forks, *self._later)
        self._become(replace(state, callers=()))
        if self._step is not None:
            self._step = replace(self._step, state=replace(self._step.state, callers=()))
        self._forks, self._later, self._passing = [], [], 0
        head = state.head if self._step is None else UNKNOWN
        remains = Remains(head, state.turn, state.standing, callers, waiting)
        self._heir = self.runtime.processes.crashed(self, remains, end, why)

    def close(self) -> None:
        """End the actor with the system; called when no worker runs any more."""
        self._end(
            SystemClosed("The system was closed before this was answered; an open turn comes back as interrupted.")
        )
        self.actor_inbox.set()

    def _end(self, error: IkigaiError) -> None:
        self._abandon(self._step, error)
        self._answer_waiting(error)
        self.runtime.outside.leave(self.state.uuid)

    def refuse(self, envelope: Envelope) -> None:
        """Answer a message that will never be handled."""
        message = envelope.message
        caller = getattr(message, "caller", None)
        if isinstance(message, Cut):
            message.done.settle(None)
        elif isinstance(caller, Future) and self._heir is not None:
            self._heir.actor_inbox.put_urgent(message)  # before what is told to the heir; or to its own heir
        elif isinstance(caller, Future):
            caller.settle(self._gone())
        super().refuse(envelope)


def _spent_on(completion: on.ReplyReceived | on.ReplyFailed | on.Exited) -> Spent | None:
    match completion:
        case on.ReplyReceived(reply=Reply(usage=Usage() as usage, model=model)):
            return Spent(usage, model)
        case on.ReplyFailed():
            return completion.spent
    return None
