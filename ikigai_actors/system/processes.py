"""The process table: the actors of the agents that this host runs, and what births, deaths and signals mean for them.

The registry decides who lives; the table follows it. What a unit did to lives (`LifecycleChange`) is carried out
here once it is committed: the actors of the dead are stopped, and their work outside is cancelled; those whose status
has changed are told.

An agent that has crashed is made anew at once, as after a boot, with whoever waited for the old actor; but it is held,
and does nothing, until its supervisor has decided (`ikigai_actors.system.supervision`).
"""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

from ikigai_actors.actors.futures import Future
from ikigai_actors.agent.actor import AgentActor
from ikigai_actors.agent.boot import Origin, Unrestorable
from ikigai_actors.agent.messages import Dead, Handover, NewMail, Reset, Restarted
from ikigai_actors.agent.runtime import Predecessor, Processes, Runtime
from ikigai_actors.agent.statistics import SystemStatistics, total, total_by_model
from ikigai_actors.agent.subscriptions import Died
from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.state import WORKING, LifecycleState, Phase
from ikigai_actors.records.append import FIRST_EPOCH
from ikigai_actors.records.deaths import End, LifecycleChange, WriteDeath
from ikigai_actors.records.log import Log
from ikigai_actors.records.log_unit import Birth
from ikigai_actors.records.registry import Renamed
from ikigai_actors.store.journal import CommitResult, Committed
from supervisors.causes import Cause
from supervisors.signals import Status

logger = logging.getLogger(__name__)


class Supervises(Protocol):
    """What the table needs of whoever decides on agents that crash."""

    def note_crash(self, uuid: str, end: Cause, reason: str) -> None:
        """An agent has crashed, or is permanent and has exited: told before anybody can see that it is down."""

    def crashed(self, uuid: str) -> None:
        """Its actor was made anew and is held."""

    def unstarted(self, uuid: str, restarted: Restarted, error: Exception) -> bool:
        """A restart could not read the agent's log. See `Processes.unstarted`."""

    def untaken(self) -> None:
        """An agent could not take up what other processes prompted. See `Processes.untaken`."""


