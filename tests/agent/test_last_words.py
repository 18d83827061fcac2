"""The reply of an agent that is dead."""

import pytest

from ikigai_actors import ActorSystem, AgentDead, ProviderError, ScriptedProvider, Stream
from ikigai_actors.system.attached import AttachedSystem
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import eventually
from tests.kit.tool_scripts import calling


def test_an_agent_that_answered_and_then_died_still_gives_its_reply(durable: str) -> None:
    script = ScriptedProvider({"kid": ["first", "last"], "odd": [ProviderError("overloaded")]})
    with ActorSystem.open(durable, script) as system:
        kid, odd = system.root.fork("go", name="kid"), system.root.fork("go", name="odd")
        kid.reply(timeout=DEADLINE)
        kid.prompt("and on").get(timeout=DEADLINE)
        kid.mark("behind it")
        with pytest.raises(ProviderError):
            odd.reply(timeout=DEADLINE)
        kid.kill()
        odd.kill()
        assert kid.reply(timeout=DEADLINE).text == kid.aio.reply().get(timeout=DEADLINE).text == "last"
        with pytest.raises(ProviderError, match="overloaded"):
            odd.reply(timeout=DEADLINE)
        with AttachedSystem.open(durable) as attached:
            assert attached.agent(kid.uuid).reply(timeout=DEADLINE).text == "last"
    with ActorSystem.open(durable, script) as system:
        assert system.agent(kid.uuid).reply(timeout=DEADLINE).text == "last"


def test_an_agent_that_died_in_a_turn_or_without_one_has_no_reply(durable: str) -> None:
    script = ScriptedProvider(
        {
            "cut": ["an earlier reply", Stream(("a", "b"), delay=3600)],
            "calls": ["an earlier reply", calling(("wait", {"timeout": 3600}))],
        }
    )
    with ActorSystem.open(durable, script) as system:
        agents = {name: system.root.fork(name=name) for name in ("cut", "calls", "mute")}
        for name in ("cut", "calls"):
            agents[name].prompt("go").get(timeout=DEADLINE)
            agents[name].prompt("go on")
        eventually(lambda: agents["cut"].record.turn > 0, "its second turn")
        agents["calls"].fork(timeout=DEADLINE)  # at its step boundary: its reply that calls is committed
        for agent in agents.values():
            agent.kill()
            with pytest.raises(AgentDead):
                agent.reply(timeout=DEADLINE)
        with AttachedSystem.open(durable) as attached:
            for agent in agents.values():
                with pytest.raises(AgentDead, match="is dead: "):
                    attached.agent(agent.uuid).reply(timeout=DEADLINE)
