"""The tables of docs/engineering/figures.md and the plots, made of the results file.

    python -m benchmarks.report         # rewrites the tables, draws docs/benchmarks/*.svg

A table stands between ``<!-- benchmark: NAME -->`` and ``<!-- end -->``. Making the text is pure, and
needs nothing but the standard library; the plots need matplotlib (`benchmarks.plots`).
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from benchmarks.results import RESULTS, Results, Row, growth, read, series
from benchmarks.table import exponent, figure, markdown, show, times

ROOT = RESULTS.parent.parent
PAGE = ROOT / "docs" / "engineering" / "figures.md"
PLOTS = ROOT / "docs" / "engineering" / "benchmarks"

ABSENT = "not installed"
"""The version of what a run was without; another run may have had it."""

MARKED = re.compile(r"(<!-- benchmark: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


class Column(NamedTuple):
    """What a table says of each line."""

    title: str
    text: Callable[[Sequence[Row]], str]
    """Of all rows of the line."""


Columns = Callable[[Sequence[Row]], list[Column]]
"""The columns of a table, made of all rows of the benchmark."""


class Table(NamedTuple):
    """How a table is made of the rows of a benchmark."""

    benchmark: str
    columns: Columns
    corner: str = ""
    line: Callable[[Row], str] | None = None
    """What the line of a row is called; None for whose it is and where it is stored."""


def main() -> None:
    """Rewrite the tables, and draw the plots."""
    from benchmarks.plots import draw

    results = read(RESULTS)
    PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")
    for path in draw(results, PLOTS):
        print(path.relative_to(ROOT))


def rendered(text: str, results: Results) -> str:
    """The text with its tables as these results give them. Raises `ValueError` for a table that is not known."""

    def table(match: re.Match[str]) -> str:
        name = match[2]
        if name not in TABLES and name != "machine":
            raise ValueError(f"Expected a benchmark's table: machine, {', '.join(TABLES)}; got {name!r}.")
        made = machine(results) if name == "machine" else _table(TABLES[name], results)
        return f"{match[1]}{made}\n{match[3]}"

    return MARKED.sub(table, text)


def machine(results: Results) -> str:
    """On what, when and with what the runs were made, once if it is the same for all."""
    runs = results.values()
    if not runs:
        return "Not measured yet."
    machines = ((run.machine, show(run.machine["memory"], "B")) for run in runs)
    hardware = _each(
        (
            f"{details['processor']}, {details['cores']} cores, {size}, {details['system']}"
            for details, size in machines
        ),
        "; ",
    )
    used: dict[str, set[str]] = {}
    for name, version in (each for run in runs for each in run.versions.items()):
        used.setdefault(name, set()).add(version)
    versions = "; ".join(f"{name} {', '.join(sorted(some - {ABSENT}) or [ABSENT])}" for name, some in used.items())
    loads = [load for run in runs for load in run.load]
    quick = ", ".join(name for name, run in results.items() if run.quick)
    days, minutes = _each(sorted(run.date[:10] for run in runs)), sum(run.seconds for run in runs) / 60
    lines = [
        f"- on {days}, in {minutes:.0f} minutes, at a load of {min(loads):.1f} to {max(loads):.1f}",
        f"- by {hardware}",
        f"- with {versions}",
        *([f"- at small sizes: {quick}"] if quick else []),
    ]
    return "\n".join(lines)


def _each(texts: Iterable[str], between: str = ", ") -> str:
    return between.join(dict.fromkeys(texts))


def _table(table: Table, results: Results) -> str:
    if table.benchmark not in results:
        return "Not measured yet."
    rows = results[table.benchmark].rows
    columns = table.columns(rows)
    lines: dict[str, list[Row]] = {}
    for row in rows:
        lines.setdefault((table.line or _who)(row), []).append(row)
    texts = [(name, *(column.text(of) for column in columns)) for name, of in lines.items()]
    header = (table.corner, *(column.title for column in columns))
    return markdown(header, [text for text in texts if any(text[1:])])


def _who(row: Row) -> str:
    return f"{row.who}, {row.backend}" if row.backend else row.who


def _by_size(name: str, ratio: bool = False, grows: bool = True) -> Columns:
    """A column for each size of one figure, and its growth if that is meant to be seen."""

    def columns(rows: Sequence[Row]) -> list[Column]:
        sizes = sorted({row.size for row in rows if row.name == name})
        last = [Column("growth", _growth(name))] if grows else []
        return [*(Column(f"{size:,}", _at(name, size, ratio)) for size in sizes), *last]

    return columns


def _by_name(*named: tuple[str, str]) -> Columns:
    """A column for each of some figures, at the largest size, with its growth; a title and the figure's name each."""
    return lambda rows: [Column(title, _with_growth(name)) for title, name in named]


