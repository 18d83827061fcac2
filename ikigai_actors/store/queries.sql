-- Every statement that ikigai runs, for SQLite and PostgreSQL alike. A line "-- name:" begins one, comment lines say why it is
-- as it is, then comes the statement, without a semicolon. Parameters are :name; a list is given as = ANY(:name); the time is
-- now_ms(). A last column AS heard is a stamp that its process hears (HybridClock), and not given on. Lists of columns that several statements read stand once, behind "-- columns:", and {name} stands for them. What
-- queries.py makes of these for each database is written there. Two traps: PostgreSQL must be told the type of a
-- parameter that stands alone (CAST(:x AS TEXT) IS NULL), and its SUM of BIGINT is no integer (CAST(SUM(n) AS BIGINT)).

-- columns: agent
-- A row of the registry: the fields of AgentRecord, in their order.
a.uuid, a.name, a.parent_uuid, a.supervisor_uuid, a.fork_message_id, a.status, a.turn, a.restart, a.exit_reason, a.created_at,
       a.ended_at, a.active_at, (SELECT s.host FROM shards s WHERE s.id = a.shard) AS owner, a.epoch, a.on_orphan, a.strategy,
       a.intensity, a.period, a.deadline, a.exit_cause, a.exit_sender, a.mailed, a.unread, a.shard, a.born, a.budget,
       a.spent_tokens, a.spent_usd, a.timed, (SELECT w.unit FROM pauses w WHERE w.agent_uuid = a.uuid) AS waits_for, a.imported_at,
       a.pruned_at, a.branch, a.cut_off, a.parked,
       CASE WHEN a.parked > 0 THEN (SELECT CAST(json_agg(b.uuid || ' ' || b.cut_off || ' ' || COALESCE(b.name, '')) AS TEXT) FROM asked k
          JOIN agents b ON b.uuid = k.agent WHERE k.asker = a.uuid AND k.awaited = 1 AND k.ended IS NULL) END AS awaits,
       CASE WHEN a.turn > 0 THEN (SELECT MIN(q.asks) FROM questions q WHERE q.agent_uuid = a.uuid AND q.answered_at IS NULL)
       END AS asks, a.labels

-- columns: called_so
-- Whether an agent is called so: a part of its name, or of the two words of one without a name, as words_having gives them.
(lower(a.name) LIKE :pattern ESCAPE '!'
    OR (a.name IS NULL AND CASE WHEN substr(a.uuid, 1, 2) = ANY(:adjectives) THEN 1 ELSE 0 END
          + CASE WHEN substr(a.uuid, 3, 2) || CASE WHEN substr(a.uuid, 2, 1) = ANY(:even) THEN '0' ELSE '1' END = ANY(:nouns)
                 THEN 1 ELSE 0 END >= CAST(:both AS BIGINT)))

-- columns: relative
-- What a death must know of an agent: the fields of Relative.
a.uuid, a.supervisor_uuid AS supervisor, a.status, a.on_orphan AS policy, a.shard, a.parent_uuid AS parent, a.born,
       a.created_at, a.turn, a.name, a.way

-- columns: locked
-- What units must know of the agents that they touch: the fields of Locked.
a.uuid, a.status, (SELECT s.host FROM shards s WHERE s.id = a.shard) AS owner, a.epoch, a.mailed, a.unread, a.budget, a.held_at,
       a.held_tokens, a.held_usd, a.held_risk_tokens, a.held_risk_usd, a.held_host, a.turn

-- columns: doomed
a.uuid, a.supervisor_uuid, a.created_at, a.born, a.name, a.row_key, a.status <> 'dead', a.held_at > 0 OR a.budget IS NOT NULL

-- columns: buried
-- What a death writes. The epoch grows, so whatever they still do is fenced. Their logs are left as they are.
status = 'dead', turn = 0, cut_off = 0, awake = 0, parked = 0, wake_at = NULL, epoch = epoch + 1, deadline = NULL, ended_at = :now, exit_reason = :reason,
       exit_cause = CAST(:cause AS TEXT), exit_sender = :sender, changed = (SELECT version FROM tree WHERE one = 1)

-- columns: ruling
-- No columns: an agent and everybody above it, where there are rules at all. UNION: a damaged circle ends.
WITH RECURSIVE above(uuid, supervisor_uuid) AS (
    SELECT a.uuid, a.supervisor_uuid FROM agents a
     WHERE a.uuid = :uuid AND EXISTS (SELECT 1 FROM rules r WHERE r.removed_at IS NULL)
    UNION SELECT a.uuid, a.supervisor_uuid FROM agents a JOIN above ON a.uuid = above.supervisor_uuid)

-- columns: in_force
-- No columns: which rules of those are in force for it.
r.removed_at IS NULL AND (r.scope = 'below' OR r.agent_uuid = :uuid)

-- columns: keeps
-- No columns: writes rows of former. A stamp is not before that of the row that the same value got last.
INSERT INTO former (agent_uuid, what, key, until, value)
SELECT was.uuid, was.what, was.key, COALESCE((SELECT MAX(f.until) FROM former f WHERE f.agent_uuid = was.uuid AND f.what = was.what
           AND f.key = was.key AND f.until > CAST(:now AS BIGINT)), CAST(:now AS BIGINT)), was.value
  FROM

-- columns: timer
-- A timer: the fields of Timer.
t.agent_uuid, t.id, t.due_at, t.schedule, t.zone, t.fires_as, t.sender, t.body, t.missed, t.since, t.latest, t.notified, t.created_at

-- columns: rule
-- A rule: the fields of RuleRow.
r.agent_uuid, r.id, r.decision, r.tool, r.pattern, r.scope, r.created_at, r.removed_at, r.skill

-- columns: tree
-- A tree: the fields of FileTree.
t.agent_uuid, t.base, t.machine, t.forked_as, t.parent, t.below, t.upper, t.since, t.created_at, t.applied_at

-- columns: tree_merge
-- A merge of files: the fields of TreeMerge.
m.agent_uuid, m.base, m.layer, m.child, m.upto, m.created_at

-- columns: tree_write
-- When a layer was written to: the fields of TreeWrite.
w.agent_uuid, w.base, w.layer, w.position

-- columns: guest_log
-- A log of a guest: the fields of GuestLog.
l.id, l.guest, l.scope, l.name, l.parent, l.upto, l.head, l.data, l.changed_at

-- columns: guest_entry
-- An entry of a log: the fields of GuestEntry, after the log that holds it.
e.log, e.id, e.part, e.about, e.key, e.tag, e.data, e.body

-- columns: guest_chain
-- What a log shows: its own entries, and those of the logs that it begins with, as far as it does. UNION: a damaged circle ends.
WITH RECURSIVE chain(log, parent, above, bound) AS (
    SELECT id, parent, upto, head FROM guest_logs WHERE id = :log
    UNION
    SELECT p.id, p.parent, p.upto, c.above FROM chain c JOIN guest_logs p ON p.id = c.parent
), shown AS (
    SELECT e.* FROM chain c JOIN guest_entries e ON e.log = c.log AND e.id > c.above AND e.id <= c.bound
)

-- columns: host
-- A host, as the first version of the schema knew it.
id, hostname, pid, started_at, lease_until, now_ms()

-- name: schema_version
-- Which schema the database has.
SELECT version FROM schema_version WHERE one = 1

-- name: least_program
-- Which version a program must know at least. Not read with the version: a schema from before the first release has none.
SELECT least FROM schema_version WHERE one = 1

-- name: set_schema_version
-- Last statement of a migration, in its transaction. What an earlier step has asked of programs still holds.
INSERT INTO schema_version (one, version, least) VALUES (1, :version, :least)
ON CONFLICT (one) DO UPDATE SET version = excluded.version,
       least = CASE WHEN excluded.least > schema_version.least THEN excluded.least ELSE schema_version.least END

-- name: set_channel
UPDATE schema_version SET channel = :channel

-- name: lock_schema_version
-- First statement of a migration: who waited here for another migration must look at the version again.
UPDATE schema_version SET version = version WHERE one = 1 RETURNING version

-- name: tree_change
-- First statement of a transaction that changes the tree, or makes a host (schema.sql says who does): these follow one another.
-- Births share the tree instead (Transaction.share_tree): they wait for these, and these for them.
-- Never read the tree before.
UPDATE tree SET version = version + 1 WHERE one = 1

-- name: lock_agents
-- Second: all agents that the units touch, in one statement and one order, so that no two transactions wait for each other.
-- NO KEY: appending to the log of one agent must not wait for a fork that only refers to it.
-- With the hash of the latest message of those that append to their logs.
SELECT {locked}, CASE WHEN a.uuid = ANY(:writers) THEN
       (SELECT m.hash FROM messages m WHERE m.agent_uuid = a.uuid ORDER BY m.id DESC LIMIT 1) END AS head_hash
  FROM agents a WHERE uuid = ANY(:uuids) ORDER BY uuid FOR NO KEY UPDATE

-- name: lock_dying
-- The same of many, of whom most have nothing that counts at their death: only those are returned that have, and those who stay.
WITH locked AS (SELECT {locked} FROM agents a WHERE a.uuid = ANY(:uuids) ORDER BY a.uuid FOR NO KEY UPDATE)
SELECT * FROM locked l WHERE l.budget IS NOT NULL OR l.held_at > 0 OR l.uuid = ANY(:kept)

-- name: look_at_agent
-- The same without the lock: the row of the tree is held, and that is enough to know that the agent lives, and whose it is.
SELECT {locked} FROM agents a WHERE uuid = :uuid

-- name: hash_at
-- The hash of a message of an agent's history, from the log of whoever holds it: an agent's own begins behind its fork point.
WITH RECURSIVE line(uuid, parent, fork) AS (
    SELECT a.uuid, a.parent_uuid, a.fork_message_id FROM agents a WHERE a.uuid = :uuid
    UNION SELECT a.uuid, a.parent_uuid, a.fork_message_id FROM agents a JOIN line ON a.uuid = line.parent
     WHERE line.fork >= CAST(:position AS BIGINT))
SELECT m.hash FROM line JOIN messages m ON m.agent_uuid = line.uuid AND m.id = CAST(:position AS BIGINT)
 WHERE line.fork < CAST(:position AS BIGINT)

-- name: agent_by_uuid
SELECT {agent} FROM agents a WHERE uuid = :uuid

-- name: agents_by_uuids
SELECT {agent} FROM agents a WHERE uuid = ANY(:uuids)

-- name: batch_of
-- After a connection that broke during COMMIT: did this host's last batch happen? Under the row's lock, in a write: the server
-- may still be at that COMMIT, and then this waits for its end.
SELECT batch FROM hosts WHERE id = :host FOR NO KEY UPDATE

-- name: set_batch
-- Last statement of each of the journal's transactions. No row: another host has taken over, or the database has lost what this
-- host has written before.
UPDATE hosts SET batch = :batch WHERE id = :host AND ended_at IS NULL AND batch = :last RETURNING batch

-- name: agents_after
-- The registry, or one status of it, some at a time in the order of the primary key, which the database itself compares.
SELECT {agent} FROM agents a
 WHERE a.uuid > :after AND (CAST(:status AS TEXT) IS NULL OR a.status = :status) ORDER BY a.uuid LIMIT CAST(:most AS BIGINT)

-- name: spent_by_lineage
-- What everybody has spent, as little as it takes to sum branches up.
SELECT a.uuid, a.parent_uuid, a.spent_tokens, a.spent_usd FROM agents a

-- name: spent_in_all
SELECT CAST(SUM(a.spent_tokens) AS BIGINT), CAST(SUM(a.spent_usd) AS BIGINT) FROM agents a

-- name: spent_below
-- What each of these agents has spent with all that descend from it. A walk as that of descent, from each.
WITH RECURSIVE line(top, uuid, tokens, usd) AS (
    SELECT a.uuid, a.uuid, a.spent_tokens, a.spent_usd FROM agents a WHERE a.uuid = ANY(:uuids)
    UNION SELECT line.top, a.uuid, a.spent_tokens, a.spent_usd FROM line
            JOIN agents a ON (a.supervisor_uuid = line.uuid AND a.parent_uuid = line.uuid)
              OR (a.parent_uuid = line.uuid AND a.supervisor_uuid <> a.parent_uuid))
SELECT top, CAST(SUM(tokens) AS BIGINT), CAST(SUM(usd) AS BIGINT) FROM line GROUP BY top

-- name: dearest_branches
-- The children of agent 0 that have spent most with all that come from them, agent 0 itself without a uuid, and the sums of all. One
-- look at all agents, which the database takes: no index has what was spent, else each turn would write it.
WITH sums(branch, tokens, usd) AS (
    SELECT a.branch, CAST(SUM(a.spent_tokens) AS BIGINT), CAST(SUM(a.spent_usd) AS BIGINT) FROM agents a GROUP BY a.branch)
SELECT s.branch, s.tokens, s.usd, (SELECT CAST(SUM(tokens) AS BIGINT) FROM sums), (SELECT CAST(SUM(usd) AS BIGINT) FROM sums)
  FROM sums s ORDER BY s.usd DESC, s.tokens DESC LIMIT CAST(:most AS BIGINT)

-- name: ages
-- Everybody by age, as little as that takes: the caller reads the rows some at a time.
SELECT a.uuid, a.created_at, a.born FROM agents a

-- name: placements
-- The same, with what their places in the tree of supervisors depend on.
SELECT a.uuid, a.created_at, a.born, a.supervisor_uuid, a.parent_uuid FROM agents a

-- name: paused_after
-- The same of one status of those that live and do not run, which are few. By agents_paused, whose condition stands here word for
-- word. The primary key, which is in the right order, does not find them.
SELECT {agent} FROM agents a
 WHERE (a.status = 'stopped' OR a.status = 'terminating') AND a.status = :status AND a.uuid || '' > :after
 ORDER BY a.uuid || '' LIMIT CAST(:most AS BIGINT)

-- name: uuids_below
-- All agents below one in the tree of supervisors. UNION: a damaged circle ends. Its children are not the first term: where it has
-- thousands, PostgreSQL would read the whole table for the next level.
WITH RECURSIVE below(uuid, is_top) AS (
    SELECT CAST(:uuid AS TEXT), 1
    UNION SELECT a.uuid, 0 FROM agents a JOIN below ON a.supervisor_uuid = below.uuid)
SELECT uuid FROM below WHERE is_top = 0

-- name: some_below
-- Some of those below an agent in the tree of supervisors, the dead too, level by level. The walk ends when there are so many.
WITH RECURSIVE below(uuid, is_top) AS (
    SELECT CAST(:uuid AS TEXT), 1
    UNION SELECT a.uuid, 0 FROM agents a JOIN below ON a.supervisor_uuid = below.uuid)
SELECT {agent} FROM below JOIN agents a ON a.uuid = below.uuid WHERE below.is_top = 0 LIMIT CAST(:most AS BIGINT)

-- name: some_living_below
-- The living among them. By agents_children.
WITH RECURSIVE below(uuid, is_top) AS (
    SELECT CAST(:uuid AS TEXT), 1
    UNION SELECT a.uuid, 0 FROM agents a JOIN below ON a.supervisor_uuid || '' = below.uuid || '' WHERE a.status <> 'dead' OR a.way = 1)
SELECT {agent} FROM below JOIN agents a ON a.uuid = below.uuid
 WHERE below.is_top = 0 AND a.status <> 'dead' LIMIT CAST(:most AS BIGINT)

-- name: count_below
-- How many there are, the dead too.
WITH RECURSIVE below(uuid, is_top) AS (
    SELECT CAST(:uuid AS TEXT), 1
    UNION SELECT a.uuid, 0 FROM agents a JOIN below ON a.supervisor_uuid = below.uuid)
SELECT COUNT(*) FROM below WHERE is_top = 0

-- name: count_living_below
-- How many of them live. By agents_children.
WITH RECURSIVE below(uuid, is_top) AS (
    SELECT CAST(:uuid AS TEXT), 1
    UNION SELECT a.uuid, 0 FROM agents a JOIN below ON a.supervisor_uuid || '' = below.uuid || '' WHERE a.status <> 'dead' OR a.way = 1)
SELECT COUNT(*) FROM below JOIN agents a ON a.uuid = below.uuid WHERE below.is_top = 0 AND a.status <> 'dead'

-- name: census
-- How many agents there are; of the living all, and those that are stopped or terminate; and how many turns are open. By agents_shard,
-- agents_paused, agents_awake and agents_parked, whose conditions stand here word for word: no row of one that rests is read.
SELECT (SELECT COUNT(*) FROM agents), (SELECT COUNT(*) FROM agents a WHERE a.status <> 'dead'),
       (SELECT COUNT(*) FROM agents a WHERE a.status = 'stopped'), (SELECT COUNT(*) FROM agents a WHERE a.status = 'terminating'),
       (SELECT COUNT(*) FROM agents a WHERE a.awake = 1 AND a.turn > 0) + (SELECT COUNT(*) FROM agents a WHERE a.parked > 0)

-- name: latest_used
-- Up to :most of each kind of the living: those that wait for a budget, those in a turn, those that a person has seen last, and the
-- newest. By the indexes of these, so it costs as much among a million.
SELECT {agent} FROM agents a WHERE a.uuid IN (
    SELECT p.agent_uuid FROM (SELECT w.agent_uuid FROM pauses w LIMIT CAST(:most AS BIGINT)) p
    UNION SELECT t.uuid FROM (SELECT b.uuid FROM agents b WHERE b.awake = 1 AND b.turn > 0 LIMIT CAST(:most AS BIGINT)) t
    UNION SELECT w.uuid FROM (SELECT b.uuid FROM agents b WHERE b.parked > 0 LIMIT CAST(:most AS BIGINT)) w
    UNION SELECT s.uuid FROM (SELECT b.uuid FROM agents b WHERE b.active_at > 0 AND b.status <> 'dead'
                               ORDER BY b.active_at DESC LIMIT CAST(:most AS BIGINT)) s
    UNION SELECT n.uuid FROM (SELECT b.uuid FROM agents b WHERE b.status <> 'dead'
                               ORDER BY b.created_at DESC, b.born DESC LIMIT CAST(:most AS BIGINT)) n)

-- name: cut_off
-- Those with whose turns no host goes on, the oldest first. By agents_awake.
SELECT {agent} FROM agents a WHERE a.awake = 1 AND a.cut_off > 0 ORDER BY a.created_at, a.born LIMIT CAST(:most AS BIGINT)

-- name: latest_ended
-- The dead that died last: for who asks for them, one look at all of the dead.
SELECT {agent} FROM agents a WHERE a.status = 'dead' ORDER BY a.ended_at DESC LIMIT CAST(:most AS BIGINT)

-- name: living_after
-- The living but agent 0, by age, from the place of one of them on. By agents_newest.
SELECT {agent} FROM agents a
 WHERE a.status <> 'dead' AND a.parent_uuid IS NOT NULL
   AND (a.created_at, a.born, a.uuid) > (CAST(:at AS BIGINT), CAST(:born AS BIGINT), CAST(:after AS TEXT))
 ORDER BY a.created_at, a.born, a.uuid LIMIT CAST(:most AS BIGINT)

-- name: living_named
-- The living that have names. By agents_name.
SELECT {agent} FROM agents a WHERE a.name IS NOT NULL AND a.status <> 'dead'

-- name: named
-- All that have names, the dead too. By agents_name and agents_dead_name.
SELECT a.uuid FROM agents a WHERE a.name IS NOT NULL AND a.status <> 'dead'
UNION ALL SELECT a.uuid FROM agents a WHERE a.name IS NOT NULL AND a.status = 'dead'

-- name: living_called
-- The newest of the living that are called so. It goes through agents_newest until it has found that many.
SELECT {agent} FROM agents a WHERE a.status <> 'dead' AND {called_so}
 ORDER BY a.created_at DESC, a.born DESC LIMIT CAST(:most AS BIGINT)

-- name: dead_called
SELECT {agent} FROM agents a WHERE a.status = 'dead' AND {called_so} ORDER BY a.ended_at DESC LIMIT CAST(:most AS BIGINT)

