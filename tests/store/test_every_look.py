"""Every way in which a host that lives can be looked at: nobody ends it, however often or seldom they look.

It beats at least every so many seconds, and its lock is free for so long at most. Time goes in steps of half a second.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from ikigai_actors.store.hosts.membership import KNOWS_NOBODY, Membership, Sighting

STEP = 0.5
LEASE = 4.0


class Moment(NamedTuple):
    """A host that lives, and what another one knows of it."""

    beat: int
    beaten: float
    """Seconds since its latest beat."""
    free: float
    """Seconds for which its lock has been free; 0 while it is held."""
    known: Membership


def after(state: Moment, now: float, beats: float, unheld: float) -> Iterator[tuple[Moment, bool]]:
    """Everything that may follow in a step, and whether the host was judged dead."""
    for beat in (True, False):
        for free in (True, False):
            beaten, freed = 0.0 if beat else state.beaten + STEP, state.free + STEP if free else 0.0
            if beaten > beats or freed > unheld:
                continue
            moment = state._replace(beat=state.beat + beat, beaten=beaten, free=freed)
            yield moment, False
            known, dead = state.known.judge(now, [Sighting("host", moment.beat, LEASE, not free)])
            yield moment._replace(known=known), bool(dead)


def ended(beats: float, unheld: float, seconds: float) -> int:
    """How many of the moments that can come have the host judged dead."""
    moments, count, now = {"": Moment(0, 0.0, 0.0, KNOWS_NOBODY)}, 0, 0.0
    while now < seconds:
        now += STEP
        later: dict[str, Moment] = {}
        for state in moments.values():
            for moment, dead in after(state, now, beats, unheld):
                if dead:
                    count += 1
                else:
                    later[repr(moment)] = moment
        moments = later
    return count


def test_no_host_that_beats_every_second_and_a_half_is_ended() -> None:
    assert ended(1.5, 1.5, 3.0) == 0


@pytest.mark.thorough("every look of six seconds")
@pytest.mark.parametrize(("beats", "unheld"), [(1.0, 1.0), (1.5, 1.5), (3.5, 0.0)])
def test_no_host_that_beats_in_time_is_ended(beats: float, unheld: float) -> None:
    assert ended(beats, unheld, 6.0) == 0


@pytest.mark.slow("takes a tenth of a second")
def test_who_beats_later_than_its_lock_may_be_free_can_be_ended() -> None:
    assert ended(2.0, 9.0, 3.0) > 0
