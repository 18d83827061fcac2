"""Hosts of two builds beside one another: who runs which is shown, tools that differ are told, questions asked anew."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from ikigai_actors import ActorSystem, ScriptedProvider
from ikigai_actors.agent.subscriptions import Event, HostsDiffer
from ikigai_actors.reach.views import figures_of
from ikigai_actors.records.fsck.check import check
from ikigai_actors.store.hosts.rows import vacant
from ikigai_actors.tools.definitions import ToolDifference
from ikigai_actors.tools.function import FunctionTool, tool
from ikigai_actors.verbs.text.hosts import host_lines, hosts_differ
from tests.conftest import NewDatabase
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import eventually
from tests.kit.tool_scripts import calling, results


def shop(described: str, paid: list[str]) -> list[FunctionTool]:
    """The tools of a build."""

    @tool(name="price", description=described, policy="ask")
    def price(tea: str) -> str:
        paid.append(described)
        return "24"

    return [price]


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.mark.thorough("two hosts; every run has the builds of one")
@pytest.mark.slow("drains a real host")
def test_two_builds_share_a_team_are_told_apart_and_no_approval_goes_from_one_to_the_other(
    new_postgres: NewDatabase, opened: ExitStack
) -> None:
    url, paid, heard = new_postgres(), list[str](), dict[str, list[Event]](a=[], attached=[])
    pays = calling(("price", {"tea": "Assam"}))

    def start(name: str, described: str) -> ActorSystem:
        provider = ScriptedProvider(lambda request: pays if name == "a" else results(request)[0].content)
        system = ActorSystem.open(
            url, provider, tools=shop(described, paid), join=True, name=name, balance=None, approvals="ask",
            build=f"build-{name}", lease=30.0,
        )  # fmt: skip
        return opened.enter_context(system)

    a = start("a", "In euros.")
    attached = opened.enter_context(ActorSystem.attach(url))
    a.subscribe(heard["a"].append, only=(HostsDiffer,))
    attached.subscribe(heard["attached"].append)
    asker = a.root.fork(name="asker")
    turn = asker.prompt("go")
    eventually(lambda: bool(a.approvals.pending()), "a question")
    [first] = attached.approvals.pending()
    b = start("b", "In dollars.")
    differ = HostsDiffer((ToolDifference("price", ("description",), ()),))
    eventually(lambda: all(differ in events for events in heard.values()), "the news")
    assert hosts_differ(differ) == ("Hosts have different tools: price (description). ikigai hosts shows their builds.")
    lines = [*host_lines(b.hosts(), b._store.read(vacant), differ.tools)]
    assert ["build build-a" in lines[0], "build build-b" in lines[1], len(lines)] == [True, True, 3]
    assert lines[-1] == "hosts have different tools: price (description)"
    assert figures_of(attached, 60).differences == differ.tools

    a.drain(timeout=DEADLINE)
    eventually(lambda: [call.build for call in attached.approvals.pending()] == ["build-b"], "a question of the other")
    [again] = attached.approvals.pending()
    assert (again.former_build, again.full_name.startswith(first.full_name)) == ("build-a", True)
    assert again.change.split("\n")[:2] == ["-In euros.", "+In dollars."]
    assert again.change.split("\n")[-2:] == ["-build: build-a", "+build: build-b"]
    assert attached.approvals.find(asker.uuid, first.full_name) is None
    assert attached.approvals.approve(again, timeout=DEADLINE)
    assert turn.get(timeout=DEADLINE).text == "24"
    assert paid == ["In dollars."]
    a.close()
    eventually(lambda: HostsDiffer(()) in heard["attached"], "that all are alike")
    assert check(b._store) == []
