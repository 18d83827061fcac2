"""A system that ends in the middle of tools: nothing is done twice, nothing is forgotten, every history is whole."""

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Iterator

import pytest

from ikigai_actors import ActorSystem, Reply, Request, ScriptedProvider
from ikigai_actors.agent.turn.calls import PERHAPS_RUN
from ikigai_actors.tools import CurrentCall, current_call
from ikigai_actors.tools.function import FunctionTool, tool
from tests.kit.blocking_provider import DEADLINE
from tests.kit.tool_scripts import calling, prompts, requests_of, results, scripted


class Held:
    """Tools that count how often they ran, and wait until they are let go."""

    def __init__(self) -> None:
        self.ran: Counter[str] = Counter()
        self._entered = threading.Semaphore(0)
        self._leave = threading.Event()

    def wait_until_entered(self, times: int) -> None:
        """Return when so many calls run."""
        for _ in range(times):
            assert self._entered.acquire(timeout=DEADLINE)

    def let_go(self) -> None:
        """Let every call end, those to come too."""
        self._leave.set()

    def tools(self) -> list[FunctionTool]:
        """One that must not run twice, one that may, one that runs alone."""

        def run(name: str) -> str:
            self.ran[name] += 1
            self._entered.release()
            assert self._leave.wait(DEADLINE)
            return f"{name} ran"

        @tool
        def once() -> str:
            return run("once")

        @tool(idempotent=True)
        def again() -> str:
            return run("again")

        @tool(alone=True)
        def alone() -> str:
            return run("alone")

        return [once, again, alone]


@pytest.fixture
def held() -> Iterator[Held]:
    made = Held()
    yield made
    made.let_go()


def cut_off(database: str, held: Held) -> None:
    """End a system in the middle of a turn whose calls are running, waiting, and forks."""
    script = ScriptedProvider(
        [calling(("fork", {"name": "first"}), "once", "again", "alone", ("fork", {"name": "kid"}))]
    )
    with ActorSystem.open(database, provider=script, tools=held.tools()) as system:
        system.root.prompt("go")
        held.wait_until_entered(2)
    held.let_go()


@pytest.mark.parametrize("at_open", [True, False])
def test_resuming_does_with_each_call_what_is_right_for_it(durable: str, held: Held, at_open: bool) -> None:
    cut_off(durable, held)
    script = ScriptedProvider(lambda request: f"heard {len(results(request))}")
    with ActorSystem.open(durable, provider=script, tools=held.tools(), resume=at_open) as system:
        if not at_open:
            assert system.root.state == "interrupted"
            assert [agent.uuid for agent in system.resume()] == [system.root.uuid]
        assert system.root.reply(timeout=DEADLINE).text == "heard 5"
        for child in system.root.children():
            assert child.reply(timeout=DEADLINE).text == "heard 5"
        once, again, alone, first, second = results(requests_of(script, None)[0])
        assert once == ("2", PERHAPS_RUN, True)
        assert (again.content, alone.content) == ("again ran", "alone ran")
        assert [first.content, second.content] == [
            f"Forked: the child is {child.record.short}." for child in system.root.children()
        ]
        assert held.ran == {"once": 1, "again": 2, "alone": 1}
        assert len(system.agents()) == 3
        assert not system.resume()


@pytest.mark.parametrize(("description", "ran"), [("Do it.", 2), ("Do it, and tell everybody.", 1)])
def test_a_call_that_was_cut_off_starts_again_only_as_the_same_tool(durable: str, description: str, ran: int) -> None:
    entered, leave, runs = threading.Event(), threading.Event(), list[str]()

    def does(described: str) -> FunctionTool:
        @tool(idempotent=True, description=described)
        def do() -> str:
            runs.append(described)
            entered.set()
            assert leave.wait(DEADLINE)
            return "done"

        return do

    with ActorSystem.open(durable, ScriptedProvider([calling("do")]), tools=[does("Do it.")], build="a") as system:
        system.root.prompt("go")
        assert entered.wait(DEADLINE)
    leave.set()
    script = ScriptedProvider(lambda request: results(request)[0].content)
    with ActorSystem.open(durable, script, tools=[does(description)], build="b") as system:
        assert system.root.reply(timeout=DEADLINE).text == ("done" if ran == 2 else PERHAPS_RUN)
    assert len(runs) == ran


@pytest.mark.slow("takes a tenth of a second")
def test_a_turn_can_be_cut_off_again_while_it_is_resumed(durable: str, held: Held) -> None:
    cut_off(durable, held)
    second = Held()
    with ActorSystem.open(durable, provider=ScriptedProvider([]), tools=second.tools(), resume=True):
        second.wait_until_entered(1)
    second.let_go()
    with ActorSystem.open(durable, provider=ScriptedProvider(lambda _: "done"), tools=held.tools()) as system:
        system.resume()
        assert system.root.reply(timeout=DEADLINE).text == "done"
        assert second.ran == {"again": 1}
        assert held.ran == {"once": 1, "again": 2, "alone": 1}
        assert len(system.agents()) == 3
        for child in system.root.children():
            child.reply(timeout=DEADLINE)


@pytest.mark.slow("takes a tenth of a second")
def test_a_call_that_is_started_again_keeps_its_key_and_knows_its_attempt(durable: str) -> None:
    entered, leave, seen = threading.Semaphore(0), threading.Event(), list[CurrentCall]()

    @tool(idempotent="by_key")
    def pay() -> str:
        seen.append(current_call())
        entered.release()
        assert leave.wait(DEADLINE)
        return "paid"

    script = ScriptedProvider(lambda request: "done" if results(request) else calling("pay", "pay"))
    for resume in (False, True):
        with ActorSystem.open(durable, provider=script, tools=[pay], resume=resume) as system:
            if not resume:
                system.root.prompt("go")
            assert all(entered.acquire(timeout=DEADLINE) for _ in range(2))
    leave.set()
    with ActorSystem.open(durable, provider=script, tools=[pay], resume=True) as system:
        assert system.root.reply(timeout=DEADLINE).text == "done"
        assert system.root.prompt("and again").get(timeout=DEADLINE).text == "done"
        root = system.root.uuid
    assert {(call.agent, call.id) for call in seen} == {(root, "1"), (root, "2")}
    first, second = (seen[:2], seen[6:])
    assert sorted((call.id, call.attempt, call.key) for call in seen[:6]) == sorted(
        (call.id, attempt, call.key) for call in first for attempt in (1, 2, 3)
    )
    assert [call.attempt for call in second] == [1, 1]
    assert len({call.key for call in (*first, *second)}) == 4


def test_a_child_that_was_cut_off_before_it_spoke_goes_on_as_a_child(durable: str) -> None:
    asked = threading.Event()

    async def hang() -> str:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody sets this event")

    def answer(request: Request) -> str | Reply | Awaitable[str]:
        if request.name == "kid":
            return hang()
        return "done" if results(request) else calling(("fork", {"name": "kid", "prompt": "look"}))

    with ActorSystem.open(durable, provider=ScriptedProvider(answer)) as system:
        system.root.prompt("go").get(timeout=DEADLINE)
        assert asked.wait(DEADLINE)
    script = scripted(kid=["found it"])
    with ActorSystem.open(durable, provider=script) as system:
        assert [agent.name for agent in system.resume()] == ["kid"]
        assert system.agent("kid").reply(timeout=DEADLINE).text == "found it"
        [result] = results(script.requests[0])
        assert result.content.startswith("You are the child kid,")
        assert prompts(script.requests[0]) == ["look"]
