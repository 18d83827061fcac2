"""Whether a change made things worse: the verdict on scores, the checks, and both over real agents."""

import json
import random
import threading
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel

from ikigai_actors import ActorSystem, BadInput, ProviderError, Reply, Request, ScriptedProvider, ToolCall, Usage
from ikigai_actors.behaviour import (
    TrialRun,
    Turn,
    Verdict,
    ask,
    blocks,
    calls,
    evaluate,
    recorded,
    regress,
    same_calls,
    same_text,
    schema,
)
from ikigai_actors.behaviour.fingerprints import fingerprint
from ikigai_actors.behaviour.rates import rates_of
from ikigai_actors.behaviour.regressions import RegressionReport
from ikigai_actors.behaviour.turns import TurnCall, own_messages
from ikigai_actors.records.fsck.check import check
from tests.behaviour.test_replays import TEAS, TeaShop, clerk
from tests.kit.blocking_provider import DEADLINE


@pytest.mark.parametrize(
    ("changed", "baseline", "verdict", "needed"),
    [
        ([1] * 189, [1] * 189, "pass", None),
        ([0] * 189, [0] * 189, "pass", None),  # not right, but not worse either
        ([1] * 188, [1] * 188, "unsure", 189),
        ([1, 1, 1, 1], [1, 1, 1, 1], "unsure", 189),  # few cases that agree tell little of the next
        ([0, 0, 0, 1], [0, 0, 0, 1], "unsure", 189),
        ([0, 0, 0, 0], [1, 1, 1, 1], "fail", None),
        ([0, 0, 0], [1, 1, 1], "unsure", 4),
        ([1] * 189, None, "pass", None),
        ([1, 1, 1, 1], None, "unsure", 189),
        ([0, 0, 1, 0, 0, 0], None, "fail", None),
        ([0.9], None, "unsure", 5),  # it looks worse than 0.98, and more like it would show that
        ([1, 0, 1, 1], [1, 1, 0, 1], "unsure", 4802),
        ([1, 0, 1, 1], [1, 1, 1, 1], "unsure", 18),
        ([1], [1], "unsure", 189),
        ([1, 1, 1, None], [1, 1, 1, 1], "unsure", None),  # more than a tenth could not be judged
        ([None, None], None, "unsure", None),
        ([], None, "unsure", None),
    ],
)
def test_a_verdict_needs_evidence(
    changed: list[Any], baseline: list[Any] | None, verdict: str, needed: int | None
) -> None:
    arms = [None if arm is None else {case: [score] for case, score in enumerate(arm)} for arm in (changed, baseline)]
    rates = rates_of(arms[0] or {}, arms[1], 0.02, at_least=0.98)
    assert (rates.verdict, rates.needed) == (verdict, needed)


def test_a_rate_is_held_to_what_is_asked_for_or_to_nothing() -> None:
    good = {case: [1.0] for case in range(20)}
    assert rates_of(good, None, 0.02, at_least=0.8).verdict == "pass"
    assert rates_of(good, None, 0.02, at_least=0.9).verdict == "unsure"
    half = rates_of({0: [0.5], 1: [0.5]}, None, 0.02)
    assert (half.verdict, half.rate, half.difference, half.needed) == ("unsure", 0.5, None, None)
    assert half.interval is not None
    assert half.interval[0] < 0.3 < 0.7 < half.interval[1]


def test_samples_of_a_case_count_as_one_and_what_was_not_made_is_undecided() -> None:
    rates = rates_of({0: [1, 1, 0, 0], 1: [1]}, {0: [1, 1, 1, 1], 1: [1]}, 0.02)
    assert (rates.rate, rates.baseline, rates.difference) == (0.75, 1.0, -0.25)
    same = {0: [1.0], 1: [1.0], 2: [1.0]}
    assert rates_of(same, same, 0.6, unmade=0).verdict == "pass"
    assert rates_of(same, same, 0.6, unmade=1).verdict == "unsure"
    half = rates_of({0: [None, 0.0], 1: [None]}, None, 0.02)
    assert (half.rate, half.undecided) == (0.0, 2)


