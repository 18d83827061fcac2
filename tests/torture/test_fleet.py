"""Hosts that share agents and are killed, stopped and drained, while hands prompt and fork."""

from tests.conftest import NewDatabase
from tests.torture.fleet import FAULTS, torture


def test_hosts_that_are_killed_stopped_and_drained_lose_nothing_and_answer_everything_once(
    new_postgres: NewDatabase,
) -> None:
    violations, counts, _ = torture(new_postgres(), faults=5, seed=1)
    assert violations == []
    assert sum(counts[kind] for kind in set(FAULTS)) == 5
    assert counts["prompts"] > 0
