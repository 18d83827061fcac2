"""What an experiment says before its first request: the arithmetic, and each verb over the real store and agents."""

import logging
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ikigai_actors import ActorSystem, AgentNotFound, BadInput, Reply, Request, ScriptedProvider, ToolCall, Usage, tool
from ikigai_actors.agent.turn.state import Phase
from ikigai_actors.behaviour import (
    Beam,
    BestOf,
    Forecast,
    Found,
    ask,
    bisect,
    evaluate,
    recorded,
    regress,
    replay,
    same_text,
    search,
)
from ikigai_actors.behaviour.forecasts import ExpectedRequest, largest, total_of, trial_forecast
from ikigai_actors.behaviour.results import ExperimentResult
from ikigai_actors.providers import Price, PricedModel
from ikigai_actors.store.base import Store
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.testing import CrashPoint, ProcessCrashed, Simulation, simulated
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import sql, tables

MICRO = 1_000_000
TEA, COFFEE = PricedModel("shop:tea", Price(MICRO, 2 * MICRO, MICRO, MICRO // 2)), PricedModel("shop:coffee", None)
PRICES = '["shop:tea"]\ninput = 1\noutput = 2\ncache_read = 0.5\n["shop:strong"]\ninput = 10\noutput = 20\n'


def expected(model: PricedModel, *usages: Usage | None, known: str = "shop:tea") -> Forecast:
    return trial_forecast([ExpectedRequest(model, usage) for usage in usages], [model], [model.name], [known])


SUMS: list[tuple[list[Forecast], tuple[int, ...], float | None, str]] = [
    ([], (0, 0, 0, 0, 0), 0.0, "Nothing is left to be asked."),
    (
        [expected(TEA, Usage(1_000, 100, 10, 2_000))],
        (1, 1, 0, 3_010, 100),
        0.00221,
        "At most 1 trial, 1 request to shop:tea, about 3,010 tokens in and 100 out by the record: $0.002210.",
    ),
    (
        [expected(TEA, Usage(1_000_000, 0), Usage(500_000, 250_000))] * 3,
        (3, 6, 0, 4_500_000, 750_000),
        6.0,
        "At most 3 trials, 6 requests to shop:tea, about 4,500,000 tokens in and 750,000 out by the record: $6.00.",
    ),
    (
        [expected(TEA, Usage(10, 1), None), expected(TEA, None)],
        (2, 3, 2, 10, 1),
        0.000012,
        (
            "At most 2 trials, 3 requests to shop:tea, about 10 tokens in and 1 out by the record "
            "(2 requests without tokens on record): $0.000012."
        ),
    ),
    (
        [expected(PricedModel("shop:", None), None, known="shop:")] * 2,
        (2, 2, 2, 0, 0),
        None,
        "At most 2 trials, 2 requests to shop; no tokens on record.",
    ),
    (
        [expected(TEA, Usage(10, 1)), expected(COFFEE, Usage(20, 2))],
        (2, 2, 0, 30, 3),
        None,
        (
            "At most 2 trials, 2 requests to shop:tea, shop:coffee, about 30 tokens in and 3 out by the record; "
            "no price is known here for shop:coffee. "
            "Recorded histories are read by shop:coffee, which has written none of them."
        ),
    ),
    ([expected(TEA)], (1, 0, 0, 0, 0), 0.0, "At most 1 trial, 0 requests to shop:tea."),
]


@pytest.mark.parametrize(("trials", "counts", "usd", "text"), SUMS, ids=[text for *_, text in SUMS])
def test_a_forecast_is_the_sum_of_its_trials(
    trials: list[Forecast], counts: tuple[int, ...], usd: float | None, text: str
) -> None:
    total = total_of(trials)
    assert (total.trials, total.requests, total.unrecorded, total.input_tokens, total.output_tokens) == counts
    assert (total.usd, total.text()) == (usd, text)


def test_the_dearest_of_several_trials_stands_for_each_with_the_models_of_all() -> None:
    estimate = largest([expected(TEA, Usage(1)), expected(TEA, Usage(5), Usage(5, 2)), expected(COFFEE, Usage(7))])
    assert (estimate.trials, estimate.requests, estimate.input_tokens, estimate.output_tokens) == (1, 2, 10, 2)
    assert (estimate.models, estimate.unpriced, estimate.new_readers) == (
        ("shop:tea", "shop:coffee"),
        *[("shop:coffee",)] * 2,
    )


class Meter(ScriptedProvider):
    """Answers a prompt with a call, and its result with words, and tells tokens by the size of the request."""

    name = "shop"
    model = "tea"

    def __init__(self) -> None:
        super().__init__(self.answer)

    def answer(self, request: Request) -> Reply:
        """A call of ``price`` for a text, words for a result."""
        blocks = [part for message in request.messages for part in message["content"]]
        usage = Usage(100 * len(blocks), 7, 3, 50 if len(blocks) > 1 else 0)
        if blocks[-1]["type"] == "text" and "?" not in blocks[-1]["text"]:
            return Reply("", (ToolCall("price", {"tea": blocks[-1]["text"]}),), usage=usage)
        return Reply("yes", usage=usage)


@tool(read_only=True)
def price(tea: str) -> str:
    return f"{tea}: 12"


class Shop:
    """A system with an agent that has taken three turns of two requests each, and one of a single one."""

    def __init__(self, directory: Path) -> None:
        (directory / "prices.toml").write_text(PRICES, "utf-8")
        self.provider = Meter()
        self.system = ActorSystem.open(
            str(directory / "shop.db"),
            self.provider,
            {"other": Meter()},
            tools=[price],
            prices=directory / "prices.toml",
        )
        self.agent = self.system.root.fork(name="clerk")
        for prompt in ("Assam", "Ceylon", "Keemun", "And now?"):
            self.agent.prompt(prompt).get(timeout=DEADLINE)

    def spent(self, result: ExperimentResult) -> tuple[int, int, int, int]:
        """Trials, requests, tokens and micro-dollars of an experiment and all below it."""
        below = [result.experiment.agent]
        for agent in below:
            below += agent.children()
        rows = [agent.record for agent in below]
        asked = {record.uuid for record in below}
        requests = sum(request.agent in asked for request in self.provider.requests)
        trials = len(result.experiment.book.trials)
        return trials, requests, sum(row.spent_tokens for row in rows), sum(row.spent_usd for row in rows)


@pytest.fixture
def shop(tmp_path: Path) -> Any:
    made = Shop(tmp_path)
    with made.system:
        yield made


def judged(run: Any) -> bool:
    return bool(run.text)


VERBS: dict[str, Callable[..., ExperimentResult]] = {
    "replay": lambda agent, **how: replay(recorded(agent), **how),
    "replay of logs": lambda agent, **how: replay(recorded(agent), each="log", samples=2, **how),
    "replay of steps": lambda agent, **how: replay(recorded(agent), each="step", **how),
    "replay of an edit": lambda agent, **how: replay(
        recorded(agent), edit={recorded(agent)[1].calls[0].position + 2: "Ceylon: 13"}, **how
    ),
    "regress": lambda agent, **how: regress(recorded(agent), check=same_text, samples=2, **how),
    "search": lambda agent, **how: search(agent, judged, plan=BestOf(3), options=["Oolong?"], **how),
    "evaluate": lambda agent, **how: evaluate(agent, ["Oolong?", "Sencha?"], judged, samples=2, baseline=True, **how),
    "bisect": lambda agent, **how: bisect(agent, judged, probe="Is it?", most=3, **how),
}
EXACT = [verb for verb in VERBS if verb.startswith(("replay", "regress"))]


def stored(store: Store) -> dict[str, list[str]]:
    """All rows of all tables, but those by which a host says that it lives."""
    names = sorted(tables(store) - {"hosts"})
    return store.read(lambda tx: {name: sorted(map(repr, sql(tx, f"SELECT * FROM {name}"))) for name in names})


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.sample(1, "an experiment each")
@pytest.mark.parametrize("verb", VERBS)
def test_a_dry_run_says_what_would_be_asked_and_writes_and_asks_nothing(shop: Shop, verb: str) -> None:
    before, asked = stored(shop.system._store), len(shop.provider.requests)
    result = VERBS[verb](shop.agent, dry_run=True)
    assert (result.ended, result.resumed, result.experiment.book.trials) == ("dry run", False, {})
    assert result.forecast.trials > 0
    assert result.forecast.text().startswith(f"At most {result.forecast.trials} trial")
    assert (stored(shop.system._store), len(shop.provider.requests)) == (before, asked)
    with pytest.raises(AgentNotFound):
        result.experiment.agent.history()
    with pytest.raises(AgentNotFound):
        result.end()
    done = VERBS[verb](shop.agent)
    assert (done.forecast, done.ended) == (result.forecast, "")
    over = VERBS[verb](shop.agent, dry_run=True)
    assert (over.forecast.trials, over.ended, over.resumed) == (0, "dry run", True)
    assert over.experiment.book.judged == done.experiment.book.judged


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.sample(1, "an experiment each")
@pytest.mark.parametrize("verb", EXACT)
def test_what_is_said_of_recorded_turns_is_what_their_replay_costs(shop: Shop, verb: str) -> None:
    result = VERBS[verb](shop.agent)
    forecast = result.forecast
    said = forecast.trials, forecast.requests, forecast.input_tokens + forecast.output_tokens, forecast.micro_dollars
    assert said == shop.spent(result)
    assert (forecast.models, forecast.unpriced, forecast.new_readers) == (("shop:tea",), (), ())
    assert forecast.usd == forecast.micro_dollars / 1_000_000 > 0


def test_a_further_prompt_reads_all_that_the_latest_reply_has_read_and_said(shop: Shop) -> None:
    weight = shop.agent.history()[-1].data["usage"]
    read = sum(weight.values())
    for verb, trials in (("search", 3), ("evaluate", 8), ("bisect", 3)):
        forecast = VERBS[verb](shop.agent, dry_run=True).forecast
        assert (forecast.trials, forecast.requests) == (trials, trials)
        assert (forecast.input_tokens, forecast.output_tokens) == (trials * read, trials * 7)
    at = shop.agent.history()[0].id - 1
    begun = search(shop.agent, judged, plan=Beam(2, 3), options=["Oolong?", "Sencha?"], at=at, dry_run=True).forecast
    assert (begun.trials, begun.unrecorded, begun.usd) == (10, 10, None)
    assert begun.text() == "At most 10 trials, 10 requests to shop:tea; no tokens on record."


@pytest.mark.thorough("the forecast of a third verb; each run has a search and a replay")
def test_a_bisection_without_a_question_costs_the_rest_of_the_log(shop: Shop) -> None:
    forecast = bisect(shop.agent, judged, most=5, dry_run=True).forecast
    requests = [
        request.usage for turn in recorded(shop.agent) for request in turn.requests if request.usage is not None
    ]
    assert (forecast.trials, forecast.requests) == (5, 5 * 7)
    assert forecast.input_tokens + forecast.output_tokens == 5 * sum(request.all_tokens for request in requests)
    result = bisect(shop.agent, judged, most=5)
    made, asked, tokens, _ = shop.spent(result)
    assert 1 < made <= 5
    assert 0 < asked <= forecast.requests
    assert 0 < tokens <= forecast.input_tokens + forecast.output_tokens


@pytest.mark.slow("takes a tenth of a second")
def test_a_judge_that_asks_a_model_is_one_request_more_and_reads_the_history(shop: Shop) -> None:
    how: dict[str, Any] = {"plan": BestOf(2), "options": ["Oolong?"]}
    alone = search(shop.agent, judged, **how, dry_run=True).forecast
    forecast = search(shop.agent, ask("Is it? yes or no"), **how, dry_run=True).forecast
    assert (forecast.requests, forecast.output_tokens, forecast.new_readers) == (4, alone.output_tokens, ())
    assert forecast.input_tokens == 2 * alone.input_tokens + alone.output_tokens
    other = search(shop.agent, ask("Is it? yes or no", model="other:strong"), **how, dry_run=True).forecast
    assert (other.models, other.new_readers, other.usd) == (("shop:tea", "other:strong"), ("other:strong",), None)
    result = search(shop.agent, ask("Is it? yes or no"), **how)
    assert shop.spent(result)[:2] == (2, 4)


CHANGES: list[tuple[Mapping[str, Any], tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = [
    ({}, ("shop:tea",), (), ()),
    ({"system": "Be kind."}, ("shop:tea",), (), ()),
    ({"model": "shop"}, ("shop:tea",), (), ()),
    ({"model": "shop:strong"}, ("shop:strong",), ("shop:strong",), ()),
    ({"model": "shop:tea, other:tea"}, ("shop:tea",), ("other:tea",), ("other",)),
    ({"compact_model": "other:tea"}, ("shop:tea",), ("other:tea",), ("other",)),
]


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.sample(2, "an experiment each")
@pytest.mark.parametrize(("change", "models", "new", "services"), CHANGES)
def test_models_that_have_not_written_a_history_are_named_before_they_read_it(
    shop: Shop, change: Mapping[str, Any], models: tuple[str, ...], new: tuple[str, ...], services: tuple[str, ...]
) -> None:
    for forecast in (
        replay(recorded(shop.agent), change=change, dry_run=True).forecast,
        evaluate(shop.agent, ["Oolong?"], judged, change=change, dry_run=True).forecast,
    ):
        assert (forecast.models, forecast.new_readers, forecast.new_services) == (models, new, services)
        assert ("Recorded histories are read by" in forecast.text()) == bool(new)
    compared = regress(recorded(shop.agent), change=change, dry_run=True).forecast
    assert compared.models == tuple(dict.fromkeys([*models, "shop:tea"]))
    if change.get("model") == "shop:strong":
        requests = [
            request.usage for turn in recorded(shop.agent) for request in turn.requests if request.usage is not None
        ]
        forecast = replay(recorded(shop.agent), change=change, dry_run=True).forecast
        assert forecast.micro_dollars == sum(10 * (request.all_tokens - 7) + 20 * 7 for request in requests)


def test_the_model_that_an_agent_has_been_given_is_no_stranger_to_its_history(shop: Shop) -> None:
    shop.agent.configure(model="other:tea")
    how: dict[str, Any] = {"plan": BestOf(1), "options": ["?"], "dry_run": True}
    assert search(shop.agent, judged, **how).forecast.new_readers == ()
    assert search(shop.system.root.fork(model="other:tea"), judged, **how).forecast.new_readers == ()


@pytest.mark.slow("takes a tenth of a second")
def test_nothing_is_made_when_a_model_cannot_be_asked(shop: Shop, tmp_path: Path) -> None:
    file = tmp_path / "clerk.jsonl"
    shop.system.export(shop.agent, tmp_path / "shop.jsonl")
    with ActorSystem.open(":memory:", "offline") as system:
        elsewhere = recorded(system.import_(tmp_path / "shop.jsonl"))
        forecast = replay(elsewhere, dry_run=True).forecast
        assert (forecast.new_readers, forecast.new_services) == (("offline:",), ())
    strange = shop.system.root.fork(name="strange", model="other:x")
    strange.prompt("Is it?").get(timeout=DEADLINE)
    shop.system.export(strange, file)
    with ActorSystem.open(":memory:", Meter()) as system:
        turns = recorded(system.import_(file))
        before = stored(system._store)
        with pytest.raises(BadInput, match="'other:x' names provider 'other', which is not registered"):
            replay(turns)
        assert stored(system._store) == before
        assert replay(turns, change={"model": None}).forecast.new_readers == ("shop:tea",)


@pytest.mark.slow("takes a tenth of a second")
def test_a_forecast_counts_what_is_left(shop: Shop) -> None:
    def breaks_off(run: Any) -> bool:
        if run.trial.number == 3:
            raise ValueError("enough")
        return True

    how: dict[str, Any] = {"plan": BestOf(5), "options": ["Oolong?"], "parallel": 1}
    with pytest.raises(ValueError, match="enough"):
        search(shop.agent, breaks_off, **how)
    before = stored(shop.system._store)
    dry = search(shop.agent, judged, **how, dry_run=True)
    assert (dry.forecast.trials, dry.resumed, [trial.score for trial in dry.trials]) == (3, True, [1.0, 1.0, None])
    assert stored(shop.system._store) == before
    assert search(shop.agent, judged, **how, fresh=True, dry_run=True).forecast.trials == 5
    assert search(shop.agent, judged, **how).forecast == dry.forecast


@pytest.mark.slow("takes a tenth of a second")
def test_the_library_says_it_once_and_before_the_first_request(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[int] = []
    answer = shop.provider.answer

    def hearing(request: Request) -> Reply:
        heard.append(len(caplog.messages))
        return answer(request)

    shop.provider._scripts = {None: hearing}
    with caplog.at_level(logging.INFO, "ikigai_actors.behaviour"):
        result = replay(recorded(shop.agent))
    assert heard == [1] * 7
    assert caplog.messages == [f"replay: {result.forecast.text()}"]


@pytest.mark.slow("takes a tenth of a second")
def test_trials_that_were_cut_off_go_on_behind_what_is_said_and_not_in_a_dry_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard: list[int] = []

    def hearing(request: Request) -> str:
        heard.append(len(caplog.messages))
        return "yes"

    def begun(world: Simulation, **how: Any) -> Found:
        return search(world.system.agent("clerk"), judged, plan=BestOf(2), options=["Oolong?"], parallel=2, **how)

    caplog.set_level(logging.INFO, "ikigai_actors.behaviour")
    for commit in count(1):
        with simulated() as world:
            world.open(ScriptedProvider(hearing)).root.fork(name="clerk")
            world.crash_at(CrashPoint(commit, True))
            with pytest.raises(ProcessCrashed):
                begun(world)
            world.reopen()
            agents = [world.system.handle(record.uuid) for record in world.system.agents()]
            states = [agent.state for agent in agents]
            if Phase.INTERRUPTED not in states:
                continue
            caplog.clear()
            heard.clear()
            before = stored(world.system._store)
            dry = begun(world, dry_run=True)
            assert (dry.forecast.trials, dry.resumed) == (2, True)
            assert (stored(world.system._store), heard, len(caplog.messages)) == (before, [], 1)
            assert [agent.state for agent in agents] == states
            begun(world)
            assert heard == [2, 2]
            return


@pytest.mark.slow("takes a tenth of a second")
def test_where_another_process_knows_the_models_their_names_are_those_on_record(tmp_path: Path, shop: Shop) -> None:
    with AttachedSystem.open(str(tmp_path / "shop.db")) as attached:
        turns = recorded(attached.agent("clerk"))
        forecast = replay(turns, dry_run=True).forecast
        assert (forecast.models, forecast.unpriced, forecast.usd, forecast.new_readers) == (
            ("shop:tea",),
            ("shop:tea",),
            None,
            (),
        )
        assert forecast.requests == 7
        changed = replay(turns, change={"model": "other:tea"}, dry_run=True).forecast
        assert (changed.models, changed.new_readers) == (("other:tea",), ("other:tea",))
