"""The time of a database, shared by all processes that use the database, and time stamps from that clock.

Processes compare times: of deadlines, restarts and deaths. The clocks of two machines differ, so with a database server
the server's time counts. A process asks the server for the time, and continues from there by its own monotonic clock:
a change of its own wall clock has no effect.

An answer gives two bounds, since the server read its clock after the question was sent, and before the answer came. The
process's estimate of the server's time moves only as far as the bounds require. So a slow answer, with wide bounds,
does no harm.

So the clocks of two processes are nearly the same. A process may still read a row that another process has stamped with
a slightly later time than its own. `HybridClock` makes the stamps: they never fall, and none is earlier than a stamp
that the process has read before (`Store.listen`). So a row's cause always has an earlier or equal stamp, over any
number of hosts.
"""

import threading

from ikigai_actors.actors.clock import Clock
from ikigai_actors.store.base import Store


class DatabaseClock(Clock):
    """A `Clock` with the server's wall-clock time. Until the server has answered, it has this machine's time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        vars(self)["monotonic"] = clock.monotonic
        self._origin = clock.now_ms() - clock.monotonic() * 1000  # milliseconds since 1970 when the other clock began

    def now_ms(self) -> int:
        return int(self._clock.monotonic() * 1000 + self._origin)

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def hear(self, asked: float, server_time: int) -> None:
        """Set the clock by an answer of the server that has just arrived.

        Args:
            asked: when the question was sent, by `monotonic`.
            server_time: the server's time, in whole milliseconds since 1970.
        """
        answered = self._clock.monotonic()
        least, most = server_time - answered * 1000, server_time + 1 - asked * 1000
        self._origin = max(least, min(self._origin, most))

    def ask(self, store: Store) -> None:
        """Ask the server for its time, and set this clock by the answer. Raises `StoreError`."""
        asked = self._clock.monotonic()
        [(server_time,)] = store.read(lambda tx: tx.run("time"))
        self.hear(asked, server_time)


SET_BACK = 10_000
"""Milliseconds by which stamps may be ahead of the wall clock.

If they are further ahead, a clock was set back, and stamps follow the wall clock again. Otherwise timers would wait
until the clock has caught up.
"""


class HybridClock(Clock):
    """A `Clock` for stored times. Its time never falls, and is never earlier than a stored time that was read."""

    def __init__(self, clock: Clock) -> None:
        self.calendar = clock
        """The clock that it follows."""
        vars(self)["monotonic"] = clock.monotonic  # a turn asks a dozen times
        self._latest = 0
        self._lock = threading.Lock()

    def now_ms(self) -> int:
        now = self.calendar.now_ms()
        with self._lock:
            if not 0 < self._latest - now <= SET_BACK:
                self._latest = now
            return self._latest

    def monotonic(self) -> float:
        return self.calendar.monotonic()

    def hear(self, stamp: int) -> None:
        """Keep all later times at or after a stamp that the process has read (milliseconds since 1970)."""
        if stamp > self._latest:
            with self._lock:
                if self._latest < stamp <= self.calendar.now_ms() + SET_BACK:
                    self._latest = stamp


def clock_of(store: Store, clock: Clock) -> HybridClock:
    """Return the clock for stored times: the server's time if the database is on a server, else this machine's.

    From now on the clock takes every time stamp that the process reads from the store.

    Raises:
        StoreError: the server does not answer.
    """
    calendar = clock
    if store.leases:
        calendar = DatabaseClock(clock)
        calendar.ask(store)
    stamps = HybridClock(calendar)
    store.listen(stamps.hear)
    return stamps
