"""Agents and messages in bulk, through the store's own append: a million messages without a million turns."""

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from zlib import crc32

from benchmarks.places import Database, prepared
from ikigai_actors import ActorSystem, OfflineProvider
from ikigai_actors.actors.clock import SystemClock
from ikigai_actors.records.agents.identity import new_agent_uuid
from ikigai_actors.records.log.append import FIRST_EPOCH
from ikigai_actors.records.log.chain import EMPTY_HASH, hash_after
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.store.base import Row, Store, Transaction

CHUNK = 20_000
"""Rows of one transaction."""

PROMPT = "What does the index on this column cost us, and who would miss it if it were gone? Number {}."
REPLY = "It costs about a tenth of every insert. Two of the reports use it; both could use the primary key. Number {}."
REPLY_DATA = {
    "model": "offline:echo",
    "stop_reason": "end_turn",
    "usage": {
        "input_tokens": 812,
        "output_tokens": 41,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 512,
    },
}


def conversation(uuid: str, base: int, count: int) -> Iterator[Message]:
    """Messages base + 1 to base + count of an agent's log: prompts and replies in turn."""
    for position in range(base + 1, base + count + 1):
        if position % 2:
            yield Message(uuid, position, Kind.USER.value, PROMPT.format(position), {}, 1_700_000_000_000 + position)
        else:
            yield Message(
                uuid, position, Kind.ASSISTANT.value, REPLY.format(position), REPLY_DATA, 1_700_000_000_000 + position
            )


def hashed(messages: Iterable[Message], before: bytes = EMPTY_HASH) -> list[Row]:
    """Messages of one log as rows of the database, after a history with this hash."""
    rows: list[Row] = []
    for message in messages:
        row = message.row()
        before = hash_after(before, row)
        rows.append((*row, before))
    return rows


def alone(database: Database, count: int) -> str:
    """Agent 0 with a log of so many messages; returns its uuid."""
    uuid = _root(database)
    store = prepared(database.url)
    try:
        _append(store, iter(hashed(conversation(uuid, 0, count))))
    finally:
        store.close()
    database.settle()
    return uuid


def chain(database: Database, depth: int, each: int) -> list[str]:
    """A lineage so deep, with so many messages in each log; returns the uuids, agent 0 first."""
    return _family(database, depth, each, lambda place: place - 1)


def tree(database: Database, count: int, each: int, fan_out: int = 10) -> list[str]:
    """A tree of so many agents, each but the last with ``fan_out`` children; returns the uuids, agent 0 first."""
    return _family(database, count, each, lambda place: (place - 1) // fan_out)


def branch(database: Database, count: int, fan_out: int) -> list[str]:
    """Agent 0, its one child, and below that one so many agents, each with ``fan_out`` children and one message."""
    return _family(database, count + 2, 1, lambda place: 0 if place == 1 else 1 + (place - 2) // fan_out)


def crowd(database: Database, count: int, living: int, *, dead: bool) -> str:
    """A child of agent 0 with so many living children, and beside them others, perhaps dead; returns its uuid."""
    root = _root(database)
    store = prepared(database.url)
    try:
        [parent] = siblings(store, root, 1)
        siblings(store, parent, living)
        others = siblings(store, parent, count)
        for start in range(0, count if dead else 0, CHUNK):
            store.write(partial(_bury, uuids=others[start : start + CHUNK]))
    finally:
        store.close()
    database.settle()
    return parent


def _bury(tx: Transaction, uuids: list[str]) -> None:
    tx.run("bury", uuids=uuids, cause="killed", sender=None, reason="enough", now=SystemClock().now_ms())


def siblings(store: Store, parent: str, count: int) -> list[str]:
    """Agents below an empty one: they can append at once, on the host that has the shards."""
    uuids = [new_agent_uuid(os.urandom) for _ in range(count)]
    _register(store, ((uuid, parent, 0) for uuid in uuids))
    return uuids


def _family(database: Database, count: int, each: int, parent_of: Callable[[int], int]) -> list[str]:
    root = _root(database)
    store = prepared(database.url)
    try:
        uuids = [root, *(new_agent_uuid(os.urandom) for _ in range(count - 1))]
        forks = [0] * count
        for place in range(1, count):
            forks[place] = forks[parent_of(place)] + each  # from the head of its parent
        _register(store, ((uuids[place], uuids[parent_of(place)], forks[place]) for place in range(1, count)))
        hashes = [EMPTY_HASH] * count

        def rows() -> Iterator[Row]:
            for place in range(count):
                before = hashes[parent_of(place)] if place else EMPTY_HASH
                log = hashed(conversation(uuids[place], forks[place], each), before)
                hashes[place] = log[-1][-1] if log else before
                yield from log

        _append(store, rows())
    finally:
        store.close()
    database.settle()
    return uuids


def _root(database: Database) -> str:
    """Agent 0 of a fresh database, as the library makes it."""
    with ActorSystem.open(database.url, provider=OfflineProvider()) as system:
        return system.root.uuid


def _append(store: Store, rows: Iterator[Row]) -> None:
    def append(tx: Transaction, chunk: list[Row]) -> None:
        tx.append(chunk)

    while chunk := list(islice(rows, CHUNK)):
        store.write(partial(append, chunk=chunk))


def _register(store: Store, agents: Iterator[tuple[str, str, int]]) -> None:
    now = SystemClock().now_ms()

    def work(tx: Transaction) -> None:
        for uuid, parent, fork in chunk:
            tx.defer(
                "register",
                uuid=uuid,
                name=None,
                parent=parent,
                supervisor=parent,
                fork=fork,
                born=fork + 1,
                turn=0,
                restart="transient",
                policy=None,
                now=now,
                epoch=FIRST_EPOCH,
                budget=None,
                labels="",
                place=crc32(uuid.encode()),
            )

    while chunk := list(islice(agents, CHUNK)):
        store.write(work)
