"""Interleavings of transactions on PostgreSQL; ``python -m tests.jar`` runs as many as one likes."""

import pytest

from tests.jar.run import interleave
from tests.kit.databases import Admin, SchemaPool


def wrong_among(pool: SchemaPool, admin: Admin, seeds: range, sessions: int, units: int) -> list[str]:
    """What is wrong with the interleavings of these seeds."""
    wrong: list[str] = []
    for seed in seeds:
        with pool.lend() as url:
            wrong += interleave(url, admin, seed, sessions, units).lines_of_problems()
    return wrong


@pytest.mark.slow("runs transactions on PostgreSQL, a statement at a time")
def test_interleaved_transactions_equal_one_after_another_in_the_order_of_their_commits(
    postgres_pool: SchemaPool, postgres_admin: Admin
) -> None:
    assert wrong_among(postgres_pool, postgres_admin, range(1, 4), 3, 3) == []


@pytest.mark.thorough("hundreds of interleavings")
def test_many_interleavings_of_more_sessions_equal_the_order_of_their_commits(
    postgres_pool: SchemaPool, postgres_admin: Admin
) -> None:
    assert wrong_among(postgres_pool, postgres_admin, range(1_001, 1_301), 3, 3) == []
    assert wrong_among(postgres_pool, postgres_admin, range(2_001, 2_101), 4, 2) == []
