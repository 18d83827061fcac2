"""Evicts the logs of the longest idle agents when too many messages are in memory.

After the eviction an agent is as after a start: its log is read again when it is next needed. So a host can run any
number of agents with long histories, and needs memory only for those in use. The log of an agent stays while the log of
a child, which refers to it, is in memory.
"""

import threading
from collections.abc import Callable, Iterable
from typing import Protocol

from ikigai_actors.records.log.log_cache import LogCache

MOST_MESSAGES = 500_000
"""The default limit of messages and passages in memory. Above it, idle agents drop their logs."""

_LOOKS = 16
"""The number of checks while as many messages arrive as may be in memory."""
_AT_ONCE = 4
"""The divisor of the idle agents that drop their logs in one check: 4 means a quarter of them."""


class Resident(Protocol):
    """An agent that can drop its log."""

    @property
    def used(self) -> float | None:
        """The time when the agent's log was last read or grew, by a monotonic clock.

        None if the agent has no log in memory, or cannot drop it.
        """

    def rest(self) -> None:
        """Drop the log soon, if the agent is still idle. Never waits."""


class LogEviction:
    """Evicts the logs of the longest idle agents when too many messages are in memory. Thread-safe."""

    def __init__(self, log_cache: LogCache, agents: Callable[[], Iterable[Resident]], most: int) -> None:
        self._log_cache, self._agents, self._most = log_cache, agents, most
        self._since = 0
        self._lock = threading.Lock()

    def grew(self, messages: int) -> None:
        """Count messages that came into memory. From time to time, check the limit."""
        with self._lock:
            self._since += messages
            if self._since * _LOOKS < self._most:
                return
            self._since = 0
        if self._log_cache.in_memory() + self._log_cache.passages() > self._most:
            idle = [(used, agent) for agent in self._agents() if (used := agent.used) is not None]
            idle.sort(key=lambda loaded: loaded[0])
            for _, agent in idle[: -(-len(idle) // _AT_ONCE)]:
                agent.rest()
