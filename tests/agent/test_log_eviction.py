"""The memory that logs take: idle agents drop theirs, and notice nothing of it."""

import pytest

from ikigai_actors import ActorSystem, AgentRef, FunctionProvider, Request
from ikigai_actors.agent.turn.state import Phase
from tests.kit.databases import DEADLINE, eventually

MOST = 30


def answer(request: Request) -> str:
    """Says how many messages it was shown."""
    return f"{len(request.messages)} messages"


def opened(database: str) -> ActorSystem:
    """A system with room for few messages."""
    return ActorSystem.open(database, provider=FunctionProvider(answer), in_memory=MOST)


def talk(agents: list[AgentRef], times: int) -> None:
    """Prompt each so many times."""
    for agent in agents:
        for _ in range(times):
            agent.prompt("x").get(timeout=DEADLINE)


def held(system: ActorSystem, agent: AgentRef) -> bool:
    """Whether its log is in memory."""
    return system._actor(agent.uuid).state.phase is not Phase.UNLOADED


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.sample(1, "hundreds of turns")
@pytest.mark.sample(1, "hundreds of turns")
def test_logs_in_memory_are_bounded_and_agents_go_on_as_if_they_had_theirs(durable: str) -> None:
    with opened(durable) as system:
        agents = [system.root.fork() for _ in range(5)]
        talk(agents, 5)
        assert system._log_cache.passages() > 0
        logs = system._log_cache
        eventually(lambda: logs.in_memory() + logs.passages() <= MOST, "the rest of idle agents")
        assert not held(system, agents[0])
        before = system._log_cache.read_logs
        assert agents[0].prompt("x").get(timeout=DEADLINE).text == "11 messages"
        assert agents[0].reply(timeout=DEADLINE).text == "11 messages"
        assert system._log_cache.read_logs == before + 1
        for agent in agents[1:]:
            agent.undo()
            assert agent.prompt("x").get(timeout=DEADLINE).text == "9 messages"


def test_who_was_used_last_keeps_the_log(durable: str) -> None:
    with opened(durable) as system:
        agents = [system.root.fork() for _ in range(10)]
        for agent in agents:
            talk([agent], 2)
            talk(agents[:1], 1)
        eventually(lambda: not held(system, agents[1]), "the rest of the one that was idle for longest")
        assert held(system, agents[0])


@pytest.mark.slow("takes a tenth of a second")
def test_who_is_told_of_new_mail_keeps_the_log_and_is_told(durable: str) -> None:
    with opened(durable) as system:
        clerk = system.root.fork()
        clerk.configure(notify=True)
        talk([clerk], 1)
        agents = [system.root.fork() for _ in range(5)]
        talk(agents, 5)
        eventually(lambda: not held(system, agents[0]), "the rest of idle agents")
        assert held(system, clerk)
        length = len(clerk.history())
        system.root.send(clerk, "tea is out")
        eventually(lambda: len(clerk.history()) > length, "the line about the mail")


@pytest.mark.slow("takes a tenth of a second")
def test_a_fork_of_one_that_rests_inherits_all(durable: str) -> None:
    with opened(durable) as system:
        agents = [system.root.fork() for _ in range(5)]
        talk(agents, 5)
        eventually(lambda: not held(system, agents[0]), "the rest of idle agents")
        assert agents[0].fork("y").reply(timeout=DEADLINE).text == "11 messages"