@pytest.mark.thorough("many replays; every run has a regression that is found")
def test_a_models_own_noise_is_no_regression_and_a_real_one_is_found() -> None:
    chance = random.Random(3)

    def draw(rate: float) -> dict[int, list[float | None]]:
        return {case: [float(chance.random() < rate) for _ in range(3)] for case in range(40)}

    verdicts = [rates_of(draw(0.8), draw(0.8), 0.02).verdict for _ in range(100)]
    assert verdicts.count("fail") <= 5
    assert sum(rates_of(draw(0.5), draw(0.8), 0.02).verdict == "fail" for _ in range(100)) >= 90


def test_two_cases_that_agree_by_chance_are_no_proof_when_their_samples_do_not() -> None:
    once_less = rates_of({0: [1, 1, 0], 1: [0, 1, 1]}, {0: [1, 1, 1], 1: [1, 1, 1]}, 0.02)
    assert once_less.verdict == "unsure"
    assert once_less.difference_interval is not None
    assert once_less.difference_interval[1] > 0


def made(turn: Turn, *names: str, how: str = "answered", text: str = "") -> Turn:
    own = tuple(TurnCall(2 * place, name, {"to": name, "body": place}) for place, name in enumerate(names, 1))
    return replace(turn, calls=own, how=how, text=text)


@pytest.mark.sample(3, "calls")
@pytest.mark.parametrize(
    ("then", "now", "expected"),
    [
        ("a b", "a b", (True, True, True, True)),
        ("a b", "b a", (False, True, True, True)),
        ("a b", "a", (False, False, True, False)),
        ("a", "a b", (False, False, False, True)),
        ("a a", "a", (False, False, True, False)),
        ("a", "b", (False, False, False, False)),
    ],
)
def test_there_are_four_ways_to_match_calls(then: str, now: str, expected: tuple[bool, ...]) -> None:
    with ActorSystem.open(":memory:", ScriptedProvider(["x"])) as system:
        system.root.prompt("x").get(timeout=DEADLINE)
        [turn] = recorded(system.root)
        ignore = {name: ["body"] for name in "ab"}
        both = made(turn, *then.split()), made(turn, *now.split())
        assert tuple(calls(way, ignore)(*both) for way in ("exact", "any order", "subset", "superset")) == expected
        cut = replace(both[1], how="diverged")
        assert calls("superset", ignore)(both[0], cut) is (True if expected[3] else None)


@pytest.mark.parametrize(
    ("then", "now", "expected"),
    [
        ("a b", "a b", (True, True)),
        ("a b", "a", (None, None)),
        ("a b", "b", (False, None)),
        ("a b", "a c", (False, False)),
    ],
)
def test_calls_that_a_replay_did_not_come_to_are_not_judged(then: str, now: str, expected: tuple[Any, ...]) -> None:
    """It diverged at a call of which an ignored argument differs."""
    with ActorSystem.open(":memory:", ScriptedProvider(["x"])) as system:
        system.root.prompt("x").get(timeout=DEADLINE)
        [turn] = recorded(system.root)
        cut, ignore = made(turn, *now.split(), how="diverged"), {name: ["body"] for name in "ab"}
        assert tuple(calls(way, ignore)(made(turn, *then.split()), cut) for way in ("exact", "any order")) == expected


