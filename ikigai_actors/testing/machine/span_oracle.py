"""The spans of turns, checked by the commits: the invariant ``span``.

A turn has ended when a commit records it in the registry; the ends of each turn are counted here. The spans that
`sight.traces` derives from the logs have one ``invoke_agent`` for each of these ends, and no others. Spans that are
exported again are unchanged, even after crashes. The span of a tool has the id that the tool got.
"""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ikigai_actors.agent.instruments import Instrument
from ikigai_actors.agent.statistics import Tally
from ikigai_actors.reach.turn_sources import TurnSources
from ikigai_actors.records.agents import registry
from ikigai_actors.records.messages.messages import Kind
from ikigai_actors.sight.traces.conventions import OWN_AGENT, OWN_TURN
from ikigai_actors.sight.traces.ids import call_span, turn_span
from ikigai_actors.sight.traces.reading import TraceScope, ended_turns
from ikigai_actors.sight.traces.spans import TraceSpan
from ikigai_actors.store.base import Store
from ikigai_actors.testing.simulation.changes import RanStatement, StoredChange, Written
from ikigai_actors.testing.simulation.process import Broken

if TYPE_CHECKING:
    from ikigai_actors.testing.simulation.world import Simulation


class _Told(NamedTuple):
    """The part of a span that never changes.

    The name of the span is left out, since it contains the agent's name, which may change.
    """

    trace: bytes
    parent: bytes
    start: int
    end: int
    error: str


class _Places(Instrument):
    """An instrument that collects the span ids that tools get while they run."""

    def __init__(self) -> None:
        self.ids: set[tuple[str, int, bytes]] = set()
        """The agent, the position that opened its turn, and the id."""

    def tool_runs(self, agent: Tally, turn: int, reply: int, place: int) -> None:
        self.ids.add((agent.uuid, turn, call_span(agent.uuid, reply, place)))


class SpanOracle:
    """Checks the ends of turns of a run, and the spans that are derived from them."""

    def __init__(self, world: "Simulation") -> None:
        self._world = world
        self._turns: dict[str, int] = {}
        """The open turn of each agent that was born here; 0 for none."""
        self._ends: Counter[tuple[str, int]] = Counter()
        """The number of times that each turn has ended, by agent and the position that opened the turn."""
        self._told: dict[bytes, _Told] = {}
        self.places = _Places()
        """Collects the span ids of the tools that run."""
        self._latest: dict[str, int] = {}
        """The time at which each agent wrote last."""
        self._set_back = False
        """Whether a clock was set back, so that times do not give the order of a log."""

    def committed(self, changes: Sequence[StoredChange]) -> None:
        """Count the ends of turns in a commit."""
        opened: dict[str, int] = {}  # with the latest message of an agent in this commit
        for change in changes:
            match change:
                case Written("messages", row):
                    if row[2] == Kind.INTERRUPTED and row[0] in opened:
                        self._ends[row[0], opened[row[0]]] += 1
                    opened = {**opened, row[0]: row[1]} if row[2] == Kind.USER else opened
                    self._set_back |= row[5] < self._latest.get(row[0], 0)
                    self._latest[row[0]] = row[5]
                case RanStatement("register_root", parameters):
                    self._turns.setdefault(parameters["uuid"], 0)
                case RanStatement("register", parameters):
                    self._turns[parameters["uuid"]] = parameters["turn"]
                case RanStatement("set_turn" | "keep_hold", parameters) if parameters["turn"] is not None:
                    self._become(parameters["uuid"], parameters["turn"])
                case RanStatement("bury", parameters):
                    for uuid in parameters["uuids"]:
                        self._become(uuid, 0)

    def _become(self, agent: str, turn: int) -> None:
        if (before := self._turns.get(agent, 0)) and before != turn:
            self._ends[agent, before] += 1
        if agent in self._turns:
            self._turns[agent] = turn

    def check_rest(self) -> None:
        """Check that there are spans for exactly the turns that have ended, unchanged, and beneath their parents."""
        store = self._world.process.looked_at
        turns = list(ended_turns(TurnSources(store), TraceScope()))
        joined = list(ended_turns(TurnSources(store), TraceScope(join=True)))
        pruned = {record.uuid for record in store.read(registry.every) if record.pruned_at is not None}
        reported = self._told_by(turns)
        ends = Counter({end: count for end, count in self._ends.items() if end[0] not in pruned})
        counts = Counter(_end_of(turn[0]) for turn in turns)
        here = Counter({end: count for end, count in counts.items() if end[0] in self._turns})
        if here != ends:
            raise Broken(f"span: turns {dict(ends - here)} have ended without a span, and {dict(here - ends)} have not")
        of_pruned = {
            turn_span(*end, again) for end in self._ends if end[0] in pruned for again in range(self._ends[end])
        }
        self._check_links(turns, reported.keys() | of_pruned, complete=counts == ends)
        if [[span.id for span in turn] for turn in turns] != [[span.id for span in turn] for turn in joined]:
            raise Broken("span: joined to one another, turns have other spans")
        self._check_since(store, joined)
        over = {(agent, turn) for agent, turn in ends if self._turns.get(agent) != turn}
        ran = {identity for agent, turn, identity in self.places.ids if (agent, turn) in over}
        if lost := ran - reported.keys():
            raise Broken(f"span: {len(lost)} tools ran whose spans have other ids, or are missing")
        self._told = reported

    def _check_since(self, store: Store, turns: list[list[TraceSpan]]) -> None:
        """Check that a search by time finds the later half of the turns."""
        if turns and not self._set_back:
            since = sorted(turn[0].end for turn in turns)[len(turns) // 2]
            later = [turn for turn in turns if turn[0].end >= since]
            if list(ended_turns(TurnSources(store), TraceScope(since=since, join=True))) != later:
                raise Broken(f"span: the turns that ended since {since} are others than those of everybody")

    def _told_by(self, turns: list[list[TraceSpan]]) -> dict[bytes, _Told]:
        spans: dict[bytes, _Told] = {}
        for root, *others in turns:
            for span in (root, *others):
                if span.id in spans:
                    raise Broken(f"span: two spans have the id of {span.name}")
                spans[span.id] = _Told(span.trace, span.parent, span.start, span.end, span.error)
                if (span.trace, span.parent) != (root.trace, root.id if span is not root else b""):
                    raise Broken(f"span: {span.name} is not below {root.name}")
                if not root.start <= span.start <= span.end <= root.end:
                    raise Broken(f"span: {span.name} is from {span.start} to {span.end}, and {root.name} is not")
        lost = [span for known, span in self._told.items() if known in spans and spans[known] != span]
        if lost:
            raise Broken(f"span: {lost} were exported, and are others now")
        return spans

    def _check_links(self, turns: list[list[TraceSpan]], known: "set[bytes]", *, complete: bool) -> None:
        """Check that links lead to turns.

        If agents were imported, links may lead to turns that are not in the database.
        """
        is_open = {turn_span(agent, turn, self._ends[agent, turn]) for agent, turn in self._turns.items() if turn}
        links = [(span, link) for turn in turns for span in turn for link in span.links]
        if complete and (wrong := [(span.name, link.why) for span, link in links if link.span not in known | is_open]):
            raise Broken(f"span: {wrong} are linked to no turn")


def _end_of(root: TraceSpan) -> tuple[str, int]:
    agent, turn = root.attributes[OWN_AGENT], root.attributes[OWN_TURN]
    assert isinstance(agent, str)
    assert isinstance(turn, int)
    return agent, turn
