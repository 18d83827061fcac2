"""The agenda: what can happen next, and the chance that chooses.

On the agenda of a simulation stands every thread of the runtime that could go on, the actors that are ready, and what
is on its way from outside. One of them at a time is chosen and takes a step; then it is chosen again. Only when nothing
can go on does time pass, in one leap to the next moment for which somebody waits. So a run costs no waiting, and the
choices are all that decides it.

Choice 0, the plain one, takes what has stood there longest. Any other takes what came later, and sets aside for a
while what stood before it. One such choice can hold up a reply or a whole worker while the others go on, so most races
need no more than two, and Hypothesis, which shrinks towards few, ends at the most orderly run that still fails.

The runtime's threads are real ones, of which exactly one runs: whoever waits hands over and is handed back to
(`SimulatedThreads`). Choices are drawn on the thread of the test alone, between two steps and outside all handlers:
what is raised there (Hypothesis ends an example with a `BaseException`) goes to the test, and no handler can swallow
it.
"""

import heapq
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from ikigai_actors.errors import IkigaiError
from ikigai_actors.testing.dispatcher import CHOICES, Chance
from ikigai_actors.testing.simulation.clock import ManualClock
from ikigai_actors.testing.simulation.trace import calling_line

ASIDE = 50
"""Steps for which something is set aside at most: nobody starves."""


class Stuck(IkigaiError, AssertionError):
    """Somebody waits for what can never happen: nothing is left that could go on, and no time-out is set."""


class Endless(IkigaiError, AssertionError):
    """The simulation takes more steps than it may: agents keep each other busy, or somebody asks again and again."""


class Abandoned(BaseException):
    """Ends a thread of a process that has crashed. Do not catch it: nothing that it still did would count."""


@dataclass(slots=True)
class Entry:
    """Something that can happen next."""

    name: str
    """What it is, for the trace."""
    run: Callable[[], object]
    """Takes the step, on the thread of the test."""


@dataclass(order=True, slots=True)
class Timer:
    """Something that happens at a time."""

    due: float
    number: int
    run: Callable[[], object] = field(compare=False)
    cancelled: bool = field(default=False, compare=False)


class Agenda:
    """What can happen next. For the thread that made it."""

    def __init__(self, chance: Chance, clock: ManualClock, choices: int = CHOICES, most: int = 100_000) -> None:
        """Make an empty agenda.

        Args:
            chance: draws the choices; only its ``randrange`` is used.
            clock: is turned when nothing can go on.
            choices: how many are drawn; from then on everything is 0.
            most: steps after which it is taken for endless.
        """
        self.clock = clock
        self.choices = 0
        """Choices until now."""
        self.drawn: dict[int, int] = {}
        """Those of them that were not plain, by number."""
        self.steps = 0
        """Steps taken until now."""
        self._chance, self._left, self._budget, self._most = chance, choices, choices, most
        self._entries: list[Entry] = []
        self._first: list[Entry] = []
        self._aside: deque[tuple[int, Entry]] = deque()
        self._timers: list[Timer] = []
        self._numbers = 0
        self._halt: Callable[[], object] | None = None

    def randrange(self, stop: int, /) -> int:
        """A choice; 0 once they are used up."""
        if stop <= 1 or self._left == 0:
            return 0
        choice = self._chance.randrange(stop)
        if choice:
            self.drawn[self.choices] = choice
        self.choices += 1
        self._left -= 1
        return choice

    def follow(self, chance: Chance) -> None:
        """Draw the choices from another source from now on."""
        self._chance, self._left = chance, self._budget

    def add(self, entry: Entry) -> None:
        """This can happen from now on, once."""
        self._entries.append(entry)

    def first(self, entry: Entry) -> None:
        """This comes next, whatever else could."""
        self._first.append(entry)

    def halt(self, end: Callable[[], object]) -> None:
        """Call this on the thread of the test as soon as the step in progress is over; it raises why."""
        self._halt = end

    def at(self, due: float, run: Callable[[], object]) -> Timer:
        """Let something happen when the clock shows so many seconds."""
        self._numbers += 1
        timer = Timer(due, self._numbers, run)
        heapq.heappush(self._timers, timer)
        return timer

    def clear(self) -> None:
        """Forget everything: the process has ended."""
        self._first.clear()
        self._aside.clear()
        self._entries.clear()
        self._timers.clear()

    @property
    def quiet(self) -> bool:
        """Whether nothing can happen but that time passes."""
        return not (self._entries or self._first or self._aside)

    def step(self, until: float | None = None) -> bool:
        """Let one thing happen; returns whether there was one. Time passes when nothing else is left."""
        if not self.quiet:
            self.steps += 1
            if self.steps > self._most:
                raise Endless(f"The simulation did not come to rest within {self._most:,} steps.")
            self._next().run()
            end, self._halt = self._halt, None
            if end is not None:
                end()
            return True
        while self._timers and self._timers[0].cancelled:
            heapq.heappop(self._timers)
        if not self._timers or (until is not None and self._timers[0].due > until):
            return False
        timer = heapq.heappop(self._timers)
        self.clock.advance(max(0.0, timer.due - self.clock.monotonic()))
        timer.run()
        return True

    def _next(self) -> Entry:
        """What comes next. Those that stood before it are set aside: for some steps, or until nothing else is left."""
        if self._first:
            return self._first.pop(0)
        back = []
        while self._aside and (not self._entries or self._aside[0][0] <= self.steps):
            back.append(self._aside.popleft()[1])
        self._entries[:0] = back
        choice = self.randrange(len(self._entries))
        self._aside.extend((self.steps + ASIDE, entry) for entry in self._entries[:choice])
        entry = self._entries[choice]
        del self._entries[: choice + 1]
        return entry

    def pump(self, done: Callable[[], object], timeout: float | None, what: str) -> bool:
        """Let things happen until something is done, or so many seconds have passed; returns whether it is done.

        Raises `Stuck` when nothing is left that could bring it about.
        """
        due = None if timeout is None else self.clock.monotonic() + timeout
        while not done():
            if due is not None and self.quiet and self.clock.monotonic() >= due:
                return False
            if self.step(due):
                continue
            if due is None:
                where = f", by {line}" if (line := calling_line()) else ""
                raise Stuck(f"Nothing can happen any more, and {what} is waited for{where}")
            self.clock.advance(due - self.clock.monotonic())
        return True


class Baton:
    """What exactly one thread has: who waits for its turn waits for this."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def give(self) -> None:
        """Let the other one run."""
        self._lock.release()

    def take(self) -> None:
        """Wait until it is given."""
        self._lock.acquire()

    def take_soon(self, seconds: float) -> None:
        """The same, for one step of another thread. Raises `Stuck` when that takes longer."""
        if not self._lock.acquire(timeout=seconds):
            raise Stuck(
                f"A step took longer than {seconds:g} s: some code waits for what is not part of the simulation, "
                "a lock, a socket, time.sleep() or a thread of its own."
            )
