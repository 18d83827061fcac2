"""Reads logs for the agents that need theirs, on one thread.

The thread reads all requested logs together, so a few queries serve a thousand agents.
"""

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from ikigai_actors.actors.futures import forbid_blocking
from ikigai_actors.actors.service import Service
from ikigai_actors.actors.threads import SYSTEM_THREADS, Threads
from ikigai_actors.errors import IkigaiError, StoreError
from ikigai_actors.records.log.log import Log
from ikigai_actors.records.log.log_cache import LogCache

logger = logging.getLogger(__name__)

T = TypeVar("T")

_AT_ONCE = 1_000
"""The most logs that are read together."""

_Done = Callable[[Log | IkigaiError], None]
"""Takes the log, or the error; on the reader's thread, so it only posts."""


class LogLoader(Service):
    """The thread that reads logs from the store, for actors that ask."""

    def __init__(self, log_cache: LogCache, threads: Threads = SYSTEM_THREADS) -> None:
        super().__init__("ikigai-reader", threads)
        self._log_cache = log_cache
        self._wanted: deque[tuple[str, _Done, bool]] = deque()
        self._looks: deque[Callable[[], None]] = deque()

    def read(self, uuid: str, done: _Done, whole: bool = False) -> None:
        """Request the log of an agent. The function ``done`` gets the log or the error. Never waits.

        ``whole``: including the messages that a summary replaces.
        """
        with self._changed:
            if not self._stopped:
                self._wanted.append((uuid, done, whole))
                self._changed.notify()

    def look_up(self, work: Callable[[LogCache], T], done: Callable[[T | IkigaiError], None]) -> None:
        """Request a lookup in the store. Never waits.

        Args:
            work: does the lookup.
            done: takes the result or the error of ``work``, on the reader's thread. It must not block.
        """
        with self._changed:
            if not self._stopped:
                self._looks.append(lambda: done(_result_of(lambda: work(self._log_cache))))
                self._changed.notify()

    def run(self) -> None:
        """Read logs until the service is stopped. Requests after the batch in progress then get no answer."""
        forbid_blocking("the thread that reads logs")
        while self.awaits(lambda: self._wanted or self._looks):
            while self._looks:
                self._looks.popleft()()
            self._answer([self._wanted.popleft() for _ in range(min(len(self._wanted), _AT_ONCE))])

    def _answer(self, batch: list[tuple[str, _Done, bool]]) -> None:
        for whole in (False, True):
            wanted = [(uuid, done) for uuid, done, entirely in batch if entirely is whole]
            uuids = [uuid for uuid, _ in wanted]
            result = _result_of(partial(self._log_cache.load_many, uuids, whole=whole)) if uuids else []
            logs = [result] * len(uuids) if isinstance(result, IkigaiError) else result
            for (_, done), log in zip(wanted, logs, strict=True):
                done(log)


def _result_of(work: Callable[[], T]) -> T | IkigaiError:
    try:
        return work()
    except IkigaiError as error:
        return error
    except Exception as error:  # a defect of ours: who waits must hear of it
        logger.exception("Logs could not be read")
        return StoreError(f"The log could not be read: {error!r}")
