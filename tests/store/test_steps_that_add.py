"""A step of the schema that earlier programs live on with only adds: whatever they read and write is still there."""

from contextlib import closing
from typing import NamedTuple

import pytest

from ikigai_actors.store import Store, open_store
from ikigai_actors.store.migrations import FIRST, MIGRATIONS, Migration, ensure_schema, migrate, newest
from tests.conftest import NewDatabase
from tests.kit.databases import sql

pytestmark = pytest.mark.empty

COLUMNS = (
    "SELECT table_name, column_name, data_type, is_nullable = 'YES' OR column_default IS NOT NULL "
    "FROM information_schema.columns WHERE table_schema = current_schema()"
)
CONDITIONS = (
    "SELECT conrelid::regclass::text, pg_get_constraintdef(c.oid), ARRAY(SELECT attname::text FROM pg_attribute "
    "WHERE attrelid = conrelid AND attnum = ANY(conkey)) FROM pg_constraint c "
    "WHERE connamespace = current_schema()::regnamespace"
)
UNIQUE = """
SELECT indrelid::regclass::text, pg_get_indexdef(indexrelid)
  FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
 WHERE indisunique AND relnamespace = current_schema()::regnamespace
"""
"""Unlike the view ``pg_indexes``, it reads no index of another schema, which another test may drop meanwhile."""


class Shape(NamedTuple):
    """What a program meets that uses a schema."""

    columns: dict[tuple[str, str], tuple[str, bool]]
    """By table and name, the type of each column, and whether a row may be written without it."""
    conditions: dict[tuple[str, str], frozenset[str]]
    """By table and text, the columns of each condition."""
    unique: frozenset[tuple[str, str]]


def shape(store: Store) -> Shape:
    """The shape of a schema at a server."""
    columns = store.read(lambda tx: sql(tx, COLUMNS))
    conditions = store.read(lambda tx: sql(tx, CONDITIONS))
    unique = store.read(lambda tx: sql(tx, UNIQUE))
    return Shape(
        {(table, name): (kind, bool(free)) for table, name, kind, free in columns},
        {(table, text): frozenset(names) for table, text, names in conditions},
        frozenset((table, text) for table, text in unique),
    )


def harms(before: Shape, after: Shape) -> list[str]:
    """Whatever a program of before trips over afterwards."""
    tables = {table for table, _ in before.columns}
    harm = [
        f"{table}.{name} is gone, or another"
        for (table, name), (kind, _) in before.columns.items()
        if after.columns.get((table, name), ("", False))[0] != kind
    ]
    harm += [
        f"{table}.{name} must be written"
        for (table, name), (_, free) in after.columns.items()
        if table in tables and not free and before.columns.get((table, name), ("", True))[1]
    ]
    harm += [
        f"{table} asks for {text}"
        for (table, text), names in after.conditions.items()
        if (table, text) not in before.conditions and any((table, name) in before.columns for name in names)
    ]
    return harm + [f"{table} has {text}" for table, text in after.unique - before.unique if table in tables]


def after(url: str, migrations: list[Migration]) -> tuple[Shape, Shape]:
    """The shapes of a schema before the last of these steps, and after it."""
    with closing(open_store(url)) as store:
        ensure_schema(store, migrations[:-1])
        migrate(store, migrations[:-1])
        before = shape(store)
        migrate(store, migrations)
        return before, shape(store)


GOOD = """
    CREATE TABLE teas (name TEXT PRIMARY KEY, origin TEXT NOT NULL);
    ALTER TABLE hosts ADD COLUMN zone TEXT NOT NULL DEFAULT '' CHECK (zone <> 'x');
    ALTER TABLE hosts ADD COLUMN rack TEXT;
    CREATE INDEX hosts_by_zone ON hosts (zone);
"""

BAD = {
    "ALTER TABLE hosts ADD COLUMN zone TEXT NOT NULL": "hosts.zone must be written",
    "ALTER TABLE hosts RENAME COLUMN waits TO waiting": "hosts.waits is gone, or another",
    "ALTER TABLE hosts DROP COLUMN waits": "hosts.waits is gone, or another",
    "ALTER TABLE hosts ALTER COLUMN agents TYPE TEXT": "hosts.agents is gone, or another",
    "ALTER TABLE hosts ALTER COLUMN machine DROP DEFAULT": "hosts.machine must be written",
    "ALTER TABLE hosts ADD CHECK (working < 9)": "hosts asks for CHECK ((working < 9))",
    "CREATE UNIQUE INDEX hosts_pid ON hosts (pid)": "hosts has CREATE UNIQUE INDEX hosts_pid ON ",
}


def test_what_only_adds_harms_no_earlier_program(new_postgres: NewDatabase) -> None:
    assert harms(*after(new_postgres(), [Migration(newest() + 1, GOOD, newest())])) == []


@pytest.mark.sample(2, "harmful steps")
@pytest.mark.parametrize("script", BAD)
def test_what_harms_an_earlier_program_is_seen(new_postgres: NewDatabase, script: str) -> None:
    if "ADD COLUMN" in script:  # a server adds it to an empty table alone
        script = f"DELETE FROM hosts; {script}"
    [harm] = harms(*after(new_postgres(), [Migration(newest() + 1, script, newest())]))
    assert harm.startswith(BAD[script.removeprefix("DELETE FROM hosts; ")])


def is_right(step: Migration, harmed: bool, before: int) -> bool:
    """Whether a step asks of programs what it must, and no more, given whether it harms those of the version before.

    Those may know already not to use what goes: then its least is theirs.
    """
    return step.least == before or (step.least == step.version and harmed) or (step.least < before and not harmed)


def test_each_step_asks_of_programs_what_it_must_and_no_more(new_postgres: NewDatabase) -> None:
    raised = Migration(newest() + 1, GOOD, newest() + 1)  # one that only adds, and shuts earlier programs out
    unsafe = Migration(newest() + 2, "DROP TABLE teas", newest())
    assert not is_right(raised, bool(harms(*after(new_postgres(), [*MIGRATIONS, raised]))), newest())
    steps = [*MIGRATIONS, raised._replace(least=newest())]
    assert not is_right(unsafe, bool(harms(*after(new_postgres(), [*steps, unsafe]))), newest() + 1)
    for place, step in enumerate(steps):
        before = steps[place - 1].version if place else FIRST
        assert is_right(step, bool(harms(*after(new_postgres(), steps[: place + 1]))), before), step
