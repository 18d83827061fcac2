"""Events about hosts: a host has ended, another host runs the agents, or the tools of hosts differ."""

from collections.abc import Sequence

from ikigai_actors.agent.subscriptions import HostChanged, HostEnded, HostsDiffer
from ikigai_actors.records.hosts.builds import host_differences
from ikigai_actors.store.base import Store
from ikigai_actors.store.hosts.rows import HostRecord


def host_events(before: Sequence[HostRecord], now: Sequence[HostRecord]) -> list[HostChanged | HostEnded]:
    """Return the events between two lists of the hosts that run the agents; each list has the latest host first.

    Of hosts that share the agents, each host that ends is reported once. After a host that does not share them, either
    no host runs the agents, or another one.
    """
    if not now:
        return [HostChanged(None, before[0].called)] if before else []
    named = [host for host in now if host.name is not None]
    heirs = tuple(sorted({host.name or "" for host in [host for host in named if not host.draining] or named}))
    if not before or before[0].name is None or not heirs:
        changed = not before or now[0].id != before[0].id
        return [HostChanged(str(now[0]), before[0].called if before else "")] if changed else []
    there = {host.id for host in now}
    gone = [host for host in reversed(before) if host.id not in there]
    return [HostEnded(host.name or host.id, host.agents, heirs) for host in gone]


class DifferenceWatch:
    """Notices when hosts that share the agents have different tools, and when they have the same again."""

    def __init__(self, store: Store) -> None:
        """Begin as if all hosts had the same tools."""
        self._store = store
        self._seen: frozenset[str] = frozenset()
        self._latest = HostsDiffer(())

    def compare(self, hosts: Sequence[HostRecord]) -> list[HostsDiffer]:
        """Compare the tools of the living hosts; return the event if their difference has changed, else an empty list.

        The tools are read only if the hosts have changed.
        """
        shared = frozenset(host.id for host in hosts if host.name is not None)
        if shared == self._seen:
            return []
        difference = HostsDiffer(self._store.read(host_differences) if len(shared) > 1 else ())
        self._seen, before, self._latest = shared, self._latest, difference
        return [difference] if difference != before else []
