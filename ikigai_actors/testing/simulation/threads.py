"""The threads of a simulation: real threads, of which one runs at a time, with waits that cost no real time.

    block   the thread passes the token to the thread of the test, and is on the agenda again when it can go on
    wait    on the thread of the test itself: the agenda goes on until the awaited thing is there

So the code of the runtime, of tools and of providers may block as it does in a real process, and chance decides which
thread goes on. A thread-local or context variable works as elsewhere, since the threads are real.
"""

import queue
import threading
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from ikigai_actors.actors.threads import Condition, Queue, Threads, Waitable, one_of
from ikigai_actors.testing.simulation.event_loop import SimulatedLoop
from ikigai_actors.testing.simulation.scheduler import Abandoned, Agenda, Baton, Entry

T = TypeVar("T")

_PATIENCE = 60.0
"""The most seconds of the real clock for one step: code that takes longer waits for something outside, and is stuck."""


class SimulatedThreads(Threads):
    """The threads of one process in a simulation: `Threads` on an agenda."""

    def __init__(self, agenda: Agenda) -> None:
        self.agenda = agenda
        self.abandoned = False
        """Whether the process has crashed."""
        self.test = Baton()
        """The baton of the thread of the test."""
        self._running: list[SimulatedThread] = []
        self._loops: list[SimulatedLoop] = []
        self._failure: BaseException | None = None

    def thread(self, run: Callable[[], object], name: str) -> threading.Thread:
        return SimulatedThread(self, run, name)

    def condition(self, lock: "threading.Lock | None" = None) -> Condition:
        """Return a condition. The condition ignores the lock, because one thread runs at a time."""
        return SimulatedCondition(self)

    def lock(self) -> AbstractContextManager[bool]:
        return SimulatedLock(self)

    def queue(self) -> Queue[Any]:
        return SimulatedQueue(self)

    def new_event_loop(self) -> SimulatedLoop:
        self._loops.append(SimulatedLoop(self))
        return self._loops[-1]

    def repeat(self, seconds: float, call: Callable[[], object], name: str) -> Callable[[], None]:
        return lambda: None

    def result(self, future: Waitable[T], timeout: float | None) -> T:
        if not future.done():
            waiter = SimulatedWaiter(self)
            future.add_done_callback(lambda _: waiter.wake())
            waiter.wait(future.done, timeout, "the answer to a blocking call")
        return future.result(0)

    def pause(self, name: str, then: Callable[[], object] = lambda: None) -> None:
        """Stay on the agenda until chosen; ``then`` is called on the thread of the test."""
        self._stand(self.agenda.add, name, then)

    def on_test(self, call: Callable[[], T]) -> T:
        """Have the thread of the test call a function at once, and return its result."""
        if self.current() is None:
            return call()
        answer: list[T] = []
        self._stand(self.agenda.first, "", lambda: answer.append(call()))
        return answer[0]

    def waiter(self) -> "SimulatedWaiter":
        """Return an object with which the calling thread can wait once."""
        return SimulatedWaiter(self)

    def sleep(self, seconds: float) -> None:
        """Let time pass for the calling thread."""
        SimulatedWaiter(self).wait(lambda: False, seconds, "time")

    def _stand(self, add: Callable[[Entry], object], name: str, then: Callable[[], object]) -> None:
        thread, chosen = self.current(), list[bool]()

        def choose() -> None:
            then()
            chosen.append(True)
            if thread is not None:
                self.run(thread)

        add(Entry(name, choose, self))
        if thread is None:
            self.agenda.pump(lambda: chosen, None, name)
        else:
            thread.stand_by(lambda: chosen)

    def abandon(self) -> None:
        """End every thread at its current step, because the process has crashed."""
        self.abandoned = True
        for thread in list(self._running):
            self.run(thread)
        for loop in self._loops:
            if not loop.is_closed():  # its thread had not begun yet
                loop.run_forever()
                loop.close()

    # Between the thread of the test and the others

    def current(self) -> "SimulatedThread | None":
        """Return the calling thread; None for the thread of the test."""
        thread = threading.current_thread()
        return thread if isinstance(thread, SimulatedThread) else None

    @property
    def calls(self) -> bool:
        """Return whether the calling thread belongs to this process."""
        return self.current() in self._running

    def run(self, thread: "SimulatedThread") -> None:
        """Let a thread run until it waits or ends. An exception of the thread is raised to the test."""
        if thread.over:
            return
        thread.baton.give()
        self.test.take_soon(_PATIENCE)
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def started(self, thread: "SimulatedThread") -> None:
        """Register a thread, which runs when it is chosen."""
        self._running.append(thread)
        self.agenda.add(Entry(thread.name, lambda: self.run(thread), self))

    def ended(self, thread: "SimulatedThread", failure: BaseException | None) -> None:
        """Remove a thread that has ended."""
        self._running.remove(thread)
        self._failure = failure
        self.test.give()


