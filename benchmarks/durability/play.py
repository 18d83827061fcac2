"""One play: start the task, strike at a moment, start the worker again, answer as the person, wait for the end.

States: *before* the strike, *struck* (the victim is dead or stands still, or its server was lost), *back* (a new life
of the victim runs, or the other host goes on), *ended*. The strike happens in whichever thread saw the moment, and only
once; everything else happens in the thread that plays. What is seen is recorded, and judged afterwards.
"""

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from subprocess import SubprocessError
from typing import Any
from uuid import UUID

from benchmarks.durability.clocks import HOUR, Clock
from benchmarks.durability.commits import Commits
from benchmarks.durability.faults import Moment
from benchmarks.durability.history import Event, Play, Recorder
from benchmarks.durability.runtimes import Runtime, versions_of
from benchmarks.durability.servers import Server
from benchmarks.durability.verdict import patience_of
from benchmarks.durability.workers import CommandFailed, Owners, Worker, WorkerGone
from benchmarks.durability.world import Struck, World

PATIENCE = 30.0
"""`Setting.patience` of a play that counts."""
MORE = {"slow": 20.0, "server": 60.0, "stop": 60.0}
"""More of it for some faults. DBOS looks once a minute for what it was not told while its server was away; what
Temporal gave to a worker that stands still comes back after 10 s, and may go there again.
"""
QUIET = 5.0
"""Seconds after a cancel in which nothing may happen."""
CLIENT_WAITS = 5.0
"""Seconds after which the driver's client gives up a model that never answers."""
_TICK = 0.04


@dataclass(frozen=True)
class Setting:
    """What a play is made of."""

    runtime: Runtime
    task: str
    moment: Moment | None
    keys: bool
    seed: int
    patience: float = PATIENCE
    """Seconds after the latest start of a worker in which the task has to end."""


def play(setting: Setting, server: Server, log: Path) -> Play:
    """Carry out the task once, and return its history."""
    stage = _Stage(setting, server, log)
    try:
        with contextlib.suppress(WorkerGone):
            stage.play()
    finally:
        stage.close()
    return stage.history()


