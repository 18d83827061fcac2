"""Logs in memory, in the shape they have in the store: an agent's own messages, and a bounded look at its parent's log.

A fork copies nothing: the child's log refers to its parent's, up to the fork point. `Archive` reads each log from the
store at most once and shares it among all descendants for as long as one of them is in use.

Only its owner appends to a log, after the commit. Others read it up to a position that is committed, at any time and
without a
lock: lists only grow, and a position's view is stored before the position is listed as a control.

A log whose agent has cleared may stand without its ancestors: nobody who begins after the clear needs them. Its views
before the clear are wrong until `attach` gives it its parent; the archive does that before anyone may ask for them.
"""

import threading
import weakref
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter

from ikigai_actors.errors import AgentNotFound, HistoryError
from ikigai_actors.history import EMPTY, Ancestor, ReplayRange, View, play, walk
from ikigai_actors.messages import CONTROL, CONVERSATION, Kind, Message
from ikigai_actors.store.base import Row, Store, Transaction

_position = attrgetter("id")

AGENT_0_REMEDY = "Agent 0 cannot be given up: run `ikigai fsck`, which names all that is wrong, and restore a copy."
"""What to do about wrong rows of agent 0."""

_refold = threading.Lock()
"""Held to change a list of views: at each control message, and when a log is attached to its parent. Both are rare."""


class Log:
    """One agent's log, and through its parent the whole of its history."""

    __slots__ = (
        "__weakref__",
        "_base_view",
        "_controls",
        "_spoken",
        "_views",
        "agent_uuid",
        "base",
        "damage",
        "messages",
        "parent",
    )

    def __init__(self, agent_uuid: str, base: int, parent: "Log | None", messages: Sequence[Message] = ()) -> None:
        """Make a log from its messages, which must have the ids base + 1, base + 2, …; base is the fork point."""
        self.agent_uuid = agent_uuid
        self.base = base
        self.parent = parent
        self.messages: list[Message] = []
        self.damage: HistoryError | None = None
        """Why the log ends where it does, when its rows in the store are wrong from there on."""
        self._base_view = parent.view(base) if parent is not None else EMPTY
        self._controls: list[int] = []
        self._spoken: list[Message] = []  # the conversation alone: a request must not look at 10,000 forks of a parent
        self._views: list[View] = []
        self.extend(messages)

    @property
    def head(self) -> int:
        """The position of the latest message; the fork point when there is none."""
        return self.base + len(self.messages)

    @property
    def attached(self) -> bool:
        """Whether everything before the fork point can be reached."""
        return self.parent is not None or self.base == 0

    def extend(self, messages: Iterable[Message]) -> None:
        """Append messages that are committed. Raises `HistoryError` when their ids do not follow the head; those before
        the wrong one stay.
        """
        following = self.head + 1
        for message in messages:
            if message.id != following:
                raise HistoryError(
                    f"Expected message {following} of agent {self.agent_uuid}, got {message.id}: the log has a hole."
                )
            following += 1
            if message.kind in CONVERSATION:
                self._spoken.append(message)
            self.messages.append(message)
            if message.kind in CONTROL:
                with _refold:
                    self._views.append(play(self._views[-1] if self._views else self._base_view, message))
                    self._controls.append(message.id)

    def view(self, position: int) -> View:
        """The view of the history up to a position, which may lie in an ancestor's log."""
        log = self
        while position < log.base and log.parent is not None:
            log = log.parent
        index = bisect_right(log._controls, position)
        return log._views[index - 1] if index else log._base_view

    def attach(self, parent: "Log") -> None:
        """Give the log the parent it was read without, and fold its views anew."""
        with _refold:
            view = self._base_view = parent.view(self.base)
            self.parent = parent
            for index, position in enumerate(self._controls):
                view = self._views[index] = play(view, self.messages[position - self.base - 1])

    def between(self, start: int, end: int) -> Iterator[Message]:
        """The messages of the history with ``start < id <= end``, oldest first, wherever they are stored."""
        for log, low, high in self._pieces(start, end):
            yield from log.messages[low - log.base : high - log.base]

    def _pieces(self, start: int, end: int) -> "list[tuple[Log, int, int]]":
        """In which logs the messages with ``start < id <= end`` are, with the bounds in each, oldest first."""
        pieces: list[tuple[Log, int, int]] = []
        log: Log | None = self
        while log is not None and start < end:
            if end > log.base:
                pieces.append((log, max(start, log.base), end))
                end = log.base
            log = log.parent
        pieces.reverse()
        return pieces

    def conversation(self, position: int) -> Iterator[Message]:
        """What of the folded history up to a position the model may see; costs nothing for all other messages."""
        for start, end in self.view(position).visible(position):
            for log, low, high in self._pieces(start, end):
                spoken = log._spoken
                first = bisect_right(spoken, low, key=_position)
                yield from spoken[first : bisect_right(spoken, high, first, key=_position)]

    def latest_prompt(self) -> Message | None:
        """The latest prompt of the folded history, an inherited one too; None when there is none."""
        for start, end in reversed(self.view(self.head).visible(self.head)):
            for log, low, high in reversed(self._pieces(start, end)):
                spoken = log._spoken
                first, behind = bisect_right(spoken, low, key=_position), bisect_right(spoken, high, key=_position)
                for index in range(behind - 1, first - 1, -1):
                    if spoken[index].kind == Kind.USER:
                        return spoken[index]
        return None

    def visible(self, position: int | None = None) -> Iterator[Message]:
        """The folded history up to a position (the head when None): clears and rewinds applied."""
        position = self.head if position is None else position
        for start, end in self.view(position).visible(position):
            yield from self.between(start, end)


