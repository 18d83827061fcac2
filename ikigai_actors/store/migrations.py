"""The schema and its versions.

Until release 0.1.0 ``schema.sql`` is changed in place: each change raises `FIRST` by one, and a database made before it
is refused, but for an export and a backup (`ikigai_actors.store.earlier`). From the release on, a change of that file
comes with a `Migration` that brings an existing database to the same state. A new database is made from ``schema.sql``
at once. A host runs the migrations in the transaction in which it takes the database over, or joins its hosts: none
sees half of a step. Two processes that migrate at the same time do it once.

Programs of several versions use one database, so that hosts are upgraded one after the other, and back. Each step says
the oldest version that a program must know afterwards, its *least*; the database keeps the highest of these, each host
the newest version that its program knows.

    a step that adds       a table, a column with a default, or an index. Its least is an earlier version: the step runs
                           while hosts of that version live, and older programs can open the database later, too
    a step that takes away its least is the first version whose programs do not use the removed thing. The step runs
    or changes a meaning   when no older host lives; else the new host is refused, and the error names the older hosts
    an older program       opens a newer database if it knows the database's least. An older host compares the two with
                           each renewal of its lease: if the least is too new, it gives its agents away, and ends

A step waits 50 ms for each lock, because a wait for a table that somebody reads keeps all later users of the table
waiting. After that the whole step is undone, and tried again in a second (`ikigai_actors.store.hosts.host`).

A crash in the middle leaves the older schema. A newer database whose least is newer than this program, an older one
without a migration, and one with foreign tables are refused and left unchanged.
"""

import os
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ikigai_actors.errors import ProgramOutdated, StoreConflict, StoreError, StoreUnavailable, StoreUnusable
from ikigai_actors.store.base import Store, Transaction
from ikigai_actors.store.queries import split


class Migration(NamedTuple):
    """One step from a schema version to the next."""

    version: int
    """The version that the database has afterwards."""
    script: str
    """Statements that both databases understand, with a comment that says why."""
    least: int
    """The version that a program must know at least to use the database afterwards."""


FIRST = 62
"""The oldest version that this program opens: that of ``schema.sql`` without any `Migration`."""

OLDEST_READ = 36
"""The oldest version that can be exported, whatever `FIRST` is: see `ikigai_actors.store.earlier`."""

MIGRATIONS: tuple[Migration, ...] = ()
"""All steps since version `FIRST`, in order."""

NEEDED = ("agents", "hosts", "restarts", "schema_version", "shards", "signals", "tree")
"""The tables that every program reads at its start, at least some columns of them."""

MOST_CHECKED = 1_000
"""Tables with more rows than this are not checked at the start of a program."""

LOCK_WAIT = 50
"""Milliseconds that a migration step waits for a lock."""

_ATTEMPTS = 5


