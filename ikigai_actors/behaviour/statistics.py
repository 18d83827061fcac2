"""Confidence intervals of rates and of differences of rates, over cases: score intervals, which suit small numbers too.

    rate          Wilson's score interval (Wilson 1927)
    difference    Tango's score interval for paired proportions (Tango 1998, Statistics in Medicine 17:891-908)

If all cases agree, an interval still has a width of z²/(n + z²), which is 0.16 for twenty cases: if none of twenty was
worse, one in eight may still be. A case counts once, with the mean of its samples, since samples of one case are not
independent (Miller 2024, "Adding Error Bars to Evals"). A score between 0 and 1 is a case that is partly right. If the
scores vary less than scores of 0 and 1 would, as means of samples do, each case counts for more, by Kish's design
effect. One imaginary case of the largest variance is added, so that a few equal scores do not seem certain.
"""

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist, fmean

CONFIDENCE = 0.95

Interval = tuple[float, float]

_Z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
_STEPS = 50
"""The number of halvings in the search for an end of an interval."""


def interval_of_rate(rates: Sequence[float], times: float = 1.0) -> Interval | None:
    """Return the interval of the mean of the rates of cases, within 0 and 1; None without cases.

    ``times`` multiplies the number of cases, to forecast the interval with more cases like these.
    """
    if not rates:
        return None
    mean = fmean(rates)
    widest, seen = times * len(rates) * mean * (1 - mean), times * sum((rate - mean) ** 2 for rate in rates)
    return wilson(mean, times * len(rates) * (widest + 0.25) / (seen + 0.25))


def interval_of_difference(differences: Sequence[float], times: float = 1.0) -> Interval | None:
    """Return the interval of the mean of differences of cases, each from -1 to 1; None without cases.

    ``times`` multiplies the number of cases, as for `interval_of_rate`.
    """
    if not differences:
        return None
    better = times * sum(difference for difference in differences if difference > 0)
    worse = -times * sum(difference for difference in differences if difference < 0)
    weight = (better + worse + 1) / (times * sum(difference * difference for difference in differences) + 1)
    return tango(weight * better, weight * worse, weight * times * len(differences))


def wilson(rate: float, trials: float) -> Interval:
    """Return Wilson's score interval of a rate observed in this many independent trials."""
    z = _Z
    middle, width = rate + z * z / (2 * trials), z * math.sqrt((rate * (1 - rate) + z * z / (4 * trials)) / trials)
    scale = 1 + z * z / trials
    return max(0.0, (middle - width) / scale), min(1.0, (middle + width) / scale)


def tango(better: float, worse: float, pairs: float) -> Interval:
    """Return Tango's score interval of the difference of two rates observed in pairs.

    Args:
        better: pairs of which only the first was right.
        worse: pairs of which only the second was right.
    """
    seen = (better - worse) / pairs
    low = _border(-1.0, seen, lambda true: _score(better, worse, pairs, true) > _Z)
    high = _border(seen, 1.0, lambda true: _score(better, worse, pairs, true) > -_Z)
    return low, high


def cases_needed(enough: Callable[[int], bool], most: int = 10**7) -> int | None:
    """Return the least number of cases for which ``enough`` is true; None if it is not even for ``most``."""
    if not enough(most):
        return None
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _score(better: float, worse: float, pairs: float, true: float) -> float:
    """Return how many standard errors the observed difference lies above the difference ``true``."""
    a, c = 2 * pairs, -worse * true * (1 - true)
    b = -better - worse + (2 * pairs - better + worse) * true
    only_second = (math.sqrt(max(0.0, b * b - 4 * a * c)) - b) / (2 * a)  # its likeliest rate, if that is true
    variance, above = pairs * (2 * only_second + true * (1 - true)), better - worse - pairs * true
    return above / math.sqrt(variance) if variance > 0 else math.copysign(math.inf, above) if above else 0.0


def _border(low: float, high: float, is_below: Callable[[float], bool]) -> float:
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return (low + high) / 2
