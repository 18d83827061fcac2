"""A simulation: the real system on one agenda, with a simulated clock, database and outside."""

import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from string import ascii_lowercase
from typing import Any, Self, TypeVar

from ikigai_actors.actors.event_loop import EndlessLoop
from ikigai_actors.actors.threads import Condition, Queue, Threads, Waitable, one_of
from ikigai_actors.arguments import check_count, check_optional, check_type, shown
from ikigai_actors.errors import BadInput, StoreError
from ikigai_actors.providers.base import Provider, Request
from ikigai_actors.providers.offline import OfflineProvider
from ikigai_actors.records.agents import registry
from ikigai_actors.records.hosts.remote_commands import AddRemoteCommand, RemoteCommandKey
from ikigai_actors.store.hosts.host import LEASE
from ikigai_actors.store.unit import write_alone
from ikigai_actors.system.system import ActorSystem
from ikigai_actors.testing.dispatcher import CHOICES, Chance
from ikigai_actors.testing.simulation.changes import StoredChange
from ikigai_actors.testing.simulation.clock import ManualClock
from ikigai_actors.testing.simulation.faults import NONE, CrashPoint, Faults, Luck
from ikigai_actors.testing.simulation.hosts import SimulatedHost, system_class
from ikigai_actors.testing.simulation.ownership import LEASES, Ownership
from ikigai_actors.testing.simulation.process import Process, ProcessCrashed
from ikigai_actors.testing.simulation.receiver import SimulatedReceiver
from ikigai_actors.testing.simulation.remote import RemoteTool, remote_provider
from ikigai_actors.testing.simulation.schedule import PLAIN, Schedule
from ikigai_actors.testing.simulation.scheduler import Abandoned, Agenda
from ikigai_actors.testing.simulation.store import Link, Undisturbed
from ikigai_actors.testing.simulation.threads import SimulatedThreads
from ikigai_actors.testing.simulation.trace import Trace, calling_line, names_of, story, tree
from ikigai_actors.tools.base import Toolset
from ikigai_actors.tools.function import Tool

T = TypeVar("T")


