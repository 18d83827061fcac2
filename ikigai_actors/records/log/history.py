"""History: find where a history is stored, and compute its view.

`walk` finds where a history is stored, from the agent back to agent 0 or to the latest clear: a list of `ReplayRange`.

A `View` says what the history *means*: it is the fold of the messages, oldest first. Only the control messages
(configure, clear, mark, rewind, summary, uncompact) change a view, each in constant time; all others are merely between
its bounds. So most appends do not change the view, and a view stays valid forever. That is how siblings share the
history before their fork.

    positions   1   2   3   4   5   6   7   8
    messages    u   a   M   u   a   R   u   a        M = mark, R = rewind to M
    view        (0, 3] and (5, 8]                    messages 4 and 5 no longer count; the rewind itself stays visible

A summary is a lens on the history: it changes how the past is shown, but not which messages count. Several lenses may
lie over one another; uncompact removes the latest. Later messages stay, and marks keep their positions.

    positions   1   2   3   4   5   6   7
    messages    u   a   u   a   S   u   a            S = summary with keep_from 3
    shown       the text of S, then (2, 7]           a rewind to m also affects messages that a lens replaces: it drops
                                                     each lens that replaces a message after m

Two departures from the seed of this algorithm:

- A bounded range that is empty is left out: its end would read as "no limit" when it is 0.
- Marks and rewinds are applied wherever in the lineage they are.

A rewind may name a prompt in place of a mark. Its computation takes a step for each earlier rewind that it undoes, and
for each lens that it drops.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ikigai_actors.errors import HistoryError
from ikigai_actors.records.messages.messages import Kind, Message


@dataclass(frozen=True, slots=True)
class ReplayRange:
    """A stretch of one agent's log: the messages with ``start_id < id <= end_id``."""

    agent_uuid: str
    start_id: int
    end_id: int
    """The end of the range; 0 means no limit, which occurs only in the last range, the agent's own."""


class Ancestor(NamedTuple):
    """The columns of an agent from which `walk` finds its history."""

    uuid: str
    parent_uuid: str | None
    fork_message_id: int


def walk(
    leaf: str, ancestor: Callable[[str], Ancestor], last_clear: Callable[[str, int], int]
) -> tuple[ReplayRange, ...]:
    """Return the ranges of logs in which an agent's history is stored, oldest first.

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
        bound, bounded = min(bound, current.fork_message_id) if bounded else current.fork_message_id, True
        if bound == 0:  # forked before anything was said: nothing lies further back
            return tuple(reversed(ranges))
        current = ancestor(current.parent_uuid)


class Segment(NamedTuple):
    """A closed range of visible positions, ``start < id <= end``, linked to the ranges before it."""

    start: int
    end: int
    earlier: "Segment | None"


class Mark(NamedTuple):
    """A mark in force, with the parts of the view that a rewind to the mark restores."""

    label: str
    id: int
    start: int
    closed: Segment | None
    earlier: "Mark | None"


class Lens(NamedTuple):
    """A summary in force, which decides how the past is shown."""

    agent: str
    """The uuid of the agent that wrote the summary. With `id` it identifies the lens."""
    id: int
    """The position of the summary."""
    summary: int
    """The position of the summary whose text is shown; 0 for none."""
    keep_from: int
    """The position from which on messages are shown verbatim. The text replaces those before it."""
    prompt: int
    """The position of the open prompt before `keep_from` that is shown beside the text; 0 for none."""
    elide: int
    """The position before which long results are replaced by references."""
    earlier: "Lens | None"


class View(NamedTuple):
    """The meaning of a history up to one position: the visible positions; marks, summary and settings in force."""

    start: int
    """The position after which, up to the view's position, all positions are visible."""
    closed: Segment | None
    """The visible ranges before `start`; None for none."""
    marks: Mark | None
    """The latest mark in force, linked to earlier ones; None for none."""
    settings: Mapping[str, Any]
    """The settings in force."""
    lens: Lens | None = None
    """The latest summary in force; None for none."""

    @property
    def lens_place(self) -> tuple[str, int] | None:
        """Return the agent and the position of the latest summary in force; None for none."""
        return None if self.lens is None else (self.lens.agent, self.lens.id)

    def visible(self, head: int, above: int = 0) -> list[tuple[int, int]]:
        """Return the visible positions up to the head, as ``(start, end]`` pairs, oldest first.

        Only those above a position.
        """
        pairs: list[tuple[int, int]] = []
        segment: Segment | None = Segment(self.start, head, self.closed)
        while segment is not None and segment.end > above:
            if segment.end > segment.start:
                pairs.append((max(segment.start, above), segment.end))
            segment = segment.earlier
        pairs.reverse()
        return pairs

    @property
    def floor(self) -> int:
        """Return the position after which every visible message is shown verbatim, because no summary replaces it."""
        return max(0, self.lens.keep_from - 1) if self.lens is not None else 0

    def shows(self, position: int, head: int) -> bool:
        """Return whether a position is visible, when ``head`` is the latest one."""
        start, end, closed = self.start, head, self.closed
        while not start < position <= end:
            if closed is None:
                return False
            start, end, closed = closed
        return True

    def find_mark(self, label: str | None) -> Mark | None:
        """Return the latest mark, or the latest with this label; None if there is none."""
        mark = self.marks
        while mark is not None and label is not None and mark.label != label:
            mark = mark.earlier
        return mark

    def all_marks(self) -> list[Mark]:
        """Return the marks in force, oldest first."""
        marks, mark = [], self.marks
        while mark is not None:
            marks.append(mark)
            mark = mark.earlier
        marks.reverse()
        return marks


