"""What a host needs of a server: a pooler in transaction mode and too few connections are refused when it is opened."""

import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from ikigai_actors import ActorSystem, OfflineProvider
from ikigai_actors.errors import StoreError, StoreUnavailable, StoreUnusable
from ikigai_actors.store import open_store
from ikigai_actors.store.postgres.connection_limits import CLIENT_CONNECTIONS, HOST_CONNECTIONS, limits
from ikigai_actors.store.postgres.store import PostgresStore
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.system.platform import SYSTEM_PLATFORM
from ikigai_actors.system.remote.client import Client
from tests.conftest import NewDatabase
from tests.kit.databases import DEADLINE, ROOT, Admin, backend, eventually, sql
from tests.kit.network import with_settings
from tests.kit.pooler import Pooler, SmallPool, StatementPooler

pytestmark = pytest.mark.empty


@pytest.fixture
def role(postgres_admin: Admin) -> Iterator[str]:
    """A user who may log in, and is no superuser."""
    name = f"role_{uuid4().hex}"
    postgres_admin.execute(f"CREATE ROLE {name} LOGIN".encode())
    yield name
    eventually(lambda: not connections(postgres_admin, name), "the end of the connections")
    postgres_admin.execute(f"DROP OWNED BY {name}".encode())
    postgres_admin.execute(f"DROP ROLE {name}".encode())


def connections(admin: Admin, role: str) -> int:
    """How many connections a user has."""
    [(count,)] = admin.execute("SELECT COUNT(*) FROM pg_stat_activity WHERE usename = %s", (role,)).fetchall()
    return int(count)


def limited(admin: Admin, url: str, role: str, limit: int) -> str:
    """The URL of an empty database for this user, who may have so many connections."""
    admin.execute(f"ALTER ROLE {role} CONNECTION LIMIT {limit}".encode())
    with psycopg.connect(url, autocommit=True) as connection:
        schema = connection.execute("SHOW search_path").fetchall()[0][0]
        connection.execute(f"GRANT ALL ON SCHEMA {schema} TO {role}".encode())
    return with_settings(url, user=role)


@pytest.mark.sample(1, "the host tries again for a while")
@pytest.mark.parametrize("join", [False, True])
@pytest.mark.parametrize("limit", [1, HOST_CONNECTIONS - 1])
def test_too_few_connections_are_told_of_with_how_many_are_needed_and_none_is_kept(
    new_postgres: NewDatabase, postgres_admin: Admin, role: str, limit: int, join: bool
) -> None:
    url = new_postgres()
    with pytest.raises(StoreError) as refused:
        ActorSystem.open(limited(postgres_admin, url, role, limit), OfflineProvider(), join=join)
    if limit == 1:
        assert "it gives no more connections. Close some" in str(refused.value)
    else:
        assert type(refused.value) is StoreUnusable
        shortage = f"a host needs {HOST_CONNECTIONS} connections, and role {role} has {limit}, of which 0 are in use by"
        assert shortage in str(refused.value)
        assert f"ALTER ROLE {role} CONNECTION LIMIT" in str(refused.value)
    eventually(lambda: not connections(postgres_admin, role), "the end of the connections")


@pytest.mark.thorough("a second server that gives too few connections")
def test_a_host_is_let_in_only_where_all_connections_of_the_others_fit_too(
    new_postgres: NewDatabase, postgres_admin: Admin, role: str
) -> None:
    url = limited(postgres_admin, new_postgres(), role, 2 * HOST_CONNECTIONS - 1)
    with ActorSystem.open(url, OfflineProvider(), join=True, name="a"):
        assert connections(postgres_admin, role) < HOST_CONNECTIONS  # it makes the others when it needs them
        with pytest.raises(StoreUnavailable, match=f"of which {HOST_CONNECTIONS} are in use by others or kept for"):
            ActorSystem.open(url, OfflineProvider(), join=True, name="b")
        postgres_admin.execute(f"ALTER ROLE {role} CONNECTION LIMIT {2 * HOST_CONNECTIONS}".encode())
        ActorSystem.open(url, OfflineProvider(), join=True, name="b").close()


def test_a_user_who_sees_little_of_others_counts_their_connections_too(
    new_postgres: NewDatabase, postgres_admin: Admin, role: str
) -> None:
    url = limited(postgres_admin, new_postgres(), role, HOST_CONNECTIONS)
    with closing(open_store(url)) as store:
        shortages = store.read(limits)
    assert [limit.whose for limit in shortages] == [f"role {role}", "the server"]
    of_role, of_server = (limit.others for limit in shortages)
    assert of_server > of_role  # the administrator's


def test_the_pages_tell_how_many_connections_a_host_and_a_shell_hold() -> None:
    pages = [(ROOT / "docs/operate" / page).read_text(encoding="utf-8") for page in ("databases.md", "cluster.md")]
    databases, cluster = (" ".join(page.split()) for page in pages)
    held = [(str(HOST_CONNECTIONS), str(CLIENT_CONNECTIONS))]
    assert re.findall(r"A host uses up to (\d+) connections, and an attached shell up to (\d+)\.", databases) == held
    assert re.findall(r"`max_connections` ≥ (\d+) × hosts \+ (\d+) × shells", cluster) == held


