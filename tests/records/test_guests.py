"""Guest logs: what others begin with stays, whatever is taken from a log; a fork is one row."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ikigai_actors.errors import BadInput, StoreConflict
from ikigai_actors.records import guests
from ikigai_actors.records.fsck.guests import check_guests
from ikigai_actors.records.guests import GuestEntry, GuestPlace
from ikigai_actors.store import Store, Transaction, open_store
from ikigai_actors.store.memory import open_with_tables
from tests.kit.databases import sql


def at(name: str) -> GuestPlace:
    return GuestPlace("test", "", name)


def add(store: Store, name: str, *texts: str) -> None:
    entries = [GuestEntry(data=json.dumps(text)) for text in texts]
    store.write(lambda tx: guests.append_entries(tx, guests.make_guest(tx, at(name)), entries))


def texts(store: Store, name: str, most: int = 100) -> list[str] | None:
    def read(tx: Transaction) -> list[str] | None:
        log = guests.find_guest(tx, at(name))
        return (
            None
            if log is None
            else [json.loads(entry.data or "null") for entry in guests.latest_entries(tx, log, most)]
        )

    return store.read(read)


def fork(store: Store, source: str, target: str, position: int | None = None) -> None:
    store.write(lambda tx: guests.fork_guest(tx, at(source), at(target), position))


def cut(store: Store, name: str, position: int) -> None:
    store.write(lambda tx: guests.cut_guest(tx, guests.make_guest(tx, at(name)), position))


def drop(store: Store, name: str) -> None:
    store.write(lambda tx: guests.drop_guest(tx, guests.make_guest(tx, at(name))))


def rows(store: Store) -> tuple[int, int]:
    [(logs, entries)] = store.read(
        lambda tx: sql(tx, "SELECT (SELECT COUNT(*) FROM guest_logs), (SELECT COUNT(*) FROM guest_entries)")
    )
    return logs, entries


def test_a_fork_is_one_row_and_each_goes_on_by_itself(store: Store) -> None:
    add(store, "a", "1", "2", "3")
    fork(store, "a", "b")
    assert rows(store) == (2, 3)
    fork(store, "b", "c", 2)
    add(store, "a", "4")
    add(store, "b", "5")
    add(store, "c", "6")
    assert [texts(store, name) for name in "abc"] == [["1", "2", "3", "4"], ["1", "2", "3", "5"], ["1", "2", "6"]]
    assert texts(store, "b", most=2) == ["3", "5"]


def test_what_others_begin_with_stays_until_the_last_of_them_is_deleted(store: Store) -> None:
    add(store, "a", "1", "2", "3")
    fork(store, "a", "b")
    cut(store, "a", 1)
    assert (texts(store, "a"), texts(store, "b")) == (["1"], ["1", "2", "3"])
    drop(store, "a")
    assert (texts(store, "a"), texts(store, "b")) == (None, ["1", "2", "3"])
    drop(store, "b")
    assert rows(store) == (0, 0)


def test_a_name_that_is_taken_and_a_source_that_is_not_there_are_refused(store: Store) -> None:
    add(store, "a", "1")
    add(store, "b")
    with pytest.raises(BadInput, match="There is no 'x' to branch from"):
        fork(store, "x", "y")
    with pytest.raises(BadInput, match="There is a 'b' already"):
        fork(store, "a", "b")
    with pytest.raises(BadInput, match="from 0 to 1 of 'a'; got 2"):
        fork(store, "a", "c", 2)
    assert rows(store) == (2, 1)


def test_each_change_of_a_log_has_a_later_time(store: Store) -> None:
    times = []
    for _ in range(5):
        add(store, "a", "tea")
        [log] = store.read(lambda tx: guests.guests_within(tx, "test", ""))
        times.append(log.changed_at)
    assert times == sorted(set(times))


@pytest.mark.parametrize("name", ["", "x" * 1_001, "a\0b", "\ud800"])
def test_a_name_that_a_database_cannot_hold_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="Expected a thread to be 1 to 1,000 characters"):
        guests.check_guest_name(name, "a thread")


NAMES = st.sampled_from("abc")


@settings(max_examples=60)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), NAMES, st.integers(1, 3)),
            st.tuples(st.just("fork"), NAMES, NAMES, st.integers(0, 6)),
            st.tuples(st.just("cut"), NAMES, st.integers(0, 6)),
            st.tuples(st.just("drop"), NAMES),
        ),
        max_size=14,
    )
)
def test_logs_are_lists_that_share_what_they_begin_with(steps: list[tuple[str, ...]]) -> None:
    """Against lists that are copied; numbers of entries have no gaps here, so a position is a length."""
    model: dict[str, list[str]] = {}
    with closing(open_with_tables("sqlite:///:memory:")) as store:
        for number, (what, name, *more) in enumerate(steps):
            if what == "add":
                said = [f"{number}.{child}" for child in range(int(more[0]))]
                model.setdefault(name, []).extend(said)
                add(store, name, *said)
            elif name not in model:
                continue
            elif what == "fork" and more[0] not in model:
                position = min(int(more[1]), len(model[name]))
                model[more[0]] = model[name][:position]
                fork(store, name, more[0], position)
            elif what == "cut":
                position = min(int(more[0]), len(model[name]))
                del model[name][position:]
                cut(store, name, position)
            elif what == "drop":
                del model[name]
                drop(store, name)
            assert {name: texts(store, name) for name in "abc"} == {name: model.get(name) for name in "abc"}
            assert [*store.read(lambda tx: [*check_guests(tx)])] == []
        for name in model:
            drop(store, name)
        assert rows(store) == (0, 0)


@pytest.mark.slow("two programs at once")
def test_two_programs_that_change_the_same_logs_leave_them_sound(durable: str) -> None:
    def work(seed: int) -> None:
        random = Random(seed)
        with closing(open_store(durable)) as store:
            for number in range(60):
                name, other = random.choice("abc"), random.choice("abc")
                with suppress(BadInput, StoreConflict):
                    match random.randrange(5):
                        case 0:
                            fork(store, name, other)
                        case 1:
                            drop(store, name)
                        case 2:
                            cut(store, name, 0)
                        case _:
                            add(store, name, f"{seed}.{number}")

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(work, (1, 2))) == [None, None]
    with closing(open_store(durable)) as store:
        assert [*store.read(lambda tx: [*check_guests(tx)])] == []
        for name in "abc":
            drop(store, name)
        assert rows(store) == (0, 0)
