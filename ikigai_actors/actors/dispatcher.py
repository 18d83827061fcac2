"""The dispatcher with threads: a few workers run the inboxes of many actors.

    dispatcher = ThreadDispatcher(2)
    ref = MyActor.start(dispatcher)

Actors that have something to do wait in one list, first come, first served. One that has used up its quantum goes to
the end of it, so a busy actor never starves another. Nothing may block on a worker: a wait there is refused with
`WouldDeadlock`.

The number of *places* is fixed, and a worker has one while it runs an actor or waits for one. What may block, a commit
or other people's code, a worker runs *aside*, without its place:

    at its place    takes an actor, runs a slice of it; with a call to be run aside it gives its place up
    aside           runs the call, however long it takes
    back            takes a place if one is free, and goes on itself with the actor that the call has woken. If no
                    place is free, or others wait, that actor waits in the list like any other

While an actor waits, a free place is taken by a spare thread at once. So a call that never returns costs a thread, and
keeps no actor waiting.
"""

import logging
import threading
from typing import NamedTuple

from ikigai_actors.actors.actor import AsideCall, Dispatcher, PooledActor
from ikigai_actors.actors.futures import forbid_blocking
from ikigai_actors.actors.spare_threads import SpareThreads
from ikigai_actors.actors.threads import SYSTEM_THREADS, Queue, Threads

logger = logging.getLogger(__name__)

_NAME = "ikigai-worker"


class _Aside(NamedTuple):
    """A call that a worker is to run aside."""

    call: AsideCall
    name: str


class _Own(threading.local):
    """The state of a thread as a worker."""

    runs_slice = False
    aside: _Aside | None = None
    """The work that it runs when the slice is over."""
    keeps = False
    """Whether it goes on with the next actor that is scheduled on it."""
    kept: PooledActor | None = None


class ThreadDispatcher(Dispatcher):
    """A dispatcher with threads: workers take actors from one ready list."""

    def __init__(self, count: int = 2, threads: Threads = SYSTEM_THREADS) -> None:
        """Start the workers.

        Args:
            count: how many have a place at once. More than two gain nothing while one lock guards the interpreter.
        """
        self._ready: Queue[PooledActor | None] = threads.queue()
        self._ended: Queue[None] = threads.queue()
        self._spare = SpareThreads(threads)
        self._own = _Own()
        self._lock = threading.Lock()  # guards the numbers
        self._free = count  # places that nobody has
        self._idle = 0  # workers that wait for an actor
        self._places, self._closed = count, False
        for _ in range(count):
            self._begin_worker()

    def schedule(self, actor: PooledActor) -> None:
        own = self._own
        if own.keeps:
            own.keeps, own.kept = False, actor
        else:
            self._add(actor)

    @property
    def ready(self) -> int:
        return self._ready.qsize()

    def step_aside(self, call: AsideCall, name: str) -> bool:
        own = self._own
        if not own.runs_slice or own.aside is not None:
            return False
        own.aside = _Aside(call, name)
        return True

    def close(self) -> None:
        """Give the ready actors one more turn each, then run none any more. What is run aside is not waited for."""
        with self._lock:
            self._closed = True
            at_work = self._places - self._free
        for _ in range(at_work):
            self._ready.put(None)
        for _ in range(at_work):
            self._ended.get()
        self._spare.close()

    def _add(self, actor: PooledActor) -> None:
        self._ready.put(actor)
        self._fill()

    def _fill(self) -> None:
        """Let a thread take a free place, if an actor waits and no worker waits for it.

        Called after each change that may make this so: an actor was added, a worker has stopped waiting, a place is
        free.
        """
        while self._free and not self._idle and self._ready.qsize() and self._begin_worker():
            continue

    def _begin_worker(self) -> bool:
        """Let a spare thread take a free place; return whether there was one."""
        if begins := self._take_place():
            self._spare.run(self._work, _NAME)
        return begins

    def _take_place(self) -> bool:
        with self._lock:
            taken = self._free > 0 and not self._closed
            self._free -= taken
        return taken

    def _work(self) -> None:
        """Run actors until there is no place for this thread, or the dispatcher is closed."""
        own = self._own
        forbid_blocking("a worker of the runtime")
        try:
            while (actor := self._next()) is not None:
                self._run_slice(actor)
                if own.aside is not None and not self._run_aside():
                    return
            self._ended.put(None)
        finally:
            forbid_blocking(None)

    def _next(self) -> PooledActor | None:
        own = self._own
        if (kept := own.kept) is not None:
            own.kept = None
            return kept
        with self._lock:
            self._idle += 1
        actor = self._ready.get()
        with self._lock:
            self._idle -= 1
        self._fill()
        return actor

    def _run_slice(self, actor: PooledActor) -> None:
        own = self._own
        own.runs_slice = True
        try:
            again = actor.run_slice()
        except BaseException:  # a handler's SystemExit ended its actor, and must not end the worker of all others
            logger.exception("A handler of %s raised what is no Exception", actor)
            return
        finally:
            own.runs_slice = False
        if again:
            self._add(actor)

    def _run_aside(self) -> bool:
        """Run what the slice has left, without a place; return whether this thread has one again."""
        own, thread = self._own, threading.current_thread()
        aside, own.aside = own.aside, None
        assert aside is not None
        with self._lock:
            self._free += 1
        self._fill()
        forbidden = forbid_blocking(None)
        thread.name = aside.name
        try:
            then = aside.call()
        finally:
            thread.name = _NAME
            forbid_blocking(forbidden)
        stays = self._take_place()
        if then is not None:
            own.keeps = stays and not self._ready.qsize()  # else those come first that wait
            try:
                then()
            finally:
                own.keeps = False
        return stays
