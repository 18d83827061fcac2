"""The workers of a run on one database, what they acknowledged, and the judgement of what is there."""

import random
import threading
import time
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import NamedTuple

from ikigai_actors import AgentDead, AgentStopped, IkigaiError, StoreError
from ikigai_actors.actors.clock import SystemClock
from ikigai_actors.errors import StoreUnusable
from ikigai_actors.records.fsck import check as fsck
from ikigai_actors.records.mail.mail import PROMPT, Mail, Send
from ikigai_actors.store.existing import existing
from ikigai_actors.store.unit import write_alone
from supervisors.signals import Signal
from tests.kit import outside
from tests.soak import judge
from tests.soak.holdings import NOTHING, Holdings, look_over
from tests.soak.ledger import (
    PROGRESS,
    Asked,
    Complaint,
    Did,
    Entry,
    Figures,
    Forked,
    LedgerReader,
    Opened,
    Refused,
    Sent,
    Stopped,
)
from tests.soak.model import Order
from tests.soak.patience import retry
from tests.soak.places import Place
from tests.soak.report import Report
from tests.soak.worker import ENDED, Task, live
from tests.torture.script import World

DEADLINE = 300.0
"""Seconds after which something that was to come is a violation."""

OUTSIDE = -1
"""Stands for a person outside, among the hands, which count from 0."""


class Plan(NamedTuple):
    """The size of a soak."""

    seconds: float
    """How long it goes on; the disturbance that is under way then is the last."""
    cycles: int
    """How often each disturbance comes at most."""
    crowd: int
    """Agents that wait, in the end."""
    hands: int
    """Threads of a worker that give commands."""
    round: float
    """Seconds of a round."""
    rounds: int
    """Rounds of a life that is to end in order."""
    calm: float
    """The most seconds between two disturbances."""
    patience: float
    """Seconds that a host waits for its database."""
    lease: float
    """Seconds."""
    mounts: bool
    """A disk may be mounted."""
    slow: bool
    """Disturbances that take long are among them."""


