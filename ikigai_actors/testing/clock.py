"""A clock whose hands are turned by a test."""


class ManualClock:
    """A `Clock` that stands still until it is turned."""

    def __init__(self, seconds: float = 1_000.0) -> None:
        """Make a clock that shows so many seconds since 1970."""
        self._seconds = seconds

    def advance(self, seconds: float) -> None:
        """Turn the hands."""
        self._seconds += seconds

    def now_ms(self) -> int:
        """Milliseconds since 1970, as the hands stand."""
        return round(self._seconds * 1000)

    def monotonic(self) -> float:
        """The same, in seconds."""
        return self._seconds
