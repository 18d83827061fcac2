"""Services: the parts of a system that own a thread.

    class Reader(Service):
        def run(self) -> None:
            while self.awaits(lambda: self._wanted):    # False once it is stopped
                ...

    reader = Reader("ikigai-reader", threads)
    reader.start()
    reader.close()      # stop, and wait for the end of the thread

`start`, `stop` and `close` may come in any order, from any thread, and more than once. A service that was stopped first
never begins. `Worker` is a service that runs tasks one after the other, at once or after some seconds. A task that
fails is reported, and does not end the worker.
"""

import contextlib
import logging
import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from ikigai_actors.actors.clock import SYSTEM_CLOCK, Clock
from ikigai_actors.actors.threads import SYSTEM_THREADS, Queue, Threads
from ikigai_actors.actors.timers import Timers
from ikigai_actors.errors import IkigaiError, SystemClosed

logger = logging.getLogger(__name__)

Task = Callable[[], object]


class Service(ABC):
    """A part of a system that owns a thread."""

    def __init__(self, name: str, threads: Threads = SYSTEM_THREADS, lock: "threading.Lock | None" = None) -> None:
        """Prepare a service; `start` begins a thread of this name. ``lock`` guards data shared with other threads."""
        self._changed = threads.condition(lock)
        """Held to change what `run` waits for, and notified then."""
        self._stopped = False
        self._thread = threads.thread(self.run, name)

    @abstractmethod
    def run(self) -> None:
        """Do the work of the service on its thread, until the service is stopped."""

    @property
    def started(self) -> bool:
        """Return whether the thread was started."""
        return self._thread.ident is not None

    def start(self) -> None:
        """Start the thread, unless it was started or stopped before."""
        with self._changed:
            if not (self._stopped or self.started):
                self._thread.start()

    def stop(self) -> None:
        """Make the thread end soon. Never waits."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def close(self, timeout: float | None = None) -> None:
        """Stop the service, and wait until its thread has ended, at most ``timeout`` seconds (None: forever).

        A call on that thread does not wait.
        """
        self.stop()
        if self.started and self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def awaits(self, is_there: Callable[[], object], timeout: float | None = None) -> bool:
        """Wait until ``is_there()`` is true or ``timeout`` seconds have passed.

        Return False once the service is stopped.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or is_there(), timeout)
            return not self._stopped

    def pause(self, seconds: float) -> bool:
        """Wait ``seconds``; return False if the service was stopped meanwhile."""
        return self.awaits(lambda: False, seconds)

    def attempt(self, task: Task) -> bool:
        """Run a task that may fail; return whether it succeeded. A failure is reported to `on_failure`."""
        try:
            task()
        except IkigaiError as error:
            self.on_failure(error)
        except Exception:  # a defect of ours: what comes next is done all the same
            logger.exception("%s failed", self._thread.name)
        else:
            return True
        return False

    def on_failure(self, error: IkigaiError) -> None:
        """Report the failure of a task: the database is down, an agent died meanwhile, or the system closes."""
        logger.info("%s could not finish: %s", self._thread.name, error)


@dataclass(frozen=True, slots=True)
class RefusableTask:
    """A task that is run once or, if the worker closes first, refused."""

    do: Callable[[], None]
    refuse: Callable[[SystemClosed], object] = lambda error: None

    def __call__(self) -> None:
        self.do()


class Worker(Service):
    """A service that runs tasks on its thread: `post` queues a task, and `after` runs it later."""

    def __init__(self, name: str, threads: Threads = SYSTEM_THREADS, clock: Clock = SYSTEM_CLOCK) -> None:
        """Prepare a worker; `start` begins with all tasks given before. The clock is for `after`."""
        super().__init__(name, threads)
        self._clock = clock
        self._tasks: Queue[Task | None] = threads.queue()
        self._timers = Timers[Task]()

    def post(self, task: Task) -> None:
        """Queue a task, to run after all earlier ones; never waits. Any thread may call."""
        self._tasks.put(task)

    def add(self, task: RefusableTask) -> None:
        """Queue a task, to run after all earlier ones.

        If the worker closes before the task has begun, the task is refused.

        Any thread may call.
        """
        self.post(task)
        if self._stopped:
            self._refuse_rest()

    def close(self, timeout: float | None = None) -> None:
        """End the thread. Refusable tasks that were not begun are refused with `SystemClosed`."""
        super().close(timeout)
        self._refuse_rest()

    def _refuse_rest(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                if isinstance(task := self._tasks.get(timeout=0), RefusableTask):
                    task.refuse(SystemClosed("The system was closed before this was done."))

    def after(self, seconds: float, task: Task) -> None:
        """Run the task after this many seconds. Call this on the thread of the service only."""
        self._timers.add(self._clock.monotonic() + seconds, task)

    def stop(self) -> None:
        """Make the thread end after the task in progress. Never waits."""
        super().stop()
        self._tasks.put(None)

    def run(self) -> None:
        while not self._stopped:
            try:
                task = self._tasks.get(timeout=self._timers.sleep(self._clock.monotonic()))
            except queue.Empty:
                task = self._timers.take_due(self._clock.monotonic())
            if task is not None:
                self.attempt(task)
