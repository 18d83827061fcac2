"""Sleepers: agents without an actor. A boot costs nothing for them, and whoever asks something of them wakes them."""

import threading
from collections.abc import Collection
from functools import partial

import pytest

from ikigai_actors import ActorSystem, AgentDead, AgentNotFound, AgentRef, BadInput, FunctionProvider, Reply, Signal
from ikigai_actors.actors.futures import Future
from ikigai_actors.agent.actor import AgentActor
from ikigai_actors.agent.boot import Origin, Survey
from ikigai_actors.agent.messages import Finish
from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.state import LifecycleState
from ikigai_actors.events import Died, Renamed, StatusSet
from ikigai_actors.system.host.processes import CROWD, ProcessTable
from ikigai_actors.system.remote.client import Client
from ikigai_actors.testing.simulation.world import simulated
from tests.kit.blocking_provider import DEADLINE, Gate
from tests.kit.databases import eventually, sql
from tests.kit.trees import record
from tests.system.test_restarts import Worker

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
        assert {system.state_of(record) for record in system.agents()} == {"idle"}
        assert (system.agent("a").statistics().state, repr(system.agent("b"))) == ("idle", "<AgentRef b idle>")
        assert system.statistics().awake == 1
        assert system.agent("a").prompt("And now?").get(timeout=30).text == "tea"
        assert system.agent("b").fork("What is there?", name="d").reply().text == "tea"
        assert (system.statistics().awake, system.statistics().agents) == (4, 5)


@pytest.mark.slow("takes a tenth of a second")
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
        sleeper = client.find("c")
        client.prompt(sleeper.uuid, "What is there?")
        eventually(lambda: record(system._store, sleeper.uuid).turn == 0 and system.statistics().turns == 1, "its turn")


@pytest.mark.thorough("signals to sleepers, as above, from another process")
def test_what_another_process_does_to_sleepers_is_heard(asleep: str) -> None:
    heard: list[object] = []
    with ActorSystem.open(asleep, TEA) as system, ActorSystem.attach(asleep) as others:
        a, b, c = map(system.agent, "abc")
        system.subscribe(heard.append, (Died, Renamed, StatusSet))
        others.agent(a.uuid).signal(Signal.STOP)
        others.agent(c.uuid).rename("sea")
        others.agent(b.uuid).kill()
        eventually(lambda: any(isinstance(event, Died) for event in heard), "the death")
        assert system.statistics().awake == 1
    assert StatusSet(a.uuid, "stopped") in heard
    assert Renamed(c.uuid, "sea") in heard
    assert [event.agent_uuid for event in heard if isinstance(event, Died)] == [b.uuid]


@pytest.mark.thorough("a word that wakes an agent, as a prompt does above")
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
        origins = [Origin(uuid, None, 1, 1, 0, LifecycleState())] if len(looks) < 3 else []
        return Survey(1, origins, [])

    table.serve_shards([2, 3])
    table._look_at = look
    assert table.wake("a") is None
    assert looks == [[2, 3], [2, 3], [3]]


def has_nothing_to_do(actor: AgentActor) -> bool:
    """Whether an actor has handled all that it was sent."""
    return actor.actor_inbox.empty() and not actor.actor_inbox.scheduled


def put_to_sleep(system: ActorSystem, *agents: AgentRef) -> None:
    """Have agents give up their actors as if nobody had used them for long."""
    for agent in agents:
        system._actor(agent.uuid).sleep()
    eventually(lambda: all(system._here(agent.uuid) is None for agent in agents), "their sleep")


@pytest.mark.slow("takes a tenth of a second")
def test_an_agent_that_rests_gives_up_its_actor_and_goes_on_when_it_is_asked(asleep: str) -> None:
    with ActorSystem.open(asleep, TEA) as system:
        a, b = system.agent("a"), system.agent("b")
        for _ in range(2):
            assert a.prompt("And now?").get(timeout=30).text == "tea"
            b.configure(max_tokens=9)
            put_to_sleep(system, a, b, system.root)
            assert system.statistics().awake == 0
        assert [message.content for message in a.history()][-4:] == ["And now?", "tea", "And now?", "tea"]


