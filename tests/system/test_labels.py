"""On whose account requests are made: labels of agents and turns, and the sums of what was spent by them."""

import json
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ikigai_actors import ActorSystem, BadInput, Delta, ProviderError, Reply, Request, ScriptedProvider, Stream, Usage
from ikigai_actors.providers import Spent
from ikigai_actors.records.budgets.spendings import Spending
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.log.pruning import prune_logs
from ikigai_actors.shell.cli.main import cli
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.tools.function import tool
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import eventually
from tests.kit.tool_scripts import calling, results

PRICES = "[tea]\ninput = 2.0\noutput = 10.0\n"


def ten(request: Request) -> Reply:
    return Reply("ok", usage=Usage(0, 10), model="tea-1")


def opened(database: str, provider: Any = None, **options: Any) -> ActorSystem:
    return ActorSystem.open(database, provider or ScriptedProvider(ten), **options)


def tokens(system: ActorSystem | AttachedSystem, by: str | None, since: Any = None) -> Mapping[str, int]:
    return {value: spending.tokens for value, spending in system.spending(by, since).items()}


@pytest.mark.slow("takes a tenth of a second")
def test_a_child_works_on_the_account_of_its_parent_and_of_what_its_fork_says(durable: str) -> None:
    with opened(durable, labels={"team": "sales", "user": "ann"}) as system:
        system.root.prompt("go").get(timeout=DEADLINE)
        kid = system.root.fork("go", name="kid", labels={"user": "bob"})
        kid.fork("go", name="grandchild").reply(timeout=DEADLINE)
        kid.reply(timeout=DEADLINE)
        assert tokens(system, "user") == {"ann": 10, "bob": 20}
        assert tokens(system, "team") == {"sales": 30}
        assert tokens(system, "no such label") == tokens(system, None) == {"": 30}
        assert [record.labels for record in system.agents()] == [
            {"team": "sales", "user": "ann"},
            {"team": "sales", "user": "bob"},
            {"team": "sales", "user": "bob"},
        ]
    with opened(durable) as system:
        system.agent("grandchild").prompt("go on").get(timeout=DEADLINE)
        assert tokens(system, "user") == {"ann": 10, "bob": 30}
        assert check(system._store) == []


def test_the_labels_of_a_prompt_count_for_its_turn_and_for_whom_that_forks(durable: str) -> None:
    def answer(request: Request) -> Reply:
        if request.name != "kid" and not results(request) and "fork" in str(request.messages[-1]):
            return Reply(tool_calls=calling(("fork", {"name": "kid", "prompt": "look"})).tool_calls, usage=Usage(0, 5))
        return ten(request)

    with opened(durable, ScriptedProvider(answer), labels={"team": "sales"}) as system:
        root = system.root
        root.prompt("fork", labels={"user": "ann"}).get(timeout=DEADLINE)
        system.agent("kid").reply(timeout=DEADLINE)
        root.fork("later", name="late").reply(timeout=DEADLINE)
        root.prompt("alone").get(timeout=DEADLINE)
        assert tokens(system, "user") == {"ann": 25, "": 20}
        assert tokens(system, "team") == {"sales": 45}
        assert system.agent("kid").record.labels == {"team": "sales", "user": "ann"}
        assert system.agent("late").record.labels == {"team": "sales"}
        assert check(system._store) == []


def test_a_turn_that_was_cut_off_goes_on_for_whom_it_was_begun(durable: str) -> None:
    script = ScriptedProvider([calling("agents")])  # and then it has no more replies: the turn fails
    with opened(durable, script) as system, pytest.raises(ProviderError):
        system.root.prompt("go", labels={"user": "ann"}).get(timeout=DEADLINE)
    with opened(durable) as system:
        system.root.resume()
        system.root.reply(timeout=DEADLINE)
        assert tokens(system, "user") == {"ann": 10}


def test_a_reply_that_broke_off_counts_too(durable: str) -> None:
    delta = Delta(spent=Spent(Usage(3, 4), "tea-1"))
    broken = Stream(("par", delta), ProviderError("gone", "par", broke_off=True))
    with opened(durable, ScriptedProvider([broken, Reply("ok", usage=Usage(0, 10), model="tea-1")])) as system:
        system.root.prompt("go", labels={"user": "ann"}).get(timeout=DEADLINE)
        assert system.spending("user") == {"ann": Spending(17, 0.0, 2)}
        assert check(system._store) == []


def test_dollars_are_those_of_then(tmp_path: Path) -> None:
    prices, database = tmp_path / "prices.toml", str(tmp_path / "some.db")
    prices.write_text(PRICES)
    with opened(database, prices=prices) as system:
        system.root.prompt("go").get(timeout=DEADLINE)
        assert system.spending() == {"": Spending(10, 0.0001, 1)}
    prices.write_text(PRICES.replace("10.0", "20.0"))
    with opened(database, prices=prices) as system:
        system.root.prompt("go").get(timeout=DEADLINE)
        assert system.spending() == {"": Spending(20, 0.0003, 2)}
        assert system.root.record.spent_usd == 300


def test_since_when_is_said_in_any_of_four_ways() -> None:
    wrong: Any
    with opened(":memory:") as system:
        system.root.prompt("go").get(timeout=DEADLINE)
        later = time.time() + 3_600
        for before in (None, 0, 12.5, datetime(2020, 1, 1, tzinfo=UTC), "2020-01-01T00:00+01:00", "36h"):
            assert tokens(system, None, before) == {"": 10}
        for after in (later, datetime.fromtimestamp(later, UTC), datetime.fromtimestamp(later, UTC).isoformat()):
            assert tokens(system, None, after) == {}
        for wrong in (datetime(2020, 1, 1), "2020-01-01", "yesterday", -1, True, float("nan"), [], b"36h"):
            with pytest.raises(BadInput, match="since to be a datetime with a zone"):
                system.spending(since=wrong)


