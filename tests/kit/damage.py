"""A sound family of agents in a database, and damage to it that no program of ours could do."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import astuple
from operator import itemgetter
from typing import Any

import psycopg

from ikigai_actors.records import guests
from ikigai_actors.records.agents.labels import set_id, set_of
from ikigai_actors.records.agents.registry import make_root
from ikigai_actors.records.arrivals.endpoints import EndpointSpec
from ikigai_actors.records.budgets.amounts import SpendingRow
from ikigai_actors.records.budgets.spendings import keep_labels
from ikigai_actors.records.guests import GuestEntry, GuestPlace
from ikigai_actors.records.log.chain import EMPTY_HASH, HashChain, hash_after
from ikigai_actors.records.mail.mail import Mail
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.records.outbox.subscriptions import SubscriptionSpec
from ikigai_actors.store import Store, Transaction
from ikigai_actors.store.base import Row
from ikigai_actors.store.migrations import ensure_schema
from tests.kit.logs import write_log
from tests.kit.trees import add, add_host

Draft = tuple[str, dict[str, Any]]
"""Kind and data of a message."""

NOW = "now"
"""The host that has not ended; an earlier one, "old", has."""

TEA = set_of({"team": "tea"})
"""The labels of "a"."""

LOGS: dict[str, tuple[int, list[Draft]]] = {
    "root": (
        0,
        [
            ("user", {}),
            ("assistant", {"tool_calls": [{"id": "c1", "name": "read", "input": {}}]}),
            ("tool_call", {"tool_use_id": "c1"}),
            ("tool_result", {"tool_use_id": "c1"}),
            ("assistant", {"usage": {"input_tokens": 1, "output_tokens": 2}}),
            ("mark", {}),
            ("fork", {"child": "a"}),
            ("rewind", {"mark": 6}),
            ("fork", {"child": "b"}),
            ("user", {}),
            ("assistant", {"tool_calls": [{"id": "f1", "name": "fork", "input": {}}]}),
            ("fork", {"child": "c"}),
            ("tool_result", {"tool_use_id": "f1"}),
            ("mark", {}),
        ],
    ),
    "a": (
        6,
        [
            ("fork", {"parent": "root"}),
            ("rewind", {"mark": 6}),
            ("user", {}),
            ("assistant", {}),
            ("fork", {"child": "g"}),
        ],
    ),
    "b": (8, [("fork", {"parent": "root"}), ("user", {})]),
    "c": (11, [("fork", {"parent": "root"}), ("tool_result", {"tool_use_id": "f1"})]),
    "g": (10, [("fork", {"parent": "a"}), ("tool_result", {"tool_use_id": "c1"})]),
}
"""Each agent's fork point and messages."""

MAIL = (
    Mail("a", 1, "root", "mail", "read", 1, 2),
    Mail("a", 2, None, "mail", "unread", 1, None),
    Mail("a", 3, None, "prompt", "not seen as mail", 1, None),
    Mail("b", 1, "c", "exit", "unread", 1, None),
)
"""The mail that there is. The fourth of "a" was deleted."""

MESSAGES = sum(len(drafts) for _, drafts in LOGS.values())


