-- The persistent model of ikigai, for SQLite and PostgreSQL alike: TEXT, BIGINT and checks only. Times are milliseconds since
-- 1970 (UTC). No auto-increment, BOOLEAN, TIMESTAMP or JSONB: they differ between the two, or between PostgreSQL and the
-- databases that speak its language. A change of this file has rules: see ikigai_actors/store/migrations.py.

-- Which version of this file the database has, and which one a program must know at least to use it.
CREATE TABLE schema_version (
    one     BIGINT PRIMARY KEY CHECK (one = 1),
    version BIGINT NOT NULL,
    least   BIGINT NOT NULL,                             -- an older program that knows this one opens the database
    channel TEXT NOT NULL DEFAULT ''                     -- a secret: by it processes at a server wake one another, unseen by others
);

-- One row: the lock of the tree. Whoever names, signals, ends or adopts agents, stops the children of a supervisor that gave up,
-- revives them, or makes a host the owner of shards, updates it first. Whoever bears an agent shares the tree with other births:
-- those of several hosts do not wait for one another, and these updates wait for them.
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
    epoch       BIGINT NOT NULL UNIQUE,       -- counts the hosts of this database
    started_at  BIGINT NOT NULL,
    lease_until BIGINT NOT NULL,              -- PostgreSQL: the owner is believed until then. SQLite: 0, a file lock decides
    ended_at    BIGINT,                       -- closed, or taken over
    batch       BIGINT NOT NULL DEFAULT 0,    -- the last committed batch: settles a COMMIT whose answer was lost
    name        TEXT,                         -- of one that shares the agents with others: the next of that name replaces it
    lease       BIGINT NOT NULL DEFAULT 0,    -- PostgreSQL: milliseconds for which it is believed after a beat
    beat        BIGINT NOT NULL DEFAULT 0,    -- counts the renewals of its lease
    agents      BIGINT NOT NULL DEFAULT 0,    -- how many it ran at its latest renewal
    draining    BIGINT NOT NULL DEFAULT 0 CHECK (draining IN (0, 1)),  -- 1: it gives its shards away, and gets none
    working     BIGINT NOT NULL DEFAULT 0,    -- how many of its agents were in a turn at its latest renewal
    waits       TEXT NOT NULL DEFAULT '',     -- the waits of its agents for others that have lasted, as JSON; '': none
    signs       TEXT NOT NULL DEFAULT '',     -- the latest signs of life of its agents in turns that have lasted, as JSON
    machine     TEXT NOT NULL DEFAULT '',     -- the boot and the namespace in which its pid counts; '': not known
    schema      BIGINT NOT NULL DEFAULT 0,    -- the newest version of this file that its program knows
    build       TEXT NOT NULL DEFAULT '',     -- builds.id: the code of the app that it runs; '': not known
    tools       TEXT NOT NULL DEFAULT '',     -- definitions.digest by the name of each of its tools: a JSON object; '': not known
    offers      TEXT NOT NULL DEFAULT ''      -- the hooks and programs that its process has: a JSON object; '': not known
);
CREATE UNIQUE INDEX hosts_name ON hosts (name) WHERE name IS NOT NULL AND ended_at IS NULL;

-- The code of an app, as hosts have run it: those of living hosts, and the latest 100.
CREATE TABLE builds (
    id      TEXT PRIMARY KEY,                 -- a digest, or the name that it was given
    tools   TEXT NOT NULL,                    -- definitions.digest by the name of each of its functions: a JSON object
    runtime TEXT NOT NULL,                    -- the version of ikigai-actors
    seen_at BIGINT NOT NULL                   -- when the latest host has begun with it
);

-- A shard is a set of agents that live on one host together: whole branches of the tree. Whoever takes a host's place takes its
-- shards, one row each, however many agents there are. PostgreSQL, where hosts share them, has 1,024.
CREATE TABLE shards (
    id    BIGINT PRIMARY KEY,
    host  TEXT REFERENCES hosts (id),         -- who runs its agents; NULL, or a host that has ended: nobody
    epoch BIGINT NOT NULL DEFAULT 0           -- counts the hosts that it had
);
INSERT INTO shards (id)
    WITH RECURSIVE numbers (id) AS (SELECT 0 UNION ALL SELECT id + 1 FROM numbers WHERE id < 63) SELECT id FROM numbers;

