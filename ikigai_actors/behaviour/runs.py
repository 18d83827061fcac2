"""How an experiment is run, whatever it tries: what the five verbs have in common."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ikigai_actors.arguments import check_count, check_flag, check_optional, check_plain_function
from ikigai_actors.behaviour.trials import OnTrial
from ikigai_actors.records.agents.identity import check_name
from ikigai_actors.records.budgets.budget import Budget, as_budget
from ikigai_actors.system.handles.ref import AgentRef

MOST_PARALLEL = 1_000
"""The most trials in flight."""


@dataclass(frozen=True, slots=True)
class RunConfig:
    """How an experiment is run. Raises `BadInput` when one of them cannot be used."""

    name: str | None = None
    """Of the experiment; None for one that follows from its terms."""
    under: AgentRef | None = None
    """The agent below which it is made; None for agent 0."""
    parallel: int = 8
    """The most trials in flight."""
    budget: Budget | Mapping[str, Any] | None = None
    """Its own ceiling."""
    retries: int = 1
    """How often a trial that failed is resumed before it is judged."""
    warm: bool = True
    """Whether the first trial that goes on from a place is awaited before its siblings are born: they find its prefix
    in the cache of the model's service, where each would pay for it otherwise.
    """
    fresh: bool = False
    """Whether a new one is begun, also when one of this name lives."""
    dry_run: bool = False
    """Whether nothing is asked and nothing written: only what it would cost is said."""
    on_trial: OnTrial | None = None
    """Is called for each trial when its verdict is new, in the order of the numbers, on the driver's thread. It may be
    called again for a trial whose verdict was not written when the process was killed.
    """

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
