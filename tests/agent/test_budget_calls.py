"""A model gives its children budgets, is told what is left, and grants more."""

import pytest

from ikigai_actors import ActorSystem, Budget, Reply, ScriptedProvider, ToolCall, Usage
from ikigai_actors.records.fsck.check import check
from tests.kit.blocking_provider import DEADLINE
from tests.kit.tool_scripts import calling, requests_of, results, scripted


def costing(*calls: tuple[str, dict[str, object]], tokens: int = 100) -> Reply:
    made = tuple(ToolCall(name, arguments, str(number)) for number, (name, arguments) in enumerate(calls, 1))
    return Reply(tool_calls=made, usage=Usage(tokens - 10, 10), stop_reason="tool_use")


def test_a_fork_of_a_model_tells_parent_and_child_what_is_left_for_each(database: str) -> None:
    forks = costing(("fork", {"name": "rich"}), ("fork", {"name": "poor", "budget": "tokens=5k,usd=0.5"}))
    provider = scripted(boss=[forks, "done"], rich=["ok"], poor=["ok"])
    with ActorSystem.open(database, provider, budget={"tokens": 10_000}) as system:
        system.root.rename("boss")
        system.root.prompt("go").get(timeout=DEADLINE)
        for name in ("rich", "poor"):
            system.agent(name).reply(timeout=DEADLINE)
        poor = system.agent("poor").budget
        assert poor is not None
        assert (poor.owner, poor.granted) == (system.agent("poor").uuid, {"tokens": 5_000, "usd": 0.5})
        assert check(system._store) == []
        contents = [result.content for result in results(requests_of(provider, "boss")[1])]
        assert all(content.endswith("Left of the budget: 9,900 tokens of yours.") for content in contents)
        rich = results(requests_of(provider, "rich")[0])[0].content
        assert rich.endswith("Left of the budget: 9,900 tokens of boss. You inherit 100 tokens.")
        news = results(requests_of(provider, "poor")[0])[-1].content
        assert news.endswith("Left of the budget: 5,000 tokens of yours, $0.50 of yours. You inherit 100 tokens.")
        stored = [message.content for message in system.agent("poor").history() if message.kind == "tool_result"]
        assert stored[-1] == news


def test_where_nothing_is_limited_a_fork_tells_nothing_of_budgets(database: str) -> None:
    provider = scripted([costing(("fork", {"name": "kid"})), "done"], kid=["ok"])
    with ActorSystem.open(database, provider) as system:
        system.root.prompt("go").get(timeout=DEADLINE)
        [result] = results(requests_of(provider, None)[1])
        assert "budget" not in result.content


def test_a_budget_that_cannot_be_had_is_the_result_of_the_call(database: str) -> None:
    provider = scripted([calling(("fork", {"budget": "5 usd"}), ("fork", {"budget": "tokens=-1"})), "done"])
    with ActorSystem.open(database, provider) as system:
        system.root.prompt("go").get(timeout=DEADLINE)
        outcomes = results(provider.requests[1])
        assert [result.is_error for result in outcomes] == [True, True]
        assert all("Expected a budget such as usd=5" in result.content for result in outcomes)
        assert system.root.children() == []


def test_a_model_grants_more_to_an_agent_below_it_which_goes_on(database: str) -> None:
    provider = scripted([calling(("grant", {"agent": "kid", "tokens": 100, "usd": 0.25})), "done"], kid=["ok"])
    with ActorSystem.open(database, provider) as system:
        kid = system.root.fork("go", name="kid", budget={"tokens": 0, "usd": 0.25})
        assert system.root.wait([kid], timeout=DEADLINE)[kid] == "budget"
        system.root.prompt("go").get(timeout=DEADLINE)
        assert kid.reply(timeout=DEADLINE).text == "ok"
        [outcome] = results(requests_of(provider, None)[1])
        assert outcome.content == (
            f"The budget of {kid.uuid} grants 100 tokens and $0.50 in all now, and 1 that waited for it go on."
        )
        assert check(system._store) == []


@pytest.mark.sample(4, "grants")
@pytest.mark.parametrize(
    ("target", "arguments", "message"),
    [
        ("asker", {"tokens": 5}, "is not below you"),  # its own
        ("sibling", {"tokens": 5}, "is not below you"),
        ("leaf", {"tokens": 5}, "is not below you"),  # it shares its parent's
        ("nobody", {"tokens": 5}, "No agent is named 'nobody'"),
        ("own", {"usd": 5}, "does not limit usd"),
        ("own", {"tokens": 0}, "needs tokens, or usd"),
        ("own", {"tokens": -5}, "tokens"),
        ("own", {"usd": "5"}, "wants usd to be a number"),
        ("own", {}, "needs tokens, or usd"),
    ],
)
def test_a_model_grants_nothing_that_is_not_below_it_and_nothing_odd(
    database: str, target: str, arguments: dict[str, object], message: str
) -> None:
    provider = ScriptedProvider({"asker": [calling(("grant", {"agent": target, **arguments})), "done"]})
    with ActorSystem.open(":memory:", provider, budget={"tokens": 10_000}) as system:
        asker = system.root.fork(name="asker", budget={"tokens": 1_000})
        system.root.fork(name="sibling", budget=Budget(tokens=1_000))
        asker.fork(name="leaf")
        own = asker.fork(name="own", budget={"tokens": 10})
        asker.prompt("go").get(timeout=DEADLINE)
        [result] = results(provider.requests[1])
        assert result.is_error
        assert message in result.content
        assert own.budget is not None
        assert own.budget.granted == {"tokens": 10}
