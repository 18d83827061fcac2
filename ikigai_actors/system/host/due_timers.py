"""Timers and questions of a host's agents: finds the ones that come next, and carries them out when they are due.

Timers fire, unanswered questions take their next step, and parked agents whose wait is over are woken.

    asleep    nothing is due; a commit, a hint, new agents of this host, or the next due time starts a read
    looking   the rows are read, and the units for due things go to the journal, at most `FIRED_AT_ONCE` at a time
    firing    these units are being committed; then the rows are read again

All state is in the rows, except the time of the next read. The machine's clock may be set meanwhile, so the clock is
read in between, without reading rows. A firing that was not committed is tried again after `RETRY` seconds.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

from ikigai_actors.actors.clock import Clock
from ikigai_actors.records.hosts.question_steps import StepQuestion, next_questions
from ikigai_actors.records.log.parking import WakeParked, next_waits
from ikigai_actors.records.mail.timers import Fire, next_timers
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.journal import CommitResult, Committed, Journal
from ikigai_actors.store.retrying_reader import RetryingReader
from ikigai_actors.store.unit import Unit
from ikigai_actors.system.host.calendar_alarm import CalendarAlarm

logger = logging.getLogger(__name__)

FIRED_AT_ONCE = 100
"""The most timers that are fired before the rows are read again."""

RETRY = 5.0
"""Seconds after which a firing is tried again that was not committed."""


class Due(Protocol):
    """A thing that is due for an agent at a time, such as a timer."""

    @property
    def agent(self) -> str:
        """The uuid of the agent."""

    @property
    def due_at(self) -> int:
        """The time at which the thing is due, in milliseconds since 1970."""


class DueKind(NamedTuple):
    """A kind of due things, such as timers or steps of questions, and how they are read and carried out."""

    name: str
    next: Callable[[Transaction, str, int], Sequence[Any]]
    """Gives what comes next of a host's agents, this many at most; each is a `Due`."""
    unit: Callable[[Any, int], Unit]
    """The unit that does it at a time, unless it was done or taken back."""


TIMERS = DueKind("Timer", next_timers, Fire)
QUESTIONS = DueKind("Question", next_questions, StepQuestion)
WAITS = DueKind("Wait", next_waits, WakeParked)


class DueTimers:
    """Carries out the due things of one kind for a host's agents.

    One thread uses it, and may wait for the database.
    """

    def __init__(
        self,
        kind: DueKind,
        reader: RetryingReader,
        journal: Journal,
        host: str,
        clock: Clock,
        post: Callable[[Callable[[], object]], object],
        after: Callable[[float, Callable[[], object]], object],
    ) -> None:
        """Make the timers of one kind for a host.

        Args:
            kind: the kind of due things.
            reader: reads when the next thing is due.
            journal: commits the units that carry them out.
            host: the id of the host.
            clock: gives the time.
            post: has the thread call a function; from any thread.
            after: lets the thread call a function in this many seconds.
        """
        self._kind, self._reader, self._journal, self._host, self._clock = kind, reader, journal, host, clock
        self._post, self._after = post, after
        self._firing = 0  # how many firings are on their way to the database
        self._failed = False
        self._alarm = CalendarAlarm(clock, after, self.fire_due)

    def fire_due(self) -> None:
        """Carry out all due things, and schedule the next check."""
        if self._firing:
            return  # it is looked at after them
        upcoming = self._reader.read(lambda tx: self._kind.next(tx, self._host, FIRED_AT_ONCE))
        now = self._clock.now_ms()
        due: list[Due] = [timer for timer in upcoming if timer.due_at <= now]
        if due:
            self._fire(due, now)
        else:
            self._alarm.set(upcoming[0].due_at if upcoming else None)

    def _fire(self, due: Sequence[Due], now: int) -> None:
        self._firing = len(due)
        for timer in due:
            self._journal.submit(self._kind.unit(timer, now), partial(self._done, timer))

    def _done(self, timer: Due, result: CommitResult) -> None:
        if not isinstance(result, Committed):
            logger.warning("%s of agent %s did not fire: %s", self._kind.name, timer.agent, result.error)
        self._post(lambda: self._fired(isinstance(result, Committed)))

    def _fired(self, committed: bool) -> None:
        self._firing -= 1
        self._failed = self._failed or not committed
        if self._firing:
            return
        if self._failed:
            self._failed = False
            self._after(RETRY, self.fire_due)
        else:
            self.fire_due()
