"""The changes of a simulated transaction: appended rows, and statements that changed other rows."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ikigai_actors.store.base import Row
from ikigai_actors.store.queries import query

OWNERS = frozenset({"register", "set_turn"})
"""SQL statements for agents that only their owner may run."""

_UNTOLD = ("pid", "now", "hostname")
"""Parameters that the trace leaves out: they differ from machine to machine, or say nothing."""

_DIFFERENCES = ("count_mail",)
"""Statements with numbers that are added to stored ones."""

_CHANGING = ("INSERT", "UPDATE", "DELETE")


class Written(NamedTuple):
    """A row that a transaction appended to a table."""

    table: str
    """The table: ``messages``, ``mail``, ``spendings`` or ``pieces``."""
    row: Row

    def __str__(self) -> str:
        row = self.row
        if self.table == "messages":
            return f"{row[0]} [{row[1]}] {row[2]} {row[3]!r}"
        if self.table == "pieces":
            return f"piece {row[1]} of reply {row[3]} to {row[2]}: {row[5]}"
        if self.table == "spendings":
            return f"{row[0]} [{row[1]}] has cost {row[4]} tokens, labels {row[2] or 'none'}"
        return f"mail {row[1]} to {row[0]} from {row[2] or 'a person'}: {row[3]} {row[4]!r}"


class RanStatement(NamedTuple):
    """An SQL statement of a transaction that changed rows, with its parameters."""

    query: str
    parameters: Mapping[str, Any]

    def __str__(self) -> str:
        texts = (
            f"{key} by {value:+}" if self.query in _DIFFERENCES and isinstance(value, int) else f"{key}={value}"
            for key, value in self.parameters.items()
            if value is not None and key not in _UNTOLD
        )
        return f"{self.query} {', '.join(texts)}".rstrip()


StoredChange = Written | RanStatement

SHARED_TREE = RanStatement("share_tree", {})
"""The change of a transaction that has locked the tree in shared mode, as births do. The trace leaves it out."""


def is_of_owner(change: StoredChange) -> bool:
    """Return whether only the host that owns an agent may make this change."""
    return change.table == "messages" if isinstance(change, Written) else change.query in OWNERS


def changes_rows(name: str) -> bool:
    """Return whether an SQL statement changes rows, even if it begins with a common table expression."""
    sql = query(name).lstrip()
    return sql.startswith(_CHANGING) or (sql.startswith("WITH") and any(f"\n{verb}" in sql for verb in _CHANGING))