def _at_largest(*named: tuple[str, str], ratio: bool = False) -> Columns:
    """A column for each of some figures, at the largest size; a title and the figure's name each."""
    return lambda rows: [Column(title, _at(name, None, ratio)) for title, name in named]


def _both(*parts: Columns) -> Columns:
    return lambda rows: [column for part in parts for column in part(rows)]


def _titled(title: str, columns: Columns) -> Columns:
    """The columns, with what they show before each title."""
    return lambda rows: [column._replace(title=f"{title} {column.title}") for column in columns(rows)]


def _at(name: str, size: int | None, ratio: bool) -> Callable[[Sequence[Row]], str]:
    """A figure at a size (None: at the largest that was measured), with its ratio when asked for."""

    def text(rows: Sequence[Row]) -> str:
        of = [row for row in rows if row.name == name and size in (None, row.size)]
        if not of:
            return ""
        row = max(of, key=lambda row: (row.figure is not None, row.size))
        return f"{figure(row)} ({times(row.ratio)})" if ratio and row.ratio is not None else figure(row)

    return text


def _growth(name: str) -> Callable[[Sequence[Row]], str]:
    return lambda rows: ", ".join(exponent(growth(each)) for each in series(row for row in rows if row.name == name))


def _with_growth(name: str) -> Callable[[Sequence[Row]], str]:
    return lambda rows: " · ".join(filter(None, (_at(name, None, ratio=False)(rows), _growth(name)(rows))))


def _of_ours(rows: Sequence[Row]) -> list[Column]:
    """A column for each size of our figures, where a line is one figure in one place."""

    def text(size: int) -> Callable[[Sequence[Row]], str]:
        return lambda line: ", ".join(figure(row) for row in line if row.size == size and row.who == "ikigai")

    return [Column(f"{size:,}", text(size)) for size in sorted({row.size for row in rows if row.size > 1})]


def _by_place(rows: Sequence[Row]) -> list[Column]:
    """A column for each place, with how a figure came about."""

    def text(place: str) -> Callable[[Sequence[Row]], str]:
        return lambda line: ", ".join(f"{figure(row)} · {row.note}" for row in line if row.backend == place)

    return [Column(place, text(place)) for place in dict.fromkeys(row.backend for row in rows)]


def _after_colon(row: Row) -> str:
    return row.name.partition(": ")[2]


def _in_place(row: Row) -> str:
    return f"{row.name.removeprefix('turn: ')}, {row.backend}"


def _phases(rows: Sequence[Row]) -> list[Column]:
    """Of the prompt cache, at the largest size; a line is a phase, and its figures' names begin with what they are."""
    titles = ("tokens written", "tokens read", "price")
    most = max((row.size for row in rows), default=0)

    def text(title: str, limit: bool) -> Callable[[Sequence[Row]], str]:
        def of(line: Sequence[Row]) -> str:
            [row] = [row for row in line if row.size == most and row.name.startswith(f"{title}: ")]
            return show(row.limit or 0, row.unit) if limit else figure(row)

        return of

    return [
        *(Column(title, text(title, limit=False)) for title in titles),
        Column("without", text("price", limit=True)),
    ]


