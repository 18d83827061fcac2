"""Hosts of different programs: the branch in which a turn waits for a hook or a program moves to a host that has it."""

from contextlib import suppress
from typing import Any

import pytest

from ikigai_actors import AgentRef, Reply, Request, ScriptedProvider, TimedOut
from ikigai_actors.agent.turn.hook_waits import LONGEST_HOOK_WAIT
from ikigai_actors.hooks import HookedCall, HookedRequest, HookVerdict, hook
from ikigai_actors.programs import program
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.hosts.offers import HostOffer, TurnNeed, host_with
from ikigai_actors.store.hosts.placement import SharingHost
from ikigai_actors.testing import CrashPoint, ProcessCrashed, Simulation, simulated
from ikigai_actors.tools.function import tool
from tests.kit.tool_scripts import calling


class Shop:
    """A model that pays once a prompt and says what came of it, what was paid, and what the hooks were asked."""

    def __init__(self) -> None:
        self.paid: list[int] = []
        self.asked: list[str] = []

        @hook("before_call", tools="pay")
        def audit(call: HookedCall) -> HookVerdict:
            self.asked.append("audit")
            return HookVerdict.change({"amount": call.input["amount"] // 2})

        @hook("before_request")
        def gate(request: HookedRequest) -> None:
            self.asked.append("gate")

        self.audit, self.gate = audit, gate

    def open(self, world: Simulation, *offers: dict[str, Any]) -> None:
        """Open each host with further options, and let each take its share."""

        @tool(idempotent=True)
        def pay(amount: int) -> str:
            self.paid.append(amount)
            return f"paid {amount}"

        def answer(request: Request) -> Reply | str:
            last = request.messages[-1]["content"][-1]
            return last["content"] if last["type"] == "tool_result" else calling(("pay", {"amount": 8}))

        for host, offer in zip(world.hosts, offers, strict=True):
            host.options = offer
        world.open(ScriptedProvider(answer), tools=[pay])
        world.sleep(5)


@pytest.fixture
def shop() -> Shop:
    return Shop()


def runs(world: Simulation, *agents: AgentRef) -> list[str | None]:
    """The names of the hosts that run these agents."""
    names = {host.id: host.name for host in world.system.hosts()}
    owners = {record.uuid: names.get(record.owner or "") for record in world.system.agents()}
    return [owners[agent.uuid] for agent in agents]


def test_a_branch_moves_to_the_host_that_has_the_hook_and_its_turn_goes_on_there(shop: Shop) -> None:
    with simulated(hosts=2) as world:
        shop.open(world, {}, {"hooks": [shop.audit, shop.gate]})
        a, b = world.hosts
        anna = a.system.root.fork(name="anna")
        kid, other = anna.fork(name="kid"), a.system.root.fork(name="other")
        for agent in (anna, kid, other):
            b.move(agent, a) if runs(world, agent) == ["b"] else None
        anna.configure(hooks=["audit", "before_request:gate"])
        began = world.clock.monotonic()
        assert anna.prompt("go").get(timeout=60).text.endswith("paid 4")
        assert world.clock.monotonic() - began < 20
        assert (runs(world, anna, kid, other), shop.paid, shop.asked) == (
            ["b", "b", "a"], [4], ["gate", "audit", "gate"]
        )  # fmt: skip
        assert check(a.process.looked_at) == []


@pytest.mark.thorough("a second wait for a hook; that one host must have all is decided below")
def test_a_turn_waits_until_a_host_comes_that_has_all_of_its_hooks(shop: Shop) -> None:
    with simulated(hosts=3) as world:
        shop.open(world, {}, {"hooks": [shop.gate]}, {"hooks": [shop.audit]})
        a, b, c = world.hosts
        anna = a.system.root.fork(name="anna")
        anna.configure(hooks=["audit", "before_request:gate"])
        reply = anna.prompt("go")
        world.sleep(60)
        assert anna.state.startswith("waits for hook ")
        assert runs(world, anna) != ["c"]
        c.kill()
        c.options = {"hooks": [shop.audit, shop.gate]}
        c.start()
        assert reply.get(timeout=60).text.endswith("paid 4")
        assert (runs(world, anna), shop.paid) == (["c"], [4])
        assert check(b.process.looked_at) == []


@pytest.mark.thorough("a second move; every run has that for a hook")
def test_the_branch_of_a_program_moves_to_a_host_that_has_it() -> None:
    @program
    def lead(task: str) -> str:
        return f"done {task}"

    with simulated(hosts=2) as world:
        world.hosts[0].options = world.hosts[1].options = {"programs": [lead]}
        world.open()
        world.sleep(5)
        a, b = world.hosts
        boss = a.system.root.fork(name="boss", model=lead)
        assert boss.prompt("one").get(timeout=60).text == "done one"
        a.kill()
        a.options = {}
        a.start()
        world.sleep(10)
        if runs(world, boss) == ["b"]:
            b.move(b.system.handle(boss.uuid), a)
        assert b.system.handle(boss.uuid).prompt("two").get(timeout=60).text == "done two"
        assert runs(world, boss) == ["b"]


def test_agents_that_are_restarted_together_move_together(shop: Shop) -> None:
    with simulated(hosts=2) as world:
        shop.open(world, {}, {"hooks": [shop.audit]})
        a, _ = world.hosts
        team = a.system.root.fork(name="team")
        team.supervise(strategy="one_for_all")
        kids = [team.fork(name=name) for name in ("ann", "bob")]
        kids[0].configure(hooks=["audit"])
        assert kids[0].prompt("go").get(timeout=60).text.endswith("paid 4")
        assert runs(world, team, *kids) == ["b", "b", "b"]
        assert shop.paid == [4]


@pytest.mark.thorough("ten minutes of two hosts; every run has what a host looks for before it gives a branch away")
def test_agent_0_does_not_move_and_its_call_is_withheld_when_no_hook_has_come(shop: Shop) -> None:
    with simulated(hosts=2) as world:
        shop.open(world, {}, {"hooks": [shop.audit]})
        a, _ = world.hosts
        a.system.root.configure(hooks=["audit"])
        began = world.clock.now_ms()
        assert "must be looked at by hook audit" in a.system.root.prompt("go").get().text
        assert world.clock.now_ms() - began >= LONGEST_HOOK_WAIT * 1_000
        assert shop.paid == []


@pytest.mark.sample(2, "crash points")
@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("commit", range(1, 14))
def test_a_crash_at_any_commit_of_such_a_move_leaves_one_owner_and_one_verdict(
    shop: Shop, commit: int, committed: bool
) -> None:
    with simulated(hosts=2) as world:
        shop.open(world, {}, {"hooks": [shop.audit]})
        a, b = world.hosts
        anna = a.system.root.fork(name="anna")
        anna.configure(hooks=["audit"])
        anna.fork(name="kid")
        world.crash_at(CrashPoint(commit, committed))
        with suppress(ProcessCrashed, TimedOut):
            anna.prompt("go", key="once").get(timeout=30)
        world.recover()
        assert b.system.agent("anna").prompt("go", key="once").get(timeout=60).text.endswith("paid 4")
        anna = b.system.agent("anna")
        verdicts = [message for message in anna.history() if message.data.get("event") == "before_call"]
        assert (len(verdicts), set(shop.paid), anna.state) == (1, {4}, "idle")
        assert check(b.process.looked_at) == []


def test_a_host_takes_a_branch_only_if_it_has_all_that_its_open_turns_need() -> None:
    a, b, c, d = (SharingHost(name, 1, agents) for name, agents in zip("abcd", (1, 9, 3, 0), strict=True))
    offers = {
        "b": HostOffer({"audit": "before_call", "gate": "before_request"}, ("lead",)),
        "c": HostOffer({"audit": "before_call", "gate": "before_request"}),
        "d": HostOffer({"audit": "after_call"}),
    }
    members = [a, b, c, d]
    both = TurnNeed(("audit", "before_request:gate"))
    assert host_with([both], "a", members, offers) == "c"
    assert host_with([both, TurnNeed((), ("lead",))], "a", members, offers) == "b"
    assert host_with([both], "c", [a, b._replace(draining=True), c, d], offers) is None
    assert host_with([both], "c", [a, b._replace(shards=0), c, d], offers) is None
    assert host_with([TurnNeed(("filter_result:audit",))], "a", members, offers) is None
    assert host_with([TurnNeed(("audit",))], "a", members, offers) == "d"
    assert host_with([TurnNeed()], "a", [a], {}) is None
