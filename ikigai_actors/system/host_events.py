"""The events when other hosts live than before. Pure."""

from collections.abc import Sequence

from ikigai_actors.agent.subscriptions import HostChanged, HostEnded
from ikigai_actors.store.hosts.rows import HostRecord


def host_events(before: Sequence[HostRecord], now: Sequence[HostRecord]) -> list[HostChanged | HostEnded]:
    """The events between two looks at the hosts that run the agents, each the latest first.

    Hosts that share the agents come and go: each that goes is reported, once. A host that shares them with nobody is
    followed by none, or by another one.
    """
    if not now:
        return [HostChanged(None, before[0].called)] if before else []
    named = [one for one in now if one.name is not None]
    heirs = tuple(sorted({one.name or "" for one in [one for one in named if not one.draining] or named}))
    if not before or before[0].name is None or not heirs:
        changed = not before or now[0].id != before[0].id
        return [HostChanged(str(now[0]), before[0].called if before else "")] if changed else []
    there = {one.id for one in now}
    gone = [one for one in reversed(before) if one.id not in there]
    return [HostEnded(one.name or one.id, one.agents, heirs) for one in gone]
