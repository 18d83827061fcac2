"""The checks of fsck for statuses, deaths, signals and restarts."""

from collections.abc import Iterator, Mapping

from ikigai_actors.records.agents.registry import AgentRecord
from ikigai_actors.records.fsck.invariants import Invariant, Violation
from ikigai_actors.records.log.append import FIRST_EPOCH
from ikigai_actors.store.base import Transaction
from supervisors.children import RestartType
from supervisors.orphans import OrphanPolicy, ways
from supervisors.signals import Status
from supervisors.strategies import Strategy

_WORDS = {
    "status": frozenset(Status),
    "restart type": frozenset(RestartType),
    "strategy": frozenset(Strategy),
    "orphan policy": frozenset(OrphanPolicy),
}


def check_life(record: AgentRecord, records: Mapping[str, AgentRecord]) -> Iterator[Violation]:
    """Return the faults of the status or the death of an agent."""
    words = (record.status, record.restart, record.strategy, record.on_orphan)
    for (what, known), word in zip(_WORDS.items(), words, strict=True):
        if word not in known:
            text = f"expected its {what} to be one of {', '.join(sorted(known))}, got {word!r}"
            yield Violation(Invariant.STATUS, record.uuid, text)
    if record.epoch < FIRST_EPOCH:
        text = f"expected its epoch to be {FIRST_EPOCH} or more, got {record.epoch}"
        yield Violation(Invariant.EPOCH, record.uuid, text)
    if (record.status == Status.TERMINATING) != (record.deadline is not None):
        wanted = "a deadline, since it is terminating" if record.deadline is None else "no deadline"
        text = f"expected {wanted}; it is {record.status}, and its deadline is {record.deadline}"
        yield Violation(Invariant.DEADLINE, record.uuid, text)
    if record.pruned_at is not None and (record.living or record.unread):
        text = f"expected a pruned agent to be dead, with no unread mail; it is {record.status}, with {record.unread}"
        yield Violation(Invariant.PRUNED, record.uuid, text)
    for text in _wrong_with_living(record) if record.living else _wrong_with_dead(record, records):
        yield Violation(Invariant.DEATH, record.uuid, text)


def _wrong_with_living(record: AgentRecord) -> Iterator[str]:
    if record.ended_at is not None:
        yield f"expected no time of death, since it lives; got {record.ended_at}"
    if record.exit_cause is not None or record.exit_sender is not None:
        yield f"expected no cause of death, since it lives; got {record.exit_cause} by {record.exit_sender}"


def _wrong_with_dead(record: AgentRecord, records: Mapping[str, AgentRecord]) -> Iterator[str]:
    for what, value in (
        ("time of death", record.ended_at),
        ("cause", record.exit_cause),
        ("reason", record.exit_reason),
    ):
        if value is None:  # a reason may be empty: of an agent that exited without a result
            yield f"expected a dead agent to have a {what}, got none"
    if record.exit_sender is not None and record.exit_sender not in records:
        yield f"expected it to be ended by an agent or by a person, got {record.exit_sender!r}; there is no such agent"
    if record.turn:
        yield f"expected a dead agent to have no open turn, got one that began with message {record.turn}"


def check_awake(tx: Transaction) -> Iterator[Violation]:
    """Return a violation for each agent with open work whose wake mark is missing, and each dead agent that has a mark.

    A starting host looks at the marked agents only.
    """
    for agent, status, turn, held_at in tx.run("wrongly_asleep"):
        text = f"expected column awake to be 1, since it has an open turn ({turn}) or request ({held_at}); got 0"
        if status == Status.DEAD:
            text = "expected column awake of a dead agent to be 0, got 1"
        yield Violation(Invariant.AWAKE, agent, text)


def check_ways(tx: Transaction, records: Mapping[str, AgentRecord]) -> Iterator[Violation]:
    """Return a violation for each dead agent above a living one that lacks the mark by which searches pass it."""
    dead = {uuid: record for uuid, record in records.items() if not record.living}
    orphans = [
        record.uuid
        for record in records.values()
        if record.living
        and (above := dead.get(record.supervisor_uuid or ""))
        and above.on_orphan == OrphanPolicy.CONTINUE
    ]
    marked = {uuid for (uuid,) in tx.run("ways")}
    for uuid in sorted(
        ways(orphans, {record.uuid: record.supervisor_uuid for record in records.values()}, dead) - marked
    ):
        yield Violation(Invariant.WAY, uuid, "expected column way to be 1, since an agent below it lives; got 0")


def check_signals(tx: Transaction, records: Mapping[str, AgentRecord]) -> Iterator[Violation]:
    """Return the agents with gaps in the numbers of their signals, and the signals of unknown senders."""
    yield from _numbers(tx, "signal_numbers", Invariant.SIGNAL, records)
    for agent, number, sender in tx.run("signals_of_strangers"):
        text = f"expected signal {number} to be of an agent or of a person; it is of "
        yield Violation(Invariant.SIGNAL, agent, f"{text}{sender!r}, and there is no such agent")


def check_restarts(tx: Transaction, records: Mapping[str, AgentRecord]) -> Iterator[Violation]:
    """Return the agents with gaps in the numbers of their restarts, and the restarts by unknown supervisors."""
    yield from _numbers(tx, "restart_numbers", Invariant.RESTART, records)
    for agent, number, supervisor in tx.run("restarts_by_strangers"):
        text = f"expected restart {number} to be by an agent; it is by {supervisor!r}, and there is no such agent"
        yield Violation(Invariant.RESTART, agent, text)


def _numbers(
    tx: Transaction, query: str, invariant: Invariant, records: Mapping[str, AgentRecord]
) -> Iterator[Violation]:
    for agent, count, lowest, highest in tx.run(query):
        if agent not in records:
            text = f"expected it to exist, since it has a {invariant}; there is no such agent"
            yield Violation(invariant, agent, text)
        elif (lowest, highest) != (1, count) and records[agent].pruned_at is None:  # else a prune may have left some
            text = f"expected each {invariant} to be numbered, 1 to {count}; got {count} from {lowest} to {highest}"
            yield Violation(invariant, agent, text)
