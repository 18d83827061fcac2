"""The bell: notifies the processes that follow hosts of a commit of a host, after the commit.

A NOTIFY within a transaction takes a lock of the whole server that is held through COMMIT: the commits of all hosts, of
all databases, then wait for one another. The bell sends it on a separate connection, once for all commits of a few
milliseconds. A ring is a hint. It is lost when the connection breaks, so the processes that follow a host also poll
every few seconds.
"""

import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping

import psycopg

from ikigai_actors.actors.service import Service
from ikigai_actors.errors import StoreError, SystemClosed
from ikigai_actors.store.postgres.hints import NOTIFY, Hints, secret_of
from ikigai_actors.store.postgres.trips import Connection

TOGETHER = 0.005
"""Seconds within which several notifications are merged into one."""


class Bell(Service):
    """A thread that sends notifications. The first ring starts it, and closing sends the remaining notifications."""

    def __init__(self, connect: Callable[[], Connection], hints: Hints) -> None:
        super().__init__("ikigai-bell")
        self._connect, self._hints = connect, hints
        self._rings: dict[str, set[str] | None] = {}  # by audience: the agents that it concerns, None for any
        self._connection: Connection | None = None

    def ring(self, audiences: Iterable[str], agents: Collection[str] | None) -> None:
        """Queue a notification of these audiences about these agents, by uuid; None for any agent. Never waits."""
        with self._changed:
            for audience in audiences:
                known = self._rings.setdefault(audience, set())
                self._rings[audience] = None if agents is None or known is None else known | set(agents)
            self._changed.notify()
        self.start()

    def run(self) -> None:
        while rings := self._rung():
            with contextlib.suppress(StoreError, SystemClosed, psycopg.Error):  # the next ring tries again
                self._notify(rings)
        self._give_up()

    def _rung(self) -> Mapping[str, Collection[str] | None]:
        """Wait for a ring, and a moment more for further rings.

        Return the agents by audience; empty when the bell was stopped and has sent all notifications.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._rings or self._stopped)
            self._changed.wait_for(lambda: self._stopped, TOGETHER)
            rung, self._rings = self._rings, {}
            return rung

    def _notify(self, rings: Mapping[str, Collection[str] | None]) -> None:
        try:
            if self._connection is None:
                self._connection = self._connect()
                self._connection.autocommit = True
                # Else the lock of all NOTIFYs is held until the server's disk has a commit that holds nothing.
                self._connection.execute(b"SET synchronous_commit = off")
                self._hints.learn(secret_of(self._connection))
            channels = self._hints.channels(lambda: "")
            for audience, agents in rings.items():
                self._connection.execute(NOTIFY, (channels.name(audience), channels.payload(agents)))
        except BaseException:
            self._give_up()
            raise

    def _give_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
