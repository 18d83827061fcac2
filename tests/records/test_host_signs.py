"""Heartbeats in the row of a host: what a reader makes of them, with what agents have written themselves."""

import pytest

from ikigai_actors.records.hosts.host_signs import (
    COUNTS_FOR,
    MOST_SIGNS,
    HostSigns,
    PublishedSign,
    PublishSigns,
    decode_signs,
    encode_signs,
    first_signs,
)
from ikigai_actors.records.hosts.liveness import Sign, latest_signs
from ikigai_actors.store import Store
from ikigai_actors.store.unit import write_alone
from tests.kit.databases import sql
from tests.kit.trees import HOST, append, plant


@pytest.fixture
def working(store: Store) -> Store:
    """A database in which the agents "a" and "b" are in their first turns, and have been silent for a long time."""
    plant(store, a="root", b="root")
    for agent in ("a", "b"):
        write_alone(store, append(agent, 1, turn=1))
    store.write(lambda tx: sql(tx, "UPDATE messages SET created_at = 1"))
    return store


def time_of(store: Store) -> int:
    return int(store.read(lambda tx: tx.run("time"))[0][0])


def publish(store: Store, ago: int, **signs: PublishedSign) -> None:
    """Write what a host has seen so many milliseconds ago; the times of the signs are counted from now on."""
    now = time_of(store)
    published = {uuid: sign._replace(at=now + sign.at) for uuid, sign in signs.items()}
    write_alone(store, PublishSigns(HOST, encode_signs(HostSigns(now - ago, published))))


def sign_of(store: Store, agent: str) -> Sign:
    return store.read(latest_signs)[agent]


def test_what_a_host_tells_counts_for_the_turn_and_for_its_time(working: Store) -> None:
    publish(working, 0, a=PublishedSign(1, -60_000, 40), b=PublishedSign(7, -1_000, 40))
    sign = sign_of(working, "a")
    assert (60 <= sign.seconds < 120, sign.tokens) == (True, 40)
    assert sign_of(working, "b").seconds > 1_000_000
    assert sign_of(working, "b").tokens is None
    publish(working, COUNTS_FOR + 1_000, a=PublishedSign(1, -60_000, 40))
    assert (sign_of(working, "a").seconds < 120, sign_of(working, "a").tokens) == (True, None)
    working.write(lambda tx: tx.run("end_host", id=HOST))
    assert sign_of(working, "a").seconds > 1_000_000


def test_a_message_that_came_later_counts(working: Store) -> None:
    publish(working, 0, a=PublishedSign(1, -60_000, 40))
    now = time_of(working)
    working.write(lambda tx: sql(tx, f"UPDATE messages SET created_at = {now}"))
    assert sign_of(working, "a").seconds < 30


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "5", '{"signs": [["a"]]}', '{"signs": [["a", 1, 2, "x"]]}', '{"at": 1e999}']
)
def test_a_column_that_nobody_can_read_tells_nothing(text: str) -> None:
    assert decode_signs(text) == HostSigns()


def test_of_too_many_those_are_told_whose_replies_come_fastest_and_then_the_latest() -> None:
    signs = {str(number): PublishedSign(1, number, 0) for number in range(MOST_SIGNS + 1)}
    signs["0"] = PublishedSign(1, 0, 5)
    chosen = first_signs(signs)
    assert signs.keys() - chosen.keys() == {"1"}
    assert decode_signs(encode_signs(HostSigns(9, chosen))) == HostSigns(9, chosen)
    assert encode_signs(HostSigns(9)) == ""
