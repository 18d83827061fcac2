"""The journal when its store fails: nothing is lost, nothing is written twice, everybody hears what is true."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from ikigai_actors.errors import (
    CommitUnknown,
    IkigaiError,
    OutcomeUnknown,
    StoreConflict,
    StoreUnavailable,
    StoreUnusable,
    SystemClosed,
)
from ikigai_actors.store import Store
from ikigai_actors.store.journal import Committed, Failed, Journal
from ikigai_actors.testing import ManualClock
from tests.kit.databases import DEADLINE, eventually
from tests.kit.faults import FaultyStore
from tests.kit.journals import Answers, Gate, Task, note
from tests.kit.trees import HOST, append, batch, ids, plant

pytestmark = pytest.mark.slow("waits for what a store does not answer")

DOWN = StoreUnavailable("The store is down, as planned.")
GONE = StoreUnusable("The store cannot be used any more, as planned.")


class World:
    """A journal on a store that fails as planned, and everything that it tells anybody."""

    def __init__(self, store: Store) -> None:
        plant(store, a="root", b="root")
        self.store = FaultyStore(store)
        self.clock = ManualClock()
        self.troubles: list[str | None] = []
        self.failures: list[IkigaiError] = []
        self.answers = Answers()
        self.journal = Journal(
            self.store,
            HOST,
            self.clock,
            patience=60,
            capacity=3,
            on_trouble=self.troubles.append,
            on_failure=self.failures.append,
        )

    def submit(self, name: str, agent: str, number: int) -> None:
        self.journal.submit(append(agent, number), self.answers.to(name))


@pytest.fixture
def world(store: Store) -> Iterator[World]:
    world = World(store)
    yield world
    world.store.recovers()
    world.journal.close(DEADLINE)


def test_a_unit_is_committed_though_others_cannot_be_told(world: World) -> None:
    world.store.rings_fail = RuntimeError("can't start new thread")
    world.submit("one", "a", 1)
    world.journal.commit_pending()
    world.submit("two", "a", 2)
    world.journal.commit_pending()
    assert [world.answers["one"], world.answers["two"]] == [Committed(), Committed()]
    assert world.failures == []


def test_a_commit_that_happened_though_its_answer_was_lost_is_not_run_again(world: World, store: Store) -> None:
    runs = note("a", 1, does=lambda tx: "first")
    world.journal.submit(append("a", 2, epoch=7), world.answers.to("refused"))
    world.journal.submit(runs, world.answers.to("committed"))
    world.store.breaks_during_commit(committed=True)
    world.journal.commit_pending()
    assert world.answers["committed"] == Committed("first")
    assert not isinstance(world.answers["refused"], Committed)
    assert (len(runs.locked), ids(store, "a"), batch(store)) == (1, [1], 1)
    assert (world.journal.statistics().batches, world.journal.statistics().units) == (1, 1)


def test_a_commit_that_did_not_happen_is_run_again(world: World, store: Store) -> None:
    runs = note("a", 1)
    world.journal.submit(runs, world.answers.to("committed"))
    world.store.breaks_during_commit(committed=False)
    world.journal.commit_pending()
    assert isinstance(world.answers["committed"], Committed)
    assert (len(runs.locked), ids(store, "a"), batch(store)) == (2, [1], 1)


@pytest.mark.parametrize("committed", [True, False])
def test_a_commit_is_settled_though_the_connection_is_lost_while_asking(
    world: World, store: Store, committed: bool
) -> None:
    world.submit("before", "b", 1)
    world.journal.commit_pending()
    runs = note("a", 1)
    world.journal.submit(runs, world.answers.to("asked"))
    world.store.breaks_during_commit(committed=committed)
    world.store.fails(DOWN)
    world.journal.commit_pending()
    assert isinstance(world.answers["asked"], Committed)
    assert len(runs.locked) == (1 if committed else 2)
    assert (ids(store, "a"), batch(store)) == ([1], 2)


def test_the_batch_after_a_settled_one_has_the_next_number(world: World, store: Store) -> None:
    for number, committed in enumerate((True, False, True), 1):
        world.store.breaks_during_commit(committed=committed)
        world.submit(str(number), "a", number)
        world.journal.commit_pending()
        assert batch(store) == number
    assert ids(store, "a") == [1, 2, 3]


def test_a_unit_that_fails_when_it_is_run_again_fails_alone(world: World, store: Store) -> None:
    world.store.breaks_during_commit(committed=False)
    world.submit("first", "a", 1)
    world.submit("twice", "a", 1)
    world.journal.commit_pending()
    assert world.answers["first"] == Committed()
    assert isinstance(world.answers.error("twice"), StoreConflict)
    assert ids(store, "a") == [1]


def test_while_the_store_is_down_nobody_is_answered_and_then_everything_is_committed(
    world: World, store: Store
) -> None:
    world.store.fails(*[DOWN] * 2)
    world.store.before = lambda: unanswered.append(list(world.answers.order))
    unanswered: list[list[str]] = []
    for number in (1, 2):
        world.submit(f"a{number}", "a", number)
        world.submit(f"b{number}", "b", number)
    world.journal.start()
    assert world.answers["b2"] == Committed()
    assert unanswered == [[]] * 3
    assert world.answers.order == ["a1", "b1", "a2", "b2"]
    assert (ids(store, "a"), ids(store, "b")) == ([1, 2], [1, 2])
    assert world.journal.statistics().retries == 2


def test_trouble_is_reported_once_and_cleared_once(world: World) -> None:
    shown: list[str | None] = []
    world.store.before = lambda: shown.append(world.journal.statistics().trouble)
    world.store.fails(DOWN, DOWN)
    world.submit("one", "a", 1)
    world.journal.commit_pending()
    assert world.troubles == [str(DOWN), None]
    assert shown == [None, str(DOWN), str(DOWN)]
    assert world.journal.statistics().trouble is None
    world.submit("two", "a", 2)
    world.journal.commit_pending()
    assert world.troubles == [str(DOWN), None]


def test_a_store_that_answers_with_a_conflict_is_in_no_trouble(world: World) -> None:
    world.submit("first", "a", 1)
    world.journal.commit_pending()
    world.store.fails(DOWN)
    world.submit("twice", "a", 1)
    world.journal.commit_pending()
    assert isinstance(world.answers.error("twice"), StoreConflict)
    assert world.troubles == [str(DOWN), None]
    assert world.journal.statistics().trouble is None


def test_listeners_with_a_defect_do_not_end_the_journal(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    def broken(news: object) -> None:
        raise ZeroDivisionError

    plant(store, a="root")
    faulty, answers = FaultyStore(store), Answers()
    journal = Journal(faulty, HOST, ManualClock(), on_trouble=broken, on_failure=broken)
    journal.start()
    faulty.fails(DOWN)
    journal.submit(append("a", 1), answers.to("one"))
    assert answers["one"] == Committed()
    faulty.fails(GONE)
    journal.submit(append("a", 2), answers.to("two"))
    journal.submit(append("a", 3), answers.to("three"))
    assert isinstance(answers.error("three"), SystemClosed)
    assert "ZeroDivisionError" in caplog.text
    journal.close(DEADLINE)


def test_a_process_that_was_stopped_in_a_transaction_does_not_give_up_when_it_goes_on(world: World) -> None:
    world.store.before = lambda: world.clock.advance(1_000)
    world.store.fails(DOWN)
    world.submit("one", "a", 1)
    world.journal.commit_pending()
    assert world.answers["one"] == Committed()


def test_when_patience_is_over_everything_fails_once_and_later_submits_fail(world: World, store: Store) -> None:
    world.store.fails(*[DOWN] * 10)
    world.store.before = lambda: world.clock.advance(25)
    world.submit("a1", "a", 1)
    world.journal.submit(Task(alone=True), world.answers.to("alone"))
    world.submit("b1", "b", 1)
    world.journal.commit_pending()
    assert world.answers.order == ["a1", "alone", "b1"]
    assert world.store.writes == 4  # until 75 s have passed since the first failed; the other batches were not tried
    world.store.recovers()
    world.submit("late", "a", 1)
    for name in ("a1", "alone", "b1", "late"):
        assert isinstance(world.answers[name], Failed)
        assert isinstance(world.answers.error(name), SystemClosed)
        assert "as planned" in str(world.answers.error(name))
    with pytest.raises(SystemClosed):
        world.journal.perform(append("a", 1))
    assert world.failures == [DOWN]
    assert world.troubles == [str(DOWN)]
    assert (ids(store, "a"), ids(store, "b"), batch(store)) == ([], [], 0)


def test_patience_begins_anew_with_each_transaction(world: World, store: Store) -> None:
    world.store.before = lambda: world.clock.advance(25)
    for number in (1, 2):
        world.store.fails(DOWN)
        world.submit(str(number), "a", number)
        world.journal.commit_pending()
    assert ids(store, "a") == [1, 2]
    assert world.failures == []


def test_a_store_that_cannot_be_used_any_more_is_given_up_at_once(world: World) -> None:
    world.store.fails(GONE)
    world.submit("one", "a", 1)
    world.journal.commit_pending()
    assert isinstance(world.answers.error("one"), SystemClosed)
    assert world.failures == [GONE]
    assert world.store.writes == 1


def test_callers_that_wait_for_room_hear_that_the_journal_gave_up(world: World) -> None:
    gate = Gate()
    world.store.before = gate.pass_once
    world.store.fails(GONE)
    world.journal.start()
    world.submit("a1", "a", 1)
    assert gate.entered.wait(DEADLINE)
    for number in (1, 2, 3):
        world.submit(f"b{number}", "b", number)
    with ThreadPoolExecutor(1) as outside:
        waiting = outside.submit(world.journal.perform, append("a", 2), DEADLINE)
        eventually(lambda: world.journal.statistics().waiting == 1, "the caller's wait")
        gate.open()
        with pytest.raises(SystemClosed):
            waiting.result(DEADLINE)
    assert world.failures == [GONE]


def test_closing_while_the_store_is_down_tries_once_more_and_then_fails(world: World) -> None:
    world.store.fails(*[DOWN] * 1000)
    world.submit("one", "a", 1)
    closing = threading.Event()
    tries: list[bool] = []
    world.store.before = lambda: tries.append(closing.is_set())
    world.journal.start()
    eventually(lambda: world.journal.statistics().retries, "the first failure")
    world.journal.close(0)  # it has heard so, whenever its next try comes
    closing.set()
    world.journal.close(DEADLINE)
    assert tries.count(True) <= 2
    assert isinstance(world.answers.error("one"), SystemClosed)
    assert world.failures == [DOWN]


def test_closing_while_the_store_comes_back_commits(world: World, store: Store) -> None:
    world.submit("one", "a", 1)
    world.store.fails(DOWN)
    world.journal.close()
    assert world.answers["one"] == Committed()
    assert ids(store, "a") == [1]


@pytest.mark.parametrize("committed", [True, False])
def test_closing_settles_a_commit_whose_answer_was_lost(world: World, store: Store, committed: bool) -> None:
    world.submit("one", "a", 1)
    world.store.breaks_during_commit(committed=committed)
    world.journal.close()
    assert world.answers["one"] == Committed()
    assert ids(store, "a") == [1]
    assert world.failures == []


@pytest.mark.parametrize("committed", [True, False])
def test_a_commit_that_cannot_be_settled_may_or_may_not_be_written_and_says_so(
    world: World, store: Store, committed: bool
) -> None:
    world.store.breaks_during_commit(committed=committed)
    world.store.fails(*[DOWN] * 10)
    world.store.before = lambda: world.clock.advance(25)
    world.submit("in doubt", "a", 1)
    world.journal.submit(Task(alone=True), world.answers.to("behind"))
    world.journal.commit_pending()
    doubt, behind = world.answers.error("in doubt"), world.answers.error("behind")
    assert isinstance(doubt, OutcomeUnknown)
    assert isinstance(doubt, SystemClosed)
    assert isinstance(doubt, CommitUnknown)
    assert "may or may not be written" in str(doubt)
    assert type(behind) is SystemClosed  # it never began
    assert "may or may not" not in str(behind)
    assert ids(store, "a") == ([1] if committed else [])
    assert world.failures == [DOWN]
