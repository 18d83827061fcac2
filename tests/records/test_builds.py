"""Builds as rows: a name stands for the same tools, few are kept, and a prune deletes what nobody names."""

import pytest

from ikigai_actors import ActorSystem, BadInput, ScriptedProvider
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.hosts.builds import MOST_BUILDS, describe_build
from ikigai_actors.records.log.pruning import prune_logs
from ikigai_actors.store import Store
from ikigai_actors.tools.builds import build_of
from ikigai_actors.tools.function import FunctionTool, tool
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import eventually, sql
from tests.kit.hosts import plant
from tests.kit.tool_scripts import calling, scripted


def price(description: str) -> FunctionTool:
    """A tool that asks."""

    @tool(name="price", description=description, policy="ask")
    def price() -> str:
        return "3"

    return price


def rows(store: Store, statement: str) -> list[tuple[object, ...]]:
    return store.read(lambda tx: sql(tx, statement))


def open_with(url: str, *tools: FunctionTool, build: str | None = "2026-11-28a") -> ActorSystem:
    return ActorSystem.open(url, ScriptedProvider([]), tools=tools, build=build)


@pytest.mark.slow("takes a tenth of a second")
def test_a_host_tells_its_build_and_tools_and_a_name_holds_for_the_same_tools(durable: str) -> None:
    for _ in range(2):
        with open_with(durable, price("In euros.")) as system:
            assert system.hosts()[-1].build == "2026-11-28a"
            assert check(system._store) == []
    with pytest.raises(BadInput, match=r"Build 2026-11-28a has run with other definitions of price\. Give this code"):
        open_with(durable, price("In dollars."))
    with pytest.raises(BadInput, match="other definitions of price"):
        open_with(durable)
    with open_with(durable, price("In dollars."), build=None) as system:
        assert len(system.hosts()[-1].build) == 16
        assert len(rows(system._store, "SELECT id FROM builds")) == 2


def test_the_latest_builds_are_kept_and_those_of_hosts_that_live(store: Store) -> None:
    def begin(host: str, name: str, at: int) -> None:
        store.write(lambda tx: describe_build(tx, host, build_of([], name=name), ()))
        store.write(lambda tx: sql(tx, f"UPDATE builds SET seen_at = {at} WHERE id = '{name}'"))

    plant(store, "root")
    store.write(lambda tx: tx.run("register_host", id="h", hostname="blue", pid=1, lease=60_000))
    begin("h", "old", 0)
    for number in range(1, MOST_BUILDS + 6):
        begin("nobody", f"b{number:03}", number)
    kept = {str(name) for (name,) in rows(store, "SELECT id FROM builds")}
    assert kept == {"old"} | {f"b{number:03}" for number in range(6, MOST_BUILDS + 6)}


@pytest.mark.slow("takes a tenth of a second")
def test_a_prune_deletes_definitions_that_no_message_no_build_and_no_living_host_names(durable: str) -> None:
    script = scripted([calling("price"), "done"])
    with ActorSystem.open(durable, script, tools=[price("In euros.")], approvals="ask") as system:
        system.root.prompt("go")
        eventually(lambda: bool(system.approvals.pending()), "a question")
    with ActorSystem.open(durable, ScriptedProvider([]), tools=[price("In pounds.")], resume=False):
        pass
    with ActorSystem.open(durable, script, tools=[price("In dollars.")], approvals="ask") as system:
        store = system._store
        eventually(lambda: [bool(call.former) for call in system.approvals.pending()] == [True], "a new question")
        ended = "DELETE FROM builds WHERE id NOT IN (SELECT build FROM hosts WHERE ended_at IS NULL)"
        store.write(lambda tx: sql(tx, ended))
        assert len(rows(store, "SELECT digest FROM definitions WHERE name = 'price'")) == 3
        prune_logs(store, 0, 1)
        bodies = sorted(str(body) for (body,) in rows(store, "SELECT body FROM definitions WHERE name = 'price'"))
        assert ["dollars" in bodies[0], "euros" in bodies[1], len(bodies)] == [
            True,
            True,
            2,
        ]  # asked about, and offered
        assert check(store) == []
        [again] = system.approvals.pending()
        assert "-In euros." in again.change
        assert system.approvals.approve(again)
        assert system.root.reply(timeout=DEADLINE).text == "done"
