"""The bell: what a host commits wakes those who follow, by a connection of its own."""

import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest

from ikigai_actors.actors.clock import SystemClock
from ikigai_actors.store import Store, open_store
from ikigai_actors.store.journal import Journal
from ikigai_actors.store.postgres.bell import Bell
from ikigai_actors.store.postgres.hints import HOSTS, Channels, Hints, secret_of
from tests.conftest import NewDatabase
from tests.kit.databases import DEADLINE, Admin
from tests.kit.journals import Answers
from tests.kit.trees import HOST, append, plant


@pytest.fixture
def server_store(new_postgres: NewDatabase) -> Iterator[Store]:
    """A store on PostgreSQL with agents "root" and "a"."""
    with closing(open_store(new_postgres())) as store:
        plant(store, a="root")
        yield store


def test_what_a_journal_commits_wakes_who_follows_hosts(server_store: Store) -> None:
    journal, answers = Journal(server_store, HOST, SystemClock()), Answers()
    watch = server_store.watch(hosts=True)
    assert watch.wait(0)  # that it listens is the first news
    journal.submit(append("a", 1), answers.to("one"))
    journal.commit_pending()
    assert watch.wait(DEADLINE)
    watch.close()
    assert not watch.wait(0)


def listen(listener: psycopg.Connection[Any], audience: str) -> str:
    """Listen for an audience; return its channel."""
    channel = Channels(secret_of(listener)).name(audience)
    listener.execute(f"LISTEN {channel}".encode())
    return channel


def test_many_rings_are_one_and_a_connection_that_breaks_is_made_again(
    new_postgres: NewDatabase, postgres_admin: Admin
) -> None:
    url = new_postgres()
    made: list[psycopg.Connection[tuple[object, ...]]] = []
    connected = threading.Event()

    def connect() -> psycopg.Connection[tuple[object, ...]]:
        made.append(psycopg.connect(url))
        connected.set()
        return made[-1]

    bell = Bell(connect, Hints())
    with psycopg.connect(url, autocommit=True) as listener:
        channel = listen(listener, HOSTS)
        for _ in range(1_000):
            bell.ring((HOSTS,), None)
        assert [notice.channel for notice in listener.notifies(timeout=DEADLINE, stop_after=1)] == [channel]
        assert connected.is_set()
        postgres_admin.execute("SELECT pg_terminate_backend(%s)", (made[0].info.backend_pid,))
        rings: list[object] = []
        while not rings:  # a ring on the broken connection is lost, as hints may be
            bell.ring((HOSTS,), None)
            rings = list(listener.notifies(timeout=0.1, stop_after=1))
        assert len(made) == 2
        bell.close()
    bell.close()
    bell.ring((HOSTS,), None)
    assert len(made) == 2


def test_a_bell_that_is_closed_rings_what_was_asked_for(new_postgres: NewDatabase) -> None:
    database = new_postgres()
    bell = Bell(lambda: psycopg.connect(database), Hints())
    with psycopg.connect(database, autocommit=True) as listener:
        listen(listener, HOSTS)
        bell.ring((HOSTS,), None)
        bell.close()
        assert len(list(listener.notifies(timeout=DEADLINE, stop_after=1))) == 1
