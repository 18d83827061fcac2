"""The time of a database, which all processes share that use it.

Processes compare times: when an agent must be killed, which restarts count, who died since some moment. The clocks of
two machines differ, so on a server it is the server's time that counts. A process asks the server, and counts on by its
own monotonic clock: when its own wall clock is set, nothing changes.

An answer proves two bounds. The server read its clock after the question was sent, and before the answer came. What
this process believes moves only as far as the bounds ask for. So an answer that took long, and proves little, spoils
nothing.
"""

from ikigai_actors.actors.clock import Clock
from ikigai_actors.store.base import Store


class DatabaseClock(Clock):
    """A `Clock` whose calendar is that of a server. Until the first answer it believes the machine's."""

    def __init__(self, clock: Clock) -> None:
        """Begin with the time of this machine's clocks."""
        self._clock = clock
        self._origin = clock.now_ms() - clock.monotonic() * 1000  # milliseconds since 1970 when the other clock began

    def now_ms(self) -> int:
        return int(self._clock.monotonic() * 1000 + self._origin)

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def hear(self, asked: float, told: int) -> None:
        """Take an answer of the server, which came just now.

        Args:
            asked: when the question was sent, by `monotonic`.
            told: the server's time, in whole milliseconds since 1970.
        """
        answered = self._clock.monotonic()
        least, most = told - answered * 1000, told + 1 - asked * 1000
        self._origin = max(least, min(self._origin, most))

    def ask(self, store: Store) -> None:
        """Ask the server for its time. Raises `StoreError`."""
        asked = self._clock.monotonic()
        [(told,)] = store.read(lambda tx: tx.run("time"))
        self.hear(asked, told)


def clock_of(store: Store, clock: Clock) -> Clock:
    """The clock for times that are stored: on a server the server's, asked now, else this machine's.

    Raises:
        StoreError: the server does not answer.
    """
    if not store.leases:
        return clock
    shared = DatabaseClock(clock)
    shared.ask(store)
    return shared
