"""The database of a system as other libraries use it: works of one transaction, from threads and from event loops."""

from collections.abc import Callable
from typing import TypeVar

from ikigai_actors.actors.futures import Future
from ikigai_actors.arguments import shown
from ikigai_actors.errors import BadInput
from ikigai_actors.store.base import Transaction
from ikigai_actors.system.aio import AsyncSystem
from ikigai_actors.system.handles.ref import System

T = TypeVar("T")


class GuestDatabase:
    """Reads and writes the database of an open system, beside its agents. The system closes it."""

    def __init__(self, system: System | AsyncSystem[System]) -> None:
        """Use the database of a system that runs agents, or is attached, of either face."""
        inner: object = system.sync if isinstance(system, AsyncSystem) else system
        if not isinstance(inner, System):
            raise BadInput(f"Expected system to be an open system; got {shown(inner)}.")
        self._store, self._beside = inner._store, inner._beside

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Read in one snapshot."""
        return self._store.read(work)

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Write in one transaction, and commit."""
        return self._store.write(work)

    def ask(self, call: Callable[[], T]) -> Future[T]:
        """Have a call that only reads made on another thread."""
        return self._beside.read(call)

    def ask_in_order(self, call: Callable[[], T]) -> Future[T]:
        """Have a call made on another thread after all that were asked for before. A cancelled wait leaves it."""
        done = Future[T]()
        self._beside.post(lambda: done.settle(call()), done)
        return done
