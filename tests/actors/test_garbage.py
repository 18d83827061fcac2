"""The collector is held back in a block, and pays there for what the block has made."""

import gc
from collections.abc import Iterator

import pytest

from ikigai_actors.actors.garbage import MANY_OBJECTS, everything_stays


@pytest.fixture
def collections() -> Iterator[list[int]]:
    """The generations that are collected, one after the other."""
    seen: list[int] = []

    def count_phase(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            seen.append(info["generation"])

    gc.collect()
    gc.callbacks.append(count_phase)
    yield seen
    gc.callbacks.remove(count_phase)


@pytest.mark.slow("takes a tenth of a second")
def test_what_a_block_has_made_is_looked_at_when_it_ends_and_not_behind_it(collections: list[int]) -> None:
    with everything_stays():
        kept = [[number] for number in range(2 * MANY_OBJECTS)]
        assert collections == []
    assert collections == [1]
    assert gc.get_count()[0] < MANY_OBJECTS < len(kept)


def test_a_block_that_makes_little_costs_no_collection(collections: list[int]) -> None:
    with everything_stays():
        kept = [[number] for number in range(100)]
    assert collections == []
    assert len(kept) == 100
