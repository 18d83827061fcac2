"""The runtime's clock. A simulation replaces it by a virtual clock."""

import time
from functools import partial
from typing import Protocol


class Clock(Protocol):
    """A source of the time."""

    def now_ms(self) -> int:
        """Return the wall-clock time in milliseconds since 1970 (UTC)."""

    def monotonic(self) -> float:
        """Return seconds that never run backwards, counted from an arbitrary start.

        Where the machine can measure it, the time of a suspend counts, too.
        """


_CLOCK = getattr(time, "CLOCK_BOOTTIME", None)
"""Linux's clock that goes on while the machine is suspended: a lease runs out meanwhile."""


class SystemClock(Clock):
    """The machine's own clocks."""

    def __init__(self) -> None:
        if _CLOCK is not None:
            vars(self)["monotonic"] = partial(time.clock_gettime, _CLOCK)  # a turn asks a dozen times

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()


SYSTEM_CLOCK = SystemClock()