-- name: namesakes
-- Whoever has one of these names, alive or dead. By agents_name and agents_dead_name.
SELECT {agent} FROM agents a WHERE a.name IS NOT NULL AND a.name = ANY(:names) AND a.status <> 'dead'
UNION ALL SELECT {agent} FROM agents a WHERE a.name IS NOT NULL AND a.name = ANY(:names) AND a.status = 'dead'

-- name: beginning_so
SELECT {agent} FROM agents a WHERE substr(uuid, 1, 4) = ANY(:starts)

-- name: all_above
-- Everybody above some agents in the tree of supervisors, without them. UNION: a damaged circle ends.
WITH RECURSIVE above(uuid) AS (
    SELECT b.supervisor_uuid FROM agents b WHERE b.uuid = ANY(:uuids)
    UNION SELECT b.supervisor_uuid FROM agents b JOIN above ON b.uuid = above.uuid)
SELECT {agent} FROM agents a JOIN above ON a.uuid = above.uuid

-- name: count_children
-- How many living agents each of these supervises. By agents_children.
SELECT a.supervisor_uuid, COUNT(*) FROM agents a
 WHERE a.supervisor_uuid || '' = ANY(:uuids) AND a.status <> 'dead' GROUP BY a.supervisor_uuid

-- name: some_supervised
-- Some of those whom an agent supervises, the dead too: the first in the order of their rows.
SELECT {agent} FROM agents a WHERE a.supervisor_uuid = :uuid LIMIT CAST(:most AS BIGINT)

-- name: some_children
-- The living that an agent supervises, the oldest first, from the place of one of them on. By agents_children.
SELECT {agent} FROM agents a
 WHERE a.supervisor_uuid || '' = :uuid AND a.status <> 'dead'
   AND (a.created_at, a.born, a.uuid) > (CAST(:at AS BIGINT), CAST(:born AS BIGINT), CAST(:after AS TEXT))
 ORDER BY a.created_at, a.born, a.uuid LIMIT CAST(:most AS BIGINT)

-- name: some_children_before
-- The same backwards.
SELECT {agent} FROM agents a
 WHERE a.supervisor_uuid || '' = :uuid AND a.status <> 'dead'
   AND (a.created_at, a.born, a.uuid) < (CAST(:at AS BIGINT), CAST(:born AS BIGINT), CAST(:before AS TEXT))
 ORDER BY a.created_at DESC, a.born DESC, a.uuid DESC LIMIT CAST(:most AS BIGINT)

-- name: seen_last
-- The living agent that a person has looked at last. By agents_seen.
SELECT {agent} FROM agents a WHERE a.active_at > 0 AND a.status <> 'dead' ORDER BY a.active_at DESC LIMIT 1

-- name: agents
-- The whole registry, or one status of it. Sorted by the caller: text sorts differently in the two databases.
SELECT {agent} FROM agents a WHERE CAST(:status AS TEXT) IS NULL OR status = :status

-- name: branch_of
SELECT a.branch FROM agents a WHERE a.uuid = :uuid

-- name: living_in_branch
-- So many at most: nobody needs to know how many more there are.
SELECT COUNT(*) FROM (SELECT 1 FROM agents a WHERE a.branch = :branch AND a.status <> 'dead' LIMIT CAST(:most AS BIGINT)) found

-- name: living_in_branches
-- The same of all branches.
SELECT COUNT(*) FROM (SELECT 1 FROM agents a WHERE a.branch IS NOT NULL AND a.status <> 'dead' LIMIT CAST(:most AS BIGINT)) found

-- name: living_by_name
SELECT {agent} FROM agents a WHERE name = :name AND status <> 'dead'

-- name: dead_by_name
-- Who had the name last. By agents_dead_name.
SELECT {agent} FROM agents a WHERE name = :name AND status = 'dead'
   AND ended_at = (SELECT MAX(d.ended_at) FROM agents d WHERE d.name = :name AND d.status = 'dead')

-- name: agents_by_prefix
-- By index from the first 4 letters. substr, not LIKE: "_" is a letter of base64url and a wildcard of LIKE.
SELECT {agent} FROM agents a
 WHERE substr(uuid, 1, 4) = ANY(:starts) AND substr(uuid, 1, CAST(:length AS INTEGER)) = ANY(:prefixes) LIMIT :most

-- name: root
SELECT {agent} FROM agents a WHERE parent_uuid IS NULL

-- name: children
SELECT {agent} FROM agents a WHERE supervisor_uuid = :uuid

-- name: living_children
-- By agents_children, whose condition stands here word for word.
SELECT {agent} FROM agents a WHERE supervisor_uuid || '' = :uuid AND status <> 'dead'

-- name: descendants
-- The same, whole.
WITH RECURSIVE below(uuid, is_top) AS (
    SELECT CAST(:uuid AS TEXT), 1
    UNION SELECT a.uuid, 0 FROM agents a JOIN below ON a.supervisor_uuid = below.uuid)
SELECT {agent} FROM agents a JOIN below ON a.uuid = below.uuid WHERE below.is_top = 0

-- name: supervisors
-- The agent and everybody above it in the tree of supervisors.
WITH RECURSIVE above(uuid, supervisor_uuid) AS (
    SELECT uuid, supervisor_uuid FROM agents WHERE uuid = :uuid
    UNION SELECT a.uuid, a.supervisor_uuid FROM agents a JOIN above ON a.uuid = above.supervisor_uuid)
SELECT {agent} FROM agents a JOIN above ON a.uuid = above.uuid

-- name: lineage
-- Walk backwards: the agent and its ancestors, each with its latest clear up to the bound that the forks below it set, and the bound
-- that it sets itself: the least of their fork points, since a fork may begin before the fork point of its parent. It goes no further
-- than a clear (unless :whole), or than a fork from an agent whose history was empty.
WITH RECURSIVE line(uuid, parent_uuid, fork_message_id, cleared, bound) AS (
    SELECT a.uuid, a.parent_uuid, a.fork_message_id,
           (SELECT MAX(m.id) FROM messages m WHERE m.agent_uuid = a.uuid AND m.kind = 'clear'), a.fork_message_id
      FROM agents a WHERE a.uuid = :uuid
    UNION
    SELECT a.uuid, a.parent_uuid, a.fork_message_id,
           (SELECT MAX(m.id) FROM messages m WHERE m.agent_uuid = a.uuid AND m.kind = 'clear' AND m.id <= line.bound),
           CASE WHEN a.fork_message_id < line.bound THEN a.fork_message_id ELSE line.bound END
      FROM line JOIN agents a ON a.uuid = line.parent_uuid
     WHERE line.bound > 0 AND (line.cleared IS NULL OR CAST(:whole AS BIGINT) = 1))
SELECT uuid, parent_uuid, fork_message_id, cleared, bound, (SELECT a.pruned_at FROM agents a WHERE a.uuid = line.uuid) FROM line

-- name: lineages
-- The same for many agents at once. An ancestor that some of them need is there once for each bound.
WITH RECURSIVE line(uuid, parent_uuid, fork_message_id, cleared, bound) AS (
    SELECT a.uuid, a.parent_uuid, a.fork_message_id,
           (SELECT MAX(m.id) FROM messages m WHERE m.agent_uuid = a.uuid AND m.kind = 'clear'), a.fork_message_id
      FROM agents a WHERE a.uuid = ANY(:uuids)
    UNION
    SELECT a.uuid, a.parent_uuid, a.fork_message_id,
           (SELECT MAX(m.id) FROM messages m WHERE m.agent_uuid = a.uuid AND m.kind = 'clear' AND m.id <= line.bound),
           CASE WHEN a.fork_message_id < line.bound THEN a.fork_message_id ELSE line.bound END
      FROM line JOIN agents a ON a.uuid = line.parent_uuid
     WHERE line.bound > 0 AND line.cleared IS NULL)
SELECT uuid, parent_uuid, fork_message_id, cleared, (SELECT a.pruned_at FROM agents a WHERE a.uuid = line.uuid) FROM line

-- name: latest_clears
-- By the index of clears.
SELECT agent_uuid, MAX(id) FROM messages WHERE kind = 'clear' AND agent_uuid = ANY(:uuids) GROUP BY agent_uuid

-- name: log_ends
-- What each log has behind its latest clear, in order. The order of the agents is the database's own; nobody relies on it.
SELECT m.agent_uuid, m.id, m.kind, m.content, m.data, m.created_at
  FROM agents a JOIN messages m ON m.agent_uuid = a.uuid
   AND m.id > COALESCE((SELECT MAX(c.id) FROM messages c WHERE c.agent_uuid = a.uuid AND c.kind = 'clear'), 0)
 WHERE a.uuid = ANY(:uuids) ORDER BY m.agent_uuid, m.id

-- name: log_stretch
-- What a log has behind a position, up to the next clear.
SELECT agent_uuid, id, kind, content, data, created_at FROM messages
 WHERE agent_uuid = :uuid AND id > :start
   AND id < COALESCE((SELECT MIN(c.id) FROM messages c WHERE c.agent_uuid = :uuid AND c.kind = 'clear' AND c.id > :start),
                     9223372036854775807)
 ORDER BY id

-- name: latest_before
-- The latest message of some kinds before a position. Backwards by the primary key, so it costs the messages after that.
SELECT agent_uuid, id, kind, content, data, created_at FROM messages
 WHERE agent_uuid = :uuid AND id < :position AND kind = ANY(:kinds) ORDER BY id DESC LIMIT 1

-- name: log_section
-- A part of a log: by the primary key, so it costs what it returns. A screen shows the end of a history, whatever lies before.
SELECT agent_uuid, id, kind, content, data, created_at FROM messages
 WHERE agent_uuid = :uuid AND id > :start AND id <= :end ORDER BY id

-- name: messages_saying
-- The latest messages of some agents that have a text, in capitals or not: of the letters of English at least.
SELECT agent_uuid, id, kind, content FROM messages
 WHERE agent_uuid = ANY(:uuids) AND id > :start AND kind = ANY(:kinds) AND lower(content) LIKE :pattern
 ORDER BY created_at DESC, agent_uuid, id DESC LIMIT :most

-- name: next_sayings
-- The next messages of a log, for the index of words.
SELECT id, kind, content FROM messages WHERE agent_uuid = :uuid AND id > :start ORDER BY id LIMIT :most

-- name: log_head
SELECT MAX(id) FROM messages WHERE agent_uuid = :uuid

-- name: heads
-- How far each log has come, and the turn in progress, of the living and of those who died lately: for who follows them all.
-- So many of them, whose uuids come next.
SELECT a.uuid, a.status, a.turn, a.fork_message_id, COALESCE((SELECT MAX(m.id) FROM messages m WHERE m.agent_uuid = a.uuid), 0),
       a.exit_cause, a.exit_reason, a.name, a.shard
  FROM agents a WHERE a.uuid > :after AND (a.status <> 'dead' OR a.ended_at >= :since)
 ORDER BY a.uuid LIMIT CAST(:most AS BIGINT)

-- name: heads_of
-- The same of these agents.
SELECT a.uuid, a.status, a.turn, a.fork_message_id, COALESCE((SELECT MAX(m.id) FROM messages m WHERE m.agent_uuid = a.uuid), 0),
       a.exit_cause, a.exit_reason, a.name, a.shard
  FROM agents a WHERE a.uuid = ANY(:uuids)

-- name: latest_times
-- When each of these agents has written its latest message of its own.
SELECT a.uuid, (SELECT m.created_at FROM messages m WHERE m.agent_uuid = a.uuid ORDER BY m.id DESC LIMIT 1) FROM agents a
 WHERE a.uuid = ANY(:uuids)

-- name: latest_at_rest
-- The latest message of each of these agents that lives and has no turn open.
SELECT m.agent_uuid, m.id, m.kind, m.content, m.data, m.created_at
  FROM agents a JOIN messages m ON m.agent_uuid = a.uuid AND m.id = (SELECT MAX(l.id) FROM messages l WHERE l.agent_uuid = a.uuid)
 WHERE a.uuid = ANY(:uuids) AND a.turn = 0 AND a.status = 'running'

-- name: first_notes
-- Behind the fork that made them: what an experiment is begun with.
SELECT m.agent_uuid, m.id, m.kind, m.content, m.data, m.created_at
  FROM agents a JOIN messages m ON m.agent_uuid = a.uuid AND m.id = a.fork_message_id + 2
 WHERE a.uuid = ANY(:uuids) AND m.kind = 'note'

-- name: controls_in
-- What decides settings, marks, what counts and how it is shown, without a look at the rest of the logs: by messages_control, whose
-- condition stands here word for word, else SQLite would not use it.
SELECT agent_uuid, id, kind, content, data, created_at FROM messages
 WHERE agent_uuid = ANY(:uuids) AND kind IN ('configure', 'clear', 'mark', 'rewind', 'summary', 'uncompact') ORDER BY id

-- name: log_controls
-- The same of a part of one log.
SELECT agent_uuid, id, kind, content, data, created_at FROM messages
 WHERE agent_uuid = :uuid AND id > :start AND id <= :end
   AND kind IN ('configure', 'clear', 'mark', 'rewind', 'summary', 'uncompact') ORDER BY id

-- name: reply_of_another
-- A reply of another provider than this one: it is the first part of the data. Without an index: it ends at the first that it meets.
SELECT agent_uuid, id, kind, '', data, created_at FROM messages
 WHERE kind = 'assistant' AND data LIKE '{"model":"%' AND data NOT LIKE '{"model":"' || CAST(:provider AS TEXT) || ':%' LIMIT 1

-- name: summarised
-- Which of these agents have written a summary, by the same index.
SELECT DISTINCT agent_uuid FROM messages
 WHERE agent_uuid = ANY(:uuids) AND kind IN ('configure', 'clear', 'mark', 'rewind', 'summary', 'uncompact') AND kind = 'summary'

-- name: at_work_in
-- At whom a boot looks, of some shards of a host: those with an open turn or request, those that terminate, and agent 0. By
-- agents_awake and agents_paused.
SELECT a.uuid FROM agents a
 WHERE a.awake = 1 AND (a.turn <> 0 OR a.held_at <> 0)
   AND a.shard IN (SELECT s.id FROM shards s WHERE s.host = :host AND CAST(s.id AS TEXT) = ANY(:shards))
UNION SELECT a.uuid FROM agents a
 WHERE a.status = 'terminating'
   AND a.shard IN (SELECT s.id FROM shards s WHERE s.host = :host AND CAST(s.id AS TEXT) = ANY(:shards))
UNION SELECT a.uuid FROM agents a WHERE a.parent_uuid IS NULL

-- name: boot
-- What the actors of these agents are made from, of those that live in some shards of a host. With the latest message of each, its
-- first one, and what its request waits for.
SELECT a.uuid, a.name, a.epoch, a.turn, a.fork_message_id, a.parent_uuid,
       (SELECT MAX(m.id) FROM messages m WHERE m.agent_uuid = a.uuid), a.status, a.exit_reason, a.restart,
       (SELECT MIN(m.id) FROM messages m WHERE m.agent_uuid = a.uuid), a.interrupted, a.labels, a.held_at, a.resumes, a.resumed_at,
       a.parked, w.budget, w.unit, w.at
  FROM agents a JOIN shards s ON s.id = a.shard LEFT JOIN pauses w ON w.agent_uuid = a.uuid
 WHERE a.uuid = ANY(:uuids) AND a.status <> 'dead' AND s.host = :host AND CAST(s.id AS TEXT) = ANY(:shards)

-- name: idle_awake
-- Those at which a boot would look for nothing: they have had a turn, and it is over. So many at most.
SELECT a.uuid FROM agents a
 WHERE a.awake = 1 AND a.turn = 0 AND a.held_at = 0 AND a.shard IN (SELECT s.id FROM shards s WHERE s.host = :host)
 LIMIT CAST(:most AS BIGINT)

-- name: put_to_sleep
-- Under the locks of their rows.
UPDATE agents SET awake = 0 WHERE uuid = ANY(:uuids)

-- name: leave_cut_off
-- Under the locks of their rows: with these turns nobody goes on by himself.
UPDATE agents SET cut_off = turn WHERE uuid = ANY(:uuids)

-- name: go_on_cut_off
-- Under the lock of its row: its turn goes on, which had come to this position when it was cut off. Of a turn that only waits, for
-- others (0) or for the batch of its request, a further cut does not count.
UPDATE agents SET cut_off = 0, resumes = CASE WHEN resumed_at = :at THEN resumes + 1 ELSE 1 END,
       resumed_at = CASE WHEN EXISTS (SELECT 1 FROM batch_members b WHERE b.agent_uuid = agents.uuid AND b.position = agents.held_at AND b.state = 'waiting')
                         THEN 0 ELSE :at END
 WHERE uuid = :uuid

-- name: wrongly_asleep
-- Those at which a boot would not look though it must, and the dead at which it would: for fsck.
SELECT uuid, status, turn, held_at FROM agents
 WHERE (status = 'dead' AND awake = 1) OR (status <> 'dead' AND awake = 0 AND parked <= 0 AND (turn > 0 OR held_at > 0))

-- name: turns_that_asked
-- The open turns in which a call asked for approval, decided since or not. By agents_awake, agents_parked and the index of these
-- messages: no dead agent is awake, and to ask for the living once more would have SQLite go through all of these.
SELECT a.uuid, a.turn FROM agents a
 WHERE a.awake = 1 AND a.turn > 0
   AND EXISTS (SELECT 1 FROM messages m WHERE m.agent_uuid = a.uuid AND m.id > a.turn AND m.kind = 'approval')
UNION SELECT a.uuid, a.turn FROM agents a
 WHERE a.parked > 0
   AND EXISTS (SELECT 1 FROM messages m WHERE m.agent_uuid = a.uuid AND m.id > a.turn AND m.kind = 'approval')

-- name: turns_that_asked_of
-- The same of these agents.
SELECT a.uuid, a.turn FROM agents a
 WHERE a.uuid = ANY(:uuids) AND ((a.awake = 1 AND a.turn > 0) OR a.parked > 0)
   AND EXISTS (SELECT 1 FROM messages m WHERE m.agent_uuid = a.uuid AND m.id > a.turn AND m.kind = 'approval')

-- name: counts
-- How many messages each agent wrote itself: positions have no holes.
SELECT a.uuid, COALESCE((SELECT MAX(m.id) FROM messages m WHERE m.agent_uuid = a.uuid), a.fork_message_id) - a.fork_message_id
  FROM agents a

-- name: counts_of
-- The same of these agents.
SELECT a.uuid, COALESCE((SELECT MAX(m.id) FROM messages m WHERE m.agent_uuid = a.uuid), a.fork_message_id) - a.fork_message_id
  FROM agents a WHERE a.uuid = ANY(:uuids)

-- name: sizes
-- How many agents and messages there are, whatever the values are.
SELECT (SELECT COUNT(*) FROM agents), (SELECT COUNT(*) FROM messages)

-- name: register
-- No row: a living agent has the name, or there is this uuid. Whoever has just given it on another host is waited for.
-- Its supervisor, whose row is locked, hands its orphan policy, its budget, its branch and its shard down. Children of agent 0, each the root of a branch, are
-- spread by :place over the shards of their host; not when their supervisor restarts several of them together.
INSERT INTO agents (uuid, name, parent_uuid, supervisor_uuid, fork_message_id, born, turn, restart, status, created_at, epoch,
                    labels, branch, budget, on_orphan, shard, awake)
VALUES (:uuid, :name, :parent, :supervisor, :fork, :born, :turn, :restart, 'running', :now, :epoch, :labels,
        COALESCE((SELECT p.branch FROM agents p WHERE p.uuid = :supervisor), CAST(:uuid AS TEXT)),
        COALESCE(CAST(:budget AS TEXT), (SELECT p.budget FROM agents p WHERE p.uuid = :supervisor)),
        COALESCE(CAST(:policy AS TEXT), (SELECT p.on_orphan FROM agents p WHERE p.uuid = :supervisor), 'reparent'),
        COALESCE((SELECT CASE WHEN p.parent_uuid IS NULL AND p.strategy = 'one_for_one' THEN (
                    SELECT s.id FROM shards s WHERE s.host = (SELECT h.host FROM shards h WHERE h.id = p.shard)
                     ORDER BY (s.id + 1) * CAST(:place AS BIGINT) % 65521 LIMIT 1)
                  END FROM agents p WHERE p.uuid = :supervisor),
                 (SELECT p.shard FROM agents p WHERE p.uuid = :supervisor), 0),
        CASE WHEN CAST(:turn AS BIGINT) > 0 THEN 1 ELSE 0 END)
