"""The journal: what is shared, what is alone, who hears what. Faults of the store are in test_journal_faults.py."""

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ikigai_actors.actors.clock import SystemClock
from ikigai_actors.actors.futures import TimedOut
from ikigai_actors.errors import AgentStopped, Fenced, IkigaiError, StoreConflict, StoreError, SystemClosed
from ikigai_actors.records.agents.registry import Rename
from ikigai_actors.store import Store, Transaction
from ikigai_actors.store.journal import CommitResult, Committed, Failed, Journal, Refused
from ikigai_actors.store.unit import Locked
from tests.kit.databases import DEADLINE, eventually, sql, tree_version
from tests.kit.journals import Answers, Gate, Task, note
from tests.kit.trees import HOST, append, batch, fork, ids, plant, stop

AGENTS = ("a", "b", "c", "d")


@pytest.fixture
def journals(store: Store) -> Iterator[Callable[..., Journal]]:
    """Makes journals over a tree of "root" with children a, b, c, d; closes what was started."""
    plant(store, **dict.fromkeys(AGENTS, "root"))
    made: list[Journal] = []

    def make(**options: Any) -> Journal:
        made.append(Journal(store, HOST, SystemClock(), **options))
        return made[-1]

    yield make
    for journal in made:
        journal.close(DEADLINE)


@pytest.fixture
def journal(journals: Callable[..., Journal]) -> Journal:
    """A journal that was not started: a test writes what is queued with `commit_pending`."""
    return journals()


def defect(tx: Transaction) -> None:
    raise ZeroDivisionError("a defect")


def refusal(tx: Transaction) -> None:
    raise AgentStopped("It is stopped.", "a")


def bad_statement(tx: Transaction) -> None:
    sql(tx, "INSERT INTO agents (uuid) VALUES (NULL)")


@pytest.mark.slow("takes half a second")
def test_many_units_share_a_transaction(journal: Journal, store: Store) -> None:
    answers = Answers()
    for number in range(1, 251):
        for agent in AGENTS:
            journal.submit(append(agent, number), answers.to(f"{agent}{number}"))
    assert journal.statistics().queued == 1000
    journal.commit_pending()
    assert len(answers.order) == 1000
    assert journal.statistics().units == 1000
    assert journal.statistics().batches == 1
    assert journal.statistics().queued == 0
    assert [ids(store, agent) for agent in AGENTS] == [list(range(1, 251))] * 4


def test_units_that_come_during_a_transaction_share_the_next_one(journal: Journal) -> None:
    gate, answers = Gate(), Answers()
    journal.start()
    journal.submit(Task(gate), answers.to("gate"))
    assert gate.entered.wait(DEADLINE)
    for number in range(1, 101):
        journal.submit(append("a", number), answers.to(str(number)))
    gate.open()
    assert answers["100"] == Committed()
    assert journal.statistics().batches == 2


def test_units_of_several_threads_keep_the_order_of_each(journal: Journal, store: Store) -> None:
    answers = Answers()
    journal.start()

    def submit(agent: str) -> None:
        for number in range(1, 101):
            journal.submit(append(agent, number), answers.to(f"{agent} {number}"))

    with ThreadPoolExecutor(len(AGENTS)) as threads:
        for done in [threads.submit(submit, agent) for agent in AGENTS]:
            done.result(DEADLINE)
    for agent in AGENTS:
        assert answers[f"{agent} 100"] == Committed()
        heard = [name for name in answers.order if name.startswith(agent)]
        assert heard == [f"{agent} {number}" for number in range(1, 101)]
        assert ids(store, agent) == list(range(1, 101))


