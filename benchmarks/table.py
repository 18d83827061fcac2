"""Tables of figures: aligned text that is Markdown as well."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Figure(NamedTuple):
    """A number, and how it is shown."""

    value: float
    text: str


Cell = str | Figure


@dataclass
class Table:
    """A title, a header, rows, and what must be said about them."""

    title: str
    header: tuple[str, ...]
    rows: list[tuple[Cell, ...]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, *cells: Cell) -> None:
        """Add a row."""
        if len(cells) != len(self.header):
            raise ValueError(f"Expected {len(self.header)} cells, got {cells!r}.")
        self.rows.append(cells)

    def figures(self) -> dict[str, Any]:
        """The table for JSON: a figure is its number."""
        rows = [
            {
                name: cell.value if isinstance(cell, Figure) else cell
                for name, cell in zip(self.header, row, strict=True)
            }
            for row in self.rows
        ]
        return {"title": self.title, "rows": rows, "notes": self.notes}

    def __str__(self) -> str:
        texts = [self.header, *([cell.text if isinstance(cell, Figure) else cell for cell in row] for row in self.rows)]
        widths = [max(len(row[column]) for row in texts) for column in range(len(self.header))]
        right = [any(isinstance(row[column], Figure) for row in self.rows) for column in range(len(self.header))]
        rule = ["-" * (width - 1) + ":" if align else "-" * width for width, align in zip(widths, right, strict=True)]
        lines = [f"### {self.title}", ""]
        for row in (texts[0], rule, *texts[1:]):
            cells = [
                cell.rjust(width) if align else cell.ljust(width)
                for cell, width, align in zip(row, widths, right, strict=True)
            ]
            lines.append(f"| {' | '.join(cells)} |")
        if self.notes:
            lines += ["", *(f"- {note}" for note in self.notes)]
        return "\n".join(lines)


def duration(seconds: float) -> Figure:
    """A time, in the unit that suits it."""
    if seconds >= 1:
        return Figure(seconds, f"{_short(seconds)} s")
    if seconds >= 1e-3:
        return Figure(seconds, f"{_short(seconds * 1e3)} ms")
    return Figure(seconds, f"{_short(seconds * 1e6)} µs")


def size(count: float) -> Figure:
    """A number of bytes, in the unit that suits it."""
    value, unit = float(count), "B"
    for unit in ("B", "KB", "MB", "GB"):
        if abs(value) < 1000 or unit == "GB":
            break
        value /= 1000
    return Figure(count, f"{_short(value)} {unit}")


def rate(per_second: float) -> Figure:
    """How many in a second."""
    return Figure(per_second, f"{_short(per_second)}/s")


def times(factor: float) -> Figure:
    """How many times as much."""
    return Figure(factor, f"{_short(factor)} ×")


def percent(part: float) -> Figure:
    """A part of one, as per cent."""
    return Figure(part, f"{part * 100:.0f} %")


def number(value: float) -> Figure:
    """A plain number."""
    return Figure(value, _short(value))


def _short(value: float) -> str:
    """Three digits are enough, except in whole numbers."""
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"
