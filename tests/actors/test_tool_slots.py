"""Plain tools run on so many slots; one that waits in a call of ours lends its own."""

import asyncio
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from ikigai_actors import ActorSystem, AgentRef, Future, ScriptedProvider, current_agent, tool
from ikigai_actors.actors.tool_slots import MOST_ABANDONED, Slots
from ikigai_actors.agent.executor import TOOL_THREADS, Executor
from ikigai_actors.agent.subscriptions import ToolTrouble
from ikigai_actors.tools.function import Result, Tool
from tests.agent.test_tool_runs import run
from tests.kit.blocking_provider import DEADLINE, Gate
from tests.kit.databases import eventually
from tests.kit.tool_scripts import calling, results
from tests.tools.test_tools import add, count_async

LATE = DEADLINE / 2
"""Seconds of a wait that would end too late: then the tool fails, which the test would see."""


def wait(me: AgentRef, busy: AgentRef) -> object:
    return me.wait([busy], timeout=LATE)[busy]


def await_reply(me: AgentRef, busy: AgentRef) -> object:
    return busy.reply(timeout=LATE).text


def prompt(me: AgentRef, busy: AgentRef) -> object:
    return busy.prompt("again").get(timeout=LATE).text


@pytest.mark.sample(1, "waits")
@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.parametrize(("block", "name"), [(wait, "idle"), (await_reply, "done"), (prompt, "done")])
def test_however_many_tools_wait_for_agents_a_plain_one_runs(
    block: Callable[[AgentRef, AgentRef], object], name: str
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
        contents = [result.content for result in results(script.requests[1])]
        assert contents == [*[name] * TOOL_THREADS, "plain"]


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


@contextmanager
def hanging(most_abandoned: int = MOST_ABANDONED) -> Iterator[tuple[Executor, Tool, threading.Event, list[str]]]:
    """An executor with one slot; a tool that takes too long, until the event is set; and what a person is told."""
    leave, lines = threading.Event(), list[str]()
    executor = Executor(tool_threads=1, most_abandoned=most_abandoned, tell=lambda name, text: lines.append(name))

    @tool(timeout=0.01)
    def hang() -> str:
        assert leave.wait(DEADLINE)
        return "late"

    try:
        yield executor, hang, leave, lines
    finally:
        leave.set()
        executor.close([])


def test_calls_that_never_return_keep_no_other_tool_from_running_and_are_told_once_and_counted() -> None:
    with hanging() as (executor, hang, leave, lines):
        for _ in range(3):
            assert run(executor, hang, {}).is_error
        assert run(executor, add, {"a": 1}) == Result("3")
        assert executor.abandoned == 3
        assert lines == ["hang"]
        leave.set()
        eventually(lambda: executor.abandoned == 0, "the end of the threads")


def test_a_call_that_is_interrupted_gives_its_slot_back_though_its_thread_goes_on() -> None:
    with hanging() as (executor, _, leave, _):
        begun = threading.Event()

        @tool
        def stay() -> str:
            begun.set()
            assert leave.wait(DEADLINE)
            return ""

        interrupted = executor.run_tool(stay, {}, None, print)
        assert begun.wait(DEADLINE)
        interrupted.cancel()
        assert run(executor, add, {"a": 1}) == Result("3")
        assert executor.abandoned == 1


def test_above_a_limit_calls_that_hang_keep_their_slots_and_who_waits_for_one_ends_in_time_with_a_reason() -> None:
    with hanging(most_abandoned=2) as (executor, hang, leave, lines):
        for _ in range(3):
            assert run(executor, hang, {}).is_error
        assert lines == ["hang", "tools"]

        @tool(timeout=0.01)
        def late() -> str:
            raise AssertionError("there is no slot")

        result = run(executor, late, {})
        assert result.is_error
        assert "did not begin within 0.01 s" in result.content
        assert "3 × hang" in result.content
        leave.set()
        assert run(executor, add, {"a": 1}) == Result("3")


def test_an_abandoned_thread_that_waits_for_an_agent_counts_as_busy_only_when_it_goes_on() -> None:
    async def play() -> None:
        slots = Slots(asyncio.get_running_loop(), 1, most_abandoned=0)
        slot = await slots.acquire("asks")
        slots.change(slot, lent=True)
        slot.abandon()
        assert slots.abandoned == 0
        other = await slots.acquire("other")
        other.give_back()
        slots.change(slot, lent=False)
        waiting = asyncio.create_task(slots.acquire("third"))
        await asyncio.sleep(0)
        assert slots.abandoned == 1
        assert not waiting.done()
        slot.give_back()
        await asyncio.wait_for(waiting, DEADLINE)

    asyncio.run(play())


def test_the_threads_that_go_on_past_their_time_are_counted_and_told_to_who_follows_the_system() -> None:
    leave, heard = threading.Event(), queue.SimpleQueue[ToolTrouble]()

    @tool(timeout=0.01)
    def hang() -> str:
        assert leave.wait(DEADLINE)
        return ""

    script = ScriptedProvider([calling("hang"), "done"])
    with ActorSystem.open(":memory:", script, tools=[hang]) as system:
        system.subscribe(lambda event: heard.put(event) if isinstance(event, ToolTrouble) else None)
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "done"
        assert system.statistics().abandoned == 1
        assert heard.get(timeout=DEADLINE).toolset == "hang"
        leave.set()


def test_who_no_longer_waits_for_a_slot_keeps_it_from_nobody() -> None:
    async def play() -> None:
        slots = Slots(asyncio.get_running_loop(), 1)
        first = await slots.acquire("first")
        early, late, last = (asyncio.create_task(slots.acquire(name)) for name in ("early", "late", "last"))
        await asyncio.sleep(0)  # they wait in this order
        early.cancel()
        first.give_back()  # passes over the first one, who does not know yet
        late.cancel()  # it has the slot, and does not know
        got = await asyncio.wait_for(last, DEADLINE)
        for gone in (early, late):
            with pytest.raises(asyncio.CancelledError):
                await gone
        got.give_back()
        await asyncio.wait_for(slots.acquire("again"), DEADLINE)

    asyncio.run(play())
