"""The hosts of a simulation: processes that start and end, each with a fixed name.

    with simulated(hosts=3) as world:
        world.open(provider)                    # all three share the agents
        first, second, third = world.hosts
        second.freeze()                         # its lease runs out, and the others take its agents
        world.sleep(30)
        second.thaw()                           # it finds out, and writes nothing

A handle belongs to the host whose system returned it. A waiting call raises `ProcessCrashed` when that host ends.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ikigai_actors.errors import SystemClosed
from ikigai_actors.store.hosts.rows import HostRecord
from ikigai_actors.store.migrations import MIGRATIONS
from ikigai_actors.system.handles.ref import AgentRef
from ikigai_actors.system.system import ActorSystem
from ikigai_actors.testing.simulation.clock import ManualClock
from ikigai_actors.testing.simulation.process import Process
from ikigai_actors.testing.simulation.store import Link


class HostWorld(Protocol):
    """The part of the simulation that its hosts need."""

    clock: ManualClock

    def start(self, host: "SimulatedHost", *, resume: bool | None = None) -> ActorSystem:
        """Start a process of a host, and open the system in it."""

    def stop(self, host: "SimulatedHost") -> None:
        """End the process of a host at its current step."""

    def note(self, kind: str, text: str) -> None:
        """Add a line to the trace of the run."""


class SimulatedHost:
    """One host of a simulation: a name, and the process that runs under it."""

    def __init__(self, world: HostWorld, name: str) -> None:
        self._world, self.name = world, name
        self.running: Process | None = None
        """The process of the host; None when none runs."""
        self.opened: ActorSystem | None = None
        """The open system in the process; None when none is open."""
        self.there_since = 0.0
        """The monotonic time, in seconds, since which the host runs and reaches the database."""
        self.apart = 0.0
        """The seconds by which the host, from its next start on, believes the server's clock to be ahead."""
        self.build: str | None = None
        """The build that the host runs, from its next start on; None for the digest of its code."""
        self.options: Mapping[str, Any] = {}
        """The options of the host's system that replace those of `Simulation.open`, from its next start on."""
        self.migrations = MIGRATIONS
        """The changes of the schema that the host's program knows, from its next start on."""

    @property
    def process(self) -> Process:
        """Return the running process. Raises `AssertionError` if none runs."""
        if self.running is None:
            raise AssertionError(f"Host {self.name} does not run: call open(), or start() after a crash.")
        return self.running

    @property
    def system(self) -> ActorSystem:
        """Return the system in the running process. Raises `AssertionError` if none is open."""
        if self.opened is None:
            raise AssertionError(f"No system runs in host {self.name}: call open(), or start() after a crash.")
        return self.opened

    def start(self, *, resume: bool | None = None) -> ActorSystem:
        """Start the process again after `kill`, with the arguments of `Simulation.open`.

        Args:
            resume: as in `ActorSystem.open`.
        """
        if self.running is not None:
            raise AssertionError(f"Host {self.name} runs: call kill() first.")
        return self._world.start(self, resume=resume)

    def kill(self) -> None:
        """End the process at its current step, as ``kill -9`` does. The database server notices at once."""
        self._trace("kill", self.process)
        self._world.stop(self)

    def freeze(self) -> None:
        """Stop the process, as ``kill -STOP`` does: none of its threads takes a step, and time passes."""
        process = self._trace("freeze", self.process)
        process.agenda.hold(process.threads)

    def thaw(self) -> None:
        """Let a frozen process go on."""
        process = self._trace("thaw", self.process)
        self.there_since = self._world.clock.monotonic()
        process.agenda.release(process.threads)

    def partition(self, *, silent: bool = False) -> None:
        """Cut the process off from the database.

        Args:
            silent: whether neither side notices. Then the process's writes wait, and the server believes it connected.
                Otherwise every call fails, and the server notices the end of the connections.
        """
        process = self._trace("partition", self.process)
        process.store.link = Link.SILENT if silent else Link.CUT

    def disconnect(self) -> None:
        """Break the host's connections to the database. The host can connect again at once."""
        self._trace("disconnect", self.process).store.disconnect()

    def hear_late(self, seconds: float) -> None:
        """Delay the hints about commits that the process gets by this many seconds; 0 for no delay."""
        self._trace("hear_late", self.process).late = seconds

    def heal(self) -> None:
        """Connect the process to the database again."""
        process = self._trace("heal", self.process)
        self.there_since = self._world.clock.monotonic()
        process.store.link = Link.OPEN

    def recover(self) -> None:
        """Let the host go on if it is frozen, connect it if it is cut off, and end a delay of hints."""
        if self.frozen:
            self.thaw()
        if self.process.store.link is not Link.OPEN:
            self.heal()
        if self.process.late:
            self.hear_late(0)

    def drain(self, timeout: float | None = None) -> None:
        """Give all agents of the host to the others, by `ActorSystem.drain`."""
        self.system.drain(timeout)

    def move(self, agent: AgentRef | str, to: "SimulatedHost", timeout: float | None = None) -> None:
        """Move one of the host's agents to another host, by `System.move`."""
        self.system.move(agent, to.name, timeout)

    def record(self) -> HostRecord:
        """Return the row of the host. Raises `AssertionError` when it has none."""
        records = [record for record in self.system.hosts() if record.id == self.process.host_id]
        if not records:
            raise AssertionError(f"Host {self.name} is not in the database.")
        return records[0]

    @property
    def host_id(self) -> str:
        """Return the id of the host's row; empty before the host has a row."""
        return "" if self.running is None else self.running.host_id

    @property
    def frozen(self) -> bool:
        """Return whether the host's process is stopped."""
        return self.running is not None and self.running.agenda.is_held(self.running.threads)

    @property
    def reaches(self) -> bool:
        """Return whether the host runs and reaches the database."""
        return self.opened is not None and not self.frozen and self.process.store.link is Link.OPEN

    @property
    def answers(self) -> bool:
        """Return whether the host can be used: it runs, reaches the database, and was not closed."""
        if self.opened is None or not self.reaches:
            return False
        try:
            ActorSystem._check_open(self.opened)  # no use of a handle: the test does not wait for this host
        except SystemClosed:
            return False
        return True

    def _trace(self, what: str, process: Process) -> Process:
        self._world.note(what, self.name)
        return process


def system_class(called: Callable[[], None]) -> type[ActorSystem]:
    """Return a class of systems that report each use of their handles.

    Args:
        called: called before each use, on the thread that uses the handle.
    """

    class SimulatedSystem(ActorSystem):
        def _check_open(self) -> None:
            called()
            super()._check_open()

    return SimulatedSystem