-- The registry: the only source of truth on who exists. Rows are never deleted.
CREATE TABLE agents (
    uuid            TEXT PRIMARY KEY,
    name            TEXT,
    parent_uuid     TEXT REFERENCES agents (uuid),       -- lineage: immutable; NULL for agent 0 alone
    supervisor_uuid TEXT REFERENCES agents (uuid),       -- who looks after it: at first the parent, changed by adoption
    fork_message_id BIGINT NOT NULL CHECK (fork_message_id >= 0),   -- the fork point: what it inherits ends here
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
    epoch           BIGINT NOT NULL DEFAULT 0,           -- grows at death: an older writer is fenced
    on_orphan       TEXT NOT NULL DEFAULT 'reparent' CHECK (on_orphan IN (   -- its living children, when it dies:
                        'reparent',                      -- go to its nearest living ancestor
                        'cascade',                       -- die with it
                        'stop',                          -- go to that ancestor, and pause
                        'continue')),                    -- go on without a supervisor
    strategy        TEXT NOT NULL DEFAULT 'one_for_one' CHECK (strategy IN ('one_for_one', 'one_for_all', 'rest_for_one')),
    intensity       BIGINT NOT NULL DEFAULT 3 CHECK (intensity >= 0),        -- restarts of its children within
    period          BIGINT NOT NULL DEFAULT 600000 CHECK (period > 0),       -- so many milliseconds, before it gives up
    deadline        BIGINT,                              -- terminating: when it is killed
    exit_cause      TEXT CHECK (exit_cause IN ('killed', 'terminated', 'exited', 'crashed', 'gave up', 'orphaned', 'damaged')),
    exit_sender     TEXT,                                -- the agent that ended it; NULL: a person, or the runtime itself
    mailed          BIGINT NOT NULL DEFAULT 0,           -- mails it was ever sent: the id of the latest
    unread          BIGINT NOT NULL DEFAULT 0,           -- those of its mails, but for prompts, that it has not read
    shard           BIGINT NOT NULL DEFAULT 0,           -- shards.id: with whom it lives on one host. No REFERENCES: SQLite
                                                         -- adds no such column to a table with rows
    changed         BIGINT NOT NULL DEFAULT 0,           -- tree.version of its latest new status, name or interrupt
    interrupted     BIGINT NOT NULL DEFAULT 0,           -- the turn that another process has interrupted
    born            BIGINT NOT NULL DEFAULT 0,           -- where its parent's log tells of the fork: children in order of birth
    budget          TEXT,                                -- budgets.owner: the nearest one that holds it; NULL: agent 0's
    held_at         BIGINT NOT NULL DEFAULT 0,           -- the message that its open request to a model answers; 0 = none
    held_tokens     BIGINT NOT NULL DEFAULT 0,           -- what that request may cost, as it is held at every budget above it
    held_usd        BIGINT NOT NULL DEFAULT 0,           -- in micro-dollars, as all sums of dollars
    held_risk_tokens BIGINT NOT NULL DEFAULT 0,          -- what it may cost beyond that, at worst
    held_risk_usd   BIGINT NOT NULL DEFAULT 0,
    held_limit      BIGINT,                              -- the most tokens of its reply, where a budget is strict
    held_host       TEXT,                                -- hosts.id: in whose portions it is held
    spent_tokens    BIGINT NOT NULL DEFAULT 0,           -- by its requests, all its life
    spent_usd       BIGINT NOT NULL DEFAULT 0,
    imported_at     BIGINT,                              -- when it came from a file. With born = 0 it stands for one that is
                                                         -- not here: its log tells of forks that are elsewhere
    pruned_at       BIGINT,                              -- dead: when its messages and mail were deleted, or began to be
    pruned_hash     BYTEA,                               -- the hash of its latest message, which was deleted
    timed           BIGINT NOT NULL DEFAULT 0,           -- timers it ever had: the id of the latest
    stuck           BIGINT NOT NULL DEFAULT 0,           -- the turn in which its supervisor was told that it gives no sign of life
    branch          TEXT,                                -- the child of agent 0 that it comes from, or itself; NULL: agent 0
    labels          TEXT NOT NULL DEFAULT '',            -- on whose account it works: a JSON object with sorted keys; '': nobody's
    awake           BIGINT NOT NULL DEFAULT 0 CHECK (awake IN (0, 1)),   -- 1: a boot looks at it. Set by its first turn, and cleared by
                                                         -- its host when it sleeps: seldom, so turns stay out of the index
    way             BIGINT NOT NULL DEFAULT 0 CHECK (way IN (0, 1)),     -- 1: dead, and a living one is below it, which was left
                                                         -- as an orphan: the way to the living leads through it
    cut_off         BIGINT NOT NULL DEFAULT 0 CHECK (cut_off IN (0, turn)),   -- the turn with which its host does not go on: it was
                                                         -- cut off, and waits for a person
    resumes         BIGINT NOT NULL DEFAULT 0 CHECK (resumes >= 0),  -- how often a turn went on that was cut off, from the message
    resumed_at      BIGINT NOT NULL DEFAULT 0,           -- at this position: a turn that comes no further is left
    parked          BIGINT NOT NULL DEFAULT 0 CHECK (parked >= -1),  -- a program that only waits, of which nothing is in memory:
                                                         -- how many ends it lacks; -1: its host wakes it; 0: it is not parked
    wake_at         BIGINT,                              -- when a parked one is woken at the latest; NULL: never
    CHECK ((status = 'dead') = (ended_at IS NOT NULL)),
    CHECK ((parent_uuid IS NULL) = (supervisor_uuid IS NULL))
);
-- Agent 0 is the one row without a parent, also when two processes start at once.
CREATE UNIQUE INDEX agents_root ON agents ((1)) WHERE parent_uuid IS NULL;
-- A name finds one living agent.
CREATE UNIQUE INDEX agents_name ON agents (name) WHERE name IS NOT NULL AND status <> 'dead';
-- The beginning of a uuid, or two words for it, finds agents. Not by range: PostgreSQL orders texts as people do.
CREATE INDEX agents_beginning ON agents (substr(uuid, 1, 4));
-- Children, descendants and orphans are found by supervisor; the lineage is walked by primary key.
CREATE INDEX agents_supervisor ON agents (supervisor_uuid);

-- Those whose supervisor is not their parent: with the index before, all that descend from an agent. No birth writes it.
CREATE INDEX agents_adopted ON agents (parent_uuid) WHERE supervisor_uuid <> parent_uuid;

-- The living of a shard: they are counted, and go with it to another host.
CREATE INDEX agents_shard ON agents (shard) WHERE status <> 'dead';

-- Those at which a boot looks. The condition must not name the turn: then PostgreSQL would write all indexes at each turn.
CREATE INDEX agents_awake ON agents (shard) WHERE awake = 1;
-- Programs that only wait: their lists; those that are to be woken, looked for after commits; and whose time comes next.
CREATE INDEX agents_parked ON agents (shard) WHERE parked > 0;
CREATE INDEX agents_woken ON agents (shard) WHERE parked < 0;
CREATE INDEX agents_due ON agents (wake_at) WHERE wake_at IS NOT NULL;

-- Those that a person has looked at in a shell: few.
CREATE INDEX agents_seen ON agents (active_at) WHERE active_at > 0;

-- The living of a branch: a model's fork counts them.
CREATE INDEX agents_branch ON agents (branch) WHERE status <> 'dead';

-- What has changed since a version of the tree: hosts look whenever another process may have written.
CREATE INDEX agents_changed ON agents (changed) WHERE changed > 0;
-- Those that live and do not run.
CREATE INDEX agents_paused ON agents (status) WHERE status = 'stopped' OR status = 'terminating';
-- A name that nobody living has finds the one who had it last.
CREATE INDEX agents_dead_name ON agents (name, ended_at) WHERE status = 'dead' AND name IS NOT NULL;
-- The living children of a supervisor, which may have outlived any number of others, by age: a screen shows some of them. And the
-- dead through which the way to a living one leads, which are few: so a walk down to the living passes no other dead by. By an
-- expression, else a database might take agents_supervisor, which has the dead.
CREATE INDEX agents_children ON agents ((supervisor_uuid || ''), created_at, born) WHERE status <> 'dead' OR way = 1;
-- The newest of the living: what a list begins with that cannot show all.
CREATE INDEX agents_newest ON agents (created_at, born) WHERE status <> 'dead';

