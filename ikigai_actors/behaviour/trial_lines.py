"""Makes one line of text for each judged trial of an experiment."""

from collections.abc import Callable

from ikigai_actors.behaviour.plans.bisect import BAD_BELOW
from ikigai_actors.behaviour.plans.plan import Verdict
from ikigai_actors.behaviour.replays import BASELINE
from ikigai_actors.behaviour.trials import OnTrial, TrialRun
from ikigai_actors.verbs.text.harmless import one_line
from ikigai_actors.verbs.text.naming import named


def trial_lines(line: Callable[[str], object], words: Callable[[Verdict], str]) -> OnTrial:
    """Return a function that shows a line for each judged trial; ``words`` turns the verdict into text."""

    def show(run: TrialRun, verdict: Verdict) -> None:
        of = run.recorded
        where = f"trial {run.trial.number}" if of is None else f"turn {of.opens} of {named(of.agent)}"
        arm = f" ({BASELINE})" if run.trial.arm == BASELINE else ""
        said = words(verdict) if verdict.score is not None else f"not judged{verdict.why and ': '}{verdict.why}"
        line(one_line(f"{where}{arm}: {said}"))

    return show


def score(verdict: Verdict) -> str:
    """Return the score of a verdict as text."""
    return f"{verdict.score:g}"


def good_or_bad(verdict: Verdict) -> str:
    """Return the verdict of a bisection as one word."""
    return "bad" if verdict.score is not None and verdict.score < BAD_BELOW else "good"


def same_or_different(verdict: Verdict) -> str:
    """Return the first difference of a replay as text, or ``same``."""
    return verdict.why or "same"
