"""Bisect: from where on a history is bad, with a judge that may err.

    places   0     1     2     3           the positions 4, 6, 8 and 10, say: before the first turn, and the end of each
    bad      no    no    yes   yes         → position 8: the turn that ends there is the first bad one

A probe forks at a place, and asks a question there. Where no question is given, the prompts that were recorded after
the place are sent again, and the last answer is judged: each probe costs the rest of the log then.
"""

import hashlib
import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Unpack

from ikigai_actors.arguments import check_flag, check_mapping, check_type
from ikigai_actors.behaviour.driver import Driver
from ikigai_actors.behaviour.effects import SHARE, check_files, check_files_known, check_read_only, effects
from ikigai_actors.behaviour.expectations import expected_trial, further_request, settings_of
from ikigai_actors.behaviour.experiment import Experiment, begin_experiment
from ikigai_actors.behaviour.facts import Facts
from ikigai_actors.behaviour.forecasts import Forecast, largest
from ikigai_actors.behaviour.judges import bounded, check_judge
from ikigai_actors.behaviour.pages import ExperimentReport, ReportCell, ReportRow, name_cell, number_cell
from ikigai_actors.behaviour.plans.bisect import BAD_BELOW, Bisection, is_weight
from ikigai_actors.behaviour.plans.plan import GO, Trial, Verdict
from ikigai_actors.behaviour.results import ExperimentResult
from ikigai_actors.behaviour.runs import RunConfig, RunOptions
from ikigai_actors.behaviour.trials import FollowUp, Judge, TrialStart
from ikigai_actors.behaviour.turns import Turn, TurnRequest, record_of, turns_in, words_again
from ikigai_actors.errors import BadInput
from ikigai_actors.reach.histories import boundaries_among, history_up_to
from ikigai_actors.reach.trials import check_answered, fork_position
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.system.handles.ref import AgentRef
from ikigai_actors.text import check_text

STEP, START, NOTHING, UNSURE = "step", "from the start", "nothing", "unsure"


@dataclass(frozen=True, slots=True, repr=False)
class Bisected(ExperimentResult):
    """The result of a bisection: the first bad turn of a history, and how probable it is."""

    position: int | None
    """The end of the first bad turn (with ``steps``: step), as a position; None if no turn is to blame."""
    answer: str
    """``step``; ``from the start``, when all is bad; ``nothing``, when nothing is; ``unsure``, when no answer is as
    probable as was asked for: the judge errs too often, the fault heals, or the probes or the budget came to an end.
    """
    sure: float
    """The probability of the most probable answer."""
    probes: int
    """The number of trials with a verdict."""
    curve: list[tuple[int, float]]
    """For each place its position, and the probability, from 0 to 1, that the history is bad there."""

    def _report(self, facts: Facts) -> ExperimentReport:
        book = self.experiment.book
        probes = [
            (trial, book.judged[number].verdict)
            for number, trial in sorted(book.trials.items())
            if number in book.judged
        ]
        ended = [f"It ended before its plan: {self.ended}."] if self.ended else []
        sentences = [self._sentence(), *ended]
        rows = [
            ReportRow(
                (
                    name_cell(facts.trial(trial.number, trial.agent)),
                    number_cell(self.curve[trial.place][0]),
                    name_cell(f"{100 * self.curve[trial.place][1]:.1f} %"),
                    name_cell(said_of(verdict)),
                    ReportCell(verdict.why),
                    ReportCell(facts.answers.get(trial.agent, "")),
                )
            )
            for trial, verdict in probes
        ]
        trials = [
            {
                "number": trial.number,
                "position": self.curve[trial.place][0],
                "score": verdict.score,
                "why": verdict.why,
                "agent": trial.agent,
            }
            for trial, verdict in probes
        ]
        names = ("position", "answer", "sure", "probes", "curve", "ended")
        return ExperimentReport(
            f"Bisection: {f'message {self.position}' if self.answer == STEP else self.answer}",
            sentences,
            sentences,
            ["trial", "message", "bad there", "verdict", "why", "answer"],
            rows,
            {**{name: getattr(self, name) for name in names}, "trials": trials},
        )

    def _sentence(self) -> str:
        sure, probes = f"{100 * self.sure:.1f} %", f"{self.probes:,} probe{'' if self.probes == 1 else 's'}"
        if self.answer == UNSURE:
            return f"Unsure: no answer has more than {sure} after {probes}."
        words = {START: "It was wrong from the start", NOTHING: "Nothing is wrong"}
        answer = words.get(self.answer, f"Message {self.position} ends the first bad turn")
        return f"{answer} ({sure} sure, {probes})."