TABLES = {
    "fork": Table("fork", _by_size("fork", ratio=True), "inherited messages"),
    "fork-bytes": Table("fork", _by_size("fork: bytes written", ratio=True), "inherited messages"),
    "turn": Table("turn", _by_size("turn: processor", ratio=True), "messages before"),
    "turn-ours": Table("turn", _of_ours, "messages before", line=_in_place),
    "turn-trips": Table("turn", _at_largest(
        ("waits for the server", "turn: round trips"), ("1 ms away", "turn: a server 1 ms away"),
        ("with a budget: waits", "turn with a budget: round trips"),
        ("1 ms away", "turn with a budget: a server 1 ms away"))),
    "sleepers": Table("sleepers", _at_largest(
        *((title, f"sleepers: {title}") for title in (
            "open", "open, processor", "memory", "first turn, processor", "next turn, processor", "close"))),
        line=lambda row: f"{row.size:,} agents, {row.backend}"),
    "plans": Table("plans", _by_place, line=_after_colon),
    "long": Table("long", _at_largest(("one turn of 100 model calls", "long turn"), ("files", "long turn: files"))),
    "journal": Table("journal", _by_size("durable appends", ratio=True), "agents"),
    "append": Table("journal", _by_size("one append", ratio=True), "messages before"),
    "mail": Table("mail", _both(
        _titled("sends to", _by_size("durable sends", ratio=True)),
        _by_name(("one send", "one send"),
                 ("read 10,000", "read 10,000 unread mails beside read ones"),
                 ("find 20", "find the latest 20 of one of 1,000 senders")))),
    "replay": Table("replay", _by_size("replay of one agent", ratio=True), "messages"),
    "boot": Table("replay", _both(_by_size("boot"), _titled("replay", _by_size("replay of all agents", ratio=True))),
                  "agents"),
    "actors": Table("actors", _by_name(
        ("idle", "idle actor"), ("start", "start"), ("`tell` to one", "tell"), ("fan-out", "fan-out"), ("ask", "ask"),
        ("ask of a thread", "ask of a thread"))),
    "cascade": Table("cascade", _both(
        _titled("tree", _by_size("kill of a tree", ratio=True)),
        _titled("chain", _by_size("kill of a chain", ratio=True))), "descendants"),
    "cache": Table("cache", _phases, line=_after_colon),
    "streams": Table("streams", _by_name(
        ("all open", "all open"), ("CPU a delta", "CPU a delta"), ("late: p50", "late, p50"), ("p90", "late, p90"),
        ("p99", "late, p99"), ("max", "late, max"))),
    "signals": Table("signals", _by_name(
        *((f"{since}: {rank}", f"KILL since its {since}, {rank}")
          for since in ("call", "commit") for rank in ("p50", "p90", "max")))),
    "keyboard": Table("keyboard", _by_name(
        *((f"{screen}: {rank}", f"key to screen {screen}, {rank}")
          for screen in ("80×24", "200×60") for rank in ("p50", "p90", "p99")))),
    "failover": Table("failover", _by_name(
        *((f"prompted {part}: {rank}", f"kill to answer, prompted {part}: {rank}")
          for part in ("before", "after") for rank in ("p50", "max")))),
    "spread": Table("spread", _titled("forks with", _by_size("forks")), "hosts"),
    "spread-death": Table("spread", _by_size("death of a tree on 4 hosts", ratio=True), "agents"),
    "hosts": Table("hosts", _at_largest(
        *((name, name) for name in ("boot of a host", "take-over", "take-over: written")), ratio=True)),
    "hosts-commits": Table("hosts", _by_size("commits", ratio=True), "hosts"),
    "budgets": Table("budgets", _both(
        *(_titled(where, _by_size(f"turn under budgets, {where}: processor", ratio=True, grows=False))
          for where in ("one host", "four hosts"))), "budgets"),
    "budgets-hosts": Table("budgets", _by_size("turns of hosts under three budgets", ratio=True), "hosts"),
    "reach": Table("reach", _by_name(
        *((f"{where}: {rank}", f"prompt, {where}: {rank}")
          for where in ("here", "elsewhere", "attached") for rank in ("p50", "p90")))),
    "replies": Table("replies", _by_name(
        *((f"late: {rank}", f"piece of a reply, late: {rank}") for rank in ("p50", "p90")))),
    "simulation": Table("simulation", _at_largest(("steps a second", "steps of a simulation, CPU time"))),
}  # fmt: skip
"""By their names in the pages."""


if __name__ == "__main__":
    main()
