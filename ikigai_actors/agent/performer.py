"""The half of an agent's actor that performs effects; agent.py has the half that decides.

Nothing leaves the process while the host may have lost its lease: such effects are postponed until it may act again.
"""

from typing import Any

from ikigai_actors.actors.actor import QUANTUM, PooledActor
from ikigai_actors.agent.effects import Errands
from ikigai_actors.agent.messages import GoOn, LoadFailed, LogRead
from ikigai_actors.agent.runtime import Runtime
from ikigai_actors.agent.statistics import AgentStatistics, Tally
from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.calls import Call
from ikigai_actors.agent.turn.state import (
    WORKING,
    Answer,
    AskApproval,
    BeginWait,
    ComeBack,
    Effect,
    Phase,
    RequestModel,
    RunTool,
    Spawn,
    State,
)
from ikigai_actors.errors import IkigaiError, StoreError
from ikigai_actors.providers.base import Spent
from ikigai_actors.records.log import Log
from ikigai_actors.records.log_unit import Birth
from supervisors.signals import Status

ASKED = (on.Prompt, on.Clear, on.SetMark, on.Rewind, on.Undo, on.Configure, on.ExitNow)
"""The commands, beside a fork, that are lost with the process while they wait for the end of a turn."""

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
        self._passing = 0
        self._loading = False
        self._slices = 0
        self._prompts: list[on.Prompt] = []
        self._news = False
        self.tally = Tally(runtime.clock)

    def __str__(self) -> str:
        return f"agent {self.state.uuid}"

    def statistics(self) -> AgentStatistics:
        """What it does, and has done since the actor was made. Any thread may ask; nothing waits."""
        return self.tally.report(self.state.shown.value, self.waiting)

    @property
    def rests(self) -> bool:
        """Whether it has nothing to do, and nothing that it was told waits. Any thread may ask: it is told with
        certainty, or denied, and then `Waits.rested` follows.
        """
        inbox, slices = self.actor_inbox, self._slices
        if inbox.scheduled:
            return False
        busy = inbox.held or not inbox.empty() or self._later or self._effects or self.state.turn
        return not busy and not inbox.scheduled and slices == self._slices  # nobody was at it meanwhile

    def run_slice(self, quantum: int = QUANTUM) -> bool:
        """See `PooledActor.run_slice`; tells who waits for it when it is done."""
        self._slices += 1
        again = super().run_slice(quantum)
        if not again:
            self.runtime.waits.rested(self.state.uuid)
        return again

    @property
    def wants_news(self) -> bool:
        """Whether it is to hear of new mail. Any thread may ask."""
        return bool(self.state.view.settings.get("notify"))

    @property
    def _prompts_here(self) -> list[on.Prompt]:
        """The prompts among what waits, of callers in this process; those of a stopped agent are kept as mail, too."""
        return [one for one in self._later if isinstance(one, on.Prompt)]

    @property
    def pending(self) -> int:
        """What somebody asked for that waits in memory, and is lost with the process."""
        return len(self._forks) + sum(isinstance(one, ASKED) and not getattr(one, "mail", 0) for one in self._later)

    @property
    def waiting(self) -> int:
        """Messages that wait for the agent."""
        return len(self.actor_inbox) + len(self._forks) + len(self._later)

    def exit(self) -> None:
        """The agent has exited and is permanent: die, and be made anew."""
        raise NotImplementedError("AgentActor, which decides, knows what it leaves to its heir")

    def _become(self, state: State) -> None:
        told = self.state.phase is Phase.IDLE and self.wants_news
        if state.phase is Phase.IDLE and not told and state.view.settings.get("notify"):
            self._news = True
        self.tally.became(self.state, state)
        self.state = state

    def _between_turns(self) -> on.Event | None:
        """What an idle agent does by itself: it is told of mail, and takes up what another process prompted."""
        if self.state.phase is not Phase.IDLE or self.state.status is not Status.RUNNING:
            return None
        if self._news and self.wants_news:
            self._news = False
            assert self._log is not None  # an idle agent is loaded
            notice = self.state.notice
            told = self._log.since(notice)[0].data if notice else {}
            return on.NoteMail(told if told.keys() >= {"unread", "last"} else None)
        if not self._prompts:
            return None
        first = self._later[0] if self._later else None
        earlier = first is None or (isinstance(first, on.Prompt) and first.mail > self._prompts[0].mail)
        return self._prompts.pop(0) if earlier else None

    def _answer_waiting(self, error: IkigaiError) -> None:
        waiting = [*self._forks, *self._later]
        self._forks, self._later, self._passing = [], [], 0
        for command in waiting:
            if (caller := getattr(command, "caller", None)) is not None:
                caller.settle(error)

    def _leave_prompts(self, error: IkigaiError) -> None:
        """What other processes prompted cannot be taken up now; it stays in the mailbox, and comes again."""
        if isinstance(error, StoreError):
            self.runtime.processes.untaken()
        self._prompts = []

    def _drop(self) -> None:
        """End what is outside, and let nothing more leave; what came true is told to those who asked for it."""
        effects, self._effects, self._postponed = self._effects, [], []
        for effect in effects:
            if isinstance(effect, Answer | Spawn):
                self._perform(effect)
        self._cancel()
        self._log = None
        self.runtime.archive.forget(self.state.uuid)

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
            case RequestModel() | RunTool() | AskApproval() | BeginWait() if not self._is_due(effect):
                pass  # the turn was interrupted between the commit and now
            case RequestModel():
                assert self._log is not None  # an agent in a turn is loaded
                self.tally.asked()
                self._errands.ask_model(self.state, self._log)
            case RunTool():
                self._errands.run_tool(effect.request, self._call(effect.call))
            case BeginWait():
                assert self._log is not None
                self._errands.wait(effect.request, self._call(effect.call), self._log)
            case ComeBack():
                self.exit()
            case AskApproval():
                self._errands.ask_approval(self._call(effect.call))

    def _is_due(self, effect: RequestModel | RunTool | AskApproval | BeginWait) -> bool:
        return effect.request == self.state.request and self.state.phase in WORKING

    def _call(self, call_id: str) -> Call:
        [call] = [call for call in self.state.calls if call.id == call_id]
        return call

    def _cancel(self) -> tuple[str, Spent | None]:
        """End what is outside; return what was received of the model's reply, and what it has cost."""
        asking = self._errands.asking
        partial, spent = self._errands.cancel()
        if asking:
            self.tally.answered(spent)
        return partial, spent

    def _spawn(self, birth: Birth) -> None:
        for message in birth.messages:
            self.runtime.publisher.publish(message)
        if self._log is None:  # not read: the child's is read when it needs it
            self.runtime.processes.spawn(birth, None)
        else:
            log = Log(birth.uuid, birth.fork_message_id, self._log, birth.messages)
            self.runtime.processes.spawn(birth, self.runtime.archive.keep(log))

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
