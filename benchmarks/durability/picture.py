"""The picture of the plays: runtimes by moments, a dot for each play.

A dot is filled where all was right, half filled where something was paid again or is unclear, and empty where something
happened twice or never, the run did not end, or the dead acted. A grey ring is a play whose fault did not land.
"""

from collections.abc import Sequence
from html import escape

from benchmarks.durability.faults import MOMENTS
from benchmarks.durability.history import Play
from benchmarks.durability.runtimes import RUNTIMES
from benchmarks.durability.verdict import Verdict

_ROW, _COLUMN, _LEFT, _TOP, _DOT = 22, 34, 190, 260, 4.5


def mark(verdict: Verdict) -> str:
    """``right``, ``half``, ``wrong``, or ``void`` where the fault did not land."""
    if not verdict.landed:
        return "void"
    if verdict.convicted or verdict.twice or verdict.missing:
        return "wrong"
    return "half" if verdict.paid_again or verdict.unclear or verdict.asked_again else "right"


def drawing(plays: Sequence[tuple[Play, Verdict]]) -> str:
    """The picture as SVG."""
    rows = [name for name in RUNTIMES if any(play.runtime == name for play, _ in plays)]
    moments = [name for name in ("undisturbed", *MOMENTS) if any(play.moment == name for play, _ in plays)]
    width, height = max(_LEFT + _COLUMN * len(moments) + 90, 640), _TOP + _ROW * len(rows) + 46
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
        "<style>text{font-size:11px;fill:#333} .line{stroke:#ddd} @media (prefers-color-scheme:dark)",
        "{text{fill:#ccc} .line{stroke:#444}}</style>",
    ]
    for column, name in enumerate(moments):
        x = _LEFT + _COLUMN * (column + 0.5)
        parts.append(f'<text transform="translate({x:.0f} {_TOP - 8}) rotate(-60)">{escape(name)}</text>')
    for row, name in enumerate(rows):
        y = _TOP + _ROW * (row + 0.5)
        parts.append(f'<text x="{_LEFT - 10}" y="{y + 4:.0f}" text-anchor="end">{escape(name)}</text>')
        parts.append(f'<line class="line" x1="{_LEFT}" x2="{width - 60}" y1="{y:.0f}" y2="{y:.0f}"/>')
        for column, moment in enumerate(moments):
            marks = [mark(verdict) for play, verdict in plays if (play.runtime, play.moment) == (name, moment)]
            parts += _dots(marks, _LEFT + _COLUMN * (column + 0.5), y)
    y = height - 18
    for number, (kind, words) in enumerate(_LEGEND.items()):
        x = 20 + 150 * number
        parts += [_dot(kind, x, y - 4), f'<text x="{x + 10}" y="{y}">{words}</text>']
    return "\n".join([*parts, "</svg>", ""])


_LEGEND = {
    "right": "right",
    "half": "paid again, or unclear",
    "wrong": "twice, missing, stuck",
    "void": "the fault did not land",
}


def _dots(marks: Sequence[str], x: float, y: float) -> list[str]:
    """The dots of a cell, side by side as far as they have room."""
    step = min(2 * _DOT + 1, (_COLUMN - 4) / max(1, len(marks)))
    return [_dot(kind, x + step * (number - (len(marks) - 1) / 2), y) for number, kind in enumerate(marks)]


def _dot(kind: str, x: float, y: float) -> str:
    colour = "#999" if kind == "void" else "#2a6fb0"
    fill = {"right": colour, "half": "none", "wrong": "none", "void": "none"}[kind]
    ring = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{_DOT}" fill="{fill}" stroke="{colour}"/>'
    if kind != "half":
        return ring
    half = f"M{x:.1f} {y - _DOT:.1f} A{_DOT} {_DOT} 0 0 0 {x:.1f} {y + _DOT:.1f} Z"
    return f'{ring}<path d="{half}" fill="{colour}"/>'
