"""Judges: a model, a program, an evaluator; several at once; two drivers of one experiment."""

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ikigai_actors import ActorSystem, AgentRef, BadInput, ProviderError, Reply, Request, ScriptedProvider, Usage
from ikigai_actors.behaviour import BestOf, TrialRun, ask, blocks, evaluator, program, search
from ikigai_actors.behaviour.trials import Judge
from ikigai_actors.errors import StoreConflict
from ikigai_actors.records.fsck.check import check
from tests.kit.blocking_provider import DEADLINE


def polite(request: Request) -> str:
    """Answers a prompt with it; asked about what it said, it tells yes, no or something else."""
    said = [str(part["text"]) for message in request.messages for part in message["content"]]
    if said[-1] != "Polite?":
        return said[-1]
    if said[-2] == "broken":
        raise ProviderError("The judge is out.")
    return {"please": "Yes, it was.", "now!": "No.", "half": "0.5, I would say"}.get(said[-2], "Who knows?")


def opened() -> ActorSystem:
    return ActorSystem.open(":memory:", ScriptedProvider(polite))


def player(system: ActorSystem) -> AgentRef:
    agent = system.root.fork("hello", name="player")
    agent.reply(timeout=DEADLINE)
    return agent


def scores(system: ActorSystem, judge: Judge, *options: str, **how: Any) -> list[float | None]:
    result = search(player(system), judge, plan=BestOf(len(options)), options=options, **how)
    return [trial.score for trial in result.trials]


def test_a_model_judges_in_a_fork_of_the_trial_and_what_it_does_not_tell_is_not_judged() -> None:
    with opened() as system:
        options = ("please", "now!", "half", "hm", "broken")
        assert scores(system, ask("Polite?"), *options) == [1.0, 0.0, 0.5, None, None]
        assert check(system._store) == []


@pytest.mark.sample(1, "verbs")
@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.parametrize("budget", [{"tokens": 25}, {"agents_ever": 3}])
def test_a_budget_that_ends_while_a_model_judges_ends_the_search_and_a_grant_lets_it_go_on(budget: Any) -> None:
    def answers(request: Request) -> Reply:
        return Reply(polite(request), usage=Usage(5, 5))

    with ActorSystem.open(":memory:", ScriptedProvider(answers)) as system:
        agent = player(system)
        how: dict[str, Any] = {"plan": BestOf(3), "options": ["please"], "parallel": 1, "name": "mine"}
        result = search(agent, ask("Polite?"), **how, budget=budget)
        assert (result.ended, [trial.score for trial in result.trials]) == ("budget", [1.0, None])
        system.agent("mine").grant(**dict.fromkeys(budget, 1000))
        result = search(agent, ask("Polite?"), **how)
        assert (result.ended, [trial.score for trial in result.trials]) == ("", [1.0, 1.0, 1.0])
        assert check(system._store) == []


def test_a_model_that_is_not_there_is_named_before_anything_is_made() -> None:
    with opened() as system:
        with pytest.raises(BadInput, match="nobody"):
            scores(system, ask("Polite?", model="nobody:1"), "please")
        assert len(system.agents()) == 2


@pytest.mark.slow("starts four programs")
def test_a_program_judges_by_its_exit_code_as_git_has_it_or_by_a_number() -> None:
    text = "import sys; sys.exit({'good': 0, 'skip': 125}.get(sys.stdin.read(), 1))"
    with opened() as system:
        judge = program([sys.executable, "-S", "-c", text])
        assert scores(system, judge, "good", "skip", "else", parallel=3) == [1.0, None, 0.0]
    with opened() as system:
        judge = program([sys.executable, "-S", "-c", "import sys; print(len(sys.stdin.read()))"], score=True)
        assert scores(system, judge, "four") == [4.0]
    with opened() as system:
        judge = program([sys.executable, "-S", "-c", r"import sys; sys.stdout.buffer.write(b'\xff')"])
        assert scores(system, judge, "what it prints need not be text") == [1.0]


@pytest.mark.slow("starts a program")
def test_a_program_has_judged_when_it_ends_whatever_it_has_started(tmp_path: Path) -> None:
    held = tmp_path / "held"
    os.mkfifo(held)
    code = f"import subprocess; subprocess.Popen(['cat', {str(held)!r}]); print(7)"
    with opened() as system:
        judge = program([sys.executable, "-S", "-c", code], score=True, timeout=DEADLINE)
        assert scores(system, judge, "whoever holds its output") == [7.0]
    held.write_bytes(b"")  # so that it ends, too


@pytest.mark.parametrize(("code", "score"), [("import sys; sys.exit(200)", False), ("print('much')", True)])
@pytest.mark.slow("starts a program")
def test_a_program_that_breaks_ends_the_call_and_nothing_is_lost(code: str, score: bool) -> None:
    with opened() as system:
        agent = player(system)
        how: dict[str, Any] = {"plan": BestOf(2), "options": ["a", "b"], "name": "mine"}
        with pytest.raises(BadInput, match=r"exit code 200|print a number"):
            search(agent, program([sys.executable, "-S", "-c", code], score=score), **how)
        result = search(agent, lambda run: len(run.text), **how)
        assert ([trial.score for trial in result.trials], result.resumed) == ([1.0, 1.0], True)


