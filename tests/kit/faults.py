"""Stores that fail when a test has planned it; for the rest they are the real store that they wrap."""

import threading
from collections import deque
from collections.abc import Callable, Collection
from typing import TypeVar

from ikigai_actors.errors import CommitUnknown, StoreError, StoreUnavailable
from ikigai_actors.store import Store, Transaction
from ikigai_actors.store.forwarding import ForwardingStore
from tests.kit.databases import DEADLINE

T = TypeVar("T")


class _RolledBack(Exception):
    """Ends a transaction whose COMMIT never arrives."""


class SlowToRead(ForwardingStore):
    """A store that keeps logs from being read while a test says so."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self._may_read = threading.Event()
        self._may_read.set()
        self.waiting = 0
        """Reads that have been kept waiting."""

    def hold(self, until: threading.Event) -> None:
        """Read no log until this is set."""
        self._may_read = until

    def read(self, work: Callable[[Transaction], T]) -> T:
        if threading.current_thread().name == "ikigai-reader":
            self.waiting += not self._may_read.is_set()
            assert self._may_read.wait(DEADLINE)
        return super().read(work)


class FaultyStore(ForwardingStore):
    """A `Store` whose next transactions go wrong as planned: each plan serves one transaction that writes."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self._plans: deque[StoreError | str] = deque()
        self.before: Callable[[], None] = lambda: None
        """Called before each transaction that writes."""
        self.unreadable: Exception | None = None
        """What every read fails with, if anything; what is no `IkigaiError` is a defect of ours."""
        self.unreadable_by = ""
        """The name of the one thread whose reads fail with it; empty when those of all do."""
        self.refused = 0
        """Reads that failed."""
        self.writes = 0
        """Transactions that were to be written."""
        self.checkpoints = 0
        """How often the database's file was brought up to date."""
        self.rings_fail: Exception | None = None
        """What every ring fails with, if anything."""

    def fails(self, *errors: StoreError) -> None:
        """The next transactions fail before they begin."""
        self._plans.extend(errors)

    def breaks_during_commit(self, *, committed: bool) -> None:
        """The next transaction's connection breaks during COMMIT, after the server heard it or before."""
        self._plans.append("committed" if committed else "rolled back")

    def works(self) -> None:
        """The next transaction is written as it should be."""
        self._plans.append("works")

    def recovers(self) -> None:
        """Whatever else was planned does not happen."""
        self._plans.clear()

    def read(self, work: Callable[[Transaction], T]) -> T:
        """See `Store.read`."""
        if self.unreadable is not None and self.unreadable_by in ("", threading.current_thread().name):
            self.refused += 1
            raise self.unreadable
        return self._store.read(work)

    def write(self, work: Callable[[Transaction], T]) -> T:
        """See `Store.write`."""
        self.writes += 1
        self.before()
        match self._plans.popleft() if self._plans else "works":
            case StoreError() as error:
                raise error
            case "committed":
                self._store.write(work)
                raise CommitUnknown("The connection broke during COMMIT, as planned.")
            case "rolled back":
                self._roll_back(work)
                raise CommitUnknown("The connection broke during COMMIT, as planned.")
            case _:
                return self._store.write(work)

    def ring(self, agents: Collection[str] | None = None, *, hosts: bool = False) -> None:
        """See `Store.ring`."""
        if self.rings_fail is not None:
            raise self.rings_fail
        self._store.ring(agents, hosts=hosts)

    def checkpoint(self) -> None:
        """See `Store.checkpoint`."""
        self.checkpoints += 1
        self._store.checkpoint()

    def _roll_back(self, work: Callable[[Transaction], object]) -> None:
        def rolled_back(tx: Transaction) -> None:
            work(tx)
            raise _RolledBack

        try:
            self._store.write(rolled_back)
        except _RolledBack:
            return


class Ending(ForwardingStore):
    """A `Store` in which, after so many commits, nothing is committed any more: as at the end of the process."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.left = 1_000_000
        """Commits that are still to come; below 0 when one was refused."""

    def write(self, work: Callable[[Transaction], T]) -> T:
        """See `Store.write`."""
        self.left -= 1
        if self.left < 0:
            raise StoreUnavailable("The process has ended, as planned.")
        return self._store.write(work)


class Overtaken(ForwardingStore):
    """A `Store` of which a reader learns something, and it is true no more: something happens in between."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.meanwhile: Callable[[object], None] | None = None
        """Called once, with what the next read gives, before the reader has it."""

    def read(self, work: Callable[[Transaction], T]) -> T:
        """See `Store.read`."""
        answer = self._store.read(work)
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile(answer)
        return answer


class HeldStore(ForwardingStore):
    """A `Store` that holds a transaction before its COMMIT, with all its locks, until it is let go."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self._armed = threading.Event()
        self._go = threading.Event()
        self.held = threading.Event()
        """A transaction is held."""
        self.tried = threading.Event()
        """A transaction has begun, or waits to."""
        self.runs = 0
        """How often work that writes was run: more often than it was given means that it was run again."""
        self.separated: list[HeldStore] = []
        """The stores that `separate` made of this one."""

    def hold(self) -> None:
        """Hold the next transaction."""
        self.tried.clear()
        self.held.clear()
        self._go.clear()
        self._armed.set()

    def let_go(self) -> None:
        """Let it commit."""
        self._armed.clear()
        self._go.set()

    def write(self, work: Callable[[Transaction], T]) -> T:
        """See `Store.write`."""

        def held(tx: Transaction) -> T:
            self.runs += 1
            result = work(tx)
            if self._armed.is_set():
                self.held.set()
                assert self._go.wait(DEADLINE)
            return result

        self.tried.set()
        return self._store.write(held)

    def separate(self) -> Store:
        """See `Store.separate`."""
        self.separated.append(HeldStore(self._store.separate()))
        return self.separated[-1]
