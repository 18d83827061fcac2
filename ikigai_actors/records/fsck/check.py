"""fsck: checks whether a database keeps all invariants on which programs rely. Reads only, in one snapshot.

    type               every value has the type of its column in ``schema.sql``; else no further invariant is checked
    agent-0            exactly one agent has no parent; it lives, and its fork point is 0
    parent             every parent exists
    lineage            no agent descends from itself; the first agent of a branch is of that branch
    supervisor         every agent but agent 0 has a supervisor, which exists
    supervisors        no agent supervises itself, directly or through other agents
    living-supervisor  the supervisor of a living agent lives, unless its policy was to leave its children as orphans
    way                a dead agent above a living agent is marked (column ``way``), so that walks find the living agent
    status             status, restart type, strategy and orphan policy have known values
    death              a dead agent has no open turn, but a time, cause and reason; a living agent has no time or cause
    awake              an agent with an open turn or request is marked for the next boot, and no dead agent is
    pruned             a pruned agent is dead, has no unread mail, and all its descendants are pruned
    deadline           exactly the terminating agents have a deadline
    signal             an agent's signals are numbered from 1 without holes, and come from an agent or a person
    restart            an agent's restarts are numbered from 1 without holes, and name its supervisor at that time
    remote-command     an agent's remote commands are numbered from 1 without holes; body and answer are JSON objects
    keyed-call         a keyed call has a key, agents that exist, a SHA-256 of what was asked, a JSON object as answer
    arrival            the terms of an endpoint can be parsed; an arrival has an act exactly if it is ``taken``
    delivery           a subscription can be parsed; a delivery that is received or over does not wait; its event exists
    batch              a waiting request has its body, and its batch has not ended; an answered request has the answer
    guest              a guest log has a name or a fork, begins within its parent's entries, and continues their numbers
    name               no two living agents have the same name
    epoch              an agent's epoch is 1 or more; of nameless hosts, the living one has the highest epoch
    host               at most one host without a name has not ended
    owner              a shard's host exists, and is the nameless host if that lives; a living agent's shard exists
    one-row            ``tree`` and ``schema_version`` have one row each
    log                every log belongs to an agent
    position           a log's positions run from the fork point + 1 without holes
    data               a message's data is a JSON object with the fields of its kind; a setting's value has its type
    time               the time of a message is after the beginning of 1970
    hash               a message's hash covers the message and the whole history of its agent before it
    fork-point         an agent was forked no later than at its parent's head
    fork-message       a ``fork`` in a parent's log names a child; each child has one there, and its log begins with one
    fork-at            the ``fork`` messages of parent and child have the fork point, and no step is in progress there
    turn               a ``user``, ``tool_result`` or ``fork`` with ``go`` of the agent's own log opened the open turn
    rewind             a ``rewind`` names an earlier mark of the agent's lineage
    summary            a ``summary`` keeps whole steps, no more than the summary before it; messages that it shows exist
    uncompact          an ``uncompact`` names the summary that was in force
    merge              each ``merge`` has a row of table ``merges``, and each row a message; the merged head exists
    call               a ``tool_call`` or ``tool_result`` belongs to a call of an earlier reply of its lineage
    act                the id of a program's call has the digest of its kind and arguments, and counts equal calls
    mail               every mail is for an agent, and comes from an agent or a person
    mail-id            an agent's mails are numbered from 1, at most up to the number of all mails ever sent to it
    unread             the count of unread mails in an agent's row is right
    word               a steering message (``steer``) was read as mail: once, in order, in its turn, after all results
    blob               the hash of a blob is its key, and each blob exists to which a message refers
    definition         the digest of a tool's definition is its key, and the definition of each question exists
    build              a living host's build exists, and so do the definitions of all tools that hosts and builds list
    document           every version of a document comes from an agent or a person
    version            a document's versions run from 1 without holes
    budget             agent 0 has a budget, all other budgets are below it, without circles; an agent's budget exists
    hold               the reserved sum of a budget's portion is that of its agents; only living agents reserve amounts
    spending           a budget's sum is that of its agents' costs since it was set; its count of the living is right
    cost               table ``spendings`` has exactly the costs of requests that messages report
    labels             a set of labels has the labels of its id, and is stored if an agent or a cost has it
    strict             a strict budget's spent and reserved amounts are within its limit, and so are its allotments
    pause              an agent that waits for a budget lives, is in that turn, and reserves nothing; numbers differ
    timer              a timer belongs to a living agent, has a number that was assigned, and a valid schedule
    rule               an agent's rules are numbered from 1 without holes, and each is valid
    question           a question is open exactly while its call waits; its addresses, terms and form can be parsed
    tree               a tree of layers belongs to an agent, and is built on existing frozen layers; so is a file merge
    group              each member of a group lives
    monitor            the watcher and the watched agent of a monitor live, and differ
    asked              a program's request is a prompt by mail; both agents live until it ends; the ends are numbered
    parked             a parked agent has an open turn, and is marked for a boot only if woken; enough ends are awaited
    pieces             the pieces of replies in progress can be parsed, and their agent and host exist
    experiment         births in an experiment are numbered from 1 without holes; so are verdicts, each after its birth

A note is no violation. It reports an amount that a provider has counted beyond the limit of a strict budget.

A database without any agent is sound: its first boot was cut off before it made agent 0, and the next one makes it.

An agent that was imported without its parent inherits nothing, and its log may name forks and merges of other
databases. The log of any other imported agent may name merges of agents that were not in its file.

A violation is reported once. Facts that cannot be checked because of a violation (the contents of a missing message,
the agents above a missing parent) are left out until the violation is mended.

The registry is in memory. Logs are read in batches, in order, and once more if a message refers to another message than
the latest reply or a mark of its own log.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.identity import same_name
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.fsck.arrivals import check_arrivals
from ikigai_actors.records.fsck.asked import check_asked, check_parked
from ikigai_actors.records.fsck.batches import check_batches
from ikigai_actors.records.fsck.blobs import check_blobs
from ikigai_actors.records.fsck.budgets import check_budgets, note_budgets
from ikigai_actors.records.fsck.cuts import check_fork_points, check_lenses
from ikigai_actors.records.fsck.definitions import check_definitions
from ikigai_actors.records.fsck.deliveries import check_deliveries
from ikigai_actors.records.fsck.groups import check_groups
from ikigai_actors.records.fsck.guests import check_guests
from ikigai_actors.records.fsck.invariants import Invariant, Note, Violation
from ikigai_actors.records.fsck.keyed import check_keyed_calls
from ikigai_actors.records.fsck.lifecycle import check_awake, check_life, check_restarts, check_signals, check_ways
from ikigai_actors.records.fsck.logs import LogCheck
from ikigai_actors.records.fsck.mail import check_documents, check_mailboxes
from ikigai_actors.records.fsck.merges import MergeRow, check_merges
from ikigai_actors.records.fsck.pieces import check_pieces
from ikigai_actors.records.fsck.questions import check_questions
from ikigai_actors.records.fsck.remote_commands import check_remote_commands
from ikigai_actors.records.fsck.rules import check_rule_rows
from ikigai_actors.records.fsck.spendings import check_label_sets, check_spendings
from ikigai_actors.records.fsck.timers import check_timers
from ikigai_actors.records.fsck.trees import check_trees
from ikigai_actors.records.proof.chain_check import ChainCheck, Problem, messages_of_all, starts_of
from ikigai_actors.store.base import Row, Store, Transaction
from ikigai_actors.store.migrations import mistyped_columns
from supervisors.orphans import OrphanPolicy

_BATCH = 2_000
"""Messages that are read at once."""


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a check: the counts, the violations, and remarks."""

    agents: int
    messages: int
    violations: list[Violation]
    notes: list[Note] = field(default_factory=list)


