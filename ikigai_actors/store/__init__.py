"""The database: the only package that knows SQL, sqlite3 and psycopg.

    store = open_store("notes.db")                      # or a URL; None: the default file
    ensure_schema(store)                                # migrations.py
    store.write(lambda tx: tx.run("tree_change"))       # a named statement of queries.sql, in a transaction
    store.close()

`Store` and `Transaction` (base.py) are all that the layers above see.

    sqlite/, postgres/              one adapter for each database; psycopg is imported when a PostgreSQL URL is opened
    memory                          databases in memory
    transaction, queries            the common part of both databases' transactions; the statements, translated for each
    unit, journal, writer           writes of one transaction; the one writer of a host; writers of other processes
    asker                           the request on whose behalf units are committed, and whether it may write
    hosts/                          the hosts of a database, and which host runs which agents
    migrations, existing, copy      the schema and its versions; opening existing databases; whole copies
    earlier                         databases of earlier versions, converted to copies that this program can read
    location, database_clock        the place of a database, from a path or URL; the time of a database
    new_file                        files that appear complete or not at all
    slow_opening                    a warning that a server answers slowly
    forwarding, gate                stores that wrap a store: with some calls changed, or with a check before each
    word_index                      an index of the words in messages, for searches
    retrying_reader, poll_schedule  reads during an outage; the agents to read after a hint
"""

import os

from ikigai_actors.store.base import Row, Store, Transaction
from ikigai_actors.store.location import locate

__all__ = ["Row", "Store", "Transaction", "open_store"]


def open_store(database: str | os.PathLike[str] | None = None) -> Store:
    """Open a database. Makes the file of an SQLite database if it is missing, but no tables: see `ensure_schema`.

    Args:
        database: a path or URL as in `ikigai_actors.store.location`; None means ``$IKIGAI_DATABASE_URL``, else the
            default file.

    Raises:
        BadInput: ``database`` names no place.
        StoreUnavailable: the database does not answer at the moment.
        StoreUnusable: the database cannot be used as it is; the message says what to do.
    """
    location = locate(database)
    if location.url is not None:
        from ikigai_actors.store.postgres.store import PostgresStore  # importing psycopg takes 0.2 s

        return PostgresStore(location.url)
    from ikigai_actors.store.sqlite.store import SQLiteStore

    return SQLiteStore(location.path)
