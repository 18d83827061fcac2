"""Time, as the runtime sees it: swapped at the composition root, so that a simulation can turn the hands."""

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time."""

    def now_ms(self) -> int:
        """Milliseconds since 1970 (UTC), as people's calendars count."""

    def monotonic(self) -> float:
        """Seconds that never run backwards, from an arbitrary start."""


class SystemClock:
    """The machine's own clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()
