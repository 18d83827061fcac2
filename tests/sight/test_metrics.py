"""What Prometheus scrapes, and the rules of the page against it."""

import http.client
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, FunctionProvider, Reply, Request, ToolCall, tool
from ikigai_actors.actors.clock import SYSTEM_CLOCK
from ikigai_actors.agent.statistics import Tally
from ikigai_actors.reach.metrics import COUNTER, Metric, exposition, read_metrics
from ikigai_actors.sight import observe
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.tools import Policy
from tests.kit.blocking_provider import Gate, Hanging
from tests.kit.databases import ROOT, eventually

TIMEOUT = 60


def value(metrics: list[Metric], name: str, *labels: tuple[str, str]) -> float:
    return next(metric.values[labels] for metric in metrics if metric.name == name)


@tool(policy=Policy.ASK)
def pay(amount: int) -> str:
    """Pay."""
    return "paid"


def answer(request: Request) -> Reply:
    if request.name == "payer" and request.messages[-1]["content"][0]["type"] != "tool_result":
        return Reply("", (ToolCall("pay", {"amount": 1}, "1"),))
    return Reply("done")


def test_a_scrape_says_what_waits_and_for_how_long(database: str) -> None:
    with ActorSystem.open(database, FunctionProvider(answer), tools=[pay], approvals="ask") as system:
        system.root.prompt("go").get(timeout=TIMEOUT)
        system.root.fork("go", name="payer")
        eventually(system.approvals.pending, "a call that waits")
        system._store.write(lambda tx: tx.schema.execute("UPDATE messages SET created_at = created_at - 60000"))
        metrics = read_metrics(system)
        assert value(metrics, "ikigai_asking") == 1
        assert 60 <= value(metrics, "ikigai_asking_oldest_seconds") < 600
        assert value(metrics, "ikigai_agents", ("status", "running")) == 2
        assert value(metrics, "ikigai_turns_open") == 1
        assert value(metrics, "ikigai_hosts", ("state", "runs")) == 1
        assert value(metrics, "ikigai_journal_units_total") > 0
        assert value(metrics, "ikigai_journal_lag_seconds") == 0


def test_a_database_without_a_host_says_so(tmp_path: Path) -> None:
    with ActorSystem.open(tmp_path / "d.db", "offline") as system:
        system.root.prompt("go").get(timeout=TIMEOUT)
    with AttachedSystem.open(tmp_path / "d.db") as attached:
        metrics = read_metrics(attached)
    assert value(metrics, "ikigai_hosts", ("state", "runs")) == 0
    assert value(metrics, "ikigai_hosts", ("state", "ended")) == 1
    assert not [metric for metric in metrics if metric.name.startswith("ikigai_journal")]


def test_a_turn_that_was_cut_off_and_does_not_go_on_is_counted_as_that_and_not_as_silent(
    new_sqlite: Callable[[], str],
) -> None:
    place, provider = new_sqlite(), Hanging("tea")
    with ActorSystem.open(place, provider) as system:
        system.root.prompt("go")
        provider.wait_until_asked()
    with ActorSystem.open(place, provider, resume=False) as system:
        system._store.write(lambda tx: tx.schema.execute("UPDATE messages SET created_at = created_at - 90000"))
        metrics = read_metrics(system)
        assert [value(metrics, f"ikigai_turns_{which}") for which in ("cut_off", "silent")] == [1, 0]


def test_the_text_is_that_of_prometheus() -> None:
    text = exposition([Metric("a_total", COUNTER, "What.", {(("host", 'x "y"\\\n'),): 1.5, (("host", "b"),): 2e9})])
    assert text == (
        "# HELP a_total What.\n# TYPE a_total counter\n"
        'a_total{host="x \\"y\\"\\\\\\n"} 1.5\na_total{host="b"} 2000000000\n'
    )


def test_each_metric_of_the_page_is_there_and_each_one_that_is_there_is_on_the_page() -> None:
    page = (ROOT / "docs/operate/alerts.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\bikigai_[a-z_]+", page))
    with ActorSystem.open(":memory:", "offline") as system:
        there = {metric.name for metric in read_metrics(system)}
    assert named == there
    assert len(re.findall(r"- alert: ", page)) == 8


def test_the_dashboard_shows_each_metric_and_none_that_is_not_there() -> None:
    board = json.loads((ROOT / "examples/grafana.json").read_text(encoding="utf-8"))
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    with ActorSystem.open(":memory:", "offline") as system:
        there = {metric.name for metric in read_metrics(system)}
    assert {name for query in asked for name in re.findall(r"\bikigai_[a-z_]+", query)} == there
    places = [
        (x, y)
        for panel in board["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(places) == len(set(places))  # no panel lies on another one
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


def test_a_turn_of_which_nothing_comes_is_silent_and_one_that_waits_for_somebody_is_not(database: str) -> None:
    gate = Gate()

    def model(request: Request) -> Reply | str:
        if request.name == "boss" and len(request.messages) == 1:
            return Reply("", (ToolCall("wait", {"agents": ["slow"], "timeout": 3000}),))
        return answer(request) if request.name == "payer" else gate._answer(request)

    with ActorSystem.open(database, FunctionProvider(model), tools=[pay], approvals="ask") as system:
        system.root.fork("go", name="slow")
        gate.wait_until_asked()
        system.root.fork("go", name="payer")
        system.root.fork("go", name="boss")
        eventually(system.approvals.pending, "a call that waits")
        eventually(lambda: system.agent("boss").history()[-1].kind == "tool_call", "a wait")
        assert value(read_metrics(system), "ikigai_turns_silent") == 0
        system._store.write(lambda tx: tx.schema.execute("UPDATE messages SET created_at = created_at - 90000"))
        system._store.write(lambda tx: tx.schema.execute("UPDATE hosts SET signs = ''"))
        metrics = read_metrics(system)
        assert value(metrics, "ikigai_turns_silent") == 1
        assert 90 <= value(metrics, "ikigai_turns_silent_oldest_seconds") < 600
        gate.open()
        system.agent("slow").reply(timeout=TIMEOUT)
        eventually(lambda: value(read_metrics(system), "ikigai_turns_silent") == 0, "the end of the turn")


def test_the_age_of_a_commit_is_that_of_the_unit_in_flight() -> None:
    tally = Tally("a", SYSTEM_CLOCK)
    assert tally.commit_age() == 0
    tally.submitted()
    assert tally.commit_age() >= 0
    tally.settled()
    assert tally.commit_age() == 0


@pytest.mark.parametrize("header", ["", "Bearer wrong"])
def test_metrics_need_the_token(header: str) -> None:
    with ActorSystem.open(":memory:", "offline") as system, observe(system, read_only=True) as observer:
        connection = http.client.HTTPConnection(observer.address, timeout=TIMEOUT)
        for sent, status in ((header, 401), (f"Bearer {observer.token}", 200)):
            connection.request("GET", "/metrics", headers={"Authorization": sent, "Host": observer.address})
            got = connection.getresponse()
            text = got.read().decode()
            assert got.status == status
            assert ("ikigai_hosts" in text) is (status == 200)
            connection.close()
