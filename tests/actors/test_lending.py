"""A thread that asks an idle actor runs it itself: with the same answers, and never beside a worker."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ikigai_actors.actors.actor import ActorGone, Dispatcher, PooledActor
from ikigai_actors.actors.dispatcher import ThreadDispatcher
from ikigai_actors.errors import WouldDeadlock


class Counter(PooledActor):
    """Counts its messages, and notes the threads that ran it and whether two did at once."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        super().__init__(dispatcher)
        self.count, self.within, self.met = 0, False, False
        self.threads = set[str]()

    def on_receive(self, message: Any) -> Any:
        self.met |= self.within
        self.within = True
        self.threads.add(threading.current_thread().name)
        try:
            self.count += 1
            return message() if callable(message) else self.count
        finally:
            self.within = False


@pytest.fixture
def workers() -> Iterator[ThreadDispatcher]:
    running = ThreadDispatcher(2)
    yield running
    running.close()


def elsewhere(call: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1, "caller") as pool:
        return pool.submit(call).result()


def test_who_asks_an_idle_actor_runs_it_and_the_main_thread_never_does(workers: ThreadDispatcher) -> None:
    ref = Counter.start(workers)
    assert ref.ask(1) == 1
    assert elsewhere(lambda: ref.ask(1)) == 2
    actor = ref._actor_weakref()
    assert isinstance(actor, Counter)
    assert actor.threads == {"ikigai-worker", "caller_0"}


def test_callers_and_workers_never_run_an_actor_at_the_same_time(workers: ThreadDispatcher) -> None:
    ref = Counter.start(workers)

    def ask(_: object) -> list[Any]:
        for _ in range(20):
            ref.tell(None)
        return [ref.ask(1) for _ in range(200)]

    with ThreadPoolExecutor(4, "caller") as pool:
        answers = [list(got) for got in pool.map(ask, range(4))]
    actor = ref._actor_weakref()
    assert isinstance(actor, Counter)
    assert not actor.met
    assert all(got == sorted(got) for got in answers)
    assert ref.ask(1) == 4 * 220 + 1


def test_an_error_is_the_answer_and_what_is_no_exception_ends_the_actor_alone(workers: ThreadDispatcher) -> None:
    ref = Counter.start(workers)

    def refuses() -> None:
        raise ValueError("no")

    def leaves() -> None:
        raise SystemExit(3)

    with pytest.raises(ValueError, match="no"):
        elsewhere(lambda: ref.ask(refuses))
    assert elsewhere(lambda: ref.ask(1)) == 2
    with pytest.raises(ActorGone):
        elsewhere(lambda: ref.ask(leaves))
    assert not ref.is_alive()


def test_a_handler_that_its_caller_runs_may_not_wait_for_others_either(workers: ThreadDispatcher) -> None:
    caller, other = Counter.start(workers), Counter.start(workers)
    with pytest.raises(WouldDeadlock):
        elsewhere(lambda: caller.ask(lambda: other.ask(1)))


def test_what_comes_meanwhile_is_handled_by_a_worker(workers: ThreadDispatcher) -> None:
    ref, heard = Counter.start(workers), threading.Event()
    elsewhere(lambda: ref.ask(lambda: ref.tell(heard.set)))
    assert heard.wait(60)