class Archive:
    """All logs that are in use, each read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._logs: weakref.WeakValueDictionary[str, Log] = weakref.WeakValueDictionary()
        self._lock = threading.Lock()
        self.read_logs = 0
        """How many logs were read from the store."""

    def keep(self, log: Log) -> Log:
        """Add the log of an agent that was just forked; returns the one to use (a reader may have been faster)."""
        with self._lock:
            return self._logs.setdefault(log.agent_uuid, log)

    def load(self, uuid: str, whole: bool = False) -> Log:
        """Return an agent's log with the ancestors that its history needs, read in a bounded number of queries.

        Args:
            uuid: the agent.
            whole: also the ancestors before a clear (for an unfolded history).

        Raises:
            AgentNotFound: there is no such agent.
            HistoryError: rows contradict each other.
        """
        with self._lock:
            log = self._logs.get(uuid)
            if log is None or (whole and not log.attached):
                log = self._store.read(lambda tx: self._read(tx, uuid, whole))
            if log.damage is not None:
                raise log.damage
            return log

    def load_many(self, uuids: Sequence[str]) -> list[Log]:
        """Return the logs of many agents, as `load` does, in two queries for all that are not in use.

        One that is damaged comes with its ``damage``. Raises `AgentNotFound` and `HistoryError` as `load` does.
        """
        with self._lock:
            held = {uuid: self._logs.get(uuid) for uuid in uuids}
            missing = [uuid for uuid, log in held.items() if log is None]
            if missing:
                held |= self._store.read(lambda tx: self._read_many(tx, missing))
            return [log for uuid in uuids if (log := held[uuid]) is not None]

    def _read_many(self, tx: Transaction, uuids: list[str]) -> dict[str, Log]:
        family = {row[0]: Ancestor(*row[:3]) for row in tx.run("lineages", uuids=uuids)}
        logs = {uuid: log for uuid in family if (log := self._logs.get(uuid)) is not None}
        rows = _read_messages(tx, [uuid for uuid in family if uuid not in logs])
        self.read_logs += len(family) - len(logs)
        for uuid in uuids:
            line: list[Ancestor] = []  # from the agent up to the nearest ancestor that is there already, and whole
            ancestor = family.get(uuid)
            if ancestor is None:
                raise AgentNotFound(f"There is no agent {uuid}.", uuid)
            while ancestor is not None and not (ancestor.uuid in logs and logs[ancestor.uuid].attached):
                line.append(ancestor)
                if len(line) > len(family):
                    raise HistoryError(f"Agent {uuid} descends from itself by way of {ancestor.uuid}.")
                ancestor = family.get(ancestor.parent_uuid or "")
            parent = logs[ancestor.uuid] if ancestor is not None else None
            for agent in reversed(line):
                log = logs.get(agent.uuid) or _make(agent, parent, rows.get(agent.uuid, ()))
                _link(log, parent)
                self._logs[agent.uuid] = logs[agent.uuid] = parent = log
        return {uuid: logs[uuid] for uuid in uuids}

    def _read(self, tx: Transaction, uuid: str, whole: bool) -> Log:
        lineage = read_lineage(tx, uuid, whole)
        # Looked up once and held: the dictionary is weak, and what it has now may be gone a moment later.
        known = {agent.uuid: self._logs.get(agent.uuid) for agent in lineage}
        rows = _read_messages(tx, [uuid for uuid, log in known.items() if log is None])
        self.read_logs += sum(log is None for log in known.values())
        parent: Log | None = None
        for agent in reversed(lineage):
            log = known[agent.uuid] or _make(agent, parent, rows.get(agent.uuid, ()))
            _link(log, parent)
            self._logs[agent.uuid] = parent = log
        assert parent is not None  # a lineage has at least the agent itself
        return parent


def _make(agent: Ancestor, parent: Log | None, rows: Sequence[Row]) -> Log:
    """A log from its rows; where they are wrong it ends and says so, since a child may need no more of it."""
    log = Log(agent.uuid, agent.fork_message_id, parent)
    try:
        log.extend(map(Message.from_row, rows))
    except HistoryError as error:
        log.damage = error if agent.parent_uuid is not None else HistoryError(f"{error} {AGENT_0_REMEDY}")
    return log


def _link(log: Log, parent: Log | None) -> None:
    if parent is None:
        return
    if log.base > parent.head:
        raise parent.damage or HistoryError(
            f"Agent {log.agent_uuid} was forked at message {log.base} of {parent.agent_uuid}, "
            f"whose log ends at {parent.head}."
        )
    if log.parent is None:
        log.attach(parent)


def read_lineage(tx: Transaction, uuid: str, whole: bool = False) -> list[Ancestor]:
    """The agent and its ancestors, nearest first; unless ``whole``, no further than the latest clear in its history.

    Raises:
        AgentNotFound: there is no such agent.
        HistoryError: an ancestor is missing, or the lineage runs in a circle.
    """
    rows = {row[0]: row for row in tx.run("lineage", uuid=uuid, whole=int(whole))}
    if uuid not in rows:
        raise AgentNotFound(f"There is no agent {uuid}.", uuid)
    lineage: list[Ancestor] = []
    row: Row | None = rows.pop(uuid)
    while row is not None:
        last, cleared = Ancestor(*row[:3]), row[3]
        lineage.append(last)
        row = rows.pop(last.parent_uuid, None)
    if last.parent_uuid is not None and last.fork_message_id > 0 and (whole or cleared is None):  # there should be more
        raise HistoryError(f"The ancestors of agent {uuid} cannot be followed beyond {last.uuid}.")
    return lineage


def read_ranges(tx: Transaction, uuid: str) -> tuple[ReplayRange, ...]:
    """Where an agent's history is stored, oldest range first (see `walk`); one query, whatever the depth.

    Raises:
        AgentNotFound: there is no such agent.
        HistoryError: an ancestor is missing, or the lineage runs in a circle.
    """
    lineage = {ancestor.uuid: ancestor for ancestor in read_lineage(tx, uuid)}
    cleared = {row[0]: row[3] or 0 for row in tx.run("lineage", uuid=uuid, whole=0)}
    return walk(uuid, lineage.__getitem__, lambda agent, bound: cleared[agent])


def _read_messages(tx: Transaction, uuids: list[str]) -> dict[str, list[Row]]:
    """The rows of these agents' logs, each in order."""
    rows = tx.run("logs", uuids=uuids) if uuids else []
    return {uuid: list(log) for uuid, log in groupby(rows, key=itemgetter(0))}
