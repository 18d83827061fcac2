"""The hash of a history: over forks, appends and acts, on each database; and the check that compares it."""

from hashlib import sha256

import pytest

from ikigai_actors import ScriptedProvider
from ikigai_actors.errors import HistoryError
from ikigai_actors.records.log.append import Append, FencingToken
from ikigai_actors.records.log.chain import EMPTY_HASH, HashChain, hash_after
from ikigai_actors.records.log.log_unit import Birth, LogUnit
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.records.proof.chain_check import ChainCheck, LogStart, Problem
from ikigai_actors.store import Store
from ikigai_actors.store.base import Row
from tests.kit.open_on import open_on
from tests.kit.trees import HOST, append, fork, plant, says
from tests.records.test_units import Desk


def hashes(store: Store, agent: str) -> dict[int, bytes]:
    """The stored hashes of an agent's log, by position."""
    rows = store.read(lambda tx: tx.run("hashed_section", uuid=agent, start=0, end=1_000))
    return {row[1]: bytes(row[6]) for row in rows}


def by_hand(before: bytes, *messages: Message) -> bytes:
    """The hash of a history after some messages, by the words of its definition."""
    for message in messages:
        _, position, kind, content, data, created_at = message.row()
        parts = [part.encode() for part in (str(position), str(created_at), kind, content, data or "")]
        before = sha256(before + b"".join(len(part).to_bytes(8, "big") + part for part in parts)).digest()
    return before


def test_the_hash_is_what_its_definition_says() -> None:
    first = Message("a", 1, "user", "tea — ☕", {}, 5)
    second = Message("b", 2, "note", "", {"é": [1.5, None]}, 6)
    assert sha256(b"ikigai history 1").digest() == EMPTY_HASH
    assert hash_after(EMPTY_HASH, first.row()) == by_hand(EMPTY_HASH, first)
    assert hash_after(hash_after(EMPTY_HASH, first.row()), second.row()) == by_hand(EMPTY_HASH, first, second)


def test_what_is_cut_at_another_place_has_another_hash() -> None:
    rows: list[Row] = [
        ("a", 1, "user", "ab", None, 5),
        ("a", 1, "usera", "b", None, 5),
        ("a", 1, "user", "ab", "", 5),  # no data is the empty text
        ("a", 1, "user", "", "ab", 5),
        ("a", 11, "user", "ab", None, 5),
        ("a", 1, "user", "ab", None, 15),
    ]
    assert len({hash_after(EMPTY_HASH, row) for row in rows}) == len(rows) - 1


def test_an_agent_that_appends_goes_on_from_the_hash_of_its_head(store: Store) -> None:
    desk = Desk(store)
    desk.accepts(append("a", 1, 2))
    desk.accepts(append("a", 3))
    lines = says("a", 1, 2, 3)
    assert hashes(store, "a") == {n: by_hand(EMPTY_HASH, *lines[:n]) for n in (1, 2, 3)}


def test_appends_of_one_transaction_follow_one_another(store: Store) -> None:
    desk = Desk(store)
    desk.write(append("a", 1), append("b", 1), append("a", 2), append("a", 9, epoch=7), append("a", 3))
    assert hashes(store, "a")[3] == by_hand(EMPTY_HASH, *says("a", 1, 2, 3))
    assert hashes(store, "b")[1] == by_hand(EMPTY_HASH, *says("b", 1))


def test_a_child_goes_on_from_its_fork_point_whoever_of_its_ancestors_holds_that(store: Store) -> None:
    desk = Desk(store)
    desk.accepts(append("a", 1, 2, 3))
    desk.accepts(fork("a", "kid", 4))  # at the head, in the unit that goes on
    common = by_hand(EMPTY_HASH, *says("a", 1, 2, 3))
    assert hashes(store, "kid")[4] == by_hand(common, *says("kid", 4, kind="fork")) == hashes(store, "a")[4]
    early = Birth("early", None, "kid", 2, 0, "transient", 9, says("early", 3, kind="fork"), 5)  # held by "a"
    beside = Birth("beside", None, "kid", 5, 0, "transient", 9, says("beside", 6, kind="fork"), 6)  # a row of the unit
    unit = LogUnit("kid", says("kid", 5, 6, kind="fork"), births=(early, beside))
    desk.accepts(Append(unit, FencingToken(HOST, 1)))
    assert hashes(store, "early")[3] == by_hand(EMPTY_HASH, *says("a", 1, 2), *says("early", 3, kind="fork"))
    assert hashes(store, "beside")[6] == hashes(store, "kid")[6]
    desk.accepts(append("early", 4))
    assert hashes(store, "early")[4] == by_hand(hashes(store, "early")[3], *says("early", 4))


