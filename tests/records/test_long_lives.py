"""What an agent holds in memory, however long it lives: what its history means, and nothing that it has cleared."""

import weakref

import pytest

from ikigai_actors import ActorSystem, AgentRef, FunctionProvider, Request
from ikigai_actors.records.log.log import Log
from tests.kit.blocking_provider import DEADLINE

TURNS = 60
EVERY = 15


def answer(request: Request) -> str:
    """Says how many messages it was shown; remembers none."""
    return f"{len(request.messages)} messages"


def live(agent: AgentRef, turns: int) -> None:
    """Prompt an agent, which clears its history now and then."""
    for turn in range(1, turns + 1):
        agent.prompt("x").get(timeout=DEADLINE)
        if turn % EVERY == 0:
            agent.clear()


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.sample(1, "dozens of turns")
def test_an_agent_that_clears_now_and_then_holds_what_came_since_and_the_database_all(durable: str) -> None:
    with ActorSystem.open(durable, provider=FunctionProvider(answer)) as system:
        root = system.root
        root.configure(system="Be brief.")
        live(root, TURNS)
        root.prompt("last").get(timeout=DEADLINE)
        assert system._log_cache.in_memory() == 3  # the settings, the prompt, the answer
        assert len(root.history()) == 3
        whole = 1 + 2 * TURNS + 2 * TURNS // EVERY + 2
        assert len(root.history(all=True)) == whole
        assert system._log_cache.in_memory() == 3
    with ActorSystem.open(durable, provider=FunctionProvider(answer)) as system:
        assert system.root.reply(timeout=DEADLINE).text == "1 messages"
        assert (system._log_cache.read_logs, system._log_cache.read_messages) == (1, 3)
        assert system.root.context().settings == {"system": "Be brief."}
        assert len(system.root.history(all=True)) == whole


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.sample(1, "dozens of turns")
def test_what_was_cleared_is_held_as_long_as_a_child_forked_before_needs_it(database: str) -> None:
    with ActorSystem.open(database, provider=FunctionProvider(answer)) as system:
        root = system.root
        live(root, EVERY - 1)
        first, second = root.fork(), root.fork()
        old = weakref.ref(held(system, root))
        root.clear()
        live(root, 3 * EVERY)
        for child in (first, second):
            assert child.prompt("x").get(timeout=DEADLINE).text == f"{2 * EVERY - 1} messages"
            assert held(system, child).parent is old()
        assert system._log_cache.in_memory() == 2 * (EVERY - 1) + 2 + 2 * 3
        first.clear()
        assert system._log_cache.in_memory() == 2 * (EVERY - 1) + 2 + 3
        second.clear()
        assert old() is None
        assert system._log_cache.in_memory() == 0


def held(system: ActorSystem, agent: AgentRef) -> Log:
    """An agent's log in memory."""
    log = system._log_cache.at_hand(agent.uuid)
    assert log is not None
    return log


def test_the_last_outcome_is_known_after_a_clear_and_a_start(durable: str) -> None:
    with ActorSystem.open(durable, provider=FunctionProvider(answer)) as system:
        system.root.prompt("x").get(timeout=DEADLINE)
        system.root.clear()
        assert system.root.reply(timeout=DEADLINE).text == "1 messages"
    with ActorSystem.open(durable, provider=FunctionProvider(answer)) as system:
        assert system.root.reply(timeout=DEADLINE).text == "1 messages"
        assert system.root.history() == []
