"""The schema and its versions.

Version 1 is ``schema.sql`` as it was first published. Every change of that file comes with a `Migration` that brings an
existing database to the same state; a new database is made from ``schema.sql`` at once. A host runs the migrations in
the transaction in which it takes the database over: no other host is there, and none sees a half of it. Two processes
that migrate at once do it once.

A database that is newer than this program is refused, and so is one with foreign tables.
"""

from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ikigai_actors.errors import StoreConflict, StoreError, StoreUnavailable, StoreUnusable
from ikigai_actors.store.base import Store, Transaction
from ikigai_actors.store.queries import split


class Migration(NamedTuple):
    """One step from a version to the next."""

    version: int
    """The version that the database has afterwards."""
    script: str
    """Statements that both databases understand, with a comment that says why."""


FIRST = 1
"""The version of the first published ``schema.sql``."""

_MAIL_AND_SUPERVISION = Migration(
    2,
    """
    -- Mail, documents, signals and restarts, and what the registry keeps of them.
    ALTER TABLE agents ADD COLUMN on_orphan TEXT NOT NULL DEFAULT 'reparent'
        CHECK (on_orphan IN ('reparent', 'cascade', 'stop', 'continue'));
    ALTER TABLE agents ADD COLUMN strategy TEXT NOT NULL DEFAULT 'one_for_one'
        CHECK (strategy IN ('one_for_one', 'one_for_all', 'rest_for_one'));
    ALTER TABLE agents ADD COLUMN intensity BIGINT NOT NULL DEFAULT 3 CHECK (intensity >= 0);
    ALTER TABLE agents ADD COLUMN period BIGINT NOT NULL DEFAULT 600000 CHECK (period > 0);
    ALTER TABLE agents ADD COLUMN deadline BIGINT;
    ALTER TABLE agents ADD COLUMN exit_cause TEXT CHECK (
        exit_cause IN ('killed', 'terminated', 'exited', 'crashed', 'gave up', 'orphaned', 'damaged'));
    ALTER TABLE agents ADD COLUMN exit_sender TEXT;
    ALTER TABLE agents ADD COLUMN mailed BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE agents ADD COLUMN unread BIGINT NOT NULL DEFAULT 0;
    UPDATE agents SET exit_cause = 'damaged' WHERE status = 'dead';
    CREATE INDEX messages_approval ON messages (agent_uuid, id) WHERE kind = 'approval';
    CREATE TABLE mail (
        recipient  TEXT NOT NULL REFERENCES agents (uuid),
        id         BIGINT NOT NULL CHECK (id > 0),
        sender     TEXT REFERENCES agents (uuid),
        kind       TEXT NOT NULL CHECK (kind IN (
                       'mail',
                       'exit',
                       'prompt')),
        body       TEXT NOT NULL,
        created_at BIGINT NOT NULL,
        read_at    BIGINT,
        PRIMARY KEY (recipient, id)
    );
    CREATE INDEX mail_unread ON mail (recipient, id) WHERE read_at IS NULL;
    CREATE INDEX mail_sender ON mail (recipient, sender, id);
    CREATE TABLE documents (
        path       TEXT NOT NULL,
        version    BIGINT NOT NULL CHECK (version > 0),
        author     TEXT REFERENCES agents (uuid),
        body       TEXT,
        created_at BIGINT NOT NULL,
        PRIMARY KEY (path, version)
    );
    CREATE TABLE signals (
        agent_uuid TEXT NOT NULL REFERENCES agents (uuid),
        id         BIGINT NOT NULL CHECK (id > 0),
        signal     TEXT NOT NULL CHECK (signal IN ('INT', 'STOP', 'CONT', 'TERM', 'KILL')),
        spread     BIGINT NOT NULL DEFAULT 0 CHECK (spread IN (0, 1)),
        turn       BIGINT NOT NULL DEFAULT 0,
        sender     TEXT REFERENCES agents (uuid),
        reason     TEXT NOT NULL DEFAULT '',
        created_at BIGINT NOT NULL,
        handled_at BIGINT,
        PRIMARY KEY (agent_uuid, id)
    );
    CREATE INDEX signals_new ON signals (created_at) WHERE handled_at IS NULL;
    CREATE TABLE restarts (
        agent_uuid      TEXT NOT NULL REFERENCES agents (uuid),
        id              BIGINT NOT NULL CHECK (id > 0),
        supervisor_uuid TEXT NOT NULL REFERENCES agents (uuid),
        turn            BIGINT NOT NULL,
        reason          TEXT NOT NULL,
        created_at      BIGINT NOT NULL,
        PRIMARY KEY (agent_uuid, id)
    );
    CREATE INDEX restarts_supervisor ON restarts (supervisor_uuid, created_at);
    """,
)