-- Logs. Only its owner appends to an agent's log. A child's first id is its fork_message_id + 1, without holes, so the
-- primary key refuses a second writer. An ordinary table: clustered by its key, SQLite appends three times slower. No
-- REFERENCES: the check doubles what an append costs PostgreSQL. The unit holds the agent's row, such rows are never deleted,
-- and fsck looks.
CREATE TABLE messages (
    agent_uuid TEXT NOT NULL,                            -- agents.uuid
    id         BIGINT NOT NULL CHECK (id > 0),
    kind       TEXT NOT NULL,
    content    TEXT NOT NULL,
    data       TEXT,                                     -- a JSON object, or NULL
    created_at BIGINT NOT NULL,
    hash       BYTEA NOT NULL,                           -- SHA-256 of the message and of all that its agent remembers
                                                         -- before it: see ikigai_actors/records/log/chain.py
    PRIMARY KEY (agent_uuid, id)
);
-- The walk backwards ends at the latest clear.
CREATE INDEX messages_clear ON messages (agent_uuid, id) WHERE kind = 'clear';
-- What a history means is decided by few of its messages.
CREATE INDEX messages_control ON messages (agent_uuid, id)
     WHERE kind IN ('configure', 'clear', 'mark', 'rewind', 'summary', 'uncompact');
-- Which calls wait for a person.
CREATE INDEX messages_approval ON messages (agent_uuid, id) WHERE kind = 'approval';

-- Mail. Ids count per recipient, from agents.mailed, and never shift. Read and deleted by the recipient alone.
CREATE TABLE mail (
    recipient  TEXT NOT NULL REFERENCES agents (uuid),
    id         BIGINT NOT NULL CHECK (id > 0),
    sender     TEXT,                                     -- agents.uuid, without a check as in messages; NULL: a person
                                                         -- outside of any agent
    kind       TEXT NOT NULL CHECK (kind IN (
                   'mail',                               -- of an agent or a person
                   'exit',                               -- of the runtime: an agent that the recipient supervises is dead
                   'notice',                             -- of the runtime: about a budget, a reminder, or a stuck child
                   'prompt')),                           -- a person's prompt from another process: no agent reads it as mail
    body       TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    read_at    BIGINT,
    data       TEXT,                                     -- of a prompt: further data of its message, a JSON object; or NULL
    interrupted BIGINT NOT NULL DEFAULT 0 CHECK (interrupted = 0 OR (interrupted = 1 AND kind = 'prompt')),   -- 1: an INT came
                                                         -- before its turn: the turn ends as it begins
    PRIMARY KEY (recipient, id)
);
-- What waits, oldest first; and all that somebody sent.
CREATE INDEX mail_unread ON mail (recipient, id) WHERE read_at IS NULL;
CREATE INDEX mail_sender ON mail (recipient, sender, id);
-- Prompts that nobody has taken up: looked for whenever another process has committed something.
CREATE INDEX mail_prompt ON mail (recipient, id) WHERE kind = 'prompt' AND read_at IS NULL;

-- What programs have asked of other agents: a row from the unit of the prompt on. The last unit of its turn ends it, or the death
-- of the agent, or who withdraws the prompt; always under the row of who has asked.
CREATE TABLE asked (
    agent  TEXT NOT NULL,                                -- agents.uuid: who is to answer
    prompt BIGINT NOT NULL CHECK (prompt > 0),           -- mail.id of that one
    asker  TEXT NOT NULL,                                -- agents.uuid: the program
    ended  BIGINT CHECK (ended > 0),                     -- NULL: it goes on. Counts per asker: the order of the ends
    detached  BIGINT NOT NULL DEFAULT 0 CHECK (detached IN (0, 1)),      -- 1: it goes on where the asker's turn is ended
    cancelled BIGINT NOT NULL DEFAULT 0 CHECK (cancelled IN (0, 1)),     -- 1: that turn was ended; the host of the agent ends this one
    awaited   BIGINT NOT NULL DEFAULT 0 CHECK (awaited IN (0, 1)),       -- 1: its end is counted for the asker, which is parked
    PRIMARY KEY (agent, prompt, asker)
);
CREATE UNIQUE INDEX asked_ended ON asked (asker, ended);
-- What goes on: few, for who dies.
CREATE INDEX asked_open ON asked (asker) WHERE ended IS NULL;
CREATE INDEX asked_cancelled ON asked (agent, prompt, asker) WHERE cancelled = 1 AND ended IS NULL;

-- Pictures, PDFs and sounds, each once: the data of messages, prompts and requests refer to them by "attached".
CREATE TABLE blobs (
    sha256 TEXT NOT NULL PRIMARY KEY,                    -- of the bytes, in hexadecimal digits
    media  TEXT NOT NULL,                                -- their type, as image/png
    bytes  BYTEA NOT NULL
);

-- Files that principals have given through the network, before a message refers to them (ikigai_actors/records/uploads.py). A row
-- keeps its blob from a prune for a day.
CREATE TABLE uploads (
    sha256    TEXT NOT NULL,                             -- blobs.sha256
    principal TEXT NOT NULL,
    name      TEXT NOT NULL,
    size      BIGINT NOT NULL,                           -- bytes
    at        BIGINT NOT NULL,                           -- its latest upload
    PRIMARY KEY (sha256, principal)
);
CREATE INDEX uploads_of ON uploads (principal, at);

-- Definitions of tools: the data of messages about calls refer to them by "definition", builds and hosts by name. Rows are never
-- changed. A prune deletes those that nobody names any more.
CREATE TABLE definitions (
    digest TEXT PRIMARY KEY,                             -- SHA-256 of the body, in hexadecimal digits
    name   TEXT NOT NULL,                                -- of the tool
    body   TEXT NOT NULL                                 -- a JSON object: description, schema, traits
);

