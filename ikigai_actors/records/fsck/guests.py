"""The checks of fsck for the data of other libraries."""

from collections.abc import Iterator, Mapping

from ikigai_actors.records.fsck.invariants import Invariant, Violation
from ikigai_actors.records.guests import GuestLog
from ikigai_actors.store.base import Transaction


def check_guests(tx: Transaction) -> Iterator[Violation]:
    """Return the faults in the logs of other libraries."""
    logs = {log.id: log for log in map(GuestLog._make, tx.run("every_guest_log"))}
    begun = {log.parent for log in logs.values()}
    for log in logs.values():
        if log.name is None and log.id not in begun:
            yield _violation(log.id, "a name, or another log that begins with it")
        if (wrong := _wrong_with_beginning(log, logs)) is not None:
            yield _violation(log.id, wrong)
    for uuid, first, last in tx.run("guest_spans"):
        if uuid not in logs:
            yield _violation(uuid, "a row, since it has entries")
        elif first <= logs[uuid].upto or last > logs[uuid].head:
            numbers = f"{logs[uuid].upto + 1} to {logs[uuid].head}"
            yield _violation(uuid, f"entries numbered {numbers}; they go from {first} to {last}")


def _wrong_with_beginning(log: GuestLog, logs: Mapping[str, GuestLog]) -> str | None:
    if log.parent is None:
        return None if log.upto == 0 else "a parent, since it begins with entries of one"
    parent = logs.get(log.parent)
    if parent is None:
        return "a parent that exists"
    if not parent.upto < log.upto <= parent.head:
        return f"a beginning within its parent's own entries, {parent.upto + 1} to {parent.head}; it is {log.upto}"
    return None


def _violation(uuid: str, expected: str) -> Violation:
    return Violation(Invariant.GUEST, None, f"expected guest log {uuid} to have {expected}")