def test_what_follows_a_message_that_is_not_there_is_refused(store: Store) -> None:
    plant(store, a="root")
    with pytest.raises(HistoryError, match=r"history of agent a has no message 4. Run `ikigai fsck`"):
        store.write(lambda tx: HashChain().link(tx, [message.row() for message in says("a", 5)]))


def test_a_session_has_the_hashes_of_its_histories(store: Store) -> None:
    with open_on(store, ScriptedProvider(lambda request: "well")) as system:
        system.root.prompt("one").get(timeout=60)
        kid = system.root.fork("two")
        kid.reply(timeout=60)
        kid.undo()
        kid.clear()
        kid.prompt("three").get(timeout=60)
        system.root.fork("four", at=2).reply(timeout=60)
        for agent in (system.agent(record.uuid) for record in system.agents()):
            before = EMPTY_HASH
            stored = {n: h for uuid in (system.root.uuid, agent.uuid) for n, h in hashes(system._store, uuid).items()}
            for message in agent.history(all=True):
                before = by_hand(before, message)
                assert message.agent_uuid != agent.uuid or stored[message.id] == before


STARTS = {"a": LogStart(None, 0), "b": LogStart("a", 2), "c": LogStart("b", 1)}


def rows_of(*messages: Message) -> list[Row]:
    """Rows of one history, with their hashes."""
    before, rows = EMPTY_HASH, list[Row]()
    for message in messages:
        before = hash_after(before, message.row())
        rows.append((*message.row(), before))
    return rows


def family() -> list[Row]:
    """The logs of `STARTS`, in their order."""
    top = says("a", 1, 2, 3)
    return [*rows_of(*top), *rows_of(*top[:2], *says("b", 3, 4))[2:], *rows_of(*top[:1], *says("c", 2))[1:]]


def problems(rows: list[Row]) -> list[Problem]:
    """The problems of logs."""
    check = ChainCheck(STARTS)
    return [*(problem for row in rows for problem in check.read(row)), *check.conclude()]


@pytest.mark.parametrize("order", ["abc", "cba", "bca"])
def test_sound_logs_have_no_problem_in_whatever_order_they_come(order: str) -> None:
    assert problems([row for uuid in order for row in family() if row[0] == uuid]) == []


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (0, [Problem("missing", "a", 1), Problem("missing", "a", 1)]),  # "c" inherits it as well
        (1, [Problem("missing", "a", 2), Problem("missing", "a", 2)]),
        (2, []),  # the end of a log that nobody inherits: a checkpoint shows that
        (3, [Problem("missing", "b", 3)]),
        (5, [Problem("missing", "c", 2)]),
    ],
)
def test_a_message_that_is_gone_is_missing(place: int, expected: list[Problem]) -> None:
    rows = family()
    del rows[place]
    assert problems(rows) == expected


@pytest.mark.parametrize("column", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("order", ["abc", "cba"])
def test_a_message_that_was_changed_is_named(column: int, order: str) -> None:
    for place, row in enumerate(family()):
        rows = family()
        rows[place] = (*row[:column], {5: 7, 6: bytes(32)}.get(column, "x"), *row[column + 1 :])
        ordered = [row for uuid in order for row in rows if row[0] == uuid]
        wrong = problems(ordered)
        assert Problem("altered", row[0], row[1]) in wrong
        assert column == 6 or len(wrong) == 1


def test_two_messages_that_were_exchanged_are_named(store: Store) -> None:
    rows = family()
    rows[1], rows[2] = (*rows[1][:2], *rows[2][2:]), (*rows[2][:2], *rows[1][2:])
    assert problems(rows)[0] == Problem("altered", "a", 2)
