"""A process that lacks a hook has the turn wait for one that has it, ten minutes at most; only then it denies."""

from typing import Any

import pytest

from ikigai_actors import ActorSystem, ProviderError, Reply, Request, ScriptedProvider, Signal, TimedOut
from ikigai_actors.agent.turn.hook_waits import LONGEST_HOOK_WAIT
from ikigai_actors.errors import TurnInterrupted
from ikigai_actors.hooks import HookedCall, HookedRequest, HookVerdict, hook
from ikigai_actors.records.fsck.check import check
from ikigai_actors.testing import Simulation, simulated
from ikigai_actors.tools.function import tool
from tests.kit.tool_scripts import calling


class Shop:
    """A model that pays once a prompt and says what came of it, and what was paid."""

    def __init__(self) -> None:
        self.paid: list[int] = []

    def provider(self) -> ScriptedProvider:
        def answer(request: Request) -> Reply | str:
            last = request.messages[-1]["content"][-1]
            return last["content"] if last["type"] == "tool_result" else calling(("pay", {"amount": 8}))

        return ScriptedProvider(answer)

    def open(self, world: Simulation, **options: Any) -> ActorSystem:
        @tool
        def pay(amount: int) -> str:
            self.paid.append(amount)
            return f"paid {amount}"

        return world.open(self.provider(), tools=[pay], **options)


@hook("before_call", tools="pay")
def audit(call: HookedCall) -> HookVerdict:
    return HookVerdict.change({"amount": call.input["amount"] // 2})


@hook("before_request")
def gate(request: HookedRequest) -> HookVerdict | None:
    return None


def hooks_said(agent: Any) -> list[str]:
    return [message.content for message in agent.history() if message.kind == "hook"]


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.parametrize("name", ["audit", "filter_result:audit"])
def test_a_call_waits_ten_minutes_for_its_hook_and_is_denied_then(name: str) -> None:
    shop = Shop()
    with simulated() as world:
        root = shop.open(world).root
        root.configure(hooks=[name])
        began, reply = world.clock.now_ms(), root.prompt("go")
        with pytest.raises(TimedOut, match="waits for hook audit until"):
            reply.get(timeout=60)
        assert root.state.startswith("waits for hook audit until ")
        assert "must be looked at by hook audit" in reply.get().text
        assert 0 <= world.clock.now_ms() - began - LONGEST_HOOK_WAIT * 1_000 < 2_000
        assert hooks_said(root) == ["waits for a process with hook audit"]
        assert "must be looked at by hook audit" in root.prompt("again").get().text
        assert (shop.paid, root.state, check(root.system._store)) == ([], "idle", [])


def test_a_request_waits_for_its_hook_and_is_denied_then() -> None:
    shop = Shop()
    with simulated() as world:
        root = shop.open(world).root
        root.configure(hooks=["before_request:gate"])
        began = world.clock.now_ms()
        with pytest.raises(ProviderError, match="Hook gate denies this request: the process that runs the agent"):
            root.prompt("go").get()
        assert 0 <= world.clock.now_ms() - began - LONGEST_HOOK_WAIT * 1_000 < 2_000
        root.configure(hooks=["before_request:gate", "audit"])
        with pytest.raises(ProviderError, match="Hook gate denies this request"):
            root.prompt("again").get()
        assert (shop.paid, check(root.system._store)) == ([], [])


@pytest.mark.slow("takes a tenth of a second")
def test_the_next_process_asks_the_hook_and_one_without_it_waits_for_the_rest_of_the_time() -> None:
    shop = Shop()
    with simulated() as world:
        root = shop.open(world).root
        root.configure(hooks=["audit", "before_request:gate"])
        began = world.clock.now_ms()
        root.prompt("go")
        world.sleep(200)
        world.crash()
        shop.open(world, resume=True)
        world.sleep(200)
        assert world.system.root.state.startswith("waits for hook gate until ")
        world.crash()
        shop.open(world, hooks=[gate], resume=True)
        world.sleep(150)
        assert world.system.root.state.startswith("waits for hook audit until ")
        world.crash()
        shop.open(world, hooks=[gate, audit], resume=True)
        world.settle()
        assert world.clock.now_ms() - began < LONGEST_HOOK_WAIT * 1_000
        assert shop.paid == [4]
        waits = [said for said in hooks_said(world.system.root) if said.startswith("waits")]
        assert waits == ["waits for a process with hook gate"]
        assert check(world.system._store) == []


@pytest.mark.slow("takes a tenth of a second")
def test_a_person_ends_the_wait_by_int_and_that_of_a_request_by_taking_the_hook_away() -> None:
    shop = Shop()
    with simulated() as world:
        system = shop.open(world)
        kids = [system.root.fork(name=name) for name in ("ann", "bob")]
        kids[0].configure(hooks=["audit"])
        kids[1].configure(hooks=["before_request:gate"])
        replies = [kid.prompt("go") for kid in kids]
        world.sleep(30)
        kids[0].signal(Signal.INT)
        with pytest.raises(TurnInterrupted):
            replies[0].get()
        kids[1].configure(hooks=None)
        assert replies[1].get(timeout=60).text == "paid 8"
        assert {kid.state for kid in kids} == {"idle"}
        assert check(system._store) == []
