"""Plans: how the databases find the rows of those statements that must not read all agents, and what they take.

The database is that of `benchmarks.sleepers`, with more kinds of agents in it: a tenth are dead and had names, a tenth
live and have names, a tenth have read mail, and of two hundred a supervisor has given up or they terminate. Each
statement runs as the library runs it, three times in a transaction that is rolled back; the shortest time counts. The
indexes of its plan are named, and each table of agents, messages or mail that is read whole (*scan of*); an index that
is read whole is *all of* it. Where PostgreSQL would read a table whole once it has prepared a statement for any values,
this is said as well.

`python -m benchmarks plans --only SQLite` measures one database. A million agents are made in two minutes.
"""

import json
import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.places import Place
from benchmarks.results import Row
from benchmarks.sleepers import sleepers
from ikigai_actors.records.agents.registry import MOST_PUT_TO_SLEEP
from ikigai_actors.records.messages.settings import LIVING_LIMIT
from ikigai_actors.store import queries

SIZE = 1_000_000
QUICK_SIZE = 10_000

PAGE = 1_000
"""Agents of a list that are read at once."""

REPETITIONS = 3

LARGE = ("agents", "messages", "mail")
"""Tables that grow with the agents."""

_SOME = "UPDATE agents SET {} WHERE uuid IN (SELECT uuid FROM agents WHERE uuid LIKE '_{}%agent' LIMIT {})"

KINDS = (
    """
UPDATE agents SET status = 'dead', ended_at = 1700000000000, exit_cause = 'exited', name = 'late-' || substr(uuid, 8)
 WHERE uuid LIKE '_0%agent'""",
    "UPDATE agents SET name = 'named-' || substr(uuid, 8) WHERE uuid LIKE '_1%agent'",
    _SOME.format("status = 'stopped', exit_reason = 'gave up'", 2, 100),
    _SOME.format("status = 'terminating', deadline = 1", 3, 100),
    _SOME.format("awake = 1", 4, MOST_PUT_TO_SLEEP),
    """
INSERT INTO mail (recipient, id, sender, kind, body, created_at, read_at)
SELECT uuid, 1, NULL, 'mail', 'x', 1, 1 FROM agents WHERE uuid LIKE '_5%agent'""",
    "UPDATE shards SET host = (SELECT id FROM hosts ORDER BY epoch DESC LIMIT 1)",
)
"""What makes agents differ."""

Values = Mapping[str, Any]


def run(places: list[Place], quick: bool) -> Iterator[Row]:
    """Each statement in each place."""
    count = QUICK_SIZE if quick else SIZE
    for place in places:
        database = place.fresh()
        try:
            sleepers(database, count)
            connection = database.connect()
            try:
                for statement in KINDS:
                    connection.execute(statement)
                database.settle()
                look = _Postgres(connection) if place.name == "PostgreSQL" else _SQLite(connection)
                for name, query, values in _statements(look.rows, look.row_key):
                    seconds, rows, path = look.at(query, values)
                    note = " · ".join(filter(None, (path, f"{rows:,} rows" if rows != 1 else "1 row")))
                    yield Row(f"statement: {name}", "ikigai", place.name, count, "agents", seconds, "s", note=note)
            finally:
                connection.close()
        finally:
            database.drop()


