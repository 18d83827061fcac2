"""The faults that may come in a simulation, and how often. Chance decides when; choice 0 is always: no fault."""

from dataclasses import dataclass, replace
from typing import Any

from ikigai_actors.arguments import check_count, check_flag

RARITY = 2
"""Of this many choices that are not plain, where a fault is possible, one is a fault."""


@dataclass(frozen=True, slots=True, repr=False)
class Faults:
    """How many of each kind a run may have at most."""

    crashes: int = 0
    """The process ends at a commit: before it, and the writes are lost, or after it, before any caller is answered."""
    busy: int = 0
    """The store does not answer for a moment: another process writes."""
    full: int = 0
    """The disk is full for a moment: the store undoes a transaction whose work is done."""
    lost: int = 0
    """The connection to the store is lost before COMMIT: nothing is written."""
    unheard: int = 0
    """The connection is lost during COMMIT, which the store has not heard: nothing is written, and the host does not
    know.
    """
    unanswered: int = 0
    """The connection is lost during COMMIT, which the store has carried out: all is written, and the host does not
    know.
    """
    unreadable: int = 0
    """Nothing can be read from the store for two seconds; the test itself reads on."""
    takeovers: int = 0
    """A second host takes the database over. The first one goes on, fenced: its later writes change no agent."""
    ahead: int = 0
    """The wall clock is set an hour ahead."""
    back: int = 0
    """The wall clock is set back by an hour."""
    errors: int = 0
    """A provider answers with an error instead."""
    cuts: int = 0
    """A reply breaks off in the middle."""
    deaf: int = 0
    """A provider ignores cancellation, and answers late: after the interrupt, or after the death."""
    slow_tools: int = 0
    """A tool takes longer than its time-out."""
    refusals: int = 0
    """A receiver outside refuses a delivery."""
    unthanked: int = 0
    """A receiver outside has taken a delivery, and its answer is lost."""
    freezes: int = 0
    """One of several hosts is stopped as it is about to commit, and goes on later: perhaps after its lease."""
    partitions: int = 0
    """One of several hosts is cut off from the database for a time, and may or may not hear of it."""
    unrung: int = 0
    """Nobody hears of a commit of one of several hosts: the hint is lost."""

    def __repr__(self) -> str:
        some = {name: getattr(self, name) for name in self.__slots__ if getattr(self, name)}
        return f"Faults({', '.join(f'{name}={most}' for name, most in some.items())})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))  # Hypothesis would print all fields

    def __post_init__(self) -> None:
        """Raise `BadInput` for a number that is none."""
        for name in self.__slots__:
            check_count(getattr(self, name), name)


NONE = Faults()
"""Nothing goes wrong."""

ALL = Faults(
    crashes=2,
    busy=2,
    full=1,
    lost=1,
    unheard=1,
    unanswered=1,
    unreadable=1,
    takeovers=1,
    ahead=1,
    back=1,
    errors=3,
    cuts=2,
    deaf=2,
    slow_tools=1,
    refusals=1,
    unthanked=1,
)
"""A bad day."""

OF_HOSTS = replace(ALL, takeovers=0, freezes=2, partitions=2, unrung=3)
"""A bad day of several hosts."""


@dataclass(frozen=True, slots=True)
class CrashPoint:
    """A commit at which the process ends."""

    commit: int = 1
    """The number of the commit, counted from now, beginning with 1."""
    committed: bool = False
    """Whether it ends after the commit, before any caller is answered; else before it, and the writes are lost."""

    def __post_init__(self) -> None:
        """Raise `BadInput` unless there is such a commit."""
        check_count(self.commit, "commit", least=1)
        check_flag(self.committed, "committed")


class Luck:
    """Counts the faults of one run."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._left = {name: getattr(faults, name) for name in faults.__slots__}

    def possible(self, *names: str) -> list[str]:
        """The faults of these kinds that may still happen."""
        return [name for name in names if self._left[name] > 0]

    def spend(self, name: str) -> None:
        """Count a fault."""
        self._left[name] -= 1

    def spent(self, name: str) -> bool:
        """Whether a fault of this kind has happened."""
        return bool(self._left[name] < getattr(self._faults, name))
