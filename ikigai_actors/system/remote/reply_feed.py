"""The reply feed: finds the new pieces of replies in progress in the rows of other hosts. Pure.

    feed = ReplyFeed()
    feed.behind(host)                               # read the rows of each host after this one
    feed.follow({host: rows}, messages, hosts)      # and this is new: pieces, and agents whose reply is cut off

Guarantees, given that rows and messages were read at one moment (`ikigai_actors.records.messages.pieces`):

- A row is published once, in the order of its reply, and none after the message that ends the reply.
- A reply that ends without such a message is *cut off*: another one of the agent begins, or its host is gone. The cut
is published before any other event of the agent; the pieces that were published are void.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from ikigai_actors.records.messages.messages import BOUNDARIES, Message
from ikigai_actors.records.messages.pieces import PiecesRow, ReplyPiece


class ReplyNews(NamedTuple):
    """The new pieces of one agent's reply, or the fact that the reply was cut off."""

    agent: str
    """The uuid."""
    cut: bool
    """Whether what was published before counts no more: that reply is cut off."""
    pieces: Sequence[ReplyPiece] = ()
    at: int = 0
    """The message that the reply continues."""


class _Reply(NamedTuple):
    host: str
    number: int


class ReplyFeed:
    """Finds the new pieces of replies in progress in the rows of other hosts. For one thread at a time."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._open: dict[str, _Reply] = {}

    def behind(self, host: str) -> int:
        """Return the number of a host's latest row that was published; 0 for none."""
        return self._places.get(host, 0)

    def follow(
        self, rows: Mapping[str, Sequence[PiecesRow]], messages: Iterable[Message], dead: Iterable[str]
    ) -> list[ReplyNews]:
        """Take rows and messages read at one moment; return the news to publish after the messages.

        Args:
            rows: the new rows of each host that lives, by its id.
            messages: the new messages of all agents that are followed.
            dead: the agents that have died.
        """
        for message in messages:
            if message.kind in BOUNDARIES:
                self._open.pop(message.agent_uuid, None)
        for uuid in dead:
            self._open.pop(uuid, None)
        self._places = {host: unread[-1].id if unread else self.behind(host) for host, unread in rows.items()}
        news = self.cut([uuid for uuid, reply in self._open.items() if reply.host not in rows])
        for host, unread in rows.items():
            for row in unread:
                reply = _Reply(host, row.reply)
                known = self._open.get(row.agent, reply)
                self._open[row.agent] = reply
                news.append(ReplyNews(row.agent, known != reply, row.pieces, row.at))
        return news

    def cut(self, agents: Collection[str]) -> list[ReplyNews]:
        """Return the news that the published replies of these agents are cut off, because other hosts run them now."""
        return [ReplyNews(uuid, True) for uuid in agents if self._open.pop(uuid, None) is not None]
