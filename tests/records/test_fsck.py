"""Fsck: a sound database has no violation, and each violation is found, named, and told once."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, Reply, ScriptedProvider, ToolCall
from ikigai_actors.agent.boot import survey
from ikigai_actors.errors import HistoryError
from ikigai_actors.records.fsck import check as fsck
from ikigai_actors.records.fsck.check import check, climb, inspect
from ikigai_actors.records.fsck.invariants import Invariant, Violation
from ikigai_actors.records.log.log_cache import LogCache
from ikigai_actors.records.messages.acts import digest_of_act
from ikigai_actors.store import Store, Transaction, open_store
from ikigai_actors.store.base import T
from ikigai_actors.store.forwarding import ForwardingStore
from ikigai_actors.store.sqlite.store import SQLiteStore
from ikigai_actors.tools.function import tool
from tests.kit.blocking_provider import DEADLINE
from tests.kit.damage import (
    LAWLESS,
    LOGS,
    MESSAGES,
    NOW,
    agent,
    damage,
    damage_within,
    found_family,
    mail,
    message,
    more,
    without,
)
from tests.kit.databases import sql
from tests.kit.program import Program, run
from tests.kit.trees import add_host, plant

SECOND_ROOT = (
    "INSERT INTO agents (uuid, fork_message_id, status, created_at, epoch) VALUES ('second', 0, 'running', 1, 1)"
)

BURIED = "awake = 0, ended_at = 5, exit_reason = 'test', exit_cause = 'killed'"

Case = tuple[Invariant, str | None, str | list[str]]
"""What is to be found, at whom, and the damage."""


def summary(position: int = 12, **data: int) -> list[str]:
    """The statements that add a summary to the log of "a"."""
    return [more("a", (position, "summary", json.dumps(data))), message("a", position, "content = 'text'")]


def born_within_a_step(at: int) -> list[str]:
    """The statements that move the fork point of "b", which has two messages."""
    rows = [("root", 9, f'{{"child": "b", "at": {at}}}'), ("b", 9, f'{{"parent": "root", "at": {at}}}')]
    begins = [message("b", 9, f"id = {at + 1}"), message("b", 10, f"id = {at + 2}")]
    return [agent("b", f"fork_message_id = {at}"), *(message(*row[:2], f"data = '{row[2]}'") for row in rows), *begins]


def idle(uuid: str) -> list[str]:
    """The statements that end the turn of an agent, and its request."""
    return [agent(uuid, "turn = 0, held_at = 0, held_tokens = 0, held_host = NULL"), "UPDATE portions SET held = 0"]


def pruned(uuid: str) -> list[str]:
    """The statements that bury and prune an agent, whose children go on without it."""
    buried = agent(uuid, f"status = 'dead', way = 1, on_orphan = 'continue', unread = 0, pruned_at = 9, {BURIED}")
    return [buried, "DELETE FROM timers", "UPDATE limits SET used = used - 1 WHERE unit = 'agents'"]


ATTACHED = '{"attached": [{"sha256": "00", "media": "image/png", "size": 1, "name": ""}]}'

MERGED = "INSERT INTO merges VALUES ('root', 'a', 11, 15, 1)"


def acts(*ids: str) -> str:
    """The statement that adds a reply of a program to the log of "a"."""
    calls = [{"id": identity, "name": "step", "input": {"args": []}} for identity in ids]
    made = {"model": "lead:", "made_by": f"lead@{'0' * 12}", "tool_calls": calls}
    return more("a", (12, "assistant", json.dumps(made)))


SAME = digest_of_act("step", {"args": []})
"""How the acts of these replies are named."""

WORD = [
    "UPDATE agents SET mailed = 1 WHERE uuid = 'root'",
    "INSERT INTO mail VALUES ('root', 1, NULL, 'prompt', '', 1, 2, '{\"steer\": true}', 0)",
    more("root", (15, "steer", '{"steer": true, "mail": 1, "turn": 10}')),
]
"""A word that "root" has read."""

CASES: list[Case] = [
    (Invariant.AGENT_0, None, SECOND_ROOT),
    (Invariant.AGENT_0, "root", [agent("root", f"status = 'dead', turn = 0, {BURIED}"), "DELETE FROM pauses"]),
    (Invariant.PARENT, "a", agent("a", "parent_uuid = 'nobody'")),
    (Invariant.LINEAGE, "a", agent("a", "parent_uuid = 'g'")),
    (Invariant.LINEAGE, "c", agent("c", "parent_uuid = 'c'")),
    (Invariant.LINEAGE, "c", agent("c", "branch = 'nobody'")),
    (Invariant.SUPERVISOR, "a", agent("a", "supervisor_uuid = 'nobody'")),
    (Invariant.SUPERVISOR, "b", agent("b", "supervisor_uuid = 'nobody'")),
    (Invariant.SUPERVISOR, "a", agent("a", "supervisor_uuid = NULL")),
    (Invariant.SUPERVISOR, "root", agent("root", "supervisor_uuid = 'c'")),
    (Invariant.SUPERVISORS, "a", agent("a", "supervisor_uuid = 'g'")),
    (Invariant.LIVING_SUPERVISOR, "g", agent("g", "supervisor_uuid = 'b'")),
    (Invariant.WAY, "b", [agent("g", "supervisor_uuid = 'b'"), agent("b", "on_orphan = 'continue'")]),
    (Invariant.STATUS, "g", agent("g", "status = 'asleep'")),
    (Invariant.STATUS, "g", agent("g", "restart = 'sometimes'")),
    (Invariant.STATUS, "g", agent("g", "strategy = 'hope'")),
    (Invariant.STATUS, "g", agent("g", "on_orphan = 'weep'")),
    (Invariant.DEATH, "b", agent("b", "turn = 10")),
    (Invariant.DEATH, "b", agent("b", "exit_reason = NULL")),
    (Invariant.DEATH, "b", agent("b", "ended_at = NULL")),
    (Invariant.DEATH, "a", agent("a", "ended_at = 5")),
    (Invariant.DEATH, "a", agent("a", "exit_cause = 'killed'")),
    (Invariant.DEATH, "b", agent("b", "exit_cause = NULL")),
    (Invariant.DEATH, "b", agent("b", "exit_sender = 'nobody'")),
    (Invariant.AWAKE, "root", agent("root", "awake = 0")),
    (Invariant.AWAKE, "b", agent("b", "awake = 1")),
    (Invariant.PRUNED, "a", agent("a", "pruned_at = 9")),
    (Invariant.PRUNED, "b", agent("b", "pruned_at = 9")),
    (Invariant.PRUNED, "g", pruned("a")),
    (Invariant.DEADLINE, "a", agent("a", "deadline = 5")),
    (Invariant.DEADLINE, "b", agent("b", "deadline = 5")),
    (Invariant.DEADLINE, "a", agent("a", "status = 'terminating'")),
    (Invariant.SIGNAL, "nobody", "UPDATE signals SET agent_uuid = 'nobody'"),
    (Invariant.SIGNAL, "a", "UPDATE signals SET sender = 'nobody' WHERE id = 1"),
    (Invariant.SIGNAL, "a", "DELETE FROM signals WHERE id = 1"),
    (Invariant.RESTART, "nobody", "UPDATE restarts SET agent_uuid = 'nobody'"),
    (Invariant.RESTART, "a", "UPDATE restarts SET supervisor_uuid = 'nobody' WHERE id = 1"),
    (Invariant.RESTART, "a", "UPDATE restarts SET id = 3 WHERE id = 2"),
    (Invariant.ACT, "a", acts(f"{'0' * 16}-0")),
    (Invariant.ACT, "a", acts(f"{SAME}-x")),
    (Invariant.ACT, "a", acts(f"{SAME}-1")),
    (Invariant.ACT, "a", acts(f"{SAME}-0", f"{SAME}-2")),
    (Invariant.ACT, "a", acts(f"{SAME}-0", f"{SAME}-0")),
    (Invariant.KEYED_CALL, "a", "UPDATE calls SET scope = 'nobody'"),
    (Invariant.KEYED_CALL, "nobody", "UPDATE calls SET agent = 'nobody'"),
    (Invariant.KEYED_CALL, "a", "UPDATE calls SET verb = ''"),
    (Invariant.KEYED_CALL, "a", "UPDATE calls SET key = ''"),
    (Invariant.KEYED_CALL, "a", "UPDATE calls SET asked = 'tea'"),
    (Invariant.KEYED_CALL, "a", "UPDATE calls SET gave = '[]'"),
    (Invariant.KEYED_CALL, "a", "UPDATE calls SET gave = '" + "[" * 100_000 + "'"),
    (Invariant.ARRIVAL, "root", "UPDATE endpoints SET spec = '{}'"),
    (Invariant.DELIVERY, None, "UPDATE subscriptions SET spec = '{}'"),
    (Invariant.DELIVERY, None, "UPDATE subscriptions SET kinds = ',tea,'"),
    (Invariant.DELIVERY, "c", "UPDATE subscriptions SET ended_at = 3"),
    (Invariant.DELIVERY, "c", "UPDATE deliveries SET done_at = 3"),
    (Invariant.BATCH, "a", "UPDATE batch_members SET body = NULL"),
    (Invariant.BATCH, "a", "UPDATE batches SET ended_at = 5"),
    (Invariant.BATCH, "a", "UPDATE batch_members SET state = 'answered'"),
    (Invariant.DELIVERY, "c", "UPDATE deliveries SET tries = -1"),
    (Invariant.DELIVERY, "c", "UPDATE deliveries SET kind = 'turn.done', position = 1"),
    (Invariant.ARRIVAL, None, "UPDATE arrivals SET number = 0"),
    (Invariant.ARRIVAL, None, "UPDATE arrivals SET gave = '[]'"),
    (Invariant.ARRIVAL, "root", "UPDATE arrivals SET became = 'filtered'"),
    (Invariant.GUEST, None, "UPDATE guest_logs SET name = NULL WHERE name = 'coffee'"),
    (Invariant.GUEST, None, "UPDATE guest_logs SET parent = NULL WHERE name = 'coffee'"),
    (Invariant.GUEST, None, "UPDATE guest_logs SET upto = 0 WHERE name = 'coffee'"),
    (Invariant.GUEST, None, "UPDATE guest_entries SET id = 3 WHERE id = 2"),
    (Invariant.GUEST, None, "UPDATE guest_entries SET log = 'nobody' WHERE id = 2"),
    (Invariant.REMOTE_COMMAND, "nobody", "UPDATE requests SET agent_uuid = 'nobody'"),
    (Invariant.REMOTE_COMMAND, "a", "UPDATE requests SET id = 3 WHERE id = 2"),
    (Invariant.REMOTE_COMMAND, "a", "UPDATE requests SET body = 'no json' WHERE id = 2"),
    (Invariant.REMOTE_COMMAND, "a", "UPDATE requests SET answer = '" + "[" * 100_000 + "' WHERE id = 1"),
    (Invariant.PIECES, "nobody", "UPDATE pieces SET agent_uuid = 'nobody'"),
    (Invariant.PIECES, "a", "UPDATE pieces SET host = 'nobody'"),
    (Invariant.PIECES, "a", "UPDATE pieces SET body = '[5]'"),
    (Invariant.NAME, "g", agent("g", "name = 'name of a'")),
    (Invariant.EPOCH, "g", agent("g", "epoch = 0")),
    (Invariant.EPOCH, None, "UPDATE hosts SET epoch = 9 WHERE id = 'old'"),
    (Invariant.HOST, None, "UPDATE hosts SET ended_at = NULL"),
    (Invariant.OWNER, "a", agent("a", "shard = 64")),
    (Invariant.OWNER, None, "UPDATE shards SET host = 'nobody' WHERE id = 5"),
    (Invariant.OWNER, None, "UPDATE shards SET host = 'old' WHERE id = 5"),
    (Invariant.OWNER, None, "UPDATE shards SET host = NULL WHERE id = 5"),
    (Invariant.ONE_ROW, None, "DELETE FROM tree"),
    (Invariant.ONE_ROW, None, "INSERT INTO tree (one, version) VALUES (2, 1)"),
    (Invariant.ONE_ROW, None, "DELETE FROM schema_version"),
    (Invariant.LOG, "nobody", more("nobody", (1, "user", "{}"), (2, "rewind", "{}"))),
    (Invariant.POSITION, "root", without("root", "= 1")),
    (Invariant.POSITION, "root", without("root", "IN (4, 5)")),
    (Invariant.POSITION, "root", without("root", "= 2")),  # the reply whose call is answered
    (Invariant.POSITION, "root", without("root", "= 6")),  # the mark that is rewound to
    (Invariant.POSITION, "root", without("root", "= 7")),  # the fork of "a"
    (Invariant.POSITION, "root", without("root", "= 10")),  # the beginning of the open turn
    (Invariant.POSITION, "a", without("a", "= 7")),
    (Invariant.POSITION, "c", [without("c", "= 13"), message("c", 12, "id = 11"), *idle("c")]),
    (Invariant.DATA, "root", message("root", 5, "data = 'no json'")),
    (Invariant.DATA, "root", message("root", 5, "data = '[1]'")),
    (Invariant.DATA, "root", message("root", 5, "data = '" + "[" * 100_000 + "'")),
    (Invariant.DATA, "root", message("root", 2, """data = '{"blocks": 5}'""")),
    (Invariant.DATA, "root", message("root", 6, "data = 'no json'")),
    (Invariant.DATA, "root", message("root", 7, "data = 'no json'")),
    (Invariant.DATA, "root", message("root", 11, "data = 'no json'")),  # in a log that "g" refers to
    (Invariant.DATA, "root", message("root", 2, """data = '{"usage": 5}'""")),
    (Invariant.DATA, "root", message("root", 3, """data = '{"tool_use_id": ["c1"]}'""")),
    (Invariant.DATA, "root", message("root", 3, """data = '{"tool_use_id": "c1", "name": "wait", "deadline": "x"}'""")),
    (Invariant.DATA, "a", more("a", (12, "configure", '{"model": 5}'))),
    (Invariant.DATA, "a", more("a", (12, "configure", '{"compact": "perhaps"}'))),
    (Invariant.DATA, "a", more("a", (12, "mail", '{"unread": "many"}'))),
    (Invariant.HASH, "a", message("a", 9, "content = 'other'")),
    (Invariant.HASH, "b", message("b", 10, "created_at = 2")),
    (Invariant.HASH, "c", message("c", 12, "content = 'other'")),
    (Invariant.TIME, "root", message("root", 5, "created_at = 0")),
    (Invariant.TIME, "g", message("g", 11, "created_at = -1")),
    (Invariant.FORK_POINT, "g", without("a", ">= 10")),
    (Invariant.FORK_POINT, "g", [agent("g", "fork_message_id = 12"), without("g", "> 0")]),
    (Invariant.FORK_MESSAGE, "root", message("root", 7, """data = '{"child": "nobody"}'""")),
    (Invariant.FORK_MESSAGE, "root", message("root", 7, """data = '{"child": "b"}'""")),
    (Invariant.FORK_MESSAGE, "root", message("root", 7, """data = '{"child": ["a"]}'""")),
    (Invariant.FORK_MESSAGE, "root", message("root", 7, "data = NULL")),
    (Invariant.FORK_MESSAGE, "root", message("root", 14, """kind = 'fork', data = '{"child": "a"}'""")),
    (Invariant.FORK_MESSAGE, "a", message("a", 7, """data = '{"parent": "b"}'""")),
    (Invariant.FORK_MESSAGE, "g", message("a", 11, "kind = 'mail'")),
    (Invariant.FORK_MESSAGE, "g", without("a", ">= 11")),
    (Invariant.FORK_MESSAGE, "g", without("g", "> 0")),
    (Invariant.FORK_MESSAGE, "b", message("b", 9, "kind = 'user', data = NULL")),
    (Invariant.FORK_MESSAGE, "a", message("a", 7, """data = '{"parent": "root", "by": "b"}'""")),  # "b" does not say so
    (Invariant.FORK_AT, "a", message("root", 7, """data = '{"child": "a", "at": 5}'""")),
    (Invariant.FORK_AT, "a", message("a", 7, """data = '{"parent": "root", "at": 5}'""")),
    (Invariant.FORK_AT, "b", born_within_a_step(at=2)),
    (Invariant.EXPERIMENT, "a", more("a", (12, "note", '{"verdicts": [[1, 1, "", false, 3]]}'))),  # on nobody
    (Invariant.EXPERIMENT, "a", more("a", (12, "note", '{"verdicts": 5}'))),
    (Invariant.EXPERIMENT, "root", message("root", 7, """data = '{"child": "a", "number": 2}'""")),
    (Invariant.TURN, "root", agent("root", "turn = 11")),
    (Invariant.TURN, "root", agent("root", "turn = 99")),
    (Invariant.TURN, "root", agent("root", "turn = -1")),
    (Invariant.TURN, "a", agent("a", "turn = 1, awake = 1")),  # a prompt, of its parent
    (Invariant.TURN, "c", agent("c", "turn = 11")),  # its birth, which does not say that it goes on
    (Invariant.REWIND, "root", message("root", 8, """data = '{"mark": 5}'""")),
    (Invariant.REWIND, "root", message("root", 8, """data = '{"mark": 14}'""")),  # a later one
    (Invariant.REWIND, "root", message("root", 8, """data = '{"mark": "6"}'""")),
    (Invariant.REWIND, "root", message("root", 8, """data = '{"mark": [6]}'""")),
    (Invariant.REWIND, "root", message("root", 8, "data = NULL")),
    (Invariant.REWIND, "a", message("a", 8, """data = '{"mark": 1}'""")),
    (Invariant.REWIND, "c", more("c", (14, "mail", "{}"), (15, "rewind", '{"mark": 14}'))),  # 14 is a mark of "root"
    (Invariant.SUMMARY, "a", summary(keep_from=13)),  # behind itself
    (Invariant.SUMMARY, "a", summary(keep_from=3)),  # between an inherited call and its result
    (Invariant.SUMMARY, "a", summary(keep_from=9, prompt=10)),  # a reply
    (Invariant.SUMMARY, "a", summary(keep_from=9, prompt=9)),  # is shown anyway
    (Invariant.SUMMARY, "a", summary(keep_from=9, elide=13)),
    (Invariant.SUMMARY, "a", [*summary(keep_from=9), *summary(13, keep_from=5)]),  # more than the one below
    (Invariant.UNCOMPACT, "a", more("a", (12, "uncompact", "{}"))),
    (Invariant.UNCOMPACT, "a", [*summary(keep_from=9), more("a", (13, "uncompact", '{"summary": 11}'))]),
    (Invariant.MERGE, "root", more("root", (15, "merge", '{"from": "a", "head": 11}'))),
    (Invariant.MERGE, "root", "INSERT INTO merges VALUES ('root', 'a', 11, 14, 1)"),
    (Invariant.MERGE, "root", [more("root", (15, "merge", '{"from": "a", "head": 11}')), MERGED.replace("11", "10")]),
    (Invariant.MERGE, "root", [more("root", (15, "merge", '{"from": "a", "head": 99}')), MERGED.replace("11", "99")]),
    (Invariant.CALL, "root", message("root", 3, """data = '{"tool_use_id": "c2"}'""")),
    (Invariant.CALL, "root", message("root", 4, """data = '{"tool_use_id": "f1"}'""")),  # of a later reply
    (Invariant.CALL, "root", message("root", 4, "data = NULL")),
    (Invariant.CALL, "c", message("c", 13, """data = '{"tool_use_id": "c2"}'""")),
    (Invariant.CALL, "a", more("a", (12, "tool_result", '{"tool_use_id": "f1"}'))),  # of "root", after the fork
    (Invariant.MAIL, "nobody", mail("a", 1, "recipient = 'nobody'")),
    (Invariant.MAIL, "a", mail("a", 1, "sender = 'nobody'")),
    (Invariant.MAIL_ID, "a", agent("a", "mailed = 2")),
    (Invariant.MAIL_ID, "a", mail("a", 1, "id = 0")),
    (Invariant.WORD, "root", more("root", (15, "steer", '{"steer": true, "mail": 1, "turn": 10}'))),
    (Invariant.WORD, "root", [*WORD, "UPDATE mail SET read_at = NULL WHERE recipient = 'root'"]),
    (Invariant.WORD, "root", [*WORD, "UPDATE mail SET body = 'milk' WHERE recipient = 'root'"]),
    (Invariant.WORD, "root", [*WORD, "DELETE FROM messages WHERE agent_uuid = 'root' AND id = 15"]),
    (Invariant.WORD, "root", [*WORD, message("root", 15, """data = '{"steer": true, "mail": 1, "turn": 1}'""")]),
    (Invariant.WORD, "root", [*WORD, more("root", (16, "tool_result", '{"tool_use_id": "f1"}'))]),
    (Invariant.WORD, "root", [*WORD, more("root", (16, "steer", '{"steer": true, "mail": 1, "turn": 10}'))]),
    (Invariant.UNREAD, "a", agent("a", "unread = 2")),  # the prompt is not counted
    (Invariant.UNREAD, "b", mail("b", 1, "read_at = 5")),
    (Invariant.UNREAD, "g", agent("g", "unread = 1")),
    (Invariant.BLOB, "root", message("root", 1, f"data = '{ATTACHED}'")),
    (Invariant.DEFINITION, None, "INSERT INTO definitions VALUES ('0123', 'post', '{}')"),
    (
        Invariant.DEFINITION,
        "root",
        more("root", (15, "approval", '{"tool_use_id": "f1", "definition": "0123", "approved": true}')),
    ),
    (
        Invariant.QUESTION,
        "root",
        """INSERT INTO questions
           (id, agent_uuid, position, reply, call, kind, asks, digest, terms, asked_at, answered_at, how)
           VALUES ('of another', 'root', 1, 1, 'f1', 'approve', '[]', '', '', 1, 2, 'void')""",
    ),
    (Invariant.BUILD, None, "INSERT INTO builds VALUES ('b', '{\"post\":\"0123\"}', '', 1)"),
    (Invariant.BUILD, None, "INSERT INTO builds VALUES ('b', '[]', '', 1)"),
    (Invariant.BUILD, None, "UPDATE hosts SET build = 'b', tools = '{}'"),
    (Invariant.DOCUMENT, None, "UPDATE documents SET author = 'nobody' WHERE version = 1"),
    (Invariant.VERSION, None, "DELETE FROM documents WHERE version = 1"),
    (Invariant.VERSION, None, "UPDATE documents SET version = 3 WHERE version = 2"),
    (Invariant.BUDGET, "root", "UPDATE budgets SET above = 'root' WHERE owner = 'root'"),
    (Invariant.BUDGET, "a", "UPDATE budgets SET above = 'nobody' WHERE owner = 'a'"),
    (Invariant.BUDGET, "a", "UPDATE budgets SET above = 'a' WHERE owner = 'a'"),
    (Invariant.BUDGET, "nobody", "INSERT INTO budgets (owner, above, created_at) VALUES ('nobody', 'root', 1)"),
    (Invariant.BUDGET, "g", agent("g", "budget = 'nobody'")),
    (Invariant.HOLD, "root", "UPDATE portions SET held = 6 WHERE budget = 'root'"),
    (Invariant.HOLD, "root", agent("c", "held_tokens = 4")),
    (Invariant.HOLD, "c", [agent("c", "held_tokens = 0, held_host = NULL"), "UPDATE portions SET held = 0"]),
    (Invariant.SPENDING, "root", "UPDATE limits SET used = 1 WHERE budget = 'root' AND unit = 'tokens'"),
    (Invariant.SPENDING, "root", agent("c", "spent_tokens = 5")),
    (Invariant.SPENDING, "root", "UPDATE limits SET used = 2 WHERE unit = 'agents'"),
    (Invariant.COST, "root", "DELETE FROM spendings"),
    (Invariant.COST, "root", "UPDATE spendings SET tokens = 4"),
    (Invariant.COST, "root", "UPDATE spendings SET id = 9"),
    (Invariant.COST, "g", "INSERT INTO spendings VALUES ('g', 11, '', 1, 3, 0)"),
    (Invariant.LABELS, None, "UPDATE label_values SET value = 'milk'"),
    (Invariant.LABELS, None, "UPDATE spendings SET labels = '0123456789abcdef'"),
    (Invariant.LABELS, "a", agent("a", "labels = '[]'")),
    (Invariant.LABELS, "a", agent("a", """labels = '{"team":"milk"}'""")),
    (Invariant.STRICT, "a", "UPDATE limits SET granted = 2 WHERE budget = 'a'"),
    (Invariant.STRICT, "a", "UPDATE portions SET allotted = 100 WHERE budget = 'a'"),
    (Invariant.PAUSE, "root", "UPDATE pauses SET number = 7"),
    (Invariant.RULE, "a", "INSERT INTO rules VALUES ('a', 2, 'deny', 'do', '', 'below', 1, NULL, NULL, NULL)"),
    (Invariant.RULE, "a", "INSERT INTO rules VALUES ('a', 1, 'deny', 'a b', '', 'below', 1, NULL, NULL, NULL)"),
    (Invariant.RULE, "a", "INSERT INTO rules VALUES ('a', 1, 'deny', 'bash', 'git*', 'self', 1, 2, NULL, NULL)"),
    (
        Invariant.RULE,
        "nobody",
        "INSERT INTO rules VALUES ('nobody', 1, 'deny', 'do', '', 'below', 1, NULL, NULL, NULL)",
    ),
    (Invariant.TREE, "a", "INSERT INTO trees VALUES ('a', '/w', 'm', 'overlay', 'root', 1, 0, 0, 1, NULL)"),
    (Invariant.TREE, "a", "INSERT INTO trees VALUES ('a', '/w', 'm', 'overlay', NULL, 1, 0, 0, 1, NULL)"),
    (Invariant.TREE, "nobody", "INSERT INTO trees VALUES ('nobody', '/w', 'm', 'overlay', NULL, 0, 0, 0, 1, NULL)"),
    (
        Invariant.TREE,
        "a",
        [
            "INSERT INTO trees VALUES ('a', '/w', 'm', 'overlay', 'c', 0, 0, 0, 1, NULL)",
            "INSERT INTO trees VALUES ('c', '/w', 'm', 'overlay', 'a', 0, 0, 0, 1, NULL)",
        ],
    ),
    (Invariant.TREE, "a", "INSERT INTO tree_writes VALUES ('a', '/w', 0, 1)"),
    (Invariant.TREE, "nobody", "INSERT INTO tree_writes VALUES ('nobody', '/w', -1, 1)"),
    (Invariant.TREE, "a", "INSERT INTO tree_merges VALUES ('a', '/w', 0, 'c', 1, 1)"),
    (Invariant.GROUP, "b", "INSERT INTO groups (name, agent_uuid, joined_at) VALUES ('tea', 'b', 1)"),  # who is dead
    (Invariant.MONITOR, "b", "INSERT INTO monitors (agent_uuid, watcher, created_at) VALUES ('b', 'a', 1)"),
    (Invariant.MONITOR, "a", "INSERT INTO monitors (agent_uuid, watcher, created_at) VALUES ('a', 'a', 1)"),
    (Invariant.ASKED, "a", "INSERT INTO asked (agent, prompt, asker) VALUES ('c', 999, 'a')"),
    (Invariant.ASKED, "a", "INSERT INTO asked (agent, prompt, asker) VALUES ('b', 1, 'a')"),  # who is dead
    (Invariant.ASKED, "a", [WORD[0], "INSERT INTO asked (agent, prompt, asker, ended) VALUES ('root', 1, 'a', 2)"]),
    (Invariant.PARKED, "a", agent("a", "parked = 1")),  # who is in no turn
    (Invariant.PARKED, "root", agent("root", "parked = 1")),  # and awake
    (Invariant.PARKED, "root", agent("root", "parked = 2, awake = 0")),
    (Invariant.PARKED, "a", agent("a", "wake_at = 9")),
    (Invariant.TIMER, "a", "UPDATE timers SET id = 3"),
    (Invariant.TIMER, "a", "UPDATE timers SET latest = 9"),
    (Invariant.TIMER, "a", "UPDATE timers SET missed = 9"),
    (Invariant.TIMER, "a", "UPDATE timers SET sender = 'nobody'"),
    (Invariant.TIMER, "a", "UPDATE timers SET schedule = 'x'"),
    (Invariant.TIMER, "a", "UPDATE timers SET zone = 'Mars'"),
    (Invariant.TIMER, "a", "UPDATE timers SET fires_as = 'mail'"),
    (Invariant.TIMER, "b", "UPDATE timers SET agent_uuid = 'b'"),  # who is dead
    (Invariant.PAUSE, "root", agent("root", "turn = 0")),
]


@pytest.fixture(scope="module")
def family_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The family in an SQLite file, to be copied."""
    path = tmp_path_factory.mktemp("family") / "family.db"
    with closing(open_store(f"sqlite:///{path}")) as opened:
        found_family(opened)
    return path


