"""Opens existing databases, beside a running host or without one. Nothing is taken over or migrated."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from ikigai_actors.errors import StoreUnusable
from ikigai_actors.store import open_store
from ikigai_actors.store.base import Store
from ikigai_actors.store.earlier import as_of_today, is_earlier
from ikigai_actors.store.location import locate
from ikigai_actors.store.migrations import require_schema
from ikigai_actors.store.slow_opening import says_if_slow


def open_existing(database: str | os.PathLike[str] | None, check: Callable[[Store], object] = require_schema) -> Store:
    """Open an existing database. The caller closes it.

    Args:
        database: see `open_store`.
        check: raises `StoreUnusable` for a database that cannot be used; by default for one with an older schema.

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
    with says_if_slow(database):
        store = open_store(database)
        try:
            check(store)
        except BaseException:
            store.close()
            raise
        return store


@contextmanager
def existing(database: str | os.PathLike[str] | None) -> Iterator[Store]:
    """Yield an existing database, opened for the length of a block. Raises the errors of `open_existing`."""
    store = open_existing(database)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def existing_to_read(database: str | os.PathLike[str] | None) -> Iterator[Store]:
    """Yield an existing database as `existing` does. For a database with an older schema, yield a converted copy."""
    store = open_existing(database, lambda store: None if is_earlier(store) else require_schema(store))
    with closing(store):
        if not is_earlier(store):
            yield store
            return
        with as_of_today(store) as copy:
            yield copy
