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

from dataclasses import replace
from typing import Any

from ikigai_actors import events as on
from ikigai_actors import machine
from ikigai_actors.actor_messages import Buried, GoOn, LoadFailed, LogRead
from ikigai_actors.calls import Call, recover
from ikigai_actors.errands import Errands
from ikigai_actors.errors import Fenced, HistoryError, IkigaiError, SystemClosed
from ikigai_actors.futures import Future
from ikigai_actors.identity import new_agent_uuid
from ikigai_actors.inbox import CAPACITY, Envelope, InboxFull
from ikigai_actors.journal import Committed, Failed, Refused, Verdict
from ikigai_actors.log import Log
from ikigai_actors.pooled import ActorGone, PooledActor
from ikigai_actors.runtime import Runtime
from ikigai_actors.state import WORKING, Answer, AskApproval, Effect, Phase, RequestModel, RunTool, Spawn, State, Step
from ikigai_actors.statistics import AgentStatistics, Tally
from ikigai_actors.units import Append, Birth, Fence, LogUnit

OUTWARD = (RequestModel, RunTool, AskApproval)
"""The effects that leave the process; while the lease may be lost they wait."""


class AgentActor(PooledActor):
    """Runs one agent."""

    def __init__(self, runtime: Runtime, uuid: str, name: str | None, epoch: int, head: int, turn: int) -> None:
        """Make the actor of an agent whose log is not read yet.

        Args:
            runtime: the parts of the system that it works with.
            uuid: the agent.
            name: its name, if any.
            epoch: in which this host owns it.
            head: position of its latest message.
            turn: id of the message that opened the turn in progress; 0 when idle.
        """
        super().__init__(runtime.dispatcher)
        self.runtime = runtime
        self.state = State(uuid, head, turn)
        self._fence = Fence(runtime.host.id, epoch)
        self._log: Log | None = None
        self._step: Step | None = None
        self._effects: list[Effect] = []
        self._postponed: list[Effect] = []
        self._forks: list[on.Fork] = []
        self._later: list[on.Command | on.Interrupt] = []
        self._errands = Errands(runtime, self.actor_inbox, uuid, name)
        self._loading = False
        self.tally = Tally(runtime.clock)

    def __str__(self) -> str:
        return f"agent {self.state.uuid}"

    @property
    def waiting(self) -> int:
        """Messages that wait for the agent."""
        return len(self.actor_inbox) + len(self._forks) + len(self._later)

    def statistics(self) -> AgentStatistics:
        """What it does, and has done since the actor was made. Any thread may ask; nothing waits."""
        return self.tally.report(self.state.shown.value, self.waiting)

    def begin(self, log: Log) -> None:
        """Release a child that was just born: its log is at hand, and a turn that it was born with goes on at once."""
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
                self._stop()
            case on.Interrupt():
                self._now_or_later(replace(message, partial=self._cancel()))
            case on.AskOutcome() | on.Resume() | on.Decide():
                self._now_or_later(message)
            case on.ReplyReceived() | on.ReplyFailed():
                self._answered(message)
            case on.ToolFinished():
                if message.request == self.state.request:  # a late one must not forget a newer run of the same call
                    self._errands.finished(message.call)
                self._decide(message)
            case _ if len(self._forks) + len(self._later) >= CAPACITY:
                message.caller.settle(
                    InboxFull(f"Agent {self.state.uuid} has {CAPACITY} commands waiting; wait for some.")
                )
            case on.Fork():
                self._forks.append(message)
            case _:
                self._later.append(message)
        self._go_on()

    def _now_or_later(self, command: on.AskOutcome | on.Resume | on.Decide | on.Interrupt) -> None:
        """What waits for no turn is looked at now, unless the log must be read first."""
        if machine.accepts(self.state, command):
            self._decide(command)
        else:
            self._later.append(command)

    def _answered(self, completion: on.ReplyReceived | on.ReplyFailed) -> None:
        if completion.request == self.state.request and self._errands.asking:
            self._errands.answered()
            self.tally.answered(completion.reply.usage if isinstance(completion, on.ReplyReceived) else None)
        self._decide(completion)

    def _decide(self, event: on.Event) -> bool:
        """Ask the machine; returns whether it had something to do."""
        book = self.runtime.toolbox.book(self.state.view.settings)
        step = machine.step(self.state, event, self.runtime.clock.now_ms(), book)
        something = step.unit is not None or step.state is not self.state or bool(step.effects)
        self._take(step)
        return something

    def _go_on(self) -> None:
        """Perform what waits to be performed, then offer the machine what waits to be decided."""
        inbox = self.actor_inbox
        while not inbox.held and not inbox.closed and not inbox.urgent:
            if self._effects:
                self._perform_or_postpone(self._effects.pop(0))
            elif (command := self._next_command()) is None or not self._decide(command):
                return

    def _next_command(self) -> on.Event | None:
        """What can be decided now: a fork first, since it waits for less; then the calls of the last reply."""
        if self.state.phase is Phase.UNLOADED:
            if self._forks or self._later:
                self._load()
            return None
        if self._forks and machine.accepts(self.state, self._forks[0]):
            return self._forks.pop(0)
        if self.state.phase is Phase.RUNNING_TOOLS:
            return on.GoOn(new_agent_uuid(self.runtime.random_bytes))
        if self._later and machine.accepts(self.state, self._later[0]):
            return self._later.pop(0)
        return None

    def _take(self, step: Step) -> None:
        if step.unit is None:
            self._enter(step)
            return
        self._step = step
        self.actor_inbox.held = True
        self.tally.submitted()
        if step.unit.birth is not None:
            self.runtime.expect(step.unit.birth)
        self.runtime.journal.submit(Append(step.unit, self._fence), self.actor_inbox.release)

    def _enter(self, step: Step) -> None:
        self._become(step.state)
        self._effects.extend(step.effects)

    def _become(self, state: State) -> None:
        self.tally.became(self.state, state)
        self.state = state

    def _settle(self, verdict: Verdict) -> None:
        step, self._step = self._step, None
        self.tally.settled()
        assert step is not None  # a verdict answers the one unit in flight
        assert step.unit is not None
        if step.unit.birth is not None and not isinstance(verdict, Committed):
            self.runtime.forget(step.unit.birth)
        match verdict:
            case Committed():
                self._grow(step.unit)
                self._enter(step)
            case Refused(error=Fenced() as error):
                self._abandon(step, error)
                self._stop()
            case Refused():
                self._refused(step, verdict.error)
            case Failed():
                self._abandon(step, verdict.error)

    def _refused(self, step: Step, error: IkigaiError) -> None:
        """The state stays as it was; whoever asked hears why."""
        if step.caller is not None:
            step.caller.settle(error)
        if step.call is not None:
            self._decide(on.CallRefused(step.call, str(error)))

    def _grow(self, unit: LogUnit) -> None:
        """The log in memory follows the store, and subscribers hear of it."""
        assert self._log is not None  # an agent that writes is loaded
        self._log.extend(unit.messages)
        for message in unit.messages:
            self.runtime.publisher.publish(message)

    def _abandon(self, step: Step | None, error: IkigaiError) -> None:
        """Forget a state that did not come true; the next command reads the log again."""
        callers = [*self.state.callers, *(step.state.callers if step else ())]
        if step is not None and step.caller is not None:
            callers.append(step.caller)
        effects, self._effects, self._postponed = self._effects, [], []
        for effect in effects:  # of earlier steps, which did come true
            if not isinstance(effect, OUTWARD):
                self._perform(effect)
        self._cancel()
        self._log = None
        self._become(State(self.state.uuid, self.state.head, self.state.turn, request=self.state.request + 1))
        for caller in callers:
            caller.settle(error)

    def _perform_or_postpone(self, effect: Effect) -> None:
        """Nothing leaves the process while the lease may be lost; what stays inside does not wait for it."""
        if isinstance(effect, OUTWARD) and not self.runtime.host.may_act(self._wake):
            self._postponed.append(effect)
        else:
            self._perform(effect)

    def _perform(self, effect: Effect) -> None:
        match effect:
            case Answer():
                effect.caller.settle(effect.value)
            case Spawn():
                self._spawn(effect.birth)
            case RequestModel() | RunTool() | AskApproval() if (
                effect.request != self.state.request or self.state.phase not in WORKING
            ):
                pass  # the turn was interrupted between the commit and now
            case RequestModel():
                assert self._log is not None  # an agent in a turn is loaded
                self.tally.asked()
                self._errands.ask_model(self.state, self._log)
            case RunTool():
                self._errands.run_tool(effect.request, self._call(effect.call))
            case AskApproval():
                self._errands.ask_approval(self._call(effect.call))

    def _is_due(self, effect: RequestModel | RunTool | AskApproval) -> bool:
        return effect.request == self.state.request and self.state.phase in WORKING

    def _call(self, call_id: str) -> Call:
        [call] = [call for call in self.state.calls if call.id == call_id]
        return call

    def _cancel(self) -> str:
        """End what is outside; return what was received of the model's reply."""
        if self._errands.asking:
            self.tally.answered()
        return self._errands.cancel()

    def _spawn(self, birth: Birth) -> None:
        log = Log(birth.uuid, birth.fork_message_id, self._log, birth.messages)
        for message in birth.messages:
            self.runtime.publisher.publish(message)
        self.runtime.spawn(birth, self.runtime.archive.keep(log))

    def _load(self) -> None:
        """Read the log on the reader's thread; commands wait meanwhile."""
        if self._loading:
            return
        self._loading = True
        inbox = self.actor_inbox

        def done(log: Log | IkigaiError) -> None:
            inbox.put_urgent(LogRead(log) if isinstance(log, Log) else LoadFailed(log))

        self.runtime.reader.read(self.state.uuid, done)

    def _loaded(self, log: Log) -> None:
        self._loading = False
        self._log = log
        own = log.messages
        calls = recover(own[self.state.turn - log.base - 1 :]) if self.state.turn else ()
        self._decide(on.Loaded(log.head, log.view(log.head), calls, machine.outcome_of(own)))

    def _lost(self, error: IkigaiError) -> None:
        """Without a log nothing can be done: who waits hears why, and an agent whose rows are wrong is buried."""
        self._loading = False
        self._answer_waiting(error)
        if isinstance(error, HistoryError):
            self.runtime.bury(self.state.uuid, str(error))

    def _answer_waiting(self, error: IkigaiError) -> None:
        waiting = [*self._forks, *self._later]
        self._forks, self._later = [], []
        for command in waiting:
            command.caller.settle(error)

    def _wake(self) -> None:
        self.actor_inbox.put_urgent(GoOn())

    def on_death(self, reason: BaseException | None) -> None:
        """Nobody is left waiting for an agent that acts no more.

        A reason is a defect of ours in the agent's code. Its row stays ``running``: it comes back at the next boot.
        """
        how = "acts no more on this host." if reason is None else f"failed: {reason!r}"
        self._end(ActorGone(f"Agent {self.state.uuid} {how}", self.state.uuid))

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
        caller = getattr(envelope.message, "caller", None)
        if isinstance(caller, Future):
            caller.settle(ActorGone(f"Agent {self.state.uuid} acts no more on this host.", self.state.uuid))
        super().refuse(envelope)
