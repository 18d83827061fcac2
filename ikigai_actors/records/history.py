"""History: walk backwards, play forwards.

`walk` finds where a history is stored, from the agent back to agent 0 or to the latest clear: a list of `ReplayRange`.

A `View` says what the history *means*: it is the fold of the messages, oldest first. Only the control messages
(configure, clear, mark, rewind) change a view, each in constant time; all others merely stand between its bounds. So an
append costs the fold nothing, and a view can be kept for ever: that is how siblings share the history before their
fork.

    positions   1   2   3   4   5   6   7   8
    messages    u   a   M   u   a   R   u   a        M = mark, R = rewind to M
    view        (0, 3] and (5, 8]                    what was said at 4 and 5 is gone, the rewind stays to be seen

Two departures from the seed of this algorithm:

- A bounded range that is empty is left out: its end would read as "no limit" when it is 0.
- Marks and rewinds are applied wherever in the lineage they stand.

A rewind may name a prompt in place of a mark: each prompt is a place to come back to. It takes as many steps as there
are earlier rewinds that it undoes.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ikigai_actors.errors import HistoryError
from ikigai_actors.records.messages import Kind, Message


@dataclass(frozen=True, slots=True)
class ReplayRange:
    """The messages of one agent's log with ``start_id < id <= end_id``."""

    agent_uuid: str
    start_id: int
    end_id: int
    """0 means no limit, and stands only in the last range, the agent's own."""


class Ancestor(NamedTuple):
    """An agent as `walk` needs it."""

    uuid: str
    parent_uuid: str | None
    fork_message_id: int


def walk(
    leaf: str, ancestor: Callable[[str], Ancestor], last_clear: Callable[[str, int], int]
) -> tuple[ReplayRange, ...]:
    """Find where an agent's history is stored, oldest range first.

    Args:
        leaf: the agent's uuid.
        ancestor: looks an agent up by uuid; raises when there is none.
        last_clear: ``(uuid, bound)`` → id of the agent's latest clear with id <= bound, 0 when there is none; a bound
            of 0 is no limit.

    Raises:
        HistoryError: the lineage runs in a circle.
    """
    ranges: list[ReplayRange] = []
    seen: set[str] = set()
    current, bound, bounded = ancestor(leaf), 0, False
    while True:
        if current.uuid in seen:
            raise HistoryError(f"Agent {leaf} descends from itself by way of {current.uuid}.")
        seen.add(current.uuid)
        empty = bounded and bound <= current.fork_message_id
        cleared = 0 if empty else last_clear(current.uuid, bound)
        start = cleared or current.fork_message_id
        if not (bounded and bound <= start):
            ranges.append(ReplayRange(current.uuid, start, bound))
        if cleared or current.parent_uuid is None:
            return tuple(reversed(ranges))
        bound, bounded = current.fork_message_id, True
        if bound == 0:  # forked before anything was said: nothing lies further back
            return tuple(reversed(ranges))
        current = ancestor(current.parent_uuid)


class Segment(NamedTuple):
    """A closed stretch of visible positions, ``start < id <= end``, linked to the segments before it."""

    start: int
    end: int
    earlier: "Segment | None"


class Mark(NamedTuple):
    """A mark in force, with the view that a rewind to it restores."""

    label: str
    id: int
    start: int
    closed: Segment | None
    earlier: "Mark | None"


class View(NamedTuple):
    """What a history means at one position: which positions are visible, which marks and settings are in force."""

    start: int
    """Positions above this one, up to the position of the view, are visible."""
    closed: Segment | None
    """The segments that are visible before `start`."""
    marks: Mark | None
    """The latest mark."""
    settings: Mapping[str, Any]
    """The settings in force."""

    def visible(self, head: int) -> list[tuple[int, int]]:
        """The visible positions up to head, as ``(start, end]`` pairs, oldest first."""
        pairs = [(self.start, head)] if head > self.start else []
        segment = self.closed
        while segment is not None:
            pairs.append((segment.start, segment.end))
            segment = segment.earlier
        pairs.reverse()
        return pairs

    def shows(self, position: int, head: int) -> bool:
        """Whether a position is visible, when head is the latest one."""
        start, end, closed = self.start, head, self.closed
        while not start < position <= end:
            if closed is None:
                return False
            start, end, closed = closed
        return True

    def find_mark(self, label: str | None) -> Mark | None:
        """The latest mark, or the latest with this label; None when there is none."""
        mark = self.marks
        while mark is not None and label is not None and mark.label != label:
            mark = mark.earlier
        return mark

    def all_marks(self) -> list[Mark]:
        """The marks in force, oldest first."""
        marks, mark = [], self.marks
        while mark is not None:
            marks.append(mark)
            mark = mark.earlier
        marks.reverse()
        return marks


EMPTY = View(0, None, None, {})
"""The view of a history without messages."""


def play(view: View, message: Message) -> View:
    """The view after one more message."""
    match message.kind:
        case Kind.CLEAR:
            return View(message.id, None, None, {})
        case Kind.CONFIGURE:
            return view._replace(settings=merge(view.settings, message.data))
        case Kind.MARK:
            return view._replace(marks=Mark(message.content, message.id, view.start, view.closed, view.marks))
        case Kind.REWIND:
            return _rewind(view, message)
        case _:
            return view


def play_all(view: View, messages: Iterable[Message]) -> View:
    """The view after these messages, in order."""
    for message in messages:
        view = play(view, message)
    return view


def _rewind(view: View, message: Message) -> View:
    """Go back to a mark: conversation and marks become what they were there. The mark and the settings stay.

    Nothing changes when there is no such mark.
    """
    if "before" in message.data:
        return _rewind_before(view, message)
    mark, target = view.marks, message.data.get("mark")
    while mark is not None and mark.id != target:
        mark = mark.earlier
    if mark is None:
        return view
    return View(message.id - 1, Segment(mark.start, mark.id, mark.closed), mark, view.settings)


def _rewind_before(view: View, message: Message) -> View:
    """Go back to before a prompt: conversation and marks become what they were there. The settings stay.

    Nothing changes when no such prompt is in sight. The marks in force then are today's marks that are older than the
    prompt: a rewind past one of them would have hidden the prompt.
    """
    prompt = message.data["before"]
    if not isinstance(prompt, int):
        return view
    start, end, closed = view.start, message.id - 1, view.closed
    while not start < prompt <= end:
        if closed is None:
            return view
        start, end, closed = closed
    mark = view.marks
    while mark is not None and mark.id >= prompt:
        mark = mark.earlier
    kept = Segment(start, prompt - 1, closed) if prompt - 1 > start else closed
    return View(message.id - 1, kept, mark, view.settings)


def merge(settings: Mapping[str, Any], changes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Settings with changes applied; a setting given as None is removed."""
    return {key: value for key, value in {**settings, **changes}.items() if value is not None}
