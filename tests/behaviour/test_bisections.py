"""Bisections as users make them: over the real store and the real agents, with a scripted model."""

import random
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ikigai_actors import (
    ActorSystem,
    AgentRef,
    BadInput,
    HistoryPruned,
    ProviderError,
    Reply,
    Request,
    ScriptedProvider,
    ToolCall,
    Usage,
    tool,
)
from ikigai_actors.behaviour import Bisected, ExperimentDiffers, TrialRun, Verdict, bisect
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.log.pruning import prune_logs
from ikigai_actors.testing import CrashPoint, ProcessCrashed, simulated
from tests.kit.blocking_provider import DEADLINE
from tests.kit.programs import crash_points, each_commit

BAD = "A customer from Texas asks for tea."


def currency(request: Request) -> str:
    """Which currency was meant last; the model begins to mean dollars when it hears of Texas."""
    said = str([message["content"] for message in request.messages])
    return "We quote in dollars." if "Texas" in said else "We quote in euros."


def is_good(run: TrialRun) -> bool:
    return "euro" in run.text


def clerk(system: ActorSystem, turns: int, bad: int | None) -> AgentRef:
    """A clerk with so many turns, of which one, from 1, brings in the fault."""
    agent = system.root.fork(name="clerk")
    for number in range(1, turns + 1):
        agent.prompt(BAD if number == bad else f"Tea {number}, please.").get(timeout=DEADLINE)
    return agent


def opened(database: str = ":memory:", answer: Callable[[Request], Any] = currency) -> ActorSystem:
    return ActorSystem.open(database, ScriptedProvider(answer))


def end_of(agent: AgentRef, turn: int) -> int:
    return [message.id for message in agent.history() if message.kind == "assistant"][turn - 1]


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.sample(1, "a bisection for each")
@pytest.mark.parametrize("bad", [1, 4, 9])
def test_the_first_bad_turn_is_found_and_the_agent_gets_no_message(database: str, bad: int) -> None:
    with opened(database) as system:
        agent = clerk(system, 9, bad)
        before = agent.history(all=True)
        result = bisect(agent, is_good, probe="In which currency?")
        assert (result.position, result.answer) == (end_of(agent, bad), "step")
        assert result.sure >= 0.99
        assert agent.history(all=True) == before
        assert next(place for place, bad_there in result.curve if bad_there > 0.5) == result.position
        assert check(system._store) == []
        result.end()
        assert [living.name for living in system.agents("running")] == [None, "clerk"]


@pytest.mark.sample(1, "a bisection for each")
@pytest.mark.parametrize("probe", ["In which currency?", None])
@pytest.mark.parametrize(("always", "answer"), [(False, "from the start"), (True, "nothing")])
def test_no_step_is_blamed_when_all_is_bad_or_nothing_is(probe: str | None, always: bool, answer: str) -> None:
    with opened() as system:
        result = bisect(clerk(system, 5, None), lambda run: always, probe=probe)
        assert (result.position, result.answer) == (None, answer)


@pytest.mark.sample(1, "ways to ask")
@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.parametrize("bad", [1, 3])
def test_without_a_question_the_recorded_prompts_are_sent_again_and_the_reply_that_slipped_is_found(bad: int) -> None:
    slips: list[int] = [bad]

    def slipping(request: Request) -> str:
        """In euros, until it once said dollars."""
        said = [
            part["text"]
            for message in request.messages
            if message["role"] == "assistant"
            for part in message["content"]
        ]
        return "dollars" if "dollars" in said or len(said) + 1 in slips else "euros"

    with opened(answer=slipping) as system:
        agent = clerk(system, 4, None)
        slips.clear()
        result = bisect(agent, is_good)
        assert (result.position, result.answer) == (end_of(agent, bad), "step")
        asked = [message.content for message in result.experiment.agent_of(1).history() if message.kind == "user"]
        assert asked == [f"Tea {number}, please." for number in range(1, 5)]
        assert check(system._store) == []


