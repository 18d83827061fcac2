"""What the benchmarks give: rows, runs of them, and the file that keeps the last run of each benchmark.

The file is JSON, a row a line. A run says on what it was made: machine, versions, the load at its start and end.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from math import log
from pathlib import Path
from statistics import linear_regression
from typing import Any

RESULTS = Path(__file__).parent / "results.json"
"""The file that the tables of docs/engineering/figures.md are made of."""

OPTIONAL = ("beside", "limit", "ratio", "why", "note")
"""What a row in the file is without when there is nothing to say."""

DIGITS = 4
"""Significant digits of a figure in the file; no run is repeated so exactly."""


@dataclass(frozen=True, slots=True)
class Row:
    """One figure."""

    name: str
    """What is measured: ``fork``. A name has one unit, and its sizes count one thing."""
    who: str
    """Whose figure it is: ``ikigai``, or a peer with its version."""
    backend: str
    """Where it is stored: ``SQLite``, ``PostgreSQL``, ``file``; empty when nothing is."""
    size: int
    counted: str
    """What the size counts: ``inherited messages``."""
    figure: float | None
    """None when there is none."""
    unit: str
    """``s`` (seconds), ``B`` (bytes), ``/s`` (in a second), or the word for what is counted."""
    beside: str = ""
    """What it is compared with: the raw limit, or ``ikigai`` in the row of a peer."""
    limit: float | None = None
    """The figure of that, in the same run."""
    why: str = ""
    """Why there is no figure: ``not installed``."""
    note: str = ""
    """How it came about: by which index a statement finds its rows."""

    @property
    def ratio(self) -> float | None:
        """How many times what stands beside it the figure is; None when one of the two is missing."""
        return self.figure / self.limit if self.figure is not None and self.limit else None


@dataclass(frozen=True, slots=True)
class Run:
    """One benchmark, run once."""

    date: str
    """ISO 8601, of its start."""
    seconds: float
    quick: bool
    """Whether the sizes were the small ones."""
    load: tuple[float, float]
    """The load average of one minute, at the start and at the end."""
    machine: Mapping[str, Any]
    """``cores``, ``memory`` in bytes, ``processor``, ``system``."""
    versions: Mapping[str, str]
    """By name; ``not installed`` for a peer that is not."""
    rows: tuple[Row, ...]


Results = Mapping[str, Run]
"""The last run of each benchmark, by its name."""


def series(rows: Iterable[Row]) -> list[list[Row]]:
    """The rows that differ in size alone, together and in its order; the series in the order of the rows."""
    together: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        together.setdefault((row.name, row.who, row.backend), []).append(row)
    return [sorted(each, key=lambda row: row.size) for each in together.values()]


def growth(rows: Iterable[Row]) -> float | None:
    """The exponent with which a figure grows with the size: 0 is flat, 1 is linear. None with fewer than two sizes.

    Fitted by least squares through the logarithms; what has no logarithm (nothing inherited) is left out.
    """
    points = [(log(row.size), log(row.figure)) for row in rows if row.size > 0 and row.figure and row.figure > 0]
    if len({size for size, _ in points}) < 2:
        return None
    return linear_regression(*zip(*points, strict=True)).slope


def beside_ours(rows: Iterable[Row]) -> list[Row]:
    """The rows, a peer's with our figure of the same size beside it: that on the same backend, else the first."""
    rows = list(rows)
    ours: dict[tuple[str, int], dict[str, Row]] = {}
    for row in rows:
        if row.who == "ikigai":
            ours.setdefault((row.name, row.size), {})[row.backend] = row
    return [_beside(row, ours.get((row.name, row.size), {})) for row in rows]


def _beside(row: Row, ours: Mapping[str, Row]) -> Row:
    if row.who == "ikigai" or not ours or row.figure is None or row.limit is not None:
        return row
    own = ours.get(row.backend) or next(iter(ours.values()))
    return replace(row, beside=f"ikigai, {own.backend}" if own.backend else "ikigai", limit=own.figure)


def read(path: Path) -> dict[str, Run]:
    """The runs in a file; none when it is not there. Raises `ValueError` for a file of another kind."""
    if not path.exists():
        return {}
    try:
        return {name: _run(data) for name, data in json.loads(path.read_text(encoding="utf-8")).items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"Expected {path} to hold results of the benchmarks; it does not ({error!r}).") from error


def write(path: Path, results: Results) -> None:
    """Write the runs to a file, whole or not at all."""
    text = "{\n" + ",\n".join(f"{json.dumps(name)}: {_text(run)}" for name, run in results.items()) + "\n}\n"
    beside = path.with_name(f"{path.name}.new")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


def names(rows: Iterable[Row]) -> list[str]:
    """What is measured, each once, in order."""
    return list(dict.fromkeys(row.name for row in rows))


def _run(data: dict[str, Any]) -> Run:
    rows = tuple(Row(**{name: value for name, value in row.items() if name != "ratio"}) for row in data.pop("rows"))
    return Run(**(data | {"rows": rows, "load": tuple(data["load"])}))


def _text(run: Run) -> str:
    head = {name: value for name, value in asdict(run).items() if name != "rows"}
    lines = [f" {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in head.items()]
    rows = [f"  {json.dumps(_short(asdict(row) | {'ratio': row.ratio}), ensure_ascii=False)}" for row in run.rows]
    return "{\n" + ",\n".join([*lines, ' "rows": [\n' + ",\n".join(rows) + "\n ]"]) + "\n}"


def _short(row: dict[str, Any]) -> dict[str, Any]:
    """A row without what is empty; figures as exact as they are worth."""
    return {
        name: float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
        for name, value in row.items()
        if name not in OPTIONAL or value not in ("", None)
    }
