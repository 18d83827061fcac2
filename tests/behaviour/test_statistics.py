"""Intervals against tables and against the test that they invert, and how often they hold the truth."""

import random

import pytest

from ikigai_actors.behaviour.statistics import (
    cases_needed,
    interval_of_difference,
    interval_of_rate,
    tango,
    wilson,
)


@pytest.mark.parametrize(
    ("rate", "trials", "expected"),
    [(1.0, 10, (0.7225, 1.0)), (0.5, 10, (0.2366, 0.7634)), (0.0, 20, (0.0, 0.1611))],
)
def test_wilsons_interval_is_that_of_the_tables(rate: float, trials: int, expected: tuple[float, float]) -> None:
    assert wilson(rate, trials) == pytest.approx(expected, abs=0.0001)


@pytest.mark.parametrize("pairs", [2, 5, 20, 189])
def test_of_pairs_that_all_agree_tangos_interval_is_as_wide_as_wilsons(pairs: int) -> None:
    low, high = tango(0, 0, pairs)
    assert (-low, high) == pytest.approx((1 - wilson(1.0, pairs)[0],) * 2)


@pytest.mark.parametrize(
    ("better", "worse", "differs"), [(0, 3, False), (0, 4, True), (5, 14, True), (5, 13, False), (0, 0, False)]
)
def test_tangos_interval_leaves_out_0_where_mcnemars_test_does(better: int, worse: int, differs: bool) -> None:
    low, high = tango(better, worse, 44)
    assert (high < 0 or low > 0) is differs
    assert tango(worse, better, 44) == pytest.approx((-high, -low))


def test_cases_that_all_agree_have_an_interval_with_a_width() -> None:
    low, high = interval_of_rate([1.0, 1.0, 1.0]) or (1.0, 1.0)
    assert low < 0.5
    assert high == 1.0
    low, high = interval_of_rate([0.5, 0.5]) or (0.5, 0.5)
    assert low < 0.25 < 0.75 < high
    low, high = interval_of_difference([0.0] * 5) or (0.0, 0.0)
    assert low < -0.4 < 0.4 < high
    assert (interval_of_rate([]), interval_of_difference([])) == (None, None)


def test_means_of_samples_that_scatter_less_count_for_more() -> None:
    scattered, three = ([-1.0, 0.0, 0.0] * 10, [-1 / 3] * 30)
    widths = [high - low for low, high in map(interval_of_difference, (scattered, three))]  # type: ignore[misc]  # not None
    assert widths[1] < 0.8 * widths[0]


def held(cases: int, samples: int, after: float, draws: int) -> tuple[float, float]:
    """How often the interval held the truth of a model that was right in 90 % of cases, and how often 0.02 passed."""
    chance = random.Random(7)

    def rate(probability: float) -> float:
        return sum(chance.random() < probability for _ in range(samples)) / samples

    outcomes = [interval_of_difference([rate(after) - rate(0.9) for _ in range(cases)]) for _ in range(draws)]
    intervals = [interval for interval in outcomes if interval is not None]
    holds = sum(low <= after - 0.9 <= high for low, high in intervals) / draws
    return holds, sum(low >= -0.02 for low, _ in intervals) / draws


@pytest.mark.sample(1, "a number of cases each")
@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize("cases", [2, 3, 5, 10, 20])
def test_the_interval_holds_the_truth_in_about_95_of_100_draws_however_few_the_cases(cases: int, samples: int) -> None:
    for after in (0.7, 0.9):
        holds, passes = held(cases, samples, after, 300)
        assert holds >= 0.93
        assert passes <= (0.01 if after < 0.9 else 0.05)


def test_the_least_number_of_cases_is_found() -> None:
    assert cases_needed(lambda count: count >= 17) == 17
    assert cases_needed(lambda count: False) is None
