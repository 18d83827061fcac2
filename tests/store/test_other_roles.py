"""Another role may connect to the database, and nothing else: it sees no agent, wakes nobody, keeps no host alive."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from ikigai_actors.store import Store, open_store
from ikigai_actors.store.base import Hint
from ikigai_actors.store.postgres.hints import HOSTS, Channels, secret_of
from ikigai_actors.store.postgres.transaction import _lock_of
from tests.conftest import NewDatabase
from tests.kit.databases import DEADLINE, Admin
from tests.kit.network import with_settings
from tests.kit.trees import HOST, plant


@pytest.fixture
def url(new_postgres: NewDatabase) -> str:
    """A database with agent 0."""
    url = new_postgres()
    with closing(open_store(url)) as store:
        plant(store)
    return url


@pytest.fixture
def stranger(url: str, postgres_admin: Admin) -> Iterator[psycopg.Connection[Any]]:
    """A connection of a role that has no right on any table."""
    role = f"role_{uuid4().hex}"
    postgres_admin.execute(f"CREATE ROLE {role} LOGIN".encode())
    with psycopg.connect(with_settings(url, user=role), autocommit=True) as connection:
        yield connection
    postgres_admin.execute(f"DROP ROLE {role}".encode())


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with closing(open_store(url)) as store:
        yield store


def test_another_role_does_not_learn_the_channels(stranger: psycopg.Connection[Any]) -> None:
    with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedTable)):
        secret_of(stranger)


def test_what_another_role_says_on_any_channel_wakes_nobody(
    store: Store, url: str, stranger: psycopg.Connection[Any]
) -> None:
    watch = store.watch(hosts=True)
    assert watch.wait(DEADLINE)
    assert watch.heard() == Hint()
    with psycopg.connect(url) as connection:
        channel = Channels(secret_of(connection)).name(HOSTS)  # as if it had guessed it
    for each in ("ikigai", "ikigai_hosts", channel):
        stranger.execute("SELECT pg_notify(%s, 'a')", (each,))
    store.ring({"a"})
    assert watch.wait(DEADLINE)
    assert watch.heard() == Hint(frozenset({"a"}), frozenset())  # it came after theirs, and is the only one
    watch.close()
    assert not watch.wait()


def test_the_lock_of_a_host_counts_only_where_a_role_holds_it_that_can_run_one(
    store: Store, stranger: psycopg.Connection[Any]
) -> None:
    stranger.execute("SELECT pg_advisory_lock(%s)", (_lock_of(HOST),))
    assert store.read(lambda tx: tx.held([HOST])) == set()
    stranger.execute("SELECT pg_advisory_unlock(%s)", (_lock_of(HOST),))
    store.write(lambda tx: tx.hold(HOST))
    assert store.read(lambda tx: tx.held([HOST])) == {HOST}