ON CONFLICT DO NOTHING RETURNING uuid

-- name: unregister
-- Children that were born in this transaction, before it was seen that a sibling of theirs cannot be.
DELETE FROM agents WHERE uuid = ANY(:uuids)

-- name: register_root
-- Agent 0: made once, whoever comes first.
INSERT INTO agents (uuid, fork_message_id, status, created_at, epoch) VALUES (:uuid, 0, 'running', :now, 1)
ON CONFLICT DO NOTHING

-- name: set_turn
-- Of one that its own unit has ended, too.
UPDATE agents SET turn = :turn, cut_off = 0, awake = CASE WHEN status = 'dead' THEN 0 ELSE 1 END WHERE uuid = :uuid

-- name: keep_name
{keeps} (SELECT a.uuid, 'name' AS what, '' AS key, COALESCE(a.name, '') AS value FROM agents a WHERE a.uuid = ANY(:uuids)) was
 WHERE was.value IS NOT NULL ON CONFLICT DO NOTHING

-- name: keep_supervisors
{keeps} (SELECT a.uuid, 'supervisor' AS what, '' AS key, a.supervisor_uuid AS value FROM agents a WHERE a.uuid = ANY(:uuids)) was
 WHERE was.value <> :by ON CONFLICT DO NOTHING

-- name: keep_statuses
-- Of those who die (ends = 1) only what is not usual.
{keeps} (SELECT a.uuid, 'status' AS what, '' AS key, a.status AS value FROM agents a WHERE a.uuid = ANY(:uuids)) was
 WHERE was.value <> 'dead' AND (was.value <> 'running' OR CAST(:ends AS BIGINT) = 0) ON CONFLICT DO NOTHING

-- name: keep_supervision
{keeps} (SELECT a.uuid, 'strategy' AS what, '' AS key,
                a.strategy || ' ' || CAST(a.intensity AS TEXT) || ' ' || CAST(a.period AS TEXT) || ' ' || a.on_orphan AS value
           FROM agents a WHERE a.uuid = ANY(:uuids)) was
 WHERE was.value IS NOT NULL ON CONFLICT DO NOTHING

-- name: keep_memberships
{keeps} (SELECT g.agent_uuid AS uuid, 'group' AS what, g.name AS key, CAST(g.joined_at AS TEXT) AS value FROM groups g
          WHERE g.agent_uuid = ANY(:uuids) AND g.name = COALESCE(CAST(:name AS TEXT), g.name)) was
 WHERE was.value IS NOT NULL ON CONFLICT DO NOTHING

-- name: keep_limit
{keeps} (SELECT CAST(:budget AS TEXT) AS uuid, 'limit' AS what, CAST(:unit AS TEXT) AS key,
                COALESCE((SELECT CAST(l.granted AS TEXT) FROM limits l WHERE l.budget = :budget AND l.unit = :unit), '') AS value) was
 WHERE was.value <> CAST(CAST(:granted AS BIGINT) AS TEXT) ON CONFLICT DO NOTHING

-- name: keep_strictness
{keeps} (SELECT b.owner AS uuid, 'limit' AS what, 'strict' AS key, CAST(b.strict AS TEXT) || ' ' || CAST(b.created_at AS TEXT) AS value
           FROM budgets b WHERE b.owner = :budget) was
 WHERE was.value IS NOT NULL ON CONFLICT DO NOTHING

-- name: keep_timers
-- One that was set at this very time was never seen otherwise.
{keeps} (SELECT t.agent_uuid AS uuid, 'timer' AS what, CAST(t.id AS TEXT) AS key,
                CAST(json_build_array(t.due_at, t.schedule, t.zone, t.fires_as, t.sender, t.body, t.missed, t.since, t.latest,
                                      t.notified, t.created_at) AS TEXT) AS value
           FROM timers t WHERE t.agent_uuid = ANY(:uuids) AND (CAST(:id AS BIGINT) = 0 OR t.id = CAST(:id AS BIGINT))) was
 WHERE was.value IS NOT NULL ON CONFLICT DO NOTHING

-- name: prune_former
DELETE FROM former WHERE until < CAST(:before AS BIGINT)

-- name: rename
UPDATE agents SET name = :name, changed = (SELECT version FROM tree WHERE one = 1) WHERE uuid = :uuid

-- name: tree_version
-- How often the tree has changed. Whoever changes it has locked this row, so what has the number n is committed before n + 1.
SELECT version FROM tree

-- name: touch
UPDATE agents SET active_at = :now WHERE uuid = :uuid

-- name: household
-- An agent and those that it supervises, the living and ways to living ones. Under the row of the tree: nobody comes or goes meanwhile.
-- By agents_children, whose condition stands here word for word.
SELECT {relative} FROM agents a WHERE a.uuid = :uuid
UNION ALL SELECT {relative} FROM agents a WHERE a.supervisor_uuid || '' = :uuid AND (a.status <> 'dead' OR a.way = 1)

-- name: branch
-- An agent and all its descendants that live, with the dead through which the way to a living one leads. UNION: a damaged circle ends.
-- By agents_children.
WITH RECURSIVE sub(uuid) AS (
    SELECT CAST(:uuid AS TEXT)
    UNION SELECT a.uuid FROM agents a JOIN sub ON a.supervisor_uuid || '' = sub.uuid || '' WHERE a.status <> 'dead' OR a.way = 1)
SELECT {relative} FROM agents a JOIN sub ON a.uuid = sub.uuid

-- name: relative
SELECT {relative} FROM agents a WHERE a.uuid = :uuid

-- name: doomed
-- The same, as far as the death of all of them concerns it. UNION ALL: the agent is not its own descendant.
-- One row, with a list for each field of Doomed: to hand over a row for each agent would take as long as to find them.
WITH RECURSIVE sub(uuid, supervisor, created_at, born, name, key, lives, counts) AS (
    SELECT {doomed} FROM agents a WHERE a.uuid = :uuid
    UNION ALL SELECT {doomed} FROM agents a JOIN sub ON a.supervisor_uuid || '' = sub.uuid || '' WHERE a.status <> 'dead' OR a.way = 1)
SELECT CAST(json_agg(uuid) AS TEXT), CAST(json_agg(supervisor) AS TEXT),
       CAST(json_agg(uuid) FILTER (WHERE name IS NOT NULL) AS TEXT), CAST(json_agg(name) FILTER (WHERE name IS NOT NULL) AS TEXT),
       CAST(json_agg(uuid) FILTER (WHERE NOT lives) AS TEXT), CAST(json_agg(uuid) FILTER (WHERE lives AND counts) AS TEXT),
       CAST(json_agg(key) FILTER (WHERE lives) AS TEXT)
  FROM (SELECT * FROM sub ORDER BY created_at, born) s

-- name: supervisors_of
-- Everybody above an agent.
WITH RECURSIVE above(uuid) AS (
    SELECT supervisor_uuid FROM agents WHERE uuid = :uuid
    UNION SELECT a.supervisor_uuid FROM agents a JOIN above ON a.uuid = above.uuid)
SELECT {relative} FROM agents a JOIN above ON a.uuid = above.uuid

-- name: agent_0
SELECT {relative} FROM agents a WHERE a.parent_uuid IS NULL

-- name: mark_ways
UPDATE agents SET way = 1 WHERE uuid = ANY(:uuids)

-- name: ways
SELECT uuid FROM agents WHERE way = 1

-- name: bury
UPDATE agents SET {buried} WHERE uuid = ANY(:uuids)

-- name: bury_rows
-- The same, of rows that were just read.
UPDATE agents SET {buried} WHERE row_key = ANY(:keys)

-- name: adopt
-- Who was stopped because its supervisor gave up is no business of the new one's restart: a person lets it go on. The reason
-- stays, in other words.
UPDATE agents SET supervisor_uuid = :by, changed = (SELECT version FROM tree WHERE one = 1),
       exit_reason = CASE WHEN status = 'stopped' AND exit_reason = 'gave up'
                          THEN CAST(:gave_up AS TEXT) ELSE exit_reason END
 WHERE uuid = ANY(:uuids)

-- name: set_status
-- Of agents that live. The reason tells why one is stopped or terminates.
UPDATE agents SET status = :status, deadline = :deadline, exit_reason = :reason, changed = (SELECT version FROM tree WHERE one = 1)
 WHERE uuid = ANY(:uuids)

-- name: interrupt
-- The turns that are open at this moment, and no later ones.
UPDATE agents SET interrupted = turn, changed = (SELECT version FROM tree WHERE one = 1) WHERE uuid = ANY(:uuids)

-- name: interrupt_prompts
-- Under the locks of these agents' rows, where no turn is in progress. Of each the oldest prompt that no INT has come for. By mail_prompt.
UPDATE mail SET interrupted = 1
 WHERE kind = 'prompt' AND read_at IS NULL AND recipient = ANY(:uuids)
   AND id = (SELECT MIN(m.id) FROM mail m WHERE m.recipient = mail.recipient AND m.kind = 'prompt' AND m.read_at IS NULL
                AND m.interrupted = 0) RETURNING recipient

-- name: add_signal
-- Its number counts per agent, under the row of the tree.
INSERT INTO signals (agent_uuid, id, signal, spread, turn, sender, reason, created_at, principal)
SELECT CAST(:agent AS TEXT), COALESCE(MAX(id), 0) + 1, CAST(:signal AS TEXT), CAST(:spread AS BIGINT), CAST(:turn AS BIGINT),
       CAST(:sender AS TEXT), CAST(:reason AS TEXT), CAST(:now AS BIGINT), CAST(:principal AS TEXT)
  FROM signals WHERE agent_uuid = :agent

-- name: changes
-- What has changed behind a version of the tree, and until which one. By agents_changed, whose condition stands here word for word:
-- else SQLite would not know that it applies.
SELECT uuid, status, exit_cause, exit_reason, exit_sender, name, turn, interrupted,
       COALESCE((SELECT MAX(m.id) FROM mail m WHERE m.recipient = uuid AND m.kind = 'prompt' AND m.read_at IS NULL AND m.interrupted = 1), 0)
  FROM agents
 WHERE changed > :since AND changed > 0

-- name: add_remote_command
-- Its number counts per agent, under the lock of its row.
INSERT INTO requests (agent_uuid, id, kind, body, mailed, created_at)
SELECT CAST(:agent AS TEXT), COALESCE(MAX(id), 0) + 1, CAST(:kind AS TEXT), CAST(:body AS TEXT), CAST(:mailed AS BIGINT),
       CAST(:now AS BIGINT)
  FROM requests WHERE agent_uuid = :agent RETURNING id

-- name: new_remote_commands
-- What other processes asked of the living of a host, or of all, and nobody has answered. By requests_new.
SELECT r.agent_uuid, r.id, r.kind, r.body, r.mailed, r.created_at AS heard FROM requests r JOIN agents a ON a.uuid = r.agent_uuid
  JOIN shards s ON s.id = a.shard
 WHERE r.answered_at IS NULL AND a.status <> 'dead' AND (CAST(:host AS TEXT) IS NULL OR s.host = :host) ORDER BY r.id

-- name: lock_remote_command
-- First statement of what carries a remote command out; no row when it was answered. Who withdraws it holds this lock alone, so nobody
-- waits in a circle.
SELECT id FROM requests WHERE agent_uuid = :agent AND id = :id AND answered_at IS NULL FOR NO KEY UPDATE

-- name: answer_remote_command
UPDATE requests SET answer = :answer, answered_at = :now
 WHERE agent_uuid = :agent AND id = :id AND answered_at IS NULL RETURNING id

-- name: remote_command_answer
SELECT r.answer, a.status, a.exit_reason, r.answered_at AS heard FROM requests r JOIN agents a ON a.uuid = r.agent_uuid
 WHERE r.agent_uuid = :agent AND r.id = :id

-- name: remote_commands
-- For who checks them all.
SELECT agent_uuid, id, body, answer FROM requests

-- name: deadlines
-- Who is to be killed when, of the agents of a host, if its turn has not ended by then. By agents_paused.
SELECT a.uuid, a.deadline FROM agents a JOIN shards s ON s.id = a.shard WHERE a.status = 'terminating' AND s.host = :host

-- name: turn_of
SELECT turn FROM agents WHERE uuid = :uuid

-- name: add_restart
-- Its number counts per agent, under the lock of its row.
INSERT INTO restarts (agent_uuid, id, supervisor_uuid, supervisor_restart, turn, reason, created_at)
SELECT CAST(:agent AS TEXT), COALESCE(MAX(id), 0) + 1, CAST(:supervisor AS TEXT),
       (SELECT COALESCE(MAX(own.id), 0) FROM restarts own WHERE own.agent_uuid = :supervisor),
       CAST(:turn AS BIGINT), CAST(:reason AS TEXT), CAST(:now AS BIGINT)
  FROM restarts WHERE agent_uuid = :agent

-- name: crashes_of_turn
SELECT COUNT(*) FROM restarts WHERE agent_uuid = :agent AND turn = :turn AND turn > 0

-- name: restarts_of
-- A supervisor that was restarted itself begins anew. The times do not tell what came before that: clocks are set back.
SELECT r.created_at FROM restarts r
 WHERE r.supervisor_uuid = :supervisor AND r.agent_uuid <> :supervisor AND r.created_at >= :since
   AND r.supervisor_restart >= COALESCE((SELECT MAX(own.id) FROM restarts own WHERE own.agent_uuid = :supervisor), 0)
 ORDER BY r.created_at

-- name: restarts_of_agent
SELECT COALESCE(MAX(id), 0) FROM restarts WHERE agent_uuid = :agent

-- name: restart_counts
SELECT agent_uuid, MAX(id) FROM restarts WHERE agent_uuid = ANY(:uuids) GROUP BY agent_uuid

-- name: those_that_gave_up
-- The children that their supervisor stopped when it gave up, and those that they had stopped likewise before.
WITH RECURSIVE back(uuid) AS (
    SELECT CAST(:top AS TEXT)
    UNION SELECT a.uuid FROM agents a JOIN back ON a.supervisor_uuid || '' = back.uuid || ''
           WHERE a.status <> 'dead' AND a.status = 'stopped' AND a.exit_reason = 'gave up')
SELECT a.uuid FROM agents a JOIN back ON a.uuid = back.uuid WHERE a.uuid <> :top ORDER BY a.created_at, a.born

-- name: all_that_gave_up
-- Those of one host's shards.
SELECT a.uuid FROM agents a JOIN agents s ON s.uuid = a.supervisor_uuid JOIN shards p ON p.id = a.shard
 WHERE a.status = 'stopped' AND a.exit_reason = 'gave up' AND s.status <> 'dead' AND p.host = :host
 ORDER BY a.created_at, a.born

-- name: set_supervision
UPDATE agents SET strategy = COALESCE(:strategy, strategy), intensity = COALESCE(:intensity, intensity),
       period = COALESCE(:period, period), on_orphan = COALESCE(:policy, on_orphan)
 WHERE uuid = :uuid

-- name: count_mail
-- What a transaction has sent to, or read from, each of these mailboxes; their rows are locked.
UPDATE agents SET mailed = mailed + CAST(:mailed AS BIGINT), unread = unread + CAST(:unread AS BIGINT) WHERE uuid = ANY(:uuids)

-- name: unread_mail
-- What an agent has not read, oldest first: of all senders (NULL), of one, or of a person (''). Found by mail_unread; there are
-- few, so the sender is looked at row by row.
SELECT recipient, id, sender, kind, body, created_at, read_at FROM mail
 WHERE recipient = :recipient AND read_at IS NULL AND kind <> 'prompt' AND id > :after
   AND (CAST(:sender AS TEXT) IS NULL OR COALESCE(sender, '') = :sender)
 ORDER BY id LIMIT :most

-- name: mark_read
-- Under the lock of the recipient's row: these are the same that unread_mail gave.
UPDATE mail SET read_at = :now
 WHERE recipient = :recipient AND read_at IS NULL AND kind <> 'prompt' AND id <= :last
   AND (CAST(:sender AS TEXT) IS NULL OR COALESCE(sender, '') = :sender)

-- name: mark_one_read
UPDATE mail SET read_at = :now WHERE recipient = :recipient AND id = :id

-- name: unread_senders
-- By an expression: to group them SQLite would else go through mail_sender, and with it through all that was ever read.
SELECT sender || '', COUNT(*) FROM mail WHERE recipient = :recipient AND read_at IS NULL AND kind <> 'prompt'
 GROUP BY sender || '' ORDER BY MIN(id)

-- name: unread_up_to
SELECT COUNT(*) FROM mail WHERE recipient = :recipient AND read_at IS NULL AND kind <> 'prompt' AND id <= :last

-- name: new_prompts
-- What agents of a host, or all, were prompted by mail, and nobody has taken up. By mail_prompt.
SELECT m.recipient, m.id, m.body, m.data, m.interrupted, m.created_at AS heard FROM mail m JOIN agents a ON a.uuid = m.recipient
  JOIN shards s ON s.id = a.shard
 WHERE m.kind = 'prompt' AND m.read_at IS NULL AND a.status <> 'dead' AND (CAST(:host AS TEXT) IS NULL OR s.host = :host)
   AND (a.parked <= 0 OR m.data LIKE '%"steer":%') ORDER BY m.id

-- name: prompts_between
-- Those of an agent that nobody has taken up. By mail_prompt.
SELECT recipient, id, body, data, interrupted, created_at AS heard FROM mail
 WHERE recipient = :recipient AND kind = 'prompt' AND read_at IS NULL AND id > :after AND id < :before ORDER BY id

-- name: take_prompt
-- Under the lock of the recipient's row; no row when it was taken up before, or is interrupted and the turn does not end with it.
UPDATE mail SET read_at = :now
 WHERE recipient = :recipient AND id = :id AND kind = 'prompt' AND read_at IS NULL AND interrupted <= CAST(:ends AS BIGINT) RETURNING id

-- name: interrupt_prompt
UPDATE mail SET interrupted = 1 WHERE recipient = :recipient AND id = :id AND kind = 'prompt' AND read_at IS NULL RETURNING id

-- name: interrupted_prompt
-- Whether an INT came before a prompt was taken up; no row when it was taken up.
SELECT interrupted FROM mail WHERE recipient = :recipient AND id = :id AND kind = 'prompt' AND read_at IS NULL

-- name: count_words
-- Those that an agent has not read. By mail_prompt.
SELECT COUNT(*) FROM mail WHERE recipient = :recipient AND kind = 'prompt' AND read_at IS NULL AND data LIKE '%"steer":%'

-- name: word_messages
-- The words in an agent's own log, the latest first: where one is that was said before.
SELECT agent_uuid, id, kind, content, data, created_at FROM messages
 WHERE agent_uuid = :uuid AND (kind = 'user' OR kind = 'steer') AND data LIKE '%"steer":%' ORDER BY id DESC

-- name: waiting_words
-- Which of these an agent has not read, under the lock of its row. By mail_prompt.
SELECT id FROM mail
 WHERE recipient = :recipient AND kind = 'prompt' AND read_at IS NULL AND CAST(id AS TEXT) = ANY(:ids)

-- name: take_words
-- Under the lock of the recipient's row, behind waiting_words.
UPDATE mail SET read_at = :now
 WHERE recipient = :recipient AND kind = 'prompt' AND read_at IS NULL AND CAST(id AS TEXT) = ANY(:ids)

-- name: withdraw_prompt
-- Under the lock of the recipient's row; no row when it was taken up before.
DELETE FROM mail WHERE recipient = :recipient AND id = :id AND kind = 'prompt' AND read_at IS NULL RETURNING id

