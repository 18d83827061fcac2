"""Readable: a system or a client, as arguments of views."""

from typing import Protocol

from ikigai_actors.store.base import Store


class Readable(Protocol):
    """Has a database that views read."""

    _store: Store