class _Stage:
    """The workers of a play, its world, and the hand that strikes and answers."""

    def __init__(self, setting: Setting, server: Server, log: Path) -> None:
        self._setting, self._server, self._log = setting, server, log
        self._runtime, self._moment = setting.runtime, setting.moment
        random = Random(setting.seed)
        count = 2 if setting.task == "two runs" else 1
        self._runs = tuple(UUID(int=random.getrandbits(128)).hex[:8] for _ in range(count))
        self._recorder = Recorder()
        self._workers: list[Worker] = []
        self._lives: dict[str, int] = {}
        self._lock, self.struck = threading.Lock(), threading.Event()
        self._victim: Worker | None = None
        self._clock = Clock(log.with_suffix(".clock")) if self._fault == "clock" else None
        self._world = World(self._recorder, Owners(lambda: list(self._workers)))
        store = server.fresh()
        self._wire = Commits(store) if self._fault == "cut" else None
        self._store = self._wire.url if self._wire else store
        self._recorder.listener = self._look

    @property
    def _fault(self) -> str:
        return self._moment.fault if self._moment else ""

    def play(self) -> None:
        """Play it."""
        for host in ("one", "two")[: self._runtime.hosts]:
            self._start(host)
        time.sleep(self._runtime.settle)
        if self._fault == "slow":
            self._slow_down()
        if self._setting.task == "cancel":
            self._world.delay = lambda run, agent, step: 2.0 if (agent, step) == ("a", 0) else 0.0
        for run in self._runs:
            self._workers[0].ask("start", run)
            self._recorder.note("start-acknowledged", run=run)
        if self._setting.task == "cancel":
            self._cancel()
        else:
            self._follow()

    def history(self) -> Play:
        """The record of the play."""
        setting = self._setting
        return Play(
            runtime=setting.runtime.name,
            task=setting.task,
            moment=setting.moment.name if setting.moment else "undisturbed",
            fault=self._fault,
            keys=setting.keys,
            runs=self._runs,
            last=setting.runtime.last,
            hosts=setting.runtime.hosts,
            seed=setting.seed,
            versions=versions_of(setting.runtime),
            events=self._recorder.events,
        )

    def close(self) -> None:
        """End what runs."""
        for worker in self._workers:
            worker.end()
        self._world.close()
        if self._wire:
            self._wire.close()

    def _start(self, host: str) -> Worker:
        self._lives[host] = life = self._lives.get(host, 0) + 1
        variables = {
            "DURABILITY_URL": self._world.url,
            "DURABILITY_STORE": self._store,
            "DURABILITY_KEYS": str(int(self._setting.keys)),
            "DURABILITY_SHARED": str(int(self._runtime.hosts > 1)),
            "HOME": str(self._log.parent),
            "IKIGAI_HOME": str(self._log.parent),
            "DO_NOT_TRACK": "1",
        }
        if self._clock:
            variables |= self._clock.variables
        if self._moment and self._moment.delay == float("inf"):
            variables["DURABILITY_TIMEOUT"] = str(CLIENT_WAITS)
        worker = Worker(self._runtime, host, life, variables | self._server.environment, self._log)
        self._workers.append(worker)
        self._recorder.note("worker-started", owner=worker.owner)
        worker.wait_until_ready()
        return worker

    def _note(self, kind: str, **values: Any) -> None:
        """Write down what the driver said. Where that is the moment, its process is dead afterwards."""
        with contextlib.suppress(Struck):
            self._recorder.note(kind, **values)

    # The hand that strikes

    def _look(self, event: Event) -> None:
        """Strike at the moment; raises `Struck` where the request's process is dead now."""
        moment = self._moment
        if moment is None or moment.fault in ("", "slow") or self.struck.is_set():
            return
        if event.run == self._runs[0] and moment.matches(event, self._runtime.last):
            time.sleep(moment.delay)
            if self._strike(event.owner) and moment.fault == "kill":
                raise Struck

    def _strike(self, owner: str) -> bool:
        with self._lock:
            if self.struck.is_set():
                return False
            alive = [worker for worker in self._workers if worker.process.poll() is None]
            victim = next((worker for worker in alive if worker.owner == owner), alive[0])
            try:
                proved, proof = self._hit(victim)
            except (OSError, SubprocessError) as error:
                proved, proof = False, repr(error)
            self._victim = victim
            self.struck.set()
        self._recorder.note("struck", owner=victim.owner, detail={"proved": proved, "proof": proof})
        return True

    def _hit(self, victim: Worker) -> tuple[bool, str]:
        if self._fault == "stop":
            return victim.stop()
        if self._clock:
            return self._set_clock(self._clock, victim)
        if self._fault == "server":
            return self._server.crash()
        if self._wire:
            self._wire.armed.set()
            done = self._wire.done.wait(3)
            return done, "the server has done a commit whose answer was lost" if done else "no commit came within 3 s"
        return victim.kill()

    def _set_clock(self, clock: Clock, victim: Worker) -> tuple[bool, str]:
        assert self._moment is not None
        hour = HOUR if "ahead" in self._moment.name else -HOUR
        clock.set(hour)
        shows = float(victim.ask("clock", self._runs[0], 10)) - time.time()
        return abs(shows - hour) < 60, f"the driver's clock differs by {shows:.0f} s"

    def _slow_down(self) -> None:
        assert self._moment is not None
        moment, first = self._moment, threading.Event()

        def delay(run: str, agent: str, step: int) -> float:
            if (run, agent, step) != (self._runs[0], moment.agent, moment.step) or first.is_set():
                return 0.0
            first.set()
            self._recorder.note("struck", run=run, detail={"proved": True, "proof": f"{moment.delay:g} s"})
            return min(moment.delay, 2 * CLIENT_WAITS) if moment.delay == float("inf") else moment.delay

        self._world.delay = delay

    # The hand that answers

    def _follow(self) -> None:
        """Answer as the person, start again what was killed, and wait for the end."""
        since = time.monotonic()
        hand = _Person(self._recorder, self._runs[0])
        back = False
        patience = self._setting.patience + MORE.get(self._fault, 0)
        while time.monotonic() - since < patience:
            if self.struck.is_set() and not back:
                back = True
                self._come_back()
                since = time.monotonic()
                if self._fault in ("kill", "stop"):
                    hand.forget()
            try:
                if self._is_over():
                    break
                self._attend(hand)
            except (WorkerGone, CommandFailed) as error:
                if not self.struck.is_set():
                    self._recorder.note("error", detail=repr(error))
            time.sleep(_TICK)
        if self._fault == "stop" and self._victim:
            proved, proof = self._victim.continue_()
            self._recorder.note("continued", owner=self._victim.owner, detail={"proved": proved, "proof": proof})
            time.sleep(4)
        with self._lock:  # a strike that still waits for its proof
            time.sleep(0.3)

    def _come_back(self) -> None:
        if self._fault == "kill" and self._runtime.hosts == 1 and self._victim:
            self._start(self._victim.host)

    def _speaker(self) -> Worker:
        """A worker that may answer: the latest one that was not struck down."""
        silent = self._victim if self._fault in ("kill", "stop") else None
        return next(worker for worker in reversed(self._workers) if worker is not silent)

    def _is_over(self) -> bool:
        run = self._runs[0]
        summary = self._speaker().ask("result", run, 10)
        if not summary:
            return False
        if self._moment and not self.struck.is_set() and self._moment.agent == "lead":
            self.struck.wait(0.5)
            if self.struck.is_set():
                return False  # the answer came from a worker that is dead by now
        self._recorder.note("result", run=run, detail=summary)
        return True

    def _attend(self, hand: "_Person") -> None:
        run = self._runs[0]
        if hand.is_asked or not self._speaker().ask("waiting", run, 10):
            return
        if self._moment and self._moment.kind == "waiting" and not self.struck.is_set():
            self._note("waiting", run=run)
        elif hand.may_answer(patience_of(self._fault)):
            hand.answer(self._speaker())

    def _cancel(self) -> None:
        """Cancel while a worker's request is in flight."""
        run = self._runs[0]
        until = time.monotonic() + PATIENCE
        while not any((event.kind, event.agent) == ("asked", "a") for event in self._recorder.events):
            if time.monotonic() > until:
                return
            time.sleep(_TICK)
        try:
            _, sent = self._workers[0].ask_when("cancel", run)
            self._note("cancel-acknowledged", sent=sent, run=run)
        except CommandFailed as error:
            self._recorder.note("error", detail=repr(error))
        except WorkerGone:
            pass  # killed as soon as it had acknowledged
        if self.struck.is_set():
            self._come_back()
        time.sleep(QUIET)


