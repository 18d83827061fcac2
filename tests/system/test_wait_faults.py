"""Waits while something goes wrong: the store, the time, whoever is to be told, or the end of it all."""

import queue
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from ikigai_actors import ActorSystem, AgentNotFound, ScriptedProvider, Signal, StoreError, SystemClosed
from ikigai_actors.actors.clock import SystemClock
from ikigai_actors.actors.threads import SYSTEM_THREADS
from ikigai_actors.agent.waits import Wait, WaitResult, WaitResults, Waits
from ikigai_actors.errors import StoreUnavailable
from ikigai_actors.providers.base import Reply, ToolCall
from ikigai_actors.store import Store
from ikigai_actors.system.handles.commands.every import Commands
from ikigai_actors.testing import simulated
from ikigai_actors.testing.simulation.changes import StoredChange, Written
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import eventually
from tests.kit.faults import FaultyStore
from tests.kit.trees import plant
from tests.system.test_waits import Waiting

NEVER = 2**60
"""A deadline that does not come."""


class Told:
    """What waits were answered with, in order."""

    def __init__(self) -> None:
        self._answers: queue.Queue[WaitResults | Exception] = queue.Queue()

    def __call__(self, answer: WaitResults | Exception) -> None:
        self._answers.put(answer)

    @property
    def next(self) -> Any:
        """The next answer, waited for."""
        return self._answers.get(timeout=DEADLINE)

    @property
    def nothing(self) -> bool:
        """Whether there is none."""
        return self._answers.empty()


@contextmanager
def waiting(store: Store, is_idle: Callable[[str], bool] = lambda uuid: True) -> Iterator[Waits]:
    """Waits of a host whose agents are the ones in the store."""
    waits = Waits(store, SystemClock(), is_idle, SYSTEM_THREADS)
    waits.start()
    yield waits
    waits.close()


@pytest.fixture
def family(store: Store) -> FaultyStore:
    """Agents "a" and "b" below agent 0."""
    plant(store, a="root", b="root")
    return FaultyStore(store)


@pytest.mark.sample(1, "a direction each")
@pytest.mark.parametrize("seconds", [-3600, 3600])
def test_a_wait_of_a_model_does_not_last_longer_though_the_wall_clock_is_set_as_it_begins(seconds: int) -> None:
    asks = Reply(tool_calls=(ToolCall("wait", {"timeout": 5}),))

    def set_clock(changes: Sequence[StoredChange]) -> None:
        if any(isinstance(change, Written) and change.row[2] == "tool_call" for change in changes):
            world.clock.jump(seconds)

    with simulated() as world:
        root = world.open(ScriptedProvider([asks, "done"])).root
        began = world.clock.monotonic()
        world.watchers.append(set_clock)
        assert root.prompt("wait").get(timeout=60).text == "done"
        assert world.clock.monotonic() - began <= 5


def test_agents_that_are_not_there_are_told_as_such(family: FaultyStore) -> None:
    receiver = Told()
    with waiting(family) as waits:
        waits.begin(Wait("a", ("nobody", "b"), None), receiver)
        assert receiver.next == {"nobody": WaitResult.UNKNOWN, "b": WaitResult.IDLE}
        waits.begin(Wait("nobody", None, None), receiver)
        assert isinstance(receiver.next, AgentNotFound)


def test_a_store_that_fails_ends_the_waits_that_were_looked_at(family: FaultyStore) -> None:
    receiver = Told()
    with waiting(family) as waits:
        family.unreadable = StoreError("damaged, as planned")
        waits.begin(Wait("a", ("b",), None), receiver)
        assert str(receiver.next) == "damaged, as planned"
        family.unreadable = None
        waits.begin(Wait("a", ("b",), None), receiver)
        assert receiver.next == {"b": WaitResult.IDLE}


def test_a_look_that_the_store_did_not_answer_is_repeated_for_those_who_still_wait(family: FaultyStore) -> None:
    receiver, cancelled = Told(), Told()
    with waiting(family) as waits:
        family.unreadable = StoreUnavailable("down, as planned")
        waiters = [waits.begin(Wait("a", ("b",), NEVER), cancelled), waits.begin(Wait("b", None, 1), receiver)]
        eventually(lambda: family.refused, "the look")
        waiters[0].cancel()
        assert (receiver.nothing, len(waits)) == (True, 1)
        family.unreadable = None
        assert receiver.next == {}  # its time is over
        assert cancelled.nothing


def test_a_defect_of_whoever_is_told_and_one_of_a_look_keep_nobody_else_waiting(
    family: FaultyStore, caplog: pytest.LogCaptureFixture
) -> None:
    receiver, defects = Told(), ["b"]

    def is_idle(uuid: str) -> bool:
        if defects:
            raise LookupError(f"planted in the look at {defects.pop()}")
        return True

    def stumble(answer: object) -> None:
        raise LookupError("planted in the answer")

    with waiting(family, is_idle) as waits:
        waits.begin(Wait("a", ("b",), None), stumble)
        eventually(lambda: not defects, "the look")
        waits.begin(Wait("b", ("a",), None), receiver)
        assert receiver.next == {"a": WaitResult.IDLE}
        waits.look_again()  # something has happened
        eventually(lambda: not len(waits), "the other answer")
    planted = [str(record.exc_info[1]) for record in caplog.records if record.exc_info]
    assert planted == ["planted in the look at b", "planted in the answer"]


def test_who_waits_at_the_end_or_behind_it_is_told_so(family: FaultyStore) -> None:
    waits, receiver = Waits(family, SystemClock(), lambda uuid: False, SYSTEM_THREADS), Told()
    waits.begin(Wait("a", ("b",), None), receiver)
    waits.close()  # before it was started, as when a system cannot be opened
    assert isinstance(receiver.next, SystemClosed)
    waits.begin(Wait("a", ("b",), None), receiver)
    assert isinstance(receiver.next, SystemClosed)


def test_who_waits_longer_than_any_clock_can_tell_keeps_nobody_else_waiting() -> None:
    with ActorSystem.open(":memory:", ScriptedProvider([])) as system:
        root, kid = system.root, system.root.fork()
        kid.signal(Signal.STOP)
        patient = Waiting(lambda: root.wait(timeout=1e15))
        eventually(lambda: system.statistics().waits, "the wait")
        for _ in range(20):  # in one of the pauses it has fallen asleep
            quick = Waiting(lambda: root.wait([kid], timeout=DEADLINE))
            assert quick.answer == {kid: "stopped"}
        root.send(root, "it is over")
        assert patient.answer == {root: "mail"}


def interrupted(line: int, work: Callable[[], object]) -> bool:
    """Do something, with a Ctrl-C before that line of the wait; whether there are as many lines."""
    left, before = line, sys.gettrace()

    def trace(frame: FrameType, event: str, _: object) -> "Callable[..., Any] | None":
        nonlocal left
        if frame.f_code is not Commands.wait.__code__:
            return None
        left -= event == "line"
        if left == 0:
            raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def test_a_wait_that_ctrl_c_ends_before_any_of_its_lines_leaves_nothing() -> None:
    with ActorSystem.open(":memory:", ScriptedProvider([])) as system:
        line = 0
        while interrupted(line := line + 1, lambda: system.root.wait(timeout=0)):
            assert system.statistics().waits == 0, line
        assert line > 4
