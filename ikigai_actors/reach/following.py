"""Follows the commits of hosts on the calling thread, without a system.

    with Client.open("team.db") as client, commits_of(client, [kid.uuid]) as feed:
        for news in feed:                       # messages, deaths and hosts, each time something may be new
            ...

Commands that only read a database use this module; attached programs use `ikigai_actors.reach.news`.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from ikigai_actors.errors import TurnInterrupted
from ikigai_actors.store.base import Watch
from ikigai_actors.store.hosts.rows import HostRecord
from ikigai_actors.store.poll_schedule import HEARTBEAT
from ikigai_actors.system.remote.follower import Follower, News, watching

if TYPE_CHECKING:
    from ikigai_actors.system.remote.client import Client
    from ikigai_actors.system.remote.turn import RemoteTurn, TurnEnd

NO_HOST = "No process runs these agents"


@contextmanager
def commits_of(client: "Client", agents: Sequence[str] | None = None) -> "Iterator[CommitFeed]":
    """Follow the commits of some agents, by uuid, for the time of a block; None follows all agents."""
    with watching(client._store) as watch:  # before the first look, so that nothing is missed
        yield CommitFeed(Follower(client._store, agents, attached=True), watch, client.now_ms())


def prompted_turn(agent: str, mail: int) -> "RemoteTurn":
    """Return the turn that a prompt will open, by the number of its mail.

    A feed must have begun before the prompt was sent.
    """
    from ikigai_actors.system.remote.turn import RemoteTurn

    return RemoteTurn(agent, prompt=mail)


class CommitFeed:
    """Follows the commits of some agents, or of all agents. Any method may raise `StoreError`."""

    def __init__(self, follower: Follower, watch: Watch, now: int) -> None:
        self._follower, self._watch = follower, watch
        begun = follower.begin(now)
        self.hosts: Sequence[HostRecord] = begun.hosts
        """The hosts that ran the agents at the last reading, the latest first."""
        self._deserted = begun.deserted

    @property
    def host(self) -> HostRecord | None:
        """Return the latest host at the last reading; None if there was none."""
        return next(iter(self.hosts), None)

    def place(self, agent: str) -> int:
        """Return the position of an agent's latest message that the feed has returned, or that came before it."""
        return self._follower.place(agent)

    def news(self) -> News:
        """Return the news since the last reading, and remember the present hosts."""
        news = self._follower.news()
        self.hosts, self._deserted = news.hosts, news.deserted
        return news

    def __iter__(self) -> "Iterator[News]":
        """Iterate over the news of each reading, without end."""
        while True:
            self.wait()
            yield self.news()

    def wait(self, timeout: float = HEARTBEAT) -> None:
        """Wait until there may be news, or this many seconds."""
        self._watch.wait(timeout)

    def await_turn(
        self, turn: "RemoteTurn", timeout: float | None, on_no_host: Callable[[], object]
    ) -> "TurnEnd | None":
        """Wait for the end of a turn.

        Args:
            turn: the turn. The feed must follow its agent.
            timeout: seconds to wait; None waits forever.
            on_no_host: called when the host goes away before the turn has begun; the wait goes on.

        Returns:
            The outcome; None if the time was over.

        Raises:
            TurnInterrupted: the host went away in the middle of the turn.
        """
        until = float("inf") if timeout is None else monotonic() + timeout
        while True:
            before = self._deserted
            if (end := turn.follow(self.news())) is not None:
                return end
            if turn.begun and self._deserted:
                raise TurnInterrupted(f"{NO_HOST} any more, so the turn was cut off. Start ikigai, and /resume.")
            if self._deserted and not before:
                on_no_host()
            if (left := until - monotonic()) <= 0:
                return None
            self.wait(min(HEARTBEAT, left))
