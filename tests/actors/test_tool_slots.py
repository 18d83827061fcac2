"""Plain tools run on so many slots; one that waits in a call of ours lends its own."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from ikigai_actors import ActorSystem, AgentRef, Future, ScriptedProvider, current_agent, tool
from ikigai_actors.actors.tool_slots import Slots
from ikigai_actors.agent.executor import TOOL_THREADS, Executor
from ikigai_actors.tools.function import Result
from tests.agent.test_tool_runs import run
from tests.kit.blocking_provider import DEADLINE, Gate
from tests.kit.databases import eventually
from tests.kit.tool_scripts import calling, results
from tests.tools.test_tools import count_async

LATE = DEADLINE / 2
"""Seconds of a wait that would end too late: then the tool fails, which the test would see."""


def wait(me: AgentRef, busy: AgentRef) -> object:
    return me.wait([busy], timeout=LATE)[busy]


def await_reply(me: AgentRef, busy: AgentRef) -> object:
    return busy.reply(timeout=LATE).text


def prompt(me: AgentRef, busy: AgentRef) -> object:
    return busy.prompt("again").get(timeout=LATE).text


@pytest.mark.parametrize(("block", "given"), [(wait, "idle"), (await_reply, "done"), (prompt, "done")])
def test_however_many_tools_wait_for_agents_a_plain_one_runs(
    block: Callable[[AgentRef, AgentRef], object], given: str
) -> None:
    gate = Gate()

    @tool
    def blocks() -> str:
        return str(block(current_agent(), busy))

    @tool
    def plain() -> str:
        gate.open()
        return "plain"

    script = ScriptedProvider([calling(*["blocks"] * TOOL_THREADS, "plain"), "all told"])
    with ActorSystem.open(
        "sqlite:///:memory:", provider=script, providers={"gate": gate.provider}, tools=[blocks, plain]
    ) as system:
        busy = system.root.fork("go", model="gate:x")
        gate.wait_until_asked()
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "all told"
        told = [one.content for one in results(script.requests[1])]
        assert told == [*[given] * TOOL_THREADS, "plain"]


class Stop:
    """A tool that says that it has come, and stays until it may leave."""

    def __init__(self, executor: Executor, name: str, before: Callable[[], object] = lambda: None) -> None:
        self._came, self._leave, self._over = threading.Event(), threading.Event(), threading.Event()
        self._name = name

        @tool
        def stay() -> str:
            before()
            self._came.set()
            assert self._leave.wait(DEADLINE)
            return name

        def done(result: Result) -> None:
            assert result == Result(name)
            self._over.set()

        executor.run_tool(stay, {}, None, done)

    def reach(self) -> None:
        assert self._came.wait(DEADLINE), self._name

    def leave(self) -> None:
        self._leave.set()
        assert self._over.wait(DEADLINE), self._name


def tool_threads(executor: Executor) -> int:
    """How many plain tools run, after the loop has done what it was told to."""
    for _ in range(3):
        assert run(executor, count_async, {"text": "x"}) == Result("1")
    return sum(thread.name == "ikigai-tool stay" for thread in threading.enumerate())


def test_who_has_waited_goes_on_at_once_and_no_other_tool_begins_before_there_is_a_slot_for_it() -> None:
    executor, answer = Executor(tool_threads=1), Future[str]()
    try:
        first = Stop(executor, "first", lambda: answer.get(timeout=DEADLINE))
        second = Stop(executor, "second")
        third = Stop(executor, "third")
        second.reach()
        assert tool_threads(executor) == 2
        answer.set("now")
        first.reach()
        first.leave()
        eventually(lambda: tool_threads(executor) == 1, "the end of the first one's thread, and no third one,")
        second.leave()
        third.reach()
        third.leave()
    finally:
        executor.close([])


def test_who_no_longer_waits_for_a_slot_keeps_it_from_nobody() -> None:
    async def play() -> None:
        slots = Slots(asyncio.get_running_loop(), 1)
        await slots.take()
        early, late, last = (asyncio.create_task(slots.take()) for _ in range(3))
        await asyncio.sleep(0)  # they wait in this order
        early.cancel()
        slots.give_back()  # passes over the first one, who does not know yet
        late.cancel()  # it has the slot, and does not know
        await asyncio.wait_for(last, DEADLINE)
        for gone in (early, late):
            with pytest.raises(asyncio.CancelledError):
                await gone
        slots.give_back()
        await asyncio.wait_for(slots.take(), DEADLINE)

    asyncio.run(play())