-- name: unread_of_all
-- Of whom an agent has unread mail, and of which kind.
SELECT DISTINCT sender, kind FROM mail WHERE recipient = :recipient AND read_at IS NULL AND kind <> 'prompt'

-- name: unread_letters
-- Which of these agents have sent it mail that it has not read. By mail_unread: what was read may be long.
SELECT DISTINCT sender FROM mail
 WHERE recipient = :recipient AND read_at IS NULL AND kind = 'mail' AND sender = ANY(:senders)

-- name: look_at_all
-- What tells whether agents rest: their status, the turn in progress, what they have not read, prompts that wait for them, and
-- whether a request of theirs waits for a grant.
SELECT a.uuid, a.status, a.turn, a.unread,
       CASE WHEN EXISTS (SELECT 1 FROM mail m WHERE m.recipient = a.uuid AND m.read_at IS NULL AND m.kind = 'prompt')
            THEN 1 ELSE 0 END,
       CASE WHEN EXISTS (SELECT 1 FROM pauses w WHERE w.agent_uuid = a.uuid AND w.due_at IS NULL) THEN 1 ELSE 0 END
  FROM agents a WHERE a.uuid = ANY(:uuids)

-- name: prompt_times
-- When a prompt of another process was sent, and taken up.
SELECT created_at, read_at FROM mail WHERE recipient = :recipient AND id = :id AND kind = 'prompt'

-- name: one_mail
SELECT recipient, id, sender, kind, body, created_at, read_at FROM mail
 WHERE recipient = :recipient AND id = :id AND kind <> 'prompt'

-- name: latest_mail
-- Read or not, the newest first.
SELECT recipient, id, sender, kind, body, created_at, read_at FROM mail
 WHERE recipient = :recipient AND kind <> 'prompt' ORDER BY id DESC LIMIT :most

-- name: latest_mail_from
-- By mail_sender: a condition that covers all senders as well would find none of its rows.
SELECT recipient, id, sender, kind, body, created_at, read_at FROM mail
 WHERE recipient = :recipient AND sender = :sender AND kind <> 'prompt' ORDER BY id DESC LIMIT :most

-- name: latest_mail_from_person
-- Ordered by the sender, too: else PostgreSQL does not see that mail_sender gives this order.
SELECT recipient, id, sender, kind, body, created_at, read_at FROM mail
 WHERE recipient = :recipient AND sender IS NULL AND kind <> 'prompt' ORDER BY sender DESC, id DESC LIMIT :most

-- name: delete_mail
DELETE FROM mail WHERE recipient = :recipient AND id = :id AND kind <> 'prompt' RETURNING read_at

-- name: add_merge
-- No row: this head was merged before.
INSERT INTO merges (into_uuid, from_uuid, from_head, message, created_at)
VALUES (:into, :child, :head, :message, :now) ON CONFLICT DO NOTHING RETURNING message

-- name: latest_merge
SELECT from_head, created_at FROM merges WHERE into_uuid = :into AND from_uuid = :child ORDER BY from_head DESC LIMIT 1

-- name: all_merges
SELECT into_uuid, from_uuid, from_head, message FROM merges ORDER BY into_uuid, message

-- name: written_since
-- The versions of documents since a time, and whether a branch has written them: an agent, or one that it supervises, directly
-- or not.
WITH RECURSIVE branch(uuid) AS (
    SELECT CAST(:uuid AS TEXT) UNION SELECT a.uuid FROM agents a JOIN branch ON a.supervisor_uuid = branch.uuid)
SELECT d.path, d.version, d.created_at, CASE WHEN d.author IN (SELECT uuid FROM branch) THEN 1 ELSE 0 END
  FROM documents d WHERE d.created_at >= :since

-- name: add_document_version
-- The next version, unless another writer took that number at this moment: then no row, and it is looked at again.
INSERT INTO documents (path, version, author, body, created_at, principal)
VALUES (:path, :version, CAST(:author AS TEXT), CAST(:body AS TEXT), :now, CAST(:principal AS TEXT)) ON CONFLICT DO NOTHING RETURNING version

-- name: latest_version
SELECT path, version, author, created_at, CASE WHEN body IS NULL THEN 1 ELSE 0 END
  FROM documents WHERE path = :path ORDER BY version DESC LIMIT 1

-- name: document_version
SELECT path, version, author, created_at, body FROM documents WHERE path = :path AND version = :version

-- name: document
SELECT path, version, author, created_at, body FROM documents WHERE path = :path ORDER BY version DESC LIMIT 1

-- name: document_log
SELECT path, version, author, created_at, CASE WHEN body IS NULL THEN 1 ELSE 0 END
  FROM documents WHERE path = :path ORDER BY version

-- name: documents
-- The latest version of each document that is not deleted. substr, not LIKE: "_" and "%" are wildcards of LIKE.
SELECT d.path, d.version, d.author, d.created_at, 0 FROM documents d
 WHERE substr(d.path, 1, CAST(:length AS INTEGER)) = :prefix AND d.body IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM documents n WHERE n.path = d.path AND n.version > d.version)

-- name: open_hosts
-- Hosts that have neither closed nor been ended by another, the latest first. Knows the first version of the schema only.
SELECT {host} FROM hosts WHERE ended_at IS NULL ORDER BY epoch DESC

-- name: running_hosts
-- The same with what newer versions know.
SELECT {host}, name, agents, draining, waits, machine FROM hosts WHERE ended_at IS NULL ORDER BY epoch DESC

-- name: expected_hosts
-- Those that have not ended; and those that share the agents, and have ended lately: whoever watches over them starts them again.
SELECT {host}, name, 0, 0, '', machine FROM hosts
 WHERE ended_at IS NULL OR (name IS NOT NULL AND ended_at > now_ms() - CAST(:within AS BIGINT)) ORDER BY epoch DESC

-- name: older_hosts
-- Those of them whose program knows no version as new as this one.
SELECT {host}, name FROM hosts WHERE ended_at IS NULL AND schema < :least ORDER BY epoch DESC

-- name: unshared_hosts
-- Those of them that share the agents with nobody.
SELECT {host} FROM hosts WHERE ended_at IS NULL AND name IS NULL ORDER BY epoch DESC

-- name: members
-- The hosts that share the agents, with the numbers of their shards, of their agents, and of those in a turn.
SELECT h.id, (SELECT COUNT(*) FROM shards s WHERE s.host = h.id), h.agents, h.working, h.draining FROM hosts h
 WHERE h.ended_at IS NULL AND h.name IS NOT NULL ORDER BY h.epoch

-- name: drain_host
UPDATE hosts SET draining = 1 WHERE id = :host AND ended_at IS NULL RETURNING id

-- name: count_agents
UPDATE hosts SET agents = :agents, working = :working WHERE id = :host

-- name: publish_waits
UPDATE hosts SET waits = :waits WHERE id = :host AND ended_at IS NULL

-- name: publish_signs
UPDATE hosts SET signs = :signs WHERE id = :host

-- name: published_signs
SELECT signs, now_ms() FROM hosts WHERE ended_at IS NULL AND signs <> ''

-- name: shards_of
SELECT id, epoch FROM shards WHERE host = :host

-- name: vacant_shards
-- How many shards nobody has, and how many there are.
SELECT CAST(SUM(CASE WHEN s.host IS NULL OR h.ended_at IS NOT NULL THEN 1 ELSE 0 END) AS BIGINT), COUNT(*)
  FROM shards s LEFT JOIN hosts h ON h.id = s.host

-- name: living_in
-- By agents_shard, whose condition stands here word for word, and agents_awake: no row is read of those that rest.
SELECT a.shard, COUNT(*), (SELECT COUNT(*) FROM agents w WHERE w.awake = 1 AND w.shard = a.shard AND w.turn > 0 AND w.cut_off = 0) FROM agents a
 WHERE a.status <> 'dead' AND a.shard IN (SELECT s.id FROM shards s WHERE CAST(s.id AS TEXT) = ANY(:shards)) GROUP BY a.shard

-- name: agents_in
-- Which of these agents live in some shards.
SELECT a.uuid FROM agents a
 WHERE a.uuid = ANY(:uuids) AND a.status <> 'dead'
   AND a.shard IN (SELECT s.id FROM shards s WHERE CAST(s.id AS TEXT) = ANY(:shards))

-- name: living_of
-- How many agents live in the shards of a host. By agents_shard.
SELECT COUNT(*) FROM agents a WHERE a.status <> 'dead' AND a.shard IN (SELECT s.id FROM shards s WHERE s.host = :host)

-- name: gave_up_in
-- Whether agents of these shards were stopped because their supervisor gave up. By agents_paused.
SELECT 1 FROM agents a
 WHERE a.status = 'stopped' AND a.exit_reason = 'gave up'
   AND a.shard IN (SELECT s.id FROM shards s WHERE s.host = :host AND CAST(s.id AS TEXT) = ANY(:shards)) LIMIT 1

-- name: give_shards
-- No row of one: it is another host's by now, or the new one has ended.
UPDATE shards SET host = :to, epoch = epoch + 1
 WHERE CAST(id AS TEXT) = ANY(:shards) AND host = :host AND EXISTS (SELECT 1 FROM hosts h WHERE h.id = :to AND h.ended_at IS NULL) RETURNING id

-- name: shard_for
-- One of a host's shards, by :place.
SELECT s.id FROM shards s WHERE s.host = :host ORDER BY (s.id + 1) * CAST(:place AS BIGINT) % 65521 LIMIT 1

-- name: announce_shard
-- Its host looks at it anew, since agents have come.
UPDATE shards SET epoch = epoch + 1 WHERE id = :shard AND host = :host RETURNING id

-- name: move_agents
UPDATE agents SET shard = :shard, resumes = 0 WHERE uuid = ANY(:uuids)

-- name: resumed_in
-- Those in some shards whose open turn went on after a crash. By agents_awake.
SELECT a.uuid FROM agents a WHERE a.awake = 1 AND a.turn > 0 AND a.resumes > 0 AND CAST(a.shard AS TEXT) = ANY(:shards)

-- name: forget_resumes
-- Under the locks of their rows: they are given to another host, and no crash cuts their turns off.
UPDATE agents SET resumes = 0 WHERE uuid = ANY(:uuids)

-- name: claim_some_shards
-- Of those that nobody has. Under the row of the tree: no other host takes any meanwhile.
UPDATE shards SET host = :host, epoch = epoch + 1
 WHERE id IN (SELECT s.id FROM shards s LEFT JOIN hosts h ON h.id = s.host
               WHERE s.host IS NULL OR h.ended_at IS NOT NULL ORDER BY s.id LIMIT :most) RETURNING id

-- name: other_hosts
-- What a host sees of the others.
SELECT id, beat, lease, COALESCE(name, id), pid, machine FROM hosts WHERE ended_at IS NULL AND id <> :host

-- name: recent_hosts
-- Those that live, and those that have ended lately; with their shards, and the living agents of these.
SELECT {host}, h.name,
       (SELECT COUNT(*) FROM agents a JOIN shards s ON s.id = a.shard WHERE s.host = h.id AND a.status <> 'dead'),
       h.draining, '', h.ended_at, h.lease, (SELECT COUNT(*) FROM shards s WHERE s.host = h.id),
       (SELECT COUNT(*) FROM agents a JOIN shards s ON s.id = a.shard WHERE s.host = h.id AND a.awake = 1 AND a.turn > 0
           AND a.cut_off = 0), h.build
  FROM hosts h WHERE h.ended_at IS NULL OR h.ended_at > now_ms() - CAST(:within AS BIGINT) ORDER BY h.epoch

-- name: without_host
-- How many shards nobody has, and how many agents live in them.
SELECT COUNT(*), CAST(COALESCE(SUM((SELECT COUNT(*) FROM agents a WHERE a.shard = s.id AND a.status <> 'dead')), 0) AS BIGINT)
  FROM shards s LEFT JOIN hosts h ON h.id = s.host WHERE s.host IS NULL OR h.ended_at IS NOT NULL

-- name: time
SELECT now_ms()

-- name: end_hosts
-- Whoever was the owner is no more: dead, or its lease has run out. One that renews its lease at this moment is waited for, and
-- stays. (On SQLite a lease is 0: the file lock has decided.)
UPDATE hosts SET ended_at = now_ms() WHERE ended_at IS NULL AND lease_until <= now_ms()

-- name: end_older_hosts
-- Those among them whose program knows no version as new as this one.
UPDATE hosts SET ended_at = now_ms() WHERE ended_at IS NULL AND lease_until <= now_ms() AND schema < :least

-- name: end_suspect
-- A host that is judged dead, unless it has beaten since: then the judgement was wrong.
UPDATE hosts SET ended_at = now_ms() WHERE id = :host AND beat = :beat AND ended_at IS NULL

-- name: end_namesake
UPDATE hosts SET ended_at = now_ms() WHERE name = :name AND ended_at IS NULL

-- name: register_host
INSERT INTO hosts (id, hostname, pid, epoch, started_at, lease_until)
SELECT CAST(:id AS TEXT), CAST(:hostname AS TEXT), CAST(:pid AS BIGINT), COALESCE(MAX(epoch), 0) + 1, now_ms(),
       CASE WHEN CAST(:lease AS BIGINT) > 0 THEN now_ms() + CAST(:lease AS BIGINT) ELSE 0 END
  FROM hosts

-- name: describe_host
UPDATE hosts SET name = :name, lease = :lease, machine = :machine, schema = :schema WHERE id = :id

-- name: renew_lease
-- No row: somebody took over meanwhile. A lease that has run out may be renewed as long as nobody did. With the version that its
-- program must know at least.
UPDATE hosts SET lease_until = now_ms() + CAST(:lease AS BIGINT), beat = beat + 1
 WHERE id = :id AND ended_at IS NULL RETURNING now_ms(), beat, (SELECT s.least FROM schema_version s WHERE s.one = 1)

-- name: end_host
UPDATE hosts SET ended_at = now_ms() WHERE id = :id AND ended_at IS NULL

-- name: claim_shards
-- A new host takes what nobody has, or what a host had that has ended. Whatever that one still writes is fenced, since it has ended.
UPDATE shards SET host = :host, epoch = epoch + 1
 WHERE host IS NULL OR EXISTS (SELECT 1 FROM hosts h WHERE h.id = shards.host AND h.ended_at IS NOT NULL)

-- name: messages_after
-- Every log, a batch at a time: those after a place, in the order of the primary key, which the database itself compares. Without
-- the content, which may be long, but of words. No other condition: PostgreSQL would rather sort all that is left, for each batch.
SELECT agent_uuid, id, kind, CASE kind WHEN 'steer' THEN content ELSE '' END, data, created_at FROM messages
 WHERE (agent_uuid, id) > (:agent, :id) ORDER BY agent_uuid, id LIMIT :most

-- name: hashed_after
-- The same, whole and with the hashes.
SELECT agent_uuid, id, kind, content, data, created_at, hash FROM messages
 WHERE (agent_uuid, id) > (:agent, :id) ORDER BY agent_uuid, id LIMIT :most

-- name: hashed_section
-- A stretch of one log, with the hashes.
SELECT agent_uuid, id, kind, content, data, created_at, hash FROM messages
 WHERE agent_uuid = :uuid AND id > :start AND id <= :end ORDER BY id

-- name: figures
-- What is counted for a person who asks how much there is. Of messages and mail so many at most: with more, about how many rows
-- there are suffices. By mail_unread and mail_prompt, whose conditions stand here word for word.
SELECT (SELECT COUNT(*) FROM (SELECT 1 FROM messages LIMIT CAST(:most AS BIGINT)) some_messages), about_rows(messages),
       (SELECT COUNT(*) FROM (SELECT 1 FROM mail WHERE kind <> 'prompt' LIMIT CAST(:most AS BIGINT)) some_mail), about_rows(mail),
       (SELECT COUNT(*) FROM mail WHERE read_at IS NULL),
       (SELECT COUNT(*) FROM mail WHERE kind = 'prompt' AND read_at IS NULL),
       (SELECT COUNT(*) FROM documents d WHERE d.body IS NOT NULL
           AND NOT EXISTS (SELECT 1 FROM documents n WHERE n.path = d.path AND n.version > d.version)),
       (SELECT COUNT(*) FROM documents),
       (SELECT COUNT(*) FROM restarts),
       (SELECT COUNT(*) FROM hosts)

-- name: gauges
-- What is watched of a database: by the status of agents, and once for all.
SELECT a.status, COUNT(*), CAST(COALESCE(SUM(CASE WHEN a.turn > 0 THEN 1 ELSE 0 END), 0) AS BIGINT),
       CAST(COALESCE(SUM(a.unread), 0) AS BIGINT), CAST(COALESCE(SUM(a.spent_tokens), 0) AS BIGINT),
       CAST(COALESCE(SUM(a.spent_usd), 0) AS BIGINT), CAST(COALESCE(SUM(CASE WHEN a.cut_off > 0 THEN 1 ELSE 0 END), 0) AS BIGINT),
       CAST(COALESCE(SUM(CASE WHEN a.parked > 0 THEN 1 ELSE 0 END), 0) AS BIGINT), now_ms()
  FROM agents a GROUP BY a.status

-- name: gauges_beside
SELECT (SELECT COUNT(*) FROM restarts), (SELECT COUNT(*) FROM pauses), (SELECT MIN(since) FROM pauses),
       (SELECT COUNT(*) FROM mail WHERE kind = 'prompt' AND read_at IS NULL)

-- name: questions_asked
-- When calls of open turns asked for approval, decided since or not. By the index of these messages, which are few.
SELECT m.agent_uuid, m.created_at, m.data FROM messages m JOIN agents a ON a.uuid = m.agent_uuid
 WHERE m.kind = 'approval' AND a.turn > 0 AND m.id > a.turn AND a.status <> 'dead' ORDER BY m.agent_uuid, m.id DESC

-- name: hosts
SELECT id, epoch, ended_at, name FROM hosts

-- name: shards
SELECT s.id, s.host FROM shards s

-- name: hosts_of_shards
SELECT s.id, s.host FROM shards s WHERE CAST(s.id AS TEXT) = ANY(:shards)

-- name: single_rows
-- Two tables have one row each.
SELECT (SELECT COUNT(*) FROM tree), (SELECT COUNT(*) FROM schema_version)

-- name: read_words
-- All words, read or not, and prompts whose data may have such a name elsewhere: for fsck.
SELECT recipient, id, body, read_at, data FROM mail WHERE kind = 'prompt' AND data LIKE '%"steer":%'

-- name: mailboxes
-- For each that was ever written to: the lowest and the highest id, and what is unread.
SELECT recipient, MIN(id), MAX(id), CAST(SUM(CASE WHEN read_at IS NULL AND kind <> 'prompt' THEN 1 ELSE 0 END) AS BIGINT)
  FROM mail GROUP BY recipient

-- name: mail_of_strangers
SELECT m.recipient, m.id, m.sender FROM mail m
 WHERE m.sender IS NOT NULL AND NOT EXISTS (SELECT 1 FROM agents a WHERE a.uuid = m.sender)

-- name: document_versions
SELECT path, COUNT(*), MIN(version), MAX(version) FROM documents GROUP BY path

-- name: documents_of_strangers
SELECT d.path, d.version, d.author FROM documents d
 WHERE d.author IS NOT NULL AND NOT EXISTS (SELECT 1 FROM agents a WHERE a.uuid = d.author)

-- name: signal_numbers
SELECT agent_uuid, COUNT(*), MIN(id), MAX(id) FROM signals GROUP BY agent_uuid

-- name: signals_of_strangers
SELECT s.agent_uuid, s.id, s.sender FROM signals s
 WHERE s.sender IS NOT NULL AND NOT EXISTS (SELECT 1 FROM agents a WHERE a.uuid = s.sender)

-- name: restart_numbers
SELECT agent_uuid, COUNT(*), MIN(id), MAX(id) FROM restarts GROUP BY agent_uuid

-- name: restarts_by_strangers
SELECT r.agent_uuid, r.id, r.supervisor_uuid FROM restarts r
 WHERE NOT EXISTS (SELECT 1 FROM agents a WHERE a.uuid = r.supervisor_uuid)