@pytest.fixture
def family(durable: str, family_file: Path) -> Iterator[Store]:
    """The family, in a database that can be opened twice."""
    if copied := durable.startswith("sqlite:///"):
        shutil.copyfile(family_file, durable.removeprefix("sqlite:///"))
    opened = open_store(durable)
    if not copied:
        found_family(opened)
    yield opened
    opened.close()


def test_a_sound_database_has_no_violation(store: Store) -> None:
    found_family(store)
    report = inspect(store)
    assert (report.agents, report.messages, report.violations) == (len(LOGS), MESSAGES, [])


def test_hosts_with_names_share_the_agents_and_wait_for_one_that_shares_with_nobody(store: Store) -> None:
    def do(*statements: str) -> None:
        store.write(lambda tx: [sql(tx, statement) for statement in statements])

    found_family(store)
    store.write(lambda tx: add_host(tx, "a"))
    store.write(lambda tx: add_host(tx, "b"))
    do("UPDATE hosts SET name = id WHERE id IN ('a', 'b')")
    assert check(store) == []  # they wait
    do(f"UPDATE hosts SET ended_at = 5 WHERE id = '{NOW}'", "UPDATE shards SET host = NULL WHERE id = 1")
    do(*(f"UPDATE shards SET host = '{host}' WHERE id % 2 = {rest} AND id > 1" for rest, host in enumerate("ab")))
    assert check(store) == []
    do("UPDATE hosts SET ended_at = 5 WHERE id = 'b'")
    assert check(store) == []  # nobody has its shards at the moment


