"""Oracles: what must be true, found in the simplest possible way, from the commits alone.

`CopyingOracle` gives each child a copy of its parent's history at the fork, and applies clears and rewinds as they are
written. That is slow, uses much memory, and has nothing in common with ranges, folds and shared views.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from ikigai_actors.records.messages import Kind
from ikigai_actors.testing.simulation.store import RanStatement, StoredChange, Written


@dataclass(slots=True)
class Copy:
    """The whole history of one agent."""

    visible: list[int] = field(default_factory=list)
    """The positions that count, clears and rewinds applied."""
    stored: list[int] = field(default_factory=list)
    """The positions since the latest clear, rewound or not."""
    marks: dict[int, int] = field(default_factory=dict)
    """For each mark in force, how many positions counted when it was set, itself included."""

    head: int = 0
    """Position of the latest message."""
    parent: str = ""
    """The agent that it is a copy of, and how many ``inherited`` positions counted then; 0 once a clear or rewind has
    cut them.
    """
    inherited: tuple[int, ...] = ()

    def copy(self, parent: str = "") -> "Copy":
        """The same history, for a child."""
        return Copy(list(self.visible), list(self.stored), dict(self.marks), self.head, parent, tuple(self.visible))

    def write(self, position: int, kind: str, data: str) -> None:
        """Note a committed message."""
        self.head = position
        if kind in (Kind.CLEAR, Kind.REWIND):
            self.inherited = ()
        match kind:
            case Kind.CLEAR:
                self.visible.clear()
                self.stored.clear()
                self.marks.clear()
                return
            case Kind.REWIND:
                target: dict[str, int] = json.loads(data)
                if (prompt := target.get("before")) is not None:
                    del self.visible[self.visible.index(prompt) :]
                    self.marks = {known: count for known, count in self.marks.items() if known < prompt}
                else:
                    del self.visible[self.marks[target["mark"]] :]
                    self.marks = {known: count for known, count in self.marks.items() if known <= target["mark"]}
        self.visible.append(position)
        self.stored.append(position)
        if kind == Kind.MARK:
            self.marks[position] = len(self.visible)


class CopyingOracle:
    """Every agent's history, copied at each fork."""

    def __init__(self) -> None:
        self.histories: dict[str, Copy] = {}
        self.mails: dict[tuple[str, int], str] = {}
        """Body of every mail that was ever sent, by recipient and number."""
        self.labels: dict[tuple[str, int], str] = {}
        """Label of every mark that was ever set, by agent and position."""

    def committed(self, changes: Sequence[StoredChange]) -> None:
        """Follow a commit."""
        for change in changes:
            match change:
                case Written("messages", row):
                    self.histories.setdefault(row[0], Copy()).write(row[1], row[2], row[4])
                    if row[2] == Kind.MARK:
                        self.labels[row[0], row[1]] = row[3]
                case Written("mail", row):
                    self.mails[row[0], row[1]] = row[4]
                case RanStatement("register", parameters):
                    parent = self.histories.setdefault(parameters["parent"], Copy())
                    self.histories[parameters["uuid"]] = parent.copy(parameters["parent"])
