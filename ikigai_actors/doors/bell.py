"""A bell: wakes who waits on an event loop when something was committed."""

import asyncio
from contextlib import suppress


class NewsBell:
    """Of one event loop; any thread may ring it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Wake all who wait."""
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._ring)

    def _ring(self) -> None:
        self._rung.set()
        self._rung = asyncio.Event()

    @property
    def next(self) -> asyncio.Event:
        """Is set when the bell rings the next time."""
        return self._rung