@pytest.fixture
def url(new_postgres: NewDatabase) -> str:
    return new_postgres()


@pytest.fixture
def pooler(url: str) -> Iterator[Pooler]:
    pooler = Pooler(url)
    yield pooler
    pooler.close()


def process(connection: psycopg.Connection[tuple[object, ...]]) -> object:
    """The server process of a transaction in progress."""
    [(pid,)] = connection.execute("SELECT pg_backend_pid()").fetchall()
    return pid


@pytest.mark.parametrize("join", [False, True])
def test_a_pooler_in_transaction_mode_is_refused_and_nothing_is_made_there(
    pooler: Pooler, url: str, join: bool
) -> None:
    with pytest.raises(StoreUnusable, match="PgBouncer: pool_mode = transaction"):
        ActorSystem.open(pooler.url, OfflineProvider(), join=join)
    with closing(open_store(url)) as store:
        assert store.read(lambda tx: sql(tx, "SELECT to_regclass('hosts')")) == [(None,)]


@pytest.mark.sample(1, "ways to open")
@pytest.mark.parametrize("open_there", [AttachedSystem.open, Client.open])
def test_a_pooler_in_transaction_mode_is_refused_to_who_asks_a_host_too(
    pooler: Pooler, url: str, open_there: Callable[[str], object]
) -> None:
    with (
        ActorSystem.open(url, OfflineProvider()),
        pytest.raises(StoreUnusable, match="ikigai needs connections of its"),
    ):
        open_there(pooler.url)


def test_a_pooler_in_statement_mode_is_named_with_what_helps(new_postgres: NewDatabase) -> None:
    with closing(StatementPooler(new_postgres())) as pooler, pytest.raises(StoreUnusable) as refused:
        ActorSystem.open(pooler.url, OfflineProvider())
    assert "PgBouncer: pool_mode = statement). Connect to the server itself, or by a pool in session" in str(
        refused.value
    )
    assert "Try again" not in str(refused.value)


def impatient(url: str | os.PathLike[str] | None) -> PostgresStore:
    """A store that waits for half a second only."""
    return PostgresStore(str(url), patience=0.5)


@pytest.mark.thorough("a second server that gives too few connections")
def test_a_pool_that_is_too_small_is_named_when_a_host_opens_and_one_that_is_large_enough_serves(url: str) -> None:
    with closing(SmallPool(url, HOST_CONNECTIONS - 1)) as pool:
        with pytest.raises(StoreUnavailable, match=f"a host needs {HOST_CONNECTIONS} connections, and its pooler"):
            ActorSystem.open(pool.url, OfflineProvider(), parts=replace(SYSTEM_PLATFORM, open_store=impatient))
        with ActorSystem.open(url, OfflineProvider()), AttachedSystem.open(pool.url) as attached:
            assert attached.root.prompt("tea").get(timeout=DEADLINE).text
    with closing(SmallPool(url, HOST_CONNECTIONS)) as pool, ActorSystem.open(pool.url, OfflineProvider()) as system:
        assert system.root.fork().prompt("tea").get(timeout=DEADLINE).text


def test_a_pool_that_is_used_up_is_named_soon_whoever_comes(url: str) -> None:
    with closing(SmallPool(url, CLIENT_CONNECTIONS - 1)) as pool:
        with (
            closing(impatient(pool.url)) as store,
            pytest.raises(StoreUnavailable, match=f"an attached program needs {CLIENT_CONNECTIONS} connections"),
        ):
            store.reserve()
        with closing(impatient(pool.url)), closing(impatient(pool.url)), pytest.raises(StoreUnavailable) as refused:
            impatient(pool.url)
        assert "a pooler before it has no connection left" in str(refused.value)


LIMITS = ("statement_timeout", "lock_timeout", "idle_session_timeout")


def test_time_limits_of_a_role_do_not_hold_for_the_connections_of_a_host(
    new_postgres: NewDatabase, postgres_admin: Admin, role: str
) -> None:
    url = limited(postgres_admin, new_postgres(), role, 100)
    for limit in LIMITS:
        postgres_admin.execute(f"ALTER ROLE {role} SET {limit} = '300ms'".encode())
    with ActorSystem.open(url, OfflineProvider()) as system:
        assert system._store.write(lambda tx: sql(tx, "SELECT pg_sleep(0.4)")) == [("",)]
        assert system._store.read(lambda tx: [sql(tx, f"SHOW {limit}") for limit in LIMITS]) == [[("0",)]] * 3
        before = connections(postgres_admin, role)
        threading.Event().wait(0.5)  # else the one that listens would be ended
        assert connections(postgres_admin, role) == before
    own = with_settings(url, options=f"{conninfo_to_dict(url)['options']} -cstatement_timeout=50")
    with closing(open_store(own)) as store:
        assert store.read(lambda tx: sql(tx, "SHOW statement_timeout")) == [("50ms",)]


def test_a_separate_store_has_a_process_of_its_own(new_postgres: NewDatabase) -> None:
    with closing(open_store(new_postgres())) as store, closing(store.separate()) as separate:
        assert store.write(backend) != separate.write(backend)