class Simulation:
    """The world of one run. Processes start and end in it; the database and the clock stay."""

    def __init__(
        self,
        schedule: Schedule | Chance | int = PLAIN,
        *,
        faults: Faults = NONE,
        crash: CrashPoint | None = None,
        choices: int = CHOICES,
        steps: int = 100_000,
        hosts: int = 1,
    ) -> None:
        """Make a world without a running system. Use it as a context manager.

        Args:
            schedule: chooses the thread that goes on; plain order by default. A number is the seed of a schedule; a
                `Random`, or one of Hypothesis's, draws every choice.
            faults: the faults that may occur, and how many.
            crash: the commit at which the process ends; see `crash_at`.
            choices: the number of random choices; after them everything happens in plain order.
            steps: the most steps of a run; a longer run counts as endless.
            hosts: the number of hosts that share the agents, at most 26. Several hosts are called a, b, c and so on. A
                single host does not share the database.

        Raises:
            BadInput: an argument cannot be used.
        """
        if isinstance(schedule, int):
            check_count(schedule, "schedule")
        elif not isinstance(schedule, Schedule) and not hasattr(schedule, "randrange"):
            raise BadInput(f"Expected schedule to be a Schedule, a number or a Random; got {shown(schedule)}.")
        check_type(faults, Faults, "faults", "Faults")
        check_optional(crash, CrashPoint, "crash", "a CrashPoint")
        check_count(choices, "choices")
        check_count(steps, "steps", least=1)
        check_count(hosts, "hosts", least=1, most=len(ascii_lowercase))
        self.clock = ManualClock(1_000_000.0)
        chosen = Schedule.seeded(schedule) if isinstance(schedule, int) else schedule
        self.agenda = Agenda(chosen.begin() if isinstance(chosen, Schedule) else chosen, self.clock, choices, steps)
        self.trace = Trace()
        self.requests: list[Request] = []
        """Every request that any process has sent to a provider."""
        self.commits = 0
        """Transactions committed."""
        self.luck = Luck(faults)
        self.checks = True
        """Whether `fsck` checks the database after every commit, and every request is checked before it leaves."""
        self.former: list[Process] = []
        """The processes from which another host has taken over, and that do not know yet."""
        self.receiver = SimulatedReceiver()
        """The receivers outside, which get the events."""
        self.hosts = [SimulatedHost(self, name) for name in ascii_lowercase[:hosts]]
        """The hosts. `process` and `system` are those of the first host that runs."""
        self.ownership: Ownership | None = None
        """The checks of which host may write for which agent; None for one host."""
        self.calling: Process | None = None
        """The process of the handle that was used last, with several hosts; calls of the test wait with its threads."""
        self.watchers: list[Callable[[Sequence[StoredChange]], None]] = []
        self.askers: list[Callable[[Request], None]] = []
        """Called with the changes of each commit, before any caller is answered."""
        self._newest: Process | None = None  # has the database open, or had
        self._again: Callable[..., ActorSystem] | None = None
        self._closing = False
        self._drawn_bytes = 0
        self._crash_at: CrashPoint | None = crash

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Close the system. After an exception it is left as it is."""
        try:
            if error is None:
                self.close()
        finally:
            self.ended()
            if self._newest is not None:
                self._newest.store.close_database()

    @property
    def several(self) -> bool:
        """Return whether several hosts share the agents."""
        return len(self.hosts) > 1

    @property
    def _first(self) -> SimulatedHost:
        """Return the first running host, preferably one that is not closed; the first host if none runs."""
        running = [host for host in self.hosts if host.running is not None]
        return next((host for host in running if not host.process.store.closed), (running or self.hosts)[0])

    @property
    def system(self) -> ActorSystem:
        """Return the running system. Raises `AssertionError` if none is open."""
        if self._first.opened is None:
            raise AssertionError("No system runs: call open(), or reopen() after a crash.")
        return self._first.opened

    @property
    def process(self) -> Process:
        """Return the process of the running system. Raises `AssertionError` if none runs."""
        if self._first.running is None:
            raise AssertionError("No process runs: call open(), or reopen() after a crash.")
        return self._first.running

    @property
    def threads(self) -> SimulatedThreads:
        """Return the threads of the host whose system the test has called last. Raises `ProcessCrashed`."""
        if not self.several or self.calling is None:
            return self.process.threads
        if self.calling.threads.abandoned:
            raise ProcessCrashed(f"Host {self.calling.name} has ended. Call start() of it, or use another one.")
        return self.calling.threads

    def open(
        self,
        provider: Provider | None = None,
        providers: Mapping[str, Provider] | None = None,
        tools: Iterable[Tool | Toolset] = (),
        **options: Any,
    ) -> ActorSystem:
        """Open the system; for several hosts, in one after the other.

        Args:
            provider: as in `ActorSystem.open`; None is the offline provider.
            providers: as in `ActorSystem.open`.
            tools: as in `ActorSystem.open`.
            options: further arguments of `ActorSystem.open`.

        Returns:
            The system; for several hosts, the system of the first. Raises what `ActorSystem.open` does.
        """
        tool_list = list(tools)
        chosen = OfflineProvider() if provider is None else provider

        def again(host: SimulatedHost, **more: Any) -> ActorSystem:
            process = self._begin(host)
            remote = {name: remote_provider(each, process) for name, each in (providers or {}).items()}
            opened = ActorSystem if not self.several else system_class(lambda: self._called(process))
            if self.several:
                more = {"join": True, "name": host.name, "build": host.build, **more}
            try:
                with one_of(process.threads):
                    host.opened = opened.open(
                        None,
                        remote_provider(chosen, process),
                        remote,
                        [tool if isinstance(tool, Toolset) else RemoteTool(tool, process) for tool in tool_list],
                        parts=replace(process.parts, migrations=host.migrations),
                        **{**options, **host.options, **more},
                    )
            except Abandoned as error:  # it ended while it opened, and what is there cannot wait to be closed
                raise ProcessCrashed("The process has ended. Open it again.") from error
            host.there_since, process.joined = self.clock.monotonic(), True
            return host.opened

        self._again = again
        if self.several:
            self.ownership = Ownership(self.hosts, self.clock, options.get("lease", LEASE))
        return self._open_all()

    def _begin(self, host: SimulatedHost) -> Process:
        process = self._newest = Process(self, self._newest, host.name if self.several else "")
        process.store.apart = round(host.apart * 1000)
        host.running = self.calling = process
        self.note("open", process.name)
        return process

    def _open_all(self, **more: Any) -> ActorSystem:
        """Open the system in every host that does not run."""
        assert self._again is not None
        for host in self.hosts:
            if host.running is None:
                self._again(host, **more)
        return self.system

    def _called(self, process: Process) -> None:
        """Note that a handle of a process is used. If the test uses it, the test's waits belong to that process."""
        if process.threads.current() is not None or self.agenda.stepping:
            return
        self.calling = process
        if process.threads.abandoned:
            raise ProcessCrashed(f"Host {process.name} has ended. Call start() of it, or use another one.")

    def reopen(self, *, resume: bool = False) -> ActorSystem:
        """Open the system again, after a crash or in place of the running one, with the same arguments.

        Args:
            resume: whether to resume turns that were cut off.
        """
        if self._again is None:
            raise AssertionError("Nothing was opened yet: call open().")
        self.close()
        if self._first.running is not None:  # else it has crashed, or goes on beside the one that is opened
            self.ended()
        return self._open_all(resume=resume)

    def start(self, host: SimulatedHost, *, resume: bool | None = None) -> ActorSystem:
        """Open the system in a host that has ended, as `SimulatedHost.start` does."""
        if self._again is None:
            raise AssertionError("Nothing was opened yet: call open().")
        return self._again(host, **({} if resume is None else {"resume": resume}))

    def close(self) -> None:
        """Close the system in every running host. No faults occur meanwhile."""
        self._closing, self._crash_at = True, None
        try:
            for host in self.hosts:
                system, host.opened = host.opened, None
                if system is not None:
                    host.recover()
                    with one_of(host.process.threads):
                        system.close()
        finally:
            self._closing = False

    def recover(self) -> ActorSystem:
        """Open the system again after a crash, resume all turns that were cut off, and settle.

        After a further crash this is repeated. With several hosts, running hosts go on, and so do stopped and
        disconnected ones.
        """
        while True:
            try:
                if self.several:
                    self._recover_hosts()
                else:
                    self.reopen(resume=True)
                self.settle()
                return self.system
            except ProcessCrashed:
                continue

    def _recover_hosts(self) -> None:
        """Start every host that does not run, let the others go on, and wait until all agents are run again."""
        for host in self.hosts:
            if host.running is not None:
                host.recover()
        self._open_all(resume=True)
        assert self.ownership is not None
        self.sleep(LEASES * self.ownership.lease)

    def settle(self) -> None:
        """Let everything happen that can happen without time passing."""
        while not self.agenda.quiet:
            self.agenda.step()

    def sleep(self, seconds: float) -> None:
        """Let ``seconds`` pass on the clock, with all steps that fall due."""
        self.agenda.pump(lambda: False, seconds, "time")

    def crash(self) -> None:
        """End the process at its current step, as ``kill -9`` does. Committed data stay."""
        self.note("crash", "")
        self.ended()

    def crash_at(self, point: CrashPoint) -> None:
        """Crash the process at a later commit, counted from now.

        A call of the test that waits then raises `ProcessCrashed`.
        """
        self._crash_at = replace(point, commit=self.commits + point.commit)

    def crash_here(self) -> None:
        """Crash the process within its current commit, before any caller gets an answer. To be called by `watchers`."""
        self._crash_at = CrashPoint(self.commits, committed=True)

    @contextmanager
    def as_it_was(self, image: bytes, watcher: Callable[[Sequence[StoredChange]], None]) -> Iterator[None]:
        """Replace the database by an older copy while a block runs, and discard the changes of the block.

        No faults occur meanwhile.

        Args:
            image: the copy.
            watcher: called with the changes of each commit, in place of all others.
        """
        store, judges, checks, crash = self.process.store, self.watchers, self.checks, self._crash_at
        newest = store.image()
        self.note("older", "")
        self.watchers, self.checks, self._closing, self._crash_at = [watcher], False, True, None
        store.become(image)
        try:
            yield
        finally:
            store.become(newest)
            self.watchers, self.checks, self._closing, self._crash_at = judges, checks, False, crash
            self.note("newest", "")

    def take_over(self, *, resume: bool = False) -> ActorSystem:
        """Let a second host open the database. The first one goes on without knowing, but it is fenced.

        Args:
            resume: whether the second host resumes turns that were cut off.

        Returns:
            The system of the second host, opened with the same arguments.
        """
        if self._again is None or self._first.running is None:
            raise AssertionError("No system runs: call open(), or reopen() after a crash.")
        if self.several:
            raise AssertionError("Several hosts share the agents: call freeze() of one, and the others take its part.")
        self.note("takeover", "")
        self.handed_over()
        return self._again(self.hosts[0], resume=resume)

    def ask_from_elsewhere(self, agent: str, kind: str, arguments: Mapping[str, Any]) -> RemoteCommandKey:
        """Send an agent a command by a row, as another process does. No fault disturbs this commit.

        Args:
            agent: the uuid of the agent.
            kind: the kind of the command, as `ikigai_actors.agent.remote_commands` names it.
            arguments: the arguments of the command.

        Returns:
            The key of the command. Raises what `AddRemoteCommand` does.
        """
        unit = AddRemoteCommand(agent, kind, json.dumps(arguments), self.clock.now_ms())
        store = self.process.store
        number: int = write_alone(Undisturbed(store), unit)
        self.note("elsewhere", f"asks {agent}: {kind} {dict(arguments)}")
        store.changed_by_others()
        return RemoteCommandKey(agent, number)

    def handed_over(self) -> None:
        """Let another host take the database over. The process of this host goes on beside the new one."""
        self.former.append(self.process)
        self.hosts[0].running = self.hosts[0].opened = None

    def note(self, kind: str, text: str) -> None:
        """Add a line to the trace, and so to the story."""
        self.trace.note(kind, text)

    def story(self) -> str:
        """Return the events for a person: the story, the tree, and the schedule that replays the run."""
        try:
            process = self._first.running
            records = process.looked_at.read(registry.every) if process is not None else []
        except StoreError:  # the system was closed; what went wrong must be reported all the same
            records = []
        text = story(self.trace.lines, names_of(records))
        return f"{text}\n\n{tree(records)}\n\nReplay: {str(self.schedule)!r}"

    @property
    def schedule(self) -> Schedule:
        """Return the schedule of the run so far, which replays the run."""
        return Schedule(dict(self.agenda.drawn))

    def follow(self, schedule: Schedule) -> None:
        """Choose the next steps by another schedule from now on."""
        self.agenda.follow(schedule.begin())

    def random_bytes(self, count: int) -> bytes:
        """Return ``count`` random bytes, the same in every run."""
        self._drawn_bytes += 1
        return hashlib.sha256(str(self._drawn_bytes).encode()).digest()[:count]

    def is_to_crash(self, *, committed: bool) -> bool:
        """Return whether the process crashes at this commit."""
        if self._crash_at is None:
            return False
        here = self.commits + (0 if committed else 1)
        if here < self._crash_at.commit or self._crash_at.committed is not committed:
            return False
        self._crash_at = None
        return True

    @property
    def runs(self) -> bool:
        """Return whether a system is open, and is not being closed."""
        return not self._closing and any(host.opened is not None for host in self.hosts)

    def crashed(self, process: Process) -> bool:
        """End a process. Return whether the test gets the exception, because the test waits for that process."""
        if not self.several:
            self.ended()
            return True
        for host in self.hosts:
            if host.running is process:
                self.stop(host)
        return self.calling is process

    def freeze(self, process: Process, seconds: float) -> None:
        """Stop the process of one of several hosts for a time."""
        host = next(host for host in self.hosts if host.running is process)
        host.freeze()
        self._later(process, seconds, lambda: host.frozen, host.thaw)

    def partition(self, process: Process, seconds: float, *, silent: bool) -> None:
        """Cut the process of one of several hosts off from the database for a time."""
        host = next(host for host in self.hosts if host.running is process)
        host.partition(silent=silent)
        self._later(process, seconds, lambda: process.store.link is not Link.OPEN, host.heal)

    def _later(self, process: Process, seconds: float, still: Callable[[], bool], do: Callable[[], object]) -> None:
        """Call ``do`` after ``seconds``, if the process still runs then and ``still()`` is true."""

        def act() -> None:
            if any(host.running is process for host in self.hosts) and still():
                do()

        self.agenda.at(self.clock.monotonic() + seconds, act)

    def stop(self, host: SimulatedHost) -> None:
        """End the process of a host at its current step. The other hosts go on."""
        process, host.running, host.opened = host.process, None, None
        process.threads.abandon()
        process.stop()

    def ended(self) -> None:
        """Stop every process of the world, also those that another host has replaced."""
        running = [*self.former, *(host.running for host in self.hosts if host.running is not None)]
        for host in self.hosts:
            host.running = host.opened = None
        self.former.clear()
        for process in running:
            process.threads.abandon()
        for process in running:
            process.stop()