def test_answers_are_checked_by_character_and_by_type() -> None:
    class Price(BaseModel):
        euros: int

    with ActorSystem.open(":memory:", ScriptedProvider(["x"])) as system:
        system.root.prompt("x").get(timeout=DEADLINE)
        [turn] = recorded(system.root)
        fits = schema(Price)
        texts = ['{"euros": 3}', '{"euros": "three"}', "three euros"]
        assert [fits(turn, replace(turn, text=text)) for text in texts] == [True, False, False]
        assert [same_text(turn, replace(turn, text=text)) for text in ("x", "y")] == [True, False]
        assert [check(turn, replace(turn, how="failed")) for check in (fits, same_text)] == [None, None]


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.sample(1, "a database each")
def test_a_regression_is_found_and_says_where_and_nothing_is_done(durable: str) -> None:
    shop = TeaShop()
    with shop.open(durable) as system:
        agent = clerk(system, (*TEAS, *TEAS[:2]))
        done = list(shop.done)
        turns = recorded(agent)
        report = regress(turns, change={"system": "Be generous."}, check=same_calls, samples=2)
        assert (report.verdict, report.rate, report.baseline, report.difference) == ("fail", 0.0, 1.0, -1.0)
        assert report.difference_interval == pytest.approx((-1.0, -0.131), abs=0.001)
        assert (report.cases, report.needed, len(report.failures)) == (5, None, 10)
        first = report.failures[0]
        assert (first.agent, first.position) == (agent.uuid, turns[0].opens)
        assert first.why.startswith(f"{turns[0].calls[1].position} arguments: ")
        assert '{"kilos":2,"tea":"Assam"} → {"kilos":3,"tea":"Assam"}' in first.why
        few = regress(turns, change={"max_tokens": 500})
        assert (few.verdict, few.difference, few.needed) == ("unsure", 0.0, 189)
        advice = "At a margin of 2.0 % a verdict takes about 189 cases like these; these would pass at 43.5 %."
        assert f"5 cases are too few: give more. {advice}" in few.text()
        assert json.loads(few.json())["needed"] == 189
        assert regress(turns, change={"max_tokens": 500}, margin=0.435).verdict == "pass"
        loose = regress(turns, change={"system": "Be generous."}, check=calls(ignore={"sell": ["kilos"]}))
        assert (loose.verdict, loose.difference) == ("unsure", 0.0)
        assert shop.done == done
        again = regress(turns, change={"system": "Be generous."}, check=same_calls, samples=2)
        assert again.resumed
        assert (again.failures, again.text()) == (report.failures, report.text())
        assert report.text().startswith("fail: right 0.0 %")
        assert json.loads(report.json())["difference"] == -1.0
        assert "<h1>Regression: fail</h1>" in report.html()
        assert check(system._store) == []


@pytest.mark.slow("takes a tenth of a second")
def test_another_check_judges_the_same_replays_and_the_same_one_is_not_asked_again() -> None:
    asked: list[str] = []
    heard: list[tuple[int, str, float | None]] = []

    def mine(recorded: Turn, again: Turn) -> bool:
        asked.append(again.text)
        return again.text == "Done: sold 2 Assam"

    def hears(run: TrialRun, verdict: Verdict) -> None:
        assert run.recorded is not None
        heard.append((run.trial.number, run.text, verdict.score))

    shop = TeaShop()
    with shop.open() as system:
        turns = recorded(clerk(system))
        assert regress(turns).rate == 1.0
        requests = len(shop.requests)
        for _ in range(2):
            heard.clear()
            regress(turns, check=mine, on_trial=hears, dry_run=True)
            assert heard == []
            report = regress(turns, check=mine, on_trial=hears)
            assert [number for number, *_ in heard] == [1, 2, 3, 4, 5, 6]
            assert all(score == (text == "Done: sold 2 Assam") for _, text, score in heard)
            assert report.rate == report.baseline == pytest.approx(1 / 3)
            assert len(report.failures) == 2
        assert regress(turns, check=calls("any order")).rate == 1.0
        assert regress(turns, check=lambda then, now: 0.5).rate == 0.5
        assert len(shop.requests) == requests
        assert check(system._store) == []
        new = regress(turns, check=mine, name="new", change={"max_tokens": 9})
        assert new.rate == pytest.approx(1 / 3)
        asked.clear()
        assert regress(turns, check=mine, name="new", change={"max_tokens": 9}).failures == new.failures
        assert asked == []
        alone = regress(turns, check=mine, baseline=False)
        assert alone.text().startswith("fail: right 33.3 % (6.1 to 79.2), to be at least 98.0 %\n3 cases, 3 samples")
        less = regress(turns, check=mine, at_least=0.3)
        assert (less.verdict, less.baseline, less.samples, less.needed) == ("unsure", None, 3, 727)
        assert "3 cases are too few: give more. At this rate a verdict takes about 727 cases." in less.text()
        right = regress(turns, margin=0)
        assert (right.verdict, right.needed) == ("unsure", None)
        assert "No number of cases like these gives a verdict: hold them to another margin." in right.text()
        judged = regress(turns[:1])
        assert "1 case is too few: give more. At a margin of 2.0 %" in judged.text()


