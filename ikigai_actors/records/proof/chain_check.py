"""The check of logs against the hashes of their messages (`ikigai_actors.records.log.chain`). Pure.

Each hash is compared with the hash computed from its message and the hash before it. So a changed message is reported,
and so is the message after one that was added, dropped or exchanged. Later messages count as sound if their hashes
continue from there.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple, TypeGuard

from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.log.chain import EMPTY_HASH, hash_after
from ikigai_actors.records.messages.blobs import hashes_in
from ikigai_actors.records.messages.messages import ATTACHMENTS_KEY, Kind
from ikigai_actors.store.base import Row, Transaction


class LogStart(NamedTuple):
    """The position after which an agent's log begins, and the part of the log that has hashes."""

    parent: str | None
    """The uuid of the agent from which it inherits; None if it inherits nothing."""
    fork: int
    """The position after which its own messages begin."""
    hashed: int | None = None
    """The position up to which its messages have hashes; None if all have one."""
    outside: bool = False
    """Whether its agent is outside of the export. The export may leave out cleared messages of such a log."""


class Problem(NamedTuple):
    """A message, or a missing message, that does not fit the hashes of its log."""

    what: str
    """The kind of problem. ``altered``: the message does not fit its hash. ``missing``: there is no such message,
    though later ones exist or an agent inherits it. ``attachment``: the bytes of an attachment are changed or missing.
    """
    agent: str
    """The uuid of the agent in whose log it is; empty for a fault of a file itself."""
    position: int
    """The position of the message; for a fault of a file itself, the line."""

    def __str__(self) -> str:
        where = f"{self.agent} {self.position}" if self.agent else f"the file, in or after line {self.position}"
        return f"{self.what}: {where}"


def starts_of(records: Iterable[AgentRecord]) -> dict[str, LogStart]:
    """Return the starts of agents' logs, without pruned agents."""
    return {
        record.uuid: LogStart(
            None if record.grafted else record.parent_uuid, record.fork_message_id, outside=record.grafted
        )
        for record in records
        if record.pruned_at is None
    }


def messages_of_all(tx: Transaction, batch: int = 2_000) -> Iterator[Row]:
    """Iterate over all messages of the database with their hashes, log by log; ``batch`` messages are read at once."""
    agent, position = "", 0
    while rows := tx.run("hashed_after", agent=agent, id=position, most=batch):
        yield from rows
        agent, position = rows[-1][:2]


def fork_points(starts: Mapping[str, LogStart]) -> dict[str, tuple[str, int]]:
    """Return for each agent that inherits where its fork point is stored: an agent's log, and the position."""
    return {
        uuid: (_holder(starts, start.parent, start.fork), start.fork)
        for uuid, start in starts.items()
        if start.parent is not None and start.fork
    }


def _holder(starts: Mapping[str, LogStart], uuid: str, position: int) -> str:
    seen = {uuid}
    while (start := starts.get(uuid)) is not None and start.fork >= position:
        if start.parent is None or start.parent in seen:  # a damaged circle
            break
        uuid = start.parent
        seen.add(uuid)
    return uuid


