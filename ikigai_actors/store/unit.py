"""Units: the writes that belong together. The journal commits a unit whole or not at all.

A unit names the agents whose rows are locked before it runs, and what it locks of the tree. It checks before it
writes: a refusal (an `IkigaiError`) leaves no trace and is an answer, not a failure. It is safe to run twice.

An agent's row counts its mail, so the counts are known when the row is locked. Units change the counts in memory, and
`LockedRows.settle` writes them, in one statement for all agents whose counts changed alike: a thousand mails to one
agent, or one mail to each of a thousand, are one update.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from copy import copy
from enum import IntEnum
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from ikigai_actors.errors import AgentDead, AgentNotFound
from ikigai_actors.store.asker import current_asker
from ikigai_actors.store.base import Row, Store, Transaction


class Locked(NamedTuple):
    """The row of an agent, as it was when it was locked."""

    uuid: str
    status: str
    owner: str | None
    epoch: int
    mailed: int = 0
    unread: int = 0
    budget: str | None = None
    held_at: int = 0
    held_tokens: int = 0
    held_usd: int = 0
    held_risk_tokens: int = 0
    held_risk_usd: int = 0
    held_host: str | None = None
    turn: int = 0
    """The id of the message that opened the turn in progress; 0 if the agent is idle."""
    head_hash: bytes | None = None
    """The hash of the latest message in the agent's log; None if there is none, or if no unit appends to the log."""


class Part(Protocol):
    """State that the units of one transaction share, in addition to the rows of agents."""

    def settle(self, tx: Transaction) -> None:
        """Write all changes, before COMMIT."""


P = TypeVar("P", bound=Part)


class RunAlone(Exception):
    """Raised by a unit that has written nothing and must run again, changed, in a transaction of its own."""

    def __init__(self, unit: "Unit") -> None:
        super().__init__(unit)
        self.unit = unit
        """The statement to run."""


class LockedRows(dict[str, Locked]):
    """Locked rows by uuid. An agent that does not exist has no entry."""

    def __init__(self, rows: Iterable[Row]) -> None:
        super().__init__([(row[0], Locked(*row)) for row in rows] if rows else ())
        self._before: dict[str, Locked] = {}
        self._parts: dict[type[Part], Part] = {}
        self.others: set[str] = set()
        """The agents, by uuid, that were changed though their rows are not locked."""
        self.posted = False
        """Whether somebody outside may have to hear of something: see `ikigai_actors.records.outbox.events`."""

    def lock(self, tx: Transaction, uuids: Iterable[str]) -> None:
        """Lock further rows, in one statement. For a unit that runs alone in its transaction."""
        if wanted := sorted(set(uuids) - self.keys()):
            self.update((row[0], Locked(*row)) for row in tx.run("lock_agents", uuids=wanted, writers=[]))

    def lock_dying(
        self, tx: Transaction, dying: Collection[str], kept: Collection[str], counting: Collection[str] | None = None
    ) -> None:
        """Lock the rows of agents that die and of agents that stay, all in one statement.

        Afterwards a dying agent has an entry only if it has a budget of its own or an open request. If nobody else can
        write, ``counting`` may name these agents, so that no other row is read.
        """
        if counting is not None and not tx.locks_rows:
            self.lock(tx, (*counting, *kept))
            return
        wanted = [uuid for uuid in dict.fromkeys((*dying, *kept)) if uuid not in self]
        self.update((row[0], Locked(*row)) for row in tx.run("lock_dying", uuids=wanted, kept=list(kept)))

    def existing(self, uuid: str) -> Locked:
        """Return the row of an agent. Raises `AgentNotFound`."""
        if (row := self.get(uuid)) is None:
            raise AgentNotFound(f"There is no agent {uuid}. See the list of agents.", uuid)
        return row

    def living(self, uuid: str, what: str = ". See who lives") -> Locked:
        """Return the row of a living agent.

        Raises `AgentNotFound`, or `AgentDead` with ``what`` at the end of its message.
        """
        row = self.existing(uuid)
        if row.status == "dead":
            raise AgentDead(f"Agent {uuid} is dead{what}.", uuid)
        return row

    def count(self, uuid: str, *, mailed: int = 0, unread: int = 0) -> Locked:
        """Add to the counts of an agent's mailbox; return the row with the new counts."""
        row = self[uuid]
        if uuid not in self._before:
            self._before[uuid] = row
        row = self[uuid] = row._replace(mailed=row.mailed + mailed, unread=row.unread + unread)
        return row

    def part(self, kind: type[P], make: Callable[[], P]) -> P:
        """Return the part of this kind, which the units of this transaction share. The first call makes it."""
        if (part := self._parts.get(kind)) is None:
            part = self._parts[kind] = make()
        assert isinstance(part, kind)
        return part

    def settle(self, tx: Transaction) -> None:
        """Write the changed counts and parts, before COMMIT."""
        for part in self._parts.values():
            part.settle(tx)
        alike = defaultdict[tuple[int, int], list[str]](list)
        for uuid, before in self._before.items():
            row = self[uuid]
            alike[row.mailed - before.mailed, row.unread - before.unread].append(uuid)
        for (mailed, unread), uuids in alike.items():
            tx.defer("count_mail", uuids=uuids, mailed=mailed, unread=unread)


