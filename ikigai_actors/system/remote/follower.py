"""The follower: reads from the rows what other processes commit.

    watch = store.watch(hosts=True)             # before the first look, so that nothing is missed
    follower = Follower(store)                  # everybody; Follower(store, [uuid]) only these
    follower.begin()
    while True:
        news = follower.news()                  # what was committed since: messages, deaths, the hosts
        watch.wait()

Each look reads, at one moment, the end of each log and the messages since the last look. So no message is missed and
none is published twice, whatever hints come. Messages of one agent are in order; those of several agents are in the
order of their times, which need not be the order of their commits. An agent that is born and dies between two looks is
found by the time of its death. A process that also follows replies in progress (`Follower.listen`) reads their rows at
the same moment as the messages.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from heapq import merge
from typing import TYPE_CHECKING, NamedTuple

from ikigai_actors.records.agents.registry import Died, Renamed, StatusSet
from ikigai_actors.records.log.heads import EVERYBODY, Head, heads, heads_of, readable_section
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.records.messages.pieces import PiecesRow, pieces_behind
from ikigai_actors.store.base import Store, Transaction, Watch
from ikigai_actors.store.hosts.rows import RETURNS, HostRecord, ask_owners, expected_hosts
from ikigai_actors.store.migrations import newest, outdated
from ikigai_actors.system.remote.reply_feed import ReplyFeed, ReplyNews

if TYPE_CHECKING:
    from ikigai_actors.system.host.whereabouts import Whereabouts

logger = logging.getLogger(__name__)

CLOCK_MARGIN = 60_000
"""Milliseconds by which clocks may differ, when times of deaths are compared."""


@dataclass(frozen=True, slots=True)
class News:
    """The news of one look: the messages, deaths, pieces of replies and hosts since the previous look."""

    messages: Sequence[Message]
    died: Sequence[Died]
    turns: Mapping[str, int]
    """The turn in progress of everybody who was looked at, 0 for none; the dead have none.

    Messages, deaths and names of these alone are news, and of each all that is new.
    """
    hosts: Sequence[HostRecord]
    """The hosts that run the agents now, the latest first."""
    renamed: Sequence[Renamed] = ()
    statuses: Sequence[StatusSet] = ()
    replies: Sequence[ReplyNews] = ()
    """The news of replies on their way, after the messages; see `Follower.listen`."""
    expects: bool = False
    """Whether nobody runs the agents now, and hosts may go on by themselves that have just gone."""

    @property
    def deserted(self) -> bool:
        """Whether no host runs the agents, and none is expected to come back soon."""
        return not self.hosts and not self.expects


class _Hosts(NamedTuple):
    owners: Sequence[HostRecord]
    expected: Sequence[HostRecord]


def _ask_hosts(tx: Transaction, check: Callable[[int], object] | None) -> Callable[[], _Hosts]:
    """Queue a query for the hosts; return a function that gets the result.

    ``check`` gets the oldest program version that may read the database.
    """
    owners, least = ask_owners(tx), None if check is None else tx.ask("least_program")

    def hosts() -> _Hosts:
        if check is not None and least is not None:
            [(version,)] = least()
            check(version)
        running = owners()
        return _Hosts(running, () if running else expected_hosts(tx))

    return hosts


class _Look(NamedTuple):
    heads: Sequence[Head]
    sections: Sequence[Sequence[Message]]
    hosts: "_Hosts"
    pieces: Mapping[str, Sequence[PiecesRow]]
    """The news of the replies that each living host receives."""


class Follower:
    """Follows the logs of some agents, or of all. For one thread at a time. Its methods raise `StoreError`."""

    def __init__(self, store: Store, agents: Sequence[str] | None = None, attached: bool = False) -> None:
        """Make a follower; `begin` begins to follow.

        Args:
            store: where their rows are.
            agents: the uuids of the agents to follow; None follows all agents, those born later too.
            attached: whether this process runs no agents. Then a look raises `ProgramOutdated` once a newer program has
                changed the schema so that this program must not use it. A host learns that from its lease.
        """
        self._check = self._refuse_outdated if attached else None
        self.is_told: Callable[[str], int] = lambda uuid: 0
        """Gives the latest message of an agent that others have published already; 0 for none."""
        self.whereabouts: Whereabouts | None = None
        """Of a host: notes where the agents live that each look has found."""
        self._store, self._agents = store, None if agents is None else [*agents]
        self._places: dict[str, int] = {}
        self._told: set[str] = set()
        self._names: dict[str, str | None] = {}
        self._statuses: dict[str, str] = {}
        self._since = 0
        self._gone = 0, 0  # when the latest lease ran out, and when that was seen, in milliseconds since 1970
        self._after = ""  # the latest agent of a page that was not the last one
        self._unseen: set[str] = set()  # those who may come on a later page
        self._replies: ReplyFeed | None = None  # while replies on their way are followed
        self._host = ""  # that of this process, whose replies need not be read

    def begin(self, now: int) -> News:
        """Begin at the present state; return news with the hosts, but without messages. ``now`` in ms since 1970."""
        return self._begin(now, self._agents)

    def _begin(self, now: int, agents: Sequence[str] | None) -> News:
        self._since = now - CLOCK_MARGIN

        def look(tx: Transaction) -> tuple[list[Head], _Hosts]:
            hosts = _ask_hosts(tx, self._check)
            return heads(tx, self._since) if agents is None else heads_of(tx, agents), hosts()

        latest, hosts = self._store.read(look)
        self._places = {head.uuid: head.position for head in latest}
        self._told = {head.uuid for head in latest if head.status == "dead"}
        self._names = {head.uuid: head.name for head in latest}
        self._statuses = {head.uuid: head.status for head in latest}
        turns = {head.uuid: head.turn for head in latest}
        return News((), (), turns, hosts.owners, expects=self._expects(hosts))

    def _expects(self, hosts: _Hosts) -> bool:
        """Whether hosts that have gone only recently may come back, as after a restart of their server."""
        if not hosts.expected:
            return False
        ran_out, now = max((host.lease_until, host.now) for host in hosts.expected)
        if ran_out != self._gone[0]:  # one has renewed meanwhile
            self._gone = ran_out, now
        return now - self._gone[1] < RETURNS

    def follow_all(self, now: int) -> News:
        """Follow all agents; return news as `begin` does. Agents that are followed already keep their places."""
        places, gone = self._places, self._told
        news = self._begin(now, None)
        self._agents = None
        self._places |= places
        self._told = self._told - places.keys() | gone  # a death that nobody has published is news
        return news

    def follow_only(self, agents: Collection[str]) -> None:
        """Follow only these agents, from their present places."""
        self._agents = [*agents]
        self._places = {agent: self._places[agent] for agent in self._agents if agent in self._places}
        self._told, self._names, self._unseen, self._after = set(), {}, set(), ""
        self._statuses = {}

    def listen(self, host: str) -> None:
        """Report replies in progress too, from their beginnings, except those that this process, ``host``, receives."""
        if self._replies is None:
            self._replies, self._host = ReplyFeed(), host

    def listen_from_the_beginning(self) -> None:
        """Report replies in progress from their beginnings again, because no subscriber has got them yet."""
        if self._replies is not None:
            self._replies = ReplyFeed()

    def listen_no_more(self) -> None:
        """Stop following replies in progress."""
        self._replies = None

    @property
    def follows_all(self) -> bool:
        """Whether all agents are followed."""
        return self._agents is None

    def follow(self, agent: str) -> None:
        """Follow one more agent from now on, unless it is followed already."""
        if self._agents is not None and agent not in self._agents:
            self._agents.append(agent)
            for head in self._store.read(lambda tx: heads_of(tx, [agent])):
                self._places[agent] = head.position

    def keep(self, agents: Collection[str]) -> None:
        """Follow only these agents from now on. For a follower of some agents."""
        assert self._agents is not None
        for agent in set(self._agents) - set(agents):
            self._agents.remove(agent)
            self._places.pop(agent, None)

    def place(self, agent: str) -> int:
        """Return the id of an agent's latest message that was reported, or that existed before."""
        return self._places.get(agent, 0)

    def news(self, among: frozenset[str] | None = None) -> News:
        """Return the news since the previous look.

        Args:
            among: the uuids of the agents to look at, as far as they are followed; None for all. Other agents are
                looked at when pieces of their replies have come.
        """
        if among is None and self._agents is None:
            return self.page()
        asked = self._agents if among is None else [u for u in among if self._agents is None or u in self._agents]

        def look(tx: Transaction) -> _Look:
            hosts = _ask_hosts(tx, self._check)
            return self._look(tx, heads_of(tx, asked or ()), hosts())

        self._begin_look()
        return self._news_of(self._store.read(look))

    def _refuse_outdated(self, least: int) -> None:
        if least > newest():
            raise outdated(self._store.location, least)

    def _begin_look(self) -> None:
        if self.whereabouts is not None:
            self.whereabouts.begin_look()

    def catch_up(self, agents: frozenset[str]) -> News:
        """Return the news of agents that this process now runs; their replies in progress are cut off."""
        news = self.news(agents)
        return replace(news, replies=[*news.replies, *(self._replies.cut(agents) if self._replies else ())])

    @property
    def is_midway(self) -> bool:
        """Whether further pages follow the latest `page` before all agents were read."""
        return bool(self._after)

    def page(self, most: int = EVERYBODY) -> News:
        """Return the news of the next part of all agents. After the last part, the first one comes again.

        Args:
            most: the most agents of a part.
        """
        unseen = self._unseen if self.is_midway else self._places.keys() - self._told

        def look(tx: Transaction) -> tuple[_Look, set[str], str]:
            hosts = _ask_hosts(tx, self._check)
            page = heads(tx, self._since, self._after, most)
            left = unseen - {head.uuid for head in page}
            if len(page) == most:
                return self._look(tx, page, hosts()), left, page[-1].uuid
            gone = heads_of(tx, sorted(left)) if left else []  # they died, and their clock is another one
            return self._look(tx, page + gone, hosts()), set(), ""

        self._begin_look()
        looked, self._unseen, self._after = self._store.read(look)
        return self._news_of(looked)

    def _look(self, tx: Transaction, heads: Sequence[Head], hosts: _Hosts) -> "_Look":
        pieces = dict[str, Sequence[PiecesRow]]()
        if (replies := self._replies) is not None:
            elsewhere = [host.id for host in hosts.owners if host.id != self._host]
            pieces = {host: pieces_behind(tx, host, replies.behind(host)) for host in elsewhere}
            looked_at = {head.uuid for head in heads}
            if others := {row.agent for rows in pieces.values() for row in rows} - looked_at:
                heads = [*heads, *heads_of(tx, sorted(others))]  # what they have committed is published first
        return _Look(heads, [self._section(tx, head) for head in heads if self._is_new(head)], hosts, pieces)

    def _news_of(self, looked: "_Look") -> News:
        """Return the news of a look, and note that they were reported."""
        heads, sections, hosts, pieces = looked
        if self.whereabouts is not None:
            self.whereabouts.note(heads)
        died = [head for head in heads if head.status == "dead" and head.uuid not in self._told]
        self._places.update((head.uuid, head.position) for head in heads)
        self._told.update(head.uuid for head in died)
        known = self._names
        renamed = [Renamed(head.uuid, head.name) for head in heads if known.get(head.uuid, head.name) != head.name]
        known.update((head.uuid, head.name) for head in heads)
        before = self._statuses
        living = [head for head in heads if head.status != "dead"]
        statuses = [
            StatusSet(head.uuid, head.status) for head in living if before.get(head.uuid, head.status) != head.status
        ]
        before.update((head.uuid, head.status) for head in living)
        messages = list(merge(*sections, key=lambda message: message.created_at))
        replies = self._replies
        return News(
            messages,
            [Died(head.uuid, head.exit_cause or "", head.exit_reason or "") for head in died],
            {head.uuid: head.turn for head in heads},
            hosts.owners,
            renamed,
            statuses,
            [] if replies is None else replies.follow(pieces, messages, [head.uuid for head in died]),
            self._expects(hosts),
        )

    def _is_new(self, head: Head) -> bool:
        return head.uuid not in self._told and head.position > self._start(head)

    def _start(self, head: Head) -> int:
        return max(self._places.get(head.uuid, head.fork_message_id), self.is_told(head.uuid))

    def _section(self, tx: Transaction, head: Head) -> list[Message]:
        """Return the new messages of a log, up to an unreadable one: a damaged log must not hide others."""
        section = readable_section(tx, head.uuid, self._start(head), head.position)
        if section.damage is not None:
            logger.warning("%s", section.damage)
        return section.messages


@contextmanager
def watching(store: Store) -> Iterator[Watch]:
    """Watch the commits of other processes, for the length of a ``with`` block."""
    watch = store.watch(hosts=True)
    try:
        yield watch
    finally:
        watch.close()
        watch.wait()  # gives its connection back
