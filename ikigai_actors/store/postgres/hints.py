"""Hints: what a NOTIFY says beside its channel, the agents that a commit concerns. Text for `NOTIFY`, and back.

A hint names them by uuid, or says nothing: then it may be any agent.
"""

from collections.abc import Collection, Iterable

CLIENTS, HOSTS = "ikigai", "ikigai_hosts"
"""The channels: who commits."""

NOTIFY = b"SELECT pg_notify(%s, %s)"
"""Takes a channel, and a `payload`."""

MOST_BYTES = 7_900
"""Bytes of a payload; the server takes less than 8,000."""


def payload(agents: Collection[str] | None) -> str:
    """The text that names agents; empty for any agent, and when they are too many to be named."""
    text = " ".join(sorted(agents or ()))
    return text if len(text.encode()) <= MOST_BYTES else ""


def agents_named(payloads: Iterable[str]) -> frozenset[str] | None:
    """The agents that several payloads name together; None for any agent."""
    found = [payload.split() for payload in payloads]
    return frozenset(uuid for uuids in found for uuid in uuids) if all(found) else None
