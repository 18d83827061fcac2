"""Interrupts: Ctrl-C and requests to end, raised only where they do no harm.

    interrupts = Interrupts().install()
    with interrupts.heard():        # KeyboardInterrupt, SystemExit
        line = input()

Elsewhere a signal is remembered, and raised in the next such block: so no write to the database is torn in two. While
an error unwinds a block, further signals are remembered, too: so the first one leaves cleanly. SIGINT
raises `KeyboardInterrupt`; SIGTERM and SIGHUP raise `SystemExit`, so that everything is closed on the way out. A
program that ends afterwards leaves the handlers where they are: a third Ctrl-C must not tear the closing.
"""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any, Self

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")


class Interrupts:
    """Handlers of this process's signals. Only the main thread uses them."""

    def __init__(self) -> None:
        self._pending = 0
        self._heard = False
        self._before: dict[int, Any] = {}

    def install(self) -> Self:
        """Handle the signals from now on."""
        for name in _NAMES:
            number = getattr(signal, name, None)  # SIGHUP is not everywhere
            if number is not None:
                self._before[number] = signal.signal(number, self._note)
        return self

    @property
    def pending(self) -> int:
        """The number of a signal that has come and was not raised yet; 0 for none."""
        return self._pending

    def remove(self) -> None:
        """Put back the handlers that were there before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextlib.contextmanager
    def heard(self) -> Iterator[None]:
        """Raise signals inside the block, those that came before it too."""
        before, self._heard = self._heard, True
        try:
            if self._pending:
                self._raise()
            yield
        finally:
            self._heard = before and self._heard

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._pending = max(self._pending, number)  # a SIGINT (2) does not replace a SIGTERM (15)
        if self._heard:
            self._raise()

    def _raise(self) -> None:
        number, self._pending, self._heard = self._pending, 0, False
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + number)
