"""The inbox of an actor: whatever another thread does between two of its lines, no message is forgotten."""

import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from types import FrameType
from typing import Any

import pytest

from ikigai_actors.actors.inbox import Envelope, Inbox

LOCKED = {Inbox._schedule.__code__, Inbox._made.__code__}
"""What may hold the lock: another thread would wait there."""


class Letter:
    """An envelope, as Pykka makes them."""

    message, reply_to = "letter", None


class Owner:
    """Counts how often a worker is to run it, and keeps what it is to refuse."""

    def __init__(self) -> None:
        self.inbox = Inbox(self)
        self.runs = 0
        self.refused: list[object] = []

    def wake(self) -> None:
        self.runs += 1

    def leave(self) -> None:
        """The worker has done its share."""
        again = self.inbox.rest()
        self.runs += again

    def refuse(self, envelope: Envelope) -> None:
        self.refused.append(envelope.message)


Act = Callable[[Owner], None]


def test_what_waited_when_a_signal_came_is_known_until_it_is_taken() -> None:
    inbox = Inbox(Owner())
    assert (inbox.latest, inbox.up_to(None)) == (None, [])
    first, second, later = Letter(), Letter(), Letter()
    inbox.put(first)
    inbox.put(second)
    behind = inbox.latest
    inbox.put(later)
    assert inbox.up_to(behind) == [first, second]
    assert inbox.get() is first
    assert inbox.up_to(behind) == [second]
    assert inbox.get() is second
    assert inbox.up_to(behind) == []
    assert inbox.up_to(None) == []


ARRIVALS: dict[str, Act] = {
    "a message": lambda owner: owner.inbox.put(Letter()),
    "an urgent message": lambda owner: owner.inbox.put_urgent("letter"),
    "a release": lambda owner: owner.inbox.release("letter"),
}

each_arrival = pytest.mark.parametrize("how", ARRIVALS)


@contextmanager
def before_line(number: int, meanwhile: Callable[[], object]) -> Iterator[list[int]]:
    """In the block, do this before the line of the inbox that runs as that one; gives how many lines were too few."""
    left, before = [number], sys.gettrace()

    def trace(frame: FrameType, event: str, _: object) -> "Callable[..., Any] | None":
        if frame.f_code.co_filename != Inbox.put.__code__.co_filename or frame.f_code in LOCKED:
            return None
        left[0] -= event == "line"
        if event == "line" and left[0] == 0:
            meanwhile()
        return trace

    sys.settrace(trace)
    try:
        yield left
    finally:
        sys.settrace(before)


def at_work(how: str) -> Owner:
    """An actor that a worker runs, with nothing left to do, or held."""
    owner = Owner()
    owner.inbox.put(Letter())
    assert owner.inbox.get().message == "letter"
    owner.inbox.held = how == "a release"
    assert owner.runs == 1
    return owner


def at_each_line(how: str, work: Act, meanwhile: Act) -> Iterator[Owner]:
    """An actor that a worker runs, when something was done with it, and something else before a line of that."""
    for line in count(1):
        owner = at_work(how)
        with before_line(line, partial(meanwhile, owner)) as left:
            work(owner)
        if left[0] > 0:
            assert line > 3
            return
        yield owner


@each_arrival
def test_what_comes_while_a_worker_leaves_is_handled_by_it_or_wakes_the_actor(how: str) -> None:
    for owner in at_each_line(how, work=Owner.leave, meanwhile=ARRIVALS[how]):
        assert owner.runs == 2


@each_arrival
def test_what_comes_is_handled_whenever_the_worker_leaves_meanwhile(how: str) -> None:
    for owner in at_each_line(how, work=ARRIVALS[how], meanwhile=Owner.leave):
        assert owner.runs == 2


@each_arrival
def test_what_comes_as_the_actor_dies_is_refused_once(how: str) -> None:
    for owner in at_each_line(how, work=ARRIVALS[how], meanwhile=lambda owner: owner.inbox.set()):
        assert owner.refused == ["letter"]


def test_an_inbox_that_had_urgent_messages_only_takes_little_memory() -> None:
    owners = [Owner() for _ in range(1_000)]
    tracemalloc.start()
    inboxes = [Inbox(owner) for owner in owners]
    for inbox in inboxes:
        inbox.put_urgent("signal")
        inbox.get()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken / len(inboxes) < 400
