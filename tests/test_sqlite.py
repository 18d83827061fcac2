"""SQLite as the store sets it up."""

from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import written_by_process
from ikigai_actors.store import Store, Transaction, open_store
from ikigai_actors.store.migrations import ensure_schema
from tests.databases import sql
from tests.trees import plant

MESSAGES = 3_000
"""Messages of a page each: 12 MB."""


def written(work: Callable[[], object]) -> int:
    """The bytes that this process wrote meanwhile; 0 where the system does not tell."""
    before = written_by_process() or 0
    work()
    return (written_by_process() or 0) - before


def test_a_large_transaction_writes_each_page_once(tmp_path: Path) -> None:
    store: Store = open_store(tmp_path / "large.db")
    ensure_schema(store)
    plant(store)

    def work(tx: Transaction) -> None:
        sql(
            tx,
            f"WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < {MESSAGES})"
            " INSERT INTO messages SELECT 'root', i, 'user', printf('%.3000c', 'x'), NULL, 1 FROM n",
        )
        for number in [*range(1, MESSAGES + 1)] * 2:  # one by one: for an UPDATE of many rows it keeps a journal
            sql(tx, f"UPDATE messages SET created_at = created_at + 1 WHERE agent_uuid = 'root' AND id = {number}")

    assert written(lambda: store.write(work)) < 3 * MESSAGES * 4096  # into the log, then into the file
    store.close()