class ChainCheck:
    """Compares the messages of logs with their hashes. Pass each log's messages in order."""

    def __init__(self, starts: Mapping[str, LogStart], wanted: Iterable[tuple[str, int]] = ()) -> None:
        """Begin a check.

        Args:
            starts: the start of each log, by uuid. Messages of other agents are skipped.
            wanted: agents and positions whose hashes are stored in ``kept``.
        """
        self._starts, self._points = starts, fork_points(starts)
        self._wanted = {*wanted, *self._points.values()}
        self.kept: dict[tuple[str, int], bytes] = {}
        """The stored hashes of the places that are wanted, as far as they were read."""
        self.heads: dict[str, int] = {}
        """The position of the latest message of each log that was read."""
        self.messages = 0
        """How many messages were read."""
        self.omitted = 0
        """How many of them replace one that was left out of a file: their hashes cannot be compared."""
        self.attached: dict[str, tuple[str, int]] = {}
        """The hash of each attachment, with a message that has it: its agent and its position."""
        self._first: list[Row] = []  # messages that come before those that they follow
        self._agent, self._next = "", 0  # the log that is read, and the position that should come
        self._before: bytes | None = None  # the hash of the message before; None where that is not known
        self._left_out = 0  # the latest message that was left out, while the clear that allows it has not come

    def read(self, row: Row) -> Iterator[Problem]:
        """Check a message, after the messages before it; return its problems.

        ``row`` is a row of ``messages`` with its hash, None if unknown.
        """
        uuid, position, kind = row[:3]
        stored = row[6] if is_hash(row[6]) else None
        if (start := self._starts.get(uuid)) is None:
            return
        self.messages += 1
        if not isinstance(position, int):  # SQLite keeps values of any type
            yield Problem("altered", uuid, position)
            return
        if uuid != self._agent:
            yield from self._end_log()
            self._agent, self._next = uuid, start.fork + 1
            place = self._points.get(uuid)
            self._before = EMPTY_HASH if place is None else self.kept.get(place)
            if self._before is None and position == self._next:
                self._first.append(row)
        if position != self._next:
            yield Problem("missing", uuid, self._next)
            self._before = None
        if stored is not None and (uuid, position) in self._wanted:
            self.kept[uuid, position] = stored
        before, self._before = self._before, stored
        self._next, self.heads[uuid] = position + 1, position
        if kind == Kind.OMITTED:
            self.omitted, self._left_out = self.omitted + 1, position
        elif kind == Kind.CLEAR and start.outside:
            self._left_out = 0
        elif kind != Kind.FORK:  # the births of agents in a file stay in it
            yield from self._end_log()
        for name in _attached(row[4]):
            self.attached.setdefault(name, (uuid, position))
        if stored is None and (start.hashed is None or position <= start.hashed):
            yield Problem("altered", uuid, position)
        yield from _compared(before, row)

    def conclude(self) -> Iterator[Problem]:
        """Return the problems that are known only at the end: first messages of children, and missing messages."""
        yield from self._end_log()
        for row in self._first:
            yield from _compared(self.kept.get(self._points[row[0]]), row)
        silent = [uuid for uuid, start in self._starts.items() if start.parent and uuid not in self.heads]
        unread = {(uuid, self._starts[uuid].fork + 1) for uuid in silent}
        points = {place for place in self._points.values() if place[0] in self._starts}
        for uuid, position in sorted(unread | (points - self.kept.keys())):
            yield Problem("missing", uuid, position)

    def _end_log(self) -> Iterator[Problem]:
        """Return a problem if no clear follows the omitted messages of a log, since no export omits such messages."""
        place, self._left_out = self._left_out, 0
        if place:
            yield Problem("altered", self._agent, place)

    def attachments_missed(self, stored: Iterable[str]) -> Iterator[Problem]:
        """Return a problem for each attachment whose bytes are missing.

        ``stored`` has the hashes of the stored bytes.
        """
        there = set(stored)
        for name, (uuid, position) in self.attached.items():
            if name not in there:
                yield Problem("attachment", uuid, position)


def is_hash(stored: object) -> TypeGuard[bytes]:
    """Return whether a stored value has the form of a hash. SQLite may store values of any type."""
    return isinstance(stored, bytes) and len(stored) == len(EMPTY_HASH)


def _attached(data: object) -> Iterator[str]:
    if isinstance(data, str) and f'"{ATTACHMENTS_KEY}":' in data:
        with suppress(ValueError, RecursionError):  # damage, which its own hash shows
            yield from hashes_in(json.loads(data))


def _compared(before: bytes | None, row: Row) -> Iterator[Problem]:
    """Return the problem of a message whose hash does not follow from ``before``, the hash of the history before it."""
    if before is None or not is_hash(row[6]) or row[2] == Kind.OMITTED:
        return
    if hash_after(before, row) != row[6]:
        yield Problem("altered", row[0], row[1])
