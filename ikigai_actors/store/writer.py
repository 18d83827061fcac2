"""Writers, which commit units: a host's journal; or `DirectWriter`, in a process that runs no agents."""

from collections.abc import Callable
from typing import Any, Protocol

from ikigai_actors.actors.futures import Future, may_block, refuse_to_block
from ikigai_actors.errors import IkigaiError
from ikigai_actors.store.unit import Unit


class Writer(Protocol):
    """An object that commits units."""

    def ask(
        self,
        unit: Unit,
        make: Callable[[Any], Any] | None = None,
        *,
        timeout: float | None = None,
        waits: bool = False,
    ) -> Future[Any]:
        """Commit a unit; never waits for that.

        Args:
            make: turns the unit's answer into the value of the future; None uses the answer itself.
            timeout: seconds for which the future can be waited for; None waits without limit.
            waits: whether the caller blocks until the commit: then a journal waits for room in its queue first, and a
                thread that must not block is refused.

        Returns:
            A future of the value, available after the commit; or of the refusal or failure, as an exception.
        """

    def perform(self, unit: Unit, timeout: float | None = None) -> Any:
        """Commit a unit and return its answer. A journal waits for room in its queue first.

        Args:
            timeout: seconds to wait; None waits forever.

        Raises:
            BadInput: the timeout is no number of seconds.
            TimedOut: room or commit did not come in time; the unit may still be committed.
            WouldDeadlock: this is a thread of the runtime.
            IkigaiError: the refusal, or the failure.
        """
        return self.ask(unit, timeout=timeout, waits=True).get()


class DirectWriter(Writer):
    """Commits each unit at once, each in its own transaction: on the thread of the caller, if that thread may block."""

    def __init__(
        self, write: Callable[[Unit], Any], post: Callable[[Callable[[], object], Future[Any]], object]
    ) -> None:
        """Make a writer from its parts.

        Args:
            write: commits a unit and returns its answer, or raises its refusal or failure.
            post: runs a function beside the event loop of the caller; an exception settles the future.
        """
        self._write, self._post = write, post

    def ask(
        self,
        unit: Unit,
        make: Callable[[Any], Any] | None = None,
        *,
        timeout: float | None = None,
        waits: bool = False,
    ) -> Future[Any]:
        asked = Future(make=make, timeout=timeout)
        if waits:
            refuse_to_block()
        if not waits and not may_block():
            self._post(lambda: asked.settle(self._write(unit)), asked)
            return asked
        try:
            asked.settle(self._write(unit))  # the database has a time-out of its own
        except IkigaiError as error:
            asked.settle(error)
        return asked
