"""A function as a provider: threads of its own, failures that go through, nothing that hangs."""

import asyncio
import contextvars
import threading
from typing import Any

import pytest

from ikigai_actors import ActorSystem, Signal, TurnInterrupted, current_agent
from ikigai_actors.providers.base import Delta, Reply, Request, ToolCall
from ikigai_actors.providers.function import FunctionProvider
from ikigai_actors.providers.shorthand import as_reply
from tests.kit.blocking_provider import DEADLINE
from tests.providers.test_providers import ask, request, said


def test_a_function_answers_on_a_thread_of_its_own() -> None:
    def worker(asked: Request) -> str:
        return threading.current_thread().name

    reply, deltas = ask(FunctionProvider(worker, name="worker"))
    assert reply.text == "worker uuid"
    assert deltas == [Delta("worker uuid")]


def test_a_function_that_blocks_keeps_nobody_waiting() -> None:
    """More calls at once than any pool has threads, each waiting for all the others."""
    together = threading.Barrier(60)

    async def run() -> list[Reply]:
        provider = FunctionProvider(lambda _: str(together.wait() >= 0))
        return await asyncio.gather(*(provider.respond(request("hello"), lambda _: None) for _ in range(60)))

    assert {reply.text for reply in asyncio.run(run())} == {"True"}


def test_a_function_sees_the_context_of_the_request_and_leaves_it_alone() -> None:
    who = contextvars.ContextVar("who", default="nobody")

    def worker(asked: Request) -> str:
        seen = who.get()
        who.set("the function")
        return seen

    async def run() -> tuple[str, str]:
        who.set("the agent")
        reply = await FunctionProvider(worker).respond(request("hello"), lambda _: None)
        return reply.text, who.get()

    assert asyncio.run(run()) == ("the agent", "the agent")


def test_a_coroutine_function_runs_on_the_loop() -> None:
    async def worker(asked: Request) -> str:
        return threading.current_thread().name

    assert said(FunctionProvider(worker)) == threading.current_thread().name


def test_what_a_function_raises_goes_through_as_it_is() -> None:
    error = LookupError("mine")

    def worker(asked: Request) -> str:
        raise error

    async def coroutine(asked: Request) -> str:
        raise error

    for fn in (worker, coroutine):
        with pytest.raises(LookupError) as raised:
            ask(FunctionProvider(fn))
        assert raised.value is error


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), StopIteration()])
def test_a_function_cannot_end_the_process_nor_hang_the_turn(error: BaseException) -> None:
    def worker(asked: Request) -> str:
        raise error

    with pytest.raises(RuntimeError) as raised:
        ask(FunctionProvider(worker))
    assert raised.value.__cause__ is error


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
def test_a_coroutine_cannot_end_the_process(error: BaseException) -> None:
    async def worker(asked: Request) -> str:
        raise error

    with pytest.raises(RuntimeError, match="return to answer") as raised:
        ask(FunctionProvider(worker))
    assert raised.value.__cause__ is error


def test_a_cancelled_function_is_forgotten_even_when_it_ends_after_the_loop() -> None:
    started, go, ended = threading.Event(), threading.Event(), threading.Event()

    def worker(asked: Request) -> str:
        started.set()
        go.wait()
        ended.set()
        return "late"

    async def run() -> None:
        task = asyncio.create_task(FunctionProvider(worker).respond(request("hello"), lambda _: None))
        await asyncio.to_thread(started.wait)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())
    threads = [thread for thread in threading.enumerate() if thread.name == "function uuid"]
    go.set()
    assert ended.wait(60)
    for thread in threads:
        thread.join()


def test_a_cancelled_function_that_ends_on_a_living_loop_is_forgotten_too() -> None:
    started, go = threading.Event(), threading.Event()

    def worker(asked: Request) -> str:
        started.set()
        go.wait()
        return "late"

    async def run() -> str:
        task = asyncio.create_task(FunctionProvider(worker, "late").respond(request("hello"), lambda _: None))
        await asyncio.to_thread(started.wait)
        task.cancel()
        await asyncio.wait([task])
        go.set()
        for thread in [thread for thread in threading.enumerate() if thread.name == "late uuid"]:
            await asyncio.to_thread(thread.join)
        return (await FunctionProvider(lambda _: "well").respond(request("hello"), lambda _: None)).text

    assert asyncio.run(run()) == "well"


WRONG: list[Any] = [
    None,
    7,
    b"bytes",
    {"type": "text", "text": "one block, no list"},
    ["text in a list"],
    [ToolCall("a"), {"type": "text", "text": "mixed"}],
    [{"text": "no type"}],
    [{"type": "text"}],
    [{"type": "tool_use", "name": "a"}],
    [{"type": "tool_use", "name": "a", "input": "no dict"}],
    [{"type": "text", "text": "a", "extra": {1, 2}}],
    Reply(tool_calls=("a",)),  # type: ignore[arg-type]  # the mistake is what is tested
    Reply(tool_calls=(ToolCall("a", {"key": object()}),)),
]


@pytest.mark.parametrize("value", WRONG)
def test_anything_else_is_a_type_error_that_says_what_would_do(value: Any) -> None:
    with pytest.raises(TypeError, match="Expected"):
        ask(FunctionProvider(lambda _: value))


def test_a_function_that_returns_nothing_is_told_so() -> None:
    with pytest.raises(TypeError, match="Does the function return its answer"):
        as_reply(None)


def test_a_plain_function_answers_while_somebody_holds_the_event_loop() -> None:
    held, let_go = threading.Event(), threading.Event()

    async def holds(asked: Request) -> str:
        held.set()
        return str(let_go.wait(DEADLINE))

    providers = {"holds": FunctionProvider(holds), "plain": FunctionProvider(lambda _: "at once")}
    with ActorSystem.open(":memory:", providers=providers) as system:
        holder, plain = (system.root.fork(model=name) for name in providers)
        waiting = holder.prompt("hold")
        try:
            assert held.wait(DEADLINE)
            assert plain.prompt("now").get(timeout=DEADLINE).text == "at once"
        finally:
            let_go.set()
        assert waiting.get(timeout=DEADLINE).text == "True"


def test_what_a_plain_function_gives_to_be_awaited_is_awaited_on_the_loop_and_cancelled_with_the_turn() -> None:
    begun, cancelled = threading.Event(), threading.Event()

    async def later(asked: Request) -> str:
        if asked.messages[-1]["content"][-1]["text"] == "quick":
            return f"{current_agent().uuid} on {threading.current_thread().name}"
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return "never"

    with ActorSystem.open(":memory:", FunctionProvider(lambda asked: later(asked))) as system:
        quick = system.root.prompt("quick").get(timeout=DEADLINE)
        assert quick.text == f"{system.root.uuid} on ikigai-executor"
        waiting = system.root.prompt("slow")
        assert begun.wait(DEADLINE)
        system.root.signal(Signal.INT)
        with pytest.raises(TurnInterrupted):
            waiting.get(timeout=DEADLINE)
        assert cancelled.wait(DEADLINE)