def test_a_function_is_known_by_its_code_and_a_check_by_what_it_was_made_of() -> None:
    def made(text: str) -> Any:
        names: dict[str, Any] = {}
        exec(f"def mine(then, now):\n    return {text}", names)  # as two processes compile it
        return fingerprint(names["mine"])

    assert made("now.text in {'a', 'b'}") == made("now.text in {'b', 'a'}") != made("now.text in {'a'}")
    assert fingerprint(same_calls) == fingerprint(calls()) == fingerprint(calls("exact", {}))
    others = [calls("subset"), calls(ignore={"send": ["body"]}), schema(int), schema(float), same_text]
    assert len({fingerprint(check) for check in (same_calls, *others)}) == 6


def test_what_failed_is_undecided_and_no_pass() -> None:
    failing = [False]

    def says(request: Request) -> str:
        if failing[0] and request.messages[-1]["content"][-1]["text"] == "Ceylon":
            raise ProviderError("down")
        return "fine"

    with ActorSystem.open(":memory:", ScriptedProvider(says)) as system:
        turns = recorded(clerk(system))
        failing[0] = True
        report = regress(turns, check=same_text)
        assert (report.verdict, report.undecided, report.rate) == ("unsure", 2, 1.0)
        assert "Too many samples could not be judged: fix the cause, and run it again." in report.text()
        assert report.failures == []
        assert report.reasons == {"down": 2}
        assert "Not judged: 2 × down" in report.text()


@pytest.mark.slow("takes a tenth of a second")
def test_a_value_that_does_not_fit_is_wrong_and_is_not_asked_for_once_more() -> None:
    asked: list[str | None] = []

    def says(request: Request) -> Reply:
        asked.append(request.system)
        return Reply("", (ToolCall("give_result", {"result": "many" if request.system else 7}, f"g{len(asked)}"),))

    with ActorSystem.open(":memory:", ScriptedProvider(says)) as system:
        agent = system.root.fork()
        for _ in range(4):
            agent.prompt("How many?", output=int).get(timeout=DEADLINE)
        report = regress(recorded(agent), change={"system": "Use words."}, check=schema(int))
        assert (report.verdict, report.rate, report.baseline, report.undecided) == ("fail", 0.0, 1.0, 0)
        assert "gave no result that fits" in report.failures[0].why
        assert asked.count("Use words.") == 4 * 3  # each is repaired twice


@pytest.mark.slow("takes a tenth of a second")
def test_a_regression_whose_budget_ends_is_unsure_and_goes_on_after_a_grant() -> None:
    def costs(request: Request) -> Reply:
        return Reply("fine", usage=Usage(0, 30))

    with ActorSystem.open(":memory:", ScriptedProvider(costs)) as system:
        turns = recorded(clerk(system))
        poor = regress(turns, name="poor", budget={"tokens": 100}, parallel=2)
        assert (poor.verdict, poor.ended) == ("unsure", "budget")
        assert poor.samples + poor.undecided == 6
        assert poor.undecided > 0
        assert "It ended before all was made: budget." in poor.text()
        system.agent("poor").grant(tokens=1_000)
        last = regress(turns, name="poor", parallel=2, margin=0.6)
        assert (last.verdict, last.ended, last.samples) == ("pass", "", 6)


@pytest.mark.slow("takes a tenth of a second")
def test_an_evaluation_asks_prompts_of_forks_and_counts_what_was_right() -> None:
    def says(request: Request) -> str:
        return f"{request.system} {request.messages[-1]['content'][-1]['text']}"

    def polite(run: TrialRun) -> bool:
        return run.text.startswith("Please")

    with ActorSystem.open(":memory:", ScriptedProvider(says)) as system:
        agent = system.root.fork(system="Please")
        before = agent.history(all=True)
        good = evaluate(agent, TEAS, polite, samples=2)
        assert (good.verdict, good.rate, good.baseline, good.samples) == ("unsure", 1.0, None, 6)
        assert "held to nothing" in good.text()
        assert "A verdict needs at_least" in good.text()
        assert evaluate(agent, TEAS, polite, samples=2, at_least=0.4).verdict == "pass"
        assert evaluate(agent, TEAS, polite, samples=2, at_least=0.8).needed == 16
        half = evaluate(agent, TEAS, lambda run: 0.5, name="half")
        assert (half.verdict, half.rate, half.difference, half.failures) == ("unsure", 0.5, None, [])
        bad = evaluate(agent, [*TEAS, "Oolong"], polite, change={"system": "Take"}, baseline=True)
        assert (bad.verdict, bad.rate, bad.baseline) == ("fail", 0.0, 1.0)
        assert [(failure.prompt, failure.why) for failure in bad.failures] == [(tea, "") for tea in (*TEAS, "Oolong")]
        assert agent.history(all=True) == before
        with pytest.raises(BadInput, match="from 0 to 1"):
            evaluate(agent, TEAS, lambda run: 5, name="five")
        with pytest.raises(BadInput, match="Give one of baseline and at_least"):
            evaluate(agent, TEAS, polite, baseline=True, at_least=0.8)


