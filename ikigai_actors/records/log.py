"""A log in memory: a stretch of an agent's own messages, and a bounded look at the log that it was forked from.

A fork copies nothing: the child's log refers to its parent's, up to the fork point. A clear begins a new log, which
refers to nothing. Only agents that were forked before the clear still hold the old log, and they share it. So an agent
keeps in memory what its history means, and no more, however long it has lived. The store keeps everything.

    positions     1   2   3   4   5   6   7        C = clear
    agent 0       u   a   u   C   u   a            two logs: positions 1 to 3, and 5 on
    child         └───┴── 3   4                    forked at 2: refers to the first of them

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
from ikigai_actors.records.history import EMPTY, Segment, View, play
from ikigai_actors.records.messages import CONTROL, CONVERSATION, Kind, Message

_position = attrgetter("id")

_growing = threading.Lock()
"""Held for a moment while messages are added to a log: its owner and a `LogCache` that reads on may meet."""


class Log:
    """A stretch of one agent's log without a clear in it; with the logs of its ancestors, the agent's history."""

    __slots__ = (
        "__weakref__",
        "_base_view",
        "_controls",
        "_spoken",
        "_views",
        "agent_uuid",
        "base",
        "damage",
        "ended",
        "fork",
        "messages",
        "parent",
        "passages",
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
    ) -> None:
        """Make a log from its messages, whose ids must be base + 1, base + 2, and so on.

        Args:
            agent_uuid: the agent.
            fork: its fork point.
            parent: the log in which the fork point is; None when nothing of it counts.
            messages: those after the base.
            cleared: position of the clear that the log follows; 0 when it begins at the fork point.
            ended: of a log that follows a clear, the message with which the latest turn before that ended.
        """
        self.agent_uuid = agent_uuid
        self.fork = fork
        self.base = cleared or fork
        """The position before its first message: the clear that it follows, or the fork point."""
        self.parent = parent
        self.ended = ended
        self.messages: list[Message] = []
        self.damage: HistoryError | None = None
        """The error that ends the log, when its next row in the store is wrong."""
        self._base_view = View(cleared, None, None, {}) if cleared else EMPTY if parent is None else parent.view(fork)
        self._controls: list[int] = []
        self._spoken: list[Message] = []  # the conversation alone: a request must not look at 10,000 forks of a parent
        self._views: list[View] = []
        self.passages: dict[Hashable, Passages] | None = None
        """What its own messages are to models, by model and lens (`ikigai_actors.agent.assembly`)."""
        self._extend(messages)

    @property
    def head(self) -> int:
        """The position of the latest message; the base when there is none."""
        return self.base + len(self.messages)

    def extend(self, messages: Sequence[Message]) -> None:
        """Append committed messages, none of them a clear (see `LogCache.grow`). Those that it has are left out.

        Raises `HistoryError` when their ids do not follow the head; the messages before the wrong one stay.
        """
        with _growing:
            head = self.head
            self._extend(message for message in messages if message.id > head)

    def _extend(self, messages: Iterable[Message]) -> None:
        following = self.head + 1
        for message in messages:
            if message.id != following:
                raise HistoryError(
                    f"Expected message {following} of agent {self.agent_uuid}, got {message.id}: the log has a hole.",
                    self.agent_uuid,
                )
            following += 1
            if message.kind in CONVERSATION:
                self._spoken.append(message)
            self.messages.append(message)
            if message.kind in CONTROL:
                self._views.append(play(self._views[-1] if self._views else self._base_view, message))
                self._controls.append(message.id)

    def since(self, position: int) -> list[Message]:
        """The log's own messages from a position on; all of them when the position lies before its base."""
        return self.messages[max(0, position - self.base - 1) :]

    def view(self, position: int) -> View:
        """The view of the history up to a position.

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
        """The log of the lineage in which the history up to a position ends; None when a clear stands between."""
        log = self
        while position <= log.base and log.parent is not None:
            log = log.parent
        return log if position >= log.base else None

    def between(self, start: int, end: int) -> Iterator[Message]:
        """The messages of the history with ``start < id <= end``, oldest first, the ancestors' included."""
        for log, low, high in reversed(list(self._stretches(start, end))):
            yield from log.messages[low - log.base : high - log.base]

    def _stretches(self, start: int, end: int) -> "Iterator[tuple[Log, int, int]]":
        """The logs that hold the messages with ``start < id <= end``, with the bounds in each, newest first."""
        log: Log | None = self
        while log is not None and start < end:
            if end > log.base:
                yield log, max(start, log.base), end
                end = log.base
            log = log.parent

    def conversation(self, position: int, end: int | None = None) -> "Iterator[Spoken]":
        """What a model may see verbatim of the folded history up to a position, newest first.

        All other messages cost nothing here, nor do those that are not asked for. What a summary in force stands for is
        left out, and so is its text: `opening` has that.

        Args:
            position: the position.
            end: begin with the latest message that is not behind this one; None for the position.
        """
        view = self.view(position)
        return self._conversation(view, position, position if end is None else end, view.floor)

    def spoken(self, position: int) -> Iterator[Message]:
        """The messages of `conversation`, newest first."""
        return (one.message for one in self.conversation(position))

    def _conversation(self, view: View, position: int, end: int, floor: int) -> "Iterator[Spoken]":
        closed: Segment | None = Segment(view.start, position, view.closed)
        while closed is not None and closed.end > floor:
            start, high, closed = closed
            for log, low, upper in self._stretches(max(start, floor), min(high, end)):
                spoken = log._spoken
                first = bisect_right(spoken, low, key=_position)
                for place in range(bisect_right(spoken, upper, first, key=_position) - 1, first - 1, -1):
                    yield Spoken(log, place, spoken[place])

    def latest_prompt(self, end: int | None = None) -> Message | None:
        """The latest prompt of the folded history, an inherited one too; None when there is none.

        ``end``: not behind this position.
        """
        end = self.head if end is None else end
        spoken = (one.message for one in self._conversation(self.view(self.head), self.head, end, 0))
        return next((message for message in spoken if message.kind == Kind.USER), None)

    def elided(self, position: int) -> int:
        """In the folded history up to a position, long results before this one are shown by reference; 0 for none."""
        lens = self.view(position).lens
        return lens.elide if lens is not None else 0

    def is_shown_as(self, position: int, earlier: int) -> bool:
        """Whether the same summary was in force at an earlier position of the history: so requests then had all this.

        False where only the earlier one, or only the later one, had a summary.
        """
        now, then = self.view(position).lens, self.view(earlier).lens
        return now is then or (now is not None and then is not None and now[:2] == then[:2])

    def was_uncompacted(self, position: int) -> bool:
        """Whether of all that has changed how its own past is shown the latest was the end of a summary."""
        for place in reversed(self._controls[: bisect_right(self._controls, position)]):
            if (kind := self.messages[place - self.base - 1].kind) in (Kind.SUMMARY, Kind.UNCOMPACT):
                return kind == Kind.UNCOMPACT
        return False

    def opening(self, position: int) -> tuple[Message | None, Message | None]:
        """What the folded history up to a position begins with, before what is shown verbatim.

        Returns:
            The summary whose text is shown, and the prompt that was open then; None for none.
        """
        lens = self.view(position).lens
        if lens is None:
            return None, None
        summary, prompt = (
            next(self.between(place - 1, place), None) if place else None for place in (lens.summary, lens.prompt)
        )
        return summary, prompt

    def visible(self, position: int | None = None) -> Iterator[Message]:
        """The folded history up to a position (the head when None): clears, rewinds and summaries applied.

        A summary in force comes first, and then the prompt that was open: only behind them do positions ascend. All
        other summaries are left out.
        """
        position = self.head if position is None else position
        yield from (message for message in self.opening(position) if message is not None)
        view = self.view(position)
        for start, end in view.visible(position, view.floor):
            yield from (message for message in self.between(start, end) if message.kind != Kind.SUMMARY)


class Passages:
    """What a log's own messages are to one model."""

    __slots__ = ("chains", "sent")

    def __init__(self) -> None:
        """Make it for a log of which nothing was sent."""
        self.chains: list[Passage | None] = []
        """By `Spoken.place`: the conversation up to this message, inherited ones included; None where it is not made,
        or ends within the results of calls.
        """
        self.sent: dict[str, tuple[int, ...]] = {}
        """Ids of calls as they were sent, with the positions of the replies."""


class Spoken(NamedTuple):
    """A message of the conversation, and where it stands."""

    log: Log
    place: int
    """How many of the conversation's messages stand in the log before it."""
    message: Message
