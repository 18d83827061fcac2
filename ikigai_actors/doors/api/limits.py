"""Limits of the requests of one principal, or of one address. Pure: times are arguments.

rates = RequestRates(a_second=20, at_once=100)
rates.count("anna", now)         # False if the request must wait
"""

from collections import OrderedDict

_MOST_KNOWN = 10_000
"""The most clients whose requests are counted; the client that asked least recently is forgotten first."""


class RequestRates:
    """A limit of requests for each client: a number at once, and then a rate."""

    def __init__(self, a_second: float, at_once: float) -> None:
        self._a_second, self._at_once = a_second, at_once
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def count(self, asker: str, now: float) -> bool:
        """Return whether a request of a client is allowed now, and count an allowed request."""
        left = self._now_left(asker, now)
        allowed = left >= 1
        self._left[asker] = (left - 1 if allowed else left, now)
        self._left.move_to_end(asker)
        if len(self._left) > _MOST_KNOWN:
            self._left.popitem(last=False)
        return allowed

    def has_room(self, asker: str, now: float) -> bool:
        """Return whether a request would be allowed. Counts nothing."""
        return self._now_left(asker, now) >= 1

    def _now_left(self, asker: str, now: float) -> float:
        left, at = self._left.get(asker, (self._at_once, now))
        return min(self._at_once, left + (now - at) * self._a_second)


class OpenPlaces:
    """A limit of the connections that each client may have open at the same time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: dict[str, int] = {}

    def enter(self, asker: str) -> bool:
        """Count one more open connection of a client; return False, and count nothing, if the limit is reached."""
        taken = self._open.get(asker, 0)
        if taken >= self._most:
            return False
        self._open[asker] = taken + 1
        return True

    def leave(self, asker: str) -> None:
        """Count one open connection of a client less."""
        self._open[asker] -= 1
        if not self._open[asker]:
            del self._open[asker]
