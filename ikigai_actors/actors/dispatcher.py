"""The dispatcher with threads: a few workers run the inboxes of many actors.

    dispatcher = ThreadDispatcher(2)
    ref = MyActor.start(dispatcher)

Actors that have something to do wait in one list, first come, first served. One that has used up its quantum goes to
the end of it, so a busy actor never starves another. Nothing may block on a worker: a wait there is refused with
`WouldDeadlock`.

The number of *places* is fixed, and a worker has one while it runs an actor or waits for one. The worker that began
to wait last is woken first: its caches are warm. What may block, a commit or other people's code, a worker runs
*aside*, without its place:

    at its place    takes an actor, runs a slice of it; with a call to be run aside it gives its place up
    aside           runs the call, however long it takes
    back            takes a place if one is free, and goes on itself with the actor that the call has woken. If no
                    place is free, or others wait, that actor waits in the list like any other

While an actor waits, a spare thread takes a free place at once. So a call that never returns costs a thread, and keeps
no actor waiting. An actor waits only if every place is taken and every waiting worker has been woken.

A thread that asks an idle actor may run it itself (`lends`), without a place: two switches of threads are most of the
cost of an answer. The main thread never does, for a signal would end the actor's handler instead of the wait.
"""

import asyncio
import logging
import threading
from collections import deque
from contextvars import Context
from typing import NamedTuple

from ikigai_actors.actors.actor import ActorGone, AsideCall, Dispatcher, PooledActor
from ikigai_actors.actors.futures import blocking_is_allowed, forbid_blocking, this_thread
from ikigai_actors.actors.spare_threads import SpareThreads
from ikigai_actors.actors.threads import SYSTEM_THREADS, Queue, Threads
from ikigai_actors.actors.wait_registry import acting_code

logger = logging.getLogger(__name__)

_NAME = "ikigai-worker"
_MAIN = threading.main_thread().ident


class _Aside(NamedTuple):
    """A call that may block, which a worker is to run without its place."""

    call: AsideCall
    name: str


class _Own(threading.local):
    runs_slice = False
    is_caller = False
    """Whether it runs an actor for whose answer it would wait."""
    aside: _Aside | None = None
    """The work that it runs when the slice is over."""
    keeps = False
    """Whether it goes on with the next actor that is scheduled on it."""
    kept: PooledActor | None = None
    wake: Queue[None] | None = None
    """Wakes a worker that waits, to look at the actors again."""


class ThreadDispatcher(Dispatcher):
    """A dispatcher whose worker threads take actors from one list of ready actors."""

    def __init__(self, count: int = 2, threads: Threads = SYSTEM_THREADS) -> None:
        """Make the dispatcher without workers. A worker starts when an actor needs one.

        Args:
            count: the number of workers that may run actors at once. More than two gain nothing while one lock guards
                the interpreter.
            threads: makes the threads of the workers, and their queues.
        """
        self._threads = threads
        self._ended: Queue[None] = threads.queue()
        self._spare = SpareThreads(threads)
        self._own = _Own()
        self._lock = threading.Lock()  # guards what follows
        self._ready = deque[PooledActor | None]()  # None ends a worker
        self._waiting: list[Queue[None]] = []  # what wakes the workers that wait, the last one last
        self._free = count  # places that nobody has
        self._places, self._closed = count, False

    def schedule(self, actor: PooledActor) -> None:
        own = self._own
        if own.keeps:
            own.keeps, own.kept = False, actor
        else:
            self._add(actor)

    @property
    def ready(self) -> int:
        return len(self._ready)

    def step_aside(self, call: AsideCall, name: str) -> bool:
        own = self._own
        if not own.runs_slice or own.is_caller or own.aside is not None:
            return False
        own.aside = _Aside(call, name)
        return True

    def lends(self, actor: PooledActor) -> bool:
        if threading.get_ident() == _MAIN or self._own.runs_slice or self._closed:
            return False
        if asyncio._get_running_loop() is not None or not blocking_is_allowed() or acting_code.get(None) is not None:
            return False
        return actor.actor_inbox.claim()

    def run_here(self, actor: PooledActor, message: object) -> object:
        own = self._own
        own.runs_slice = own.is_caller = True
        forbid_blocking("a thread that runs an actor")
        try:
            return Context().run(actor.on_receive, message)
        except Exception:  # the answer, as from a worker
            raise
        except BaseException as error:  # it ends the actor, and not who asked
            actor._die(error)
            raise ActorGone(f"{actor} stopped before it handled the message.") from error
        finally:
            forbid_blocking(None)
            own.runs_slice = own.is_caller = False
            if actor.actor_inbox.rest():
                self._add(actor)

    def close(self) -> None:
        """Let each ready actor run once more; then run no actor any more. Calls that run aside are not waited for."""
        with self._lock:
            self._closed = True
            at_work = self._places - self._free
            self._ready.extend([None] * at_work)  # actors that come later are not reached
            waiting, self._waiting = self._waiting, []
        for wake in waiting:
            wake.put(None)
        for _ in range(at_work):
            self._ended.get()
        self._spare.close()

    def _add(self, actor: PooledActor) -> None:
        """Put an actor into the list of ready actors, and wake a worker for it, or start one if a place is free."""
        with self._lock:
            self._ready.append(actor)
            wake = self._waiting.pop() if self._waiting else None
        if wake is not None:
            wake.put(None)
        elif self._free:
            self._begin_worker()

    def _begin_worker(self) -> None:
        if self._take_place():
            self._spare.run(self._work, _NAME)

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
        if (wake := own.wake) is None:
            wake = own.wake = self._threads.queue()
        while True:
            with self._lock:
                if self._ready:
                    return self._ready.popleft()
                self._waiting.append(wake)
            wake.get()

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
        """Run the blocking call that the last slice has left to this worker, without a place.

        Return whether this thread has a place afterwards.
        """
        own, thread = self._own, threading.current_thread()
        aside, own.aside = own.aside, None
        assert aside is not None
        with self._lock:
            self._free += 1
        if self._ready:
            self._begin_worker()
        forbidden, this_thread.forbidden = this_thread.forbidden, None
        thread.name = aside.name
        try:
            then = aside.call()
        finally:
            thread.name, this_thread.forbidden = _NAME, forbidden
        stays = self._take_place()
        if then is not None:
            own.keeps = stays and not self._ready  # else those come first that wait
            try:
                then()
            finally:
                own.keeps = False
        return stays
