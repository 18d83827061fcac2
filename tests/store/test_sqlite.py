"""SQLite as the store sets it up."""

import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.measure import written_by_process
from ikigai_actors.errors import StoreUnavailable, StoreUnusable
from ikigai_actors.store import Store, Transaction, open_store
from ikigai_actors.store.migrations import ensure_schema
from ikigai_actors.store.sqlite.store import SQLiteStore
from ikigai_actors.store.sqlite.watch import FileWatch
from tests.kit.databases import DEADLINE, printed, python, sql
from tests.kit.trees import plant

MESSAGES = 3_000
"""Messages of a page each: 12 MB."""


def written(work: Callable[[], object]) -> int:
    """The bytes that this process wrote meanwhile; 0 where the system does not tell."""
    before = written_by_process() or 0
    work()
    return (written_by_process() or 0) - before


@pytest.mark.slow("takes a tenth of a second")
def test_a_large_transaction_writes_each_page_once(tmp_path: Path) -> None:
    store: Store = open_store(tmp_path / "large.db")
    ensure_schema(store)
    plant(store)

    def work(tx: Transaction) -> None:
        sql(
            tx,
            f"WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < {MESSAGES})"
            " INSERT INTO messages SELECT 'root', i, 'user', printf('%.3000c', 'x'), NULL, 1, x'00' FROM n",
        )
        for number in [*range(1, MESSAGES + 1)] * 2:  # one by one: for an UPDATE of many rows it keeps a journal
            sql(tx, f"UPDATE messages SET created_at = created_at + 1 WHERE agent_uuid = 'root' AND id = {number}")

    assert written(lambda: store.write(work)) < 3 * MESSAGES * 4096  # into the log, then into the file
    store.close()


def test_a_file_in_which_another_process_writes_is_waited_for_when_it_gets_its_log(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    with closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as other:
        other.execute("CREATE TABLE schema_version (version INTEGER)")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreUnavailable, match="another process"):
            SQLiteStore(file, patience=0.02)
        ending = threading.Timer(0.02, other.execute, ("ROLLBACK",))
        ending.start()
        SQLiteStore(file, patience=DEADLINE).close()
        ending.join()
    with closing(sqlite3.connect(file)) as again:
        assert again.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_file_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match=r"cannot be made: File name too long\. Name another place"):
        open_store(tmp_path / ("a" * 300))
    script = """
        import resource, sys
        from ikigai_actors.errors import StoreUnavailable
        from ikigai_actors.store.sqlite.store import SQLiteStore
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
        try:
            SQLiteStore(sys.argv[1])
        except StoreUnavailable as error:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
            print(error)
    """
    assert "cannot be made: Too many open files" in printed(python(script, tmp_path / "a.db"))


def test_a_watch_over_a_file_that_became_something_else_tells_of_nothing(tmp_path: Path) -> None:
    file = tmp_path / "letter.txt"
    file.write_text("Dear Sir or Madam, this is no database. " * 200)
    watch = FileWatch(file, lambda: 1)
    assert not watch.wait(0.0)
    watch.close()
    assert not watch.wait()
