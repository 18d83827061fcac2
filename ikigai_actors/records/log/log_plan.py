"""Plans which logs a history needs, and which part of each must be in memory. Reads little, even for long logs.

A history needs the logs of the agent and of its ancestors, from the latest clear on. The messages that a summary in
force replaces need not be in memory. Needed are the messages that a model sees, and those that decide where the history
may be cut, which turn is open, and which parts are visible.

    positions   1 ── … ── 811 ── 812 ── … ── 905 ── S        S = summary that keeps what comes from 812 on
    held        what changes views                all         from the latest reply before 812 on
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ikigai_actors.errors import AgentNotFound, HistoryError
from ikigai_actors.records.log.history import EMPTY, Ancestor, View, play_all
from ikigai_actors.records.log.lineage import LAST, REMEDY, check_unpruned
from ikigai_actors.records.messages.messages import DECIDING, Kind, Message
from ikigai_actors.store.base import Row, Transaction

LogKey = tuple[str, int]
"""The key of a log: its agent, and the position before its first message (the fork point, or a clear)."""


class Stretch(NamedTuple):
    """A log that must be read: its agent, the clear that it follows (0 for none), and the key of its parent's log."""

    agent: Ancestor
    cleared: int
    parent: LogKey | None

    @property
    def key(self) -> LogKey:
        """Return the key of the log."""
        return self.agent.uuid, self.cleared or self.agent.fork_message_id


class Lineages:
    """The ancestors of some agents, as the query ``lineages`` finds them."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._agents: dict[str, Ancestor] = {}
        self._clears: dict[str, list[int]] = {}
        self._pruned: dict[str, int | None] = {}
        for row in rows:
            self._pruned[row[0]] = row[4]
            self._agents[row[0]] = Ancestor(*row[:3])
            if row[3] is not None:
                self._clears.setdefault(row[0], []).append(row[3])

    def latest(self, uuid: str) -> LogKey:
        """Return the key of the log that contains an agent's latest message."""
        return uuid, self._cleared(uuid, None) or self._agents[uuid].fork_message_id

    def line(self, uuid: str, planned: Mapping[LogKey, Stretch]) -> list[Stretch]:
        """Return the logs that an agent's history needs, its own first, back to a log that is in ``planned``.

        Raises:
            AgentNotFound: there is no such agent.
            HistoryPruned: the agent's messages were pruned.
            HistoryError: an ancestor is missing, the lineage runs in a circle, or a clear is before the fork point.
        """
        if uuid not in self._agents:
            raise AgentNotFound(f"There is no agent {uuid}.", uuid)
        check_unpruned(uuid, self._pruned[uuid])
        line: list[tuple[Ancestor, int]] = []
        keys: list[LogKey | None] = []
        seen: set[str] = set()
        last = uuid
        current: str | None = uuid
        bound: int | None = None
        while current is not None and (bound is None or bound > 0):
            agent = self._agents.get(current)
            if agent is None:
                raise HistoryError(f"The ancestors of agent {uuid} cannot be followed beyond {last}. {REMEDY}", last)
            if current in seen:
                raise HistoryError(f"Agent {uuid} descends from itself by way of {current}. {REMEDY}", current)
            seen.add(current)
            fork, last = agent.fork_message_id, current
            if bound is not None and bound <= fork:  # forked at a position that this agent has itself inherited
                current = agent.parent_uuid
                continue
            cleared = self._cleared(current, bound)
            if 0 < cleared <= fork:
                raise HistoryError(f"Agent {current} has a clear at {cleared}, before its fork point {fork}.", current)
            key = current, cleared or fork
            keys.append(key)
            if key in planned:
                break
            line.append((agent, cleared))
            if cleared:
                break
            current, bound = agent.parent_uuid, fork
        parents = [*keys[1:], None]
        return [Stretch(*entry, parent) for entry, parent in zip(line, parents, strict=False)]

    def _cleared(self, uuid: str, bound: int | None) -> int:
        """Return the position of the agent's latest clear up to a bound, as the query has found it; 0 for none."""
        return max((at for at in self._clears.get(uuid, ()) if bound is None or at <= bound), default=0)