@pytest.mark.slow("takes a tenth of a second")
def test_an_evaluator_gives_a_value_a_reason_or_several_values() -> None:
    class Length:
        def evaluate(self, ctx: Any) -> Any:
            return {"a": len(ctx.output), "b": SimpleNamespace(value=0.0, reason="short")}

    class Later:
        async def evaluate(self, ctx: Any) -> bool:
            return bool(ctx.output == ctx.expected_output == ctx.inputs)

    class Label:
        def evaluate(self, ctx: Any) -> str:
            return "nice"

    for function, expected in ((Length(), 2.0), (Later(), 1.0), (Label(), None)):
        with opened() as system:
            assert scores(system, evaluator(function, expected="four"), "four") == [expected]
    with pytest.raises(BadInput, match="method evaluate"):
        evaluator(Length)


def test_judges_that_block_are_at_all_trials_of_the_window_at_once() -> None:
    meet = threading.Barrier(3, timeout=DEADLINE)

    @blocks
    def judge(run: TrialRun) -> float:
        if run.trial.number > 1:  # the first is awaited alone: it writes the prefix into the cache
            meet.wait()
        return run.trial.number

    with opened() as system:
        assert scores(system, judge, "a", "b", "c", "d", parallel=3) == [1.0, 2.0, 3.0, 4.0]


def test_a_judge_that_hangs_is_waited_for_until_its_timeout_and_the_trial_is_not_judged() -> None:
    leave = threading.Event()

    @blocks(timeout=0)
    def judge(run: TrialRun) -> float:
        assert leave.wait(DEADLINE)
        return 1.0

    with opened() as system:
        result = search(player(system), judge, plan=BestOf(2), options=["a"])
        leave.set()
        assert [trial.score for trial in result.trials] == [None, None]
        assert result.experiment.book.judged[1].verdict.why == "the judge took longer than 0 seconds"
        assert len(repr(result)) < 100
    with pytest.raises(BadInput, match="timeout"):
        blocks(timeout=-1)


def test_the_first_trial_is_awaited_before_its_siblings_are_born() -> None:
    with opened() as system:
        born: list[int] = []

        def judge(run: TrialRun) -> int:
            above = run.agent.record.supervisor_uuid
            born.append(sum(record.supervisor_uuid == above for record in system.agents()))
            return 1

        agent = player(system)
        search(agent, judge, plan=BestOf(5), options=["a"], parallel=3)
        assert born[:2] == [1, 4]
        search(agent, judge, plan=BestOf(5), options=["a"], parallel=3, warm=False, fresh=True)
        assert born[5] == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ask(" "), "blank"),
        (lambda: program("grep euro"), "as a list"),
        (lambda: program([]), "as a list"),
        (lambda: program(["no-such-program-anywhere"]), "no program"),
        (lambda: program([sys.executable], timeout=-1), "timeout"),
    ],
)
def test_a_judge_that_cannot_be_made_is_refused(make: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        make()


def test_a_judge_may_return_a_future_of_a_verdict() -> None:
    with opened() as system, ThreadPoolExecutor(2) as pool:
        assert scores(system, lambda run: pool.submit(len, run.text), "four", "a") == [4.0, 1.0]

        def fails(run: TrialRun) -> Any:
            return pool.submit(divmod, 1, 0)

        with pytest.raises(ZeroDivisionError):
            search(system.agent("player"), fails, plan=BestOf(1), options=["a"])


def test_two_that_begin_an_experiment_at_once_begin_one() -> None:
    begin = threading.Barrier(2, timeout=DEADLINE)
    supervisors: set[str | None] = set()
    with opened() as system, ThreadPoolExecutor(2) as pool:
        agent = player(system)

        def judge(run: TrialRun) -> int:
            supervisors.add(run.agent.record.supervisor_uuid)
            return 1

        def drives() -> None:
            begin.wait()
            with suppress(StoreConflict):  # for who comes second
                search(agent, judge, plan=BestOf(2), options=["a"], name="mine")

        for future in [pool.submit(drives), pool.submit(drives)]:
            future.result(DEADLINE)
        assert supervisors == {system.agent("mine").uuid}


def test_a_second_driver_of_an_experiment_is_told_so_and_the_first_goes_on() -> None:
    with opened() as system:
        agent = player(system)
        how: dict[str, Any] = {"plan": BestOf(6), "options": ["a", "b"], "parallel": 1, "name": "mine"}
        inner: list[object] = []

        def judge(run: TrialRun) -> float:
            if run.trial.number == 3 and not inner:
                inner.append(None)
                inner.append(search(agent, lambda run: len(run.text), **how))  # all of it, from here on
            return len(run.text)

        with pytest.raises(StoreConflict, match="by another"):
            search(agent, judge, **how)
        result = search(agent, judge, **how)
        assert [trial.score for trial in result.trials] == [1.0] * 6
        assert check(system._store) == []


def test_what_a_person_does_with_an_experiment_is_no_other_driver() -> None:
    with opened() as system:
        agent = player(system)

        def judge(run: TrialRun) -> float:
            system.agent("mine").fork(name=f"looker-{run.trial.number}")
            return 1.0

        result = search(agent, judge, plan=BestOf(3), options=["a"], name="mine")
        assert [trial.score for trial in result.trials] == [1.0] * 3
