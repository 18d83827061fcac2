"""The journal over a connection that is cut while it commits: what PostgreSQL was told is neither lost nor doubled."""

from collections.abc import Iterator

import pytest

from ikigai_actors.store import Store, Transaction, open_store
from ikigai_actors.store.journal import Committed, Journal
from ikigai_actors.testing import ManualClock
from tests.conftest import NewDatabase
from tests.kit.databases import DEADLINE, Admin, eventually, sql
from tests.kit.journals import Answers, note
from tests.kit.trees import HOST, append, batch, ids, plant
from tests.kit.wire import Wire

Wired = tuple[Wire, Journal, Store]


@pytest.fixture
def wired(new_postgres: NewDatabase, request: pytest.FixtureRequest) -> Iterator[Wired]:
    """A journal that reaches PostgreSQL over a wire that can be cut, and a store beside it."""
    url = new_postgres()
    beside = open_store(url)
    plant(beside, a="root", b="root")
    heard, at = request.param
    wire = Wire(url, heard=heard, at=at)
    store = open_store(wire.url)
    journal = Journal(store, HOST, ManualClock())
    yield wire, journal, beside
    journal.close(DEADLINE)
    store.close()
    beside.close()
    wire.close()


COMMIT = b"COMMIT\0"
PLACES = {
    "begin": b"BEGIN",
    "lock": b"FOR NO KEY UPDATE",
    "append": b"INTO messages",
    "fence": b"SET batch",
    "end": COMMIT,
}
"""Where a wire is cut: within the trip that locks, and within the one that commits."""


@pytest.mark.sample(4, "places at which the wire is cut")
@pytest.mark.parametrize(
    "wired", [(heard, at) for at in PLACES.values() for heard in (True, False)], indirect=True,
    ids=[f"{place} {heard}" for place in PLACES for heard in ("heard", "not heard")],
)  # fmt: skip
def test_a_cut_wire_loses_nothing_and_doubles_nothing(wired: Wired) -> None:
    wire, journal, beside = wired
    answers = Answers()
    wire.armed.set()
    journal.submit(append("a", 1), answers.to("a"))
    journal.submit(append("b", 1), answers.to("b"))
    journal.start()
    eventually(lambda: journal.statistics().retries, "the broken connection")
    wire.armed.clear()
    assert answers["a"] == Committed()
    assert answers["b"] == Committed()
    assert (ids(beside, "a"), ids(beside, "b"), batch(beside)) == ([1], [1], 1)


@pytest.mark.parametrize("wired", [(True, COMMIT), (False, COMMIT)], indirect=True, ids=["heard", "not heard"])
def test_a_cut_wire_at_commit_loses_nothing_and_doubles_nothing(wired: Wired) -> None:
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


@pytest.mark.parametrize("wired", [(True, COMMIT)], indirect=True, ids=["heard"])
def test_a_server_that_is_still_at_the_commit_is_waited_for(wired: Wired, postgres_admin: Admin) -> None:
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
