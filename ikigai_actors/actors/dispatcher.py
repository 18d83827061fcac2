"""The dispatcher with threads: a few workers run the inboxes of many actors.

    dispatcher = ThreadDispatcher(2)
    ref = MyActor.start(dispatcher)

Actors that have something to do wait in one list, first come, first served. One that has used up its quantum goes to
the end of it, so a busy actor never starves another. Nothing may block on a worker: a wait there is refused with
`WouldDeadlock`.
"""

import logging
import queue
import threading

from ikigai_actors.actors.actor import Dispatcher, PooledActor
from ikigai_actors.actors.futures import forbid_blocking

logger = logging.getLogger(__name__)


class ThreadDispatcher(Dispatcher):
    """A dispatcher with threads: N workers take actors from one ready list."""

    def __init__(self, count: int = 2) -> None:
        """Start ``count`` workers. More than two gain nothing while one lock guards the interpreter."""
        self._ready: queue.SimpleQueue[PooledActor | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._run, name=f"ikigai-worker-{number}", daemon=True) for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def schedule(self, actor: PooledActor) -> None:
        self._ready.put(actor)

    @property
    def ready(self) -> int:
        return self._ready.qsize()

    def close(self) -> None:
        for _ in self._threads:
            self._ready.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        forbid_blocking("a worker of the runtime")
        ready = self._ready
        while (actor := ready.get()) is not None:
            try:
                if actor.run_slice():
                    ready.put(actor)
            except BaseException:  # a handler's SystemExit ended its actor, and must not end the worker of all others
                logger.exception("A handler of %s raised what is no Exception", actor)