def test_a_refusal_is_an_answer_and_the_units_beside_it_are_committed(journal: Journal, store: Store) -> None:
    answers = Answers()
    stop(store, "c")
    journal.submit(append("a", 1), answers.to("good"))
    journal.submit(append("b", 1, epoch=7), answers.to("fenced"))
    journal.submit(fork("c", "child"), answers.to("stopped"))
    journal.submit(append("d", 1), answers.to("good too"))
    journal.commit_pending()
    assert answers.order == ["good", "fenced", "stopped", "good too"]
    assert answers["good"] == answers["good too"] == Committed()
    assert isinstance(answers["fenced"], Refused)
    assert isinstance(answers.error("fenced"), Fenced)
    assert isinstance(answers["stopped"], Refused)
    assert [ids(store, agent) for agent in (*AGENTS, "child")] == [[1], [], [], [1], []]
    assert (journal.statistics().batches, journal.statistics().units) == (1, 2)


def test_a_unit_that_fails_fails_alone(journal: Journal, store: Store) -> None:
    answers = Answers()
    journal.submit(append("a", 1), answers.to("first"))
    journal.commit_pending()
    journal.submit(append("b", 1), answers.to("before"))
    journal.submit(append("a", 1), answers.to("twice"))
    journal.submit(append("c", 1), answers.to("after"))
    journal.submit(append("c", 2), answers.to("later"))
    journal.commit_pending()
    assert answers.order == ["first", "before", "twice", "after", "later"]
    assert isinstance(answers["twice"], Failed)
    assert isinstance(answers.error("twice"), StoreConflict)
    assert [answers[name] for name in ("before", "after", "later")] == [Committed()] * 3
    assert [ids(store, agent) for agent in AGENTS] == [[1], [1], [1, 2], []]


@pytest.mark.parametrize("does", [defect, bad_statement])
def test_a_unit_that_raises_fails_alone_and_leaves_nothing(
    journal: Journal, store: Store, caplog: pytest.LogCaptureFixture, does: Callable[[Transaction], None]
) -> None:
    answers = Answers()

    def writes_then(tx: Transaction) -> None:
        tx.run("set_turn", uuid="b", turn=5)
        does(tx)

    journal.submit(append("a", 1), answers.to("before"))
    journal.submit(note("b", 1, does=writes_then), answers.to("bad"))
    journal.submit(append("c", 1), answers.to("after"))
    with caplog.at_level(logging.CRITICAL if does is bad_statement else logging.ERROR):
        journal.commit_pending()
    assert answers.order == ["before", "bad", "after"]
    assert answers["before"] == answers["after"] == Committed()
    assert isinstance(answers.error("bad"), StoreError)
    assert ("ZeroDivisionError" in str(answers.error("bad"))) is (does is defect)
    assert store.read(lambda tx: sql(tx, "SELECT turn FROM agents WHERE uuid = 'b'")) == [(0,)]
    assert [ids(store, agent) for agent in AGENTS] == [[1], [], [1], []]


def test_a_unit_that_must_be_alone_is_alone(journal: Journal) -> None:
    answers, together = Answers(), Answers()
    seen: list[list[str]] = []

    def queue(name: str, alone: bool) -> None:
        def does(tx: Transaction) -> None:
            if not transactions or transactions[-1] is not tx:
                transactions.append(tx)
                seen.append([])
            seen[-1].append(name)

        journal.submit(Task(does, alone=alone), answers.to(name))

    transactions: list[Transaction] = []
    for name, alone in {"a": False, "b": False, "C": True, "D": True, "e": False, "F": True, "g": False}.items():
        queue(name, alone)
    journal.commit_pending()
    assert seen == [["a", "b"], ["C"], ["D"], ["e"], ["F"], ["g"]]
    assert answers.order == ["a", "b", "C", "D", "e", "F", "g"]
    assert journal.statistics().batches == 6
    assert together.order == []


def test_the_trees_row_is_taken_once_by_units_that_need_the_tree_for_themselves(journal: Journal, store: Store) -> None:
    answers = Answers()
    journal.submit(append("a", 1), answers.to("append"))
    journal.submit(fork("b", "child of b"), answers.to("fork"))
    journal.commit_pending()
    assert store.read(tree_version) == 0
    journal.submit(fork("c", "child of c"), answers.to("fork too"))
    journal.submit(Rename("b", "bert", 9), answers.to("name"))
    journal.submit(Rename("c", "carl", 9), answers.to("name too"))
    journal.commit_pending()
    assert store.read(tree_version) == 1
    assert [type(answers[name]) for name in answers.order] == [Committed] * 5