def test_what_can_be_no_key_is_refused() -> None:
    keys: list[Any] = ["", " ", "k" * 65, 5, "a\0b"]
    with opened(":memory:") as system:
        for wrong in keys:
            with pytest.raises(BadInput, match="key of a label"):
                system.spending(by=wrong)


def test_wrong_labels_are_refused_and_nothing_is_begun() -> None:
    many = {str(number): "x" for number in range(16)}  # too many with the one that the agent has
    with pytest.raises(BadInput, match="labels to be a dict"):
        opened(":memory:", labels="sales")
    with opened(":memory:", labels={"team": "sales"}) as system:
        root = system.root
        wrongs: list[Any] = [{"team": ""}, "team=sales", [], many]
        for wrong in wrongs:
            with pytest.raises(BadInput):
                root.prompt("go", labels=wrong)
            with pytest.raises(BadInput):
                root.fork(labels=wrong)
        assert len(system.agents()) == 1
        assert len(root.history()) == 0


@pytest.mark.slow("takes a tenth of a second")
def test_an_import_brings_labels_and_costs_along(tmp_path: Path) -> None:
    here, there, file = (str(tmp_path / name) for name in ("here.db", "there.db", "kid.jsonl"))
    with opened(here, labels={"team": "sales", "user": "ann"}) as system:
        system.root.prompt("go").get(timeout=DEADLINE)
        kid = system.root.fork("go", name="kid", labels={"user": "bob"})
        kid.reply(timeout=DEADLINE)
        kid.prompt("go", labels={"user": "cid"}).get(timeout=DEADLINE)
        system.export(kid, file)
    with opened(there, labels={"team": "stock", "site": "north"}) as system:
        system.import_(file)
        assert system.agent("kid").record.labels == {"team": "sales", "user": "bob", "site": "north"}
        assert tokens(system, "user") == {"bob": 10, "cid": 10}
        assert check(system._store) == []
        system.agent("kid").prompt("go").get(timeout=DEADLINE)
        assert tokens(system, "site") == {"": 20, "north": 10}
        assert check(system._store) == []
        system.root.prompt("go").get(timeout=DEADLINE)
        system.agent("kid").kill()


def test_costs_outlive_the_messages_of_the_dead(tmp_path: Path) -> None:
    database = str(tmp_path / "some.db")
    with opened(database) as system:
        kid = system.root.fork("go", labels={"user": "bob"})
        kid.reply(timeout=DEADLINE)
        kid.kill()
        assert prune_logs(system._store, system._clock.now_ms() + 1, 1).agents == 1
        assert tokens(system, "user") == {"bob": 10}
        assert check(system._store) == []


def test_labels_reach_agents_that_another_process_runs(durable: str) -> None:
    with opened(durable, labels={"team": "sales"}) as host, ActorSystem.attach(durable) as other:
        other.root.prompt("go", labels={"user": "ann"}).get(timeout=DEADLINE)
        other.root.fork("go", labels={"user": "bob"}).reply(timeout=DEADLINE)
        with pytest.raises(BadInput, match="at most 16 labels"):
            other.root.prompt("go", labels={str(number): "x" for number in range(16)})
        assert tokens(other, "user") == tokens(host, "user") == {"ann": 10, "bob": 10}


def test_labels_that_are_too_many_with_those_of_the_turn_refuse_the_fork(durable: str) -> None:
    entered, leave = threading.Event(), threading.Event()

    @tool
    def hold() -> str:
        entered.set()
        assert leave.wait(DEADLINE)
        return "done"

    def answer(request: Request) -> Reply:
        return ten(request) if results(request) else calling("hold")

    with opened(durable, ScriptedProvider(answer), tools=[hold]) as system:
        turn = system.root.prompt("go", labels={f"a{number}": "x" for number in range(9)})
        assert entered.wait(DEADLINE)
        fork = system.root.aio.fork(labels={f"b{number}": "x" for number in range(8)})
        eventually(lambda: len(system._actor(system.root.uuid).backlog), "a fork that waits for the end of the step")
        leave.set()
        turn.get(timeout=DEADLINE)
        with pytest.raises(BadInput, match="at most 16 labels"):
            fork.get(timeout=DEADLINE)
        assert len(system.agents()) == 1


def test_a_command_adds_up_by_a_label(tmp_path: Path) -> None:
    database = str(tmp_path / "some.db")
    with opened(database, labels={"team": "sales"}) as system:
        system.root.prompt("go").get(timeout=DEADLINE)
        system.root.fork("go", labels={"team": "a\x1b[1mb"}).reply(timeout=DEADLINE)

    def said(*words: str) -> str:
        return CliRunner().invoke(cli, ["--database", database, "stats", *words]).output

    sales = {"tokens": 10, "usd": 0.0, "requests": 1}
    assert json.loads(said("--by", "team", "--json"))["sales"] == sales
    assert json.loads(said("--by", "user", "--since", "7d", "--json")) == {"": {**sales, "tokens": 20, "requests": 2}}
    assert said("--by", "user") == "no user  20 tokens, 2 requests\n"
    assert "\x1b" not in said("--by", "team")
    assert "--since goes with --by" in said("--since", "7d")
