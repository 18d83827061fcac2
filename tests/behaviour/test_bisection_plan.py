"""The bisection plan: against all hypotheses one by one, and how often it is right with a judge that errs."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ikigai_actors.behaviour.plans.bisect import Bisection, Posterior
from ikigai_actors.behaviour.plans.plan import UNJUDGED, Verdict
from ikigai_actors.errors import BadInput

VERDICTS = st.lists(st.tuples(st.integers(0, 6), st.booleans()), max_size=12)


def beta(a: float, b: float) -> float:
    return math.gamma(a) * math.gamma(b) / math.gamma(a + b)


def by_hand(verdicts: list[tuple[int, bool]], places: int) -> list[float]:
    """The posterior, hypothesis by hypothesis, from the definition."""
    weights = []
    for k in range(places + 1):
        before = [bad for place, bad in verdicts if place < k]
        after = [bad for place, bad in verdicts if place >= k]
        good_called = beta(1 + sum(before), 9 + len(before) - sum(before)) / beta(1, 9)
        weights.append(good_called * beta(9 + sum(after), 1 + len(after) - sum(after)) / beta(9, 1))
    return [weight / sum(weights) for weight in weights]


def entropy(weights: list[float]) -> float:
    return -sum(weight * math.log(weight) for weight in weights if weight)


@given(VERDICTS)
def test_the_posterior_is_that_of_all_hypotheses_one_by_one(verdicts: list[tuple[int, bool]]) -> None:
    posterior = Posterior(7)
    for place, bad in verdicts:
        posterior.tell(place, bad)
    assert posterior.probabilities == pytest.approx(by_hand(verdicts, 7))


@given(VERDICTS)
def test_the_next_probe_leaves_the_least_entropy_to_be_expected(verdicts: list[tuple[int, bool]]) -> None:
    posterior = Posterior(7)
    for place, bad in verdicts:
        posterior.tell(place, bad)

    def expected(place: int) -> float:
        weights, total = by_hand(verdicts, 7), 0.0
        for bad in (True, False):
            behind = by_hand([*verdicts, (place, bad)], 7)
            # Bayes: P(verdict) = P(verdict | k) P(k) / P(k | verdict), for whichever k.
            k = max(range(8), key=lambda k: behind[k])
            rate = likelihood([*verdicts, (place, bad)], k) / likelihood(verdicts, k)
            total += weights[k] * rate / behind[k] * entropy(behind)
        return total

    chosen = posterior.next_probe()
    assert chosen is not None
    assert expected(chosen) == pytest.approx(min(map(expected, range(7))))


def likelihood(verdicts: list[tuple[int, bool]], k: int) -> float:
    before = [bad for place, bad in verdicts if place < k]
    after = [bad for place, bad in verdicts if place >= k]
    good_called = beta(1 + sum(before), 9 + len(before) - sum(before)) / beta(1, 9)
    return good_called * beta(9 + sum(after), 1 + len(after) - sum(after)) / beta(9, 1)


def bisected(places: int, first_bad: int, error: float, chance: random.Random) -> tuple[int, float, int]:
    """What the plan finds, how sure it is, and with how many probes."""
    plan, probes = Bisection(places, "?"), 0
    while (trial := plan.ask()) is not None:
        probes += 1
        bad = (trial.place >= first_bad) ^ (chance.random() < error)
        plan.tell(trial.number, Verdict(0.0 if bad else 1.0))
    assert plan.is_over
    return *plan.posterior.best, probes


def runs(number: int, places: int) -> tuple[int, int]:
    """How often the first bad place is found at ten percent of error, and the most probes of a run."""
    chance = random.Random(number)
    hits, most = 0, 0
    for _ in range(number):
        first_bad = chance.randrange(places + 1)
        place, _, probes = bisected(places, first_bad, 0.1, chance)
        hits, most = hits + (place == first_bad), max(most, probes)
    return hits, most


@pytest.mark.slow("takes a tenth of a second")
def test_the_first_bad_place_is_found_by_a_judge_that_errs_one_time_in_ten() -> None:
    hits, most = runs(30, 100)
    assert hits >= 29
    assert most <= 60


@pytest.mark.thorough("a minute of arithmetic")
@pytest.mark.timeout(300)
def test_the_first_bad_of_a_thousand_places_is_found_990_times_in_a_thousand() -> None:
    hits, most = runs(1000, 1000)
    assert hits >= 990
    assert most <= 60


@pytest.mark.parametrize("first_bad", [0, 50])
def test_wrong_from_the_start_and_nothing_is_wrong_are_answers(first_bad: int) -> None:
    place, sure, _ = bisected(50, first_bad, 0.0, random.Random(1))
    assert place == first_bad
    assert sure >= 0.99


def test_a_place_that_cannot_be_judged_is_skipped_and_the_bisection_ends_when_none_is_left() -> None:
    plan = Bisection(3, "?")
    probed = []
    while (trial := plan.ask()) is not None:
        probed.append(trial.place)
        plan.tell(trial.number, UNJUDGED)
    assert sorted(probed) == [0, 1, 2]
    assert plan.is_over
    assert plan.posterior.best[1] == pytest.approx(0.25)


def test_no_place_is_probed_twice_at_once() -> None:
    plan = Bisection(20, "?")
    asked = [plan.ask() for _ in range(5)]
    assert len({trial.place for trial in asked if trial is not None}) == 5


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"sure": 0.4}, "above 0.5"),
        ({"sure": True}, "above 0.5"),
        ({"most": 0}, "from 1"),
        ({"prior": [1]}, "6 weights"),
        ({"prior": [1] * 5 + ["much"]}, "6 weights"),
        ({"prior": [1] * 5 + [10**400]}, "6 weights"),
        ({"prior": 6}, "6 weights"),
        ({"prior": [0] * 6}, "above 0"),
    ],
)
def test_terms_that_cannot_be_are_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Bisection(5, "?", **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("place", [-1, 5])
def test_a_verdict_on_a_place_that_there_is_not_is_refused(place: int) -> None:
    with pytest.raises(BadInput, match="from 0 to 4"):
        Posterior(5).tell(place, True)
