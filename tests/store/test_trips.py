"""How often a transaction waits for a PostgreSQL server, and what it tells of an error that comes with COMMIT."""

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial

import pytest

from ikigai_actors import ActorSystem, AgentRef, Budget, FunctionProvider
from ikigai_actors.errors import CommitUnknown, Fenced, StoreConflict, StoreError, StoreUnavailable, StoreUnusable
from ikigai_actors.store import Store, Transaction, open_store
from ikigai_actors.store.migrations import ensure_schema
from tests.conftest import NewDatabase
from tests.kit.databases import DEADLINE, add_agents, sql, tree_change, tree_version
from tests.kit.proxy import Proxy
from tests.kit.trees import HOST, batch, ids, plant, record
from tests.kit.trips import Trips


@pytest.fixture
def counted(new_postgres: NewDatabase) -> Iterator[Trips]:
    """A way to a server, on which round trips are counted."""
    with closing(Trips(new_postgres())) as network:
        yield network


@pytest.fixture
def server_store(new_postgres: NewDatabase) -> Iterator[Store]:
    """A PostgreSQL database without agents, open."""
    with closing(open_store(new_postgres())) as store:
        yield store


def waits(network: Trips, act: Callable[[], object], line: int = 0) -> int:
    """How often an act waits for the server, on the line that writes."""
    before = network.lines[line]
    act()
    return network.lines[line] - before


def test_what_needs_no_answer_waits_for_none(counted: Trips) -> None:
    with closing(open_store(counted.url)) as store:
        store.write(lambda tx: add_agents(tx, a=None))
        store.write(lambda tx: tx.notify())  # the first one asks for the channel
        rows = [("a", number, "user", "text", None, 1, b"") for number in range(1, 200)]

        def work(many: int, reads: int) -> Callable[[Transaction], None]:
            def write(tx: Transaction) -> None:
                for _ in range(reads):
                    tree_change(tx)
                    tx.run("look_at_agent", uuid="a")
                tx.share_tree()
                tree_change(tx)
                for turn in range(3):
                    tx.defer("set_turn", uuid="a", turn=turn)
                tx.append(rows[:many])
                del rows[:many]
                tx.notify()

            return write

        assert [waits(counted, partial(store.write, work(1, reads))) for reads in (0, 1, 2)] == [1, 2, 3]
        assert waits(counted, lambda: store.write(work(100, 0))) == 4  # two of the COPY

        def asks(tx: Transaction) -> None:
            answers = [tx.ask("look_at_agent", uuid=uuid) for uuid in ("a", "b", "a")]
            assert [len(answer()) for answer in answers] == [1, 0, 1]

        assert waits(counted, lambda: store.write(asks)) == 2


def test_a_turn_waits_for_the_server_at_each_of_its_two_commits_and_little_more(counted: Trips) -> None:
    with ActorSystem.open(counted.url, FunctionProvider(lambda request: "answer")) as system:
        free, limited = system.root.fork(), system.root.fork(budget=Budget(tokens=1_000_000, usd=1_000))

        def turn(agent: AgentRef) -> None:
            agent.prompt("Go on").get(timeout=DEADLINE)

        turn(free)
        turn(limited)  # its host gets portions of the budget
        assert [waits(counted, partial(turn, agent)) for agent in (free, limited)] == [4, 4]
        assert waits(counted, lambda: free.mark("here")) == 2
        assert [waits(counted, agent.fork) for agent in (free, limited)] == [3, 3]


def test_a_read_waits_for_its_rows_alone(counted: Trips) -> None:
    with closing(open_store(counted.url)) as store:
        store.write(tree_change)
        store.read(tree_version)  # makes the connection
        assert waits(counted, lambda: [store.read(tree_version) for _ in range(5)], line=1) == 5
        assert counted.lines[2:] == []


def test_a_read_ends_though_the_network_delivers_nothing_more_and_the_next_one_goes_on(
    new_postgres: NewDatabase,
) -> None:
    with closing(Proxy(new_postgres())) as network, closing(open_store(network.url)) as store:

        def read(tx: Transaction) -> int:
            version = tree_version(tx)
            network.hold()
            return version

        assert store.read(read) == 0
        network.release()
        assert store.read(tree_version) == 0


@pytest.mark.thorough("a large database")
def test_an_open_waits_for_the_server_as_often_whatever_the_database_holds(counted: Trips) -> None:
    """At 200 ms to the server each wait is felt."""
    for most in (36, 34):  # the first one makes agent 0; threads that begin read beside it
        before = sum(counted.lines)
        with ActorSystem.open(counted.url, FunctionProvider(lambda request: "answer")) as system:
            assert sum(counted.lines) - before <= most
            for _ in range(20):
                system.root.fork()


@pytest.mark.empty
def test_a_schema_is_made_in_one_message(new_postgres: NewDatabase) -> None:
    with closing(Trips(new_postgres())) as network, closing(open_store(network.url)) as store:
        assert waits(network, lambda: ensure_schema(store)) == 3


def fails_at_the_next_change(state: str) -> Callable[[Transaction], None]:
    """Have the server refuse every change of the tree with an SQLSTATE."""

    def work(tx: Transaction) -> None:
        tx.schema.execute(
            "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE SQLSTATE '{state}'; END $$"
        )
        tx.schema.execute(
            "CREATE OR REPLACE TRIGGER refuse BEFORE UPDATE ON tree FOR EACH ROW EXECUTE FUNCTION refuse()"
        )

    return work


