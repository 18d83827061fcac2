"""Which hosts another host takes for dead."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ikigai_actors.store.hosts.host import LEASE
from ikigai_actors.store.hosts.membership import (
    CUT_OFF,
    GAP,
    KNOWS_NOBODY,
    UNHELD,
    Membership,
    Sighting,
    rhythm,
)


def judged(
    looks: list[tuple[float, list[Sighting]]], membership: Membership = KNOWS_NOBODY
) -> list[list[tuple[str, int]]]:
    """The hosts judged dead at each look, with their beats. A look is a time and what was found."""
    deaths = []
    for now, sightings in looks:
        membership, dead = membership.judge(now, sightings)
        deaths.append([(each.host, each.beat) for each in dead])
    return deaths


def look(beat: int, *, held: bool = True, lease: float = LEASE) -> list[Sighting]:
    """A look that finds one host."""
    return [Sighting("a", beat, lease, held)]


def test_a_host_whose_beat_stands_still_for_its_lease_is_dead() -> None:
    looks = [(float(second), look(7)) for second in range(11)]
    assert judged(looks) == [[]] * 10 + [[("a", 7)]]


def test_the_lease_is_that_of_the_host_not_of_the_one_who_looks() -> None:
    looks = [(float(second), look(7, lease=60.0)) for second in range(60)]
    assert judged(looks) == [[]] * 60


def test_a_host_that_beats_lives() -> None:
    assert judged([(float(second), look(second // 9)) for second in range(100)]) == [[]] * 100


def test_a_host_whose_lock_stays_free_is_dead_long_before_its_lease_is_over() -> None:
    free = [(float(second), look(7, held=False)) for second in (1, 2, 3)]
    assert judged([(0.0, look(7)), *free]) == [[], [], [], [("a", 7)]]


def test_a_host_whose_process_is_known_to_have_ended_is_dead_as_soon_as_its_lock_is_free() -> None:
    held, free = ([Sighting("a", 7, LEASE, held, gone=True)] for held in (True, False))
    assert judged([(0.0, held), (0.1, held), (0.2, free)]) == [[], [], [("a", 7)]]
    assert judged([(0.0, free)], CUT_OFF) == [[("a", 7)]]  # also where the server was away: it does not come back


def test_a_lock_that_is_held_again_counts_anew() -> None:
    sightings = [look(7, held=False), look(7, held=False), look(7), look(7, held=False), look(7, held=False)]
    assert judged([(float(second), each) for second, each in enumerate(sightings)]) == [[]] * 5


def test_a_host_that_beats_lives_though_nobody_holds_its_lock() -> None:
    looks = [(float(second), look(second // 2, held=False)) for second in range(30)]
    assert judged(looks) == [[]] * 30


@pytest.mark.parametrize("lease", [1.0, LEASE, 600.0])
def test_a_host_renews_twice_before_a_free_lock_can_end_it(lease: float) -> None:
    assert 2 * rhythm(lease) <= UNHELD


def test_who_has_not_looked_for_a_while_begins_anew() -> None:
    stopped = 4.0 + GAP + 0.1
    looks = [
        (0.0, look(7, held=False)),
        (4.0, look(7)),
        (stopped, look(7, held=False)),
        (stopped + 1, look(7, held=False)),
    ]
    assert judged(looks) == [[]] * 4
    assert judged([*looks, (stopped + UNHELD, look(7, held=False))])[-1] == [("a", 7)]


def test_who_was_cut_off_itself_leaves_those_to_their_lease_whose_lock_it_has_not_seen_held_since() -> None:
    looks = [(float(second), look(7, held=False)) for second in range(11)]
    assert judged(looks, CUT_OFF) == [[]] * 10 + [[("a", 7)]]
    back = [(0.0, look(7, held=False)), (1.0, look(7)), *[(second, look(7, held=False)) for second in (2.0, 3.0, 4.0)]]
    assert judged(back, CUT_OFF) == [[]] * 4 + [[("a", 7)]]


def test_a_host_that_is_gone_from_the_table_is_forgotten() -> None:
    looks = [(0.0, look(7)), (3.0, []), (6.0, look(7)), (9.0, look(7)), (12.0, look(7))]
    assert judged(looks) == [[]] * 5


@given(st.lists(st.tuples(st.floats(0.1, 2 * GAP), st.integers(0, 3), st.booleans()), max_size=40))
def test_nobody_is_judged_dead_without_a_whole_lease_or_a_whole_time_of_looks(
    steps: list[tuple[float, int, bool]],
) -> None:
    """Whatever is seen, and whenever: a judgement rests on unbroken looks at the same sign."""
    now, looks = 0.0, list[tuple[float, list[Sighting]]]()
    for pause, beat, held in steps:
        now += pause
        looks.append((now, look(beat, held=held)))
    for number, dead in enumerate(judged(looks)):
        if not dead:
            continue
        end, first = looks[number][0], number
        while first and looks[first][0] - looks[first - 1][0] <= GAP:
            first -= 1
        unbroken = looks[first : number + 1]
        beat = unbroken[-1][1][0].beat
        same = unheld = end
        for when, [each] in reversed(unbroken):
            if each.beat != beat:
                break
            same = when
        for when, [each] in reversed(unbroken):
            if each.held or each.beat != beat:
                break
            unheld = when
        assert end - same >= LEASE or end - unheld >= UNHELD
