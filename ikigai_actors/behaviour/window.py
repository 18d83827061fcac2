"""The trials of an experiment that are in flight: they are waited for, resumed, prompted again, and judged.

the window     4 answered     5 answered     6 in its turn     7 not born
the first one is judged next, and leaves the window with its verdict
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from ikigai_actors.actors.futures import Future, TimedOut
from ikigai_actors.actors.threads import current_threads
from ikigai_actors.agent.turn.recorded_words import words_in
from ikigai_actors.agent.waits import WaitResult
from ikigai_actors.behaviour.book import JudgedTrial
from ikigai_actors.behaviour.differences import not_given
from ikigai_actors.behaviour.experiment import Experiment
from ikigai_actors.behaviour.plans.plan import UNJUDGED, Trial, Verdict
from ikigai_actors.behaviour.trials import FollowUp, Judge, JudgeAsked, TrialRun, TrialStart, settled
from ikigai_actors.behaviour.turns import Turn, own_messages
from ikigai_actors.errors import (
    AgentDead,
    BudgetExceeded,
    IkigaiError,
    NoTurn,
    OutputError,
    ProviderMissing,
    ReplayDiverged,
    TurnInterrupted,
)
from ikigai_actors.providers.base import Reply
from ikigai_actors.reach.trials import end_agent, follow_up, latest_of_resting
from ikigai_actors.reach.views import position_of
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.replies import outcome_of
from ikigai_actors.system.handles.ref import AgentRef

T = TypeVar("T")

LOOKED_AT = 32
"""The number of trials whose latest messages are read in one query."""

Judged = tuple[TrialRun, JudgedTrial]
"""The outcome of a trial, and its verdict."""


@dataclass(slots=True, eq=False)
class InFlight:
    """A trial without a verdict: it waits for its birth, for its answer or for the judge."""

    trial: Trial
    start: TrialStart
    agent: AgentRef | None
    """The agent of the trial; None until it is born."""
    latest: Message | None = None
    """The latest message of the trial, once it has answered."""
    judging: Future[Judged | None] | None = None
    """The future of the verdict, if the judge runs on a thread of its own."""

    @property
    def prefix(self) -> tuple[str, int, str]:
        """Return the key that trials with the same start share: agent, position and arm."""
        return self.start.of, self.start.at, self.trial.arm


class TrialWindow(list[InFlight]):
    """The trials in flight, in the order of their numbers; unborn ones come last."""

    def __init__(self, experiment: Experiment, judge: Judge) -> None:
        super().__init__()
        self._experiment, self._judge = experiment, judge
        self._system = experiment.agent.system
        self._judge_blocks = bool(getattr(judge, "blocks", False))
        self._timeout: float | None = getattr(judge, "timeout", None)
        self._judged_by = str(getattr(judge, "judged_by", ""))

    def is_first_ready(self) -> bool:
        """Return whether the first trial has answered, so that it can be judged without waiting."""
        first = self[0]
        if first.agent is None or self._judge_blocks or first.start.then:
            return False
        return self._answered(first, first.agent) is not None

    def judge_first(self) -> Judged | None:
        """Wait for the first trial and judge it; None if its turn cannot go on: `Experiment.ended` says why.

        A blocking judge judges all trials of the window meanwhile, each on its own thread.
        """
        if not self._judge_blocks:
            return self._judged(self[0])
        for trial in self:
            if trial.agent is not None and trial.judging is None:
                trial.judging = _on_a_thread(partial(self._judged, trial))
        judging = self[0].judging
        assert judging is not None  # who judges a trial has had it born
        return judging.get()

    def _judged(self, trial: InFlight) -> Judged | None:
        agent, retries = trial.agent, self._experiment.how.retries
        assert agent is not None  # as above
        while True:
            if (trial.start.then or self._answered(trial, agent) is None) and not self._waited(agent):
                return None
            run, end = run_of(trial.trial, agent, trial.start.recorded, self._answered(trial, agent))
            trial.latest = None
            if run.error is None:
                behind = _next_of(trial.start.then, agent)
                if behind is None:
                    break
                follow_up(agent, behind.prompt, behind.data)
            elif isinstance(run.error, ReplayDiverged | OutputError) or not retries or not resume_trial(agent):
                if isinstance(run.error, ProviderMissing):  # no verdict: the same call goes on when there is a model
                    raise run.error
                break
            else:
                retries -= 1
        # A trial that has no reply has no text to judge: a judge of what a text lacks would call it right. A replay is
        # judged by the turn that it has taken, which may have made its calls without a reply.
        has_no_answer = run.reply is None and run.recorded is None
        verdict = UNJUDGED if has_no_answer else self._verdict(run)
        if verdict is None:
            return None
        if run.error is not None and verdict.score is None and not verdict.why:
            verdict = Verdict(None, str(run.error), over=True)
        return run, JudgedTrial(_with_words(verdict, trial.start, agent), end, self._judged_by)

    def _verdict(self, run: TrialRun) -> Verdict | None:
        """Return the verdict of the judge; None if the judge cannot go on: `Experiment.ended` has the reason."""
        try:
            said = self._said(run)
        except BudgetExceeded:
            self._experiment.ended = str(WaitResult.BUDGET)
            return None
        if isinstance(said, JudgeAsked):
            if not self._waited(said.agent):
                end_agent(said.agent, "it is asked again when the experiment goes on")
                return None
            return said.verdict()
        return said

    def _said(self, run: TrialRun) -> Verdict | JudgeAsked:
        """Return the answer of the judge. After the judge's time-out, the verdict is that the trial was not judged."""
        if self._timeout is None:
            return settled(self._judge(run))
        saying = _on_a_thread(lambda: settled(self._judge(run)))
        try:
            return saying.get(timeout=self._timeout)
        except TimedOut:
            if saying.done():  # it has raised this itself
                return saying.get()
            return Verdict(None, f"the judge took longer than {self._timeout:g} seconds")

    def _answered(self, trial: InFlight, agent: AgentRef) -> Message | None:
        """Return the latest message of a trial that lives and has no open turn; None for any other trial.

        The same query reads the latest messages of the next trials, except trials that get further prompts.
        """
        if trial.latest is None:
            behind = () if self._judge_blocks else self[1:LOOKED_AT]  # else each has its own thread
            asked = {agent.uuid: trial}
            asked |= {other.agent.uuid: other for other in behind if other.agent is not None and not other.start.then}
            for uuid, message in latest_of_resting(self._system, [*asked]).items():
                asked[uuid].latest = message
        return trial.latest

    def _waited(self, agent: AgentRef) -> bool:
        """Wait until a trial has nothing to do; return False when it and all other trials in flight are paused."""
        me = self._experiment.agent
        [why] = me.wait([agent]).values()
        if why not in (WaitResult.BUDGET, WaitResult.STOPPED):
            return True
        # what they leave of the budget may be enough
        me.wait([trial.agent for trial in self if trial.agent is not None])
        [why] = me.wait([agent]).values()
        if why is WaitResult.BUDGET or why is WaitResult.STOPPED:
            self._experiment.ended = str(why)
            return False
        return True


