"""The watchdog of an event loop: logs the line of code that blocks the loop, and so everything that runs on it.

    watchdog = LoopWatchdog(loop, thread, clock)
    end = threads.repeat(SAMPLE_EVERY, watchdog.sample, "ikigai-watchdog")

A sample (`LoopWatchdog.sample`) takes the stack of the loop's thread. Each callback of a loop runs in a frame of its
own. So the same frame in two samples is one callback that has not returned in between, and a loop that is busy with
many short callbacks is never blamed. Nothing is measured on the loop itself. A test takes the samples itself, by its
own clock.

A line is logged once, even if it blocks the loop several times. Code in C that keeps the interpreter's lock delays the
samples, too, and is not found.
"""

import asyncio
import gc
import linecache
import logging
import sys
import sysconfig
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from ikigai_actors.actors.clock import Clock

logger = logging.getLogger(__name__)

SAMPLE_EVERY = 0.25
"""Seconds between two samples of the loop's stack."""

HOLD = 1.0
"""Seconds that one callback may run before a warning is logged."""

_CALLBACK = asyncio.Handle._run.__code__
_OURS = str(Path(__file__).parents[1])
_INSTALLED = ("site-packages", "dist-packages")
_STANDARD = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))


class CodeLine(NamedTuple):
    """A line of code that is running on the loop's thread."""

    file: str
    number: int
    function: str

    def __str__(self) -> str:
        source = linecache.getline(self.file, self.number).strip()
        return f"{self.file}:{self.number} in {self.function}{f': {source}' if source else ''}"


class LoopWatchdog:
    """Finds the code that blocks one event loop. One thread at a time calls `sample`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, thread: threading.Thread, clock: Clock) -> None:
        self._loop, self._thread, self._clock = loop, thread, clock
        self._callback: FrameType | None = None
        self._since = 0.0
        self._named: set[CodeLine] = set()

    def sample(self) -> None:
        """Log a warning if one line of code, not named before, has kept the loop busy for the last second."""
        stack = self._stack()
        callback, now = _callback_of(stack), self._clock.monotonic()
        if callback is not self._callback:
            self._callback, self._since = callback, now
        if callback is None or now - self._since < HOLD:
            return
        line = culprit(_lines(stack, callback))
        if line not in self._named:
            self._named.add(line)
            logger.warning(
                "%s has held the event loop for more than a second at %s. Meanwhile no model answers and no async "
                "tool goes on, for any agent. Await instead, or let a thread wait: await asyncio.to_thread(...).",
                self._task(),
                line,
            )

    def holder(self) -> str:
        """Return the code that runs on the loop now, with its place; empty while the loop waits."""
        stack = self._stack()
        callback = _callback_of(stack)
        return "" if callback is None else f"{self._task()} at {culprit(_lines(stack, callback))}"

    def _stack(self) -> FrameType | None:
        # This holds a lock of the interpreter while it allocates. A collection that begins in it may free something
        # that wants the same lock, such as a threading.local: then no thread of the process goes on (CPython 3.11).
        collects = gc.isenabled()
        gc.disable()
        try:
            return sys._current_frames().get(self._thread.ident or 0)
        finally:
            if collects:
                gc.enable()

    def _task(self) -> str:
        task = asyncio.current_task(self._loop)
        return "A callback" if task is None else task.get_name()


def culprit(lines: Sequence[CodeLine]) -> CodeLine:
    """Return the running line to blame for a blocked loop. The lines are given innermost first.

    The innermost line of the user's own code is to blame; else that of an installed library; else the innermost of all.
    """
    others = [line for line in lines if not line.file.startswith((_OURS, "<frozen ")) and not _is_standard(line)]
    own = [line for line in others if not any(part in line.file for part in _INSTALLED)]
    return next(iter((*own, *others, *lines)))


def _is_standard(line: CodeLine) -> bool:
    return line.file.startswith(_STANDARD) and not any(part in line.file for part in _INSTALLED)


def _callback_of(stack: FrameType | None) -> FrameType | None:
    """Return the frame in which the loop runs a callback; None while the loop waits for one."""
    while stack is not None and stack.f_code is not _CALLBACK:
        stack = stack.f_back
    return stack


def _lines(stack: FrameType | None, callback: FrameType) -> list[CodeLine]:
    """Return the lines of code that run within a callback, the innermost first, and the line of the callback itself."""
    lines = []
    while stack is not None:
        lines.append(CodeLine(stack.f_code.co_filename, stack.f_lineno, stack.f_code.co_name))
        if stack is callback:
            break
        stack = stack.f_back
    return lines
