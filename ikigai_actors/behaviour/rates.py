"""The verdict on scores of cases: whether a change made things worse. Pure.

A case counts once, with the mean of its samples. The difference of two arms is taken case by case; without a baseline
the rate is compared with 1. A whole interval below minus the margin fails, one that is nowhere below it passes; all
else is unsure, and so is a run of which more than a tenth could not be judged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from ikigai_actors.behaviour.statistics import Interval, interval_of_mean, interval_of_rate

PASS, FAIL, UNSURE = "pass", "fail", "unsure"
MOST_UNDECIDED = 0.1

Scores = Mapping[int, Sequence[float | None]]
"""The scores of a case's samples, by the case; None for what could not be judged."""


@dataclass(frozen=True, slots=True)
class Rates:
    """What scores say."""

    verdict: str
    """``pass``, ``fail`` or ``unsure``."""
    rate: float | None
    """The mean of the cases' means; None when nothing could be judged."""
    interval: Interval | None
    """Its interval of 95 %."""
    baseline: float | None
    """The same of the baseline; None without one."""
    difference: float | None
    """How much the rate is above that of the baseline, case by case; without one, above 1."""
    difference_interval: Interval | None
    """Its interval; None for fewer than two cases, which tell nothing of it."""
    undecided: int
    """How many samples could not be judged, in both arms."""


def rates_of(changed: Scores, baseline: Scores | None, margin: float, unmade: int = 0) -> Rates:
    """Judge the scores of a change.

    Args:
        changed: those with the change.
        baseline: those without; None when nothing was replayed without it.
        margin: how much lower the rate may be.
        unmade: samples that were to be made, and were not.
    """
    means = _means(changed)
    scores = [score for arm in (changed, baseline or {}) for samples in arm.values() for score in samples]
    undecided = sum(score is None for score in scores) + unmade
    usual = _means(baseline) if baseline is not None else dict.fromkeys(means, 1.0)
    pairs = [means[case] - usual[case] for case in means if case in usual]
    noise = fmean([_noise(changed[case]) + _noise((baseline or {}).get(case, ())) for case in means] or [0.0])
    between = interval_of_mean(pairs, noise=noise)
    verdict = UNSURE
    if between is not None and undecided <= MOST_UNDECIDED * (len(scores) + unmade):
        verdict = FAIL if between[1] < -margin else PASS if between[0] >= -margin else UNSURE
    return Rates(
        verdict,
        fmean(means.values()) if means else None,
        interval_of_rate(list(means.values())),
        fmean(usual.values()) if baseline is not None and usual else None,
        fmean(pairs) if pairs else None,
        between,
        undecided,
    )


def _means(scores: Scores) -> dict[int, float]:
    judged = {case: [one for one in samples if one is not None] for case, samples in scores.items()}
    return {case: fmean(samples) for case, samples in judged.items() if samples}


def _noise(samples: Sequence[float | None]) -> float:
    """The variance of the mean of a case's samples, as far as they show it."""
    judged = [one for one in samples if one is not None]
    return variance(judged) / len(judged) if len(judged) > 1 else 0.0