class Within(ForwardingStore):
    """A store whose readers see what a transaction has done that is still open."""

    def __init__(self, store: Store, tx: Transaction) -> None:
        super().__init__(store)
        self._tx = tx

    def read(self, work: Callable[[Transaction], T]) -> T:
        return work(self._tx)


class Found(Exception):
    """Ends a transaction that did damage."""


each_violation = pytest.mark.parametrize(
    ("invariant", "uuid", "statements"), [pytest.param(*case, id=f"{n}-{case[0]}") for n, case in enumerate(CASES)]
)


@pytest.fixture(scope="module")
def lawless() -> Iterator[Store]:
    """The family in memory, where a transaction may do any damage. Each rolls back, so the tests share it."""
    with closing(SQLiteStore()) as store:
        found_family(store)
        for statement in LAWLESS:
            store._writer.connection.execute(statement)
        yield store


def violations_after(
    lawless: Store, invariant: Invariant, statements: str | list[str], look: Callable[[Store], list[Violation]]
) -> list[tuple[Invariant, str | None]]:
    """Run statements, let ``look`` check the database, and undo them; return the violations that it finds."""
    changes = [statements] if isinstance(statements, str) else statements

    def harm(tx: Transaction) -> None:
        damage_within(tx, *changes, hashes=invariant is not Invariant.HASH)
        raise Found(*look(Within(lawless, tx)))

    with pytest.raises(Found) as caught:
        lawless.write(harm)
    return [(violation.invariant, violation.agent) for violation in caught.value.args]


