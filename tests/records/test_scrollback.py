"""Any part of a history, read without the rest."""

from collections.abc import Callable
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ikigai_actors import ActorSystem, AgentNotFound, OfflineProvider
from ikigai_actors.reach.scrollback import Scrollback
from ikigai_actors.store.base import Row, Store, Transaction
from tests.conftest import NewDatabase
from tests.kit.echo import open_echo
from tests.kit.logs import write_log
from tests.kit.trees import says


def family(system: ActorSystem) -> list[str]:
    """Three generations, with clears, marks, rewinds and settings; returns their uuids, oldest first."""
    root = system.root
    root.configure(model="scripted:one", system="Be brief.")
    root.prompt("first").get(timeout=60)
    child = root.fork(name="child")
    root.prompt("what the child never sees").get(timeout=60)
    child.mark("here")
    child.prompt("second").get(timeout=60)
    child.rewind("here")
    child.configure(model="scripted:two")
    grandchild = child.fork(name="grandchild")
    child.configure(model="scripted:three")
    grandchild.prompt("third").get(timeout=60)
    grandchild.clear()
    grandchild.prompt("fourth").get(timeout=60)
    return [root.uuid, child.uuid, grandchild.uuid]


def test_every_part_is_what_the_whole_history_has_there(database: str) -> None:
    with open_echo(database) as system:
        for uuid in family(system):
            scrollback, whole = Scrollback(system._store, uuid), system.handle(uuid).history(all=True)
            for start in range(len(whole) + 1):
                for end in range(len(whole) + 2):
                    assert scrollback.between(start, end) == whole[start:end]
            assert scrollback.latest(3) == whole[-3:]
            assert scrollback.latest(1_000) == whole
            assert scrollback.before(3, 1) == whole[1:2]
            assert scrollback.before(1, 50) == []


def test_the_settings_are_those_of_the_folded_history(database: str) -> None:
    with open_echo(database) as system:
        for uuid in family(system):
            assert Scrollback(system._store, uuid).settings() == system.handle(uuid).context().settings


def test_a_child_of_a_parent_that_had_said_nothing_sees_nothing_of_it(database: str) -> None:
    with open_echo(database) as system:
        child = system.root.fork()
        system.root.prompt("later").get(timeout=60)
        assert [message.kind for message in Scrollback(system._store, child.uuid).latest(50)] == ["fork"]


def test_an_unknown_agent_is_an_error(database: str) -> None:
    with open_echo(database) as system, pytest.raises(AgentNotFound):
        Scrollback(system._store, "x" * 22)


class Counted:
    """A store that counts the rows which are read."""

    def __init__(self, store: Store) -> None:
        self._store, self.rows = store, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def read(self, work: Callable[[Any], Any]) -> Any:
        """See `Store.read`."""
        return self._store.read(lambda tx: work(CountedRows(self, tx)))


class CountedRows:
    """A transaction of it."""

    def __init__(self, counted: Counted, tx: Transaction) -> None:
        self._counted, self._tx = counted, tx

    def run(self, query: str, **parameters: Any) -> list[Row]:
        """See `Transaction.run`."""
        rows = self._tx.run(query, **parameters)
        self._counted.rows += len(rows)
        return rows


@pytest.mark.slow("takes a tenth of a second")
def test_the_end_of_a_history_costs_the_same_however_much_is_inherited(new_sqlite: NewDatabase) -> None:
    def read(count: int) -> int:
        database = new_sqlite()
        with ActorSystem.open(database, OfflineProvider()) as system:
            log = says(system.root.uuid, *range(1, count + 1))
            system._store.write(lambda tx: write_log(tx, log))
        with ActorSystem.open(database, OfflineProvider()) as system:
            child = system.root.fork()
            store = Counted(system._store)
            scrollback = Scrollback(cast("Store", store), child.uuid)
            assert [message.id for message in scrollback.latest(50)] == list(range(count - 48, count + 2))
            return store.rows

    assert read(100) == read(1_000) < 60


@pytest.mark.slow("takes a second")
@settings(max_examples=40)
@given(depth=st.integers(1, 12), prompts=st.lists(st.integers(0, 3), min_size=12, max_size=12))
def test_a_chain_of_forks_reads_like_its_history(depth: int, prompts: list[int]) -> None:
    with open_echo("sqlite:///:memory:") as system:
        agent = system.root
        for level in range(depth):
            for number in range(prompts[level]):
                agent.prompt(f"{level}.{number}").get(timeout=60)
            agent = agent.fork()
        assert Scrollback(system._store, agent.uuid).latest(1_000) == agent.history(all=True)
