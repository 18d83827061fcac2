"""Trials, verdicts, and the interface of a plan."""

import sys
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

from ikigai_actors.arguments import check_flag, shown
from ikigai_actors.errors import BadInput


class Go(Enum):
    """The type of `GO`, the value that replaces a prompt."""

    GO = "go"


GO: Final = Go.GO
"""The value that replaces a prompt: the trial asks for another answer to the history as it is."""

Continuation = str | Go
"""A prompt with which a trial goes on, or `GO`."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The opinion of a judge about a trial: a score, a reason, and whether the task is over."""

    score: float | None
    """The higher, the better; None if the trial cannot be judged."""
    why: str = ""
    over: bool = False
    """Whether no trial may continue this one, since the task is solved or lost."""

    def __post_init__(self) -> None:
        if self.score is not None:
            object.__setattr__(self, "score", _checked_score(self.score))
        if not isinstance(self.why, str):
            raise BadInput(f"Expected why, the reason of a verdict, to be text; got {shown(self.why)}.")
        check_flag(self.over, "over")


UNJUDGED = Verdict(None)


def verdict_of(value: object, who: str = "a judge") -> Verdict:
    """Return the `Verdict` for a judge's result: a number, True or False, a `Verdict`, or None for not judged.

    Args:
        value: what was returned.
        who: what to call the judge in the error.

    Raises: BadInput: the value is of another type.
    """
    if isinstance(value, Verdict):
        return value
    return UNJUDGED if value is None else Verdict(_checked_score(value, who))


def within_bounds(verdict: Verdict, who: str = "a judge") -> Verdict:
    """Return the verdict if its score is None or a number from 0 to 1. Raises `BadInput` otherwise."""
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
    """The number, from 1, in the order in which the plan asks for trials."""
    prompt: Continuation
    of: int = 0
    """The number of the trial whose end this one continues; 0 for the start of the experiment."""
    place: int = 0
    """The number of the place where the trial begins, for plans with several places."""
    arm: str = ""
    """The name of the variant that the trial uses, for plans that compare variants."""


class TrialPlan(Protocol):
    """The interface of a plan, which decides which trials an experiment makes."""

    most: int
    """The largest number of trials of this plan."""

    @property
    def is_over(self) -> bool:
        """Return whether the plan will ask for no further trial, whatever the pending verdicts are."""

    def ask(self) -> Trial | None:
        """Return the next trial; None if the plan needs a further verdict first, or is over."""

    def tell(self, number: int, verdict: Verdict) -> None:
        """Take the verdict of a trial. Verdicts come in the order of the trials' numbers."""
