"""The gate before a store: handles read and write through it, so that a closed system always raises the same error.

The parts of a system that still work while it closes have the store itself.
"""

from collections.abc import Callable, Collection

from ikigai_actors.errors import StoreError
from ikigai_actors.store.base import Store, T, Transaction, Watch


class Gate(Store):
    """A store that checks before each call whether it may be used."""

    def __init__(self, store: Store, check: Callable[[], None]) -> None:
        """Put a check before a store; the check raises `SystemClosed` once the system is closed."""
        self._store, self._check = store, check
        self.location, self.leases = store.location, store.leases

    def read(self, work: Callable[[Transaction], T]) -> T:
        return self._while_open(lambda: self._store.read(work))

    def write(self, work: Callable[[Transaction], T]) -> T:
        return self._while_open(lambda: self._store.write(work))

    def checkpoint(self) -> None:
        self._while_open(self._store.checkpoint)

    def introduce(self, host: str) -> None:
        self._while_open(lambda: self._store.introduce(host))

    def ring(self, agents: Collection[str] | None = None, *, hosts: bool = False) -> None:
        self._while_open(lambda: self._store.ring(agents, hosts=hosts))

    def separate(self) -> Store:
        return Gate(self._while_open(self._store.separate), self._check)

    def watch(self, *, hosts: bool = False) -> Watch:
        return self._while_open(lambda: self._store.watch(hosts=hosts))

    def abandon(self, why: str) -> None:
        self._store.abandon(why)

    def close(self) -> None:
        self._store.close()

    def _while_open(self, use: Callable[[], T]) -> T:
        self._check()
        try:
            return use()
        except StoreError:
            self._check()  # it was closed in the meantime
            raise
