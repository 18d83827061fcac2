"""Schedules: the choices of a run that deviate from plain order, by their number.

    Schedule.parse("17:1 23:2")      choice 17 takes the second option, choice 23 the third; a failure prints it
    Schedule.seeded(7)               the schedule of a number, always the same

A run has some hundred choices, and most defects need two or three that are not plain. So a schedule is short; each of
its choices can be taken back by itself, without moving the others; and it can be read, kept and run again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from ikigai_actors.errors import BadInput

HORIZONS = (64, 256, 1024)
"""The lengths of schedules, in choices."""

DEVIATIONS = 32
"""The most deviating choices of a schedule."""

VARIETY = 12
"""The number of options among which a deviating choice is drawn."""


@dataclass(frozen=True, slots=True, repr=False)
class Schedule:
    """The choices of a run that deviate from plain order."""

    choices: Mapping[int, int]
    """The option by the number of the choice, from 0. Option 1 is the second one, and so on."""

    @classmethod
    def parse(cls, text: str) -> "Schedule":
        """Parse the text of a schedule, which a failure has printed."""
        try:
            pairs = [pair.split(":") for pair in text.split()]
            return cls({int(number): int(choice) for number, choice in pairs})
        except ValueError:
            raise BadInput(f"Expected a schedule as a failure prints it, as in '17:1 23:2'; got {text!r}.") from None

    @classmethod
    def seeded(cls, seed: int) -> "Schedule":
        """Return the schedule that a number as random seed gives, the same each time."""
        random = Random(seed)
        horizon, count = random.choice(HORIZONS), random.randrange(DEVIATIONS + 1)
        return cls({random.randrange(horizon): random.randint(1, VARIETY) for _ in range(count)})

    def begin(self) -> "Following":
        """Return a source of random choices that follows the schedule."""
        return Following(self)

    def __str__(self) -> str:
        return " ".join(f"{number}:{choice}" for number, choice in sorted(self.choices.items()))

    def __repr__(self) -> str:
        return f"Schedule.parse({str(self)!r})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))  # Hypothesis would print the fields


PLAIN = Schedule({})
"""The schedule without deviations: everything happens in plain order."""


class Following:
    """A source of random choices that follows a schedule, and is plain where the schedule has no choice."""

    def __init__(self, schedule: Schedule) -> None:
        self._choices, self._number = schedule.choices, -1

    def randrange(self, stop: int, /) -> int:
        """Return the next choice. A choice beyond the options wraps around to the second option."""
        self._number += 1
        choice = self._choices.get(self._number, 0)
        return 1 + (choice - 1) % (stop - 1) if choice and stop > 1 else 0
