"""Units: what may be written, and what is refused before anything is."""

import pytest

from ikigai_actors.actors.clock import SystemClock
from ikigai_actors.errors import (
    AgentDead,
    AgentNotFound,
    AgentStopped,
    Fenced,
    IkigaiError,
    NameTaken,
    RootProtected,
    StoreConflict,
)
from ikigai_actors.records.agents.registry import Touch
from ikigai_actors.records.lives.deaths import WriteDeath
from ikigai_actors.records.log.append import StoppedBefore
from ikigai_actors.store import Store
from ikigai_actors.store.journal import Committed, Journal, Refused
from ikigai_actors.store.unit import Unit
from tests.kit import trees
from tests.kit.databases import sql
from tests.kit.journals import Answers
from tests.kit.trees import HOST, append, change, fork, ids, plant, record, stop


class Desk:
    """A tree root > a > b > c, and d beside a; and a journal that writes at once."""

    def __init__(self, store: Store) -> None:
        plant(store, a="root", b="a", c="b", d="root")
        self.store = store
        self._journal = Journal(store, HOST, SystemClock())

    def write(self, *units: Unit) -> Answers:
        """Write units in one batch; they are named "0", "1", …"""
        answers = Answers()
        for number, unit in enumerate(units):
            self._journal.submit(unit, answers.to(str(number)))
        self._journal.commit_pending()
        return answers

    def accepts(self, unit: Unit) -> None:
        """Write a unit that must be committed."""
        assert isinstance(self.write(unit)["0"], Committed)

    def refuses(self, unit: Unit, error: type[IkigaiError]) -> IkigaiError:
        """Write a unit that must be refused; returns why."""
        verdict = self.write(unit)["0"]
        assert isinstance(verdict, Refused)
        assert type(verdict.error) is error
        return verdict.error

    def supervisors(self) -> dict[str, str | None]:
        """Who looks after whom, among the living."""
        return {agent.uuid: agent.supervisor_uuid for agent in self.store.read(trees.living)}


@pytest.fixture
def desk(store: Store) -> Desk:
    return Desk(store)


def test_an_owner_appends_and_opens_and_closes_its_turn(desk: Desk) -> None:
    desk.accepts(append("a", 1, turn=1))
    assert record(desk.store, "a").turn == 1
    desk.accepts(append("a", 2, 3))
    assert record(desk.store, "a").turn == 1
    desk.accepts(append("a", 4, turn=0))
    assert record(desk.store, "a").turn == 0
    assert ids(desk.store, "a") == [1, 2, 3, 4]


def test_a_living_agent_may_write_its_log(desk: Desk) -> None:
    for position, status in enumerate(("running", "stopped", "terminating"), 1):
        stop(desk.store, "a", status)
        desk.accepts(append("a", position))


def test_a_dead_agent_is_fenced_whatever_its_epoch(desk: Desk) -> None:
    desk.accepts(WriteDeath("d", HOST, "test", 5))
    for epoch in (1, 2):
        assert "dead" in str(desk.refuses(append("d", 1, epoch=epoch, turn=1), Fenced))
    assert (ids(desk.store, "d"), record(desk.store, "d").turn) == ([], 0)


def test_another_host_is_fenced(desk: Desk) -> None:
    error = desk.refuses(append("a", 1, host="host 2", turn=1), Fenced)
    assert getattr(error, "agent", "") == "a"
    assert (ids(desk.store, "a"), record(desk.store, "a").turn) == ([], 0)


def test_another_epoch_is_fenced(desk: Desk) -> None:
    for epoch in (0, 2, 99):
        desk.refuses(append("a", 1, epoch=epoch), Fenced)
        assert ids(desk.store, "a") == []


def test_an_unknown_agent_is_refused(desk: Desk) -> None:
    desk.refuses(append("nobody", 1), AgentNotFound)
    desk.refuses(fork("nobody", "child"), AgentNotFound)


def test_a_second_writer_of_a_position_hits_the_primary_key(desk: Desk) -> None:
    desk.accepts(append("a", 1, 2))
    answers = desk.write(append("a", 2, 3, turn=2), append("b", 1))
    assert type(answers.error("0")) is StoreConflict
    assert answers["1"] == Committed()
    assert (ids(desk.store, "a"), record(desk.store, "a").turn) == ([1, 2], 0)


def test_a_birth_writes_the_childs_row_and_both_logs_at_once(desk: Desk) -> None:
    desk.accepts(append("a", 1, 2))
    desk.accepts(fork("a", "child", 3, name="dba"))
    child = record(desk.store, "child")
    assert (child.name, child.parent_uuid, child.supervisor_uuid) == ("dba", "a", "a")
    assert (child.fork_message_id, child.status, child.owner, child.epoch) == (2, "running", HOST, 1)
    assert (ids(desk.store, "a"), ids(desk.store, "child")) == ([1, 2, 3], [3])
    desk.accepts(append("child", 4))


def test_a_parent_that_is_not_running_bears_no_child(desk: Desk) -> None:
    for status, error in (("stopped", StoppedBefore), ("terminating", AgentStopped)):
        stop(desk.store, "a", status)
        assert status in str(desk.refuses(fork("a", "child"), error))
        assert (ids(desk.store, "a"), ids(desk.store, "child")) == ([], [])
        assert "child" not in desk.supervisors()


