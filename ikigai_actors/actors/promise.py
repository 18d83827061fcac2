"""A value that is set once, and for which threads can wait: the light core of a future.

A ``concurrent.futures.Future`` makes a condition and two locks before anybody waits, which was half of the cost of an
`ask`. A promise makes one lock, and a waiter makes its own. States: open → settled (a value or an exception) or, only
if it ``may_cancel``, open → cancelled. Callbacks run once, on the thread that ends the wait, in the order in which they
were added; one that is added later runs at once.
"""

import logging
from collections.abc import Callable
from concurrent.futures import CancelledError, InvalidStateError
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")

logger = logging.getLogger(__name__)

_OPEN, _SET, _CANCELLED = range(3)


class Promise(Generic[T]):
    """A value that is set later, once. `Threads.result` waits for it."""

    __slots__ = ("_callbacks", "_error", "_lock", "_may_cancel", "_state", "_value")

    _value: T

    def __init__(self, may_cancel: bool = False) -> None:
        self._lock = Lock()
        self._state = _OPEN
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Promise[T]], object]] | None = None
        self._may_cancel = may_cancel

    def done(self) -> bool:
        """Return whether the promise is settled or cancelled."""
        return self._state != _OPEN

    def cancelled(self) -> bool:
        """Return whether the promise was cancelled."""
        return self._state == _CANCELLED

    def cancel(self) -> bool:
        """Cancel the promise, if it is open and may be cancelled; return whether the promise is cancelled now."""
        if self._may_cancel and self._end(_CANCELLED):
            self._call_back()
        return self._state == _CANCELLED

    def set_result(self, value: T) -> None:
        """Settle the promise with a value. Raises `InvalidStateError` if it is settled or cancelled."""
        if not self._end(_SET, value):
            raise InvalidStateError(f"{self!r} is done.")
        if self._callbacks is not None:
            self._call_back()

    def set_exception(self, error: BaseException) -> None:
        """Settle the promise with an exception. Raises `InvalidStateError` if it is settled or cancelled."""
        if not self._end(_SET, error=error):
            raise InvalidStateError(f"{self!r} is done.")
        self._call_back()

    def exception(self) -> BaseException | None:
        """Return the exception of a settled promise; None if it has a value.

        Raises:
            CancelledError: it was cancelled.
        """
        if self._state == _CANCELLED:
            raise CancelledError
        return self._error

    def result(self, timeout: float | None = None) -> T:
        """Wait for the value and return it, or raise the exception that came instead.

        Args:
            timeout: seconds to wait; None waits forever.

        Raises:
            TimeoutError: it is still open after that time.
            CancelledError: it was cancelled.
        """
        if self._state == _OPEN:
            self._wait(timeout)
        if self._state == _CANCELLED:
            raise CancelledError
        if self._error is None:
            return self._value
        try:
            raise self._error
        finally:
            self = None  # type: ignore[assignment]  # else the traceback keeps the promise, which keeps the traceback

    def add_done_callback(self, callback: "Callable[[Promise[T]], object]") -> None:
        """Call ``callback`` with this promise once it is done; at once if it is done already.

        Exceptions of it are logged.
        """
        with self._lock:
            if self._state == _OPEN:
                if self._callbacks is None:
                    self._callbacks = []
                self._callbacks.append(callback)
                return
        self._attempt(callback)

    def _wait(self, timeout: float | None) -> None:
        woken = Lock()
        woken.acquire()

        def wake(promise: object) -> None:
            woken.release()

        self.add_done_callback(wake)
        if not woken.acquire(timeout=-1 if timeout is None else max(timeout, 0)):
            with self._lock:
                if self._callbacks is not None and wake in self._callbacks:
                    self._callbacks.remove(wake)  # else a wait in many short parts would leave one for each
            if self._state == _OPEN:
                raise TimeoutError

    def _end(self, state: int, value: T | None = None, error: BaseException | None = None) -> bool:
        with self._lock:
            if self._state != _OPEN:
                return False
            self._value, self._error = value, error  # type: ignore[assignment]  # None beside an error, or where T has it
            self._state = state
            return True

    def _call_back(self) -> None:
        callbacks, self._callbacks = self._callbacks, None
        for callback in callbacks or ():
            self._attempt(callback)

    def _attempt(self, callback: "Callable[[Promise[T]], object]") -> None:
        try:
            callback(self)
        except Exception:
            logger.exception("A callback of %r failed", self)
