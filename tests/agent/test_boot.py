"""Boot: who comes back, who cannot, and why."""

import gc
import os
import sqlite3

import pytest

from ikigai_actors.actors.garbage import everything_stays
from ikigai_actors.agent.boot import Origin, Survey, Unrestorable, left_cut_off, survey, survey_one
from ikigai_actors.errors import HistoryError
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.registry import PutToSleep, ensure_root, make_root
from ikigai_actors.records.hosts.liveness import leave_cut_off
from ikigai_actors.records.log.chain import HashChain
from ikigai_actors.store import Store, Transaction, open_store
from ikigai_actors.store.hosts.shards import GiveShards
from ikigai_actors.store.migrations import ensure_schema
from ikigai_actors.store.unit import write_alone
from tests.kit.databases import sql
from tests.kit.logs import write_log
from tests.kit.trees import HOST, add, add_host, change, plant, record, says


@pytest.fixture
def family(store: Store) -> Store:
    """Agent 0 with 3 messages and a turn open at 3; "child" forked at 2 and "grandchild" forked at the child's 4; all
    is well. "quiet" has no message of its own, and "dead" is.
    """

    def work(tx: Transaction) -> None:
        add_host(tx)
        make_root(tx, "root", 1)
        tx.run("set_turn", uuid="root", turn=3)
        add(tx, "child", "root", name="dba", fork=2)
        add(tx, "grandchild", "child", fork=4)
        add(tx, "quiet", "grandchild", fork=4)
        add(tx, "heir of quiet", "quiet", fork=4)
        add(tx, "dead", "root", fork=99)
        tx.run("bury", uuids=["dead"], cause="killed", sender=None, reason="test", now=2)
        chain = HashChain()
        for messages in (says("root", 1, 2, 3), says("child", 3, 4), says("grandchild", 5)):
            write_log(tx, messages, chain)

    store.write(work)
    return store


ALL = {
    Origin("root", None, 1, 3, 3),
    Origin("child", "dba", 1, 4, 0),
    Origin("grandchild", None, 1, 5, 0),
    Origin("quiet", None, 1, 4, 0),
    Origin("heir of quiet", None, 1, 4, 0),
}


def woken(store: Store) -> tuple[set[Origin], list[Unrestorable]]:
    """Who comes back, and who cannot, when everybody is woken."""
    everybody = sorted(record.uuid for record in store.read(registry.every))
    surveys = [survey_one(store, HOST, range(64), uuid, resting=False) for uuid in everybody]
    return {origin for each in surveys for origin in each.restored}, [
        casualty for each in surveys for casualty in each.unrestorable
    ]


def test_a_boot_finds_who_has_something_open_and_agent_0(family: Store) -> None:
    assert survey(family, HOST, range(64)).restored == [Origin("root", None, 1, 3, 3)]
    family.write(lambda tx: tx.run("set_turn", uuid="quiet", turn=0))  # it had a turn, which is over
    family.write(lambda tx: tx.run("set_turn", uuid="child", turn=4))
    change(family, "heir of quiet", "status = 'terminating', deadline = 5")
    surveyed = survey(family, HOST, range(64))
    assert {origin.uuid for origin in surveyed.restored} == {"root", "child", "heir of quiet"}
    assert (surveyed.unrestorable, surveyed.gave_up) == ([], False)
    assert survey(family, HOST, range(1, 64)).restored == []  # they are of shard 0
    assert survey(family, "another", range(64)).restored == []


def test_a_boot_says_that_a_supervisor_gave_up_whose_children_sleep(family: Store) -> None:
    change(family, "quiet", "status = 'stopped', exit_reason = 'gave up'")
    surveyed = survey(family, HOST, range(64))
    assert ([origin.uuid for origin in surveyed.restored], surveyed.gave_up) == (["root"], True)


def test_every_living_agent_is_woken_with_its_head_and_its_turn(family: Store) -> None:
    assert woken(family) == (ALL, [])


def test_an_agent_is_woken_by_the_host_of_its_shard_alone(family: Store) -> None:
    assert survey_one(family, "another", range(64), "child", resting=False).restored == []
    assert survey_one(family, HOST, range(1, 64), "child", resting=False).restored == []
    assert [origin.uuid for origin in survey_one(family, HOST, [0], "child", resting=True).restored] == ["child"]
    assert survey_one(family, HOST, [0], "root", resting=True).restored == []  # its turn is open


def test_marks_are_cleared_of_those_alone_that_rest(family: Store) -> None:
    family.write(lambda tx: [tx.run("set_turn", uuid=uuid, turn=0) for uuid in ("child", "quiet")])
    change(family, "grandchild", "awake = 1, held_at = 5")
    assert write_alone(family, PutToSleep("another", ["child"])) == 1  # it is not that one's
    assert write_alone(family, PutToSleep(HOST, ["root", "grandchild"])) == 2  # something of them is open
    assert write_alone(family, PutToSleep(HOST)) == 2
    marked = family.read(lambda tx: sql(tx, "SELECT uuid FROM agents WHERE awake = 1 ORDER BY uuid"))
    assert [uuid for (uuid,) in marked] == ["grandchild", "root"]
    assert write_alone(family, PutToSleep(HOST)) == 0


def test_children_of_the_dead_come_back(family: Store) -> None:
    family.write(lambda tx: tx.run("bury", uuids=["child"], cause="killed", sender=None, reason="test", now=2))
    restored, unrestorable = woken(family)
    assert {origin.uuid for origin in restored} == {"root", "grandchild", "quiet", "heir of quiet"}
    assert unrestorable == []


