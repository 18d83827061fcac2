"""Interrupts: Ctrl-C and requests to end, raised only where they do no harm.

    interrupts = Interrupts().install()
    with interrupts.heard():        # KeyboardInterrupt, SystemExit
        line = input()

Elsewhere a signal is remembered, and raised in the next such block: so no write to the database is torn in two. While
an error unwinds a block, further signals are remembered, too: so the first one leaves cleanly. SIGINT
raises `KeyboardInterrupt`; SIGTERM and SIGHUP raise `SystemExit`, so that everything is closed on the way out. A
program that ends afterwards leaves the handlers where they are: a third Ctrl-C must not tear the closing.

A handler runs wherever the main thread is, so the error can rise in a callback of the garbage collector, at the end
of an object or in the callback of a weak reference. Python reports it there to `sys.unraisablehook`, and goes on with
the block. Such a signal is sent again once the hook is over: else it would be lost, and later ones only remembered.
"""

import _thread
import contextlib
import signal
import sys
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any, Self

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")

_PAUSE = 0.01
"""Seconds before a lost signal is sent again."""


class Interrupts:
    """Handlers of this process's signals. Only the main thread uses them."""

    def __init__(self) -> None:
        self._pending = 0
        self._heard = False
        self._raised: tuple[int, BaseException] | None = None  # what unwinds a block
        self._before: dict[int, Any] = {}
        self._hook_before = sys.unraisablehook
        self._hook = self._note_lost

    def install(self) -> Self:
        """Handle the signals from now on."""
        self._hook_before, sys.unraisablehook = sys.unraisablehook, self._hook
        for name in _NAMES:
            number = getattr(signal, name, None)  # SIGHUP is not everywhere
            if number is not None:
                self._before[number] = signal.signal(number, self._note)
        return self

    @property
    def pending(self) -> int:
        """Return the number of a signal that has arrived and was not raised yet; 0 if there is none."""
        return self._pending

    def remove(self) -> None:
        """Restore the former signal handlers, and forget signals that were not raised."""
        self._pending = 0
        if sys.unraisablehook is self._hook:
            sys.unraisablehook = self._hook_before
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextlib.contextmanager
    def heard(self) -> Iterator[None]:
        """Raise signals as exceptions inside the block, including signals that arrived before it."""
        before, self._heard = self._heard, True
        try:
            if self._pending:
                self._raise()
            yield
        finally:
            self._heard, self._raised = before and self._heard, None

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._pending = max(self._pending, number)  # a SIGINT (2) does not replace a SIGTERM (15)
        if self._heard:
            self._raise()

    def _raise(self) -> None:
        number, self._pending, self._heard = self._pending, 0, False
        error = KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)
        self._raised = number, error
        raise error

    def _note_lost(self, unraisable: "sys.UnraisableHookArgs") -> None:
        if self._raised is None or unraisable.exc_value is not self._raised[1]:
            self._hook_before(unraisable)
            return
        self._pending = max(self._pending, self._raised[0])
        self._raised = None
        with contextlib.suppress(RuntimeError):  # no thread can be started: the next signal raises it
            _thread.start_new_thread(self._send_again, (_thread.get_ident(),))
        self._heard = True  # comes last: what is raised in this hook is lost for good

    def _send_again(self, main_thread: int) -> None:
        """Send the signal until the main thread has raised it. Runs on a separate thread.

        A single signal could arrive just before the main thread sleeps; Python would handle it only after the sleep.
        `threading.Thread` would need a lock that the main thread may hold when the callback runs.
        """
        time.sleep(_PAUSE)
        while number := self._pending:
            if self._heard:
                signal.pthread_kill(main_thread, number)
            time.sleep(_PAUSE)
