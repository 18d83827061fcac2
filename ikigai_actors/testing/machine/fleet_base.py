"""The ground of the rules of `FleetMachine`: several hosts, and what it takes to ask them and to let them go on."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from ikigai_actors.actors.futures import Future, TimedOut
from ikigai_actors.errors import IkigaiError, StoreError, SystemClosed
from ikigai_actors.providers.base import Reply
from ikigai_actors.records import registry
from ikigai_actors.records.registry import AgentRecord
from ikigai_actors.system.ref import AgentRef
from ikigai_actors.system.system import ActorSystem
from ikigai_actors.testing.machine.base import PATIENCE, Stage
from ikigai_actors.testing.machine.commit_invariants import CommitCheck
from ikigai_actors.testing.machine.fleet_ledger import FleetLedger
from ikigai_actors.testing.machine.machine import MOST_PERIODS
from ikigai_actors.testing.machine.targeted_rules import PERIOD
from ikigai_actors.testing.simulation.faults import OF_HOSTS, Faults
from ikigai_actors.testing.simulation.hosts import SimulatedHost
from ikigai_actors.testing.simulation.ownership import LEASES
from ikigai_actors.testing.simulation.process import Broken, ProcessCrashed
from ikigai_actors.testing.simulation.schedule import Schedule
from ikigai_actors.testing.simulation.scheduler import Endless, Stuck
from ikigai_actors.testing.simulation.store import StoredChange
from ikigai_actors.testing.simulation.world import simulated
from ikigai_actors.testing.strategies import faults, schedules

HOSTS = st.integers(0, 2)
"""The number of a host; after the last one it begins again."""


class FleetStage(Stage):
    """The part of `FleetMachine` that its rules stand on, with those that let everything go on."""

    MOST_FAULTS: Faults = OF_HOSTS
    """How much may go wrong in one run."""

    LIMIT = 6

    @initialize(
        hosts=st.integers(2, 3),
        schedule=schedules(),
        misfortunes=st.runner().flatmap(lambda machine: faults(machine.MOST_FAULTS)),
    )
    def begin(self, hosts: int, schedule: Schedule, misfortunes: Faults) -> None:
        """Open a system in every host of a new world, and let each take its part."""
        self._context = simulated(schedule, faults=misfortunes, hosts=hosts, steps=400_000)
        self.world = self._context.__enter__()
        self.commits = CommitCheck(self.world)
        self.facts = FleetLedger(self.world)
        self.world.watchers += (self.ledger.oracle.committed, self.commits.committed, self.facts.committed, self._watch)
        self.world.open(self.provider(), self.providers(), self.tools(), **self.options())
        self.ledger.known[self.system.root.uuid] = None
        self.pass_leases(LEASES / 4)

    def teardown(self) -> None:
        """Let it come to rest, look at everything once more, and close it. A run that has failed is left as it is."""
        if not hasattr(self, "world"):
            return
        ended = sys.exc_info()[1]
        try:
            if ended is None:
                self.comes_to_rest()
        except BaseException as error:
            ended = error
            raise
        finally:
            self._context.__exit__(type(ended) if ended else None, ended, ended.__traceback__ if ended else None)

    def __init__(self) -> None:
        super().__init__()
        self._trap: tuple[Callable[[StoredChange], bool], Callable[[], object]] | None = None

    # What rules call

    @property
    def system(self) -> ActorSystem:
        """The system of a host that can be asked."""
        return self.host(0).system

    def host(self, number: int) -> SimulatedHost:
        """One of the hosts that can be asked; if there is none, all begin anew."""
        if not (there := [host for host in self.world.hosts if host.answers]):
            self.revive()
            there = [host for host in self.world.hosts if host.answers]
        return there[number % len(there)]

    def handle(self, host: int, who: int) -> AgentRef:
        """The agent with a number, of one of the hosts."""
        known = list(self.ledger.known)
        return self.host(host).system.handle(known[who % len(known)])

    def apart(self, who: int) -> tuple[str, SimulatedHost, SimulatedHost] | None:
        """An agent, the host that runs it, and another one; None unless both can be asked and take agents.

        The agent is any that lives but agent 0, which goes nowhere; the first one is made when there is none.
        """
        if len(self.living()) == 1:
            root = self.handle(0, 0)
            self.attempt(lambda: root.fork(timeout=PATIENCE), lambda child: self.ledger.known.setdefault(child.uuid))
        if not (living := [one for one in self.living() if one.supervisor_uuid is not None]):
            return None
        agent = living[who % len(living)]
        takers = self.facts.takers()
        owners = [host for host in takers if host.host_id == agent.owner]
        others = [host for host in takers if host.host_id != agent.owner]
        return (agent.uuid, owners[0], others[0]) if owners and others else None

    def on(self, host: SimulatedHost, agent: str) -> AgentRef:
        """An agent, asked for by a certain host. Raises `ProcessCrashed` when that has ended."""
        if host.opened is None:
            raise ProcessCrashed(f"Host {host.name} has ended.")
        return host.system.handle(agent)

    def when(self, meets: Callable[[StoredChange], bool], do: Callable[[], object]) -> None:
        """Do something once, within the next commit with such a change, before anybody is answered."""
        self._trap = meets, do

    def _watch(self, changes: Sequence[StoredChange]) -> None:
        if self._trap is not None and any(map(self._trap[0], changes)):
            (_, do), self._trap = self._trap, None
            do()

    def forget_trap(self) -> None:
        """Wait for that commit no more."""
        self._trap = None

    def living(self) -> list[AgentRecord]:
        return [record for record in self.records() if record.living]

    def records(self) -> list[AgentRecord]:
        """The whole registry, whoever can be asked."""
        self.host(0)
        return self.world.process.looked_at.read(registry.every)

    def attempt(self, act: Callable[[], Any], then: Callable[[Any], None] = lambda answer: None) -> None:
        """Do something that may be refused, or cut off by the end of a host."""
        try:
            answer = act()
        except ProcessCrashed:
            self.world.note("refused", "the host has ended")
        except (Stuck, Endless):
            raise
        except (StoreError, SystemClosed) as trouble:
            if not self.facts.excuses():
                raise
            self.world.note("refused", f"{type(trouble).__name__}: {trouble}")
        except TimedOut as late:
            if self.facts.takers() and not any(record.status == "stopped" for record in self.living()):
                raise Broken(f"quiescence: nobody is stopped, and {late}") from late
            self.world.note("refused", f"TimedOut: {late}")
        except IkigaiError as refusal:
            self.world.note("refused", f"{type(refusal).__name__}: {refusal}")
        else:
            then(answer)

    def prompted(self, agent: AgentRef) -> None:
        """Prompt an agent with a text of its own; nobody waits."""
        text = self.facts.new("prompt")
        self.attempt(lambda: agent.prompt(text), lambda future: self._note_prompt(text, future))

    def _note_prompt(self, text: str, future: Future[Reply]) -> None:
        self.facts.prompts[text] = (self.world.calling, future)

    @property
    def lease(self) -> float:
        """Seconds for which a host is believed."""
        assert self.world.ownership is not None
        return self.world.ownership.lease

    def pass_leases(self, leases: float) -> None:
        """So many leases pass."""
        self.attempt(lambda: self.world.sleep(leases * self.lease))

    def goes_on_for(self, steps: int) -> None:
        """So many steps are taken, or fewer if nothing is left but that time passes."""

        def run() -> None:
            for _ in range(steps):
                if self.world.agenda.quiet:
                    return
                self.world.agenda.step()

        self.attempt(run)

    def set_mark(self, agent: AgentRef) -> None:
        """An agent sets a mark of its own."""
        label = self.facts.new("mark")

        def marked(position: int) -> None:
            self.ledger.marks[agent.uuid, position] = label

        self.attempt(lambda: agent.mark(label, timeout=PATIENCE), marked)

    # What lets everything go on

    @rule()
    def revive(self) -> None:
        """Every host that has ended begins anew, as one does that has given its agents away; the others go on."""
        for host in self.world.hosts:
            if host.running is not None:
                host.recover()
                if host in self.facts.takers():
                    continue
                host.kill()
            self._start(host)

    def _start(self, host: SimulatedHost) -> None:
        while host.running is None:
            try:
                host.start()
            except ProcessCrashed:
                self.world.note("refused", "the host has ended as it began")
            except IkigaiError as error:
                if not self.facts.excuses():
                    raise
                self.world.note("refused", f"{type(error).__name__}: {error}")
                host.kill()

    @precondition(lambda self: self.facts.prompts)
    @rule()
    def comes_to_rest(self) -> None:
        """Every host is there, and everything happens that can; then nobody may be left waiting."""
        for _ in range(MOST_PERIODS):  # one turn may wait for minutes, and another one behind it
            self.revive()
            self.pass_leases(LEASES)
            self.attempt(lambda: self.world.sleep(PERIOD))
            if all(host.answers for host in self.world.hosts) and not self.facts.at_work(self.living()):
                break
        self.facts.check_rest(self.living())
