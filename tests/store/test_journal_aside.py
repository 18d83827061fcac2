"""A unit that a worker writes itself: one writer at a time, and the journal's thread goes on behind it."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from ikigai_actors.actors.actor import AsideCall, Dispatcher, PooledActor
from ikigai_actors.actors.threads import current_threads
from ikigai_actors.store.journal import IDLE, CommitResult, Journal
from ikigai_actors.store.migrations import ensure_schema
from ikigai_actors.store.sqlite.store import SQLiteStore
from ikigai_actors.testing import Simulation, simulated
from tests.kit.faults import FaultyStore
from tests.kit.trees import HOST, append, plant


class Workers(Dispatcher):
    """Workers who leave what they are to run aside to the test."""

    def __init__(self) -> None:
        self.aside = list[AsideCall]()
        self.waiting = 0

    def schedule(self, actor: PooledActor) -> None:
        """Run no actor."""

    @property
    def ready(self) -> int:
        return self.waiting

    def step_aside(self, call: AsideCall, name: str) -> bool:
        self.aside.append(call)
        return True

    def close(self) -> None:
        """Do nothing."""


class Table:
    """A journal in a simulation; what it answers stands in `answers`."""

    def __init__(self, world: Simulation, store: FaultyStore) -> None:
        self.world, self.store, self.workers = world, store, Workers()
        self.journal = Journal(store, HOST, world.clock, threads=current_threads())
        self.answers = list[int]()

    def submit(self, number: int) -> None:
        """Hand over a unit, as an actor on a worker does; and let everything happen that can."""

        def done(result: CommitResult) -> None:
            self.answers.append(number)

        self.journal.submit(append("a", number), done, self.workers)
        self.world.settle()


@pytest.fixture
def table() -> Iterator[Table]:
    with simulated() as world, closing(SQLiteStore()) as inner:
        world.open()
        ensure_schema(inner)
        plant(inner, a="root")
        made = Table(world, FaultyStore(inner))
        made.journal.start()
        yield made
        made.journal.close()


def test_what_comes_while_a_worker_writes_is_written_behind_it(table: Table) -> None:
    table.submit(1)
    table.submit(2)
    [aside] = table.workers.aside
    assert table.answers == []
    answer = aside()
    table.world.settle()
    assert table.answers == []
    assert answer is not None
    answer()
    assert table.answers == [1]
    table.world.settle()
    assert table.answers == [1, 2]


def test_a_worker_writes_nothing_itself_while_actors_wait_that_may_share_the_transaction(table: Table) -> None:
    table.workers.waiting = 1
    table.submit(1)
    assert (table.workers.aside, table.answers) == ([], [1])


def test_a_journal_that_closes_waits_for_the_worker_that_writes(table: Table) -> None:
    table.submit(1)
    closing = current_threads().thread(table.journal.close, "closes")
    closing.start()
    table.world.process.threads.sleep(2 * IDLE)
    assert not closing.over  # type: ignore[attr-defined]  # one of the simulation
    [aside] = table.workers.aside
    if answer := aside():
        answer()
    closing.join()
    assert table.answers == [1]


def test_a_file_is_brought_up_to_date_when_workers_have_written_nothing_for_a_moment(table: Table) -> None:
    table.world.process.threads.sleep(2 * IDLE)
    before = table.store.checkpoints
    for number in (1, 2, 3):
        table.submit(number)
        if answer := table.workers.aside.pop()():
            answer()
        table.world.process.threads.sleep(IDLE / 2)
    assert table.store.checkpoints == before
    table.world.process.threads.sleep(2 * IDLE)
    assert table.store.checkpoints == before + 1