@each_violation
def test_each_violation_is_found_and_is_the_only_one_reported(
    lawless: Store, invariant: Invariant, uuid: str | None, statements: str | list[str]
) -> None:
    assert violations_after(lawless, invariant, statements, check) == [(invariant, uuid)]


@pytest.mark.sample(40, "the violations of the test above, looked for in small batches")
@each_violation
def test_a_violation_is_found_in_small_batches_too(
    lawless: Store, invariant: Invariant, uuid: str | None, statements: str | list[str]
) -> None:
    assert violations_after(lawless, invariant, statements, lambda store: inspect(store, batch=1).violations) == [
        (invariant, uuid)
    ]


@pytest.mark.thorough("the server's statements; every run has them all on a sound database")
@pytest.mark.parametrize("durable_url", ["postgres"], indirect=True)
@each_violation
def test_each_violation_is_found_on_a_server(
    family: Store, durable: str, invariant: Invariant, uuid: str | None, statements: str | list[str]
) -> None:
    changes = [statements] if isinstance(statements, str) else statements
    damage(durable, *changes, hashes=invariant is not Invariant.HASH)
    assert [(violation.invariant, violation.agent) for violation in check(family)] == [(invariant, uuid)]


def test_sound_acts_of_a_program_are_no_violation(family: Store, durable: str) -> None:
    damage(durable, acts(f"{SAME}-0", f"{SAME}-1"))
    assert check(family) == []