_PROMPTS = Migration(
    3,
    """
    -- Prompts from other processes are found at once.
    CREATE INDEX mail_prompt ON mail (recipient, id) WHERE kind = 'prompt' AND read_at IS NULL;
    """,
)

_STANDINGS = Migration(
    4,
    """
    -- What a signal of another process has led to is found at once.
    CREATE INDEX agents_paused ON agents (status) WHERE status = 'stopped' OR status = 'terminating';
    CREATE INDEX agents_ended ON agents (ended_at) WHERE ended_at IS NOT NULL;
    """,
)

_SHARDS = Migration(
    5,
    """
    -- A host owns shards, not agents. A branch below agent 0 is in one, unless agent 0 restarts its children together.
    CREATE TABLE shards (
        id    BIGINT PRIMARY KEY,
        host  TEXT REFERENCES hosts (id),
        epoch BIGINT NOT NULL DEFAULT 0
    );
    INSERT INTO shards (id)
        WITH RECURSIVE numbers (id) AS (SELECT 0 UNION ALL SELECT id + 1 FROM numbers WHERE id < 63)
        SELECT id FROM numbers;
    ALTER TABLE agents ADD COLUMN shard BIGINT NOT NULL DEFAULT 0;
    WITH RECURSIVE branch (uuid, shard) AS (
        SELECT a.uuid, (ROW_NUMBER() OVER (ORDER BY a.created_at, a.uuid) - 1) % 64
          FROM agents a JOIN agents r ON r.uuid = a.supervisor_uuid
         WHERE r.parent_uuid IS NULL AND r.strategy = 'one_for_one'
        UNION SELECT a.uuid, b.shard FROM agents a JOIN branch b ON a.supervisor_uuid = b.uuid)
    UPDATE agents SET shard = branch.shard FROM branch WHERE branch.uuid = agents.uuid;
    ALTER TABLE agents DROP COLUMN owner;
    CREATE INDEX agents_shard ON agents (shard) WHERE status <> 'dead';
    """,
)

_MEMBERSHIP = Migration(
    6,
    """
    -- Hosts that have names look at one another.
    ALTER TABLE hosts ADD COLUMN name TEXT;
    ALTER TABLE hosts ADD COLUMN lease BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE hosts ADD COLUMN beat BIGINT NOT NULL DEFAULT 0;
    CREATE UNIQUE INDEX hosts_name ON hosts (name) WHERE name IS NOT NULL AND ended_at IS NULL;
    """,
)

_CHANGES = Migration(
    7,
    """
    -- Each host follows what has changed since it looked last: no signal is handled by one host for all. Hosts drain.
    ALTER TABLE hosts ADD COLUMN agents BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE hosts ADD COLUMN draining BIGINT NOT NULL DEFAULT 0 CHECK (draining IN (0, 1));
    ALTER TABLE agents ADD COLUMN changed BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE agents ADD COLUMN interrupted BIGINT NOT NULL DEFAULT 0;
    UPDATE agents SET interrupted = turn WHERE turn > 0 AND EXISTS (
        SELECT 1 FROM signals s WHERE s.agent_uuid = agents.uuid AND s.signal = 'INT' AND s.handled_at IS NULL
           AND s.turn = agents.turn);
    CREATE INDEX agents_changed ON agents (changed) WHERE changed > 0;
    DROP INDEX signals_new;
    ALTER TABLE signals DROP COLUMN handled_at;
    """,
)

_REQUESTS = Migration(
    8,
    """
    -- What other processes ask an agent to do itself.
    CREATE TABLE requests (
        agent_uuid  TEXT NOT NULL REFERENCES agents (uuid),
        id          BIGINT NOT NULL CHECK (id > 0),
        kind        TEXT NOT NULL,
        body        TEXT NOT NULL,
        mailed      BIGINT NOT NULL,
        created_at  BIGINT NOT NULL,
        answer      TEXT,
        answered_at BIGINT,
        PRIMARY KEY (agent_uuid, id),
        CHECK ((answer IS NULL) = (answered_at IS NULL))
    );
    CREATE INDEX requests_new ON requests (agent_uuid, id) WHERE answered_at IS NULL;
    """,
)

