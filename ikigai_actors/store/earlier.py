"""Converts a database of an earlier version into a copy that this program can read, for exports and backups.

The copy is a separate file with this version's tables. The original stays unchanged, and its host goes on.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from ikigai_actors.errors import StoreConflict, StoreUnusable
from ikigai_actors.store import open_store
from ikigai_actors.store.base import SchemaTransaction, Store, Transaction
from ikigai_actors.store.copy import tables_in_order
from ikigai_actors.store.migrations import (
    FIRST,
    MIGRATIONS,
    OLDEST_READ,
    Migration,
    create_schema,
    migrate,
    newest,
    schema_version,
)
from ikigai_actors.store.sqlite.backup import back_up
from ikigai_actors.store.sqlite.store import SQLiteStore


def is_earlier(store: Store) -> bool:
    """Return whether a database has an older schema version than this program's, so that `as_of_today` can copy it."""
    return OLDEST_READ <= schema_version(store) < newest()


@contextmanager
def as_of_today(store: Store, migrations: Sequence[Migration] = MIGRATIONS) -> Iterator[Store]:
    """Yield a copy of an older database that has this version's tables, for the length of a block.

    If there are migrations from the database's version on, they are applied. Otherwise new columns and tables are as in
    a new database, and old ones that no longer exist are left out.

    Raises:
        StoreUnusable: the database cannot be converted to this version's tables.
        StoreError: an error of the database, or of the copy.
    """
    with tempfile.TemporaryDirectory(prefix="ikigai-") as place:
        file = Path(place, "copy.db")
        if schema_version(store) >= FIRST and migrations:
            if not isinstance(store, SQLiteStore):
                raise StoreUnusable(
                    f"Database {store.location} has version {schema_version(store)}, this ikigai needs "
                    f"{newest(migrations)}. Make a backup with pg_dump; then start this ikigai, which brings the "
                    "database to that version."
                )
            back_up(store, file, lambda copy: migrate(copy, migrations))
        with closing(open_store(file)) as copy:
            if schema_version(copy) == 0:
                store.read(lambda reading: copy.write(lambda writing: _copy(reading.schema, writing, store.location)))
            yield copy


def _copy(reading: SchemaTransaction, transaction: Transaction, location: str) -> None:
    create_schema(transaction, location)
    writing, there = transaction.schema, reading.tables()
    for table in tables_in_order(writing.tables() & there - {"schema_version"}):
        had = reading.columns(table)
        columns = [name for name in writing.columns(table) if name in had]
        writing.execute(f"DELETE FROM {table}")  # what a new schema comes with
        try:
            writing.load(table, columns, reading.scan(table, columns))
        except StoreConflict as error:
            raise StoreUnusable(
                f"Table {table!r} of database {location} does not fit into that of this ikigai: {error}. Export with "
                "the ikigai that made the database."
            ) from error