class _Person:
    """Approves what the driver says is waiting; again only where the question comes long after the acknowledgement."""

    def __init__(self, recorder: Recorder, run: str) -> None:
        self._recorder, self._run = recorder, run
        self.is_asked = False
        """Whether an answer is on its way."""
        self._acknowledged = False
        self._since = time.monotonic()

    def forget(self) -> None:
        """Whoever had the answer is dead, or stands still."""
        self.is_asked, self._since = False, time.monotonic()

    def may_answer(self, again: float) -> bool:
        """Whether the question is to be answered now."""
        return not self._acknowledged or time.monotonic() - self._since > again

    def answer(self, worker: Worker) -> None:
        """Approve, in a thread of its own: some runtimes acknowledge only when the consequences are there."""
        self.is_asked = True
        self._recorder.note("approve-sent", run=self._run)
        threading.Thread(target=self._approve, args=(worker,), name="person", daemon=True).start()

    def _approve(self, worker: Worker) -> None:
        with self._silenced():
            if worker.ask("approve", self._run):
                self._acknowledged, self._since = True, time.monotonic()
                self._recorder.note("approve-acknowledged", run=self._run)
        self.is_asked = False

    @contextlib.contextmanager
    def _silenced(self) -> Iterator[Any]:
        try:
            yield
        except Struck:
            pass  # the moment was this acknowledgement
        except (CommandFailed, WorkerGone) as error:
            self._recorder.note("error", run=self._run, detail=f"approve: {error!r}")
