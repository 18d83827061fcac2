"""Verifies that the histories of a database are as they were written, and fit a checkpoint. Reads only."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

from ikigai_actors.records.agents import registry
from ikigai_actors.records.log.lineage import read_lineage
from ikigai_actors.records.messages.blobs import read_blobs
from ikigai_actors.records.proof.chain_check import ChainCheck, LogStart, Problem, messages_of_all, starts_of
from ikigai_actors.store.base import Row, Transaction

_AT_ONCE = 2_000
"""Messages that are read together."""


class HashedHead(NamedTuple):
    """The position and the hash of a log's latest message, as a checkpoint has them."""

    position: int
    hash: bytes


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of a verification."""

    agents: int
    """The number of agents whose logs were checked."""
    messages: int
    pruned: int
    """The number of pruned agents, which have no messages."""
    problems: tuple[Problem, ...]
    """The places at which a log is not as it was written; empty when every hash fits."""
    omitted: int = 0
    """The number of placeholders for messages that were left out of a file. Only the hashes of these are known."""


def verify_histories(
    tx: Transaction, agent: str | None = None, since: Mapping[str, HashedHead] | None = None
) -> Verified:
    """Compare the hashes of logs with their messages, and with a checkpoint.

    Args:
        tx: a transaction, whose snapshot is checked.
        agent: the uuid of the agent whose history is checked, with its inherited part; None for all logs.
        since: the heads of a checkpoint. Each must be in the log of its agent, with the same hash.

    Raises:
        AgentNotFound, HistoryPruned: there is no such agent, or its messages were pruned.
        HistoryError: its lineage is damaged.
    """
    if agent is not None:
        return _verify_history(tx, agent, since or {})
    records = registry.every(tx)
    check = ChainCheck(starts_of(records), [(uuid, head.position) for uuid, head in (since or {}).items()])
    problems = [problem for row in messages_of_all(tx) for problem in check.read(row)]
    problems += [*check.conclude(), *check.attachments_missed(_stored(tx, check.attached))]
    pruned = {record.uuid for record in records if record.pruned_at is not None}
    if since:
        problems += heads_missed(check, since, pruned, dict(tx.run("pruned_hashes")))
    return Verified(len(records) - len(pruned), check.messages, len(pruned), _once(problems), check.omitted)


def _verify_history(tx: Transaction, uuid: str, since: Mapping[str, HashedHead]) -> Verified:
    """Verify an agent's history: its own log, and the inherited parts of its ancestors' logs."""
    starts: dict[str, LogStart] = {}
    ends: dict[str, int] = {}
    bound = 2**63 - 1
    for ancestor in read_lineage(tx, uuid, whole=True):
        if ancestor.fork_message_id < bound or ancestor.uuid == uuid:
            starts[ancestor.uuid], ends[ancestor.uuid] = LogStart(ancestor.parent_uuid, ancestor.fork_message_id), bound
            bound = ancestor.fork_message_id
    for record in registry.some(tx, list(starts)):
        if record.grafted:
            starts[record.uuid] = LogStart(None, record.fork_message_id, outside=True)
    heads = {log: head for log, head in since.items() if log in starts and head.position <= ends[log]}
    check = ChainCheck(starts, [(log, head.position) for log, head in heads.items()])
    problems = [problem for row in _history(tx, starts, ends) for problem in check.read(row)]
    problems += [*check.conclude(), *check.attachments_missed(_stored(tx, check.attached))]
    problems += heads_missed(check, heads, set(), {})
    return Verified(1, check.messages, 0, _once(problems), check.omitted)


def _stored(tx: Transaction, names: Iterable[str]) -> Iterator[str]:
    """Compute the hash of each attachment from its bytes, reading one attachment at a time."""
    for name in names:
        for data in read_blobs(tx, [name]).values():
            yield sha256(data).hexdigest()


def _history(tx: Transaction, starts: Mapping[str, LogStart], ends: Mapping[str, int]) -> Iterator[Row]:
    for uuid in reversed(list(starts)):
        position = starts[uuid].fork
        while rows := tx.run("hashed_section", uuid=uuid, start=position, end=min(position + _AT_ONCE, ends[uuid])):
            yield from rows
            position = rows[-1][1]


def heads_missed(
    check: ChainCheck, since: Mapping[str, HashedHead], pruned: set[str], last: Mapping[str, bytes]
) -> Iterator[Problem]:
    """Return a problem for each head of a checkpoint that the logs do not have with the same hash.

    Args:
        check: the finished check, which has stored the hashes at these heads.
        since: the heads.
        pruned: the agents whose messages were deleted.
        last: the hashes of the pruned agents' latest messages, as far as they are known.
    """
    for uuid, head in sorted(since.items()):
        if uuid in pruned:
            if last.get(uuid) != head.hash:
                yield Problem("pruned, and the checkpoint has another last message", uuid, head.position)
        elif (stored := check.kept.get((uuid, head.position))) is not None:
            if stored != head.hash:
                yield Problem("another history than the checkpoint", uuid, head.position)
        elif check.heads.get(uuid, 0) < head.position:
            yield Problem("shorter than the checkpoint", uuid, head.position)


def _once(problems: list[Problem]) -> tuple[Problem, ...]:
    """Return the problems without repetitions, since several agents may inherit a missing message."""
    return tuple(dict.fromkeys(problems))