def changed_and_read(tx: Transaction) -> None:
    """Wait for the answer to a change: as its error comes alone."""
    tree_change(tx)
    tree_version(tx)


def changed_late(tx: Transaction) -> None:
    """Send a change with COMMIT, between others."""
    sql(tx, "SELECT 1")
    tx.append([("a", 1, "user", "text", None, 1, b"")])
    tx.defer("set_turn", uuid="a", turn=1)
    tx.defer("tree_change")
    for turn in range(2, 300):
        tx.defer("count_mail", uuids=["a"], mailed=turn, unread=0)


KINDS = {
    "23505": StoreConflict,
    "40P01": StoreUnavailable,
    "57014": StoreUnavailable,
    "53100": StoreUnavailable,
    "25006": StoreUnavailable,
    "42501": StoreUnusable,
    "22003": StoreError,
    "22012": StoreError,
    "40003": CommitUnknown,
}


def test_an_error_that_comes_with_commit_is_the_one_that_would_have_come_before_it(server_store: Store) -> None:
    server_store.write(lambda tx: add_agents(tx, a=None))
    for state, kind in KINDS.items():
        server_store.write(fails_at_the_next_change(state))
        messages = []
        for work in (changed_and_read, changed_late):
            with pytest.raises(StoreError) as refused:
                server_store.write(work)
            assert type(refused.value) is kind or (kind is StoreUnavailable and isinstance(refused.value, kind)), state
            messages.append(str(refused.value))
        assert messages[0] == messages[1]
        server_store.write(lambda tx: sql(tx, "DROP TRIGGER refuse ON tree"))
    assert server_store.read(lambda tx: sql(tx, "SELECT 1 FROM messages")) == []
    server_store.write(changed_late)
    assert server_store.read(tree_version) == 1


WITH_COMMIT = {
    "a deferred statement": "BEFORE UPDATE ON agents",
    "an appended row": "BEFORE INSERT ON messages",
    "the fence": "BEFORE UPDATE ON hosts",
    "COMMIT": "AFTER INSERT ON messages DEFERRABLE INITIALLY DEFERRED",
}
"""The statements of the trip that commits, each with when a trigger refuses it."""


@pytest.mark.parametrize("when", WITH_COMMIT.values(), ids=list(WITH_COMMIT))
def test_an_error_of_any_statement_that_goes_with_commit_is_told_and_leaves_nothing(
    server_store: Store, when: str
) -> None:
    plant(server_store, a="root")

    def refuses(state: str) -> Callable[[Transaction], None]:
        def work(tx: Transaction) -> None:
            constraint = "CONSTRAINT" if "DEFERRED" in when else ""
            fails_at_the_next_change(state)(tx)
            tx.schema.execute("DROP TRIGGER refuse ON tree")
            tx.schema.execute(f"CREATE {constraint} TRIGGER refuse {when} FOR EACH ROW EXECUTE FUNCTION refuse()")

        return work

    def commits(tx: Transaction, at: int = 1) -> None:
        tx.defer("set_turn", uuid="a", turn=at)
        tx.append([("a", at, "user", "text", None, 1, b"")])
        tx.require("set_batch", lambda after: Fenced("no"), host=HOST, last=0, batch=1)

    for state in KINDS.keys() - {"22012"}:  # a division by zero is how the fence itself refuses
        server_store.write(refuses(state))
        with pytest.raises(KINDS[state]):
            server_store.write(commits)
        server_store.write(lambda tx: sql(tx, f"DROP TRIGGER refuse ON {when.split()[3]}"))
        assert (ids(server_store, "a"), record(server_store, "a").turn, batch(server_store)) == ([], 0, 0)
    server_store.write(commits)
    assert (ids(server_store, "a"), record(server_store, "a").turn, batch(server_store)) == ([1], 1, 1)
    with pytest.raises(Fenced):
        server_store.write(partial(commits, at=2))  # its batch is not the next one any more
    assert (ids(server_store, "a"), record(server_store, "a").turn, batch(server_store)) == ([1], 1, 1)


def test_a_deadlock_that_comes_with_commit_has_the_work_run_again(server_store: Store) -> None:
    server_store.write(fails_at_the_next_change("40001"))
    runs = []

    def work(tx: Transaction) -> None:
        runs.append(tx.run("look_at_agent", uuid="a"))
        tree_change(tx)

    with pytest.raises(StoreUnavailable, match="blocking one another"):
        server_store.write(work)
    assert len(runs) == 5


def test_a_text_that_the_server_cannot_hold_keeps_what_comes_before_it_from_being_committed(
    server_store: Store,
) -> None:
    server_store.write(lambda tx: add_agents(tx, a=None))
    for text in ("nul \0", "half \ud800"):

        def work(tx: Transaction, text: str = text) -> None:
            tree_change(tx)
            tx.append([("a", 1, "user", text, None, 1, b"")])

        with pytest.raises(StoreError) as refused:
            server_store.write(work)
        assert type(refused.value) is StoreError
    assert server_store.read(tree_version) == 0
    server_store.write(tree_change)
