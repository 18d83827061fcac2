"""Databases that are there already: opened beside a running host or without one. Nothing is taken over, or migrated."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from ikigai_actors.errors import StoreUnusable
from ikigai_actors.store import open_store
from ikigai_actors.store.base import Store
from ikigai_actors.store.location import locate
from ikigai_actors.store.migrations import require_schema


def open_existing(database: str | os.PathLike[str] | None) -> Store:
    """Open a database that is there. The caller closes it.

    Args:
        database: see `open_store`.

    Raises:
        StoreUnusable: there is no database, or no ikigai has run on it.
        StoreError, BadInput: see `open_store`.
    """
    place = locate(database)
    try:
        if place.path is not None:
            place.path.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise StoreUnusable(
            f"There is no database {place.shown}. Run ikigai to begin one, or name another with --database."
        ) from error
    except OSError as error:  # a directory that may not be entered, a name that is too long
        raise StoreUnusable(
            f"Database {place.shown} cannot be looked at: {error.strerror}. Name another with --database."
        ) from error
    store = open_store(database)
    try:
        require_schema(store)
    except BaseException:
        store.close()
        raise
    return store


@contextmanager
def existing(database: str | os.PathLike[str] | None) -> Iterator[Store]:
    """A database that is there, for the length of a block. Raises what `open_existing` does."""
    store = open_existing(database)
    try:
        yield store
    finally:
        store.close()