-- The tools that remote MCP servers have listed (ikigai_actors/records/mcp_listings.py), so that a host starts while one is away.
CREATE TABLE mcp_listings (
    server TEXT PRIMARY KEY,                             -- its URL
    digest TEXT NOT NULL,                                -- SHA-256 of the list, in hexadecimal digits
    list   TEXT NOT NULL,                                -- JSON
    at     BIGINT NOT NULL
);

-- Credentials at remote MCP servers, each sealed by the operator's key (ikigai_actors/records/accounts.py).
CREATE TABLE accounts (
    server         TEXT NOT NULL,                        -- its URL
    subject        TEXT NOT NULL,                        -- a label and its value: user=anna
    version        BIGINT NOT NULL CHECK (version > 0),  -- raised by one with each renewal
    renewing_until BIGINT,                               -- until when somebody renews it; NULL: nobody does
    issuer         TEXT NOT NULL,                        -- the authorization server
    scope          TEXT NOT NULL,                        -- the rights that it has
    expires_at     BIGINT,                               -- NULL: not known
    sealed         BYTEA NOT NULL,                       -- the tokens
    PRIMARY KEY (server, subject)
);

-- Credentials that somebody is about to give: the first half, until the authorization server sends that one back.
CREATE TABLE account_flows (
    state    TEXT PRIMARY KEY,                           -- SHA-256 of the state, in hexadecimal digits
    question TEXT NOT NULL,                              -- questions.id
    until    BIGINT NOT NULL,                            -- it can be finished until then, once
    sealed   BYTEA NOT NULL
);

-- Documents, shared by all agents. Each write makes a version, and so does a deletion; versions stay.
CREATE TABLE documents (
    path       TEXT NOT NULL,
    version    BIGINT NOT NULL CHECK (version > 0),      -- counts per path
    author     TEXT REFERENCES agents (uuid),            -- NULL: a person outside of any agent
    body       TEXT,                                     -- NULL: deleted
    created_at BIGINT NOT NULL,
    principal  TEXT,                                     -- who asked for it from outside; NULL: not known, or an agent
    PRIMARY KEY (path, version)
);
CREATE INDEX documents_since ON documents (created_at, path, version, author);

-- Which agent has taken in what another one has said, and up to which of its messages: each head once.
CREATE TABLE merges (
    into_uuid  TEXT NOT NULL REFERENCES agents (uuid),
    from_uuid  TEXT NOT NULL REFERENCES agents (uuid),
    from_head  BIGINT NOT NULL,                          -- position of the latest message of from_uuid
    message    BIGINT NOT NULL,                          -- position of the message "merge" in the log of into_uuid
    created_at BIGINT NOT NULL,
    PRIMARY KEY (into_uuid, from_uuid, from_head)
);

-- Every signal ever sent. What it did stands in the registry, which the host of the agent follows.
CREATE TABLE signals (
    agent_uuid TEXT NOT NULL REFERENCES agents (uuid),
    id         BIGINT NOT NULL CHECK (id > 0),           -- counts per agent, under the lock of its row
    signal     TEXT NOT NULL CHECK (signal IN ('INT', 'STOP', 'CONT', 'TERM', 'KILL')),
    spread     BIGINT NOT NULL DEFAULT 0 CHECK (spread IN (0, 1)),   -- 1: it hit all descendants too
    turn       BIGINT NOT NULL DEFAULT 0,                -- INT: the turn in progress then; a later one is not ended by it. 0: none
                                                         -- was, and the oldest prompt of then has mail.interrupted
    sender     TEXT REFERENCES agents (uuid),            -- NULL: a person
    reason     TEXT NOT NULL DEFAULT '',
    created_at BIGINT NOT NULL,
    principal  TEXT,                                     -- who asked for it from outside; NULL: not known, or an agent
    PRIMARY KEY (agent_uuid, id)
);

-- Every restart: the intensity of a supervisor counts them within its period, and a turn that keeps crashing is found by them.
CREATE TABLE restarts (
    agent_uuid      TEXT NOT NULL REFERENCES agents (uuid),
    id              BIGINT NOT NULL CHECK (id > 0),      -- counts per agent, under the lock of its row
    supervisor_uuid TEXT NOT NULL REFERENCES agents (uuid),
    supervisor_restart BIGINT NOT NULL,                  -- the id of the supervisor's own latest restart then; 0 = none
    turn            BIGINT NOT NULL,                     -- that was in progress; 0 when idle
    reason          TEXT NOT NULL,
    created_at      BIGINT NOT NULL,
    PRIMARY KEY (agent_uuid, id)
);
CREATE INDEX restarts_supervisor ON restarts (supervisor_uuid, created_at);

-- What other processes ask an agent to do itself. Rows stay: one that is answered is never carried out again.
CREATE TABLE requests (
    agent_uuid  TEXT NOT NULL REFERENCES agents (uuid),
    id          BIGINT NOT NULL CHECK (id > 0),          -- counts per agent, under the lock of its row
    kind        TEXT NOT NULL,
    body        TEXT NOT NULL,                           -- the arguments: a JSON object
    mailed      BIGINT NOT NULL,                         -- agents.mailed then: prompts up to it were sent before
    created_at  BIGINT NOT NULL,
    answer      TEXT,                                    -- a JSON object with a value or an error; NULL: none yet
    answered_at BIGINT,
    PRIMARY KEY (agent_uuid, id),
    CHECK ((answer IS NULL) = (answered_at IS NULL))
);
CREATE INDEX requests_new ON requests (agent_uuid, id) WHERE answered_at IS NULL;

-- What was asked for under a key, written with what it did (`ikigai_actors.records.once`). The same call under the same key has
-- the same answer, and does nothing.
CREATE TABLE calls (
    scope TEXT NOT NULL,                                 -- an agent's uuid, within which the key is one; '' for doors, and documents of nobody
    key   TEXT NOT NULL,                                 -- 1 to 200 printable characters
    agent TEXT,                                          -- agents.uuid: whose method was called; NULL for nobody's
    verb  TEXT NOT NULL,
    asked TEXT NOT NULL,                                 -- SHA-256 of the verb and the arguments
    about TEXT NOT NULL,                                 -- the beginning of a text by which a person knows the call
    gave  TEXT NOT NULL,                                 -- a JSON object
    at    BIGINT NOT NULL,                               -- a prune deletes older ones than 30 days, unless what they name is open
    PRIMARY KEY (scope, key)
);

