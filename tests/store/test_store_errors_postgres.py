"""What a person and a program are told when a PostgreSQL server is not as it should be."""

import contextlib
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psycopg
import psycopg.errors
import pytest

from ikigai_actors.errors import CommitUnknown, StoreConflict, StoreError, StoreUnavailable, StoreUnusable
from ikigai_actors.store import Row, Store, Transaction, open_store
from ikigai_actors.store.migrations import ensure_schema, require_schema
from ikigai_actors.store.postgres import errors, trips
from ikigai_actors.store.postgres.errors import PostgresErrors
from ikigai_actors.store.postgres.store import PostgresStore
from ikigai_actors.system.remote.client import Client
from ikigai_actors.verbs.upkeep.copy import copy_to
from tests.conftest import NewDatabase
from tests.kit.databases import Admin, add_agents, backend, eventually, sql, tree_change, tree_version
from tests.kit.network import with_settings
from tests.kit.wire import Wire


def test_a_server_that_is_down_is_unavailable() -> None:
    with pytest.raises(StoreUnavailable, match="Check that it runs"):
        open_store("postgresql://bob:secret@127.0.0.1:1/db")


def test_a_database_that_is_not_there_is_unusable(postgres_url: str) -> None:
    with pytest.raises(StoreUnusable, match="createdb"):
        open_store(with_settings(postgres_url, dbname="no_such_database"))


def test_a_schema_that_is_not_there_is_unusable(postgres_url: str) -> None:
    store = open_store(with_settings(postgres_url, options="-csearch_path=no_such_schema"))
    with pytest.raises(StoreUnusable, match="search_path"):
        ensure_schema(store)
    store.close()


@pytest.fixture
def bob(postgres_url: str, postgres_admin: Admin) -> Iterator[str]:
    """A URL with the right password of a user who needs one."""
    postgres_admin.execute("DROP ROLE IF EXISTS bob")
    postgres_admin.execute("CREATE ROLE bob LOGIN PASSWORD 'right'")
    [(place,)] = postgres_admin.execute("SHOW hba_file").fetchall()
    rules = Path(str(place))
    before = rules.read_text() if rules.is_file() else None  # a server elsewhere asks for passwords anyway
    if before is not None:
        rules.write_text("local all bob scram-sha-256\n" + before)
        postgres_admin.execute("SELECT pg_reload_conf()")
    yield with_settings(postgres_url, user="bob", password="right")
    if before is not None:
        rules.write_text(before)
        postgres_admin.execute("SELECT pg_reload_conf()")
    postgres_admin.execute("DROP ROLE bob")


def test_a_wrong_password_is_unusable_and_not_shown(bob: str) -> None:
    wrong = with_settings(bob, password="secret")

    def let_in() -> bool:
        with contextlib.suppress(StoreUnusable):
            open_store(wrong).close()
            return True
        return False

    eventually(lambda: not let_in(), "the server's new rules")
    with pytest.raises(StoreUnusable, match="Check user and password") as caught:
        open_store(wrong)
    assert "secret" not in str(caught.value)
    store = open_store(bob)
    assert "right" not in store.location
    store.close()


def test_a_user_who_is_not_there_is_unusable(postgres_url: str) -> None:
    with pytest.raises(StoreUnusable, match="Check user"):
        open_store(with_settings(postgres_url, user="nobody_of_this_name", password="x"))


def end_backend(admin: Admin, pid: int) -> None:
    """Have the server end one of its processes, and wait until it is gone."""
    admin.execute("SELECT pg_terminate_backend(%s)", (pid,))
    eventually(lambda: not admin.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchall(), "the end")


@pytest.fixture
def server_store(new_postgres: NewDatabase) -> Iterator[Store]:
    """A fresh PostgreSQL database with the schema, open."""
    store = open_store(new_postgres())
    yield store
    store.close()


