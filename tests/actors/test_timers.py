"""Timers: in which order values are due, and for how long a thread may sleep until then."""

from hypothesis import given
from hypothesis import strategies as st

from ikigai_actors.actors.threads import LONGEST_SLEEP
from ikigai_actors.actors.timers import Timers


@given(st.lists(st.integers(0, 5)), st.integers(0, 5))
def test_values_that_are_due_come_in_order_of_time_and_then_of_adding(times: list[int], now: int) -> None:
    timers = Timers[tuple[int, int]]()
    for number, due in enumerate(times):
        timers.add(due, (due, number))
    taken = []
    while (value := timers.take_due(now)) is not None:
        taken.append(value)
    assert taken == sorted((due, number) for number, due in enumerate(times) if due <= now)
    later = [due for due in times if due > now]
    assert timers.sleep(now) == (min(later) - now if later else None)


def test_a_thread_sleeps_no_longer_than_a_machine_lets_it() -> None:
    timers = Timers[str]()
    timers.add(1e12, "in a far future")
    assert timers.sleep(0.0) == LONGEST_SLEEP
    assert timers.take_due(LONGEST_SLEEP) is None


def test_what_should_have_been_done_already_lets_nobody_sleep() -> None:
    timers = Timers[str]()
    timers.add(1.0, "late")
    assert timers.sleep(5.0) == 0.0
