"""The acknowledged results of a run, and the checks that they still hold: the invariants of `AgentTreeMachine`."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from ikigai_actors.actors.futures import Future
from ikigai_actors.agent.turn.state import WORKING, Phase, State
from ikigai_actors.agent.waits import WaitResult
from ikigai_actors.errors import AgentDead, IkigaiError
from ikigai_actors.providers.base import Reply
from ikigai_actors.reach.scrollback import Scrollback
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.hosts.remote_commands import new_remote_commands
from ikigai_actors.records.log.lineage import read_ranges
from ikigai_actors.records.log.log_cache import LogCache
from ikigai_actors.records.mail.mail import EXIT, Mail, latest, stored_mail
from ikigai_actors.records.mail.prompts import new_prompts
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.records.messages.replies import last_outcome
from ikigai_actors.store.base import Store
from ikigai_actors.system.handles.ref import AgentRef
from ikigai_actors.system.system import ActorSystem
from ikigai_actors.testing.machine.commit_invariants import SLACK, CommitCheck
from ikigai_actors.testing.machine.history_oracle import Copy, CopyingOracle
from ikigai_actors.testing.simulation.process import Broken, Process, asks_for_summary
from ikigai_actors.testing.simulation.world import Simulation
from supervisors.signals import Status


class Ledger:
    """The acknowledged results. The ledger survives every crash of the process, as a person's memory does."""

    def __init__(self) -> None:
        self.oracle = CopyingOracle()
        self.known: dict[str, None] = {}
        """Every agent that became known, in the order of becoming known."""
        self.ended: set[str] = set()
        """Every agent whose death was acknowledged."""
        self.sent: dict[tuple[str, int], str] = {}
        """Mails whose sending was acknowledged, by recipient and number."""
        self.read: dict[str, list[int]] = {}
        """Mails that were read, by reader."""
        self.timers: list[tuple[str, int]] = []
        """Timers whose setting was acknowledged, by agent and number."""
        self.documents: dict[str, int] = {}
        """Versions that were acknowledged, by path."""
        self.marks: dict[tuple[str, int], str] = {}
        """Marks that were acknowledged, by agent and position."""
        self.pruned: Collection[str] = ()
        """The agents whose histories and mail are gone."""
        self.open: list[Future[Reply]] = []
        """Prompts that have no answer yet, of the process that runs."""
        self._looked_at: dict[str, tuple[Process | None, int]] = {}
        self._latest: dict[tuple[str, str], int] = {}
        self._asked = 0
        self._shared: dict[str, list[tuple[tuple[int, ...], list[Any]]]] = {}

    def was_sent(self, sender: str, recipient: str, number: int, body: str) -> None:
        """Record a mail whose sending was acknowledged.

        Its number must be higher than those of the sender's earlier mails to this recipient.
        """
        last = self._latest.get((sender, recipient), 0)
        if number <= last:
            raise Broken(f"mail: mail {number} of {sender} to {recipient} was sent after mail {last}")
        self._latest[sender, recipient] = number
        self.sent[recipient, number] = body

    def reads(self, agent: str, mails: Sequence[Mail]) -> None:
        """Record mails that an agent has read, and check that each came once, in the order in which they were sent."""
        before, numbers = self.read.setdefault(agent, []), [mail.id for mail in mails]
        if any(later <= earlier for earlier, later in zip(before + numbers, (before + numbers)[1:], strict=False)):
            raise Broken(f"mail: agent {agent} read {numbers} after {before}")
        for mail in mails:
            if self.oracle.mails.get((agent, mail.id)) != mail.body:
                raise Broken(f"mail: agent {agent} read {mail.body!r} as mail {mail.id}, which is not what was sent")
        before += numbers

    def check_cascade(self, below: Iterable[str], living: Iterable[AgentRecord]) -> None:
        """Check ``cascade``: none of the agents below a cascade's target is alive."""
        if left := {record.uuid for record in living} & set(below):
            raise Broken(f"cascade: {', '.join(sorted(left))} outlived it")

    def stopped(self, system: ActorSystem, commits: CommitCheck) -> None:
        """Record that a signal was acknowledged: a stopped agent without a request in flight must not go on."""
        for uuid, agent in commits.agents.items():
            if agent.status == "stopped":
                actor = system._actor(uuid)
                phase = actor.state.phase  # idle, and in a turn by the commits: it has yet to hear of that commit
                rests = (phase in (Phase.IDLE, Phase.UNLOADED) and not agent.turn) or phase is Phase.RUNNING_TOOLS
                busy = actor.actor_inbox.held or not rests
                agent.paused = agent.paused or not busy
                held = actor.actor_inbox.held  # a unit that was decided on before
                agent.heard_stop = agent.heard_stop or (actor.state.status is Status.STOPPED and not held)

    def check_histories(self, world: Simulation) -> None:
        """Check that the histories of agents in memory and in the database are those that were committed."""
        for uuid in self._kept():
            copy = self.oracle.histories.get(uuid) or Copy()
            [log] = world.system._log_cache.load_many([uuid])
            if isinstance(log, IkigaiError):
                raise log
            if log.head >= copy.head or (world.agenda.quiet and _has_heard(world.system, uuid)):
                _compare(uuid, "in memory", copy.shown, log.visible())
        self.check_stored(world.system._store, world.process)

    def check_stored(self, store: Store, process: Process | None = None) -> None:
        """Check that histories in the database are those that were committed.

        Only agents whose logs have grown are read, but all of them after the process has changed.
        """
        fresh = LogCache(store)
        for uuid in self._kept():
            copy = self.oracle.histories.get(uuid) or Copy()
            if self._looked_at.get(uuid) == (process, copy.head):
                continue
            self._looked_at[uuid] = (process, copy.head)
            _compare(uuid, "in the database", copy.shown, fresh.load(uuid).visible())
            ranges = store.read(partial(read_ranges, uuid=uuid))
            stored = [at for numbers in ranges for at in range(numbers.start_id + 1, (numbers.end_id or copy.head) + 1)]
            if stored != copy.stored:
                raise Broken(f"history: expected {copy.stored} in the ranges of agent {uuid}, got {stored}")

    def _kept(self) -> list[str]:
        """Return the uuids of the known agents whose histories are not pruned."""
        return [uuid for uuid in self.known if uuid not in self.pruned]

    def check_requests(self, world: Simulation) -> None:
        """Check ``siblings``: requests of sibling agents are equal up to the last reply before their fork."""
        asked, self._asked = world.requests[self._asked :], len(world.requests)
        for request in asked:
            copy = self.oracle.histories[request.agent]
            if not copy.inherited or asks_for_summary(request):
                continue
            if getattr(request.blobs, "to_be_loaded", False):
                continue  # its process ended before it was sent
            sent = [(message["role"], block) for message in request.messages for block in message["content"]]
            shared = sent[: request.shared]
            for inherited, other in (known := self._shared.setdefault(copy.parent, [])):
                fewer = min(len(inherited), len(copy.inherited))
                if inherited[:fewer] != copy.inherited[:fewer]:
                    continue  # a clear, a rewind or a summary of the parent lies between the two forks
                both = min(len(shared), len(other))
                same = len(shared) == len(other) or len(inherited) != len(copy.inherited)
                if shared[:both] != other[:both] or not same:
                    raise Broken(f"siblings: agent {request.agent} is sent {shared}, and a sibling was sent {other}")
            known.append((copy.inherited, shared))

    def check_acknowledged(self, system: ActorSystem) -> None:
        """Check ``acknowledged`` and ``supervised`` for the agents, mails, documents and marks so far."""
        records = {record.uuid: record for record in system.agents()}
        for uuid in self.known:
            if uuid not in records:
                raise Broken(f"acknowledged: agent {uuid} is not in the registry")
        for uuid in self.ended:
            if records[uuid].living:
                raise Broken(f"acknowledged: agent {uuid} lives, and was said to be dead")
        for (recipient, number), body in self.sent.items():
            if recipient in self.pruned:
                continue
            if system._store.read(partial(stored_mail, recipient=recipient, number=number)).body != body:
                raise Broken(f"acknowledged: mail {number} of agent {recipient} is not what was sent")
        for path, version in self.documents.items():
            if system.documents.read(path).version < version:
                raise Broken(f"acknowledged: version {version} of document {path} is lost")
        for (agent, position), label in self.marks.items():
            if self.oracle.labels.get((agent, position)) != label:
                raise Broken(f"acknowledged: mark {label!r} of agent {agent} is not at {position}")
        for record in records.values():
            self.known.setdefault(record.uuid)
            above = record.supervisor_uuid
            if record.living and above is not None and not records[above].living:
                raise Broken(f"supervised: the supervisor of agent {record.uuid} is dead")

    def check_rest(self, world: Simulation, busy: Mapping[str, State] | None = None) -> None:
        """Check ``quiescence`` when nothing can happen any more; ``busy`` are the agents that should be at rest."""
        system = world.system
        living = [record for record in system.agents() if record.living]
        if dead := set(system._processes.uuids()) - {record.uuid for record in living}:
            raise Broken(f"actors: {', '.join(sorted(dead))} are dead, and have actors")
        stopped = any(record.status == "stopped" for record in living)
        for record in living:
            state = system._actor(record.uuid).state
            if record.status == "terminating" and not state.turn:
                raise Broken(f"signals: agent {record.uuid} terminates, its turn is over, and it lives")
        for uuid, state in (at_work(system) if busy is None else busy).items():
            raise Broken(f"quiescence: agent {uuid} is {state.shown.value}, and nothing can happen")
        check_left(system._store, living, {record.uuid for record in living if record.turn})
        self.open = [future for future in self.open if not future.done()]
        if self.open and not stopped:
            raise Broken(f"quiescence: {len(self.open)} prompts have no answer, and nothing can happen")


