"""The driver of an experiment: it makes the trials that a plan asks for, and tells the plan their verdicts.

    window of 3     told: 1 2 3     in flight: 4 5 6     to be asked for: 7, when the verdict on 4 is told

Trial i is asked for when 1 … i − parallel are told, so what is asked for is a function of the seed and the verdicts,
whatever finishes first. What is durable is the book alone, written in units of verdicts and of the births that depend
on them:

    crash before a unit         the same trials are asked for again, with new uuids
    unit committed              they are found by their numbers; open turns are resumed, and paid again as any turn's
    reply, before its verdict   it is judged again; nothing could depend on the first verdict

Before it writes or asks anything, it says what is left to be asked (`ikigai_actors.behaviour.forecasts`): the book has
been played through the plan by then. A dry run ends there.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TypeVar

from ikigai_actors.actors.futures import Future
from ikigai_actors.actors.threads import current_threads
from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.state import Phase
from ikigai_actors.agent.waits import WaitResult
from ikigai_actors.behaviour.book import JudgedTrial, TrialRecord, birth_facts, verdicts_note
from ikigai_actors.behaviour.experiment import Experiment
from ikigai_actors.behaviour.forecasts import Forecast, total_of
from ikigai_actors.behaviour.plans.plan import GO, Trial, TrialPlan, Verdict, verdict_of
from ikigai_actors.behaviour.trials import FollowUp, Judge, TrialRun, TrialStart
from ikigai_actors.behaviour.turns import own_messages
from ikigai_actors.errors import AgentDead, ExperimentDiffers, IkigaiError, NoTurn, TurnInterrupted
from ikigai_actors.providers.base import Reply
from ikigai_actors.records.heads import heads_of, latest_at_rest
from ikigai_actors.records.identity import new_agent_uuid
from ikigai_actors.records.messages import Kind, Message
from ikigai_actors.records.replies import outcome_of
from ikigai_actors.system.births import MOST_AT_ONCE
from ikigai_actors.system.ref import AgentRef

T = TypeVar("T")

logger = logging.getLogger(__name__)

DRY_RUN = "dry run"
"""Why a run has ended that was only to say what is left to be asked."""

LOOKED_AT = 32
"""Of so many trials it is read at once whether they have answered."""

Prefix = tuple[str, int, str]
"""What trials share that go on from one place: whose history, up to where, and their arm."""


class Driver:
    """One run of an experiment."""

    def __init__(
        self,
        experiment: Experiment,
        plan: TrialPlan,
        start: Callable[[Trial], TrialStart],
        judge: Judge,
        expected: Callable[[int], Forecast],
    ) -> None:
        """Make one.

        Args:
            experiment: whose trials are made.
            plan: as it is before its first trial. What the book has is played through it first.
            start: where a trial begins. It is called once for each that has no verdict yet.
            judge: is called on the driver's thread, for trials in the order of their numbers; one that `blocks` on a
                thread of each trial, as soon as that has answered.
            expected: what a trial is expected to ask, by its number.
        """
        self._experiment, self._book, self._how = experiment, experiment.book, experiment.how
        self._system = experiment.agent.system
        self._plan, self._start, self._judge, self._expected = plan, start, judge, expected
        self._judge_blocks = bool(getattr(judge, "blocks", False))
        self._window: list[Trial] = []
        """The trials that were asked for, and whose verdicts are not told."""
        self._told = 0
        """The latest trial whose verdict was told."""
        self._starts: dict[int, TrialStart] = {}
        """Of those in the window which have no verdict in the book, by number."""
        self._unborn: list[Trial] = []
        """The last ones of the window: they are not in the book."""
        self._cut_off: list[AgentRef] = []
        """Trials whose process has ended in their turn, and that do not go on yet."""
        self._has_said = False
        """Whether it was said what is left."""
        self._warm: set[Prefix] = set()
        """Those with which a trial has answered: they are in the cache of the model's service."""
        self._unwritten: dict[int, JudgedTrial] = {}
        """Verdicts that are not in the book of the database."""
        self._judging: dict[int, Future[tuple[TrialRun, JudgedTrial] | None]] = {}
        """Verdicts that are made on threads of their own, by number."""
        self._latest: dict[str, Message] = {}
        """The latest messages of trials that have answered and have no verdict, by uuid."""

    def run(self) -> None:
        """Make all trials. Whatever ends it, the verdicts are written, and another run goes on behind them.

        Raises:
            ExperimentDiffers: the plan asks for another trial than the book has.
            IkigaiError: what a unit raises; and what the plan, `start`, the judge and `on_trial` raise.
        """
        self._experiment.ended = DRY_RUN if self._how.dry_run else ""
        try:
            while self._fill_window():
                trial = self._window[0]
                judged = self._book.judged.get(trial.number)
                if judged is None:
                    self._say_what_is_left(trial)
                    if self._how.dry_run:
                        return
                    self._resume_cut_off()
                    if not self._waits_to_be_judged(trial):
                        self._write()  # before anything is waited for
                    made = self._judged(trial)
                    if made is None:
                        return
                    run, judged = made
                    self._unwritten[trial.number] = self._book.judged[trial.number] = judged
                    if self._how.on_trial is not None:
                        self._how.on_trial(run, judged.verdict)
                self._tell(trial, judged)
            self._check_all_asked_for()
            self._write()
        finally:
            with suppress(IkigaiError):
                self._write_unit([])

    def _fill_window(self) -> bool:
        """Ask for trials until the window is full; False when there is none to be judged."""
        while len(self._window) < self._how.parallel and (trial := self._plan.ask()) is not None:
            self._window.append(trial)
            born = self._book.trials.get(trial.number)
            if born is None:
                self._unborn.append(trial)
            elif born != _record(trial, born.agent):
                raise self._differs(f"another trial {trial.number}")
            if trial.number not in self._book.judged:
                self._starts[trial.number] = self._start(trial)
                if born is not None and (agent := self._agent_of(trial)).state == Phase.INTERRUPTED:
                    self._cut_off.append(agent)
        return bool(self._window)

    def _check_all_asked_for(self) -> None:
        if (last := max(self._book.trials, default=0)) > self._told:
            raise self._differs(f"a trial {last} more")

    def _differs(self, what: str) -> ExperimentDiffers:
        return ExperimentDiffers(
            f"Experiment {self._experiment.agent.uuid} has {what} in its book than the plan asks for: its options have "
            "changed. Give it another name, or fresh=True to begin a new one."
        )

    def _say_what_is_left(self, first: Trial) -> None:
        """Say once what is left from this trial on."""
        if self._has_said:
            return
        last = first.number + len(self._window) - 1 if self._plan.is_over else self._plan.most
        forecast = total_of(map(self._expected, range(first.number, last + 1)))
        self._has_said, self._experiment.forecast = True, forecast
        logger.info("%s: %s", (self._book.terms or {}).get("verb"), forecast.text())

    def _resume_cut_off(self) -> None:
        for agent in self._cut_off:
            _resume(agent)
        self._cut_off.clear()

    def _tell(self, trial: Trial, judged: JudgedTrial) -> None:
        del self._window[0]
        self._told = trial.number
        if trial.number in self._starts:
            self._warm.add(self._prefix(trial))
            del self._starts[trial.number]
        self._plan.tell(trial.number, judged.verdict)

    def _write(self) -> None:
        """Commit verdicts, and the births that depend on them, as one unit.

        Births that wait for a cache, and those behind them, wait: the book has them in order.
        """
        ready = self._before_cold() if self._how.warm else len(self._unborn)
        births, self._unborn = self._unborn[:ready], self._unborn[ready:]
        for place in range(0, max(1, len(births)), MOST_AT_ONCE):
            self._write_unit(births[place : place + MOST_AT_ONCE])

    def _write_unit(self, trials: Sequence[Trial]) -> None:
        if not self._unwritten and not trials:
            return
        records = [_record(trial, new_agent_uuid(self._system.random_bytes)) for trial in trials]
        births = []
        for record in records:
            start = self._starts[record.number]
            births.append(on.TrialBirth(record.agent, *start[:5], birth_facts(record), start.go, start.begin))
        verdicts, self._unwritten = self._unwritten, {}  # a unit that fails is not tried again
        self._experiment.write(verdicts_note(verdicts), births)
        self._book.trials.update((record.number, record) for record in records)

    def _before_cold(self) -> int:
        """How many of the births come before the first that waits for a sibling's answer.

        A trial that goes on from another one finds the prefix that the other one's request has written.
        """
        cold: set[Prefix] = set()
        for place, trial in enumerate(self._window, len(self._unborn) - len(self._window)):
            if trial.number not in self._starts:
                continue
            prefix = self._prefix(trial)
            if place >= 0 and trial.of == 0 and prefix in cold:
                return place
            if prefix not in self._warm:
                cold.add(prefix)
        return len(self._unborn)

    def _prefix(self, trial: Trial) -> Prefix:
        start = self._starts[trial.number]
        return start.of, start.at, trial.arm

    def _waits_to_be_judged(self, trial: Trial) -> bool:
        """Whether a trial has answered, so that its verdict goes into the same unit as those before it.

        No more than a quarter of the window waits to be born meanwhile: the models have the rest to do.
        """
        if not self._is_born(trial) or len(self._unborn) >= self._how.parallel // 4:
            return False
        if self._judge_blocks or self._starts[trial.number].then:
            return False
        return self._answered(trial) is not None

    def _judged(self, first: Trial) -> tuple[TrialRun, JudgedTrial] | None:
        """What came of the first trial of the window, and the verdict on it; None when its turn cannot go on.

        A judge that blocks is at all trials of the window meanwhile, each on its own thread.
        """
        if not self._judge_blocks:
            return self._verdict(first)
        for trial in self._window:
            if self._is_born(trial) and trial.number in self._starts and trial.number not in self._judging:
                self._judging[trial.number] = _on_a_thread(partial(self._verdict, trial))
        return self._judging.pop(first.number).get()

    def _verdict(self, trial: Trial) -> tuple[TrialRun, JudgedTrial] | None:
        agent = self._agent_of(trial)
        start, retries = self._starts[trial.number], self._how.retries
        while True:
            if (start.then or self._answered(trial) is None) and not self._waited(agent):
                return None
            run, end = _run_of(trial, agent, self._answered(trial))
            self._latest.pop(agent.uuid, None)
            if run.error is None:
                follow_up = _next_of(start.then, agent)
                if follow_up is None:
                    break
                self._system.tell(agent.uuid, on.Prompt(follow_up.prompt, Future(agent.uuid), data=follow_up.data))
            elif run.diverged or not retries or not _resume(agent):
                break
            else:
                retries -= 1
        run = replace(run, recorded=start.recorded)
        verdict = self._judge(run)
        verdict = verdict_of(verdict.get() if isinstance(verdict, Future) else verdict)
        if run.error is not None and verdict.score is None and not verdict.why:
            verdict = Verdict(None, str(run.error), over=True)
        return run, JudgedTrial(verdict, end)

    def _answered(self, trial: Trial) -> Message | None:
        """The latest message of a trial that lives and has no turn open; None of another.

        It is read together with those of the trials behind it, but for those that are prompted again.
        """
        uuid = self._agent_of(trial).uuid
        if uuid not in self._latest:
            behind = () if self._judge_blocks else self._window[1:LOOKED_AT]  # else each has its own thread
            others = [self._agent_of(one).uuid for one in behind if self._has_one_turn(one)]
            self._latest |= self._system.store.read(lambda tx: latest_at_rest(tx, [uuid, *others]))
        return self._latest.get(uuid)

    def _has_one_turn(self, trial: Trial) -> bool:
        """Whether a trial is born, and its first answer is its last one."""
        return self._is_born(trial) and trial.number in self._starts and not self._starts[trial.number].then

    def _waited(self, agent: AgentRef) -> bool:
        """Wait until a trial has nothing to do; False when it is paused, and so are all others in flight."""
        me = self._experiment.agent
        [why] = me.wait([agent]).values()
        if why not in (WaitResult.BUDGET, WaitResult.STOPPED):
            return True
        me.wait([self._agent_of(one) for one in self._window if self._is_born(one)])  # what they leave may be enough
        [why] = me.wait([agent]).values()
        if why is WaitResult.BUDGET or why is WaitResult.STOPPED:
            self._experiment.ended = str(why)
            return False
        return True

    def _is_born(self, trial: Trial) -> bool:
        return trial.number in self._book.trials

    def _agent_of(self, trial: Trial) -> AgentRef:
        return self._experiment.agent_of(trial.number)