_LOAD = Migration(
    9,
    """
    -- Hosts tell how many of their agents are in a turn.
    ALTER TABLE hosts ADD COLUMN working BIGINT NOT NULL DEFAULT 0;
    """,
)

_WAITS = Migration(
    10,
    """
    -- Hosts tell which of their agents wait for which.
    ALTER TABLE hosts ADD COLUMN waits TEXT NOT NULL DEFAULT '';
    """,
)

_CONTROLS = Migration(
    11,
    """
    -- What a history means is decided by few of its messages.
    CREATE INDEX messages_control ON messages (agent_uuid, id)
     WHERE kind IN ('configure', 'clear', 'mark', 'rewind', 'summary', 'uncompact');
    """,
)

_PROMPT_DATA = Migration(
    12,
    """
    -- A prompt on its way says of which type its turn must give a value.
    ALTER TABLE mail ADD COLUMN data TEXT;
    """,
)

_BIRTHS = Migration(
    13,
    """
    -- An agent may be forked at an earlier position of its parent: fork points do not tell any more in which order.
    ALTER TABLE agents ADD COLUMN born BIGINT NOT NULL DEFAULT 0;
    UPDATE agents SET born = fork_message_id + 1 WHERE parent_uuid IS NOT NULL;
    """,
)

_BLOBS = Migration(
    14,
    """
    -- Pictures, PDFs and sounds, each once.
    CREATE TABLE blobs (
        sha256 TEXT NOT NULL PRIMARY KEY,
        media  TEXT NOT NULL,
        bytes  BYTEA NOT NULL
    );
    """,
)

_BUDGETS = Migration(
    15,
    """
    -- Budgets. The runtime tells of them by mail of a kind of its own, which the table of mails must allow.
    ALTER TABLE agents ADD COLUMN budget TEXT;
    ALTER TABLE agents ADD COLUMN held_at BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE agents ADD COLUMN held_tokens BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE agents ADD COLUMN held_usd BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE agents ADD COLUMN held_risk_tokens BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE agents ADD COLUMN held_risk_usd BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE agents ADD COLUMN held_limit BIGINT;
    ALTER TABLE agents ADD COLUMN held_host TEXT;
    ALTER TABLE agents ADD COLUMN spent_tokens BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE agents ADD COLUMN spent_usd BIGINT NOT NULL DEFAULT 0;
    CREATE TABLE budgets (
        owner      TEXT PRIMARY KEY REFERENCES agents (uuid),
        above      TEXT,
        strict     BIGINT NOT NULL DEFAULT 0 CHECK (strict IN (0, 1)),
        paused     BIGINT NOT NULL DEFAULT 0,
        created_at BIGINT NOT NULL
    );
    CREATE UNIQUE INDEX budgets_root ON budgets ((1)) WHERE above IS NULL;
    INSERT INTO budgets (owner, created_at) SELECT uuid, created_at FROM agents WHERE parent_uuid IS NULL;
    CREATE TABLE limits (
        budget  TEXT NOT NULL REFERENCES budgets (owner),
        unit    TEXT NOT NULL CHECK (unit IN (
                    'tokens',
                    'usd',
                    'agents',
                    'agents_ever',
                    'ms',
                    'requests')),
        granted BIGINT NOT NULL CHECK (granted BETWEEN 0 AND 1000000000000000),
        base    BIGINT NOT NULL DEFAULT 0,
        used    BIGINT NOT NULL DEFAULT 0,
        risk    BIGINT NOT NULL DEFAULT 0,
        notified BIGINT NOT NULL DEFAULT 0,
        PRIMARY KEY (budget, unit)
    );
    CREATE TABLE portions (
        budget   TEXT NOT NULL REFERENCES budgets (owner),
        unit     TEXT NOT NULL,
        host     TEXT NOT NULL REFERENCES hosts (id),
        allotted BIGINT NOT NULL,
        held     BIGINT NOT NULL CHECK (held >= 0),
        spent    BIGINT NOT NULL,
        risk     BIGINT NOT NULL DEFAULT 0,
        wanted   BIGINT NOT NULL DEFAULT 0 CHECK (wanted IN (0, 1)),
        PRIMARY KEY (budget, unit, host)
    );
    CREATE TABLE slots (
        budget  TEXT NOT NULL REFERENCES budgets (owner),
        id      BIGINT NOT NULL,
        used_at BIGINT NOT NULL,
        PRIMARY KEY (budget, id)
    );
    CREATE TABLE pauses (
        agent_uuid TEXT PRIMARY KEY REFERENCES agents (uuid),
        budget     TEXT NOT NULL REFERENCES budgets (owner),
        unit       TEXT NOT NULL,
        number     BIGINT NOT NULL,
        turn       BIGINT NOT NULL,
        at         BIGINT NOT NULL,
        need       TEXT NOT NULL,
        since      BIGINT NOT NULL,
        due_at     BIGINT
    );
    CREATE INDEX pauses_order ON pauses (budget, number);
    CREATE TABLE mail_kept AS SELECT recipient, id, sender, kind, body, created_at, read_at, data FROM mail;
    DROP TABLE mail;
    CREATE TABLE mail (
        recipient  TEXT NOT NULL REFERENCES agents (uuid),
        id         BIGINT NOT NULL CHECK (id > 0),
        sender     TEXT REFERENCES agents (uuid),
        kind       TEXT NOT NULL CHECK (kind IN (
                       'mail',
                       'exit',
                       'notice',
                       'prompt')),
        body       TEXT NOT NULL,
        created_at BIGINT NOT NULL,
        read_at    BIGINT,
        data       TEXT,
        PRIMARY KEY (recipient, id)
    );
    INSERT INTO mail (recipient, id, sender, kind, body, created_at, read_at, data)
        SELECT recipient, id, sender, kind, body, created_at, read_at, data FROM mail_kept;
    DROP TABLE mail_kept;
    CREATE INDEX mail_unread ON mail (recipient, id) WHERE read_at IS NULL;
    CREATE INDEX mail_sender ON mail (recipient, sender, id);
    CREATE INDEX mail_prompt ON mail (recipient, id) WHERE kind = 'prompt' AND read_at IS NULL;
    """,
)