class CheckedHost(NamedTuple):
    """The columns of a host that fsck checks: a row of the query ``hosts``."""

    id: str
    epoch: int
    ended_at: int | None
    name: str | None = None


def check(store: Store, *, types: bool = True) -> list[Violation]:
    """Return every violation in a database; empty when it is sound. Raises `StoreError` when it cannot be read.

    ``types``: whether to check the type of every value first, because other programs may have written to the database.
    """
    return inspect(store, types=types).violations


def inspect(store: Store, batch: int = _BATCH, *, types: bool = True) -> Report:
    """Check a database as `check` does; return the violations together with the numbers of checked rows.

    ``batch`` messages are read at once.
    """
    return store.read(lambda tx: _inspect(tx, batch, types))


def judge(
    tx: Transaction,
    agents: Collection[str],
    under: AgentRecord,
    passing: Callable[[Iterator[list[Row]]], Iterator[list[Row]]] = lambda batches: batches,
) -> list[Violation]:
    """Return the faults of agents that were just written, and of their logs. All others are assumed to be sound.

    Args:
        tx: the transaction that wrote them.
        agents: their uuids.
        under: the agent below which they were imported. Their inheritance from it is not checked.
        passing: gets the rows of their logs in batches, and passes them on.
    """
    new = {row.uuid: row for row in registry.some(tx, agents)}
    records = new | {under.uuid: under}
    violations = [
        violation for record in new.values() for violation in (*_family(record, records), *check_life(record, records))
    ]
    circles, _ = climb({uuid: record.supervisor_uuid for uuid, record in new.items()})
    violations += [
        Violation(Invariant.SUPERVISORS, min(circle), f"supervises itself, by {_way(circle)}") for circle in circles
    ]
    _, rooted = climb({uuid: record.parent_uuid for uuid, record in _with_grafts_cut(new).items()})
    logs = LogCheck(_with_grafts_cut(new), rooted)

    def rows() -> Iterator[list[Row]]:
        for uuid in sorted(new):
            position = new[uuid].fork_message_id
            while some := tx.run("hashed_section", uuid=uuid, start=position, end=position + _BATCH):
                yield some
                position = some[-1][1]

    chain = ChainCheck(starts_of(_with_grafts_cut(new).values()))
    for row in (row for some in passing(rows()) for row in some):
        logs.read(row)
        violations += _misfits(chain.read(row))
    violations += _misfits(chain.conclude())
    if logs.conclude():
        for row in (row for some in rows() for row in some):
            logs.resolve(row)
        logs.report_unresolved()
    merges = [MergeRow(*row[:4]) for row in tx.run("merges_among", uuids=list(new))]
    violations += check_merges(merges, logs.merges, logs.merges_elsewhere, logs.heads, logs.is_unknown, logs.is_pruned)
    violations += check_spendings(tx, new, logs.counted, logs.unknown, new)
    return [
        *violations,
        *logs.found,
        *check_lenses(tx, logs.with_lenses()),
        *check_fork_points(tx, logs.forked_earlier()),
    ]


