"""The plan that makes trials of every case, in every arm, a number of times."""

from collections.abc import Sequence
from itertools import product
from typing import Final

from ikigai_actors.arguments import check_count
from ikigai_actors.behaviour.plans.plan import Continuation, Trial, TrialPlan, Verdict

CASES_AT_ONCE: Final = 16
"""The number of cases whose first samples are made before any second sample."""


class Each(TrialPlan):
    """The plan of a replay, a regression or an evaluation, which makes trials of each case in each arm.

    The first samples of a group of cases come first, in all arms, then the second samples, and so on. Later samples of
    a case wait for its first sample, whose prefix they read from the cache of the model's service, and do not delay
    other cases meanwhile. The group is small, so that the service still has the prefix.

    A case may continue another case, as the turns of one log do. Then each trial of the case continues the trial of
    that case in the same arm with the same sample, and all logs are replayed side by side.
    """

    def __init__(
        self,
        prompts: Sequence[Continuation],
        *,
        samples: int = 1,
        arms: Sequence[str] = ("",),
        after: Sequence[int | None] = (),
    ) -> None:
        """Make the plan.

        Args:
            prompts: the prompt of each case.
            samples: the number of trials of each case in each arm.
            arms: the names of the variants to compare.
            after: for each case the earlier case whose end it continues; None to begin at the recorded position. Empty
                if no case continues another.
        """
        check_count(samples, "samples", least=1)
        before = list(after) or [None] * len(prompts)
        depths: list[int] = []
        for place in before:
            depths.append(0 if place is None else depths[place] + 1)
        order = sorted(range(len(prompts)), key=depths.__getitem__)
        blocks = {case: (depths[case], rank // CASES_AT_ONCE) for rank, case in enumerate(order)}
        trials = product(order, arms, range(samples))
        self._trials = sorted(trials, key=lambda trial: (blocks[trial[0]], trial[2]))
        numbers = {trial: number for number, trial in enumerate(self._trials, 1)}
        self._of = [
            0 if (parent := before[place]) is None else numbers[parent, arm, sample]
            for place, arm, sample in self._trials
        ]
        self._prompts, self._made, self._told = prompts, 0, 0
        self.trials = [(place, arm) for place, arm, _ in self._trials]
        """The case and the arm of each trial, in the order of the trials' numbers."""
        self.most = len(self._trials)

    @property
    def is_over(self) -> bool:
        return self._made == len(self._trials)

    def ask(self) -> Trial | None:
        if self.is_over or self._of[self._made] > self._told:
            return None
        place, arm, _ = self._trials[self._made]
        self._made += 1
        return Trial(self._made, self._prompts[place], self._of[self._made - 1], place=place, arm=arm)

    def tell(self, number: int, verdict: Verdict) -> None:
        self._told = number
