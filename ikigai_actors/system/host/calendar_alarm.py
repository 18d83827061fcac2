"""The alarm of one thread: it rings once a time of the calendar has come."""

from collections.abc import Callable
from functools import partial

from ikigai_actors.actors.clock import Clock

LONGEST_NAP = 10.0
"""Seconds after which the alarm looks at the calendar, which may be set while the thread sleeps."""


class CalendarAlarm:
    """Calls a function once the time has come for which the alarm was last set. One thread uses it."""

    def __init__(
        self, clock: Clock, after: Callable[[float, Callable[[], object]], object], ring: Callable[[], object]
    ) -> None:
        """Make an alarm that is not set.

        Args:
            clock: gives the time.
            after: lets the thread call a function in this many seconds.
            ring: is called when the time has come.
        """
        self._clock, self._after, self._ring = clock, after, ring
        self._due: int | None = None
        self._wakes: float | None = None  # when the thread looks at the calendar, by the monotonic clock

    def set(self, due: int | None) -> None:
        """Set the alarm for a time in milliseconds since 1970, in place of the earlier one; None takes it back."""
        self._due = due
        self._nap()

    def _nap(self) -> None:
        if self._due is None:
            return
        wait = min(max(0, self._due - self._clock.now_ms()) / 1000, LONGEST_NAP)
        at = self._clock.monotonic() + wait
        if self._wakes is None or at < self._wakes:
            self._wakes = at
            self._after(wait, partial(self._wake, at))

    def _wake(self, at: float) -> None:
        if at != self._wakes:  # an earlier call came in between
            return
        self._wakes = None
        if self._due is not None and self._due <= self._clock.now_ms():
            self._ring()
        else:
            self._nap()