-- name: keep_definition
INSERT INTO definitions (digest, name, body) VALUES (:digest, :name, :body) ON CONFLICT DO NOTHING

-- name: definition_bodies
SELECT digest, body FROM definitions WHERE digest = ANY(:digests)

-- name: all_definitions
SELECT digest, body FROM definitions ORDER BY digest

-- name: prune_definitions
-- Those that nobody names any more.
DELETE FROM definitions
 WHERE NOT EXISTS (SELECT 1 FROM hosts h WHERE h.ended_at IS NULL AND h.tools LIKE '%' || definitions.digest || '%')
   AND NOT EXISTS (SELECT 1 FROM builds b WHERE b.tools LIKE '%' || definitions.digest || '%')
   AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.data LIKE '%' || definitions.digest || '%')

-- name: build
SELECT tools, runtime FROM builds WHERE id = :id

-- name: keep_build
INSERT INTO builds (id, tools, runtime, seen_at) VALUES (:id, :tools, :runtime, now_ms())
ON CONFLICT (id) DO UPDATE SET tools = excluded.tools, runtime = excluded.runtime, seen_at = excluded.seen_at

-- name: set_build
UPDATE hosts SET build = :build, tools = :tools WHERE id = :id

-- name: set_offers
UPDATE hosts SET offers = :offers WHERE id = :id

-- name: offers_of_hosts
SELECT id, offers FROM hosts WHERE ended_at IS NULL AND name IS NOT NULL AND offers <> ''

-- name: drop_builds
-- Those of hosts that live stay, and the latest.
DELETE FROM builds WHERE id NOT IN (SELECT h.build FROM hosts h WHERE h.ended_at IS NULL)
   AND id NOT IN (SELECT b.id FROM builds b ORDER BY b.seen_at DESC, b.id LIMIT :most)

-- name: tools_of_hosts
-- The tools of the hosts that live and share the agents. One of an earlier program says nothing.
SELECT name, tools FROM hosts WHERE ended_at IS NULL AND name IS NOT NULL AND lease_until > now_ms() AND tools <> ''

-- name: all_builds
SELECT id, tools FROM builds ORDER BY id

-- name: builds_of_hosts
SELECT COALESCE(name, id), build, tools FROM hosts WHERE ended_at IS NULL AND build <> '' ORDER BY epoch

-- name: known_blobs
-- Under a lock: who deletes blobs waits until what refers to them now is committed. Who comes later waits, and finds none.
SELECT sha256 FROM blobs WHERE sha256 = ANY(:hashes) ORDER BY sha256 FOR KEY SHARE

-- name: lock_blobs
SELECT sha256 FROM blobs WHERE sha256 = ANY(:hashes) ORDER BY sha256 FOR NO KEY UPDATE

-- name: add_blob
-- Another transaction may have stored the same bytes meanwhile.
INSERT INTO blobs (sha256, media, bytes) VALUES (:sha256, :media, :bytes) ON CONFLICT (sha256) DO NOTHING

-- name: read_blobs
SELECT sha256, bytes FROM blobs WHERE sha256 = ANY(:hashes)

-- name: all_blobs
SELECT sha256 FROM blobs ORDER BY sha256

-- name: referring
-- All that refers to blobs, and perhaps a few more. A prompt or a remote command that was carried out has a message by now.
SELECT agent_uuid, data FROM messages WHERE data LIKE '%"attached":%'
UNION ALL
SELECT recipient, data FROM mail WHERE data LIKE '%"attached":%' AND read_at IS NULL
UNION ALL
SELECT agent_uuid, body FROM requests WHERE body LIKE '%"attached":%' AND answer IS NULL

-- name: add_upload
INSERT INTO uploads (sha256, principal, name, size, at) VALUES (:sha256, :principal, :name, :size, :now)
    ON CONFLICT (sha256, principal) DO UPDATE SET name = excluded.name, at = excluded.at

-- name: upload
SELECT uploads.name, blobs.media FROM uploads JOIN blobs ON blobs.sha256 = uploads.sha256
 WHERE uploads.sha256 = :sha256 AND uploads.principal = :principal

-- name: size_of_uploads
-- The bytes that a principal has uploaded since then, but for one file.
SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT) FROM uploads WHERE principal = :principal AND at > :since AND sha256 <> :but

-- name: uploaded_blobs
SELECT DISTINCT sha256 FROM uploads ORDER BY sha256

-- name: account
SELECT server, subject, version, renewing_until, issuer, scope, expires_at, sealed FROM accounts
 WHERE server = :server AND subject = :subject

-- name: every_account
SELECT server, subject, version, renewing_until, issuer, scope, expires_at, sealed FROM accounts
 ORDER BY server, subject

-- name: keep_account
INSERT INTO accounts (server, subject, version, renewing_until, issuer, scope, expires_at, sealed)
VALUES (:server, :subject, 1, NULL, :issuer, :scope, :expires_at, :sealed)
    ON CONFLICT (server, subject) DO UPDATE
       SET version = accounts.version + 1, renewing_until = NULL, issuer = excluded.issuer, scope = excluded.scope,
           expires_at = excluded.expires_at, sealed = excluded.sealed

-- name: claim_renewal
UPDATE accounts SET renewing_until = :until
 WHERE server = :server AND subject = :subject AND version = :version
   AND (renewing_until IS NULL OR renewing_until <= :now)
RETURNING version

-- name: renew_account
UPDATE accounts SET version = version + 1, renewing_until = NULL, sealed = :sealed, expires_at = :expires_at, scope = :scope
 WHERE server = :server AND subject = :subject AND version = :version
RETURNING version

-- name: free_renewal
UPDATE accounts SET renewing_until = NULL WHERE server = :server AND subject = :subject AND version = :version

-- name: drop_account
DELETE FROM accounts WHERE server = :server AND subject = :subject AND version = :version RETURNING version

-- name: seal_again
UPDATE accounts SET sealed = :sealed WHERE server = :server AND subject = :subject AND version = :version
RETURNING version

-- name: drop_flows
DELETE FROM account_flows WHERE until <= :now

-- name: begin_flow
INSERT INTO account_flows (state, question, until, sealed) VALUES (:state, :question, :until, :sealed)

-- name: take_flow
DELETE FROM account_flows WHERE state = :state RETURNING question, until, sealed

-- name: mcp_listing
SELECT digest, list FROM mcp_listings WHERE server = :server

-- name: keep_mcp_listing
INSERT INTO mcp_listings (server, digest, list, at) VALUES (:server, :digest, :list, :now)
    ON CONFLICT (server) DO UPDATE SET digest = excluded.digest, list = excluded.list, at = excluded.at

-- name: drop_uploads
DELETE FROM uploads WHERE at < :before

-- name: drop_blobs
DELETE FROM blobs WHERE sha256 = ANY(:hashes)

-- name: mail_of
-- All mail to an agent, prompts too.
SELECT recipient, id, sender, kind, body, created_at, read_at, data FROM mail WHERE recipient = :recipient ORDER BY id

-- name: bodies_of
-- All versions of a document.
SELECT version, body FROM documents WHERE path = :path ORDER BY version

-- name: spent_before
-- What members of budgets have spent before they came.
UPDATE limits SET base = base + CAST(:amount AS BIGINT) WHERE unit = :unit AND budget = ANY(:budgets)

-- name: merges_among
-- Of some agents into some of them.
SELECT into_uuid, from_uuid, from_head, message, created_at FROM merges
 WHERE into_uuid = ANY(:uuids) AND from_uuid = ANY(:uuids) ORDER BY into_uuid, message

-- name: documents_by
-- Every version of each document of which one of these agents has written some.
SELECT path, version, author, body, created_at FROM documents
 WHERE path IN (SELECT d.path FROM documents d WHERE d.author = ANY(:uuids)) ORDER BY path, version

-- name: media_of_blobs
SELECT sha256, media FROM blobs WHERE sha256 = ANY(:hashes)

-- name: prunable
-- Those who died before a time, and from whom nobody descends who lives or has died since: the needed are closed upwards.
WITH RECURSIVE needed(uuid) AS (
    SELECT a.uuid FROM agents a WHERE a.status <> 'dead' OR a.ended_at >= CAST(:before AS BIGINT)
    UNION SELECT a.parent_uuid FROM agents a JOIN needed n ON n.uuid = a.uuid WHERE a.parent_uuid IS NOT NULL)
SELECT a.uuid FROM agents a
 WHERE a.status = 'dead' AND a.ended_at < CAST(:before AS BIGINT) AND a.pruned_at IS NULL AND a.uuid NOT IN (SELECT uuid FROM needed)

-- name: mark_pruned
UPDATE agents SET pruned_at = :now, unread = 0, pruned_hash =
       (SELECT m.hash FROM messages m WHERE m.agent_uuid = agents.uuid ORDER BY m.id DESC LIMIT 1)
 WHERE uuid = ANY(:uuids)

-- name: head_hashes
-- The latest message of each log, and its hash.
SELECT m.agent_uuid, m.id, m.hash FROM agents a JOIN messages m ON m.agent_uuid = a.uuid
   AND m.id = (SELECT MAX(l.id) FROM messages l WHERE l.agent_uuid = a.uuid)
 WHERE a.pruned_at IS NULL

-- name: pruned_hashes_of
SELECT a.uuid, a.pruned_hash FROM agents a WHERE a.uuid = ANY(:uuids) AND a.pruned_hash IS NOT NULL

-- name: pruned_hashes
SELECT a.uuid, a.pruned_hash FROM agents a WHERE a.pruned_hash IS NOT NULL

-- name: half_pruned
SELECT a.uuid FROM agents a
 WHERE a.pruned_at IS NOT NULL
   AND (EXISTS (SELECT 1 FROM messages m WHERE m.agent_uuid = a.uuid) OR EXISTS (SELECT 1 FROM mail m WHERE m.recipient = a.uuid)
        OR EXISTS (SELECT 1 FROM signals s WHERE s.agent_uuid = a.uuid)
        OR EXISTS (SELECT 1 FROM restarts r WHERE r.agent_uuid = a.uuid)
        OR EXISTS (SELECT 1 FROM requests r WHERE r.agent_uuid = a.uuid))

-- name: size_of_logs
-- The numbers of messages and mails of some agents, and of their characters.
SELECT (SELECT COUNT(*) FROM messages WHERE agent_uuid = ANY(:uuids)), (SELECT COUNT(*) FROM mail WHERE recipient = ANY(:uuids)),
       CAST((SELECT COALESCE(SUM(length(content) + COALESCE(length(data), 0)), 0) FROM messages WHERE agent_uuid = ANY(:uuids))
            + (SELECT COALESCE(SUM(length(body)), 0) FROM mail WHERE recipient = ANY(:uuids)) AS BIGINT)

-- name: size_of_blobs
SELECT CAST(COALESCE(SUM(length(bytes)), 0) AS BIGINT) FROM blobs WHERE sha256 = ANY(:hashes)

-- name: prune_messages
-- Some at a time, as the following.
DELETE FROM messages WHERE (agent_uuid, id) IN (
    SELECT m.agent_uuid, m.id FROM messages m WHERE m.agent_uuid = ANY(:uuids) LIMIT CAST(:most AS BIGINT)) RETURNING id

-- name: prune_mail
DELETE FROM mail WHERE (recipient, id) IN (
    SELECT m.recipient, m.id FROM mail m WHERE m.recipient = ANY(:uuids) LIMIT CAST(:most AS BIGINT)) RETURNING id

-- name: prune_signals
DELETE FROM signals WHERE (agent_uuid, id) IN (
    SELECT s.agent_uuid, s.id FROM signals s WHERE s.agent_uuid = ANY(:uuids) LIMIT CAST(:most AS BIGINT)) RETURNING id

-- name: prune_restarts
DELETE FROM restarts WHERE (agent_uuid, id) IN (
    SELECT r.agent_uuid, r.id FROM restarts r WHERE r.agent_uuid = ANY(:uuids) LIMIT CAST(:most AS BIGINT)) RETURNING id

-- name: remote_command_body
SELECT body FROM requests WHERE agent_uuid = :agent AND id = :id

-- name: prune_requests
DELETE FROM requests WHERE (agent_uuid, id) IN (
    SELECT r.agent_uuid, r.id FROM requests r WHERE r.agent_uuid = ANY(:uuids) LIMIT CAST(:most AS BIGINT)) RETURNING id

-- name: claim_call
-- No row: the key stands for a call already. Waits for who claims the key at this moment.
INSERT INTO calls (scope, key, agent, verb, asked, about, gave, at)
VALUES (:scope, :key, :agent, :verb, :asked, :about, '{}', :now) ON CONFLICT (scope, key) DO NOTHING RETURNING key

-- name: answer_call
UPDATE calls SET gave = :gave WHERE scope = :scope AND key = :key

-- name: release_call
DELETE FROM calls WHERE scope = :scope AND key = :key

-- name: release_refused
-- That of a request which its agent has refused, unless another one has claimed the key since.
DELETE FROM calls WHERE scope = :scope AND key = :key AND gave = :gave

-- name: release_answered
-- That of a prompt or word which is withdrawn.
DELETE FROM calls WHERE scope = :scope AND gave = :gave AND verb IN ('prompt', 'steer')

-- name: call_of
SELECT verb, asked, about, gave, at FROM calls WHERE scope = :scope AND key = :key

-- name: calls
SELECT scope, key, agent, verb, asked, gave FROM calls

-- name: calls_of
SELECT scope, key, agent, verb, asked, about, gave, at FROM calls WHERE scope = ANY(:uuids) ORDER BY scope, key

-- name: old_calls
SELECT scope, key, agent, gave FROM calls WHERE at < :before

-- columns: level
c.owner, c.above, b.strict, b.created_at, l.unit, l.granted, l.used, l.risk, l.notified

-- name: budget_levels
-- The budgets above some agents, whose nearest ones are given, and agent 0's; each with its limits. UNION: a damaged circle ends.
WITH RECURSIVE chain(owner, above) AS (
    SELECT b.owner, b.above FROM budgets b
     WHERE b.owner = ANY(:budgets) OR b.owner = (SELECT a.uuid FROM agents a WHERE a.parent_uuid IS NULL)
    UNION SELECT b.owner, b.above FROM budgets b JOIN chain c ON b.owner = c.above)
SELECT {level} FROM chain c JOIN budgets b ON b.owner = c.owner LEFT JOIN limits l ON l.budget = c.owner

-- name: own_budgets
-- The same above some agents, with the portions of one host. These are locked, in the order that all writers keep.
WITH RECURSIVE nearest(owner) AS (
    SELECT a.budget FROM agents a WHERE a.uuid = ANY(:uuids) UNION SELECT a.uuid FROM agents a WHERE a.parent_uuid IS NULL),
chain(owner, above) AS (
    SELECT b.owner, b.above FROM nearest n JOIN budgets b ON b.owner = n.owner
    UNION SELECT b.owner, b.above FROM budgets b JOIN chain c ON b.owner = c.above),
own AS (
    SELECT p.budget, p.unit, p.allotted, p.held, p.spent, p.risk, p.wanted FROM portions p
     WHERE p.host = :host AND p.budget IN (SELECT c.owner FROM chain c) ORDER BY p.budget, p.unit FOR NO KEY UPDATE)
SELECT {level}, p.allotted, p.held, p.spent, p.risk, p.wanted
  FROM chain c JOIN budgets b ON b.owner = c.owner LEFT JOIN limits l ON l.budget = c.owner
  LEFT JOIN own p ON p.budget = l.budget AND p.unit = l.unit

-- name: use_portion
UPDATE portions SET held = held + :held, spent = spent + :spent, risk = risk + :risk
 WHERE budget = :budget AND unit = :unit AND host = :host

-- name: lock_budgets
-- First of what locks whole budgets, behind the rows of agents.
SELECT b.owner, b.paused FROM budgets b WHERE b.owner = ANY(:budgets) ORDER BY b.owner FOR NO KEY UPDATE

-- name: lock_limits
SELECT l.budget, l.unit, l.granted, l.used, l.risk, l.notified FROM limits l WHERE l.budget = ANY(:budgets)
 ORDER BY l.budget, l.unit FOR NO KEY UPDATE

-- name: lock_portions
SELECT p.budget, p.unit, p.host, p.allotted, p.held, p.spent, p.risk, p.wanted FROM portions p
 WHERE p.budget = ANY(:budgets) ORDER BY p.budget, p.unit, p.host FOR NO KEY UPDATE

-- name: set_portion
INSERT INTO portions (budget, unit, host, allotted, held, spent, risk, wanted)
VALUES (:budget, :unit, :host, :allotted, :held, :spent, :risk, :wanted)
ON CONFLICT (budget, unit, host) DO UPDATE SET allotted = excluded.allotted, held = excluded.held, spent = excluded.spent,
       risk = excluded.risk, wanted = excluded.wanted

-- name: set_limit
INSERT INTO limits (budget, unit, granted, base, used, risk, notified)
VALUES (:budget, :unit, :granted, :base, :used, :risk, :notified)
ON CONFLICT (budget, unit) DO UPDATE SET granted = excluded.granted, used = excluded.used, risk = excluded.risk,
       notified = excluded.notified

-- name: set_paused
UPDATE budgets SET paused = :paused WHERE owner = :budget

-- name: living_hosts
SELECT h.id FROM hosts h WHERE h.ended_at IS NULL

-- name: slots_of
-- When each of the latest requests was made. Under the budget's lock.
SELECT s.id, s.used_at FROM slots s WHERE s.budget = :budget

-- name: use_slot
INSERT INTO slots (budget, id, used_at) VALUES (:budget, :id, :now)
ON CONFLICT (budget, id) DO UPDATE SET used_at = excluded.used_at

-- name: keep_hold
-- What an agent's request has cost, and what is held for the next one; with the turn that its unit opens or closes.
UPDATE agents SET turn = COALESCE(CAST(:turn AS BIGINT), turn),
       cut_off = CASE WHEN CAST(:turn AS BIGINT) IS NULL THEN cut_off ELSE 0 END,
       awake = CASE WHEN status = 'dead' THEN 0 ELSE 1 END, held_at = :at, held_tokens = :tokens, held_usd = :usd,
       held_risk_tokens = :risk_tokens, held_risk_usd = :risk_usd, held_limit = CAST(:most AS BIGINT),
       held_host = CAST(:host AS TEXT), spent_tokens = spent_tokens + :spent_tokens,
       spent_usd = spent_usd + :spent_usd
 WHERE uuid = :uuid

-- name: add_pause
INSERT INTO pauses (agent_uuid, budget, unit, number, turn, at, need, since, due_at)
VALUES (:agent, :budget, :unit, :number, :turn, :at, :need, :now, CAST(:due AS BIGINT))
ON CONFLICT (agent_uuid) DO UPDATE SET budget = excluded.budget, unit = excluded.unit, number = excluded.number,
       turn = excluded.turn, at = excluded.at, need = excluded.need, since = excluded.since, due_at = excluded.due_at

-- name: end_pauses
DELETE FROM pauses WHERE agent_uuid = ANY(:agents)

-- name: pauses_of
-- Who waits for a budget, in order; those who may go on now.
SELECT p.agent_uuid, p.need, p.unit, p.due_at FROM pauses p JOIN agents a ON a.uuid = p.agent_uuid JOIN shards s ON s.id = a.shard
  JOIN hosts h ON h.id = s.host AND h.ended_at IS NULL
 WHERE p.budget = :budget AND a.status = 'running' ORDER BY p.number LIMIT CAST(:most AS BIGINT)

-- name: pauses_by_agent
SELECT p.agent_uuid, p.budget, p.unit, p.due_at, p.at FROM pauses p WHERE p.agent_uuid = ANY(:uuids)

-- name: waiting_for
-- How many wait for each budget, those who may not go on now included.
SELECT p.budget, COUNT(*) FROM pauses p WHERE p.budget = ANY(:budgets) GROUP BY p.budget

