"""The faults that may occur in a simulation, and the most of each. Random choices decide when; choice 0 is no fault."""

from dataclasses import dataclass, replace
from typing import Any

from ikigai_actors.arguments import check_count, check_flag

RARITY = 2
"""Where a fault is possible, one of this many non-plain choices is a fault."""


@dataclass(frozen=True, slots=True, repr=False)
class Faults:
    """The most faults of each kind in a run."""

    crashes: int = 0
    """The process crashes at a commit: before it, so the writes are lost; or after it, before any caller gets an
    answer.
    """
    busy: int = 0
    """The store does not answer for a moment, because another process writes."""
    full: int = 0
    """The disk is full for a moment: the store rolls a transaction back at its end."""
    lost: int = 0
    """The connection to the store is lost before COMMIT, so nothing is written."""
    unheard: int = 0
    """The connection is lost during COMMIT, before the store has received it: nothing is written, and the host does not
    know.
    """
    unanswered: int = 0
    """The connection is lost during COMMIT, after the store has carried it out: all is written, and the host does not
    know.
    """
    unreadable: int = 0
    """The store cannot be read for two seconds, except by the test itself."""
    takeovers: int = 0
    """A second host takes the database over. The first one goes on, but it is fenced: its later writes change no
    agent.
    """
    ahead: int = 0
    """The wall clock is set an hour ahead."""
    back: int = 0
    """The wall clock is set back by an hour."""
    errors: int = 0
    """A provider answers with an error."""
    cuts: int = 0
    """A reply is cut off in the middle."""
    deaf: int = 0
    """A provider ignores cancellation, and answers late, after the interrupt or the death."""
    slow_tools: int = 0
    """A tool takes longer than its time-out."""
    refusals: int = 0
    """A receiver outside refuses a delivery."""
    unthanked: int = 0
    """A receiver outside has accepted a delivery, but its answer is lost."""
    freezes: int = 0
    """One of several hosts is stopped just before a commit, and goes on later, perhaps after the end of its lease."""
    partitions: int = 0
    """One of several hosts is cut off from the database for a time. It may or may not notice."""
    unrung: int = 0
    """The hint about a commit of one of several hosts is lost, so no host is notified of it."""

    def __repr__(self) -> str:
        some = {name: getattr(self, name) for name in self.__slots__ if getattr(self, name)}
        return f"Faults({', '.join(f'{name}={most}' for name, most in some.items())})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))  # Hypothesis would print all fields

    def __post_init__(self) -> None:
        """Raise `BadInput` for a value that is no count."""
        for name in self.__slots__:
            check_count(getattr(self, name), name)


NONE = Faults()
"""No faults."""

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
"""Some faults of every kind."""

OF_HOSTS = replace(ALL, takeovers=0, freezes=2, partitions=2, unrung=3)
"""Some faults of every kind that several hosts can have."""


@dataclass(frozen=True, slots=True)
class CrashPoint:
    """A commit at which a process crashes, and whether before or after it."""

    commit: int = 1
    """The number of the commit, counted from 1 from now on."""
    committed: bool = False
    """Whether the process crashes after the commit, before any caller gets an answer; otherwise before it, so the
    writes are lost.
    """

    def __post_init__(self) -> None:
        """Raise `BadInput` if the number is no positive integer."""
        check_count(self.commit, "commit", least=1)
        check_flag(self.committed, "committed")


class Luck:
    """Counts the faults of each kind that have occurred in one run."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._left = {name: getattr(faults, name) for name in faults.__slots__}

    def possible(self, *names: str) -> list[str]:
        """Return the given kinds of faults that may still occur."""
        return [name for name in names if self._left[name] > 0]

    def spend(self, name: str) -> None:
        """Count a fault of this kind."""
        self._left[name] -= 1

    def spent(self, name: str) -> bool:
        """Return whether a fault of this kind has occurred."""
        return bool(self._left[name] < getattr(self._faults, name))
