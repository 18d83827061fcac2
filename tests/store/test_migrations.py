"""The schema is made once, changed step by step, and never over somebody else's tables."""

import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from ikigai_actors.errors import ProgramOutdated, StoreConflict, StoreError, StoreUnavailable, StoreUnusable
from ikigai_actors.store import Store, Transaction, open_store
from ikigai_actors.store.migrations import (
    FIRST,
    OLDEST_READ,
    Migration,
    ensure_schema,
    migrate,
    newest,
    require_schema,
    schema_version,
)
from tests.kit.databases import DEADLINE, printed, python, sql, tables
from tests.kit.faults import FaultyStore
from tests.kit.network import with_settings


@pytest.mark.empty
def test_tables_of_somebody_else_are_refused_and_left_alone(durable: str) -> None:
    store = open_store(durable)
    store.write(lambda tx: sql(tx, "CREATE TABLE recipes (name TEXT)"))
    for look in (schema_version, ensure_schema, migrate, require_schema):
        with pytest.raises(StoreUnusable, match="not ikigai's"):
            look(store)
    assert tables(store) == {"recipes"}
    store.close()


def test_an_sqlite_file_of_somebody_else_is_refused_without_changing_a_byte(tmp_path: Path) -> None:
    file = tmp_path / "recipes.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.close()
    before = file.read_bytes()
    store = open_store(file)
    with pytest.raises(StoreUnusable, match="not ikigai's"):
        ensure_schema(store)
    store.close()
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.glob("recipes*")] == ["recipes.db"]


@pytest.mark.empty
def test_somebody_elses_table_of_versions_is_refused(durable: str) -> None:
    store = open_store(durable)
    store.write(lambda tx: sql(tx, "CREATE TABLE schema_version (installed_rank BIGINT)"))
    with pytest.raises(StoreUnusable, match="not ikigai's"):
        ensure_schema(store)
    store.close()


def test_a_database_that_is_too_new_is_refused_with_both_versions(store: Store) -> None:
    store.write(lambda tx: tx.run("set_schema_version", version=999, least=998))
    for look in (ensure_schema, migrate, require_schema):
        with pytest.raises(ProgramOutdated, match=f"knows version 998, this ikigai knows {newest()}: upgrade ikigai"):
            look(store)


def test_a_newer_database_is_used_whose_tables_an_older_program_knows(store: Store) -> None:
    store.write(lambda tx: tx.run("set_schema_version", version=999, least=newest()))
    require_schema(store)
    assert (ensure_schema(store), migrate(store)) == (999, 999)


def test_what_an_earlier_step_asks_of_programs_holds_after_a_step_that_asks_less(store: Store) -> None:
    steps = (
        Migration(LAST - 1, "DROP INDEX agents_name", LAST - 1),
        Migration(LAST, "CREATE TABLE t (x TEXT)", newest()),
    )
    assert migrate(store, steps) == LAST
    with pytest.raises(ProgramOutdated, match=f"knows version {LAST - 1}"):
        require_schema(store)
    require_schema(store, steps[:1])


def test_a_database_made_before_the_first_release_is_refused_with_the_way_on(
    store: Store,
) -> None:
    before = store.read(lambda tx: sql(tx, "SELECT * FROM shards ORDER BY id"))
    for version, way in (
        (OLDEST_READ - 1, "With the ikigai that made it, run 'ikigai agents', and 'ikigai export AGENT FILE'"),
        (FIRST - 1, "'ikigai export "),
    ):
        store.write(lambda tx, version=version: reset(tx, version))  # type: ignore[misc]
        for look in (ensure_schema, migrate, require_schema):
            with pytest.raises(StoreUnusable, match=f"{way}.*'ikigai import FILE' with this one.*'ikigai backup FILE'"):
                look(store)
        assert schema_version(store) == version
    assert store.read(lambda tx: sql(tx, "SELECT * FROM shards ORDER BY id")) == before


