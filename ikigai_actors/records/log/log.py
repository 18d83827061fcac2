"""A log in memory: a part of an agent's own messages, with a reference to the log from which it was forked.

A fork copies nothing: the child's log refers to its parent's, up to the fork point. A clear begins a new log, which
refers to nothing. Only agents that were forked before the clear still hold the old log, and they share it. So an agent
keeps only the messages after its latest clear in memory, however long it has lived. The store keeps all messages.

    positions     1   2   3   4   5   6   7        C = clear
    agent 0       u   a   u   C   u   a            two logs: positions 1 to 3, and 5 on
    child         └───┴── 3   4                    forked at 2: refers to the first of them

The messages that a summary replaces need not be in memory either. Such a log holds its messages from `start` on, and
before that those alone that change views, and the prompt that is shown beside the summary. So all its views are right,
and all messages that a model sees are in memory. A caller that asks for other messages gets `NotHeld`; `LogCache` then
reads the complete log. The start of a log never changes.

Other threads read a log up to a committed position at any time, without a lock: its lists only grow, and the view of a
control message is stored before the position of that message.
"""

import threading
from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from ikigai_actors.errors import HistoryError
from ikigai_actors.providers.conversation import Passage
from ikigai_actors.records.log.history import EMPTY, Segment, View, play
from ikigai_actors.records.messages.messages import CONTROL, CONVERSATION, Kind, Message

_position = attrgetter("id")

_FINDS = {Kind.TOOL_RESULT.value: {"found", "skill"}, Kind.USER.value: {"skills"}}
"""The keys of a message's data, by its kind, that show that the message has found tools or loaded skills."""

_growing = threading.Lock()
"""Held for a moment while messages are added to a log: its owner and a `LogCache` that reads on may meet."""


class NotHeld(Exception):
    """The error when messages are asked for that are not in memory. `LogCache` then reads the complete log."""


