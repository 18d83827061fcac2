"""The logs in use: each is read from the store at most once, and shared.

Only an agent's own actor adds messages to its log, after the commit. An actor may write without having its log in
memory: a fork needs only the head. Then a log that descendants use gets out of date, and the cache reads further
messages when one of them needs them. So a log may lack the latest messages for a while, and never has a hole. Messages
are in the store before their actor is notified, and other processes see them there. So readers from outside
(`LogCache.load`) get all committed messages.
"""

import contextlib
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeVar

from ikigai_actors.actors.garbage import everything_stays
from ikigai_actors.errors import AgentNotFound, HistoryError, HistoryPruned, IkigaiError
from ikigai_actors.records.log.fork_point import settings_at
from ikigai_actors.records.log.heads import heads_of
from ikigai_actors.records.log.history import Ancestor
from ikigai_actors.records.log.lineage import AGENT_0_REMEDY, REMEDY
from ikigai_actors.records.log.log import Log, NotHeld
from ikigai_actors.records.log.log_plan import WHOLE, HeldPart, Lineages, LogKey, Stretch, needs_of
from ikigai_actors.records.log.merge_source import MergeSource
from ikigai_actors.records.log.merges import look_at_child
from ikigai_actors.records.log.words import index_words_of_reader
from ikigai_actors.records.messages.messages import ENDINGS, Kind, Message
from ikigai_actors.store.base import Row, Store, Transaction

T = TypeVar("T")

_LAST = ENDINGS | {Kind.REPAIR.value}
"""The kinds that say how the latest turn ended, or that it has not: see `records.replies.outcome_of`."""


