"""Rows as text: tables that are Markdown as well, and figures in the unit that suits them."""

from collections.abc import Iterable, Sequence

from benchmarks.results import Row, growth, names, series

HEADER = ("who", "backend", "", "figure", "beside", "that", "ratio", "growth")


def tables(rows: Iterable[Row]) -> str:
    """Everything that was measured, a table for each name; the growth stands beside the largest size of a series."""
    rows = list(rows)
    return "\n\n".join(_table([row for row in rows if row.name == name]) for name in names(rows))


def _table(rows: list[Row]) -> str:
    header = [title or rows[0].counted for title in HEADER]
    lines = [[*_cells(row), exponent(growth(each)) if row is each[-1] else ""] for each in series(rows) for row in each]
    return f"### {rows[0].name}\n\n{markdown(header, lines, left=2)}"


def _cells(row: Row) -> list[str]:
    limit = "" if row.limit is None else show(row.limit, row.unit)
    return [row.who, row.backend, f"{row.size:,}", figure(row), row.beside, limit, times(row.ratio)]


def figure(row: Row) -> str:
    """What the row says: its figure, or why there is none."""
    return row.why if row.figure is None else show(row.figure, row.unit)


def markdown(header: Sequence[str], lines: Iterable[Sequence[str]], left: int = 1) -> str:
    """A table with aligned columns; all but the first so many are set to the right."""
    texts = [header, *lines]
    widths = [max(3, *(len(line[column]) for line in texts)) for column in range(len(header))]
    rule = ["-" * width if column < left else "-" * (width - 1) + ":" for column, width in enumerate(widths)]
    return "\n".join(f"| {' | '.join(_aligned(line, widths, left))} |" for line in (texts[0], rule, *texts[1:]))


def _aligned(line: Sequence[str], widths: list[int], left: int) -> list[str]:
    return [
        cell.ljust(width) if column < left else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(line, widths, strict=True))
    ]


def show(value: float, unit: str) -> str:
    """A figure, in the multiple of its unit that suits it: ``1.2 ms``, ``38 KB``, ``4,141/s``, ``3``."""
    if unit == "s":
        return _scaled(value, ((1, "s"), (1e-3, "ms"), (1e-6, "µs")))
    if unit == "B":
        return _scaled(value, ((1e9, "GB"), (1e6, "MB"), (1e3, "KB"), (1, "B")))
    return f"{_short(value)}/s" if unit == "/s" else _short(value)


def times(ratio: float | None) -> str:
    """How many times as much; nothing when it is not known."""
    return "" if ratio is None else f"{_short(ratio)} ×"


def exponent(value: float | None) -> str:
    """A growth: ``n^0.98``; nothing when it is not known."""
    return "" if value is None else f"n^{value + 0.0:.2f}".replace("n^-0.00", "n^0.00")


def _scaled(value: float, units: tuple[tuple[float, str], ...]) -> str:
    """In the largest unit of which there is one."""
    scale, name = next((unit for unit in units if abs(value) >= unit[0]), units[-1])
    return f"{_short(value / scale)} {name}"


def _short(value: float) -> str:
    """Three digits are enough, except in whole numbers."""
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.01 else f"{value:.1g}"
