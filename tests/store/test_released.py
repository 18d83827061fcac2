"""Each released schema comes to the one of today by the steps alone, and every command refuses an older database."""

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, OfflineProvider
from ikigai_actors.errors import StoreUnusable
from ikigai_actors.shell.cli.main import run
from ikigai_actors.store import Store, Transaction, open_store
from ikigai_actors.store.base import Row
from ikigai_actors.store.migrations import (
    MIGRATIONS,
    OLDEST_READ,
    Migration,
    ensure_schema,
    migrate,
    newest,
    schema_script,
)
from ikigai_actors.store.queries import split
from tests.fuzz.shells import printed
from tests.kit.databases import sql

pytestmark = pytest.mark.empty

KEPT = {int(path.stem): path.read_text(encoding="utf-8") for path in (Path(__file__).parent / "released").glob("*.sql")}
"""The schemas of the releases, by version. `python -m tests.release schema` keeps them."""

RELEASED = {newest(): schema_script()} | KEPT

TABLE = "CREATE TABLE teas (name TEXT PRIMARY KEY, origin TEXT)"
COLUMN = "ALTER TABLE teas ADD COLUMN cups BIGINT NOT NULL DEFAULT 0 CHECK (cups >= 0)"
INDEX = "CREATE INDEX teas_by_origin ON teas (origin) WHERE cups > 0"
LATER = (
    f"{schema_script()}\nCREATE TABLE teas "
    f"(name TEXT PRIMARY KEY, origin TEXT, cups BIGINT NOT NULL DEFAULT 0 CHECK (cups >= 0));\n{INDEX};"
)
"""The schema of a later version."""

SQLITE = (
    'SELECT m.name, c.name, c.type, c."notnull", c.dflt_value, c.pk FROM sqlite_master m, pragma_table_xinfo(m.name) c',
    'SELECT m.name, k."table", k."from", k."to", k.on_delete FROM sqlite_master m, pragma_foreign_key_list(m.name) k',
    "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL",
)
POSTGRES = (
    (
        "SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns "
        "WHERE table_schema = current_schema()"
    ),
    (
        "SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint "
        "WHERE connamespace = current_schema()::regnamespace"
    ),
    (
        "SELECT indexname, replace(indexdef, current_schema() || '.', '') FROM pg_indexes "
        "WHERE schemaname = current_schema()"
    ),
)


def shape(store: Store) -> set[Row]:
    """What a schema is, however it came about: columns, keys, checks and indexes."""

    def read(tx: Transaction) -> set[Row]:
        if store.location.startswith("postgres"):
            return {row for query in POSTGRES for row in sql(tx, query)}
        scripts = sql(tx, "SELECT name, sql FROM sqlite_master WHERE type = 'table'")
        checks = {(name, check) for name, script in scripts for check in checks_of(script)}
        return checks | {row for query in SQLITE for row in sql(tx, query)}

    return store.read(read)


def checks_of(script: str) -> Iterator[str]:
    """The conditions of a table's checks."""
    for start in (match.end() for match in re.finditer(r"CHECK \(", script)):
        depth, end = 1, start
        while depth:
            depth += {"(": 1, ")": -1}.get(script[end], 0)
            end += 1
        yield script[start : end - 1]


def made(place: str, script: str, version: int) -> Store:
    """A database with the schema of another version of the program."""
    store = open_store(place)

    def make(tx: Transaction) -> None:
        for statement in (*split(script), *tx.schema.TUNING):
            tx.schema.execute(statement)
        names = [name for name in ("version", "least") if name in tx.schema.columns("schema_version")]
        values = ", ".join(str(version) for _ in names)
        tx.schema.execute(f"INSERT INTO schema_version (one, {', '.join(names)}) VALUES (1, {values})")

    store.write(make)
    return store


@pytest.mark.parametrize("version", sorted(RELEASED))
def test_a_released_schema_comes_to_that_of_today(durable_url: Callable[[], str], version: int) -> None:
    with closing(made(durable_url(), RELEASED[version], version)) as old, closing(open_store(durable_url())) as new:
        ensure_schema(new)
        assert migrate(old) == newest()
        assert shape(old) == shape(new)


@pytest.mark.sample(3, "steps")
@pytest.mark.parametrize(
    "steps", [(TABLE, COLUMN, INDEX), (TABLE, COLUMN), (TABLE,), (TABLE, INDEX.partition(" WHERE")[0])]
)
def test_a_step_that_is_missing_is_seen(durable_url: Callable[[], str], steps: tuple[str, ...]) -> None:
    migrations = [Migration(newest() + 1 + place, step, newest()) for place, step in enumerate(steps)]
    with (
        closing(made(durable_url(), schema_script(), newest())) as old,
        closing(made(durable_url(), LATER, newest() + 3)) as new,
    ):
        migrate(old, migrations)
        assert (shape(old) == shape(new)) is (steps == (TABLE, COLUMN, INDEX))


