"""Sessions of the Claude Agent SDK: its own suite, and what that does not ask."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, cast

import pytest

from ikigai_actors import ActorSystem, BadInput, OfflineProvider
from ikigai_actors.guests.claude_sessions import IkigaiSessionStore
from ikigai_actors.system.attached import AttachedSystem

KEY: Any = {"project_key": "ship", "session_id": "s1", "subpath": "subagents/agent-1"}


@pytest.fixture
def opened(durable: str) -> Iterator[Callable[[], AttachedSystem]]:
    """Opens the database again and again, as further processes do."""
    with ExitStack() as systems:
        systems.enter_context(ActorSystem.open(durable, OfflineProvider()))
        yield lambda: systems.enter_context(ActorSystem.attach(durable))


def entries(*uuids: str) -> Any:
    return [{"type": "x", "uuid": uuid, "text": f"\0 {uuid}"} for uuid in uuids]


def test_an_entry_is_kept_once_however_often_its_batch_comes(opened: Callable[[], AttachedSystem]) -> None:
    async def run() -> None:
        store = IkigaiSessionStore(opened())
        await store.append(KEY, entries("a", "b", "b"))
        await store.append(KEY, [*entries("b", "c"), {"type": "title"}, {"type": "title"}])
        await store.append(KEY, entries("a", "b", "c"))
        assert await store.load(KEY) == [*entries("a", "b", "c"), {"type": "title"}, {"type": "title"}]

    asyncio.run(run())


def test_two_processes_append_to_one_session_and_nothing_is_lost(opened: Callable[[], AttachedSystem]) -> None:
    async def run() -> None:
        stores = [IkigaiSessionStore(opened()) for _ in range(2)]
        await asyncio.gather(
            *(
                store.append(KEY, entries(f"{writer}.{number}"))
                for number in range(10)
                for writer, store in enumerate(stores)
            )
        )
        uuids = [entry.get("uuid", "") for entry in await stores[0].load(KEY) or ()]
        assert sorted(uuids) == sorted(f"{writer}.{number}" for number in range(10) for writer in range(2))
        for writer in "01":
            mine = [uuid for uuid in uuids if uuid.startswith(writer)]
            assert mine == [f"{writer}.{number}" for number in range(10)]

    asyncio.run(run())


def test_bad_input_is_refused_and_nothing_is_appended(opened: Callable[[], AttachedSystem]) -> None:
    async def run() -> None:
        store = IkigaiSessionStore(opened())
        with pytest.raises(BadInput, match="must be JSON"):
            await store.append(KEY, [*entries("a"), {"type": "x", "at": object()}])
        with pytest.raises(BadInput, match=r"Expected system to be an open system; got 'ship\.db'"):
            IkigaiSessionStore(cast(AttachedSystem, "ship.db"))
        with pytest.raises(BadInput, match="Expected session_id to be 1 to 1,000 characters"):
            await store.append({**KEY, "session_id": ""}, entries("a"))
        assert await store.load(KEY) is None

    asyncio.run(run())


WRITER = """
import asyncio, sys
from itertools import count
from ikigai_actors import ActorSystem
from ikigai_actors.guests.claude_sessions import IkigaiSessionStore
key = {"project_key": "ship", "session_id": "s1", "subpath": "subagents/agent-1"}
async def run():
    with ActorSystem.attach(sys.argv[1]) as system:
        store = IkigaiSessionStore(system)
        for number in count():
            await store.append(key, [{"type": "x", "uuid": f"{number}.{part}"} for part in range(3)])
            print(number, flush=True)
asyncio.run(run())
"""


@pytest.mark.thorough("a process that is killed")
@pytest.mark.slow("kills a program")
def test_another_process_goes_on_with_the_session_of_one_that_was_killed(
    durable: str, opened: Callable[[], AttachedSystem]
) -> None:
    with subprocess.Popen([sys.executable, "-c", WRITER, durable], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        acknowledged = [int(writer.stdout.readline()) for _ in range(20)]
        writer.kill()
        acknowledged += map(int, writer.stdout.read().split())

    async def run() -> None:
        store = IkigaiSessionStore(opened())
        uuids = [entry.get("uuid") for entry in await store.load(KEY) or ()]
        whole = len(uuids) // 3
        assert uuids == [f"{number}.{part}" for number in range(whole) for part in range(3)]
        assert whole - 1 in (acknowledged[-1], acknowledged[-1] + 1)
        await store.append(KEY, entries(f"{whole - 1}.2", "next"))
        assert len(await store.load(KEY) or ()) == len(uuids) + 1

    asyncio.run(run())


@pytest.mark.thorough("needs the Claude Agent SDK, of 180 MB")
def test_the_suite_of_the_sdk_passes(durable_url: Callable[[], str]) -> None:
    testing = pytest.importorskip("claude_agent_sdk.testing", reason="needs the extra claude")
    with ExitStack() as systems:

        def fresh() -> IkigaiSessionStore:
            systems.pop_all().close()
            return IkigaiSessionStore(systems.enter_context(ActorSystem.open(durable_url(), OfflineProvider())))

        asyncio.run(testing.run_session_store_conformance(fresh))