def newest(migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """Return the newest schema version that this program knows."""
    return max([FIRST, *(migration.version for migration in migrations)])


def least_for(version: int, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """Return the oldest version that the other hosts must know while a database of this version is migrated.

    0 when there is nothing to migrate.
    """
    return max((migration.least for migration in migrations if migration.version > version), default=0)


def least_program(transaction: Transaction) -> int:
    """Return the oldest schema version that a program must know to use the database."""
    [(least,)] = transaction.run("least_program")
    return int(least)


def schema_version(store: Store) -> int:
    """Return the version of the database's schema; 0 if the database is empty.

    Raises `StoreUnusable` when the database has tables of another program.
    """
    return store.read(lambda tx: _version(tx, store.location))


def ensure_schema(store: Store, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """Make the schema when the database is empty; return its version, which may need `migrate`.

    Two processes may do this at the same moment: one makes it, and the other finds it made.

    Raises `StoreUnusable` when the database is too new for this program, older than `FIRST`, of another program, or
    damaged (see `check_types`).
    """
    for attempt in range(_ATTEMPTS):
        version = store.read(lambda tx: usable_version(tx, store.location, migrations))
        if version:
            check_types(store)
            return version
        try:
            return store.write(lambda tx: create_schema(tx, store.location, migrations))
        except StoreConflict:  # PostgreSQL: the other process made a table of the same name, and has committed
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError("the last attempt returns or raises")


def create_schema(transaction: Transaction, location: str, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """Make the schema if the database is empty; return its version. Raises the errors of `ensure_schema`."""
    if version := usable_version(transaction, location, migrations):
        return version
    version, least = newest(), max(FIRST, least_for(FIRST))
    transaction.schema.execute_all((*split(schema_script()), *transaction.schema.TUNING))
    transaction.run("set_schema_version", version=version, least=least)
    transaction.run("set_channel", channel=os.urandom(16).hex())
    return version


def usable_version(transaction: Transaction, location: str, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """Return the schema version, if a program with these migrations can use or migrate it; 0 for an empty database.

    Raises `StoreUnusable` when it cannot, and `ProgramOutdated` when the database is too new for it.
    """
    version = _version(transaction, location)
    if 0 < version < FIRST:
        raise _unreleased(version, location)
    if version > newest(migrations) and (least := least_program(transaction)) > newest(migrations):
        raise outdated(location, least, migrations)
    return version


def outdated(location: str, least: int, migrations: Sequence[Migration] = MIGRATIONS) -> ProgramOutdated:
    """Return the error for a database that requires a schema version which this program does not know."""
    return ProgramOutdated(
        f"Database {location} needs an ikigai that knows version {least}, this ikigai knows {newest(migrations)}: "
        "upgrade ikigai."
    )


def require_schema(store: Store, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Raise `StoreUnusable` unless the schema is new enough for this program. For clients, which change no schema."""
    require_ours(store)
    version, needed = store.read(lambda tx: usable_version(tx, store.location, migrations)), newest(migrations)
    if version < needed:
        raise StoreUnusable(
            f"Database {store.location} has version {version}, this ikigai needs {needed}. Make a backup ('ikigai "
            "backup FILE', or pg_dump for PostgreSQL), end what runs it with an older ikigai, and start this one: it "
            "brings the database to that version."
        )


def require_ours(store: Store) -> int:
    """Return the schema version. Raises `StoreUnusable` for a database without a schema or with foreign tables."""
    version = schema_version(store)
    if version == 0:
        raise StoreUnusable(
            f"Database {store.location} is empty: no ikigai has run on it yet. Start one, or name another."
        )
    return version


def check_types(store: Store) -> None:
    """Raise `StoreUnusable` if columns that every agent needs hold values of wrong types, because the file was edited.

    Tables with more than `MOST_CHECKED` rows are not checked here, so that the time does not grow with the agents. Fsck
    checks all tables.
    """
    if store.leases:  # a server refuses such values, and is not asked
        return
    if columns := store.read(lambda tx: mistyped_columns(tx, NEEDED, MOST_CHECKED)):
        raise StoreUnusable(
            f"Database {store.location} is damaged: values of wrong types in {', '.join(columns)}. Restore a copy."
        )


def mistyped_columns(transaction: Transaction, tables: Collection[str] = (), most: int | None = None) -> list[str]:
    """Return the columns that hold a value of another type than ``schema.sql`` declares.

    ``tables`` are the tables to check; empty for all. ``most``: tables with more rows than this are skipped; None
    checks all tables.
    """
    schema = transaction.schema
    looked_at = sorted(schema.tables() & set(tables or schema.tables()))
    return [f"{table}.{name}" for table in looked_at for name in schema.misfits(table, most)]


def migrate(store: Store, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """Bring the schema to the newest version, a transaction for each step; return that version.

    A step that fails leaves the database as it was before that step, and its error passes through.

    Raises `StoreUnusable` when the database is too new for this program, empty, or of another program.
    """
    version = store.read(lambda tx: usable_version(tx, store.location, migrations))
    if version == 0:
        raise StoreUnusable(f"Database {store.location} is empty: there is nothing to migrate.")
    for step in sorted(migrations):
        if step.version > version:
            version = store.write(partial(_step, step=step))
    return version


def migrate_within(transaction: Transaction, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Migrate a schema that `ensure_schema` accepts to the newest version, inside a transaction that may do more.

    Raises `Blocked` when another transaction is in the way; then the whole transaction may be tried again.
    """
    if not migrations:
        return
    transaction.schema.limit_waits(LOCK_WAIT)
    for step in sorted(migrations):
        _step(transaction, step)


def schema_script() -> str:
    """Return the text of ``schema.sql``.

    The file lies beside this package's modules when installed, and at the root of a checkout.
    """
    package = Path(__file__).parent.parent
    for place in (package, package.parent):
        file = place / "schema.sql"
        if file.is_file():
            return file.read_text(encoding="utf-8")
    raise StoreError(f"schema.sql is missing in {package} and {package.parent}: install ikigai-actors again.")


def _version(transaction: Transaction, location: str) -> int:
    tables = transaction.schema.tables()
    if not tables:
        return 0
    try:
        rows = transaction.run("schema_version") if "schema_version" in tables else []
    except (StoreUnavailable, StoreUnusable):  # the latter: this user may not read it
        raise
    except StoreError as error:
        raise _foreign(location) from error
    if not rows or not isinstance(rows[0][0], int):
        raise _foreign(location)
    return rows[0][0]


def _foreign(location: str) -> StoreUnusable:
    return StoreUnusable(
        f"Database {location} has tables that are not ikigai's. Nothing was changed; name another database."
    )


def _unreleased(version: int, location: str) -> StoreUnusable:
    way = (
        "With the ikigai that made it, run 'ikigai agents', and 'ikigai export AGENT FILE' with the agent on top, "
        "which brings all below it."
        if version < OLDEST_READ
        else "Run 'ikigai export 0 FILE', which brings all of its agents."
    )
    return StoreUnusable(
        f"Database {location} has version {version}: it was made before release 0.1.0, whose oldest version is "
        f"{FIRST}. Nothing was changed. {way} Then run 'ikigai import FILE' with this one, on a new database. "
        "'ikigai backup FILE' keeps the old one as it is."
    )


def _step(transaction: Transaction, step: Migration) -> int:
    [(version,)] = transaction.run("lock_schema_version")
    if version >= step.version:  # another process was faster
        return int(version)
    transaction.schema.execute_all(split(step.script))
    transaction.run("set_schema_version", version=step.version, least=step.least)
    return step.version
