"""The lines of a session as a tree, and the paths of the tree from which agents are made. Pure."""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from ikigai_actors.recordings.recording import RecordedLine
from ikigai_actors.verbs.upkeep.draft import Draft


class LinePlace(NamedTuple):
    """The place of a session's line in the log of the agent made from it."""

    draft: Draft
    before: int
    """The position before its turn."""
    start: str
    """The line that begins the turn."""
    end: int | None
    """The position after the line; None if a turn is in progress there."""


class LineTree:
    """The lines of a session by their ids, linked to their parents."""

    def __init__(self) -> None:
        self.lines: dict[str, RecordedLine] = {}
        """In the order of the file."""
        self.parents: dict[str, str | None] = {}
        self.children: Mapping[str, list[str]] = {}
        self.places: dict[str, LinePlace] = {}
        """Where the lines are that were written."""

    def add(self, key: str, line: RecordedLine, parent: object) -> bool:
        """Add a line; return whether it is new. Raises `ImportRefused` if a different line has the same id."""
        if parent is not None and not isinstance(parent, str):
            line.refuse("expected the id of its parent to be a text")
        if (before := self.lines.get(key)) is not None:
            if before.value != line.value:
                line.refuse(f"the id {key:.60} is that of line {before.number}, which says something else")
            return False
        self.lines[key], self.parents[key] = line, parent
        return True

    def link(self, may_miss: Container[str] = ()) -> None:
        """Set the children of each line.

        Args:
            may_miss: the ids of lines whose parents may be in another file; without a parent such a line becomes a
                root.

        Raises `ImportRefused` for a parent that is missing, and for a circle.
        """
        children: dict[str, list[str]] = defaultdict(list)
        for key, parent in self.parents.items():
            if parent is None:
                continue
            if parent in self.lines:
                children[parent].append(key)
            elif key in may_miss:
                self.parents[key] = None
            else:
                self.lines[key].refuse(f"its parent {parent:.60} is on no line")
        self.children = children
        sound = set[str]()
        for key in self.lines:
            above = set[str]()
            at: str | None = key
            while at is not None and at not in sound:
                if at in above:
                    self.lines[at].refuse("its parents lead back to itself")
                above.add(at)
                at = self.parents[at]
            sound |= above

    def parents_first(self) -> list[str]:
        """Return the ids of all lines, each after its parent."""
        order = [key for key, parent in self.parents.items() if parent is None]
        for key in order:
            order += self.children.get(key, ())
        return order

    def leaves(self, shown: Container[str]) -> list[str]:
        """Return the ids of the shown lines that no shown line follows, in the order of the file."""
        going_on = set[str]()
        for key in reversed(self.parents_first()):
            parent = self.parents[key]
            if parent is not None and (key in shown or key in going_on):
                going_on.add(parent)
        return [key for key in self.lines if key in shown and key not in going_on]

    def path(self, leaf: str) -> list[str]:
        """Return the ids of the lines from the root to a leaf, both included."""
        path, above = [leaf], self.parents[leaf]
        while above is not None:
            path.append(above)
            above = self.parents[above]
        return path[::-1]

    def forked(
        self, path: Sequence[str], top: Draft, base: int, opens: Callable[[Iterable[str]], bool]
    ) -> tuple[Draft, int, list[str]]:
        """Return where a path leaves the paths already written: the agent, the position, and the lines after it.

        A path that parts within a turn begins with the turn.

        Args:
            path: the lines of a path; some at its end are new.
            top: the agent to fork if the path shares no line with any written path.
            base: the position to use in that case.
            opens: returns whether lines begin with a turn.
        """
        new = [key for key in path if key not in self.places]
        shared = path[: len(path) - len(new)]
        if not shared:
            return top, base, new
        place = self.places[shared[-1]]
        if place.end is not None and opens(new):
            return place.draft, place.end, new
        return place.draft, place.before, list(path[path.index(place.start) :])