-- Doors for events from outside: a signed delivery to one becomes a prompt, a mail or a child of its agent. Rows stay: arrivals name them.
CREATE TABLE endpoints (
    name       TEXT PRIMARY KEY,
    agent_uuid TEXT NOT NULL REFERENCES agents (uuid),
    spec       TEXT NOT NULL,                            -- a JSON object: scheme, filters, template, and secrets: references to them, or themselves sealed for this row
    created_at BIGINT NOT NULL,
    paused_at  BIGINT,                                   -- since then it holds what comes
    removed_at BIGINT
);

-- Deliveries, each once, written with what became of it.
CREATE TABLE arrivals (
    endpoint TEXT NOT NULL REFERENCES endpoints (name),
    id       TEXT NOT NULL,                              -- the sender's, or made of the body
    number   BIGINT NOT NULL,                            -- counts per endpoint, in the order of commits
    at       BIGINT NOT NULL,                            -- rows that are older than 30 days are deleted by a prune
    again_of TEXT,                                       -- the arrival that somebody had repeated
    became   TEXT NOT NULL CHECK (became IN ('taken', 'filtered', 'held', 'dead')),
    gave     TEXT NOT NULL,                              -- a JSON object
    child    TEXT,                                       -- the uuid of the child that it asked for
    request  BIGINT,                                     -- requests.id of that
    sha256   TEXT NOT NULL,                              -- of the body
    headers  TEXT NOT NULL,                              -- a JSON object, without signatures
    body     BYTEA,                                      -- NULL: deleted by a prune, 7 days later
    PRIMARY KEY (endpoint, id)
);
CREATE UNIQUE INDEX arrivals_number ON arrivals (endpoint, number);
CREATE INDEX arrivals_waiting ON arrivals (endpoint, became, number) WHERE became IN ('held', 'dead');
CREATE INDEX arrivals_body ON arrivals (endpoint, sha256, number);
CREATE INDEX arrivals_again ON arrivals (endpoint, again_of) WHERE again_of IS NOT NULL;
CREATE INDEX arrivals_child ON arrivals (child) WHERE child IS NOT NULL;
CREATE INDEX arrivals_request ON arrivals (endpoint, request) WHERE request IS NOT NULL;

-- Receivers of events outside. Rows stay: deliveries name them.
CREATE TABLE subscriptions (
    id            TEXT PRIMARY KEY,
    url           TEXT NOT NULL,
    scope         TEXT REFERENCES agents (uuid),         -- whose events; NULL: everybody's
    below         BIGINT NOT NULL CHECK (below IN (0, 1)),   -- 1: also those of the agents that it supervises, directly or not
    kinds         TEXT NOT NULL,                         -- the kinds of events, each with a comma before and after it
    spec          TEXT NOT NULL,                         -- a JSON object: format, and secrets: references to them, or themselves sealed for this row
    created_at    BIGINT NOT NULL,
    context       TEXT,                                  -- of a task of A2A: its agent, perhaps not born yet; NULL: of no task
    failing_since BIGINT,                                -- no delivery has succeeded since then, and one has failed
    paused_at     BIGINT,                                -- since then nothing is sent; what comes waits
    ended_at      BIGINT
);
CREATE INDEX subscriptions_live ON subscriptions (id) WHERE ended_at IS NULL;
CREATE INDEX subscriptions_of_tasks ON subscriptions (context) WHERE ended_at IS NULL AND context IS NOT NULL;

-- The outbox: an event that a subscription is to get, written in the transaction of the event. The id of the delivery is made of
-- the primary key. With due_at it waits; with done_at it was received; without both it is dead.
CREATE TABLE deliveries (
    subscription TEXT NOT NULL REFERENCES subscriptions (id),
    agent_uuid   TEXT NOT NULL REFERENCES agents (uuid), -- whose event: the owner of its shard sends it, in the order of positions
    position     BIGINT NOT NULL,                        -- of the message; of an event without one its time
    kind         TEXT NOT NULL,
    about        TEXT NOT NULL,                          -- the turn, arrival, budget or subscription; '' for none
    at           BIGINT NOT NULL,                        -- rows that are older than 30 days are deleted by a prune
    tries        BIGINT NOT NULL DEFAULT 0,
    due_at       BIGINT,                                 -- the next try
    done_at      BIGINT,
    said         TEXT NOT NULL DEFAULT '',               -- the answer to the latest try, in a few words
    PRIMARY KEY (subscription, agent_uuid, position, kind, about)
);
CREATE INDEX deliveries_due ON deliveries (subscription, due_at) WHERE due_at IS NOT NULL;

-- Requests that wait for a batch of their service. A batch is a row before anything leaves; remote is the service's name for it, NULL
-- while the service has not said so. A seat is the one host that deals with a service; another takes it when that has ended.
CREATE TABLE seats (
    service TEXT PRIMARY KEY,
    host    TEXT NOT NULL REFERENCES hosts (id)
);
CREATE TABLE batches (
    id         TEXT PRIMARY KEY,              -- random; the ids of its requests at the service end with it
    service    TEXT NOT NULL,
    remote     TEXT,
    size       BIGINT NOT NULL,
    made_at    BIGINT NOT NULL,
    sent_at    BIGINT,                        -- when its latest sending began
    ended_at   BIGINT,                        -- its results are there; rows that are older than 30 days are deleted by a prune
    UNIQUE (service, remote)
);
CREATE INDEX batches_open ON batches (service) WHERE ended_at IS NULL;
CREATE TABLE batch_members (
    agent_uuid TEXT NOT NULL REFERENCES agents (uuid),
    position   BIGINT NOT NULL,               -- the head of the history that is sent
    attempt    BIGINT NOT NULL,
    service    TEXT NOT NULL,
    batch      TEXT REFERENCES batches (id),  -- NULL until it is sealed
    asked_at   BIGINT NOT NULL,
    due_at     BIGINT NOT NULL,               -- then it is asked directly
    state      TEXT NOT NULL CHECK (state IN ('waiting', 'answered', 'failed', 'again', 'direct')),
    body       BYTEA,                         -- the request; NULL once its end is known
    result     TEXT,                          -- the service's answer, or why there is none
    read_at    BIGINT,                        -- when its agent's host took note of the end
    PRIMARY KEY (agent_uuid, position, attempt)
);
CREATE INDEX batch_members_waiting ON batch_members (service, batch) WHERE state = 'waiting';
CREATE INDEX batch_members_unread ON batch_members (agent_uuid) WHERE read_at IS NULL AND state IN ('answered', 'failed', 'direct');

