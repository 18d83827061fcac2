"""`ForwardingStore`: a store that passes its calls on to another store, as a base for stores that change some calls."""

from collections.abc import Callable, Collection

from ikigai_actors.store.base import Store, T, Transaction, Watch


class ForwardingStore(Store):
    """Passes every call on to another store. A subclass overrides single calls, or `_use` for most of them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.location, self.leases = store.location, store.leases

    def _use(self, call: Callable[[], T]) -> T:
        """Carry out a call of the inner store. All calls except `abandon` and `close` go through this."""
        return call()

    def read(self, work: Callable[[Transaction], T]) -> T:
        return self._use(lambda: self._store.read(work))

    def write(self, work: Callable[[Transaction], T]) -> T:
        return self._use(lambda: self._store.write(work))

    def listen(self, hear: Callable[[int], object]) -> None:
        self._store.listen(hear)

    def checkpoint(self) -> None:
        self._use(self._store.checkpoint)

    def shrink(self, whole: bool = False) -> bool:
        return self._use(lambda: self._store.shrink(whole))

    def introduce(self, host: str) -> None:
        self._use(lambda: self._store.introduce(host))

    def reserve(self) -> None:
        self._use(self._store.reserve)

    def lock(self) -> Callable[[], object]:
        return self._use(self._store.lock)

    def ring(self, agents: Collection[str] | None = None, *, hosts: bool = False) -> None:
        self._use(lambda: self._store.ring(agents, hosts=hosts))

    def separate(self) -> Store:
        return self._use(self._store.separate)

    def watch(self, *, hosts: bool = False) -> Watch:
        return self._use(lambda: self._store.watch(hosts=hosts))

    def abandon(self, why: str) -> None:
        self._store.abandon(why)

    def close(self) -> None:
        self._store.close()
