"""Threads that wait for the next call: none waits for another one, and none is made without need."""

import threading
import weakref
from collections.abc import Callable

from ikigai_actors.actors.spare_threads import SpareThreads
from ikigai_actors.actors.threads import SystemThreads
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import eventually


class Counted(SystemThreads):
    """Threads that are counted."""

    def __init__(self) -> None:
        self.made: list[threading.Thread] = []

    def thread(self, run: Callable[[], object], name: str) -> threading.Thread:
        self.made.append(super().thread(run, name))
        return self.made[-1]


def test_a_call_never_waits_for_another_one() -> None:
    threads, together = Counted(), threading.Barrier(41)
    spare = SpareThreads(threads)
    for _ in range(40):
        spare.run(lambda: together.wait(DEADLINE), "waits")
    together.wait(DEADLINE)
    assert len(threads.made) == 40


def test_a_thread_that_is_spare_takes_the_next_call_under_its_name() -> None:
    threads, spare_again = Counted(), threading.Event()
    spare = SpareThreads(threads)
    names: list[str] = []

    def call() -> None:
        names.append(threading.current_thread().name)
        spare_again.set()

    for name in ("one", "two", "three"):
        spare.run(call, name)
        assert spare_again.wait(DEADLINE)
        spare_again.clear()
        eventually(lambda: spare.count, "the thread is spare")
    assert names == ["one", "two", "three"]
    assert len(threads.made) == 1


def test_a_spare_thread_ends_when_nothing_comes() -> None:
    threads = Counted()
    spare = SpareThreads(threads, spare_for=0)
    spare.run(lambda: None, "once")
    threads.made[0].join(DEADLINE)
    assert not threads.made[0].is_alive()
    assert spare.count == 0


def test_a_spare_thread_holds_nothing_of_its_first_call() -> None:
    class Held:
        def call(self) -> None:
            """Do nothing."""

    spare, held = SpareThreads(Counted()), Held()
    gone = weakref.ref(held)
    spare.run(held.call, "first")
    eventually(lambda: spare.count, "the thread is spare")
    del held
    assert gone() is None
