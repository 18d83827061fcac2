"""The driver of an experiment: it makes the trials that a plan asks for, and gives the plan their verdicts.

    play the book: give the plan the verdicts that it has, and ask it for trials, until as many are in flight as may be
    say what is left to be asked (`ikigai_actors.behaviour.forecasts`); a dry run ends here
    while a trial is in flight:
        write, as one unit, the verdicts that are new and the births of what was asked for
        wait for the first trial, judge it, give the plan its verdict, and ask for the next one

The plan has the verdicts of trials 1 … i − parallel when it is asked for trial i, so the trials are a function of the
seed and the verdicts, whatever finishes first. Only the book is durable. Each unit in it has verdicts and the births
that depend on them:

    crash before a unit         the plan asks for the same trials again, and they are born with new uuids
    unit committed              its trials are found by number; open turns are resumed, with the usual repeated cost
    reply, before its verdict   the reply is judged again; nothing could depend on the first verdict
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress

from ikigai_actors.agent.waits import WaitResult
from ikigai_actors.behaviour.book import JudgedTrial, TrialRecord, birth_facts, verdicts_note
from ikigai_actors.behaviour.experiment import Experiment
from ikigai_actors.behaviour.forecasts import Forecast, total_of
from ikigai_actors.behaviour.plans.plan import GO, Trial, TrialPlan
from ikigai_actors.behaviour.trials import Judge, TrialStart
from ikigai_actors.behaviour.window import InFlight, TrialWindow, resume_trial
from ikigai_actors.errors import AgentStopped, BudgetExceeded, ExperimentDiffers, IkigaiError
from ikigai_actors.reach.states import was_cut_off_here
from ikigai_actors.reach.trials import NewTrial, unused_uuid
from ikigai_actors.system.births import MOST_AT_ONCE
from ikigai_actors.system.handles.ref import AgentRef

logger = logging.getLogger(__name__)

DRY_RUN = "dry run"
"""The reason for the end of a dry run, which only shows the forecast."""


class Driver:
    """One run of an experiment: it makes the trials that the plan asks for, and gives the plan their verdicts."""

    def __init__(
        self,
        experiment: Experiment,
        plan: TrialPlan,
        start: Callable[[Trial], TrialStart],
        judge: Judge,
        expected: Callable[[int], Forecast],
    ) -> None:
        """Prepare a run of an experiment.

        Args:
            experiment: the experiment whose trials are made.
            plan: a plan without any trial yet; the trials and verdicts of the book are played through it first.
            start: returns where a trial begins; called once for each trial without a verdict.
            judge: is called on the driver's thread, for trials in the order of their numbers; one that `blocks` on a
                thread of each trial, as soon as that has answered.
            expected: returns the forecast of a trial, by its number.
        """
        self._experiment, self._book, self._how = experiment, experiment.book, experiment.how
        self._system = experiment.agent.system
        self._plan, self._start, self._expected = plan, start, expected
        self._known: list[Trial] = []
        """The trials that the plan has asked for, whose verdicts are in the book and not yet given to the plan."""
        self._window = TrialWindow(experiment, judge)
        """The later trials that the plan has asked for, which have no verdict yet."""
        self._told = 0
        """The number of the latest trial whose verdict the plan has got."""
        self._unborn: list[InFlight] = []
        """The last trials of the window, which are not in the book yet."""
        self._refused = WaitResult.BUDGET
        """The reason why trials could not be born."""
        self._cut_off: list[AgentRef] = []
        """The trials that must be resumed, because the process that ran them has ended."""
        self._warm: set[tuple[str, int, str]] = set()
        """The prefixes with which a trial has answered, so that the cache of the model's service has them."""
        self._unwritten: dict[int, JudgedTrial] = {}
        """The verdicts that are not in the book in the database yet."""

    def run(self) -> None:
        """Make all trials. Whatever ends the run, the verdicts are stored, and a later run continues.

        Raises:
            ExperimentDiffers: the plan asks for another trial than the book has.
            IkigaiError: what a unit raises; and what the plan, `start`, the judge and `on_trial` raise.
        """
        self._experiment.ended = DRY_RUN if self._how.dry_run else ""
        self._play_book()
        if self._window:
            self._say_what_is_left()
            if self._how.dry_run:
                return
        try:
            self._make_trials()
        finally:
            with suppress(IkigaiError):
                self._write_unit([])

    def _play_book(self) -> None:
        self._fill_window()
        while self._known:
            trial = self._known.pop(0)
            self._tell(trial, self._book.judged[trial.number])

    def _make_trials(self) -> None:
        """Make the trials of the window, and the trials that the plan asks for after them."""
        while self._window:
            first = self._window[0]
            self._resume_cut_off()
            # No more than a quarter of the window waits to be born: the models have the rest to do.
            if len(self._unborn) >= self._how.parallel // 4 or not self._window.is_first_ready():
                self._write()  # before anything is waited for
            if first.agent is None:
                self._experiment.ended = str(self._refused)
                return
            made = self._window.judge_first()
            if made is None:
                return
            run, judged = made
            self._unwritten[first.trial.number] = self._book.judged[first.trial.number] = judged
            if self._how.on_trial is not None:
                self._how.on_trial(run, judged.verdict)
            del self._window[0]
            self._warm.add(first.prefix)
            self._tell(first.trial, judged)
        self._check_all_asked_for()
        self._write()

    def _tell(self, trial: Trial, judged: JudgedTrial) -> None:
        self._told = trial.number
        self._plan.tell(trial.number, judged.verdict)
        self._fill_window()

    def _fill_window(self) -> None:
        """Ask the plan for trials until the most trials that are allowed are in flight."""
        while len(self._known) + len(self._window) < self._how.parallel and (trial := self._plan.ask()) is not None:
            born = self._book.trials.get(trial.number)
            if born is not None and born != _record(trial, born.agent):
                raise self._differs(f"another trial {trial.number}")
            if trial.number in self._book.judged:
                self._known.append(trial)
            else:
                agent = None if born is None else self._system.handle(born.agent)
                self._window.append(InFlight(trial, self._start(trial), agent))
                if agent is None:
                    self._unborn.append(self._window[-1])
                elif was_cut_off_here(agent.state):
                    self._cut_off.append(agent)

    def _check_all_asked_for(self) -> None:
        if (last := max(self._book.trials, default=0)) > self._told:
            raise self._differs(f"a trial {last} more")

    def _differs(self, what: str) -> ExperimentDiffers:
        return ExperimentDiffers(
            f"Experiment {self._experiment.agent.uuid} has {what} in its book than the plan asks for: its options have "
            "changed. Give it another name, or fresh=True to begin a new one."
        )

    def _say_what_is_left(self) -> None:
        first = self._window[0].trial.number
        last = first + len(self._window) - 1 if self._plan.is_over else self._plan.most
        self._experiment.forecast = total_of(map(self._expected, range(first, last + 1)))
        logger.info("%s: %s", (self._book.terms or {}).get("verb"), self._experiment.forecast.text())

    def _resume_cut_off(self) -> None:
        for agent in self._cut_off:
            resume_trial(agent)
        self._cut_off.clear()

    def _write(self) -> None:
        """Commit verdicts, and the births that depend on them, as one unit.

        Births that wait for a cache, and all births after them, stay out of the unit, because the book has the births
        in order.
        """
        ready = self._before_cold() if self._how.warm else len(self._unborn)
        births, self._unborn = self._unborn[:ready], self._unborn[ready:]
        for place in range(0, max(1, len(births)), MOST_AT_ONCE):
            if not self._write_unit(births[place : place + MOST_AT_ONCE]):
                self._unborn = births[place:] + self._unborn
                return

    def _write_unit(self, born: Sequence[InFlight]) -> bool:
        """Commit all verdicts, and these births; return False if births are refused, and only verdicts were written."""
        if not self._unwritten and not born:
            return True
        records = [_record(entry.trial, unused_uuid(self._system)) for entry in born]
        births = [
            NewTrial(record.agent, *entry.start[:5], birth_facts(record), entry.start.go, entry.start.begin)
            for entry, record in zip(born, records, strict=True)
        ]
        verdicts, self._unwritten = self._unwritten, {}  # a unit that fails is not tried again
        try:
            self._experiment.write(verdicts_note(verdicts), births)
        except (BudgetExceeded, AgentStopped) as error:
            if not born:
                raise
            self._refused = WaitResult.BUDGET if isinstance(error, BudgetExceeded) else WaitResult.STOPPED
            if verdicts:
                self._experiment.write(verdicts_note(verdicts), ())
            return False
        for entry, record in zip(born, records, strict=True):
            self._book.trials[record.number] = record
            entry.agent = self._system.handle(record.agent)
        return True

    def _before_cold(self) -> int:
        """Return the number of births that come before the first birth that must wait for a sibling's answer.

        A trial that goes on from another one finds the prefix that the other one's request has written.
        """
        cold: set[tuple[str, int, str]] = set()
        for entry in self._window:
            if entry.agent is None and entry.trial.of == 0 and entry.prefix in cold:
                return self._unborn.index(entry)
            if entry.prefix not in self._warm:
                cold.add(entry.prefix)
        return len(self._unborn)


def _record(trial: Trial, agent: str) -> TrialRecord:
    prompt = None if trial.prompt is GO else str(trial.prompt)
    return TrialRecord(trial.number, agent, trial.of, prompt, trial.place, trial.arm)
