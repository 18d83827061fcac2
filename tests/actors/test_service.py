"""Services: each begins once and ends once, in whatever order it is asked; a worker outlives what fails."""

import threading
from collections.abc import Callable

import pytest

from ikigai_actors.actors.service import Service, Worker
from ikigai_actors.errors import StoreUnavailable
from tests.kit.blocking_provider import DEADLINE


class Counting(Service):
    """Counts how often it has begun and ended."""

    def __init__(self, first: Callable[[], object] = lambda: None) -> None:
        super().__init__("counting")
        self.begun = self.ended = 0
        self._first = first

    def run(self) -> None:
        self.begun += 1
        self._first()
        self.awaits(lambda: False)
        self.ended += 1


def test_a_service_that_is_started_and_closed_twice_begins_and_ends_once() -> None:
    service = Counting()
    for _ in range(2):
        service.start()
    assert service.started
    for _ in range(2):
        service.close()
    service.start()
    assert (service.begun, service.ended) == (1, 1)


def test_a_service_that_is_closed_before_it_is_started_never_begins() -> None:
    service = Counting()
    service.close()
    service.start()
    assert not service.started
    assert service.begun == 0


def test_a_service_that_closes_itself_does_not_wait_for_itself() -> None:
    service = Counting(lambda: service.close())
    service.start()
    service.close(DEADLINE)
    assert service.ended == 1


def test_a_wait_of_a_service_ends_with_what_it_waits_for_or_with_the_service() -> None:
    service = Counting()
    assert service.awaits(lambda: True)
    assert service.pause(0)
    service.stop()
    assert not service.awaits(lambda: True)
    assert not service.pause(DEADLINE)


def test_a_worker_does_all_in_order_and_at_its_time_whatever_fails(caplog: pytest.LogCaptureFixture) -> None:
    worker, done, over = Worker("worker"), list[str](), threading.Event()

    def fail(error: Exception) -> None:
        raise error

    def later() -> None:
        worker.after(0.001, over.set)
        worker.after(0, lambda: done.append("due"))

    worker.post(lambda: done.append("before it was started"))
    worker.start()
    worker.post(lambda: fail(StoreUnavailable("the database is down")))
    worker.post(lambda: fail(LookupError("a defect")))
    worker.post(later)
    assert over.wait(DEADLINE)
    worker.close()
    assert done == ["before it was started", "due"]
    assert "a defect" in caplog.text


def test_a_worker_that_is_stopped_leaves_what_it_has_not_begun() -> None:
    worker, done = Worker("worker"), list[str]()
    worker.post(lambda: done.append("first"))
    worker.post(worker.stop)
    worker.post(lambda: done.append("left"))
    worker.start()
    worker.close()
    assert done == ["first"]
