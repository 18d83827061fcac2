"""The verdict on scores of cases: whether a change made things worse, or is good enough. Pure.

    difference    of two arms, case by case: fail if the whole interval is below minus the margin, pass if no part is
    rate          of one arm: fail if the whole interval is below the required rate, pass if no part is

Any other result is unsure, and so is a run without a required rate, or with more than a tenth of samples not judged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from ikigai_actors.behaviour.statistics import (
    Interval,
    cases_needed,
    interval_of_difference,
    interval_of_rate,
)

PASS, FAIL, UNSURE = "pass", "fail", "unsure"
MOST_UNDECIDED = 0.1
_ANYWHERE: Interval = (-1.0, 1.0)

Scores = Mapping[int, Sequence[float | None]]
"""The scores of each case's samples, by the number of the case; None for a sample not judged."""


@dataclass(frozen=True, slots=True)
class Rates:
    """The statistics of the scores of a change, and the verdict on them."""

    verdict: str
    """``pass``, ``fail`` or ``unsure``."""
    rate: float | None
    """The mean of the cases' mean scores (0 to 1); None if nothing could be judged."""
    interval: Interval | None
    """The interval of 95 % for the rate."""
    baseline: float | None
    """The rate of the baseline; None without one."""
    difference: float | None
    """The mean difference from the baseline, case by case; None without one."""
    difference_interval: Interval | None
    """The interval of 95 % for the difference."""
    undecided: int
    """The number of samples not judged, in both arms."""
    cases: int
    """The number of judged cases; with a baseline, those judged in both arms."""
    needed: int | None
    """The approximate number of such cases that a clear verdict would need, if the verdict is unsure; else None."""


def rates_of(
    changed: Scores, baseline: Scores | None, margin: float, unmade: int = 0, at_least: float | None = None
) -> Rates:
    """Judge the scores of a change.

    Args:
        changed: the scores with the change.
        baseline: the scores without the change; None if nothing was replayed without it.
        margin: how much lower than the baseline's rate the rate may be.
        unmade: the number of samples that should have been made, but were not.
        at_least: the required rate if there is no baseline; None for none.
    """
    means, usual = _means(changed), _means(baseline or {})
    scores = [score for arm in (changed, baseline or {}) for samples in arm.values() for score in samples]
    undecided = sum(score is None for score in scores) + unmade
    pairs = [means[case] - usual[case] for case in means if case in usual]
    within, between = interval_of_rate([*means.values()]), interval_of_difference(pairs)
    held, least = (within, at_least) if baseline is None else (between, -margin)
    verdict, needed = UNSURE, None
    if held is not None and least is not None and undecided <= MOST_UNDECIDED * (len(scores) + unmade):
        verdict = FAIL if held[1] < least else PASS if held[0] >= least else UNSURE
        if verdict == UNSURE:
            needed = _needed([*means.values()], least) if baseline is None else _needed_pairs(pairs, margin)
    return Rates(
        verdict,
        fmean(means.values()) if means else None,
        within,
        fmean(usual.values()) if usual else None,
        fmean(pairs) if pairs else None,
        between,
        undecided,
        len(means if baseline is None else pairs),
        needed,
    )


def _needed(rates: Sequence[float], at_least: float) -> int | None:
    """Return how many cases with these rates decide whether the rate is below ``at_least``; None for too many."""

    def interval(count: int) -> Interval:
        return interval_of_rate(rates, count / len(rates)) or _ANYWHERE

    if fmean(rates) < at_least:
        return cases_needed(lambda count: interval(count)[1] < at_least)
    return cases_needed(lambda count: interval(count)[0] >= at_least)


def _needed_pairs(pairs: Sequence[float], margin: float) -> int | None:
    """Return about how many cases would show whether the change is worse than allowed; None for too many."""
    looks_worse = fmean(pairs) < -margin
    like = pairs if looks_worse else [*pairs, *(-pair for pair in pairs)]  # as often for the better as for the worse

    def interval(count: int) -> Interval:
        return interval_of_difference(like, count / len(like)) or _ANYWHERE

    if looks_worse:
        return cases_needed(lambda count: interval(count)[1] < -margin)
    return cases_needed(lambda count: interval(count)[0] >= -margin)


def _means(scores: Scores) -> dict[int, float]:
    judged = {case: [sample for sample in samples if sample is not None] for case, samples in scores.items()}
    return {case: fmean(samples) for case, samples in judged.items() if samples}
