"""The agenda: everything that can happen next, and the random choice among it.

The agenda of a simulation has an entry for every thread of the runtime that could go on, for the ready actors, and for
everything that is about to arrive from outside. One entry at a time is chosen and takes a step; then the next entry is
chosen. Time passes only when no entry can take a step, in one leap to the next moment for which a thread waits. So a
run costs no waiting, and only the choices decide its course.

Each entry belongs to a process, its owner. The entry is dropped when the process ends, and held while the process is
stopped.

Choice 0, the plain choice, takes the oldest entry. Any other choice takes a later entry, and sets the entries before it
aside for a while. One such choice can hold up a reply or a whole worker while the others go on, so most races need no
more than two, and Hypothesis, which shrinks towards few, ends at the most orderly run that still fails.

The runtime's threads are real ones, of which exactly one runs: a waiting thread hands over and is handed back to
(`SimulatedThreads`). Choices are drawn on the thread of the test alone, between two steps and outside all handlers:
what is raised there (Hypothesis ends an example with a `BaseException`) goes to the test, and no handler can swallow
it.
"""

import heapq
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ikigai_actors.errors import IkigaiError
from ikigai_actors.testing.dispatcher import CHOICES, Chance
from ikigai_actors.testing.simulation.clock import ManualClock
from ikigai_actors.testing.simulation.trace import calling_line

ASIDE = 50
"""The most steps for which an entry is set aside, so that every entry is chosen at last."""


class Stuck(IkigaiError, AssertionError):
    """A thread waits for an event that can never happen: nothing can go on, and no time-out is set."""


class Endless(IkigaiError, AssertionError):
    """The simulation has taken too many steps.

    Perhaps agents keep each other busy, or a caller asks again and again.
    """


class Abandoned(BaseException):
    """Ends a thread of a crashed process. Do not catch it, because the process has no further effects."""


@dataclass(slots=True)
class Entry:
    """A step that can happen next on the agenda."""

    name: str
    """The name for the trace."""
    run: Callable[[], object]
    """Takes the step, on the thread of the test."""
    owner: object = None
    """The process to which the step belongs; None for no process."""


@dataclass(order=True, slots=True)
class Alarm:
    """A step that happens at a set time of the clock."""

    due: float
    number: int
    run: Callable[[], object] = field(compare=False)
    owner: object = field(default=None, compare=False)
    cancelled: bool = field(default=False, compare=False)


@dataclass(slots=True)
class _Held:
    """The steps and timers of an owner that is held."""

    first: list[Entry]
    entries: list[Entry]
    due: list[Alarm] = field(default_factory=list)
    """The timers that fell due meanwhile."""


def _of(owner: object, entries: Iterable[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.owner is owner]


class Agenda:
    """The steps that can happen next, and the timers. Use it on the thread that made it."""

    def __init__(self, chance: Chance, clock: ManualClock, choices: int = CHOICES, most: int = 100_000) -> None:
        """Make an empty agenda. After ``choices`` choices all are 0; a run of more than ``most`` steps is endless."""
        self.clock = clock
        self.choices = 0
        """Choices until now."""
        self.drawn: dict[int, int] = {}
        """The choices that were not plain, by number."""
        self.steps = 0
        """Steps taken until now."""
        self.stepping = False
        """Whether a step is being taken: the thread of the test then does the work of the runtime."""
        self._chance, self._left, self._budget, self._most = chance, choices, choices, most
        self._entries: list[Entry] = []
        self._first: list[Entry] = []
        self._aside: deque[tuple[int, Entry]] = deque()
        self._timers: list[Alarm] = []
        self._held: dict[object, _Held] = {}
        self._numbers = 0
        self._halt: Callable[[], object] | None = None

    def randrange(self, stop: int, /) -> int:
        """Return a random choice below ``stop``; always 0 once the choices are used up."""
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
        """Add a step that can happen once, from now on."""
        held = self._held.get(entry.owner)
        (self._entries if held is None else held.entries).append(entry)

    def first(self, entry: Entry) -> None:
        """Add a step that happens next, before all others."""
        held = self._held.get(entry.owner)
        (self._first if held is None else held.first).append(entry)

    def halt(self, end: Callable[[], object]) -> None:
        """Call ``end`` on the thread of the test after the current step.

        It raises an exception that ends the run.
        """
        self._halt = end

    def at(self, due: float, run: Callable[[], object], owner: object = None) -> Alarm:
        """Let a step happen when the clock shows this many seconds."""
        self._numbers += 1
        timer = Alarm(due, self._numbers, run, owner)
        heapq.heappush(self._timers, timer)
        return timer

    def clear(self, owner: object) -> None:
        """Remove all steps of an owner, because its process has ended."""
        self._held.pop(owner, None)
        self._forget(owner)
        self._timers = [timer for timer in self._timers if timer.owner is not owner]
        heapq.heapify(self._timers)

    def hold(self, owner: object) -> None:
        """Hold all steps of an owner until `release`, while time passes, because its process is stopped."""
        if owner in self._held:
            return
        aside = [entry for _, entry in self._aside]
        held = _Held(_of(owner, self._first), _of(owner, [*aside, *self._entries]))
        self._forget(owner)
        self._held[owner] = held

    def release(self, owner: object) -> None:
        """Release the steps of an owner. Steps that are overdue happen at once."""
        if (held := self._held.pop(owner, None)) is None:
            return
        self._first += held.first
        self._entries += held.entries
        for timer in held.due:
            if not timer.cancelled:
                timer.run()

    def is_held(self, owner: object) -> bool:
        """Return whether the steps of an owner are held, because its process is stopped."""
        return owner in self._held

    def _forget(self, owner: object) -> None:
        """Remove all steps of an owner from the agenda, except its timers."""
        self._first = [entry for entry in self._first if entry.owner is not owner]
        self._entries = [entry for entry in self._entries if entry.owner is not owner]
        self._aside = deque(entry for entry in self._aside if entry[1].owner is not owner)

    @property
    def quiet(self) -> bool:
        """Return whether no step can happen unless time passes."""
        return not (self._entries or self._first or self._aside)

    def step(self, until: float | None = None) -> bool:
        """Take one step; return whether there was one. Time passes only when no other step is left."""
        if not self.quiet:
            self.steps += 1
            if self.steps > self._most:
                raise Endless(f"The simulation did not come to rest within {self._most:,} steps.")
            entry, self.stepping = self._next(), True
            try:
                entry.run()
            finally:
                self.stepping = False
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
        if (held := self._held.get(timer.owner)) is not None:
            held.due.append(timer)
        else:
            timer.run()
        return True

    def _next(self) -> Entry:
        """Return the next step. Steps that were passed over are set aside for a while, or until no other is left."""
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
        """Take steps until ``done()`` is true, or this many seconds have passed; return whether it is true.

        Raises `Stuck` when no further step is possible.
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
    """A token that exactly one of two threads has. The other thread waits for the token."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def give(self) -> None:
        """Pass the token to the other thread."""
        self._lock.release()

    def acquire(self) -> None:
        """Wait for the token."""
        self._lock.acquire()

    def take_soon(self, seconds: float) -> None:
        """Wait for the token during one step of another thread. Raises `Stuck` when the step takes longer than this."""
        if not self._lock.acquire(timeout=seconds):
            raise Stuck(
                f"A step took longer than {seconds:g} s: some code waits for what is not part of the simulation, "
                "a lock, a socket, time.sleep() or a thread of its own."
            )
