"""The tree panel shows the agents, live, beside the transcript. Choosing one goes there; typing goes to the prompt."""

from itertools import cycle
from typing import NamedTuple

from rich.text import Text
from textual import events

from ikigai_actors.agent.statistics import AgentStatistics
from ikigai_actors.agent.turn.state import Phase, is_working
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.hosts.liveness import LATELY, Sign
from ikigai_actors.shell.app.snapshot import Snapshot
from ikigai_actors.shell.app.widgets.rows import Rows
from ikigai_actors.shell.app.widgets.status_bars import SPINNER
from ikigai_actors.shell.text.harmless import one_line
from ikigai_actors.shell.text.tree import Node, drawn

MARK, LEVEL = 2, 3
"""Columns of the mark before a row, and of one level of the tree."""

_NAME = 14
"""The fewest columns for a name, with the depth of an agent below the last level; a narrow window has fewer."""

_SIGNS = {Phase.INTERRUPTED.value: "‖", Phase.WAITING_FOR_APPROVAL.value: "?"}


class _Row(NamedTuple):
    node: Node
    statistics: AgentStatistics | None
    name: str
    current: bool
    sign: Sign | None


class TreePanel(Rows):
    """The tree of agents."""

    DEFAULT_CSS = """
    TreePanel { width: 34; max-width: 45%; height: 100%; dock: left; border-right: solid $foreground 30%; }
    """

    def __init__(self) -> None:
        super().__init__(lambda row: row.node.record.uuid, self._row, id="tree")
        self._spinner = cycle(SPINNER)
        self._sign = next(self._spinner)
        self._snapshot: Snapshot | None = None

    def update_from(self, snapshot: Snapshot) -> None:
        """Show the tree of a snapshot; without the focus, the cursor goes to the current agent."""
        self._snapshot = snapshot
        nodes = drawn(snapshot.everybody, deepest=max(1, (self.size.width - MARK - _NAME) // LEVEL))
        here = snapshot.current.uuid
        rows = [
            _Row(node, snapshot.statistics.get(uuid), snapshot.names[uuid], uuid == here, snapshot.signs.get(uuid))
            for node in nodes
            for uuid in (node.record.uuid,)
        ]
        self.show(rows, None if self.has_focus else here)

    def on_resize(self, event: events.Resize) -> None:
        """Draw as many levels as fit into the new width."""
        if self._snapshot is not None:
            self.update_from(self._snapshot)

    def spin(self) -> None:
        """Turn the spinners of the agents at work."""
        self._sign = next(self._spinner)
        self.refresh()

    def _row(self, row: _Row) -> Text:
        record = row.node.record
        text = Text(f"{self._mark(record, row.statistics)} {row.node.branch}", "dim")
        text.append(one_line(row.name), "bold" if row.current else "dim" if not record.living else "")
        if record.unread:
            text.append(f" ✉{record.unread}")
        if row.statistics is not None and (out := row.statistics.tokens.output_tokens):
            text.append(f" {out}t", "dim")
        if row.sign is not None and row.statistics is not None and is_working(row.statistics.state):
            if row.sign.tokens:
                text.append(f" {row.sign.tokens}t/{LATELY}s", "dim")
            elif row.sign.seconds >= LATELY:
                text.append(f" {row.sign.seconds:.0f}s", "dim")
        return text

    def _mark(self, record: AgentRecord, statistics: AgentStatistics | None) -> str:
        if record.status != "running":
            return {"dead": "✝", "stopped": "■"}.get(record.status, "▪")
        if statistics is None:
            return " "
        return self._sign if is_working(statistics.state) else _SIGNS.get(statistics.state, "·")
