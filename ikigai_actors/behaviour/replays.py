"""Replays of recorded turns with a change, without effects outside.

    turns = recorded(agent)
    report = replay(turns, change={"model": "openai:gpt-5"})
    print(report.text())

Each turn is a trial of an experiment: a fork of the history before the recorded turn, with the settings at that
position and the change. The record of the turn answers the calls of the trial; a call that is not in the record ends
the trial as diverged.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Unpack

from ikigai_actors.arguments import check_choice, check_count, check_mapping, check_type, shown
from ikigai_actors.behaviour.cases import MODES, ReplayCase, cases_of
from ikigai_actors.behaviour.differences import Difference, differences
from ikigai_actors.behaviour.driver import Driver
from ikigai_actors.behaviour.effects import check_change, check_read_only, effects
from ikigai_actors.behaviour.expectations import expected_trial, settings_of
from ikigai_actors.behaviour.experiment import Experiment, begin_experiment
from ikigai_actors.behaviour.facts import Facts, facts_of
from ikigai_actors.behaviour.forecasts import Forecast
from ikigai_actors.behaviour.pages import (
    ExperimentReport,
    ReportCell,
    ReportRow,
    difference_as_json,
    name_cell,
    number_cell,
)
from ikigai_actors.behaviour.plans.each import Each
from ikigai_actors.behaviour.plans.plan import GO, Trial, Verdict
from ikigai_actors.behaviour.results import ExperimentResult
from ikigai_actors.behaviour.runs import RunConfig, RunOptions
from ikigai_actors.behaviour.trials import TrialRun, TrialStart
from ikigai_actors.behaviour.turns import DIVERGED, Turn, own_messages, turns_in
from ikigai_actors.behaviour.window import run_of
from ikigai_actors.errors import BadInput, OutputError
from ikigai_actors.reach.histories import settings_with
from ikigai_actors.reach.trials import check_answered, settings_of_position
from ikigai_actors.system.handles.ref import AgentRef, System

CHANGED, BASELINE = "change", "baseline"
"""The names of the two arms: with the change and without."""


class ReplayedTurn(NamedTuple):
    """A recorded turn, its replay, and the differences between them."""

    recorded: Turn
    again: Turn
    agent: AgentRef
    """The agent of the trial that replayed the turn."""
    differences: tuple[Difference, ...]
    number: int = 0
    """The number of the trial."""


@dataclass(frozen=True, slots=True, repr=False)
class Replay(ExperimentResult):
    """The result of a replay: the replayed turns with their differences."""

    turns: list[ReplayedTurn]
    """The replayed turns, in the order of the recorded turns; samples of one turn follow one another."""

    @property
    def differences(self) -> list[Difference]:
        """Return the differences of all replayed turns."""
        return [difference for turn in self.turns for difference in turn.differences]

    def _facts(self) -> Facts:
        return facts_of(self.experiment, [turn.recorded.agent.uuid for turn in self.turns])

    def _report(self, facts: Facts) -> ExperimentReport:
        differing = [(turn, difference) for turn in self.turns for difference in turn.differences]
        lines = []
        for turn, difference in differing:
            said = f"{facts.called(turn.recorded.agent.uuid)} {difference}{_reason(turn, difference)}"
            lines.append(f"{' '.join(said.split())}; trial {facts.trial(turn.number, turn.agent.uuid)}")
        rows = [
            ReportRow(
                (
                    name_cell(facts.whose(turn.recorded.agent.uuid)),
                    number_cell(difference.position),
                    ReportCell(turn.recorded.prompt or ""),
                    name_cell(difference.what),
                    difference,
                    ReportCell(_reason(turn, difference).removeprefix(": ")),
                    name_cell(facts.trial(turn.number, turn.agent.uuid)),
                )
            )
            for turn, difference in differing
        ]
        kinds = dict(Counter(difference.what for _, difference in differing))
        turns = [
            {
                **_turn_as_json(turn.recorded),
                "replayed": {**_turn_as_json(turn.again), "agent": turn.agent.uuid, "number": turn.number},
                "differences": list(map(difference_as_json, turn.differences)),
            }
            for turn in self.turns
        ]
        counted = self._counted(kinds)
        return ExperimentReport(
            "Replay",
            [counted],
            [*lines, counted],
            ["agent", "message", "prompt", "what", "recorded", "replayed", "why", "trial"],
            rows,
            {"turns": turns, "differences": kinds, "ended": self.ended},
        )

    def _counted(self, kinds: Mapping[str, int]) -> str:
        differ = sum(bool(turn.differences) for turn in self.turns)
        text = f"{differ} differ: {', '.join(f'{count} {what}' for what, count in kinds.items())}"
        ended = f" It ended before all was replayed: {self.ended}." if self.ended else ""
        return f"{len(self.turns)} replayed, {text if differ else 'none differs'}.{ended}"


class Played(NamedTuple):
    """A trial of a replay: its case and arm, both turns, and the verdict."""

    case: int
    arm: str
    number: int
    recorded: Turn
    again: Turn
    agent: AgentRef
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Terms:
    """The turns to replay, and how to replay them: the common arguments of `replay` and `regress`."""

    system: System
    cases: list[ReplayCase]
    each: str
    edit: Mapping[int, str]
    change: Mapping[str, Any]
    run: Sequence[str]
    missing: str
    samples: int

    def as_json(self, verb: str, arms: Sequence[str]) -> dict[str, Any]:
        """Return the terms of the experiment as JSON data; an experiment with the same terms is continued."""
        where = [[case.turn.agent.uuid, case.turn.opens, case.turn.end, case.start.at] for case in self.cases]
        return {
            "verb": verb,
            "cases": len(self.cases),
            "turns": hashlib.sha256(json.dumps(where).encode()).hexdigest(),
            "each": self.each,
            "edit": {str(position): text for position, text in self.edit.items()},
            "change": dict(self.change),
            "run": list(self.run),
            "missing": self.missing,
            "samples": self.samples,
            "arms": list(arms),
        }


def replay(
    turns: Sequence[Turn],
    *,
    change: Mapping[str, Any] = {},
    edit: Mapping[int, str] = {},
    each: str = "turn",
    run: Sequence[str] = (),
    samples: int = 1,
    missing: str = "stop",
    **how: Unpack[RunOptions],
) -> Replay:
    """Replay recorded turns, with a change. Nothing is done outside; after a crash, the same call goes on.

    Args:
        turns: the turns of `recorded`.
        change: settings that differ, as in `configure`; None removes one.
        edit: other texts for messages of these turns, by position: a prompt, a reply with calls, or a result. Then the
            turns alone that hold one are replayed.
        each: ``turn`` replays each from the history as recorded before it, ``log`` goes on from the replay of the turn
            before, as far as that still counted, ``step`` asks for each reply by itself.
        run: tools that run, by name; each must be declared as ``read_only``. All others are answered from the record.
        samples: the number of replays of each turn.
        missing: what happens at a call that is not in the record: ``stop`` ends the turn, ``tell`` gives the model an
            error.
        how: the name of the experiment, its budget and the rest of `RunOptions`.

    Raises:
        BadInput: an argument cannot be used, or the change names an unknown setting, model or tool.
        ExperimentDiffers: the experiment of this name has other terms.
        HistoryPruned: the history of a turn was deleted.
    """
    terms = checked_terms(turns, change, edit, each, run, samples, missing)
    config = RunConfig.of(replay, how)
    experiment, played = replay_cases("replay", terms, [CHANGED], _differs, config)
    replayed = [
        ReplayedTurn(trial.recorded, trial.again, trial.agent, differences(trial.recorded, trial.again), trial.number)
        for trial in sorted(played, key=lambda trial: (trial.case, trial.number))
    ]
    return Replay(replayed, experiment=experiment)


def checked_terms(
    turns: Sequence[Turn],
    change: Mapping[str, Any],
    edit: Mapping[int, str],
    each: str,
    run: Sequence[str],
    samples: int,
    missing: str,
) -> Terms:
    """Check the arguments of a replay. Raises `BadInput` and `HistoryPruned`."""
    if not isinstance(turns, Sequence) or not turns:
        raise BadInput(
            f"Expected turns to be a list of turns, one or more, as recorded() gives it; got {shown(turns)}."
        )
    for turn in turns:
        check_type(turn, Turn, "each of turns", "a Turn, as recorded() gives it")
    system = turns[0].agent.system
    if any(turn.agent.system is not system for turn in turns):
        raise BadInput("Expected turns of one database; replay those of each by themselves.")
    check_choice(each, "each", MODES)
    check_choice(missing, "missing", ("stop", "tell"))
    check_count(samples, "samples", least=1)
    edits = check_mapping(edit, "edit", "a dict from positions to texts")
    for position in edits:
        check_count(position, "a position of edit", least=1)
    changed = check_change(system, change)
    named = check_read_only(system, run, "run")
    cases = cases_of(turns, each, edits)
    for uuid, at in {case.start.of: case.start.at for case in cases}.items():
        settings_of_position(system, uuid, at)  # one look a log: prune takes it whole
    return Terms(system, cases, each, edits, changed, named, missing, samples)


def replay_cases(
    verb: str, terms: Terms, arms: Sequence[str], judge: Callable[[Turn, Turn], Verdict], how: RunConfig, by: str = ""
) -> tuple[Experiment, list[Played]]:
    """Replay all cases in all arms; return the experiment, and the trials that have a verdict.

    ``by`` is the fingerprint of the judge: verdicts of another judge in the book are made again, of the replays as
    they are. No model is asked for that.
    """
    cases, expected = terms.cases, _expected(terms, arms)
    experiment = begin_experiment(terms.system, terms.as_json(verb, arms), how)
    seen: dict[int, Turn] = {}

    def judged(run: TrialRun) -> Verdict:
        assert run.recorded is not None  # as each starts with its case
        again = seen[run.trial.number] = _again(run.agent, terms.each)
        if isinstance(run.error, OutputError):  # the model has answered, and wrongly
            return Verdict(0.0, str(run.error))
        if run.error is not None and not run.diverged:
            return Verdict(None, str(run.error))
        return judge(run.recorded, again)

    judged.judged_by = by  # type: ignore[attr-defined]  # functions have attributes

    def start(trial: Trial) -> TrialStart:
        return _start(experiment, terms, trial)

    prompts = [GO if case.start.go else str(case.start.prompt) for case in cases]
    plan = Each(prompts, samples=terms.samples, arms=arms, after=[case.after for case in cases])
    Driver(experiment, plan, start, judged, lambda number: expected[plan.trials[number - 1]]).run()
    played = []
    for number, judgement in sorted(experiment.book.judged.items()):
        trial, agent = experiment.book.trials[number], experiment.agent_of(number)
        again, turn = seen.get(number) or _again(agent, terms.each), cases[trial.place].turn
        is_of_another = judgement.by != by and (again.how == DIVERGED or not again.error)
        verdict = judge(turn, again) if is_of_another else judgement.verdict
        if is_of_another and how.on_trial is not None and not how.dry_run:
            asked = Trial(number, prompts[trial.place], trial.of, trial.place, trial.arm)
            how.on_trial(run_of(asked, agent, turn)[0], verdict)
        played.append(Played(trial.place, trial.arm, number, turn, again, agent, verdict))
    return experiment, played


def _expected(terms: Terms, arms: Sequence[str]) -> dict[tuple[int, str], Forecast]:
    """Return the expected requests for the replay of each case in each arm.

    Raises `BadInput`, and `ProviderMissing` if no model can be asked.
    """
    places: dict[str, list[int]] = {}
    for case in terms.cases:
        places.setdefault(case.start.of, []).append(case.start.at)
    then = {uuid: settings_of(terms.system, uuid, positions) for uuid, positions in places.items()}
    expected = {}
    for place, case in enumerate(terms.cases):
        settings, requests = then[case.start.of][case.start.at], case.requests()
        for arm in arms:
            change = {} if arm == BASELINE else terms.change
            check_answered(
                terms.system, settings_with(settings, change), [request.model for request in requests if request.model]
            )
            expected[place, arm] = expected_trial(terms.system, requests, settings, change)
    return expected


def _start(experiment: Experiment, terms: Terms, trial: Trial) -> TrialStart:
    case = terms.cases[trial.place]
    change = {} if trial.arm == BASELINE else terms.change
    again = effects(terms.run, case.record(), terms.missing, words=case.words())
    allowed = effects(once=True) if terms.each == "step" else again
    settings = {**_since(terms, case), "effects": allowed, **change}
    begin = case.start._replace(settings=settings, recorded=case.turn)
    if not trial.of:
        return begin
    return begin._replace(of=experiment.agent_of(trial.of).uuid, at=experiment.end_of(trial.of))


def _since(terms: Terms, case: ReplayCase) -> dict[str, Any]:
    """Return the settings that changed between the turn of a case and the turn whose replay it continues."""
    if case.after is None:
        return {}
    starts = (each.start for each in (terms.cases[case.after], case))
    then, now = (settings_of_position(terms.system, start.of, start.at) for start in starts)
    return {name: now.get(name) for name in {**then, **now} if now.get(name) != then.get(name)}


def _again(agent: AgentRef, each: str) -> Turn:
    """Return the turn of a trial. In mode ``step``, a turn that ended with its first reply counts as open."""
    turn = next(turns_in(agent, own_messages(agent)))
    return replace(turn, how="open", error="") if each == "step" and turn.how == DIVERGED else turn


def _differs(recorded: Turn, again: Turn) -> Verdict:
    deviations = differences(recorded, again)
    more = f" (and {len(deviations) - 1} more)" if len(deviations) > 1 else ""
    return Verdict(float(not deviations), f"{deviations[0]}{more}" if deviations else "")


def _reason(turn: ReplayedTurn, difference: Difference) -> str:
    """Return the error text that follows a difference in the end of a turn; empty if the replay has not failed."""
    failed = difference.what == "end" and turn.again.error and turn.again.how != DIVERGED
    return f": {turn.again.error}" if failed else ""


def _turn_as_json(turn: Turn) -> dict[str, Any]:
    calls = [
        {
            "position": call.position,
            "name": call.name,
            "input": call.input,
            "result": call.result,
            "is_error": call.is_error,
        }
        for call in turn.calls
    ]
    return {
        "agent": turn.agent.uuid,
        "opens": turn.opens,
        "end": turn.end,
        "prompt": turn.prompt,
        "calls": calls,
        "text": turn.text,
        "how": turn.how,
        "error": turn.error,
    }
