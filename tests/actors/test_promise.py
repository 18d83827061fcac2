"""A value that is set once: what any future must hold, in every order of who sets, waits, cancels and calls back."""

import contextlib
import threading
from concurrent.futures import CancelledError, InvalidStateError

import pytest

from ikigai_actors.actors.promise import Promise
from tests.kit.blocking_provider import DEADLINE


def settle(promise: Promise[int], gate: threading.Barrier, number: int, won: list[int]) -> None:
    gate.wait()
    with contextlib.suppress(InvalidStateError):
        promise.set_result(number)
        won.append(number)


def test_it_is_settled_once_and_by_one_of_many_threads() -> None:
    for _ in range(50):
        promise, gate, won = Promise[int](), threading.Barrier(4), list[int]()

        threads = [threading.Thread(target=settle, args=(promise, gate, number, won)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert won == [promise.result(0)]


def test_every_waiter_gets_the_value_whenever_it_comes() -> None:
    promise, heard = Promise[str](), list[str]()
    threads = [threading.Thread(target=lambda: heard.append(promise.result(DEADLINE))) for _ in range(3)]
    for thread in threads:
        thread.start()
    promise.set_result("it")
    for thread in threads:
        thread.join()
    assert heard == ["it"] * 3


def test_a_wait_that_is_too_long_leaves_nothing_and_another_may_follow() -> None:
    promise = Promise[str]()
    for _ in range(3):
        with pytest.raises(TimeoutError):
            promise.result(0.001)
    assert not promise._callbacks
    promise.set_exception(KeyError("x"))
    with pytest.raises(KeyError):
        promise.result(0)
    assert isinstance(promise.exception(), KeyError)


def test_callbacks_run_once_in_order_and_a_later_one_at_once(caplog: pytest.LogCaptureFixture) -> None:
    promise, seen = Promise[int](), list[object]()

    def fails(promise: Promise[int]) -> None:
        raise RuntimeError("of a callback")

    promise.add_done_callback(lambda promise: seen.append(promise.result(0)))
    promise.add_done_callback(fails)
    promise.add_done_callback(lambda promise: seen.append("second"))
    promise.set_result(3)
    promise.add_done_callback(lambda promise: seen.append("late"))
    assert seen == [3, "second", "late"]
    assert "of a callback" in caplog.text


def test_only_one_that_may_be_cancelled_is() -> None:
    kept, given_up = Promise[int](), Promise[int](may_cancel=True)
    assert not kept.cancel()
    assert given_up.cancel()
    assert given_up.cancel()
    assert (kept.done(), given_up.done(), given_up.cancelled()) == (False, True, True)
    with pytest.raises(InvalidStateError):
        given_up.set_result(1)
    for wait in (given_up.result, given_up.exception):
        with pytest.raises(CancelledError):
            wait()
