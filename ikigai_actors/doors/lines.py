"""Standard input and output as lines of a protocol.

Lines are read from the first moment, on a thread of its own, so the end of the input is noticed whatever else takes
long. Standard output belongs to the protocol: other output goes to standard error from then on.
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import Any

LONGEST_MESSAGE = 32 * 1024 * 1024
"""The most bytes of a line. A longer one is skipped, and refused."""

UNTAKEN = 256
"""The most lines that are read ahead. A client that sends faster must wait."""

_CHUNK = 1 << 16


class LineSplitter:
    """Splits the bytes of an input into lines. Pure."""

    def __init__(self, longest: int = LONGEST_MESSAGE) -> None:
        self._longest = longest
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> Iterator[bytes | None]:
        """Return the lines that are complete with these bytes, without blank ones.

        None for each line that is too long.
        """
        *complete, rest = data.split(b"\n")
        for piece in complete:
            self._add(piece)
            line = None if self._size > self._longest else b"".join(self._parts)
            self._parts, self._size = [], 0
            if line is None or line.strip():
                yield line
        self._add(rest)

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        self._parts = [] if self._size > self._longest else [*self._parts, piece] if piece else self._parts


class StandardLines:
    """The lines of standard input and output of this process."""

    def __init__(self) -> None:
        """Use standard output for the protocol, and begin to read."""
        sys.stdout.flush()
        self._out = os.dup(1)
        os.dup2(2, 1)
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        self._slots = Semaphore(UNTAKEN)
        self.waiting = 0
        """The approximate number of bytes that the client has not read yet."""
        self._writer = Thread(target=self._write, name="ikigai-lines-out", daemon=True)
        self._writer.start()

    def read(self, receive: Callable[[bytes | None], object], end: Callable[[], object]) -> None:
        """Pass each line to ``receive`` on the running event loop; None for a line that is too long.

        ``end`` is called when the input ends.
        """
        loop = asyncio.get_running_loop()

        def taken(line: bytes | None) -> None:
            self._slots.release()
            receive(line)

        def run() -> None:
            splitter = LineSplitter()
            with suppress(OSError, RuntimeError):  # the loop has ended
                while data := os.read(0, _CHUNK):
                    for line in splitter.feed(data):
                        self._slots.acquire()
                        loop.call_soon_threadsafe(taken, line)
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(end)

        Thread(target=run, name="ikigai-lines-in", daemon=True).start()

    def write(self, message: Mapping[str, Any]) -> None:
        """Write a message as a line to standard output. Never waits."""
        line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        self.waiting += len(line)
        self._queue.put(line)

    def flush(self, timeout: float) -> None:
        """Wait until all messages are written, at most ``timeout`` seconds."""
        self._queue.put(None)
        self._writer.join(timeout)

    def _write(self) -> None:
        while (line := self._queue.get()) is not None:
            left = memoryview(line)
            with suppress(OSError):  # nobody reads any more: the end of the input comes next
                while left:
                    left = left[os.write(self._out, left) :]
            self.waiting -= len(line)
