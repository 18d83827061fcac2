"""Budgets at a terminal: /budget, ikigai budget, --budget."""

import json

import pytest
from click.testing import CliRunner

from ikigai_actors import ActorSystem, BadInput, Budget, Reply, Request, ScriptedProvider, Usage
from ikigai_actors.budgets import BudgetStatus
from ikigai_actors.records.agents.words import words_of
from ikigai_actors.records.budgets.budget import parse_budget, parse_grant
from ikigai_actors.shell.cli.main import cli
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.verbs.opening import Options
from tests.kit.blocking_provider import DEADLINE
from tests.kit.sessions import OpenSession


def test_a_budget_is_written_as_amounts_by_unit() -> None:
    assert parse_budget("usd=5, tokens=1M,strict") == Budget(usd=5, tokens=1_000_000, strict=True)
    assert parse_budget("agents=20,seconds=1.5,requests_per_minute=1k") == Budget(
        agents=20, seconds=1.5, requests_per_minute=1_000
    )
    assert Options(None, None, None, budget="usd=0.5").limits() == Budget(usd=0.5)
    assert Options(None, None, None).limits() is None
    for wrong in ("", "5", "usd", "usd=-1", "usd=five", "money=3", "tokens=0.5", "strict=1", "usd=5;tokens=3"):
        with pytest.raises(BadInput):
            parse_budget(wrong)


def test_a_grant_is_written_as_one_amount_more() -> None:
    assert parse_grant("+5usd") == {"usd": 5}
    assert parse_grant("+1.5h") == {"seconds": 5_400}
    assert parse_grant("+100ktokens") == {"tokens": 100_000}
    assert parse_grant("+2 agents") == {"agents": 2}
    for wrong in ("5usd", "+usd", "+5", "+5 money", "-5usd", "usd=5"):
        with pytest.raises(BadInput, match="Expected what to grant"):
            parse_grant(wrong)


def thirty(request: Request) -> Reply:
    return Reply("ok", usage=Usage(0, 30))


def test_a_person_sees_a_budget_at_the_shell_and_grants_more_of_it(open_session: OpenSession) -> None:
    session = open_session(ScriptedProvider(thirty))
    assert session("/budget") == ["no budget limits it"]
    session.system.root.fork(name="buyer", budget=Budget(tokens=40, usd=5, strict=True))
    assert session("/budget buyer") == [
        "budget of buyer (strict)",
        "  0 tokens of 40 tokens",
        "  $0.00 of $5.00",
    ]
    assert session("/budget buyer +1ktokens")[1] == "  0 tokens of 1,040 tokens"
    assert session("/budget buyer usd=2.5,tokens=7")[1:] == ["  0 tokens of 7 tokens", "  $0.00 of $2.50"]
    assert session("/budget usd=9")[1:] == ["  $0.00 of $9.00"]
    session("/fork --name seller --no-follow --budget tokens=50")
    assert session("/budget seller")[1:] == ["  0 tokens of 50 tokens"]
    [wrong] = session("/fork --budget frog")
    assert "Expected a budget such as usd=5" in wrong
    [wrong] = session("/budget usd=2,strict")
    assert "strict is set where a budget is made" in wrong
    [wrong] = session("/budget +$5")
    assert "Expected what to grant" in wrong
    [wrong] = session("/budget buyer +2h")
    assert "does not limit seconds" in wrong


@pytest.mark.slow("takes a tenth of a second")
def test_a_command_beside_a_running_system_lets_those_go_on_who_wait(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(thirty), budget={"tokens": 0}) as system:
        buyer = system.root.fork("go", name="buyer")
        assert system.root.wait([buyer], timeout=DEADLINE)[buyer] == "budget"
        [row] = [listed for listed in json.loads(ikigai(durable, "agents", "--json")) if listed["name"] == "buyer"]
        assert row["state"] == "waiting for budget"
        assert (
            ikigai(durable, "budget", "buyer")
            == f"budget of {words_of(system.root.uuid)}, 1 waiting for it\n  0 tokens of 0 tokens\n"
        )
        assert "0 tokens of 100 tokens" in ikigai(durable, "budget", "buyer", "+100tokens")
        assert buyer.reply(timeout=DEADLINE).text == "ok"
        budget = json.loads(ikigai(durable, "budget", "--json"))
        assert (budget["granted"], budget["spent"], budget["waiting"]) == ({"tokens": 100}, {"tokens": 30}, 0)
        assert "30 tokens of 30 tokens" in ikigai(durable, "budget", "tokens=5")
        assert "30 tokens of 100 tokens" in ikigai(durable, "budget", "tokens=100")
        assert ikigai(durable, "budget", "buyer", "usd=0.5") == "budget of buyer\n  $0.00 of $0.50\n"
        ikigai(durable, "fork", "buyer", "--name", "kid", "--budget", "tokens=7")
        assert "0 tokens of 7 tokens" in ikigai(durable, "budget", "kid")
        with AttachedSystem.open(durable) as attached:
            assert attached.root.grant(tokens=5).granted == {"tokens": 105}
            assert attached.agent("buyer").set_budget({"usd": 1}).granted == {"usd": 1}
            child = attached.agent("buyer").fork(budget={"tokens": 3}, timeout=DEADLINE)
            nothing = {"tokens": 0}
            assert child.budget == BudgetStatus(child.uuid, False, {"tokens": 3}, nothing, nothing, nothing)


def ikigai(database: str, *arguments: str) -> str:
    """The output of a command, in this process."""
    result = CliRunner().invoke(cli, ["--database", database, *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.slow("takes a tenth of a second")
def test_the_figures_of_a_database_tell_what_agents_branches_and_budgets_have_spent_over_restarts(durable: str) -> None:
    for _ in range(2):
        with ActorSystem.open(durable, ScriptedProvider(thirty), budget={"tokens": 1_000, "usd": 5}) as system:
            known = {record.name for record in system.agents()}
            shop = system.agent("shop") if known > {"shop"} else system.root.fork(name="shop", budget={"tokens": 500})
            buyer = system.agent("buyer") if known > {"shop"} else shop.fork(name="buyer")
            for agent in (shop, buyer):
                agent.prompt("go").get(timeout=DEADLINE)
            top, middle, leaf = system.root.uuid, shop.uuid, buyer.uuid
    shown = CliRunner().invoke(cli, ["--database", durable, "stats"]).output.splitlines()
    lines = [" ".join(line.split()) for line in shown]
    assert "spent 120 tokens" in lines
    assert f"{words_of(top)} 0 tokens, with all below it 120 tokens" in lines
    assert "shop 60 tokens, with all below it 120 tokens" in lines
    assert "buyer 60 tokens" in lines
    assert f"budget {words_of(top)} 120 tokens of 1,000 tokens; $0.00 of $5.00" in lines
    assert "budget shop 120 tokens of 500 tokens" in lines
    stats = json.loads(CliRunner().invoke(cli, ["--database", durable, "stats", "--json"]).output)
    assert stats["names"] == {top: words_of(top), middle: "shop", leaf: "buyer"}
    assert stats["spent_in_all"] == {"tokens": 120, "usd": 0}
    assert stats["branches"][middle] == {"tokens": 120, "usd": 0}
    assert [(budget["owner"], budget["held"]["tokens"]) for budget in stats["budgets"]] == [(top, 0), (middle, 0)]