@pytest.mark.slow("takes a tenth of a second")
def test_a_recorded_prompt_that_came_as_mail_is_sent_again_as_a_prompt() -> None:
    """The number of the mail is one of the recorded agent's mailbox: a trial has none."""
    with simulated() as world:
        system = world.open(ScriptedProvider(currency))
        agent = clerk(system, 1, None)
        agent.remind("Tea, please.", prompt=True, after=1)
        world.sleep(2)
        assert [message.data for message in agent.history() if message.kind == "user"] == [{}, {"mail": 1}]
        result = bisect(agent, lambda run: False)
        trials = [result.experiment.agent_of(number) for number in range(1, result.probes + 1)]
        again = [message for trial in trials for message in trial.history() if message.agent_uuid == trial.uuid]
        assert {message.content for message in again if message.kind == "user"} == {"Tea 1, please.", "Tea, please."}
        assert not any("mail" in message.data for message in again)


@pytest.mark.sample(1, "scores")
@pytest.mark.parametrize("score", [1.5, -1])
def test_a_score_that_is_no_number_from_0_to_1_ends_the_call(score: float) -> None:
    with opened() as system:
        agent = clerk(system, 3, None)
        with pytest.raises(BadInput, match=rf"Expected a judge to return a number from 0 to 1; got {score}\."):
            bisect(agent, lambda run: score, probe="?")
        assert bisect(agent, lambda run: 1, probe="?").answer == "nothing"


@pytest.mark.slow("takes a tenth of a second")
def test_a_judge_that_knows_nothing_blames_no_step() -> None:
    chance = random.Random(1)
    with opened() as system:
        result = bisect(clerk(system, 12, None), lambda run: chance.random() < 0.5, probe="?", most=20)
        assert (result.position, result.answer, result.probes) == (None, "unsure", 20)
        assert len(result.curve) == 13


@pytest.mark.thorough("sixty turns; tests/behaviour/test_bisection_plan.py has such judges, and no agents")
def test_a_judge_that_errs_one_time_in_ten_finds_the_turn_of_a_dead_agent() -> None:
    chance = random.Random(3)
    with opened() as system:
        agent = clerk(system, 60, 41)
        agent.kill()
        result = bisect(agent, lambda run: is_good(run) ^ (chance.random() < 0.1), probe="In which currency?")
        assert result.position == end_of(agent, 41)
        assert 10 < result.probes <= 60


@pytest.mark.slow("takes a tenth of a second")
def test_steps_within_a_turn_are_told_apart() -> None:
    def calls(request: Request) -> Reply:
        results = [part for part in request.messages[-1]["content"] if part["type"] == "tool_result"]
        asked = request.messages[-1]["content"][-1].get("text")
        if asked == "?":
            return Reply(currency(request))
        number = sum(message["role"] == "assistant" for message in request.messages)
        if number == 3:
            return Reply("done")
        return Reply(tool_calls=(ToolCall("order", {"number": number}),)) if not results or number else Reply("?")

    @tool
    def order(number: int) -> str:
        return "Texas" if number == 1 else "tea"

    with ActorSystem.open(":memory:", ScriptedProvider(calls), tools=[order]) as system:
        agent = system.root.fork("Go on.")
        agent.reply(timeout=DEADLINE)
        results = [message.id for message in agent.history() if message.kind == "tool_result"]
        result = bisect(agent, is_good, probe="?", steps=True)
        assert result.position == results[1]


@pytest.mark.slow("takes a tenth of a second")
def test_a_call_that_is_made_again_behind_a_place_gets_the_result_that_it_got_there() -> None:
    prices = iter(["12", "13", "14"])

    @tool
    def price() -> str:
        return next(prices)

    def shop(request: Request) -> Reply:
        last = request.messages[-1]["content"][-1]
        return Reply(tool_calls=(ToolCall("price", {}),)) if last["type"] == "text" else Reply(last["content"])

    with ActorSystem.open(":memory:", ScriptedProvider(shop), tools=[price]) as system:
        agent = clerk(system, 3, None)
        runs: list[TrialRun] = []
        bisect(agent, runs.append, prior={end_of(agent, 2): 9.0})
        answers = {run.agent.record.fork_message_id: said(run.agent) for run in runs}
        assert answers[end_of(agent, 2)] == ["13", "14"]
        assert answers[end_of(agent, 4)] == ["14"]


