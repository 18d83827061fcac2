"""A simulation: the real system on one agenda, with a clock, a database and an outside that belong to the test."""

import asyncio
import concurrent.futures
import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self, TypeVar

from ikigai_actors.actors.threads import Condition, Queue, Threads, one_of
from ikigai_actors.errors import StoreError
from ikigai_actors.providers.base import Provider, Request
from ikigai_actors.providers.offline import OfflineProvider
from ikigai_actors.records import registry
from ikigai_actors.records.requests import AddRequest, RequestKey
from ikigai_actors.store.unit import write_alone
from ikigai_actors.system.system import ActorSystem
from ikigai_actors.testing.dispatcher import CHOICES, Chance
from ikigai_actors.testing.simulation.clock import ManualClock
from ikigai_actors.testing.simulation.faults import NONE, CrashPoint, Faults, Luck
from ikigai_actors.testing.simulation.process import Process, ProcessCrashed
from ikigai_actors.testing.simulation.remote import RemoteProvider, RemoteTool
from ikigai_actors.testing.simulation.schedule import PLAIN, Schedule
from ikigai_actors.testing.simulation.scheduler import Agenda
from ikigai_actors.testing.simulation.store import StoredChange, Undisturbed, empty_image
from ikigai_actors.testing.simulation.trace import Trace, calling_line, names_of, story, tree
from ikigai_actors.tools.base import Toolset
from ikigai_actors.tools.function import Tool

T = TypeVar("T")


