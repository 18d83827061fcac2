"""Rounds: at whom a process looks each time that others may have committed.

    rounds = Rounds(store.watch(hosts=True), clock)
    while not closed:
        among = rounds.wait()           # the agents that a hint names; None for all
        look_at(among)
        rounds.done(among)              # or rounds.failed()

A hint may get lost, so all are looked at every few seconds. Where that takes long, it is done less often: it takes a
small share of the time only.
"""

from ikigai_actors.actors.clock import Clock
from ikigai_actors.store.base import Watch

HEARTBEAT = 2.0
"""Seconds between two looks at whether the host still lives: a process that is killed commits nothing."""

REST = 20
"""How many times as long as a look at all has taken the next one is put off, at least."""

NOBODY = frozenset[str]()


class Rounds:
    """The looks of one thread."""

    def __init__(self, watch: Watch, clock: Clock) -> None:
        """Make the rounds of the thread that waits with a watch; the clock is monotonic."""
        self._watch, self._clock = watch, clock
        self._began = clock.monotonic()
        self._due = self._began

    def wait(self, timeout: float | None = HEARTBEAT) -> frozenset[str] | None:
        """Wait until something may be new, or so many seconds, None for ever; return the agents to look at, by uuid.

        None for all; also after the watch was closed.
        """
        heard = self._watch.heard() if self._watch.wait(timeout) else NOBODY
        self._began = self._clock.monotonic()
        return None if self._began >= self._due else heard

    def done(self, among: frozenset[str] | None) -> None:
        """Note that these agents were looked at."""
        if among is None:
            now = self._clock.monotonic()
            self._due = now + max(HEARTBEAT, REST * (now - self._began))

    def failed(self) -> None:
        """Note that the look failed: the next one is at all."""
        self._due = self._began
