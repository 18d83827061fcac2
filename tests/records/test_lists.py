"""Lists of agents: some of many, by last use or by a text, with names that find each alone."""

import random
from functools import partial

import pytest

from ikigai_actors.records.agents import lists, registry
from ikigai_actors.records.agents.lists import Census, Siblings
from ikigai_actors.records.agents.registry import AgentRecord, make_root
from ikigai_actors.records.agents.words import EVEN, words_having, words_of
from ikigai_actors.store import Store, Transaction
from tests.kit.trees import add, add_host, change

ROOT = "root" + "A" * 18


def uuid(start: str) -> str:
    """A uuid that begins so."""
    return start + "x" * (22 - len(start))


def uuids(records: list[AgentRecord]) -> list[str]:
    return [record.uuid for record in records]


@pytest.fixture
def crowd(store: Store) -> Store:
    """Agent 0, and "k000" to "k029" below it, of which the first three are named; "k005" is dead, with a child."""

    def work(tx: Transaction) -> None:
        add_host(tx)
        make_root(tx, ROOT, 1)
        for number in range(30):
            add(tx, uuid(f"k{number:03}"), ROOT, name={0: "Anna", 1: "banana_split", 2: "100%"}.get(number))
        add(tx, uuid("l000"), uuid("k005"))
        tx.run("bury", uuids=[uuid("k005")], cause="killed", sender=None, reason="test", now=9)
        tx.run("mark_ways", uuids=[uuid("k005")])

    store.write(work)
    for number in range(30):
        change(store, uuid(f"k{number:03}"), f"created_at = {100 + number}, born = {number + 1}")
    change(store, uuid("l000"), "created_at = 50")
    return store


def test_a_list_begins_with_who_works_and_goes_on_with_who_was_seen_or_born_last(crowd: Store) -> None:
    change(crowd, uuid("k003"), "turn = 1, awake = 1")
    change(crowd, uuid("k004"), "active_at = 1000")
    records = crowd.read(lambda tx: lists.latest_used(tx, 4))
    assert uuids(records) == [uuid("k003"), uuid("k004"), uuid("k029"), uuid("k028")]
    records = crowd.read(lambda tx: lists.latest_used(tx, 3, dead_too=True, first=[uuid("k010")]))
    assert uuids(records) == [uuid("k010"), uuid("k003"), uuid("k004"), uuid("k005")]
    assert len(crowd.read(lists.latest_used)) == 31  # all that live: agent 0, 29 children and the grandchild


def test_a_list_is_shown_with_those_above_it(crowd: Store) -> None:
    records = crowd.read(lambda tx: lists.with_those_above(tx, registry.some(tx, [uuid("l000")])))
    assert uuids(records) == [ROOT, uuid("l000"), uuid("k005")]


def test_some_of_those_below_one_are_found_level_by_level_and_the_rest_is_counted(crowd: Store) -> None:
    def below(top: str, most: int, dead_too: bool) -> tuple[int, bool, int]:
        def read(tx: Transaction) -> tuple[int, bool, int]:
            record = registry.get(tx, top)
            records = lists.some_below(tx, record, most, dead_too)
            return len(records), uuid("l000") in uuids(records), lists.count_below(tx, record, dead_too)

        return crowd.read(read)

    assert below(ROOT, 10, True) == (10, False, 31)
    assert below(ROOT, 99, True) == (31, True, 31)
    assert below(ROOT, 29, False) == (29, False, 30)  # the first level
    assert below(ROOT, 99, False) == (30, True, 30)  # below one that is dead
    assert below(uuid("k005"), 9, False) == (1, True, 1)
    assert below(uuid("k006"), 9, True) == (0, False, 0)


def test_the_living_come_by_age_a_page_at_a_time(crowd: Store) -> None:
    names, after = list[str](), (-1, 0, "")
    while page := crowd.read(partial(lists.living_after, after=after, most=7)):
        names += uuids(page)
        after = lists.age_of(page[-1])
    assert names == [uuid("l000"), *(uuid(f"k{number:03}") for number in range(30) if number != 5)]
    assert {record.name for record in crowd.read(lists.living_named)} == {"Anna", "banana_split", "100%"}
    change(crowd, uuid("k005"), "name = 'late'")
    assert set(crowd.read(lists.uuids_named)) == {uuid(start) for start in ("k000", "k001", "k002", "k005")}


def test_agents_are_counted_by_status(crowd: Store) -> None:
    change(crowd, uuid("k003"), "status = 'stopped', turn = 1, awake = 1")
    counts = crowd.read(lists.census)
    assert counts == Census(32, 31, 1, 0, 1)
    assert counts.by_status == {"running": 30, "stopped": 1, "terminating": 0, "dead": 1}


