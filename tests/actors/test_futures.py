"""Futures: waiting, awaiting, and waits that could never end."""

import asyncio
import contextlib
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import pykka
import pytest

from ikigai_actors.actors.futures import Future, TimedOut, acting_agent, forbid_blocking
from ikigai_actors.actors.promise import Promise
from ikigai_actors.errors import BadInput, WouldDeadlock, WouldWaitForItself
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import eventually


@dataclass
class Handle:
    uuid: str


def in_thread(work: Any) -> list[BaseException]:
    """Run work on a fresh thread; return what it raised."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(DEADLINE)
    return raised


def test_a_value_or_an_exception_comes_out_as_it_went_in_every_time() -> None:
    good, bad = Future[int](), Future[int]()
    good.set(3)
    bad.settle(ValueError("planted"))
    assert (good.get(), good.get(timeout=0)) == (3, 3)
    for _ in range(2):
        with pytest.raises(ValueError, match="planted"):
            bad.get()


def test_a_timeout_is_pykkas_and_pythons_and_ours() -> None:
    with pytest.raises(TimedOut) as caught:
        Future[int]().get(timeout=0)
    assert isinstance(caught.value, pykka.Timeout)
    assert isinstance(caught.value, TimeoutError)


@contextlib.contextmanager
def once_main_waits(work: Callable[[], object]) -> Iterator[None]:
    """Do this on another thread as soon as the main thread waits for a future."""

    def waits() -> bool:
        main = sys._current_frames()[threading.main_thread().ident or 0]
        within = [frame.f_code for frame, _ in traceback.walk_stack(main)]
        return within[0] is Promise._wait.__code__ and Future.get.__code__ in within

    def run() -> None:
        eventually(waits, "the wait")
        work()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        thread.join()


@pytest.mark.usefixtures("uncollected")
def test_a_signal_that_another_thread_was_given_ends_the_main_threads_wait() -> None:
    future = Future[str]()
    rescue = threading.Timer(DEADLINE, future.set, ["waited on"])
    rescue.start()
    with once_main_waits(lambda: signal.pthread_kill(threading.get_ident(), signal.SIGINT)):
        with pytest.raises(KeyboardInterrupt):
            future.get()
        rescue.cancel()
    assert not future.done()


@pytest.mark.parametrize("seconds", [None, 1e10, threading.TIMEOUT_MAX * 2])
def test_a_wait_may_be_longer_than_the_machine_can_wait(seconds: float | None) -> None:
    future = Future[int]()
    with once_main_waits(lambda: future.set(3)):
        assert future.get(timeout=seconds) == 3


def test_a_value_that_is_itself_a_timeout_error_passes_through() -> None:
    future = Future[int]()
    future.settle(TimeoutError("of the callee"))
    with pytest.raises(TimeoutError, match="of the callee"):
        future.get(timeout=1)


def test_pykkas_combinators_work() -> None:
    first, second = Future[int](), Future[int]()
    joined = first.join(second)
    first.set(1)
    second.set(2)
    assert first.map(lambda value: value + 1).get(timeout=DEADLINE) == 2
    assert list(joined.get(timeout=DEADLINE)) == [1, 2]
    assert pykka.get_all([first, second], timeout=DEADLINE) == [1, 2]


def test_a_mapped_future_can_be_awaited_too() -> None:
    future = Future[int]()
    future.set(1)

    async def program() -> int:
        return await future.map(lambda value: value + 1)

    assert asyncio.run(program()) == 2


def test_a_future_that_makes_its_value_does_so_when_it_is_settled() -> None:
    future: Future[str] = Future(make=str)
    future.settle(5)
    assert future.get() == "5"


def test_awaiting_raises_the_exception() -> None:
    future = Future[int]()

    async def program() -> int:
        asyncio.get_running_loop().call_soon(future.settle, ValueError("planted"))
        return await future

    with pytest.raises(ValueError, match="planted"):
        asyncio.run(program())


def test_a_thread_of_the_runtime_may_take_a_value_that_is_there_but_not_wait_for_one() -> None:
    ready, open_one = Future[int](), Future[int]()
    ready.set(1)

    def work() -> None:
        forbid_blocking("a test thread")
        assert ready.get() == 1
        open_one.get(timeout=0)

    [error] = in_thread(work)
    assert isinstance(error, WouldDeadlock)
    assert "a test thread" in str(error)
    assert "await" in str(error)


def test_an_agent_may_not_wait_for_its_own_turn_in_either_form() -> None:
    def work() -> None:
        acting_agent.set(Handle("me"))
        other = Future[int]("other")
        other.set(1)
        assert other.get() == 1
        with pytest.raises(WouldWaitForItself):
            Future[int]("me").get()

        async def program() -> None:
            with pytest.raises(WouldWaitForItself):
                await Future[int]("me")

        asyncio.run(program())

    assert in_thread(work) == []


def test_an_exception_without_one_is_an_error_all_the_same() -> None:
    kind, nothing = Future[int](), Future[int]()
    kind.set_exception((LookupError, None, None))
    nothing.set_exception()
    with pytest.raises(LookupError):
        kind.get()
    with pytest.raises(RuntimeError, match="without an exception"):
        nothing.get()


def test_it_has_the_interface_of_concurrent_futures() -> None:
    good, bad, open_one = Future[int](), Future[int](), Future[int]()
    heard: list[Future[int]] = []
    good.add_done_callback(heard.append)
    assert (good.done(), heard) == (False, [])
    good.set(3)
    bad.settle(ValueError("planted"))
    bad.add_done_callback(heard.append)
    assert heard == [good, bad]
    assert (good.done(), good.result(), good.result(0), good.exception()) == (True, 3, 3, None)
    assert str(bad.exception(0)) == "planted"
    with pytest.raises(ValueError, match="planted"):
        bad.result(timeout=1)
    for wait in (open_one.result, open_one.exception):
        with pytest.raises(TimedOut):
            wait(0)
    with pytest.raises(BadInput, match="callback"):
        open_one.add_done_callback(cast(Any, 3))


def test_a_future_keeps_its_timeout_for_both_ways_to_wait() -> None:
    late, ready = Future[int](timeout=0), Future[int]().within(0)
    ready.set(3)

    async def program(future: Future[int]) -> int:
        return await future

    ways: tuple[Callable[[], int], ...] = (late.get, lambda: asyncio.run(program(late)))
    for wait in ways:
        with pytest.raises(TimedOut, match="No answer within 0 s; the request may still be carried out"):
            wait()
    assert (ready.get(), asyncio.run(program(ready))) == (3, 3)
    late.set(4)
    assert (late.get(), asyncio.run(program(late))) == (4, 4)
    with pytest.raises(BadInput, match="timeout"):
        Future[int](timeout=-1)


def test_an_awaited_timeout_error_of_the_callee_passes_through() -> None:
    future = Future[int](timeout=DEADLINE)

    async def program() -> int:
        asyncio.get_running_loop().call_soon(future.settle, TimeoutError("of the callee"))
        return await future

    with pytest.raises(TimeoutError, match="of the callee"):
        asyncio.run(program())


def test_a_cancelled_await_leaves_a_command_as_it_is() -> None:
    future = Future[int](timeout=DEADLINE)

    async def program() -> int:
        waiting = asyncio.ensure_future(future)
        asyncio.get_running_loop().call_soon(waiting.cancel)
        with pytest.raises(asyncio.CancelledError):
            await waiting
        future.set(3)
        return await future

    assert asyncio.run(program()) == 3
