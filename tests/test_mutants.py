"""The hunt for mutants works, shown by quick ones; ``python -m tests.mutants`` hunts them all, which takes its time."""

import pytest

from tests.mutants import MUTANTS, Mutant
from tests.mutants.__main__ import changed, hunt

QUICK = {"tree row not taken": "tree", "fork point off by one": "fsck"}
"""By the invariant that finds them."""


def named(name: str) -> Mutant:
    [mutant] = [one for one in MUTANTS if one.name == name]
    return mutant


def test_every_mutant_has_its_place_and_a_name_of_its_own() -> None:
    assert all(changed(mutant) for mutant in MUTANTS)
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 20


def test_a_mutant_without_a_place_is_an_error() -> None:
    with pytest.raises(ValueError, match="0 times, expected once"):
        changed(Mutant("gone", "forks.py", "no such text", ""))


@pytest.mark.parametrize("name", QUICK)
def test_a_quick_mutant_is_found(name: str) -> None:
    found = hunt(named(name), examples=30, seconds=60, shrink=False)
    assert found["by"] == QUICK[name]
