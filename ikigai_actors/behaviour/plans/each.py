"""Every case, in every arm, so many times. No trial depends on another."""

from collections.abc import Sequence

from ikigai_actors.arguments import check_count
from ikigai_actors.behaviour.plans.plan import Continuation, Trial, TrialPlan, Verdict


class Each(TrialPlan):
    """The plan of a replay, a regression or an evaluation: trials of one case follow one another."""

    def __init__(self, prompts: Sequence[Continuation], *, samples: int = 1, arms: Sequence[str] = ("",)) -> None:
        """Make the plan.

        Args:
            prompts: what each case is begun with.
            samples: how often a case is tried in each arm.
            arms: what is compared.
        """
        check_count(samples, "samples", least=1)
        self._trials = [(place, arm) for place in range(len(prompts)) for arm in arms for _ in range(samples)]
        self._prompts, self._made = prompts, 0
        self.most = len(self._trials)

    @property
    def is_over(self) -> bool:
        return self._made == len(self._trials)

    def ask(self) -> Trial | None:
        if self.is_over:
            return None
        place, arm = self._trials[self._made]
        self._made += 1
        return Trial(self._made, self._prompts[place], place=place, arm=arm)

    def tell(self, number: int, verdict: Verdict) -> None:
        pass  # no trial depends on another
