"""The journal over a connection that is cut while it commits: what PostgreSQL was told is neither lost nor doubled."""

from collections.abc import Iterator

import pytest

from ikigai_actors.store import Store, Transaction, open_store
from ikigai_actors.store.journal import Committed, Journal
from ikigai_actors.store.migrations import ensure_schema
from ikigai_actors.testing import ManualClock
from tests.conftest import NewDatabase
from tests.kit.databases import DEADLINE, Admin, eventually, sql
from tests.kit.journals import Answers, note
from tests.kit.trees import HOST, append, batch, ids, plant
from tests.kit.wire import Wire


@pytest.fixture
def wired(new_postgres: NewDatabase, request: pytest.FixtureRequest) -> Iterator[tuple[Wire, Journal, Store]]:
    """A journal that reaches PostgreSQL over a wire that can be cut, and a store beside it."""
    url = new_postgres()
    beside = open_store(url)
    ensure_schema(beside)
    plant(beside, a="root", b="root")
    wire = Wire(url, heard=request.param)
    store = open_store(wire.url)
    journal = Journal(store, HOST, ManualClock())
    yield wire, journal, beside
    journal.close(DEADLINE)
    store.close()
    beside.close()
    wire.close()


@pytest.mark.parametrize("wired", [True, False], indirect=True, ids=["heard", "not heard"])
def test_a_cut_wire_at_commit_loses_nothing_and_doubles_nothing(wired: tuple[Wire, Journal, Store]) -> None:
    wire, journal, beside = wired
    answers = Answers()

    def cut_at_the_first_commit(tx: Transaction) -> None:
        if journal.statistics().retries:
            wire.armed.clear()
        else:
            wire.armed.set()

    journal.submit(note("a", 1, does=cut_at_the_first_commit), answers.to("a"))
    journal.submit(append("b", 1), answers.to("b"))
    journal.start()
    eventually(lambda: journal.statistics().retries, "the broken connection")
    wire.armed.clear()
    assert answers["a"] == Committed()
    assert answers["b"] == Committed()
    assert (ids(beside, "a"), ids(beside, "b"), batch(beside)) == ([1], [1], 1)


def slow_commits(tx: Transaction) -> None:
    """From now on a commit with messages waits until advisory lock 4711 is free."""
    sql(
        tx,
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM pg_advisory_xact_lock(4711); RETURN NULL; END $$",
    )
    sql(
        tx,
        "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON messages DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION slow()",
    )


@pytest.mark.parametrize("wired", [True], indirect=True, ids=["heard"])
def test_a_server_that_is_still_at_the_commit_is_waited_for(
    wired: tuple[Wire, Journal, Store], postgres_admin: Admin
) -> None:
    """The wire is cut, but the server has heard COMMIT and takes its time: whoever asks too early hears "not yet"."""
    wire, journal, beside = wired
    beside.write(slow_commits)
    answers, runs = Answers(), note("a", 1)
    postgres_admin.execute("SELECT pg_advisory_lock(4711)")
    try:
        wire.armed.set()
        journal.submit(runs, answers.to("slow"))
        journal.start()
        eventually(lambda: journal.statistics().retries, "the broken connection")
        wire.armed.clear()
        blocked = (
            "SELECT 1 FROM pg_stat_activity WHERE cardinality(pg_blocking_pids(pid)) > 0"
            " AND NOT pg_backend_pid() = ANY(pg_blocking_pids(pid))"
        )
        eventually(lambda: postgres_admin.execute(blocked).fetchall(), "the journal's wait for the server")
        assert answers.order == []
    finally:
        postgres_admin.execute("SELECT pg_advisory_unlock(4711)")
    assert isinstance(answers["slow"], Committed)
    assert (len(runs.locked), ids(beside, "a"), batch(beside)) == (1, [1], 1)