class TreeLock(IntEnum):
    """The lock of a unit on the tree, before any agent's row."""

    NONE = 0
    """No lock: the unit moves no agent in the tree."""
    SHARED = 1
    """A shared lock: births may go on, all other changes of the tree wait."""
    WHOLE = 2
    """An exclusive lock: the one row of ``tree`` is updated; ``schema.sql`` says which changes need it."""


class Unit:
    """Writes that are committed together. A subclass overrides `write`, and the defaults that do not fit."""

    __slots__ = ()

    alone = False
    """Whether the unit needs a transaction of its own, as all changes of the tree do except births and names."""
    tree = TreeLock.NONE
    """The lock on the tree."""
    concerns_others = False
    """Whether the answer says what the unit did to agents other than its own; then the journal passes it to
    ``on_commit``.
    """
    concerns_hosts = False
    """Whether other hosts are notified at once, even if none of their agents is touched."""
    locks: tuple[str, ...] = ()
    """The names of the attributes that hold the agents whose rows are locked, each a uuid or None."""

    @property
    def touches(self) -> tuple[str, ...]:
        """Return the uuids of the agents whose rows are locked before the unit runs."""
        return tuple(uuid for name in self.locks if (uuid := getattr(self, name)) is not None)

    @property
    def writer(self) -> str | None:
        """Return the uuid of the agent to whose log the unit appends; None if it appends to none."""
        return None

    def look_ahead(self, tx: Transaction, locked: LockedRows, agents: Collection[str]) -> None:
        """Send queries in the same round trip as the lock of these agents' rows (`Transaction.ask`).

        By default none are sent.
        """
        return

    def write(self, tx: Transaction, locked: LockedRows) -> Any:
        """Check, then write; return the answer. Raises an `IkigaiError` to refuse, `RunAlone` to run again changed."""
        raise NotImplementedError  # no ABC: see `Addressed`


class Addressed(Unit):
    """A unit that names an agent by text; `look_up` finds the uuid before rows are locked.

    This is no ABC: `lock` calls `isinstance` with every unit, and an ABC would make that ten times slower.
    """

    __slots__ = ()

    def look_up(self, tx: Transaction) -> None:
        """Find the uuids that `touches` returns. Raises only a `StoreError`: `write` refuses an unknown name."""
        raise NotImplementedError  # no ABC: see above


class Around(Addressed):
    """A unit that runs another unit, its *act*, and does more in the same transaction."""

    __slots__ = ("_act", "alone", "concerns_hosts", "concerns_others", "tree")

    def __init__(self, act: Unit) -> None:
        self._act = act
        self.alone, self.tree = act.alone, act.tree
        self.concerns_others, self.concerns_hosts = act.concerns_others, act.concerns_hosts

    def around(self, act: Unit) -> Self:
        """Return the same unit with another act in place of its own."""
        again = copy(self)
        Around.__init__(again, act)
        return again

    def look_up(self, tx: Transaction) -> None:
        if isinstance(self._act, Addressed):
            self._act.look_up(tx)

    @property
    def touches(self) -> tuple[str, ...]:
        return self._act.touches

    @property
    def writer(self) -> str | None:
        return self._act.writer

    def look_ahead(self, tx: Transaction, locked: LockedRows, agents: Collection[str]) -> None:
        self._act.look_ahead(tx, locked, agents)


def lock(tx: Transaction, units: Sequence[Unit]) -> LockedRows:
    """Lock the rows that units need, in the order that all writers keep: first the tree, then the agents' rows."""
    kept = max([unit.tree for unit in units], default=TreeLock.NONE)
    if kept is TreeLock.WHOLE:
        tx.run("tree_change")
    elif kept is TreeLock.SHARED:
        tx.share_tree()
    for unit in units:
        if isinstance(unit, Addressed):
            unit.look_up(tx)
    uuids = sorted({uuid for unit in units for uuid in unit.touches})
    writers = [unit.writer for unit in units if unit.writer is not None]
    locked = LockedRows(())
    if uuids:
        rows = tx.ask("lock_agents", uuids=uuids, writers=writers)
        for unit in units:
            unit.look_ahead(tx, locked, uuids)
        for row in rows():
            locked[row[0]] = Locked(*row)
    return locked


def concerned(units: Iterable[Unit], locked: LockedRows) -> set[str] | None:
    """Return the uuids of the agents that units have changed, for notifications; None if any agent may have changed."""
    return None if any(unit.alone for unit in units) else locked.others | locked.keys()


def write_alone(store: Store, unit: Unit) -> Any:
    """Commit one unit, and return its answer. Only a process without a journal, which is no host, calls this.

    Raises the unit's refusal, the errors of `Store.write`, and `LooksOnly` where the asker may only look.
    """
    asker, act = current_asker(), unit
    if asker is not None:
        unit = asker.around(act)

    def work(tx: Transaction) -> Any:
        locked = lock(tx, (unit,))
        answer = unit.write(tx, locked)
        locked.settle(tx)
        tx.notify(concerned((unit,), locked))
        return answer

    while True:
        try:
            answer = store.write(work)
            break
        except RunAlone as alone:
            unit = alone.unit
    if asker is not None:
        asker.committed(act, answer)
    return answer