class ProcessTable(Processes):
    """The actors of one host, by uuid."""

    def __init__(self, handle: Callable[[str], object]) -> None:
        """Empty; `run` gives it what actors need. ``handle`` makes the handle of an agent whose uuid is known."""
        self._handle = handle
        self._actors: dict[str, AgentActor] = {}
        self._down: set[str] = set()
        self._told: dict[str, Status] = {}  # those that were told last that they do not run
        self._lock = (
            threading.RLock()
        )  # of the three above: the journal, the supervision loop and the workers change them
        self._runtime: Runtime | None = None
        self._supervision: Supervises | None = None

    def run(
        self, runtime: Runtime, supervision: Supervises, restored: list[Origin], unrestorable: list[Unrestorable]
    ) -> None:
        """Run those that come back from a boot, and bury the others."""
        self._runtime, self._supervision = runtime, supervision
        for agent in restored:
            actor = self._actors[agent.uuid] = AgentActor(runtime, agent)
            if agent.standing.status is not Status.RUNNING:
                self._told[agent.uuid] = agent.standing.status
            if agent.standing.status is Status.TERMINATING:
                actor.actor_inbox.put_urgent(on.StatusChanged(agent.standing.status, agent.standing.ending))
        for one in unrestorable:
            self.bury(one.uuid, one.reason)

    def __len__(self) -> int:
        return len(self._actors)

    def __iter__(self) -> Iterator[AgentActor]:
        return iter(list(self._actors.values()))

    def get(self, uuid: str) -> AgentActor | None:
        """The actor of an agent; None when this host runs it not."""
        return self._actors.get(uuid)

    def is_idle(self, uuid: str) -> bool:
        """Whether an agent has nothing to do, as far as memory tells. Of one that is not run here the rows tell."""
        actor = self._actors.get(uuid)
        return actor is None or actor.is_idle

    def handle(self, uuid: str) -> object:
        return self._handle(uuid)

    def expect(self, birth: Birth) -> None:
        standing = LifecycleState(permanent=birth.restart == "permanent")
        child = Origin(birth.uuid, birth.name, FIRST_EPOCH, birth.messages[-1].id, birth.turn, standing)
        actor = AgentActor(self._parts, child)
        actor.actor_inbox.held = True
        self._actors[birth.uuid] = actor

    def spawn(self, birth: Birth, log: Log | None) -> None:
        if (actor := self._actors.get(birth.uuid)) is not None:
            actor.begin(log)

    def forget(self, birth: Birth) -> None:
        self._actors.pop(birth.uuid).actor_inbox.set()

    def bury(self, uuid: str, reason: str, cause: Cause = Cause.DAMAGED) -> None:
        def done(result: CommitResult) -> None:
            if isinstance(result, Committed):
                logger.error("Agent %s is dead: %s", uuid, reason)
            else:  # agent 0 is refused, and stays
                logger.error("Agent %s could not be buried (%s): %s", uuid, result.error, reason)

        runtime = self._parts
        runtime.journal.submit(WriteDeath(uuid, runtime.host.id, reason, runtime.clock.now_ms(), cause), done)

    def follow(self, change: LifecycleChange) -> None:
        """Carry out what a committed unit did to lives. Never waits."""
        for uuid, end in change.dead.items():
            self._end(uuid, end)
        for uuid, status in change.status.items():
            self._tell(uuid, status, change.reason)
            self._parts.waits.changed(uuid)
        for survivor, dead in change.told:
            self.mailed(survivor, dead)

    def renamed(self, change: Renamed) -> None:
        """Have an agent go by its new name, and tell who listens."""
        with self._lock:
            if (actor := self._actors.get(change.agent_uuid)) is not None:
                actor.rename(change.name)
        self._parts.publisher.publish(change)

    def mailed(self, recipient: str, sender: str | None) -> None:
        """A committed mail has come: tell whoever waits for it, and the agent if it is to hear. Never waits."""
        self._parts.waits.mailed(recipient, sender)
        if (actor := self._actors.get(recipient)) is not None and actor.wants_news:
            actor.actor_inbox.put_urgent(NewMail())

    def prompt(self, uuid: str, mail: int, text: str) -> None:
        """A prompt of another process: the agent takes it up when it is idle; once, however often it is told."""
        if (actor := self._actors.get(uuid)) is not None:
            actor.actor_inbox.put_urgent(on.Prompt(text, Future(), mail))

    def look_for_mail(self) -> None:
        """Another process may have sent mail to anybody."""
        for actor in self:
            if actor.wants_news:
                actor.actor_inbox.put_urgent(NewMail())

    def interrupt(self, uuid: str, turn: int) -> None:
        """INT from another process: end this turn, if it is still in progress."""
        if turn and (actor := self._actors.get(uuid)) is not None:
            actor.actor_inbox.put_urgent(on.Interrupt(Future(), turn=turn))

    def catch_up(self, dead: Mapping[str, End], paused: Mapping[str, tuple[Status, str]]) -> None:
        """Another process may have changed lives: follow the registry.

        Args:
            dead: who died lately, and why.
            paused: everybody who lives and does not run: the status, and the reason for it.
        """
        for uuid, end in dead.items():
            if uuid in self._actors:
                self._end(uuid, end)
        with self._lock:
            going_on = [uuid for uuid in self._told if uuid not in paused]
        for uuid in going_on:
            self._tell(uuid, Status.RUNNING, "")
        for uuid, (status, reason) in paused.items():
            self._tell(uuid, status, reason)

    def follow_names(self, names: Iterable[tuple[str, str | None]]) -> bool:
        """Follow the registry, where another process may have renamed agents. Returns whether one has another name."""
        renamed = [
            Renamed(uuid, name)
            for uuid, name in names
            if (actor := self._actors.get(uuid)) is not None and actor.origin.name != name
        ]
        for change in renamed:
            self.renamed(change)
        return bool(renamed)

    def crashed(self, old: Predecessor, handover: Handover, end: Cause | None, why: str) -> AgentActor:
        assert self._supervision is not None  # `run` comes before anything can happen
        if end is None:
            return self._make_anew(old, handover)
        self._supervision.note_crash(old.origin.uuid, end, why)
        successor = self._make_anew(old, handover)
        self._supervision.crashed(old.origin.uuid)
        return successor

    def unstarted(self, uuid: str, restarted: Restarted, error: Exception) -> bool:
        assert self._supervision is not None
        return self._supervision.unstarted(uuid, restarted, error)

    def untaken(self) -> None:
        assert self._supervision is not None
        self._supervision.untaken()

    def cut(self, uuid: str) -> Future[None]:
        """Throw the state of an agent away, and hold it until `restart`; answered when that is done."""
        done: Future[None] = Future()
        actor = self._actors.get(uuid)
        if actor is None or uuid in self._down:
            done.settle(None)
        else:
            actor.actor_inbox.put_urgent(Reset(done))
        return done

    def hold(self, uuid: str) -> bool:
        """Note that an agent is held until `restart`; False when it is dead, and is not."""
        with self._lock:
            if known := uuid in self._actors:
                self._down.add(uuid)
        return known

    def restart(self, uuid: str, restarted: Restarted) -> None:
        """Let an agent go on that is held; one that is not (it never heard that it was to be cut) goes on as it is."""
        with self._lock:
            down = uuid in self._down
            self._down.discard(uuid)
            actor = self._actors.get(uuid)
        if actor is not None and down:
            actor.actor_inbox.release(restarted)

    def resume(self) -> list[str]:
        """Go on with every turn that was cut off; returns the agents that do."""
        cut_off = [
            actor for actor in self if actor.state.turn and actor.state.phase in (Phase.UNLOADED, Phase.INTERRUPTED)
        ]
        return [actor.origin.uuid for actor in cut_off if actor.told(on.Resume(Future()))]

    def statistics(self, read_logs: int) -> SystemStatistics:
        """What this host is doing; ``read_logs`` were read from the store."""
        actors = list(self)
        tallies = [actor.tally for actor in actors]
        return SystemStatistics(
            agents=len(actors),
            working=sum(actor.state.phase in WORKING for actor in actors),
            ready=self._parts.dispatcher.ready,
            inbox=sum(actor.waiting for actor in actors),
            turns=sum(tally.turns for tally in tallies),
            steps=sum(tally.steps for tally in tallies),
            tokens=total(tallies),
            journal=self._parts.journal.statistics(),
            read_logs=read_logs,
            waits=len(self._parts.waits),
            models=total_by_model(tallies),
            pending=sum(actor.backlog.volatile for actor in actors),
        )

    def _make_anew(self, old: Predecessor, handover: Handover) -> AgentActor:
        """Make the next actor of an agent; it is held until `restart`."""
        new = AgentActor(self._parts, old.origin, handover)
        new.actor_inbox.held = True
        uuid = old.origin.uuid
        with self._lock:
            new.rename(old.origin.name)  # it may have another name since it crashed
            if known := self._actors.get(uuid) is old:
                self._actors[uuid] = new
                self._down.add(uuid)
        if not known:  # it was buried meanwhile
            new.close()
        return new

    def _end(self, uuid: str, end: End) -> None:
        with self._lock:
            actor, down = self._actors.pop(uuid, None), uuid in self._down
            self._down.discard(uuid)
            self._told.pop(uuid, None)
        dead = Dead(f"Agent {uuid} is dead: {end.cause}: {end.reason}")
        if actor is not None:
            (actor.actor_inbox.release if down else actor.actor_inbox.put_urgent)(dead)
        self._parts.publisher.publish(Died(uuid, end.cause, end.reason))
        self._parts.waits.changed(uuid)

    def _tell(self, uuid: str, status: Status, reason: str) -> None:
        """Tell an agent its status, unless that was told last. Under the lock: what is said last arrives last."""
        with self._lock:
            actor = self._actors.get(uuid)
            if actor is None or self._told.get(uuid, Status.RUNNING) is status:
                return
            if status is Status.RUNNING:
                del self._told[uuid]
            else:
                self._told[uuid] = status
            actor.actor_inbox.put_urgent(on.StatusChanged(status, reason))

    @property
    def _parts(self) -> Runtime:
        assert self._runtime is not None  # `run` comes before anything can happen
        return self._runtime