def _with_grafts_cut(records: Mapping[str, AgentRecord]) -> dict[str, AgentRecord]:
    """Return the agents, changed for a reader of their histories.

    Imported agents without their parent inherit nothing.
    """
    return {uuid: replace(record, parent_uuid=None) if record.grafted else record for uuid, record in records.items()}


def _inspect(tx: Transaction, batch: int, types: bool) -> Report:
    wrong = mistyped_columns(tx) if types else []
    if violations := [Violation(Invariant.TYPE, None, f"values of another type in column {each}") for each in wrong]:
        [(agents, messages)] = tx.run("sizes")
        return Report(agents, messages, violations)
    records = {record.uuid: record for record in registry.every(tx)}
    hosts = [CheckedHost._make(row) for row in tx.run("hosts")]
    circles, rooted = climb({record.uuid: record.parent_uuid for record in records.values()})
    violations = [*_single_rows(*tx.run("single_rows")[0]), *_registry(records, circles), *_hosts(hosts)]
    violations += _shards(records, hosts, dict(tx.run("shards")))
    logs = LogCheck(_with_grafts_cut(records), rooted)
    chain = ChainCheck(starts_of(_with_grafts_cut(records).values()))
    for row in messages_of_all(tx, batch):
        logs.read(row)
        violations += _misfits(chain.read(row))
    violations += _misfits(chain.conclude())
    if logs.conclude():
        for row in messages_of_all(tx, batch):
            logs.resolve(row)
        logs.report_unresolved()
    violations += [*logs.found, *check_lenses(tx, logs.with_lenses()), *check_fork_points(tx, logs.forked_earlier())]
    violations += [*check_mailboxes(tx, records), *check_documents(tx), *check_blobs(tx, logs.blobs)]
    violations += check_definitions(tx, logs.questions)
    violations += logs.words.conclude(tx.run("read_words"), records, logs.unknown)
    merges = map(MergeRow._make, tx.run("all_merges"))
    violations += check_merges(merges, logs.merges, logs.merges_elsewhere, logs.heads, logs.is_unknown, logs.is_pruned)
    violations += [*check_spendings(tx, records, logs.counted, logs.unknown), *check_label_sets(tx)]
    violations += [*check_awake(tx), *check_signals(tx, records), *check_restarts(tx, records)]
    violations += [*check_ways(tx, records), *check_remote_commands(tx, records)]
    violations += [*check_budgets(tx, records), *check_timers(tx, records), *check_groups(tx, records)]
    violations += check_questions(tx, records)
    violations += [
        *check_rule_rows(tx, records),
        *check_keyed_calls(tx, records),
        *check_arrivals(tx),
        *check_guests(tx),
    ]
    violations += check_deliveries(tx)
    violations += check_batches(tx)
    violations += [*check_asked(tx, records), *check_parked(tx)]
    violations += check_trees(tx, records, lambda above: climb(above)[0])
    violations += check_pieces(tx, records, [host.id for host in hosts])
    return Report(len(records), logs.messages, violations, [*note_budgets(tx)])


