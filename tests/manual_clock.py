"""A clock whose hands are turned by the test."""


class ManualClock:
    """A `Clock` that stands still until it is advanced."""

    def __init__(self) -> None:
        self._seconds = 1_000.0

    def advance(self, seconds: float) -> None:
        """Turn the hands."""
        self._seconds += seconds

    def now_ms(self) -> int:
        """Milliseconds since 1970, at the test's pleasure."""
        return int(self._seconds * 1000)

    def monotonic(self) -> float:
        """The same, in seconds."""
        return self._seconds
