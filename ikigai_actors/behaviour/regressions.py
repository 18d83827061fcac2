"""Regress and evaluate: how often a change is right, and whether that is worse than before.

    report = regress(recorded(agent), change={"system": new}, check=same_calls, samples=3)
    print(report.verdict, report.rate, report.baseline, report.difference_interval)

A model answers one way today and another way tomorrow. So the same turns are replayed without the change in the same
run, and the change is compared with this *baseline*, not with the record: a model's own noise is no regression.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, NamedTuple, Unpack

from ikigai_actors.arguments import check_flag, check_plain_function, check_type, shown
from ikigai_actors.behaviour.checks import Check, same_calls
from ikigai_actors.behaviour.differences import differences
from ikigai_actors.behaviour.driver import Driver
from ikigai_actors.behaviour.effects import check_change, check_read_only, effects
from ikigai_actors.behaviour.expectations import expected_answer
from ikigai_actors.behaviour.experiment import Experiment, begin_experiment
from ikigai_actors.behaviour.facts import Facts, facts_of
from ikigai_actors.behaviour.fingerprints import fingerprint
from ikigai_actors.behaviour.judges import bounded, check_judge
from ikigai_actors.behaviour.pages import ExperimentReport, ReportCell, ReportRow, name_cell, number_cell
from ikigai_actors.behaviour.plans.bisect import BAD_BELOW
from ikigai_actors.behaviour.plans.each import Each
from ikigai_actors.behaviour.plans.plan import Trial, Verdict, verdict_of, within_bounds
from ikigai_actors.behaviour.rates import MOST_UNDECIDED, UNSURE, Rates, rates_of
from ikigai_actors.behaviour.replays import BASELINE, CHANGED, checked_terms, replay_cases
from ikigai_actors.behaviour.results import ExperimentResult
from ikigai_actors.behaviour.runs import RunConfig, RunOptions
from ikigai_actors.behaviour.statistics import Interval
from ikigai_actors.behaviour.trials import Judge, TrialStart
from ikigai_actors.behaviour.turns import ANSWERED, Turn
from ikigai_actors.errors import BadInput
from ikigai_actors.reach.trials import fork_position
from ikigai_actors.system.handles.ref import AgentRef
from ikigai_actors.text import check_text


class Failure(NamedTuple):
    """A sample that was judged wrong: the turn, the trial, and the reason."""

    agent: str
    """The agent of the recorded turn, by uuid; in an evaluation the trial."""
    position: int
    """The position where the turn began; in an evaluation the end of the trial."""
    why: str
    trial: str = ""
    """The uuid of the agent that was judged; it can be asked for its reasons."""
    number: int = 0
    """The number of the trial that was judged."""
    prompt: str | None = None
    """The prompt of the turn; None if the turn had none."""


@dataclass(frozen=True, slots=True, repr=False)
class RegressionReport(ExperimentResult):
    """The report of `regress` and `evaluate`: how often a change is right, and whether that is worse."""

    verdict: str
    """``pass``, ``fail`` or ``unsure``."""
    rate: float | None
    """The share of right answers (0 to 1): the mean of the cases' means. None if nothing could be judged."""
    interval: Interval | None
    """The interval of the rate, of 95 %, over cases."""
    baseline: float | None
    """The share of right answers without the change; None if that was not measured."""
    difference: float | None
    """The mean of the differences of the cases from the baseline; None without one."""
    difference_interval: Interval | None
    """The interval of 95 % for the difference."""
    margin: float
    """By how much the rate may be lower than the baseline's."""
    at_least: float | None
    """The required rate if there is no baseline; None for none."""
    cases: int
    """The number of judged cases."""
    needed: int | None
    """The approximate number of such cases that a clear verdict would need, if the verdict is unsure; else None."""
    failures: list[Failure]
    """The samples that were wrong with the change."""
    undecided: int
    """Samples that could not be judged, the baseline's too."""
    samples: int
    """Samples that were made, the baseline's too."""
    reasons: Mapping[str, int]
    """The reasons why samples could not be judged, each with the number of samples."""
    of: tuple[str, ...] = ()
    """The uuids of the agents whose histories the experiment uses."""

    @property
    def has_baseline(self) -> bool:
        """Return whether the change is compared with the same cases without it."""
        return BASELINE in (self.experiment.book.terms or {}).get("arms", ())

    def _facts(self) -> Facts:
        named = [failure.agent for failure in self.failures]
        return facts_of(self.experiment, self.of, named)

    def _report(self, facts: Facts) -> ExperimentReport:
        lines = [" ".join(_line(failure, facts).split()) for failure in self.failures]
        rows = [
            ReportRow(
                (
                    name_cell(facts.whose(failure.agent)),
                    number_cell(None if failure.agent == failure.trial else failure.position),
                    ReportCell(failure.prompt or ""),
                    ReportCell(failure.why),
                    name_cell(facts.trial(failure.number, failure.trial)),
                )
            )
            for failure in self.failures
        ]
        names = "verdict", "rate", "interval", "baseline", "difference", "difference_interval", "margin", "at_least"
        counts = "cases", "needed", "undecided", "samples", "ended", "reasons"
        data = {name: getattr(self, name) for name in (*names, *counts)}
        verb = "Evaluation" if (self.experiment.book.terms or {}).get("verb") == "evaluate" else "Regression"
        return ExperimentReport(
            f"{verb}: {self.verdict}",
            self._told(),
            [*self._told(), *lines],
            ["agent", "message", "prompt", "why", "trial"],
            rows,
            {**data, "failures": [failure._asdict() for failure in self.failures]},
        )

    def _told(self) -> list[str]:
        counts = f"{_counted(self.cases, 'case')}, {_counted(self.samples, 'sample')}, {self.undecided} undecided"
        lines = [
            f"{self.verdict}: right {_percent(self.rate)}{_between(self.interval)}, {self._held()}",
            f"{counts}, {len(self.failures)} wrong",
        ]
        if self.verdict == UNSURE and not self.ended:
            lines += self._way_on()
        if self.baseline == 0:
            lines.append("Nothing was right without the change either, so nothing could become worse.")
        commonest = Counter(self.reasons).most_common(3)
        lines += (f"Not judged: {count} × {' '.join(why.split())}" for why, count in commonest)
        return [*lines, f"It ended before all was made: {self.ended}."] if self.ended else lines

    def _held(self) -> str:
        """Return the text of the bound with which the rate is compared."""
        if self.has_baseline:
            difference = f"{_percent(self.difference)}{_between(self.difference_interval)}"
            return f"baseline {_percent(self.baseline)}, difference {difference}"
        return "held to nothing" if self.at_least is None else f"to be at least {_percent(self.at_least)}"

    def _way_on(self) -> list[str]:
        """Return lines of advice for making an unsure verdict sure."""
        if not self.has_baseline and self.at_least is None:
            return ["A verdict needs at_least, what the rate is held to, or a baseline."]
        if not self.cases or self.undecided > MOST_UNDECIDED * self.samples:
            return ["Too many samples could not be judged: fix the cause, and run it again."]
        if self.needed is None:
            other = "margin" if self.has_baseline else "at_least"
            return [f"No number of cases like these gives a verdict: hold them to another {other}."]
        few = f"{_counted(self.cases, 'case')} {'is' if self.cases == 1 else 'are'} too few: give more."
        if not self.has_baseline:
            return [f"{few} At this rate a verdict takes about {self.needed:,} cases."]
        takes = f"{few} At a margin of {_percent(self.margin)} a verdict takes about {self.needed:,} cases like these"
        if self.difference is None or self.difference_interval is None or self.difference < -self.margin:
            return [f"{takes}."]
        return [f"{takes}; these would pass at {_percent(ceil(-1_000 * self.difference_interval[0]) / 1_000)}."]