-- name: add_budget
-- The parent's row is locked.
INSERT INTO budgets (owner, above, strict, created_at)
SELECT CAST(:owner AS TEXT), COALESCE(p.budget, (SELECT b.owner FROM budgets b WHERE b.above IS NULL)), CAST(:strict AS BIGINT),
       CAST(:now AS BIGINT)
  FROM agents p WHERE p.uuid = :parent

-- name: register_root_budget
INSERT INTO budgets (owner, created_at) SELECT a.uuid, a.created_at FROM agents a WHERE a.parent_uuid IS NULL
ON CONFLICT DO NOTHING

-- name: look_at_budgets
-- The nearest budgets of agents.
SELECT a.uuid, a.budget FROM agents a WHERE a.uuid = ANY(:uuids)

-- name: end_portion
DELETE FROM portions WHERE budget = :budget AND unit = :unit AND host = :host

-- name: nearest_budget
SELECT COALESCE(a.budget, (SELECT r.uuid FROM agents r WHERE r.parent_uuid IS NULL)) FROM agents a WHERE a.uuid = :uuid

-- name: parents_of
-- From whom an agent descends.
WITH RECURSIVE line(uuid) AS (
    SELECT parent_uuid FROM agents WHERE uuid = :uuid
    UNION SELECT a.parent_uuid FROM agents a JOIN line ON a.uuid = line.uuid)
SELECT uuid FROM line WHERE uuid IS NOT NULL

-- name: descent
-- An agent and all that descend from it, with their nearest budgets. UNION: a damaged circle ends. By agents_supervisor, and those
-- who have another supervisor than their parent by agents_adopted, whose condition stands here word for word.
WITH RECURSIVE line(uuid) AS (
    SELECT CAST(:uuid AS TEXT)
    UNION SELECT a.uuid FROM line JOIN agents a ON (a.supervisor_uuid = line.uuid AND a.parent_uuid = line.uuid)
              OR (a.parent_uuid = line.uuid AND a.supervisor_uuid <> a.parent_uuid))
SELECT a.uuid, a.status, a.budget, a.spent_tokens, a.spent_usd FROM agents a JOIN line ON a.uuid = line.uuid

-- name: belonging
-- An agent and all below it, by descent or by supervision. By the same indexes.
WITH RECURSIVE line(uuid) AS (
    SELECT CAST(:uuid AS TEXT)
    UNION SELECT a.uuid FROM line JOIN agents a ON a.supervisor_uuid = line.uuid
              OR (a.parent_uuid = line.uuid AND a.supervisor_uuid <> a.parent_uuid))
SELECT uuid FROM line

-- name: move_below_budget
UPDATE agents SET budget = :budget WHERE uuid = ANY(:uuids)

-- name: raise_holds
-- What is held for open requests becomes the most that they can cost.
UPDATE agents SET held_tokens = held_tokens + held_risk_tokens, held_usd = held_usd + held_risk_usd, held_risk_tokens = 0,
       held_risk_usd = 0
 WHERE uuid = ANY(:uuids)

-- name: time_limits
-- Limits of time whose owners were told nothing yet, of agents in the shards of a host; the dead too: somebody above them is told.
SELECT l.budget, b.created_at, l.granted FROM limits l JOIN budgets b ON b.owner = l.budget JOIN agents a ON a.uuid = b.owner
  JOIN shards s ON s.id = a.shard AND s.host = :host
 WHERE l.unit = 'ms' AND l.notified = 0 AND l.granted > 0

-- name: root_budget
SELECT b.owner FROM budgets b WHERE b.above IS NULL

-- name: set_strict
-- With the time from which a limit of time counts.
UPDATE budgets SET strict = :strict, created_at = :now WHERE owner = :budget

-- name: hold_more
-- An open request, in a limit that is new.
INSERT INTO portions (budget, unit, host, allotted, held, spent, risk, wanted)
VALUES (:budget, :unit, :host, 0, :held, 0, :risk, 0)
ON CONFLICT (budget, unit, host) DO UPDATE SET held = portions.held + excluded.held, risk = portions.risk + excluded.risk

-- name: held_in
-- Whose requests are open, of the living in some shards, that another host has begun; but for those that go on without a
-- host: in a batch, or as a reply that its service keeps, named by a note or a retry after which are births at most. They are paid for once.
SELECT a.uuid FROM agents a
 WHERE a.awake = 1 AND a.held_at > 0 AND a.held_host <> :host
   AND a.shard IN (SELECT s.id FROM shards s WHERE CAST(s.id AS TEXT) = ANY(:shards))
   AND NOT EXISTS (SELECT 1 FROM batch_members b WHERE b.agent_uuid = a.uuid AND b.position = a.held_at)
   AND NOT EXISTS (
       SELECT 1 FROM messages m
        WHERE m.agent_uuid = a.uuid AND m.id >= a.held_at AND (m.kind = 'note' OR m.kind = 'retry') AND m.data LIKE '%"response":%'
          AND NOT EXISTS (SELECT 1 FROM messages l
                           WHERE l.agent_uuid = a.uuid AND l.id > m.id AND NOT (l.kind = 'fork' AND l.data LIKE '%"child":%')))

-- name: portions_of_ended
-- Portions of hosts that have ended, in which nothing is held.
SELECT DISTINCT p.budget, p.host FROM portions p JOIN hosts h ON h.id = p.host WHERE h.ended_at IS NOT NULL AND p.held = 0

-- name: budget_of
-- The budgets above an agent, its nearest first, each with its limits.
WITH RECURSIVE chain(owner, above, depth) AS (
    SELECT b.owner, b.above, 0 FROM budgets b JOIN agents a ON a.uuid = :uuid
     WHERE b.owner = COALESCE(a.budget, (SELECT r.uuid FROM agents r WHERE r.parent_uuid IS NULL))
    UNION SELECT b.owner, b.above, c.depth + 1 FROM budgets b JOIN chain c ON b.owner = c.above WHERE c.depth < 1000)
SELECT c.owner, b.strict, b.created_at, l.unit, l.granted, l.used, l.risk,
       (SELECT CAST(COALESCE(SUM(p.held), 0) AS BIGINT) FROM portions p WHERE p.budget = l.budget AND p.unit = l.unit),
       (SELECT CAST(COALESCE(SUM(p.spent), 0) AS BIGINT) FROM portions p WHERE p.budget = l.budget AND p.unit = l.unit),
       (SELECT CAST(COALESCE(SUM(p.risk), 0) AS BIGINT) FROM portions p WHERE p.budget = l.budget AND p.unit = l.unit),
       (SELECT COUNT(*) FROM slots s WHERE s.budget = l.budget AND s.used_at > now_ms() - 60000
          AND s.used_at <= now_ms() + 60000),
       (SELECT COUNT(*) FROM pauses p WHERE p.budget = c.owner), now_ms()
  FROM chain c JOIN budgets b ON b.owner = c.owner JOIN limits l ON l.budget = c.owner ORDER BY c.depth

-- name: change_pause
-- Its place stays. What the request needs is another one where the agent has changed it.
UPDATE pauses SET unit = :unit, due_at = CAST(:due AS BIGINT), at = COALESCE(CAST(:at AS BIGINT), at),
       need = COALESCE(CAST(:need AS TEXT), need)
 WHERE agent_uuid = :agent

-- name: holds_of
-- The open requests of some agents.
SELECT a.uuid, a.held_at, a.held_tokens, a.held_usd, a.held_limit, a.held_risk_tokens, a.held_risk_usd FROM agents a
 WHERE a.uuid = ANY(:uuids) AND a.held_at > 0

-- name: all_budgets
SELECT owner, above, strict FROM budgets

-- name: all_limits
SELECT budget, unit, granted, base, used, risk FROM limits

-- name: all_portions
SELECT budget, unit, host, allotted, held, spent, risk FROM portions

-- name: open_holds
SELECT uuid, held_tokens, held_usd, held_host FROM agents WHERE held_at > 0

-- name: taken
-- How many tokens are spent by each agent, and held for it.
SELECT uuid, spent_tokens, held_tokens FROM agents

-- name: all_pauses
SELECT p.agent_uuid, p.budget, p.number, p.turn, b.paused FROM pauses p JOIN budgets b ON b.owner = p.budget

-- name: add_spent
UPDATE agents SET spent_tokens = spent_tokens + :tokens, spent_usd = spent_usd + :usd WHERE uuid = :uuid

-- name: keep_label
INSERT INTO label_values (labels, key, value) VALUES (:labels, :key, :value) ON CONFLICT DO NOTHING

-- name: set_root_labels
-- Before agent 0 begins to act.
UPDATE agents SET labels = :labels WHERE parent_uuid IS NULL AND CAST(shard AS TEXT) = ANY(:shards)

-- name: spending_by_label
-- Set by set, so that the index serves the time as well; the labels of a set decide where it is added.
SELECT COALESCE(v.value, ''), CAST(SUM(s.tokens) AS BIGINT), CAST(SUM(s.usd) AS BIGINT), COUNT(*)
  FROM (SELECT DISTINCT l.labels FROM label_values l UNION ALL SELECT '') known
  JOIN spendings s ON s.labels = known.labels AND s.created_at >= CAST(:since AS BIGINT)
  LEFT JOIN label_values v ON v.labels = known.labels AND v.key = :key
 GROUP BY COALESCE(v.value, '')

-- name: spendings_of
SELECT s.agent_uuid, s.id, s.labels, s.created_at, s.tokens, s.usd FROM spendings s WHERE s.agent_uuid = :uuid ORDER BY s.id

-- name: sums_of_spendings
-- What is compared with the messages: how many, of which positions and tokens. Of these agents, or all.
SELECT s.agent_uuid, COUNT(*), CAST(SUM(s.id) AS BIGINT), CAST(SUM(s.tokens) AS BIGINT) FROM spendings s
 WHERE CAST(:all AS BIGINT) = 1 OR s.agent_uuid = ANY(:uuids) GROUP BY s.agent_uuid

-- name: sets_of_spendings
SELECT DISTINCT s.labels FROM spendings s

-- name: labels_of_agents
SELECT a.uuid, a.labels FROM agents a WHERE a.labels <> ''

-- name: all_labels
SELECT l.labels, l.key, l.value FROM label_values l

-- name: new_timer_id
-- Under the lock of the agent's row.
UPDATE agents SET timed = timed + 1 WHERE uuid = :agent RETURNING timed

-- name: add_timer
INSERT INTO timers (agent_uuid, id, due_at, schedule, zone, fires_as, sender, body, created_at)
VALUES (:agent, :id, :due, :schedule, :zone, :fires_as, :sender, :body, :now)

-- name: count_timers
SELECT COUNT(*) FROM timers WHERE agent_uuid = :agent

-- name: timer
SELECT {timer} FROM timers t WHERE t.agent_uuid = :agent AND t.id = :id

-- name: timers_of
SELECT {timer} FROM timers t WHERE t.agent_uuid = :agent ORDER BY t.due_at, t.id

-- name: timers
-- Of everybody.
SELECT {timer} FROM timers t ORDER BY t.due_at, t.agent_uuid, t.id

-- name: next_timers
-- Which fire next, of the agents that a host runs. By timers_due.
SELECT t.agent_uuid, t.id, t.due_at, t.sender FROM timers t JOIN agents a ON a.uuid = t.agent_uuid JOIN shards s ON s.id = a.shard
 WHERE s.host = :host ORDER BY t.due_at, t.agent_uuid, t.id LIMIT CAST(:most AS BIGINT)

-- name: advance_timer
UPDATE timers SET due_at = :due, missed = :missed, since = CAST(:since AS BIGINT), latest = :latest, notified = :notified
 WHERE agent_uuid = :agent AND id = :id

-- name: end_timer
-- It has fired for the last time.
DELETE FROM timers WHERE agent_uuid = :agent AND id = :id

-- name: cancel_timer
DELETE FROM timers WHERE agent_uuid = :agent AND id = :id RETURNING id

-- name: end_timers
-- Of those who die.
DELETE FROM timers WHERE agent_uuid = ANY(:agents)

-- name: is_unread
SELECT 1 FROM mail m WHERE m.recipient = :recipient AND m.id = :id AND m.read_at IS NULL

-- name: listen
INSERT INTO listeners (id, until, replies) VALUES (:id, now_ms() + :ms, :replies)
    ON CONFLICT (id) DO UPDATE SET until = excluded.until, replies = excluded.replies

-- name: listen_no_more
-- Those whose time is over, too.
DELETE FROM listeners WHERE id = :id OR until < now_ms()

-- name: listened
-- For how many milliseconds from now on somebody else wants to see replies on their way; NULL when nobody ever did.
SELECT MAX(until) - now_ms() FROM listeners WHERE id <> :id AND replies = 1

-- name: host_is_needed
-- Whether somebody else is there, or something goes on by itself within some time: a timer, or a request that waits for its turn
-- within a minute.
SELECT CASE WHEN EXISTS (SELECT 1 FROM listeners WHERE id <> :id AND until > now_ms())
              OR EXISTS (SELECT 1 FROM timers WHERE due_at <= now_ms() + :ms)
              OR EXISTS (SELECT 1 FROM pauses WHERE due_at IS NOT NULL) THEN 1 ELSE 0 END

-- name: pieces_behind
-- What a host has told behind a place, of replies that are on their way still.
SELECT p.id, p.agent_uuid, p.reply, p.at, p.body FROM pieces p JOIN agents a ON a.uuid = p.agent_uuid JOIN shards s ON s.id = a.shard
 WHERE p.host = :host AND p.id > :after AND s.host = p.host AND a.status <> 'dead' AND a.turn > 0
   AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.agent_uuid = p.agent_uuid AND m.id > p.at AND m.kind = ANY(:ends))
 ORDER BY p.id

-- name: delete_void_pieces
-- Of these agents: what the statement before this one does not read any more.
DELETE FROM pieces WHERE host = :host AND agent_uuid = ANY(:agents) AND NOT EXISTS (
    SELECT 1 FROM agents a JOIN shards s ON s.id = a.shard
     WHERE a.uuid = pieces.agent_uuid AND s.host = pieces.host AND a.status <> 'dead' AND a.turn > 0
       AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.agent_uuid = a.uuid AND m.id > pieces.at AND m.kind = ANY(:ends)))

-- name: replies_in_pieces
SELECT DISTINCT reply FROM pieces WHERE host = :host

-- name: delete_pieces
DELETE FROM pieces WHERE host = :host

-- name: delete_pieces_of_ended
-- What hosts have left that have ended.
DELETE FROM pieces WHERE host IN (SELECT h.id FROM hosts h WHERE h.ended_at IS NOT NULL)

-- name: pieces
-- For who checks them all.
SELECT host, id, agent_uuid, body FROM pieces

-- name: turn_reported
SELECT a.supervisor_uuid, a.turn, a.stuck FROM agents a WHERE a.uuid = :uuid

-- name: report_turn
UPDATE agents SET stuck = :turn WHERE uuid = :uuid

-- name: latest_signs
-- When those that are in a turn have written last.
SELECT a.uuid, a.turn, COALESCE((SELECT m.created_at FROM messages m WHERE m.agent_uuid = a.uuid ORDER BY m.id DESC LIMIT 1), a.created_at),
       now_ms()
  FROM agents a WHERE a.awake = 1 AND a.turn > 0 AND a.cut_off = 0

-- name: turns_at_work
-- Those in a turn that nobody has stopped, and that no budget and no batch holds.
SELECT a.uuid FROM agents a
 WHERE a.awake = 1 AND a.turn > 0 AND a.status = 'running' AND NOT EXISTS (SELECT 1 FROM pauses w WHERE w.agent_uuid = a.uuid)
   AND NOT EXISTS (SELECT 1 FROM batch_members b WHERE b.agent_uuid = a.uuid AND b.position = a.held_at AND b.state = 'waiting')

-- name: make_group
INSERT INTO group_names (name) VALUES (:name) ON CONFLICT DO NOTHING

-- name: lock_group
-- Behind the tree, before any agent. Who joins, leaves or sends follows one another.
SELECT name FROM group_names WHERE name = :name FOR NO KEY UPDATE

-- name: members_of
SELECT g.agent_uuid FROM groups g WHERE g.name = :name ORDER BY g.agent_uuid

-- name: all_members
SELECT g.name, g.agent_uuid FROM groups g ORDER BY g.name, g.joined_at, g.agent_uuid

-- name: join_group
INSERT INTO groups (name, agent_uuid, joined_at) VALUES (:name, :agent, :now)

-- name: leave_group
DELETE FROM groups WHERE name = :name AND agent_uuid = :agent RETURNING agent_uuid

-- name: some_ties
-- So many of the agents that have timers, groups, monitors, pauses or questions, however often each comes.
SELECT t.uuid FROM (
    SELECT agent_uuid AS uuid FROM timers UNION ALL SELECT agent_uuid FROM pauses UNION ALL SELECT agent_uuid FROM groups
    UNION ALL SELECT agent_uuid FROM monitors UNION ALL SELECT watcher FROM monitors
    UNION ALL SELECT agent_uuid FROM questions WHERE answered_at IS NULL
    UNION ALL SELECT agent FROM asked WHERE ended IS NULL UNION ALL SELECT asker FROM asked WHERE ended IS NULL) t LIMIT CAST(:most AS BIGINT)

-- name: leave_groups
-- Of those who die, under the locks of their rows.
DELETE FROM groups WHERE agent_uuid = ANY(:agents)

-- name: rules_for
-- The rules in force for an agent: its own, and those of everybody above it.
{ruling}
SELECT {rule} FROM rules r JOIN above ON r.agent_uuid = above.uuid
 WHERE {in_force} ORDER BY r.agent_uuid, r.id

-- name: rules_version
-- How many of them each of these agents has, and the greatest number: a rule that was taken back never comes again, so no other rules
-- have the same. By rules_in_force alone.
{ruling}
SELECT r.agent_uuid, COUNT(*), MAX(r.id) FROM above JOIN rules r ON r.agent_uuid = above.uuid
 WHERE {in_force} GROUP BY r.agent_uuid

-- name: rules_of
-- All that an agent ever had.
SELECT {rule} FROM rules r WHERE r.agent_uuid = :uuid ORDER BY r.id

-- name: all_rules
SELECT {rule} FROM rules r ORDER BY r.agent_uuid, r.id

-- name: add_rule
INSERT INTO rules (agent_uuid, id, decision, tool, pattern, scope, created_at, principal, skill)
VALUES (:agent, :id, :decision, :tool, :pattern, :scope, :now, CAST(:principal AS TEXT), CAST(:skill AS TEXT))

-- name: remove_rule
UPDATE rules SET removed_at = :now WHERE agent_uuid = :agent AND id = :id

-- name: remove_skill_rules
-- Those of skills that are asked about anew.
UPDATE rules SET removed_at = :now WHERE agent_uuid = :agent AND skill = ANY(:skills) AND removed_at IS NULL

-- name: changed_at
-- The version of the tree of the latest change of an agent that others look at.
SELECT changed FROM agents WHERE uuid = :uuid

-- name: mark_ruled
-- Other hosts look at it: the rules of those below it are others.
UPDATE agents SET changed = (SELECT version FROM tree WHERE one = 1) WHERE uuid = :uuid

-- name: freeze_tree
-- Nobody writes to the topmost layer of an agent any more; its machine, and how many layers are frozen.
UPDATE trees SET upper = upper + :by WHERE agent_uuid = :agent AND base = :base RETURNING upper, machine

-- name: trees_beneath
-- The tree of an agent, and those on which it is built. UNION: a damaged circle ends.
WITH RECURSIVE beneath(uuid, parent) AS (
    SELECT t.agent_uuid, t.parent FROM trees t WHERE t.agent_uuid = :agent AND t.base = :base
    UNION SELECT t.agent_uuid, t.parent FROM trees t JOIN beneath ON t.agent_uuid = beneath.parent
     WHERE t.base = :base)
SELECT {tree} FROM trees t JOIN beneath ON t.agent_uuid = beneath.uuid WHERE t.base = :base

-- name: tree_merges_of
-- What was merged into these agents.
SELECT {tree_merge} FROM tree_merges m WHERE m.agent_uuid = ANY(:agents) AND m.base = :base
 ORDER BY m.agent_uuid, m.layer

