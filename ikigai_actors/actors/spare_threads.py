"""Reusable threads for other people's code. A new thread costs more than a short call.

A call never waits for a thread: if no thread is idle, a new one is started. So a call that never returns keeps no other
call waiting. An idle thread ends after a while.
"""

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from ikigai_actors.actors.threads import Queue, Threads

SPARE_FOR = 10.0
"""Seconds that a thread waits for a further call."""

_Call = tuple[Callable[[], object], str]


class SpareThreads:
    """Runs each call on a thread that runs no other call meanwhile, and reuses idle threads. Thread-safe."""

    def __init__(self, threads: Threads, spare_for: float = SPARE_FOR) -> None:
        self._threads, self._spare_for = threads, spare_for
        self._spare: deque[Queue[_Call | None]] = deque()
        self._closed = False

    @property
    def count(self) -> int:
        """Return the number of idle threads."""
        return len(self._spare)

    def run(self, call: Callable[[], Any], name: str) -> None:
        """Run a call on a thread, which has this name during the call. The call must not raise."""
        try:
            waiting = self._spare.pop()  # the last one: the others may end
        except IndexError:
            waiting = self._threads.queue()
            self._threads.thread(partial(self._serve, waiting), name).start()
        waiting.put((call, name))  # by the queue, the first one too: what starts a thread is held as long as it lives

    def close(self) -> None:
        """Let idle threads end now, and busy threads after their calls."""
        self._closed = True
        while self._spare:
            with contextlib.suppress(IndexError):  # another thread takes it
                self._spare.pop().put(None)

    def _serve(self, calls: Queue[_Call | None]) -> None:
        job, thread = calls.get(), threading.current_thread()
        while job is not None:
            (call, thread.name), job = job, None
            call()
            del call  # what it refers to
            self._spare.append(calls)
            if self._closed:
                self.close()
            try:
                job = calls.get(timeout=self._spare_for)
            except queue.Empty:
                try:
                    self._spare.remove(calls)
                except ValueError:  # a call is on its way
                    job = calls.get()