class LogCache:
    """All logs in memory, each read from the store once and shared by its readers."""

    def __init__(self, store: Store, is_here: Callable[[str], bool] = lambda uuid: True) -> None:
        """Make an empty cache.

        ``is_here`` returns whether only this process writes to an agent's log. Other logs are read again at each
        request.
        """
        self._store, self._is_here = store, is_here
        self._logs: weakref.WeakValueDictionary[LogKey, Log] = weakref.WeakValueDictionary()
        self._latest: weakref.WeakValueDictionary[str, Log] = weakref.WeakValueDictionary()
        self._forgotten = 0
        self._lock = threading.Lock()  # of the three above; held for moments
        self._reading = threading.Lock()  # held while the store is read
        self.read_logs = 0
        """How many logs were read from the store."""
        self.read_messages = 0
        """How many messages these had."""

    def at_hand(self, uuid: str) -> Log | None:
        """Return an agent's log if it is in memory up to its latest message; else None."""
        if not self._is_here(uuid):
            return None
        with self._lock:
            return self._latest.get(uuid)

    def in_memory(self) -> int:
        """Return the number of messages in the logs of this cache."""
        with self._lock:
            return sum(log.held for log in self._logs.values())

    def passages(self) -> int:
        """Return the number of passages of conversations that the logs of this cache hold."""
        with self._lock:
            held = [passages for log in self._logs.values() for passages in tuple((log.passages or {}).values())]
        return sum(len(passages.chains) for passages in held)

    def index_words(self, agent: str, below: bool) -> None:
        """Add the messages that a search by an agent reads to the index of words.

        ``below``: also messages of agents below it.
        """
        index_words_of_reader(self._store, agent, below)

    def keep(self, log: Log) -> Log:
        """Add the log of an agent that was just forked or cleared.

        Returns the log to use, which is another one if a reader has added it meanwhile.
        """
        with self._lock:
            kept = self._logs.setdefault((log.agent_uuid, log.base), log)
            self._latest[log.agent_uuid] = kept
        if kept is not log:
            kept.extend(log.messages)
        return kept

    def grow(self, log: Log, messages: Sequence[Message]) -> Log:
        """Append committed messages to an agent's latest log; return the log that has its head.

        After a clear that is a new log: its owner replaces the old one with it.
        """
        cleared = [place for place, message in enumerate(messages) if message.kind == Kind.CLEAR]
        if not cleared:
            log.extend(messages)
            return log
        log.extend(messages[: cleared[0]])
        place = cleared[-1]
        after = Log(
            *(log.agent_uuid, log.fork, None, messages[place + 1 :]),
            cleared=messages[place].id,
            ended=next((message for message in log.back_to_ending() if message.kind in _LAST), None),
        )
        return self.keep(after)

    def forget(self, uuid: str) -> None:
        """Mark an agent's log as perhaps incomplete, because the agent may have written without the log in memory.

        The next request for the log reads the missing messages from the store. This call never waits for a read.
        """
        with self._lock:
            self._latest.pop(uuid, None)
            self._forgotten += 1

    def settings_at(self, uuid: str, position: int) -> Mapping[str, Any]:
        """Return the settings in force at a position at which the agent may be forked.

        Raises the errors of `records.fork_point.settings_at`, and `StoreError`.
        """
        return self._store.read(lambda tx: settings_at(tx, uuid, position))

    def look_at_child(self, into: str, child: str) -> MergeSource:
        """Read the data of the agent ``child`` that a merge into the agent ``into`` needs.

        Raises the errors of `records.merges.look_at_child`, and `StoreError`.
        """
        return self._store.read(lambda tx: look_at_child(tx, into, child))

    def find_in(self, uuid: str, work: Callable[[Log], T]) -> T:
        """Call ``work`` with an agent's log, and return its result.

        If it needs messages not in memory, the log is read in full.

        Raises the errors of `load`.
        """
        try:
            return work(self.load(uuid))
        except NotHeld:
            return work(self.load(uuid, whole=True))

    def load(self, uuid: str, *, whole: bool = False) -> Log:
        """Return an agent's log as it is committed, with the ancestors that its history needs, in a few queries.

        The log holds all messages that a model sees at its head. The messages that a summary replaces may be missing,
        unless ``whole`` is set.

        Raises:
            AgentNotFound: there is no such agent.
            HistoryPruned: the agent's messages were pruned.
            HistoryError: rows of the history are wrong; ``agent`` is the agent with the wrong rows, perhaps an
                ancestor.
        """
        held = self.at_hand(uuid)
        if not whole and (held is None or self._is_complete(held)):
            [read] = self.load_many([uuid])
        else:
            with self._reading, everything_stays():
                read = self._store.read(lambda tx: self._read(tx, [uuid], whole))[uuid]
        if isinstance(read, IkigaiError):
            raise read
        return read

    def _is_complete(self, log: Log) -> bool:
        """Return whether a log in memory has all messages of an agent's latest log that the store has."""
        return all(head.position == log.head for head in self._store.read(lambda tx: heads_of(tx, [log.agent_uuid])))

    def load_many(self, uuids: Sequence[str], *, whole: bool = False) -> list[Log | IkigaiError]:
        """Return the logs of many agents. Those that are not in memory are read in a few queries.

        In place of a log that cannot be read, the error is returned that `load` would raise. With ``whole``, complete
        logs are returned, for actors that append to them.
        """
        logs: dict[str, Log | IkigaiError] = {
            uuid: _sound(uuid, log)
            for uuid in uuids
            if (log := self.at_hand(uuid)) is not None and (log.holds(0) if whole else log.shows(log.head))
        }
        if missing := [uuid for uuid in dict.fromkeys(uuids) if uuid not in logs]:
            with self._reading, everything_stays():
                before = self._forgotten
                read = self._store.read(lambda tx: self._read(tx, missing, whole))
                with self._lock:
                    if self._forgotten == before:  # else one of them may have grown meanwhile
                        for uuid, new in read.items():
                            if isinstance(new, Log):
                                self._make_latest(uuid, new, whole)
            logs |= read
        return [logs[uuid] for uuid in uuids]

    def _make_latest(self, uuid: str, log: Log, whole: bool) -> None:
        """Record that a log has an agent's latest message, unless a clear by its owner has begun a new one."""
        known = self._latest.get(uuid)
        if known is None or (whole and known.base == log.base):
            self._latest[uuid] = log

    def _read(self, tx: Transaction, uuids: Sequence[str], whole: bool = False) -> dict[str, Log | IkigaiError]:
        """Return the logs of these agents, or errors in their place.

        Logs that are not in memory are read; unless ``whole``, only the parts that a model is shown.
        """
        lineages = Lineages(tx.run("lineages", uuids=list(uuids)))
        lines: dict[str, list[Stretch]] = {}
        results: dict[str, Log | IkigaiError] = {}
        planned: dict[LogKey, Stretch] = {}
        for uuid in uuids:
            try:
                needed = lines[uuid] = lineages.line(uuid, planned)
            except (AgentNotFound, HistoryError, HistoryPruned) as error:
                results[uuid] = error
            else:
                planned.update((stretch.key, stretch) for stretch in needed)
        needs = {} if whole else needs_of(tx, map(lineages.latest, lines), planned)
        with self._lock:  # looked up once and held: what the weak dictionary has now may be gone a moment later
            known: dict[LogKey, Log] = {key: log for key in planned if (log := self._logs.get(key)) is not None}
        logs: dict[LogKey, Log | HistoryError] = {
            key: log for key, log in known.items() if _serves(log, needs.get(key, WHOLE))
        }
        rows = _read_stretches(tx, [stretch for key, stretch in planned.items() if key not in logs], needs)
        self.read_logs += len(rows)
        self.read_messages += sum(map(len, rows.values()))
        short: list[str] = []
        for uuid, line in lines.items():
            for stretch in reversed(line):
                if stretch.key not in logs:
                    need = needs.get(stretch.key, WHOLE)
                    logs[stretch.key] = self._make(tx, stretch, logs, rows[stretch.key], need)
            key = lineages.latest(uuid)
            latest = logs[key]
            if isinstance(latest, Log):
                _complete(tx, latest, was_read=key in rows and needs.get(key, WHOLE).upto is None)
                if latest.damage is None and not latest.shows(latest.head):
                    short.append(uuid)
            results[uuid] = _sound(uuid, latest)
        return {**results, **self._read(tx, short, whole=True)} if short else results

    def _make(
        self,
        tx: Transaction,
        stretch: Stretch,
        logs: Mapping[LogKey, Log | HistoryError],
        rows: Sequence[Row],
        need: HeldPart,
    ) -> Log | HistoryError:
        """Make a log from its rows, or return the error of an ancestor.

        The log ends before a wrong row, which `Log.damage` reports: a child may need only the part before it.
        """
        agent = stretch.agent
        parent = logs[stretch.parent] if stretch.parent is not None else None
        if isinstance(parent, HistoryError):
            return parent
        if parent is not None and (wrong := _reach(tx, agent, parent, rows)) is not None:
            return wrong
        start = need.start(stretch.key[1])
        apart = [message for place, message in sorted(need.apart.items()) if place <= start]
        log = Log(agent.uuid, agent.fork_message_id, parent, cleared=stretch.cleared, start=start, apart=apart)
        _fill(log, rows, agent.parent_uuid is None)
        with self._lock:
            kept = self._logs.get(stretch.key)
            if kept is None or not _serves(kept, need):
                kept = self._logs[stretch.key] = log
        if kept is not log:  # its owner was faster
            _read_on(tx, kept)
        return kept


