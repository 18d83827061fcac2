"""Whereabouts: which agents this host runs, those that have no actor in memory too.

A host that follows the log reads what other processes commit of agents that others run; its own actors publish theirs.
A sleeping agent has no actor, but its shard shows that this host runs it. So a hint about the agent need not be read.
Each look at the log notes the shards of the agents that it has read:

    unknown     the agent's shard is not noted: after a hint about the agent its log is read, and the shard noted
    noted       the shard is noted: if this host has the shard, a hint about the agent costs nothing
    changed     another process has changed the agent's status or name, or ended it: its shard is unknown again

The read of all agents, every few seconds, notes an agent that has moved to a shard of another host.
"""

import threading
from collections.abc import Iterable

from ikigai_actors.records.log.heads import Head
from ikigai_actors.system.host.processes import ProcessTable


class Whereabouts:
    """Remembers which agents a host runs, by the shard of each agent. Thread-safe.

    One thread at a time may look at the log.
    """

    def __init__(self, processes: ProcessTable) -> None:
        self._processes = processes
        self._shards: dict[str, int] = {}
        self._changed: set[str] = set()  # since the look in progress began: it may have read what was before
        self._lock = threading.Lock()
        processes.on_change = self.forget

    def is_here(self, uuid: str) -> bool:
        """Return whether this host runs an agent; False also if that is unknown."""
        return self._processes.get(uuid) is not None or self._processes.serves(self._shards.get(uuid))

    def begin_look(self) -> None:
        """Note that a look at the log begins to read."""
        with self._lock:
            self._changed.clear()

    def note(self, heads: Iterable[Head]) -> None:
        """Note the shards of the agents whose heads a look has read, except those that have changed meanwhile."""
        with self._lock:
            self._shards.update((head.uuid, head.shard) for head in heads if head.uuid not in self._changed)

    def forget(self, uuid: str) -> None:
        """Forget an agent, because another process has changed its row."""
        with self._lock:
            self._shards.pop(uuid, None)
            self._changed.add(uuid)
