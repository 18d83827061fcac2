"""What an actor without a thread costs, beside Pykka's own with one each, and Erlang's processes where ``erl`` is.

All do the same: nothing with most messages, an answer to an ask. Erlang is the limit we chase, not a peer.
"""

import gc
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import pykka

from benchmarks import population
from benchmarks.machine import installed
from benchmarks.measure import in_new_process, process_memory, timed
from benchmarks.places import Place
from benchmarks.table import Cell, Table, rate, size, times
from ikigai_actors import ActorSystem, OfflineProvider
from ikigai_actors.dispatch import Workers
from ikigai_actors.pooled import PooledActor

BURST = 5_000
"""Messages that are told to one actor before it is asked whether it has handled them."""

FAN = 1_000
"""Actors that are told something in turn."""

Start = Callable[[], "pykka.ActorRef[Any]"]


class Work(NamedTuple):
    """How much is done of each."""

    actors: int
    """Actors that are started, and stopped."""
    rounds: int
    """Bursts to one actor; and messages to each of many."""
    asks: int


OURS, QUICK, PYKKAS = Work(100_000, 100, 5_000), Work(20_000, 20, 1_000), Work(1_000, 10, 2_000)
"""Pykka's, which differ by a factor, have less to do; a thread each for 100,000 would not fit."""


class Rates(NamedTuple):
    """How many in a second."""

    start: float
    stop: float
    tell: float
    fan_out: float
    ask: float


class OnWorkers(PooledActor):
    """Ours."""

    def on_receive(self, message: Callable[[], object] | None) -> None:
        """Do what the message says, if anything."""
        if message is not None:
            message()


class OnThread(pykka.ThreadingActor):
    """Pykka's."""

    use_daemon_thread = True

    def on_receive(self, message: Callable[[], object] | None) -> None:
        """Do what the message says, if anything."""
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


def run(places: list[Place], quick: bool) -> Iterator[Table]:
    """Ours, Pykka's and Erlang's; then the memory of whole agents."""
    work = QUICK if quick else OURS
    ours, theirs = _in_turn(work, 3)
    erlang = _erlang(work)
    pykka_name = f"pykka.ThreadingActor {installed('pykka')}"
    table = Table(
        "Actors",
        ("what", "PooledActor", pykka_name, "ours / Pykka's", "target", f"Erlang {erlang.get('otp', '')}".strip()),
        notes=[
            "Medians of 3 runs, ours and Pykka's in turn; one sender, no work in the handlers.",
            f"Idle: resident, in a new process, over {work.actors:,} (Pykka's: {PYKKAS.actors:,}).",
            f"Stop: all are told, then all are waited for. Tell: in bursts of {BURST:,}, each followed by an ask.",
            f"Fan-out: a message to each, {work.rounds} times over (Pykka's: {PYKKAS.rounds}), then a wait.",
            f"Erlang: {erlang.get('why', 'the same program in Erlang, with as many schedulers as there are cores')}.",
        ],
    )
    idle, idle_pykka = in_new_process(_idle_ours, work.actors), in_new_process(_idle_pykka, PYKKAS.actors)
    table.add(
        "idle actor", size(idle), size(idle_pykka), times(idle / idle_pykka), "≤ 2 KB", _erlangs(erlang, "memory", size)
    )
    for name, what, target in (
        ("start", "start", "≥ 20 ×"),
        ("stop", "stop", ""),
        ("tell", "tell to one actor", "≥ 4 ×"),
        ("fan_out", f"fan-out over {FAN:,}", "≥ 20 ×"),
        ("ask", "ask", ""),
    ):
        own, other = getattr(ours, name), getattr(theirs, name)
        table.add(what, rate(own), rate(other), times(own / other), target, _erlangs(erlang, name, rate))
    yield table
    yield _agents(places, work.actors)


def _in_turn(work: Work, repetitions: int) -> tuple[Rates, Rates]:
    ours: list[Rates] = []
    theirs: list[Rates] = []
    workers = Workers()
    try:
        for _ in range(repetitions):
            ours.append(_rates(lambda: OnWorkers.start(workers), work))
            theirs.append(_rates(OnThread.start, PYKKAS))
    finally:
        workers.close()
    return _medians(ours), _medians(theirs)


