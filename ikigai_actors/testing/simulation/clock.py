"""A clock that a test sets by hand, and wall clocks that may be wrong."""

from ikigai_actors.actors.clock import Clock
from ikigai_actors.arguments import FARTHEST, check_seconds


class WallClock(Clock):
    """The clock of one of several processes.

    The wall clock of a process may be wrong, but time passes equally for all processes.
    """

    def __init__(self, clock: "ManualClock") -> None:
        """Make a wall clock that shows the time of ``clock``, until it is set."""
        self._clock = clock
        self.wrong = 0.0
        """Seconds by which it was set ahead; negative when it was set back."""

    def jump(self, seconds: float) -> None:
        """Set the wall clock ahead, or back."""
        self.wrong += seconds

    def now_ms(self) -> int:
        return self._clock.now_ms() + round(self.wrong * 1000)

    def monotonic(self) -> float:
        return self._clock.monotonic()


class ManualClock(Clock):
    """A `Clock` of which a test sets the time."""

    def __init__(self, seconds: float = 1_000.0) -> None:
        """Make a clock that shows this many seconds since 1970."""
        self._seconds = check_seconds(seconds, "seconds", most=FARTHEST)
        self.wrong = 0.0
        """Seconds by which the wall clock was set ahead; negative when it was set back."""

    def advance(self, seconds: float) -> None:
        """Let this many seconds pass on the clock."""
        self._seconds += seconds

    def jump(self, seconds: float) -> None:
        """Set the wall clock ahead or back: `now_ms` jumps, but no time passes."""
        self.wrong += seconds

    def now_ms(self) -> int:
        """Return the time of the wall clock in milliseconds since 1970."""
        return round((self._seconds + self.wrong) * 1000)

    def monotonic(self) -> float:
        """Return the seconds that have passed, independent of the wall clock."""
        return self._seconds
