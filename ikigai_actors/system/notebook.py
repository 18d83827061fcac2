"""The HTML of agents for a notebook: a tree with signs and states, in which nothing runs.

If there are too many agents, only living ones are shown, the nearest to the top first.

If the system is closed, or the database does not answer, only the plain text is shown: an exception here would be the
result of the cell.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Protocol

from ikigai_actors.errors import IkigaiError

if TYPE_CHECKING:
    from ikigai_actors.records.agents.registry import AgentRecord
    from ikigai_actors.store.base import Store, Transaction

_MOST = 200
"""The most rows of a tree."""

_SIGNS = {"idle": "○", "dead": "×", "stopped": "‖", "terminating": "‖"}
_AT_WORK = "◐"
_BOX = "font:13px/1.5 ui-monospace,monospace;color-scheme:light dark"


class ShownSystem(Protocol):
    """The parts of a system that its HTML needs."""

    @property
    def _store(self) -> "Store":
        """The database."""

    def _check_open(self) -> None:
        """Raise `SystemClosed` when the system is closed."""

    def state_of(self, record: "AgentRecord") -> str:
        """The state of an agent, in a word or two."""


def mime_bundle(tree: ShownSystem, plain: str, under: str | None = None) -> dict[str, str]:
    """Return the output of a notebook for a system, by media type: the tree of agents as HTML, and plain text.

    ``under``: the agent at the top of the tree; None for all agents.
    """
    try:
        return {"text/plain": plain, "text/html": _html(tree, under)}
    except IkigaiError:
        return {"text/plain": plain}


def _html(tree: ShownSystem, under: str | None) -> str:
    tree._check_open()
    records, count = tree._store.read(partial(_read, under=under))
    lines = []
    for depth, record in _walk(records):
        state = tree.state_of(record)
        sign, name = _SIGNS.get(state, _AT_WORK), escape(record.short)
        lines.append(f'<div style="padding-left:{depth}em">{sign} {name} <small>{escape(state)}</small></div>')
    if count > len(records):
        lines.append(f"<div>… {count:,} in all</div>")
    return f'<div style="{_BOX}">{"".join(lines)}</div>'


def _read(tx: "Transaction", under: str | None) -> "tuple[list[AgentRecord], int]":
    """Return the records of the agents to show, the topmost first, and the number of all agents."""
    from ikigai_actors.records.agents import lists, registry

    top = registry.root(tx) if under is None else registry.get(tx, under)
    if top is None:
        return [], 0
    records = lists.some_below(tx, top, _MOST, dead_too=True)
    count = len(records) if len(records) < _MOST else lists.count_below(tx, top, dead_too=True)
    return [top, *registry.oldest_first(records[: _MOST - 1])], count + 1


def _walk(records: "Sequence[AgentRecord]") -> "Iterator[tuple[int, AgentRecord]]":
    """Yield each agent with its depth in the tree, after its supervisor; the first one is the root."""
    known, below = {record.uuid for record in records}, dict[str, list["AgentRecord"]]()
    for child in records[1:]:
        above = child.supervisor_uuid if child.supervisor_uuid in known else None
        below.setdefault(above or records[0].uuid, []).append(child)
    waiting = [(0, record) for record in records[:1]]
    while waiting:
        depth, record = waiting.pop()
        yield depth, record
        waiting += [(depth + 1, child) for child in reversed(below.pop(record.uuid, ()))]