-- Budgets: ceilings on what an agent and all that descend from it may spend. The chain above one never changes. Agent 0 always has
-- one, at first without limits. Locked in this order, after the rows of agents: budgets, limits, portions, slots.
CREATE TABLE budgets (
    owner      TEXT PRIMARY KEY REFERENCES agents (uuid),
    above      TEXT,                                     -- budgets.owner; NULL for agent 0's alone
    strict     BIGINT NOT NULL DEFAULT 0 CHECK (strict IN (0, 1)),   -- 1: never exceeded; 0: requests cost about what is held
    paused     BIGINT NOT NULL DEFAULT 0,                -- how many requests had to wait for it, ever: the number of the latest
    created_at BIGINT NOT NULL                           -- 'ms' counts from here
);
CREATE UNIQUE INDEX budgets_root ON budgets ((1)) WHERE above IS NULL;

-- What a budget limits. No row: no limit. 0: nothing at all.
CREATE TABLE limits (
    budget  TEXT NOT NULL REFERENCES budgets (owner),
    unit    TEXT NOT NULL CHECK (unit IN (
                'tokens',
                'usd',                                   -- in micro-dollars
                'agents',                                -- that live below the owner
                'agents_ever',                           -- that were ever born below it
                'ms',                                    -- since the budget was made
                'requests')),                            -- to models, within any 60 s
    granted BIGINT NOT NULL CHECK (granted BETWEEN 0 AND 1000000000000000),
    base    BIGINT NOT NULL DEFAULT 0,                   -- what its members had spent when it was set, which does not count
    used    BIGINT NOT NULL DEFAULT 0,                   -- spent in portions of hosts that have ended; agents: living, or born
    risk    BIGINT NOT NULL DEFAULT 0,                   -- of those portions
    notified BIGINT NOT NULL DEFAULT 0,                   -- 1: that 80 % are spent, 2: that somebody waits; a grant sets it back
    PRIMARY KEY (budget, unit)
);

-- A host's part of a limit of tokens or dollars: its requests are held here, without looking at other hosts.
CREATE TABLE portions (
    budget   TEXT NOT NULL REFERENCES budgets (owner),
    unit     TEXT NOT NULL,
    host     TEXT NOT NULL REFERENCES hosts (id),
    allotted BIGINT NOT NULL,                            -- held + spent may be more, where an estimate was too low
    held     BIGINT NOT NULL CHECK (held >= 0),
    spent    BIGINT NOT NULL,
    risk     BIGINT NOT NULL DEFAULT 0,                  -- how much more than that may have been spent: of replies that broke off;
                                                         -- of a strict budget, how much of that was told beyond what was held
    wanted   BIGINT NOT NULL DEFAULT 0 CHECK (wanted IN (0, 1)),     -- 1: look at the budget again when this has changed
    PRIMARY KEY (budget, unit, host)
);

-- The labels of each set that anything was spent under. Sets are never changed or deleted.
CREATE TABLE label_values (
    labels TEXT NOT NULL,                                -- the id of the set: 16 digits of the SHA-256 of its JSON
    key    TEXT NOT NULL,
    value  TEXT NOT NULL,
    PRIMARY KEY (labels, key)
);

-- What each request has cost whose tokens a service has counted: a row for the message that tells of it, written with that.
-- Rows stay when the messages of a dead agent are deleted.
CREATE TABLE spendings (
    agent_uuid TEXT NOT NULL REFERENCES agents (uuid),
    id         BIGINT NOT NULL,                          -- of the message
    labels     TEXT NOT NULL,                            -- label_values.labels, of the turn; '': none
    created_at BIGINT NOT NULL,
    tokens     BIGINT NOT NULL CHECK (tokens >= 0),
    usd        BIGINT NOT NULL CHECK (usd >= 0),         -- in micro-dollars, at the price of then
    PRIMARY KEY (agent_uuid, id)
);
-- The sums of a set since some time, by the index alone.
CREATE INDEX spendings_labels ON spendings (labels, created_at, tokens, usd);

-- When requests were made, of a budget that limits them: as many rows as a minute allows.
CREATE TABLE slots (
    budget  TEXT NOT NULL REFERENCES budgets (owner),
    id      BIGINT NOT NULL,
    used_at BIGINT NOT NULL,
    PRIMARY KEY (budget, id)
);

-- Requests that wait for a budget: one of an agent at most, whose turn is open.
CREATE TABLE pauses (
    agent_uuid TEXT PRIMARY KEY REFERENCES agents (uuid),
    budget     TEXT NOT NULL REFERENCES budgets (owner), -- the first, from agent 0 down, in which there was not enough left
    unit       TEXT NOT NULL,
    number     BIGINT NOT NULL,                          -- from budgets.paused: the order in which they go on
    turn       BIGINT NOT NULL,
    at         BIGINT NOT NULL,                          -- the message that the request answers
    need       TEXT NOT NULL,                            -- what the request may cost: a JSON object
    since      BIGINT NOT NULL,
    due_at     BIGINT                                    -- when a request is allowed again, where the time decides; else NULL
);
CREATE INDEX pauses_order ON pauses (budget, number);

