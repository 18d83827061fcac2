"""The table of the screen of agents: its columns, its order, and the figures above it. Pure.

table(rows, Order(by="cost"))     the rows that are wanted, the dearest first
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from ikigai_actors.reach.snapshots import Snapshot
from ikigai_actors.records.agents.lists import Census
from ikigai_actors.shell.app.agent_rows import NEEDS_A_PERSON, URGENCY, WORKS, AgentRow, colour_of
from ikigai_actors.shell.app.theme import Palette
from ikigai_actors.verbs.text.budgets import dollars, short_budget
from ikigai_actors.verbs.text.harmless import one_line
from ikigai_actors.verbs.text.words import SIGNS, duration, in_thousands, money


def _urgency(row: AgentRow) -> tuple[int, float]:
    """Return the rank of an agent: first those that wait for a person, then those that work, the longest first.

    The rate does not count, because rows would change places all the time while a person acts on them.
    """
    place, quiet = URGENCY[row.activity.kind], not (row.works or row.waits)
    return (place, row.seconds if quiet else -row.seconds)


class Column(NamedTuple):
    """A column of the table of agents: its width, its text, and the order that it gives."""

    width: int
    """The width in characters, with blanks before a number or after a word; 0 for the name, which takes the rest."""
    cell: Callable[[AgentRow], str]
    sort: Callable[[AgentRow], Any]
    """The columns that rows are sorted by, the most interesting first."""
    least: int = 0
    """The narrowest window, in characters, in which the column is shown."""


TABLE_COLUMNS: Mapping[str, Column] = {
    "agent": Column(0, lambda row: row.name, lambda row: row.name.casefold()),
    "state": Column(18, lambda row: row.activity.word, _urgency),
    "for": Column(8, lambda row: duration(row.seconds) if row.seconds else "", lambda row: -row.seconds, 48),
    "rate": Column(7, lambda row: f"{row.rate:.0f}/s" if row.rate else "", lambda row: -row.rate, 60),
    "mail": Column(6, lambda row: str(row.record.unread or ""), lambda row: -row.record.unread, 76),
    "tokens": Column(8, lambda row: in_thousands(row.tokens) if row.tokens else "", lambda row: -row.tokens, 40),
    "cost": Column(9, lambda row: money(dollars(row.usd)) if row.usd else "", lambda row: -row.usd, 72),
    "restarts": Column(10, lambda row: str(row.restarts or ""), lambda row: -row.restarts, 92),
    "turns": Column(7, lambda row: str(row.turns or ""), lambda row: -row.turns, 100),
    "queue": Column(7, lambda row: str(row.inbox or ""), lambda row: -row.inbox, 110),
    "host": Column(12, lambda row: row.host, lambda row: row.host.casefold(), 110),
}
"""The columns by name, in the order of the screen."""

SIGN = 4
"""The width, in columns, of the mark and the sign before a name, and of the blank after the last column."""

_METER = 10

_FEW, _FEWEST = 0.8, 0.95
"""The used shares of a budget from which the meter shows a warning, and from which it shows an alarm."""

_NAME = 18
"""The least width of the name's column, if the window has room for it."""


@dataclass(frozen=True, slots=True)
class Order:
    """The selection and the order of the rows that a person wants to see."""

    by: str = "state"
    """The name of the column by which rows are sorted."""
    turned: bool = False
    """Whether the order is reversed."""
    wanted: str = ""
    """The text by which rows are filtered: an agent is shown if name, state or host contain it; empty shows all agents.
    """
    branches: bool = False
    """Whether tokens and cost of a row include those of all descendants."""


class Meters(NamedTuple):
    """The sums over all agents: their number, how many work, how many are in each activity, and tokens per second."""

    agents: int
    working: int
    kinds: Mapping[str, int]
    """The number of agents in each kind of activity."""
    rate: float
    """Tokens per second of all agents together."""


def meters(rows: Sequence[AgentRow], counted: Census | None = None) -> Meters:
    """Return the sums over rows; ``counted`` has the numbers of all agents, if the rows are only some of them."""
    kinds, rate = Counter(row.activity.kind for row in rows), sum(row.rate for row in rows)
    if counted is None:
        return Meters(len(rows), sum(kinds[kind] for kind in WORKS), kinds, rate)
    working = counted.turns - sum(kinds[kind] for kind in NEEDS_A_PERSON)
    kinds["stopped"] = counted.stopped
    return Meters(counted.living, max(0, working), kinds, rate)


class Table(NamedTuple):
    """The rows of the table of agents in order, with the sums over all agents."""

    order: Order
    rows: Sequence[AgentRow]
    """The matching living agents, in order."""
    widest: int
    """The width of the longest name among them, in characters."""
    meters: Meters
    """The sums over all living agents."""


