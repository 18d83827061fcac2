"""Our supervisor beside OTP's algorithm, over random sequences of exits, starts and times."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisors.strategies import Strategy
from tests.kit.sequences import Op, Otps, Ours, Scenario, play, random_scenario

SCENARIOS = st.builds(random_scenario, st.randoms(use_true_random=False), at_once=st.booleans())


@pytest.mark.slow("takes a second")
@settings(max_examples=400, deadline=None)
@given(SCENARIOS)
def test_our_supervisor_does_what_otps_does(scenario: Scenario) -> None:
    assert play(Ours(scenario), scenario) == play(Otps(scenario), scenario)


def test_the_scenarios_reach_every_kind_of_event_often() -> None:
    seen: Counter[tuple[str, str]] = Counter()
    random = Random(1)
    for number in range(1000):
        scenario = random_scenario(random, at_once=bool(number % 2))
        seen.update({(scenario.strategy, event.split()[0]) for event in play(Ours(scenario), scenario)})
    assert set(seen) == {(strategy, kind) for strategy in Strategy for kind in ("start", "fail", "stop", "gave", "up")}
    assert min(seen.values()) > 50


def test_the_fourth_restart_within_the_period_is_one_too_many() -> None:
    crashes = (Op("crash", "b"), Op("crash", "a", wait=1), Op("crash", "b", wait=1), Op("crash", "a", wait=1))
    children = (("a", "transient"), ("b", "transient"))
    within = Scenario("rest_for_one", 3, 3, children, crashes, frozenset())
    events = ["start b", "stop b", "start a", "start b", "start b", "stop b"]
    for player in (Ours, Otps):
        assert [event for event in play(player(within), within) if not event.startswith("up ")] == [*events, "gave up"]
    beyond = Scenario("rest_for_one", 3, 2, children, crashes, frozenset())
    for player in (Ours, Otps):
        assert [event for event in play(player(beyond), beyond) if not event.startswith("up ")] == [
            *events,
            "start a",
            "start b",
        ]
