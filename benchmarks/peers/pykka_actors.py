"""Pykka's actors, each with a thread of its own; and what is measured with any actor that has Pykka's interface."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from typing import Any

import pykka

from benchmarks.measure import grown, timed
from benchmarks.peers.actors import Figures, Work

Start = Callable[[], "pykka.ActorRef[Any]"]


class OnThread(pykka.ThreadingActor):
    """An actor that does what a message says, if anything."""

    use_daemon_thread = True

    def on_receive(self, message: Callable[[], object] | None) -> None:
        """Handle one message."""
        if message is not None:
            message()


class Latch:
    """Opens when it was called so many times."""

    def __init__(self, calls: int) -> None:
        self._calls, self._numbers, self._open = calls, count(1), threading.Event()

    def __call__(self) -> None:
        if next(self._numbers) == self._calls:
            self._open.set()

    def wait(self) -> None:
        """Return when it is open."""
        self._open.wait()


def measure(work: Work) -> Figures:
    """See `benchmarks.peers.actors.Peer`."""
    return rates(OnThread.start, work)


def idle(number: int) -> float:
    """See `benchmarks.peers.actors.Peer`."""

    def start() -> "list[pykka.ActorRef[Any]]":
        actors = [OnThread.start() for _ in range(number)]
        for actor in actors:
            actor.ask(None)  # its thread has begun
        return actors

    try:
        return grown(start) / number
    finally:
        pykka.ActorRegistry.stop_all()


def rates(start: Start, work: Work) -> Figures:
    """Everything, with actors that are started so."""
    figures: Figures = {}
    for size in work.made:
        starting, actors = timed(partial(_start, start, size))
        figures["start", size] = size / starting
        figures["stop", size] = size / timed(partial(_stop, actors))[0]
    actor = start()
    for size in work.bursts:
        rounds = work.rounds(size)
        figures["tell", size] = size * rounds / timed(partial(_tell, actor, size, rounds))[0]
    for size in work.fans:
        rounds, many = work.rounds(size), _start(start, size)
        figures["fan-out", size] = size * rounds / timed(partial(_fan_out, many, rounds))[0]
        _stop(many)
    for size in work.asks:
        figures["ask", size] = size / timed(partial(_ask, actor, size))[0]
        with ThreadPoolExecutor(1) as pool:
            figures["ask of a thread", size] = size / pool.submit(timed, partial(_ask, actor, size)).result()[0]
    _stop([actor])
    return figures


def _start(start: Start, count: int) -> "list[pykka.ActorRef[Any]]":
    return [start() for _ in range(count)]


def _ask(actor: "pykka.ActorRef[Any]", count: int) -> None:
    for _ in range(count):
        actor.ask(None)


def _stop(actors: "list[pykka.ActorRef[Any]]") -> None:
    for future in [actor.stop(block=False) for actor in actors]:
        future.get()


def _tell(actor: "pykka.ActorRef[Any]", burst: int, rounds: int) -> None:
    for _ in range(rounds):
        for _ in range(burst):
            actor.tell(None)
        actor.ask(None)


def _fan_out(actors: "list[pykka.ActorRef[Any]]", rounds: int) -> None:
    latch = Latch(len(actors))
    for message in [None] * (rounds - 1) + [latch]:
        for actor in actors:
            actor.tell(message)
    latch.wait()