class Worker:
    """One worker process."""

    def __init__(self, context: ForkServerContext, task: Task) -> None:
        self.life = task.life
        self.ledger = LedgerReader(task.ledger)
        self._pipe: Connection
        self._pipe, theirs = context.Pipe()
        self._process: ForkServerProcess = context.Process(target=live, args=(task, theirs), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def lives(self) -> bool:
        """Whether it runs still."""
        return self._process.is_alive()

    def tell_to_end(self) -> None:
        """Ask it to end in order."""
        self._pipe.send("end")

    def kill(self) -> None:
        """End it hard."""
        self._process.kill()

    def close(self) -> None:
        """End it, and give back what it was reached by."""
        self.kill()
        self.join()
        self._process.close()
        self._pipe.close()

    def join(self, seconds: float = DEADLINE) -> int | None:
        """Wait for its end; its exit status, or None when it has not come."""
        self._process.join(seconds)
        return self._process.exitcode


class Stage:
    """The run on one database."""

    def __init__(
        self, place: Place, plan: Plan, directory: Path, model: str, context: ForkServerContext, report: Report
    ) -> None:
        self.place, self.plan, self.report = place, plan, report
        self._directory, self._model, self._context = directory, model, context
        self.world = World(directory / "did")
        self.chance = random.Random(report.seed)
        self.known: Holdings = NOTHING
        """What was there at the last judgement."""
        self.worker: Worker
        self._workers: list[Worker] = []
        self._outside: list[Entry] = []
        self._faults: set[str] = set()
        self.began = time.monotonic()

    def begin(self) -> Worker:
        """Start the next worker; the crowd grows with time."""
        life, plan = len(self._workers) + 1, self.plan
        grown = min(1.0, 2 * (time.monotonic() - self.began) / plan.seconds) if plan.slow else 1.0
        task = Task(
            url=self.place.url,
            ledger=self._directory / f"ledger.{life}",
            world=self.world.path,
            model=self._model,
            life=life,
            seed=f"{self.report.seed} {life}",
            crowd=int(plan.crowd * grown),
            hands=plan.hands,
            seconds=plan.round,
            patience=plan.patience,
            lease=plan.lease,
        )
        self.worker = Worker(self._context, task)
        self._workers.append(self.worker)
        return self.worker

    def complain(self, faults: Iterable[str], after: str) -> None:
        """Add violations, each once."""
        for fault in faults:
            if fault not in self._faults:
                self._faults.add(fault)
                self.report.violations.append(f"after {after}: {fault}")

    def until(self, wanted: Callable[[Entry], bool], what: str, since: int = 0, seconds: float = DEADLINE) -> bool:
        """Read the worker's ledger until an entry is there, behind the first so many; a worker that ends, or that does
        not get so far, is a violation.
        """
        deadline, pause, ledger = time.monotonic() + seconds, threading.Event(), self.worker.ledger
        while True:
            lived = self.worker.lives
            ledger.read()
            if any(wanted(entry) for entry in ledger.entries[since:]):
                return True
            since = len(ledger.entries)
            if not lived:
                why = [entry.reason for entry in ledger.entries if isinstance(entry, Stopped)]
                self.complain([f"worker {self.worker.life} ended with {self.worker.join()}: {why}"], what)
                return False
            if time.monotonic() > deadline:
                self.complain([f"it did not come within {seconds} s"], what)
                return False
            pause.wait(0.02)

    def opened(self) -> bool:
        """Wait until the worker has opened the database and gives commands."""
        return self.until(lambda entry: isinstance(entry, PROGRESS), "opening")

    def goes_on(self, after: str) -> bool:
        """Wait until something that began after this moment is acknowledged: more than can have been under way."""
        self.worker.ledger.read()
        since = len(self.worker.ledger.entries)
        for _ in range(self.plan.hands + 1):
            if not self.until(lambda entry: isinstance(entry, PROGRESS), f"{after}, going on", since):
                return False
            since = 1 + next(
                number
                for number, entry in enumerate(self.worker.ledger.entries)
                if number >= since and isinstance(entry, PROGRESS)
            )
        return True

    def calm(self, seconds: float) -> None:
        """Let it work, and do something from outside now and then."""
        deadline, pause = time.monotonic() + seconds, threading.Event()
        while (left := deadline - time.monotonic()) > 0:
            pause.wait(min(left, self.chance.uniform(0.05, 0.5)))
            self.worker.ledger.read()
            self._act_from_outside()

    def judge(self, after: str) -> None:
        """Look at the database, whoever runs it, and judge."""
        ran, before = self.world.runs(), self.entries()
        report, now = retry(self._look, DEADLINE)
        later = self.entries()
        self.report.counts["judgements"] += 1
        self.complain(
            (f"fsck: {violation.invariant}: {violation.agent}: {violation.text}" for violation in report.violations),
            after,
        )
        for faults in (
            judge.complaints(later),
            judge.mail(before, now),
            judge.readings(before, later, now),
            judge.prompts(before, now),
            judge.tools(ran, now),
            judge.lives(before, self.known, now),
            judge.documents(before, now),
        ):
            self.complain(faults, after)
        self.known = now

    def look(self) -> Holdings:
        """What is there now."""
        return retry(self._look, DEADLINE)[1]

    def entries(self) -> list[Entry]:
        """All that was acknowledged so far, worker by worker, then from outside."""
        for worker in self._workers:
            worker.ledger.read()
        return [entry for worker in self._workers for entry in worker.ledger.entries] + self._outside

    def ended(self, after: str, status: int) -> None:
        """Wait for the worker's end, which is to have this status; judge its figures."""
        status_now = self.worker.join()
        if status_now != status:
            self.complain([f"worker {self.worker.life} ended with {status_now}, expected {status}"], after)
        self.worker.ledger.read()
        figures = [entry for entry in self.worker.ledger.entries if isinstance(entry, Figures)]
        if status == ENDED:
            self.report.figures.append([entry._asdict() for entry in figures])
            self.complain(judge.leaks(figures), after)

    def close(self) -> None:
        """End what runs still."""
        for worker in self._workers:
            worker.close()
        self.world.close()

    def _look(self) -> tuple[fsck.Report, Holdings]:
        try:
            with existing(self.place.url) as store:
                return look_over(store)
        except StoreUnusable:
            if any(isinstance(entry, Opened) for entry in self.entries()):
                raise
            return fsck.Report(0, 0, []), NOTHING  # killed before there was a schema

    def _act_from_outside(self) -> None:
        """A mail, a prompt or a signal by another process than the host, to somebody who was forked lately."""
        lately = [entry.child for entry in self.worker.ledger.entries[-500:] if isinstance(entry, Forked)]
        if not lately:
            return
        to, token = self.chance.choice(lately), f"o/{len(self._outside)}"
        what = self.chance.choice(("send", "send", "prompt", "signal"))
        try:
            self._outside.append(getattr(self, f"_{what}")(to, token))
        except (AgentDead, AgentStopped) as error:
            self._outside.append(Refused(OUTSIDE, f"{what} from outside", token, type(error).__name__, True))
        except StoreError as error:
            self._outside.append(Refused(OUTSIDE, f"{what} from outside", token, type(error).__name__, False))
        except IkigaiError as error:
            self._outside.append(Complaint(f"{what} from outside to {to}: {error!r}"))

    def _send(self, to: str, token: str) -> Entry:
        return Sent(OUTSIDE, None, to, self._post(Send(to, None, token, SystemClock().now_ms())), token)

    def _prompt(self, to: str, token: str) -> Entry:
        text = str(Order(token, to, "soak/outside.md"))
        return Asked(to, self._post(Send(to, None, text, SystemClock().now_ms(), PROMPT)), text)

    def _post(self, letter: Send) -> int:
        with existing(self.place.url) as store:
            mail: Mail = write_alone(store, letter)
        return mail.id

    def _signal(self, to: str, token: str) -> Entry:
        chosen = self.chance.choice((Signal.INT, Signal.STOP, Signal.CONT, Signal.TERM, Signal.KILL))
        cascade = self.chance.random() < 0.5
        outside.signal(self.place.url, to, chosen, cascade=cascade, reason="from outside", grace=1.0)
        return Did(OUTSIDE, f"{chosen.name} from outside")
