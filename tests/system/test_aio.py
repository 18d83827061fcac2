"""The system and its handles for asyncio programs: the same calls, and the event loop goes on."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from ikigai_actors import (
    ActorSystem,
    AsyncActorSystem,
    AsyncAgentRef,
    Child,
    FunctionProvider,
    NoHost,
    OfflineProvider,
    Signal,
    StoreInUse,
    SystemClosed,
    TimedOut,
    TurnInterrupted,
)
from ikigai_actors.store import open_store
from ikigai_actors.store.base import Store
from ikigai_actors.store.existing import open_existing
from ikigai_actors.store.forwarding import ForwardingStore
from ikigai_actors.system.aio import AsyncSystem
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.system.platform import SYSTEM_PLATFORM
from tests.kit.blocking_provider import DEADLINE, answers_what_comes_later
from tests.kit.databases import eventually

T = TypeVar("T")


class OffTheLoop(ForwardingStore):
    """A store that notes each call that was made while an event loop ran on the calling thread."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.blocked: list[Callable[[], object]] = []

    def _use(self, call: Callable[[], T]) -> T:
        with suppress(RuntimeError):
            asyncio.get_running_loop()
            self.blocked.append(call)
        return call()


async def every_call(root: AsyncAgentRef) -> None:
    """Ask for all that is not carried out by the agent: by handle, and by name."""
    mast, sail = await asyncio.gather(root.fork("Plan the mast.", name="mast"), root.fork(name="sail"))
    assert (await mast.reply()).text.startswith("You said “Plan the mast.”")
    assert [await mast.name, await mast.state, await mast.parent] == ["mast", "idle", root]
    assert (await mast.record).uuid == mast.uuid
    assert await root.children() == [mast, sail]
    assert [message.kind for message in await mast.history()] == ["fork", "user", "assistant"]
    assert await root.send("mast", "The keel is laid.") == 1
    assert [mail.body for mail in await mast.read_mail(root)] == ["The keel is laid."]
    assert await mast.remind("look", after=60) == 1
    assert [timer.body for timer in await mast.timers()] == ["look"]
    await mast.monitor("sail")
    await mast.adopt("sail")
    assert (await root.merge("mast")).text
    assert await root.wait(["mast"], timeout=DEADLINE) == {"mast": "idle"}
    [twin] = await root.fork_many([Child("mast")])
    assert await twin.kill() == [twin]
    assert not await mast.signal(Signal.INT, cascade=True)
    assert (await mast.set_budget({"tokens": 1_000})).granted == {"tokens": 1_000}
    assert (await mast.grant(tokens=5)).granted == {"tokens": 1_005}


async def every_call_of(system: AsyncSystem[Any]) -> None:
    """Ask the system itself."""
    assert (await system.agent("mast")).uuid == (await system.agents("running"))[1].uuid
    assert await asyncio.gather(*(system.send("mast", text) for text in ("Is it done?", "And now?"))) == [2, 3]
    assert await system.send("mast", "And tomorrow?", at="23:59", zone="Europe/Berlin") == 2
    await (await system.agent("mast")).join("team")
    assert await system.groups() == {"team": [await system.agent("mast")]}
    assert await system.documents.write("plan.md", "# Mast", author="mast") == 1
    assert (await system.documents.read("plan.md")).body == "# Mast"
    assert await system.approvals.pending() == []
    assert len(await system.hosts()) == 1


def test_an_asyncio_program_never_waits_for_the_database_on_its_loop(tmp_path: Path) -> None:
    stores: list[OffTheLoop] = []

    def watched(database: Any) -> Store:
        stores.append(OffTheLoop(open_store(database)))
        return stores[-1]

    async def program() -> None:
        parts = replace(SYSTEM_PLATFORM, open_store=watched)
        async with AsyncActorSystem.open(tmp_path / "ship.db", OfflineProvider(), parts=parts) as system:
            await every_call(system.root)
            await every_call_of(system)
        with pytest.raises(SystemClosed):
            await system.agents()

    asyncio.run(program())
    [store] = stores
    assert store.blocked == []


@pytest.mark.slow("takes a tenth of a second")
def test_an_int_that_is_not_awaited_is_for_the_prompt_before_it_and_not_for_the_one_behind_it(durable: str) -> None:
    async def program(root: AsyncAgentRef) -> None:
        for _ in range(5):
            first, interrupted, later = root.prompt("first"), root.signal(Signal.INT), root.prompt("later")
            with pytest.raises(TurnInterrupted):
                await first
            assert await interrupted
            assert (await later).text == "heard later"

    async def main() -> None:
        provider = FunctionProvider(answers_what_comes_later)
        async with AsyncActorSystem.open(durable, provider) as system, AsyncActorSystem.attach(durable) as attached:
            await program(system.root)
            await program(attached.root)

    asyncio.run(main())