def test_a_connection_that_breaks_before_the_commit_is_unavailable_and_the_next_write_works(
    server_store: Store, postgres_admin: Admin
) -> None:
    def work(tx: Transaction) -> None:
        tree_change(tx)
        end_backend(postgres_admin, backend(tx))
        tree_change(tx)

    with pytest.raises(StoreUnavailable) as caught:
        server_store.write(work)
    assert not isinstance(caught.value, CommitUnknown)
    server_store.write(tree_change)
    assert server_store.read(tree_version) == 1


def test_a_connection_that_breaks_at_the_commit_leaves_it_unknown(server_store: Store, postgres_admin: Admin) -> None:
    def work(tx: Transaction) -> None:
        tree_change(tx)
        end_backend(postgres_admin, backend(tx))

    with pytest.raises(CommitUnknown):
        server_store.write(work)
    assert server_store.read(tree_version) == 0


def test_a_connection_that_breaks_while_idle_is_made_again_unseen(server_store: Store, postgres_admin: Admin) -> None:
    end_backend(postgres_admin, server_store.write(backend))
    server_store.write(tree_change)
    end_backend(postgres_admin, server_store.read(backend))
    assert server_store.read(tree_version) == 1


def test_a_read_whose_connection_breaks_runs_again_once(server_store: Store, postgres_admin: Admin) -> None:
    runs = []

    def work(tx: Transaction) -> int:
        runs.append(backend(tx))
        if len(runs) == 1:
            end_backend(postgres_admin, runs[0])
        return backend(tx)

    assert server_store.read(work) == runs[1]

    def always(tx: Transaction) -> None:
        end_backend(postgres_admin, backend(tx))
        backend(tx)

    with pytest.raises(StoreUnavailable):
        server_store.read(always)


def test_a_writer_that_stands_still_in_a_transaction_is_thrown_out(server_store: Store) -> None:
    [(patience,)] = server_store.write(lambda tx: sql(tx, "SHOW idle_in_transaction_session_timeout"))
    assert patience == "5s"


def test_a_writer_that_got_many_rows_may_think_about_them_for_longer(server_store: Store) -> None:
    """The death of 100,000 agents is thought about for seconds, and for more where the machine is busy."""

    def work(tx: Transaction) -> list[Row]:
        add_agents(tx, root=None)
        columns = "uuid, parent_uuid, supervisor_uuid, fork_message_id, status, created_at"
        children = "SELECT 'a' || n, 'root', 'root', 0, 'running', 1 FROM generate_series(1, 6999) n"
        sql(tx, f"INSERT INTO agents ({columns}) {children}")
        assert len(tx.run("agents", status="running")) == 7000
        return sql(tx, "SHOW idle_in_transaction_session_timeout")

    assert server_store.write(work) == [("7s",)]
    assert server_store.write(lambda tx: sql(tx, "SHOW idle_in_transaction_session_timeout")) == [("5s",)]


@pytest.mark.parametrize("heard", [False, True])
def test_after_an_unknown_commit_the_host_row_tells_whether_it_happened(new_postgres: NewDatabase, heard: bool) -> None:
    wire = Wire(new_postgres(), heard=heard)
    store = open_store(wire.url)
    host = "INSERT INTO hosts (id, hostname, pid, epoch, started_at, lease_until) VALUES ('h', 'x', 1, 1, 1, 1)"
    store.write(lambda tx: sql(tx, host))
    wire.armed.set()
    with pytest.raises(CommitUnknown):
        store.write(lambda tx: tx.run("set_batch", host="h", last=0, batch=7))
    wire.armed.clear()
    expected = 7 if heard else 0
    eventually(lambda: store.write(lambda tx: tx.run("batch_of", host="h")) == [(expected,)], "the batch")
    store.close()
    wire.close()


@pytest.mark.empty
def test_a_server_that_goes_away_makes_reads_unavailable_and_prints_nothing(
    new_postgres: NewDatabase, capfd: pytest.CaptureFixture[str]
) -> None:
    wire = Wire(new_postgres(), heard=False)
    store = PostgresStore(wire.url, patience=0.5)
    wire.close()
    with pytest.raises(StoreUnavailable):
        store.read(backend)
    with pytest.raises(StoreUnavailable):
        store.write(backend)
    store.close()
    assert capfd.readouterr() == ("", "")


