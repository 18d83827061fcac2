"""A dispatcher without threads: the calling thread runs every actor, and a random source chooses which.

    dispatcher = SeededDispatcher(random.Random(7))
    future = MyActor.start(dispatcher).ask("hello", block=False)
    dispatcher.run_until_idle()
    assert future.get(timeout=0) == "hi"

Same seed, same order, same result: simulations are built on it. Before every message, chance chooses which of the ready
actors runs next. Choice 0 goes on in order, as one worker would: the actor at hand until it has nothing more to do or
has used up its quantum, then the next in line. Every other choice preempts it. So Hypothesis, which shrinks towards 0,
ends at the fewest preemptions that show a defect.

The choices are drawn outside handlers. Any exception there (Hypothesis ends an example with a `BaseException`) goes to
the caller, and so does an exception of a handler that is no `Exception`. No exception is swallowed, and the ready
actors stay ready.
"""

from collections.abc import Callable
from typing import Protocol

from ikigai_actors.actors.actor import QUANTUM, Dispatcher, PooledActor
from ikigai_actors.actors.futures import forbid_blocking
from ikigai_actors.errors import IkigaiError

CHOICES = 1_500
"""The number of random choices. After them everything runs in plain order. An example of Hypothesis can hold about
4,000 draws.
"""


class Chance(Protocol):
    """The source of random choices: a `random.Random`, or Hypothesis's."""

    def randrange(self, stop: int, /) -> int:
        """Return a number from 0 to ``stop`` - 1."""


class StillBusy(IkigaiError):
    """The budget of steps is used up and actors are still ready. Perhaps they keep each other busy forever."""


class SeededDispatcher(Dispatcher):
    """A dispatcher that runs one message at a time, when its caller asks for it."""

    def __init__(
        self, random: Chance, choices: int = CHOICES, on_run: Callable[[PooledActor], None] = lambda actor: None
    ) -> None:
        """Make a dispatcher that runs in plain order after this many choices.

        ``on_run`` gets the actor before each message.
        """
        self._random = random
        self._left = choices
        self._on_run = on_run
        self._ready: list[PooledActor] = []
        self._used = 0
        self._closed = False
        self.drawn: list[int] = []
        """The choices drawn until now: what to print beside a failure."""

    def schedule(self, actor: PooledActor) -> None:
        if not self._closed:
            self._ready.append(actor)

    @property
    def ready(self) -> int:
        return len(self._ready)

    def run_one(self) -> bool:
        """Let one actor handle one message; return whether there was a ready one."""
        if not self._ready:
            return False
        choice = self._choose(len(self._ready))
        actor = self._ready.pop(choice)
        used, self._used = 1 if choice else self._used + 1, 0
        if self._run(actor, 1):
            if used < QUANTUM:
                self._ready.insert(0, actor)
                self._used = used
            else:
                self._ready.append(actor)
        return True

    def run_until_idle(self, budget: int = 1_000_000) -> int:
        """Run until no actor is ready; return the number of steps. Raises `StillBusy` after ``budget`` steps."""
        for steps in range(budget):
            if not self.run_one():
                return steps
        if self._ready:
            raise StillBusy(f"{len(self._ready)} actors are still busy after {budget:,} steps.")
        return budget

    def close(self) -> None:
        self._closed = True
        while self._ready:
            self._run(self._ready.pop(0), QUANTUM)

    def _choose(self, count: int) -> int:
        if count == 1 or self._left == 0:
            return 0
        choice = self._random.randrange(count)
        self._left -= 1
        self.drawn.append(choice)
        return choice

    def _run(self, actor: PooledActor, quantum: int) -> bool:
        self._on_run(actor)
        allowed = forbid_blocking("the seeded dispatcher's thread")
        try:
            return actor.run_slice(quantum)
        finally:
            forbid_blocking(allowed)
