"""Hosts that share agents, under faults of every kind, while hands prompt and fork."""

import pytest

from tests.torture.fleet.campaign import torture

EVERY = {"kill": 2, "stop": 1, "drain": 1, "cut": 1}


@pytest.mark.thorough("hosts as processes under faults; the simulation has them in the suite")
def test_hosts_under_faults_lose_nothing_and_answer_everything_once() -> None:
    result = torture(faults=5, seed=1, weights=EVERY)
    assert result.violations == []
    assert sum(result.counts[kind] for kind in EVERY) == 5
    assert result.counts["prompts"] > 0