-- What is to happen to agents later: mail, or a prompt. A row goes when it fires for the last time, and with its agent.
CREATE TABLE timers (
    agent_uuid TEXT NOT NULL REFERENCES agents (uuid),   -- who gets what it fires
    id         BIGINT NOT NULL CHECK (id > 0),           -- from agents.timed: never given again
    due_at     BIGINT NOT NULL,                          -- when it fires next
    schedule   TEXT,                                     -- five fields, as of cron, or a length of time, as 36h; NULL: it fires once
    zone       TEXT NOT NULL,                            -- IANA: whose clocks the schedule means, and people read
    fires_as   TEXT NOT NULL CHECK (fires_as IN ('mail', 'notice', 'prompt')),   -- the kind of its mails
    sender     TEXT REFERENCES agents (uuid),            -- NULL: a person outside of any agent
    body       TEXT NOT NULL,
    missed     BIGINT NOT NULL DEFAULT 0,                -- how often it was due without a mail since its latest one
    since      BIGINT,                                   -- when the first of these was due
    latest     BIGINT NOT NULL DEFAULT 0,                -- its latest mail, by number: while that is unread no other comes
    notified   BIGINT NOT NULL DEFAULT 0 CHECK (notified IN (0, 1)),   -- 1: its sender knows that the mailbox is full
    created_at BIGINT NOT NULL,
    PRIMARY KEY (agent_uuid, id)
);
-- What is due next, of all agents.
CREATE INDEX timers_due ON timers (due_at, agent_uuid, id);

-- What stood in rows that change in place, until a time: a unit that changes one writes it down in its transaction, so the team
-- of any moment can be read (ikigai_actors/records/agents/former.py). A prune deletes what is older than 30 days.
CREATE TABLE former (
    agent_uuid TEXT NOT NULL,                            -- agents.uuid, without a check as in messages
    what       TEXT NOT NULL,                            -- supervisor, name, status, strategy, group, limit or timer; later more
    key        TEXT NOT NULL,                            -- of a group its name, of a limit its unit, of a timer its number; else ''
    until      BIGINT NOT NULL,                          -- it was so before that time, and not from then on
    value      TEXT NOT NULL,
    PRIMARY KEY (agent_uuid, what, key, until)
);

-- Other processes that want to see replies on their way.
CREATE TABLE listeners (
    id      TEXT PRIMARY KEY,                            -- random; of a host, hosts.id
    until   BIGINT NOT NULL,                             -- it counts until then, and renews this while somebody there listens
    replies BIGINT NOT NULL DEFAULT 1 CHECK (replies IN (0, 1))   -- 0: it is there, and wants to see no replies on their way
);

-- What was received of replies on their way, while other processes listen. Once a reply is committed its rows are void, as are those
-- of a host that has ended or an agent that has moved: they are not read, and deleted later.
CREATE TABLE pieces (
    host       TEXT NOT NULL REFERENCES hosts (id),      -- that receives the reply
    id         BIGINT NOT NULL CHECK (id > 0),           -- counts per host, in the order of its commits
    agent_uuid TEXT NOT NULL REFERENCES agents (uuid),
    reply      BIGINT NOT NULL,                          -- numbers the replies that the host has received, as far as they were listened to
    at         BIGINT NOT NULL,                          -- the message that the reply continues
    body       TEXT NOT NULL,                            -- kinds and texts: a JSON list of pairs
    PRIMARY KEY (host, id)
);

-- The names of groups: the row is locked by who joins, leaves, or sends to the group.
CREATE TABLE group_names (
    name TEXT PRIMARY KEY
);

-- Groups. Who dies leaves them, in the transaction of its death.
CREATE TABLE groups (
    name       TEXT NOT NULL REFERENCES group_names (name),
    agent_uuid TEXT NOT NULL REFERENCES agents (uuid),
    joined_at  BIGINT NOT NULL,
    PRIMARY KEY (name, agent_uuid)
);
CREATE INDEX groups_agent ON groups (agent_uuid);

-- Which calls of tools run, are asked about, or are denied. Rows stay: one that is taken back has the time of that.
CREATE TABLE rules (
    agent_uuid TEXT NOT NULL REFERENCES agents (uuid),
    id         BIGINT NOT NULL CHECK (id > 0),           -- counts per agent, under the lock of its row
    decision   TEXT NOT NULL CHECK (decision IN ('allow', 'ask', 'deny')),
    tool       TEXT NOT NULL,                            -- a name, in which * is any text
    pattern    TEXT NOT NULL,                            -- of the words of a command, or of a path; '': every call
    scope      TEXT NOT NULL CHECK (scope IN (
                   'below',                              -- the agent, and all below it in the tree of supervisors
                   'self')),                             -- the agent alone
    created_at BIGINT NOT NULL,
    removed_at BIGINT,
    principal  TEXT,                                     -- who asked for it from outside; NULL: not known, or an agent
    skill      TEXT,                                     -- the digest of a skill: it holds where that one is in use; NULL: of none
    PRIMARY KEY (agent_uuid, id)
);
-- Those in force: most databases have none, and each call that begins looks.
-- By this index alone it is seen whether an agent has others than it had.
CREATE INDEX rules_in_force ON rules (agent_uuid, scope, id) WHERE removed_at IS NULL;

-- Directories that fork with their agent: it sees the base beneath layers of changes, which are directories on one machine. Rows
-- say which layers there are; see ikigai_actors/tools/trees. They go with what is pruned.
CREATE TABLE trees (
    agent_uuid TEXT NOT NULL REFERENCES agents (uuid),
    base       TEXT NOT NULL,                            -- the path of the directory
    machine    TEXT NOT NULL,                            -- where that is, and the layers
    forked_as  TEXT NOT NULL CHECK (forked_as IN (
                   'overlay',                            -- the base beneath layers
                   'worktree')),                         -- a worktree of git; a layer is a commit of what was there
    parent     TEXT REFERENCES agents (uuid),            -- with whose files it began; NULL: with the base as it is
    below      BIGINT NOT NULL CHECK (below >= 0),       -- how many layers of the parent are beneath its own
    upper      BIGINT NOT NULL CHECK (upper >= 0),       -- the layer that it writes to: those before it are never written again
    since      BIGINT NOT NULL CHECK (since >= 0),       -- the position of the agent's log from which on its files are these
    created_at BIGINT NOT NULL,
    applied_at BIGINT,                                   -- when what it shows was last written to the base
    PRIMARY KEY (agent_uuid, base)
);
CREATE INDEX trees_parent ON trees (parent) WHERE parent IS NOT NULL;