-- name: all_trees
SELECT {tree} FROM trees t ORDER BY t.agent_uuid, t.base

-- name: all_tree_merges
SELECT {tree_merge} FROM tree_merges m ORDER BY m.agent_uuid, m.base, m.layer

-- name: tree_of
SELECT {tree} FROM trees t WHERE t.agent_uuid = :agent AND t.base = :base

-- name: add_tree
-- Its agent may have got one from another one's child, by another host.
INSERT INTO trees (agent_uuid, base, machine, forked_as, parent, below, upper, since, created_at)
VALUES (:agent, :base, :machine, :kind, NULL, 0, :upper, :since, :now) ON CONFLICT DO NOTHING

-- name: span_of_log
-- The position that an agent inherits up to, and that of the latest message of its history.
SELECT a.fork_message_id,
       COALESCE((SELECT MAX(m.id) FROM messages m WHERE m.agent_uuid = a.uuid), a.fork_message_id)
  FROM agents a WHERE a.uuid = :uuid

-- name: tree_writes_of
SELECT {tree_write} FROM tree_writes w WHERE w.agent_uuid = :agent AND w.base = :base ORDER BY w.position, w.layer

-- name: latest_tree_write
SELECT {tree_write} FROM tree_writes w WHERE w.agent_uuid = :agent AND w.base = :base
 ORDER BY w.layer DESC, w.position DESC LIMIT 1

-- name: all_tree_writes
SELECT {tree_write} FROM tree_writes w ORDER BY w.agent_uuid, w.base, w.layer, w.position

-- name: add_tree_write
INSERT INTO tree_writes (agent_uuid, base, layer, position) VALUES (:agent, :base, :layer, :position)
    ON CONFLICT DO NOTHING

-- name: pruned_trees
-- Of agents that were pruned, with all that descend from them.
SELECT {tree} FROM trees t JOIN agents a ON a.uuid = t.agent_uuid
 WHERE a.pruned_at IS NOT NULL AND t.machine = :machine ORDER BY t.agent_uuid, t.base

-- name: trees_of_agents
SELECT {tree} FROM trees t WHERE t.agent_uuid = ANY(:agents) AND t.machine = :machine ORDER BY t.agent_uuid, t.base

-- name: forget_trees
DELETE FROM trees WHERE agent_uuid = ANY(:agents) AND machine = :machine

-- name: forget_tree_merges
DELETE FROM tree_merges WHERE agent_uuid = ANY(:agents)

-- name: forget_tree_writes
DELETE FROM tree_writes WHERE agent_uuid = ANY(:agents)

-- name: mark_tree_applied
UPDATE trees SET applied_at = :now WHERE agent_uuid = :agent AND base = :base

-- name: add_tree_merge
INSERT INTO tree_merges (agent_uuid, base, layer, child, upto, created_at)
VALUES (:agent, :base, :layer, :child, :upto, :now)

-- name: add_monitor
INSERT INTO monitors (agent_uuid, watcher, created_at) VALUES (:agent, :watcher, :now) ON CONFLICT DO NOTHING

-- name: end_monitor
DELETE FROM monitors WHERE agent_uuid = :agent AND watcher = :watcher RETURNING agent_uuid

-- name: end_monitors
-- Of those who die, whichever side they are.
DELETE FROM monitors WHERE agent_uuid = ANY(:agents) OR watcher = ANY(:agents)

-- name: watchers_of
-- Under the row of the tree, which who begins to monitor shares.
SELECT m.agent_uuid, m.watcher FROM monitors m WHERE m.agent_uuid = ANY(:agents) ORDER BY m.agent_uuid, m.watcher

-- name: all_monitors
SELECT m.agent_uuid, m.watcher FROM monitors m

-- name: glances
-- What a screen of everybody shows, in order of birth.
SELECT a.uuid, a.name, a.parent_uuid, a.supervisor_uuid, a.fork_message_id, a.status, a.turn, a.created_at, a.ended_at, a.unread,
       a.spent_tokens, a.spent_usd, w.unit, a.budget, s.host, a.cut_off
  FROM agents a LEFT JOIN pauses w ON w.agent_uuid = a.uuid LEFT JOIN shards s ON s.id = a.shard
 ORDER BY a.created_at, a.born

-- name: positions_at
-- How far each of these histories had come at some times. Halves the log by its primary key. No message at a position: it was
-- pruned, and the fork point is left.
WITH RECURSIVE times(at) AS (
    SELECT CAST(:since AS BIGINT) UNION ALL SELECT t.at + CAST(:step AS BIGINT) FROM times t WHERE t.at < CAST(:until AS BIGINT)),
half(uuid, at, low, high) AS (
    SELECT a.uuid, t.at, a.fork_message_id,
           COALESCE((SELECT MAX(m.id) FROM messages m WHERE m.agent_uuid = a.uuid), a.fork_message_id)
      FROM agents a CROSS JOIN times t WHERE a.uuid = ANY(:uuids)
    UNION ALL
    SELECT h.uuid, h.at,
           CASE WHEN (SELECT m.created_at FROM messages m WHERE m.agent_uuid = h.uuid AND m.id = (h.low + h.high + 1) / 2) <= h.at
                THEN (h.low + h.high + 1) / 2 ELSE h.low END,
           CASE WHEN (SELECT m.created_at FROM messages m WHERE m.agent_uuid = h.uuid AND m.id = (h.low + h.high + 1) / 2) <= h.at
                THEN h.high ELSE (h.low + h.high + 1) / 2 - 1 END
      FROM half h WHERE h.low < h.high)
SELECT uuid, at, low FROM half WHERE low >= high

-- name: marks
-- What a timeline shows of a part of a log. That a reply calls tools stands near the beginning of its data, which may be long.
SELECT m.id, m.kind, m.created_at,
       CASE WHEN m.kind = 'tool_call' THEN substr(m.content, 1, 40)
            WHEN m.kind = 'assistant' AND substr(m.data, 1, 300) LIKE '%"stop_reason":"tool_use"%' THEN 'calls'
            WHEN m.kind = 'retry' AND m.data LIKE '%"until":%' THEN 'later'
            WHEN m.kind = 'hook' AND m.data LIKE '{"lacking":%' THEN 'later' END,
       CASE WHEN m.kind = 'fork' THEN m.data END
  FROM messages m WHERE m.agent_uuid = :uuid AND m.id > :start AND m.id <= :end ORDER BY m.id

-- name: latest_marks
-- The same of the latest message of each log.
SELECT m.agent_uuid, m.id, m.kind, m.created_at,
       CASE WHEN m.kind = 'tool_call' THEN substr(m.content, 1, 40)
            WHEN m.kind = 'assistant' AND substr(m.data, 1, 300) LIKE '%"stop_reason":"tool_use"%' THEN 'calls'
            WHEN m.kind = 'retry' AND m.data LIKE '%"until":%' THEN 'later'
            WHEN m.kind = 'hook' AND m.data LIKE '{"lacking":%' THEN 'later' END,
       CASE WHEN m.kind = 'fork' THEN m.data END
  FROM agents a JOIN messages m ON m.agent_uuid = a.uuid AND m.id = (SELECT MAX(l.id) FROM messages l WHERE l.agent_uuid = a.uuid)
 WHERE a.uuid = ANY(:uuids)

-- name: mails_between
-- Halves each mailbox by its primary key. Its ids have holes, so the next mail that is there is looked at.
WITH RECURSIVE half(uuid, low, high) AS (
    SELECT a.uuid, CAST(0 AS BIGINT), a.mailed FROM agents a WHERE a.uuid = ANY(:uuids)
    UNION ALL
    SELECT h.uuid,
           CASE WHEN (SELECT m.created_at FROM mail m WHERE m.recipient = h.uuid AND m.id >= (h.low + h.high + 1) / 2
                       ORDER BY m.id LIMIT 1) <= :since
                THEN (SELECT m.id FROM mail m WHERE m.recipient = h.uuid AND m.id >= (h.low + h.high + 1) / 2 ORDER BY m.id LIMIT 1)
                ELSE h.low END,
           CASE WHEN (SELECT m.created_at FROM mail m WHERE m.recipient = h.uuid AND m.id >= (h.low + h.high + 1) / 2
                       ORDER BY m.id LIMIT 1) <= :since
                THEN h.high ELSE (h.low + h.high + 1) / 2 - 1 END
      FROM half h WHERE h.low < h.high)
SELECT m.recipient, m.id, m.sender, m.kind, m.created_at, m.read_at
  FROM half h JOIN mail m ON m.recipient = h.uuid AND m.id > h.low AND m.created_at <= :until
 WHERE h.low >= h.high ORDER BY m.created_at, m.recipient, m.id LIMIT CAST(:most AS BIGINT)

-- name: prompt_before
-- The latest prompt up to a position of a log: walks back to it.
SELECT id FROM messages WHERE agent_uuid = :uuid AND id <= :at AND kind = 'user' ORDER BY id DESC LIMIT 1

-- name: mails_read
-- What an agent has read of its mail in a stretch of time. Walks through its mailbox.
SELECT m.recipient, m.id, m.sender, m.kind, m.created_at, m.read_at
  FROM mail m WHERE m.recipient = :uuid AND m.read_at >= :since AND m.read_at <= :until ORDER BY m.id

-- name: activity
-- How many messages there were in each stretch of time. Reads all of them.
SELECT m.created_at / CAST(:step AS BIGINT), COUNT(*) FROM messages m GROUP BY 1 ORDER BY 1

-- name: guest_log
SELECT {guest_log} FROM guest_logs l WHERE l.guest = :guest AND l.scope = :scope AND l.name = :name

-- name: lock_guest_log
SELECT {guest_log} FROM guest_logs l WHERE l.guest = :guest AND l.scope = :scope AND l.name = :name FOR NO KEY UPDATE

-- name: lock_guest_log_by_id
SELECT {guest_log} FROM guest_logs l WHERE l.id = :id FOR NO KEY UPDATE

-- name: guest_logs
SELECT {guest_log} FROM guest_logs l WHERE l.guest = :guest AND l.scope = :scope AND l.name IS NOT NULL ORDER BY l.name

-- name: every_guest_log
SELECT {guest_log} FROM guest_logs l ORDER BY l.id

-- name: guest_spans
-- Between which numbers the entries of each log are.
SELECT log, MIN(id), MAX(id) FROM guest_entries GROUP BY log ORDER BY log

-- name: make_guest_log
INSERT INTO guest_logs (id, guest, scope, name, parent, upto, head, data, changed_at)
VALUES (:id, :guest, :scope, :name, :parent, :upto, :upto, '', now_ms()) ON CONFLICT DO NOTHING

-- name: move_guest_log
-- The database's clock, as several hosts share it; two changes within a millisecond are told apart.
UPDATE guest_logs SET parent = :parent, upto = :upto, head = :head, data = :data,
    changed_at = CASE WHEN now_ms() > changed_at THEN now_ms() ELSE changed_at + 1 END
WHERE id = :id

-- name: unname_guest_log
UPDATE guest_logs SET name = NULL WHERE id = :id

-- name: delete_guest_log
DELETE FROM guest_logs WHERE id = :id

-- name: guest_shared
-- Up to which entry of its own a log is shown by others; none: nobody begins with it.
SELECT MAX(upto) FROM guest_logs WHERE parent = :id

-- name: guest_entries
-- The latest of what a log shows, backwards.
{guest_chain} SELECT {guest_entry} FROM shown e ORDER BY e.id DESC LIMIT :most

-- name: guest_entries_about
{guest_chain} SELECT {guest_entry} FROM shown e WHERE e.part = :part AND e.about = :about ORDER BY e.id

-- name: guest_outline
-- What a log shows of one key, without bodies: the latest first, of all parts or of one.
{guest_chain} SELECT e.log, e.id, e.part, e.about, e.key, e.tag, e.data, CAST(NULL AS BYTEA) FROM shown e
WHERE (e.key = :key OR e.data IS NULL) AND (CAST(:part AS TEXT) IS NULL OR e.part = :part)
  AND (CAST(:before AS TEXT) IS NULL OR e.about < :before)
ORDER BY e.about DESC, e.part, e.id DESC LIMIT :most

-- name: guest_known_keys
{guest_chain} SELECT e.key FROM shown e WHERE e.part = :part AND e.about = :about AND e.key = ANY(:keys)

-- name: guest_tagged
SELECT e.log, e.part, e.about FROM guest_entries e JOIN guest_logs l ON l.id = e.log
WHERE l.guest = :guest AND e.tag = ANY(:tags)

-- name: guest_heirs
-- A log and those that begin with it, or with one of these. UNION: a damaged circle ends.
WITH RECURSIVE heirs(id) AS (
    SELECT CAST(:id AS TEXT) UNION SELECT l.id FROM heirs h JOIN guest_logs l ON l.parent = h.id
) SELECT id FROM heirs

-- name: delete_guest_entries
DELETE FROM guest_entries WHERE log = :log AND id > :above

-- name: delete_guest_entries_about
DELETE FROM guest_entries WHERE log = :log AND part = :part AND about = :about AND id > :above

-- name: delete_guest_keys
DELETE FROM guest_entries WHERE log = :log AND part = :part AND about = :about AND id > :above AND key = ANY(:keys)

-- name: endpoint
SELECT name, agent_uuid, spec, created_at, paused_at FROM endpoints WHERE name = :name AND removed_at IS NULL

-- name: endpoints
SELECT name, agent_uuid, spec, created_at, paused_at FROM endpoints WHERE removed_at IS NULL ORDER BY name

-- name: set_endpoint
INSERT INTO endpoints (name, agent_uuid, spec, created_at) VALUES (:name, :agent, :spec, :now)
    ON CONFLICT (name) DO UPDATE SET agent_uuid = :agent, spec = :spec, paused_at = NULL, removed_at = NULL RETURNING name

-- name: change_endpoint_spec
UPDATE endpoints SET spec = :spec WHERE name = :name AND spec = :former RETURNING name

-- name: change_endpoint
UPDATE endpoints SET paused_at = :paused_at, removed_at = :removed_at WHERE name = :name

-- name: lock_endpoint
SELECT name FROM endpoints WHERE name = :name FOR NO KEY UPDATE

-- name: latest_arrival
SELECT COALESCE(MAX(number), 0) FROM arrivals WHERE endpoint = :endpoint

-- name: arrival
SELECT endpoint, id, number, at, again_of, became, gave FROM arrivals WHERE endpoint = :endpoint AND id = :id

-- name: arrival_body
SELECT body, headers FROM arrivals WHERE endpoint = :endpoint AND id = :id

-- name: arrivals
SELECT endpoint, id, number, at, again_of, became, gave FROM arrivals WHERE endpoint = :endpoint
 ORDER BY number DESC LIMIT CAST(:most AS BIGINT)

-- name: arrivals_with
-- By arrivals_waiting: of those that are held or dead.
SELECT endpoint, id, number, at, again_of, became, gave FROM arrivals
 WHERE endpoint = :endpoint AND became = :status AND became IN ('held', 'dead') ORDER BY number LIMIT CAST(:most AS BIGINT)

-- name: endpoints_that_hold
-- By arrivals_waiting: one look for each endpoint.
SELECT e.name FROM endpoints e WHERE e.removed_at IS NULL AND e.paused_at IS NULL
   AND EXISTS (SELECT 1 FROM arrivals r WHERE r.endpoint = e.name AND r.became = 'held' AND r.became IN ('held', 'dead'))
 ORDER BY e.name

-- name: unrepeated_dead
-- By arrivals_waiting and arrivals_again.
SELECT r.endpoint, r.id, r.number, r.at, r.again_of, r.became, r.gave FROM arrivals r
 WHERE r.endpoint = :endpoint AND r.became = 'dead' AND r.became IN ('held', 'dead') AND r.again_of IS NULL AND r.body IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM arrivals a WHERE a.endpoint = r.endpoint AND a.again_of = r.id)
 ORDER BY r.number LIMIT CAST(:most AS BIGINT)

-- name: count_arrivals
SELECT became, COUNT(*) FROM arrivals WHERE endpoint = :endpoint GROUP BY became

-- name: arrival_with_body
-- The first that came with the same bytes before a number.
SELECT id FROM arrivals WHERE endpoint = :endpoint AND sha256 = :sha256 AND number < :number AND again_of IS NULL
 ORDER BY number LIMIT 1

-- name: add_arrival
INSERT INTO arrivals (endpoint, id, number, at, again_of, became, gave, child, request, sha256, headers, body)
VALUES (:endpoint, :id, :number, :now, :again_of, :status, :gave, :child, :request, :sha256, :headers, :body)

-- name: settle_arrival
UPDATE arrivals SET became = :status, gave = :gave, child = :child, request = :request WHERE endpoint = :endpoint AND id = :id

-- name: children_of_endpoint
-- The living children of its agent that an endpoint has made. By agents_supervisor and arrivals_child.
SELECT COUNT(*) FROM agents a WHERE a.supervisor_uuid = :agent AND a.status <> 'dead'
   AND EXISTS (SELECT 1 FROM arrivals r WHERE r.child = a.uuid AND r.endpoint = :endpoint)

-- name: coming_children_of_endpoint
-- Children that are asked for and not born yet. By requests_new and arrivals_request.
SELECT COUNT(*) FROM requests q WHERE q.agent_uuid = :agent AND q.answered_at IS NULL
   AND EXISTS (SELECT 1 FROM arrivals r WHERE r.endpoint = :endpoint AND r.request = q.id)

-- name: prune_arrival_bodies
UPDATE arrivals SET body = NULL WHERE at < :before AND body IS NOT NULL AND became <> 'held'

-- name: prune_arrivals
DELETE FROM arrivals WHERE at < :before AND became <> 'held'

-- name: every_endpoint
SELECT name, agent_uuid, spec FROM endpoints

-- name: every_arrival
SELECT endpoint, id, number, became, gave FROM arrivals

-- name: add_subscription
INSERT INTO subscriptions (id, url, scope, below, kinds, spec, created_at)
VALUES (:id, :url, :scope, :below, :kinds, :spec, :now)

-- name: subscription
SELECT id, url, scope, below, kinds, spec, created_at, failing_since, paused_at FROM subscriptions
 WHERE id = :id AND ended_at IS NULL

-- name: subscriptions
-- By subscriptions_live.
SELECT id, url, scope, below, kinds, spec, created_at, failing_since, paused_at FROM subscriptions
 WHERE ended_at IS NULL ORDER BY created_at, id

-- name: waiting_subscriptions
-- Those that are not paused, and for which something waits. By subscriptions_live and deliveries_due.
SELECT id, url, scope, below, kinds, spec, created_at, failing_since, paused_at FROM subscriptions s
 WHERE ended_at IS NULL AND paused_at IS NULL
   AND EXISTS (SELECT 1 FROM deliveries d WHERE d.subscription = s.id AND d.due_at IS NOT NULL)
 ORDER BY created_at, id

-- name: any_subscription
SELECT id FROM subscriptions WHERE ended_at IS NULL LIMIT 1

-- name: count_subscriptions
SELECT COUNT(*) FROM subscriptions WHERE ended_at IS NULL AND context IS NULL

-- name: count_task_subscriptions
SELECT COUNT(*) FROM subscriptions WHERE ended_at IS NULL AND context IS NOT NULL

-- name: set_task_subscription
INSERT INTO subscriptions (id, url, scope, below, kinds, spec, created_at, context)
VALUES (:id, :url, :scope, 1, :kinds, :spec, :now, :context)
    ON CONFLICT (id) DO UPDATE SET url = excluded.url, kinds = excluded.kinds, spec = excluded.spec,
       created_at = excluded.created_at, failing_since = NULL, paused_at = NULL, ended_at = NULL

-- name: task_subscriptions
-- By subscriptions_of_tasks.
SELECT id, url, scope, below, kinds, spec, created_at, failing_since, paused_at FROM subscriptions
 WHERE ended_at IS NULL AND context IS NOT NULL AND context = :context ORDER BY created_at, id

