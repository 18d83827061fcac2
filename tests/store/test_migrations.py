"""The schema is made once, changed step by step, and never over somebody else's tables."""

import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from ikigai_actors.errors import StoreConflict, StoreError, StoreUnavailable, StoreUnusable
from ikigai_actors.records.agents import registry
from ikigai_actors.store import Row, Store, Transaction, open_store
from ikigai_actors.store.migrations import (
    Migration,
    ensure_schema,
    migrate,
    newest,
    require_schema,
    schema_version,
)
from ikigai_actors.store.queries import split
from tests.kit.databases import DEADLINE, printed, python, sql, tables
from tests.kit.faults import FaultyStore
from tests.kit.network import with_settings

pytestmark = pytest.mark.empty


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


def test_somebody_elses_table_of_versions_is_refused(durable: str) -> None:
    store = open_store(durable)
    store.write(lambda tx: sql(tx, "CREATE TABLE schema_version (installed_rank BIGINT)"))
    with pytest.raises(StoreUnusable, match="not ikigai's"):
        ensure_schema(store)
    store.close()


def test_a_newer_database_is_refused_with_both_versions(store: Store) -> None:
    store.write(lambda tx: tx.run("set_schema_version", version=99))
    for look in (ensure_schema, migrate, require_schema):
        with pytest.raises(StoreUnusable, match=f"version 99, this ikigai knows {newest()}: upgrade ikigai"):
            look(store)


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
    Migration(LAST, "INSERT INTO t (x) VALUES (';') -- after the other; not before\n; INSERT INTO t (x) VALUES ('b')"),
    Migration(LAST - 1, "-- a semicolon; in a comment\nCREATE TABLE t (x TEXT);"),
)


def test_migrations_run_in_order_and_once(store: Store) -> None:
    assert migrate(store, STEPS) == migrate(store, STEPS) == LAST
    assert schema_version(store) == LAST
    assert set(store.read(lambda tx: sql(tx, "SELECT x FROM t"))) == {(";",), ("b",)}


def test_a_migration_that_fails_leaves_the_database_as_the_one_before_left_it(store: Store) -> None:
    bad = Migration(
        LAST + 1, "CREATE TABLE u (x TEXT); INSERT INTO t (x) VALUES ('c'); INSERT INTO missing VALUES (1);"
    )
    with pytest.raises(StoreError, match="missing"):
        migrate(store, (*STEPS, bad))
    assert schema_version(store) == LAST
    assert len(store.read(lambda tx: sql(tx, "SELECT x FROM t"))) == 2
    assert "u" not in tables(store)


def test_two_threads_that_migrate_at_once_do_it_once(durable: str) -> None:
    stores = [open_store(durable) for _ in range(2)]
    ensure_schema(stores[0])
    both = threading.Barrier(2)

    def run(store: Store) -> int:
        both.wait(DEADLINE)
        return migrate(store, STEPS)

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(run, stores, timeout=DEADLINE)) == [LAST, LAST]
    assert len(stores[0].read(lambda tx: sql(tx, "SELECT x FROM t"))) == 2
    for store in stores:
        store.close()


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
        ensure_schema(store)

        def locked(tx: Transaction) -> None:
            sql(tx, "LOCK TABLE schema_version")
            with pytest.raises(StoreUnavailable):
                schema_version(other)

        store.write(locked)
        assert schema_version(other) == newest()


def shape(store: Store) -> set[Row]:
    """Tables with their columns, types, defaults and order; indexes and what they say."""
    if store.location.startswith("postgresql"):
        columns = (
            "SELECT table_name, ROW_NUMBER() OVER (PARTITION BY table_name ORDER BY ordinal_position), column_name,"
            " data_type, is_nullable, column_default"
            " FROM information_schema.columns WHERE table_schema = current_schema()"
        )
        indexes = (
            "SELECT tablename, indexname, replace(indexdef, current_schema() || '.', '')"
            " FROM pg_indexes WHERE schemaname = current_schema()"
        )
    else:
        columns = (
            'SELECT t.name, c.cid, c.name, c.type, c."notnull", c.dflt_value'
            " FROM sqlite_master t, pragma_table_info(t.name) c WHERE t.type = 'table'"
        )
        indexes = "SELECT tbl_name, name, sql FROM sqlite_master WHERE type = 'index'"
    return set(store.read(lambda tx: [*sql(tx, columns), *sql(tx, indexes)]))


FIRST_PUBLISHED = Path(__file__).with_name("schema_1.sql").read_text(encoding="utf-8")

OLD_AGENTS = """
INSERT INTO agents (uuid, fork_message_id, status, created_at) VALUES ('root', 0, 'running', 1);
INSERT INTO agents (uuid, parent_uuid, supervisor_uuid, fork_message_id, status, created_at, ended_at, exit_reason)
VALUES ('gone', 'root', 'root', 0, 'dead', 2, 3, 'a hole in its log'),
       ('kid', 'gone', 'root', 0, 'running', 2, NULL, NULL);
"""


def test_a_database_of_the_first_version_becomes_what_a_new_one_is(durable_url: Callable[[], str]) -> None:
    old, new = open_store(durable_url()), open_store(durable_url())

    def make_old(tx: Transaction) -> None:
        for statement in split(FIRST_PUBLISHED + OLD_AGENTS):
            sql(tx, statement)
        tx.run("set_schema_version", version=1)

    old.write(make_old)
    ensure_schema(new)
    assert migrate(old) == schema_version(new)
    assert shape(old) == shape(new)
    root, gone, kid = old.read(registry.every)
    assert (root.branch, gone.branch, kid.branch) == (None, "gone", "gone")
    assert (gone.exit_cause, gone.on_orphan, gone.unread) == ("damaged", "reparent", 0)
    old.close()
    new.close()