@pytest.mark.slow("takes a tenth of a second")
def test_judges_of_an_evaluation_that_block_are_at_all_its_trials_at_once() -> None:
    together = threading.Barrier(4)

    @blocks
    def waits(run: TrialRun) -> bool:
        if run.trial.number > 1:  # its siblings are born when the first one has answered
            together.wait(timeout=DEADLINE)
        return True

    with ActorSystem.open(":memory:", ScriptedProvider(lambda request: "fine")) as system:
        assert evaluate(system.root.fork(), TEAS, waits, samples=3, name="waits").rate == 1.0
        with pytest.raises(BadInput, match="not registered"):
            evaluate(system.root, TEAS, ask("Is it?", model="nowhere:big"))


MISTAKES: list[dict[str, Any]] = [
    {"check": "calls"},
    {"margin": 2},
    {"margin": True},
    {"baseline": 1},
    {"samples": 0},
    {"at_least": 1},
]


@pytest.mark.slow("takes a tenth of a second")
def test_a_wrong_argument_of_a_regression_is_named() -> None:
    with TeaShop().open() as system:
        turns = recorded(clerk(system, TEAS[:1]))
        for wrong in MISTAKES:
            with pytest.raises(BadInput, match=next(iter(wrong))):
                regress(turns, **wrong)
            assert len(system.agents()) == 2, wrong
        with pytest.raises(BadInput, match="Expected a check to return a number, True"):
            regress(turns, check=lambda then, now: "yes")  # type: ignore[arg-type, return-value]  # a user's mistake


@pytest.mark.parametrize(
    "wrong", [{"cases": []}, {"cases": "Assam"}, {"cases": [3]}, {"judge": 3}, {"at": -1}, {"tools": ["fly"]}], ids=str
)
def test_a_wrong_argument_of_an_evaluation_is_named(wrong: dict[str, Any]) -> None:
    with TeaShop().open() as system:
        how: dict[str, Any] = {"cases": ["Assam"], "judge": lambda run: 1, **wrong}
        with pytest.raises(BadInput):
            evaluate(system.root, **how)
        assert len(system.agents()) == 1


@pytest.mark.parametrize("wrong", [{"match": "same"}, {"ignore": {"send": "body"}}, {"ignore": 3}], ids=str)
def test_wrong_arguments_of_a_check_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        calls(**wrong)


def units(report: RegressionReport) -> list[list[tuple[int, str]]]:
    """Case and arm of the trials of each unit with births."""
    batches: list[list[tuple[int, str]]] = [[]]
    for message in own_messages(report.experiment.agent):
        if message.kind == "note":
            batches.append([])
        elif "number" in message.data:
            batches[-1].append((message.data["place"], message.data["arm"]))
    return [unit for unit in batches if unit]


@pytest.mark.slow("takes a tenth of a second")
def test_the_first_samples_of_all_turns_are_born_at_once_and_the_others_when_those_have_answered() -> None:
    with TeaShop().open() as system:
        report = regress(recorded(clerk(system)), samples=3, parallel=32)
        first, *later = units(report)
        assert first == [(case, arm) for case in range(3) for arm in ("change", "baseline")]
        assert sorted(trial for unit in later for trial in unit) == sorted(2 * first)


def test_the_first_prompt_of_an_evaluation_is_awaited_since_all_go_on_from_the_same_history() -> None:
    with ActorSystem.open(":memory:", ScriptedProvider(lambda request: "Well.")) as system:
        system.root.prompt("Go on.").get(timeout=DEADLINE)
        report = evaluate(system.root, ["Sum it up.", "What next?", "And then?"], lambda run: True, samples=2)
        first, *later = units(report)
        assert first == [(0, "change")]
        assert [case for unit in later for case, _ in unit] == [1, 2, 0, 1, 2]
