"""Elsewhere: what a host hears of agents that other hosts run, as long as it awaits something of them.

    elsewhere = Elsewhere(store, clock, publisher.publish, waits, check_open, threads)
    elsewhere.agents.actor(uuid).told(on.Prompt("tea", future))

Rows alone are looked at, on a thread of its own: whenever a host rings, and every few seconds since a ring may get
lost. While nothing is awaited it reads nothing.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ikigai_actors.actors.clock import Clock
from ikigai_actors.actors.threads import Threads
from ikigai_actors.agent.subscriptions import Event
from ikigai_actors.agent.waits import Waits
from ikigai_actors.errors import StoreError, SystemClosed
from ikigai_actors.store.base import Store
from ikigai_actors.store.rounds import Rounds
from ikigai_actors.system.attached.client import Client
from ikigai_actors.system.attached.follower import Follower, News
from ikigai_actors.system.attached.remote_agents import RemoteAgents

logger = logging.getLogger(__name__)


class Elsewhere:
    """Looks after what a host awaits of agents that others run."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        publish: Callable[[Event], object],
        waits: Waits,
        check_open: Callable[[], None],
        on_commit: Callable[[Any], object],
        threads: Threads,
    ) -> None:
        """Put the parts together; `start` starts the thread.

        Args:
            store: the database.
            clock: tells the times that are stored.
            publish: takes events for subscribers.
            waits: those of the host, which may concern agents of others.
            check_open: raises `SystemClosed` when the host is closed.
            on_commit: takes the answer of each unit written here that concerns others.
            threads: makes the thread.
        """
        self._follower, self._waits, self._clock = Follower(store, []), waits, clock
        self.agents = RemoteAgents(store, Client(store, clock, on_commit), check_open, publish, self._follower.follow)
        """What stands for the actors of agents that others run."""
        self._closed = False
        self._watch = store.watch(hosts=True)
        self._thread = threads.thread(self._run, "ikigai-following")

    def start(self) -> None:
        """Start the thread."""
        self.agents.hosts = self._follower.begin(self._clock.now_ms()).hosts
        self._thread.start()

    def close(self) -> None:
        """End the thread; what is awaited ends with `SystemClosed`."""
        self._closed = True
        self._watch.close()
        if self._thread.ident is None:
            self._watch.wait(0)  # it was not begun, and gives nothing back
        else:
            self._thread.join()
        self.agents.end(SystemClosed("The system was closed before this was answered."))

    def _run(self) -> None:
        rounds = Rounds(self._watch, self._clock)
        while True:
            among = rounds.wait()
            if self._closed:
                break
            try:
                self._look(among)
            except StoreError as error:  # it is looked at again soon
                logger.info("What other hosts do could not be looked at: %s", error)
                rounds.failed()
            except Exception:  # a defect of ours: the next look may do
                logger.exception("What other hosts do could not be looked at")
            else:
                rounds.done(among)
        while self._watch.wait():  # until it is closed: then it gives its connection back
            pass

    def _look(self, among: frozenset[str] | None) -> None:
        if self.agents.waits_for(among):
            self._follower.keep(self.agents.awaited())
            self.agents.look(lambda: self._news(among))
        if len(self._waits):
            self._waits.look_again()

    def _news(self, among: frozenset[str] | None) -> News:
        """What is new. This host lives, so there is one, whatever a look finds while leases are late."""
        news = self._follower.news(among)
        return replace(news, hosts=news.hosts or self.agents.hosts)
