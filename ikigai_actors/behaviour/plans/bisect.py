"""Find the first bad place of a history with a judge that errs.

There are ``n`` places, from 0. Hypothesis ``k`` says that the places from ``k`` on are bad: with 0 all places are bad,
with ``n`` no place is. The error rates of the judge are unknown, and are integrated out: a good place
is called bad with a probability from Beta(1, 9), a bad place with a probability from Beta(9, 1). The next probe is the
place after whose verdict the least entropy is expected; prefix sums make this computation O(n).
"""

import math
from collections.abc import Sequence
from itertools import accumulate
from operator import mul

from ikigai_actors.arguments import check_count, shown
from ikigai_actors.behaviour.plans.plan import Continuation, Trial, TrialPlan, Verdict
from ikigai_actors.errors import BadInput

_FALSE, _TRUE = (1, 9), (9, 1)
"""The parameters of the beta distributions for calling a good place bad, and a bad place bad."""

MOST_WEIGHT = 1e100
"""The largest weight of a hypothesis: a sum of a million such weights is still a finite number."""

BAD_BELOW = 0.5
"""A score below this calls a place bad, as does False."""


def is_weight(value: object) -> bool:
    """Return whether a value can be the weight of a hypothesis: a number of at least 0."""
    return not isinstance(value, bool) and isinstance(value, int | float) and 0 <= value <= MOST_WEIGHT


class Posterior:
    """The probability of each hypothesis of a bisection, after some verdicts."""

    def __init__(self, places: int, prior: Sequence[float] | None = None) -> None:
        """Begin without verdicts.

        Args:
            places: the number of places, at least 1.
            prior: weights of the hypotheses, ``places + 1`` of them; None for equal ones.

        Raises:
            BadInput: there is no place, or the weights are no such weights.
        """
        self._n = check_count(places, "places", least=1)
        weights = [1.0] * (places + 1) if prior is None else prior
        if not isinstance(weights, Sequence) or len(weights) != places + 1 or not all(map(is_weight, weights)):
            raise BadInput(f"Expected prior to be {places + 1} weights, 0 or more and not all 0; got {shown(prior)}.")
        if not sum(weights):
            raise BadInput(f"Expected prior to have a weight above 0; got {shown(prior)}.")
        self._prior = [math.log(weight) if weight else -math.inf for weight in weights]
        self._bad, self._good = [0] * places, [0] * places
        self._weigh()

    def tell(self, place: int, bad: bool) -> None:
        """Take a verdict on a place, counted from 0. Raises `BadInput` if there is no such place."""
        check_count(place, "place", most=self._n - 1)
        (self._bad if bad else self._good)[place] += 1
        self._weigh()

    @property
    def probabilities(self) -> list[float]:
        """Return the probability of each of the ``places + 1`` hypotheses; their sum is 1."""
        return list(self._weights)

    @property
    def best(self) -> tuple[int, float]:
        """Return the most probable hypothesis, the lowest among equal ones, and its probability."""
        k = max(range(self._n + 1), key=lambda k: (self._weights[k], -k))
        return k, self._weights[k]

    def next_probe(self, without: frozenset[int] = frozenset()) -> int | None:
        """Return the place whose verdict is expected to reduce the uncertainty most.

        None if all places are excluded.
        """
        bad, good = (
            self._expected(self._true, self._false),
            self._expected([1 - rate for rate in self._true], [1 - rate for rate in self._false]),
        )
        rivals = (place for place in range(self._n) if place not in without)
        return min(rivals, key=lambda place: bad[place] + good[place], default=None)

    def _weigh(self) -> None:
        """Compute each hypothesis' weight, and its probability of a verdict "bad" on a bad and on a good place."""
        bad, good = [0, *accumulate(self._bad)], [0, *accumulate(self._good)]
        logs: list[float] = []
        self._true: list[float] = []
        self._false: list[float] = []
        for k, prior in enumerate(self._prior):
            before, after = (bad[k], good[k]), (bad[-1] - bad[k], good[-1] - good[k])
            logs.append(prior + _log_marginal(_FALSE, before) + _log_marginal(_TRUE, after))
            self._false.append((_FALSE[0] + before[0]) / (sum(_FALSE) + sum(before)))
            self._true.append((_TRUE[0] + after[0]) / (sum(_TRUE) + sum(after)))
        most = max(logs)
        weights = [math.exp(log - most) for log in logs]
        total = sum(weights)
        self._weights = [weight / total for weight in weights]

    def _expected(self, if_bad: Sequence[float], if_good: Sequence[float]) -> list[float]:
        """Return, for each place, the probability of a verdict times the entropy after it.

        A place is bad under the hypotheses up to its number. With z as the sum of the weights w after the verdict, z
        times their entropy is z log z − Σ w log w.
        """
        up, down = list(map(mul, self._weights, if_bad)), list(map(mul, self._weights, if_good))
        sums, terms = [0.0, *accumulate(up)], [0.0, *accumulate(map(_xlogx, up))]
        rest, rest_terms = [0.0, *accumulate(reversed(down))], [0.0, *accumulate(map(_xlogx, reversed(down)))]
        return [
            _xlogx(sums[j + 1] + rest[self._n - j]) - terms[j + 1] - rest_terms[self._n - j] for j in range(self._n)
        ]


def _xlogx(x: float) -> float:
    return x * math.log(x) if x else 0.0


def _log_marginal(shape: tuple[int, int], counts: tuple[int, int]) -> float:
    (a, b), (bad, good) = shape, counts
    return _log_beta(a + bad, b + good) - _log_beta(a, b)


def _log_beta(a: int, b: int) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


class Bisection(TrialPlan):
    """A plan that probes until one hypothesis is sure enough, or until the largest number of verdicts is reached."""

    def __init__(
        self,
        places: int,
        prompt: Continuation,
        *,
        sure: float = 0.99,
        most: int = 60,
        prior: Sequence[float] | None = None,
    ) -> None:
        if isinstance(sure, bool) or not isinstance(sure, int | float) or not 0.5 < sure < 1:
            raise BadInput(f"Expected sure to be a probability above 0.5 and below 1; got {sure!r}.")
        self.posterior = Posterior(places, prior)
        self.most = check_count(most, "most", least=1)
        self._sure, self._prompt = sure, prompt
        self._places: list[int] = []  # of the trials, in order
        self._in_flight: set[int] = set()
        self._skipped: frozenset[int] = frozenset()

    @property
    def is_over(self) -> bool:
        ended = self.posterior.best[1] >= self._sure or len(self._places) >= self.most
        return ended or (not self._in_flight and self._probe() is None)

    def ask(self) -> Trial | None:
        if self.posterior.best[1] >= self._sure or len(self._places) >= self.most:
            return None
        place = self._probe()
        if place is None:
            return None
        self._places.append(place)
        self._in_flight.add(place)
        return Trial(len(self._places), self._prompt, place=place)

    def tell(self, number: int, verdict: Verdict) -> None:
        place = self._places[number - 1]
        self._in_flight.remove(place)
        if verdict.score is None:
            self._skipped |= {place}  # as git's skip: it would not be judged the next time either
        else:
            self.posterior.tell(place, verdict.score < BAD_BELOW)

    def _probe(self) -> int | None:
        return self.posterior.next_probe(self._skipped | self._in_flight)