_PRUNED = Migration(
    16,
    """
    -- Agents come from files, and the messages of the dead may be deleted.
    ALTER TABLE agents ADD COLUMN imported_at BIGINT;
    ALTER TABLE agents ADD COLUMN pruned_at BIGINT;
    """,
)

_TIMERS = Migration(
    17,
    """
    -- What is to happen to agents later.
    ALTER TABLE agents ADD COLUMN timed BIGINT NOT NULL DEFAULT 0;
    CREATE TABLE timers (
        agent_uuid TEXT NOT NULL REFERENCES agents (uuid),
        id         BIGINT NOT NULL CHECK (id > 0),
        due_at     BIGINT NOT NULL,
        schedule   TEXT,
        zone       TEXT NOT NULL,
        fires_as   TEXT NOT NULL CHECK (fires_as IN ('mail', 'notice', 'prompt')),
        sender     TEXT REFERENCES agents (uuid),
        body       TEXT NOT NULL,
        missed     BIGINT NOT NULL DEFAULT 0,
        since      BIGINT,
        latest     BIGINT NOT NULL DEFAULT 0,
        notified   BIGINT NOT NULL DEFAULT 0 CHECK (notified IN (0, 1)),
        created_at BIGINT NOT NULL,
        PRIMARY KEY (agent_uuid, id)
    );
    CREATE INDEX timers_due ON timers (due_at);
    """,
)

_MERGES = Migration(
    18,
    """
    -- Which agent has taken in which other one, up to which head: once.
    CREATE TABLE merges (
        into_uuid  TEXT NOT NULL REFERENCES agents (uuid),
        from_uuid  TEXT NOT NULL REFERENCES agents (uuid),
        from_head  BIGINT NOT NULL,
        message    BIGINT NOT NULL,
        created_at BIGINT NOT NULL,
        PRIMARY KEY (into_uuid, from_uuid, from_head)
    );
    CREATE INDEX documents_since ON documents (created_at, path, version, author);
    """,
)

