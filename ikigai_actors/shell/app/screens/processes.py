"""The process screen lists all living agents as rows of figures, like ``top``."""

from collections.abc import Callable
from time import time
from typing import Any, ClassVar, NamedTuple

from rich.cells import cell_len
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import Screen
from textual.widgets import Static

from ikigai_actors.agent.statistics import AgentStatistics
from ikigai_actors.agent.turn.state import Phase, is_working
from ikigai_actors.providers.prices import MICRO
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.hosts.liveness import Sign
from ikigai_actors.records.spending import spent_by_branches
from ikigai_actors.shell.app.snapshot import Snapshot
from ikigai_actors.shell.app.widgets.rows import Rows
from ikigai_actors.shell.app.widgets.status_bars import dollars, token_count
from ikigai_actors.shell.text.harmless import one_line

_NAME, _LONGEST_NAME = 13, 17
"""The columns of names, as there is room: two words take 17 at most."""

_SIGNS = {"sign", "3 s"}
"""The columns of the latest sign of life, and of the tokens of the last seconds."""

_WIDE = 94
"""From this many columns on there is room for these."""

_HOST = 8
"""Columns of the name of a host, with the blank after it."""


class _Process(NamedTuple):
    record: AgentRecord
    statistics: AgentStatistics
    restarts: int
    tokens: int
    """Spent in its life, or by its whole branch; the same in micro-dollars."""
    usd: int
    host: str
    """The name of its host, where there are several."""
    sign: Sign | None
    """Its latest sign of life, while it works."""


_COLUMNS: dict[str, tuple[str, Callable[[_Process], Any]]] = {
    "name": ("n", lambda one: one.record.short.casefold()),
    "host": ("h", lambda one: one.host.casefold()),
    "state": ("s", lambda one: one.statistics.state),
    "inbox": ("i", lambda one: -one.statistics.inbox),
    "mail": ("m", lambda one: -one.record.unread),
    "tokens": ("t", lambda one: -one.tokens),
    "cost": ("c", lambda one: -one.usd),
    "turns": ("u", lambda one: -one.statistics.turns),
    "restarts": ("r", lambda one: -one.restarts),
    "since": ("l", lambda one: one.statistics.since),
    "sign": ("g", lambda one: -one.sign.seconds if one.sign is not None else 1),
    "3 s": ("3", lambda one: -(one.sign.tokens or 0) if one.sign is not None else 1),
}
"""For each column its key, and the value of a row to sort by."""

_SHORT = {Phase.WAITING_FOR_MODEL.value: "waits for model", Phase.WAITING_FOR_APPROVAL.value: "waits for yes/no"}
"""Short names of the states whose names are longer than the column."""