def found_family(store: Store) -> None:
    """Agent 0 "root" in a turn, in which it called a tool; "a" is forked after a mark, "b" is dead, "c" is forked by a
    call and in a turn; "g" is the child of "a", and answers a call of "root". There is mail, and a document; "a" was
    stopped and continued, restarted twice, asked for two things, and has labels and a timer. There are `budgets`.
    """

    def work(tx: Transaction) -> None:
        add_host(tx, "old")
        tx.run("end_host", id="old")
        add_host(tx, NOW)
        make_root(tx, "root", 1)
        for uuid, parent in (("a", "root"), ("b", "root"), ("c", "root"), ("g", "a")):
            add(tx, uuid, parent, name=f"name of {uuid}", fork=LOGS[uuid][0])
        tx.run("set_turn", uuid="root", turn=10)
        tx.run("set_turn", uuid="c", turn=13)
        tx.run("bury", uuids=["b"], cause="killed", sender=None, reason="test", now=2)
        tx.append([(*astuple(mail), None, 0) for mail in MAIL], "mail")
        tx.run("count_mail", uuids=["a"], mailed=4, unread=1)
        tx.run("count_mail", uuids=["b"], mailed=1, unread=1)
        for signal in ("STOP", "CONT"):
            tx.run(
                "add_signal",
                agent="a",
                signal=signal,
                spread=0,
                turn=0,
                sender="root",
                reason="",
                now=1,
                principal=None,
            )
        for reason in ("once", "twice"):
            tx.run("add_restart", agent="a", supervisor="root", turn=0, reason=reason, now=1)
        for kind in ("clear", "mark"):
            tx.run("add_remote_command", agent="a", kind=kind, body="{}", mailed=0, now=1)
        tx.run("answer_remote_command", agent="a", id=1, answer='{"value": 7}', now=2)
        tx.run("claim_call", scope="a", key="k1", agent="a", verb="send", asked="0" * 64, about="tea", now=1)
        tx.run("set_endpoint", name="shop", agent="root", spec=EndpointSpec("github", ("env:S",)).encode(), now=1)
        facts = {"gave": '{"agent": "root", "mail": 1}', "child": None, "request": None, "sha256": "0" * 64}
        tx.run(
            "add_arrival",
            endpoint="shop",
            id="d1",
            number=1,
            now=1,
            again_of=None,
            status="taken",
            headers="{}",
            body=b"tea",
            **facts,
        )
        spec = SubscriptionSpec(("env:S",)).encode()
        tx.run(
            "add_subscription", id="s1", url="https://x/", scope="c", below=1, kinds=",turn.stuck,", spec=spec, now=1
        )
        tx.run("post_event", agent="c", position=13, kind="turn.stuck", about="t13", now=2)
        tx.run("add_member", agent="a", position=11, attempt=1, service="s:m", now=2, due=3, body=b"{}")
        tx.run("add_batch", id="b1", service="s:m", size=1, now=2)
        tx.run("seal_member", batch="b1", agent="a", position=11, attempt=1)
        guests.append_entries(
            tx, guests.make_guest(tx, GuestPlace("test", "", "tea")), [GuestEntry(data="1"), GuestEntry(data="2")]
        )
        guests.fork_guest(tx, GuestPlace("test", "", "tea"), GuestPlace("test", "", "coffee"))
        tx.run("make_group", name="tea")
        tx.run("join_group", name="tea", agent="c", now=1)
        tx.run("add_monitor", agent="c", watcher="g", now=1)
        tx.run("new_timer_id", agent="a")
        when = {"due": 9, "schedule": "0 9 * * *", "zone": "UTC", "fires_as": "notice"}
        tx.run("add_timer", agent="a", id=1, sender="root", body="tea", now=1, **when)
        tx.run("add_document_version", path="plan.md", version=1, author="a", body="# Plan", now=1, principal=None)
        tx.run("add_document_version", path="plan.md", version=2, author=None, body=None, now=2, principal=None)
        budgets(tx)
        tx.append([SpendingRow("root", 5, set_id(TEA), 1, 3, 0)], "spendings")
        keep_labels(tx, TEA)
        chain = HashChain()
        for uuid, (fork, drafts) in LOGS.items():
            messages = [
                Message(uuid, place, kind, "text", data, 1) for place, (kind, data) in enumerate(drafts, fork + 1)
            ]
            write_log(tx, messages, chain)

    ensure_schema(store)
    store.write(work)


def budgets(tx: Transaction) -> None:
    """The budgets of the family: of "root", and a strict one of "a". A request of "c" is open, one of "root" waits."""
    for statement in (
        "INSERT INTO budgets (owner, above, strict, created_at) VALUES ('a', 'root', 1, 1)",
        "UPDATE budgets SET paused = 1 WHERE owner = 'root'",
        "INSERT INTO limits (budget, unit, granted) VALUES ('root', 'tokens', 1000)",
        "INSERT INTO limits (budget, unit, granted, used) VALUES ('root', 'agents', 9, 3), ('a', 'tokens', 100, 1)",
        f"INSERT INTO portions VALUES ('root', 'tokens', '{NOW}', 500, 5, 7, 0, 0)",
        f"INSERT INTO portions VALUES ('a', 'tokens', '{NOW}', 50, 0, 2, 0, 0)",
        "UPDATE agents SET budget = 'a' WHERE uuid IN ('a', 'g')",
        f"UPDATE agents SET spent_tokens = 3, labels = '{TEA}' WHERE uuid = 'a'",
        f"UPDATE agents SET spent_tokens = 4, held_at = 13, held_tokens = 5, held_host = '{NOW}' WHERE uuid = 'c'",
        f"INSERT INTO pieces VALUES ('{NOW}', 1, 'a', 1, 10, '[[\"text\", \"tea\"]]')",
        "INSERT INTO pauses VALUES ('root', 'root', 'tokens', 1, 10, 10, '', 1, NULL)",
    ):
        tx.schema.execute(statement)


