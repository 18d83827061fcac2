"""Who commits the units of handles: the journal of a host; or, in a process that runs no agents, `Direct`."""

from collections.abc import Callable
from typing import Any, Protocol

from ikigai_actors.actors.futures import refuse_to_block
from ikigai_actors.arguments import check_timeout
from ikigai_actors.errors import IkigaiError
from ikigai_actors.store.base import Store
from ikigai_actors.store.unit import Unit, write_alone
from ikigai_actors.store.verdicts import Committed, Done, Refused


class Writer(Protocol):
    """Commits units. See `Journal`."""

    def submit(self, unit: Unit, done: Done) -> None:
        """Commit a unit; ``done`` takes the verdict."""

    def perform(self, unit: Unit, timeout: float | None = None) -> Any:
        """Commit a unit and return its answer."""


class Direct:
    """Commits each unit at once, in a transaction of its own, on the thread of the caller."""

    def __init__(self, store: Store, on_commit: Callable[[Any], object] = lambda answer: None) -> None:
        """Write into a store; ``on_commit`` takes the answer of each unit that concerns others. See `Journal`."""
        self._store, self._on_commit = store, on_commit

    def submit(self, unit: Unit, done: Done) -> None:
        """See `Writer.submit`."""
        try:
            answer = self._write(unit)
        except IkigaiError as error:
            done(Refused(error))
        else:
            done(Committed(answer))

    def perform(self, unit: Unit, timeout: float | None = None) -> Any:
        """See `Writer.perform`. The database has a time-out of its own."""
        refuse_to_block()
        check_timeout(timeout)
        return self._write(unit)

    def _write(self, unit: Unit) -> Any:
        answer = write_alone(self._store, unit)
        if unit.concerns_others:
            self._on_commit(answer)
        return answer