def check_left(store: Store, living: Iterable[AgentRecord], interrupted: Collection[str] = ()) -> None:
    """Check ``quiescence`` and ``remote-command``: running agents with no work have taken up everything sent to them.

    A cut-off turn that its host does not resume waits for a person, and so do the prompts after it.
    """
    paused = {record.uuid for record in living if record.status != "running"}
    for uuid, number, text, *_ in store.read(new_prompts):
        if uuid not in paused and uuid not in interrupted:
            raise Broken(f"quiescence: agent {uuid} is idle, and leaves prompt {number} {text!r} where it is")
    for command in store.read(new_remote_commands):
        if command.agent not in paused:
            raise Broken(f"remote-command: agent {command.agent} leaves {command.kind}, {command.id}, unanswered")


def at_work(system: ActorSystem) -> dict[str, State]:
    """Return the state of each agent that is in the middle of a turn and not stopped, by uuid."""
    going = [record.uuid for record in system.agents() if record.living and record.status != "stopped"]
    states = {uuid: system._actor(uuid).state for uuid in going}
    return {uuid: state for uuid, state in states.items() if state.phase in WORKING}


def _has_heard(system: ActorSystem, uuid: str) -> bool:
    """Return whether an agent's actor has got the results of all its commits, which takes a moment after an outage."""
    try:
        return not system._actor(uuid).actor_inbox.held
    except AgentDead:
        return True