_PIECES = Migration(
    19,
    """
    -- Other processes see replies on their way.
    CREATE TABLE listeners (
        id    TEXT PRIMARY KEY,
        until BIGINT NOT NULL
    );
    CREATE TABLE pieces (
        host       TEXT NOT NULL REFERENCES hosts (id),
        id         BIGINT NOT NULL CHECK (id > 0),
        agent_uuid TEXT NOT NULL REFERENCES agents (uuid),
        reply      BIGINT NOT NULL,
        at         BIGINT NOT NULL,
        body       TEXT NOT NULL,
        PRIMARY KEY (host, id)
    );
    """,
)

_STUCK = Migration(
    20,
    """
    -- Of which turn a supervisor was told that nothing comes of it.
    ALTER TABLE agents ADD COLUMN stuck BIGINT NOT NULL DEFAULT 0;
    """,
)

_GROUPS = Migration(
    21,
    """
    -- Groups, and who hears of a death beside the supervisor.
    CREATE TABLE group_names (
        name TEXT PRIMARY KEY
    );
    CREATE TABLE groups (
        name       TEXT NOT NULL REFERENCES group_names (name),
        agent_uuid TEXT NOT NULL REFERENCES agents (uuid),
        joined_at  BIGINT NOT NULL,
        PRIMARY KEY (name, agent_uuid)
    );
    CREATE INDEX groups_agent ON groups (agent_uuid);
    CREATE TABLE monitors (
        agent_uuid TEXT NOT NULL REFERENCES agents (uuid),
        watcher    TEXT NOT NULL REFERENCES agents (uuid),
        created_at BIGINT NOT NULL,
        PRIMARY KEY (agent_uuid, watcher)
    );
    CREATE INDEX monitors_watcher ON monitors (watcher);
    """,
)

_SIGNS = Migration(
    22,
    """
    -- Hosts tell when their agents gave signs of life.
    ALTER TABLE hosts ADD COLUMN signs TEXT NOT NULL DEFAULT '';
    """,
)

_BRANCHES = Migration(
    23,
    """
    -- Models fork while few agents live in their branch. The branches are followed by an index that is needed once.
    ALTER TABLE agents ADD COLUMN branch TEXT;
    CREATE INDEX agents_parent ON agents (parent_uuid);
    WITH RECURSIVE branches(uuid, branch) AS (
        SELECT a.uuid, a.uuid FROM agents a JOIN agents r ON a.parent_uuid = r.uuid WHERE r.parent_uuid IS NULL
        UNION SELECT a.uuid, b.branch FROM agents a JOIN branches b ON a.parent_uuid = b.uuid)
    UPDATE agents SET branch = b.branch FROM branches b WHERE b.uuid = agents.uuid;
    DROP INDEX agents_parent;
    CREATE INDEX agents_branch ON agents (branch) WHERE status <> 'dead';
    """,
)

MIGRATIONS: tuple[Migration, ...] = (
    _MAIL_AND_SUPERVISION,
    _PROMPTS,
    _STANDINGS,
    _SHARDS,
    _MEMBERSHIP,
    _CHANGES,
    _REQUESTS,
    _LOAD,
    _WAITS,
    _CONTROLS,
    _PROMPT_DATA,
    _BIRTHS,
    _BLOBS,
    _BUDGETS,
    _PRUNED,
    _TIMERS,
    _MERGES,
    _PIECES,
    _STUCK,
    _GROUPS,
    _SIGNS,
    _BRANCHES,
)
"""All steps since version `FIRST`, in order."""

NEEDED = ("agents", "hosts", "restarts", "schema_version", "shards", "signals", "tree")
"""The tables that every program reads as a whole when it begins."""

_ATTEMPTS = 5