@pytest.mark.empty
def test_a_connection_that_breaks_before_it_is_set_up_is_unavailable(new_postgres: NewDatabase) -> None:
    wire = Wire(new_postgres(), heard=False, at=b"idle_in_transaction_session_timeout")
    wire.armed.set()
    with pytest.raises(StoreUnavailable):
        open_store(wire.url)
    wire.armed.clear()
    open_store(wire.url).close()
    wire.close()


def test_an_old_server_is_refused() -> None:
    errors.refuse_old(140_000, "here")
    with pytest.raises(StoreUnusable, match="runs PostgreSQL 13; 14 or newer is needed"):
        errors.refuse_old(130_022, "here")


@pytest.mark.sample(2, "encodings that lack a text")
@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII", "EUC_JP"])
def test_a_database_that_cannot_hold_every_text_is_refused_with_how_to_make_another(
    postgres_url: str, postgres_admin: Admin, encoding: str, tmp_path: Path
) -> None:
    name = f"test_{encoding.lower()}"
    postgres_admin.execute(f"DROP DATABASE IF EXISTS {name}".encode())
    how = f"ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
    postgres_admin.execute(f"CREATE DATABASE {name} {how}".encode())
    url = with_settings(postgres_url, dbname=name)
    with contextlib.closing(open_store(tmp_path / "a.db")) as store:
        ensure_schema(store)
    try:
        for use in (open_store, partial(copy_to, str(tmp_path / "a.db")), Client.open):
            with pytest.raises(StoreUnusable, match=rf"has the encoding {encoding}, and texts need UTF8.* createdb -E"):
                use(url)
    finally:
        postgres_admin.execute(f"DROP DATABASE {name}".encode())


def test_a_server_that_becomes_read_only_is_unavailable_and_the_next_write_connects_again(server_store: Store) -> None:
    server_store.write(lambda tx: sql(tx, "SET SESSION default_transaction_read_only = on"))
    with pytest.raises(StoreUnavailable, match="Name the primary server"):
        server_store.write(tree_change)
    server_store.write(tree_change)
    assert server_store.read(tree_version) == 1


POOL = r"its pooler had no connection to give: the pool is used up.*default_pool_size"
STANDBY = r"it is read-only, as a standby is.*target_session_attrs=read-write"


@pytest.mark.parametrize(
    ("error", "pattern"),
    [
        (psycopg.errors.ProtocolViolation("query_wait_timeout"), POOL),
        (psycopg.OperationalError("connection failed: FATAL:  query_wait_timeout"), POOL),
        (psycopg.OperationalError("connection failed: FATAL:  no more connections allowed (max_client_conn)"), POOL),
        (psycopg.errors.ReadOnlySqlTransaction("cannot execute UPDATE in a read-only transaction"), STANDBY),
        (psycopg.OperationalError("connection failed: session is read-only"), STANDBY),
        (psycopg.OperationalError("connection failed: server is in hot standby mode"), STANDBY),
    ],
)
def test_a_pool_that_is_used_up_and_a_server_that_takes_no_writes_are_named(error: psycopg.Error, pattern: str) -> None:
    ours = PostgresErrors("postgresql://host/db").ours(error)
    assert isinstance(ours, StoreUnavailable)
    assert re.search(pattern, str(ours))


