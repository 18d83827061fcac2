"""A clock whose hands a test turns; and a calendar that can be wrong, as people's are."""

from ikigai_actors.actors.clock import Clock
from ikigai_actors.arguments import FARTHEST, check_seconds


class WallClock(Clock):
    """The clock of one of several processes: its calendar may be wrong, and the same time passes for all."""

    def __init__(self, clock: "ManualClock") -> None:
        """Begin with the right time."""
        self._clock = clock
        self.wrong = 0.0
        """Seconds by which it was set ahead; negative when it was set back."""

    def jump(self, seconds: float) -> None:
        """Set it ahead, or back."""
        self.wrong += seconds

    def now_ms(self) -> int:
        return self._clock.now_ms() + round(self.wrong * 1000)

    def monotonic(self) -> float:
        return self._clock.monotonic()


class ManualClock(Clock):
    """A `Clock` that does not move until it is turned."""

    def __init__(self, seconds: float = 1_000.0) -> None:
        """Make a clock that shows this many seconds since 1970."""
        self._seconds = check_seconds(seconds, "seconds", most=FARTHEST)
        self.wrong = 0.0
        """Seconds by which the wall clock was set ahead; negative when it was set back."""

    def advance(self, seconds: float) -> None:
        """Turn the hands."""
        self._seconds += seconds

    def jump(self, seconds: float) -> None:
        """Set the wall clock ahead, or back: `now_ms` leaps, and no time passes."""
        self.wrong += seconds

    def now_ms(self) -> int:
        """Milliseconds since 1970, as the clock shows and the wall clock was set."""
        return round((self._seconds + self.wrong) * 1000)

    def monotonic(self) -> float:
        """Seconds that have passed, however the wall clock was set."""
        return self._seconds
