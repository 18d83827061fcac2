"""The waits that a host publishes in its row, for readers in other processes and to find circles over several hosts.

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

from ikigai_actors.actors.wait_graph import (
    Circle,
    Until,
    WaitedBy,
    WaitEdge,
    WaitKey,
    closed_by,
    never_ending,
    reached,
)
from ikigai_actors.store.base import Store
from ikigai_actors.store.hosts.rows import HostRecord


@dataclass(frozen=True, slots=True)
class HostWaits:
    """The waits of a host's agents that the host publishes in its row."""

    look: int = 0
    """The number of the host's look at the waits."""
    edges: frozenset[WaitEdge] = frozenset()
    states: Mapping[str, str] = field(default_factory=dict)
    """The states of the waiting agents, by uuid."""


def encode_waits(waits: HostWaits) -> str:
    """Return the waits as text for the column of the host's row; empty when no agent waits."""
    if not waits.states and not waits.edges:
        return ""
    in_order = sorted(waits.edges, key=lambda edge: (edge.wait, edge.awaited))  # the same text each time
    edges = [[*edge[:4], edge.wait.began, edge.wait.number, edge.spare] for edge in in_order]
    host = next((edge.wait.host for edge in waits.edges), "")
    return json.dumps({"host": host, "look": waits.look, "edges": edges, "states": waits.states})


@lru_cache(maxsize=64)
def decode_waits(text: str) -> HostWaits:
    """Return the waits from a text of `encode_waits`; none if it cannot be read, for example from another version."""
    try:
        fields = json.loads(text or "{}")
        host = str(fields.get("host", ""))
        edges = [
            WaitEdge(
                *(str(waiter), str(awaited), WaitedBy(by), Until(until), WaitKey(int(began), int(number), host)),
                int(spare),
            )
            for waiter, awaited, by, until, began, number, spare in fields.get("edges", ())
        ]
        states = {str(uuid): str(state) for uuid, state in fields.get("states", {}).items()}
        return HostWaits(int(fields.get("look", 0)), frozenset(edges), states)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return HostWaits()


def publish(store: Store, host: str, text: str) -> None:
    """Write the text of `encode_waits` to a host's row. Raises `StoreError`."""
    store.write(lambda tx: tx.run("publish_waits", host=host, waits=text))


def published_state(hosts: Iterable[HostRecord], uuid: str) -> str:
    """Return the state of a waiting agent, as its host publishes it; empty if no host does."""
    return next((state for row in hosts if (state := decode_waits(row.waits).states.get(uuid))), "")


def lasting(before: Mapping[str, HostWaits], now: Mapping[str, HostWaits]) -> frozenset[WaitEdge]:
    """Return the waits between agents that all existed at one moment, the moment of the earlier of two readings.

    Each host has published new waits between the readings, and the same edges again. Both arguments are by host.
    """
    return frozenset().union(
        *(waits.edges & before[host].edges for host, waits in now.items() if waits.look > before.get(host, waits).look)
    )


def circles_of(host: str, edges: Iterable[WaitEdge]) -> list[Circle]:
    """Return the circles of waits that this host must break, each beginning with the edge to remove.

    A host breaks the circles whose latest wait is one of its own agents'. All hosts find the same circles, so exactly
    one host breaks each. Of circles that lead to one another only the circle with the latest wait is broken: the others
    may be over then.
    """
    dead: dict[str, list[WaitEdge]] = {}
    for edge in sorted(never_ending(edges), key=lambda edge: (edge.wait, edge.awaited)):
        dead.setdefault(edge.waiter, []).append(edge)

    def out(uuid: str) -> Iterable[WaitEdge]:
        return dead.get(uuid, ())

    own = [edge for of in dead.values() for edge in of if edge.wait.host == host]
    circles = {edge.wait: circle for edge in own[::-1] if (circle := closed_by([edge], out)) is not None}
    return [circle for key, circle in circles.items() if max(edge.wait for edge in reached(circle[:1], out)) == key]
