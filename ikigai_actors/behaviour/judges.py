"""Ready-made judges: a question to a model, a program, or an evaluator of pydantic-evals."""

import asyncio
import inspect
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, TypeVar, overload

from ikigai_actors.arguments import check_flag, check_plain_function, check_timeout, shown
from ikigai_actors.behaviour.plans.plan import UNJUDGED, Verdict, within_bounds
from ikigai_actors.behaviour.programs import run_program
from ikigai_actors.behaviour.trials import Judge, JudgeAsked, TrialRun, settled
from ikigai_actors.errors import BadInput, BudgetExceeded, IkigaiError, ProviderMissing
from ikigai_actors.reach.trials import check_answered, check_model, end_agent
from ikigai_actors.system.handles.ref import AgentRef, System
from ikigai_actors.text import check_text

J = TypeVar("J", bound=Judge)

SKIP = 125
"""The exit code of a program that cannot judge, as for ``git bisect run``."""

_ANSWER = re.compile(r"\b(yes|no)\b|(?<![\w.])([01](?:\.\d+)?)(?![\w.])", re.IGNORECASE)


@overload
def blocks(judge: J, *, timeout: float | None = None) -> J: ...


@overload
def blocks(judge: None = None, *, timeout: float | None = None) -> Callable[[J], J]: ...


def blocks(judge: J | None = None, *, timeout: float | None = None) -> J | Callable[[J], J]:
    """Mark a judge as blocking: it then runs on threads, for several trials at once.

        @blocks(timeout=30)
        def judge(run): ...

    Args:
        judge: the judge; None for a decorator.
        timeout: seconds after which it is waited for no longer, and the trial cannot be judged; None for no end. Its
            thread is left to itself: Python can end none.

    Raises:
        BadInput: the judge is no function, or the time-out no number of seconds.
    """
    check_timeout(timeout)
    if judge is None:
        return lambda message: blocks(message, timeout=timeout)
    check_plain_function(judge, "judge", "a function of a TrialRun")
    judge.blocks, judge.timeout = True, timeout  # type: ignore[attr-defined]  # functions have attributes
    return judge


def bounded(judge: Judge) -> Judge:
    """Return the same judge, with a check that its score is a number from 0 to 1."""

    def judged(run: TrialRun) -> Any:
        return settled(judge(run), within_bounds)

    for mark in ("blocks", "timeout"):
        setattr(judged, mark, getattr(judge, mark, None))
    return judged


def check_judge(judge: object, system: System) -> None:
    """Check that a value is a judge that this system can use. Raises `BadInput`."""
    check_plain_function(judge, "judge", "a function of a TrialRun")
    if (model := getattr(judge, "model", None)) is not None:
        check_model(system, model)
        check_answered(system, {"model": model}, ())


def ask(question: str, *, model: str | None = None) -> Judge:
    """Return a judge that asks a model about each trial, in a fork of the trial, so that the prompt cache is used.

    Args:
        question: asked after the trial's answer. The first word of the reply counts: yes, no, or a number from 0 to 1.
        model: the model to ask, as ``provider:model``; None for the trial's own model.

    Raises:
        BadInput: the question is blank.
    """
    if not check_text(question, "question").strip():
        raise BadInput("Expected a question about each trial, got blank text.")

    @blocks
    def judge(run: TrialRun) -> Verdict | JudgeAsked:
        try:
            asked = run.agent.fork(question, model=model, restart="temporary")
        except BudgetExceeded:
            raise
        except IkigaiError as error:
            return Verdict(None, f"The judge cannot be asked: {error}")
        return JudgeAsked(asked, lambda: _answer_of(asked))

    judge.model = model  # type: ignore[attr-defined]  # functions have attributes
    return judge


def _answer_of(asked: AgentRef) -> Verdict:
    try:
        text = asked.reply().text
    except ProviderMissing as error:  # no verdict: the same call asks again when there is a model
        end_agent(asked, str(error))
        raise
    except IkigaiError as error:
        return Verdict(None, f"The judge gave no answer: {error}")
    answered = _ANSWER.search(text)
    if answered is None:
        return Verdict(None, text)
    word, number = answered.groups()
    return Verdict(float(number) if word is None else float(word.lower() == "yes"), text)


