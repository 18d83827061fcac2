"""The ended turns of a database as spans, with the links between agents.

    for turn in ended_turns(store, TraceScope(since=yesterday)):
        sender.send(turn)

Each agent's row and the end of its log are read at one moment, and the log up to there in parts: logs only grow. So a
database may be exported while its host works, and a turn is read whole or not at all.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.lists import by_age
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.log.heads import Head, heads_of, latest_times, section
from ikigai_actors.records.log.moments import mails_read, positions_at, prompt_before
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.records.messages.replies import calls_in
from ikigai_actors.sight.traces.ids import call_span, trace_of, turn_span
from ikigai_actors.sight.traces.spans import (
    BOTH,
    FORKED,
    MAILED,
    EndedTurn,
    OpenTurn,
    Reference,
    SpanLink,
    TracedAgent,
    TraceSpan,
    TurnFold,
)
from ikigai_actors.store.base import Store, Transaction

FOREVER = 2**62

_AGENTS = 500
"""Agents whose rows are read at once."""

_MESSAGES = 2_000
"""Messages that are read at once."""


@dataclass(frozen=True, slots=True)
class TraceScope:
    """What of a database is traced."""

    agents: Collection[str] | None = None
    """By uuid; None for everybody."""
    since: int = 0
    """Turns that ended then or later, in milliseconds since 1970."""
    until: int = FOREVER
    """Turns that ended before that."""
    content: bool = False
    """Whether spans have the texts of prompts, replies and results."""
    join: bool = False
    """Whether the first turn of a child is in the trace of the turn in which it was forked."""
    usage: str = BOTH
    """Which spans have tokens: `BOTH`, or ``chat`` for those of requests alone."""


def ended_turns(store: Store, scope: TraceScope) -> Iterator[list[TraceSpan]]:
    """The spans of each turn that has ended, in the order of births; a turn's own span first."""
    links = _Links(store, scope.join)
    chosen = store.read(partial(_chosen, agents=scope.agents))
    for place in range(0, len(chosen), _AGENTS):
        some = chosen[place : place + _AGENTS]
        for source in store.read(partial(_sources, uuids=some, scope=scope)):
            for turn in _turns_of(store, source, scope, links):
                if scope.since <= turn.end < scope.until:
                    yield links.resolved(source.record, turn)


def _chosen(tx: Transaction, agents: Collection[str] | None) -> list[str]:
    """The uuids of the agents of a scope, the oldest first."""
    if agents is None:
        return by_age(tx)
    return [one.uuid for one in registry.oldest_first(registry.some(tx, agents))]


class _Source(NamedTuple):
    """The part of a log that is folded."""

    record: AgentRecord
    head: Head
    start: int
    """The position before the first message."""


def _sources(tx: Transaction, uuids: Sequence[str], scope: TraceScope) -> list[_Source]:
    """Those of these agents that may have turns of the scope."""
    heads = {head.uuid: head for head in heads_of(tx, uuids)}
    rows = {one.uuid: one for one in registry.some(tx, uuids)}
    before = positions_at(tx, uuids, scope.since - 1) if scope.since else {}
    latest = latest_times(tx, uuids) if scope.since else {}
    found = []
    for uuid in uuids:
        row, head = rows[uuid], heads[uuid]
        ended = row.ended_at is not None and row.ended_at >= scope.since
        if row.pruned_at is None and head.last and (ended or latest.get(uuid, scope.since) >= scope.since):
            found.append(
                _Source(row, head, _before_turn(tx, row, before[uuid]) if scope.since else row.fork_message_id)
            )
    return found


def _before_turn(tx: Transaction, record: AgentRecord, position: int) -> int:
    """The position before the turn in which a position of an agent's own log is; its fork point for its first turn.

    Any prompt begins a turn but the copies of a trial, and the one of its birth is the first.
    """
    opens = prompt_before(tx, record.uuid, position)
    for prompt in (opens, prompt_before(tx, record.uuid, opens - 1)):
        if not prompt or any("from" in one.data for one in section(tx, record.uuid, prompt - 1, prompt)):
            return record.fork_message_id
    return opens - 1


def _turns_of(store: Store, source: _Source, scope: TraceScope, links: "_Links") -> Iterator[EndedTurn]:
    record, head, start = source
    fold = _fold_of(record, start, scope)
    while start < head.last:
        end = min(start + _MESSAGES, head.last)
        for message in store.read(partial(section, uuid=record.uuid, start=start, end=end)):
            if (turn := fold.follow(message)) is not None:
                yield turn
            if message.kind == Kind.FORK:
                links.note(message, fold)
        start = end
    last = fold.close(is_open=bool(head.turn), death=head.exit_cause, died=record.ended_at or 0)
    if last is not None:
        yield last


def _fold_of(record: AgentRecord, start: int, scope: TraceScope) -> TurnFold:
    agent = TracedAgent(record.uuid, record.short, record.parent_uuid, record.born)
    return TurnFold(agent, content=scope.content, first=start == record.fork_message_id, usage=scope.usage)


