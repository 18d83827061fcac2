"""The ledger of `FleetMachine`: acknowledged prompts, marks and remote commands, and the host of each agent at rest."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from ikigai_actors.actors.futures import Future, TimedOut
from ikigai_actors.agent.subscriptions import Event, Streamed, Subscription
from ikigai_actors.agent.turn.state import WORKING
from ikigai_actors.errors import AgentDead, HostElsewhere
from ikigai_actors.providers.base import Reply
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.store.hosts.rows import recent_hosts
from ikigai_actors.testing.machine.model import check_left
from ikigai_actors.testing.simulation.changes import RanStatement, StoredChange, Written
from ikigai_actors.testing.simulation.hosts import SimulatedHost
from ikigai_actors.testing.simulation.process import Broken, Process
from ikigai_actors.testing.simulation.world import Simulation
from supervisors.strategies import Strategy

REGROUPS = frozenset({"set_supervision", "adopt", "move_agents"})
"""SQL statements that may change which siblings are restarted together, or on which host an agent lives."""


class Looker:
    """A subscriber to the events of a host, which remembers the messages that it got."""

    def __init__(self) -> None:
        self.expected: list[tuple[str, int]] = []
        """The messages committed since the subscription began, each as its agent and its position."""
        self.heard: list[tuple[str, int]] = []

    def hear(self, event: Event) -> None:
        """Remember an event if it is a message."""
        if isinstance(event, Message):
            self.heard.append((event.agent_uuid, event.id))

    def check(self, name: str) -> None:
        """Check that the messages came once each, in the order of each agent's log."""
        latest: dict[str, int] = {}
        for agent, number in self.heard:
            if number <= latest.get(agent, 0):
                raise Broken(f"heard: at host {name} message {number} of agent {agent} comes after {latest[agent]}")
            latest[agent] = number


