"""fork(exist_ok=True): the living child of a name, or a new one."""

import asyncio
import threading

import pytest

from ikigai_actors import (
    ActorSystem,
    AgentRef,
    AsyncActorSystem,
    BadInput,
    NameTaken,
    OfflineProvider,
    ScriptedProvider,
    Signal,
)
from ikigai_actors.system.attached import AttachedSystem
from tests.kit.blocking_provider import DEADLINE, Gate


def at_once(name: str, roots: list[AgentRef]) -> list[AgentRef]:
    """What these give for a child of this name, each on a thread of its own."""
    agents: list[AgentRef] = []

    def ask(root: AgentRef) -> None:
        agents.append(root.fork(name=name, exist_ok=True, timeout=DEADLINE))

    threads = [threading.Thread(target=ask, args=(root,)) for root in roots]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    return agents


def test_a_child_that_lives_is_returned_as_it_is_and_made_otherwise(durable: str) -> None:
    with ActorSystem.open(durable, OfflineProvider()) as system:
        made = system.root.fork("Plan the mast.", name="mast", exist_ok=True)
        assert made.reply(timeout=DEADLINE).text.startswith("You said “Plan the mast.”")
    with ActorSystem.open(durable, OfflineProvider()) as system:
        mast = system.root.fork("Plan it again.", name="mast", model="other:model", exist_ok=True)
        assert (mast.uuid, len(system.agents())) == (made.uuid, 2)
        assert [message.content for message in mast.history() if message.kind == "user"] == ["Plan the mast."]
        assert "model" not in mast.context().settings
        mast.kill()
        again = system.root.fork(name="mast", exist_ok=True)
        assert again.uuid != made.uuid
        assert again.record.living


def test_a_child_that_is_stopped_or_adopted_is_one_too_and_any_other_agent_is_not() -> None:
    with ActorSystem.open(":memory:", OfflineProvider()) as system:
        root = system.root
        mast, sail = root.fork(name="mast"), root.fork(name="sail")
        mast.signal(Signal.STOP)
        assert root.fork(name="mast", exist_ok=True) == mast
        rope = sail.fork(name="rope")
        with pytest.raises(NameTaken, match="choose another name"):
            root.fork(name="rope", exist_ok=True)
        root.adopt(rope)
        assert root.fork(name="rope", exist_ok=True) == rope == sail.fork(name="rope", exist_ok=True)
        with pytest.raises(NameTaken):
            root.fork(name="mast")


def test_of_programs_that_ask_at_once_one_makes_the_child_and_all_get_it(durable: str) -> None:
    with ActorSystem.open(durable, OfflineProvider()) as system, AttachedSystem.open(durable) as attached:
        for number in range(2):
            agents = at_once(f"mast-{number}", [system.root, attached.root] * 3)
            assert len(agents) == 6
            assert len({agent.uuid for agent in agents}) == 1
        assert len(system.agents()) == 3


def test_a_birth_that_another_one_has_overtaken_finds_the_child() -> None:
    gate = Gate()
    with ActorSystem.open(":memory:", gate.provider) as system:
        turn = system.root.prompt("one")
        gate.wait_until_asked()  # what is forked now waits for the end of the step, in order
        first, second = (system.root.aio.fork(name="mast", exist_ok=True) for _ in range(2))
        plain = system.root.aio.fork(name="mast")
        gate.open()
        assert first.get(timeout=DEADLINE) == second.get(timeout=DEADLINE)
        with pytest.raises(NameTaken):
            plain.get(timeout=DEADLINE)
        turn.get(timeout=DEADLINE)


def test_an_asyncio_program_gets_it_too() -> None:
    async def program() -> None:
        async with AsyncActorSystem.open(":memory:", ScriptedProvider(lambda request: "ok")) as system:
            agents = await asyncio.gather(*(system.root.fork("go", name="mast", exist_ok=True) for _ in range(4)))
            assert len({agent.uuid for agent in agents}) == 1
            assert (await agents[0].reply()).text == "ok"

    asyncio.run(program())


def test_it_is_for_the_name_of_one_child() -> None:
    wrong: list[dict[str, object]] = [{}, {"count": 2, "names": ["a", "b"]}, {"prompts": ["a"], "names": ["a"]}]
    with ActorSystem.open(":memory:", OfflineProvider()) as system:
        for options in wrong:
            with pytest.raises(BadInput, match="the name of one child"):
                system.root.fork(exist_ok=True, **options)  # type: ignore[call-overload]
        assert len(system.agents()) == 1