def test_every_error_of_psycopg_becomes_one_of_ours() -> None:
    modules = (psycopg, psycopg.errors)
    every = {kind for module in modules for kind in vars(module).values() if isinstance(kind, type)}
    kinds: set[type[Exception]] = {kind for kind in every if issubclass(kind, Exception)}
    assert len(kinds) > 200
    errors = PostgresErrors("postgresql://host/db")
    for kind in kinds:
        if kind is psycopg.Rollback:  # raised by a program, to leave its transaction
            continue
        assert isinstance(errors.ours(kind("text")), StoreError)
        assert issubclass(kind, trips.PSYCOPG_ERRORS), kind


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (psycopg.errors.AdminShutdown("x"), StoreUnavailable),
        (psycopg.errors.CannotConnectNow("x"), StoreUnavailable),
        (psycopg.errors.DiskFull("x"), StoreUnavailable),
        (psycopg.errors.TooManyConnections("x"), StoreUnavailable),
        (psycopg.errors.QueryCanceled("x"), StoreUnavailable),
        (psycopg.errors.DeadlockDetected("x"), StoreUnavailable),
        (psycopg.errors.SerializationFailure("x"), StoreUnavailable),
        (psycopg.errors.StatementCompletionUnknown("x"), CommitUnknown),
        (psycopg.OperationalError("FATAL:  the database system is starting up"), StoreUnavailable),
        (psycopg.OperationalError("FATAL:  sorry, too many clients already"), StoreUnavailable),
        (psycopg.OperationalError("the connection is closed"), StoreUnavailable),
        (psycopg.errors.UniqueViolation("x"), StoreConflict),
        (psycopg.errors.DuplicateTable("x"), StoreConflict),
        (psycopg.errors.InvalidPassword("x"), StoreUnusable),
        (psycopg.errors.InsufficientPrivilege("x"), StoreUnusable),
        (psycopg.errors.ReadOnlySqlTransaction("x"), StoreUnavailable),
        (psycopg.OperationalError("FATAL:  query_wait_timeout"), StoreUnavailable),
        (psycopg.errors.SyntaxError("x"), StoreError),
        (psycopg.errors.NumericValueOutOfRange("x"), StoreError),
        (psycopg.ProgrammingError("x"), StoreError),
    ],
)
def test_an_error_of_psycopg_is_told_by_its_state_or_text(error: psycopg.Error, kind: type[StoreError]) -> None:
    ours = PostgresErrors("postgresql://host/db").ours(error)
    assert isinstance(ours, kind)
    assert type(ours) is kind or kind is StoreUnavailable


def test_a_transaction_that_always_deadlocks_is_given_up_after_a_few_runs(server_store: Store) -> None:
    runs = []

    def work(tx: Transaction) -> None:
        runs.append(backend(tx))
        sql(tx, "DO $$ BEGIN RAISE SQLSTATE '40P01'; END $$")

    with pytest.raises(StoreUnavailable, match="blocking one another"):
        server_store.write(work)
    assert len(runs) > 1
    assert len(set(runs)) == 1
    server_store.write(tree_change)


def test_a_commit_that_the_server_refuses_is_told_by_its_reason_and_nothing_is_there(server_store: Store) -> None:
    unique = "CREATE TEMPORARY TABLE t (x BIGINT UNIQUE DEFERRABLE INITIALLY DEFERRED)"
    server_store.write(lambda tx: sql(tx, unique))

    def work(tx: Transaction) -> None:
        tree_change(tx)
        sql(tx, "INSERT INTO t VALUES (1), (1)")

    with pytest.raises(StoreConflict, match="a constraint refused the rows"):
        server_store.write(work)
    assert server_store.read(tree_version) == 0
    server_store.write(tree_change)


@pytest.mark.empty
def test_a_user_who_may_not_read_the_tables_is_told_which_right_it_lacks(bob: str, new_postgres: NewDatabase) -> None:
    url = new_postgres()
    with contextlib.closing(open_store(url)) as store:
        ensure_schema(store)
        [(schema,)] = store.read(lambda tx: sql(tx, "SELECT current_schema()"))
        store.write(lambda tx: sql(tx, f"GRANT USAGE ON SCHEMA {schema} TO bob"))
    with contextlib.closing(open_store(with_settings(bob, options=f"-csearch_path={schema}"))) as bobs:
        for use in (ensure_schema, require_schema):
            with pytest.raises(StoreUnusable, match=r"lacks a right.*GRANT SELECT, INSERT") as refused:
                use(bobs)
            assert "not ikigai's" not in str(refused.value)
