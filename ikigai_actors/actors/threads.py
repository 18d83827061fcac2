"""Threads, and the locks and queues on which they wait. The runtime uses them only through `Threads`.

`SystemThreads` are the machine's. A simulation has its own (`ikigai_actors.testing`): one of them runs at a time,
chance decides the order, and waiting costs no time. The composition root gives the parts of a system their threads.
Code that no root reaches, such as a future that is waited for, uses those of the calling thread (`current_threads`).

Other people's code runs on threads of its own (`in_thread`): it may block, hang or try to end the process without harm
to the rest. A thread cannot be killed. So these are daemons: one that never ends does not keep the process from ending,
and the result of a cancelled call is forgotten.
"""

import asyncio
import contextlib
import contextvars
import math
import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, TypeVar

from ikigai_actors.actors.event_loop import EndlessLoop, SystemLoop
from ikigai_actors.text import described

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

LONGEST_SLEEP = 86_400.0
"""Seconds after which a waiting thread looks at the clock again, however long it has to wait. The machine refuses to
wait beyond a limit of its own.
"""

LONGEST_DEAFNESS = 0.25
"""Seconds that the main thread waits without looking at its signals. A signal ends a wait for a lock only if the
machine gives it to the main thread while that sleeps. A signal that comes an instant before, or on another thread, is
remembered and handled when the main thread wakes.
"""


HARMLESS = (Exception, asyncio.CancelledError, GeneratorExit)
"""The exceptions with which a task may end; any other one ends the event loop."""


class Condition(Protocol):
    """A `threading.Condition`, as far as the runtime uses it."""

    def __enter__(self) -> bool: ...

    def __exit__(self, *error: Any) -> None: ...

    def wait_for(self, predicate: Callable[[], object], timeout: float | None = None) -> object:
        """Wait until the predicate is true, or ``timeout`` seconds have passed; return its last value."""

    def notify(self, n: int = 1) -> None:
        """Wake ``n`` waiters, which check their predicates again."""

    def notify_all(self) -> None:
        """Wake all waiters, which check their predicates again."""


class Queue(Protocol[T]):
    """A `queue.SimpleQueue`, as far as the runtime uses it."""

    def put(self, item: T) -> None:
        """Append; never waits."""

    def get(self, *, timeout: float | None = None) -> T:
        """Take the oldest item. Raises `queue.Empty` if none came within ``timeout`` seconds."""

    def qsize(self) -> int:
        """Return the number of items in the queue."""


class Waitable(Protocol[T_co]):
    """A `promise.Promise`, or a ``concurrent.futures.Future``."""

    def done(self) -> bool:
        """Whether there is a result, or an exception."""

    def result(self, timeout: float | None = None) -> T_co:
        """Wait and return the result. Raises the exception, and `TimeoutError` after ``timeout`` seconds."""

    def add_done_callback(self, callback: Callable[[Any], object], /) -> None:
        """Call ``callback`` when the promise or future is done."""


class Threads(Protocol):
    """Makes the threads of a system, and the locks, queues and event loops on which they wait."""

    def thread(self, run: Callable[[], object], name: str) -> threading.Thread:
        """Return a new daemon thread that is not started yet."""

    def condition(self, lock: "threading.Lock | None" = None) -> Condition:
        """Return a new condition with this lock, or with a new lock for None."""

    def lock(self) -> contextlib.AbstractContextManager[bool]:
        """Return a new lock that a thread may hold while it waits for something else."""

    def queue(self) -> Queue[Any]:
        """Return a new unbounded queue."""

    def new_event_loop(self) -> EndlessLoop:
        """Return a new event loop for one of the threads."""

    def repeat(self, seconds: float, call: Callable[[], object], name: str) -> Callable[[], None]:
        """Repeat a call on a thread of its own, with pauses of this many seconds; return a function that stops that.

        Use it only for checks whether something takes too long. A simulation never makes such calls, because code takes
        no time there.
        """

    def result(self, future: "Waitable[T]", timeout: float | None) -> T:
        """Wait for a future on the calling thread, and return its result.

        Raises the future's exception, and `TimeoutError` when the future is not done after ``timeout`` seconds.
        """


