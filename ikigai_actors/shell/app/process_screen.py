"""The process screen: all living agents as rows of figures, like ``top``."""

from collections.abc import Callable
from time import time
from typing import Any, ClassVar, NamedTuple

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import Screen
from textual.widgets import Static

from ikigai_actors.registry import AgentRecord
from ikigai_actors.shell.app.bars import tokens
from ikigai_actors.shell.app.rows import Rows
from ikigai_actors.shell.app.snapshot import Snapshot
from ikigai_actors.shell.screen import one_line
from ikigai_actors.statistics import AgentStatistics


class _Process(NamedTuple):
    record: AgentRecord
    statistics: AgentStatistics


_COLUMNS: dict[str, tuple[str, Callable[[_Process], Any]]] = {
    "name": ("n", lambda one: one.record.short.casefold()),
    "state": ("s", lambda one: one.statistics.state),
    "inbox": ("i", lambda one: -one.statistics.inbox),
    "mail": ("m", lambda one: -one.record.unread),
    "tokens": ("t", lambda one: -one.statistics.tokens.output_tokens),
    "turns": ("u", lambda one: -one.statistics.turns),
    "since": ("l", lambda one: one.statistics.since),
}
"""Each column's key, and what it is sorted by."""


class ProcessScreen(Screen[str | None]):
    """Gives the uuid of the agent that was chosen."""

    BINDINGS: ClassVar[list[Any]] = [
        Binding("escape,q,f4", "dismiss(None)", "Back"),
        *(Binding(key, f"sort('{name}')", f"by {name}") for name, (key, _) in _COLUMNS.items()),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._by = "since"
        self._processes: list[_Process] = []
        self._now = 0

    def compose(self) -> ComposeResult:
        """Head, rows, and the keys."""
        yield Static(id="head")
        yield Rows(lambda one: one.record.uuid, self._row)
        yield Static(" ".join(f"{key} {name}" for name, (key, _) in _COLUMNS.items()) + " · Enter goes there · Esc")

    def update_from(self, snapshot: Snapshot) -> None:
        """Show a moment."""
        self._now = int(time() * 1_000)
        self._processes = [
            _Process(record, snapshot.statistics[record.uuid])
            for record in snapshot.everybody
            if record.uuid in snapshot.statistics
        ]
        self._show()

    def action_sort(self, name: str) -> None:
        """Sort by a column."""
        self._by = name
        self._show()

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        """Go to an agent."""
        self.dismiss(event.key)

    def _show(self) -> None:
        told = {name: f"{name.upper()}{'▾' * (name == self._by)}" for name in _COLUMNS}
        head = f"{told['name']:<17}{told['state']:<22}{told['inbox']:>6}{told['mail']:>6}"
        head += f"{told['tokens']:>14}{told['turns']:>6}{told['since']:>9}"
        self.query_one("#head", Static).update(Text(head, "bold"))
        self.query_one(Rows).show(sorted(self._processes, key=_COLUMNS[self._by][1]))

    def _row(self, one: _Process) -> Text:
        record, told = one.record, one.statistics
        name = Text(one_line(record.short))
        name.truncate(16, pad=True, overflow="ellipsis")
        state = record.status if record.status != "running" else told.state
        rest = f" {state:<22}{told.inbox:>6}{record.unread:>6}{tokens(told.tokens):>14}{told.turns:>6}"
        return name.append(f"{rest}{_ago(self._now - told.since):>9}")


def _ago(ms: int) -> str:
    seconds = max(0, ms) // 1_000
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7_200 else f"{seconds // 3_600} h"