def test_an_attached_asyncio_program_writes_beside_its_loop_in_the_order_of_its_calls(durable: str) -> None:
    async def program(root: AsyncAgentRef, store: OffTheLoop) -> None:
        sent = [root.send("kid", str(number)) for number in range(20)]
        prompt = root.prompt("tea")
        assert await asyncio.gather(*sent) == list(range(1, 21))
        with pytest.raises(NoHost):  # nobody has looked yet who runs the agents
            await prompt
        assert store.blocked == []

    with ActorSystem.open(durable, OfflineProvider()) as system:
        kid = system.root.fork(name="kid")
        store = OffTheLoop(open_existing(durable))
        with closing(AttachedSystem(store)) as attached:  # not started: nothing but the program uses the store
            asyncio.run(program(attached.root.aio, store))
        assert [mail.body for mail in kid.mails()] == [str(number) for number in range(20)]


def test_an_await_that_is_cancelled_or_late_leaves_the_command_as_it_is() -> None:
    gate = threading.Event()

    async def program() -> None:
        waits = FunctionProvider(lambda request: str(gate.wait(DEADLINE)))
        async with AsyncActorSystem.open(":memory:", waits) as system:
            root = system.root
            reply = root.prompt("tea")
            with pytest.raises(TimedOut, match="may still"):
                await root.mark("here", timeout=0)
            waiting = asyncio.ensure_future(reply)
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            gate.set()
            assert (await reply).text == "True"
            await root.mark("there")
            assert [label for label, _ in (await root.context()).marks] == ["here", "there"]

    asyncio.run(program())


def test_an_opening_that_is_cancelled_leaves_the_database_free(tmp_path: Path) -> None:
    database, asked, gate = tmp_path / "ship.db", threading.Event(), threading.Event()

    def late(database: Any) -> Store:
        asked.set()
        gate.wait(DEADLINE)
        return open_store(database)

    async def program() -> None:
        opening = AsyncActorSystem.open(database, "offline", parts=replace(SYSTEM_PLATFORM, open_store=late))
        task = asyncio.ensure_future(opening)
        await asyncio.to_thread(asked.wait, DEADLINE)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()  # who cancels twice does not wait for it
        with pytest.raises(asyncio.CancelledError):
            await task
        gate.set()

    def is_free() -> bool:
        with suppress(StoreInUse):
            ActorSystem.open(database, "offline", on_wait=None).close()
            return True
        return False

    asyncio.run(program())
    eventually(is_free, "the end of the system that nobody waited for")


def test_when_a_cancelled_opening_is_over_the_database_is_free(tmp_path: Path) -> None:
    database, asked = tmp_path / "ship.db", threading.Event()

    def noted(database: Any) -> Store:
        asked.set()
        return open_store(database)

    async def program() -> None:
        opening = AsyncActorSystem.open(database, "offline", parts=replace(SYSTEM_PLATFORM, open_store=noted))
        task = asyncio.ensure_future(opening)
        await asyncio.to_thread(asked.wait, DEADLINE)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        ActorSystem.open(database, "offline", on_wait=None).close()

    asyncio.run(program())


def test_a_system_that_nobody_has_awaited_says_so() -> None:
    opening: Any = AsyncActorSystem.open(":memory:", "offline")
    with pytest.raises(AttributeError, match=r"not open yet, so it has no root: use `async with"):
        _ = opening.root


def test_both_faces_of_a_system_lead_to_each_other(durable: str) -> None:
    async def program() -> None:
        system = await AsyncActorSystem.open(durable, "offline")
        root = system.root
        assert root.sync == root == root.sync.aio
        assert hash(root.sync) == hash(root)
        assert system.sync.root == root
        await system.close()
        with pytest.raises(SystemClosed):
            await root.fork()
        async with AsyncActorSystem.attach(durable) as attached:
            assert await attached.agent(root.uuid) == attached.root

    asyncio.run(program())


def test_an_error_of_the_block_goes_on_when_the_system_is_closed() -> None:
    async def program() -> None:
        async with AsyncActorSystem.open(":memory:", "offline") as system:
            assert await system.statistics()
            raise KeyError("planted")

    with pytest.raises(KeyError, match="planted"):
        asyncio.run(program())
