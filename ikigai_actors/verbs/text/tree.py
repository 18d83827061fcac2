"""The tree of agents as text. Pure: records in, lines out.

    * brave-otter            idle         0 inherited +  4 own
      ├─ dba                 idle         4 inherited +  3 own
      │  └─ leafy-cello      interrupted  7 inherited +  1 own
      └─ critic              idle         5 inherited + 12 own
    4 running, 0 dead

Depth first, children under their supervisor in order of creation, adopted ones last; ``*`` at the current agent. A dead
agent is shown on request, or when a living agent is below it. An agent that has lost its supervisor and got no new one
is marked as an orphan; a stopped agent has its reason beside it. ``inherited`` is the agent's fork point, and ``own``
the number of messages of any kind that it wrote itself. So drawing reads no log, and ignores clears and rewinds.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from ikigai_actors.agent.turn.state import Phase
from ikigai_actors.records.agents.registry import AgentRecord, Placed, in_order, shown_names
from ikigai_actors.records.hosts.liveness import LATELY, Sign
from ikigai_actors.verbs.text.colours import Span, meaning_of_agent
from ikigai_actors.verbs.text.harmless import one_line
from ikigai_actors.verbs.text.wrap import width

DEEPEST = 6
"""The most levels that are drawn. A deeper agent is drawn at the last level, with its depth as a number."""

WIDEST = 36
"""The widest column of agents, which leaves room for other columns in 80. Longer names are not cut."""


P = TypeVar("P", bound=Placed)

_INDENT = "  "
"""The indent of one level in a tree without lines."""


@dataclass(frozen=True, slots=True)
class ListedTrials:
    """The notes about experiments in a list of agents, and the trials that the list leaves out."""

    notes: Mapping[str, str] = field(default_factory=dict)
    """The text beside an experiment or a trial, by uuid."""
    hidden: Collection[str] = frozenset()
    """The uuids of agents that are left out."""


NO_TRIALS = ListedTrials()


class Line(NamedTuple):
    """A line of the tree as text, with the meanings of its parts."""

    text: str
    current: bool = False
    dead: bool = False
    spans: tuple[Span, ...] = ()
    """The meanings of parts of the line."""


class Node(NamedTuple, Generic[P]):
    """The place of an agent in the drawn tree."""

    record: P
    branch: str
    """The line characters of the drawing before the agent."""
    depth: int
    """The number of agents above it in the drawing."""


def tree_lines(
    records: Sequence[AgentRecord],
    own: Mapping[str, int],
    state: Callable[[AgentRecord], str],
    current: str | None = None,
    wanted: Callable[[str], bool] | None = None,
    hosts: Mapping[str, str] | None = None,
    signs: Mapping[str, Sign] | None = None,
    trials: ListedTrials = NO_TRIALS,
    is_drawn: bool = True,
    labels: Mapping[str, str] | None = None,
    counts: Mapping[str, int] | None = None,
) -> list[Line]:
    """Return the lines of the tree, and a line with the numbers of agents.

    Args:
        records: the whole registry; or some agents and all above them, with ``labels`` and ``counts``.
        own: messages that each agent wrote itself, by uuid.
        state: what an agent is doing, in a word or two.
        current: uuid of the agent that gets the ``*``.
        wanted: which agents are shown, by uuid, with those above them; None shows the living.
        hosts: the names of the hosts, by id; with some there is a column for the one that runs an agent.
        signs: the latest heartbeats of those that are in a turn.
        trials: what is said of experiments, and which of their trials are left out; the line that counts counts them.
        is_drawn: whether lines lead to an agent from the one above it; else its line says which that is.
        labels: what people are shown for each agent, by uuid.
        counts: how many agents there are of each status.
    """
    shown = shown_names(records) if labels is None else labels
    nodes = drawn(
        [record for record in records if record.uuid not in trials.hidden],
        lambda record: record.living if wanted is None else wanted(record.uuid),
    )
    dead = {record.uuid for record in records if not record.living}
    before = [node.branch if is_drawn else _INDENT * min(node.depth, DEEPEST) for node in nodes]
    names = [
        left + shown[node.record.uuid] + _former_name(node.record, shown)
        for left, node in zip(before, nodes, strict=True)
    ]
    words = [state(node.record) for node in nodes]
    states = words
    if hosts:
        places = [hosts.get(node.record.owner or "", "-") if node.record.living else "" for node in nodes]
        first, second = max(map(width, states), default=0), max(map(width, places), default=0)
        states = [f"{pad(word, first)}  {pad(place, second)}" for word, place in zip(states, places, strict=True)]
    label_width = min(max(map(width, names), default=0), WIDEST)
    state_width = max(map(width, states), default=0)
    before_width = max((len(str(node.record.fork_message_id)) for node in nodes), default=0)
    own_width = max((len(str(own.get(node.record.uuid, 0))) for node in nodes), default=0)

    def line(node: Node[AgentRecord], label: str, word: str, bare: str) -> Line:
        record = node.record
        mine, before = own.get(record.uuid, 0), record.fork_message_id
        columns = f"{pad(label, label_width)}  {pad(word, state_width)}  {before:>{before_width}} inherited"
        star = "*" if record.uuid == current else " "
        mail = f", {record.unread} unread" if record.unread else ""
        orphan = ", orphan" if record.living and record.supervisor_uuid in dead else ""
        why = f", stopped: {one_line(record.why_stopped)}" if record.why_stopped else ""
        seen = (signs or {}).get(record.uuid)
        sign = "" if seen is None or word.startswith(Phase.INTERRUPTED) else f", {sign_text(seen)}"
        above = shown.get(record.supervisor_uuid or "")
        below = "" if is_drawn or above is None else f", below {above}"
        trial = f", {one_line(trials.notes[record.uuid])}" if record.uuid in trials.notes else ""
        text = f"{star} {columns} + {mine:>{own_width}} own{below}{mail}{orphan}{why}{sign}{trial}"
        start, meaning = len(f"{star} {pad(label, label_width)}  "), meaning_of_agent(record, bare)
        spans = () if meaning is None else (Span(start, start + len(bare), meaning),)
        return Line(text, record.uuid == current, not record.living, spans)

    lines = [line(*each) for each in zip(nodes, names, states, words, strict=True)]
    return [*lines, Line(summary(Counter(record.status for record in records) if counts is None else counts))]


def sign_text(sign: Sign) -> str:
    """Return a heartbeat as text: its age, and the tokens that arrived lately."""
    came = f", {sign.tokens:,} tokens in {LATELY} s" if sign.tokens else ""
    return f"heartbeat {sign.seconds:.0f} s ago{came}"


def summary(counts: Mapping[str, int]) -> str:
    """Return the numbers of agents by status: ``N running, M dead``, and other statuses if there are any."""
    between = [f"{counts[status]} {status}" for status in ("stopped", "terminating") if counts.get(status)]
    return ", ".join([f"{counts.get('running', 0)} running", *between, f"{counts.get('dead', 0)} dead"])


def drawn(records: Sequence[P], wanted: Callable[[P], bool], deepest: int = DEEPEST) -> list[Node[P]]:
    """Return the nodes of the wanted agents, and of all agents above them, in the order of the drawing.

    Down to ``deepest`` levels are drawn.
    """
    by_uuid = {record.uuid: record for record in records}
    shown: set[str] = set()
    for record in records:
        above: P | None = record if wanted(record) else None
        while above is not None and above.uuid not in shown:
            shown.add(above.uuid)
            above = by_uuid.get(above.supervisor_uuid or "")
    return _depth_first([record for record in records if record.uuid in shown], deepest)


def _depth_first(records: Sequence[P], deepest: int) -> list[Node[P]]:
    """Yield every agent once, each under its supervisor; without recursion, since trees may be thousands deep.

    An agent that cannot be reached from agent 0 (damaged rows) is at the left, after the tree.
    """
    below: dict[str | None, list[P]] = {}
    known = {record.uuid for record in records}
    for record in records:
        below.setdefault(record.supervisor_uuid if record.supervisor_uuid in known else None, []).append(record)
    nodes: list[Node[P]] = []
    seen: set[str] = set()
    for top in [*below.pop(None, []), *records]:
        stack = [(top, "", "", 0)]
        while stack:
            record, branch, indent, depth = stack.pop()
            if record.uuid in seen:
                continue
            seen.add(record.uuid)
            nodes.append(Node(record, branch, depth))
            children = in_order(record.uuid, below[record.uuid]) if record.uuid in below else []
            for place, child in enumerate(reversed(children)):
                stack.append((child, *_branch(indent, depth + 1, deepest, last=place == 0), depth + 1))
    return nodes


def _branch(indent: str, depth: int, deepest: int, last: bool) -> tuple[str, str]:
    """Return the drawn lines before a child, and those before the child's own children."""
    if depth > deepest:
        return f"{indent[: 3 * (deepest - 1)]}└┄{depth}┄ ", indent
    return (f"{indent}└─ ", f"{indent}   ") if last else (f"{indent}├─ ", f"{indent}│  ")


def _former_name(record: AgentRecord, shown: Mapping[str, str]) -> str:
    """Return `` (NAME)`` for a dead agent whose name another agent has now; empty for any other agent."""
    return f" ({record.name})" if record.name not in (None, shown[record.uuid]) else ""


def pad(text: str, columns: int) -> str:
    """Return the text, padded with blanks to this many columns."""
    return text + " " * (columns - width(text))