def test_the_rows_of_all_touched_agents_are_locked_before_any_unit_runs(journal: Journal) -> None:
    answers, unit, other = Answers(), note("a", 1), Task(touches=("b", "nobody"))
    journal.submit(unit, answers.to("one"))
    journal.submit(other, answers.to("other"))
    journal.commit_pending()
    [locked] = unit.locked
    assert locked == other.locked[0]
    assert locked == {uuid: Locked(uuid, "running", HOST, 1) for uuid in "ab"}


def test_each_transaction_writes_its_number_into_the_hosts_row(journal: Journal, store: Store) -> None:
    answers = Answers()
    for number in (1, 2, 3):
        journal.submit(append("a", number), answers.to(str(number)))
        journal.commit_pending()
        assert batch(store) == journal.statistics().batches == number
    journal.submit(Task(bad_statement), answers.to("bad"))
    journal.commit_pending()
    assert batch(store) == journal.statistics().batches == 3


@pytest.mark.parametrize("lost", ["UPDATE hosts SET batch = 1", "UPDATE shards SET host = NULL; DELETE FROM hosts"])
def test_a_database_that_lost_what_its_host_wrote_takes_nothing_more(
    journals: Callable[..., Journal], store: Store, lost: str
) -> None:
    ends: list[IkigaiError] = []
    journal, answers = journals(on_failure=ends.append), Answers()
    for number in (1, 2):
        journal.submit(append("a", number), answers.to(str(number)))
        journal.commit_pending()
    store.write(lambda tx: [sql(tx, statement) for statement in lost.split(";")])  # as an older copy has it
    journal.submit(append("a", 3), answers.to("3"))
    journal.commit_pending()
    assert ids(store, "a") == [1, 2]
    assert isinstance(answers.error("3"), SystemClosed)
    assert [type(end) for end in ends] == [Fenced]
    assert "has lost what this host has written" in str(ends[0])


def test_a_callback_with_a_defect_does_not_end_the_journal(journal: Journal, caplog: pytest.LogCaptureFixture) -> None:
    answers = Answers()

    def broken(verdict: CommitResult) -> None:
        raise ZeroDivisionError

    journal.start()
    journal.submit(append("a", 1), broken)
    journal.submit(append("a", 2), answers.to("next"))
    assert answers["next"] == Committed()
    assert "ZeroDivisionError" in caplog.text


def test_the_answer_of_a_unit_that_concerns_others_is_handed_over_before_the_unit_is_answered(
    journals: Callable[..., Journal],
) -> None:
    order: list[object] = []
    journal = journals(on_commit=order.append)
    for answer, concerns_others in (("mail", True), ("nobody's business", False), ("death", True)):
        unit = Task(lambda tx, answer=answer: answer, concerns_others=concerns_others)  # type: ignore[misc]
        journal.submit(unit, order.append)
    journal.commit_pending()
    assert order == ["mail", Committed("mail"), Committed("nobody's business"), "death", Committed("death")]


@pytest.mark.parametrize("does", [refusal, defect])
def test_nothing_is_handed_over_of_a_unit_that_is_not_committed(
    journals: Callable[..., Journal], does: Callable[[Transaction], None]
) -> None:
    handed_over: list[object] = []
    journal, answers = journals(on_commit=handed_over.append), Answers()
    journal.submit(Task(does, concerns_others=True), answers.to("one"))
    journal.commit_pending()
    assert answers.error("one")
    assert handed_over == []


def test_a_unit_is_answered_though_whoever_follows_the_commits_has_a_defect(
    journals: Callable[..., Journal], caplog: pytest.LogCaptureFixture
) -> None:
    def broken(answer: object) -> None:
        raise ZeroDivisionError

    journal, answers = journals(on_commit=broken), Answers()
    journal.submit(Task(concerns_others=True), answers.to("one"))
    journal.commit_pending()
    assert answers["one"] == Committed("nothing")
    assert "ZeroDivisionError" in caplog.text