def regress(
    turns: Sequence[Turn],
    *,
    change: Mapping[str, Any] = {},
    check: Check = same_calls,
    samples: int = 1,
    baseline: bool = True,
    margin: float = 0.02,
    at_least: float | None = None,
    each: str = "turn",
    run: Sequence[str] = (),
    missing: str = "stop",
    **how: Unpack[RunOptions],
) -> RegressionReport:
    """Measure whether a change made recorded turns worse.

    Nothing is done outside; after a crash, the same call goes on.

    Args:
        turns: the turns of `recorded`; each is a case.
        change: settings that differ, as in `configure`; None removes one.
        check: decides whether a replayed turn is right: see `ikigai_actors.behaviour.checks`.
        samples: the number of replays of each turn in each arm. Choose it beforehand: to add samples until the result
            passes proves nothing.
        baseline: whether to replay the turns without the change too, and compare with that; else the required rate is
            1.
        margin: by how much the rate may be lower than the baseline's.
        at_least: the required rate, from 0 to 1; then no baseline is replayed.
        each: as in `replay`.
        run: as in `replay`.
        missing: as in `replay`.
        how: the name of the experiment, its budget and the rest of `RunOptions`.

    Raises:
        BadInput, ExperimentDiffers, HistoryPruned: as `replay`.
    """
    check_plain_function(check, "check", "a function of the recorded turn and the replayed one")
    check_flag(baseline, "baseline")
    _check_margin(margin)
    _check_at_least(at_least)
    config = RunConfig.of(regress, how)
    terms = checked_terms(turns, change, {}, each, run, samples, missing)
    arms = [CHANGED, BASELINE] if baseline and at_least is None else [CHANGED]
    least = 1 - margin if at_least is None else at_least

    def judge(recorded: Turn, again: Turn) -> Verdict:
        verdict = within_bounds(verdict_of(check(recorded, again), "a check"), "a check")
        if verdict.score is None:
            gave = "the check gave no verdict" if again.how == ANSWERED else f"the replay {again.how}"
            return Verdict(None, verdict.why or gave)
        text = "; ".join(map(str, differences(recorded, again)))
        return Verdict(verdict.score, verdict.why or text or f"the same answer: {again.text}")

    experiment, played = replay_cases("regress", terms, arms, judge, config, fingerprint(check))
    failures = [
        Failure(
            trial.recorded.agent.uuid,
            trial.recorded.opens,
            trial.verdict.why,
            trial.agent.uuid,
            trial.number,
            trial.recorded.prompt,
        )
        for trial in sorted(played, key=lambda trial: (trial.case, trial.number))
        if trial.arm == CHANGED and _is_wrong(trial.verdict)
    ]
    verdicts = [(trial.case, trial.arm, trial.verdict) for trial in played]
    of = tuple(dict.fromkeys(case.turn.agent.uuid for case in terms.cases))
    return _report(experiment, verdicts, failures, arms, len(terms.cases) * samples * len(arms), margin, least, of)


