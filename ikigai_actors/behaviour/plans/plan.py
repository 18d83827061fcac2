"""Trials, verdicts, and what a plan is."""

import sys
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

from ikigai_actors.arguments import check_flag, shown
from ikigai_actors.errors import BadInput


class Go(Enum):
    """No prompt: the trial goes on with what its history ends with."""

    GO = "go"


GO: Final = Go.GO
"""In place of a prompt: the same position is answered once more."""

Continuation = str | Go
"""The prompt that a trial goes on with."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's opinion of a trial."""

    score: float | None
    """The higher, the better; None when it cannot be judged."""
    why: str = ""
    over: bool = False
    """Whether nothing goes on from here: the puzzle is solved, or lost."""

    def __post_init__(self) -> None:
        if self.score is not None:
            object.__setattr__(self, "score", _checked_score(self.score))
        if not isinstance(self.why, str):
            raise BadInput(f"Expected why, the reason of a verdict, to be text; got {shown(self.why)}.")
        check_flag(self.over, "over")


UNJUDGED = Verdict(None)


def verdict_of(value: object, who: str = "a judge") -> Verdict:
    """The verdict that a judge returned: a number, True or False, a `Verdict`, or None for what it cannot judge.

    Args:
        value: what was returned.
        who: the judge, for the error.

    Raises:
        BadInput: it is anything else.
    """
    if isinstance(value, Verdict):
        return value
    return UNJUDGED if value is None else Verdict(_checked_score(value, who))


def within_bounds(verdict: Verdict, who: str = "a judge") -> Verdict:
    """The verdict, if its score can be a rate: a number from 0 to 1, or none. Raises `BadInput`."""
    if verdict.score is not None and not 0 <= verdict.score <= 1:
        raise BadInput(f"Expected {who} to return a number from 0 to 1; got {verdict.score:g}.")
    return verdict


def _checked_score(value: object, who: str = "a judge") -> float:
    if not isinstance(value, int | float) or not -sys.float_info.max <= value <= sys.float_info.max:
        raise BadInput(f"Expected {who} to return a number, True, False, None or a Verdict; got {shown(value)}.")
    return float(value)


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial that a plan asks for."""

    number: int
    """From 1, in the order in which they are asked for."""
    prompt: Continuation
    of: int = 0
    """The trial from whose end it goes on; 0 for where the experiment begins."""
    place: int = 0
    """For plans that begin at several places: which one."""
    arm: str = ""
    """For plans that compare: what is different in this trial."""


class TrialPlan(Protocol):
    """Decides which trials are made."""

    most: int
    """How many trials it asks for at most."""

    @property
    def is_over(self) -> bool:
        """Whether no further trial will be asked for, whatever the verdicts of those in flight are."""

    def ask(self) -> Trial | None:
        """The next trial; None when there is none without a further verdict."""

    def tell(self, number: int, verdict: Verdict) -> None:
        """Take the verdict of a trial. Verdicts come in the order of the numbers."""
