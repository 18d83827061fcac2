"""Sessions that stop before every statement and before COMMIT, and the seed that lets one of them go on."""

import random
import threading
from collections.abc import Mapping, Sequence
from typing import Any

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
            self._asked[name] = {lock for lock in locks if lock[0] == "tree" or lock[1] in self._rows}

    def again(self, name: str) -> None:
        """A transaction runs again, since the server has ended it; our locks let no two wait for each other."""
        self.over(name)
        self.missing.append(f"{name} ran again: transactions waited for each other")

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
                if other != name and any(_conflict(lock, waiter) for waiter in held):
                    self.missing.append(f"{name} has {lock} while {other} has it")

    def _waiting(self) -> set[str]:
        self._changed.release()
        try:
            return {row[0] for row in self._admin.execute(_WAITING, (list(self._names),)).fetchall()}
        finally:
            self._changed.acquire()


def locks_of(query: str, parameters: Mapping[str, Any]) -> set[Lock]:
    """What a statement locks, as far as it is not a matter of keys."""
    match query:
        case "tree_change":
            return {("tree", "whole")}
        case "lock_agents" | "lock_dying":
            return {("row", uuid) for uuid in parameters["uuids"]}
    return set()


def _conflict(lock: Lock, other: Lock) -> bool:
    if lock[0] == "tree" == other[0]:
        return "whole" in (lock[1], other[1])
    return lock == other