def test_sound_summaries_are_no_violation(family: Store, durable: str) -> None:
    ends = more("a", (15, "uncompact", '{"summary": 14}'), (16, "uncompact", '{"summary": 13}'))
    damage(
        durable, *summary(keep_from=9), *summary(13, keep_from=9, elide=5), *summary(14, keep_from=14, prompt=9), ends
    )
    assert check(family) == []


def test_every_invariant_is_tested_and_stands_in_the_manual() -> None:
    assert {invariant for invariant, _, _ in CASES} == set(Invariant) - {Invariant.TYPE}  # that: test_bad_input.py
    table = [line.split()[0] for line in (fsck.__doc__ or "").splitlines() if line.startswith("    ")]
    assert table == list(Invariant)


def test_several_violations_are_all_reported(family: Store, durable: str) -> None:
    damage(
        durable,
        agent("g", "epoch = 0, turn = 99, awake = 1"),
        message("root", 8, """data = '{"mark": 5}'"""),
        SECOND_ROOT,
    )
    violations = {(violation.invariant, violation.agent) for violation in check(family)}
    assert violations == {
        (Invariant.AGENT_0, None),
        (Invariant.EPOCH, "g"),
        (Invariant.TURN, "g"),
        (Invariant.REWIND, "root"),
    }


