"""Sessions that stop before every statement and before COMMIT, and the seed that lets one of them go on."""

import random
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ikigai_actors.store.base import Row, SchemaTransaction, Store, T, Transaction
from ikigai_actors.store.forwarding import ForwardingStore
from tests.kit.databases import DEADLINE, Admin

COMMIT = "COMMIT"

POLL = 0.001
"""Seconds between two looks at who waits for a lock."""

Lock = tuple[str, str]
"""What is locked, and how: ``("tree", "whole")``, ``("tree", "shared")``, or ``("row", uuid)``."""

_WAITING = b"""
    SELECT application_name FROM pg_stat_activity
    WHERE application_name = ANY(%s) AND cardinality(pg_blocking_pids(pid)) > 0
"""


class Crash(Exception):
    """A session ends at a gate, within its transaction."""


class Scheduler:
    """Lets one session go on at a time, and looks whether those wait that must."""

    def __init__(self, seed: int, admin: Admin, names: Sequence[str], rows: frozenset[str], crashes: float) -> None:
        """Make one.

        Args:
            seed: chooses who goes on, and where a session ends.
            admin: asks the server who waits.
            names: of the sessions, which their connections have.
            rows: the uuids of the agents that are there from the beginning.
            crashes: how likely a session ends at a gate.
        """
        self._random, self._admin, self._names, self._rows = random.Random(seed), admin, list(names), rows
        self._crashes = crashes
        self._changed = threading.Condition()
        self._gates: dict[str, str] = {}
        self._running = set(names)
        self._go: str | None = None
        self._dooms = False
        self._held: dict[str, set[Lock]] = {name: set() for name in names}
        self._asked: dict[str, set[Lock]] = {}
        self.trace: list[str] = []
        """What was let go, in order."""
        self.waits = 0
        """How often a session was seen waiting for a lock."""
        self.missing: list[str] = []
        """Waits that the locks demand, and that did not come."""

    def gate(self, name: str, what: str, locks: set[Lock]) -> None:
        """Stop a session until it may go on. Raises `Crash` when it is to end here."""
        with self._changed:
            self._running.discard(name)
            self._gates[name] = what
            self._held[name] |= self._asked.pop(name, set())
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self._go == name, DEADLINE), f"{name} was forgotten at {what}"
            self._go = None
            del self._gates[name]
            self._running.add(name)
            self._changed.notify_all()
            if self._dooms:
                raise Crash
            self._asked[name] = locks

    def over(self, name: str) -> None:
        """A transaction of a session is over, whatever came of it."""
        with self._changed:
            self._held[name], self._asked[name] = set(), set()

    def ended(self, name: str) -> None:
        """A session has no more units."""
        with self._changed:
            self._running.discard(name)
            self._names.remove(name)
            self._changed.notify_all()

    def run(self) -> None:
        """Let the sessions go on until all have ended."""
        while self._names:
            with self._changed:
                self._settle()
                if not self._names:
                    return
                name = self._random.choice(sorted(self._gates))
                self._dooms = self._random.random() < self._crashes
                self.trace.append(f"{name} {self._gates[name]}{' and ends' if self._dooms else ''}")
                self._go = name
                self._changed.notify_all()
                assert self._changed.wait_for(lambda: self._go is None, DEADLINE)

    def _settle(self) -> None:
        """Wait until each session is at a gate, has ended, or was seen twice waiting for a lock."""
        seen: set[str] = set()
        while True:
            if self._changed.wait_for(lambda: not self._running, POLL):
                break
            waiting = self._waiting() & self._running
            if self._gates and waiting >= self._running and seen >= self._running:
                self.waits += len(waiting)
                break
            seen = waiting
        for name in self._gates.keys() & set(self._names):
            self._check(name)

    def _check(self, name: str) -> None:
        """Whether a session that got through its latest statement had no reason to wait."""
        for lock in self._held[name]:
            for other, held in self._held.items():
                if other != name and any(_conflict(lock, one) for one in held):
                    self.missing.append(f"{name} has {lock} while {other} has it")

    def _waiting(self) -> set[str]:
        self._changed.release()
        try:
            return {row[0] for row in self._admin.execute(_WAITING, (list(self._names),)).fetchall()}
        finally:
            self._changed.acquire()

    def locks_of(self, query: str, given: Mapping[str, Any]) -> set[Lock]:
        """What a statement locks, as far as it is not a matter of keys."""
        match query:
            case "tree_change":
                return {("tree", "whole")}
            case "lock_agents" | "lock_dying":
                return {("row", uuid) for uuid in given["uuids"] if uuid in self._rows}
        return set()


def _conflict(one: Lock, other: Lock) -> bool:
    if one[0] == "tree" == other[0]:
        return "whole" in (one[1], other[1])
    return one == other


class GatedStore(ForwardingStore):
    """A store whose transactions stop before every statement, and before COMMIT."""

    def __init__(self, store: Store, name: str, scheduler: Scheduler, committing: Callable[[], object]) -> None:
        """Gate a store for a session; ``committing`` is called when a transaction is about to commit."""
        super().__init__(store)
        self._name, self._scheduler, self._committing = name, scheduler, committing

    def write(self, work: Callable[[Transaction], T]) -> T:
        def gated(tx: Transaction) -> T:
            result = work(_Gated(tx, self._name, self._scheduler))
            self._scheduler.gate(self._name, COMMIT, set())
            self._committing()
            return result

        try:
            return super().write(gated)
        finally:
            self._scheduler.over(self._name)


class _Gated(Transaction):
    """A transaction that stops before every statement."""

    def __init__(self, tx: Transaction, name: str, scheduler: Scheduler) -> None:
        self._tx, self._name, self._scheduler = tx, name, scheduler

    @property
    def schema(self) -> SchemaTransaction:
        return self._tx.schema

    def run(self, query: str, **parameters: Any) -> list[Row]:
        self._scheduler.gate(self._name, query, self._scheduler.locks_of(query, parameters))
        rows = self._tx.run(query, **parameters)
        self._send()
        return rows

    def ask(self, query: str, **parameters: Any) -> Callable[[], list[Row]]:
        rows = self.run(query, **parameters)
        return lambda: rows

    def require(self, query: str, otherwise: Callable[[Transaction], Exception], **parameters: Any) -> None:
        self._scheduler.gate(self._name, query, self._scheduler.locks_of(query, parameters))
        self._tx.require(query, otherwise, **parameters)

    @property
    def locks_rows(self) -> bool:
        return self._tx.locks_rows

    def share_tree(self) -> None:
        self._scheduler.gate(self._name, "share_tree", {("tree", "shared")})
        self._tx.share_tree()
        self._send()

    def defer(self, query: str, **parameters: Any) -> None:
        self._tx.defer(query, **parameters)

    def append(self, rows: Sequence[Row], table: str = "messages") -> None:
        self._tx.append(rows, table)

    def notify(self, agents: Any = None) -> None:
        self._tx.notify(agents)

    def end_stalled(self, host: str, before: int) -> None:
        self._tx.end_stalled(host, before)

    def hold(self, host: str) -> None:
        self._tx.hold(host)

    def held(self, hosts: Sequence[str]) -> set[str]:
        return self._tx.held(hosts)

    def is_hosted(self) -> bool:
        return self._tx.is_hosted()

    def _send(self) -> None:
        """Let no statement wait for the next one: whatever comes between two trips comes between two statements."""
        self._tx.schema.execute("SELECT 1")
