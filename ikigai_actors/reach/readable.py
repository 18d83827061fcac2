"""The argument type of views: a system or a client, whose database they read."""

from typing import Protocol

from ikigai_actors.store.base import Store


class Readable(Protocol):
    """A system or a client: an object with a database that the functions of views read."""

    _store: Store