@pytest.mark.parametrize(
    ("agent", "wrong", "reason"),
    [
        ("grandchild", "fork_message_id = 6", "it was forked at message 6 of child, whose log ends at 4"),
        ("child", "fork_message_id = 3", None),
        ("heir of quiet", "fork_message_id = 5", "it was forked at message 5 of quiet, whose log ends at 4"),
        ("grandchild", "turn = 6", "its open turn began with message 6, which is not in its log"),
        ("grandchild", "turn = 4", "its open turn began with message 4, which is not in its log"),
        ("grandchild", "turn = -1", "its open turn began with message -1, which is not in its log"),
        ("quiet", "turn = 4", "its open turn began with message 4, which is not in its log"),
    ],
)
def test_an_agent_with_wrong_rows_is_a_casualty_and_the_others_come_back(
    family: Store, agent: str, wrong: str, reason: str | None
) -> None:
    change(family, agent, wrong)
    restored, unrestorable = woken(family)
    if reason is None:  # a hole shows only in the log
        assert unrestorable == []
        return
    assert unrestorable == [Unrestorable(agent, f"could not be restored: {reason}")]
    assert restored == {record for record in ALL if record.uuid != agent}
    assert record(family, agent).status == "running"  # nobody is buried here


def test_a_log_that_ends_before_its_fork_point_is_a_casualty(family: Store) -> None:
    family.write(lambda tx: sql(tx, "UPDATE messages SET id = 2 WHERE agent_uuid = 'grandchild'"))
    restored, unrestorable = woken(family)
    assert unrestorable == [
        Unrestorable("grandchild", "could not be restored: its log ends at 2, before its fork point 4"),
        Unrestorable("quiet", "could not be restored: it was forked at message 4 of grandchild, whose log ends at 2"),
    ]
    assert {origin.uuid for origin in restored} == {"root", "child", "heir of quiet"}


def test_an_agent_whose_parent_is_missing_is_a_casualty(durable: str) -> None:
    store = open_store(durable)
    ensure_schema(store)
    plant(store, a="root", b="a")
    remove(durable, store, "a")
    restored, unrestorable = woken(store)
    assert unrestorable == [Unrestorable("b", "could not be restored: its parent a is missing")]
    assert [origin.uuid for origin in restored] == ["root"]
    store.close()


def remove(url: str, store: Store, agent: str) -> None:
    """Delete a row that others refer to, which no program of ours can."""
    delete = f"DELETE FROM agents WHERE uuid = '{agent}'"
    if url.startswith("sqlite:///"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))  # without the foreign keys that ours turns on
        connection.execute(delete)
        connection.commit()
        connection.close()
        return

    def unchecked(tx: Transaction) -> None:
        sql(tx, "SET LOCAL session_replication_role = replica")
        sql(tx, delete)

    store.write(unchecked)


@pytest.mark.parametrize("wrong", ["turn = 4", "fork_message_id = 3", "status = 'dead', ended_at = 5"])
def test_an_agent_0_with_wrong_rows_is_an_error(family: Store, wrong: str) -> None:
    change(family, "root", wrong)
    with pytest.raises(HistoryError, match="Agent 0"):
        survey(family, HOST, range(64))


def test_agent_0_is_made_when_there_is_none_and_found_when_there_is(store: Store) -> None:
    store.write(add_host)
    ensure_root(store, os.urandom, 7)
    [root] = survey(store, HOST, range(64)).restored
    assert record(store, root.uuid).created_at == 7
    assert record(store, root.uuid).owner == HOST
    ensure_root(store, os.urandom, 8)
    assert survey(store, HOST, range(64)).restored == [root]


@pytest.mark.parametrize("collecting", [True, False])
def test_a_boot_leaves_the_garbage_collector_as_it_was(collecting: bool) -> None:
    before = gc.isenabled()
    (gc.enable if collecting else gc.disable)()
    try:
        with everything_stays():
            assert not gc.isenabled()
        assert gc.isenabled() is collecting
        with pytest.raises(ValueError, match="planted"), everything_stays():
            raise ValueError("planted")
        assert gc.isenabled() is collecting
    finally:
        (gc.enable if before else gc.disable)()


def test_a_host_leaves_what_comes_no_further_or_all_and_marks_it(family: Store) -> None:
    def look() -> Survey:
        return survey(family, HOST, range(64))

    def left(*, resume: bool) -> list[str]:
        return left_cut_off(look(), resume)

    assert (left(resume=True), left(resume=False)) == ([], ["root"])
    for times in (2, 3):  # the next time that it is cut off
        family.write(lambda tx: tx.run("go_on_cut_off", uuid="root", at=3))
        assert next(origin.cut_offs for origin in look().restored if origin.uuid == "root") == times
    assert left(resume=True) == ["root"]
    leave_cut_off(family, HOST, left(resume=True), 5)
    assert record(family, "root").cut_off == 3
    leave_cut_off(family, "another", ["child"], 5)
    family.write(lambda tx: tx.run("go_on_cut_off", uuid="root", at=2))  # it had come to another message then
    assert (left(resume=True), record(family, "root").cut_off) == ([], 0)
    family.write(lambda tx: tx.run("go_on_cut_off", uuid="root", at=3))
    assert left(resume=True) == []  # the count has begun again


def test_who_is_given_to_another_host_was_not_cut_off(family: Store) -> None:
    for _ in range(2):
        family.write(lambda tx: tx.run("go_on_cut_off", uuid="root", at=3))
    family.write(lambda tx: add_host(tx, "taker"))
    shard = record(family, "root").shard
    write_alone(family, GiveShards((shard,), HOST, "taker"))
    assert family.read(lambda tx: sql(tx, "SELECT resumes FROM agents WHERE uuid = 'root'")) == [(0,)]