class ProcessScreen(Screen[str | None]):
    """Gives the uuid of the chosen agent, or None.

    Tokens and costs are what the agent has spent in its life, on earlier hosts too; with ``b``, what it and all that
    descend from it have, the dead too. All else is since its start here.
    """

    BINDINGS: ClassVar[list[Any]] = [
        Binding("escape,q,f4", "dismiss(None)", "Back"),
        *(Binding(key, f"sort('{name}')", f"by {name}") for name, (key, _) in _COLUMNS.items()),
        Binding("b", "branches", "Branches"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._head, self._rows = Static(id="head"), Rows(lambda one: one.record.uuid, self._row)
        self._keys = Static(id="keys")
        self._by = "since"
        self._branches = False
        self._snapshot: Snapshot | None = None
        self._processes: list[_Process] = []
        self._now = self._abandoned = 0
        self._columns = _NAME
        self._hidden = {"host", *_SIGNS}
        """The columns that would be empty."""

    def compose(self) -> ComposeResult:
        """Lay out the head, the rows and the keys."""
        yield self._head
        yield self._rows
        yield self._keys

    def update_from(self, snapshot: Snapshot) -> None:
        """Show the agents of a snapshot."""
        self._snapshot = snapshot
        self._now, self._abandoned = int(time() * 1_000), snapshot.abandoned
        self._hidden = set() if snapshot.hosts else {"host"}
        costs = any(record.spent_usd for record in snapshot.everybody)
        if snapshot.hosts and not costs:  # a line of 80 columns has room for one of the two
            self._hidden = {"cost"}
        spare = self.app.size.width - _WIDE
        if spare < 0:
            self._hidden |= _SIGNS
            spare += 7 * len(_SIGNS)
        self._columns = min(max(_NAME, _NAME + spare), _LONGEST_NAME)
        spent = {one.uuid: (one.spent_tokens, one.spent_usd) for one in snapshot.everybody}
        if self._branches:
            spent = spent_by_branches(snapshot.everybody)
        self._processes = [
            _Process(
                record,
                snapshot.statistics[record.uuid],
                snapshot.restarts.get(record.uuid, 0),
                *spent[record.uuid],
                snapshot.hosts.get(record.owner or "", "-"),
                snapshot.signs.get(record.uuid) if is_working(snapshot.statistics[record.uuid].state) else None,
            )
            for record in snapshot.everybody
            if record.uuid in snapshot.statistics
        ]
        self._show()

    def action_sort(self, name: str) -> None:
        """Sort the rows by a column, given by name."""
        self._by = name if name not in self._hidden else self._by
        self._show()

    def action_branches(self) -> None:
        """Show what whole branches have spent, or what each agent has."""
        self._branches = not self._branches
        if self._snapshot is not None:
            self.update_from(self._snapshot)

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        """Give the chosen agent."""
        self.dismiss(event.key)

    def _show(self) -> None:
        told = {name: f"{name.upper()}{'▾' * (name == self._by)}" for name in _COLUMNS}
        for name in ("tokens", "cost") if self._branches else ():
            told[name] = f"Σ {told[name]}"
        told["restarts"] = told["restarts"].replace("RESTARTS", "REST")
        host = "" if "host" in self._hidden else f"{told['host']:<{_HOST}}"
        cost = "" if "cost" in self._hidden else f"{told['cost']:>8}"
        head = f"{told['name']:<{self._columns}} {host}{told['state']:<17}{told['inbox']:>7}{told['mail']:>6}"
        signs = "" if "sign" in self._hidden else f"{told['sign']:>7}{told['3 s']:>7}"
        rest = f"{told['turns']:>6}{told['restarts']:>5}{told['since']:>7}{signs}"
        self._head.update(Text(f"{head}{told['tokens']:>10}{cost}{rest}", "bold"))
        shown = [
            f"{key} {'rest' if name == 'restarts' else name}"
            for name, (key, _) in _COLUMNS.items()
            if name not in self._hidden
        ]
        hang = f"calls of tools past their time: {self._abandoned}\n" if self._abandoned else ""
        self._keys.update(f"{hang}{' '.join(shown)} b Σ · Esc")
        self._rows.show(sorted(self._processes, key=_COLUMNS[self._by][1]))

    def _row(self, one: _Process) -> Text:
        record, told = one.record, one.statistics
        name = Text(one_line(record.short))
        name.truncate(self._columns, pad=True, overflow="ellipsis")
        state = Text(_SHORT.get(told.state, one_line(told.state)) if record.status == "running" else record.status)
        state.truncate(16, pad=True, overflow="ellipsis")
        host = "" if "host" in self._hidden else f"{_end(one_line(one.host), _HOST - 1):<{_HOST}}"
        cost = "" if "cost" in self._hidden else f"{dollars(one.usd / MICRO if one.usd else None):>8}"
        since = _ago(self._now - told.since) if told.since else ""
        spent = f"{token_count(one.tokens):>10}{cost}"
        figures = f"{told.inbox:>7}{record.unread:>6}{spent}{told.turns:>6}{one.restarts:>5}"
        signs = ""
        if "sign" not in self._hidden and one.sign is not None:
            signs = f"{_ago(int(one.sign.seconds * 1_000)):>7}{one.sign.tokens or '':>7}"
        return name.append(f" {host}{state.plain} {figures}{since:>7}{signs}")


def _end(text: str, columns: int) -> str:
    """A text, cut at its beginning to this many columns: the names of hosts differ at their ends."""
    while cell_len(text) > columns:
        text = f"…{text.lstrip('…')[1:]}"
    return text


def _ago(ms: int) -> str:
    seconds = max(0, ms) // 1_000
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7_200 else f"{seconds // 3_600} h"
