"""Locks: the agents whose rows a transaction holds, and what its units count for them.

An agent's row counts its mail, so the counts are known when the row is locked. Units go on counting in memory, and
`Locks.settle` writes what has changed, in one statement for all agents whose counts changed alike: a thousand mails to
one agent, or one mail to each of a thousand, are one update.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from ikigai_actors.store.base import Row, Transaction


class Locked(NamedTuple):
    """What the lock of an agent's row tells."""

    uuid: str
    status: str
    owner: str | None
    epoch: int
    mailed: int = 0
    unread: int = 0


class Locks(dict[str, Locked]):
    """Locked rows by uuid. An agent that does not exist is not among them."""

    def __init__(self, rows: Iterable[Row]) -> None:
        super().__init__({row[0]: Locked._make(row) for row in rows})
        self._before: dict[str, Locked] = {}

    def take(self, tx: Transaction, uuids: Iterable[str]) -> None:
        """Lock further rows, all in one statement; for a unit that has its transaction for itself."""
        if wanted := sorted(set(uuids) - self.keys()):
            self.update((row[0], Locked(*row)) for row in tx.run("lock_agents", uuids=wanted))

    def count(self, uuid: str, *, mailed: int = 0, unread: int = 0) -> Locked:
        """Add to the counts of an agent's mailbox; return its row as it is then."""
        row = self[uuid]
        if uuid not in self._before:
            self._before[uuid] = row
        _, status, owner, epoch, had, waited = row
        row = self[uuid] = Locked(uuid, status, owner, epoch, had + mailed, waited + unread)
        return row

    def settle(self, tx: Transaction) -> None:
        """Write what was counted, before COMMIT."""
        alike = defaultdict[tuple[int, int], list[str]](list)
        for uuid, before in self._before.items():
            row = self[uuid]
            alike[row.mailed - before.mailed, row.unread - before.unread].append(uuid)
        for (mailed, unread), uuids in alike.items():
            tx.defer("count_mail", uuids=uuids, mailed=mailed, unread=unread)