def test_perform_gives_up_waiting_after_its_timeout_and_the_unit_may_still_be_committed(
    journal: Journal, store: Store
) -> None:
    gate, answers = Gate(), Answers()
    journal.start()
    journal.submit(Task(gate), answers.to("gate"))
    assert gate.entered.wait(DEADLINE)
    with pytest.raises(TimedOut):
        journal.perform(append("a", 1), timeout=0)
    gate.open()
    assert journal.perform(append("a", 2), timeout=DEADLINE) is None
    assert ids(store, "a") == [1, 2]


def test_a_full_queue_makes_outside_callers_wait_and_actors_never(journals: Callable[..., Journal]) -> None:
    journal, gate, answers = journals(capacity=2), Gate(), Answers()
    journal.start()
    journal.submit(Task(gate), answers.to("gate"))
    assert gate.entered.wait(DEADLINE)
    for number in (1, 2):
        journal.submit(append("a", number), answers.to(str(number)))
    assert journal.statistics().waits == 0
    with ThreadPoolExecutor(1) as outside:
        waiting = outside.submit(journal.perform, append("b", 1), DEADLINE)
        eventually(lambda: journal.statistics().waiting == 1, "the caller's wait")
        journal.submit(append("a", 3), answers.to("3"))
        assert journal.statistics().queued == 3  # the actor's unit, not the waiting caller's
        with pytest.raises(TimedOut, match="2 units wait"):
            journal.perform(append("c", 1), timeout=0)
        gate.open()
        assert waiting.result(DEADLINE) is None
    assert answers["3"] == Committed()
    statistics = journal.statistics()
    assert (statistics.waits, statistics.waiting, statistics.capacity) == (2, 0, 2)
    assert statistics.units == 5  # what timed out for want of room was never queued


@pytest.mark.sample(3, "a database each")
@pytest.mark.parametrize("started", [True, False])
def test_closing_writes_what_was_accepted(journal: Journal, store: Store, started: bool) -> None:
    gate, answers = Gate(), Answers()
    if started:
        journal.start()
        journal.submit(Task(gate), answers.to("gate"))
        assert gate.entered.wait(DEADLINE)
    for number in range(1, 501):
        journal.submit(append("a", number), answers.to(str(number)))
    closing = threading.Thread(target=journal.close)
    closing.start()
    gate.open()
    closing.join(DEADLINE)
    assert not closing.is_alive()
    assert answers["500"] == Committed()
    assert len(ids(store, "a")) == 500


def test_after_closing_every_unit_fails(journal: Journal, store: Store) -> None:
    answers = Answers()
    journal.start()
    journal.close()
    journal.close()
    journal.submit(append("a", 1), answers.to("late"))
    assert isinstance(answers["late"], Failed)
    assert isinstance(answers.error("late"), SystemClosed)
    with pytest.raises(SystemClosed):
        journal.perform(append("a", 1))
    assert ids(store, "a") == []


def test_closing_lets_a_caller_that_waits_for_room_hear_of_it(journals: Callable[..., Journal]) -> None:
    journal, gate, answers = journals(capacity=1), Gate(), Answers()
    journal.start()
    journal.submit(Task(gate), answers.to("gate"))
    assert gate.entered.wait(DEADLINE)
    journal.submit(append("a", 1), answers.to("accepted"))
    with ThreadPoolExecutor(2) as threads:
        waiting = threads.submit(journal.perform, append("b", 1), DEADLINE)
        eventually(lambda: journal.statistics().waiting == 1, "the caller's wait")
        closing = threads.submit(journal.close)
        with pytest.raises(SystemClosed):
            waiting.result(DEADLINE)
        gate.open()
        closing.result(DEADLINE)
    assert answers["accepted"] == Committed()
