"""A worker's life: a host that works in equal rounds until it is told to end, or is ended.

Open, resume what was cut off, let the crowd grow, then rounds: an agent is forked, the hands work below it, all is
brought to rest, everybody but the crowd is killed. So a round leaves nothing behind in memory, and what a process uses
at the end of each can be compared.
"""

import gc
import logging
import os
import random
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from ikigai_actors import (
    ActorSystem,
    AgentDead,
    AgentRecord,
    AnthropicProvider,
    IkigaiError,
    Message,
    Signal,
    StoreInUse,
    StoreTrouble,
    SystemClosed,
)
from ikigai_actors.agent.subscriptions import Event
from ikigai_actors.errors import StoreUnavailable
from ikigai_actors.records.agents.registry import Died
from ikigai_actors.records.messages.messages import Kind
from tests.soak.crowd import NAME, Crowd, Idler
from tests.soak.hands import PATIENCE, Cast, Hand, Scene
from tests.soak.ledger import Complaint, Figures, Ledger, Opened, Stopped, Trouble
from tests.soak.patience import retry
from tests.soak.tools import tools_of
from tests.torture.script import World

ENDED, FAILED, STOPPED = 0, 1, 3
"""The exit statuses of a worker: told to end; a defect; its host has stopped by itself, and the ledger says why."""

KEY = "sk-soak"
"""The model's key; the server takes any."""


class Task(NamedTuple):
    """What a worker is to do."""

    url: str
    ledger: Path
    world: Path
    model: str
    """The URL of the model's server."""
    life: int
    """Its number, from 1; it makes tokens unique."""
    seed: str
    crowd: int
    """How many agents are to wait."""
    hands: int
    seconds: float
    """The length of a round."""
    patience: float
    """See `ActorSystem.open`; likewise `lease`."""
    lease: float


def live(task: Task, conductor: Connection) -> None:
    """Work until the conductor sends anything; the entry point of the process."""
    ledger = Ledger(task.ledger)
    _complain_of_defects(ledger)
    try:
        status = _Life(task, ledger, conductor).run()
    except BaseException:
        ledger.write(Complaint(f"the worker failed: {traceback.format_exc()}"))
        status = FAILED
    sys.exit(status)


