"""Databases as a person names them, and the folder for files of the user that belong to no database."""

import os
from pathlib import Path
from typing import NamedTuple

from ikigai_actors.store.existing import open_existing
from ikigai_actors.store.hosts.rows import HostRecord
from ikigai_actors.store.location import MEMORY, home, locate, user_home


class DatabasePlace(NamedTuple):
    """The place of a database: how people see it, its address, and whether hosts can share it."""

    shown: str
    """The text for people, without a password."""
    address: str
    """The address for a child process, with its password."""
    is_server: bool
    """Whether hosts can share it, because it is on a PostgreSQL server."""

    @property
    def identity(self) -> str:
        """Return a text that is the same for all addresses of one database.

        Raises `StoreError` if the server does not answer.
        """
        from ikigai_actors.store.postgres.store import identity_of

        return identity_of(self.address)


def place_of(database: str | None) -> DatabasePlace:
    """Return the place of the database that a person has named; None names the default.

    Raises `BadInput` for an invalid name.
    """
    location = locate(database)
    return DatabasePlace(location.shown, location.url or str(location.path or MEMORY), location.url is not None)


def living_hosts(place: DatabasePlace) -> list[HostRecord]:
    """Return the hosts of a database that have not ended. Raises `StoreError`."""
    from ikigai_actors.system.remote.client import Client

    with Client.open(place.address) as client:
        return [host for host in client.hosts() if host.ended_at is None]


def check_there(database: str | None) -> None:
    """Raise the error of `open_existing` if there is no database yet."""
    open_existing(database).close()


def is_shared(shown: str) -> bool:
    """Return whether other programs can open the database whose place is shown to people as a text."""
    return shown != MEMORY


def kept_of_user(name: str) -> Path:
    """Return the path of a file or folder in the user's own folder, which all programs of the user share."""
    return home() / name


def shells_folder() -> Path:
    """Return the folder for files of the shell."""
    return Path(os.environ.get("IKIGAI_HOME") or user_home()).expanduser()