def _misfits(problems: Iterator[Problem]) -> Iterator[Violation]:
    for problem in problems:
        if problem.what == "altered":
            text = f"expected the hash of message {problem.position} to be that of its history; it is another one"
            yield Violation(Invariant.HASH, problem.agent, text)


def climb(above: Mapping[str, str | None]) -> tuple[list[list[str]], set[str]]:
    """Follow each agent upwards to its parent or supervisor, as ``above`` has it.

    Return the circles, each once; and the agents from which the way up ends at an agent without one.
    """
    circles: list[list[str]] = []
    rooted: set[str] = set()
    done: set[str] = set()
    for start in above:
        path: dict[str, None] = {}
        current: str | None = start
        while current is not None and current in above and current not in done and current not in path:
            path[current] = None
            current = above[current]
        if current is None or current in rooted:
            rooted.update(path)
        elif current in path:
            members = list(path)
            circles.append(members[members.index(current) :])
        done.update(path)
    return circles, rooted


def _single_rows(trees: int, versions: int) -> Iterator[Violation]:
    for table, count in (("tree", trees), ("schema_version", versions)):
        if count != 1:
            yield Violation(Invariant.ONE_ROW, None, f"expected one row in table {table}, got {count}")


def _registry(records: Mapping[str, AgentRecord], circles: list[list[str]]) -> Iterator[Violation]:
    roots = [record for record in records.values() if record.parent_uuid is None]
    if records and len(roots) != 1:
        listed = ", ".join(record.uuid for record in roots) or "none"
        yield Violation(Invariant.AGENT_0, None, f"expected one agent without a parent, got {listed}")
    for record in roots:
        if not record.living:
            yield Violation(Invariant.AGENT_0, record.uuid, "expected agent 0 to live, it is dead")
        if record.fork_message_id:
            text = f"expected the fork point of agent 0 to be 0, got {record.fork_message_id}"
            yield Violation(Invariant.AGENT_0, record.uuid, text)
    for members in circles:
        yield Violation(Invariant.LINEAGE, min(members), f"descends from itself, by way of {_way(members)}")
    circles, _ = climb({child.uuid: child.supervisor_uuid if child.parent_uuid else None for child in records.values()})
    for members in circles:
        yield Violation(Invariant.SUPERVISORS, min(members), f"supervises itself, by way of {_way(members)}")
    names: dict[str, str] = {}
    for record in records.values():
        yield from _family(record, records)
        yield from check_life(record, records)
        first = records.get(record.branch or "")
        if record.branch is not None and (first is None or first.branch != record.branch):
            text = f"expected {record.branch!r} to be the first agent of its branch, and of that branch itself"
            yield Violation(Invariant.LINEAGE, record.uuid, text)
        if record.living and record.name is not None:
            other = names.setdefault(same_name(record.name), record.uuid)
            if other != record.uuid:
                text = f"expected no other living agent to be named {record.name!r}, {other} is"
                yield Violation(Invariant.NAME, record.uuid, text)


