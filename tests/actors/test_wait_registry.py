"""The registry of waits: who is refused, and who is not."""

import threading
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import pytest

from ikigai_actors.actors.futures import Future, TimedOut
from ikigai_actors.actors.wait_graph import Until, WaitedBy
from ikigai_actors.actors.wait_registry import ActingCode, OpenWait, WaitRegistry, WaitTarget, acting_code
from ikigai_actors.errors import StoreUnavailable, WouldDeadlock
from tests.kit.blocking_provider import DEADLINE


class Target(WaitTarget):
    """One agent that is waited for; the test says what the rows would say."""

    def __init__(self, uuid: str, confirm: Callable[[], bool] = lambda: True) -> None:
        self._uuid, self._confirm = uuid, confirm

    def awaited(self) -> Collection[str]:
        return (self._uuid,)

    def confirm(self, uuid: str) -> bool:
        return self._confirm()


def waiting(waiter: str, awaited: str, confirm: Callable[[], bool] = lambda: True) -> OpenWait:
    return OpenWait(waiter, Target(awaited, confirm), WaitedBy.CODE, Until.TURN, lambda: False, print)


def test_of_two_who_close_a_circle_at_once_one_is_refused() -> None:
    registry = WaitRegistry(str.upper)
    first, second = waiting("a", "b"), waiting("b", "a")
    registry.add(first)
    registry.add(second)
    with pytest.raises(WouldDeadlock, match="A waits for B waits for A") as refused:
        registry.check(first)
    registry.check(second)
    assert refused.value.circle == ("a", "b")
    assert (registry.awaited_by("a"), registry.awaited_by("b")) == ((), ("a",))


def test_who_is_judged_while_the_other_one_is_refused_goes_on_waiting() -> None:
    registry = WaitRegistry()

    def meanwhile() -> bool:
        registry.remove(first)
        return True

    first, second = waiting("a", "b"), waiting("b", "a", meanwhile)
    registry.add(first)
    registry.add(second)
    registry.check(second)
    assert registry.awaited_by("b") == ("a",)


def test_a_wait_whose_end_is_there_by_the_rows_makes_no_circle() -> None:
    registry = WaitRegistry()
    registry.add(waiting("a", "b", lambda: False))
    with registry.noted(waiting("b", "a")):
        assert registry.awaited_by("b") == ("a",)
    assert registry.awaited_by("b") == ()


def test_code_that_is_over_closes_no_circle() -> None:
    registry, answer = WaitRegistry(), Future[str]("b")
    registry.add(waiting("b", "a"))

    def act(is_over: bool) -> str:
        acting_code.set(ActingCode("a", registry, lambda: is_over))
        return answer.get(timeout=0.01)

    with pytest.raises(TimedOut):
        copy_context().run(act, True)
    with pytest.raises(WouldDeadlock):
        copy_context().run(act, False)
    answer.settle("there")
    assert copy_context().run(act, False) == "there"


def test_a_wait_that_is_refused_later_ends_even_if_what_it_asked_for_cannot_be_taken_back() -> None:
    registry, answer, begun = WaitRegistry(), Future[str]("b"), threading.Event()
    registry.on_change = begun.set

    def fail() -> None:
        raise StoreUnavailable("planted")

    def waits() -> str:
        acting_code.set(ActingCode("a", registry, lambda: False))
        return answer.get(timeout=DEADLINE)

    answer.take_back = fail
    with ThreadPoolExecutor(1) as thread:
        result = thread.submit(waits)
        assert begun.wait(DEADLINE)
        [wait] = registry.waits()
        with pytest.raises(StoreUnavailable):
            registry.refuse(tuple(wait.edges()))
        with pytest.raises(WouldDeadlock, match="a waits for a"):
            result.result(DEADLINE)
    assert registry.waits() == []
    assert isinstance(answer.refusal, WouldDeadlock)