def _serves(log: Log, need: HeldPart) -> bool:
    """Return whether a log in memory has the needed part, perhaps after reading its latest messages."""
    return log.holds(need.above) and log.head >= need.start(log.base)


def _read_stretches(
    tx: Transaction, stretches: Sequence[Stretch], needs: Mapping[LogKey, HeldPart]
) -> dict[LogKey, Sequence[Row]]:
    """Return the rows of these logs, each in order.

    One query reads all logs that still grow and are needed completely.
    """
    uuids = list({stretch.agent.uuid for stretch in stretches})
    latest: dict[str, int] = dict(tx.run("latest_clears", uuids=uuids)) if uuids else {}
    rows: dict[LogKey, Sequence[Row]] = {stretch.key: () for stretch in stretches}
    whole = (stretch for stretch in stretches if needs.get(stretch.key, WHOLE) == WHOLE)
    ends = {
        stretch.agent.uuid: stretch.key for stretch in whole if latest.get(stretch.agent.uuid, 0) == stretch.cleared
    }
    for uuid, log in groupby(tx.run("log_ends", uuids=list(ends)) if ends else (), key=itemgetter(0)):
        rows[ends[uuid]] = list(log)
    for key in rows.keys() - ends.values():
        need = needs.get(key, WHOLE)
        start = need.start(key[1])
        if need.upto is None:
            rows[key] = tx.run("log_stretch", uuid=key[0], start=start)
        elif need.upto > start:
            rows[key] = tx.run("log_section", uuid=key[0], start=start, end=need.upto)
    return rows


def _fill(log: Log, rows: Sequence[Row], of_agent_0: bool) -> None:
    try:
        log._extend(map(Message.from_row, rows))
    except HistoryError as error:
        log.damage = HistoryError(f"{error} {AGENT_0_REMEDY}", error.agent) if of_agent_0 else error


def _reach(tx: Transaction, agent: Ancestor, parent: Log, rows: Sequence[Row]) -> HistoryError | None:
    """Read the parent's log further until it contains the agent's fork point.

    Return an error if it ends before that.
    """
    fork = agent.fork_message_id
    if fork > parent.head:
        _read_on(tx, parent)
    if fork <= parent.head:
        return None
    if parent.damage is not None:
        return parent.damage
    text = f"Agent {agent.uuid} was forked at message {fork} of {parent.agent_uuid}, whose log ends at {parent.head}."
    own_agree = bool(rows) and rows[0][1] == fork + 1  # then it is the parent that has lost messages
    return HistoryError(text, parent.agent_uuid if own_agree else agent.uuid)


def _complete(tx: Transaction, log: Log, was_read: bool) -> None:
    """Read the messages that an agent's latest log lacks. A log that was just read lacks none at its end."""
    if not was_read:
        _read_on(tx, log)
    if log.start > log.fork and log.ended is None:
        rows = tx.run("latest_before", uuid=log.agent_uuid, position=log.start + 1, kinds=sorted(_LAST))
        with contextlib.suppress(HistoryError):  # what lies before a clear keeps nobody from what follows
            log.ended = next(map(Message.from_row, rows), None)


def _read_on(tx: Transaction, log: Log) -> None:
    """Add the rows after the end of a log, up to the next clear. A wrong row becomes the log's `damage`."""
    if log.damage is not None:
        return
    try:
        log.extend([Message.from_row(row) for row in tx.run("log_stretch", uuid=log.agent_uuid, start=log.head)])
    except HistoryError as error:
        log.damage = error


def _sound(uuid: str, log: Log | HistoryError) -> Log | HistoryError:
    """Return an agent's log, or the error that explains why it has none.

    An error in an ancestor's rows becomes an error about this agent that names the ancestor.
    """
    error = log.damage if isinstance(log, Log) else log
    if error is None or error.agent == uuid:
        return error or log
    remedy = "" if "ikigai fsck" in str(error) else f" {REMEDY}"
    text = f"Agent {uuid} has no history: it inherits from agent {error.agent}, whose rows are wrong. {error}{remedy}"
    return HistoryError(text, error.agent)
