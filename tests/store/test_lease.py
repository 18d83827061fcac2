"""The lease by which a host owns a PostgreSQL database: kept, late, lost."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg
import pytest

from ikigai_actors.actors.clock import SystemClock
from ikigai_actors.errors import Fenced, IkigaiError, StoreInUse, SystemClosed
from ikigai_actors.records.documents import WriteVersion
from ikigai_actors.records.mail.mail import Send
from ikigai_actors.store import Row, Store, open_store
from ikigai_actors.store.hosts.host import Host, new_host, take_database
from ikigai_actors.store.journal import Committed, Journal
from ikigai_actors.store.postgres.errors import PostgresErrors
from ikigai_actors.store.postgres.hints import Hints
from ikigai_actors.store.postgres.transaction import WRITES, PostgresTransaction
from tests.conftest import NewDatabase
from tests.kit.databases import DEADLINE, eventually, sql
from tests.kit.hosts import Hosts, owners, plant
from tests.kit.journals import Answers
from tests.kit.trees import append, ids

SHORT = 0.5
"""Seconds of a lease that a test waits out."""


def test_a_lease_that_has_not_run_out_says_when_to_try_again(new_postgres: NewDatabase, take: Hosts) -> None:
    url = new_postgres()
    take(url, lease=60)
    with pytest.raises(StoreInUse, match=r"try again in (60|5\d) s"):
        take(url)


def test_a_host_is_taken_over_when_its_lease_ends_and_then_it_is_fenced(new_postgres: NewDatabase, take: Hosts) -> None:
    url = new_postgres()
    late = take(url, lease=SHORT)
    store = open_store(url)
    plant(store, late.id)
    journal, answers = Journal(store, late.id, SystemClock()), Answers()
    journal.submit(append("a", 1, host=late.id), answers.to("in time"))
    journal.commit_pending()
    second = wait_for(take, url)
    journal.submit(append("a", 2, host=late.id), answers.to("late"))
    journal.submit(append("a", 2, host=late.id, epoch=2), answers.to("late, in a stolen epoch"))
    journal.commit_pending()
    new_owners = Journal(store, second.id, SystemClock())
    new_owners.submit(append("a", 2, host=second.id), answers.to("the new owner's"))
    new_owners.commit_pending()
    assert isinstance(answers.error("late"), SystemClosed)
    assert isinstance(answers.error("late, in a stolen epoch"), SystemClosed)
    assert answers["in time"] == answers["the new owner's"] == Committed()
    assert ids(store, "a") == [1, 2]
    with pytest.raises(Fenced):
        late.renew()
    second.renew()
    heard: list[IkigaiError] = []
    fenced = threading.Event()

    def on_fenced(error: IkigaiError) -> None:
        heard.append(error)
        fenced.set()

    late.keep(on_fenced)
    assert fenced.wait(DEADLINE)
    late.release()
    assert [type(error) for error in heard] == [Fenced]
    assert owners(store)[-1] == (second.id, 2, True)
    store.close()


def wait_for(take: Hosts, url: str) -> Host:
    """Take the database as soon as it can be had."""
    taken: list[Host] = []

    def tried() -> bool:
        try:
            taken.append(take(url))
        except StoreInUse:
            return False
        return True

    eventually(tried, "the end of the lease")
    return taken[0]


class Stalling(list[Row]):
    """Rows of which the last comes late."""

    def __init__(self, *rows: Row) -> None:
        super().__init__(rows)
        self.reached, self.release = threading.Event(), threading.Event()

    def __iter__(self) -> Iterator[Row]:
        yield from self[:-1]
        self.reached.set()
        assert self.release.wait(DEADLINE)
        yield self[-1]


@pytest.mark.thorough("a second host that is taken over; every run has one whose lease ends")
def test_a_host_that_stands_still_within_a_commit_is_taken_over(new_postgres: NewDatabase, take: Hosts) -> None:
    """As a process that is stopped within a COPY: to the server such a transaction is not idle, and never times out."""
    url = new_postgres()
    stopped = take(url, lease=4 * SHORT)  # what follows begins while it lasts
    with closing(open_store(url)) as store:
        plant(store, stopped.id)
    rows = Stalling(*(("a", number, "user", "text", None, 1, b"") for number in range(1, 101)))

    def stand_still() -> None:
        with psycopg.connect(url, application_name=f"ikigai {stopped.id}") as connection:
            transaction = PostgresTransaction(connection, PostgresErrors(url), Hints(), WRITES)
            transaction.run("tree_change")
            transaction.run("batch_of", host=stopped.id)
            transaction._append("messages", rows)

    with ThreadPoolExecutor() as threads:
        writing = threads.submit(stand_still)
        assert rows.reached.wait(DEADLINE)
        try:
            assert threads.submit(wait_for, take, url).result(DEADLINE / 3).id != stopped.id
        finally:
            rows.release.set()
        with pytest.raises(psycopg.OperationalError):
            writing.result(DEADLINE)


@pytest.mark.sample(2, "hosts that stand still")
@pytest.mark.parametrize(
    ("name", "ended"), [("ikigai gone", True), ("ikigai", True), ("a client", True), ("ikigai living", False)]
)
def test_what_stands_still_is_ended_unless_it_is_another_hosts(
    new_postgres: NewDatabase, name: str, ended: bool
) -> None:
    url = new_postgres()
    with closing(open_store(url)) as store, psycopg.connect(url, application_name=name) as other:
        other.execute("UPDATE tree SET version = version + 1")
        process = other.info.backend_pid
        eventually(lambda: _stands_still(store, process), "the server's word that the transaction waits for its client")
        store.write(lambda tx: tx.end_stalled("gone", 2**50))
        if ended:
            with pytest.raises(psycopg.OperationalError):
                other.execute("SELECT 1")
        else:
            assert other.execute("SELECT 1").fetchall() == [(1,)]


def _stands_still(store: Store, process: int) -> bool:
    """Whether PostgreSQL shows it already: an answer may arrive before the state of who gave it."""
    query = f"SELECT 1 FROM pg_stat_activity WHERE pid = {process} AND wait_event = 'ClientRead'"
    return bool(store.read(lambda tx: sql(tx, query)))


def test_the_connections_of_a_host_are_called_after_it(new_postgres: NewDatabase, take: Hosts) -> None:
    url = new_postgres()
    with closing(open_store(url)) as store:
        host = take_database(new_host(store, "h", SystemClock()))
        names = "SELECT application_name FROM pg_stat_activity WHERE pid = pg_backend_pid()"
        assert store.write(lambda tx: sql(tx, names)) == [("ikigai h",)]
        with closing(store.separate()) as separate:
            assert separate.write(lambda tx: sql(tx, names)) == [("ikigai h",)]
        host.release()


def test_a_lease_that_ran_out_may_be_renewed_while_nobody_has_taken_over(
    new_postgres: NewDatabase, take: Hosts
) -> None:
    url = new_postgres()
    host = take(url)
    store = open_store(url)
    store.write(lambda tx: sql(tx, "UPDATE hosts SET lease_until = 1"))
    host.renew()
    with pytest.raises(StoreInUse):
        take(url)
    store.close()


@pytest.mark.thorough("a second takeover")
def test_a_host_that_was_taken_over_writes_nothing_at_all(new_postgres: NewDatabase, take: Hosts) -> None:
    url = new_postgres()
    late = take(url, lease=SHORT)
    store = open_store(url)
    plant(store, late.id)
    failures: list[IkigaiError] = []
    journal, answers = Journal(store, late.id, SystemClock(), on_failure=failures.append), Answers()
    wait_for(take, url)
    journal.submit(Send("a", "root", "late", 2), answers.to("mail"))
    journal.submit(WriteVersion("late.md", "late", None, None, 2), answers.to("document"))
    journal.commit_pending()
    assert isinstance(answers.error("mail"), SystemClosed)
    assert isinstance(answers.error("document"), SystemClosed)
    assert [type(failure) for failure in failures] == [Fenced]
    assert store.read(lambda tx: (sql(tx, "SELECT body FROM mail"), sql(tx, "SELECT path FROM documents"))) == ([], [])
    store.close()
