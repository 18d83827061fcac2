"""Reports of replays: as lines, as JSON, and as one HTML page that needs nothing else. Pure.

Texts of models stand in them as they are: whoever shows lines on a terminal makes them harmless first.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, NamedTuple

from ikigai_actors.behaviour.differences import Difference, as_words
from ikigai_actors.behaviour.turns import DIVERGED, Turn
from ikigai_actors.records.identity import SHORT_LENGTH

_STYLE = """body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem;
color-scheme:light dark}
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.3rem .6rem;
border-bottom:1px solid #8886;white-space:pre-wrap;overflow-wrap:anywhere}del{background:#f004;text-decoration:none}
ins{background:#0a04;text-decoration:none}"""


class ReplayRow(NamedTuple):
    """A turn that was replayed."""

    recorded: Turn
    again: Turn
    trial: str
    """The uuid of the agent that has replayed it."""
    differences: tuple[Difference, ...]


def replay_text(rows: Sequence[ReplayRow], ended: str = "") -> str:
    """A line for each difference, and a last one that counts; it says why the replay has ended before all was done."""
    lines = [
        f"{_short(row)} {' '.join(f'{one}{_reason(row, one)}'.split())}" for row in rows for one in row.differences
    ]
    return "\n".join([*lines, _counted(rows, ended)])


def replay_json(rows: Sequence[ReplayRow], ended: str = "") -> str:
    """All of it as a JSON object."""
    turns = [
        {
            **_turn_as_json(row.recorded),
            "replayed": {**_turn_as_json(row.again), "agent": row.trial},
            "differences": [difference_as_json(one) for one in row.differences],
        }
        for row in rows
    ]
    return json.dumps({"turns": turns, "differences": _kinds(rows), "ended": ended}, ensure_ascii=False)


def replay_html(rows: Sequence[ReplayRow], ended: str = "") -> str:
    """One page: a row for each difference, beside the prompt of its turn."""
    cells: list[list[str | Difference]] = [
        [_short(row), str(one.position), row.recorded.prompt or "", f"{one.what}{_reason(row, one)}", one]
        for row in rows
        for one in row.differences
    ]
    head = ["agent", "message", "prompt", "what", "recorded", "replayed"]
    return html_page("Replay", [_counted(rows, ended)], head, cells)


def difference_as_json(one: Difference) -> dict[str, Any]:
    """A difference as a JSON object."""
    return {"position": one.position, "what": one.what, "recorded": one.recorded, "replayed": one.replayed}


def html_page(title: str, told: Iterable[str], head: Sequence[str], rows: Iterable[Sequence[str | Difference]]) -> str:
    """A page with a table. Nothing in it is loaded, and nothing that a model has written runs.

    Args:
        title: its title.
        told: paragraphs above the table.
        head: the names of the columns.
        rows: texts; a difference fills two columns.
    """
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>\n" for row in rows)
    columns = "".join(f"<th>{escape(one)}</th>" for one in head)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body><h1>{escape(title)}</h1>\n"
        + "".join(f"<p>{escape(one)}</p>\n" for one in told)
        + f"<table><thead><tr>{columns}</tr></thead><tbody>\n{body}</tbody></table></body></html>\n"
    )


def _cell(part: str | Difference) -> str:
    if isinstance(part, str):
        return f"<td>{escape(part)}</td>"
    then, now = (escape(as_words(one)) for one in (part.recorded, part.replayed))
    return f"<td><del>{then}</del></td><td><ins>{now}</ins></td>"


def _short(row: ReplayRow) -> str:
    return row.recorded.agent.uuid[:SHORT_LENGTH]


def _reason(row: ReplayRow, one: Difference) -> str:
    """Why a replay failed, behind the difference that says so."""
    return f": {row.again.error}" if one.what == "end" and row.again.error and row.again.how != DIVERGED else ""


def _counted(rows: Sequence[ReplayRow], ended: str) -> str:
    differ = sum(bool(row.differences) for row in rows)
    kinds = ", ".join(f"{count} {what}" for what, count in _kinds(rows).items())
    told = "none differs" if not differ else f"{differ} differ: {kinds}"
    return f"{len(rows)} replayed, {told}." + (f" It ended before all was replayed: {ended}." if ended else "")


def _kinds(rows: Sequence[ReplayRow]) -> dict[str, int]:
    return dict(Counter(one.what for row in rows for one in row.differences))


def _turn_as_json(turn: Turn) -> dict[str, Any]:
    calls = [
        {"position": one.position, "name": one.name, "input": one.input, "result": one.result, "is_error": one.is_error}
        for one in turn.calls
    ]
    return {
        "agent": turn.agent.uuid,
        "opens": turn.opens,
        "end": turn.end,
        "prompt": turn.prompt,
        "calls": calls,
        "text": turn.text,
        "how": turn.how,
        "error": turn.error,
    }