class SimulatedThread(threading.Thread):
    """A thread that runs when the agenda chooses it."""

    def __init__(self, threads: SimulatedThreads, run: Callable[[], object], name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._threads, self._call = threads, run
        self._ended: list[SimulatedWaiter] = []
        self.baton = Baton()
        self.over = False
        """Whether the thread has ended."""

    def start(self) -> None:
        """Start the thread.

        The thread takes its first step when the agenda chooses it, and in a crashed process never.
        """
        if self._threads.abandoned:
            return
        super().start()
        self._threads.started(self)

    def run(self) -> None:
        self.baton.acquire()
        failure: BaseException | None = None
        try:
            if not self._threads.abandoned:
                with one_of(self._threads):
                    self._call()
        except Abandoned:
            pass
        except BaseException as error:
            failure = error
        self.over = True
        for waiter in self._ended:
            waiter.wake()
        self._threads.ended(self, failure)

    def join(self, timeout: float | None = None) -> None:
        if not self.over and self.ident is not None:
            waiter = SimulatedWaiter(self._threads)
            self._ended.append(waiter)
            waiter.wait(lambda: self.over, timeout, f"the end of {self.name}")

    def stand_by(self, done: Callable[[], object]) -> None:
        """Yield to the agenda until ``done()`` is true."""
        while not done():
            self.block()

    def block(self) -> None:
        """Pass the token to the thread of the test, and go on when chosen.

        Raises `Abandoned` when the process has crashed.
        """
        if not self._threads.abandoned:
            self._threads.test.give()
            self.baton.acquire()
        if self._threads.abandoned:
            raise Abandoned


class SimulatedWaiter:
    """One wait of one thread on the agenda, which another thread can end."""

    __slots__ = ("_thread", "_threads", "_woken")

    def __init__(self, threads: SimulatedThreads) -> None:
        self._threads = threads
        self._thread = threads.current()
        self._woken = False

    @property
    def woken(self) -> bool:
        """Return whether the thread is about to check its condition again, so that a further wake-up has no effect."""
        return self._woken

    def wake(self) -> None:
        """Let the thread check its condition again when it is chosen."""
        thread = self._thread
        if thread is not None and not self._woken:
            self._woken = True
            self._threads.agenda.add(Entry(thread.name, lambda: self._threads.run(thread), self._threads))

    def wait(self, done: Callable[[], object], timeout: float | None, what: str) -> bool:
        """Wait until ``done()`` is true, or ``timeout`` seconds have passed; return whether it is true."""
        if self._threads.abandoned:
            raise Abandoned
        if self._thread is None:
            return self._threads.agenda.pump(done, timeout, what)
        agenda = self._threads.agenda
        due = None if timeout is None else agenda.clock.monotonic() + timeout
        timer = None if due is None else agenda.at(due, self.wake, self._threads)
        while not done():
            if due is not None and agenda.clock.monotonic() >= due:
                return False
            self._woken = False
            self._thread.block()
        if timer is not None:
            timer.cancelled = True
        return True


class SimulatedCondition(Condition):
    """A `Condition` whose waits go on the agenda of a simulation."""

    def __init__(self, threads: SimulatedThreads) -> None:
        self._threads = threads
        self._waiters: deque[SimulatedWaiter] = deque()

    def __enter__(self) -> bool:
        return True

    def __exit__(self, *error: Any) -> None:
        pass

    def wait_for(self, predicate: Callable[[], object], timeout: float | None = None) -> object:
        if not (holds := predicate()):
            waiter = SimulatedWaiter(self._threads)
            self._waiters.append(waiter)
            try:
                waiter.wait(predicate, timeout, "a condition")
            finally:
                self._waiters.remove(waiter)
            holds = predicate()
        return holds

    def notify(self, n: int = 1) -> None:
        for waiter in [waiter for waiter in self._waiters if not waiter.woken][:n]:
            waiter.wake()

    def notify_all(self) -> None:
        self.notify(len(self._waiters))


class SimulatedLock(AbstractContextManager[bool]):
    """A lock whose waits go on the agenda of a simulation. Its holder may wait for other threads."""

    def __init__(self, threads: SimulatedThreads) -> None:
        self._freed = SimulatedCondition(threads)
        self._held = False

    def __enter__(self) -> bool:
        self._freed.wait_for(lambda: not self._held)
        self._held = True
        return True

    def __exit__(self, *error: Any) -> None:
        self._held = False
        self._freed.notify()


class SimulatedQueue(Queue[Any]):
    """A `Queue` whose waits go on the agenda of a simulation."""

    def __init__(self, threads: SimulatedThreads) -> None:
        self._items: deque[Any] = deque()
        self._changed = SimulatedCondition(threads)

    def put(self, item: Any) -> None:
        self._items.append(item)
        self._changed.notify()

    def get(self, *, timeout: float | None = None) -> Any:
        if not self._changed.wait_for(lambda: bool(self._items), timeout):
            raise queue.Empty
        return self._items.popleft()

    def qsize(self) -> int:
        return len(self._items)