def newest(migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """The version that this program knows."""
    return max([FIRST, *(migration.version for migration in migrations)])


def schema_version(store: Store) -> int:
    """The version of the database's schema; 0 when it is empty.

    Raises `StoreUnusable` when it has tables, and they are not ours.
    """
    return store.read(lambda tx: _version(tx, store.location))


def ensure_schema(store: Store) -> int:
    """Make the schema when the database is empty; return its version, which may need `migrate`.

    Two processes may do this at the same moment: one makes it, and the other finds it made.

    Raises `StoreUnusable` when the database is newer than this program, not ours, or damaged (see `check_types`).
    """
    for attempt in range(_ATTEMPTS):
        version = schema_version(store)
        if version:
            check_types(store)
            return _known(version, newest(), store.location)
        try:
            return store.write(lambda tx: create_schema(tx, store.location))
        except StoreConflict:  # PostgreSQL: the other process made a table of the same name, and has committed
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError("the last attempt returns or raises")


def create_schema(transaction: Transaction, location: str) -> int:
    """Make the schema if the database is empty; return its version. Raises what `ensure_schema` does."""
    version = _version(transaction, location)
    if version == 0:
        version = newest()
        for statement in (*split(schema_script()), *transaction.schema.TUNING):
            transaction.schema.execute(statement)
        transaction.run("set_schema_version", version=version)
    return _known(version, newest(), location)


def require_schema(store: Store, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Raise `StoreUnusable` unless the schema is the newest that this program knows: a client changes no schema."""
    version = schema_version(store)
    if version == 0:
        raise StoreUnusable(
            f"Database {store.location} is empty: no ikigai has run on it yet. Start one, or name another."
        )
    needed = newest(migrations)
    if _known(version, needed, store.location) < needed:
        raise StoreUnusable(
            f"Database {store.location} has version {version}, this ikigai needs {needed}. End what runs it with an "
            "older ikigai, and start this one: it brings the database to that version."
        )


def check_types(store: Store) -> None:
    """Refuse a database in which columns that every agent needs hold values of wrong types: its file was edited.

    Logs, mail and documents are not checked, since they may be long; fsck does that. Raises `StoreUnusable`.
    """
    if found := store.read(lambda tx: mistyped_columns(tx, NEEDED)):
        raise StoreUnusable(
            f"Database {store.location} is damaged: values of wrong types in {', '.join(found)}. Restore a copy."
        )


def mistyped_columns(transaction: Transaction, tables: Collection[str] = ()) -> list[str]:
    """Every column in which something is of another type than ``schema.sql`` says, of these tables or all."""
    schema = transaction.schema
    there = schema.tables()
    return [f"{table}.{name}" for table in sorted(there & set(tables or there)) for name in schema.misfits(table)]


def migrate(store: Store, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """Bring the schema to the newest version, a transaction for each step; return that version.

    A step that fails leaves the database as it was before that step, and its error passes through.

    Raises `StoreUnusable` when the database is newer than this program, empty, or not ours.
    """
    version = _known(schema_version(store), newest(migrations), store.location)
    if version == 0:
        raise StoreUnusable(f"Database {store.location} is empty: there is nothing to migrate.")
    for step in sorted(migrations):
        if step.version > version:
            version = store.write(partial(_step, step=step))
    return version


def is_newest(transaction: Transaction) -> bool:
    """Whether a schema that `ensure_schema` accepts has the newest version."""
    return transaction.run("schema_version") == [(newest(),)]


def migrate_within(transaction: Transaction) -> None:
    """Bring a schema that `ensure_schema` accepts to the newest version, together with what else a transaction does."""
    for step in sorted(MIGRATIONS):
        _step(transaction, step)


def schema_script() -> str:
    """The text of ``schema.sql``.

    The file lies beside this package's modules when installed, and at the root of a checkout.
    """
    package = Path(__file__).parent.parent
    for place in (package, package.parent):
        file = place / "schema.sql"
        if file.is_file():
            return file.read_text(encoding="utf-8")
    raise StoreError(f"schema.sql is missing in {package} and {package.parent}: install ikigai-actors again.")


def _version(transaction: Transaction, location: str) -> int:
    tables = transaction.schema.tables()
    if not tables:
        return 0
    try:
        rows = transaction.run("schema_version") if "schema_version" in tables else []
    except (StoreUnavailable, StoreUnusable):  # the latter: this user may not read it
        raise
    except StoreError as error:
        raise _foreign(location) from error
    if not rows or not isinstance(rows[0][0], int):
        raise _foreign(location)
    return rows[0][0]


def _foreign(location: str) -> StoreUnusable:
    return StoreUnusable(
        f"Database {location} has tables that are not ikigai's. Nothing was changed; name another database."
    )


def _known(version: int, known: int, location: str) -> int:
    if version > known:
        raise StoreUnusable(f"Database {location} has version {version}, this ikigai knows {known}: upgrade ikigai.")
    return version


def _step(transaction: Transaction, step: Migration) -> int:
    [(version,)] = transaction.run("lock_schema_version")
    if version >= step.version:  # another process was faster
        return int(version)
    for statement in split(step.script):
        transaction.schema.execute(statement)
    transaction.run("set_schema_version", version=step.version)
    return step.version
