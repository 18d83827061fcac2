"""Decides which agents to poll after commits of other processes: the agents that a hint names, and at times all agents.

    polls = PollSchedule(store.watch(hosts=True), clock)
    while not closed:
        hint = polls.wait()            # the agents that were named; None for all
        look_at(hint.agents)
        polls.done(hint.agents)        # or polls.failed()

A hint may get lost, so all agents are polled every few seconds. If such a poll takes long, it is done less often, so
that it takes a small share of the time only. A loop that polls all agents in parts calls `meanwhile` for the agents
that hints have named since, so that these need not wait for the end. Agents for which a host may have work are never
delayed.
"""

from ikigai_actors.actors.clock import Clock
from ikigai_actors.store.base import Hint, Watch

HEARTBEAT = 2.0
"""Seconds between two checks whether the host still lives: a killed process commits nothing, so no hint comes."""

REST = 20
"""The next regular poll of all agents comes at least this many times later than the last one took."""

PAUSE = 3
"""The next poll of all agents that a hint asks for comes this many times later than the last one took."""

NOBODY = frozenset[str]()


class PollSchedule:
    """Decides which agents one thread polls, and when."""

    def __init__(self, watch: Watch, clock: Clock) -> None:
        self._watch, self._clock = watch, clock
        self._began = clock.monotonic()
        self._due = self._began  # when all are looked at next
        self._may = self._began  # when they may be, if a hint asks for it
        self._hosts_due = self._began  # when a host is to look next at what no hint may have told it of
        self.asked = False
        """Whether a hint has named nobody since the latest look at all began."""

    def wait(self, timeout: float | None = HEARTBEAT) -> Hint:
        """Wait until something may have changed, at most ``timeout`` seconds; return the agents to poll.

        None as the time waits without limit. The hint has their uuids; None for all. Also returns when the watch was
        closed.
        """
        now = self._clock.monotonic()
        if timeout is not None:
            timeout = min(timeout, max(0.0, self._hosts_due - now))
        if self.asked:
            left = max(0.0, self._may - now)
            timeout = left if timeout is None else min(left, timeout)
        hint = self._heard(timeout)
        self._began = self._clock.monotonic()
        if self._began < self._due and not (self.asked and self._began >= self._may):
            return hint
        self.asked = False
        return hint._replace(agents=None)

    def meanwhile(self) -> Hint:
        """Return the agents, by uuid, that hints have named since a poll of all agents began. Does not wait."""
        return self._heard(0)

    def _heard(self, timeout: float | None) -> Hint:
        agents, for_hosts = self._watch.heard() if self._watch.wait(timeout) else Hint(NOBODY, NOBODY)
        self.asked |= agents is None
        now = self._clock.monotonic()
        if for_hosts is None or now >= self._hosts_due:
            for_hosts, self._hosts_due = None, now + HEARTBEAT
        return Hint(NOBODY if agents is None else agents, for_hosts)

    def done(self, agents: frozenset[str] | None) -> None:
        """Record that these agents were polled; None for all."""
        if agents is None:
            now = self._clock.monotonic()
            self._due = now + max(HEARTBEAT, REST * (now - self._began))
            self._may = now + PAUSE * (now - self._began)

    def failed(self) -> None:
        """Record that the poll failed. The next poll looks at all agents."""
        self._due = self._began
