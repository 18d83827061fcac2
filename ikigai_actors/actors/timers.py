"""`Timers`: values that become due at given times. Pure: the caller reads the clock and waits."""

import heapq
from typing import Generic, TypeVar

from ikigai_actors.actors.threads import LONGEST_SLEEP

T = TypeVar("T")


class Timers(Generic[T]):
    """Values with times at which they are due, in seconds of the caller's clock. For one thread at a time."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, T]] = []
        self._count = 0

    def add(self, due: float, value: T) -> None:
        """Add a value. Of values with the same time, the one that was added first is due first."""
        self._count += 1
        heapq.heappush(self._heap, (due, self._count, value))

    def take_due(self, now: float) -> T | None:
        """Remove and return the value that has been due longest; None when none is due."""
        return heapq.heappop(self._heap)[2] if self._heap and self._heap[0][0] <= now else None

    def sleep(self, now: float) -> float | None:
        """Return the seconds until the next value is due, but at most `LONGEST_SLEEP`.

        None when there is no value.
        """
        return min(max(0.0, self._heap[0][0] - now), LONGEST_SLEEP) if self._heap else None