-- name: lost_task_subscriptions
-- Older ones whose agent is dead, or was never born.
SELECT id FROM subscriptions s
 WHERE ended_at IS NULL AND context IS NOT NULL AND created_at < :before
   AND NOT EXISTS (SELECT 1 FROM agents a WHERE a.uuid = s.context AND a.status <> 'dead')

-- name: post_task_event
-- The end of a task for a subscription that came later. What waits is left alone.
INSERT INTO deliveries (subscription, agent_uuid, position, kind, about, at, due_at)
VALUES (:subscription, :agent, :position, :kind, :about, CAST(:at AS BIGINT), CAST(:now AS BIGINT))
    ON CONFLICT (subscription, agent_uuid, position, kind, about) DO UPDATE
   SET tries = 0, due_at = excluded.due_at, done_at = NULL WHERE deliveries.due_at IS NULL

-- name: lock_subscription
SELECT id FROM subscriptions WHERE id = :id FOR NO KEY UPDATE

-- name: pause_subscription
UPDATE subscriptions SET paused_at = :now WHERE id = :id

-- name: resume_subscription
UPDATE subscriptions SET paused_at = NULL, failing_since = NULL WHERE id = :id

-- name: change_subscription_spec
UPDATE subscriptions SET spec = :spec WHERE id = :id AND spec = :former RETURNING id

-- name: end_subscription
UPDATE subscriptions SET ended_at = :now WHERE id = :id

-- name: end_deliveries
UPDATE deliveries SET due_at = NULL, said = :said WHERE subscription = :id AND due_at IS NOT NULL

-- name: note_failing
UPDATE subscriptions SET failing_since = :now WHERE id = :id AND failing_since IS NULL

-- name: note_received
UPDATE subscriptions SET failing_since = NULL WHERE id = :id AND failing_since IS NOT NULL

-- name: post_event
-- A row for each subscription that wants it: of everybody, of this agent, or of one above it; of a task in its context alone.
INSERT INTO deliveries (subscription, agent_uuid, position, kind, about, at, due_at)
SELECT s.id, CAST(:agent AS TEXT), CAST(:position AS BIGINT), CAST(:kind AS TEXT), CAST(:about AS TEXT),
       CAST(:now AS BIGINT), CAST(:now AS BIGINT)
  FROM subscriptions s
 WHERE s.ended_at IS NULL AND s.kinds LIKE '%,' || CAST(:kind AS TEXT) || ',%'
   AND (s.context = CAST(:agent AS TEXT) OR (s.context IS NULL AND (
        s.scope IS NULL OR s.scope = CAST(:agent AS TEXT) OR (s.below = 1 AND s.scope IN (
        WITH RECURSIVE above(uuid) AS (
            SELECT a.supervisor_uuid FROM agents a WHERE a.uuid = CAST(:agent AS TEXT)
            UNION SELECT a.supervisor_uuid FROM agents a JOIN above ON a.uuid = above.uuid)
        SELECT above.uuid FROM above WHERE above.uuid IS NOT NULL)))))
    ON CONFLICT DO NOTHING

-- name: next_deliveries
-- Of the agents of a host: the earliest delivery of each that waits. By deliveries_due.
SELECT d.agent_uuid, d.position, d.kind, d.about, d.at, d.tries, d.due_at, h.epoch
  FROM deliveries d JOIN agents a ON a.uuid = d.agent_uuid JOIN shards h ON h.id = a.shard
 WHERE d.subscription = :subscription AND d.due_at IS NOT NULL AND h.host = :host AND NOT EXISTS (
       SELECT 1 FROM deliveries e WHERE e.subscription = d.subscription AND e.agent_uuid = d.agent_uuid AND e.due_at IS NOT NULL
          AND (e.position < d.position OR (e.position = d.position AND (e.kind < d.kind OR (e.kind = d.kind AND e.about < d.about)))))
 ORDER BY d.due_at, d.agent_uuid LIMIT CAST(:most AS BIGINT)

-- name: record_delivery
-- Of a try that began with this number of tries, while its host has the shard yet in which the agent lives.
UPDATE deliveries SET tries = :tries + 1, due_at = CAST(:due AS BIGINT), done_at = CAST(:done AS BIGINT), said = :said
 WHERE subscription = :subscription AND agent_uuid = :agent AND position = :position AND kind = :kind AND about = :about
   AND tries = :tries AND due_at IS NOT NULL AND EXISTS (
       SELECT 1 FROM agents a JOIN shards h ON h.id = a.shard WHERE a.uuid = :agent AND h.host = :host AND h.epoch = :epoch)
RETURNING position

-- name: deliveries_of
-- Of a subscription, the latest first.
SELECT agent_uuid, position, kind, about, at, tries, due_at, done_at, said FROM deliveries
 WHERE subscription = :subscription ORDER BY at DESC, position DESC, kind DESC, about DESC LIMIT CAST(:most AS BIGINT)

-- name: deliveries_since
SELECT agent_uuid, position, kind, about, at, tries, due_at, done_at, said FROM deliveries
 WHERE subscription = :subscription AND at >= :since ORDER BY at, position, kind, about

-- name: count_deliveries
SELECT CASE WHEN due_at IS NOT NULL THEN 'waiting' WHEN done_at IS NOT NULL THEN 'received' ELSE 'dead' END AS state, COUNT(*)
  FROM deliveries WHERE subscription = :subscription GROUP BY 1

-- name: redeliver
-- Those that wait for their first try are left alone: they are about to be sent.
UPDATE deliveries SET tries = 0, due_at = CAST(:now AS BIGINT), done_at = NULL
 WHERE subscription = :subscription AND agent_uuid = :agent AND position = :position AND kind = :kind AND about = :about
   AND (due_at IS NULL OR tries > 0)
RETURNING position

-- name: prune_deliveries
DELETE FROM deliveries WHERE at < :before AND due_at IS NULL

-- name: latest_member
SELECT attempt, state, batch, result, read_at FROM batch_members WHERE agent_uuid = :agent AND position = :position
 ORDER BY attempt DESC LIMIT 1

-- name: add_member
INSERT INTO batch_members (agent_uuid, position, attempt, service, batch, asked_at, due_at, state, body)
VALUES (:agent, :position, :attempt, :service, NULL, :now, :due, 'waiting', :body)

-- name: leave_batch
-- A request that nobody waits for any more, and that has not been sealed.
DELETE FROM batch_members WHERE agent_uuid = :agent AND position = :position AND state = 'waiting' AND batch IS NULL

-- name: take_seat
-- The seat of a service: taken where nobody has it, or where its host has ended.
INSERT INTO seats (service, host) VALUES (:service, :host)
    ON CONFLICT (service) DO UPDATE SET host = excluded.host
 WHERE seats.host = excluded.host OR EXISTS (SELECT 1 FROM hosts h WHERE h.id = seats.host AND h.ended_at IS NOT NULL)
RETURNING host

-- name: services_of_batches
-- Whatever waits for a batch, and whatever batch is open.
SELECT service FROM batch_members WHERE state = 'waiting' UNION SELECT service FROM batches WHERE ended_at IS NULL ORDER BY 1

-- name: unsealed_members
-- By batch_members_waiting; the forks of one history stand together.
SELECT m.agent_uuid, m.position, m.attempt, m.asked_at, m.due_at, LENGTH(m.body)
  FROM batch_members m JOIN agents a ON a.uuid = m.agent_uuid
 WHERE m.service = :service AND m.batch IS NULL AND m.state = 'waiting'
 ORDER BY COALESCE(a.parent_uuid, a.uuid), m.position, m.agent_uuid, m.attempt

-- name: open_batches
SELECT id, service, remote, size, made_at, sent_at FROM batches WHERE service = :service AND ended_at IS NULL ORDER BY made_at, id

-- name: known_batches
SELECT remote FROM batches WHERE service = :service AND remote IS NOT NULL

-- name: add_batch
INSERT INTO batches (id, service, remote, size, made_at, sent_at, ended_at) VALUES (:id, :service, NULL, :size, :now, :now, NULL)

-- name: size_batch
-- Fewer members than it was made for; one without any has ended.
UPDATE batches SET size = :size, ended_at = CAST(:now AS BIGINT) WHERE id = :id

-- name: seal_member
UPDATE batch_members SET batch = :batch
 WHERE agent_uuid = :agent AND position = :position AND attempt = :attempt AND state = 'waiting' AND batch IS NULL
RETURNING position

-- name: batch_bodies
SELECT agent_uuid, position, attempt, body FROM batch_members WHERE batch = :batch ORDER BY agent_uuid, position, attempt

-- name: waits_for_batch
SELECT 1 FROM batch_members WHERE batch = :batch AND state = 'waiting' LIMIT 1

-- name: members_of_batch
SELECT agent_uuid, position, attempt, service, state, due_at FROM batch_members WHERE batch = :batch
 ORDER BY agent_uuid, position, attempt

-- name: name_batch
UPDATE batches SET remote = :remote WHERE id = :id AND remote IS NULL

-- name: resend_batch
UPDATE batches SET sent_at = :now WHERE id = :id AND remote IS NULL

-- name: end_member
UPDATE batch_members SET state = :state, result = CAST(:result AS TEXT), body = NULL
 WHERE agent_uuid = :agent AND position = :position AND attempt = :attempt AND state = 'waiting'
RETURNING position

-- name: ask_again
-- A further attempt of a member that its service has not answered.
INSERT INTO batch_members (agent_uuid, position, attempt, service, batch, asked_at, due_at, state, body)
SELECT agent_uuid, position, attempt + 1, service, NULL, CAST(:now AS BIGINT), due_at, 'waiting', body
  FROM batch_members WHERE agent_uuid = :agent AND position = :position AND attempt = :attempt
    ON CONFLICT DO NOTHING

-- name: unread_members
-- Of the agents of a host: those whose end nobody has taken note of. By batch_members_unread.
SELECT m.agent_uuid, m.position, m.attempt, m.state, m.result
  FROM batch_members m JOIN agents a ON a.uuid = m.agent_uuid JOIN shards h ON h.id = a.shard
 WHERE m.read_at IS NULL AND m.state IN ('answered', 'failed', 'direct') AND h.host = :host
 ORDER BY m.agent_uuid, m.position, m.attempt LIMIT CAST(:most AS BIGINT)

-- name: read_member
UPDATE batch_members SET read_at = :now WHERE agent_uuid = :agent AND position = :position AND attempt = :attempt AND read_at IS NULL

-- name: end_batch
UPDATE batches SET ended_at = :now WHERE id = :id AND ended_at IS NULL

-- name: due_members
SELECT agent_uuid, position, attempt FROM batch_members WHERE service = :service AND state = 'waiting' AND due_at <= :now

-- name: next_due_member
SELECT MIN(due_at) FROM batch_members WHERE service = :service AND state = 'waiting'

-- name: prune_members
DELETE FROM batch_members WHERE state <> 'waiting' AND asked_at < :before
   AND (batch IS NULL OR batch IN (SELECT id FROM batches WHERE ended_at IS NOT NULL AND ended_at < :before))

-- name: prune_batches
DELETE FROM batches WHERE ended_at < :before AND NOT EXISTS (SELECT 1 FROM batch_members m WHERE m.batch = batches.id)

-- name: every_member
SELECT m.agent_uuid, m.position, m.attempt, m.state, m.batch, m.body IS NULL, m.result IS NULL, b.ended_at
  FROM batch_members m LEFT JOIN batches b ON b.id = m.batch

-- name: every_subscription
SELECT id, kinds, spec, ended_at FROM subscriptions

-- name: every_delivery
SELECT d.subscription, d.agent_uuid, d.position, d.kind, d.about, d.tries, d.due_at, d.done_at, s.ended_at, m.kind, a.pruned_at
  FROM deliveries d JOIN subscriptions s ON s.id = d.subscription JOIN agents a ON a.uuid = d.agent_uuid
  LEFT JOIN messages m ON m.agent_uuid = d.agent_uuid AND m.id = d.position

-- name: add_token
INSERT INTO tokens (sha256, principal, name, roles, under, made_by, created_at, expires_at, revoked_at)
VALUES (:sha256, :principal, :name, :roles, :under, :made_by, :created_at, :expires_at, :revoked_at)

-- name: token_of
SELECT sha256, principal, name, roles, under, made_by, created_at, expires_at, revoked_at FROM tokens WHERE sha256 = :sha256

-- name: every_token
SELECT sha256, principal, name, roles, under, made_by, created_at, expires_at, revoked_at FROM tokens ORDER BY created_at, sha256

-- name: revoke_tokens
UPDATE tokens SET revoked_at = :now
 WHERE revoked_at IS NULL AND (principal = :named OR (LENGTH(:named) >= 8 AND SUBSTR(sha256, 1, LENGTH(:named)) = :named))
RETURNING sha256

-- name: add_asked
INSERT INTO asked (agent, prompt, asker, detached) VALUES (:agent, :prompt, :asker, :detached) ON CONFLICT DO NOTHING

-- name: askers
-- The programs that wait for the end of a turn.
SELECT asker FROM asked WHERE agent = :agent AND prompt = :prompt AND ended IS NULL

-- name: asked_of
-- What is asked of agents, and goes on.
SELECT asker, agent, prompt FROM asked WHERE agent = ANY(:agents) AND ended IS NULL ORDER BY asker, agent, prompt

-- name: end_asked
-- Under the row of who has asked, which orders the ends of all that it has asked.
UPDATE asked SET ended = (SELECT COALESCE(MAX(o.ended), 0) + 1 FROM asked o WHERE o.asker = :asker)
 WHERE agent = :agent AND prompt = :prompt AND asker = :asker AND ended IS NULL RETURNING awaited

-- name: count_end
-- Of one that is parked, under the lock of its row: the last end that it lacks wakes it.
UPDATE agents SET parked = CASE WHEN parked > 1 THEN parked - 1 ELSE -1 END, awake = CASE WHEN parked > 1 THEN awake ELSE 1 END
 WHERE uuid = :uuid AND parked > 0 RETURNING parked

-- name: await_asked
-- In the unit that parks the asker: the end of this one is counted for it.
UPDATE asked SET awaited = 1 WHERE asker = :asker AND agent = :agent AND prompt = :prompt AND ended IS NULL

-- name: await_no_more
UPDATE asked SET awaited = 0 WHERE asker = :asker AND awaited = 1

-- name: park
-- Not one whose turn another process has interrupted, which nobody would hear of.
UPDATE agents SET parked = :lack, wake_at = CAST(:at AS BIGINT), awake = 0 WHERE uuid = :uuid AND interrupted <> turn RETURNING uuid

-- name: unpark
UPDATE agents SET parked = 0, wake_at = NULL, awake = 1 WHERE uuid = :uuid AND parked <> 0

-- name: parked_among
SELECT uuid FROM agents WHERE uuid = ANY(:uuids) AND parked <> 0

-- name: waits_of_parked
-- With how many ends more are open than are lacking. By asked_open.
SELECT k.asker, k.agent,
       (SELECT COUNT(*) FROM asked o WHERE o.asker = a.uuid AND o.ended IS NULL AND o.awaited = 1) - a.parked
  FROM agents a JOIN asked k ON k.asker = a.uuid
 WHERE a.uuid = ANY(:uuids) AND a.parked > 0 AND k.ended IS NULL AND k.awaited = 1
 ORDER BY k.asker, k.agent, k.prompt

-- name: every_parked
-- For fsck: also those who are not, and for whom ends count all the same.
SELECT a.uuid, a.parked, a.turn, a.awake, a.wake_at, c.ends, c.counted
  FROM agents a LEFT JOIN (SELECT k.asker, COUNT(*) AS ends, SUM(CASE WHEN k.ended IS NULL THEN 1 ELSE 0 END) AS counted
                             FROM asked k WHERE k.awaited = 1 GROUP BY k.asker) c ON c.asker = a.uuid
 WHERE a.parked <> 0 OR a.wake_at IS NOT NULL OR c.ends IS NOT NULL

-- name: wake_parked
-- Under the locks of their rows.
UPDATE agents SET parked = -1, awake = 1 WHERE uuid = ANY(:uuids) AND parked > 0 RETURNING uuid

-- name: to_be_woken
-- The parked of a host for which something has come. By agents_woken.
SELECT a.uuid FROM agents a WHERE a.parked < 0 AND a.shard IN (SELECT s.id FROM shards s WHERE s.host = :host)

-- name: next_waits
-- Whose time comes next, of the parked of a host. By agents_due.
SELECT a.uuid, a.wake_at FROM agents a JOIN shards s ON s.id = a.shard
 WHERE a.wake_at IS NOT NULL AND a.parked > 0 AND s.host = :host ORDER BY a.wake_at LIMIT CAST(:most AS BIGINT)

-- name: cancel_asked
-- In the unit that ends the turn of a program without an answer.
UPDATE asked SET cancelled = 1 WHERE asker = :asker AND ended IS NULL AND detached = 0 RETURNING agent

-- name: data_of_message
SELECT data FROM messages WHERE agent_uuid = :agent AND id = :id

-- name: cancelled
-- What nobody asks for any more, of the agents of a host. By asked_cancelled.
SELECT k.agent, k.prompt, k.asker FROM asked k JOIN agents a ON a.uuid = k.agent JOIN shards s ON s.id = a.shard
 WHERE k.cancelled = 1 AND k.ended IS NULL AND s.host = :host ORDER BY k.agent, k.prompt, k.asker

-- name: forget_asked
DELETE FROM asked WHERE asker = ANY(:agents)

-- name: asked_by
SELECT agent, prompt FROM asked WHERE asker = :asker

-- name: ends_of_asked
-- By asked_ended.
SELECT agent, prompt FROM asked WHERE asker = :asker AND ended IS NOT NULL ORDER BY ended

-- name: every_asked
SELECT agent, prompt, asker, ended FROM asked ORDER BY asker, ended

-- columns: question
q.id, q.agent_uuid, q.position, q.reply, q.call, q.kind, q.asks, q.level, q.digest, q.form, q.terms, q.asked_at, q.next_at, q.next,
q.answered_at, q.by, q.how

-- name: add_question
INSERT INTO questions (id, agent_uuid, position, reply, call, kind, asks, digest, form, terms, asked_at, next_at, next)
VALUES (:id, :agent, :position, :reply, :call, :kind, :asks, :digest, CAST(:form AS TEXT), :terms, :now, CAST(:next_at AS BIGINT),
        CAST(:next AS TEXT)) ON CONFLICT DO NOTHING

-- name: settle_question
UPDATE questions SET answered_at = :now, by = CAST(:by AS TEXT), how = :how, next_at = NULL, next = NULL
 WHERE id = :id AND answered_at IS NULL

-- name: bury_questions
-- Of those who die. By questions_open.
UPDATE questions SET answered_at = :now, how = 'void', next_at = NULL, next = NULL
 WHERE agent_uuid = ANY(:agents) AND answered_at IS NULL

-- name: step_question
UPDATE questions SET level = :level, asks = :asks, next_at = CAST(:next_at AS BIGINT), next = CAST(:next AS TEXT) WHERE id = :id

-- name: open_questions
-- By questions_open.
SELECT {question} FROM questions q WHERE q.answered_at IS NULL ORDER BY q.asked_at, q.agent_uuid, q.position

-- name: question
SELECT {question} FROM questions q WHERE q.id = :id

-- name: questions_beginning
-- Also of one that is decided: whoever answers late reads by whom.
SELECT {question} FROM questions q WHERE substr(q.id, 1, CAST(length(:id) AS INTEGER)) = :id

-- name: every_question
SELECT {question} FROM questions q ORDER BY q.agent_uuid, q.position

-- name: next_questions
-- Whose next steps come first, of the agents that a host runs, each with its agent's supervisor. By questions_due.
SELECT q.agent_uuid, q.id, q.next_at, a.supervisor_uuid
  FROM questions q JOIN agents a ON a.uuid = q.agent_uuid JOIN shards s ON s.id = a.shard
 WHERE q.answered_at IS NULL AND q.next_at IS NOT NULL AND s.host = :host
 ORDER BY q.next_at, q.id LIMIT CAST(:most AS BIGINT)

-- name: prune_questions
DELETE FROM questions WHERE answered_at < CAST(:before AS BIGINT)