def _medians(runs: list[Rates]) -> Rates:
    return Rates(*(median(values) for values in zip(*runs, strict=True)))


def _rates(start: Start, work: Work) -> Rates:
    starting, actors = timed(lambda: [start() for _ in range(work.actors)])
    stopping, _ = timed(lambda: _stop(actors))
    one, many = start(), [start() for _ in range(FAN)]
    telling, _ = timed(lambda: _tell(one, work.rounds))
    fanning, _ = timed(lambda: _fan_out(many, work.rounds))
    asking, _ = timed(lambda: [one.ask(None) for _ in range(work.asks)])
    _stop([one, *many])
    return Rates(
        start=work.actors / starting,
        stop=work.actors / stopping,
        tell=work.rounds * BURST / telling,
        fan_out=work.rounds * FAN / fanning,
        ask=work.asks / asking,
    )


def _stop(actors: "list[pykka.ActorRef[Any]]") -> None:
    for future in [actor.stop(block=False) for actor in actors]:
        future.get()


def _tell(actor: "pykka.ActorRef[Any]", rounds: int) -> None:
    for _ in range(rounds):
        for _ in range(BURST):
            actor.tell(None)
        actor.ask(None)


def _fan_out(actors: "list[pykka.ActorRef[Any]]", rounds: int) -> None:
    latch = Latch(len(actors))
    for message in [None] * (rounds - 1) + [latch]:
        for actor in actors:
            actor.tell(message)
    latch.wait()


def _grown(make: Callable[[], Any], number: int) -> float:
    """Resident bytes by which the process grew for each of so many things that were made."""
    gc.collect()
    before = process_memory()
    made = make()
    gc.collect()
    grown = process_memory() - before
    del made
    return grown / number


def _idle_ours(number: int) -> float:
    workers = Workers()
    try:
        return _grown(lambda: [OnWorkers.start(workers) for _ in range(number)], number)
    finally:
        workers.close()


def _idle_pykka(number: int) -> float:
    def start() -> "list[pykka.ActorRef[Any]]":
        actors = [OnThread.start() for _ in range(number)]
        for actor in actors:
            actor.ask(None)  # its thread has begun
        return actors

    try:
        return _grown(start, number)
    finally:
        pykka.ActorRegistry.stop_all()


def _agents(places: list[Place], number: int) -> Table:
    """Idle agents, with everything that a system keeps of them."""
    table = Table(
        "Idle agents",
        ("database", "agents", "process grows by, an agent", "target"),
        notes=["Resident, in a new process, after `ActorSystem.open` of a database of so many agents; logs unread."],
    )
    for place in places:
        database = place.fresh()
        try:
            population.tree(database, number, 0)
            table.add(place.name, f"{number:,}", size(in_new_process(_booted, database.url, number)), "≤ 5 KB")
        finally:
            database.drop()
    return table


def _booted(url: str, number: int) -> float:
    systems: list[ActorSystem] = []
    try:
        return _grown(lambda: systems.append(ActorSystem.open(url, provider=OfflineProvider())), number)
    finally:
        for system in systems:
            system.close()


def _erlang(work: Work) -> dict[str, Any]:
    """Erlang's figures by name; or under ``why``, why there are none."""
    if shutil.which("erl") is None or shutil.which("erlc") is None:
        return {"why": "not installed (`erl` and `erlc` are looked for on the path)"}
    source = Path(__file__).parent / "peers" / "actors.erl"
    arguments = [str(number) for number in (work.actors, BURST, work.rounds, work.asks, FAN)]
    with tempfile.TemporaryDirectory(prefix="ikigai-benchmarks-") as directory:
        subprocess.run(["erlc", "-o", directory, str(source)], check=True)
        command = ["erl", "-noshell", "-pa", directory, "-run", "actors", "main", *arguments, "-s", "init", "stop"]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    figures: dict[str, Any] = {name: float(value) for name, value in (line.split() for line in lines)}
    return figures | {"otp": f"{figures['otp']:.0f}"}


def _erlangs(figures: dict[str, Any], name: str, show: Callable[[float], Cell]) -> Cell:
    return show(figures[name]) if name in figures else ""