def test_a_text_finds_who_has_it_in_the_name_or_begins_so(crowd: Store) -> None:
    expected = {
        "an": ["k001", "k000"],
        "ANNA": ["k000"],
        "_s": ["k001"],
        "%": ["k002"],
        "!": [],
        "k01": [],
        "k011": ["k011"],
    }

    def named(tx: Transaction, text: str) -> list[str]:
        records = lists.called_so(tx, text)
        return uuids([record for record in records if record.name is not None or record.uuid.startswith(text)])

    assert crowd.read(lambda tx: {text: named(tx, text) for text in expected}) == {
        text: [uuid(start) for start in starts] for text, starts in expected.items()
    }


def test_the_dead_are_found_where_they_are_wanted(crowd: Store) -> None:
    words = words_of(uuid("k005"))
    tail = words[1:]
    assert uuid("k005") not in uuids(crowd.read(lambda tx: lists.called_so(tx, tail)))
    assert uuid("k005") in uuids(crowd.read(lambda tx: lists.called_so(tx, tail, dead_too=True)))


def test_a_database_finds_the_same_words_as_a_reader() -> None:
    chance = random.Random(7)
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    some = ["".join(chance.choices(letters[:62], k=1) + chance.choices(letters, k=3)) for _ in range(400)]
    for text in ("ot", "brave", "e-o", "ing-", "-fox", "zzz", *(words_of(uuid)[2:] for uuid in some[:5])):
        adjectives, nouns, both = words_having(text)

        def has(name: str, both: bool = both, adjectives: list[str] = adjectives, nouns: list[str] = nouns) -> bool:
            noun = name[2:4] + ("0" if name[1] in EVEN else "1")
            return (name[:2] in adjectives) + (noun in nouns) >= 1 + both

        assert [candidate for candidate in some if has(candidate)] == [
            candidate for candidate in some if text in words_of(candidate)
        ]


def test_who_is_called_like_another_one_is_parted_from_it_without_a_look_at_all(store: Store) -> None:
    """The labels of some of all agents are those that they have among all."""
    twins = [uuid("abcdA"), uuid("abcdB"), uuid("abceA")]

    def work(tx: Transaction) -> None:
        add_host(tx)
        make_root(tx, ROOT, 1)
        for twin in (*twins, uuid("mmmm"), uuid("nnnn")):
            add(tx, twin, ROOT)
        add(tx, uuid("oooo"), ROOT, name=words_of(uuid("mmmm")))
        add(tx, uuid("pppp"), ROOT, name=f"{words_of(uuid('nnnn'))}")
        add(tx, uuid("qqqq"), ROOT, name="kid")
        tx.run("bury", uuids=[uuid("qqqq")], cause="killed", sender=None, reason="test", now=9)
        add(tx, uuid("rrrr"), ROOT, name="kid")

    store.write(work)
    everybody = store.read(registry.every)
    labels = registry.shown_names(everybody)
    for record in everybody:
        assert store.read(partial(lists.labels_of, records=[record])) == {record.uuid: labels[record.uuid]}
    assert store.read(lambda tx: lists.labels_of(tx, [])) == {}


@pytest.mark.parametrize("many", [3, 1_000])
def test_siblings_are_those_beside_an_agent_among_few_and_among_many(crowd: Store, many: int) -> None:
    def beside(start: str) -> Siblings:
        return crowd.read(lambda tx: lists.siblings(tx, registry.get(tx, uuid(start)), many))

    for start, before, after in (("k000", "k029", "k001"), ("k004", "k003", "k006"), ("k029", "k028", "k000")):
        neighbours = beside(start)
        assert neighbours.previous is not None
        assert neighbours.following is not None
        assert (neighbours.previous.uuid, neighbours.following.uuid) == (uuid(before), uuid(after))
    assert beside("l000") == (None, None)
    assert crowd.read(lambda tx: lists.siblings(tx, registry.get(tx, ROOT))) == (None, None)


def test_children_come_some_at_a_time_and_are_counted(crowd: Store) -> None:
    assert uuids(crowd.read(lambda tx: lists.some_children(tx, ROOT, 6))) == [
        uuid(f"k00{number}") for number in (0, 1, 2, 3, 4, 6)
    ]
    above = [ROOT, uuid("k005"), uuid("k001")]
    assert crowd.read(lambda tx: lists.count_children(tx, above)) == {ROOT: 29, uuid("k005"): 1}
