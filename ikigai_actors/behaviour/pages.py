"""Reports of experiments: as lines, as JSON, and as one HTML page that needs nothing else. Pure.

Texts of models are in them as they are: to show lines on a terminal, make them harmless first.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import compress
from typing import Any, NamedTuple

from ikigai_actors.behaviour.differences import Difference, as_words

_STYLE = """:root{color-scheme:light dark}
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:90rem;padding:0 1rem}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem}dt{opacity:.7}
dd{margin:0;overflow-wrap:anywhere;white-space:pre-wrap}
.rows{overflow-x:auto}table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.3rem .6rem;border-bottom:1px solid #8886}th{white-space:nowrap}
td{white-space:nowrap}td.text{min-width:9rem;white-space:pre-wrap;overflow-wrap:anywhere}
td.number{text-align:right;font-variant-numeric:tabular-nums}tr.best{font-weight:600}
@media(max-width:50rem){body{font-size:13px;margin:1rem auto;padding:0 .5rem}th,td{padding:.2rem .3rem}
td.text{min-width:6rem}}
del{background:#f004;text-decoration:none}ins{background:#0a04;text-decoration:none}"""


class ReportCell(NamedTuple):
    """A cell in the table of a report."""

    text: str
    kind: str = "text"
    """The kind: ``text`` of any length, ``del`` for recorded text, ``ins`` for its replacement, ``name`` for one line,
    or ``number``.
    """


def name_cell(text: str) -> ReportCell:
    """Return a cell with a name or an id."""
    return ReportCell(text, "name")


def number_cell(number: float | None) -> ReportCell:
    """Return a cell with a number; empty for None."""
    return ReportCell("" if number is None else f"{number:g}", "number")


class ReportRow(NamedTuple):
    """A row in the table of a report."""

    cells: Sequence[ReportCell | Difference]
    """The cells of the row; a difference fills two columns."""
    best: bool = False
    """Whether the row is highlighted."""


@dataclass(frozen=True, slots=True)
class ExperimentReport:
    """The report of an experiment, from which text, JSON and HTML are made."""

    title: str
    sentences: Sequence[str]
    """The result, in sentences."""
    text: Sequence[str]
    """The whole report, as lines."""
    head: Sequence[str]
    """The column headings. A page leaves out columns without any text."""
    rows: Sequence[ReportRow]
    data: Mapping[str, Any]
    """The whole report, as JSON data."""

    def html(self, about: Sequence[tuple[str, str]]) -> str:
        """Return one HTML page. The page loads nothing, and text of a model does not run in the page.

        Args:
            about: facts about the experiment, as pairs of a heading and a text.
        """
        rows = [[part for cell in row.cells for part in _cells(cell)] for row in self.rows]
        full = [any(row[place].text for row in rows) for place in range(len(self.head))]
        columns = "".join(f"<th>{escape(cell)}</th>" for cell in compress(self.head, full))
        facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in about)
        title = escape(self.title)
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width">'
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
            f"<title>{title}</title><style>{_STYLE}</style></head>\n<body><h1>{title}</h1>\n"
            + "".join(f"<p>{escape(sentence)}</p>\n" for sentence in self.sentences)
            + f"<dl>{facts}</dl>\n"
            + f'<div class="rows"><table><thead><tr>{columns}</tr></thead><tbody>\n'
            + "".join(_row(compress(cells, full), row.best) for cells, row in zip(rows, self.rows, strict=True))
            + "</tbody></table></div></body></html>\n"
        )

    def json(self, about: Mapping[str, Any]) -> str:
        """Return the report as a JSON object; ``about`` has the facts of the experiment."""
        return json.dumps({**self.data, "about": about}, ensure_ascii=False)


def difference_as_json(difference: Difference) -> dict[str, Any]:
    """Return a difference as a JSON object."""
    return {
        "position": difference.position,
        "what": difference.what,
        "recorded": difference.recorded,
        "replayed": difference.replayed,
    }


def _cells(part: ReportCell | Difference) -> tuple[ReportCell, ...]:
    if isinstance(part, ReportCell):
        return (part,)
    return ReportCell(as_words(part.recorded), "del"), ReportCell(as_words(part.replayed), "ins")


def _row(cells: Iterable[ReportCell], best: bool) -> str:
    opened = '<tr class="best">' if best else "<tr>"
    return f"{opened}{''.join(map(_cell, cells))}</tr>\n"


def _cell(cell: ReportCell) -> str:
    text = escape(cell.text)
    if cell.kind in ("del", "ins"):
        return f'<td class="text"><{cell.kind}>{text}</{cell.kind}></td>'
    return f'<td class="{cell.kind}">{text}</td>'