def bisect(
    agent: AgentRef,
    judge: Judge,
    *,
    probe: str | None = None,
    sure: float = 0.99,
    most: int = 60,
    steps: bool = False,
    prior: Mapping[int, float] | None = None,
    at: int | None = None,
    tools: Sequence[str] = (),
    files: str = SHARE,
    **how: Unpack[RunOptions],
) -> Bisected:
    """Find the first bad turn of an agent's history, by asking forks of it.

    The agent itself gets no request and no message, and may be dead. The calls of a trial's model have no effects
    outside: the record answers a call that was made before. After a crash, the same call goes on.

    Args:
        agent: the agent whose history is searched.
        judge: a function that gets each answered trial as a `TrialRun` and returns a number from 0 to 1, True or False:
            below 0.5 the history is bad up to the trial's fork; None does not count. It may err: its error rates are
            estimated.
        probe: a question to ask at each place; None sends the recorded prompts after it again.
        sure: the probability, above 0.5 and below 1, at which the search ends.
        most: the largest number of probes.
        steps: whether to search all step boundaries, also within turns; else only ends of turns.
        prior: weights by position for where the first fault is; 1 for all other positions.
        at: the last position of the part to search; None for the end of the history.
        tools: tools that run in trials, by name; each must be declared as ``read_only``, or change no more than
            ``files`` lets it.
        files: as in `search`: with ``overlay`` a trial has the files of its place, which its tools may change.
        how: the name of the experiment, its budget and the rest of `RunOptions`.

    Raises:
        BadInput: an argument cannot be used, the history has no turn, or the files of a place are not known.
        NotABoundary: up to this position a history cannot be looked at.
        ExperimentDiffers: the experiment of this name has other terms.
        HistoryPruned: the history was deleted.
    """
    check_type(agent, AgentRef, "agent", "a handle")
    if probe is not None and not check_text(probe, "probe").strip():
        raise BadInput("Expected probe to be a question, or None; got blank text.")
    check_flag(steps, "steps")
    config = RunConfig.of(bisect, {"parallel": 1} | how)
    system = agent.system
    check_judge(judge, system)
    end = fork_position(system, agent.uuid, at)
    run = check_read_only(system, tools, files=check_files(system, files))
    counting, turns, places = places_of(agent, end, steps)
    check_files_known(system, files, agent.uuid, places)
    plan = Bisection(len(places), probe or GO, sure=sure, most=most, prior=_weights(places, prior))
    terms = {
        "verb": "bisect",
        "of": agent.uuid,
        "at": end,
        "places": hashlib.sha256(json.dumps(places).encode()).hexdigest(),
        "probe": probe,
        "plan": [sure, most, _weights(places, prior)],
        "parallel": config.parallel,
        "run": run,
        **({"files": files} if files != SHARE else {}),
    }
    expected = _dearest_probe(agent, places, counting, None if probe is not None else turns, judge)
    experiment = begin_experiment(system, terms, config)

    def start(trial: Trial) -> TrialStart:
        place = places[trial.place]
        if probe is not None:
            return TrialStart(agent.uuid, place, probe, settings={"effects": effects(run, files=files)})
        behind = [turn for turn in turns if turn.opens > place and turn.prompt is not None]
        again = [FollowUp(str(turn.prompt), turn.data) for turn in behind]
        calls = (call for turn in turns for call in turn.calls if call.position > place)
        words = [word for number, turn in enumerate(behind, 1) for word in words_again(turn, place, number)]
        settings = {"effects": effects(run, record_of(calls), words=words, files=files)}
        if not again:
            return TrialStart(agent.uuid, place, None, settings=settings)
        return TrialStart(agent.uuid, place, *again[0], settings=settings, then=tuple(again[1:]))

    Driver(experiment, plan, start, bounded(judge), lambda number: expected).run()
    return _bisected(experiment, plan, places, sure)


