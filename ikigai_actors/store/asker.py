"""The asker: the request for which this thread commits units. It decides what is committed, below every verb.

    with acting_for(LOOKER):
        agent.context()         # reads as ever
        agent.kill()            # raises `LooksOnly`: nothing was written

No verb knows its asker, so no list of verbs that only look can be wrong. Work that another thread carries out keeps
its asker (`for_asker`). What is written for an asker with a principal names that: the data of messages and mail as
``principal``, the rows of signals, documents and rules in a column.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from ikigai_actors.errors import LooksOnly


class Asker(Protocol):
    """A request."""

    principal: str | None = None
    """The id of the principal that asks; None where nobody is known."""

    def check_write(self) -> None:
        """Raise `LooksOnly` unless the request may change something."""

    def around(self, unit: Any) -> Any:
        """The `Unit` that is committed in place of this one. Raises as `check_write` does."""

    def committed(self, unit: Any, answer: Any) -> None:
        """Hear what a unit that was given to `around` has answered."""


class _Looker(Asker):
    """A request that may only look."""

    def check_write(self) -> None:
        raise LooksOnly("This changes something, and only looking is allowed here.")

    def around(self, unit: Any) -> Any:
        self.check_write()
        return unit

    def committed(self, unit: Any, answer: Any) -> None:
        """Never called."""


LOOKER: Asker = _Looker()

_asker: ContextVar[Asker | None] = ContextVar("asker", default=None)


@contextmanager
def acting_for(asker: Asker | None) -> Iterator[None]:
    """Within the block this thread works for a request; None is for nobody's."""
    token = _asker.set(asker)
    try:
        yield
    finally:
        _asker.reset(token)


def current_asker() -> Asker | None:
    """The request for which this thread works; None when it works for none."""
    return _asker.get()


def current_principal() -> str | None:
    """The principal for which this thread works, by its id; None where nobody is known."""
    return None if (asker := _asker.get()) is None else asker.principal


def check_write() -> None:
    """Raise `LooksOnly` where this thread works for a request that may only look."""
    if (asker := _asker.get()) is not None:
        asker.check_write()


def for_asker(work: Callable[[], object]) -> Callable[[], object]:
    """The work, done for the asker of now, whichever thread does it."""
    asker = _asker.get()

    def run() -> object:
        with acting_for(asker):
            return work()

    return run
