"""The rebalancer: has a host run its share of the agents of a database, beside other hosts.

A thread regularly reads which host has which shards (`ikigai_actors.store.hosts.shards`), and acts:

    a shard that nobody has       this host claims it, up to its share of all shards; after some reads beyond its share
    a shard that is new here      its agents are read from the registry, and get actors; cut-off turns go on
    a shard too many              its agents begin no further request or tool; those in progress get a lease's time to
                                  end; the actors end; another host gets the shard, and sees this at its next read

    a turn that waits for a hook  its branch is given to a host that has the hook; the same if a program is missing

So a tool that is not idempotent and ends soon is not cut off, and few replies are paid for twice. Between the end of
the actors and the gift no host runs these agents; messages for them are written as rows, which the next host finds. A
crash at any point leaves the shard with this host, or with the next one. Messages that the actors had not handled, and
callers who wait for the end of a turn, go to the remote agent: they are answered by rows from then on
(`ikigai_actors.system.remote.agents`).
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial

from ikigai_actors.actors.futures import Future, TimedOut
from ikigai_actors.actors.garbage import everything_stays
from ikigai_actors.actors.service import RefusableTask, Worker
from ikigai_actors.actors.threads import Threads
from ikigai_actors.agent.boot import Survey, clear_left_behind, left_cut_off, survey
from ikigai_actors.agent.remote_commands import Move, RemoteCaller
from ikigai_actors.agent.subscriptions import Event, HostEnded
from ikigai_actors.errors import Fenced, IkigaiError, NoHost, StoreConflict, SystemClosed
from ikigai_actors.records.hosts.liveness import leave_cut_off
from ikigai_actors.records.hosts.offers import host_with, offers_of_hosts
from ikigai_actors.records.hosts.remote_commands import CarryOut
from ikigai_actors.records.lives.moves import MoveBranch, branch_here, check_movable, movable_top
from ikigai_actors.records.log.log_cache import LogCache
from ikigai_actors.store.base import Store
from ikigai_actors.store.hosts.host import Host
from ikigai_actors.store.hosts.membership import LOOK
from ikigai_actors.store.hosts.placement import Living, gifts, is_stuck, may_give
from ikigai_actors.store.hosts.rows import HostRecord, find_taker, open_hosts
from ikigai_actors.store.hosts.shards import Drain, GivenAgents, GiveShards, Shares, agents_in, living_in, shares
from ikigai_actors.store.journal import Journal
from ikigai_actors.store.unit import Unit
from ikigai_actors.system.host.processes import ProcessTable
from ikigai_actors.system.host.supervision import SupervisionLoop
from ikigai_actors.system.host_events import DifferenceWatch, host_events

logger = logging.getLogger(__name__)

PACE = 50
"""The pause before agents are counted again, as a multiple of the time that the last count took."""

BALANCE = 5.0
"""Seconds between two gifts of shards with agents: their logs are read again by the host that gets them."""

LEAVING = 30.0
"""The seconds in which the actors of a shard must end before it is given away."""


SOUGHT_AT_ONCE = 50
"""The most agents whose turns wait for hooks or programs that begin to move at one look."""


def _not_moved(error: IkigaiError) -> None:
    logger.info("A branch stays: %s", error)


class Parting:
    """A move of agents to another host: their running tools and requests have some time to end first."""

    def __init__(self, agents: Collection[str], until: float, go: RefusableTask) -> None:
        """Wait until the work of these agents has ended, or until the time ``until`` (monotonic seconds).

        Then ``go`` gives the agents to another host.
        """
        self.agents, self.until, self.go = agents, until, go
        self.busy = set(agents)
        """The hosts that have not said yet that nothing of them runs outside."""


class Rebalancer(Worker):
    """Gives and takes shards, so that one host runs its share of the agents. See the module."""

    def __init__(
        self,
        store: Store,
        host: Host,
        journal: Journal,
        processes: ProcessTable,
        log_cache: LogCache,
        supervision: SupervisionLoop,
        threads: Threads,
        on_end: Callable[[IkigaiError], object],
        publish: Callable[[Event], object],
        catch_up: Callable[[frozenset[str]], object],
    ) -> None:
        """Make the rebalancer of a host; `start` starts its thread.

        Args:
            store: where the owners of shards are read.
            host: this host.
            journal: commits the gifts.
            log_cache: the logs that are in use.
            supervision: gets the agents that this host has taken.
            on_end: gets `Fenced` when another host has ended this one.
            publish: takes a `HostEnded`, and a `HostsDiffer`.
            catch_up: gives subscribers the commits of former hosts of agents, before the agents act here.
        """
        super().__init__("ikigai-rebalancer", threads, host.clock)
        self._store, self._host, self._journal = store, host, journal
        self._differences = DifferenceWatch(store)
        self._processes, self._log_cache = processes, log_cache
        self._supervision = supervision
        self._drained: list[Future[None]] = []
        self._living: frozenset[str] = frozenset()
        self._on_end, self._publish, self._catch_up = on_end, publish, catch_up
        self.hosts: Sequence[HostRecord] = ()
        """The hosts that ran the agents at the latest look, the latest first."""
        self._resume = False
        self._runs: dict[int, int] = {}  # this host runs the agents of these shards; the epoch of each
        self._rest: float | None = BALANCE
        self._given = float("-inf")  # when shards with agents were last given
        self._partings: list[Parting] = []
        self._leaving: set[int] = set()  # the shards of these that go as a whole
        self._counted: Mapping[int, Living] = {}  # who lived in the shards of this host at the latest count
        self._counted_at: tuple[int, Mapping[int, int]] = (0, {})  # births and deaths, and the shards, by then
        self._count_due = float("-inf")
        self._looked = self._clock.monotonic()
        self._vacant_since: float | None = None  # at every look since then there were shards that nobody has
        host.on_vacancy = self.look_again
        supervision.remote_commands.handle(Move, self._move_as_asked)

    def restore(self, own: Mapping[int, int], balance: float | None, resume: bool) -> None:
        """Begin with the shards that a boot has claimed; call this before `start`.

        Args:
            own: the shards whose agents the boot has restored, each with its epoch.
            balance: seconds between two gifts of shards with agents; None gives these when the host drains only.
            resume: whether to go on with the cut-off turns of agents that are taken later.
        """
        self._runs, self._rest, self._resume = dict(own), balance, resume
        self._serve()
        self._count(own)

    def run(self) -> None:
        self._look_in_time()
        super().run()

    def close(self, timeout: float | None = None) -> None:
        """End the thread. Waiting callers get `SystemClosed`."""
        super().close(timeout)
        for parting in self._partings:
            parting.go.refuse(SystemClosed("The system was closed before the agents had gone."))
        for drained in self._drained:
            drained.settle(SystemClosed("The system was closed before it had given all agents away."))

    def lives(self, host: str | None) -> bool:
        """Return whether a host was alive at the latest look. Reads nothing."""
        return host in self._living

    def look_again(self) -> None:
        """Schedule a look at the shards soon: another host may have given one. Never waits."""
        self.add(RefusableTask(self._look))

    def drain(self, within: float | None = None) -> Future[None]:
        """Give all shards away, and take no more.

        The future is settled when none is left, or after ``within`` seconds. It raises `NoHost` when no other host
        takes shards, for example because all hosts drain.
        """
        drained: Future[None] = Future()

        def begin() -> None:
            try:
                self._journal.perform(Drain(self._host.id))
            except IkigaiError as error:
                drained.settle(error)
            else:
                self._drained.append(drained)
                if within is not None:
                    self.after(within, lambda: drained.settle(None))
                self._look()

        self.add(RefusableTask(begin, drained.settle))
        return drained

    def _move_as_asked(self, move: Move, caller: RemoteCaller) -> None:
        """Carry out a remote command to move an agent and its descendants. Never waits.

        ``caller`` gets the answer after the move, or the error.
        """
        self.add(RefusableTask(lambda: self._prepare_move(caller.key.agent, move.host, caller), caller.settle))

    def on_failure(self, error: IkigaiError) -> None:
        if isinstance(error, Fenced):
            self._on_end(error)
        else:  # it is looked at again soon
            super().on_failure(error)

    def _look_in_time(self) -> None:
        """Look at the shards if the latest look is too old, and schedule the next look."""
        if self._looked + LOOK <= self._clock.monotonic():
            self._looked = self._clock.monotonic()
            self.post(RefusableTask(self._look))
        self.after(max(0.0, self._looked + LOOK - self._clock.monotonic()), self._look_in_time)

    def _look(self) -> None:
        self._looked = self._clock.monotonic()
        shares = self._claim(self._shares())
        for shard in self._runs.keys() - shares.own.keys():
            del self._runs[shard]
        self._serve()
        if taken := [shard for shard, epoch in shares.own.items() if self._runs.get(shard) != epoch]:
            self._take(taken, shares.own)
        self._part(lambda pair: pair.until <= self._looked)
        self._seek(shares)
        self._count(shares.own)
        self._balance(shares)
        if self._drained:
            self._settle_drained(self._shares())

    def _claim(self, shares: Shares) -> Shares:
        """Claim free shards, if there are any and this host may; return the shares after that."""
        if not shares.vacant:
            self._vacant_since = None
        elif any(member.host == self._host.id and not member.draining for member in shares.members):
            self._vacant_since = self._looked if self._vacant_since is None else self._vacant_since
            self._host.claim(self._looked - self._vacant_since)
            return self._shares()
        return shares

    def _settle_drained(self, shares: Shares) -> None:
        """Settle the futures of a drain when this host has no shard, or when no other host can take its shards."""
        stuck = is_stuck(self._host.id, shares.members)
        if shares.own and not stuck:
            return
        end = NoHost("No other host is left that could take the agents. Start one, or end this one.") if stuck else None
        while self._drained:
            self._drained.pop().settle(end)

    def _shares(self) -> Shares:
        seen, hosts = self._store.read(lambda tx: (shares(tx, self._host.id), open_hosts(tx)))
        self._living = frozenset(member.host for member in seen.members)
        if self._host.id in self._living:  # else this one has ended
            for event in host_events(self.hosts, hosts):
                if isinstance(event, HostEnded):
                    self._publish(event)
            for difference in self._differences.compare(hosts):
                self._publish(difference)
        self.hosts = hosts
        return seen

    def _take(self, shards: Sequence[int], epochs: dict[int, int]) -> None:
        """Begin to run the agents of shards that this host has just claimed."""
        clear_left_behind(self._store, self._host.id, shards)
        self._serve(shards)
        with everything_stays():
            self._begin(survey(self._store, self._host.id, shards))
        self._runs.update((shard, epochs[shard]) for shard in shards)

    def _serve(self, new: Iterable[int] = ()) -> None:
        """Allow the agents of this host's shards to be woken, except in shards that it is about to give away."""
        self._processes.serve_shards({*self._runs, *new} - self._leaving)

    def _count(self, own: Mapping[int, int], *, fresh: bool = False) -> Mapping[int, Living]:
        """Return the numbers of living agents by shard, counted again if they may have changed.

        The count reads an entry of an index for each agent, so it is limited in rate, unless the host has other shards
        now.

        Args:
            own: the shards, each with its epoch.
            fresh: whether the number of turns matters, too.
        """
        changes, began = self._processes.changes, self._clock.monotonic()
        before, shards = self._counted_at
        if own != shards or ((fresh or changes != before) and began >= self._count_due):
            self._counted = self._store.read(lambda tx: living_in(tx, own))
            self._counted_at = changes, dict(own)
            ended = self._clock.monotonic()
            self._count_due = ended + PACE * (ended - began)
        return self._counted

    def count(self) -> Living:
        """Return how many agents this host runs, and how many of them work, by the latest count."""
        return Living(sum(load.agents for load in self._counted.values()), self._processes.working())

    def _begin(self, survey: Survey) -> None:
        """Make the actors of surveyed agents that have no actor here."""
        new = [origin for origin in survey.restored if self._processes.get(origin.uuid) is None]
        for origin in new:
            self._log_cache.forget(origin.uuid)  # another host may have written since it was read here
        remaining = survey._replace(restored=new)
        self._catch_up(frozenset(origin.uuid for origin in new))
        left = left_cut_off(remaining, self._resume)
        leave_cut_off(self._store, self._host.id, left, self._clock.now_ms())
        self._processes.restore(remaining)
        self._processes.go_on(remaining, left)  # before commands that wait for the end of a turn, and would close it
        self._supervision.take_over(remaining)
        if new:
            logger.info("Host %s runs %s more agents", self._host.name, len(new))

    def _balance(self, shares: Shares) -> None:
        """Give away the shards of this host that exceed its share."""
        if not may_give(self._host.id, shares.members):
            return
        now = self._clock.monotonic()
        moves = self._rest is not None and now - self._given >= self._rest and not self._leaving
        if moves:
            self._given = now
        living = self._count(shares.own, fresh=True)
        counted = {shard: load for shard, load in living.items() if shard not in self._leaving}
        empty: dict[str, list[int]] = {}
        for gift in gifts(self._host.id, shares.members, counted, moves):
            if not counted[gift.shard].agents:
                empty.setdefault(gift.to, []).append(gift.shard)
                continue
            self._leaving.add(gift.shard)
            self._serve()
            try:
                agents = self._agents_in((gift.shard,))
            except IkigaiError:  # the next look gives it
                self._leaving.discard(gift.shard)
                self._serve()
                raise
            self._let_finish(agents, RefusableTask(partial(self._give, (gift.shard,), gift.to)))
        for to, shards in empty.items():
            self._give(shards, to)

    def _let_finish(self, agents: Collection[str], go: RefusableTask) -> None:
        """Call ``go``, which gives agents away, once their tools and requests have ended, or after a lease."""
        parting = Parting(agents, self._clock.monotonic() + self._host.lease, go)
        self._partings.append(parting)
        for uuid in agents:
            self._processes.finish(uuid, partial(self.add, RefusableTask(partial(self._finished, parting, uuid))))
        self._part(lambda parting: not parting.busy)

    def _finished(self, parting: Parting, uuid: str) -> None:
        parting.busy.discard(uuid)
        self._part(lambda parting: not parting.busy)

    def _part(self, due: Callable[[Parting], bool]) -> None:
        """Carry out the moves of agents that are due."""
        for parting in [parting for parting in self._partings if due(parting)]:
            self._partings.remove(parting)
            self._leave(parting.agents)
            parting.go.do()

    def _give(self, shards: Sequence[int], to: str) -> None:
        """Give shards to a host. Those that have no agents go together, in one transaction."""
        self._leaving.difference_update(shards)
        for shard in shards:
            self._runs.pop(shard, None)  # if it cannot be given, the next look takes it again
        self._serve()
        self._leave(self._agents_in(shards))
        try:
            given_agents: GivenAgents = self._journal.perform(
                GiveShards(tuple(shards), self._host.id, to, self._processes.uuids)
            )
        except StoreConflict as error:
            logger.info("%s", error)
        else:
            self._leave(given_agents.agents)
            if given_agents.living:  # the host that has got them reports the new numbers first
                self._given = self._clock.monotonic()
        if self._drained and not self._leaving:
            self.look_again()

    def _prepare_move(self, agent: str, to: str, caller: RemoteCaller) -> None:
        """Prepare the move of an agent and its descendants to a host; ``caller`` gets an error if they cannot move."""
        try:
            taker = self._store.read(lambda tx: find_taker(tx, to)).id
            unit = CarryOut(caller.key, MoveBranch(agent, self._host.id, taker), None, self._clock.now_ms())
            if taker == self._host.id:
                caller.settle(None)
                return
            self._store.read(lambda tx: check_movable(tx, agent, self._host.id))
            branch = self._branch(agent)
        except IkigaiError as error:  # if another host has the agent now, that one finds the row
            caller.settle(error)
        else:
            self._let_move(agent, branch, unit, caller.settle, lambda: caller.committed(None))

    def _seek(self, shares: Shares) -> None:
        """Let branches move in which turns wait for hooks or programs, to hosts that have these."""
        if not (waiting := self._processes.lacking()):
            return
        offers = self._store.read(offers_of_hosts)

        def taker(agents: Sequence[str]) -> str | None:
            return host_with(self._processes.needs(agents), self._host.id, shares.members, offers)

        sought = [agent for agent in waiting if taker([agent]) is not None][:SOUGHT_AT_ONCE]
        tops = self._store.read(lambda tx: {movable_top(tx, agent, self._host.id) for agent in sought})
        branches = {top: self._branch(top) for top in sorted(filter(None, tops))}
        for top, branch in sorted(branches.items(), key=lambda item: -len(item[1])):  # one below another goes with it
            leaving = set[str]().union(*(parting.agents for parting in self._partings))
            if leaving.isdisjoint(branch) and (to := taker(branch)) is not None:
                logger.info("Agent %s moves to host %s, which has what its turn waits for", top, to)
                self._let_move(top, branch, MoveBranch(top, self._host.id, to), _not_moved, lambda: None)

    def _let_move(
        self,
        agent: str,
        branch: Sequence[str],
        unit: Unit,
        refuse: Callable[[IkigaiError], object],
        moved: Callable[[], object],
    ) -> None:
        """Let a branch finish what runs outside, and commit its move then."""
        go = RefusableTask(partial(self._move, agent, unit, refuse, moved, branch), refuse)
        self._let_finish(self._with_actors(branch), go)

    def _move(
        self,
        agent: str,
        unit: Unit,
        refuse: Callable[[IkigaiError], object],
        done: Callable[[], object],
        left: Sequence[str],
    ) -> None:
        """Commit the move of an agent and its descendants, after the actors of the agents ``left`` have ended."""
        try:
            self._leave(self._branch(agent))
            moved = self._journal.perform(unit)
            self._leave(moved)
        except IkigaiError as error:
            self._take_anew()
            refuse(error)
            return
        if not set(left) <= set(moved):  # another supervisor has adopted some of them
            self._take_anew()
        done()

    def _take_anew(self) -> None:
        """Have the next look read the agents of this host again, to find those without an actor."""
        self._runs.clear()
        self.look_again()

    def _branch(self, agent: str) -> list[str]:
        return self._store.read(lambda tx: branch_here(tx, agent, self._host.id))

    def _agents_in(self, shards: Collection[int]) -> list[str]:
        return self._store.read(lambda tx: agents_in(tx, shards, self._processes.uuids()))

    def _with_actors(self, agents: Iterable[str]) -> list[str]:
        return [uuid for uuid in agents if self._processes.get(uuid) is not None]

    def _leave(self, agents: Iterable[str]) -> None:
        for uuid, left in [(uuid, self._processes.leave(uuid)) for uuid in agents]:
            try:
                left.get(timeout=LEAVING)
            except TimedOut:  # whatever it still does is fenced
                logger.error("Agent %s could not be stopped to leave it to another host", uuid)
