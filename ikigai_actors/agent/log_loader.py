"""Reads logs for the agents that need theirs, on one thread.

It reads all that wait at once, so a few queries serve a thousand agents.
"""

import logging
from collections import deque
from collections.abc import Callable, Sequence

from ikigai_actors.actors.futures import forbid_blocking
from ikigai_actors.actors.service import Service
from ikigai_actors.actors.threads import SYSTEM_THREADS, Threads
from ikigai_actors.errors import IkigaiError, StoreError
from ikigai_actors.records.log import Log
from ikigai_actors.records.log_cache import LogCache

logger = logging.getLogger(__name__)

_AT_ONCE = 1_000
"""The most logs that are read together."""

_Done = Callable[[Log | IkigaiError], None]
"""Takes the log, or the error; on the reader's thread, so it only posts."""


class LogLoader(Service):
    """The thread that reads logs from the store, for actors that ask."""

    def __init__(self, log_cache: LogCache, threads: Threads = SYSTEM_THREADS) -> None:
        super().__init__("ikigai-reader", threads)
        self._log_cache = log_cache
        self._wanted: deque[tuple[str, _Done]] = deque()
        self.start()

    def read(self, uuid: str, done: _Done) -> None:
        """Read an agent's log, soon; never waits."""
        with self._changed:
            if not self._stopped:
                self._wanted.append((uuid, done))
                self._changed.notify()

    def run(self) -> None:
        """Read until it is stopped; requests behind the batch in progress then get no answer."""
        forbid_blocking("the thread that reads logs")
        while self.awaits(lambda: self._wanted):
            self._answer([self._wanted.popleft() for _ in range(min(len(self._wanted), _AT_ONCE))])

    def _answer(self, batch: list[tuple[str, _Done]]) -> None:
        logs: Sequence[Log | IkigaiError]
        try:
            logs = self._log_cache.load_many([uuid for uuid, _ in batch])
        except IkigaiError as error:
            logs = [error] * len(batch)
        except Exception as error:  # a defect of ours: who waits must hear of it
            logger.exception("Logs could not be read")
            logs = [StoreError(f"The log could not be read: {error!r}")] * len(batch)
        for (_, done), log in zip(batch, logs, strict=True):
            done(log)
