"""The HTML of agents for a notebook: a tree with signs and states, in which nothing runs.

A closed system, or a database that does not answer, gives the plain text alone: an exception here would be the cell's
result.
"""

from collections.abc import Iterator, Mapping
from html import escape
from typing import TYPE_CHECKING, Protocol

from ikigai_actors.errors import IkigaiError

if TYPE_CHECKING:
    from ikigai_actors.records.agents.registry import AgentRecord

_MOST = 200
"""The most rows of a tree."""

_SIGNS = {"idle": "○", "dead": "×", "stopped": "‖", "terminating": "‖"}
_AT_WORK = "◐"
_BOX = "font:13px/1.5 ui-monospace,monospace;color-scheme:light dark"


class ShownSystem(Protocol):
    """What is asked of a system."""

    def agents(self) -> "list[AgentRecord]":
        """The registry."""

    def state_of(self, record: "AgentRecord") -> str:
        """The state of an agent, in a word or two."""


def mime_bundle(tree: ShownSystem, plain: str, under: str | None = None) -> dict[str, str]:
    """What a notebook shows of a system, or of the agent ``under`` and all below it: by media type."""
    try:
        return {"text/plain": plain, "text/html": _html(tree, under)}
    except IkigaiError:
        return {"text/plain": plain}


def _html(tree: ShownSystem, under: str | None) -> str:
    below: dict[str | None, list[AgentRecord]] = {}
    tops: list[AgentRecord] = []
    for record in tree.agents():
        below.setdefault(record.supervisor_uuid, []).append(record)
        if record.uuid == under or (under is None and record.parent_uuid is None):
            tops.append(record)
    lines, count = list[str](), 0
    for depth, record in _walk(tops, below):
        count += 1
        if count <= _MOST:
            state = tree.state_of(record)
            sign = _SIGNS.get(state, _AT_WORK)
            name = escape(record.short)
            lines.append(f'<div style="padding-left:{depth}em">{sign} {name} <small>{escape(state)}</small></div>')
    if count > _MOST:
        lines.append(f"<div>… {count:,} in all</div>")
    return f'<div style="{_BOX}">{"".join(lines)}</div>'


def _walk(
    tops: "list[AgentRecord]", below: "Mapping[str | None, list[AgentRecord]]"
) -> "Iterator[tuple[int, AgentRecord]]":
    waiting, seen = [(0, one) for one in reversed(tops)], set[str]()
    while waiting:
        depth, record = waiting.pop()
        if record.uuid in seen:  # damaged rows may run in a circle
            continue
        seen.add(record.uuid)
        yield depth, record
        waiting += [(depth + 1, child) for child in reversed(below.get(record.uuid, ()))]