def evaluate(
    agent: AgentRef,
    cases: Sequence[str],
    judge: Judge,
    *,
    samples: int = 1,
    change: Mapping[str, Any] = {},
    baseline: bool = False,
    margin: float = 0.02,
    at_least: float | None = None,
    at: int | None = None,
    tools: Sequence[str] = (),
    **how: Unpack[RunOptions],
) -> RegressionReport:
    """Measure how often an agent answers prompts correctly.

    Forks of the agent get the prompts; calls have no effects outside.

    Args:
        agent: the agent whose history the prompts continue. It may be dead, and gets no message.
        cases: the prompts; each is a case.
        judge: is called for each trial, when it has answered, as that of a search; it returns True or False, a number
            from 0 to 1, a `Verdict`, None for what it cannot judge, or a future of these.
        samples: the number of trials of each prompt in each arm.
        change: settings that differ, as in `configure`; None removes one.
        baseline: whether the prompts are asked without the change too, and the change is held to that.
        margin: by how much the rate may be lower than the baseline's.
        at_least: the required rate, from 0 to 1, if there is no baseline. Without either, the verdict is always
            ``unsure``.
        at: the position to continue from; None for the end of the history.
        tools: tools that run in trials, by name; each must be declared as ``read_only``.
        how: the name of the experiment, its budget and the rest of `RunOptions`.

    Raises:
        BadInput, NotABoundary, ExperimentDiffers, HistoryPruned: as `search`.
    """
    check_type(agent, AgentRef, "agent", "a handle")
    check_judge(judge, agent.system)
    check_flag(baseline, "baseline")
    _check_margin(margin)
    _check_at_least(at_least)
    if baseline and at_least is not None:
        raise BadInput("Give one of baseline and at_least: a rate is held to one of them.")
    config = RunConfig.of(evaluate, how)
    if isinstance(cases, str) or not isinstance(cases, Sequence) or not cases:
        raise BadInput(f"Expected cases to be a list of prompts, one or more; got {shown(cases)}.")
    prompts = [check_text(case, "case") for case in cases]
    system, place = agent.system, fork_position(agent.system, agent.uuid, at)
    changed, run = check_change(system, change), check_read_only(system, tools)
    arms = [CHANGED, BASELINE] if baseline else [CHANGED]
    plan = Each(prompts, samples=samples, arms=arms)
    terms = {"verb": "evaluate", "of": agent.uuid, "at": place, "cases": prompts, "samples": samples}
    terms |= {"change": changed, "run": run, "arms": arms}
    differs = {arm: changed if arm == CHANGED else {} for arm in arms}
    expected = {arm: expected_answer(system, agent.uuid, place, differs[arm], judge) for arm in arms}
    experiment = begin_experiment(system, terms, config)

    def start(trial: Trial) -> TrialStart:
        settings = {**differs[trial.arm], "effects": effects(run)}
        return TrialStart(agent.uuid, place, prompts[trial.place], settings=settings)

    Driver(experiment, plan, start, bounded(judge), lambda number: expected[plan.trials[number - 1][1]]).run()
    book = experiment.book
    verdicts = [
        (trial.place, trial.arm, book.judged[number].verdict)
        for number, trial in sorted(book.trials.items())
        if number in book.judged
    ]
    failures = [
        Failure(trial.agent, judgement.end, judgement.verdict.why, trial.agent, number, trial.prompt)
        for number, trial in sorted(book.trials.items())
        if (judgement := book.judged.get(number)) and trial.arm == CHANGED and _is_wrong(judgement.verdict)
    ]
    return _report(experiment, verdicts, failures, arms, plan.most, margin, at_least, (agent.uuid,))