def _compare(uuid: str, where: str, expected: Sequence[int], messages: Iterable[Message]) -> None:
    got = [message.id for message in messages]
    if got != expected:
        raise Broken(f"history: expected {expected} for agent {uuid} {where}, got {got}")


def check_no_reply(agent: AgentRef, error: AgentDead) -> None:
    """Check ``reply``: the log of a dead agent has no outcome of its turn, where a caller got this error instead."""
    if "no more on this host" in str(error):  # another host ran it, and may have ended the turn since
        return
    outcome = agent.system._log_cache.find_in(agent.uuid, lambda log: last_outcome(log.newest_first()))
    if outcome is not None and not agent.record.living:
        raise Broken(
            f"reply: agent {agent.uuid} is dead, and its caller did not get the outcome of its turn: {outcome}"
        )


def check_wait(
    system: ActorSystem,
    waiter: AgentRef,
    agents: Sequence[AgentRef] | None,
    answers: Mapping[AgentRef | str, WaitResult],
    deadline: int | None,
    ended: int | None = None,
) -> None:
    """Check ``wait``: the results are true, and the wait did not miss a result before its deadline.

    Times are milliseconds since 1970. The wait ended at its deadline unless ``ended`` says otherwise.
    """
    if agents is not None and set(answers) != set(agents):
        raise Broken(f"wait: expected answers for {agents}, got {answers}")
    at_deadline = deadline is not None and (ended is None or ended >= deadline)
    late = []
    for agent, answer in answers.items():
        if not isinstance(agent, AgentRef):
            continue
        record = agent.record
        letters = system._store.read(partial(latest, recipient=waiter.uuid, sender=agent.uuid))
        if answer is WaitResult.MAIL and not letters:
            raise Broken(f"wait: agent {agent.uuid} has sent no mail to {waiter.uuid}")
        if answer is WaitResult.UNKNOWN or (answer is WaitResult.DEAD and record.living):
            raise Broken(f"wait: agent {agent.uuid} is {record.status}, and not {answer}")
        if deadline is not None and at_deadline and _was_over(system, record, letters, deadline - SLACK):
            late.append(agent)
    missed = late and (len(late) == len(answers) or any(answers[agent] is WaitResult.TIMEOUT for agent in late))
    if missed:
        sleepers = ", ".join(f"{agent.uuid}, which is {agent.record.status}" for agent in late)
        raise Broken(f"wait: agent {waiter.uuid} waited in vain for {sleepers}")


def _was_over(system: ActorSystem, record: AgentRecord, letters: Sequence[Mail], before: int) -> bool:
    """Return whether a reason to end the wait for an agent, the sender of these mails, arose before a time."""
    unread = any(mail.created_at < before and mail.read_at is None and mail.kind != EXIT for mail in letters)
    ended = record.ended_at is not None and record.ended_at < before
    return unread or ended or _idle(system, record, before)


def _idle(system: ActorSystem, record: AgentRecord, before: int) -> bool:
    """Return whether an agent has nothing to do now, and had nothing to do before a time."""
    if record.status != "running" or record.turn or not system._actor(record.uuid).is_idle:
        return False
    return all(message.created_at < before for message in Scrollback(system._store, record.uuid).latest(1))