def test_an_agent_0_that_has_a_fork_point_is_a_violation(store: Store) -> None:
    plant(store)
    store.write(lambda tx: tx.run("end_host", id="host 1"))
    assert check(store) == []
    store.write(lambda tx: tx.run("register_host", id="host 2", hostname="here", pid=1, lease=0))
    store.write(lambda tx: tx.run("claim_shards", host="host 2"))
    assert check(store) == []
    store.write(lambda tx: change_fork_point(tx, 3))
    assert [violation.invariant for violation in check(store)] == [Invariant.AGENT_0]


def change_fork_point(tx: Transaction, position: int) -> None:
    """Give agent 0 a fork point."""
    sql(tx, f"UPDATE agents SET fork_message_id = {position}")


def test_orphans_whom_a_dead_supervisor_left_are_sound(store: Store) -> None:
    found_family(store)
    store.write(lambda tx: tx.run("adopt", by="b", uuids=["g"], gave_up=None))
    assert [violation.invariant for violation in check(store)] == [Invariant.LIVING_SUPERVISOR]
    store.write(lambda tx: sql(tx, "UPDATE agents SET on_orphan = 'continue', way = 1 WHERE uuid = 'b'"))
    assert check(store) == []


def test_a_database_whose_first_boot_was_cut_off_before_agent_0_was_made_is_sound(store: Store) -> None:
    assert check(store) == []