@pytest.mark.slow("takes a tenth of a second")
def test_an_agent_with_anything_open_stays_awake(asleep: str) -> None:
    gate = Gate()
    with ActorSystem.open(asleep, gate.provider) as system:
        a, b = system.agent("a"), system.agent("b")
        turn = a.prompt("Wait.")
        gate.wait_until_asked()
        b.signal(Signal.STOP)
        kept = b.prompt("Go.")
        c = system.agent("c")
        c.configure(notify=True)
        for agent in (a, b, c):
            actor = system._actor(agent.uuid)
            actor.sleep()
            eventually(partial(has_nothing_to_do, actor), "the end of its slice")
            assert system._here(agent.uuid) is actor
        assert (turn.done(), kept.done()) == (False, False)
        gate.open()
        b.signal(Signal.CONT)
        assert (turn.get(timeout=30).text, kept.get(timeout=30).text) == ("done", "done")


def test_what_comes_as_an_agent_falls_asleep_wakes_it(asleep: str) -> None:
    with ActorSystem.open(asleep, TEA) as system:
        a = system.agent("a")
        actor = system._actor(a.uuid)
        put_to_sleep(system, a)
        answer = Future[Reply]()
        actor.actor_inbox.put_urgent(on.Prompt("And now?", answer))  # as one who has found it a moment ago
        finished = threading.Event()
        actor.actor_inbox.put_urgent(Finish(finished.set))
        assert answer.get(timeout=30).text == "tea"
        assert finished.is_set()


@pytest.mark.thorough("many agents")
def test_many_that_nobody_has_used_fall_asleep_and_lose_their_marks_later() -> None:
    with simulated() as world:
        world.checks = False  # there are many
        system = world.open(TEA, sleep_after=40.0)
        children = system.root.fork(prompts=["What is there?"] + [None] * (CROWD - 1))
        assert children[0].reply().text == "tea"
        for _ in range(4):
            world.sleep(25.0)
            assert children[1].prompt("And now?").get().text == "tea"
        assert system.statistics().awake == 1
        marked = world.process.looked_at.read(lambda tx: sql(tx, "SELECT uuid FROM agents WHERE awake = 1"))
        assert marked == [(children[1].uuid,)]  # and no boot looks at the first one any more


@pytest.mark.slow("takes a tenth of a second")
def test_agents_are_listed_without_a_read_of_all_at_once(asleep: str) -> None:
    with ActorSystem.open(asleep, TEA) as system:
        a, b, c = map(system.agent, "abc")
        c.kill()
        assert {record.uuid for record in system.iter_agents()} == {record.uuid for record in system.agents()}
        assert [record.uuid for record in system.iter_agents(below=a)] == [b.uuid]
        assert [record.name for record in system.iter_agents("dead", below="a")] == []
        assert [record.name for record in system.iter_agents("dead")] == ["c"]
        assert [record.name for record in system.agents("running")] == [None, "a", "b"]
        with pytest.raises(AgentNotFound):
            system.iter_agents(below="nobody")
        with pytest.raises(BadInput, match="status"):
            system.iter_agents("asleep")


@pytest.mark.slow("takes a tenth of a second")
def test_supervisors_that_sleep_give_up_when_a_child_fails_too_often(durable: str) -> None:
    with Worker().open(durable) as system:
        top = system.root.fork(name="top")
        middle = top.fork(name="middle")
        leaf = middle.fork(name="leaf")
        for agent in (top, middle):
            agent.supervise(intensity=0)
    with Worker(leaf=1).open(durable) as system:
        again = [system.handle(agent.uuid) for agent in (top, middle, leaf)]
        assert again[-1].prompt("go").get(timeout=DEADLINE).text == "leaf is done"
        assert [agent.record.status for agent in again] == ["running"] * 3


@pytest.mark.thorough("a restart of siblings, as in test_restarts, of which all sleep")
def test_siblings_that_sleep_are_restarted_together_with_one_that_fails(durable: str) -> None:
    with Worker().open(durable) as system:
        top = system.root.fork(name="top")
        top.supervise(strategy="one_for_all")
        kid, other = top.fork(name="kid"), top.fork(name="other")
    with Worker(kid=1).open(durable) as system:
        assert system.handle(kid.uuid).prompt("go").get(timeout=DEADLINE).text == "kid is done"
        assert system.handle(other.uuid).prompt("go").get(timeout=DEADLINE).text == "other is done"
