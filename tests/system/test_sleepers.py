"""Sleepers: agents without an actor. A boot costs nothing for them, and whoever asks something of them wakes them."""

from collections.abc import Collection

import pytest

from ikigai_actors import ActorSystem, AgentDead, FunctionProvider, Signal
from ikigai_actors.agent.boot import Origin, Survey
from ikigai_actors.agent.turn.state import LifecycleState
from ikigai_actors.system.host.processes import ProcessTable
from ikigai_actors.system.remote.client import Client
from tests.kit.databases import eventually
from tests.kit.trees import record

TEA = FunctionProvider(lambda request: "tea")


@pytest.fixture
def asleep(durable: str) -> str:
    """A database in which "a", "b" below it and "c" rest; "a" has had a turn."""
    with ActorSystem.open(durable, TEA) as system:
        a = system.root.fork(name="a")
        a.fork(name="b")
        system.root.fork(name="c")
        assert a.prompt("What is there?").get(timeout=30).text == "tea"
        assert (system.statistics().awake, system.statistics().agents) == (4, 4)
    return durable


def test_a_boot_makes_no_actors_for_those_that_rest_and_a_prompt_wakes_one(asleep: str) -> None:
    with ActorSystem.open(asleep, TEA) as system:
        assert (system.statistics().awake, system.statistics().agents) == (1, 4)
        assert {system.state_of(one) for one in system.agents()} == {"idle"}
        assert (system.agent("a").statistics().state, repr(system.agent("b"))) == ("idle", "<AgentRef b idle>")
        assert system.statistics().awake == 1
        assert system.agent("a").prompt("And now?").get(timeout=30).text == "tea"
        assert system.agent("b").fork("What is there?", name="d").reply().text == "tea"
        assert (system.statistics().awake, system.statistics().agents) == (4, 5)


def test_signals_reach_sleepers_and_wake_only_who_must_end_itself(asleep: str) -> None:
    with ActorSystem.open(asleep, TEA) as system:
        a, b, c = map(system.agent, "abc")
        a.signal(Signal.STOP)
        a.signal(Signal.CONT)
        b.rename("bee")
        b.kill()
        c.signal(Signal.INT)
        assert system.statistics().awake == 1
        c.signal(Signal.TERM)
        eventually(lambda: record(system._store, c.uuid).status == "dead", "the end of c")
        with pytest.raises(AgentDead, match="KILL by a person"):
            b.prompt("And now?")
        assert a.prompt("And now?").get(timeout=30).text == "tea"


def test_a_prompt_of_another_process_wakes_its_agent(asleep: str) -> None:
    with ActorSystem.open(asleep, TEA) as system, Client.open(asleep) as client:
        one = client.find("c")
        client.prompt(one.uuid, "What is there?")
        eventually(lambda: record(system._store, one.uuid).turn == 0 and system.statistics().turns == 1, "its turn")


def test_a_word_to_a_sleeper_is_read(asleep: str) -> None:
    with ActorSystem.open(asleep, TEA) as system:
        assert system.agent("c").steer("Take care.").get(timeout=30)
        assert system.agent("c").reply(timeout=30).text == "tea"


def test_what_a_commit_does_while_a_row_is_read_has_it_read_again() -> None:
    table, looks = ProcessTable(str), []

    def look(uuid: str, shards: Collection[int], store: object) -> Survey:
        looks.append(sorted(shards))
        if len(looks) == 1:
            table.leave(uuid)
        elif len(looks) == 2:
            table.serve_shards([3])
        found = [Origin(uuid, None, 1, 1, 0, LifecycleState())] if len(looks) < 3 else []
        return Survey(1, found, [])

    table.serve_shards([2, 3])
    table._look_at = look
    assert table.wake("a") is None
    assert looks == [[2, 3], [2, 3], [3]]