def test_agents_without_an_agent_0_are_a_violation(store: Store) -> None:
    plant(store)
    store.write(lambda tx: sql(tx, "UPDATE agents SET parent_uuid = 'root', supervisor_uuid = 'root'"))
    assert (Invariant.AGENT_0, None) in [(violation.invariant, violation.agent) for violation in check(store)]


@pytest.mark.slow("takes a second")
def test_a_chain_of_twenty_thousand_and_a_circle_at_its_end_are_followed() -> None:
    chain: dict[str, str | None] = {str(number): str(number + 1) for number in range(20_000)}
    assert climb({**chain, "20000": None}) == ([], {str(number) for number in range(20_001)})
    circles, rooted = climb({**chain, "20000": "19999"})
    assert ([sorted(circle) for circle in circles], rooted) == ([["19999", "20000"]], set())
    assert climb(chain) == ([], set())  # it leads to nobody


def session(database: str) -> ActorSystem:
    """A system whose agent 0 has forked, prompted, marked, rewound, cleared and called tools; its turns are over."""

    @tool
    def count_lines(path: str) -> int:
        """Count the lines of a file."""
        return len(path)

    calls = Reply(tool_calls=(ToolCall("count_lines", {"path": "abc"}), ToolCall("no_such_tool", {})))
    forks = Reply(tool_calls=(ToolCall("fork", {"prompt": "go"}), ToolCall("count_lines", {}), ToolCall("fork", {})))
    provider = ScriptedProvider([calls, "three", "hello", forks, *["done"] * 3, calls, "three", "again"])
    system = ActorSystem.open(database, provider, tools=[count_lines])
    root = system.root
    root.prompt("count").get(timeout=DEADLINE)
    root.mark("before")
    child = root.fork("hello?", name="kid")
    child.reply(timeout=DEADLINE)
    child.rewind("before")
    root.prompt("split").get(timeout=DEADLINE)
    for each in root.children():
        each.reply(timeout=DEADLINE)
    root.rewind("before")
    root.configure(system="Be brief.")
    child.prompt("count").get(timeout=DEADLINE)
    child.clear()
    child.fork("again", name="grandkid").reply(timeout=DEADLINE)
    return system