class _Links:
    """Finds the turns of other agents that references mean."""

    def __init__(self, store: Store, join: bool) -> None:
        self._store, self._join = store, join
        self._records: dict[str, AgentRecord | None] = {}
        self._turns: dict[tuple[str, int], tuple[OpenTurn | None, OpenTurn | None]] = {}
        self._traces: dict[str, bytes] = {}  # with join: of the first turn of each agent

    def note(self, message: Message, fold: TurnFold) -> None:
        """Keep in which turn a message is, after it was folded."""
        self._turns[message.agent_uuid, message.id] = (fold.open, fold.latest)

    def resolved(self, record: AgentRecord, turn: EndedTurn) -> list[TraceSpan]:
        """The spans of a turn, with their links; joined to the trace of another turn, if that is asked for."""
        spans, born = turn.spans, None
        for reference in turn.references:
            for agent, found in self._meant(reference):
                if reference.why == FORKED:
                    born = (reference, found)
                link = SpanLink(self._trace(agent, found), turn_span(agent, found.opens, found.again), reference.why)
                one = spans[reference.span]
                spans[reference.span] = replace(one, links=(*one.links, link))
        if not self._join or born is None:
            return spans
        trace = self._trace(record.uuid, OpenTurn(turn.opens, turn.again, first=True))
        root, *others = spans
        return [
            replace(root, trace=trace, parent=self._birthplace(*born)),
            *(replace(one, trace=trace) for one in others),
        ]

    def _meant(self, reference: Reference) -> Iterator[tuple[str, OpenTurn]]:
        """The turns that a reference means."""
        if reference.why == MAILED:
            at = reference.at
            mails = self._store.read(lambda tx: mails_read(tx, reference.agent, at, at))
            for sender, sent, kind in dict.fromkeys((one.sender, one.sent, one.kind) for one in mails):
                places = {} if sender is None else self._store.read(partial(positions_at, uuids=(sender,), at=sent))
                for agent, place in places.items():
                    yield from self._turn_at(agent, place, latest=kind == "exit")
        else:
            yield from self._turn_at(reference.agent, reference.at, latest=reference.why != FORKED)

    def _turn_at(self, agent: str, position: int, *, latest: bool) -> Iterator[tuple[str, OpenTurn]]:
        """The turn that was open at a position; with ``latest``, else the one before."""
        if (agent, position) not in self._turns:
            self._turns[agent, position] = self._store.read(lambda tx: self._looked_up(tx, agent, position))
        found = self._turns[agent, position][latest]
        if found is not None:
            yield agent, found

    def _looked_up(self, tx: Transaction, agent: str, position: int) -> tuple[OpenTurn | None, OpenTurn | None]:
        if (record := self._record(tx, agent)) is None:
            return None, None
        start = _before_turn(tx, record, position)
        fold = _fold_of(record, start, TraceScope())
        for message in section(tx, agent, start, position):
            fold.follow(message)
        return fold.open, fold.latest

    def _trace(self, agent: str, turn: OpenTurn) -> bytes:
        """The trace of a turn: its own, or with join that of the turn in which its agent was forked, and so on."""
        passed: list[str] = []
        while self._join and turn.first and agent not in self._traces:
            passed.append(agent)
            maker, born = self._store.read(partial(self._birth, agent=agent))
            if (above := next(self._turn_at(maker, born, latest=False), None)) is None:
                break
            agent, turn = above
        known = self._traces.get(agent) if turn.first else None
        trace = trace_of(agent, turn.opens) if known is None else known
        self._traces.update(dict.fromkeys(passed, trace))
        return trace

    def _birth(self, tx: Transaction, agent: str) -> tuple[str, int]:
        """The agent that has forked this one, and where; empty for agent 0, and where that is elsewhere."""
        record = self._record(tx, agent)
        if record is None or not record.born:
            return "", 0
        start = record.fork_message_id
        first = [one.data for one in section(tx, agent, start, start + 1)]
        return next((str(data.get("by") or data.get("parent", "")) for data in first), ""), record.born

    def _record(self, tx: Transaction, agent: str) -> AgentRecord | None:
        if agent not in self._records:
            self._records[agent] = next(iter(registry.some(tx, (agent,))), None)
        return self._records[agent]

    def _birthplace(self, reference: Reference, turn: OpenTurn) -> bytes:
        """The span in which an agent was forked: the call that did it, or the turn."""
        maker, born = reference.agent, reference.at

        def read(tx: Transaction) -> bytes | None:
            told = section(tx, maker, born, born + 1)
            if not told or told[0].kind != Kind.TOOL_RESULT or told[0].data.get("name") != "fork":
                return None
            replies = (one for one in reversed(section(tx, maker, turn.opens, born)) if one.kind == Kind.ASSISTANT)
            for reply in replies:
                for place, call in enumerate(calls_in(reply)):
                    if call.id == told[0].data.get("tool_use_id"):
                        return call_span(maker, reply.id, place)
            return None

        return self._store.read(read) or turn_span(maker, turn.opens, turn.again)
