"""The clock of a database: what a process believes of the server's time."""

import time

from hypothesis import given
from hypothesis import strategies as st

from ikigai_actors.actors.clock import SystemClock
from ikigai_actors.store import Store, open_store
from ikigai_actors.store.database_clock import DatabaseClock, HybridClock, clock_of
from ikigai_actors.testing import ManualClock
from tests.conftest import NewDatabase
from tests.kit.databases import add_agents
from tests.kit.hosts import Hosts

HOUR = 3_600_000
"""Milliseconds."""

seconds = st.floats(0, 100)


def test_an_answer_that_comes_at_once_sets_the_time() -> None:
    machine = ManualClock(1_000.0)
    clock = DatabaseClock(machine)
    clock.hear(clock.monotonic(), 5_000_000)
    assert clock.now_ms() == 5_000_000
    machine.advance(2.5)
    assert clock.now_ms() == 5_002_500


def test_an_answer_that_took_long_changes_only_what_it_proves_wrong() -> None:
    machine = ManualClock(1_000.0)
    clock = DatabaseClock(machine)
    clock.hear(clock.monotonic(), 5_000_000)
    asked = clock.monotonic()
    machine.advance(10.0)
    clock.hear(asked, 5_000_100)  # read early in these ten seconds
    assert clock.now_ms() == 5_010_000
    asked = clock.monotonic()
    machine.advance(10.0)
    clock.hear(asked, 5_030_000)  # the server's clock was set ahead by at least ten seconds
    assert clock.now_ms() == 5_030_000


def test_the_wall_clock_of_the_machine_may_be_set_meanwhile() -> None:
    machine = ManualClock(1_000.0)
    clock = DatabaseClock(machine)
    clock.hear(clock.monotonic(), 5_000_000)
    machine.jump(HOUR / 1000)
    assert clock.now_ms() == 5_000_000


@given(
    start=st.integers(0, 2**42),
    server=st.integers(0, 2**42),
    answers=st.lists(st.tuples(seconds, seconds, seconds), min_size=1),
)
def test_what_is_believed_is_wrong_by_no_more_than_the_quickest_answer_took(
    start: int, server: int, answers: list[tuple[float, float, float]]
) -> None:
    machine = ManualClock(start / 1000)
    clock, origin = DatabaseClock(machine), machine.monotonic()

    def true() -> float:
        return server + (machine.monotonic() - origin) * 1000

    quickest = float("inf")
    for pause, there, back in answers:
        machine.advance(pause)
        asked = clock.monotonic()
        machine.advance(there)
        server_time = int(true())
        machine.advance(back)
        clock.hear(asked, server_time)
        quickest = min(quickest, there + back)
        assert abs(clock.now_ms() - true()) <= quickest * 1000 + 3  # whole milliseconds, and those of floats


def test_a_host_on_a_machine_with_a_wrong_clock_tells_the_time_of_the_server(
    new_postgres: NewDatabase, take: Hosts
) -> None:
    machine = ManualClock(1_000.0)
    host = take(new_postgres(), machine)
    assert abs(host.clock.now_ms() - time.time() * 1000) < HOUR
    machine.jump(HOUR)
    host.renew()
    assert abs(host.clock.now_ms() - time.time() * 1000) < HOUR


def test_stamps_never_fall_when_a_calendar_is_corrected() -> None:
    machine = ManualClock(1_000.0)
    clock = HybridClock(machine)
    first = clock.now_ms()
    machine.jump(-0.01)
    assert clock.now_ms() == first
    machine.advance(0.02)
    assert clock.now_ms() == first + 10


def test_no_stamp_is_earlier_than_one_that_was_read(store: Store) -> None:
    machine = ManualClock(1_000.0)
    clock = HybridClock(machine)
    now = clock.now_ms()
    store.listen(clock.hear)
    store.write(lambda tx: add_agents(tx, root=None))
    store.write(lambda tx: tx.append([("root", 1, "user", "from a host whose clock is ahead", None, now + 300, b"")]))
    store.write(lambda tx: tx.append([("root", 1, "alice", "prompt", "hello", now + 500, None, None, 0)], "mail"))
    assert clock.now_ms() == now
    assert store.read(lambda tx: tx.run("latest_before", uuid="root", position=9, kinds=["user"]))
    assert clock.now_ms() == now + 300
    [prompt] = store.read(lambda tx: tx.run("prompts_between", recipient="root", after=0, before=9))
    assert prompt == ("root", 1, "hello", None, 0)  # without what only the clock hears
    assert clock.now_ms() == now + 500
    machine.advance(1.0)
    assert clock.now_ms() == now + 1_000


def test_a_calendar_that_is_set_back_for_long_is_believed_and_what_was_stamped_before_is_not() -> None:
    machine = ManualClock(1_000.0)
    clock = HybridClock(machine)
    stamp = clock.now_ms()
    machine.jump(-3_600)
    assert clock.now_ms() == stamp - HOUR
    clock.hear(stamp)
    assert clock.now_ms() == stamp - HOUR


def test_in_a_file_the_time_is_that_of_the_machine() -> None:
    store, machine = open_store("sqlite:///:memory:"), SystemClock()
    assert clock_of(store, machine).calendar is machine
    store.close()
