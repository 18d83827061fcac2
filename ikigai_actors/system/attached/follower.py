"""The follower: what a host commits, as another process sees it.

    watch = store.watch(hosts=True)             # before the first look, so that nothing is missed
    follower = Follower(store)                  # everybody; Follower(store, [uuid]) only these
    follower.begin()
    while True:
        news = follower.news()                  # what was committed since: messages, deaths, the host
        watch.wait()

Rows alone are looked at, each time at one moment: how far each log has come, and what it has more than before. So no
message is missed and none is told twice, however the wake-ups come. Those of one agent are in order; of several agents
they are told by their times, which says nothing about order. An agent that is born and dies between two looks is found
by the time of its death.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import merge
from typing import NamedTuple

from ikigai_actors.agent.subscriptions import Died
from ikigai_actors.errors import HistoryError
from ikigai_actors.records.messages import Message
from ikigai_actors.records.registry import Renamed
from ikigai_actors.store.base import Store, Transaction, Watch
from ikigai_actors.store.owner import HostRow, owner

logger = logging.getLogger(__name__)

HEARTBEAT = 2.0
"""Seconds between two looks at whether the host still lives: a process that is killed commits nothing."""

MARGIN = 60_000
"""Milliseconds by which clocks may differ, where a time of death is looked at."""


class _Head(NamedTuple):
    """A row of the queries ``heads`` and ``heads_of``."""

    uuid: str
    status: str
    turn: int
    fork_message_id: int
    last: int
    exit_cause: str | None
    exit_reason: str | None
    name: str | None

    @property
    def position(self) -> int:
        return max(self.last, self.fork_message_id)


@dataclass(frozen=True, slots=True)
class News:
    """What was committed between two looks."""

    messages: Sequence[Message]
    died: Sequence[Died]
    turns: Mapping[str, int]
    """The turn in progress of everybody who is followed, 0 for none; the dead have none."""
    host: HostRow | None
    """Who runs the agents now."""
    renamed: Sequence[Renamed] = ()


class Follower:
    """Follows the logs of some agents, or of everybody. Of one thread at a time. Raises `StoreError`."""

    def __init__(self, store: Store, agents: Sequence[str] | None = None) -> None:
        """Follow these agents, by uuid; None follows everybody, those too that are not born yet."""
        self._store, self._agents = store, agents
        self._places: dict[str, int] = {}
        self._told: set[str] = set()
        self._names: dict[str, str | None] = {}
        self._since = 0

    def begin(self, now: int) -> News:
        """Everything that is there was told before; ``now`` in milliseconds since 1970. Gives no messages."""
        self._since = now - MARGIN

        def look(tx: Transaction) -> tuple[list[_Head], HostRow | None]:
            return self._heads(tx), owner(tx)

        heads, host = self._store.read(look)
        self._places = {head.uuid: head.position for head in heads}
        self._told = {head.uuid for head in heads if head.status == "dead"}
        self._names = {head.uuid: head.name for head in heads}
        return News((), (), {head.uuid: head.turn for head in heads}, host)

    def place(self, agent: str) -> int:
        """The latest message of an agent that was told, or was there before."""
        return self._places.get(agent, 0)

    def news(self) -> News:
        """What is new since `begin`, or the last time."""

        def look(tx: Transaction) -> tuple[list[_Head], list[list[Message]], HostRow | None]:
            heads = self._heads(tx)
            gone = self._places.keys() - self._told - {head.uuid for head in heads}
            if gone:  # they died, and their clock is another one
                heads += map(_Head._make, tx.run("heads_of", uuids=sorted(gone)))
            return heads, [self._section(tx, head) for head in heads if self._is_new(head)], owner(tx)

        heads, sections, host = self._store.read(look)
        died = [head for head in heads if head.status == "dead" and head.uuid not in self._told]
        self._places.update((head.uuid, head.position) for head in heads)
        self._told.update(head.uuid for head in died)
        known = self._names
        renamed = [Renamed(head.uuid, head.name) for head in heads if known.get(head.uuid, head.name) != head.name]
        known.update((head.uuid, head.name) for head in heads)
        return News(
            list(merge(*sections, key=lambda message: message.created_at)),
            [Died(head.uuid, head.exit_cause or "", head.exit_reason or "") for head in died],
            {head.uuid: head.turn for head in heads},
            host,
            renamed,
        )

    def _heads(self, tx: Transaction) -> list[_Head]:
        if self._agents is not None:
            return [_Head._make(row) for row in tx.run("heads_of", uuids=list(self._agents))]
        return [_Head._make(row) for row in tx.run("heads", since=self._since)]

    def _is_new(self, head: _Head) -> bool:
        return head.uuid not in self._told and head.position > self._places.get(head.uuid, head.fork_message_id)

    def _section(self, tx: Transaction, head: _Head) -> list[Message]:
        """What is new of a log, as far as it can be read: one damaged log must not hide all others."""
        start, messages = self._places.get(head.uuid, head.fork_message_id), []
        for row in tx.run("log_section", uuid=head.uuid, start=start, end=head.position):
            try:
                messages.append(Message.from_row(row))
            except HistoryError as error:
                logger.warning("%s", error)
                break
        return messages


@contextmanager
def watching(store: Store) -> Iterator[Watch]:
    """A watch on all that is committed by others, for the length of a block."""
    watch = store.watch(hosts=True)
    try:
        yield watch
    finally:
        watch.close()
        watch.wait()  # gives its connection back