def _report(
    experiment: Experiment,
    verdicts: Sequence[tuple[int, str, Verdict]],
    failures: list[Failure],
    arms: Sequence[str],
    meant: int,
    margin: float,
    at_least: float | None,
    of: tuple[str, ...],
) -> RegressionReport:
    scores: dict[str, dict[int, list[float | None]]] = {arm: {} for arm in arms}
    for case, arm, verdict in verdicts:
        scores[arm].setdefault(case, []).append(verdict.score)
    held = None if BASELINE in arms else at_least
    rates: Rates = rates_of(scores[CHANGED], scores.get(BASELINE), margin, meant - len(verdicts), held)
    return RegressionReport(
        rates.verdict,
        rates.rate,
        rates.interval,
        rates.baseline,
        rates.difference,
        rates.difference_interval,
        margin,
        held,
        rates.cases,
        rates.needed,
        failures,
        rates.undecided,
        len(verdicts),
        Counter(verdict.why or "no reason was given" for _, _, verdict in verdicts if verdict.score is None),
        of,
        experiment=experiment,
    )


def _is_wrong(verdict: Verdict) -> bool:
    return verdict.score is not None and verdict.score < BAD_BELOW


def _line(failure: Failure, facts: Facts) -> str:
    """Return a failure as one line; in an evaluation, with the prompt, because there is no recorded turn."""
    if failure.agent == failure.trial:
        said = ": ".join(filter(None, (failure.prompt, failure.why)))
        return f"trial {facts.trial(failure.number, failure.trial)} {said}"
    trial = facts.trial(failure.number, failure.trial)
    return f"{facts.called(failure.agent)} {failure.position} {failure.why}; trial {trial}"


def _check_margin(margin: object) -> None:
    if isinstance(margin, bool) or not isinstance(margin, int | float) or not 0 <= margin <= 1:
        raise BadInput(f"Expected margin to be a number from 0 to 1; got {shown(margin)}.")


def _check_at_least(at_least: object) -> None:
    if at_least is None:
        return
    if isinstance(at_least, bool) or not isinstance(at_least, int | float) or not 0 < at_least < 1:
        raise BadInput(
            f"Expected at_least to be a number above 0 and below 1, as 0.8; got {shown(at_least)}. No number of cases "
            "shows that all are right."
        )


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _percent(rate: float | None) -> str:
    return "unknown" if rate is None else f"{100 * rate:.1f} %"


def _between(interval: Interval | None) -> str:
    """Return an interval as text, in percent."""
    return "" if interval is None else f" ({100 * interval[0]:.1f} to {100 * interval[1]:.1f})"