NEW_TABLE = r"CREATE TABLE (?:IF NOT EXISTS )?(\w+)"
ADDED_COLUMN = r"ALTER TABLE (\w+) ADD COLUMN (?!.*\bUNIQUE\b)(?:(?!.*\bNOT NULL\b)|(?=.*\bDEFAULT\b)).*"


def takes_away(step: Migration) -> list[str]:
    """The statements of a step that do more than to add what an older program lives on with.

    These add: a table, and whatever is done to it; a column that may be NULL or has a default; an index that is not
    unique, and so refuses nothing.
    """
    statements = [" ".join(re.sub(r"--.*", "", statement).split()) for statement in split(step.script)]
    new = {match[1] for statement in statements if (match := re.match(NEW_TABLE, statement))}
    about = r"(?:INSERT INTO|UPDATE|ALTER TABLE|CREATE (?:UNIQUE )?INDEX \w+ ON) (\w+)"
    return [
        statement
        for statement in statements
        if not (
            re.match(NEW_TABLE, statement)
            or re.fullmatch(ADDED_COLUMN, statement)
            or re.match(r"CREATE INDEX", statement)
        )
        and not ((match := re.match(about, statement)) and match[1] in new)
    ]


def test_a_step_that_older_programs_live_on_with_only_adds() -> None:
    assert not any(takes_away(step) for step in MIGRATIONS if step.least < step.version)
    assert (
        takes_away(Migration(2, f"{TABLE}; {COLUMN}; {INDEX}; INSERT INTO teas VALUES ('Assam', 'India', 1)", 1)) == []
    )


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE agents ADD COLUMN world TEXT NOT NULL",  # who does not know it writes none
        "ALTER TABLE agents ADD COLUMN world TEXT UNIQUE",
        "ALTER TABLE agents RENAME COLUMN labels TO account",
        "ALTER TABLE mail RENAME TO post",
        "ALTER TABLE agents DROP CONSTRAINT agents_status_check",  # to narrow it
        "ALTER TABLE agents ALTER COLUMN changed TYPE INTEGER",
        "ALTER TABLE hosts DROP COLUMN waits",
        "DROP TABLE former",
        "DROP INDEX agents_name",
        "CREATE UNIQUE INDEX agents_label ON agents (labels)",
        "UPDATE agents SET labels = '[]'",
    ],
)
def test_a_step_that_takes_away_or_asks_for_more_is_seen(statement: str) -> None:
    assert takes_away(Migration(2, f"{TABLE};\n-- Why.\n{statement};", 1)) == [statement]


OLD = OLDEST_READ - 1


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that the version before the oldest one has made that can be read."""
    file = tmp_path_factory.mktemp("old") / "a.db"
    with ActorSystem.open(file, OfflineProvider()) as system:
        system.root.prompt("a ship").get(timeout=60)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE schema_version SET version = ?", [OLD])
    return file


@pytest.mark.sample(5, "commands")
@pytest.mark.parametrize(
    "words",
    [
        "", "agents", "prompt 0 hello", "fork 0", "kill 0", "log 0", "tail", "host", "serve", "observe", "fsck",
        "verify", "checkpoint FILE", "export 0 FILE", "export 0 FILE --to codex", "copy OLD FILE",
        "prune --dead-before 1d", "replay 0",
    ],
)  # fmt: skip
def test_every_command_refuses_an_older_database_unchanged_and_names_the_way(
    old: Path, words: str, tmp_path: Path
) -> None:
    before = old.read_bytes()
    arguments = [{"FILE": str(tmp_path / "new"), "OLD": str(old)}.get(word, word) for word in words.split()]
    with printed() as paper:
        assert run(["--database", str(old), *arguments]) in (1, 2)
    assert f"has version {OLD}" in paper.text
    assert "Nothing was changed. With the ikigai that made it" in paper.text
    assert old.read_bytes() == before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow("takes a tenth of a second")
def test_the_way_that_the_refusal_names_brings_every_agent(old: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable) as refused, closing(open_store(old)) as store:
        ensure_schema(store)
    assert re.findall(r"'ikigai (\w+)", str(refused.value)) == ["agents", "export", "import", "backup"]
    made_it, file, new = tmp_path / "made.db", str(tmp_path / "file"), str(tmp_path / "new.db")
    with ActorSystem.open(made_it, OfflineProvider()) as system:
        system.root.fork(name="mast").fork(name="top")
    with printed() as listed:
        assert run(["--database", str(made_it), "agents"]) == 0
    with printed():
        assert run(["--database", str(made_it), "export", listed.text.split()[0], file]) == 0
        assert run(["--database", new, "--provider", "offline", "import", file]) == 0
    with ActorSystem.open(new, OfflineProvider()) as system:
        [top] = system.root.children()
        assert [child.record.name for child in top.children()] == ["mast"]
        assert [child.record.name for child in top.children()[0].children()] == ["top"]
