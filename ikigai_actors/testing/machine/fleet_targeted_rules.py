"""Rules of `FleetMachine` for situations that arise too rarely by chance."""

from collections.abc import Sequence

from hypothesis import strategies as st
from hypothesis.stateful import rule

from ikigai_actors.actors.futures import Future
from ikigai_actors.errors import Fenced, IkigaiError
from ikigai_actors.testing.machine.base import AGENTS, PATIENCE
from ikigai_actors.testing.machine.fixtures import SLOW, STREAM
from ikigai_actors.testing.machine.fleet_base import HOSTS, FleetStage
from ikigai_actors.testing.machine.fleet_ledger import check_followed
from ikigai_actors.testing.simulation.changes import RanStatement, StoredChange, Written
from ikigai_actors.testing.simulation.hosts import SimulatedHost
from ikigai_actors.testing.simulation.ownership import LEASES
from ikigai_actors.testing.simulation.process import Broken
from supervisors.signals import Signal

SWEEP = 5.0
"""The seconds within which a host notices the commits of others, if it can reach the database."""

GROUPED = st.sampled_from(("one_for_all", "rest_for_one"))
"""The supervision strategies that restart siblings together."""


class AimedFleetRules(FleetStage):
    """The rules of `FleetMachine` for rare situations."""

    @rule(who=AGENTS)
    def write_late(self, who: int) -> None:
        """Cut a host off as it writes for an agent. When the transaction arrives, another host runs the agent."""
        if (placing := self.apart(who)) is None:
            return
        agent, owner, _ = placing
        owner.partition(silent=True)
        self.attempt(lambda: self.prompted(self.on(owner, agent)))
        self.attempt(self.world.settle)
        self.pass_leases(1.5)
        if owner.running is not None:
            owner.recover()
        self.attempt(self.world.settle)

    @rule(host=HOSTS)
    def wake_as_it_is_judged(self, host: int) -> None:
        """Stop a host for the time of a lease.

        The stopped host renews its lease after others have judged it dead, and before they have ended it.
        """
        stopped = self.host(host)
        others = [awake for awake in self.world.hosts if awake.answers and awake is not stopped]
        judged, before = [False], stopped.host_id

        def wake() -> None:
            judged[0] = True
            running = [other for other in others if other.running is not None]
            for host in running:
                host.freeze()
            for host in running:
                if host.process.threads.calls:  # it is the one that judges
                    host.process.threads.pause("a stopped process goes on")

        stopped.freeze()
        self.when(lambda change: _ran(change, "end_stalled", host=before), wake)
        self.attempt(lambda: self.world.agenda.pump(lambda: judged[0], LEASES * self.lease, "judgement"))
        self.forget_trap()
        if stopped.running is not None:
            stopped.recover()
        if judged[0]:
            self.attempt(lambda: self.world.sleep(1))
        for other in others:
            if other.running is not None:
                other.recover()
        self.attempt(self.world.settle)

    @rule(who=AGENTS)
    def end_as_it_is_done(self, who: int) -> None:
        """End a host right after the commit by which an agent carries out, or answers, a command of another host."""
        if (placing := self.apart(who)) is None:
            return
        agent, _, other = placing

        def is_done(change: StoredChange) -> bool:
            marked = isinstance(change, Written) and change.row[:1] == (agent,) and change.row[2] == "mark"
            return marked or _ran(change, "answer_remote_command", agent=agent)

        self.when(is_done, self.world.crash_here)
        self.attempt(lambda: self.set_mark(self.on(other, agent), "here"))
        self.forget_trap()

    @rule(who=AGENTS, signal=st.sampled_from((Signal.KILL, Signal.STOP, Signal.CONT)))
    def signal_remotely(self, who: int, signal: Signal) -> None:
        """Check ``followed``: send a signal from another host than the agent's, whose actor must follow."""
        if (placing := self.apart(who)) is None:
            return
        agent, owner, other = placing
        if signal is Signal.CONT:
            self.attempt(lambda: self.on(owner, agent).signal(Signal.STOP, timeout=PATIENCE))
        self.attempt(lambda: self.on(other, agent).signal(signal, timeout=PATIENCE))
        begun = self.world.clock.monotonic()
        self.attempt(lambda: self.world.sleep(SWEEP))
        if owner.answers and owner.there_since <= begun:
            check_followed(owner, agent)

    @rule(who=AGENTS, stops=st.booleans())
    def steer_and_move(self, who: int, stops: bool) -> None:
        """Send a steering message to an agent, and move the agent before it has read the message.

        The agent must read the message after the move.
        """
        if (placing := self.apart(who)) is None:
            return
        agent, owner, other = placing
        if stops:
            self.attempt(lambda: self.on(owner, agent).signal(Signal.STOP, timeout=PATIENCE))
        else:
            self.script(self.on(owner, agent), SLOW)
            self.attempt(lambda: self.prompted(self.on(owner, agent)))
            self.attempt(self.world.settle)
        self.attempt(lambda: self.steer_agent(self.on(owner, agent), now=False))
        self.attempt(lambda: owner.move(agent, other, PATIENCE))
        self.attempt(lambda: self.on(other, agent).signal(Signal.CONT, timeout=PATIENCE))
        self.attempt(self.world.settle)

    @rule(who=AGENTS, marks=st.integers(4, 12))
    def ask_as_it_moves(self, who: int, marks: int) -> None:
        """Check ``told``: send commands to an agent at every moment of its move.

        No caller may get an error because of the move.
        """
        if (placing := self.apart(who)) is None:
            return
        agent, owner, other = placing
        before = owner.host_id
        asked: list[Future[int]] = []

        def ask() -> None:
            asked.append(self.on(owner, agent).aio.mark(self.facts.new("mark")))

        self.attempt(lambda: self.on(owner, agent).aio.move(other.name))
        for _ in range(marks):
            self.attempt(ask)
            self.goes_on_for(3)
        self.attempt(self.world.settle)
        self.pass_leases(0.3)
        if owner.host_id != before or not owner.answers:
            return
        for future in asked:
            if future.done() and isinstance(error := _error_of(future), Fenced) and not error.dead:
                raise Broken(f"told: agent {agent} moved, and who asked it for something heard: {error}")

    @rule(who=AGENTS, seconds=st.sampled_from((0.3, 0.5, 0.8)))
    def look_on_late(self, who: int, seconds: float) -> None:
        """Check ``heard``: a host with delayed hints subscribes to replies, and prompts two agents of another host."""
        if (placing := self.apart(who)) is None:
            return
        agent, owner, other = placing
        beside = [record.uuid for record in self.living() if record.owner == owner.host_id and record.uuid != agent]
        self.attempt(lambda: self.facts.look_on(other, True))
        other.hear_late(seconds)
        said = len(self.facts.prompts)
        for sleeper in (*beside[:1], agent):
            self.attempt(lambda: self.script(self.on(other, sleeper), STREAM))  # noqa: B023 - it is called at once
            self.attempt(lambda: self.prompted(self.on(other, sleeper)))  # noqa: B023
        for text in [*self.facts.prompts][said:]:
            self.attempt(lambda: self.facts.hears(text, self.living, PATIENCE))  # noqa: B023

    @rule(who=AGENTS, strategy=GROUPED)
    def move_one_of_a_group(self, who: int, strategy: str) -> None:
        """Try to move one child of an agent that restarts its children together."""
        if (placing := self.apart(who)) is None:
            return
        agent, owner, other = placing
        self.attempt(lambda: self.on(owner, agent).supervise(strategy=strategy, timeout=PATIENCE))
        if (child := self._child(agent, owner)) is not None:
            self.attempt(lambda: self.on(owner, child).move(other.name, PATIENCE))

    @rule(who=AGENTS, strategy=GROUPED)
    def adopt_into_a_group(self, who: int, strategy: str) -> None:
        """Let an agent that restarts its children together adopt an agent of another host."""
        if (placing := self.apart(who)) is None:
            return
        agent, owner, other = placing
        root = next(iter(self.ledger.known))
        if (child := self._child(root, owner)) is None or child == agent:
            return
        self.attempt(lambda: self.on(owner, child).move(other.name, PATIENCE))
        self.attempt(lambda: self.on(owner, agent).supervise(strategy=strategy, timeout=PATIENCE))
        self.attempt(lambda: self.on(owner, agent).adopt(child, timeout=PATIENCE))

    def _child(self, parent: str, host: SimulatedHost) -> str | None:
        """Return the uuid of a living child of an agent, perhaps a new one; None if no child can be made."""
        if len(self.living()) < self.LIMIT:
            self.attempt(lambda: self.fork_of(self.on(host, parent)))
        return next((record.uuid for record in reversed(self.living()) if record.supervisor_uuid == parent), None)

    @rule(who=AGENTS)
    def become_older(self, who: int) -> None:
        """Check ``older``: replace the database by an older copy. Hosts that know later data must not write to it.

        Afterwards the database is as before, and all hosts have ended.
        """
        if (placing := self.apart(who)) is None:
            return
        agent, owner, _ = placing
        older, marks = owner.process.store.image(), len(self.ledger.marks)
        # other hosts may know no more
        run_here = {record.uuid for record in self.living() if record.owner == owner.host_id}
        self.attempt(lambda: self.set_mark(self.on(owner, agent), "here"))
        if len(self.ledger.marks) == marks or not owner.answers:
            return
        written: list[StoredChange] = []

        def note(changes: Sequence[StoredChange]) -> None:
            messages = [change for change in changes if isinstance(change, Written) and change.table == "messages"]
            written.extend(message for message in messages if message.row[0] in run_here)

        with self.world.as_it_was(older, note):
            self.attempt(lambda: self.on(owner, agent).prompt("what came before?"))
            self.attempt(self.world.settle)
        for host in self.world.hosts:
            if host.running is not None:
                host.kill()
        if written:
            raise Broken(f"older: host {owner.name} knows more than the database, and has written {written[0]}")


def _ran(change: StoredChange, query: str, **parameters: str) -> bool:
    """Return whether a change was made by the SQL statement ``query`` with these parameters."""
    if not isinstance(change, RanStatement) or change.query != query:
        return False
    return all(change.parameters[name] == value for name, value in parameters.items())


def _error_of(future: Future[int]) -> IkigaiError | None:
    try:
        future.get(timeout=0)
    except IkigaiError as error:
        return error
    return None
