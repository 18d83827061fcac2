"""The library in a program: futures, asyncio, code-driven agents, subscribers. On every database."""

import asyncio

import pytest

from ikigai_actors import (
    ActorSystem,
    FunctionProvider,
    Message,
    Reply,
    Request,
    ScriptedProvider,
    Stream,
    Streamed,
    WouldDeadlock,
    current_agent,
)
from ikigai_actors.errors import NoCurrentAgent, WouldWaitForItself
from tests.kit.blocking_provider import DEADLINE, Gate
from tests.kit.echo import echo, open_echo
from tests.kit.programs import cheaper


async def _await(future: object) -> Reply:
    return await future  # type: ignore[misc,no-any-return]  # a Future; `ensure_future` wants a coroutine


def test_awaiting_a_future_does_not_block_the_event_loop(database: str) -> None:
    gate = Gate()

    async def program(system: ActorSystem) -> tuple[Reply, int]:
        ticks = 0
        waiting = asyncio.ensure_future(_await(system.root.prompt("x")))
        while ticks < 100:
            await asyncio.sleep(0)
            ticks += 1
        assert not waiting.done()
        gate.open()
        return await waiting, ticks

    with ActorSystem.open(database, provider=gate.provider) as system:
        reply, ticks = asyncio.run(program(system))
        assert (reply.text, ticks) == ("done", 100)


def test_cancelling_an_await_leaves_the_turn_alone(database: str) -> None:
    gate = Gate()

    async def program(system: ActorSystem) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await system.root.prompt("x")

    with ActorSystem.open(database, provider=gate.provider) as system:
        asyncio.run(program(system))
        gate.open()
        assert system.root.reply(timeout=DEADLINE).text == "done"


def test_a_blocking_call_on_a_thread_of_the_runtime_is_refused(database: str) -> None:
    failures: list[BaseException] = []

    async def answer(request: Request) -> str:
        try:
            system.agent(other.uuid).prompt("x").get()
        except WouldDeadlock as error:
            failures.append(error)
        return (await system.agent(other.uuid).prompt("y")).text

    with ActorSystem.open(
        database, provider=ScriptedProvider(echo), providers={"nested": ScriptedProvider(answer)}
    ) as system:
        other = system.root.fork()
        system.root.configure(model="nested")
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "y / 3"
        assert "await" in str(failures[0])


def test_an_agents_own_provider_may_not_wait_for_the_agent_itself(database: str) -> None:
    def answer(request: Request) -> str:
        me = current_agent()
        for wait in (lambda: me.prompt("x").get(), me.fork, me.reply):
            with pytest.raises(WouldWaitForItself, match=r'returns \[ToolCall\("fork", {"prompt": "..."}\)\] instead'):
                wait()
        return me.uuid

    with ActorSystem.open(database, provider=FunctionProvider(answer)) as system:
        assert system.root.prompt("go").get(timeout=DEADLINE).text == system.root.uuid
    with pytest.raises(NoCurrentAgent):
        current_agent()


def test_a_function_provider_orchestrates_other_agents(database: str) -> None:
    def boss(request: Request) -> str:
        system = current_agent().system
        return system.agent("worker").prompt("sub-task").get(timeout=DEADLINE).text

    with ActorSystem.open(
        database, provider=ScriptedProvider(echo), providers={"boss": FunctionProvider(boss)}
    ) as system:
        system.root.fork(name="worker")
        system.root.configure(model="boss")
        assert system.root.prompt("go").get(timeout=DEADLINE).text == "sub-task / 1"


def test_subscribers_hear_messages_in_order_and_deltas_before_their_reply(database: str) -> None:
    heard: list[object] = []
    with ActorSystem.open(database, provider=ScriptedProvider([Stream(deltas=("a", "b"))])) as system:
        system.subscribe(heard.append)
        system.root.prompt("x").get(timeout=DEADLINE)
        uuid = system.root.uuid
    assert [e.kind if isinstance(e, Message) else e for e in heard] == [
        "user",
        Streamed(uuid, "a", "text", 1),
        Streamed(uuid, "b", "text", 1),
        "assistant",
    ]


def test_a_subscriber_that_fails_harms_nobody(database: str, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[object] = []

    def bad(event: object) -> None:
        raise ValueError("planted")

    with open_echo(database) as system:
        system.subscribe(bad)
        system.subscribe(heard.append)
        system.root.prompt("x").get(timeout=DEADLINE)
    assert len(heard) == 3
    assert "planted" in caplog.text


@pytest.mark.slow("takes a tenth of a second")
@cheaper("many", 12, 1_000, "a thousand agents")
def test_many_agents_answer_on_two_workers(database: str, many: int) -> None:
    with open_echo(database) as system:
        children = [system.root.aio.fork(f"task {n}") for n in range(many)]
        replies = {child.get(timeout=60).reply().get(timeout=60).text for child in children}
        assert replies == {f"task {n} / 1" for n in range(many)}
        assert system.statistics().journal.batches < 3 * many