class FleetLedger:
    """The acknowledged results of one run: prompts, remote commands and marks."""

    def __init__(self, world: Simulation) -> None:
        self._world = world
        self.prompts: dict[str, tuple[Process | None, Future[Reply]]] = {}
        """Every prompt by its text: the process that was asked, and the answer."""
        self.lookers: dict[Process, tuple[Looker, Subscription]] = {}
        """The subscribers by process, each with its subscription."""
        self._tokens = 0
        self._written: Counter[tuple[str, str]] = Counter()  # how often a prompt or a mark is in a log
        self._orphans: set[str] = set()

    def new(self, what: str) -> str:
        """Return a text that was not used before."""
        self._tokens += 1
        return f"{what} {self._tokens}"

    def look_on(self, host: SimulatedHost, begins: bool) -> None:
        """Begin or end a subscription to the events of a host, as a `Looker`."""
        process = host.process
        if begins and process not in self.lookers:
            looker = Looker()
            self.lookers[process] = looker, host.system.subscribe(looker.hear, only=(Message, Streamed))
        elif not begins and process in self.lookers:
            self.lookers.pop(process)[1].close()

    def committed(self, changes: Sequence[StoredChange]) -> None:
        """Record the messages that a commit writes, and check ``together`` if siblings may have been moved apart."""
        messages = [each.row for each in changes if isinstance(each, Written) and each.table == "messages"]
        for looker, _ in self.lookers.values():
            looker.expected += [(row[0], row[1]) for row in messages]
        for change in changes:
            if isinstance(change, Written) and change.table == "messages" and change.row[2] in (Kind.USER, Kind.MARK):
                self._written[change.row[2], change.row[3]] += 1
        ran = [change for change in changes if isinstance(change, RanStatement)]
        if REGROUPS & {statement.query for statement in ran}:
            self._check_groups(ran)

    def _check_groups(self, ran: Sequence[RanStatement]) -> None:
        """Check ``together``: siblings restarted together are in their supervisor's shard, orphans excepted."""
        if any(statement.query == "bury" for statement in ran):
            self._orphans.update(
                uuid for statement in ran if statement.query == "adopt" for uuid in statement.parameters["uuids"]
            )
        process = self._world.process
        records = {record.uuid: record for record in process.looked_at.read(registry.every) if record.living}
        for record in records.values():
            above = records.get(record.supervisor_uuid or "")
            grouped = above is not None and above.strategy != Strategy.ONE_FOR_ONE and record.uuid not in self._orphans
            if above is not None and grouped and record.shard != above.shard:
                process.broken(
                    f"together: agent {record.uuid} is of shard {record.shard}, and its group of {above.shard}"
                )

    def excuses(self) -> bool:
        """Return whether a fault has happened that can make a store or a host unreachable."""
        return self.misfortunes() > 0

    def misfortunes(self) -> int:
        """Return the number of faults so far."""
        kinds = ("crash", "fault", "freeze", "partition", "kill")
        return sum(line.kind in kinds for line in self._world.trace.lines)

    def takers(self) -> list[SimulatedHost]:
        """Return the hosts that can be used and that take agents."""
        if not (there := [host for host in self._world.hosts if host.answers]):
            return []
        drained = {host.id for host in there[0].process.looked_at.read(recent_hosts) if host.draining}
        return [host for host in there if host.host_id not in drained]

    def hears(self, text: str, living: Callable[[], Sequence[AgentRecord]], patience: float) -> None:
        """Wait this many seconds for the answer to a prompt, and check ``heard``. Raises the error of the answer."""
        try:
            self.prompts[text][1].get(timeout=patience)
        except TimedOut:
            self._check_heard([text], living())
            raise

    def _check_heard(self, late: Sequence[str], living: Sequence[AgentRecord]) -> None:
        """Check that no prompt in ``late``, which got no answer, has opened a turn that is now over."""
        if all(record.status == "running" for record in living) and not self.at_work(living):
            for text in late:
                if self._written[Kind.USER, text]:
                    raise Broken(f"heard: {text!r} has opened a turn, which is over, and who asked was not told")

    def check(self) -> None:
        """Check ``answered``, ``remote-command`` and ``heard`` for all prompts, commands and subscribers so far."""
        for process, (looker, _) in self.lookers.items():
            looker.check(process.name)
        for (kind, text), count in self._written.items():
            if count > 1 and text.startswith(("prompt ", "mark ")):
                name = "answered" if kind == Kind.USER else "remote-command"
                raise Broken(f"{name}: {text!r} is {count} times in the logs")
        for text, (_, future) in self.prompts.items():
            if future.done() and _is_reply(future) and not self._written[Kind.USER, text]:
                raise Broken(f"answered: {text!r} has a reply, and opened no turn")

    def at_work(self, living: Iterable[AgentRecord]) -> list[str]:
        """Return the uuids of the agents that are in the middle of a turn, and not stopped."""
        hosts = {host.host_id: host for host in self._world.hosts}
        return [
            record.uuid
            for record in living
            if record.status != "stopped" and _works(hosts.get(record.owner or ""), record.uuid)
        ]

    def check_rest(self, living: Sequence[AgentRecord]) -> None:
        """Check ``placed``, ``quiescence``, ``remote-command`` and ``heard``, when nothing can happen any more."""
        for record in living:
            runs = [host.host_id for host in self._world.hosts if _has_actor(host, record.uuid)]
            if runs != [record.owner]:
                raise Broken(f"placed: agent {record.uuid} is host {record.owner}'s, and has actors at {runs}")
        if busy := self.at_work(living):
            raise Broken(f"quiescence: agents {', '.join(busy)} are in a turn, and nothing can happen")
        check_left(self._world.process.looked_at, living)
        running = {host.running for host in self._world.hosts}
        late = [text for text, (asked, future) in self.prompts.items() if asked in running and not future.done()]
        for process, (looker, _) in self.lookers.items():
            if process in running and (missed := set(looker.expected).difference(looker.heard)):
                raise Broken(f"heard: at host {process.name} nobody heard of {sorted(missed)}")
        self._check_heard(late, living)
        if late and all(each.status == "running" for each in living):
            raise Broken(f"quiescence: {', '.join(late)} have no answer, and nothing can happen")


def check_followed(host: SimulatedHost, uuid: str) -> None:
    """Check ``followed``: an actor of the agent agrees with the registry, if there was time for it."""
    record = host.process.looked_at.read(lambda tx: registry.get(tx, uuid))
    if (actor := host.system._processes.get(uuid)) is None:
        return
    if not record.living or (record.owner == host.host_id and actor.state.status != record.status):
        raise Broken(f"followed: agent {uuid} is {record.status}, and its actor at host {host.name} is not")


def _is_reply(future: Future[Reply]) -> bool:
    try:
        return isinstance(future.get(timeout=0), Reply)
    except Exception:  # whatever became of it
        return False


def _has_actor(host: SimulatedHost, uuid: str) -> bool:
    """Return whether an agent has an actor at a host. The question itself may wake the actor."""
    try:
        host.system._actor(uuid)
    except (HostElsewhere, AgentDead):
        return False
    return True


def _works(host: SimulatedHost | None, uuid: str) -> bool:
    """Return whether an agent is in a turn at a host; True if that cannot be known."""
    if host is None or not _has_actor(host, uuid):
        return True
    return host.system._actor(uuid).state.phase in WORKING
