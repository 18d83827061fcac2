"""The events of all agents in reach, one after the other. Agents that are born there are included.

    feed = BranchFeed(access, since)            # on a thread: it reads the database
    while feed.prepare(): ...                   # on a thread, too
    event = feed.pop()
    await feed.arrival()                        # costs no thread
    feed.position                               # a later feed goes on here

A feed of a branch has a list of the branch's agents, so the position of the feed does not disclose other agents. When a
message of a followed agent reports a birth, the feed follows the child from its first own message on.
"""

from typing import Any

from ikigai_actors.actors.futures import Future
from ikigai_actors.errors import BadInput
from ikigai_actors.reach.access import Access
from ikigai_actors.records.agents.registry import Died
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.system.event_feed import EventFeed

MOST_FOLLOWED = 1_000
"""The most living agents of a feed: its position names each."""


class BranchFeed:
    """The events of the agents in reach, in order. Use it on one thread at a time."""

    def __init__(self, access: Access, since: str | None) -> None:
        """Begin now, or after a position.

        Raises `BadInput` for an invalid position, and if there are too many living agents.
        """
        self._access = access
        self._known = self._living()
        self._feed = self._opened(since)

    @property
    def position(self) -> str:
        """Return the position of this feed.

        A later feed that begins there continues after the latest returned event.
        """
        return self._feed.position

    @property
    def is_over(self) -> bool:
        """Return whether the feed will get no more events."""
        return self._feed.is_over

    @property
    def has_ready(self) -> bool:
        """Return whether `pop` has an event to give."""
        return self._feed.has_ready

    def arrival(self) -> "Future[None]":
        """Return a future that is settled when `prepare` has work to do."""
        return self._feed.arrival()

    def prepare(self) -> bool:
        """Make received events ready; return whether there were any. May read the database."""
        return self._feed.prepare()

    def pop(self) -> Message | Died:
        """Return the next event that is ready. After a birth call `widen`."""
        event: Message | Died = self._feed.pop()
        return event

    def must_widen(self, event: Message | Died) -> bool:
        """Return whether an event reports a birth, and the feed does not include the child yet."""
        if self._access.is_whole or not isinstance(event, Message) or event.kind != Kind.FORK:
            return False
        child = event.data.get("child")
        return isinstance(child, str) and child not in self._known

    def widen(self) -> None:
        """Follow all agents that can be reached now, from the feed's position on. Reads the database."""
        self._known |= self._living()
        position, former = self._feed.position, self._feed
        self._feed = self._opened(position)
        former.close()

    def close(self) -> None:
        """Stop receiving events."""
        self._feed.close()

    def _opened(self, since: str | None) -> EventFeed[Any]:
        agents = None if self._access.is_whole else [*self._known]
        return self._access.system.events(agents=agents, only=(Message, Died), since=since)

    def _living(self) -> set[str]:
        """Return the uuids of the living agents in reach. Raises `BadInput` if there are too many."""
        records, more = self._access.below(None, MOST_FOLLOWED + 1, False)
        if more or len(records) > MOST_FOLLOWED:
            raise BadInput(
                f"More than {MOST_FOLLOWED:,} agents live there, and a feed follows no more: follow one branch by "
                "under=, or let ikigai subscription send what you want to know."
            )
        return {record.uuid for record in records}
