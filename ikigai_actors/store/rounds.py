"""Rounds: at whom a process looks each time that others may have committed.

    rounds = Rounds(store.watch(hosts=True), clock)
    while not closed:
        among = rounds.wait()           # the agents that a hint names; None for all
        look_at(among)
        rounds.done(among)              # or rounds.failed()

A hint may get lost, so all are looked at every few seconds. Where that takes long, it is done less often: it takes a
small share of the time only. Who looks at all some at a time asks `meanwhile` whom hints have named by then, so that
these need not wait for the end.
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

    def __init__(self, watch: Watch, clock: Clock, pause: int = 0) -> None:
        """Make the rounds of the thread that waits with a watch.

        Args:
            watch: tells of commits.
            clock: measures how long a look takes.
            pause: how many times as long as a look at all has taken the next one is put off that a hint asks for.
        """
        self._watch, self._clock, self._pause = watch, clock, pause
        self._began = clock.monotonic()
        self._due = self._began  # when all are looked at next
        self._may = self._began  # when they may be, if a hint asks for it
        self.asked = False
        """Whether a hint has named nobody since the latest look at all began."""

    def wait(self, timeout: float | None = HEARTBEAT) -> frozenset[str] | None:
        """Wait until something may be new, or so many seconds, None for ever; return the agents to look at, by uuid.

        None for all; also after the watch was closed.
        """
        if self.asked:
            left = max(0.0, self._may - self._clock.monotonic())
            timeout = left if timeout is None else min(left, timeout)
        heard = self._heard(timeout)
        self._began = self._clock.monotonic()
        if self._began < self._due and not (self.asked and self._began >= self._may):
            return heard
        self.asked = False
        return None

    def meanwhile(self) -> frozenset[str]:
        """The agents, by uuid, that hints have named since a look at all has begun. Does not wait."""
        return self._heard(0)

    def _heard(self, timeout: float | None) -> frozenset[str]:
        heard = self._watch.heard() if self._watch.wait(timeout) else NOBODY
        self.asked |= heard is None
        return NOBODY if heard is None else heard

    def done(self, among: frozenset[str] | None) -> None:
        """Note that these agents were looked at."""
        if among is None:
            now = self._clock.monotonic()
            self._due = now + max(HEARTBEAT, REST * (now - self._began))
            self._may = now + self._pause * (now - self._began)

    def failed(self) -> None:
        """Note that the look failed: the next one is at all."""
        self._due = self._began