LAWLESS = (
    "PRAGMA foreign_keys = OFF",
    "PRAGMA ignore_check_constraints = ON",
    "DROP INDEX IF EXISTS agents_root",
    "DROP INDEX IF EXISTS agents_name",
)
"""Statements after which a connection to SQLite, which is in no transaction, may do what no program of ours could."""


def damage(url: str, *statements: str, hashes: bool = True) -> None:
    """Run statements as no program of ours could: without foreign keys, checks and unique indexes.

    ``hashes``: give every message the hash that its history then has, so that only other laws see what was done.
    """
    if url.startswith("sqlite:///"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as connection:
            for statement in (*LAWLESS, *statements):
                connection.execute(statement)
            if hashes:
                for row in _new_hashes(lambda sql: connection.execute(sql).fetchall()):
                    connection.execute("UPDATE messages SET hash = ? WHERE agent_uuid = ? AND id = ?", row)
        return
    with psycopg.connect(url, autocommit=True) as server:
        server.execute("SET session_replication_role = replica")  # without foreign keys
        for statement in statements:
            while not _done(server, statement):
                pass
        if hashes:
            for row in _new_hashes(lambda sql: server.execute(sql.encode()).fetchall()):
                server.execute("UPDATE messages SET hash = %s WHERE agent_uuid = %s AND id = %s", row)


def damage_within(tx: Transaction, *statements: str, hashes: bool = True) -> None:
    """The same in a transaction of SQLite, which can be rolled back; its connection has run `LAWLESS`."""
    for statement in statements:
        tx.schema.execute(statement)
    if hashes:
        for digest, uuid, position in _new_hashes(tx.schema.execute):
            tx.schema.execute(message(uuid, position, f"hash = x'{digest.hex()}'"))


def _new_hashes(select: Callable[[str], list[Row]]) -> Iterator[tuple[bytes, str, int]]:
    """The hash that each message should have, with its place."""
    agents = select("SELECT uuid, parent_uuid, fork_message_id FROM agents")
    above = {agent: (parent, fork) for agent, parent, fork in agents}
    logs: dict[str, dict[int, Row]] = {}
    for row in select("SELECT agent_uuid, id, kind, content, data, created_at FROM messages ORDER BY id"):
        logs.setdefault(row[0], {})[row[1]] = row
    known: dict[tuple[str | None, int], bytes] = {}
    for uuid, position in sorted(((agent, at) for agent, log in logs.items() for at in log), key=itemgetter(1)):
        holder: str | None = uuid
        seen = set[str | None]()
        while holder not in seen and holder in above and above[holder][1] >= position - 1:
            seen.add(holder)
            holder = above[holder][0]
        before = known.get((holder, position - 1), EMPTY_HASH)
        known[uuid, position] = hash_after(before, logs[uuid][position])
        yield known[uuid, position], uuid, position


def _done(server: "psycopg.Connection[Any]", statement: str) -> bool:
    """Run a statement, or drop what forbids it."""
    try:
        server.execute(statement.encode())
    except psycopg.errors.CheckViolation as error:
        server.execute(f"ALTER TABLE {error.diag.table_name} DROP CONSTRAINT {error.diag.constraint_name}".encode())
    except psycopg.errors.UniqueViolation as error:
        server.execute(f"DROP INDEX {error.diag.constraint_name}".encode())
    else:
        return True
    return False


def agent(uuid: str, assignment: str) -> str:
    """The statement that changes an agent's row."""
    return f"UPDATE agents SET {assignment} WHERE uuid = '{uuid}'"


def message(uuid: str, position: int, assignment: str) -> str:
    """The statement that changes a message."""
    return f"UPDATE messages SET {assignment} WHERE agent_uuid = '{uuid}' AND id = {position}"


def without(uuid: str, condition: str) -> str:
    """The statement that deletes messages."""
    return f"DELETE FROM messages WHERE agent_uuid = '{uuid}' AND id {condition}"


def more(uuid: str, *rows: tuple[int, str, str]) -> str:
    """The statement that adds messages: position, kind, data."""
    values = ", ".join(f"('{uuid}', {position}, '{kind}', '', '{data}', 1, 'none')" for position, kind, data in rows)
    return f"INSERT INTO messages (agent_uuid, id, kind, content, data, created_at, hash) VALUES {values}"


def mail(recipient: str, number: int, assignment: str) -> str:
    """The statement that changes a mail."""
    return f"UPDATE mail SET {assignment} WHERE recipient = '{recipient}' AND id = {number}"
