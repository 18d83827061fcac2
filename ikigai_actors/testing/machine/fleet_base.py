"""The base of the rules of `FleetMachine`: starts several hosts, calls agents by a host, and lets the hosts run."""

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from ikigai_actors.actors.futures import Future
from ikigai_actors.errors import IkigaiError, ProgramOutdated, SchemaInUse
from ikigai_actors.providers.base import Reply
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.system.handles.ref import AgentRef
from ikigai_actors.system.system import ActorSystem
from ikigai_actors.testing.machine.base import MOST_PERIODS, PERIOD, Stage
from ikigai_actors.testing.machine.fleet_ledger import FleetLedger
from ikigai_actors.testing.machine.former_oracle import CLOCKS_DIFFER
from ikigai_actors.testing.machine.version_oracle import STEPS, VersionOracle
from ikigai_actors.testing.simulation.changes import StoredChange
from ikigai_actors.testing.simulation.faults import OF_HOSTS, Faults
from ikigai_actors.testing.simulation.hosts import SimulatedHost
from ikigai_actors.testing.simulation.ownership import LEASES
from ikigai_actors.testing.simulation.process import Process, ProcessCrashed
from ikigai_actors.testing.simulation.schedule import Schedule
from ikigai_actors.testing.simulation.world import simulated
from ikigai_actors.testing.strategies import faults, schedules

CLOCKS_APART = (0.0, 0.3, -0.3)
"""The seconds by which each host believes the server's clock to be ahead."""

BUILDS = ("a", "b", "a")
"""The first build of each host."""

HOSTS = st.integers(0, 2)
"""The number of a host. Numbers after the last host start again."""


