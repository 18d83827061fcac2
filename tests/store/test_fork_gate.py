"""Forks of a process whose threads use SQLite: the child must not hang in its own first use of it."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ikigai_actors.store import Store, Transaction, open_store
from ikigai_actors.store.sqlite.fork_gate import FORK_GATE
from tests.actors.test_os_fork import in_child
from tests.kit.databases import DEADLINE, eventually, sql

FORKS = 20

MANY = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) SELECT i FROM n"


@contextmanager
def opened(file: Path) -> Iterator[Store]:
    """A store in a file."""
    store = open_store(file)
    yield store
    store.close()


def test_a_fork_waits_for_a_transaction_of_another_thread(tmp_path: Path) -> None:
    begun, done = threading.Event(), threading.Event()

    def work(tx: Transaction) -> None:
        begun.set()
        eventually(lambda: FORK_GATE.forking, "a fork that waits")
        done.set()

    with opened(tmp_path / "team.db") as store:
        writer = threading.Thread(target=store.write, args=(work,))
        writer.start()
        assert begun.wait(DEADLINE)
        assert in_child(done.is_set) == "gave True"
        writer.join()
        assert not FORK_GATE.forking
        assert store.read(lambda tx: sql(tx, "SELECT 1")) == [(1,)]


@pytest.mark.slow("takes a tenth of a second")
def test_a_transaction_may_fork(tmp_path: Path) -> None:
    with opened(tmp_path / "team.db") as store:
        assert store.read(lambda tx: in_child(lambda: "there")) == "gave 'there'"
        assert store.read(lambda tx: sql(tx, "SELECT 1")) == [(1,)]


@pytest.mark.thorough("hundreds of forked processes; test_os_fork has some in each run")
def test_a_child_uses_sqlite_while_the_threads_of_its_parent_do(tmp_path: Path) -> None:
    over = threading.Event()

    def own() -> object:
        with sqlite3.connect(tmp_path / "own.db") as connection:
            return connection.execute("SELECT 1").fetchone()

    def busy(store: Store) -> None:
        while not over.is_set():
            store.read(lambda tx: sql(tx, MANY))

    with opened(tmp_path / "one.db") as store, opened(tmp_path / "two.db") as two:
        threads = [threading.Thread(target=busy, args=(store,)) for store in (store, two, store, two)]
        for thread in threads:
            thread.start()
        try:
            assert {in_child(own) for _ in range(FORKS)} == {"gave (1,)"}
        finally:
            over.set()
            for thread in threads:
                thread.join()
