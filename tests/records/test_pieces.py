"""Pieces of replies on their way: appended by the host, read once by who listens, void when the reply is over."""

from collections.abc import Callable

import pytest

from ikigai_actors.records.log.append import Append, FencingToken
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.records.messages.pieces import (
    LISTENS_FOR,
    AppendPieces,
    ClearPieces,
    Listen,
    NewPieces,
    WrittenPieces,
    delete_pieces_of_ended,
    listened_for,
    pieces_behind,
)
from ikigai_actors.store import Store
from ikigai_actors.store.unit import write_alone
from tests.kit.databases import bury, sql
from tests.kit.trees import HOST, append, change, plant, says


def new(agent: str, reply: int, *texts: str, at: int = 1, over: bool = False) -> NewPieces:
    return NewPieces(agent, reply, at, [("text", text) for text in texts], lambda: over)


def texts_of(store: Store, after: int = 0) -> list[tuple[int, str, str]]:
    """What a reader finds behind a place: the rows' numbers, agents and texts."""
    rows = store.read(lambda tx: pieces_behind(tx, HOST, after))
    return [(row.id, row.agent, "".join(text for _, text in row.pieces)) for row in rows]


@pytest.fixture
def asking(store: Store) -> Store:
    """A database in which two agents wait for replies to their first messages."""
    plant(store, a="root", b="root")
    for agent in ("a", "b"):
        write_alone(store, append(agent, 1, turn=1))
    return store


def test_what_was_received_is_read_in_order_behind_a_place(asking: Store) -> None:
    write_alone(asking, AppendPieces(HOST, 1, [new("a", 1, "tea ", "for "), new("b", 2, 'half "\0\ud800')]))
    write_alone(asking, AppendPieces(HOST, 3, [new("a", 1, "two")]))
    assert texts_of(asking) == [(1, "a", "tea for "), (2, "b", 'half "\0\ud800'), (3, "a", "two")]
    assert texts_of(asking, 2) == [(3, "a", "two")]
    assert asking.read(lambda tx: pieces_behind(tx, "another", 0)) == []


def test_a_reply_that_is_over_when_its_row_is_to_be_written_has_none(asking: Store) -> None:
    unit = AppendPieces(HOST, 1, [new("a", 1, "too late", over=True), new("b", 2, "in time")])
    assert write_alone(asking, unit) == WrittenPieces([2], frozenset())
    assert texts_of(asking) == [(1, "b", "in time")]


def lost(store: Store) -> None:
    """The host of agent "a" gives its shard away."""
    store.write(lambda tx: sql(tx, "UPDATE shards SET host = NULL WHERE id = 1"))


ENDS: dict[str, Callable[[Store], object]] = {
    "its reply": lambda store: write_alone(store, reply("a", 2, "assistant")),
    "a retry": lambda store: write_alone(store, reply("a", 2, "retry")),
    "the end of its turn": lambda store: change(store, "a", "turn = 0"),
    "its death": lambda store: bury(store, "a"),
    "a move": lost,
}


def reply(agent: str, at: int, kind: str) -> Append:
    return Append(LogUnit(agent, says(agent, at, kind=kind)), FencingToken(HOST, 1))


@pytest.mark.parametrize("end", ENDS)
def test_rows_are_void_from_the_end_of_their_reply_on_and_deleted_later(asking: Store, end: str) -> None:
    asking.write(lambda tx: sql(tx, "UPDATE agents SET shard = 1 WHERE uuid = 'a'"))
    write_alone(asking, AppendPieces(HOST, 1, [new("a", 1, "gone"), new("b", 2, "here")]))
    ENDS[end](asking)
    assert texts_of(asking) == [(2, "b", "here")]
    assert write_alone(asking, AppendPieces(HOST, 3, (), ("a", "b"))) == WrittenPieces([], frozenset({2}))


def test_a_message_beside_an_open_reply_does_not_end_it(asking: Store) -> None:
    write_alone(asking, AppendPieces(HOST, 1, [new("a", 1, "here")]))
    write_alone(asking, reply("a", 2, "mark"))
    assert texts_of(asking) == [(1, "a", "here")]


def test_what_ended_hosts_have_left_is_deleted_and_a_host_clears_its_own(asking: Store) -> None:
    asking.write(lambda tx: tx.run("register_host", id="former", hostname="here", pid=2, lease=0))
    for host in (HOST, "former"):
        write_alone(asking, AppendPieces(host, 1, [new("a", 1, "left")]))
    asking.write(lambda tx: tx.run("end_host", id="former"))
    asking.write(delete_pieces_of_ended)
    assert [row[0] for row in asking.read(lambda tx: tx.run("pieces"))] == [HOST]
    write_alone(asking, ClearPieces(HOST))
    assert asking.read(lambda tx: tx.run("pieces")) == []


def test_who_listens_is_written_for_until_its_time_is_over_and_nobody_listens_to_oneself(store: Store) -> None:
    def listened(host: str = HOST) -> float:
        return store.read(lambda tx: listened_for(tx, host))

    assert listened() == 0
    write_alone(store, Listen("door", 30))
    write_alone(store, Listen(HOST))
    assert LISTENS_FOR < listened() <= 30
    write_alone(store, Listen("door", 0))
    assert listened() == 0
    assert 0 < listened("another") <= LISTENS_FOR
    store.write(lambda tx: sql(tx, "UPDATE listeners SET until = 5"))
    assert listened("another") == 0
    write_alone(store, Listen("door", 0))  # whose time is over is forgotten
    assert store.read(lambda tx: sql(tx, "SELECT id FROM listeners")) == []