class FleetStage(Stage):
    """The base of the rules of `FleetMachine`, with the rules that let hosts go on."""

    MOST_FAULTS: Faults = OF_HOSTS
    """The most faults in one run."""

    LIMIT = 6

    MOST_HOSTS = 3

    @initialize(
        hosts=st.integers(2, 3),
        schedule=schedules(),
        misfortunes=st.runner().flatmap(lambda machine: faults(machine.MOST_FAULTS)),
    )
    def begin(self, hosts: int, schedule: Schedule, misfortunes: Faults) -> None:
        """Open a system in every host of a new world, and let each host take its share of the agents."""
        self.enter(simulated(schedule, faults=misfortunes, hosts=hosts, steps=400_000))
        self.pass_leases(LEASES / 4)

    def __init__(self) -> None:
        super().__init__()
        self._trap: tuple[Callable[[StoredChange], bool], Callable[[], object]] | None = None

    def options(self) -> dict[str, Any]:
        """Return the options of systems on several hosts, which let hosts differ in time."""
        for host, apart, build in zip(self.world.hosts, CLOCKS_APART, BUILDS, strict=False):
            host.apart, host.build = apart, build
        return super().options()

    def watchers(self) -> tuple[Callable[[Sequence[StoredChange]], None], ...]:
        self.facts, self.versions = FleetLedger(self.world), VersionOracle(self.world)
        return *super().watchers(), self.facts.committed, self.versions.committed, self._watch

    def crashed(self) -> None:
        self.world.note("refused", "the host has ended")

    def excuses(self, trouble: IkigaiError) -> bool:
        return self.facts.excuses()

    def runs(self, process: Process) -> bool:
        return any(host.running is process and host.answers for host in self.world.hosts)

    def serves(self) -> bool:
        return bool(self.facts.takers())

    # What rules call

    @property
    def system(self) -> ActorSystem:
        """Return the system of the first host that can be used."""
        return self.host(0).system

    def host(self, number: int) -> SimulatedHost:
        """Return a host that can be used. If there is none, all hosts start again."""
        if not (there := [host for host in self.world.hosts if host.answers]):
            self.revive()
            there = [host for host in self.world.hosts if host.answers]
        return there[number % len(there)]

    def agents(self, *numbers: int) -> list[AgentRef]:
        known, system = list(self.ledger.known), self.host(numbers[0] // self.MOST_AGENTS).system
        return [system.handle(known[number % self.MOST_AGENTS % len(known)]) for number in numbers]

    def apart(self, who: int) -> tuple[str, SimulatedHost, SimulatedHost] | None:
        """Return an agent, the host that runs it, and another host; None unless both hosts can be used and take agents.

        The agent is any living one except agent 0, which cannot move. If there is none, one is made.
        """
        if len(self.living()) == 1:
            self.fork_of(self.agent(0))
        if not (living := [record for record in self.living() if record.supervisor_uuid is not None]):
            return None
        agent = living[who % len(living)]
        takers = self.facts.takers()
        owners = [host for host in takers if host.host_id == agent.owner]
        others = [host for host in takers if host.host_id != agent.owner]
        return (agent.uuid, owners[0], others[0]) if owners and others else None

    def on(self, host: SimulatedHost, agent: str) -> AgentRef:
        """Return the handle of an agent at a given host. Raises `ProcessCrashed` when that host has ended."""
        if host.opened is None:
            raise ProcessCrashed(f"Host {host.name} has ended.")
        return host.system.handle(agent)

    def when(self, meets: Callable[[StoredChange], bool], do: Callable[[], object]) -> None:
        """Call ``do`` once, within the next commit that has a matching change, before any caller gets an answer."""
        self._trap = meets, do

    def _watch(self, changes: Sequence[StoredChange]) -> None:
        if self._trap is not None and any(map(self._trap[0], changes)):
            (_, do), self._trap = self._trap, None
            do()

    def forget_trap(self) -> None:
        """Forget the action that `when` has set, if it has not happened yet."""
        self._trap = None

    def living(self) -> list[AgentRecord]:
        self.host(0)
        return [record for record in self.world.process.looked_at.read(registry.every) if record.living]

    def below(self, top: str) -> list[AgentRecord]:
        self.host(0)
        return self.world.process.looked_at.read(lambda tx: registry.descendants(tx, top))

    def signalled(self) -> None:
        """Do nothing: any host may run the agent, so the test cannot see whether a paused agent goes on."""

    def worded(self, what: str, text: str) -> str:
        return self.facts.new(what)

    def note_prompt(self, text: str, future: Future[Reply]) -> None:
        self.facts.prompts[text] = (self.world.calling, future)

    @property
    def lease(self) -> float:
        """Return the length of a host's lease, in seconds."""
        assert self.world.ownership is not None
        return self.world.ownership.lease

    def pass_leases(self, leases: float) -> None:
        """Let the time of this many leases pass."""
        self.attempt(lambda: self.world.sleep(leases * self.lease))

    # What lets everything go on

    @rule()
    def revive(self) -> None:
        """Start every host again that has ended or has given its agents away. The others go on."""
        for host in self.world.hosts:
            if host.running is not None:
                host.recover()
                if host in self.facts.takers():
                    continue
                host.kill()
            self.start(host)

    def start(self, host: SimulatedHost) -> None:
        """Start a host that has ended, and wait until it runs."""
        while host.running is None:
            try:
                host.start()
            except ProcessCrashed:
                self.world.note("refused", "the host has ended as it began")
            except (ProgramOutdated, SchemaInUse) as refusal:  # then it gets the newest program, or an earlier one
                self.versions.check_refusal(host, refusal)
                host.migrations = STEPS if isinstance(refusal, ProgramOutdated) else host.migrations[:-1]
                host.kill()
            except IkigaiError as error:
                if not self.facts.excuses():
                    raise
                self.world.note("refused", f"{type(error).__name__}: {error}")
                host.kill()

    @precondition(lambda self: self.facts.prompts or self.ledger.timers)
    @rule()
    def comes_to_rest(self) -> None:
        """Start all hosts, let everything happen that can, and check that no caller and no agent waits in vain."""
        for _ in range(MOST_PERIODS):  # one turn may wait for minutes, and another one after it
            self.revive()
            self.pass_leases(LEASES)
            self.attempt(lambda: self.world.sleep(PERIOD))
            if all(host.answers for host in self.world.hosts) and not self.facts.at_work(self.living()):
                break
        self.facts.check_rest(self.living())
        self.timers.check_rest()
        self.deliveries.check_rest()
        self.questions.check_rest()
        self.hashes.check_rest()
        self.spans.check_rest()
        self.former.check(CLOCKS_DIFFER)
        self.attempt(lambda: self.world.sleep(2 * CLOCKS_DIFFER / 1000))
        self.words.check_rest({host.running for host in self.world.hosts})
