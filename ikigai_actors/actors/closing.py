"""Closing: the steps by which a part of a system releases its resources.

    closing = Closing(threads, lambda: [("the journal", journal.close), ("the store", store.close)])
    closing.run()       # raises the first error, when all the others had their turn
    closing.run()       # tries again what had failed, and nothing else

    class Feed(ClosedByBlock):  # `with Feed() as feed:` closes it at the end of the block
        def close(self) -> None: ...

Each step is carried out, even if another one raises.
"""

import logging
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from ikigai_actors.text import described

if TYPE_CHECKING:
    from ikigai_actors.actors.threads import Threads  # imports asyncio: who only reads events does without

logger = logging.getLogger(__name__)

ClosingStep = tuple[str, Callable[[], object]]
"""The name of a part, for errors, and the function that closes it."""

_thread = threading.local()


def declare_waited_for() -> None:
    """Declare that closing a system waits for the calling thread. So this thread must not wait for a close."""
    _thread.waited_for = True


def is_waited_for() -> bool:
    """Return whether closing a system waits for the calling thread (`declare_waited_for`)."""
    return getattr(_thread, "waited_for", False)


class ClosedByBlock:
    """A base class whose objects are closed at the end of a ``with`` block."""

    @abstractmethod
    def close(self) -> None:
        """Give back all resources that this object holds. A second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class Closing:
    """The steps that close one object, in order. Any thread may call `run`; one at a time carries out the steps."""

    def __init__(self, threads: "Threads", steps: Callable[[], Iterable[ClosingStep]]) -> None:
        self._steps = steps
        self._left: list[ClosingStep] | None = None
        self._changed = threads.condition()
        self._runs: int | None = None  # the thread that does

    def run(self) -> None:
        """Carry out the remaining steps.

        If another thread is carrying them out, this waits for it, unless that thread waits for this one.

        Raises:
            BaseException: the first error of a step; one that is no `Exception` (Ctrl-C) before others. The rest are in
                its notes, and in the log.
        """
        if not self._begin():
            return
        try:
            if self._left is None:
                self._left = list(self._steps())
            errors = carry_out(self._left)
        finally:
            self._end()
        raise_first(errors)

    def _begin(self) -> bool:
        """Claim the steps for the calling thread; return whether it must carry them out."""
        me = threading.get_ident()
        with self._changed:
            if self._runs == me or (self._runs is not None and is_waited_for()):  # a signal's handler; a subscriber
                return False
            self._changed.wait_for(lambda: self._runs is None)
            self._runs = me
        return True

    def _end(self) -> None:
        with self._changed:
            self._runs = None
            self._changed.notify_all()


def carry_out(steps: list[ClosingStep]) -> list[BaseException]:
    """Try every step; return the errors. Steps that raised stay in the list, all others are removed."""
    errors: list[BaseException] = []
    failed: list[ClosingStep] = []
    for step in steps:
        try:
            step[1]()
        except BaseException as error:  # whatever it is, the others are closed
            error.add_note(f"This came up when {step[0]} was to be closed.")
            errors.append(error)
            failed.append(step)
    steps[:] = failed
    return errors


def raise_first(errors: Sequence[BaseException]) -> None:
    """Raise the first error, preferably one that is no `Exception`; log the others and add them to it as notes."""
    if not errors:
        return
    first = next((error for error in errors if not isinstance(error, Exception)), errors[0])
    for other in errors:
        if other is not first:
            logger.error("There was another error when all was closed", exc_info=other)
            first.add_note(f"There was another one: {described(other)}")
    raise first


def note_failure(close: Callable[[], object], error: BaseException | None) -> None:
    """Call ``close`` after an error. If it fails too, log that failure and add it to the error as a note."""
    try:
        close()
    except Exception as failure:
        logger.exception("Not all could be closed")
        if error is not None:
            error.add_note(f"Then not all could be closed: {described(failure)}")
