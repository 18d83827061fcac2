"""Oracles: the expected values of an invariant, computed in the simplest possible way, from the commits alone.

`CopyingOracle` gives each child a copy of its parent's history at the fork, and applies clears, rewinds and summaries
as they are written. This way is slow, uses much memory, and shares no code with the ranges, folds and shared views of
the runtime.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ikigai_actors.records.messages.messages import Kind
from ikigai_actors.testing.simulation.changes import RanStatement, StoredChange, Written


class Told(NamedTuple):
    """A summary that is in force in a copied history."""

    text: tuple[int, ...]
    """The position of the shown text, and of the open prompt, if there is one; empty without a text."""
    keep_from: int
    covered: tuple[int, ...]
    """The positions that the text replaces."""
    elide: int = 0
    """The position before which long results are replaced by references; 0 for none."""
    position: int = 0
    """The position of the summary."""


@dataclass(slots=True)
class Copy:
    """The history of one agent, copied at its birth, with clears, rewinds and summaries applied."""

    visible: list[int] = field(default_factory=list)
    """The visible positions, after clears and rewinds."""
    stored: list[int] = field(default_factory=list)
    """The positions since the latest clear, including rewound ones."""
    marks: dict[int, int] = field(default_factory=dict)
    """For each mark in force, by position: the number of visible positions when it was set, itself included."""

    head: int = 0
    """The position of the latest message."""
    fork: int = 0
    """The position at which the agent was forked."""
    parent: str = ""
    """The agent from which the history was copied, with ``inherited``: what was shown at that time, which is the
    position before which long results were replaced, and the visible positions. None after a clear, a rewind or a
    summary of the agent's own has cut them.
    """
    inherited: tuple[int, ...] = ()
    written: list[tuple[int, str, str, str]] = field(default_factory=list)
    """Every message that was ever written: position, kind, content, data."""
    in_force: list[Told] = field(default_factory=list)
    """The summaries in force."""
    summaries: set[int] = field(default_factory=set)
    """The positions of summaries."""

    @property
    def shown(self) -> list[int]:
        """Return the positions that a model sees, with the text of a summary in place of the replaced messages."""
        text, covered = (self.in_force[-1].text, self.in_force[-1].covered) if self.in_force else ((), ())
        return [*text, *(place for place in self.visible[len(covered) :] if place not in self.summaries)]

    def copy(self, parent: str = "") -> "Copy":
        """Return a copy of the whole history, for a child."""
        copies = list(self.visible), list(self.stored), dict(self.marks), self.head
        return Copy(
            *copies, self.head, parent, self._given(), list(self.written), list(self.in_force), set(self.summaries)
        )

    def copy_of_beginning(self, end: int, parent: str) -> "Copy":
        """Return a copy of the history up to a position, for a child."""
        child = Copy()
        for message in self.written[:end]:
            child.write(*message)
        child.fork, child.parent, child.inherited = end, parent, child._given()
        return child

    def _given(self) -> tuple[int, ...]:
        """Return the positions that a child inherits, in the form of `inherited`: ``elide``, then the positions."""
        shown = self.shown
        return (self.in_force[-1].elide if self.in_force else 0, *shown) if shown else ()

    def _back_to(self, end: int) -> None:
        """Drop all messages after a position, and the summaries whose texts replace any of them."""
        while self.in_force and self.in_force[-1].keep_from > end + 1:
            self.in_force.pop()

    def _summarise(self, position: int, content: str, data: str) -> None:
        self.summaries.add(position)
        facts: dict[str, int] = json.loads(data)
        below = self.in_force[-1] if self.in_force else Told((), 0, ())
        elide = facts.get("elide", 0)
        if not content:  # it changes no more than how results are shown
            self.in_force.append(below._replace(elide=elide, position=position))
            return
        text = (position, facts["prompt"]) if facts.get("prompt") else (position,)
        covered = tuple(place for place in self.visible if place < facts["keep_from"])
        self.in_force.append(Told(text, facts["keep_from"], covered, max(elide, below.elide), position))

    def write(self, position: int, kind: str, content: str, data: str) -> None:
        """Append a committed message, and apply a clear, a rewind, a mark or a summary to the copy."""
        self.head = position
        self.written.append((position, kind, content, data))
        if kind in (Kind.CLEAR, Kind.REWIND, Kind.SUMMARY, Kind.UNCOMPACT):
            self.inherited = ()
        match kind:
            case Kind.CLEAR:
                self.visible.clear()
                self.stored.clear()
                self.marks.clear()
                self.in_force.clear()
                return
            case Kind.SUMMARY:
                self._summarise(position, content, data)
            case Kind.UNCOMPACT:
                self.in_force.pop()
            case Kind.REWIND:
                target: dict[str, int] = json.loads(data)
                if (prompt := target.get("before")) is not None:
                    del self.visible[self.visible.index(prompt) :]
                    self.marks = {known: count for known, count in self.marks.items() if known < prompt}
                    self._back_to(prompt - 1)
                else:
                    del self.visible[self.marks[target["mark"]] :]
                    self.marks = {known: count for known, count in self.marks.items() if known <= target["mark"]}
                    self._back_to(target["mark"])
        self.visible.append(position)
        self.stored.append(position)
        if kind == Kind.MARK:
            self.marks[position] = len(self.visible)


class CopyingOracle:
    """The expected history of every agent, as a copy of its parent's history at each fork."""

    def __init__(self) -> None:
        self.histories: dict[str, Copy] = {}
        self.mails: dict[tuple[str, int], str] = {}
        """Body of every mail that was ever sent, by recipient and number."""
        self.labels: dict[tuple[str, int], str] = {}
        """Label of every mark that was ever set, by agent and position."""

    def committed(self, changes: Sequence[StoredChange]) -> None:
        """Apply the changes of a commit to the copied histories, mails and labels."""
        for change in changes:
            match change:
                case Written("messages", row):
                    self._write(row)
                case Written("mail", row):
                    self.mails[row[0], row[1]] = row[4]
                case RanStatement("register", parameters):
                    parent = self.histories.setdefault(parameters["parent"], Copy())
                    whose, end = parameters["parent"], parameters.get("fork", parent.head)
                    if end > parent.head:  # a sibling was born before in the same unit: the parent records that first
                        self._follow(changes, whose, end)
                    child = parent.copy(whose) if end == parent.head else parent.copy_of_beginning(end, whose)
                    self.histories[parameters["uuid"]] = child

    def _follow(self, changes: Sequence[StoredChange], agent: str, end: int) -> None:
        """Apply the messages that an agent wrote in a commit to its history, up to a position."""
        for change in changes:
            match change:
                case Written("messages", row) if row[0] == agent and row[1] <= end:
                    self._write(row)

    def _write(self, row: Sequence[Any]) -> None:
        agent, position, kind, content, data = row[:5]
        history = self.histories.setdefault(agent, Copy())
        if position <= history.head:
            return  # it was followed before
        history.write(position, kind, content, data)
        if kind == Kind.MARK:
            self.labels[agent, position] = content