-- Layers that came from a child, in the transaction that made them part of the tree.
CREATE TABLE tree_merges (
    agent_uuid TEXT NOT NULL REFERENCES agents (uuid),   -- who got it
    base       TEXT NOT NULL,
    layer      BIGINT NOT NULL,                          -- its number among the layers of that agent
    child      TEXT NOT NULL REFERENCES agents (uuid),
    upto       BIGINT NOT NULL,                          -- how many layers of the child it has
    created_at BIGINT NOT NULL,
    PRIMARY KEY (agent_uuid, base, layer)
);

-- When layers were written to: the calls of the reply at a position, or a merge when the log had come there.
CREATE TABLE tree_writes (
    agent_uuid TEXT NOT NULL REFERENCES agents (uuid),
    base       TEXT NOT NULL,
    layer      BIGINT NOT NULL CHECK (layer >= -1),      -- its number among the layers of that agent; -1: the base itself
    position   BIGINT NOT NULL,
    PRIMARY KEY (agent_uuid, base, layer, position)
);

-- Who hears of a death beside the supervisor. A row ends with either of the two.
CREATE TABLE monitors (
    agent_uuid TEXT NOT NULL REFERENCES agents (uuid),
    watcher    TEXT NOT NULL REFERENCES agents (uuid),
    created_at BIGINT NOT NULL,
    PRIMARY KEY (agent_uuid, watcher)
);
CREATE INDEX monitors_watcher ON monitors (watcher);

-- What other libraries keep in this database (ikigai_actors/doors): a session, a thread. It begins with what another log holds up
-- to an entry, as an agent begins with what another one remembers.
CREATE TABLE guest_logs (
    id         TEXT PRIMARY KEY,                         -- random
    guest      TEXT NOT NULL,                            -- the library
    scope      TEXT NOT NULL,                            -- what groups names: a project, or ''
    name       TEXT,                                     -- NULL: read by those alone that begin with it
    parent     TEXT REFERENCES guest_logs (id),          -- what it begins with
    upto       BIGINT NOT NULL CHECK (upto >= 0),        -- up to which entry of the parent; 0 without one
    head       BIGINT NOT NULL CHECK (head >= upto),     -- no entry has a higher number
    data       TEXT NOT NULL,                            -- a summary of the guest's own, or ''
    changed_at BIGINT NOT NULL                           -- increases with each change
);
CREATE UNIQUE INDEX guest_logs_name ON guest_logs (guest, scope, name) WHERE name IS NOT NULL;
CREATE INDEX guest_logs_parent ON guest_logs (parent, upto) WHERE parent IS NOT NULL;

-- The entries of these logs. They are not read through the log's row, so no foreign key: fsck looks.
CREATE TABLE guest_entries (
    log        TEXT NOT NULL,
    id         BIGINT NOT NULL,                          -- goes on after guest_logs.upto
    part       TEXT NOT NULL,                            -- a namespace of the guest's, or ''
    about      TEXT NOT NULL,                            -- what it belongs to: a checkpoint, or ''
    key        TEXT NOT NULL,                            -- what it is within that, or ''
    tag        TEXT,                                     -- by which it is found in all logs: a run
    data       TEXT,                                     -- JSON. NULL: this log shows nothing about that any more
    body       BYTEA,                                    -- what JSON does not hold
    PRIMARY KEY (log, id)
);
CREATE INDEX guest_entries_about ON guest_entries (log, part, about);
CREATE INDEX guest_entries_tag ON guest_entries (tag) WHERE tag IS NOT NULL;

-- The tokens by which principals come in through the network, each by the hash of its secret (ikigai_actors/records/tokens.py).
CREATE TABLE tokens (
    sha256     TEXT PRIMARY KEY,
    principal  TEXT NOT NULL,                            -- written beside all that is done with it
    name       TEXT NOT NULL,                            -- for people
    roles      TEXT NOT NULL,                            -- words with blanks between
    under      TEXT,                                     -- agents.uuid: the topmost agent in reach; NULL: all
    made_by    TEXT,                                     -- the principal that has issued it
    created_at BIGINT NOT NULL,
    expires_at BIGINT,                                   -- NULL: never
    revoked_at BIGINT
);

-- Questions that wait, or waited, for a person: an index of messages of kind approval (ikigai_actors/records/questions). A row is
-- written with its message, and closed with what ends the wait. A prune deletes it 30 days after.
CREATE TABLE questions (
    id          TEXT PRIMARY KEY,                        -- of the agent and the position of the message
    agent_uuid  TEXT NOT NULL REFERENCES agents (uuid),
    position    BIGINT NOT NULL CHECK (position > 0),    -- of the message
    reply       BIGINT NOT NULL,                         -- position of the reply that makes the call
    call        TEXT NOT NULL,                           -- the call's id within that
    kind        TEXT NOT NULL CHECK (kind IN (
                    'approve',                           -- may the call run?
                    'ask',                               -- what is the answer?
                    'connect')),                         -- whose account at a server is to be used?
    asks        TEXT NOT NULL,                           -- whom: a JSON list of addresses
    level       BIGINT NOT NULL DEFAULT 0 CHECK (level >= 0),   -- how many steps of its terms were taken
    digest      TEXT NOT NULL,                           -- SHA-256 of what a person is shown
    form        TEXT,                                    -- the form of the answer, a flat JSON Schema; NULL: a text, or a decision
    terms       TEXT NOT NULL,                           -- what happens while nobody answers, as JSON; '': nothing
    asked_at    BIGINT NOT NULL,
    next_at     BIGINT,                                  -- when the next step is taken
    next        TEXT CHECK (next IN ('remind', 'escalate', 'default')),
    answered_at BIGINT,                                  -- NULL: it waits
    by          TEXT,                                    -- who has decided; NULL: nobody
    how         TEXT CHECK (how IN ('approved', 'denied', 'answered', 'declined', 'expired', 'void')),
    CHECK ((answered_at IS NULL) = (how IS NULL)),
    CHECK ((next_at IS NULL) = (next IS NULL))
);
CREATE INDEX questions_open ON questions (agent_uuid) WHERE answered_at IS NULL;
CREATE INDEX questions_due ON questions (next_at) WHERE answered_at IS NULL AND next_at IS NOT NULL;
