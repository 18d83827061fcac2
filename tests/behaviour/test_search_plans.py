"""The plans of a search: which trials they ask for, given verdicts, and that nothing but these decides."""

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ikigai_actors.behaviour.plans.plan import GO, UNJUDGED, Continuation, Trial, TrialPlan, Verdict, verdict_of
from ikigai_actors.behaviour.plans.search import MCTS, Beam, BestOf, SearchPlan
from ikigai_actors.errors import BadInput

OPTIONS = ["a", "b", "c"]
FIRST = random.Random(1).randrange


def play(terms: SearchPlan, verdicts: Sequence[Verdict], parallel: int, seed: int = 1) -> list[Trial]:
    """All trials of a plan with these verdicts, told by number, while so many trials are in flight."""
    plan: TrialPlan = terms.begin(lambda node: OPTIONS, random.Random(seed).randrange)
    trials: list[Trial] = []
    answered = 0
    while True:
        while len(trials) - answered < parallel and (trial := plan.ask()) is not None:
            trials.append(trial)
        if answered == len(trials):
            assert plan.is_over
            return trials
        plan.tell(answered + 1, verdicts[answered % len(verdicts)])
        answered += 1


def naive_mcts(trials: int, explore: float, verdicts: Sequence[Verdict], seed: int) -> list[tuple[int, str]]:
    """Monte Carlo tree search one by one, on tuples of a dict: the oracle."""
    chance = random.Random(seed)
    parent: dict[int, int] = {}
    score: dict[int, float | None] = {}
    left: dict[int, list[str]] = {0: list(OPTIONS)}
    asked: list[tuple[int, str]] = []

    def below(node: int) -> list[int]:
        return [node, *(grandchild for child in parent if parent[child] == node for grandchild in below(child))]

    def can_go_on(node: int) -> bool:
        return any(left.get(child) for child in below(node))

    def bound(node: int) -> float:
        seen = [score[child] for child in below(node) if score[child] is not None]
        all_above = [sibling for sibling in below(parent[node]) if sibling and score[sibling] is not None]
        return sum(filter(None, seen)) / len(seen) + explore * math.sqrt(math.log(len(all_above)) / len(seen))

    while len(asked) < trials and can_go_on(0):
        node = 0
        while not left[node]:
            node = max((c for c in parent if parent[c] == node and can_go_on(c)), key=lambda c: (bound(c), -c))
        prompt = left[node].pop(chance.randrange(len(left[node])))
        asked.append((node, prompt))
        number, verdict = len(asked), verdicts[(len(asked) - 1) % len(verdicts)]
        parent[number], score[number] = node, verdict.score
        left[number] = [] if verdict.over or verdict.score is None else list(OPTIONS)
    return asked


VERDICTS = st.lists(
    st.one_of(
        st.just(UNJUDGED),
        st.builds(Verdict, st.integers(0, 8).map(lambda n: n / 8), over=st.integers(0, 9).map(lambda n: n == 0)),
    ),
    min_size=1,
    max_size=30,
)
TERMS = st.one_of(
    st.builds(BestOf, st.integers(1, 9)),
    st.builds(Beam, st.integers(1, 3), st.integers(1, 4)),
    st.builds(MCTS, st.integers(1, 40)),
)


@given(VERDICTS, st.integers(0, 3))
def test_monte_carlo_tree_search_makes_the_trials_of_a_plain_recursive_one(verdicts: list[Verdict], seed: int) -> None:
    made = [(trial.of, trial.prompt) for trial in play(MCTS(40), verdicts, 1, seed)]
    assert made == naive_mcts(40, 1.4, verdicts, seed)


@given(TERMS, VERDICTS, st.integers(1, 9))
def test_a_plan_is_a_function_of_its_seed_and_the_verdicts(terms: SearchPlan, verdicts: list[Verdict], n: int) -> None:
    trials = play(terms, verdicts, n)
    assert trials == play(terms, verdicts, n)
    assert [trial.number for trial in trials] == list(range(1, len(trials) + 1))
    assert all(trial.of < trial.number for trial in trials)
    assert len(trials) <= terms.begin(lambda node: OPTIONS, FIRST).most


@given(TERMS, VERDICTS, st.integers(1, 9))
def test_nothing_goes_on_from_what_is_over_or_was_not_judged(
    terms: SearchPlan, verdicts: list[Verdict], parallel: int
) -> None:
    for trial in play(terms, verdicts, parallel):
        verdict = verdicts[(trial.of - 1) % len(verdicts)]
        assert trial.of == 0 or (verdict.score is not None and not verdict.over)


def test_best_of_takes_the_options_in_turn() -> None:
    assert [trial.prompt for trial in play(BestOf(5), [UNJUDGED], 2)] == ["a", "b", "c", "a", "b"]


def test_a_beam_goes_on_from_the_best_of_each_level() -> None:
    scores = [Verdict(score) for score in (0.1, 0.9, 0.5, 0.2, 0.3, 0.4, 0.8, 0.7, 0.6)]
    trials = play(Beam(2, 3), scores, 4)
    assert [trial.of for trial in trials] == [0] * 3 + [2] * 3 + [3] * 3 + [7] * 3 + [8] * 3


def test_a_score_that_is_enough_ends_the_search() -> None:
    trials = play(MCTS(100, enough=0.9), [Verdict(0.1), Verdict(0.95)], 1)
    assert len(trials) == 2


def test_a_search_without_options_asks_for_nothing() -> None:
    for terms in (BestOf(3), Beam(1, 1), MCTS(3)):
        plan = terms.begin(lambda node: [], FIRST)
        assert plan.ask() is None
        assert plan.is_over


@pytest.mark.parametrize("value", ["good", math.nan, math.inf, 10**400, [1], {}])
def test_a_judge_that_returns_anything_else_is_told_so(value: object) -> None:
    with pytest.raises(BadInput, match="Expected a judge to return"):
        verdict_of(value)


def test_what_a_judge_returns_is_a_verdict() -> None:
    kept = Verdict(0.5, why="half", over=True)
    assert [verdict_of(value) for value in (True, 0, 0.25, None, kept)] == [
        Verdict(1.0),
        Verdict(0.0),
        Verdict(0.25),
        UNJUDGED,
        kept,
    ]


@pytest.mark.parametrize("wrong", [lambda: BestOf(0), lambda: Beam(1, True), lambda: MCTS(1, explore=math.nan)])
def test_terms_that_cannot_be_are_refused(wrong: object) -> None:
    with pytest.raises(BadInput):
        wrong()  # type: ignore[operator]


def prompts(options: Sequence[Continuation]) -> list[Continuation]:
    return [trial.prompt for trial in play_with(options)]


def play_with(options: Sequence[Continuation]) -> list[Trial]:
    plan = BestOf(2).begin(lambda node: options, FIRST)
    return [trial for trial in (plan.ask(), plan.ask()) if trial is not None]


def test_a_search_may_go_on_without_a_prompt() -> None:
    assert prompts([GO]) == [GO, GO]
