"""Plots of the results, as SVG: the same results give the same file, whenever and wherever they are drawn."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from matplotlib.figure import Figure

from benchmarks.results import Results, Row, growth, series
from benchmarks.table import exponent

STYLE = {"svg.hashsalt": "ikigai-actors", "svg.fonttype": "none", "font.size": 9, "axes.grid": True, "grid.alpha": 0.3}

UNITS = {"s": "seconds", "B": "bytes", "/s": "in a second"}


class Plot(NamedTuple):
    """One file."""

    benchmark: str
    name: str
    """The figure that is drawn, by its sizes."""


PLOTS = {
    "fork": Plot("fork", "fork"),
    "fork-bytes": Plot("fork", "fork: bytes written"),
    "append": Plot("journal", "one append"),
    "journal": Plot("journal", "durable appends"),
    "replay": Plot("replay", "replay of one agent"),
    "boot": Plot("replay", "boot"),
    "cascade": Plot("cascade", "kill of a tree"),
    "actors": Plot("actors", "start"),
    "mail": Plot("mail", "find the latest 20 of one of 1,000 senders"),
    "streams": Plot("streams", "late, p50"),
}


def draw(results: Results, directory: Path) -> Iterator[Path]:
    """Draw what was measured into the directory; gives the files."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, plot in PLOTS.items():
        run = results.get(plot.benchmark)
        rows = [row for row in run.rows if row.name == plot.name] if run else []
        if rows:
            path = directory / f"{name}.svg"
            _draw(rows, path)
            yield path


def _draw(rows: list[Row], path: Path) -> None:
    with matplotlib.rc_context(STYLE):
        drawing = Figure(figsize=(7, 5), layout="constrained")
        axes = drawing.subplots()
        for number, each in enumerate(series(rows)):
            points = [(row.size, row.figure) for row in each if row.size and row.figure]
            if points:
                ours = each[0].who == "ikigai"
                axes.plot(
                    *zip(*points, strict=True), marker="o", label=_label(each), color=f"C{number % 10}",
                    linewidth=2 if ours else 1, linestyle="-" if ours else "--",
                )  # fmt: skip
        _beside(rows, axes)
        axes.set(xscale="log", yscale="log", title=rows[0].name, xlabel=rows[0].counted)
        axes.set_ylabel(UNITS.get(rows[0].unit, rows[0].unit))
        drawing.legend(loc="outside lower center", ncols=2, fontsize=7, frameon=False)
        drawing.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def _beside(rows: list[Row], axes: Any) -> None:
    """The raw limits of ours."""
    for each in series(row for row in rows if row.who == "ikigai" and row.limit is not None):
        points = [(row.size, row.limit) for row in each if row.size]
        label = f"{each[0].beside}, {each[0].backend}".strip(", ")
        axes.plot(*zip(*points, strict=True), label=label, color="grey", linestyle=":", marker=".")


def _label(each: list[Row]) -> str:
    grown = exponent(growth(each))
    return ", ".join(part for part in (each[0].who, each[0].backend, grown) if part)
