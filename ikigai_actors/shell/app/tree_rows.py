"""The rows of the tree panel: the shown agents, the folded branches, and the numbers of agents below these. Pure.

    ? lead
    ├─ ● seller  54/s
    │  └─ ◐ labels
    └─ ○ press-office  ▸ 9, 2 working

A person can fold a branch. In a tree of many agents deep branches are folded automatically, except branches with an
agent that works, waits for the person, or is shown in the transcript.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ikigai_actors.shell.app.agent_rows import AgentRow
from ikigai_actors.verbs.text.tree import DEEPEST, drawn

LARGE_TREE = 300
"""The number of agents above which deep branches of a tree are folded automatically."""

DEEP = 3
"""The depth from which branches are folded automatically; agent 0 has depth 0."""


@dataclass(frozen=True, slots=True)
class TreeView:
    """The view of the tree: its current agent, the folded branches, the filter, and the number of levels."""

    current: str = ""
    """The uuid of the agent that the transcript shows."""
    folds: Mapping[str, bool] = field(default_factory=dict)
    """The branches that the person has folded (True) and opened (False), by uuid."""
    wanted: str = ""
    """Show only agents whose name, state or host contain this text, and those above them. No branch is folded then."""
    deepest: int = DEEPEST
    """The most levels drawn."""


class Below(NamedTuple):
    """The numbers of agents below a folded agent, by activity."""

    agents: int = 0
    working: int = 0
    waiting: int = 0
    """The number of agents that wait for a person."""

    def __bool__(self) -> bool:
        """Return whether there are any agents below."""
        return self.agents > 0


_NOBODY = Below()


class TreeRow(NamedTuple):
    """A row of the tree panel: an agent, its place in the drawing, and its folded agents."""

    agent: AgentRow
    branch: str
    """The drawing before the name, made of line characters."""
    parent: str
    """The agent above this one in the drawing, by uuid; empty for none."""
    below: Below
    folded: bool
    """Whether the agents below this one are hidden."""
    wanted: bool
    """Whether the agent itself matches the filter; else only one below it does."""
    hidden: int = 0
    """The number of living children that are not listed, since there are too many."""


def tree_rows(listed: Sequence[AgentRow], view: TreeView, hidden: Mapping[str, int] | None = None) -> list[TreeRow]:
    """Return the rows of the tree, depth first; ``hidden`` has the numbers of unlisted children by parent."""
    agents = {row.uuid: row for row in listed}

    def wanted(row: AgentRow) -> bool:
        return row.record.living and (not view.wanted or row.has(view.wanted))

    nodes = drawn([row.record for row in listed], lambda record: wanted(agents[record.uuid]), view.deepest)
    places = [(agents[node.record.uuid], node.depth) for node in nodes]
    sums, opened = _below(places), _above(agents, view.current)
    rows, path, skipped = list[TreeRow](), list[str](), 0
    for node, (agent, depth), below in zip(nodes, places, sums, strict=True):
        del path[depth:]
        parent = path[-1] if path else ""
        path.append(agent.uuid)
        if skipped:
            skipped -= 1
            continue
        by_itself = (
            len(nodes) > LARGE_TREE and depth >= DEEP and not (below.working or below.waiting or agent.uuid in opened)
        )
        folded = bool(below) and not view.wanted and view.folds.get(agent.uuid, by_itself)
        skipped = below.agents if folded else 0
        rows.append(
            TreeRow(agent, node.branch, parent, below, folded, wanted(agent), (hidden or {}).get(agent.uuid, 0))
        )
    return rows


def _below(places: Sequence[tuple[AgentRow, int]]) -> list[Below]:
    """Return, for each agent, the numbers of agents below it, from the agents with their depths, depth first."""
    sums = [_NOBODY] * len(places)
    pending: dict[int, list[int]] = {}  # by depth, the sums of siblings whose supervisor is yet to come
    for place in range(len(places) - 1, -1, -1):
        agent, depth = places[place]
        if (below := pending.pop(depth + 1, None)) is not None:
            sums[place] = Below(*below)
        beside = pending.setdefault(depth, [0, 0, 0])
        beside[0] += 1
        beside[1] += agent.works
        beside[2] += agent.waits
        for part, number in enumerate(below or ()):
            beside[part] += number
    return sums


def _above(agents: Mapping[str, AgentRow], uuid: str) -> set[str]:
    """Return the uuids of an agent's supervisors, up to agent 0."""
    uuids = set[str]()
    agent = agents.get(uuid)
    while agent is not None and (above := agent.record.supervisor_uuid or "") not in uuids:
        uuids.add(above)
        agent = agents.get(above)
    return uuids
