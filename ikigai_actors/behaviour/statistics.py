"""Rates of cases, their intervals, and the difference of two arms.

Samples of one case are not independent, so a case counts once, with the mean of its samples (Miller 2024, "Adding Error
Bars to Evals"): intervals are Student's over cases, and a difference is taken case by case.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist, fmean, stdev

CONFIDENCE = 0.95

Interval = tuple[float, float]


def interval_of_mean(values: Sequence[float], confidence: float = CONFIDENCE, noise: float = 0.0) -> Interval | None:
    """Student's interval of the mean of independent values; None for fewer than two, which tell nothing of it.

    Args:
        values: the values.
        confidence: how sure.
        noise: the variance of each value by itself. It counts where all values agree, by chance then.
    """
    if len(values) < 2:
        return None
    spread = stdev(values) or math.sqrt(noise)
    half = t_quantile((1 + confidence) / 2, len(values) - 1) * spread / math.sqrt(len(values))
    return fmean(values) - half, fmean(values) + half


def interval_of_rate(rates: Sequence[float], confidence: float = CONFIDENCE) -> Interval | None:
    """The interval of the mean of rates of cases, within 0 and 1; None for none.

    Where all cases agree, Student's has no width, however few they are; then it is Wilson's, of as many trials.
    """
    if not rates:
        return None
    student = interval_of_mean(rates, confidence)
    if student is None or student[0] == student[1]:
        return wilson(fmean(rates), len(rates), confidence)
    return max(0.0, student[0]), min(1.0, student[1])


def wilson(rate: float, trials: int, confidence: float = CONFIDENCE) -> Interval:
    """Wilson's score interval of a rate that was seen in so many independent trials."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    middle, width = rate + z * z / (2 * trials), z * math.sqrt((rate * (1 - rate) + z * z / (4 * trials)) / trials)
    scale = 1 + z * z / trials
    return max(0.0, (middle - width) / scale), min(1.0, (middle + width) / scale)


def t_quantile(p: float, degrees: int) -> float:
    """The quantile of Student's distribution for ``p`` from 0.5 on, by bisection of its distribution function."""
    low, high = 0.0, 2.0
    while t_cdf(high, degrees) < p:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if t_cdf(middle, degrees) < p else (low, middle)
    return (low + high) / 2


def t_cdf(t: float, degrees: int) -> float:
    """The distribution function of Student's distribution for ``t`` from 0 on, by its finite series.

    Source: Abramowitz and Stegun 26.7.3 and 26.7.4.
    """
    angle = math.atan(t / math.sqrt(degrees))
    cos, sin = math.cos(angle), math.sin(angle)
    if degrees % 2:
        term, total = cos, 0.0
        for k in range(1, (degrees - 1) // 2 + 1):
            total += term
            term *= cos * cos * (2 * k) / (2 * k + 1)
        return 0.5 + (angle + sin * total) / math.pi
    term, total = 1.0, 0.0
    for k in range(1, degrees // 2 + 1):
        total += term
        term *= cos * cos * (2 * k - 1) / (2 * k)
    return 0.5 + sin * total / 2