def _statements(rows: Callable[[str], list[Any]], key: str) -> Iterator[tuple[str, str, Values]]:
    """What a statement is for, its name, and its values."""
    [(host,)] = rows("SELECT id FROM hosts ORDER BY epoch DESC LIMIT 1")
    [(root,)] = rows("SELECT uuid FROM agents WHERE parent_uuid IS NULL")
    [(team,)] = rows(f"SELECT uuid FROM agents WHERE supervisor_uuid = '{root}' ORDER BY uuid LIMIT 1")
    living = f"SELECT uuid FROM agents WHERE supervisor_uuid = '{team}' AND status = 'running' ORDER BY uuid"
    members = [uuid for (uuid,) in rows(living)]
    keys = [each for (each,) in rows(living.replace("SELECT uuid", f"SELECT {key}"))]
    awake = [uuid for (uuid,) in rows("SELECT uuid FROM agents WHERE turn > 0")]
    [(named,)] = rows("SELECT name FROM agents WHERE uuid LIKE '_1%agent' LIMIT 1")
    [(late,)] = rows("SELECT name FROM agents WHERE uuid LIKE '_0%agent' LIMIT 1")
    [(version,)] = rows("SELECT version FROM tree")
    shards = [str(shard) for (shard,) in rows("SELECT id FROM shards")]
    some = members[:100]
    ours, prefix = {"host": host, "shards": shards}, members[len(members) // 2][:6]
    page = {"after": members[len(members) // 2], "most": PAGE}
    yield "boot: who is awake", "at_work_in", ours
    yield "boot: their rows", "boot", ours | {"uuids": awake}
    yield "boot: the row of a sleeper", "boot", ours | {"uuids": members[:1]}
    yield "boot: whether some gave up", "gave_up_in", ours
    yield "all that gave up", "all_that_gave_up", {"host": host}
    yield "those that terminate", "deadlines", {"host": host}
    yield "turns that asked", "turns_that_asked", {}
    yield "held for other hosts", "held_in", ours
    yield "latest heartbeats", "latest_signs", {}
    yield "sleep: who rests", "idle_awake", {"host": host, "most": MOST_PUT_TO_SLEEP}
    yield "sleep: 1,000 go to sleep", "put_to_sleep", {"uuids": members[:1_000]}
    yield "who lives in all shards", "living_in", {"shards": shards}
    yield "who lives in one shard", "living_in", {"shards": shards[:1]}
    yield "how many live on a host", "living_of", {"host": host}
    yield "lock 100 agents", "lock_agents", {"uuids": some, "writers": some}
    yield "an agent by uuid", "agent_by_uuid", {"uuid": members[0]}
    yield "by the beginning of a uuid", "agents_by_prefix", {
        "starts": [prefix[:4]], "prefixes": [prefix], "length": len(prefix), "most": 10
    }  # fmt: skip
    yield "name of a living one", "living_by_name", {"name": named}
    yield "name of a dead one", "dead_by_name", {"name": late}
    yield "name of nobody", "dead_by_name", {"name": "nobody"}
    yield "a page of agents", "agents_after", page | {"status": None}
    yield "a page of the dead", "agents_after", page | {"status": "dead"}
    yield "a page of the stopped", "paused_after", page | {"after": "", "status": "stopped"}
    yield "a page of heads", "heads", page | {"since": 0}
    yield "children living", "living_children", {"uuid": team}
    yield "the thousand of a branch", "living_in_branch", {"branch": team, "most": LIVING_LIMIT + 1}
    yield "the thousand of all branches", "living_in_branches", {"most": LIVING_LIMIT + 1}
    yield "all below an agent", "uuids_below", {"uuid": team}
    yield "kill: the way up", "supervisors_of", {"uuid": members[0]}
    yield "kill: the walk", "doomed", {"uuid": team}
    yield "kill: ties", "some_ties", {"most": len(members)}
    yield "kill: the locks", "lock_dying", {"uuids": members, "kept": [team]}
    yield "kill: the deaths", "bury_rows", {
        "keys": keys, "now": 1_800_000_000_000, "reason": "x", "cause": "killed", "sender": None
    }  # fmt: skip
    yield "what has changed", "changes", {"since": version}
    yield "prompts by mail", "new_prompts", {"host": host}
    yield "commands of other processes", "new_remote_commands", {"host": host}
    yield "who was seen last", "seen_last", {}
    yield "hosts, with their agents", "recent_hosts", {"within": 1}
    yield "agents by status", "census", {}
    yield "the dearest branches", "dearest_branches", {"most": 10}
    yield "all that descend from an agent", "descent", {"uuid": team}


class _SQLite:
    """Looks at a file."""

    row_key = "rowid"

    def __init__(self, connection: sqlite3.Connection) -> None:
        connection.create_function("now_ms", 0, lambda: 1_800_000_000_000)
        self._connection = connection

    def rows(self, sql: str) -> list[Any]:
        """What a statement gives."""
        return self._connection.execute(sql).fetchall()

    def at(self, query: str, values: Values) -> tuple[float, int, str]:
        """The seconds of a statement, its rows, and how they are found."""
        statement = queries.for_sqlite(query)
        parameters = {name: json.dumps(value) if name in statement.lists else value for name, value in values.items()}
        plan = self._connection.execute(f"EXPLAIN QUERY PLAN {statement.sql}", parameters).fetchall()
        taken, rows = _timed(lambda: self._once(statement.sql, parameters))
        return taken, rows, _told(map(_step, (row[3] for row in plan)))

    def _once(self, sql: str, values: Values) -> int:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            cursor = self._connection.execute(sql, values)
            return max(len(cursor.fetchall()), cursor.rowcount)
        finally:
            self._connection.execute("ROLLBACK")


def _step(step: str) -> str:
    """A step of SQLite's plan, as far as it reads a table that is large."""
    if match := re.search(r"^(SCAN|SEARCH) .*USING (?:COVERING )?INDEX (\w+)", step):
        name = match[2].replace("sqlite_autoindex_", "").replace("_1", "_pkey")
        return f"all of {name}" if match[1] == "SCAN" else name
    if match := re.search(r"^SCAN (\w+)$", step):
        return f"scan of {ALIASES[match[1]]}" if match[1] in ALIASES else ""
    return ""


ALIASES = {"a": "agents", "agents": "agents", "m": "messages", "messages": "messages", "w": "agents", "d": "agents"}
"""What the statements call the large tables."""


class _Postgres:
    """Looks at a schema of a server."""

    row_key = "uuid"

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def rows(self, sql: str) -> list[Any]:
        """What a statement gives."""
        rows: list[Any] = self._connection.execute(sql).fetchall()
        return rows

    def at(self, query: str, values: Values) -> tuple[float, int, str]:
        """The seconds of a statement, its rows, and how they are found."""
        statement = queries.for_postgres(query)
        sql = statement.sql
        for way in ("seqscan", "hashjoin", "mergejoin"):  # as the store does
            self._connection.execute(f"SET enable_{way} = {'off' if statement.walks_down else 'on'}")
        [(plan,)] = self._connection.execute(f"EXPLAIN (FORMAT JSON) {sql}", values).fetchall()
        taken, rows = _timed(lambda: self._once(sql, values))
        path, prepared = _told(_nodes(plan[0]["Plan"])), self._prepared(sql)
        scans = [part for part in prepared.split(", ") if part.startswith("scan of") and part not in path]
        return taken, rows, f"{path} (prepared: {', '.join(scans)})" if scans else path

    def _once(self, sql: str, values: Values) -> int:
        with self._connection.transaction(force_rollback=True):
            cursor = self._connection.execute(sql, values)
            return len(cursor.fetchall()) if cursor.description else int(cursor.rowcount)

    def _prepared(self, sql: str) -> str:
        """How the rows are found once the statement is prepared for any values."""
        names: dict[str, int] = {}
        numbered = re.sub(
            r"%\((\w+)\)s", lambda match: f"${names.setdefault(match[1], len(names) + 1)}", sql
        ).replace("%%", "%")  # fmt: skip
        [(plan,)] = self._connection.execute(f"EXPLAIN (GENERIC_PLAN, FORMAT JSON) {numbered}").fetchall()
        return _told(_nodes(plan[0]["Plan"]))


def _nodes(node: Mapping[str, Any]) -> Iterator[str]:
    """The steps of PostgreSQL's plan that read a table that is large."""
    if index := node.get("Index Name"):
        yield index if "Index Cond" in node else f"all of {index}"
    elif "Scan" in node["Node Type"] and node.get("Relation Name") in LARGE and node["Node Type"] != "Bitmap Heap Scan":
        yield f"scan of {node['Relation Name']}"
    for below in node.get("Plans", ()):
        yield from _nodes(below)


def _told(steps: Iterator[str]) -> str:
    """Each step once, without those of tables that stay small."""
    return ", ".join(sorted({step for step in steps if step and not re.search(r"\b(shards|hosts|tree)_", step)}))


def _timed(work: Callable[[], int]) -> tuple[float, int]:
    """The shortest of some runs, and the rows of the last."""
    taken: Sequence[float] = ()
    rows = 0
    for _ in range(REPETITIONS):
        began = time.perf_counter()
        rows = work()
        taken = (*taken, time.perf_counter() - began)
    return min(taken), rows
