"""Following: the one loop by which a process follows a database that other processes write, too.

    following = FollowingLoop(store, clock, threads, waits, remote=remote, on_others=look_at_rows)
    following.start()
    remote.actor(uuid).deliver(on.Prompt("tea", future))   # the loop settles the future

Each process has one thread and one watch, which is one listening connection. The kinds of processes:

    process                 hints come from    logs that the process reads
    host that shares none   clients            none: no other process runs agents
    host that joined        clients, hosts     those of agents that are waited for here; all, if it has subscribers
    attached process        clients, hosts     those of all agents, for its subscribers

The states of the loop, and what it does with a hint (`ikigai_actors.store.poll_schedule`):

    waiting         until a hint comes, a command is posted, or `HEARTBEAT` seconds are over; a host that shares with
                    nobody waits without a limit
    telling         in a host, before any other read: `on_others` passes the requests of other processes to the actors
                    of this host
    asking          the posted commands to agents of other hosts are written (`RemoteAgents.carry_out`)
    looking         one read of the logs of the agents that the hint names
    looking at all  reads of all logs, some at a time; between two reads, hints and commands that have come are served
    closing         the commands posted so far are written, and nothing more is read; the watch's connection is closed,
                    and the thread ends

The loop guarantees the following:

- A look is a read of the rows in one snapshot, and continues where the look before it has ended. So a hint that comes
  twice, late or not at all repeats no message and skips none.
- Subscribers get the commits of a look before any future is settled by these commits.
- While a subscriber wants replies in progress, this process notes that in the database regularly, for the hosts. Each
  look reads the pieces that hosts have written (`ikigai_actors.records.messages.pieces`), and the messages, which come
  first.
- All callers that wait for an agent get the messages of a look (see `ikigai_actors.system.remote.agents`).
- This thread alone reads news. A thread that asks agents of others takes turns with it (`RemoteAgents`).

A lost hint costs time, and no message: a host looks for work at the next heartbeat, and all agents are looked at every
few seconds, or less often if that takes long. A broken watch connects again within a second, which counts as a hint
about all agents. A read that failed changes no place: it is reported as trouble, and the next look is at all agents.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from ikigai_actors.actors.clock import Clock
from ikigai_actors.actors.service import Service
from ikigai_actors.actors.threads import Threads
from ikigai_actors.agent.waits import Waits
from ikigai_actors.errors import IkigaiError, ProgramOutdated
from ikigai_actors.store.base import Store
from ikigai_actors.store.hosts.rows import HostRecord
from ikigai_actors.store.poll_schedule import HEARTBEAT, NOBODY, PollSchedule
from ikigai_actors.system.remote.agents import RemoteAgents
from ikigai_actors.system.remote.follower import News

S = TypeVar("S")

logger = logging.getLogger(__name__)

AT_A_TIME = 2_000
"""The number of agents that are read together when all are read."""


class FollowingLoop(Service):
    """Reads the commits of other processes, on a thread of its own, and passes the news on."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        threads: Threads,
        waits: Waits,
        *,
        remote: RemoteAgents | None = None,
        on_others: Callable[[frozenset[str] | None], object] | None = None,
        tell: Callable[[News, Sequence[HostRecord]], object] = lambda news, before: None,
        on_trouble: Callable[[str | None], object] = lambda reason: None,
        on_outdated: Callable[[ProgramOutdated], object] = lambda error: None,
        hears_all: Callable[[], bool] = lambda: True,
        hears_replies: Callable[[], bool] = lambda: False,
        is_used: Callable[[], bool] = lambda: False,
        is_here: Callable[[str], bool] = lambda uuid: False,
    ) -> None:
        """Make the loop, and begin to listen for hints; `start` starts the thread.

        Args:
            clock: gives the time, and measures how long a look takes.
            waits: the waits of this process, which may be for agents that others run.
            remote: the agents that others run; None if no other process runs agents.
            on_others: for a host: takes the uuids of the agents for which it may have work, None for any agent.
            tell: takes the news, and the hosts that ran the agents at the previous look.
            on_trouble: takes the reason when a look has failed, and None after a look that has not.
            on_outdated: takes the reason when this program must not use the database any more.
            hears_all: whether somebody wants the events of all agents.
            hears_replies: whether somebody wants to see replies in progress, too.
            is_used: whether hosts must know of this process even if nobody wants to see replies.
            is_here: whether this process runs an agent, and so publishes its commits itself.
        """
        super().__init__("ikigai-following", threads)
        self._hears_all, self._hears_replies, self._is_here = hears_all, hears_replies, is_here
        self._is_used = is_used
        self._well = True  # whether the latest look was done
        self._clock, self._waits, self._remote, self._on_others = clock, waits, remote, on_others
        self._tell, self._on_trouble, self._on_outdated = tell, on_trouble, on_outdated
        self._watch = store.watch(hosts=remote is not None)
        if remote is not None:
            remote.wake = self._watch.wake
        self._polls = PollSchedule(self._watch, clock)

    def start(self) -> None:
        """Start the thread. Commits before this are no news. Raises `StoreError`."""
        if (remote := self._remote) is not None:
            remote.refresh(lambda: remote.follower.begin(self._clock.now_ms()), self._tell)
        super().start()

    def follow_as_heard(self) -> None:
        """Follow all agents if a subscriber wants their events, else those with waiting callers.

        Replies in progress are followed if a subscriber wants them. Raises `StoreError`.
        """
        if self._remote is not None:
            self._remote.follow(self._hears_all, self._clock.now_ms())
            self._remote.listen(self._wants, self._clock.monotonic())

    def _wants(self) -> tuple[bool, bool]:
        """Return whether this process listens at all, and whether a subscriber wants replies in progress."""
        replies = self._hears_all() and self._hears_replies()
        return self._is_used() or replies, replies

    def begin_subscription(self, begin: Callable[[], S]) -> S:
        """Call ``begin``, which makes a subscription, between two looks; return the subscription.

        The first subscriber gets replies in progress from their beginnings.
        """
        if (remote := self._remote) is None:
            return begin()
        with remote.between_looks():
            if not self._hears_replies():
                remote.follower.listen_from_the_beginning()
                self._polls.asked = True
            subscription = begin()
        remote.wake()
        return subscription

    def catch_up(self, agents: frozenset[str]) -> None:
        """Publish what former hosts of these agents have committed, before they act here. Raises `StoreError`."""
        if (remote := self._remote) is not None and remote.follower.follows_all and agents:
            self._read(remote, partial(remote.follower.catch_up, agents))

    def stop(self) -> None:
        super().stop()
        self._watch.close()

    def close(self, timeout: float | None = None) -> None:
        """End the thread."""
        super().close(timeout)
        if not self.started:
            self._watch.wait(0)  # it was not begun, and gives nothing back

    def run(self) -> None:
        """Follow the database until the loop is closed; run by the thread."""
        timeout = HEARTBEAT if self._remote is not None else None
        while True:
            agents, for_hosts = self._polls.wait(timeout)
            if self._stopped:
                break
            self._well = self.attempt(partial(self._follow, agents, for_hosts))
            if self._well:
                self._polls.done(agents)
                self._on_trouble(None)
            self._waits.look_again()
        if self._remote is not None:
            self._remote.carry_out()
            if self._well:  # else the time runs out by which this process listens
                self._remote.listen(lambda: (False, False), self._clock.monotonic())
        self._watch.close()
        self._watch.wait(0)  # gives its connection back

    def on_failure(self, error: IkigaiError) -> None:
        super().on_failure(error)  # it is looked at again soon
        self._polls.failed()
        if isinstance(error, ProgramOutdated):
            self._on_outdated(error)
        else:
            self._on_trouble(str(error))

    def _follow(self, agents: frozenset[str] | None, for_hosts: frozenset[str] | None) -> None:
        self._tell_host(for_hosts)
        self.follow_as_heard()
        asked = self._remote is not None and self._remote.carry_out()
        if agents != NOBODY or not asked:  # else only the commands have woken it
            self._look(agents)

    def _tell_host(self, for_hosts: frozenset[str] | None) -> None:
        if self._on_others is not None and for_hosts != frozenset():
            self._on_others(for_hosts)

    def _look(self, agents: frozenset[str] | None) -> None:
        """Read and pass on the news of these agents, or of all for None, as far as they are followed."""
        if (remote := self._remote) is None:
            return
        follows_all = remote.follower.follows_all
        if agents is None and follows_all:
            self._look_at_all(remote)
            return
        awaited = remote.awaited()
        concerned = None if agents is None else agents | self._urgent(awaited)
        if follows_all and concerned:
            concerned = frozenset(uuid for uuid in concerned if uuid in awaited or not self._is_here(uuid))
            if not concerned:
                return
        if follows_all or (awaited if concerned is None else awaited & concerned):
            self._read(remote, partial(remote.follower.news, concerned))

    def _look_at_all(self, remote: RemoteAgents) -> None:
        """Read the news of all agents in parts; between two parts, agents that hints name are read first."""
        self._read(remote, partial(remote.follower.page, AT_A_TIME))
        while remote.follower.is_midway and not self._stopped:
            named, for_hosts = self._polls.meanwhile()
            self._tell_host(for_hosts)
            remote.carry_out()
            if concerned := self._urgent(remote.awaited()).union(named or ()):
                self._read(remote, partial(remote.follower.news, concerned))
                self._waits.look_again()
            self._read(remote, partial(remote.follower.page, AT_A_TIME))

    def _urgent(self, awaited: frozenset[str]) -> frozenset[str]:
        """Return the awaited agents to read first after a hint that named no agent; else none."""
        return awaited if self._polls.asked else NOBODY

    def _read(self, remote: RemoteAgents, read: Callable[[], News]) -> None:
        def news() -> News:
            news = read()
            if self._on_others is None:
                return news
            return replace(news, hosts=news.hosts or remote.hosts)  # this one lives, whatever its late lease says

        remote.refresh(news, self._tell)
