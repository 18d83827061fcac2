"""The waits that a host publishes in its row: for readers in other processes, and for circles over several hosts.

    publish(store, host, encode_waits(HostWaits(look, edges, states)))
    decode_waits(row.waits).states                # {uuid: "waits for b"}, or for the service of its model

A column of ``hosts``, written by a host whose agents have waited for some seconds, has three advantages over marks in
``requests`` and in the mail of prompts. It holds all kinds of waits alike. Most waits are short, and cost no write. And
it ends with its host, with nothing to clean up: readers look at the rows of living hosts only, which they read anyway.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from ikigai_actors.actors.wait_graph import Circle, Until, WaitedBy, WaitEdge, WaitKey, closed_by
from ikigai_actors.store.base import Store
from ikigai_actors.store.hosts.rows import HostRecord


@dataclass(frozen=True, slots=True)
class HostWaits:
    """The waits of its agents that a host publishes."""

    look: int = 0
    """Counts its looks at them."""
    edges: frozenset[WaitEdge] = frozenset()
    states: Mapping[str, str] = field(default_factory=dict)
    """The states of those that wait, by uuid."""


def encode_waits(waits: HostWaits) -> str:
    """The text of the column; empty when nobody waits."""
    if not waits.states and not waits.edges:
        return ""
    in_order = sorted(waits.edges, key=lambda one: (one.wait, one.awaited))  # the same text each time
    edges = [[*edge[:4], edge.wait.began, edge.wait.number] for edge in in_order]
    host = next((edge.wait.host for edge in waits.edges), "")
    return json.dumps({"host": host, "look": waits.look, "edges": edges, "states": waits.states})


@lru_cache(maxsize=64)
def decode_waits(text: str) -> HostWaits:
    """The value of a text of the column. Nothing, when it cannot be read: another version wrote it, or a hand."""
    try:
        told = json.loads(text or "{}")
        host = str(told.get("host", ""))
        edges = [
            WaitEdge(str(waiter), str(awaited), WaitedBy(by), Until(until), WaitKey(int(began), int(number), host))
            for waiter, awaited, by, until, began, number in told.get("edges", ())
        ]
        states = {str(uuid): str(state) for uuid, state in told.get("states", {}).items()}
        return HostWaits(int(told.get("look", 0)), frozenset(edges), states)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return HostWaits()


def publish(store: Store, host: str, text: str) -> None:
    """Write the text of a host's column. Raises `StoreError`."""
    store.write(lambda tx: tx.run("publish_waits", host=host, waits=text))


def published_state(hosts: Iterable[HostRecord], uuid: str) -> str:
    """The thing that an agent waits for, as a state; empty when no host says that it waits."""
    return next((state for row in hosts if (state := decode_waits(row.waits).states.get(uuid))), "")


def lasting(before: Mapping[str, HostWaits], now: Mapping[str, HostWaits]) -> frozenset[WaitEdge]:
    """The edges that were there all at one moment: when the earlier of two readings of the column was made.

    Each host has looked once more between the two, and found them again. Both are by host.
    """
    return frozenset().union(
        *(told.edges & before[host].edges for host, told in now.items() if told.look > before.get(host, told).look)
    )


def circles_of(host: str, edges: Iterable[WaitEdge]) -> list[Circle]:
    """The circles that this host ends, each by its first edge: those of which its is the latest wait.

    All hosts see the same circles, so one of them ends each; and one wait is enough.
    """
    out: dict[str, list[WaitEdge]] = {}
    for edge in sorted(edges, key=lambda one: (one.wait, one.awaited)):
        out.setdefault(edge.waiter, []).append(edge)
    own = [edge for of in out.values() for edge in of if edge.wait.host == host]
    circles = [circle for edge in own if (circle := closed_by([edge], lambda uuid: out.get(uuid, ())))]
    return [circle for circle in circles if max(edge.wait for edge in circle) == circle[0].wait]