def said(agent: AgentRef) -> list[str]:
    """What an agent has answered itself."""
    own = (message for message in agent.history() if message.agent_uuid == agent.uuid and message.kind == "assistant")
    return [message.content for message in own if message.content]


@pytest.mark.slow("takes a tenth of a second")
def test_the_recorded_calls_are_answered_again_and_nothing_runs() -> None:
    ran: list[str] = []

    @tool
    def price(tea: str) -> str:
        ran.append(tea)
        return "12 dollars" if tea == "Texan" else "12 euros"

    def shop(request: Request) -> Reply:
        last = request.messages[-1]["content"][-1]
        if last["type"] == "text":
            return Reply(tool_calls=(ToolCall("price", {"tea": last["text"]}),))
        return Reply("bad" if "dollars" in str([message["content"] for message in request.messages]) else "euro")

    with ActorSystem.open(":memory:", ScriptedProvider(shop), tools=[price]) as system:
        agent = system.root.fork(name="shop")
        for tea in ("Assam", "Texan", "Ceylon"):
            agent.prompt(tea).get(timeout=DEADLINE)
        trials: list[TrialRun] = []

        def judge(run: TrialRun) -> bool | None:
            trials.append(run)
            return None if run.error else run.agent.record.fork_message_id < end_of_turn(agent, 2)

        result = bisect(agent, judge)
        assert result.position == end_of_turn(agent, 2)
        assert ran == ["Assam", "Texan", "Ceylon"]
        assert not any(run.error for run in trials)


def end_of_turn(agent: AgentRef, turn: int) -> int:
    return [
        message.id for message in agent.history() if message.kind == "assistant" and not message.data.get("tool_calls")
    ][turn - 1]


@pytest.mark.thorough("a host ends at each commit")
@pytest.mark.sample(1, "a judge each")
@pytest.mark.parametrize("probe", ["In which currency?", None])
@each_commit(23)
def test_a_bisection_is_the_same_at_whichever_commit_its_host_ends(step: int, probe: str | None) -> None:
    def outcome(crash: CrashPoint | None) -> tuple[bool, Any]:
        with simulated() as world:
            clerk(world.open(ScriptedProvider(currency)), 4, 3)
            crashed = False
            if crash is not None:
                world.crash_at(crash)
            while True:
                try:
                    result = bisect(world.system.agent("clerk"), is_good, probe=probe)
                except ProcessCrashed:
                    world.recover()
                    crashed = True
                else:
                    assert check(world.system._store) == []
                    book = result.experiment.book
                    return crashed, (result.position, result.curve, [trial.place for trial in book.trials.values()])

    _, whole = outcome(None)
    for point in crash_points(step):
        crashed, again = outcome(point)
        assert again == whole
        if not crashed:
            assert point.commit > 12
            return


@pytest.mark.thorough("the end of a search by its budget, of a bisection")
def test_the_budget_of_a_bisection_ends_it_in_the_middle_and_a_grant_lets_it_go_on() -> None:
    with opened(answer=lambda request: Reply(currency(request), usage=Usage(0, 30))) as system:
        agent = clerk(system, 9, 4)
        how: dict[str, Any] = {"probe": "In which currency?", "name": "poor"}
        first = bisect(agent, is_good, budget={"tokens": 100}, **how)
        assert (first.ended, first.answer, first.position) == ("budget", "unsure", None)
        assert 0 < first.probes < 9
        system.agent("poor").grant(tokens=10_000)
        last = bisect(agent, is_good, **how)
        assert (last.ended, last.position, last.resumed) == ("", end_of(agent, 4), True)