def _with_words(verdict: Verdict, start: TrialStart, agent: AgentRef) -> Verdict:
    """Return the verdict on a trial, with the recorded steering messages that the trial ended too early to get."""
    if not (words := words_in(start.settings)):
        return verdict
    positions = {message.data.get("from") for message in own_messages(agent) if message.kind == Kind.STEER}
    missing = (not_given(number) for number, word in enumerate(words, 1) if word.position not in positions)
    reasons = (verdict.why, *(reason for reason in missing if reason not in verdict.why))
    return replace(verdict, why="; ".join(filter(None, reasons)))


def resume_trial(agent: AgentRef) -> bool:
    """Resume a failed or interrupted turn of a trial; return whether there was one."""
    try:
        return agent.resume()
    except (AgentDead, TurnInterrupted):
        return False


def run_of(trial: Trial, agent: AgentRef, recorded: Turn | None, latest: Message | None = None) -> tuple[TrialRun, int]:
    """Return the outcome of an idle trial, and its last position.

    A trial without a prompt has the answer that it inherits. ``latest`` is its latest message, if the caller has read
    it.
    """
    outcome: Reply | IkigaiError | None = None if latest is None else outcome_of([latest])
    if latest is not None and outcome is not None:
        end = latest.id
    else:
        outcome = _outcome_of_turn(agent)
        end = position_of(agent.system, agent.uuid)
    if isinstance(outcome, IkigaiError):
        return TrialRun(trial, agent, None, outcome, recorded), end
    return TrialRun(trial, agent, outcome, None, recorded), end


def _outcome_of_turn(agent: AgentRef) -> Reply | IkigaiError | None:
    try:
        return agent.reply()
    except NoTurn:
        inherited = outcome_of(reversed(agent.history()))
        return inherited if isinstance(inherited, Reply) else None
    except IkigaiError as error:
        return error


def _next_of(then: Sequence[FollowUp], agent: AgentRef) -> FollowUp | None:
    """Return the next prompt of a trial that has answered, by the number of prompts in its log; None if all came."""
    if not then:
        return None
    asked = sum(message.kind == Kind.USER and "from" not in message.data for message in own_messages(agent))
    return then[asked - 1] if asked <= len(then) else None


def _on_a_thread(work: Callable[[], T]) -> Future[T]:
    done: Future[T] = Future()

    def run() -> None:
        try:
            value = work()
        except BaseException:
            done.set_exception()
        else:
            done.set(value)

    current_threads().thread(run, "ikigai-judge").start()
    return done
