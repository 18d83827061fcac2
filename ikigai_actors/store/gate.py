"""The gate before a store: handles read and write through it.

So a closed system always raises the same error, and a request that may only look writes nothing
(`ikigai_actors.store.asker`). Parts of a system that still work while it closes use the store without the gate.
"""

from collections.abc import Callable

from ikigai_actors.errors import StoreError
from ikigai_actors.store.asker import check_write
from ikigai_actors.store.base import Store, T, Transaction
from ikigai_actors.store.forwarding import ForwardingStore


class Gate(ForwardingStore):
    """A store that calls a check before each call, and passes on the error that the check raises."""

    def __init__(self, store: Store, check: Callable[[], None]) -> None:
        super().__init__(store)
        self._check = check

    def write(self, work: Callable[[Transaction], T]) -> T:
        check_write()
        return super().write(work)

    def separate(self) -> Store:
        return Gate(super().separate(), self._check)

    def _use(self, call: Callable[[], T]) -> T:
        self._check()
        try:
            return call()
        except StoreError:
            self._check()  # it was closed in the meantime
            raise
