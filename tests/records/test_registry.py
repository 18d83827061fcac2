"""The registry: who is found, and in what order."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import fields
from functools import partial

import pytest

from ikigai_actors.errors import AgentNotFound, AmbiguousAgent, HistoryError
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.identity import PREFIX_LENGTH
from ikigai_actors.records.agents.registry import AgentRecord, make_root
from ikigai_actors.records.agents.words import words_of
from ikigai_actors.records.lives.deaths import Relative
from ikigai_actors.records.log.append import FIRST_EPOCH
from ikigai_actors.store import Row, Store, Transaction
from ikigai_actors.store.migrations import schema_script
from ikigai_actors.store.queries import for_sqlite
from ikigai_actors.store.unit import Locked
from tests.kit import trees
from tests.kit.databases import sql
from tests.kit.trees import add, add_host, change, plant

ABCD1, ABCD2, ABCE = (prefix + "x" * (22 - len(prefix)) for prefix in ("abcd1", "abcd2", "abce"))
ODD = "a_b-cdefghijklmnopqrst"
"""A uuid with both signs of base64url; for LIKE, "_" would be any letter."""
UNODD = "aXb-cdefghijklmnopqrst"


def uuid_of(store: Store, text: str) -> str:
    return store.read(lambda tx: registry.find(tx, text)).uuid


def add_all(store: Store, uuids: list[str]) -> None:
    def work(tx: Transaction) -> None:
        for uuid in uuids:
            add(tx, uuid, "root")

    store.write(work)


def names(records: list[AgentRecord]) -> list[str]:
    return [record.uuid for record in records]


@pytest.fixture
def zoo(store: Store) -> Store:
    """Agents with telling uuids, one of them dead, some with names."""

    def work(tx: Transaction) -> None:
        add_host(tx)
        make_root(tx, ABCD1, 1)
        add(tx, ABCD2, ABCD1, name="dba")
        add(tx, ABCE, ABCD1, name="Müller")
        add(tx, ODD, ABCD1, name="abcd")
        add(tx, UNODD, ABCD1, name="ghost")
        tx.run("bury", uuids=[UNODD], cause="killed", sender=None, reason="test", now=2)

    store.write(work)
    return store


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("root", [field.name for field in fields(AgentRecord)]),
        ("agent_0", Relative._fields),
        ("lock_agents", Locked._fields),
        ("lock_dying", Locked._fields[:-1]),
        ("look_at_agent", Locked._fields[:-1]),
    ],
)
def test_the_columns_of_a_query_are_the_fields_of_its_record_in_their_order(query: str, names: Sequence[str]) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(schema_script())
        cursor = connection.execute(for_sqlite(query).sql, {"uuids": "[]", "kept": "[]", "writers": "[]", "uuid": ""})
        assert [name for name, *_ in cursor.description] == [*names]


def test_an_agent_is_found_by_its_uuid_its_name_or_a_unique_prefix(zoo: Store) -> None:
    wanted = {
        ABCD1: ABCD1,
        "abcd1": ABCD1,
        "abcd2xxxx": ABCD2,
        "abce": ABCE,
        "dba": ABCD2,
        "Müller": ABCE,
        "abcd": ODD,  # a name, before it is a prefix
        "a_b-": ODD,
        "a_b-cd": ODD,
        "aXb-": UNODD,
        UNODD: UNODD,
    }
    assert {text: uuid_of(zoo, text) for text in wanted} == wanted


def test_whom_nobody_knows_is_not_found_and_the_answer_is_short(zoo: Store) -> None:
    near = ["", "abc", "a_b", "zzzz", "z" * 22, "ABCE", "abcd1%", "____", "-abc", "a b", "%", "z" * 5000]
    for text in [*near, "a\0bc", "ab\ud800c"]:  # the last two are texts that no database takes
        with pytest.raises(AgentNotFound) as caught:
            uuid_of(zoo, text)
        assert len(str(caught.value)) < 200


def test_a_prefix_that_is_too_short_says_how_long_it_must_be(zoo: Store) -> None:
    with pytest.raises(AgentNotFound, match=f"first {PREFIX_LENGTH} or more characters"):
        uuid_of(zoo, "abc")


def test_a_prefix_of_several_agents_is_ambiguous_and_names_them(zoo: Store) -> None:
    change(zoo, ODD, "name = NULL")
    with pytest.raises(AmbiguousAgent) as caught:
        uuid_of(zoo, "abcd")
    assert caught.value.agent == "abcd"
    assert caught.value.candidates == (ABCD1, ABCD2)
    assert words_of(ABCD1) in str(caught.value)


def test_a_prefix_of_very_many_agents_names_only_some(store: Store) -> None:
    plant(store)
    uuids = [f"same{number:018}" for number in range(50)]
    add_all(store, uuids)
    with pytest.raises(AmbiguousAgent) as caught:
        uuid_of(store, "same")
    assert len(caught.value.candidates) == 10


def test_a_name_goes_to_the_living_and_a_dead_one_is_found_by_uuid(zoo: Store) -> None:
    assert uuid_of(zoo, "ghost") == UNODD
    change(zoo, ABCE, "name = 'ghost'")
    assert uuid_of(zoo, "ghost") == ABCE


def test_getting_an_unknown_agent_names_it(zoo: Store) -> None:
    with pytest.raises(AgentNotFound, match="z" * 22) as caught:
        zoo.read(lambda tx: registry.get(tx, "z" * 22))
    assert caught.value.agent == "z" * 22


def test_agent_0_is_the_one_without_a_parent(store: Store) -> None:
    assert store.read(registry.root) is None
    plant(store, a="root")
    root = store.read(registry.root)
    assert root is not None
    assert (root.uuid, root.parent_uuid, root.status, root.living, root.epoch) == (
        "root",
        None,
        "running",
        True,
        FIRST_EPOCH,
    )


def test_everybody_or_one_status_oldest_first(store: Store) -> None:
    plant(store, z="root", b="z", a="root")
    store.write(lambda tx: tx.run("bury", uuids=["b"], cause="killed", sender=None, reason="test", now=9))
    assert names(store.read(registry.every)) == ["root", "z", "b", "a"]
    assert names(store.read(lambda tx: registry.every(tx, "running"))) == ["root", "z", "a"]
    assert names(store.read(lambda tx: registry.every(tx, "dead"))) == ["b"]
    assert set(names(store.read(trees.living))) == {"root", "z", "a"}


def test_children_are_in_order_of_creation_and_adopted_ones_last(store: Store) -> None:
    def work(tx: Transaction) -> None:
        add(tx, "third", "a", fork=30, now=100)
        add(tx, "first", "a", fork=10, now=100)
        add(tx, "second", "a", fork=20, now=100)
        add(tx, "adopted late", "root", fork=1, now=90)
        add(tx, "adopted early", "root", fork=2, now=80)

    plant(store, a="root")
    store.write(work)
    for adopted in ("adopted late", "adopted early"):
        change(store, adopted, "supervisor_uuid = 'a'")
    store.write(lambda tx: tx.run("bury", uuids=["second"], cause="killed", sender=None, reason="test", now=9))
    assert names(store.read(lambda tx: registry.children(tx, "a"))) == [
        "first",
        "second",
        "third",
        "adopted early",
        "adopted late",
    ]
    assert store.read(lambda tx: registry.children(tx, "first")) == []


def test_descendants_follow_the_supervisors_and_walk_through_the_dead(store: Store) -> None:
    plant(store, a="root", b="a", c="b", d="root", e="b")
    change(store, "e", "supervisor_uuid = 'd'")
    store.write(lambda tx: tx.run("bury", uuids=["b"], cause="killed", sender=None, reason="test", now=9))
    assert names(store.read(lambda tx: registry.descendants(tx, "root"))) == ["a", "b", "c", "d", "e"]
    assert names(store.read(lambda tx: registry.descendants(tx, "a"))) == ["b", "c"]
    assert names(store.read(lambda tx: registry.descendants(tx, "d"))) == ["e"]
    assert names(store.read(lambda tx: registry.descendants(tx, "e"))) == []


def test_ancestors_are_the_supervisors_nearest_first(store: Store) -> None:
    plant(store, a="root", b="a", c="b", d="root")
    change(store, "b", "supervisor_uuid = 'd'")
    assert names(store.read(lambda tx: registry.ancestors(tx, "c"))) == ["b", "d", "root"]
    assert names(store.read(lambda tx: registry.ancestors(tx, "root"))) == []
    with pytest.raises(AgentNotFound):
        store.read(lambda tx: registry.ancestors(tx, "nobody"))


def test_a_tree_two_thousand_levels_deep_is_walked_both_ways(store: Store) -> None:
    plant(store)
    deep = (
        "INSERT INTO agents (uuid, parent_uuid, supervisor_uuid, fork_message_id, status, created_at)"
        " WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 1 FROM n WHERE i < 2000)"
        " SELECT 'n' || i, CASE WHEN i = 1 THEN 'root' ELSE 'n' || (i - 1) END,"
        " CASE WHEN i = 1 THEN 'root' ELSE 'n' || (i - 1) END, 0, 'running', i FROM n"
    )
    store.write(lambda tx: sql(tx, deep))
    above = names(store.read(lambda tx: registry.ancestors(tx, "n2000")))
    assert above == [*(f"n{number}" for number in range(1_999, 0, -1)), "root"]
    assert names(store.read(lambda tx: registry.descendants(tx, "root"))) == [*above[-2::-1], "n2000"]


def test_a_damaged_circle_of_supervisors_ends(store: Store) -> None:
    plant(store, a="root", b="a", c="b", d="c")
    change(store, "a", "supervisor_uuid = 'c'")
    with pytest.raises(HistoryError, match="circle"):
        store.read(lambda tx: registry.ancestors(tx, "d"))
    with pytest.raises(HistoryError, match="circle"):
        store.read(lambda tx: registry.ancestors(tx, "a"))
    assert names(store.read(lambda tx: registry.descendants(tx, "b"))) == ["a", "b", "c", "d"]
    assert names(store.read(lambda tx: registry.descendants(tx, "root"))) == []
    change(store, "b", "supervisor_uuid = 'b'")
    assert names(store.read(lambda tx: registry.descendants(tx, "b"))) == ["a", "b", "c", "d"]
    with pytest.raises(HistoryError):
        store.read(lambda tx: registry.ancestors(tx, "b"))


def test_all_agents_are_read_some_at_a_time_each_once(store: Store) -> None:
    plant(store, **{f"agent{number}": "root" for number in range(7)})
    everybody = {record.uuid for record in store.read(registry.every)}

    def some_at_a_time(query: str, status: str | None) -> list[str]:
        def page_after(tx: Transaction, latest: str) -> list[Row]:
            return tx.run(query, after=latest, status=status, most=3)

        uuids = [""]
        while page := store.read(partial(page_after, latest=uuids[-1])):
            assert len(page) <= 3
            uuids += [row[0] for row in page]
        return uuids[1:]

    uuids = some_at_a_time("agents_after", None)
    assert (set(uuids), len(uuids)) == (everybody, 8)
    stopped = [f"agent{number}" for number in range(1, 6)]
    store.write(lambda tx: tx.run("set_status", uuids=stopped, status="stopped", deadline=None, reason=None))
    assert some_at_a_time("paused_after", "stopped") == some_at_a_time("agents_after", "stopped") == stopped
    assert names(store.read(lambda tx: registry.after(tx, "agent3", "stopped"))) == ["agent4", "agent5"]
    store.write(lambda tx: tx.run("set_status", uuids=stopped, status="running", deadline=None, reason=None))
    store.write(lambda tx: tx.run("bury", uuids=["agent3"], cause="killed", sender=None, reason="test", now=2))
    assert names(store.read(lambda tx: registry.after(tx, "", "dead"))) == ["agent3"]


def test_agents_below_one_are_found_whatever_their_depth(store: Store) -> None:
    plant(store, a="root", b="a", c="b", d="root")
    assert set(store.read(lambda tx: registry.uuids_below(tx, "a"))) == {"b", "c"}
    assert store.read(lambda tx: registry.uuids_below(tx, "d")) == []


def test_agents_that_descend_from_one_are_found_whoever_supervises_them(store: Store) -> None:
    plant(store, a="root", b="a", c="b", d="c", e="root", f="e")
    change(store, "c", "supervisor_uuid = 'root'")  # by an adoption
    change(store, "f", "supervisor_uuid = 'a'")
    assert set(store.read(lambda tx: registry.uuids_descended(tx, "a"))) == {"b", "c", "d"}
    assert store.read(lambda tx: registry.uuids_descended(tx, "e")) == ["f"]
    assert set(store.read(lambda tx: registry.uuids_below(tx, "a"))) == {"b", "f"}


def test_the_agent_that_a_person_has_looked_at_last_is_the_latest_that_lives(store: Store) -> None:
    plant(store, a="root", b="root", c="root")
    assert store.read(registry.seen_last) is None
    store.write(lambda tx: [tx.run("touch", uuid=uuid, now=number) for number, uuid in enumerate("abc", 1)])
    store.write(lambda tx: tx.run("bury", uuids=["c"], cause="killed", sender=None, reason="test", now=2))
    latest = store.read(registry.seen_last)
    assert latest is not None
    assert latest.uuid == "b"