def _way(members: list[str]) -> str:
    most = 10
    return ", ".join(members[:most]) + (f" and {len(members) - most} more" if len(members) > most else "")


def _family(record: AgentRecord, records: Mapping[str, AgentRecord]) -> Iterator[Violation]:
    parent, above = record.parent_uuid, record.supervisor_uuid
    if parent is not None and parent not in records:
        yield Violation(
            Invariant.PARENT, record.uuid, f"expected its parent {parent!r} to exist, there is no such agent"
        )
    over = records.get(parent or "")
    if over is not None and not over.living and over.pruned_at is not None and record.pruned_at is None:
        text = f"expected it to be pruned, since its parent {parent} is: it has no history without that"
        yield Violation(Invariant.PRUNED, record.uuid, text)
    if (parent is None) != (above is None):
        wanted = "none (it has no parent)" if parent is None else "an agent"
        yield Violation(
            Invariant.SUPERVISOR, record.uuid, f"expected {wanted} as its supervisor, got {above or 'none'}"
        )
    elif above is not None and above not in records:
        text = f"expected its supervisor {above!r} to exist, there is no such agent"
        yield Violation(Invariant.SUPERVISOR, record.uuid, text)
    elif above is not None and record.living and _must_live(records[above]):
        text = f"expected the supervisor of a living agent to live, {above} is dead"
        yield Violation(Invariant.LIVING_SUPERVISOR, record.uuid, text)


def _must_live(record: AgentRecord) -> bool:
    """Return whether an agent violates an invariant if it supervises living agents.

    A dead agent does, unless its policy was to leave its children as orphans. A dead agent 0 violates another
    invariant.
    """
    return not record.living and record.parent_uuid is not None and record.on_orphan != OrphanPolicy.CONTINUE


def _hosts(hosts: list[CheckedHost]) -> Iterator[Violation]:
    current = _unshared(hosts)
    if len(current) > 1:
        listed = ", ".join(host.id for host in current)
        yield Violation(Invariant.HOST, None, f"expected at most one host that has not ended, got {listed}")
    highest = max((host.epoch for host in hosts if host.name is None), default=0)
    if len(current) == 1 and current[0].epoch < highest:
        text = f"expected host {current[0].id}, which has not ended, to have the highest epoch, {highest}; got "
        yield Violation(Invariant.EPOCH, None, f"{text}{current[0].epoch}")


def _unshared(hosts: list[CheckedHost]) -> list[CheckedHost]:
    """Return the hosts that have not ended and do not share agents. Of hosts that share agents, any number may live."""
    return [host for host in hosts if host.ended_at is None and host.name is None]


def _shards(
    records: Mapping[str, AgentRecord], hosts: list[CheckedHost], owners: Mapping[int, str | None]
) -> Iterator[Violation]:
    known = {host.id for host in hosts}
    current = [host.id for host in _unshared(hosts)]
    for shard, owner in sorted(owners.items()):
        if owner is not None and owner not in known:
            text = f"expected the host {owner!r} of shard {shard} to be known, there is no such host"
            yield Violation(Invariant.OWNER, None, text)
        elif len(current) == 1 and owner != current[0]:
            text = f"expected the host of shard {shard} to be {current[0]}, the one that has not ended; got "
            yield Violation(Invariant.OWNER, None, f"{text}{owner or 'none'}")
    for record in records.values():
        if record.living and record.shard not in owners:
            text = f"expected its shard {record.shard} to exist, there is no such shard"
            yield Violation(Invariant.OWNER, record.uuid, text)