def reset(tx: Transaction, version: int) -> None:
    """Give a database another version."""
    sql(tx, f"UPDATE schema_version SET version = {version}, least = {version}")


@pytest.mark.empty
def test_a_client_refuses_an_empty_and_an_older_database(database: str) -> None:
    store = open_store(database)
    with pytest.raises(StoreUnusable, match="empty"):
        require_schema(store)
    with pytest.raises(StoreUnusable, match="empty"):
        migrate(store)
    ensure_schema(store)
    with pytest.raises(StoreUnusable, match=f"has version {newest()}, this ikigai needs {LAST}"):
        require_schema(store, STEPS)
    store.close()


LAST = newest() + 2

STEPS = (
    Migration(
        LAST, "INSERT INTO t (x) VALUES (';') -- after the other; not before\n; INSERT INTO t (x) VALUES ('b')", LAST
    ),
    Migration(LAST - 1, "-- a semicolon; in a comment\nCREATE TABLE t (x TEXT);", FIRST),
)


def test_migrations_run_in_order_and_once(store: Store) -> None:
    assert migrate(store, STEPS) == migrate(store, STEPS) == LAST
    assert schema_version(store) == LAST
    assert set(store.read(lambda tx: sql(tx, "SELECT x FROM t"))) == {(";",), ("b",)}


def test_a_migration_that_fails_leaves_the_database_as_the_one_before_left_it(store: Store) -> None:
    bad = Migration(
        LAST + 1, "CREATE TABLE u (x TEXT); INSERT INTO t (x) VALUES ('c'); INSERT INTO missing VALUES (1);", LAST + 1
    )
    with pytest.raises(StoreError, match="missing"):
        migrate(store, (*STEPS, bad))
    assert schema_version(store) == LAST
    assert len(store.read(lambda tx: sql(tx, "SELECT x FROM t"))) == 2
    assert "u" not in tables(store)


def test_two_threads_that_migrate_at_once_do_it_once(durable: str) -> None:
    stores = [open_store(durable) for _ in range(2)]
    both = threading.Barrier(2)

    def run(store: Store) -> int:
        both.wait(DEADLINE)
        return migrate(store, STEPS)

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(run, stores, timeout=DEADLINE)) == [LAST, LAST]
    assert len(stores[0].read(lambda tx: sql(tx, "SELECT x FROM t"))) == 2
    for store in stores:
        store.close()


@pytest.mark.empty
def test_processes_that_make_the_schema_at_once_make_it_once(durable: str) -> None:
    script = """
        import sys
        from ikigai_actors.store import open_store
        from ikigai_actors.store.migrations import ensure_schema
        sys.stdin.readline()
        store = open_store(sys.argv[1])
        print(ensure_schema(store), store.read(lambda tx: tx.schema.execute("SELECT version FROM tree")))
        store.close()
        """
    processes = [python(script, durable) for _ in range(3)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [printed(process) for process in processes] == [f"{newest()} [(0,)]"] * 3


@pytest.mark.empty
def test_a_schema_that_somebody_else_makes_at_the_same_moment_is_looked_for_again(database: str) -> None:
    store = FaultyStore(open_store(database))
    conflict = StoreConflict("What was to be made is there already, as planned.")
    store.fails(*[conflict] * 9)
    with pytest.raises(StoreConflict, match="as planned"):
        ensure_schema(store)
    store.recovers()
    store.fails(conflict)
    assert ensure_schema(store) == newest()
    store.close()


def test_a_version_that_another_process_holds_is_no_schema_of_somebody_else(new_postgres: Callable[[], str]) -> None:
    url = new_postgres()
    options = conninfo_to_dict(url)["options"]
    with closing(open_store(url)) as store, closing(
        open_store(with_settings(url, options=f"{options} -clock_timeout=20"))
    ) as other:  # fmt: skip

        def locked(tx: Transaction) -> None:
            sql(tx, "LOCK TABLE schema_version")
            with pytest.raises(StoreUnavailable):
                schema_version(other)

        store.write(locked)
        assert schema_version(other) == newest()