class _TestThreads(Threads):
    """The `Threads` of the test itself; their waits use the threads of the running process."""

    def __init__(self, world: Simulation) -> None:
        self._world = world

    def thread(self, run: Callable[[], object], name: str) -> threading.Thread:
        return self._world.threads.thread(run, name)

    def condition(self, lock: "threading.Lock | None" = None) -> Condition:
        return self._world.threads.condition(lock)

    def lock(self) -> AbstractContextManager[bool]:
        return self._world.threads.lock()

    def queue(self) -> Queue[Any]:
        return self._world.threads.queue()

    def new_event_loop(self) -> EndlessLoop:
        return self._world.threads.new_event_loop()

    def repeat(self, seconds: float, call: Callable[[], object], name: str) -> Callable[[], None]:
        return self._world.threads.repeat(seconds, call, name)

    def result(self, future: Waitable[T], timeout: float | None) -> T:
        if not future.done() and (line := calling_line()):
            self._world.trace.note("call", line)
        return self._world.threads.result(future, timeout)


@contextmanager
def simulated(schedule: Schedule | Chance | int = PLAIN, **options: Any) -> Iterator[Simulation]:
    """Make a `Simulation` for the time of a block. Calls in the block that wait let the simulation go on.

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
    """Opens the system of a world. The fixture ``simulated_system`` returns it."""

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
