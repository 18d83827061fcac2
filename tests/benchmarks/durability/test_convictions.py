"""Each conviction names the events that convict, and a play that is not convicted has none."""

import pytest

from benchmarks.durability.convictions import lines
from benchmarks.durability.verdict import judge
from tests.benchmarks.durability.mutants import CONVICTS, Damage
from tests.benchmarks.durability.test_verdict import HISTORIES


def test_a_play_that_is_not_convicted_has_no_line() -> None:
    assert [line for play in HISTORIES for line in lines(play, judge(play))] == []


@pytest.mark.parametrize("damage", CONVICTS)
def test_each_conviction_has_its_charge_and_the_events_that_convict(damage: Damage) -> None:
    damaged = [play for each in HISTORIES if (play := damage(each)) is not None]
    for play in damaged:
        charge, *events = lines(play, judge(play))
        assert charge.startswith(f"{play.runtime}: {play.task}, {play.moment}")
        assert any(line.startswith("  > ") for line in events)
        assert sum(" struck " in line for line in events) >= len(play.of("struck"))