class Log:
    """A part of one agent's log that contains no clear. With the logs of its ancestors it is the agent's history."""

    __slots__ = (
        "__weakref__",
        "_apart",
        "_base_view",
        "_controls",
        "_finds",
        "_is_whole",
        "_messages",
        "_spoken",
        "_views",
        "agent_uuid",
        "base",
        "damage",
        "ended",
        "finds_nothing",
        "fork",
        "parent",
        "passages",
        "start",
    )

    def __init__(
        self,
        agent_uuid: str,
        fork: int,
        parent: "Log | None",
        messages: Iterable[Message] = (),
        *,
        cleared: int = 0,
        ended: Message | None = None,
        start: int = 0,
        apart: Iterable[Message] = (),
    ) -> None:
        """Make a log from its messages, whose ids must be start + 1, start + 2, and so on.

        Args:
            parent: the log that has the fork point; None when the history begins with this log.
            messages: the messages after the start.
            cleared: the position of the clear that the log follows; 0 when it begins at the fork point.
            ended: the message with which the agent's latest turn before the start ended; None for none.
            start: the position before the first message in memory, if that is not the fork point or clear.
            apart: the own messages before the start that change views, and the prompt, perhaps inherited, shown beside
                the summary.
        """
        self.agent_uuid = agent_uuid
        self.fork = fork
        self.base = cleared or fork
        """The position before its first message: the clear that it follows, or the fork point."""
        self.start = max(self.base, start)
        """The position before the first message that is held: the base, or a later one."""
        self.parent = parent
        self.ended = ended
        self._messages: list[Message] = []
        self._apart = {message.id: message for message in apart}
        self._is_whole: bool = self.start == self.base and (parent is None or parent._is_whole)
        self.damage: HistoryError | None = None
        """The error that ends the log, when its next row in the store is wrong."""
        self._base_view = View(cleared, None, None, {}) if cleared else EMPTY if parent is None else parent.view(fork)
        self._controls: list[int] = []
        self._spoken: list[Message] = []  # the conversation alone: a request must not look at 10,000 forks of a parent
        self._finds: list[Message] = []  # a request looks at these, however long the history
        self.finds_nothing: bool = self._is_whole and (parent is None or parent.finds_nothing)
        """Whether it is known that `finds` gives nothing for any position."""
        self._views: list[View] = []
        self.passages: dict[Hashable, Passages] | None = None
        """The own messages as models see them, by model and lens (`ikigai_actors.agent.assembly`)."""
        for message in self._apart.values():
            if message.kind in CONTROL:
                self._follow(message)
        self._extend(messages)

    @property
    def head(self) -> int:
        """The position of the latest message; the start when there is none."""
        return self.start + len(self._messages)

    @property
    def messages(self) -> list[Message]:
        """The log's own messages, oldest first. Raises `NotHeld` when some are not in memory."""
        if self.start > self.base:
            raise NotHeld
        return self._messages

    @property
    def held(self) -> int:
        """The number of the log's own messages that are in memory."""
        return len(self._messages) + len(self._apart)

    def newest_first(self) -> Iterator[Message]:
        """Iterate over the log's own messages, newest first. Raises `NotHeld` after the last one in memory."""
        yield from reversed(self._messages)
        if self.start > self.base:
            raise NotHeld

    def back_to_ending(self) -> Iterator[Message]:
        """Iterate over the log's own messages in memory, newest first, and then `ended`."""
        yield from reversed(self._messages)
        if self.ended is not None:
            yield self.ended

    def holds(self, above: int) -> bool:
        """Return whether all messages of the history after a position are in memory, including ancestors' logs."""
        log: Log | None = self
        while log is not None and not log._is_whole:
            if log.start > max(log.base, above):
                return False
            if above >= log.base:
                return True
            log = log.parent
        return True

    def shows(self, position: int) -> bool:
        """Return whether all messages that a model sees of the history up to a position are in memory."""
        if self._is_whole:
            return True
        try:
            self.opening(position)
        except NotHeld:
            return False
        return self.holds(self.view(position).floor)

    def extend(self, messages: Sequence[Message]) -> None:
        """Append committed messages without a clear (see `LogCache.grow`).

        Messages that the log already has are left out.

        Raises `HistoryError` when their ids do not follow the head; the messages before the wrong one stay.
        """
        with _growing:
            head = self.head
            self._extend([message for message in messages if message.id > head])

    def _extend(self, messages: Iterable[Message]) -> None:
        following = self.head + 1
        add, speak = self._messages.append, self._spoken.append
        for message in messages:
            if message.id != following:
                raise HistoryError(
                    f"Expected message {following} of agent {self.agent_uuid}, got {message.id}: the log has a hole.",
                    self.agent_uuid,
                )
            following += 1
            kind = message.kind
            if kind in CONVERSATION:
                speak(message)
                if kind in _FINDS and not _FINDS[kind].isdisjoint(message.data):
                    self._finds.append(message)
                    self.finds_nothing = False
            add(message)
            if kind in CONTROL:
                self._follow(message)

    def _follow(self, control: Message) -> None:
        """Add a message that changes the view.

        The new view is stored before the message's position, for readers without a lock.
        """
        self._views.append(play(self._views[-1] if self._views else self._base_view, control))
        self._controls.append(control.id)

    def since(self, position: int) -> list[Message]:
        """Return the log's own messages from a position on; all of them when the position is before its beginning."""
        if position <= self.start and self.start > self.base:
            raise NotHeld
        return self._messages[max(0, position - self.start - 1) :]

    def view(self, position: int) -> View:
        """Return the view of the history up to a position.

        The position may lie in an ancestor's log, but not before the clear at which the history begins: that raises
        `ValueError`.
        """
        log = self
        while position < log.base and log.parent is not None:
            log = log.parent
        if position < log.base:
            raise ValueError(f"Expected a position of {log.base} or more, where the log begins; got {position}.")
        index = bisect_right(log._controls, position)
        return log._views[index - 1] if index else log._base_view

    def holder(self, position: int) -> "Log | None":
        """Return the log of the lineage that has a position; None if the position lies before a clear."""
        log = self
        while position <= log.base and log.parent is not None:
            log = log.parent
        return log if position >= log.base else None

    def between(self, start: int, end: int) -> Iterator[Message]:
        """Iterate over the messages of the history with ``start < id <= end``, oldest first, including ancestors'."""
        for log, low, high in reversed(list(self._stretches(start, end))):
            if low < log.start:
                raise NotHeld
            yield from log._messages[low - log.start : high - log.start]

    def _stretches(self, start: int, end: int) -> "Iterator[tuple[Log, int, int]]":
        """Iterate over the logs that hold the messages with ``start < id <= end``, with their bounds; newest first."""
        log: Log | None = self
        while log is not None and start < end:
            if end > log.base:
                yield log, max(start, log.base), end
                end = log.base
            log = log.parent

    def conversation(self, position: int, end: int | None = None) -> "Iterator[Spoken]":
        """Iterate over the visible messages up to a position that a model may see verbatim, newest first.

        Other messages are skipped without cost. Messages that a summary in force replaces are left out, and so is its
        text: `opening` returns that.

        Args:
            end: begin with the latest message that is not after this one; None for the position.
        """
        view = self.view(position)
        floor = 0 if view.lens is None else view.floor
        return self._conversation(view, position, position if end is None else end, floor)

    def unkept(self, position: int, end: int | None, key: Hashable) -> "tuple[list[Spoken], Passage | None]":
        """Return the latest messages of the conversation that have no cached `Passage`, newest first.

        Args:
            position: as in `conversation`.
            end: as in `conversation`.
            key: the key of the cache (see `Spoken.kept`).

        Returns:
            These messages; and the cached passage that ends right before them, None when there is none.
        """
        new: list[Spoken] = []
        for spoken in self.conversation(position, end):
            if (chain := spoken.kept(key)) is not None:
                return new, chain
            new.append(spoken)
        return new, None

    def spoken(self, position: int) -> Iterator[Message]:
        """Iterate over the messages of `conversation` without their places, newest first."""
        return (entry.message for entry in self.conversation(position))

    def _conversation(self, view: View, position: int, end: int, floor: int) -> "Iterator[Spoken]":
        closed: Segment | None = Segment(view.start, position, view.closed)
        while closed is not None and closed.end > floor:
            start, high, closed = closed
            for log, low, upper in self._stretches(max(start, floor), min(high, end)):
                spoken = log._spoken
                first = bisect_right(spoken, low, key=_position)
                for place in range(bisect_right(spoken, upper, first, key=_position) - 1, first - 1, -1):
                    yield Spoken(log, place, spoken[place])
                if low < log.start:
                    raise NotHeld

    def finds(self, position: int) -> Iterator[Message]:
        """Iterate over the visible messages by which a model has found tools or loaded skills, newest first.

        Other messages are skipped without cost.
        """
        view = self.view(position)
        closed: Segment | None = Segment(view.start, position, view.closed)
        while closed is not None and closed.end > view.floor:
            start, high, closed = closed
            for log, low, upper in self._stretches(max(start, view.floor), high):
                if low < log.start:
                    raise NotHeld
                yield from (find for find in reversed(log._finds) if low < find.id <= upper)

    def latest_prompt(self, end: int | None = None) -> Message | None:
        """Return the latest visible prompt of the history, perhaps inherited; None when there is none.

        ``end``: only prompts up to this position.
        """
        end = self.head if end is None else end
        spoken = (entry.message for entry in self._conversation(self.view(self.head), self.head, end, 0))
        return next((message for message in spoken if message.kind == Kind.USER), None)

    def elided(self, position: int) -> int:
        """Return the position before which long results are replaced by references; 0 for none.

        ``position`` is the end of the history.
        """
        lens = self.view(position).lens
        return lens.elide if lens is not None else 0

    def is_shown_as(self, position: int, earlier: int) -> bool:
        """Return whether the same summary was in force at an earlier position, so that earlier requests had its text.

        False if only one of the two positions has a summary.
        """
        now, then = self.view(position).lens, self.view(earlier).lens
        return now is then or (now is not None and then is not None and now[:2] == then[:2])

    def was_uncompacted(self, position: int) -> bool:
        """Return whether the latest change to how the log's own past is shown was an uncompact."""
        for place in reversed(self._controls[: bisect_right(self._controls, position)]):
            control = self._one(place)
            if control is not None and control.kind in (Kind.SUMMARY, Kind.UNCOMPACT):
                return control.kind == Kind.UNCOMPACT
        return False

    def _one(self, place: int) -> Message | None:
        """Return the message at a position of the history; None if there is none.

        Raises `NotHeld` if it is not in memory.
        """
        log: Log | None = self if place else None
        while log is not None:
            if (apart := log._apart.get(place)) is not None:
                return apart
            if place > log.start:
                return log._messages[place - log.start - 1] if place <= log.head else None
            if place > log.base:
                raise NotHeld
            log = log.parent
        return None

    def opening(self, position: int) -> tuple[Message | None, Message | None]:
        """Return the beginning of the visible history up to a position, before the part that is shown verbatim.

        Returns:
            The summary whose text is shown, and the prompt that was open then; None for none.
        """
        lens = self.view(position).lens
        if lens is None:
            return None, None
        return self._one(lens.summary), self._one(lens.prompt)

    def visible(self, position: int | None = None) -> Iterator[Message]:
        """Iterate over the visible history up to a position; None means the head.

        Clears, rewinds and summaries are applied.

        A summary in force comes first, and then the prompt that was open: only after them do positions ascend. All
        other summaries are left out.
        """
        position = self.head if position is None else position
        yield from (message for message in self.opening(position) if message is not None)
        view = self.view(position)
        for start, end in view.visible(position, view.floor):
            yield from (message for message in self.between(start, end) if message.kind != Kind.SUMMARY)


class Passages:
    """The messages of one log as one model sees them. A cache."""

    __slots__ = ("chains", "sent")

    def __init__(self) -> None:
        self.chains: list[Passage | None] = []
        """By `Spoken.place`: the conversation up to this message, inherited ones included; None where it is not made,
        or ends within the results of calls.
        """
        self.sent: dict[str, tuple[int, ...]] = {}
        """Ids of calls as they were sent, with the positions of the replies."""


class Spoken(NamedTuple):
    """A message of a conversation, with its place in a log."""

    log: Log
    place: int
    """The number of the conversation's messages before it in the log."""
    message: Message

    def kept(self, key: Hashable) -> Passage | None:
        """Return the cached conversation up to this message, by the key of a model; None if it is not cached."""
        passages = None if self.log.passages is None else self.log.passages.get(key)
        return passages.chains[self.place] if passages is not None and self.place < len(passages.chains) else None
