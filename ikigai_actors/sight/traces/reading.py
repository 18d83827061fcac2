"""The ended turns of a database as spans, with the links between agents.

    for turn in ended_turns(TurnSources.of(system), TraceScope(since=yesterday)):
        sender.send(turn)

A turn is read whole or not at all.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from ikigai_actors.reach.turn_sources import TurnSource, TurnSources
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.messages.messages import Kind, Message
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

FOREVER = 2**62

_AGENTS = 500
"""The most agents whose rows are read at once."""

_MESSAGES = 2_000
"""The most messages that are read at once."""


@dataclass(frozen=True, slots=True)
class TraceScope:
    """The selection of turns to export as spans, and the contents of the spans."""

    agents: Collection[str] | None = None
    """The uuids of the traced agents; None for all."""
    since: int = 0
    """Only turns that ended at this time or later, in milliseconds since 1970, are exported."""
    until: int = FOREVER
    """Only turns that ended before this time, in milliseconds since 1970, are exported."""
    content: bool = False
    """Whether spans have the texts of prompts, replies and results."""
    join: bool = False
    """Whether a child's first turn is in the trace of the turn that forked the child."""
    usage: str = BOTH
    """The spans that have token counts: `BOTH`, or ``chat`` for requests alone."""


def ended_turns(sources: TurnSources, scope: TraceScope) -> Iterator[list[TraceSpan]]:
    """Yield the spans of each ended turn, in the order of the agents' births; the turn's own span comes first."""
    links = _Links(sources, scope.join)
    chosen = sources.agents(scope.agents)
    for place in range(0, len(chosen), _AGENTS):
        for source in sources.sources(chosen[place : place + _AGENTS], scope.since):
            for turn in _turns_of(sources, source, scope, links):
                if scope.since <= turn.end < scope.until:
                    yield links.resolved(source.record, turn)


def _turns_of(sources: TurnSources, source: TurnSource, scope: TraceScope, links: "_Links") -> Iterator[EndedTurn]:
    record, head, start = source
    fold = _fold_of(record, start, scope)
    while start < head.last:
        end = min(start + _MESSAGES, head.last)
        for message in sources.messages(record.uuid, start, end):
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
    """Finds the turns of other agents to which a turn refers."""

    def __init__(self, sources: TurnSources, join: bool) -> None:
        self._sources, self._join = sources, join
        self._turns: dict[tuple[str, int], tuple[OpenTurn | None, OpenTurn | None]] = {}
        self._traces: dict[str, bytes] = {}  # with join: of the first turn of each agent

    def note(self, message: Message, fold: TurnFold) -> None:
        """Record the turn to which a message belongs; call it after the fold has taken the message."""
        self._turns[message.agent_uuid, message.id] = (fold.open, fold.latest)

    def resolved(self, record: AgentRecord, turn: EndedTurn) -> list[TraceSpan]:
        """Return the spans of a turn with their links; with joined traces, in the trace of the forking turn."""
        spans, born = turn.spans, None
        for reference in turn.references:
            for agent, origin in self._meant(reference):
                if reference.why == FORKED:
                    born = (reference, origin)
                link = SpanLink(self._trace(agent, origin), turn_span(agent, origin.opens, origin.again), reference.why)
                later = spans[reference.span]
                spans[reference.span] = replace(later, links=(*later.links, link))
        if not self._join or born is None:
            return spans
        trace = self._trace(record.uuid, OpenTurn(turn.opens, turn.again, first=True))
        root, *others = spans
        return [
            replace(root, trace=trace, parent=self._birthplace(*born)),
            *(replace(span, trace=trace) for span in others),
        ]

    def _meant(self, reference: Reference) -> Iterator[tuple[str, OpenTurn]]:
        """Yield the turns to which a reference points, each with its agent."""
        if reference.why == MAILED:
            mails = self._sources.mails(reference.agent, reference.at)
            for sender, sent, kind in dict.fromkeys((mail.sender, mail.sent, mail.kind) for mail in mails):
                places = {} if sender is None else self._sources.position_at(sender, sent)
                for agent, place in places.items():
                    yield from self._turn_at(agent, place, latest=kind == "exit")
        else:
            yield from self._turn_at(reference.agent, reference.at, latest=reference.why != FORKED)

    def _turn_at(self, agent: str, position: int, *, latest: bool) -> Iterator[tuple[str, OpenTurn]]:
        """Yield the turn that was open at a position; with ``latest``, if none was open, the turn before it."""
        if (agent, position) not in self._turns:
            self._turns[agent, position] = self._looked_up(agent, position)
        turn = self._turns[agent, position][latest]
        if turn is not None:
            yield agent, turn

    def _looked_up(self, agent: str, position: int) -> tuple[OpenTurn | None, OpenTurn | None]:
        if (before := self._sources.before(agent, position)) is None:
            return None, None
        record, start, messages = before
        fold = _fold_of(record, start, TraceScope())
        for message in messages:
            fold.follow(message)
        return fold.open, fold.latest

    def _trace(self, agent: str, turn: OpenTurn) -> bytes:
        """Return the trace id of a turn.

        With joined traces, a fork's first turn has the trace id of the forking turn.
        """
        passed: list[str] = []
        while self._join and turn.first and agent not in self._traces:
            passed.append(agent)
            maker, born = self._sources.birth(agent)
            if (above := next(self._turn_at(maker, born, latest=False), None)) is None:
                break
            agent, turn = above
        known = self._traces.get(agent) if turn.first else None
        trace = trace_of(agent, turn.opens) if known is None else known
        self._traces.update(dict.fromkeys(passed, trace))
        return trace

    def _birthplace(self, reference: Reference, turn: OpenTurn) -> bytes:
        """Return the id of the span in which an agent was forked: of the call that forked it, else of the turn."""
        maker = reference.agent
        call = self._sources.fork_call(maker, turn.opens, reference.at)
        return turn_span(maker, turn.opens, turn.again) if call is None else call_span(maker, *call)
