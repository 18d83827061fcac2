"""Sessions of the OpenAI Agents SDK: its protocol, branches, and what several processes do."""

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

from ikigai_actors import ActorSystem, AsyncActorSystem, BadInput, OfflineProvider
from ikigai_actors.guests.openai_session import IkigaiSession
from tests.kit.databases import sql


@pytest.fixture
def system(durable: str) -> Iterator[ActorSystem]:
    with ActorSystem.open(durable, OfflineProvider()) as opened:
        yield opened


def items(*texts: str) -> Any:
    return [{"role": "user", "content": text} for text in texts]


def texts(items: Any) -> list[str]:
    return [item["content"] for item in items]


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def test_items_are_kept_in_order_and_the_latest_of_them_are_given(durable: str, system: ActorSystem) -> None:
    async def work() -> None:
        session = IkigaiSession("s", system)
        assert (await session.get_items(), await session.pop_item()) == ([], None)
        await session.add_items(items("a\0", "b"))
        await session.add_items([])
        await session.add_items(items("c"))
        assert await session.pop_item() == items("c")[0]
        await session.add_items(items("d"))
        with ActorSystem.attach(durable) as other:
            again = IkigaiSession("s", other)
            assert texts(await again.get_items()) == ["a\0", "b", "d"]
            assert texts(await again.get_items(limit=2)) == ["b", "d"]
            assert await again.get_items(limit=0) == []
            await again.clear_session()
        assert await session.get_items() == []

    run(work())


def test_a_branch_is_one_row_and_keeps_its_items_whatever_is_taken_off(system: ActorSystem) -> None:
    async def work() -> None:
        session = IkigaiSession("s", system)
        await session.add_items(items("a", "b", "c"))
        branch = await session.branch("t")
        early = await session.branch("u", at=1)
        [(count,)] = system._store.read(lambda tx: sql(tx, "SELECT COUNT(*) FROM guest_entries"))
        assert count == 3
        assert await branch.pop_item() == items("c")[0]
        await branch.add_items(items("x"))
        for _ in range(4):
            await session.pop_item()
        await session.add_items(items("y"))
        await early.add_items(items("z"))
        every = [texts(await branched.get_items()) for branched in (session, branch, early)]
        assert every == [["y"], ["a", "b", "x"], ["a", "z"]]
        await session.clear_session()
        assert texts(await branch.get_items()) == ["a", "b", "x"]

    run(work())


def test_two_processes_add_to_one_session_and_no_item_is_lost(durable: str, system: ActorSystem) -> None:
    async def work() -> None:
        with ActorSystem.attach(durable) as other:
            sessions = [IkigaiSession("s", each) for each in (system, other)]
            await asyncio.gather(*(session.add_items(items(f"{n}")) for n in range(10) for session in sessions))
            assert sorted(texts(await sessions[0].get_items())) == sorted(f"{n}" for n in range(10) for _ in sessions)

    run(work())


def test_a_session_of_an_asyncio_program_is_the_same(durable: str) -> None:
    async def work() -> None:
        async with AsyncActorSystem.open(durable, OfflineProvider()) as system:
            await IkigaiSession("s", system).add_items(items("a"))
            assert texts(await IkigaiSession("s", system.sync).get_items()) == ["a"]

    run(work())


def test_bad_input_is_refused_and_nothing_is_added(system: ActorSystem) -> None:
    async def work() -> None:
        session = IkigaiSession("s", system)
        with pytest.raises(BadInput, match="An item of a session must be JSON"):
            await session.add_items([*items("a"), {"role": object()}])
        with pytest.raises(BadInput, match="Expected limit to be a whole number"):
            await session.get_items(limit=-1)
        with pytest.raises(BadInput, match="There is no 's' to branch from"):
            await session.branch("t")
        with pytest.raises(BadInput, match="Expected session_id to be 1 to 1,000"):
            IkigaiSession("", system)
        assert await session.get_items() == []

    run(work())


def echo(agents: Any) -> Any:
    """A model that says how many items it was given."""
    from openai.types.responses import ResponseOutputMessage, ResponseOutputText

    async def respond(self: Any, **asked: Any) -> Any:
        items_sent = asked["input"]
        text = f"{len(items_sent)} items, {items_sent[-1]['content']} at last"
        said = ResponseOutputText(type="output_text", text=text, annotations=[])
        message = ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[said])
        return agents.ModelResponse(output=[message], usage=agents.Usage(), response_id=None)

    return type("Echo", (agents.Model,), {"get_response": respond, "stream_response": None})()


@pytest.mark.thorough("needs the OpenAI Agents SDK, of 15 MB")
def test_the_sdk_runs_an_agent_on_a_session(system: ActorSystem) -> None:
    agents = pytest.importorskip("agents", reason="needs the extra openai-agents")

    agents.set_tracing_disabled(True)

    async def work() -> None:
        session = IkigaiSession("s", system, session_settings=agents.SessionSettings(limit=3))
        assert isinstance(session, agents.Session)
        agent = agents.Agent(name="mate", model=echo(agents))
        for word in ("mast", "sail"):
            await agents.Runner.run(agent, word, session=session)
        assert len(await session.get_items()) == 3
        assert len(await session.get_items(limit=10)) == 4
        branch = await session.branch("t", at=2)
        result = await agents.Runner.run(agent, "keel", session=branch)
        assert result.final_output == "3 items, keel at last"
        assert len(await branch.get_items(limit=10)) == 4

    run(work())