def places_of(agent: AgentRef, end: int, steps: bool) -> tuple[list[Message], list[Turn], list[int]]:
    """Return the effective messages of a history up to a position, its turns, and the places to probe.

    Effective messages were not cleared, undone or rewound.

    Args:
        agent: the agent whose history is read.
        end: the position.
        steps: whether places within turns can be probed, too, not only the start and the ends of turns.

    Raises `BadInput` when there is no turn, and `HistoryPruned`.
    """
    everything, counting = history_up_to(agent.system, agent.uuid, end)
    turns = list(turns_in(agent, counting))
    return counting, turns, places_in(everything, counting, turns, steps)


def places_in(
    everything: Sequence[Message], counting: Sequence[Message], turns: Sequence[Turn], steps: bool
) -> list[int]:
    """Return the positions that can be probed: the start and end of turns, or all boundaries.

    Args:
        everything: the history.
        counting: the effective messages of the history: those not cleared, undone or rewound.
        turns: the turns of the history.
        steps: whether all step boundaries can be probed.

    Raises `BadInput` when there is no turn.
    """
    if not turns:
        raise BadInput("Expected a history with a turn, which can be looked at; there is none up to this position.")
    first = turns[0].opens - 1
    wanted = [first, *(turn.end for turn in turns)]
    if steps:
        wanted = [first, *(message.id for message in counting if message.id > first)]
    return boundaries_among(everything, wanted)


def _dearest_probe(
    agent: AgentRef,
    places: Sequence[int],
    counting: Sequence[Message],
    again: Sequence[Turn] | None,
    judge: Judge,
) -> Forecast:
    """Return the largest forecast of a probe; verdicts decide later which places are probed.

    Args:
        agent: whose history it is.
        places: the positions that can be probed.
        counting: what counts of the history.
        again: the turns, if those after a place are taken again; None if a question is asked.
        judge: judges the probe.

    Raises `BadInput` when a model cannot be asked, and `ProviderMissing` where nobody is there to be asked.
    """
    writers = {str(message.data.get("model", "")) for message in counting if message.kind == Kind.ASSISTANT} - {""}
    ids = [message.id for message in counting]

    def requests_at(place: int) -> list[TurnRequest]:
        if again is None:
            return [further_request(reversed(counting[: bisect_right(ids, place)]))]
        behind = [turn for turn in again if turn.opens > place and turn.prompt is not None]
        return [request for turn in behind for request in turn.requests if request.was_answered]

    def tokens_at(place: int) -> int:
        return sum(request.usage.all_tokens for request in requests_at(place) if request.usage is not None)

    settings = settings_of(agent.system, agent.uuid, places)
    for place in places:
        check_answered(agent.system, settings[place], writers)
    alike: dict[int, list[int]] = {}
    for place in places:
        alike.setdefault(id(settings[place]), []).append(place)
    # Of places with equal settings the first has the most after it.
    dearest = [same[0] if again is not None else max(same, key=tokens_at) for same in alike.values()]
    return largest(
        [expected_trial(agent.system, requests_at(probe), settings[probe], judge=judge) for probe in dearest]
    )


def said_of(verdict: Verdict) -> str:
    """Return a verdict on a history in one or two words."""
    return "not judged" if verdict.score is None else "bad" if verdict.score < BAD_BELOW else "good"


def _weights(places: Sequence[int], prior: Mapping[int, float] | None) -> list[float] | None:
    """Return the weights of the hypotheses, one for each place and one for no fault; None for equal weights.

    Raises `BadInput`.
    """
    if prior is None:
        return None
    check_mapping(prior, "prior", "a dict from positions to weights")
    for place in prior:
        if isinstance(place, bool) or place not in places:
            raise BadInput(f"Expected the positions of prior to be places that are probed; {place!r} is none.")
        if not is_weight(prior[place]):
            raise BadInput(
                f"Expected the weights of prior to be numbers from 0 on; that of {place} is {prior[place]!r}."
            )
    return [float(prior.get(place, 1.0)) for place in places] + [1.0]


def _bisected(experiment: Experiment, plan: Bisection, places: Sequence[int], sure: float) -> Bisected:
    place, probability = plan.posterior.best
    answer = STEP if 0 < place < len(places) else NOTHING if place else START
    if probability < sure:
        answer = UNSURE
    curve = list(zip(places, accumulate(plan.posterior.probabilities), strict=False))
    return Bisected(
        places[place] if answer == STEP else None,
        answer,
        probability,
        len(experiment.book.judged),
        curve,
        experiment=experiment,
    )