def table(listed: Sequence[AgentRow], order: Order, counted: Census | None = None) -> Table:
    """Return the matching rows in order, without dead agents.

    ``counted`` has the numbers of all agents, if ``listed`` is only a part of them.
    """
    living = [row for row in listed if row.record.living]
    rows = [row for row in living if row.has(order.wanted)] if order.wanted else living.copy()
    rows.sort(key=TABLE_COLUMNS[order.by].sort, reverse=order.turned)
    return Table(order, rows, max((cell_len(row.name) for row in rows), default=0), meters(living, counted))


def widths(width: int, widest: int, hosts: bool) -> dict[str, int]:
    """Return the columns that a window has room for, by name, with their widths.

    Args:
        width: columns of the window.
        widest: columns of the longest name.
        hosts: whether there are several hosts.
    """
    shown = {
        name: column.width
        for name, column in TABLE_COLUMNS.items()
        if column.least <= width and (hosts or name != "host")
    }
    shown["agent"] = min(width - SIGN - sum(shown.values()), max(_NAME, widest) + 2)
    return shown


def meter_line(meters: Meters, snapshot: Snapshot, width: int, colours: Palette) -> Text:
    """Return the line of sums: number of agents by activity, their rate, and the used part of the budget.

    Numbers that are zero are left out, and so are parts that do not fit.
    """
    kinds = meters.kinds
    counts = (
        (meters.agents, "agent" if meters.agents == 1 else "agents", colours.ink),
        (meters.working, "working", colours.accent),
        (kinds["asks"], "asks you" if kinds["asks"] == 1 else "ask you", colours.waits),
        (kinds["budget"], "short of budget", colours.waits),
        (kinds["interrupted"], "interrupted", colours.waits),
        (kinds["stopped"], "stopped", colours.waits),
        (snapshot.abandoned, "overdue calls", colours.failed),
        (round(meters.rate), "tokens/s", colours.ink),
    )
    line = Text(" ")
    for number, word, colour in counts:
        if number and line.cell_len + len(f"{number:,} {word}") < width:
            line.append(f"{number:,}", f"bold {colour}").append(f" {word}   ", colours.past)
    spent = Text()
    if snapshot.budget is not None:
        words, share = short_budget(snapshot.budget)
        spent.append(f"{words} ", colours.ink).append_text(meter(share, _METER, colours))
    elif snapshot.all_cost:
        most = "up to " if snapshot.all_is_most else ""
        spent.append(f"{most}{money(snapshot.all_cost)}", f"bold {colours.ink}").append(" spent", colours.past)
    if line.cell_len + spent.cell_len < width:
        line.append_text(spent)
    return line


def meter(share: float, width: int, colours: Palette) -> Text:
    """Return a bar that is filled to ``share``, from 0 to 1."""
    used = round(max(0.0, min(1.0, share)) * width)
    colour = colours.failed if share >= _FEWEST else colours.waits if share >= _FEW else colours.accent
    return Text().append("━" * used, colour).append("─" * (width - used), colours.line)


def head_line(shown: Mapping[str, int], order: Order, colours: Palette) -> Text:
    """Return the line of column headings; the sorting column is bold and shows its direction."""
    line = Text(" " * (SIGN - 1))
    for name, width in shown.items():
        words = f"Σ {name}" if order.branches and name in ("tokens", "cost") else name
        if name == order.by:
            words += " ▴" if order.turned else " ▾"
        style = f"bold {colours.ink}" if name == order.by else colours.past
        line.append(_cell(words, name, width), style)
    return line


def row_line(row: AgentRow, shown: Mapping[str, int], marked: bool, colours: Palette) -> Text:
    """Return the line of one agent."""
    kind = row.activity.kind
    colour = colour_of(kind, colours)
    line = Text().append("✓" if marked else " ", f"bold {colours.accent}").append(f"{SIGNS[kind]} ", colour)
    for name, width in shown.items():
        style = colour if name == "state" or (kind == "idle" and name != "agent") else colours.ink
        if marked and name == "agent":
            style = f"bold {colours.accent}"
        line.append(_cell(one_line(TABLE_COLUMNS[name].cell(row)), name, width), style)
    return line


def _cell(words: str, name: str, width: int) -> str:
    """Return a cell of this width: text is left-aligned and cut, figures are right-aligned."""
    if name == "host":  # after a figure; the names of hosts differ at their ends
        while cell_len(words) > width - 2:
            words = f"…{words.lstrip('…')[1:]}"
        return set_cell_size(f"  {words}", width)
    if name not in ("agent", "state"):
        return f"{words:>{width}}"
    return set_cell_size(words if cell_len(words) < width else f"{set_cell_size(words, width - 2).rstrip()}…", width)
