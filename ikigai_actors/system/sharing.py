"""Sharing: a host runs its share of the agents of a database, beside other hosts.

A thread looks again and again at who has which shards (`ikigai_actors.store.shards`), and does what follows:

    a shard that nobody has       is claimed, up to the share of this host
    a shard that is new here      its agents are looked at in the registry, and get actors; cut-off turns go on
    a shard too many              its actors end, then it is given to another host, which finds it at its next look

Between the end of the actors and the gift nobody acts for these agents; what comes for them is written as rows, which
the next host finds. A crash at any point leaves the shard with this host, or with the next one. Messages that the
actors had not handled, and callers who wait for the end of a turn, are forwarded: they are answered by rows from then
on, as for any agent elsewhere (`ikigai_actors.system.elsewhere`).
"""

import logging
import queue
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ikigai_actors.actors.clock import Clock
from ikigai_actors.actors.futures import Future, TimedOut
from ikigai_actors.actors.threads import Queue, Threads
from ikigai_actors.agent.boot import Survey, survey
from ikigai_actors.errors import Fenced, IkigaiError, StoreConflict, StoreError, SystemClosed
from ikigai_actors.records.hosts import find_host
from ikigai_actors.records.log import Archive
from ikigai_actors.records.moves import MoveBranch, branch_here, check_movable
from ikigai_actors.store.base import Store
from ikigai_actors.store.host import Host
from ikigai_actors.store.journal import Journal
from ikigai_actors.store.peers import LOOK
from ikigai_actors.store.placement import Gift, gifts, gives
from ikigai_actors.store.shards import Drain, GiveShard, Shares, agents_in, living_in, shares
from ikigai_actors.system.attached.remote_agents import RemoteAgents
from ikigai_actors.system.lifecycle import CommandTarget
from ikigai_actors.system.processes import Forward, ProcessTable
from ikigai_actors.system.supervision import SupervisionLoop

logger = logging.getLogger(__name__)

BALANCE = 5.0
"""Seconds between two gifts of shards with agents: their logs are read anew by the host that gets them."""

LEAVING = 30.0
"""Seconds that the actors of a shard have to end."""


class ActorElsewhere(CommandTarget):
    """Stands for the actor of an agent that another host runs."""

    __slots__ = ("_forward", "_uuid")

    def __init__(self, uuid: str, forward: Forward) -> None:
        self._uuid, self._forward = uuid, forward

    def told(self, message: Any) -> bool:
        """Take a command. Never waits: that it cannot be carried out is told by its future."""
        self._forward(self._uuid, message)
        return True