class SystemThreads(Threads):
    """The threads, locks and event loops of the machine."""

    def thread(self, run: Callable[[], object], name: str) -> threading.Thread:
        return threading.Thread(target=run, name=name, daemon=True)

    def condition(self, lock: "threading.Lock | None" = None) -> Condition:
        return threading.Condition(lock)

    def lock(self) -> contextlib.AbstractContextManager[bool]:
        return threading.Lock()

    def queue(self) -> Queue[Any]:
        made: queue.SimpleQueue[Any] = queue.SimpleQueue()
        return made

    def new_event_loop(self) -> EndlessLoop:
        return SystemLoop()

    def repeat(self, seconds: float, call: Callable[[], object], name: str) -> Callable[[], None]:
        over = threading.Event()

        def run() -> None:
            while not over.wait(seconds):
                call()

        thread = self.thread(run, name)
        thread.start()

        def end() -> None:
            over.set()
            thread.join()

        return end

    def result(self, future: "Waitable[T]", timeout: float | None) -> T:
        longest = LONGEST_DEAFNESS if threading.get_ident() == _MAIN else LONGEST_SLEEP
        due = math.inf if timeout is None else time.monotonic() + timeout
        left = math.inf if timeout is None else timeout
        while left > longest:
            try:
                return future.result(longest)
            except TimeoutError:
                if future.done():  # just now, or it raised a TimeoutError of its own
                    return future.result()
            left = due - time.monotonic()
        return future.result(max(left, 0))


_MAIN = threading.main_thread().ident

SYSTEM_THREADS = SystemThreads()

_thread = threading.local()


def current_threads() -> Threads:
    """Return the `Threads` that made the calling thread; `SYSTEM_THREADS` for any other thread."""
    threads: Threads = getattr(_thread, "threads", SYSTEM_THREADS)
    return threads


@contextlib.contextmanager
def one_of(threads: Threads) -> Iterator[None]:
    """Declare that the calling thread belongs to these `Threads`, for as long as the block lasts."""
    before = current_threads()
    _thread.threads = threads
    try:
        yield
    finally:
        _thread.threads = before


class _Outcome(NamedTuple):
    """The value or the exception of a call.

    A future never gets the exception itself: a future refuses `StopIteration`, and the turn would hang.
    """

    value: Any = None
    error: Exception | None = None


async def in_thread(call: Callable[[], Any], thread_name: str) -> Any:
    """Run a call on a new thread, in a copy of the current context; return its value.

    If the caller is cancelled, the call runs on, and its result is lost.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_Outcome] = loop.create_future()
    context = contextvars.copy_context()

    def run() -> None:
        outcome = _attempt(lambda: context.run(call))
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_settle, future, outcome)

    current_threads().thread(run, thread_name).start()
    outcome = await future
    if outcome.error is not None:
        raise outcome.error
    return outcome.value


def _attempt(call: Callable[[], Any]) -> _Outcome:
    """Run a call, and return its value or its exception. A `BaseException` would otherwise be lost with the thread."""
    try:
        return _Outcome(call())
    except Exception as error:
        return _Outcome(error=error)
    except BaseException as error:
        return _Outcome(error=tried_to_end(error))


def _settle(future: "asyncio.Future[_Outcome]", outcome: _Outcome) -> None:
    if not future.done():  # cancelled meanwhile
        future.set_result(outcome)


class TriedToEnd(RuntimeError):
    """The error when other people's code has raised `SystemExit` or the like, which may not end a thread of ours."""


def tried_to_end(error: BaseException) -> TriedToEnd:
    """Return the error that replaces a `SystemExit` or the like of other people's code."""
    failure = TriedToEnd(f"The function raised {described(error)}; raise an Exception to fail, return to answer.")
    failure.__cause__ = error
    return failure
