"""The half of an agent's actor that performs effects; agent.py has the half that decides.

Nothing leaves the process while the host may have lost its lease: such effects are postponed until it may act again.
"""

from typing import Any

from ikigai_actors import events as on
from ikigai_actors.actor_messages import GoOn, LoadFailed, LogRead
from ikigai_actors.calls import Call
from ikigai_actors.errands import Errands
from ikigai_actors.errors import IkigaiError
from ikigai_actors.log import Log
from ikigai_actors.pooled import PooledActor
from ikigai_actors.runtime import Runtime
from ikigai_actors.state import WORKING, Answer, AskApproval, ComeBack, Effect, RequestModel, RunTool, Spawn, State
from ikigai_actors.statistics import AgentStatistics, Tally
from ikigai_actors.units import Birth

OUTWARD = (RequestModel, RunTool, AskApproval)
"""The effects that leave the process; while the lease may be lost they wait."""


class Performer(PooledActor):
    """An actor that has a state and a log, and performs effects."""

    def __init__(self, runtime: Runtime, state: State, name: str | None) -> None:
        """Make one whose log is not read yet."""
        super().__init__(runtime.dispatcher)
        self.runtime, self.state = runtime, state
        self._log: Log | None = None
        self._effects: list[Effect] = []
        self._postponed: list[Effect] = []
        self._errands = Errands(runtime, self.actor_inbox, state.uuid, name)
        self._forks: list[on.Fork] = []
        self._later: list[Any] = []
        self._loading = False
        self.tally = Tally(runtime.clock)

    def __str__(self) -> str:
        return f"agent {self.state.uuid}"

    def statistics(self) -> AgentStatistics:
        """What it does, and has done since the actor was made. Any thread may ask; nothing waits."""
        return self.tally.report(self.state.shown.value, self.waiting)

    @property
    def waiting(self) -> int:
        """Messages that wait for the agent."""
        return len(self.actor_inbox) + len(self._forks) + len(self._later)

    def exit(self) -> None:
        """The agent has exited and is permanent: die, and be made anew."""
        raise NotImplementedError

    def _become(self, state: State) -> None:
        self.tally.became(self.state, state)
        self.state = state

    def _drop(self) -> None:
        """End what is outside, and let nothing more leave; what came true is told to those who asked for it."""
        effects, self._effects, self._postponed = self._effects, [], []
        for effect in effects:
            if not isinstance(effect, (*OUTWARD, ComeBack)):
                self._perform(effect)
        self._cancel()
        self._log = None

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
            case RequestModel() | RunTool() | AskApproval() if not self._is_due(effect):
                pass  # the turn was interrupted between the commit and now
            case RequestModel():
                assert self._log is not None  # an agent in a turn is loaded
                self.tally.asked()
                self._errands.ask_model(self.state, self._log)
            case RunTool():
                self._errands.run_tool(effect.request, self._call(effect.call))
            case ComeBack():
                self.exit()
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

    def _wake(self) -> None:
        self.actor_inbox.put_urgent(GoOn())

    def _load(self) -> None:
        """Read the log on the reader's thread; commands wait meanwhile."""
        if self._loading:
            return
        self._loading = True
        inbox = self.actor_inbox

        def done(log: Log | IkigaiError) -> None:
            inbox.put_urgent(LogRead(log) if isinstance(log, Log) else LoadFailed(log))

        self.runtime.reader.read(self.state.uuid, done)