class Sharing:
    """The share of one host."""

    def __init__(
        self,
        store: Store,
        host: Host,
        journal: Journal,
        processes: ProcessTable,
        archive: Archive,
        supervision: SupervisionLoop,
        elsewhere: RemoteAgents,
        threads: Threads,
        on_end: Callable[[IkigaiError], object],
    ) -> None:
        """Put the parts together; `start` starts the thread.

        Args:
            store: where it is read who has which shards.
            host: this host.
            journal: commits the gifts.
            processes: the actors of this host.
            archive: the logs that are in use.
            supervision: is told of the agents that this host has taken.
            elsewhere: answers for agents that other hosts run.
            threads: makes the thread.
            on_end: gets `Fenced` when another host has ended this one.
        """
        self._store, self._host, self._journal = store, host, journal
        self._processes, self._archive = processes, archive
        self._supervision, self._elsewhere = supervision, elsewhere
        self._drained: list[Future[None]] = []
        self._living: frozenset[str] = frozenset()
        self._clock: Clock = host.clock
        self._on_end = on_end
        self._resume = False
        self._run: dict[int, int] = {}  # the shards whose agents have actors here, with the epochs
        self._rest: float | None = BALANCE
        self._given = float("-inf")  # when shards with agents were last given
        self._looked = self._clock.monotonic()
        self._events: Queue[Callable[[], None] | None] = threads.queue()
        self._closed = False
        self._thread = threads.thread(self._loop, "ikigai-sharing")

    def start(self, own: Mapping[int, int], balance: float | None, resume: bool) -> None:
        """Start the thread.

        Args:
            own: the shards whose agents the boot has restored, each with its epoch.
            balance: seconds between two gifts of shards with agents; None gives these when the host drains only.
            resume: whether to go on with the cut-off turns of agents that are taken later.
        """
        self._run, self._rest, self._resume = dict(own), balance, resume
        self._thread.start()

    def close(self) -> None:
        """End the thread. Callers that wait are answered with `SystemClosed`."""
        self._closed = True
        self._events.put(None)
        if self._thread.ident is not None:
            self._thread.join()
        for drained in self._drained:
            drained.settle(SystemClosed("The system was closed before it had given all agents away."))
        while True:
            try:
                event = self._events.get(timeout=0)
            except queue.Empty:
                return
            if event is not None:
                event()

    def lives(self, host: str | None) -> bool:
        """Whether a host lived at the latest look. Reads nothing."""
        return host in self._living

    def look_again(self) -> None:
        """Look at the shards soon: another host may have given one. Never waits."""
        self._events.put(self._look)

    def forward(self, uuid: str, message: Any) -> None:
        """Have another host do what an agent was told. Never waits."""
        self._events.put(lambda: self._tell(uuid, message))

    def drain(self) -> Future[None]:
        """Give all shards away, and take no more. The future is settled when none is left, or raises `NoHost`."""
        drained: Future[None] = Future()

        def begin() -> None:
            try:
                self._journal.perform(Drain(self._host.id))
            except IkigaiError as error:
                drained.settle(error)
            else:
                self._drained.append(drained)
                self._look()

        self._events.put(begin)
        return drained

    def move(self, agent: str, to: str) -> Future[None]:
        """Move a branch to another host. The future is settled after the commit, or raises what `MoveBranch` does.

        Args:
            agent: the uuid of its top.
            to: the name or id of the host.
        """
        moved: Future[None] = Future(agent)

        def work() -> None:
            try:
                self._move(agent, self._store.read(lambda tx: find_host(tx, to)).id)
            except IkigaiError as error:
                moved.settle(error)
            else:
                moved.settle(None)

        self._events.put(work)
        return moved

    def _loop(self) -> None:
        while not self._closed:
            try:
                left = max(0.0, self._looked + LOOK - self._clock.monotonic())
                event = self._events.get(timeout=left)
            except queue.Empty:
                event = self._look
            if event is not None:
                self._try(event)

    def _try(self, event: Callable[[], None]) -> None:
        try:
            event()
        except Fenced as error:
            self._on_end(error)
        except (StoreError, SystemClosed) as error:  # it is looked at again soon
            logger.info("The shards could not be looked at: %s", error)
        except Exception:  # a defect of ours: the next look may do
            logger.exception("The shards could not be looked at")

    def _tell(self, uuid: str, message: Any) -> None:
        try:
            if self._closed:
                raise SystemClosed("The system was closed before this was answered.")
            self._elsewhere.actor(uuid).told(message)
        except IkigaiError as error:
            message.caller.settle(error)

    def _look(self) -> None:
        self._looked = self._clock.monotonic()
        found = self._shares()
        if found.vacant and any(one.host == self._host.id and not one.draining for one in found.members):
            self._host.claim()
            found = self._shares()
        for shard in self._run.keys() - found.own.keys():
            del self._run[shard]
        if taken := [shard for shard, epoch in found.own.items() if self._run.get(shard) != epoch]:
            self._take(taken, found.own)
        self._balance(found)
        if not self._run:
            while self._drained:
                self._drained.pop().settle(None)

    def _shares(self) -> Shares:
        found = self._store.read(lambda tx: shares(tx, self._host.id))
        self._living = frozenset(one.host for one in found.members)
        return found

    def _take(self, shards: Sequence[int], epochs: dict[int, int]) -> None:
        """Run the agents of shards that are new here."""
        self._begin(survey(self._store, self._host.id, shards))
        self._run.update((shard, epochs[shard]) for shard in shards)

    def _begin(self, found: Survey) -> None:
        """Make the actors of agents that have none here."""
        new = [one for one in found.restored if self._processes.get(one.uuid) is None]
        for one in new:
            self._archive.forget(one.uuid)  # another host may have written since it was read here
        found = found._replace(restored=new)
        self._processes.restore(found)
        self._supervision.take_over(found)
        if new:
            logger.info("Host %s runs %s more agents", self._host.name, len(new))
        if self._resume:
            self._processes.resume([one.uuid for one in new])

    def _balance(self, found: Shares) -> None:
        """Give away what this host has too much."""
        if not gives(self._host.id, found.members):
            return
        now = self._clock.monotonic()
        moves = self._rest is not None and now - self._given >= self._rest
        if moves:
            self._given = now
        counted = self._store.read(lambda tx: living_in(tx, found.own))
        self._give(gifts(self._host.id, found.members, counted, moves))

    def _give(self, given: Sequence[Gift]) -> None:
        for gift in given:
            self._leave(gift.shard)
            del self._run[gift.shard]  # if it cannot be given, the next look takes it again
            try:
                self._journal.perform(GiveShard(gift.shard, self._host.id, gift.to))
            except StoreConflict as error:
                logger.info("%s", error)
                continue
            self._leave(gift.shard)  # who was born meanwhile

    def _move(self, agent: str, to: str) -> None:
        if to == self._host.id:
            return
        self._store.read(lambda tx: check_movable(tx, agent, self._host.id))
        self._leave_all(self._store.read(lambda tx: branch_here(tx, agent, self._host.id)))
        try:
            self._journal.perform(MoveBranch(agent, self._host.id, to))
        except IkigaiError:  # they go on here
            self._begin(survey(self._store, self._host.id, self._run))
            raise
        born = self._store.read(lambda tx: branch_here(tx, agent, to))
        self._leave_all([uuid for uuid in born if self._processes.get(uuid) is not None])

    def _leave(self, shard: int) -> None:
        """End the actors of a shard."""
        self._leave_all(self._store.read(lambda tx: agents_in(tx, shard)))

    def _leave_all(self, agents: Collection[str]) -> None:
        for uuid, left in [(uuid, self._processes.leave(uuid)) for uuid in agents]:
            try:
                left.get(timeout=LEAVING)
            except TimedOut:  # whatever it still does is fenced
                logger.error("Agent %s was to be left to another host and did not hear of it", uuid)
