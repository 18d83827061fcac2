"""Evicts the logs of the longest idle agents when too many messages are in memory.

An agent that rests has no log: it is as after a start, and its log is read again when it is next needed. So a host may
run any number of agents, each with a long history, in the memory that those need with which somebody works. The log of
an agent stays as long as the log of a child is in memory, which refers to it.
"""

import threading
from collections.abc import Callable, Iterable
from typing import Protocol

from ikigai_actors.records.log.log_cache import LogCache

MOST_MESSAGES = 500_000
"""Messages in memory, and passages made of them, above which idle agents rest, unless a system says otherwise."""

_LOOKS = 16
"""How often it looks while as many messages come as may be in memory."""
_AT_ONCE = 4
"""The part of the idle agents that rests at once: one in this many."""


class Resident(Protocol):
    """An agent, as far as it concerns this."""

    @property
    def used(self) -> float | None:
        """When its log was last read or grew, in seconds of a monotonic clock; None when it cannot drop one."""

    def rest(self) -> None:
        """Drop the log soon, if the agent is still idle. Never waits."""


class LogEviction:
    """Evicts the logs of the longest idle agents when too many messages are in memory. Thread-safe."""

    def __init__(self, log_cache: LogCache, agents: Callable[[], Iterable[Resident]], most: int) -> None:
        """Let idle agents rest when more messages than that are in memory, and passages made of them."""
        self._log_cache, self._agents, self._most = log_cache, agents, most
        self._since = 0
        self._lock = threading.Lock()

    def grew(self, messages: int) -> None:
        """Note how many messages came into memory; now and then look whether these are too many."""
        with self._lock:
            self._since += messages
            if self._since * _LOOKS < self._most:
                return
            self._since = 0
        if self._log_cache.in_memory() + self._log_cache.passages() > self._most:
            idle = [(used, agent) for agent in self._agents() if (used := agent.used) is not None]
            idle.sort(key=lambda one: one[0])
            for _, agent in idle[: -(-len(idle) // _AT_ONCE)]:
                agent.rest()