class Simulation:
    """The world of one run. Processes come and go in it; the database and the clock go on."""

    def __init__(
        self,
        schedule: Schedule | Chance | int = PLAIN,
        *,
        faults: Faults = NONE,
        crash: CrashPoint | None = None,
        choices: int = CHOICES,
        steps: int = 100_000,
    ) -> None:
        """Make a world in which no system runs yet; use it as a context manager.

        Args:
            schedule: decides which thread goes on; plain order by default. A number stands for a schedule; a `Random`,
                or one of Hypothesis's, draws every choice.
            faults: what may go wrong, and how often.
            crash: the commit at which the process ends; see `crash_at`.
            choices: how many are drawn before everything goes on in order.
            steps: the most steps of a run; then it counts as endless.
        """
        self.clock = ManualClock(1_000_000.0)
        given = Schedule.seeded(schedule) if isinstance(schedule, int) else schedule
        self.agenda = Agenda(given.begin() if isinstance(given, Schedule) else given, self.clock, choices, steps)
        self.trace = Trace()
        self.requests: list[Request] = []
        """Every request that was sent to a provider, by any process so far."""
        self.commits = 0
        """Transactions committed."""
        self.luck = Luck(faults)
        self.checks = True
        """Whether `fsck` checks the database after every commit, and every request is checked before it leaves."""
        self.former: list[Process] = []
        """The processes from which another host has taken over, and that do not know yet."""
        self._process: Process | None = None
        self.watchers: list[Callable[[Sequence[StoredChange]], None]] = []
        """Called with the changes of each commit, before any caller is answered."""
        self._image = empty_image()
        self._system: ActorSystem | None = None
        self._again: Callable[..., ActorSystem] | None = None
        self._drawn_bytes = 0
        self._crash_at: CrashPoint | None = crash

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Close the system. After an exception it is left as it stands."""
        try:
            if error is None:
                self.close()
        finally:
            self.ended()

    @property
    def system(self) -> ActorSystem:
        """The system that runs."""
        if self._system is None:
            raise AssertionError("No system runs: call open(), or reopen() after a crash.")
        return self._system

    @property
    def process(self) -> "Process":
        """The process in which it runs."""
        if self._process is None:
            raise AssertionError("No process runs: call open(), or reopen() after a crash.")
        return self._process

    def open(
        self,
        provider: Provider | None = None,
        providers: Mapping[str, Provider] | None = None,
        tools: Iterable[Tool | Toolset] = (),
        **options: Any,
    ) -> ActorSystem:
        """Open the system.

        Args:
            provider: as in `ActorSystem.open`; None is the offline one.
            providers: as in `ActorSystem.open`.
            tools: as in `ActorSystem.open`.
            options: further arguments of `ActorSystem.open`.

        Returns:
            The system. Raises what `ActorSystem.open` does.
        """
        given = list(tools)
        chosen = OfflineProvider() if provider is None else provider

        def again(**more: Any) -> ActorSystem:
            process = self._process = Process(self, self._image, self.former[-1] if self.former else None)
            self.note("open", "")
            remote = {name: RemoteProvider(one, process) for name, one in (providers or {}).items()}
            with one_of(process.threads):
                self._system = ActorSystem.open(
                    None,
                    RemoteProvider(chosen, process),
                    remote,
                    [one if isinstance(one, Toolset) else RemoteTool(one, process) for one in given],
                    parts=process.parts,
                    **{**options, **more},
                )
            return self._system

        self._again = again
        return again()

    def reopen(self, *, resume: bool = False) -> ActorSystem:
        """Open the system again, after a crash or in place of the running one, with the same arguments.

        Args:
            resume: whether to go on with turns that were cut off.
        """
        if self._again is None:
            raise AssertionError("Nothing was opened yet: call open().")
        self.close()
        if self._process is not None:  # else it has crashed, or goes on beside the one that is opened
            self.ended()
        return self._again(resume=resume)

    def close(self) -> None:
        """Close the system, if one runs; nothing goes wrong meanwhile."""
        system, self._system, self._crash_at = self._system, None, None
        if system is not None:
            with one_of(self.process.threads):
                system.close()

    def recover(self) -> ActorSystem:
        """Open the system again after a crash, and resume every turn that was cut off.

        Repeats that as often as it crashes, until all is at rest.
        """
        while True:
            try:
                self.reopen(resume=True)
                self.settle()
                return self.system
            except ProcessCrashed:
                continue

    def settle(self) -> None:
        """Let everything happen that can happen without time passing."""
        while not self.agenda.quiet:
            self.agenda.step()

    def sleep(self, seconds: float) -> None:
        """Let ``seconds`` pass, with all that falls due."""
        self.agenda.pump(lambda: False, seconds, "time")

    def crash(self) -> None:
        """End the process where it stands, as ``kill -9`` does. What is committed stays."""
        self.note("crash", "")
        self.ended()

    def crash_at(self, point: CrashPoint) -> None:
        """End the process at a commit, counted from now. A call that blocks then raises `ProcessCrashed`."""
        self._crash_at = replace(point, commit=self.commits + point.commit)

    def take_over(self, *, resume: bool = False) -> ActorSystem:
        """Let a second host open the database. The first one goes on without knowing, fenced.

        Args:
            resume: whether the second host goes on with turns that were cut off.

        Returns:
            The system of the second host, opened with the same arguments.
        """
        if self._again is None or self._process is None:
            raise AssertionError("No system runs: call open(), or reopen() after a crash.")
        self.note("takeover", "")
        self.handed_over()
        return self._again(resume=resume)

    def ask_from_elsewhere(self, agent: str, kind: str, arguments: Mapping[str, Any]) -> RequestKey:
        """Ask an agent for something as another process does, by a row; no fault disturbs that one commit.

        Args:
            agent: its uuid.
            kind: of the request, as `ikigai_actors.agent.requests` names it.
            arguments: of the request.

        Returns:
            The key of the request. Raises what `AddRequest` does.
        """
        unit = AddRequest(agent, kind, json.dumps(arguments), self.clock.now_ms())
        store = self.process.store
        number: int = write_alone(Undisturbed(store), unit)
        self.note("elsewhere", f"asks {agent}: {kind} {dict(arguments)}")
        store.changed_by_others()
        return RequestKey(agent, number)

    def handed_over(self) -> None:
        """Have another host take over; this process goes on beside it."""
        self.former.append(self.process)
        self._process = self._system = None

    def note(self, kind: str, text: str) -> None:
        """Add a line to the trace, and so to the story."""
        self.trace.note(kind, text)

    def story(self) -> str:
        """What happened, for a person: the story, the tree, and the choices that lead there again."""
        try:
            records = self._process.store.read(registry.every) if self._process is not None else []
        except StoreError:  # the system was closed; what went wrong must be told all the same
            records = []
        told = story(self.trace.lines, names_of(records))
        return f"{told}\n\n{tree(records)}\n\nReplay: {str(self.schedule)!r}"

    @property
    def schedule(self) -> Schedule:
        """The schedule of the run so far, which repeats it."""
        return Schedule(dict(self.agenda.drawn))

    def follow(self, schedule: Schedule) -> None:
        """Choose by another schedule from now on."""
        self.agenda.follow(schedule.begin())

    def random_bytes(self, count: int) -> bytes:
        """Fresh random bytes, the same in every run."""
        self._drawn_bytes += 1
        return hashlib.sha256(str(self._drawn_bytes).encode()).digest()[:count]

    def is_to_crash(self, *, committed: bool) -> bool:
        """Whether the process ends at this commit."""
        if self._crash_at is None:
            return False
        here = self.commits + (0 if committed else 1)
        if here < self._crash_at.commit or self._crash_at.committed is not committed:
            return False
        self._crash_at = None
        return True

    @property
    def runs(self) -> bool:
        """Whether a system is open."""
        return self._system is not None

    def ended(self) -> None:
        """Stop the process, and those before it."""
        running = [*self.former, *([self._process] if self._process else [])]
        self._process = self._system = None
        self.former.clear()
        for process in running:
            process.threads.abandon()
        for process in running:
            self._image = process.end()


class _TestThreads(Threads):
    """What the thread of the test waits with: the threads of the running process."""

    def __init__(self, world: Simulation) -> None:
        self._world = world

    def thread(self, run: Callable[[], object], name: str) -> threading.Thread:
        return self._world.process.threads.thread(run, name)

    def condition(self, lock: "threading.Lock | None" = None) -> Condition:
        return self._world.process.threads.condition(lock)

    def queue(self) -> Queue[Any]:
        return self._world.process.threads.queue()

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        return self._world.process.threads.new_event_loop()

    def result(self, future: "concurrent.futures.Future[T]", timeout: float | None) -> T:
        if not future.done() and (line := calling_line()):
            self._world.trace.note("call", line)
        return self._world.process.threads.result(future, timeout)


@contextmanager
def simulated(schedule: Schedule | Chance | int = PLAIN, **options: Any) -> Iterator[Simulation]:
    """Make a `Simulation` for the time of a block. Calls in the block that wait let it go on.

    An exception of the block gets the story of the run as a note.

    Args:
        schedule: as in `Simulation`.
        options: further arguments of `Simulation`.
    """
    with Simulation(schedule, **options) as world, one_of(_TestThreads(world)):
        try:
            yield world
        except Exception as error:
            error.add_note(world.story())
            raise


class OpenSimulated:
    """Opens the system of a world: what the fixture ``simulated_system`` gives."""

    def __init__(self, world: Simulation) -> None:
        self.world = world
        """The world: to crash it, to let time pass, to look at its trace."""

    def __call__(
        self,
        provider: Provider | None = None,
        providers: Mapping[str, Provider] | None = None,
        tools: Iterable[Tool | Toolset] = (),
        **options: Any,
    ) -> ActorSystem:
        """Open the system, as `Simulation.open` does."""
        return self.world.open(provider, providers, tools, **options)