class HeldPart(NamedTuple):
    """The part of a log that must be in memory."""

    above: int = 0
    """The position after which all messages are needed."""
    upto: int | None = None
    """The last position that is needed, which is a fork point; None for the end of the log."""
    apart: Mapping[int, Message] = {}
    """Earlier messages that are needed too, by position; see `Log`."""

    def start(self, base: int) -> int:
        """Return the position before the first needed message, in a log with this base."""
        start = max(base, self.above)
        return start if self.upto is None else min(start, self.upto)

    def joined(self, other: "HeldPart") -> "HeldPart":
        """Return the smallest part that contains this part and another part of the same log."""
        ends = None if self.upto is None or other.upto is None else max(self.upto, other.upto)
        return HeldPart(min(self.above, other.above), ends, {**self.apart, **other.apart})


WHOLE = HeldPart()
"""The part that is the whole log."""


def needs_of(tx: Transaction, leaves: Iterable[LogKey], planned: Mapping[LogKey, Stretch]) -> Mapping[LogKey, HeldPart]:
    """Return the parts of logs that some histories need. Logs that are not in the result are needed completely.

    Args:
        leaves: the logs with the heads of these histories.
        planned: all logs that they need.
    """
    uuids = list({stretch.agent.uuid for stretch in planned.values()})
    summarised = {uuid for (uuid,) in tx.run("summarised", uuids=uuids)} if uuids else set()
    needs: dict[LogKey, HeldPart] = {}
    controls: dict[LogKey, list[Message]] = {}
    for leaf in leaves if summarised else ():
        chain: list[Stretch] = []
        key: LogKey | None = leaf
        while key is not None:
            chain.append(planned[key])
            key = planned[key].parent
        for key, need in _needs_of_one(tx, chain, summarised, controls):
            needs[key] = needs[key].joined(need) if key in needs else need
    return needs


def _needs_of_one(
    tx: Transaction, chain: Sequence[Stretch], summarised: set[str], controls: dict[LogKey, list[Message]]
) -> list[tuple[LogKey, HeldPart]]:
    """Return the parts of logs that one history needs, the part of its own log first.

    ``controls`` caches the messages of each log that change views.
    """
    if not any(stretch.agent.uuid in summarised for stretch in chain):
        return [(stretch.key, WHOLE) for stretch in chain]
    ends = [None, *(stretch.agent.fork_message_id for stretch in chain)]
    try:
        for stretch in chain:
            if stretch.key not in controls:
                controls[stretch.key] = _controls(tx, stretch)
        view = EMPTY
        for stretch, end in reversed(list(zip(chain, ends, strict=False))):
            begun = View(stretch.cleared, None, None, {}) if stretch.cleared else view
            view = play_all(begun, [control for control in controls[stretch.key] if end is None or control.id <= end])
        above = _above(tx, chain, view.floor)
        prompt = _prompt(tx, chain, view.lens.prompt) if view.lens is not None and view.lens.prompt <= above else {}
    except HistoryError:  # who reads all of it says which rows are wrong
        return [(stretch.key, WHOLE) for stretch in chain]
    needs = []
    for stretch, end in zip(chain, ends, strict=False):
        apart = {control.id: control for control in controls[stretch.key]}
        needs.append((stretch.key, HeldPart(above, end, apart if end is not None else {**apart, **prompt})))
    return needs


def _controls(tx: Transaction, stretch: Stretch) -> list[Message]:
    uuid, base = stretch.key
    rows = tx.run("log_controls", uuid=uuid, start=base, end=LAST)
    cleared = next((row[1] for row in rows if row[2] == Kind.CLEAR), LAST)
    return [Message.from_row(row) for row in rows if row[1] < cleared]


def _above(tx: Transaction, chain: Sequence[Stretch], floor: int) -> int:
    """Return the position after which all messages of a history are needed. Those after ``floor`` are shown verbatim.

    The result is at most ``floor``: the latest reply before it decides whether the history may be cut there. All
    messages of an open turn are needed.
    """
    [(turn,)] = tx.run("turn_of", uuid=chain[0].agent.uuid)
    end = min(floor, turn - 1) if turn else floor
    for uuid, base in (stretch.key for stretch in chain):
        if end > base:
            rows = tx.run("latest_before", uuid=uuid, position=end + 1, kinds=sorted(DECIDING))
            if rows and rows[0][1] > base:
                return int(rows[0][1]) - 1
            end = base
    return 0


def _prompt(tx: Transaction, chain: Sequence[Stretch], position: int) -> Mapping[int, Message]:
    """Return the message at a position, in a mapping by position; empty if there is none."""
    uuid = next((uuid for uuid, base in (stretch.key for stretch in chain) if base < position), None)
    rows = tx.run("log_section", uuid=uuid, start=position - 1, end=position) if uuid is not None else []
    return {message.id: message for message in map(Message.from_row, rows)}