def test_a_dead_parent_and_one_of_another_host_bear_no_child(desk: Desk) -> None:
    desk.accepts(WriteDeath("d", HOST, "test", 5))
    desk.refuses(fork("d", "child"), Fenced)
    desk.refuses(fork("a", "child", host="host 2"), Fenced)
    desk.refuses(fork("a", "child", epoch=2), Fenced)
    assert "child" not in desk.supervisors()


def test_a_name_is_taken_while_its_owner_lives_and_free_after_its_death(desk: Desk) -> None:
    desk.accepts(fork("a", "first", 1, name="dba"))
    error = desk.refuses(fork("b", "second", 1, name="dba"), NameTaken)
    assert "'dba'" in str(error)
    assert (ids(desk.store, "b"), ids(desk.store, "second")) == ([], [])
    desk.accepts(WriteDeath("first", HOST, "test", 5))
    desk.accepts(fork("b", "second", 1, name="dba"))
    assert record(desk.store, "first").name == record(desk.store, "second").name == "dba"


def test_of_two_births_with_one_name_in_one_batch_the_first_wins(desk: Desk) -> None:
    answers = desk.write(
        fork("a", "first", name="dba"), fork("b", "second", name="dba"), fork("c", "third"), fork("d", "fourth")
    )
    assert isinstance(answers["1"], Refused)
    assert isinstance(answers.error("1"), NameTaken)
    assert [answers[name] for name in ("0", "2", "3")] == [Committed()] * 3
    assert {"first", "third", "fourth"} < desk.supervisors().keys()
    assert ids(desk.store, "b") == []


def test_a_uuid_that_exists_is_a_conflict_and_its_parent_writes_nothing(desk: Desk) -> None:
    answers = desk.write(fork("a", "b"), append("d", 1))
    assert type(answers.error("0")) is StoreConflict
    assert (ids(desk.store, "a"), ids(desk.store, "d")) == ([], [1])


def test_a_burial_marks_the_agent_dead_and_writes_no_log(desk: Desk) -> None:
    desk.accepts(append("b", 1, turn=1))
    desk.accepts(WriteDeath("b", HOST, "wrong rows", 77))
    dead = record(desk.store, "b")
    assert (dead.status, dead.exit_reason, dead.ended_at, dead.turn, dead.epoch) == ("dead", "wrong rows", 77, 0, 2)
    assert (dead.parent_uuid, dead.supervisor_uuid) == ("a", "a")
    assert desk.store.read(lambda tx: sql(tx, "SELECT COUNT(*) FROM messages")) == [(1,)]


def test_a_host_does_not_bury_what_another_one_owns(desk: Desk) -> None:
    assert "another host" in str(desk.refuses(WriteDeath("b", "somebody else", "test", 5), Fenced))
    assert record(desk.store, "b").status == "running"


def test_the_children_of_the_dead_go_to_the_nearest_living_supervisor(desk: Desk) -> None:
    desk.accepts(fork("b", "c2"))
    desk.accepts(WriteDeath("b", HOST, "test", 5))
    assert desk.supervisors() == {"root": None, "a": "root", "d": "root", "c": "a", "c2": "a"}
    desk.accepts(WriteDeath("a", HOST, "test", 6))
    assert desk.supervisors() == {"root": None, "d": "root", "c": "root", "c2": "root"}
    assert record(desk.store, "c").parent_uuid == "b"  # the lineage stays
    assert record(desk.store, "b").supervisor_uuid == "a"  # and so does what the dead had


def test_the_dead_children_of_the_dead_stay_where_they_were(desk: Desk) -> None:
    desk.accepts(WriteDeath("c", HOST, "test", 5))
    desk.accepts(WriteDeath("b", HOST, "test", 6))
    assert record(desk.store, "c").supervisor_uuid == "b"


def test_an_adopted_child_goes_with_its_supervisor_not_with_its_parent(desk: Desk) -> None:
    change(desk.store, "c", "supervisor_uuid = 'd'")
    desk.accepts(WriteDeath("b", HOST, "test", 5))
    assert desk.supervisors()["c"] == "d"
    desk.accepts(WriteDeath("d", HOST, "test", 6))
    assert desk.supervisors()["c"] == "root"


def test_who_cannot_be_buried_is_refused_and_nothing_is_changed(desk: Desk) -> None:
    desk.accepts(WriteDeath("b", HOST, "test", 5))
    before = [record(desk.store, uuid) for uuid in ("root", "a", "b", "c", "d")]
    desk.refuses(WriteDeath("root", HOST, "test", 6), RootProtected)
    desk.refuses(WriteDeath("b", HOST, "again", 6), AgentDead)
    desk.refuses(WriteDeath("nobody", HOST, "test", 6), AgentNotFound)
    assert [record(desk.store, uuid) for uuid in ("root", "a", "b", "c", "d")] == before


def test_what_the_dead_still_submit_in_the_same_batch_is_fenced(desk: Desk) -> None:
    answers = desk.write(
        append("b", 1), WriteDeath("b", HOST, "test", 5), append("b", 2), fork("b", "child", 2), append("d", 1)
    )
    assert answers["0"] == answers["4"] == Committed()
    assert isinstance(answers["1"], Committed)
    assert isinstance(answers.error("2"), Fenced)
    assert isinstance(answers.error("3"), Fenced)
    assert (ids(desk.store, "b"), ids(desk.store, "d")) == ([1], [1])


def test_a_touch_remembers_who_was_looked_at(desk: Desk) -> None:
    desk.accepts(Touch("a", 99))
    assert record(desk.store, "a").active_at == 99
    assert record(desk.store, "b").active_at == 0
