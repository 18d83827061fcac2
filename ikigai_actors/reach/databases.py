"""Databases as a person names them, and the folder of what belongs to the user rather than to a database."""

import os
from pathlib import Path
from typing import NamedTuple

from ikigai_actors.store.existing import open_existing
from ikigai_actors.store.hosts.rows import HostRecord
from ikigai_actors.store.location import MEMORY, home, locate, user_home


class DatabasePlace(NamedTuple):
    """The place of a database."""

    shown: str
    """For people, without a password."""
    address: str
    """The address for a program that this one starts, with its password."""
    is_server: bool
    """Whether hosts can share it: it is on a PostgreSQL server."""

    @property
    def identity(self) -> str:
        """The same text for each address of one database. Raises `StoreError` when the server does not answer."""
        from ikigai_actors.store.postgres.store import identity_of

        return identity_of(self.address)


def place_of(database: str | None) -> DatabasePlace:
    """The place that a person has named; None for the usual one. Raises `BadInput` for what names no place."""
    location = locate(database)
    return DatabasePlace(location.shown, location.url or str(location.path or MEMORY), location.url is not None)


def living_hosts(place: DatabasePlace) -> list[HostRecord]:
    """The hosts of a database that have not ended. Raises `StoreError`."""
    from ikigai_actors.system.remote.client import Client

    with Client.open(place.address) as client:
        return [host for host in client.hosts() if host.ended_at is None]


def check_there(database: str | None) -> None:
    """Raise what `open_existing` does where there is no database yet: a new one has no history."""
    open_existing(database).close()


def is_shared(shown: str) -> bool:
    """Whether other programs can open a database, by what people are shown of its place."""
    return shown != MEMORY


def kept_of_user(name: str) -> Path:
    """The place of a file or folder that programs of this user share, such as logs and tokens."""
    return home() / name


def shells_folder() -> Path:
    """The folder of what a shell keeps for its user."""
    return Path(os.environ.get("IKIGAI_HOME") or user_home()).expanduser()