def program(command: Sequence[str], *, score: bool = False, timeout: float | None = 60) -> Judge:
    """Return a judge that runs a program with the trial's text as standard input.

    Args:
        command: the program and its arguments.
        score: whether the program prints a number as the score; else its exit code counts, as for ``git bisect run``: 0
            is good, 125 cannot be judged, any other up to 127 is bad.
        timeout: seconds after which the program is killed and the trial counts as not judged; None for no limit.

    Raises:
        BadInput: the command is no list of texts, or there is no such program.
    """
    if isinstance(command, str) or not command or not all(isinstance(part, str) for part in command):
        raise BadInput(f"Expected a program with its arguments, as a list of texts; got {shown(command)}.")
    check_flag(score, "score")
    check_timeout(timeout)
    if shutil.which(command[0]) is None:
        raise BadInput(f"There is no program {command[0]!r} to judge with: name one that is installed, or its path.")

    @blocks
    def judge(run: TrialRun) -> Verdict:
        try:
            done = run_program(command, run.text, timeout)
        except subprocess.TimeoutExpired:
            return Verdict(None, f"{command[0]} took longer than {timeout} seconds")
        why = (done.printed or done.complained).strip()
        if done.status == SKIP:
            return Verdict(None, why)
        if not 0 <= done.status <= 127 or (score and done.status):
            complaint = done.complained.strip() or "it says nothing"
            raise BadInput(
                f"The judge {command[0]!r} ended with exit code {done.status}: {complaint}. Fix it and run the same "
                "again: verdicts are kept."
            )
        if not score:
            return Verdict(float(done.status == 0), why)
        try:
            return Verdict(float(done.printed), why)
        except ValueError:
            raise BadInput(
                f"Expected the judge {command[0]!r} to print a number; it prints {shown(done.printed)}."
            ) from None

    return judge


def evaluator(candidate: Any, *, expected: Any = None) -> Judge:
    """Return a judge that uses an evaluator of pydantic-evals, or any object with a method ``evaluate`` of this kind.

    Its context has ``output``, the trial's value or text, ``inputs``, the trial's prompt, and ``expected_output``; no
    duration and no spans. Of several results in a dict the mean counts.

    Raises:
        BadInput: it has no such method.
    """
    evaluate = getattr(candidate, "evaluate", None)
    if isinstance(candidate, type) or not callable(evaluate):
        raise BadInput(f"Expected an evaluator, with a method evaluate; got {shown(candidate)}.")

    @blocks
    def judge(run: TrialRun) -> Verdict:
        if run.reply is None:
            return UNJUDGED
        output = run.text if run.reply.output is None else run.reply.output
        context = SimpleNamespace(
            name=f"trial {run.trial.number}",
            inputs=run.trial.prompt if isinstance(run.trial.prompt, str) else None,
            output=output,
            expected_output=expected,
            metadata=None,
            duration=0.0,
            attributes={},
            metrics={},
        )
        outcome = evaluate(context)
        return _verdict_of(asyncio.run(_awaited(outcome)) if inspect.isawaitable(outcome) else outcome)

    return judge


async def _awaited(awaitable: Any) -> Any:
    return await awaitable


def _verdict_of(outcome: Any) -> Verdict:
    """Return the verdict for an evaluator's result: a value, a value with a reason, or a dict of several."""
    if isinstance(outcome, Mapping):
        several = [_verdict_of(part) for part in outcome.values()]
        scores = [verdict.score for verdict in several if verdict.score is not None]
        return Verdict(
            sum(scores) / len(scores) if scores else None, "; ".join(verdict.why for verdict in several if verdict.why)
        )
    value, why = getattr(outcome, "value", outcome), getattr(outcome, "reason", None) or ""
    if isinstance(value, str):
        return Verdict(None, why or value)  # a label is no score
    return Verdict(value, why)
