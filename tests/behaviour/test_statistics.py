"""Intervals against tables, and how often they cover what they are to cover."""

import random

import pytest

from ikigai_actors.behaviour.statistics import interval_of_mean, interval_of_rate, t_quantile, wilson


@pytest.mark.parametrize(
    ("degrees", "expected"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (5, 2.571), (10, 2.228), (30, 2.042), (120, 1.980)],
)
def test_quantiles_of_students_distribution_are_those_of_the_tables(degrees: int, expected: float) -> None:
    assert t_quantile(0.975, degrees) == pytest.approx(expected, abs=0.001)


@pytest.mark.parametrize(
    ("rate", "trials", "expected"),
    [(1.0, 10, (0.7225, 1.0)), (0.5, 10, (0.2366, 0.7634)), (0.0, 20, (0.0, 0.1611))],
)
def test_wilsons_interval_is_that_of_the_tables(rate: float, trials: int, expected: tuple[float, float]) -> None:
    assert wilson(rate, trials) == pytest.approx(expected, abs=0.0001)


def test_cases_that_all_agree_have_an_interval_with_a_width() -> None:
    low, high = interval_of_rate([1.0, 1.0, 1.0]) or (1.0, 1.0)
    assert low < 0.5
    assert high == 1.0
    assert interval_of_rate([0.0]) is not None
    assert interval_of_rate([]) is None


def test_one_value_says_nothing_of_its_own_error() -> None:
    assert interval_of_mean([1.0]) is None


def test_an_interval_of_95_percent_covers_the_mean_in_about_95_of_100_draws() -> None:
    chance = random.Random(4)
    covered = 0
    for _ in range(2000):
        low, high = interval_of_mean([chance.gauss(1, 2) for _ in range(8)]) or (1.0, 1.0)
        covered += low <= 1 <= high
    assert 1860 <= covered <= 1940
