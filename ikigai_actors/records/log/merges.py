"""Merges of agents: which agent has merged which other one, up to which head. Table ``merges``.

    looked at   the child is read: its head, its messages since the last merge, its branch's documents (`look_at_child`)
    written     under the locks of both agents' rows, if the child's head is unchanged and none of its turns is open:
                the row, whose primary key admits one merge of a head; the message in the parent's log (`add_merge`)

So each head of a child is merged once, whichever process asks for it, and the merge has the child's history up to
exactly that head. A crash leaves both the row and the message, or neither.
"""

from ikigai_actors.errors import AgentNotFound, AlreadyMerged, HeadMoved, NotBelow, TurnOpen
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.log.diff import merge_base, read_tail
from ikigai_actors.records.log.heads import heads_of
from ikigai_actors.records.log.lineage import read_lineage
from ikigai_actors.records.log.merge_source import MergeEntry, MergeSource, WrittenVersion, merged_documents
from ikigai_actors.records.log.stored_history import StoredHistory
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import LockedRows
from supervisors.causes import Cause


def look_at_child(tx: Transaction, into: str, child: str) -> MergeSource:
    """Read the data that a merge of an agent needs.

    Args:
        into: the agent that merges, by uuid.
        child: the other one, by uuid, name or unique prefix; dead or alive.

    Raises:
        AgentNotFound, AmbiguousAgent: no agent, or several agents, have this name or prefix.
        NotBelow: the agent is neither a descendant of the merging agent, nor supervised by it or by an agent below.
        HistoryError: rows of a history are wrong.
    """
    record = registry.find(tx, child)
    lineage = read_lineage(tx, record.uuid, whole=True)
    above = {ancestor.uuid for ancestor in lineage[1:]} | {row[0] for row in tx.run("supervisors_of", uuid=record.uuid)}
    if into not in above | {lineage[-1].parent_uuid} or into == record.uuid:
        name = registry.shown_name(tx, record)
        wrong = "cannot merge itself" if into == record.uuid else f"is not below {registry.shown_name_of(tx, into)}"
        raise NotBelow(f"Agent {name} {wrong}: an agent merges those that it has forked or supervises.", record.uuid)
    own = read_lineage(tx, into, whole=True)
    history = StoredHistory(tx, lineage)
    base = merge_base(own, StoredHistory(tx, own).head, lineage, history.head)
    tail = read_tail(tx, record.uuid, history, base.common)
    [latest, *_] = tx.run("latest_merge", into=into, child=record.uuid) or [(0, 0)]
    merged, at = latest
    since = at or record.created_at
    written = (
        WrittenVersion(path, version, time, bool(own)) for path, version, time, own in _written(tx, record, since)
    )
    return MergeSource(
        record.uuid,
        record.name,
        tail.head,
        base.common,
        merged,
        record.living and bool(record.turn),
        (record.exit_reason or "") if record.exit_cause == Cause.EXITED else "",
        tail.messages,
        merged_documents(written, since),
    )


def add_merge(tx: Transaction, locked: LockedRows, into: str, entry: MergeEntry) -> None:
    """Write the row of a merge, under the locks of both agents; the message follows in the same transaction.

    Raises:
        AgentNotFound: there is no such child.
        TurnOpen: a turn of the child is open.
        HeadMoved: the child has written since it was looked at.
        AlreadyMerged: this head of it was merged before.
    """
    heads = heads_of(tx, [entry.child]) if entry.child in locked else []
    if not heads:
        raise AgentNotFound(f"There is no agent {entry.child}.", entry.child)
    [child] = heads
    if child.status != "dead" and child.turn:
        raise turn_open(entry.child)
    if child.position != entry.head:
        raise head_moved(entry.child, entry.head, child.position)
    key = {"into": into, "child": entry.child, "head": entry.head}
    if not tx.run("add_merge", **key, message=entry.message, now=entry.created_at):
        raise already_merged(entry.child)


def already_merged(child: str) -> AlreadyMerged:
    """Return the error that a child has written nothing since its last merge."""
    return AlreadyMerged(f"Agent {child} was merged already, and has said nothing since.", child)


def head_moved(child: str, head: int, now: int) -> HeadMoved:
    """Return the error that a child has written since its data were read. ``now`` is its present head."""
    moved = f"Agent {child} has gone on, from message {head} to {now}, while it was merged."
    return HeadMoved(f"{moved} Nothing was changed: merge it again.", child)


def turn_open(child: str) -> TurnOpen:
    """Return the error that a child is in a turn."""
    return TurnOpen(f"A turn of agent {child} is open: merge it when that is over.", child)


def _written(tx: Transaction, record: AgentRecord, since: int) -> list[tuple[str, int, int, int]]:
    return [(row[0], row[1], row[2], row[3]) for row in tx.run("written_since", uuid=record.uuid, since=since)]