EMPTY = View(0, None, None, {})
"""The view of a history without messages."""


def play(view: View, message: Message) -> View:
    """Return the view of a history after one more message."""
    match message.kind:
        case Kind.CLEAR:
            return View(message.id, None, None, {})
        case Kind.CONFIGURE:
            return view._replace(settings=merge(view.settings, message.data))
        case Kind.MARK:
            return view._replace(marks=Mark(message.content, message.id, view.start, view.closed, view.marks))
        case Kind.REWIND:
            return _rewind(view, message)
        case Kind.SUMMARY:
            return view._replace(lens=_lens(view.lens, message))
        case Kind.UNCOMPACT if view.lens is not None:
            return view._replace(lens=view.lens.earlier)
        case _:
            return view


def play_all(view: View, messages: Iterable[Message]) -> View:
    """Return the view after these messages, in order."""
    for message in messages:
        view = play(view, message)
    return view


def _rewind(view: View, message: Message) -> View:
    """Return the view after a rewind to a mark: conversation and marks are again those at the mark. The settings stay.

    Nothing changes when there is no such mark.
    """
    if "before" in message.data:
        return _rewind_before(view, message)
    mark, target = view.marks, message.data.get("mark")
    while mark is not None and mark.id != target:
        mark = mark.earlier
    if mark is None:
        return view
    lens = _before(view.lens, mark.id)
    return View(message.id - 1, Segment(mark.start, mark.id, mark.closed), mark, view.settings, lens)


def _rewind_before(view: View, message: Message) -> View:
    """Return the view after a rewind to before a prompt: conversation and marks are those before it. The settings stay.

    Nothing changes if the prompt is not visible. The marks in force before the prompt are today's marks that are older
    than it: a rewind past one of them would have hidden the prompt.
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
    return View(message.id - 1, kept, mark, view.settings, _before(view.lens, prompt - 1))


def _lens(below: Lens | None, message: Message) -> Lens:
    """Return the lens of a summary. A summary without a text only replaces further long results by references."""
    keep_from, prompt, elide = (message.data.get(name, 0) for name in ("keep_from", "prompt", "elide"))
    if message.content:
        elide = max(elide, below.elide if below is not None else 0)
        return Lens(message.agent_uuid, message.id, message.id, keep_from, prompt, elide, below)
    summary, keep_from, prompt = (below.summary, below.keep_from, below.prompt) if below is not None else (0, 0, 0)
    return Lens(message.agent_uuid, message.id, summary, keep_from, prompt, elide, below)


def _before(lens: Lens | None, end: int) -> Lens | None:
    """Return the latest lens that replaces no message after a position; None if there is none."""
    while lens is not None and lens.keep_from > end + 1:
        lens = lens.earlier
    return lens


def merge(settings: Mapping[str, Any], changes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings with changes applied; None removes a setting."""
    return {key: value for key, value in {**settings, **changes}.items() if value is not None}
