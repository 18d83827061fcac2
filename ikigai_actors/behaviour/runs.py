"""The options with which an experiment runs, common to the five verbs."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypedDict

from ikigai_actors.arguments import check_count, check_flag, check_optional, check_plain_function
from ikigai_actors.behaviour.trials import OnTrial
from ikigai_actors.records.agents.identity import check_name
from ikigai_actors.records.budgets.budget import Budget, as_budget
from ikigai_actors.system.handles.ref import AgentRef

MOST_PARALLEL = 1_000
"""The most trials in flight."""


class RunOptions(TypedDict, total=False):
    """The options of a run: keyword arguments of `search`, `bisect`, `replay`, `regress` and `evaluate`."""

    name: str | None
    """The name of the experiment; None makes a name from the verb and the terms."""
    under: AgentRef | None
    """The agent whose child the experiment is; None for the root agent."""
    parallel: int
    """The most trials in flight; default 8, for `bisect` 1: with more, a bisection ends sooner but costs more
    probes.
    """
    budget: Budget | Mapping[str, Any] | None
    """The budget of the whole experiment."""
    retries: int
    """The number of times that a failed trial is resumed before it is judged; default 1."""
    warm: bool
    """Whether the first trial that goes on from a place is awaited before its siblings start (True). They then read its
    prefix from the cache of the model's service; otherwise each pays for it. A bisection never has
    two at one place at once.
    """
    fresh: bool
    """Whether to begin a new experiment even if one of this name lives."""
    dry_run: bool
    """Whether nothing is asked and nothing written. The result then has the ``forecast``, and what an experiment with
    these terms has found so far.
    """
    on_trial: OnTrial | None
    """Is called with the `TrialRun` and the `Verdict` of each trial that is judged in this call, in the order of the
    numbers, on the driver's thread. What it raises ends the call, as what a judge raises does; the verdict is kept. It
    may be called again for a trial whose verdict was not written when the process was killed.
    """


@dataclass(frozen=True, slots=True)
class RunConfig:
    """All `RunOptions`, with defaults for missing ones. Raises `BadInput` for an unusable value."""

    name: str | None = None
    under: AgentRef | None = None
    parallel: int = 8
    budget: Budget | Mapping[str, Any] | None = None
    retries: int = 1
    warm: bool = True
    fresh: bool = False
    dry_run: bool = False
    on_trial: OnTrial | None = None

    @classmethod
    def of(cls, verb: Callable[..., object], how: Mapping[str, Any]) -> "RunConfig":
        """Return the options that a function of this package got as keyword arguments.

        Raises `TypeError`, naming that function, for an unknown option.
        """
        known = [field.name for field in fields(cls)]
        if unknown := how.keys() - set(known):
            own = [name for name in inspect.signature(verb).parameters if name != "how"]
            raise TypeError(
                f"{verb.__name__}() takes no argument {min(unknown)!r}. It takes {', '.join([*own, *known])}."
            )
        return cls(**how)

    def __post_init__(self) -> None:
        if self.name is not None:
            object.__setattr__(self, "name", check_name(self.name))
        check_optional(self.under, AgentRef, "under", "a handle")
        check_count(self.parallel, "parallel", least=1, most=MOST_PARALLEL)
        as_budget(self.budget)
        check_count(self.retries, "retries")
        check_flag(self.warm, "warm")
        check_flag(self.fresh, "fresh")
        check_flag(self.dry_run, "dry_run")
        if self.on_trial is not None:
            check_plain_function(self.on_trial, "on_trial", "a function of a TrialRun and its Verdict, or None")
