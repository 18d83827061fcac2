-- The persistent model of ikigai, for SQLite and PostgreSQL alike: TEXT, BIGINT and checks only. Times are milliseconds since
-- 1970 (UTC). No auto-increment, BOOLEAN, TIMESTAMP or JSONB: they differ between the two, or between PostgreSQL and the
-- databases that speak its language. A change of this file needs a numbered migration (ikigai_actors/store/migrations.py).

-- Which version of this file the database has.
CREATE TABLE schema_version (
    one     BIGINT PRIMARY KEY CHECK (one = 1),
    version BIGINT NOT NULL
);

-- One row: the lock of all tree changes (fork, death, adoption, claim). Whoever changes the tree updates it first.
CREATE TABLE tree (
    one     BIGINT PRIMARY KEY CHECK (one = 1),
    version BIGINT NOT NULL
);
INSERT INTO tree (one, version) VALUES (1, 0);

-- A host is one OS process that runs agents. Rows stay: they tell who owned the database when.
CREATE TABLE hosts (
    id          TEXT PRIMARY KEY,             -- random, new at each start
    hostname    TEXT NOT NULL,
    pid         BIGINT NOT NULL,
    epoch       BIGINT NOT NULL UNIQUE,       -- counts the hosts of this database: the highest is the owner
    started_at  BIGINT NOT NULL,
    lease_until BIGINT NOT NULL,              -- PostgreSQL: the owner is believed until then. SQLite: 0, a file lock decides
    ended_at    BIGINT,                       -- closed, or taken over
    batch       BIGINT NOT NULL DEFAULT 0     -- the last committed batch: settles a COMMIT whose answer was lost
);

-- The registry: the only source of truth on who exists. Rows are never deleted.
CREATE TABLE agents (
    uuid            TEXT PRIMARY KEY,
    name            TEXT,
    parent_uuid     TEXT REFERENCES agents (uuid),       -- lineage: immutable; NULL for agent 0 alone
    supervisor_uuid TEXT REFERENCES agents (uuid),       -- who looks after it: at first the parent, changed by adoption
    fork_message_id BIGINT NOT NULL CHECK (fork_message_id >= 0),   -- the parent's head at the fork
    status          TEXT NOT NULL CHECK (status IN (
                        'running',                       -- acts
                        'stopped',                       -- paused: prompts and mail wait
                        'terminating',                   -- finishes its turn, then dies
                        'dead')),                        -- reads, but never acts again
    turn            BIGINT NOT NULL DEFAULT 0,           -- id of the message that opened the turn in progress; 0 = idle
    restart         TEXT NOT NULL DEFAULT 'transient' CHECK (restart IN ('permanent', 'transient', 'temporary')),
    exit_reason     TEXT,
    created_at      BIGINT NOT NULL,
    ended_at        BIGINT,
    active_at       BIGINT NOT NULL DEFAULT 0,           -- when a person last looked at it: where the next shell begins
    owner           TEXT,                                -- the host that runs it: hosts.id, whose rows stay. No REFERENCES:
                                                         -- a claim sets it for every agent, and would check each
    epoch           BIGINT NOT NULL DEFAULT 0,           -- grows with each claim and at death: an older writer is fenced
    CHECK ((status = 'dead') = (ended_at IS NOT NULL)),
    CHECK ((parent_uuid IS NULL) = (supervisor_uuid IS NULL))
);
-- Agent 0 is the one row without a parent, also when two processes start at once.
CREATE UNIQUE INDEX agents_root ON agents ((1)) WHERE parent_uuid IS NULL;
-- A name finds one living agent.
CREATE UNIQUE INDEX agents_name ON agents (name) WHERE name IS NOT NULL AND status <> 'dead';
-- Children, descendants and orphans are found by supervisor; the lineage is walked by primary key.
CREATE INDEX agents_supervisor ON agents (supervisor_uuid);

-- Logs. Only its owner appends to an agent's log. A child's first id is its fork_message_id + 1, without holes, so the
-- primary key refuses a second writer. An ordinary table: clustered by its key, SQLite appends three times slower.
CREATE TABLE messages (
    agent_uuid TEXT NOT NULL REFERENCES agents (uuid),
    id         BIGINT NOT NULL CHECK (id > 0),
    kind       TEXT NOT NULL,
    content    TEXT NOT NULL,
    data       TEXT,                                     -- a JSON object, or NULL
    created_at BIGINT NOT NULL,
    PRIMARY KEY (agent_uuid, id)
);
-- The walk backwards ends at the latest clear.
CREATE INDEX messages_clear ON messages (agent_uuid, id) WHERE kind = 'clear';
