"""The asker: the request on whose behalf this thread commits units.

The store checks read-only requests, so that no verb has to.

    with acting_for(LOOKER):
        agent.context()         # reads as usual
        agent.kill()            # raises `LooksOnly`: nothing was written

Verbs do not know their asker, so there is no list of read-only verbs that could be wrong. Work that another thread
carries out keeps its asker (`for_asker`). If the asker has a principal, every row that is written on its behalf names
the principal: messages and mail in their data, signals, documents and rules in a column.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from ikigai_actors.errors import LooksOnly


class Asker(Protocol):
    """A request to the system, on whose behalf units are committed."""

    principal: str | None = None
    """The id of the principal that sent the request; None if unknown."""

    def check_write(self) -> None:
        """Raise `LooksOnly` if the request may only read."""

    def around(self, unit: Any) -> Any:
        """Return the `Unit` to commit in place of this one. Raises `LooksOnly` if the request may only read."""

    def committed(self, unit: Any, answer: Any) -> None:
        """Receive the answer of a unit after its commit. `around` was called with that unit before."""


class _Looker(Asker):
    def check_write(self) -> None:
        raise LooksOnly("This changes something, and only looking is allowed here.")

    def around(self, unit: Any) -> Any:
        self.check_write()
        return unit

    def committed(self, unit: Any, answer: Any) -> None:
        """Do nothing: a read-only request commits no units."""


LOOKER: Asker = _Looker()

_asker: ContextVar[Asker | None] = ContextVar("asker", default=None)


@contextmanager
def acting_for(asker: Asker | None) -> Iterator[None]:
    """Within the block, attribute everything that this thread commits to the given request; None for no request."""
    token = _asker.set(asker)
    try:
        yield
    finally:
        _asker.reset(token)


def current_asker() -> Asker | None:
    """Return the request on whose behalf this thread works; None for none."""
    return _asker.get()


def current_principal() -> str | None:
    """Return the id of the principal on whose behalf this thread works; None if unknown."""
    return None if (asker := _asker.get()) is None else asker.principal


def check_write() -> None:
    """Raise `LooksOnly` if this thread works for a read-only request."""
    if (asker := _asker.get()) is not None:
        asker.check_write()


def for_asker(work: Callable[[], object]) -> Callable[[], object]:
    """Return a function that does the same work on behalf of this thread's request, whichever thread calls it."""
    asker = _asker.get()

    def run() -> object:
        with acting_for(asker):
            return work()

    return run
