"""How an experiment is run: the same for all five verbs."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from ikigai_actors import ActorSystem, AgentRef, BadInput, ProviderError, Request, ScriptedProvider
from ikigai_actors.behaviour import (
    BestOf,
    TrialRun,
    Verdict,
    bisect,
    blocks,
    evaluate,
    recorded,
    regress,
    replay,
    search,
)


def is_yes(run: TrialRun) -> bool | None:
    return None if run.reply is None else run.text == "yes"


VERBS: dict[str, Callable[..., Any]] = {
    "search": lambda agent, **how: search(agent, is_yes, plan=BestOf(3), options=["a"], **how),
    "bisect": lambda agent, **how: bisect(agent, is_yes, probe="?", most=2, **how),
    "replay": lambda agent, **how: replay(recorded(agent), **how),
    "regress": lambda agent, **how: regress(recorded(agent), **how),
    "evaluate": lambda agent, **how: evaluate(agent, ["a", "b", "c"], is_yes, **how),
}


def talker(system: ActorSystem) -> AgentRef:
    """An agent that has answered twice."""
    agent = system.root.fork(name="talker")
    for text in ("one", "two"):
        agent.prompt(text).get(timeout=60)
    return agent


async def later(*_: object) -> list[str]:
    """Stands for what must be no async function."""
    return []


@pytest.mark.sample(2, "verbs")
@pytest.mark.parametrize("verb", VERBS)
def test_a_wrong_argument_is_refused_by_every_verb_before_anything_is_made(verb: str) -> None:
    wrong: list[dict[str, Any]] = [
        {"name": "two words"},
        {"name": 3},
        {"under": "root"},
        {"parallel": 0},
        {"parallel": 1_001},
        {"budget": {"colours": 3}},
        {"retries": -1},
        {"fresh": "no"},
        {"on_trial": "print"},
        {"on_trial": later},
        {"warm": 1},
    ]
    provider = ScriptedProvider(lambda _: "yes")
    with ActorSystem.open(":memory:", provider) as system, ActorSystem.open(":memory:", provider) as other:
        agent = talker(system)
        for how in [*wrong, {"under": other.root}]:
            with pytest.raises(BadInput):
                VERBS[verb](agent, **how)
        with pytest.raises(TypeError, match=rf"^{verb}\(\) takes no argument 'ask'. It takes .*, parallel, "):
            VERBS[verb](agent, ask="?")
        assert len(system.agents()) == 2


@pytest.mark.sample(2, "verbs")
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_goes_on_with_an_experiment_by_its_name_however_that_is_spelt(verb: str) -> None:
    with ActorSystem.open(":memory:", ScriptedProvider(lambda _: "yes")) as system:
        agent, above = talker(system), system.root.fork(name="above")
        first = VERBS[verb](agent, name="zo\N{LATIN SMALL LETTER E WITH DIAERESIS}", under=above)
        again = VERBS[verb](agent, name="zoe\N{COMBINING DIAERESIS}", under=above)
        assert (first.resumed, again.resumed) == (False, True)
        assert again.experiment.agent == first.experiment.agent
        assert first.experiment.agent.supervisor == above
        assert VERBS[verb](agent, name="zoë", under=above, fresh=True).experiment.agent.record.name == "zoë.2"
        again.end()
        assert not any(
            record.living for record in system.agents() if record.supervisor_uuid == first.experiment.agent.uuid
        )


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.sample(2, "a count each")
@pytest.mark.parametrize("verb", VERBS)
def test_a_trial_that_the_provider_failed_is_resumed_so_often_before_it_is_judged(verb: str) -> None:
    failing: list[str] = []

    def answer(request: Request) -> str:
        if failing:
            raise ProviderError(failing.pop())
        return "yes"

    with ActorSystem.open(":memory:", ScriptedProvider(answer)) as system:
        agent = talker(system)
        for retries, failures, is_judged in ((1, 1, True), (0, 1, False), (2, 3, False), (3, 3, True)):
            failing += ["overloaded"] * failures
            how = {"retries": retries, "parallel": 1, "fresh": True}
            result = VERBS[verb](agent, **how)
            verdict = result.experiment.book.judged[1].verdict
            assert failing == []
            assert is_judged or "overloaded" in verdict.why
            assert (verdict.score is not None) == is_judged


@pytest.mark.sample(2, "verbs")
@pytest.mark.parametrize(
    ("verb", "how", "first"),
    [
        ("search", {}, 1),
        ("replay", {"samples": 3}, 2),
        ("regress", {"samples": 3, "baseline": False}, 2),
        ("evaluate", {}, 1),
    ],
)
def test_siblings_of_the_first_trial_at_a_place_wait_for_its_answer_unless_they_need_not(
    verb: str, how: dict[str, Any], first: int
) -> None:
    """A bisection has no two probes at one place in flight, so there none has siblings to wait for."""
    born: list[int] = []
    with ActorSystem.open(":memory:", ScriptedProvider(lambda _: "yes")) as system:

        def counts(run: TrialRun, verdict: Verdict) -> None:
            above = run.agent.record.supervisor_uuid
            born.append(sum(record.supervisor_uuid == above for record in system.agents()))

        agent = talker(system)
        for warm in (True, False):
            born.clear()
            VERBS[verb](agent, warm=warm, fresh=True, parallel=6, on_trial=counts, **how)
            assert born[0] == (first if warm else len(born))


class Stopped(Exception):
    """Raised by who hears of trials."""


@pytest.mark.sample(2, "verbs")
@pytest.mark.parametrize("verb", VERBS)
def test_who_hears_of_trials_hears_of_each_new_verdict_once_in_order_and_may_end_the_call(verb: str) -> None:
    heard: list[tuple[int, float | None]] = []

    def hears(run: TrialRun, verdict: Verdict) -> None:
        assert threading.current_thread() is threading.main_thread()
        assert run.text == "yes"
        assert (run.recorded is not None) == (verb in ("replay", "regress"))
        heard.append((run.trial.number, verdict.score))
        if len(heard) == 1:
            raise Stopped

    with ActorSystem.open(":memory:", ScriptedProvider(lambda _: "yes")) as system:
        agent = talker(system)
        with pytest.raises(Stopped):
            VERBS[verb](agent, on_trial=hears)
        result = VERBS[verb](agent, on_trial=hears)
        book = result.experiment.book
        assert len(heard) >= 2
        assert heard == [(number, book.judged[number].verdict.score) for number in range(1, len(book.trials) + 1)]
        VERBS[verb](agent, on_trial=hears)
        assert len(heard) == len(book.trials)


def test_trials_that_are_judged_on_threads_are_heard_of_in_order_on_the_drivers_thread() -> None:
    later = threading.Event()
    heard: list[int] = []

    @blocks
    def judge(run: TrialRun) -> int:
        if run.trial.number == 1:
            later.wait(60)
        elif run.trial.number == 3:
            later.set()
        return run.trial.number

    def hears(run: TrialRun, verdict: Verdict) -> None:
        assert threading.current_thread() is threading.main_thread()
        assert verdict.score == run.trial.number
        heard.append(run.trial.number)

    with ActorSystem.open(":memory:", ScriptedProvider(lambda _: "yes")) as system:
        search(talker(system), judge, plan=BestOf(4), options=["a"], parallel=3, warm=False, on_trial=hears)
    assert heard == [1, 2, 3, 4]


@pytest.mark.slow("takes a tenth of a second")
def test_no_judge_is_asked_about_a_trial_without_a_reply() -> None:
    def fails(request: Request) -> str:
        if "?" in str(request.messages[-1]["content"]):
            raise ProviderError("The service refuses.")
        return "yes"

    judged: list[TrialRun] = []

    def is_no_apology(run: TrialRun) -> bool:
        judged.append(run)
        return "sorry" not in run.text

    for judge in (is_no_apology, blocks(lambda run: is_no_apology(run))):
        with ActorSystem.open(":memory:", ScriptedProvider(fails)) as system:
            agent = talker(system)
            report = evaluate(agent, [f"{number}?" for number in range(4)], judge, at_least=0.8)
            assert (report.verdict, report.rate, report.undecided) == ("unsure", None, 4)
            assert report.reasons == {"The service refuses.": 4}
            assert bisect(agent, judge, probe="?", most=4).answer == "unsure"
            assert search(agent, judge, plan=BestOf(2), options=["?"]).agent is None
    assert judged == []
