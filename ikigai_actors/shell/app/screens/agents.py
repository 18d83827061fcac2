"""The screen of agents lists the living as rows of figures, like ``htop``: who needs or does something comes first."""

from dataclasses import replace
from functools import partial
from time import time
from typing import Any, ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import Screen
from textual.widgets import Static

from ikigai_actors.reach.snapshots import Snapshot, Wish
from ikigai_actors.shell.app.agent_rows import AgentRow, agent_rows
from ikigai_actors.shell.app.agent_table import (
    TABLE_COLUMNS,
    Order,
    Table,
    head_line,
    meter_line,
    row_line,
    table,
    widths,
)
from ikigai_actors.shell.app.widgets.agent_list import AgentList, Doings
from ikigai_actors.shell.app.widgets.key_line import Keys
from ikigai_actors.shell.app.widgets.rows import Rows


class AgentTable(AgentList):
    """The table of agents: the meters, the headings, and the rows."""

    DEFAULT_CSS = """
    AgentTable #meters, AgentTable #head { height: 1; }
    AgentTable #meters { margin-bottom: 1; }
    """

    KEYS: Keys = (
        ("Enter", "open"), ("p", "prompt"), ("s", "stop"), ("c", "continue"), ("k", "kill"), ("/", "filter"),
        ("<>", "sort"), ("Esc", "back"), ("r", "turn round"), ("b", "branches"), ("Space", "mark"),
    )  # fmt: skip

    def __init__(self, doings: Doings) -> None:
        super().__init__(doings, Rows(lambda row: row.uuid, self._row))
        self._meters, self._head = Static(id="meters"), Static(id="head")
        self.order = Order()
        """The filter of the person."""
        self._table = table((), self.order)
        self._widths: dict[str, int] = {}
        self.actions |= {
            "less_than_sign": partial(self._sort_by, -1), "left": partial(self._sort_by, -1),
            "greater_than_sign": partial(self._sort_by, 1), "right": partial(self._sort_by, 1),
            "r": lambda: self._reorder(replace(self.order, turned=not self.order.turned)),
            "b": lambda: self._reorder(replace(self.order, branches=not self.order.branches)),
        }  # fmt: skip

    def compose(self) -> ComposeResult:
        """Lay out the meters and the head above the rows."""
        yield self._meters
        yield self._head
        yield from super().compose()

    def on_mount(self) -> None:
        """Give the keyboard to the rows."""
        self.rows.focus()

    def on_resize(self, event: events.Resize) -> None:
        """Show as many columns as there is room for."""
        self.paint()

    def update_from(self, snapshot: Snapshot, arranged: Table) -> None:
        """Show the agents of a snapshot."""
        self.snapshot = snapshot
        self.tell_rest(snapshot)
        if arranged.order == self.order:
            first = arranged.rows[:1] if arranged.order.wanted != self._table.order.wanted else ()
            self._table = arranged
            self.paint()
            self.rows.show(arranged.rows, first[0].uuid if first else None)

    def want(self, text: str) -> None:
        self._reorder(replace(self.order, wanted=text))

    def paint(self) -> None:
        """Draw everything except the rows, and choose the columns."""
        width, hosts = self.size.width, self.snapshot is not None and bool(self.snapshot.hosts)
        self._widths = widths(width, self._table.widest, hosts)
        self._head.update(head_line(self._widths, self.order, self.colours))
        if self.snapshot is not None:
            self._meters.update(meter_line(self._table.meters, self.snapshot, width, self.colours))
        super().paint()

    def _sort_by(self, step: int) -> None:
        names = [name for name in TABLE_COLUMNS if name in self._widths]
        place = names.index(self.order.by) if self.order.by in names else 0
        self._reorder(replace(self.order, by=names[(place + step) % len(names)], turned=False))

    def prepare(self, snapshot: Snapshot) -> Table:
        """Return the arranged rows of a snapshot. Slow, so call it on another thread."""
        order = self.order
        rows = agent_rows(snapshot, int(time() * 1_000), order.branches)
        return table(rows, order, snapshot.census if snapshot.rest else None)

    @property
    def wish(self) -> Wish:
        return Wish(text=self.order.wanted, kept=self.marked, branches=self.order.branches)

    def _reorder(self, order: Order) -> None:
        self.order = order
        self._doings.look()
        if (snapshot := self.snapshot) is not None:
            self._doings.later(lambda: self.prepare(snapshot), lambda arranged: self.update_from(snapshot, arranged))

    def _row(self, row: AgentRow) -> Text:
        return row_line(row, self._widths, row.uuid in self.marked, self.colours)


class AgentScreen(Screen[str | None]):
    """A screen to choose an agent; its result is the agent's uuid, or None.

    Tokens and costs cover an agent's whole life, on all hosts; with ``b`` they include all descendants, dead ones too.
    All other figures count from the agent's start on this host.
    """

    BINDINGS: ClassVar[list[Any]] = [Binding("q,f4", "dismiss(None)", "Back")]

    def __init__(self, doings: Doings) -> None:
        super().__init__()
        self.table = AgentTable(doings)
        """The content of the screen."""

    def compose(self) -> ComposeResult:
        """Lay out the table of agents."""
        yield self.table

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        """Close the screen with the chosen agent."""
        self.dismiss(event.key)

    def on_agent_list_left(self) -> None:
        """Close the screen without a choice."""
        self.dismiss(None)
