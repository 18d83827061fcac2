"""The copy of a database: all of it or nothing, the same rows, and to an empty place alone."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ikigai_actors import ActorSystem, OfflineProvider
from ikigai_actors.errors import StoreError, StoreUnavailable, StoreUnusable
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.hosts.remote_commands import AddRemoteCommand
from ikigai_actors.store import Row, Store, Transaction, open_store
from ikigai_actors.store.copy import TableSum, copy_database
from ikigai_actors.store.forwarding import ForwardingStore
from ikigai_actors.store.migrations import require_schema
from ikigai_actors.store.transaction import SCANNED
from supervisors.signals import Signal
from tests.conftest import NewDatabase
from tests.kit.databases import sql, tables
from tests.kit.program import PATIENCE, Program, run

pytestmark = pytest.mark.empty

T = TypeVar("T")


def furnish(database: str) -> None:
    """A tree with something in every table."""
    with ActorSystem.open(database, OfflineProvider()) as system:
        system.root.prompt('We sell tea — 茶\n\ttwo lines, a \\ and a "quote".').get(timeout=PATIENCE)
        buyer = system.root.fork("You buy.", name="buyer")
        buyer.reply(timeout=PATIENCE)
        seller = buyer.fork(name="seller")
        seller.fork(name="clerk").kill(reason="sold out")
        system.root.send(seller, "Sell 12 kg.")
        system.documents.write("plans/tea.md", "# Tea\n", author=buyer.uuid)
        seller.signal(Signal.STOP)
        system._writer.perform(AddRemoteCommand(seller.uuid, "clear", "{}", 1))


def contents(store: Store, but: Iterable[str] = ()) -> dict[str, list[Row]]:
    """Every row of every table."""

    def work(tx: Transaction) -> dict[str, list[Row]]:
        schema = tx.schema
        return {
            table: sorted((row for some in schema.scan(table, schema.columns(table)) for row in some), key=repr)
            for table in schema.tables() - set(but)
        }

    return store.read(work)


@pytest.fixture
def source(durable: str) -> Iterator[Store]:
    """A database that was in use, and is no more."""
    furnish(durable)
    store = open_store(durable)
    yield store
    store.close()


@pytest.fixture(params=["sqlite", "postgres"])
def empty(request: pytest.FixtureRequest) -> str:
    """The URL of another database, without a table."""
    factory: NewDatabase = request.getfixturevalue(f"new_{request.param}")
    return factory()


@pytest.fixture
def target(empty: str) -> Iterator[Store]:
    """That database, open."""
    store = open_store(empty)
    yield store
    store.close()


@pytest.fixture
def blank(durable_url: NewDatabase) -> Iterator[Store]:
    """A database without a table, of the same kind as the source."""
    store = open_store(durable_url())
    yield store
    store.close()


@pytest.mark.sample(2, "from each database to each")
@pytest.mark.slow("takes a second")
def test_a_copy_has_the_same_rows_and_is_sound(source: Store, target: Store) -> None:
    before = contents(source)
    counts = copy_database(source, target)
    assert contents(target) == contents(source) == before
    assert counts == {table: len(rows) for table, rows in before.items()}
    assert all(before[table] for table in ("agents", "documents", "hosts", "mail", "messages", "requests", "signals"))
    assert check(target) == []


@pytest.mark.thorough("a copy beside a host")
@pytest.mark.sample(2, "from each database to each")
def test_the_copy_of_a_database_in_use_belongs_to_nobody(durable: str, empty: str) -> None:
    copy = open_store(empty)
    with ActorSystem.open(durable, OfflineProvider()) as system:
        system.root.prompt("tea").get(timeout=PATIENCE)
        copy_database(system._store, copy)
        with ActorSystem.open(empty, OfflineProvider()) as second:
            assert len(second.root.history()) == len(system.root.history())
        assert "remember" in system.root.prompt("milk").get(timeout=PATIENCE).text
    copy.close()


@pytest.mark.thorough("thousands of rows")
def test_more_rows_than_are_read_at_a_time_are_all_copied(new_sqlite: NewDatabase, target: Store) -> None:
    database = new_sqlite()
    furnish(database)
    store = open_store(database)
    [(author,)] = store.read(lambda tx: sql(tx, "SELECT uuid FROM agents WHERE name = 'buyer'"))
    made = [(f"many/{number}", author) for number in range(2 * SCANNED + 1)]

    def work(tx: Transaction) -> None:
        rows = [(path, 1, author, "", 1) for path, author in made]
        tx.schema.load("documents", ["path", "version", "author", "body", "created_at"], [rows])

    store.write(work)
    assert copy_database(store, target)["documents"] == len(made) + 1
    assert contents(target) == contents(store)
    store.close()


@pytest.mark.thorough("a second target that is refused")
def test_a_target_that_is_not_empty_is_refused_and_left_alone(source: Store, blank: Store) -> None:
    copy_database(source, blank)
    before = contents(blank)
    with pytest.raises(StoreUnusable, match="is not empty: nothing was copied"):
        copy_database(source, blank)
    with pytest.raises(StoreUnusable, match="is not empty: nothing was copied"):
        copy_database(source, source)
    assert contents(blank) == before


@pytest.mark.thorough("a second source that is refused")
@pytest.mark.sample(2, "from each database to each")
@pytest.mark.parametrize(
    ("addition", "message"),
    [
        ("CREATE TABLE recipes (name TEXT)", "a table 'recipes' that is not ikigai's"),
        ("ALTER TABLE agents ADD COLUMN mood TEXT", "Table 'agents' of the source has other columns"),
    ],
)
def test_what_somebody_added_to_the_source_is_refused_not_lost(
    source: Store, blank: Store, addition: str, message: str
) -> None:
    source.write(lambda tx: sql(tx, addition))
    with pytest.raises(StoreUnusable, match=message):
        copy_database(source, blank)
    assert tables(blank) == set()


def test_an_empty_source_is_refused(blank: Store, new_sqlite: NewDatabase) -> None:
    nothing = open_store(new_sqlite())
    with pytest.raises(StoreUnusable, match="empty: no ikigai has run on it yet"):
        copy_database(nothing, blank)
    nothing.close()


class Bent:
    """A transaction that may be bent: what is read of a table, or given to it, passes through a function."""

    def __init__(self, inner: Transaction, table: str, bend: Callable[[Sequence[Row]], Sequence[Row]]) -> None:
        self._inner, self._table, self._bend = inner.schema, table, bend
        self.run, self.schema, self.TUNING = inner.run, self, inner.schema.TUNING
        self.tables, self.columns, self.execute = self._inner.tables, self._inner.columns, self._inner.execute
        self.execute_all = self._inner.execute_all
        self.scan = self._inner.scan

    def load(self, table: str, columns: Sequence[str], batches: Iterable[Sequence[Row]]) -> None:
        """Not always what was given."""
        self._inner.load(table, columns, map(self._bend, batches) if table == self._table else batches)


class BentStore(ForwardingStore):
    """A store whose writing transactions are bent."""

    def __init__(self, inner: Store, table: str, bend: Callable[[Sequence[Row]], Sequence[Row]]) -> None:
        super().__init__(inner)
        self._table, self._bend = table, bend

    def write(self, work: Callable[[Transaction], T]) -> T:
        """See `Store.write`."""
        return self._store.write(lambda tx: work(Bent(tx, self._table, self._bend)))  # type: ignore[arg-type]


def test_a_copy_that_breaks_off_leaves_the_target_empty(new_sqlite: NewDatabase, blank: Store) -> None:
    database = new_sqlite()
    furnish(database)
    source = open_store(database)

    def breaks(rows: Sequence[Row]) -> Sequence[Row]:
        raise StoreUnavailable("The other end is gone.")

    with pytest.raises(StoreUnavailable, match="The other end is gone"):
        copy_database(source, BentStore(blank, "messages", breaks))
    assert tables(blank) == set()
    copy_database(source, blank)
    source.close()


@pytest.mark.thorough("a second target that is refused")
@pytest.mark.sample(2, "from each database to each")
@pytest.mark.parametrize("bend", [lambda rows: rows[:-1], lambda rows: [*rows[:-1], (*rows[-1][:-1], 7)]])
def test_a_target_that_gives_back_other_rows_gets_nothing(
    source: Store, blank: Store, bend: Callable[[Sequence[Row]], Sequence[Row]]
) -> None:
    with pytest.raises(StoreError, match="gave back other rows of table documents"):
        copy_database(source, BentStore(blank, "documents", bend))
    assert tables(blank) == set()


@given(st.lists(st.tuples(st.text(), st.none() | st.integers())), st.randoms(use_true_random=False))
def test_tallies_are_equal_for_the_same_rows_alone(some: list[Row], random: Random) -> None:
    def tally(rows: list[Row]) -> TableSum:
        counted = TableSum()
        assert [row for batch in counted.counting([rows[:2], rows[2:]]) for row in batch] == rows
        return counted

    mixed = random.sample(some, len(some))
    assert tally(some) == tally(mixed)
    assert tally(some) != tally([*some, ("", None)])
    if some:
        assert tally(some) != tally([*some[1:], (*some[0][:1], "other")])


@pytest.mark.thorough("a program")
@pytest.mark.sample(2, "from each database to each")
@pytest.mark.slow("takes a second")
def test_the_command_copies_beside_a_running_shell_and_says_so(durable: str, empty: str) -> None:
    with Program.by_pipe("--database", durable) as shell:
        shell.say("tea")
        shell.expect("You said “tea”")
        shell.say("/agents")
        shell.expect(r"idle +0 inherited \+ 2 own")  # the answer is committed, which may come after it is shown
        done = run("copy", durable, empty)
    assert (done.returncode, done.stderr) == (0, "")
    copied, used, checked = done.stdout.splitlines()
    assert copied.startswith("Copied 1 agents, 2 messages, 0 mails, 0 versions of documents from ")
    assert copied.endswith(": every row is the same.")
    assert used == "The original is in use: what is committed there from now on is not in the copy."
    assert checked == "1 agent, 2 messages: no violation"
    assert run("--database", empty, "agents").stdout
    store = open_store(empty)
    require_schema(store)
    store.close()