def _record(trial: Trial, agent: str) -> TrialRecord:
    prompt = None if trial.prompt is GO else str(trial.prompt)
    return TrialRecord(trial.number, agent, trial.of, prompt, trial.place, trial.arm)


def _next_of(then: Sequence[FollowUp], agent: AgentRef) -> FollowUp | None:
    """The next prompt of a trial that has answered: its log says how many it got."""
    if not then:
        return None
    asked = sum(one.kind == Kind.USER and "from" not in one.data for one in own_messages(agent))
    return then[asked - 1] if asked <= len(then) else None


def _on_a_thread(work: Callable[[], T]) -> Future[T]:
    """What work returns, or raises, from a thread of its own."""
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


def _run_of(trial: Trial, agent: AgentRef, latest: Message | None) -> tuple[TrialRun, int]:
    """What came of a trial that has nothing to do, and its last position.

    One that was never prompted has the answer that it inherits.
    """
    if latest is not None and (outcome := outcome_of([latest])) is not None:
        return _run_with(trial, agent, outcome), latest.id
    try:
        run = _run_with(trial, agent, agent.reply())
    except NoTurn:
        inherited = outcome_of(reversed(agent.history()))
        run = TrialRun(trial, agent, inherited if isinstance(inherited, Reply) else None)
    except IkigaiError as error:
        run = _run_with(trial, agent, error)
    [head] = agent.system.store.read(lambda tx: heads_of(tx, [agent.uuid]))
    return run, head.position


def _run_with(trial: Trial, agent: AgentRef, outcome: Reply | IkigaiError) -> TrialRun:
    if isinstance(outcome, Reply):
        return TrialRun(trial, agent, outcome)
    return TrialRun(trial, agent, None, outcome)


def _resume(agent: AgentRef) -> bool:
    """Have a turn that failed, or was cut off, go on; return whether there was one."""
    try:
        return agent.resume()
    except (AgentDead, TurnInterrupted):
        return False