@pytest.mark.thorough("a trial that the provider failed, as in test_runs, in a bisection")
def test_a_trial_that_fails_is_tried_again_and_then_does_not_count() -> None:
    failures = iter([True, True, True])

    def fails(request: Request) -> str:
        if "?" in str(request.messages[-1]["content"]) and next(failures, False):
            raise ProviderError("The service is busy.")
        return currency(request)

    with opened(answer=fails) as system:
        agent = clerk(system, 3, 2)
        errors: list[bool] = []

        def show(run: TrialRun, _: Verdict) -> None:
            errors.append(run.error is not None)

        bisect(agent, is_good, probe="?", retries=1, most=1, on_trial=show)
        assert errors == [True]
        again = bisect(agent, is_good, probe="?", retries=1, fresh=True, on_trial=show)
        assert again.position == end_of(agent, 2)
        assert not any(errors[1:])


@pytest.mark.thorough("a judge that raises in a search, in a bisection")
@pytest.mark.parametrize("how", ["raises", "text"])
def test_a_judge_that_raises_or_says_something_else_ends_the_call_and_what_was_judged_stays(how: str) -> None:
    with opened() as system:
        agent = clerk(system, 9, 4)
        judged = count(1)

        def wrong(run: TrialRun) -> Any:
            if next(judged) == 3:
                return 1 / 0 if how == "raises" else "good"
            return is_good(run)

        with pytest.raises((ZeroDivisionError, BadInput)):
            bisect(agent, wrong, probe="?")
        again: list[int] = []

        def right(run: TrialRun) -> bool:
            again.append(run.trial.number)
            return is_good(run)

        result = bisect(agent, right, probe="?")
        assert again[0] == 3
        assert (result.position, result.resumed) == (end_of(agent, 4), True)


def test_what_cannot_be_bisected_is_refused_and_nothing_is_made(tmp_path: Path) -> None:
    with opened() as system:
        agent = clerk(system, 2, None)
        wrong: list[dict[str, Any]] = [
            {"probe": " "},
            {"sure": 1.0},
            {"most": 0},
            {"at": -1},
            {"tools": ["sell"]},
            {"prior": {3: 1.0, 99: 2.0}},
            {"prior": {3: "much"}},
            {"prior": {3: 10**400}},
            {"prior": {3: None}},
            {"prior": {True: 2.0}},
            {"parallel": 0},
            {"retries": -1},
            {"steps": 1},
        ]
        for how in wrong:
            with pytest.raises(BadInput):
                bisect(agent, is_good, **{"probe": "?", **how})
        with pytest.raises(BadInput, match="a function"):
            bisect(agent, "yes", probe="?")  # type: ignore[arg-type]
        with pytest.raises(BadInput, match="with a turn"):
            bisect(system.root.fork(name="new"), is_good, probe="?", at=1)
        assert len(system.agents()) == 3
        bisect(agent, is_good, probe="?", name="mine")
        terms: dict[str, Any] = {"probe": "?", "name": "mine"}
        for other in ({"probe": "!"}, {"sure": 0.9}, {"most": 5}, {"parallel": 2}, {"steps": True}, {"at": 3}):
            with pytest.raises(ExperimentDiffers, match="other terms"):
                bisect(agent, is_good, **{**terms, **other})
        agent.kill(cascade=True)
        system.agent("mine").kill(cascade=True)
        prune_logs(system._store, 2**50, 1)
        with pytest.raises(HistoryPruned):
            bisect(agent, is_good, probe="?")


@pytest.mark.slow("takes a tenth of a second")
def test_a_prior_leads_to_the_place_where_the_fault_is_thought_to_be() -> None:
    with opened() as system:
        agent = clerk(system, 20, 11)
        place = end_of(agent, 11)
        plain: Bisected = bisect(agent, is_good, probe="?")
        led = bisect(agent, is_good, probe="?", prior={place: 1_000.0})
        assert plain.position == led.position == place
        assert led.probes < plain.probes