@pytest.mark.slow("takes a tenth of a second")
def test_a_database_after_a_session_has_no_violation_while_it_is_open_and_when_it_is_closed(durable: str) -> None:
    with session(durable) as system:
        report = inspect(system._store)
        assert report.violations == []
        assert report.agents == len(system.agents()) == 5
        assert report.messages > 30
    with closing(open_store(durable)) as store:
        assert check(store) == []


def test_wrong_rows_of_agent_0_are_an_error_that_names_fsck(family: Store, durable: str) -> None:
    damage(durable, without("root", "= 5"))
    with pytest.raises(HistoryError, match="ikigai fsck"):
        LogCache(family).load("root")
    damage_more = agent("root", "turn = 99")
    family.write(lambda tx: sql(tx, damage_more))
    with pytest.raises(HistoryError, match="ikigai fsck"):
        survey(family, NOW, range(64))
    family.write(lambda tx: sql(tx, agent("root", "status = 'dead', ended_at = 5")))
    with pytest.raises(HistoryError, match="ikigai fsck"):
        survey(family, NOW, range(64))


@pytest.mark.slow("takes a second")
def test_the_command_says_that_a_sound_database_has_no_violation(family: Store, durable: str) -> None:
    done = run("--database", durable, "fsck")
    assert (done.returncode, done.stdout, done.stderr) == (0, "5 agents, 25 messages: no violation\n", "")
    done = run("--database", durable, "fsck", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout) == {"agents": 5, "messages": 25, "violations": []}


@pytest.mark.slow("takes a second")
def test_the_command_names_each_violation_and_fails(family: Store, durable: str) -> None:
    damage(durable, agent("g", "epoch = 0"), "UPDATE hosts SET epoch = 9 WHERE id = 'old'")
    done = run("--database", durable, "fsck")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        "epoch: g: expected its epoch to be 1 or more, got 0",
        "epoch: database: expected host now, which has not ended, to have the highest epoch, 9; got 2",
        "5 agents, 25 messages: 2 violations",
    ]
    done = run("--database", durable, "fsck", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["violations"][0] == {
        "invariant": "epoch",
        "agent": "g",
        "text": "expected its epoch to be 1 or more, got 0",
    }


@pytest.mark.slow("starts programs")
def test_the_command_counts_right_when_a_content_is_no_text(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'agents.db'}"
    with closing(open_store(url)) as store:
        found_family(store)
    damage(url, message("root", 5, "content = x'00'"))
    done = run("--database", url, "fsck")
    assert (done.returncode, done.stdout.splitlines()) == (
        1,
        [
            "type: database: values of another type in column messages.content",
            "5 agents, 25 messages: 1 violation",
        ],
    )


@pytest.mark.slow("starts programs")
def test_the_command_makes_no_database(tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    done = run("--database", str(tmp_path / "none.db"), "fsck")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"ikigai: There is no database {tmp_path / 'none.db'}.")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.slow("starts programs")
def test_the_command_works_beside_a_running_shell_and_after_a_hard_kill(durable: str) -> None:
    with Program.by_pipe("--database", durable) as shell:
        shell.say("tea")
        shell.expect("You said “tea”")
        shell.say("/fork --name young")
        shell.expect("inherits")
        done = run("--database", durable, "fsck")
        assert (done.returncode, done.stdout, done.stderr) == (0, "2 agents, 4 messages: no violation\n", "")
        shell.say("milk")
        shell.expect("You said “milk”")
        shell.kill()
    done = run("--database", durable, "fsck")
    assert re.fullmatch(r"2 agents, [56] messages: no violation\n", done.stdout)  # the last reply, or a turn cut off


def test_a_word_of_an_agent_that_came_from_a_file_may_have_no_mail(durable: str, family: Store) -> None:
    damage(durable, more("g", (13, "user", '{"steer": true, "mail": 1}')), agent("g", "imported_at = 5"))
    assert check(family) == []
