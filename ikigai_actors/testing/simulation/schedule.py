"""A schedule: the choices of a run that are not plain, by their number. All other choices go on in order.

    Schedule.parse("17:1 23:2")      at the 17th choice the second is taken, at the 23rd the third; a failure prints it
    Schedule.seeded(7)               the same one for the same number

A run has some hundred choices, and most defects need two or three that are not plain. So a schedule is short; each of
its choices can be taken back by itself, without moving the others; and it can be read, kept and run again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from ikigai_actors.errors import BadInput

HORIZONS = (64, 256, 1024)
"""How far a schedule reaches, in choices."""

DEVIATIONS = 32
"""The most choices of a schedule that are not plain."""

VARIETY = 12
"""The number of options among which a choice that is not plain is drawn."""


@dataclass(frozen=True, slots=True, repr=False)
class Schedule:
    """The choices that are not plain."""

    choices: Mapping[int, int]
    """The number of each choice, from 0, and the option: 1 is the second one, and so on."""

    @classmethod
    def parse(cls, text: str) -> "Schedule":
        """The schedule that a failure has printed."""
        try:
            pairs = [pair.split(":") for pair in text.split()]
            return cls({int(number): int(choice) for number, choice in pairs})
        except ValueError:
            raise BadInput(f"Expected a schedule as a failure prints it, as in '17:1 23:2'; got {text!r}.") from None

    @classmethod
    def seeded(cls, seed: int) -> "Schedule":
        """The schedule of a number."""
        random = Random(seed)
        horizon, count = random.choice(HORIZONS), random.randrange(DEVIATIONS + 1)
        return cls({random.randrange(horizon): random.randint(1, VARIETY) for _ in range(count)})

    def begin(self) -> "Following":
        """A source of chance that follows the schedule."""
        return Following(self)

    def __str__(self) -> str:
        return " ".join(f"{number}:{choice}" for number, choice in sorted(self.choices.items()))

    def __repr__(self) -> str:
        return f"Schedule.parse({str(self)!r})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))  # Hypothesis would print the fields


PLAIN = Schedule({})
"""Everything goes on in order."""


class Following:
    """A `Chance` that follows a schedule."""

    def __init__(self, schedule: Schedule) -> None:
        self._choices, self._number = schedule.choices, -1

    def randrange(self, stop: int, /) -> int:
        """The next choice. A number beyond the options counts from the second one again."""
        self._number += 1
        choice = self._choices.get(self._number, 0)
        return 1 + (choice - 1) % (stop - 1) if choice and stop > 1 else 0