class _Life:
    def __init__(self, task: Task, ledger: Ledger, conductor: Connection) -> None:
        self._task, self._ledger, self._conductor = task, ledger, conductor
        self._system: ActorSystem
        self._cast = Cast(())
        self._root = ""
        self._failure: str | None = None
        self._hands = [Hand(number, task.life, random.Random(f"{task.seed} {number}")) for number in range(task.hands)]

    def run(self) -> int:
        self._note_figures("start")
        with ExitStack() as closing:
            world = World(self._task.world)
            closing.callback(world.close)
            self._open(world)
            closing.callback(self._system.close)
            try:
                self._work()
            except IkigaiError as error:
                self._failure = self._why_it_stopped(error)
        if self._failure is not None:
            self._ledger.write(Stopped(self._failure))
            return STOPPED
        gc.collect()
        self._note_figures("closed")
        return ENDED

    def _why_it_stopped(self, error: IkigaiError) -> str:
        """Why the system has stopped; raises the error when it has not."""
        try:
            self._system._actor(self._root)
        except SystemClosed as closed:
            return str(closed)
        raise error

    def _open(self, world: World) -> None:
        """Open the database as soon as it is free and there, and go on with what was cut off."""
        began, pause = time.monotonic(), threading.Event()
        task = self._task
        while True:
            try:
                self._system = ActorSystem.open(
                    task.url,
                    AnthropicProvider(base_url=task.model, api_key=KEY),
                    {NAME: Idler()},
                    tools_of(world),
                    patience=task.patience,
                    lease=task.lease,
                    resume=False,
                )
                break
            except (StoreInUse, StoreUnavailable):
                if time.monotonic() - began > PATIENCE:
                    raise
                pause.wait(0.05)
        self._root = retry(lambda: self._system.root.uuid, PATIENCE)
        self._system.subscribe(self._hear_of_trouble)
        resumed = len(self._system.resume())
        self._ledger.write(Opened(time.monotonic() - began, resumed))

    def _hear_of_trouble(self, event: Event) -> None:
        if isinstance(event, StoreTrouble):
            self._ledger.write(Trouble(event.reason, event.final))

    def _hear_of_lives(self, event: Event) -> None:
        match event:
            case Message(kind=Kind.FORK, data={"child": str(child)}):
                self._cast.add(self._system.handle(child))
            case Died(uuid):
                self._cast.drop([uuid])

    def _work(self) -> None:
        system = self._system
        records = retry(system.agents, PATIENCE)
        crowd = Crowd(system, records, f"c/{self._task.life}")
        crowd.grow(self._task.crowd)
        system.subscribe(self._hear_of_lives)
        for record in records:  # whoever was left by the life before
            if _busy(record, crowd) and record.parent_uuid is not None:
                self._cast.add(system.handle(record.uuid))
        root = system.handle(self._root)
        while not self._conductor.poll():
            top = root.fork(restart="permanent", on_orphan="reparent", timeout=PATIENCE)
            self._cast.add(top)
            self._play(Scene(system, top, self._cast, crowd.members, self._ledger, threading.Event()))
            self._bring_to_rest(crowd)
            self._bury_all(crowd)
            gc.collect()
            self._note_figures("round")

    def _play(self, scene: Scene) -> None:
        """One round."""
        threads = [threading.Thread(target=hand.work, args=(scene,)) for hand in self._hands]
        for thread in threads:
            thread.start()
        self._conductor.poll(self._task.seconds)
        scene.over.set()
        for thread in threads:
            thread.join()
        self._system._actor(self._root)  # raises when the system has stopped

    def _bring_to_rest(self, crowd: Crowd) -> None:
        """Let those go on who are paused, until no turn is open but the crowd's."""
        deadline, pause = time.monotonic() + PATIENCE, threading.Event()
        while busy := [
            record for record in retry(self._system.agents, PATIENCE) if _busy(record, crowd) and _restless(record)
        ]:
            if time.monotonic() > deadline:
                states = {record.uuid: self._system.state_of(record) for record in busy}
                self._ledger.write(Complaint(f"after {PATIENCE} s some are not at rest: {states}"))
                return
            for record in busy:
                if record.status == "stopped":
                    _mind_no_death(partial(self._system.handle(record.uuid).signal, Signal.CONT))
            pause.wait(0.1)

    def _bury_all(self, crowd: Crowd) -> None:
        """Everybody but agent 0 and the crowd."""
        for record in retry(self._system.agents, PATIENCE):
            if _busy(record, crowd) and record.parent_uuid is not None:
                _mind_no_death(partial(self._system.handle(record.uuid).kill, cascade=True, timeout=PATIENCE))
                self._cast.drop([record.uuid])

    def _note_figures(self, where: str) -> None:
        waits = records = 0
        if where == "round":
            waits = self._system.statistics().waits
            records = len(retry(self._system.agents, PATIENCE))
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        threads = len(os.listdir("/proc/self/task"))  # noqa: PTH208 - nothing is to be opened while counting
        files = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
        self._ledger.write(Figures(where, pages * os.sysconf("SC_PAGE_SIZE"), threads, files, waits, records))


def _busy(record: AgentRecord, crowd: Crowd) -> bool:
    """Whether it lives and is not of the crowd."""
    return record.living and record.uuid not in crowd.uuids


def _restless(record: AgentRecord) -> bool:
    return bool(record.turn) or record.status != "running"


def _mind_no_death(act: Callable[[], object]) -> None:
    """Do something to an agent that may be dead by now."""
    try:
        retry(act, PATIENCE)
    except AgentDead:
        return


class _Defects(logging.Handler):
    """Complains of what the library logs as its own defects, and of what nobody caught."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(logging.ERROR)
        self._ledger = ledger

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler`. An error without a cause is news: a host that gives up, or is fenced."""
        if record.exc_info is not None or record.name == "asyncio":
            self._ledger.write(Complaint(f"logged by {record.name}: {self.format(record)}"))


def _complain_of_defects(ledger: Ledger) -> None:
    logging.getLogger().addHandler(_Defects(ledger))

    def of_thread(failed: threading.ExceptHookArgs) -> None:
        name = failed.thread.name if failed.thread is not None else "unknown"
        ledger.write(Complaint(f"thread {name} failed: {failed.exc_value!r}"))

    def of_object(failed: "sys.UnraisableHookArgs") -> None:
        ledger.write(Complaint(f"nobody caught {failed.exc_value!r} in {failed.object!r}"))

    threading.excepthook = of_thread
    sys.unraisablehook = of_object
