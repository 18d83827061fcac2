"""Hints: notifications by which processes at one database wake one another, with the agents that a commit concerns.

Every role that may connect to a database may listen there, and notify. So the names of our channels, and the key that
seals the payloads, are derived from a secret in a table, which only permitted roles can read. A notification that was
not sealed with the key wakes nobody.

A hint names agents by uuid. An empty hint means any agent.
"""

import base64
import binascii
import os
from collections.abc import Callable, Collection, Iterable
from hashlib import blake2b

from ikigai_actors.store.postgres.trips import Connection

CLIENTS, HOSTS = "clients", "hosts"
"""The audiences: those who follow clients, and those who follow hosts."""

NOTIFY = b"SELECT pg_notify(%s, %s)"
"""Takes a channel, and a payload."""

SECRET = b"SELECT channel FROM schema_version WHERE one = 1"
"""Reads the secret of a database."""

MOST_BYTES = 5_900
"""The most bytes of uuids in a payload, so that the sealed payload stays below the server's limit of 8,000."""

_NONCE, _PROOF, _BLOCK = 8, 8, 64
"""The number of bytes that make equal payloads differ, of bytes that prove a payload to be ours, and of bytes that are
sealed together."""


class Channels:
    """The notification channels of one database."""

    def __init__(self, secret: str) -> None:
        self._key = _derived(secret, "key")
        self._names = {each: f"ikigai_{_derived(secret, each).hex()[:32]}" for each in (CLIENTS, HOSTS)}
        self._audiences = {name: each for each, name in self._names.items()}

    def name(self, audience: str) -> str:
        """Return the name of the channel for an audience."""
        return self._names[audience]

    def audience(self, name: str) -> str:
        """Return the audience of the channel with this name."""
        return self._audiences[name]

    def payload(self, agents: Collection[str] | None) -> str:
        """Return the sealed payload that names these agents.

        It names no agent if any is meant, or if they are too many.
        """
        text = " ".join(sorted(agents or ())).encode()
        text, nonce = text if len(text) <= MOST_BYTES else b"", os.urandom(_NONCE)
        return base64.b64encode(nonce + self._proof(nonce, text) + self._mixed(nonce, text)).decode()

    def agents(self, payload: str) -> frozenset[str] | None:
        """Return the uuids that a payload names, empty for any agent; None for a payload not sealed with our key."""
        try:
            sealed = base64.b64decode(payload, validate=True)
        except (binascii.Error, ValueError):
            return None
        nonce, proof = sealed[:_NONCE], sealed[_NONCE : _NONCE + _PROOF]
        text = self._mixed(nonce, sealed[_NONCE + _PROOF :])
        return frozenset(text.decode().split()) if proof == self._proof(nonce, text) else None

    def _proof(self, nonce: bytes, text: bytes) -> bytes:
        return blake2b(nonce + text, key=self._key, digest_size=_PROOF, person=b"proof").digest()

    def _mixed(self, nonce: bytes, text: bytes) -> bytes:
        """Combine a text with a key stream by XOR. A second call with the same nonce restores the text."""
        blocks = range(-(-len(text) // _BLOCK))
        stream = b"".join(blake2b(nonce + each.to_bytes(4), key=self._key, person=b"seal").digest() for each in blocks)
        size = len(text)
        return (int.from_bytes(text) ^ int.from_bytes(stream[:size])).to_bytes(size)


def _derived(secret: str, use: str) -> bytes:
    return blake2b(secret.encode(), person=use.encode()).digest()


class Hints:
    """The channels of one store's database. They are known once a connection has read the secret."""

    def __init__(self) -> None:
        self._channels: Channels | None = None

    def channels(self, ask: Callable[[], str]) -> Channels:
        """Return the channels. ``ask`` reads the secret, and is called only while the secret is unknown."""
        if self._channels is None:
            return self.learn(ask())
        return self._channels

    def learn(self, secret: str) -> Channels:
        """Store the secret that a new connection has read.

        The secret differs if another database replaced the first one.
        """
        self._channels = Channels(secret)
        return self._channels


def secret_of(connection: Connection) -> str:
    """Return the secret of the database of an idle connection. Raises an error of psycopg."""
    [(secret,)] = connection.execute(SECRET).fetchall()
    return str(secret)


def together(hints: Iterable[frozenset[str]]) -> frozenset[str] | None:
    """Return the union of the agents that several hints name; None if one of them means any agent."""
    sets = [*hints]
    return frozenset().union(*sets) if all(sets) else None
